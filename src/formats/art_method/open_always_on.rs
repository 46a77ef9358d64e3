//! Opens what the always-on tracer writes: long-running methods, with times, and all methods, with an order
//! alone.
//!
//! The tracer keeps only methods that took 2²³ ticks of the CPU's counter and their callers, or the last
//! 2,048 enters and exits of each thread.

use super::Counts;
use super::block_packets::{self, FoundBlock, Packets};
use super::body::{BlockBody, RecordBlock};
use super::declarations::Declarations;
use crate::art::{
    BlockEncoding, BlockState, ClockMode, CounterTime, PacketForm, next_record, parse_method_line,
};
use crate::clock::Clock;

/// What [`open`] returns.
pub(super) struct OpenedStream {
    /// The places of the records: those of a thread in the order of time.
    pub body: BlockBody,
    /// [`ClockMode::Wall`] or [`ClockMode::NoTimes`].
    pub clock: ClockMode,
    /// The start, ns, and its clock.
    pub start: Option<(u64, Clock)>,
    /// Counts from a pass over the records.
    pub counts: Counts,
}

/// A thread's ring of 2,048 records that is full has so many in the file; the place where it begins is not
/// written.
const FULL_RING_RECORDS: u32 = 2_047;

/// Opens the packets of this form from offset `from` on.
pub(super) fn open<'a>(
    declared: &mut Declarations<'a>,
    bytes: &'a [u8],
    from: usize,
    form: PacketForm,
) -> OpenedStream {
    // The first version's file ends with text.
    let text = (form == PacketForm::AllMethods { padding: 0 }).then_some(b'*');
    let packets = block_packets::read(declared, bytes, from, form, text);
    if text.is_some() {
        take_text(declared, bytes, packets.end);
    }
    let (encoding, clock, start) = match form {
        PacketForm::LongRunning => long_running(declared, bytes, &packets),
        _ => {
            note_full_rings(declared, &packets);
            (BlockEncoding::AllMethods, ClockMode::NoTimes, None)
        }
    };
    let mut blocks: Vec<(u64, RecordBlock)> = Vec::with_capacity(packets.blocks.len());
    for FoundBlock { range, thread, .. } in packets.blocks {
        let first = first_time(bytes.get(range.clone()).unwrap_or_default()).unwrap_or(0);
        blocks.push((first, RecordBlock { range, thread, continues: false }));
    }
    if clock.has_wall() {
        // What a thread had to write early stands behind what it held at the end.
        blocks.sort_by_key(|(first, _)| *first);
    }
    let body = BlockBody { encoding, blocks: blocks.into_iter().map(|(_, block)| block).collect() };
    let counts = block_packets::count_records(declared, bytes, from, &body);
    OpenedStream { body, clock, start, counts }
}

/// The time of a block's first record, ns of the counter.
fn first_time(mut entries: &[u8]) -> Option<u64> {
    let time = CounterTime { start: 0, ns: 1, ticks: 1 };
    let encoding = BlockEncoding::LongRunning { time, in_ticks: false };
    next_record(&mut entries, encoding, &mut BlockState::default()).map(|record| record.wall)
}

fn long_running(
    declared: &mut Declarations<'_>,
    bytes: &[u8],
    packets: &Packets,
) -> (BlockEncoding, ClockMode, Option<(u64, Clock)>) {
    let firsts = packets.blocks.iter().filter_map(|block| first_time(bytes.get(block.range.clone())?));
    let first = firsts.min().unwrap_or(0);
    let start = match packets.calibration {
        Some((counter_ns, monotonic_ns)) => {
            let apart = monotonic_ns.wrapping_sub(counter_ns);
            (first.wrapping_add(apart), Clock::Monotonic)
        }
        None => {
            let what = "nothing in the file relates its times to another clock: they are taken for ns of the \
                        CPU's counter (the first version of the tracer wrote ticks)";
            declared.report.notes.push(what.to_owned());
            (first, Clock::Counter)
        }
    };
    let what = "only methods that took 2^23 ticks of the CPU's counter (0.34 s at 24.576 MHz) and their \
                callers are in this trace, and its threads have no names";
    declared.report.notes.push(what.to_owned());
    let time = CounterTime { start: first, ns: 1, ticks: 1 };
    (BlockEncoding::LongRunning { time, in_ticks: false }, ClockMode::Wall, Some(start))
}

fn note_full_rings(declared: &mut Declarations<'_>, packets: &Packets) {
    let what =
        "this trace has the order of calls but no times: figures count calls, and no timeline can hold it";
    declared.report.notes.push(what.to_owned());
    let full = packets.blocks.iter().filter(|block| block.stated_records >= FULL_RING_RECORDS).count();
    let what = "threads have filled their rings: of these only the last 2,047 enters and exits are here, and the \
                place where the oldest of them stands is not written, so one path of calls in each may be wrong";
    declared.irregular(full as u64, what);
}

/// Takes the threads and methods that stand as text at the end of the first version's files. Methods have
/// their addresses as decimal numbers.
fn take_text<'a>(declared: &mut Declarations<'a>, bytes: &'a [u8], from: usize) {
    let text = bytes.get(from..).unwrap_or_default();
    let (mut in_threads, mut has_end, mut at) = (false, false, from);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let place = at;
        at += line.len();
        match line.trim_ascii_end() {
            b"*threads" => in_threads = true,
            b"*methods" => in_threads = false,
            b"*end" => has_end = true,
            b"" => {}
            line => {
                let (id, rest) = line.split_at(line.iter().position(|byte| *byte == b'\t').unwrap_or(0));
                let id = std::str::from_utf8(id).ok().and_then(|id| id.parse::<u64>().ok());
                let is_whole = text.get(at - from - 1) == Some(&b'\n');
                match (id.filter(|_| is_whole), in_threads) {
                    (Some(id), true) => declare_thread(declared, id as u32, &rest[1..]),
                    (Some(id), false) => declare_method(declared, id, rest, place),
                    (None, _) => declared.damage(place, "a line of the text at the end is skipped"),
                }
            }
        }
    }
    if !has_end {
        declared.damage(bytes.len(), "no *end: the file was cut, and threads and methods may be missing");
    }
}

fn declare_thread<'a>(declared: &mut Declarations<'a>, id: u32, name: &'a [u8]) {
    let name = String::from_utf8_lossy(name);
    let known = declared.latest.get(&id).and_then(|index| declared.threads.get_mut(*index as usize));
    match known {
        Some(thread) => (thread.name, thread.declared) = (name, true),
        None => drop(declared.add_thread(id, name)),
    }
}

fn declare_method(declared: &mut Declarations<'_>, id: u64, columns: &[u8], place: usize) {
    let line = [b"0", columns].concat();
    match parse_method_line(&line) {
        Some(method) => declared.add_method(method.with_id(id).into_owned()),
        None => declared.damage(place, "a method's line has no class and name"),
    }
}
