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
