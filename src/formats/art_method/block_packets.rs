//! Reads packets: takes their declarations, and finds the blocks of records. Versions 4 and 5 and the
//! always-on tracer have this in common.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::body::{BlockBody, BlockCursor};
use super::declarations::{Declarations, unknown_method};
use super::ids::NONE;
use super::{Counts, TracedThread};
use crate::art::{BlockPacket, EntriesPacket, KeySection, PacketForm, next_block_packet, parse_method_line};

/// A block of records.
pub(super) struct FoundBlock {
    /// The bytes in the file.
    pub range: Range<usize>,
    /// Dense index of the thread.
    pub thread: u32,
    /// See [`EntriesPacket::stated_records`].
    pub stated_records: u32,
}

/// What packets hold besides declarations.
#[derive(Default)]
pub(super) struct Packets {
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
pub(super) fn read<'a>(
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
        Some(thread) if !thread.declared => (thread.name, thread.declared) = (name, true),
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
pub(super) fn count_records(
    declared: &mut Declarations<'_>,
    bytes: &[u8],
    from: usize,
    body: &BlockBody,
) -> Counts {
    let mut counts = Counts {
        declared_methods: declared.methods.len() as u64,
        declared_threads: declared.threads.iter().filter(|t| t.declared).count() as u64,
        undeclared_threads: declared.threads.iter().filter(|t| !t.declared).count() as u64,
        ..Counts::default()
    };
    let mut unknown = HashSet::new();
    let mut nameless = 0;
    let mut cursor = BlockCursor::new(bytes, body, declared.threads.len(), false);
    for (thread, record) in cursor.by_ref() {
        counts.records += 1;
        match record.word & 3 {
            0 => counts.enters += 1,
            1 => counts.exits += 1,
            2 => counts.unrolls += 1,
            _ => counts.bad_actions += 1,
        }
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
    if nameless > 0 {
        unknown.remove(&0);
    }
    let what = "exits are of calls that had begun before their thread's records did; the file does not name \
                their methods";
    declared.irregular(nameless, what);
    counts.undeclared_methods = unknown.len() as u64;
    counts
}
