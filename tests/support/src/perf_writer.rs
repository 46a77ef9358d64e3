//! Writes a `perf.data` file as `simpleperf record` does, of times and threads that a test decides.

/// `perf_event_attr`: the flags with which samples carry a clock of their own, and take a frequency.
const FLAGS: u64 = 1 << 10 | 1 << 18 | 1 << 25;
/// CLOCK_MONOTONIC and CLOCK_BOOTTIME.
pub const MONOTONIC: i32 = 1;
pub const BOOTTIME: i32 = 7;
/// Samples have the fields address, thread, time, CPU and period.
const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 1 << 7 | 1 << 8;
const SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;
const ATTR_BYTES: usize = 112;
const HEAD_BYTES: usize = 104;
const RECORD_SAMPLE: u32 = 9;

/// A file with a sample of each of these times, ns of the clock, processes and threads, all on CPU 0.
pub fn perf_data(clock: i32, samples: &[(u64, u32, u32)]) -> Vec<u8> {
    perf_data_with_records(clock, samples, &[])
}

/// A record of another type than a sample: its number, the words of its body, and whether the kernel wrote
/// it, which puts the thread, the time and the CPU behind the body.
pub fn perf_record(kind: u32, words: &[u64], is_of_kernel: bool) -> Vec<u8> {
    let behind: &[u64] = if is_of_kernel { &[7 | 7 << 32, 1_500, 0] } else { &[] };
    let body: Vec<u8> = words.iter().chain(behind).flat_map(|word| word.to_le_bytes()).collect();
    let mut record = kind.to_le_bytes().to_vec();
    record.extend(0_u16.to_le_bytes());
    record.extend((8 + body.len() as u16).to_le_bytes());
    record.extend(body);
    record
}

/// The same file with these records behind the samples.
pub fn perf_data_with_records(clock: i32, samples: &[(u64, u32, u32)], more: &[u8]) -> Vec<u8> {
    let mut records = Vec::new();
    for (time, pid, tid) in samples {
        let mut body = 0x1000_u64.to_le_bytes().to_vec();
        body.extend([*pid, *tid].iter().flat_map(|id| id.to_le_bytes()));
        body.extend(time.to_le_bytes());
        body.extend([0; 8]);
        body.extend(1_000_000_u64.to_le_bytes());
        records.extend(RECORD_SAMPLE.to_le_bytes());
        records.extend(2_u16.to_le_bytes());
        records.extend((8 + body.len() as u16).to_le_bytes());
        records.extend(body);
    }
    records.extend(more);
    let mut attr = SOFTWARE.to_le_bytes().to_vec();
    attr.extend((ATTR_BYTES as u32).to_le_bytes());
    attr.extend([CPU_CLOCK, 1_000, SAMPLE_TYPE, 0, FLAGS].iter().flat_map(|word| word.to_le_bytes()));
    attr.resize(92, 0);
    attr.extend(clock.to_le_bytes());
    attr.resize(ATTR_BYTES + 16, 0);
    let words = [
        HEAD_BYTES as u64,
        attr.len() as u64,
        HEAD_BYTES as u64,
        attr.len() as u64,
        (HEAD_BYTES + attr.len()) as u64,
        records.len() as u64,
        0,
        0,
        0,
        0,
        0,
        0,
    ];
    let mut out = b"PERFILE2".to_vec();
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    out.extend(attr);
    out.extend(records);
    out
}

/// A file as `simpleperf record -e cpu-cycles --add-counter instructions` writes it: at each of these times,
/// ns, a sample of the cycles with this count of instructions since the start. The added counter has a period
/// of 2^62 and no samples.
pub fn perf_data_with_added_counter(samples: &[(u64, u64)]) -> Vec<u8> {
    const READ_FORMAT: u64 = 1 << 2 | 1 << 3;
    const IDS: [u64; 2] = [11, 12];
    const FREQUENCY: u64 = 1 << 10;
    const ENTRY_BYTES: usize = ATTR_BYTES + 16;
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut records = Vec::new();
    for (time, count) in samples {
        // Address, thread, time, id, the group's number of counts, counts with their ids, and at its place
        // the period.
        let body = words(&[0x1000, 100 | 100 << 32, *time, IDS[0], 5_000, 2, 5_000, IDS[0], *count, IDS[1]]);
        records.extend(RECORD_SAMPLE.to_le_bytes());
        records.extend(2_u16.to_le_bytes());
        records.extend((8 + body.len() as u16).to_le_bytes());
        records.extend(body);
    }
    let [attrs_at, ids_at] = [HEAD_BYTES, HEAD_BYTES + 2 * ENTRY_BYTES];
    let records_at = ids_at + 16;
    let mut attrs = Vec::new();
    for (number, (rate, flags)) in [(1_000, FREQUENCY), (1 << 62, 0)].into_iter().enumerate() {
        let mut attr = 0_u32.to_le_bytes().to_vec();
        attr.extend((ATTR_BYTES as u32).to_le_bytes());
        let kind = 1 | 2 | 4 | 1 << 4 | 1 << 6 | 1 << 8;
        attr.extend(words(&[number as u64, rate, kind, READ_FORMAT, flags | 1 << 18]));
        attr.resize(ATTR_BYTES, 0);
        attr.extend(words(&[(ids_at + 8 * number) as u64, 8]));
        attrs.extend(attr);
    }
    // The only feature section is the command line, which names simpleperf.
    const CMDLINE: u64 = 11;
    let features_at = records_at + records.len();
    let mut section = 1_u32.to_le_bytes().to_vec();
    let text = b"simpleperf record\0";
    section.extend((text.len() as u32).to_le_bytes());
    section.extend(text);
    let mut out = b"PERFILE2".to_vec();
    out.extend(words(&[HEAD_BYTES as u64, ENTRY_BYTES as u64, attrs_at as u64, attrs.len() as u64]));
    out.extend(words(&[records_at as u64, records.len() as u64, 0, 0, 1 << CMDLINE, 0, 0, 0]));
    out.extend(attrs);
    out.extend(words(&IDS));
    out.extend(records);
    out.extend(words(&[features_at as u64 + 16, section.len() as u64]));
    out.extend(section);
    out
}
