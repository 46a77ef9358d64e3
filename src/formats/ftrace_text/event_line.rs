//! Parses one line of ftrace text: `COMM-PID (TGID) [CPU] FLAGS TIME: name: fields`. The layouts are those of
//! the kernel's `trace` and `trace_pipe` (`trace_print_context()` in kernel/trace/trace_output.c) and of
//! `trace-cmd report`.

use crate::clock::Timestamp;
use crate::formats::Losses;
use crate::ftrace::trace_flags;
use crate::ids::{Cpu, Pid, Tid};

/// A line with an event, parsed up to the event's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventLine<'a> {
    pub comm: &'a [u8],
    pub tid: Tid,
    pub tgid: Option<Pid>,
    pub cpu: Cpu,
    pub flags: u16,
    pub preempt_count: u8,
    /// Time of the event, in the clock that the trace was recorded with.
    pub ts: Timestamp,
    /// How many digits follow the point of the seconds; 9 for a time without a point, which is in ns.
    pub decimals: u8,
    /// The event's name and fields: everything behind the colon of the time.
    pub rest: &'a [u8],
}

/// The beginning of the line with the account of missing data, in a text that tracebridge has written.
pub(crate) const LOSSES_COMMENT: &str = "# tracebridge losses: ";

/// A line without an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OtherLine {
    /// A CPU lost events here; `count` is their number, if the line states it.
    Lost { cpu: Cpu, count: Option<u64> },
    /// `entries-in-buffer/entries-written: in_file/written`: the events in this file, and those ever written.
    Entries { in_file: u64, written: u64 },
    /// The account of missing data, in a text that tracebridge has written.
    Losses(Losses),
    /// `cpus=n`: the number of CPUs, as trace-cmd writes it.
    Cpus(u32),
    /// A comment or a header from which nothing is taken.
    Comment,
    /// A line that no writer of ftrace text is known to write.
    Unknown,
}

/// Parses a line; `None` where the line holds no event.
#[inline]
pub(super) fn parse(line: &[u8]) -> Option<EventLine<'_>> {
    let mut from = 0;
    // A thread's name may hold brackets too: the CPU is the first number in brackets that follows a thread
    // id.
    for _ in 0..8 {
        let open = from + memchr::memchr(b'[', line.get(from..)?)?;
        from = open + 1;
        let Some((cpu, len)) = decimal(&line[from..]) else { continue };
        if line.get(from + len) != Some(&b']') {
            continue;
        }
        let Some((comm, tid, tgid)) = task(&line[..open]) else { continue };
        let (late_tgid, behind) = late_tgid(&line[from + len + 1..]);
        let Some((flags, ts, decimals, rest)) = time(behind) else { continue };
        let (flags, preempt_count) = flags.map_or((0, 0), trace_flags::decode);
        if is_without_time(tid, ts, rest) {
            return None;
        }
        let cpu = Cpu(u32::try_from(cpu).ok()?);
        let tgid = tgid.or(late_tgid);
        return Some(EventLine { comm, tid, tgid, cpu, flags, preempt_count, ts, decimals, rest });
    }
    None
}

/// The name, the thread id and the process id in `   COMM-PID   ( TGID) `, which precedes the CPU's bracket.
fn task(text: &[u8]) -> Option<(&[u8], Tid, Option<Pid>)> {
    let mut text = text.trim_ascii_end();
    let mut tgid = None;
    if let Some(inner) = text.strip_suffix(b")") {
        let open = memchr::memrchr(b'(', inner)?;
        tgid = process_id(&inner[open + 1..]);
        text = text[..open].trim_ascii_end();
    }
    let digits = text.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let (comm, tid) = text.split_at(text.len() - digits);
    let (tid, len) = decimal(tid)?;
    (len == digits).then_some(())?;
    Some((comm.strip_suffix(b"-")?.trim_ascii_start(), Tid(i32::try_from(tid).ok()?), tgid))
}

/// The process id between brackets. The kernel prints dashes for a process that it does not know.
fn process_id(text: &[u8]) -> Option<Pid> {
    std::str::from_utf8(text.trim_ascii()).ok()?.parse().ok()
}

