//! Opening versions 4 and 5: packets into threads, methods and blocks of records.

use std::collections::{HashMap, HashSet};

use super::body::{Block, BlockBody, BlockCursor};
use super::ids::NONE;
use super::open::{Opening, unknown_method};
use super::{Counts, TracedThread};
use crate::art::{
    BlockPacket, ClockMode, DataHeader, Encoding, KeySection, count_aosp, is_cut, next_block_packet,
    parse_method_line,
};

/// What the packets came to.
pub struct Blocks {
    /// The records.
    pub body: BlockBody,
    /// The clocks they carry.
    pub clock: ClockMode,
    /// ns per unit of their times and of the header's start.
    pub tick_ns: u64,
    /// What a pass over them counted.
    pub counts: Counts,
}

/// A block before it is known whether it continues the one before.
struct Found {
    block: Block,
    said: u32,
}

/// Reads all packets from `from` on.
pub fn open<'a>(opening: &mut Opening<'a>, bytes: &'a [u8], from: usize, header: &DataHeader) -> Blocks {
    let mut found = Vec::new();
    let summary = packets(opening, bytes, from, &mut found);
    if !summary && header.streaming {
        opening.damage(
            bytes.len(),
            "no summary at the end: the app was killed or the file was cut while tracing; the times are taken for ns \
             (files from before February 2025 have µs)",
        );
    }
    let dual = header.version == 5;
    let clock = match opening.key("clock").and_then(ClockMode::from_key) {
        _ if dual => ClockMode::Dual,
        Some(clock) if clock != ClockMode::Dual => clock,
        _ => ClockMode::Wall,
    };
    let (tick_ns, encoding) = if header.tsc_frequency != 0 {
        (1, Encoding::Tsc { cpu: dual, frequency: header.tsc_frequency, start: header.start_tsc })
    } else {
        let micros = opening.key("elapsed-time-usec").is_some() && opening.key("elapsed-time-nsec").is_none();
        (if micros { 1_000 } else { 1 }, Encoding::Aosp { wall: clock.has_wall(), cpu: clock.has_cpu() })
    };
    let blocks = continued(bytes, found, encoding);
    let body = BlockBody { encoding, blocks };
    let counts = scan(opening, bytes, from, &body);
    Blocks { body, clock, tick_ns, counts }
}

/// Whether a summary was found.
fn packets<'a>(opening: &mut Opening<'a>, bytes: &'a [u8], from: usize, found: &mut Vec<Found>) -> bool {
    let mut at = from;
    let mut summary = false;
    let mut threads: HashMap<u32, u32> = HashMap::new();
    for (n, thread) in opening.threads.iter().enumerate() {
        threads.entry(thread.id).or_insert(n as u32);
    }
    while let Some(next) = bytes.get(at..).and_then(next_block_packet) {
        let (packet, len) = match next {
            Ok(next) => next,
            Err(error) => {
                let left = bytes.len() - at;
                opening.damage(at, format!("{error}: the last {left} bytes are not read"));
                break;
            }
        };
        match packet {
            BlockPacket::Thread(id, name) => {
                let name = String::from_utf8_lossy(name);
                match threads.get(&id).and_then(|n| opening.threads.get_mut(*n as usize)) {
                    Some(thread) if !thread.declared => (thread.name, thread.declared) = (name, true),
                    Some(thread) if thread.name == name => {}
                    _ => {
                        threads.insert(id, opening.add_thread(id, name));
                    }
                }
            }
            BlockPacket::Method(id, line) => {
                // The line is as in the text section, without the id.
                let line = [b"0\t", line].concat();
                match parse_method_line(&line) {
                    Some(method) => opening.add_method(method.with_id(id).into_owned()),
                    None => opening.damage(at, "a method's declaration has no class and name"),
                }
            }
            BlockPacket::Entries(id, said, entries) => {
                if is_cut(&bytes[at..], &packet) {
                    opening.damage(at, "the file ends in the middle of this block of records");
                }
                let end = at + len;
                let thread = *threads.entry(id).or_insert_with(|| {
                    let index = opening.threads.len() as u32;
                    opening.threads.push(undeclared_thread(id));
                    opening.latest.insert(id, index);
                    index
                });
                let range = end - entries.len()..end;
                found.push(Found { block: Block { range, thread, continues: false }, said });
            }
            BlockPacket::Summary(text) => {
                summary = true;
                match KeySection::parse(text) {
                    Some(text) => opening.take_text(text, at + len, false),
                    None => opening.damage(at, "the summary does not begin with *version"),
                }
            }
        }
        at += len;
    }
    summary
}

fn undeclared_thread<'a>(id: u32) -> TracedThread<'a> {
    TracedThread { id, name: "".into(), declared: false, reused_id: false, records: 0 }
}

/// A flush that fills several blocks counts up in their headers, and its differences run on: a block whose header
/// says more than its bytes hold, by just what the thread's blocks before it held, continues them.
fn continued(bytes: &[u8], found: Vec<Found>, encoding: Encoding) -> Vec<Block> {
    let mut before: HashMap<u32, u64> = HashMap::new();
    let mut blocks = Vec::with_capacity(found.len());
    for Found { mut block, said } in found {
        if let Encoding::Aosp { wall, cpu } = encoding {
            let held = count_aosp(bytes.get(block.range.clone()).unwrap_or_default(), wall, cpu);
            let sum = before.entry(block.thread).or_default();
            // The runtime writes 24 bits of which it fills 16.
            let equal = |n: u64| n & 0xffff == u64::from(said) & 0xffff;
            block.continues = *sum > 0 && !equal(held) && equal(*sum + held);
            *sum = if block.continues { *sum + held } else { held };
        }
        blocks.push(block);
    }
    blocks
}

/// Counts, and gives methods that no packet declares their places.
fn scan(opening: &mut Opening<'_>, bytes: &[u8], from: usize, body: &BlockBody) -> Counts {
    let mut counts = Counts {
        declared_methods: opening.methods.len() as u64,
        declared_threads: opening.threads.iter().filter(|t| t.declared).count() as u64,
        undeclared_threads: opening.threads.iter().filter(|t| !t.declared).count() as u64,
        ..Counts::default()
    };
    let mut unknown = HashSet::new();
    let mut cursor = BlockCursor::new(bytes, body, opening.threads.len());
    for (thread, record) in cursor.by_ref() {
        counts.records += 1;
        match record.word & 3 {
            0 => counts.enters += 1,
            1 => counts.exits += 1,
            2 => counts.unrolls += 1,
            _ => counts.bad_actions += 1,
        }
        opening.threads[thread as usize].records += 1;
        if opening.ids.get(record.word) == NONE && unknown.insert(record.word & !3) {
            opening.ids.insert(record.word & !3, opening.methods.len() as u32);
            opening.methods.push(unknown_method(record.word & !3));
        }
    }
    if cursor.left_over > 0 {
        opening
            .damage(from, format!("{} bytes at the ends of blocks are no whole records", cursor.left_over));
    }
    counts.undeclared_methods = unknown.len() as u64;
    counts
}
