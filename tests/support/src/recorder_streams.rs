//! Makes the stream that a recorder would have sent of the recording in a trace.dat version 6, as
//! trace-cmd.dat.v6(5) describes the file and `record --live` the order of the frames.

use crate::dat_writer::{DatFile, RingBuffer, common};
use crate::kernel_pages::KernelPages;
use crate::scenario::{Random, START};

const MAGIC: &[u8] = b"TBSTRM1\n";
const OPTIONS: &[u8] = b"options  \0";
const FLYRECORD: &[u8] = b"flyrecord\0";
/// Bytes of the magic, the version with its NUL, the byte order and the size of a `long`.
const PAGE_SIZE_AT: usize = 14;
/// The option with the recorder's own facts, as JSON.
const RECORDER_FACTS: u16 = 0x7462;

/// A trace.dat in parts.
pub struct DatParts {
    /// Everything before the first page.
    pub head: Vec<u8>,
    pub page_size: usize,
    /// Offset of the table of CPUs.
    pub table_at: usize,
    /// The pages of each CPU.
    pub cpus: Vec<Vec<Vec<u8>>>,
}

fn find(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).position(|window| window == what).expect("the section")
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

impl DatParts {
    /// Takes a little-endian trace.dat apart.
    pub fn of(dat: &[u8]) -> DatParts {
        let page_size = u32::from_le_bytes(dat[PAGE_SIZE_AT..PAGE_SIZE_AT + 4].try_into().unwrap()) as usize;
        let options = find(dat, OPTIONS);
        let cpus = u32::from_le_bytes(dat[options - 4..options].try_into().unwrap()) as usize;
        let table_at = options + find(&dat[options..], FLYRECORD) + FLYRECORD.len();
        let entry = |cpu: usize| {
            let at = table_at + 16 * cpu;
            (u64_at(dat, at) as usize, u64_at(dat, at + 8) as usize)
        };
        let pages = |cpu| {
            let (at, len) = entry(cpu);
            dat[at..at + len].chunks(page_size).map(<[u8]>::to_vec).collect()
        };
        let head_len = (0..cpus).map(|cpu| entry(cpu).0).filter(|at| *at > 0).min().unwrap();
        DatParts { head: dat[..head_len].to_vec(), page_size, table_at, cpus: (0..cpus).map(pages).collect() }
    }

    /// The time of a page's header.
    pub fn page_ts(page: &[u8]) -> u64 {
        u64_at(page, 0)
    }

    /// The trace.dat with these pages alone.
    pub fn dat_with(&self, cpus: &[Vec<Vec<u8>>]) -> Vec<u8> {
        let mut out = self.head.clone();
        out.resize(out.len().next_multiple_of(self.page_size), 0);
        let mut at = out.len();
        for (cpu, pages) in cpus.iter().enumerate() {
            let len: usize = pages.iter().map(Vec::len).sum();
            let entry = self.table_at + 16 * cpu;
            out[entry..entry + 8].copy_from_slice(&(at as u64).to_le_bytes());
            out[entry + 8..entry + 16].copy_from_slice(&(len as u64).to_le_bytes());
            at += len;
        }
        cpus.iter().flatten().for_each(|page| out.extend(page));
        out
    }

    /// The stream of the recording, in rounds of some 50 ms. Each round is a piece; so are the head, with
    /// which the stream begins, and the end.
    pub fn stream(&self, random: &mut Random) -> Vec<Vec<u8>> {
        self.stream_in_rounds(random, 50_000_000)
    }

    /// The same in rounds of about `round_ns`.
    pub fn stream_in_rounds(&self, random: &mut Random, round_ns: u64) -> Vec<Vec<u8>> {
        let mut pieces = vec![self.begin()];
        let mut next = vec![0; self.cpus.len()];
        let times = || self.cpus.iter().flatten().map(|page| DatParts::page_ts(page));
        let mut now = times().min().unwrap_or(0);
        let last = times().max().unwrap_or(0);
        while now <= last {
            now += random.range(round_ns / 2, round_ns * 3 / 2);
            let mut piece = Vec::new();
            for (cpu, pages) in self.cpus.iter().enumerate() {
                while next[cpu] < pages.len() {
                    let count = random.range(1, 5) as usize;
                    let ready = pages[next[cpu]..].iter().take(count);
                    let ready: Vec<u8> =
                        ready.take_while(|page| DatParts::page_ts(page) < now).flatten().copied().collect();
                    if ready.is_empty() {
                        break;
                    }
                    next[cpu] += ready.len() / self.page_size;
                    piece.extend(frame(b'P', cpu as u32, &ready));
                }
            }
            piece.extend(frame(b'R', 0, &now.to_le_bytes()));
            pieces.push(piece);
        }
        pieces.push(frame(b'E', 0, self.facts()));
        pieces
    }

    /// The begin of the stream: its magic and its head.
    pub fn begin(&self) -> Vec<u8> {
        let (facts_at, facts_len) = self.facts_place();
        let mut info = Vec::new();
        info.extend((self.page_size as u32).to_le_bytes());
        info.extend((self.cpus.len() as u32).to_le_bytes());
        for number in [self.table_at, facts_at, facts_len] {
            info.extend((number as u64).to_le_bytes());
        }
        [MAGIC, &frame(b'H', 0, &[&info[..], &self.head].concat())].concat()
    }

    /// The recorder's facts as the head has them.
    fn facts(&self) -> &[u8] {
        let (at, len) = self.facts_place();
        &self.head[at..at + len]
    }

    /// Offset and length of the recorder's facts in the head.
    fn facts_place(&self) -> (usize, usize) {
        let mut at = find(&self.head, OPTIONS) + OPTIONS.len();
        loop {
            let id = u16::from_le_bytes(self.head[at..at + 2].try_into().unwrap());
            if id == 0 {
                return (0, 0);
            }
            let len = u32::from_le_bytes(self.head[at + 2..at + 6].try_into().unwrap()) as usize;
            if id == RECORDER_FACTS {
                return (at + 6, len);
            }
            at += 6 + len;
        }
    }
}

/// A frame of the stream.
pub fn frame(kind: u8, cpu: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![kind];
    out.extend(cpu.to_le_bytes());
    out.extend((payload.len() as u32).to_le_bytes());
    out.extend(payload);
    out
}

/// The stream of a recording of one CPU: markers, each with its thread, a microsecond after each other, of
/// which the first one is so many microseconds behind [`START`]; in rounds of about `round_ns`.
pub fn marker_stream(
    first: u64,
    markers: impl Iterator<Item = (i32, String)>,
    round_ns: u64,
) -> Vec<Vec<u8>> {
    let mut file = DatFile::with_texts_of(&KernelPages::read("events"));
    let print = file.event_id("print");
    let mut ring = RingBuffer::default();
    for ((tid, text), at) in markers.zip(first..) {
        let mut fields = common(print, tid);
        fields.u64(0).raw(text.as_bytes()).raw(b"\n\0");
        ring.event(START + 1_000 * at, &fields.0);
    }
    file.trace_clock = "[boot]".into();
    file.options = Vec::new();
    file.cpus = vec![ring.into_pages()];
    DatParts::of(&file.to_bytes()).stream_in_rounds(&mut Random(5), round_ns)
}