/// The process id in `( TGID)` behind the CPU, where kernels 4.13 to 4.17 print it, and the text behind it.
#[inline]
fn late_tgid(text: &[u8]) -> (Option<Pid>, &[u8]) {
    let text = text.trim_ascii_start();
    let inner =
        text.strip_prefix(b"(").and_then(|inner| inner.split_at_checked(memchr::memchr(b')', inner)?));
    inner.map_or((None, text), |(tgid, behind)| (process_id(tgid), &behind[1..]))
}

type FlagsAndTime<'a> = (Option<&'a [u8]>, Timestamp, u8, &'a [u8]);

/// The flags that every kernel prints: interrupts, rescheduling, context and preempt count. The time may
/// follow them without a blank, as some tools write it.
pub(super) const FLAGS: usize = 4;
/// The characters that stand for a flag (`trace_print_lat_fmt()` in kernel/trace/trace_output.c).
pub(super) const FLAG_LETTERS: &[u8] = b".dDXbBNnpLlHhsZz0123456789abcdef";

/// The flags, the time, its decimals and the rest of ` d..2 1136.097253: …`, which follows the CPU's
/// bracket.
fn time(text: &[u8]) -> Option<FlagsAndTime<'_>> {
    let mut text = text.trim_ascii_start();
    let mut flags = None;
    for _ in 0..2 {
        if let Some((ts, decimals, len)) = timestamp(text) {
            return Some((flags, ts, decimals, text[len..].trim_ascii_start()));
        }
        if let Some((own, behind)) = text.split_at_checked(FLAGS)
            && flags.is_none()
            && own.iter().all(|byte| FLAG_LETTERS.contains(byte))
            && let Some((ts, decimals, len)) = timestamp(behind)
        {
            return Some((Some(own), ts, decimals, behind[len..].trim_ascii_start()));
        }
        let end = memchr::memchr(b' ', text)?;
        flags = Some(&text[..end]);
        text = text[end..].trim_ascii_start();
    }
    None
}

/// The time of `seconds.fraction:` or `nanoseconds:`, its decimals, and the length of the text with its
/// colon.
fn timestamp(text: &[u8]) -> Option<(Timestamp, u8, usize)> {
    let (whole, len) = decimal(text)?;
    match text.get(len)? {
        b':' => Some((Timestamp(whole), 9, len + 1)),
        b'.' => {
            let (fraction, digits) = decimal(&text[len + 1..])?;
            let scale = 10u64.checked_pow(9u32.checked_sub(digits as u32)?)?;
            let ns = whole.checked_mul(1_000_000_000)?.checked_add(fraction * scale)?;
            (text.get(len + 1 + digits) == Some(&b':')).then_some((
                Timestamp(ns),
                digits as u8,
                len + digits + 2,
            ))
        }
        _ => None,
    }
}

/// The decimal number at the start of `text`, and how many digits it has.
#[inline]
pub(super) fn decimal(text: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    let mut len = 0;
    while let Some(digit) = text.get(len).map(|b| b.wrapping_sub(b'0')).filter(|d| *d < 10) {
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
        len += 1;
    }
    (len > 0).then_some((value, len))
}

/// The line that systrace adds behind the events of an old device, without a time of its own:
/// `dummy-0 [000] ...1 0.0: tracing_mark_write: trace_event_clock_sync: parent_ts=0.0`. The idle task writes
/// no markers.
fn is_without_time(tid: Tid, ts: Timestamp, rest: &[u8]) -> bool {
    let is_first = tid == Tid::IDLE && ts == Timestamp::MIN;
    is_first && memchr::memmem::find(rest, CLOCK_SYNC).is_some()
}

const CLOCK_SYNC: &[u8] = b"trace_event_clock_sync:";

