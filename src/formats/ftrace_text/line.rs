//! One line of ftrace text: `COMM-PID (TGID) [CPU] FLAGS TIME: name: fields`, in the layouts of the kernel's `trace` and
//! `trace_pipe` (kernel/trace/trace_output.c, `trace_print_context`) and of `trace-cmd report`.

/// What stands before the event's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub comm: &'a [u8],
    pub tid: i32,
    pub tgid: Option<i32>,
    pub cpu: u32,
    pub flags: u8,
    pub preempt_count: u8,
    /// ns
    pub ts: u64,
    /// Digits behind the second's point; 9 for a time without a point, which is in ns.
    pub decimals: u8,
    /// All behind the time's colon.
    pub rest: &'a [u8],
}

/// What a line without an event says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Other {
    /// A gap in what a CPU recorded; the number of events where known.
    Lost { cpu: u32, count: Option<u64> },
    /// `entries-in-buffer/entries-written: held/written`.
    Entries { held: u64, written: u64 },
    /// `#P:n`, `cpus=n`.
    Cpus(u32),
    /// Comments and headers without news.
    Nothing,
    /// No line of such a file.
    Unknown,
}

/// Takes a line apart; `None` where it is no event.
#[inline]
pub(super) fn parse(line: &[u8]) -> Option<Line<'_>> {
    let mut from = 0;
    // A comm may hold brackets itself: take the first that reads as a CPU and has a thread id before it.
    for _ in 0..8 {
        let open = from + memchr::memchr(b'[', line.get(from..)?)?;
        from = open + 1;
        let Some((cpu, len)) = decimal(&line[from..]) else { continue };
        if line.get(from + len) != Some(&b']') {
            continue;
        }
        let Some((comm, tid, tgid)) = task(&line[..open]) else { continue };
        let Some((flags, ts, decimals, rest)) = time(&line[from + len + 1..]) else { continue };
        let (flags, preempt_count) = flags.map_or((0, 0), decode_flags);
        let cpu = u32::try_from(cpu).ok()?;
        return Some(Line { comm, tid, tgid, cpu, flags, preempt_count, ts, decimals, rest });
    }
    None
}

/// `   COMM-PID   ( TGID) ` before the CPU's bracket.
fn task(text: &[u8]) -> Option<(&[u8], i32, Option<i32>)> {
    let mut text = text.trim_ascii_end();
    let mut tgid = None;
    if let Some(inner) = text.strip_suffix(b")") {
        let open = memchr::memrchr(b'(', inner)?;
        // Dashes: the kernel did not know it.
        tgid = std::str::from_utf8(inner[open + 1..].trim_ascii()).ok()?.parse().ok();
        text = text[..open].trim_ascii_end();
    }
    let digits = text.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let (comm, tid) = text.split_at(text.len() - digits);
    let (tid, len) = decimal(tid)?;
    (len == digits).then_some(())?;
    Some((comm.strip_suffix(b"-")?.trim_ascii_start(), i32::try_from(tid).ok()?, tgid))
}

type Time<'a> = (Option<&'a [u8]>, u64, u8, &'a [u8]);

/// ` d..2 1136.097253: …` behind the CPU's bracket.
fn time(text: &[u8]) -> Option<Time<'_>> {
    let mut text = text.trim_ascii_start();
    let mut flags = None;
    for _ in 0..2 {
        if let Some((ts, decimals, len)) = timestamp(text) {
            return Some((flags, ts, decimals, text[len..].trim_ascii_start()));
        }
        let end = memchr::memchr(b' ', text)?;
        flags = Some(&text[..end]);
        text = text[end..].trim_ascii_start();
    }
    None
}

/// `seconds.fraction:` or `nanoseconds:`; the time in ns, its decimals, and the length with the colon.
fn timestamp(text: &[u8]) -> Option<(u64, u8, usize)> {
    let (whole, len) = decimal(text)?;
    match text.get(len)? {
        b':' => Some((whole, 9, len + 1)),
        b'.' => {
            let (fraction, digits) = decimal(&text[len + 1..])?;
            let scale = 10u64.checked_pow(9u32.checked_sub(digits as u32)?)?;
            let ns = whole.checked_mul(1_000_000_000)?.checked_add(fraction * scale)?;
            (text.get(len + 1 + digits) == Some(&b':')).then_some((ns, digits as u8, len + digits + 2))
        }
        _ => None,
    }
}

/// The decimal number at the start, and its length.
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

