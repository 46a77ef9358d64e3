//! Writes the traces of [`crate::art_writer`] as versions 4 (one clock) and 5 (two), as each of the three
//! writers of AOSP's art, runtime/trace.cc does: written from the description of the bytes, and sharing no
//! code with the reader.

use crate::art_writer::{Action, ArtTrace, Record};

/// How to write a trace.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    /// Written while the app runs.
    pub streaming: bool,
    /// Whether records carry wall time.
    pub wall: bool,
    /// Whether they carry thread-CPU time; both together are version 5.
    pub cpu: bool,
    /// Which of the writers.
    pub writer: Writer,
}

/// The writers, by their age.
#[derive(Clone, Copy, Debug)]
pub enum Writer {
    /// Of 2024: µs, method numbers, the first record in the block's header. So many records fill a block.
    /// Only a streaming file declares threads and methods.
    First { block: usize },
    /// Until 2025: ns or (older) µs with 32 bits; a flush is split after `split` records, differences running
    /// on, and the number of records has 16 bits.
    Second { nanos: bool, split: usize },
    /// Android 17: counter ticks, of which the header states `frequency` in a second; `real` is how many
    /// there are.
    Third { frequency: u64, real: u64 },
}

/// The counter's reading at the start.
const START_TSC: u64 = 24_576_000_000;

/// ArtMethod*.
fn pointer(method: u32) -> u64 {
    0x7000_1000_0000 + u64::from(method) * 40
}

/// The file as the runtime writes it.
pub fn to_bytes(trace: &ArtTrace, blocks: Blocks) -> Vec<u8> {
    with_keys(trace, blocks, "")
}

/// The same with further lines in the summary.
pub fn with_keys(trace: &ArtTrace, blocks: Blocks, keys: &str) -> Vec<u8> {
    let version = if blocks.wall && blocks.cpu { 5u16 } else { 4 };
    let is_third = matches!(blocks.writer, Writer::Third { .. });
    let in_micros = matches!(blocks.writer, Writer::First { .. } | Writer::Second { nanos: false, .. });
    let summary = summary(trace, blocks, version, in_micros, keys);
    let mut out = Vec::new();
    let is_first_file = matches!(blocks.writer, Writer::First { .. }) && !blocks.streaming;
    if is_first_file {
        out.extend(summary.as_bytes());
    }
    let header = out.len();
    out.extend(b"SLOW");
    out.extend((if blocks.streaming && !is_third { 0xf0 | version } else { version }).to_le_bytes());
    out.extend((trace.start_us * if in_micros { 1 } else { 1_000 }).to_le_bytes());
    if let Writer::Third { frequency, .. } = blocks.writer {
        out.extend(START_TSC.to_le_bytes());
        out.extend(frequency.to_le_bytes());
    }
    out.resize(header + 32, 0);
    if is_first_file {
        entries(&mut out, trace, blocks);
        return out;
    }
    for (id, name) in &trace.threads {
        out.push(0);
        out.extend(u32::from(*id).to_le_bytes());
        text(&mut out, name);
    }
    for (n, m) in trace.methods.iter().enumerate() {
        out.push(1);
        match blocks.writer {
            Writer::First { .. } => out.extend((n as u32).to_le_bytes()),
            _ => out.extend(pointer(n as u32).to_le_bytes()),
        }
        text(&mut out, &format!("{}\t{}\t{}\t{}\n", m.class, m.name, m.signature, m.file));
    }
    entries(&mut out, trace, blocks);
    out.push(3);
    text(&mut out, &summary);
    out
}

fn summary(trace: &ArtTrace, blocks: Blocks, version: u16, in_micros: bool, keys: &str) -> String {
    let elapsed = if in_micros {
        format!("elapsed-time-usec={}", trace.elapsed_us)
    } else {
        format!("elapsed-time-nsec={}", trace.elapsed_us * 1_000)
    };
    let clock = match (blocks.wall, blocks.cpu) {
        (true, true) => "dual",
        (true, false) => "wall",
        _ => "thread-cpu",
    };
    let mut all = format!(
        "*version\n{version}\ndata-file-overflow=false\nclock={clock}\n{elapsed}\nclock-call-overhead-nsec=99\n\
         vm=art\npid={}\n",
        trace.pid
    );
    if let Writer::Third { real, .. } = blocks.writer {
        let end_time = (trace.start_us + trace.elapsed_us) * 1_000;
        let end_tsc = START_TSC + trace.elapsed_us * real / 1_000_000;
        let streaming = blocks.streaming;
        let precise = !keys.contains("is_precise_trace");
        all += &format!("is_streaming={streaming}\nend_time={end_time}\nend_tsc={end_tsc}\n");
        all += if precise { "is_precise_trace=true\n" } else { "" };
    }
    all + keys + "*end\n"
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u16).to_le_bytes());
    out.extend(text.as_bytes());
}

