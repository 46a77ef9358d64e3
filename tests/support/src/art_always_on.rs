//! Writes the traces of [`crate::art_writer`] as ART's always-on tracer does (AOSP art,
//! runtime/trace_profile.cc): written from the description of the bytes, and sharing no code with the reader.

use crate::art_blocks::sleb;
use crate::art_writer::{Action, ArtTrace, Record};

/// The form of the output that the tracer writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Long-running methods, with the counter's ticks, of which there are so many in a second.
    Ticks { frequency: u64 },
    /// Long-running methods, with ns of the counter.
    Nanos,
    /// The same, and a packet that relates the counter to CLOCK_MONOTONIC.
    Calibrated,
    /// As [`Stream::Calibrated`], in the order of an ANR's dump.
    Anr,
    /// As [`Stream::Anr`], behind the header of a Perfetto packet.
    Perfetto,
    /// All methods, without times.
    AllMethods,
    /// The first version of [`Stream::AllMethods`], with text at its end.
    FirstVersion,
}

/// The counter, converted to ns, minus CLOCK_MONOTONIC, where a packet relates them. Elsewhere the trace's
/// start is a reading of the counter.
pub const COUNTER_AHEAD_NS: u64 = 7_000_000_123;

fn pointer(method: u32) -> u64 {
    0x70_0000_1000 + u64::from(method) * 48
}

/// The bytes that the tracer writes.
pub fn to_bytes(trace: &ArtTrace, stream: Stream) -> Vec<u8> {
    let mut out = Vec::new();
    let is_timed = !matches!(stream, Stream::AllMethods | Stream::FirstVersion);
    if stream == Stream::FirstVersion {
        out.extend(b"TMOL\x01\0");
    }
    if stream == Stream::Perfetto {
        out.extend(b"SLOW\xf6\0");
        out.extend((trace.start_us * 1_000).to_le_bytes());
        out.resize(32, 0);
    }
    if matches!(stream, Stream::Anr | Stream::Perfetto) {
        calibration(&mut out, trace);
    }
    // What a thread still has in its buffer of 2,048 words is written first; what it wrote out before comes
    // behind.
    let mut older = Vec::new();
    for (thread, _) in &trace.threads {
        let records: Vec<Record> = trace.records.iter().filter(|r| r.thread == *thread).copied().collect();
        if !is_timed {
            all_methods(&mut out, *thread, &records, stream);
            continue;
        }
        let size = (records.len() / 2).clamp(1, 900);
        let (before, last) = records.split_at(records.len().saturating_sub(size));
        long_running(&mut out, *thread, last, trace, stream);
        before.chunks(size).for_each(|part| long_running(&mut older, *thread, part, trace, stream));
    }
    if matches!(stream, Stream::Calibrated | Stream::AllMethods) {
        calibration(&mut out, trace);
    }
    out.extend(older);
    if stream == Stream::FirstVersion {
        out.extend(b"*threads\n");
        trace.threads.iter().for_each(|(id, name)| out.extend(format!("{id}\t{name}\n").bytes()));
        out.extend(b"*methods\n");
        for (n, line) in lines(trace) {
            out.extend(format!("{}\t{line}", pointer(n)).bytes());
        }
        out.extend(b"*end\n");
        return out;
    }
    for (id, name) in trace.threads.iter().filter(|_| !is_timed) {
        out.push(0);
        out.extend(u32::from(*id).to_le_bytes());
        out.extend((name.len() as u16).to_le_bytes());
        out.extend(name.as_bytes());
    }
    for (n, line) in lines(trace) {
        out.push(1);
        out.extend(pointer(n).to_le_bytes());
        out.extend((line.len() as u16).to_le_bytes());
        out.extend(line.as_bytes());
    }
    out
}

fn lines(trace: &ArtTrace) -> impl Iterator<Item = (u32, String)> + '_ {
    let line =
        |m: &crate::art_writer::Method| format!("{}\t{}\t{}\t{}\n", m.class, m.name, m.signature, m.file);
    trace.methods.iter().enumerate().map(move |(n, method)| (n as u32, line(method)))
}

/// ns of the counter at a time of the trace.
fn counter_ns(trace: &ArtTrace, us: u64, stream: Stream) -> u64 {
    let is_alone = matches!(stream, Stream::Ticks { .. } | Stream::Nanos);
    (trace.start_us + us) * 1_000 + if is_alone { 0 } else { COUNTER_AHEAD_NS }
}