/// The flag column (`irqs-off, need-resched, hardirq/softirq, preempt-depth[, migrate-disable]`) as the kernel's
/// `trace_flag_type` bits and its preempt count (migrate-disable depth in the high half, as in the ring buffer).
fn decode_flags(column: &[u8]) -> (u8, u8) {
    const IRQS_OFF: u8 = 0x01;
    const IRQS_NOSUPPORT: u8 = 0x02;
    const NEED_RESCHED: u8 = 0x04;
    const HARDIRQ: u8 = 0x08;
    const SOFTIRQ: u8 = 0x10;
    const PREEMPT_RESCHED: u8 = 0x20;
    const NMI: u8 = 0x40;
    const BH_OFF: u8 = 0x80;
    let at = |i: usize| column.get(i).copied().unwrap_or(b'.');
    let irqs = match at(0) {
        b'd' => IRQS_OFF,
        b'D' => IRQS_OFF | BH_OFF,
        b'b' => BH_OFF,
        b'X' => IRQS_NOSUPPORT,
        _ => 0,
    };
    let resched = match at(1) {
        b'N' | b'B' => NEED_RESCHED | PREEMPT_RESCHED,
        b'n' | b'b' => NEED_RESCHED,
        b'p' | b'L' => PREEMPT_RESCHED,
        _ => 0,
    };
    let context = match at(2) {
        b'h' => HARDIRQ,
        b's' => SOFTIRQ,
        b'H' => HARDIRQ | SOFTIRQ,
        b'Z' => NMI | HARDIRQ,
        b'z' => NMI,
        _ => 0,
    };
    let depth = |i| char::from(at(i)).to_digit(16).unwrap_or(0) as u8;
    (irqs | resched | context, depth(3) | depth(4) << 4)
}

/// What a line says that is no event.
pub(super) fn other(line: &[u8]) -> Other {
    let line = line.trim_ascii();
    if let Some(rest) = line.strip_prefix(b"##### CPU ") {
        return match decimal(rest) {
            Some((cpu, _)) => Other::Lost { cpu: cpu as u32, count: None },
            None => Other::Nothing,
        };
    }
    if let Some(rest) = line.strip_prefix(b"CPU:") {
        // `CPU:3 [LOST 17 EVENTS]`, `CPU:3 [EVENTS DROPPED]`
        let Some((cpu, len)) = decimal(rest) else { return Other::Unknown };
        let Some(what) = rest[len..].trim_ascii().strip_prefix(b"[") else { return Other::Unknown };
        let count = what.strip_prefix(b"LOST ").and_then(decimal).map(|(count, _)| count);
        return Other::Lost { cpu: cpu as u32, count };
    }
    if let Some(rest) = line.strip_prefix(b"# entries-in-buffer/entries-written: ") {
        let numbers = decimal(rest).and_then(|(held, len)| Some((held, decimal(rest.get(len + 1..)?)?.0)));
        return match numbers {
            Some((held, written)) => Other::Entries { held, written },
            None => Other::Nothing,
        };
    }
    if let Some((cpus, _)) = line.strip_prefix(b"cpus=").and_then(decimal) {
        return Other::Cpus(cpus as u32);
    }
    let known: [&[u8]; 5] = [b"#", b"version = ", b"CPU ", b"trace-cmd", b"TRACE:"];
    if line.is_empty() || known.iter().any(|k| line.starts_with(k)) { Other::Nothing } else { Other::Unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line<'_> {
        parse(text.as_bytes()).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn every_column_is_optional_that_some_kernel_leaves_out() {
        let plain = line("          <idle>-0     [003] 1136.097253: cpu_idle: state=0 cpu_id=0");
        assert_eq!((plain.comm, plain.tid, plain.tgid, plain.cpu), (&b"<idle>"[..], 0, None, 3));
        assert_eq!((plain.ts, plain.decimals), (1_136_097_253_000, 6));
        assert_eq!(plain.rest, b"cpu_idle: state=0 cpu_id=0");
        let tgid = line(" my app [x]-1-77  ( 123) [000] dNh2. 5.000000001: foo: ");
        assert_eq!((tgid.comm, tgid.tid, tgid.tgid), (&b"my app [x]-1"[..], 77, Some(123)));
        assert_eq!((tgid.ts, tgid.flags, tgid.preempt_count), (5_000_000_001, 0x2d, 2));
        assert_eq!(line("a-1 (-----) [001] ...1 1.5: x:").tgid, None);
        assert_eq!(line("a-1 [001] ...21 12345: x:").preempt_count, 0x12);
        assert_eq!(line("a-1 [001] ...1 12345: x:").ts, 12_345);
    }

    #[test]
    fn other_lines_are_no_events() {
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
        assert_eq!(other(b"##### CPU 1 buffer started ####"), Other::Lost { cpu: 1, count: None });
        assert_eq!(other(b"CPU:2 [LOST 17 EVENTS]"), Other::Lost { cpu: 2, count: Some(17) });
        assert_eq!(
            other(b"# entries-in-buffer/entries-written: 69657/223807   #P:2"),
            Other::Entries { held: 69657, written: 223_807 }
        );
        assert_eq!(other(b"what is this"), Other::Unknown);
    }
}
