//! One line of strace's output.
//!
//! With `-o` a line begins with the thread's id, on a terminal with `[pid 1234]` where more than one thread
//! is traced, else with neither. The time follows as `-t`, `-tt`, `-ttt` or `-r` print it (strace(1)), then
//! what `-r` beside one of the others, `-n` and `-i` add, and the call, the signal or the exit.

use crate::ids::Tid;

/// ns in a second.
const SECOND_NS: u64 = 1_000_000_000;
/// A number with fewer digits than this, without a fraction, is a thread id; with more it is seconds since
/// 1970, which have had ten since 2001. The kernel's highest thread id has seven.
const EPOCH_DIGITS: usize = 9;

/// The marks that end the line of a call without its result, and whether strace leaves the thread there.
const MARKS: [(&[u8], bool); 2] = [(b"<unfinished ...>", false), (b"<detached ...>", true)];

/// How the lines of a text tell their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StampKind {
    /// `-ttt`: since 1970.
    Epoch,
    /// `-t`, `-tt`: since midnight.
    TimeOfDay,
    /// `-r` alone: since the line before.
    SinceLine,
}

/// The time of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineTime {
    pub(super) kind: StampKind,
    /// ns.
    pub(super) ns: u64,
    /// Digits of the fraction of a second.
    pub(super) decimals: u8,
}

/// The content of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineContent<'l> {
    /// A call from its begin to its end.
    Call { name: &'l [u8], args: &'l [u8], end: CallEnd<'l> },
    /// The begin of a call: the line of another thread comes before its end, or strace leaves the thread.
    Begin { name: &'l [u8], args: &'l [u8], is_detached: bool },
    /// The end of a call whose begin is on an earlier line of the thread.
    End { name: &'l [u8], args: &'l [u8], end: CallEnd<'l> },
    /// The end of one call and the begin of the next one of the same name.
    EndAndBegin { name: &'l [u8], args: &'l [u8] },
    /// `--- SIGCHLD {…} ---`: the name, and what is known of the signal.
    Signal { name: &'l [u8], info: &'l [u8] },
    /// `+++ exited with 0 +++`, without the signs.
    Exit(&'l [u8]),
}

/// The end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallEnd<'l> {
    /// The result: `3`, `-1 ENOENT (No such file or directory)`, `?`.
    pub(super) result: &'l [u8],
    /// How long the call took, as `-T` prints it, ns.
    pub(super) took_ns: Option<u64>,
}

/// A line with a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StraceLine<'l> {
    /// The thread, where the line names it.
    pub(super) tid: Option<Tid>,
    /// The thread's name, where the line has it (`-Y`).
    pub(super) comm: Option<&'l [u8]>,
    pub(super) time: LineTime,
    pub(super) content: LineContent<'l>,
}

/// A line of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnyLine<'l> {
    Strace(StraceLine<'l>),
    /// The begin of a call up to the end of the line, which something else has broken: the output of the
    /// traced program, or a message of strace.
    Broken,
    /// strace says that it traces one more thread.
    Attached(Tid),
    /// Another message of strace, or nothing.
    Message,
    /// A frame of the stack that `-k` prints below a call.
    StackFrame,
    /// Something of strace's without a time.
    Timeless,
    /// Something that strace does not print.
    Other,
}

/// Takes a line apart.
pub(super) fn parse(line: &[u8]) -> AnyLine<'_> {
    let text = line.trim_ascii();
    if text.is_empty() {
        return AnyLine::Message;
    }
    if let Some(message) = text.strip_prefix(b"strace: ") {
        return attached(message).map_or(AnyLine::Message, AnyLine::Attached);
    }
    if text.starts_with(b"> ") {
        return AnyLine::StackFrame;
    }
    let (thread, rest) = thread_prefix(text);
    let (tid, comm) = thread.map_or((None, None), |(tid, comm)| (Some(tid), comm));
    let Some((time, rest)) = time(rest) else {
        let is_strace = content(without_pointers(rest)).is_some();
        return if is_strace { AnyLine::Timeless } else { AnyLine::Other };
    };
    let rest = without_pointers(without_relative(rest));
    match content(rest) {
        Some(content) => AnyLine::Strace(StraceLine { tid, comm, time, content }),
        None if call_name(rest).is_some() => AnyLine::Broken,
        None => AnyLine::Other,
    }
}

/// Whether the line may be the end of a call whose line something has broken: `) = 6`, `<unfinished ...>`.
pub(super) fn may_end_call(line: &[u8]) -> bool {
    result_at(line).is_some() || MARKS.iter().any(|(mark, _)| unfinished_at(line, mark).is_some())
}

