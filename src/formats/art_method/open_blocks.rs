//! Opens versions 4 and 5: reads threads, methods and blocks of records from the packets.

use std::collections::{HashMap, HashSet};

use super::body::{BlockBody, BlockCursor, RecordBlock};
use super::declarations::{Declarations, unknown_method};
use super::ids::NONE;
use super::{Counts, TracedThread};
use crate::art::{
    BlockEncoding, BlockPacket, ClockMode, DataHeader, KeySection, count_aosp, is_cut, next_block_packet,
    parse_method_line,
};

/// The result of [`open`].
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

/// A block for which [`continued`] has not yet decided whether it continues the thread's previous block.
struct FoundBlock {
    block: RecordBlock,
    stated_records: u32,
}

/// Reads all packets from offset `from` on.
pub fn open<'a>(
    declared: &mut Declarations<'a>,
    bytes: &'a [u8],
    from: usize,
    header: &DataHeader,
) -> OpenedBlocks {
    let mut found = Vec::new();
    let summary = packets(declared, bytes, from, &mut found);
    if !summary && header.streaming {
        declared.damage(
            bytes.len(),
            "no summary at the end: the app was killed or the file was cut while tracing; the times are taken for ns \
             (files from before February 2025 have µs)",
        );
    }
    let dual = header.version == 5;
    let clock = match declared.key("clock").and_then(ClockMode::from_key) {
        _ if dual => ClockMode::Dual,
        Some(clock) if clock != ClockMode::Dual => clock,
        _ => ClockMode::Wall,
    };
    let (tick_ns, encoding) = if header.tsc_frequency != 0 {
        (1, BlockEncoding::Tsc { cpu: dual, frequency: header.tsc_frequency, start: header.start_tsc })
    } else {
        let micros =
            declared.key("elapsed-time-usec").is_some() && declared.key("elapsed-time-nsec").is_none();
        (if micros { 1_000 } else { 1 }, BlockEncoding::Aosp { wall: clock.has_wall(), cpu: clock.has_cpu() })
    };
    let blocks = continued(bytes, found, encoding);
    let body = BlockBody { encoding, blocks };
    let counts = scan(declared, bytes, from, &body);
    OpenedBlocks { body, clock, tick_ns, counts }
}

/// Reads all packets and appends the blocks of records to `found`. Returns whether a summary was found.
fn packets<'a>(
    declared: &mut Declarations<'a>,
    bytes: &'a [u8],
    from: usize,
    found: &mut Vec<FoundBlock>,
) -> bool {
    let mut at = from;
    let mut summary = false;
    let mut threads: HashMap<u32, u32> = HashMap::new();
    for (n, thread) in declared.threads.iter().enumerate() {
        threads.entry(thread.id).or_insert(n as u32);
    }
    while let Some(next) = bytes.get(at..).and_then(next_block_packet) {
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
            BlockPacket::Entries(id, stated_records, entries) => {
                if is_cut(&bytes[at..], &packet) {
                    declared.damage(at, "the file ends in the middle of this block of records");
                }
                let end = at + len;
                let thread = *threads.entry(id).or_insert_with(|| {
                    let index = declared.threads.len() as u32;
                    declared.threads.push(undeclared_thread(id));
                    declared.latest.insert(id, index);
                    index
                });
                let range = end - entries.len()..end;
                found.push(FoundBlock {
                    block: RecordBlock { range, thread, continues: false },
                    stated_records,
                });
            }
            BlockPacket::Summary(text) => {
                summary = true;
                match KeySection::parse(text) {
                    Some(text) => declared.take_text(text, at + len, false),
                    None => declared.damage(at, "the summary does not begin with *version"),
                }
            }
        }
        at += len;
    }
    summary
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

/// Finds the blocks that continue a previous block. When one flush of the runtime fills several blocks, the
/// stated number of records counts on from block to block, and so do the differences. So a block continues
/// the thread's previous blocks if it states more records than it holds, and the surplus is what those blocks
/// hold.
fn continued(bytes: &[u8], found: Vec<FoundBlock>, encoding: BlockEncoding) -> Vec<RecordBlock> {
    let mut before: HashMap<u32, u64> = HashMap::new();
    let mut blocks = Vec::with_capacity(found.len());
    for FoundBlock { mut block, stated_records } in found {
        if let BlockEncoding::Aosp { wall, cpu } = encoding {
            let held = count_aosp(bytes.get(block.range.clone()).unwrap_or_default(), wall, cpu);
            let sum = before.entry(block.thread).or_default();
            // The field has 24 bits, but the runtime fills only the low 16.
            let equal = |n: u64| n & 0xffff == u64::from(stated_records) & 0xffff;
            block.continues = *sum > 0 && !equal(held) && equal(*sum + held);
            *sum = if block.continues { *sum + held } else { held };
        }
        blocks.push(block);
    }
    blocks
}

/// Counts the records, and adds the methods that no packet declares.
fn scan(declared: &mut Declarations<'_>, bytes: &[u8], from: usize, body: &BlockBody) -> Counts {
    let mut counts = Counts {
        declared_methods: declared.methods.len() as u64,
        declared_threads: declared.threads.iter().filter(|t| t.declared).count() as u64,
        undeclared_threads: declared.threads.iter().filter(|t| !t.declared).count() as u64,
        ..Counts::default()
    };
    let mut unknown = HashSet::new();
    let mut cursor = BlockCursor::new(bytes, body, declared.threads.len());
    for (thread, record) in cursor.by_ref() {
        counts.records += 1;
        match record.word & 3 {
            0 => counts.enters += 1,
            1 => counts.exits += 1,
            2 => counts.unrolls += 1,
            _ => counts.bad_actions += 1,
        }
        declared.threads[thread as usize].records += 1;
        if declared.ids.get(record.word) == NONE && unknown.insert(record.word & !3) {
            declared.ids.insert(record.word & !3, declared.methods.len() as u32);
            declared.methods.push(unknown_method(record.word & !3));
        }
    }
    if cursor.left_over > 0 {
        declared
            .damage(from, format!("{} bytes at the ends of blocks are no whole records", cursor.left_over));
    }
    counts.undeclared_methods = unknown.len() as u64;
    counts
}