fn entries(out: &mut Vec<u8>, trace: &ArtTrace, blocks: Blocks) {
    // Threads of records that no list has come last.
    let mut threads: Vec<u16> = trace.threads.iter().map(|(id, _)| *id).collect();
    threads.dedup();
    for record in &trace.records {
        if !threads.contains(&record.thread) {
            threads.push(record.thread);
        }
    }
    for thread in threads {
        let records: Vec<Record> = trace.records.iter().filter(|r| r.thread == thread).copied().collect();
        match blocks.writer {
            Writer::First { block } => records.chunks(block).for_each(|r| first(out, r, blocks)),
            Writer::Second { nanos, split } => second(out, &records, blocks, nanos, split),
            Writer::Third { real, .. } if !records.is_empty() => third(out, &records, blocks, real),
            Writer::Third { .. } => {}
        }
    }
}

fn first(out: &mut Vec<u8>, records: &[Record], blocks: Blocks) {
    let [head, others @ ..] = records else { return };
    let word = |r: &Record| r.method << 2 | r.action as u32;
    out.push(2);
    out.extend(u32::from(head.thread).to_le_bytes());
    out.extend(word(head).to_le_bytes());
    if blocks.cpu {
        out.extend(head.cpu_us.to_le_bytes());
    }
    if blocks.wall {
        out.extend(head.wall_us.to_le_bytes());
    }
    let mut bytes = Vec::new();
    let mut before = head;
    for r in others {
        sleb(&mut bytes, i64::from(word(r).wrapping_sub(word(head)) as i32));
        if blocks.wall {
            uleb(&mut bytes, u64::from(r.wall_us.wrapping_sub(before.wall_us)));
        }
        if blocks.cpu {
            uleb(&mut bytes, u64::from(r.cpu_us.wrapping_sub(before.cpu_us)));
        }
        before = r;
    }
    out.extend((others.len() as u16).to_le_bytes());
    out.extend((bytes.len() as u16).to_le_bytes());
    out.extend(bytes);
}

fn second(out: &mut Vec<u8>, records: &[Record], blocks: Blocks, nanos: bool, split: usize) {
    let mut word = 0i64;
    let mut wall = 0u64;
    let mut cpu = 0u64;
    let mut count = 0u32;
    // Times are kept with 32 bits of µs, or 64 of ns.
    let time = |us: u32| if nanos { u64::from(us) * 1_000 } else { u64::from(us) };
    let step = |to: u64, from: u64| {
        if nanos { to.wrapping_sub(from) } else { u64::from((to as u32).wrapping_sub(from as u32)) }
    };
    for part in records.chunks(split.max(1)) {
        let mut bytes = Vec::new();
        for r in part {
            let to_word = (pointer(r.method) | r.action as u64) as i64;
            sleb(&mut bytes, to_word - word);
            if blocks.wall {
                uleb(&mut bytes, step(time(r.wall_us), wall));
            }
            if blocks.cpu {
                uleb(&mut bytes, step(time(r.cpu_us), cpu));
            }
            word = to_word;
            wall = time(r.wall_us);
            cpu = time(r.cpu_us);
        }
        // The header's count is of the whole flush so far, and loses what 16 bits do not hold.
        count += part.len() as u32;
        block(out, part[0].thread, count & 0xffff, &bytes);
    }
}

fn third(out: &mut Vec<u8>, records: &[Record], blocks: Blocks, real: u64) {
    let mut time = 0u64;
    let mut cpu = 0u64;
    let mut method = 0u64;
    let mut bytes = Vec::new();
    for r in records {
        let cpu_ns = u64::from(r.cpu_us) * 1_000;
        let reading = if blocks.wall { START_TSC + u64::from(r.wall_us) * real / 1_000_000 } else { cpu_ns };
        let to = reading << 2 | r.action as u64;
        sleb(&mut bytes, to.wrapping_sub(time) as i64);
        if blocks.wall && blocks.cpu {
            uleb(&mut bytes, cpu_ns.wrapping_sub(cpu));
        }
        if r.action == Action::Enter {
            sleb(&mut bytes, pointer(r.method).wrapping_sub(method) as i64);
            method = pointer(r.method);
        }
        time = to;
        cpu = cpu_ns;
    }
    block(out, records[0].thread, records.len() as u32, &bytes);
}

fn block(out: &mut Vec<u8>, thread: u16, count: u32, bytes: &[u8]) {
    out.push(2);
    out.extend(u32::from(thread).to_le_bytes());
    out.extend(&count.to_le_bytes()[..3]);
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(bytes);
}

/// Unsigned LEB128.
pub fn uleb(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Signed LEB128.
pub fn sleb(out: &mut Vec<u8>, mut value: i64) {
    loop {
        let byte = value as u8 & 0x7f;
        value >>= 7;
        if (value == 0 && byte & 0x40 == 0) || (value == -1 && byte & 0x40 != 0) {
            return out.push(byte);
        }
        out.push(byte | 0x80);
    }
}
