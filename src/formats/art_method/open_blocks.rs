//! Opens files whose records lie in blocks: versions 4 and 5, and those of the always-on tracer. Reads their
//! packets, takes the declarations, and finds the blocks.
//!
//! AOSP's `runtime/trace.cc` has written versions 4 and 5 in three ways. [`open_blocks`] finds out which
//! writer it was, and with it the encoding and the clock of the records.
//!
//! | writer | time | header | times |
//! | --- | --- | --- | --- |
//! | first | 2024 | no frequency; its packets parse in its own form only | µs |
//! | second | 2024 to 2025 | no frequency | µs, later ns: the summary's `elapsed-time-` key says it |
//! | third | Android 17 | frequency of a counter, and its reading at the start | ticks; CPU time in ns |
//!
//! The always-on tracer writes long-running methods, with times, and all methods, with an order alone. It
//! keeps only methods that took 2²³ ticks of the CPU's counter and their callers, or the last 2,048 enters
//! and exits of each thread.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::body::{BlockBody, BlockCursor, MAX_TICKS, NONE, RecordBlock};
use super::declarations::{Declarations, unknown_method};
use super::{Counts, TracedThread};
use crate::art::{
    BlockEncoding, BlockPacket, BlockState, ClockMode, CounterTime, DataHeader, EntriesPacket, KeySection,
    PacketForm, end_of_whole_packets, next_block_packet, next_record, parse_method_line,
};
use crate::clock::Clock;

/// The records of versions 4 and 5, as [`open_blocks`] returns them.
pub(super) struct OpenedBlocks {
    /// The places of the records.
    pub body: BlockBody,
    /// The clocks of the records.
    pub clock: ClockMode,
    /// The unit of the records' times and of the header's start, ns.
    pub tick_ns: u64,
    /// Counts from a pass over the records.
    pub counts: Counts,
}

/// Opens the packets from offset `from` on.
pub(super) fn open_blocks<'a>(
    declared: &mut Declarations<'a>,
    bytes: &'a [u8],
    from: usize,
    header: &DataHeader,
) -> OpenedBlocks {
    let is_android_17 = header.tsc_frequency != 0;
    let records = bytes.get(from..).unwrap_or_default();
    let form = if is_android_17 { PacketForm::Sized } else { form_of(records, header.version) };
    // The first writer puts the summary in front of the header where it does not stream.
    let mut has_summary = !declared.keys.is_empty();
    let packets = read_packets(declared, bytes, from, form, None);
    has_summary |= packets.has_summary;
    if !has_summary {
        let units = match form {
            PacketForm::Sized if !is_android_17 => {
                "; the times are taken for ns (files from before February 2025 have µs)"
            }
            _ => "",
        };
        let what = "no summary at the end: the app was killed or the file was cut while tracing";
        declared.damage(bytes.len(), format!("{what}{units}"));
    }
    let clock = match declared.key("clock").and_then(ClockMode::from_key) {
        _ if header.version == 5 => ClockMode::Dual,
        Some(clock) if clock != ClockMode::Dual => clock,
        _ if is_android_17 && begins_before(bytes, &packets, header.start_tsc) => ClockMode::ThreadCpu,
        _ => ClockMode::Wall,
    };
    if header.version == 4 && declared.key("clock").is_none() {
        let what = format!("no clock= key: the times are taken for {} time", clock.name());
        declared.report.notes.push(what);
    }
    let encoding = match form {
        PacketForm::First { .. } => BlockEncoding::FromFirst { clock },
        _ if is_android_17 && clock.has_wall() => {
            BlockEncoding::TimeFirst { clock, time: counter_time(declared, header) }
        }
        _ if is_android_17 => BlockEncoding::CpuFirst,
        _ => {
            let has_micros = declared.key("elapsed-time-usec").is_some();
            let has_nanos = declared.key("elapsed-time-nsec").is_some();
            BlockEncoding::MethodFirst { clock, micros: has_micros && !has_nanos }
        }
    };
    let blocks = continued(bytes, packets.blocks, encoding);
    let body = BlockBody { encoding, blocks };
    let counts = count_records(declared, bytes, from, &body);
    OpenedBlocks { body, clock, tick_ns: if encoding.is_32_bit() { 1_000 } else { 1 }, counts }
}

