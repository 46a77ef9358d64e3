//! Writes a perf.data file of any size as `perf record` writes it, for races with perf and for looking at
//! viewers: `cargo run --release --example generate_samples -- OUT [SAMPLES [THREADS [PLACES [DEPTH]]]]`
//!
//! The samples are of `cpu-clock` on two processors, in rounds as perf reads its buffers: in each round the
//! samples of one processor come behind those of the other. Their stacks are of PLACES functions of a library
//! that the file names and no machine has, 1 to DEPTH deep, and few stacks have most of the samples.
//! Defaults: 10,000,000 samples, 8 threads, 4,000 functions, stacks up to 16 deep. The same numbers give the
//! same file.

use std::io::{self, BufWriter, Seek, SeekFrom, Write};

/// Bytes of the file's head, and of the description of the event type behind it.
const HEAD_BYTES: u64 = 104;
const ATTRIBUTE_BYTES: u64 = 128;
/// `PERF_SAMPLE_` bits: IP, TID, TIME, CALLCHAIN, CPU and PERIOD.
const SAMPLE_TYPE: u64 = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 5 | 1 << 7 | 1 << 8;
/// Bits of the attribute's flags: comm, freq, task, mmap2 and sample_id_all.
const FLAGS: u64 = 1 << 9 | 1 << 10 | 1 << 13 | 1 << 23 | 1 << 18;
/// `PERF_CONTEXT_USER`.
const USER_MARK: u64 = -512i64 as u64;
/// Types of records.
const COMM: u32 = 3;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const FINISHED_ROUND: u32 = 68;
/// `misc` of a record of a program.
const USER_MODE: u16 = 2;

const PID: u32 = 1_000;
const CPUS: u64 = 2;
/// Time between two samples of a processor, ns, and so the period of each.
const PERIOD_NS: u64 = 250_000;
const SAMPLES_OF_ROUND: u64 = 1_000;
/// Where the library lies in memory, and the bytes of one function.
const START: u64 = 0x7f00_0000_0000;
const FUNCTION_BYTES: u64 = 64;
/// The number of different stacks for each function.
const STACKS_OF_FUNCTION: u64 = 8;

/// xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }

    /// A number below `limit`; half of them are below a tenth of it, as few stacks take most of the time.
    fn mostly_low(&mut self, limit: u64) -> u64 {
        let below = 1 + self.below(limit);
        let below = 1 + self.below(below);
        self.below(below)
    }
}

/// Writes a record. `size` is the size of its body, bytes.
fn record(out: &mut Vec<u8>, kind: u32, misc: u16, size: usize) {
    out.extend(kind.to_le_bytes());
    out.extend(misc.to_le_bytes());
    out.extend((size as u16 + 8).to_le_bytes());
}

fn words(out: &mut Vec<u8>, words: &[u64]) {
    words.iter().for_each(|word| out.extend(word.to_le_bytes()));
}

/// The fields with which records other than samples end: thread, time and processor.
fn identity(out: &mut Vec<u8>, tid: u32) {
    words(out, &[u64::from(PID) | u64::from(tid) << 32, 1, 0]);
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.as_bytes());
    out.resize(out.len() + 8 - text.len() % 8, 0);
}

fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let path = args.next().filter(|path| !path.starts_with('-'));
    let path = path.expect("usage: generate_samples OUT [SAMPLES [THREADS [PLACES [DEPTH]]]]");
    let mut number = |default: u64| args.next().map_or(default, |a| a.parse().expect("a number"));
    let samples = number(10_000_000);
    let threads = number(8).max(1);
    let places = number(4_000).max(1);
    let depth = number(16).clamp(1, 500);
    let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
    out.write_all(&[0; (HEAD_BYTES + ATTRIBUTE_BYTES + 16) as usize])?;
    let mut part = Vec::new();
    for thread in 0..threads as u32 {
        let name = format!("thread-{thread}");
        record(&mut part, COMM, 0, 8 + name.len() + 8 - name.len() % 8 + 24);
        words(&mut part, &[u64::from(PID) | u64::from(PID + thread) << 32]);
        text(&mut part, &name);
        identity(&mut part, PID + thread);
    }
    let library = "/data/app/libgenerated.so";
    record(&mut part, MMAP2, USER_MODE, 64 + library.len() + 8 - library.len() % 8 + 24);
    words(&mut part, &[u64::from(PID) | u64::from(PID) << 32, START, places * FUNCTION_BYTES, 0, 0, 0, 0, 5]);
    text(&mut part, library);
    identity(&mut part, PID);

    // The addresses of each stack, innermost first, behind the kernel's mark.
    let mut random = Random(88_172_645_463_325_252);
    let mut stacks = Vec::new();
    for _ in 0..places * STACKS_OF_FUNCTION {
        let frames = 1 + random.below(depth);
        let address =
            |random: &mut Random| START + random.below(places) * FUNCTION_BYTES + 4 * random.below(16);
        stacks.push((0..frames).map(|_| address(&mut random)).collect::<Vec<u64>>());
    }
    let mut written = 0;
    while written < samples {
        let count = SAMPLES_OF_ROUND.min(samples - written);
        for cpu in 0..CPUS {
            for n in (0..count).filter(|n| n % CPUS == cpu) {
                let thread = random.below(threads) as u32;
                let stack = &stacks[random.mostly_low(stacks.len() as u64) as usize];
                record(&mut part, SAMPLE, USER_MODE, 8 * (7 + stack.len()));
                let time = 1_000_000 + (written + n) / CPUS * PERIOD_NS + cpu * 1_000;
                let tids = u64::from(PID) | u64::from(PID + thread) << 32;
                words(&mut part, &[stack[0], tids, time, cpu, PERIOD_NS, stack.len() as u64 + 1, USER_MARK]);
                words(&mut part, stack);
            }
        }
        record(&mut part, FINISHED_ROUND, 0, 0);
        out.write_all(&part)?;
        part.clear();
        written += count;
    }
    let end = out.stream_position()?;
    let data_at = HEAD_BYTES + ATTRIBUTE_BYTES + 16;
    out.seek(SeekFrom::Start(0))?;
    out.write_all(b"PERFILE2")?;
    words(
        &mut part,
        &[HEAD_BYTES, ATTRIBUTE_BYTES + 16, HEAD_BYTES, ATTRIBUTE_BYTES + 16, data_at, end - data_at],
    );
    words(&mut part, &[0, 0, 0, 0, 0, 0]);
    // The event type cpu-clock of the software's, 4,000 times a second, and no ids of it.
    let cpu_clock_hz = 4_000;
    words(&mut part, &[1 | ATTRIBUTE_BYTES << 32, 0, cpu_clock_hz, SAMPLE_TYPE, 0, FLAGS]);
    part.resize(part.len() + ATTRIBUTE_BYTES as usize - 48, 0);
    words(&mut part, &[0, 0]);
    out.write_all(&part)?;
    out.flush()
}
