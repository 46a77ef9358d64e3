//! Writes the traces of [`crate::art_writer`] as versions 4 (one clock) and 5 (two), in both encodings that
//! are described for them, streaming or not. Layout: AOSP art, runtime/trace.cc; and Perfetto's importer of
//! March 2026.
#![allow(dead_code)]

use crate::art_writer::{Action, ArtTrace};

/// How to write a trace.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    /// The mark in the version field: 0xF4 or 0xF5 for 4 or 5.
    pub streaming: bool,
    /// Whether records carry wall time.
    pub wall: bool,
    /// Whether they carry thread-CPU time; both together are version 5.
    pub cpu: bool,
    /// What records look like.
    pub encoding: Encoding,
}

/// The two encodings that are described for versions 4 and 5.
#[derive(Clone, Copy, Debug)]
pub enum Encoding {
    /// AOSP's, with times in ns or (older) µs; a thread's flush is split after `split` records, differences
    /// running on.
    Aosp { nanos: bool, split: usize },
    /// By counter ticks: this many a second.
    Tsc { frequency: u64 },
}

/// Method ids are addresses.
fn pointer(method: u32) -> u64 {
    0x7000_1000_0000 + u64::from(method) * 40
}

/// The file as the runtime writes it.
pub fn to_bytes(trace: &ArtTrace, blocks: Blocks) -> Vec<u8> {
    let version = if blocks.wall && blocks.cpu { 5u16 } else { 4 };
    let mut out = b"SLOW".to_vec();
    out.extend((if blocks.streaming { 0xf0 | version } else { version }).to_le_bytes());
    let per_tick = if matches!(blocks.encoding, Encoding::Aosp { nanos: false, .. }) { 1 } else { 1_000 };
    out.extend((trace.start_us * per_tick).to_le_bytes());
    if let Encoding::Tsc { frequency } = blocks.encoding {
        out.extend(5_000_000u64.to_le_bytes());
        out.extend(frequency.to_le_bytes());
    }
    out.resize(32, 0);
    for (id, name) in &trace.threads {
        out.push(0);
        out.extend(u32::from(*id).to_le_bytes());
        text(&mut out, name);
    }
    for (n, m) in trace.methods.iter().enumerate() {
        out.push(1);
        out.extend(pointer(n as u32).to_le_bytes());
        text(&mut out, &format!("{}\t{}\t{}\t{}\n", m.class, m.name, m.signature, m.file));
    }
    for (id, _) in &trace.threads {
        entries(&mut out, trace, *id, blocks);
    }
    out.push(3);
    let elapsed = match per_tick {
        1 => format!("elapsed-time-usec={}", trace.elapsed_us),
        _ => format!("elapsed-time-nsec={}", trace.elapsed_us * 1_000),
    };
    let clock = match (blocks.wall, blocks.cpu) {
        (true, true) => "dual",
        (true, false) => "wall",
        _ => "thread-cpu",
    };
    let summary = format!("*version\n{version}\nclock={clock}\n{elapsed}\nvm=art\npid={}\n*end\n", trace.pid);
    text(&mut out, &summary);
    out
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u16).to_le_bytes());
    out.extend(text.as_bytes());
}

fn entries(out: &mut Vec<u8>, trace: &ArtTrace, thread: u16, blocks: Blocks) {
    let records: Vec<_> = trace.records.iter().filter(|r| r.thread == thread).collect();
    let split = if let Encoding::Aosp { split, .. } = blocks.encoding { split } else { records.len() };
    let (mut word, mut wall, mut cpu, mut method) = (0i64, 0u64, 0u64, 0u64);
    let mut count = 0u32;
    for part in records.chunks(split.max(1)) {
        let mut bytes = Vec::new();
        for r in part {
            let action = r.action as u64;
            match blocks.encoding {
                Encoding::Aosp { nanos, .. } => {
                    let unit = if nanos { 1_000 } else { 1 };
                    let (to_wall, to_cpu) = (u64::from(r.wall_us) * unit, u64::from(r.cpu_us) * unit);
                    let to_word = (pointer(r.method) | action) as i64;
                    sleb(&mut bytes, to_word - word);
                    if blocks.wall {
                        uleb(&mut bytes, to_wall - wall);
                    }
                    if blocks.cpu {
                        uleb(&mut bytes, to_cpu - cpu);
                    }
                    (word, wall, cpu) = (to_word, to_wall, to_cpu);
                }
                Encoding::Tsc { frequency } => {
                    let ticks = 5_000_000 + u64::from(r.wall_us) * frequency / 1_000_000;
                    let (to_word, to_cpu) = ((ticks << 2 | action) as i64, u64::from(r.cpu_us) * 1_000);
                    sleb(&mut bytes, to_word - word);
                    if blocks.cpu {
                        sleb(&mut bytes, to_cpu as i64 - cpu as i64);
                    }
                    if r.action == Action::Enter {
                        sleb(&mut bytes, pointer(r.method) as i64 - method as i64);
                        method = pointer(r.method);
                    }
                    (word, cpu) = (to_word, to_cpu);
                }
            }
        }
        // The header's count is of the whole flush so far, and loses what 16 bits do not hold.
        count += part.len() as u32;
        out.push(2);
        out.extend(u32::from(thread).to_le_bytes());
        out.extend(&(count & 0xffff).to_le_bytes()[..3]);
        out.extend((bytes.len() as u32).to_le_bytes());
        out.extend(bytes);
    }
}

fn uleb(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn sleb(out: &mut Vec<u8>, mut value: i64) {
    loop {
        let byte = value as u8 & 0x7f;
        value >>= 7;
        if (value == 0 && byte & 0x40 == 0) || (value == -1 && byte & 0x40 != 0) {
            return out.push(byte);
        }
        out.push(byte | 0x80);
    }
}