/// The form of packets of the first or the second writer, whichever parses further.
fn form_of(packets: &[u8], version: u16) -> PacketForm {
    let first = PacketForm::First { clocks: if version == 5 { 2 } else { 1 } };
    let whole = end_of_whole_packets(packets, PacketForm::Sized);
    if whole < packets.len() && end_of_whole_packets(packets, first) > whole {
        first
    } else {
        PacketForm::Sized
    }
}

/// Whether the first time of every block is before the counter's reading at the start: then it is thread-CPU
/// time, which counts from 0. Only a file that was cut does not name its clock.
fn begins_before(bytes: &[u8], packets: &Packets, start_tsc: u64) -> bool {
    let first = |block: &FoundBlock| {
        let mut entries = bytes.get(block.range.clone())?;
        next_record(&mut entries, BlockEncoding::CpuFirst, &mut BlockState::default())
    };
    let mut firsts = packets.blocks.iter().filter_map(first).map(|record| record.cpu).peekable();
    firsts.peek().is_some() && firsts.all(|at| at < start_tsc)
}

/// The counter and CLOCK_MONOTONIC may drift apart by so many parts per million; a larger difference at the
/// end means that the machine was suspended, or that a key is damaged.
const MAX_DRIFT_PPM: u64 = 1_000;
/// The two readings of a calibration may be so far apart, ns.
const MAX_CALIBRATION_ERROR_NS: u64 = 1_000_000;
/// A smaller difference at the end, ns, is not worth a note.
const MIN_DRIFT_NOTED_NS: u64 = 1_000;

/// The meaning of the counter's readings: by its readings at the start and at the end where the summary has
/// them, else by its frequency. Notes how far both are apart.
fn counter_time(declared: &mut Declarations<'_>, header: &DataHeader) -> CounterTime {
    let by_frequency =
        CounterTime { start: header.start_tsc, ns: 1_000_000_000, ticks: header.tsc_frequency };
    let number = |key: &str| declared.key(key).and_then(|value| value.parse::<u64>().ok());
    let ends = number("end_time")
        .zip(number("end_tsc"))
        .and_then(|(ns, ticks)| Some((ns.checked_sub(header.start)?, ticks.checked_sub(header.start_tsc)?)));
    let Some((ns, ticks)) = ends.filter(|(ns, ticks)| *ns > 0 && *ticks > 0) else { return by_frequency };
    let expected = by_frequency.since_start(header.start_tsc.saturating_add(ticks));
    let drift = ns.abs_diff(expected);
    let ppm = drift as f64 * 1e6 / ns as f64;
    let apart = format!("{:.1} µs in {:.3} s, {ppm:.1} ppm", drift as f64 / 1e3, ns as f64 / 1e9);
    if drift > MAX_CALIBRATION_ERROR_NS.saturating_add(ns / (1_000_000 / MAX_DRIFT_PPM)) {
        declared.report.notes.push(format!(
            "the counter and CLOCK_MONOTONIC moved apart while tracing ({apart}): the machine was suspended, or \
             end_time or end_tsc is damaged; times follow the counter's frequency"
        ));
        return by_frequency;
    }
    if drift >= MIN_DRIFT_NOTED_NS {
        let direction = if expected > ns { "fast" } else { "slow" };
        declared.report.notes.push(format!(
            "the counter ran {direction} against CLOCK_MONOTONIC ({apart}): times follow its readings at both ends"
        ));
    }
    CounterTime { start: header.start_tsc, ns, ticks }
}