/// The text that strace prints in the midst of a line, when it begins to trace a thread.
pub(super) fn attached_message(line: &[u8]) -> Option<(usize, Tid)> {
    let at = memchr::memmem::find(line, b"strace: Process ")?;
    Some((at, attached(&line[at + b"strace: ".len()..])?))
}

/// The thread in `Process 1234 attached`.
fn attached(message: &[u8]) -> Option<Tid> {
    let rest = message.strip_prefix(b"Process ")?;
    let (tid, rest) = thread_id(rest)?;
    rest.trim_ascii_start().starts_with(b"attached").then_some(tid)
}

/// A thread id at the begin of the text, and the rest behind it.
fn thread_id(text: &[u8]) -> Option<(Tid, &[u8])> {
    let len = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if len == 0 || len >= EPOCH_DIGITS {
        return None;
    }
    let (digits, rest) = text.split_at(len);
    Some((Tid(std::str::from_utf8(digits).ok()?.parse().ok()?), rest))
}

/// A thread's id, and its name where `-Y` prints it behind the id: `1234<sh>`.
type ThreadPrefix<'l> = (Tid, Option<&'l [u8]>);

/// The thread at the begin of a line, and the rest.
fn thread_prefix(text: &[u8]) -> (Option<ThreadPrefix<'_>>, &[u8]) {
    let (inside, is_bracketed) = match text.strip_prefix(b"[pid") {
        Some(inside) => (inside.trim_ascii_start(), true),
        None => (text, false),
    };
    let Some((tid, mut rest)) = thread_id(inside) else { return (None, text) };
    let mut comm = None;
    if let Some(named) = rest.strip_prefix(b"<") {
        let Some(end) = memchr::memchr(b'>', named) else { return (None, text) };
        comm = Some(&named[..end]);
        rest = &named[end + 1..];
    }
    let rest = if is_bracketed { rest.strip_prefix(b"]") } else { Some(rest) };
    match rest {
        Some(rest) if rest.starts_with(b" ") => (Some((tid, comm)), rest.trim_ascii_start()),
        _ => (None, text),
    }
}

/// The time at the begin of the text, and the rest behind it.
fn time(text: &[u8]) -> Option<(LineTime, &[u8])> {
    let end = memchr::memchr(b' ', text)?;
    let (stamp, rest) = text.split_at(end);
    let (whole, fraction) = match memchr::memchr(b'.', stamp) {
        Some(dot) => (&stamp[..dot], &stamp[dot + 1..]),
        None => (stamp, &[][..]),
    };
    let decimals = u8::try_from(fraction.len()).ok()?;
    let (kind, seconds) = match whole {
        [_, _, b':', _, _, b':', _, _] => {
            let part = |at: usize| number(&whole[at..at + 2]);
            let hours = part(0)?;
            let minutes = part(3)?;
            let seconds = part(6)?;
            if hours > 23 || minutes > 59 || seconds > 60 {
                return None;
            }
            (StampKind::TimeOfDay, hours * 3600 + minutes * 60 + seconds)
        }
        _ if whole.len() >= EPOCH_DIGITS => (StampKind::Epoch, number(whole)?),
        _ if !fraction.is_empty() => (StampKind::SinceLine, number(whole)?),
        _ => return None,
    };
    let ns = seconds.checked_mul(SECOND_NS)?.checked_add(fraction_ns(fraction)?)?;
    Some((LineTime { kind, ns, decimals }, rest.trim_ascii_start()))
}

/// A decimal number that is the whole text.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The ns that the digits behind a decimal point say.
fn fraction_ns(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return Some(0);
    }
    let missing = 9usize.checked_sub(digits.len())?;
    Some(number(digits)? * 10u64.pow(missing as u32))
}

/// The text behind `(+     0.000230)`, which `-r` adds to another time.
fn without_relative(text: &[u8]) -> &[u8] {
    let inside = text.strip_prefix(b"(+");
    match inside.and_then(|inside| Some(&inside[memchr::memchr(b')', inside)? + 1..])) {
        Some(rest) => rest.trim_ascii_start(),
        None => text,
    }
}

/// The text behind `[  59]`, the number of the call (`-n`), and `[00007f7a18b68ad7]`, the instruction's
/// address (`-i`).
fn without_pointers(mut text: &[u8]) -> &[u8] {
    while let Some(inside) = text.strip_prefix(b"[") {
        let Some(end) = memchr::memchr(b']', inside) else { break };
        let is_pointer = |byte: &u8| byte.is_ascii_hexdigit() || b" ?x".contains(byte);
        if !inside[..end].iter().all(is_pointer) {
            break;
        }
        text = inside[end + 1..].trim_ascii_start();
    }
    text
}

/// The name of the call that the text begins with, and what follows the bracket.
fn call_name(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b'(', text)?;
    let name = &text[..end];
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'?');
    let begins = name.first().is_some_and(|first| !first.is_ascii_digit());
    (begins && name.iter().all(is_name)).then(|| (name, &text[end + 1..]))
}