/// Parses a line without an event.
pub(super) fn parse_other(line: &[u8]) -> OtherLine {
    let line = line.trim_ascii();
    if memchr::memmem::find(line, CLOCK_SYNC).is_some() && line.starts_with(b"dummy-0") {
        return OtherLine::Comment;
    }
    if let Some(rest) = line.strip_prefix(b"##### CPU ") {
        return match decimal(rest) {
            Some((cpu, _)) => OtherLine::Lost { cpu: Cpu(cpu as u32), count: None },
            None => OtherLine::Comment,
        };
    }
    if let Some(rest) = line.strip_prefix(b"CPU:") {
        // `CPU:3 [LOST 17 EVENTS]`, `CPU:3 [EVENTS DROPPED]`
        let Some((cpu, len)) = decimal(rest) else { return OtherLine::Unknown };
        let Some(loss) = rest[len..].trim_ascii().strip_prefix(b"[") else { return OtherLine::Unknown };
        let count = loss.strip_prefix(b"LOST ").and_then(decimal).map(|(count, _)| count);
        return OtherLine::Lost { cpu: Cpu(cpu as u32), count };
    }
    if let Some(rest) = line.strip_prefix(b"# entries-in-buffer/entries-written: ") {
        let numbers =
            decimal(rest).and_then(|(in_file, len)| Some((in_file, decimal(rest.get(len + 1..)?)?.0)));
        return match numbers {
            Some((in_file, written)) => OtherLine::Entries { in_file, written },
            None => OtherLine::Comment,
        };
    }
    if let Some(account) = line.strip_prefix(LOSSES_COMMENT.as_bytes()) {
        return OtherLine::Losses(Losses::from_json(account));
    }
    if let Some((cpus, _)) = line.strip_prefix(b"cpus=").and_then(decimal) {
        return OtherLine::Cpus(cpus as u32);
    }
    let headers: [&[u8]; 5] = [b"#", b"version = ", b"CPU ", b"trace-cmd", b"TRACE:"];
    if line.is_empty() || headers.iter().any(|header| line.starts_with(header)) {
        OtherLine::Comment
    } else {
        OtherLine::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> EventLine<'_> {
        parse(text.as_bytes()).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn columns_that_some_kernels_leave_out_are_optional() {
        let plain = line("          <idle>-0     [003] 1136.097253: cpu_idle: state=0 cpu_id=0");
        assert_eq!((plain.comm, plain.tid, plain.tgid, plain.cpu), (&b"<idle>"[..], Tid::IDLE, None, Cpu(3)));
        assert_eq!((plain.ts, plain.decimals), (Timestamp(1_136_097_253_000), 6));
        assert_eq!(plain.rest, b"cpu_idle: state=0 cpu_id=0");
        let tgid = line(" my app [x]-1-77  ( 123) [000] dNh2. 5.000000001: foo: ");
        assert_eq!((tgid.comm, tgid.tid, tgid.tgid), (&b"my app [x]-1"[..], Tid(77), Some(Pid(123))));
        assert_eq!((tgid.ts, tgid.flags, tgid.preempt_count), (Timestamp(5_000_000_001), 0x2d, 2));
        assert_eq!(line("a-1 (-----) [001] ...1 1.5: x:").tgid, None);
        let late = line(" bash-1091  [000] ( 1091) d..2    28.313544: sched_switch: x");
        assert_eq!((late.tgid, late.preempt_count, late.rest), (Some(Pid(1091)), 2, &b"sched_switch: x"[..]));
        assert_eq!(
            (line("a-1 [001] (-----) ...1 1.5: x:").tgid, line("a-1 [001] (7) 1.5: x:").tgid),
            (None, Some(Pid(7)))
        );
        assert_eq!(line("a-1 [001] ...21 12345: x:").preempt_count, 0x12);
        assert_eq!(line("a-1 [001] ...1 12345: x:").ts, Timestamp(12_345));
        let close = line("a-1 [001] d...1.5: x: y");
        assert_eq!((close.ts, close.preempt_count, close.rest), (Timestamp(1_500_000_000), 0, &b"x: y"[..]));
        assert_eq!((close.flags, line("a-1 [001] ...12.5: x:").preempt_count), (1, 1));
        assert_eq!(line("a-1 [001] ....  1.5: x: y").ts, Timestamp(1_500_000_000));
    }

    #[test]
    fn lines_without_an_event_are_classified() {
        for text in [
            "",
            "# tracer: nop",
            "a-1 [001] ....",
            "[001] 1.0: x",
            "a-1 [x] 1.0: x",
            "a-1 [1] 99999999999999999999.0: x",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(
            parse_other(b"##### CPU 1 buffer started ####"),
            OtherLine::Lost { cpu: Cpu(1), count: None }
        );
        assert_eq!(parse_other(b"CPU:2 [LOST 17 EVENTS]"), OtherLine::Lost { cpu: Cpu(2), count: Some(17) });
        assert_eq!(
            parse_other(b"# entries-in-buffer/entries-written: 69657/223807   #P:2"),
            OtherLine::Entries { in_file: 69657, written: 223_807 }
        );
        assert_eq!(parse_other(b"what is this"), OtherLine::Unknown);
    }
}