/// Finds the blocks that continue a previous block. When one flush of the second writer fills several blocks,
/// the stated number of records counts on from block to block, and so do the differences. So a block
/// continues the thread's previous blocks if it states more records than it holds, and the surplus is what
/// those blocks hold.
fn continued(bytes: &[u8], found: Vec<FoundBlock>, encoding: BlockEncoding) -> Vec<RecordBlock> {
    let mut before: HashMap<u32, u64> = HashMap::new();
    let mut blocks = Vec::with_capacity(found.len());
    for FoundBlock { range, thread, stated_records } in found {
        let mut continues = false;
        if let Some(count) = encoding.count(bytes.get(range.clone()).unwrap_or_default()) {
            let sum = before.entry(thread).or_default();
            // The field has 24 bits, but some runtimes fill only the low 16.
            let equal = |n: u64| n & 0xffff == u64::from(stated_records) & 0xffff;
            continues = *sum > 0 && !equal(count) && equal(*sum + count);
            *sum = if continues { *sum + count } else { count };
        }
        blocks.push(RecordBlock { range, thread, continues });
    }
    blocks
}

/// The records of the always-on tracer, as [`open_always_on`] returns them.
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
pub(super) fn open_always_on<'a>(
    declared: &mut Declarations<'a>,
    bytes: &'a [u8],
    from: usize,
    form: PacketForm,
) -> OpenedStream {
    // The first version's file ends with text.
    let text = (form == PacketForm::AllMethods { padding: 0 }).then_some(b'*');
    let packets = read_packets(declared, bytes, from, form, text);
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
        // Records that a thread had to write early stand behind those that it held at the end.
        blocks.sort_by_key(|(first, _)| *first);
    }
    let body = BlockBody { encoding, blocks: blocks.into_iter().map(|(_, block)| block).collect() };
    let counts = count_records(declared, bytes, from, &body);
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
    let mut in_threads = false;
    let mut has_end = false;
    let mut at = from;
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
                    (Some(id), true) => declare_thread_of_text(declared, id as u32, &rest[1..]),
                    (Some(id), false) => declare_method_of_text(declared, id, rest, place),
                    (None, _) => declared.damage(place, "a line of the text at the end is skipped"),
                }
            }
        }
    }
    if !has_end {
        declared.damage(bytes.len(), "no *end: the file was cut, and threads and methods may be missing");
    }
}

fn declare_thread_of_text<'a>(declared: &mut Declarations<'a>, id: u32, name: &'a [u8]) {
    let name = String::from_utf8_lossy(name);
    let known = declared.latest.get(&id).and_then(|index| declared.threads.get_mut(*index as usize));
    match known {
        Some(thread) => {
            thread.name = name;
            thread.declared = true;
        }
        None => drop(declared.add_thread(id, name)),
    }
}

fn declare_method_of_text(declared: &mut Declarations<'_>, id: u64, columns: &[u8], place: usize) {
    let line = [b"0", columns].concat();
    match parse_method_line(&line) {
        Some(method) => declared.add_method(method.with_id(id).into_owned()),
        None => declared.damage(place, "a method's line has no class and name"),
    }
}

/// A block of records.
struct FoundBlock {
    /// The bytes in the file.
    pub range: Range<usize>,
    /// Dense index of the thread.
    pub thread: u32,
    /// See [`EntriesPacket::stated_records`].
    pub stated_records: u32,
}

/// The contents of packets besides declarations.
#[derive(Default)]
struct Packets {
    /// In file order.
    pub blocks: Vec<FoundBlock>,
    /// Whether there is a summary.
    pub has_summary: bool,
    /// Readings of the counter and of CLOCK_MONOTONIC at one time, ns.
    pub calibration: Option<(u64, u64)>,
    /// The end of the packets that could be read.
    pub end: usize,
}