/// A call, a signal or an exit.
fn content(text: &[u8]) -> Option<LineContent<'_>> {
    if let Some(signal) = text.strip_prefix(b"--- ").and_then(|text| text.strip_suffix(b"---")) {
        let signal = signal.trim_ascii();
        let is_stop = signal.starts_with(b"stopped by ");
        let end = if is_stop { None } else { memchr::memchr(b' ', signal) }.unwrap_or(signal.len());
        return Some(LineContent::Signal { name: &signal[..end], info: signal[end..].trim_ascii() });
    }
    if let Some(exit) = text.strip_prefix(b"+++ ").and_then(|text| text.strip_suffix(b"+++")) {
        return Some(LineContent::Exit(exit.trim_ascii()));
    }
    let (name, rest, is_resumed) = match text.strip_prefix(b"<... ") {
        Some(resumed) => {
            let end = memchr::memmem::find(resumed, b" resumed>")?;
            (&resumed[..end], resumed[end + b" resumed>".len()..].trim_ascii(), true)
        }
        None => {
            let (name, rest) = call_name(text)?;
            (name, rest, false)
        }
    };
    for (mark, is_detached) in MARKS {
        if let Some(at) = unfinished_at(rest, mark) {
            let args = arguments(&rest[..at]);
            return Some(if is_resumed {
                LineContent::EndAndBegin { name, args }
            } else {
                LineContent::Begin { name, args, is_detached }
            });
        }
    }
    let (args, result) = match result_at(rest) {
        Some((args, result)) => (&rest[..args], &rest[result..]),
        // Where nothing is left of the arguments, an old strace prints no bracket.
        None if is_resumed && rest.starts_with(b"=") => (&rest[..0], &rest[1..]),
        None => return None,
    };
    let (result, took_ns) = without_duration(result.trim_ascii());
    let end = CallEnd { result, took_ns };
    let args = arguments(args);
    Some(if is_resumed {
        LineContent::End { name, args, end }
    } else {
        LineContent::Call { name, args, end }
    })
}

/// Where a mark stands that ends the line: nothing follows it but the result of a thread that is gone.
fn unfinished_at(text: &[u8], mark: &[u8]) -> Option<usize> {
    let at = memchr::memmem::rfind(text, mark)?;
    let behind = text[at + mark.len()..].trim_ascii();
    let behind = behind.strip_prefix(b")").unwrap_or(behind).trim_ascii();
    (behind.is_empty() || behind.starts_with(b"= ?")).then_some(at)
}