fn calibration(out: &mut Vec<u8>, trace: &ArtTrace) {
    out.push(3);
    out.extend(counter_ns(trace, trace.elapsed_us, Stream::Calibrated).to_le_bytes());
    out.extend(((trace.start_us + trace.elapsed_us) * 1_000).to_le_bytes());
}

fn long_running(out: &mut Vec<u8>, thread: u16, records: &[Record], trace: &ArtTrace, stream: Stream) {
    let mut time = 0u64;
    let mut method = 0u64;
    let mut bytes = Vec::new();
    for r in records {
        let is_exit = u64::from(r.action != Action::Enter);
        let ns = counter_ns(trace, u64::from(r.wall_us), stream);
        let to = match stream {
            Stream::Ticks { frequency } => {
                (u128::from(ns) * u128::from(frequency) / 1_000_000_000) as u64 & !1 | is_exit
            }
            _ => ns << 1 | is_exit,
        };
        sleb(&mut bytes, to.wrapping_sub(time) as i64);
        time = to;
        if is_exit == 0 {
            sleb(&mut bytes, pointer(r.method).wrapping_sub(method) as i64);
            method = pointer(r.method);
        }
    }
    head(out, thread, records.len());
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(bytes);
}

fn all_methods(out: &mut Vec<u8>, thread: u16, records: &[Record], stream: Stream) {
    head(out, thread, records.len());
    if stream == Stream::AllMethods {
        // Not initialised.
        out.extend([0xde, 0xad, 0xbe, 0xef]);
    }
    let mut word = 0u64;
    let mut after_exit = false;
    for r in records {
        let is_exit = r.action != Action::Enter;
        let difference =
            if is_exit { i64::from(!after_exit) } else { pointer(r.method).wrapping_sub(word) as i64 };
        sleb(out, difference);
        word = if is_exit { 1 } else { pointer(r.method) };
        after_exit = is_exit;
    }
}

fn head(out: &mut Vec<u8>, thread: u16, records: usize) {
    out.push(2);
    out.extend(u32::from(thread).to_le_bytes());
    out.extend(&(records as u32).to_le_bytes()[..3]);
}

/// The line of an ANR's dump that holds a stream.
pub fn anr_line(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut line = "LongRunningMethods: ".to_owned();
    for three in bytes.chunks(3) {
        let bits = (0..3).fold(0u32, |bits, n| bits << 8 | u32::from(three.get(n).copied().unwrap_or(0)));
        for n in 0..4 {
            let sign = ALPHABET[(bits >> (18 - 6 * n) & 63) as usize] as char;
            line.push(if n > three.len() { '=' } else { sign });
        }
    }
    line
}

/// The dump of an app that does not respond, with a stream.
pub fn anr_dump(pid: u32, bytes: &[u8]) -> String {
    format!(
        "Subject: Input dispatching timed out\n\n----- pid {pid} at 2026-11-22 15:00:00.000000000+0000 -----\n\
         Cmd line: com.example.app\nBuild fingerprint: 'generic'\n\nsuspend all histogram:\tSum: 1us\n\
         DALVIK THREADS (2):\n\"main\" prio=5 tid=1 Native\n  at a.App.run(A.java:1)\n\n{}\n----- end {pid} -----\n",
        anr_line(bytes)
    )
}

/// A `TracePacket` that holds a stream, in a field of this number.
pub fn perfetto_packet(field: u32, pid: u32, bytes: &[u8]) -> Vec<u8> {
    let varint = |out: &mut Vec<u8>, value: u64| crate::art_blocks::uleb(out, value);
    let delimited = |out: &mut Vec<u8>, number: u32, bytes: &[u8]| {
        varint(out, u64::from(number) << 3 | 2);
        varint(out, bytes.len() as u64);
        out.extend(bytes);
    };
    let mut message = Vec::new();
    delimited(&mut message, 1, bytes);
    delimited(&mut message, 2, b"com.example.app");
    let mut packet = Vec::new();
    varint(&mut packet, 79 << 3);
    varint(&mut packet, u64::from(pid));
    delimited(&mut packet, field, &message);
    let mut trace = Vec::new();
    delimited(&mut trace, 1, &packet);
    trace
}