/// Reads all packets from offset `from` on, up to the first byte `until` in a packet's place.
fn read_packets<'a>(
    declared: &mut Declarations<'a>,
    bytes: &'a [u8],
    from: usize,
    form: PacketForm,
    until: Option<u8>,
) -> Packets {
    let mut at = from;
    let mut packets = Packets::default();
    let mut threads: HashMap<u32, u32> = HashMap::new();
    for (n, thread) in declared.threads.iter().enumerate() {
        threads.entry(thread.id).or_insert(n as u32);
    }
    while bytes.get(at) != until.as_ref()
        && let Some(next) = bytes.get(at..).and_then(|rest| next_block_packet(rest, form))
    {
        let Some((packet, len)) = declared.readable(next, at, bytes.len() - at) else { break };
        match packet {
            BlockPacket::Thread(id, name) => declare_thread(declared, &mut threads, id, name),
            BlockPacket::Method(id, line) => {
                // The line has the form of the text section, but no id.
                let line = [b"0\t", line].concat();
                match parse_method_line(&line) {
                    Some(method) => declared.add_method(method.with_id(id).into_owned()),
                    None => declared.damage(at, "a method's declaration has no class and name"),
                }
            }
            BlockPacket::Entries(EntriesPacket { thread, stated_records, entries, is_cut }) => {
                if is_cut {
                    declared.damage(at, "the file ends in the middle of this block of records");
                }
                let end = at + len;
                let thread = *threads.entry(thread).or_insert_with(|| {
                    let index = declared.threads.len() as u32;
                    declared.threads.push(undeclared_thread(thread));
                    declared.latest.insert(thread, index);
                    index
                });
                let range = end - entries.len()..end;
                packets.blocks.push(FoundBlock { range, thread, stated_records });
            }
            BlockPacket::Summary(text) => {
                packets.has_summary = true;
                match KeySection::parse(text) {
                    Some(text) => declared.take_text(text, at + len, false),
                    None => declared.damage(at, "the summary does not begin with *version"),
                }
            }
            BlockPacket::Calibration { counter_ns, monotonic_ns } => {
                packets.calibration = Some((counter_ns, monotonic_ns));
            }
        }
        at += len;
    }
    packets.end = at;
    packets
}

/// Adds the thread that a packet declares. `threads` has the index of the latest thread of each id.
fn declare_thread<'a>(
    declared: &mut Declarations<'a>,
    threads: &mut HashMap<u32, u32>,
    id: u32,
    name: &'a [u8],
) {
    let name = String::from_utf8_lossy(name);
    match threads.get(&id).and_then(|n| declared.threads.get_mut(*n as usize)) {
        Some(thread) if !thread.declared => {
            thread.name = name;
            thread.declared = true;
        }
        Some(thread) if thread.name == name => {}
        _ => {
            threads.insert(id, declared.add_thread(id, name));
        }
    }
}

fn undeclared_thread<'a>(id: u32) -> TracedThread<'a> {
    TracedThread { id, name: "".into(), declared: false, reused_id: false, records: 0 }
}

/// Counts the records, whose packets begin at offset `from`, and adds the methods that no packet declares.
fn count_records(declared: &mut Declarations<'_>, bytes: &[u8], from: usize, body: &BlockBody) -> Counts {
    let mut counts = Counts {
        declared_methods: declared.methods.len() as u64,
        declared_threads: declared.threads.iter().filter(|t| t.declared).count() as u64,
        undeclared_threads: declared.threads.iter().filter(|t| !t.declared).count() as u64,
        ..Counts::default()
    };
    let mut unknown = HashSet::new();
    let mut nameless = 0;
    let mut late = 0u64;
    let mut cursor = BlockCursor::new(bytes, body, declared.threads.len(), false);
    for (thread, record) in cursor.by_ref() {
        counts.records += 1;
        match record.word & 3 {
            0 => counts.enters += 1,
            1 => counts.exits += 1,
            2 => counts.unrolls += 1,
            _ => counts.bad_actions += 1,
        }
        late += u64::from(record.cpu.max(record.wall) > MAX_TICKS);
        declared.threads[thread as usize].records += 1;
        let method = record.word & !3;
        nameless += u64::from(method == 0 && body.encoding.has_nameless_exits());
        if declared.ids.get(method) == NONE && unknown.insert(method) {
            declared.ids.insert(method, declared.methods.len() as u32);
            declared.methods.push(unknown_method(method));
        }
    }
    if cursor.left_over > 0 {
        declared
            .damage(from, format!("{} bytes at the ends of blocks are no whole records", cursor.left_over));
    }
    if late > 0 {
        let what = format!("{late} records have times beyond {MAX_TICKS} ticks: they are taken at that time");
        declared.damage(from, what);
    }
    if nameless > 0 {
        unknown.remove(&0);
    }
    let what = "exits are of calls that had begun before their thread's records did; the file does not name \
                their methods";
    declared.irregular(nameless, what);
    counts.undeclared_methods = unknown.len() as u64;
    counts
}