/// Arguments without the comma that is left where they are cut.
fn arguments(text: &[u8]) -> &[u8] {
    let is_cut = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
    let start = text.iter().position(|byte| !is_cut(byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !is_cut(byte)).map_or(start, |last| last + 1);
    &text[start..end]
}

/// Where the bracket stands that ends the arguments, and where the result begins. An argument and a result
/// may have brackets, too: the bracket is the last one that `=` follows.
fn result_at(text: &[u8]) -> Option<(usize, usize)> {
    memchr::memrchr_iter(b')', text).find_map(|bracket| {
        let behind = &text[bracket + 1..];
        let blanks = behind.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        (behind.get(blanks) == Some(&b'=')).then_some((bracket, bracket + 1 + blanks + 1))
    })
}

/// A result without the duration `<0.000123>` behind it, and the duration, ns.
fn without_duration(result: &[u8]) -> (&[u8], Option<u64>) {
    let split = || {
        let inside = result.strip_suffix(b">")?;
        let open = memchr::memrchr(b'<', inside)?;
        let (seconds, fraction) = inside[open + 1..].split_at(memchr::memchr(b'.', &inside[open + 1..])?);
        let ns = number(seconds)?.checked_mul(SECOND_NS)?.checked_add(fraction_ns(&fraction[1..])?)?;
        Some((result[..open].trim_ascii_end(), ns))
    };
    match split() {
        Some((result, ns)) => (result, Some(ns)),
        None => (result, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strace(line: &str) -> StraceLine<'_> {
        match parse(line.as_bytes()) {
            AnyLine::Strace(line) => line,
            other => panic!("{line:?}: {other:?}"),
        }
    }

    #[test]
    fn every_form_of_a_time_is_read_behind_every_form_of_a_thread() {
        let thread = Some(Tid(123));
        for (line, tid, kind, ns) in [
            ("1700000052.000321 close(3) = 0", None, StampKind::Epoch, 1_700_000_052_000_321_000),
            ("1700000052 close(3) = 0", None, StampKind::Epoch, 1_700_000_052_000_000_000),
            ("123   1700000052 close(3) = 0", thread, StampKind::Epoch, 1_700_000_052_000_000_000),
            ("[pid   123] 01:02:03 close(3) = 0", thread, StampKind::TimeOfDay, 3_723_000_000_000),
            ("123<a b> 01:02:03.000000001 close(3) = 0", thread, StampKind::TimeOfDay, 3_723_000_000_001),
            ("123      0.000321 close(3) = 0", thread, StampKind::SinceLine, 321_000),
            ("     0.5 close(3) = 0", None, StampKind::SinceLine, 500_000_000),
            (
                "123 00:00:01 (+     0.000230) [   3] [00007f7a] close(3) = 0",
                thread,
                StampKind::TimeOfDay,
                1_000_000_000,
            ),
        ] {
            let parsed = strace(line);
            assert_eq!((parsed.tid, parsed.time.kind, parsed.time.ns), (tid, kind, ns), "{line}");
            assert!(
                matches!(parsed.content, LineContent::Call { name: b"close", args: b"3", .. }),
                "{parsed:?}"
            );
        }
        assert_eq!(strace("7<a b> 01:02:03 close(3) = 0").comm, Some(&b"a b"[..]));
    }

    #[test]
    fn arguments_and_results_may_have_brackets_equals_signs_and_marks_in_them() {
        for (text, args, result, took_ns) in [
            (r#"write(1, "f(x) = 3", 8) = 8 <0.000021>"#, r#"1, "f(x) = 3", 8"#, "8", Some(21_000)),
            (r#"write(1, "<unfinished ...>", 16) = 16"#, r#"1, "<unfinished ...>", 16"#, "16", None),
            ("fcntl(1, F_GETFL)    = 0x2 (flags O_RDWR)", "1, F_GETFL", "0x2 (flags O_RDWR)", None),
            ("open(\"a\") = 3</etc/x> <1.5>", "\"a\"", "3</etc/x>", Some(1_500_000_000)),
            ("exit_group(0)         = ?", "0", "?", None),
            ("pause() = ? <unavailable>", "", "? <unavailable>", None),
        ] {
            let line = format!("1.5 {text}");
            let LineContent::Call { args: a, end, .. } = strace(&line).content else { panic!("{text}") };
            let told = (String::from_utf8_lossy(a), String::from_utf8_lossy(end.result), end.took_ns);
            assert_eq!(told, (args.into(), result.into(), took_ns), "{text}");
        }
    }

    #[test]
    fn begins_ends_signals_and_exits_are_told_apart() {
        let content = |text: &str| format!("{:?}", strace(&format!("1.5 {text}")).content);
        assert!(content("futex(0x7, FUTEX_WAIT, 2, NULL <unfinished ...>) = ?").starts_with("Begin"));
        assert!(content("futex(0x7, FUTEX_WAIT, <detached ...>").contains("is_detached: true"));
        assert!(content("<... read resumed> \"a\", 9) = 1").starts_with("End "));
        assert!(content("<... futex resumed> )  = 0").starts_with("End "));
        assert!(content("<... futex resumed> = 0").starts_with("End "));
        assert!(content("<... poll resumed> {}, 64 <unfinished ...>").starts_with("EndAndBegin"));
        assert_eq!(
            strace("1.5 --- SIGCHLD {si_signo=SIGCHLD} ---").content,
            LineContent::Signal { name: b"SIGCHLD", info: b"{si_signo=SIGCHLD}" }
        );
        let LineContent::Signal { name, info } = strace("1.5 --- stopped by SIGTTOU ---").content else {
            panic!()
        };
        assert_eq!((name, info), (&b"stopped by SIGTTOU"[..], &b""[..]));
        assert_eq!(
            strace("1.5 +++ killed by SIGSEGV (core dumped) +++").content,
            LineContent::Exit(b"killed by SIGSEGV (core dumped)")
        );
    }

    #[test]
    fn other_lines_are_no_calls() {
        for (line, want) in [
            ("this line is not valid strace output", AnyLine::Other),
            ("12:00:00 a log says (so) = 3", AnyLine::Other),
            ("25:00:00 close(3) = 0", AnyLine::Other),
            ("--- SIGCHLD {} ---", AnyLine::Timeless),
            ("close(3) = 0", AnyLine::Timeless),
            (" > /lib/libc.so.6(read+0x10) [0x10]", AnyLine::StackFrame),
            ("strace: Process 75 attached", AnyLine::Attached(Tid(75))),
            ("strace: Process 75 detached", AnyLine::Message),
            ("1.5 write(1, \"hi\", 2hi", AnyLine::Broken),
            ("99999999999999999999.5 close(3) = 0", AnyLine::Other),
        ] {
            assert_eq!(parse(line.as_bytes()), want, "{line}");
        }
    }
}
