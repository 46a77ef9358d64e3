//! Opens versions 1 to 3: records of fixed size. Streaming files have declarations between the records.

use std::borrow::Cow;

use super::body::{FixedBody, Segment};
use super::declarations::{Declarations, unknown_method};
use super::prescan::{DeclaredIds, Prescan, prescan};
use super::{Counts, TracedThread, thread_id_reuse};
use crate::art::{ClockMode, DataHeader, KeySection, Packet, RecordLayout, next_packet, parse_method_line};

/// Reads the records of a version 1 to 3 file, whose binary part begins at offset `data_at`.
pub(super) fn open<'a>(
    declared: &mut Declarations<'a>,
    bytes: &'a [u8],
    data_at: usize,
    header: &DataHeader,
) -> (FixedBody, ClockMode, Counts) {
    let from = data_at + header.data_offset;
    let clock_key = declared.key("clock").and_then(ClockMode::from_key);
    let layout = RecordLayout::choose(header.version, header.record_size, clock_key);
    let mut body = FixedBody { layout: layout.unwrap_or(RecordLayout::Dual), segments: Vec::new() };
    match layout {
        None => declared
            .damage(data_at + 16, format!("no runtime writes records of {} bytes", header.record_size)),
        Some(_) if header.streaming => read_stream(declared, bytes, from, &mut body),
        Some(_) => find_records(declared, bytes, from, &mut body),
    }
    // A streaming file names its clock in the summary at the end.
    let clock_key = declared.key("clock").and_then(ClockMode::from_key);
    let clock = choose_clock(declared, clock_key, body.layout);
    let counts = count_records(declared, bytes, &mut body, clock);
    (body, clock, counts)
}

/// Chooses the clocks of the records. Where the `clock=` key contradicts the size of a record, the size
/// decides.
fn choose_clock(declared: &mut Declarations<'_>, key: Option<ClockMode>, layout: RecordLayout) -> ClockMode {
    let two = layout == RecordLayout::Dual;
    match key {
        Some(clock) if (clock == ClockMode::Dual) == two => clock,
        Some(clock) => {
            let now = if two { ClockMode::Dual } else { ClockMode::ThreadCpu };
            let (said, taken) = (clock.name(), now.name());
            declared
                .report
                .notes
                .push(format!("clock={said}, but the record size says {taken}: {taken} taken"));
            now
        }
        None if two => ClockMode::Dual,
        None => {
            declared.report.notes.push("no clock= key: the times are taken for thread-CPU time".into());
            ClockMode::ThreadCpu
        }
    }
}

/// Finds the records of a file that is not streaming: one segment up to the end of the file.
fn find_records(declared: &mut Declarations<'_>, bytes: &[u8], from: usize, body: &mut FixedBody) {
    let size = body.layout.size();
    let left = bytes.len().saturating_sub(from);
    let end = from + left / size * size;
    if from < end {
        body.segments.push(Segment { range: from..end, binds: Vec::new() });
    }
    if !left.is_multiple_of(size) {
        let rest = left % size;
        declared.damage(end, format!("the last record is cut: {rest} of its {size} bytes are there"));
    }
}

/// Reads a streaming file: takes its declarations, and finds the segments of records between them.
fn read_stream<'a>(declared: &mut Declarations<'a>, bytes: &'a [u8], from: usize, body: &mut FixedBody) {
    let mut at = from;
    let mut summary = None;
    let mut binds = Vec::new();
    while let Some(next) = next_packet(&bytes[at..], body.layout) {
        let Some((packet, len)) = declared.readable(next, at, bytes.len() - at) else { break };
        match packet {
            Packet::Records(_) => {
                body.segments.push(Segment { range: at..at + len, binds: std::mem::take(&mut binds) });
            }
            Packet::Method(line) => match parse_method_line(line) {
                Some(method) => declared.add_method(method),
                None => declared.damage(at, "a method's declaration has no id, class and name"),
            },
            Packet::Thread(id, name) => {
                let name = String::from_utf8_lossy(name);
                let known = declared.latest.get(&u32::from(id)).copied();
                if known.is_none_or(|n| declared.threads[n as usize].name != name) {
                    let index = declared.add_thread(u32::from(id), name);
                    if known.is_some() {
                        binds.push((id, index));
                    }
                }
            }
            Packet::Summary(text) => {
                let text_at = at + len - text.len();
                summary = Some((text, text_at));
                at += len;
                break;
            }
        }
        at += len;
    }
    match summary.map(|(text, text_at)| (KeySection::parse(text), text_at)) {
        Some((Some(text), text_at)) => {
            declared.take_text(text, text_at, false);
            if at < bytes.len() {
                declared
                    .damage(at, format!("{} bytes follow the summary and are not read", bytes.len() - at));
            }
        }
        Some((None, text_at)) => declared.damage(text_at, "the summary does not begin with *version"),
        None => declared.damage(
            at,
            "no summary at the end: the app was killed or the file was cut while tracing, so later calls may \
             be missing, and clock and pid are not stated",
        ),
    }
}

/// Passes over all records: counts them, gives undeclared ids their indexes, and separates threads that
/// shared an id.
fn count_records(
    declared: &mut Declarations<'_>,
    bytes: &[u8],
    body: &mut FixedBody,
    clock: ClockMode,
) -> Counts {
    let known = DeclaredIds { methods: &declared.ids, count: declared.threads.len(), table: &declared.table };
    let mut found = prescan(bytes, body, clock, &known);
    let mut counts = Counts {
        records: body.records(),
        enters: found.actions[0],
        exits: found.actions[1],
        unrolls: found.actions[2],
        bad_actions: found.actions[3],
        declared_methods: declared.methods.len() as u64,
        declared_threads: declared.threads.len() as u64,
        undeclared_methods: found.methods.len() as u64,
        undeclared_threads: found.threads.len() as u64,
        ..Counts::default()
    };
    add_undeclared(declared, &found);
    if declared.threads.iter().any(|t| t.reused_id) || found.by_thread.iter().any(|t| !t.restarts.is_empty())
    {
        let separated = thread_id_reuse::separate(
            bytes,
            body,
            &found,
            &mut declared.threads,
            &declared.methods,
            &declared.ids,
        );
        body.bind_all(separated.binds);
        declared.irregular(
            separated.inseparable_ids,
            "thread ids are listed more than once and nothing tells their threads apart: taken for the first",
        );
        let known =
            DeclaredIds { methods: &declared.ids, count: declared.threads.len(), table: &declared.table };
        found = prescan(bytes, body, clock, &known);
    }
    for (thread, scan) in declared.threads.iter_mut().zip(&found.by_thread) {
        thread.records = scan.records;
    }
    counts.reused_threads = declared.threads.iter().filter(|t| t.reused_id && t.records > 0).count() as u64;
    counts
}

/// Adds the methods and threads of records that the file does not declare.
fn add_undeclared(declared: &mut Declarations<'_>, found: &Prescan) {
    for id in &found.methods {
        declared.ids.insert(u64::from(*id), declared.methods.len() as u32);
        declared.methods.push(unknown_method(u64::from(*id)));
    }
    for id in &found.threads {
        let index = declared.threads.len() as u32;
        declared.table.bind(*id, index);
        declared.threads.push(TracedThread {
            id: u32::from(*id),
            name: Cow::Borrowed(""),
            declared: false,
            reused_id: false,
            records: 0,
        });
    }
}
