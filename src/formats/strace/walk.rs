//! The lines of a text in the order of the file, or of their times.

use std::io;
use std::ops::Range;

use super::line::{AnyLine, LineTime, StampKind, StraceLine, attached_message, may_end_call, parse};
use crate::clock::Timestamp;
use crate::formats::text_lines::FileMemory;
use crate::ids::Tid;

/// A call whose line something else has broken may go on behind so many lines.
const MAX_BROKEN_LINES: usize = 16;
/// The begin of such a call is kept up to this length.
const MAX_BROKEN_BYTES: usize = 64 << 10;
/// How many bytes of a line are quoted.
const QUOTED_BYTES: usize = 40;
/// A time of day that is so much earlier than the line before is one of the next day, ns.
const HALF_DAY_NS: u64 = 12 * 3600 * 1_000_000_000;
const DAY_NS: u64 = 2 * HALF_DAY_NS;

/// Something that the walk comes to.
pub(super) enum WalkStep<'l> {
    /// A line with a time, and its bytes in the text.
    Line(StraceLine<'l>, Range<usize>),
    /// strace begins to trace a thread.
    Attached(Tid),
}

/// Counts of the lines that are no steps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LineCounts {
    /// Lines that strace does not print.
    pub(super) other: u64,
    /// The offset of the first of them, and its begin.
    pub(super) first_other: Option<(usize, String)>,
    /// Lines of strace without a time.
    pub(super) timeless: u64,
    /// Frames of stacks.
    pub(super) stack_frames: u64,
    /// Calls that were put together of two lines.
    pub(super) mended: u64,
}

/// The begin of a call whose line something has broken.
struct BrokenCall {
    start: usize,
    begin: Vec<u8>,
    lines_behind: usize,
}

/// Calls `use_step` for every line with a time, in the order of the text.
///
/// # Errors
/// Those of `use_step`.
pub(super) fn walk(
    text: &[u8],
    memory: FileMemory<'_>,
    use_step: &mut dyn FnMut(WalkStep<'_>) -> io::Result<()>,
) -> io::Result<LineCounts> {
    let mut counts = LineCounts::default();
    let mut broken: Option<BrokenCall> = None;
    for (start, line) in memory.lines(text) {
        match parse(line) {
            AnyLine::Strace(parsed) => {
                counts.give_up(broken.take());
                use_step(WalkStep::Line(parsed, start..start + line.len()))?;
            }
            AnyLine::Attached(tid) => use_step(WalkStep::Attached(tid))?,
            AnyLine::Message => {}
            AnyLine::StackFrame => counts.stack_frames += 1,
            AnyLine::Broken => {
                counts.give_up(broken.take());
                let mut begin = &line[..line.len().min(MAX_BROKEN_BYTES)];
                if let Some((at, tid)) = attached_message(line) {
                    begin = &begin[..at.min(begin.len())];
                    use_step(WalkStep::Attached(tid))?;
                }
                broken = Some(BrokenCall { start, begin: begin.to_vec(), lines_behind: 0 });
            }
            kind @ (AnyLine::Timeless | AnyLine::Other) => {
                if let Some(call) = broken.as_mut().filter(|_| may_end_call(line)) {
                    let whole = [&call.begin, line].concat();
                    if let AnyLine::Strace(parsed) = parse(&whole) {
                        counts.mended += 1;
                        use_step(WalkStep::Line(parsed, call.start..start + line.len()))?;
                        broken = None;
                        continue;
                    }
                }
                match kind {
                    AnyLine::Timeless => counts.timeless += 1,
                    _ => counts.add_other(start, line),
                }
                if let Some(call) = &mut broken {
                    call.lines_behind += 1;
                    if call.lines_behind > MAX_BROKEN_LINES {
                        counts.give_up(broken.take());
                    }
                }
            }
        }
    }
    counts.give_up(broken);
    Ok(counts)
}

impl LineCounts {
    fn add_other(&mut self, start: usize, line: &[u8]) {
        self.other += 1;
        self.first_other.get_or_insert_with(|| {
            (start, String::from_utf8_lossy(&line[..line.len().min(QUOTED_BYTES)]).into_owned())
        });
    }

    /// Counts a call whose end did not come.
    fn give_up(&mut self, broken: Option<BrokenCall>) {
        if let Some(call) = broken {
            self.add_other(call.start, &call.begin);
        }
    }
}

/// Adds up the times of lines to times of one clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineClock {
    kind: StampKind,
    /// The days that have gone by, ns: they are added to a time of day.
    days_ns: u64,
    last: Timestamp,
}

impl LineClock {
    /// A clock for times that are told like this one.
    pub(super) fn new(kind: StampKind) -> LineClock {
        LineClock { kind, days_ns: 0, last: Timestamp::MIN }
    }

    /// The time of the next line: since 1970, since the midnight before the first line, or since the
    /// first line. `None` where the line tells its time in another way than the first one.
    pub(super) fn next(&mut self, time: LineTime) -> Option<Timestamp> {
        if time.kind != self.kind {
            return None;
        }
        let ts = match self.kind {
            StampKind::Epoch => Timestamp(time.ns),
            StampKind::SinceLine => self.last.saturating_add(time.ns),
            StampKind::TimeOfDay => {
                let ts = Timestamp(time.ns).saturating_add(self.days_ns);
                if ts.saturating_add(HALF_DAY_NS) < self.last {
                    self.days_ns = self.days_ns.saturating_add(DAY_NS);
                    ts.saturating_add(DAY_NS)
                } else if ts > self.last.saturating_add(HALF_DAY_NS) && self.days_ns >= DAY_NS {
                    // A line of the last day that comes late.
                    return Some(ts - DAY_NS);
                } else {
                    ts
                }
            }
        };
        self.last = ts;
        Some(ts)
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::LineContent;
    use super::*;

    fn names(text: &str) -> (Vec<String>, LineCounts) {
        let mut seen = Vec::new();
        let memory = FileMemory::of_bytes(text.len());
        let counts = walk(text.as_bytes(), memory, &mut |step| {
            seen.push(match step {
                WalkStep::Line(line, range) => match line.content {
                    LineContent::Call { name, args, end } => {
                        let [name, args, result] = [name, args, end.result].map(String::from_utf8_lossy);
                        format!("{name}({args}) = {result} at {range:?}")
                    }
                    other => format!("{other:?}"),
                },
                WalkStep::Attached(tid) => format!("attached {tid}"),
            });
            Ok(())
        });
        (seen, counts.unwrap())
    }

    #[test]
    fn a_call_that_a_message_or_an_output_breaks_is_put_together() {
        let (seen, counts) = names(
            "1.0 clone(flags=CLONE_VM|SIGCHLDstrace: Process 7 attached\n, child_tidptr=0x7) = 7 <0.1>\n\
             1.1 write(1, \"a\\nb\\n\", 4a\nb\n) = 4\n",
        );
        let clone = "clone(flags=CLONE_VM|SIGCHLD, child_tidptr=0x7) = 7 at 0..88";
        // What the program has printed within the line stays in the arguments.
        let write = "write(1, \"a\\nb\\n\", 4a) = 4 at 89..122";
        assert_eq!(seen, ["attached 7", clone, write]);
        assert_eq!((counts.mended, counts.other), (2, 1));
    }

    #[test]
    fn what_strace_does_not_print_is_counted_with_its_place() {
        let (seen, counts) =
            names("hello\n1.0 read(3, \"\", 1) = 0\n--- SIGHUP {} ---\n > /lib/libc.so(read)\n");
        assert_eq!(seen.len(), 1);
        assert_eq!(counts.first_other, Some((0, "hello".into())));
        assert_eq!((counts.other, counts.timeless, counts.stack_frames), (1, 1, 1));
    }

    #[test]
    fn a_call_without_an_end_is_given_up() {
        let (seen, counts) = names("1.0 read(3\n1.1 close(3) = 0\n1.2 read(3");
        assert_eq!((seen.len(), counts.other, counts.first_other.unwrap().0), (1, 2, 0));
    }

    #[test]
    fn times_of_day_go_on_behind_midnight() {
        let mut clock = LineClock::new(StampKind::TimeOfDay);
        let mut at = |seconds: u64| {
            let ns = seconds * 1_000_000_000;
            clock
                .next(LineTime { kind: StampKind::TimeOfDay, ns, decimals: 0 })
                .map(|ts| ts.0 / 1_000_000_000)
        };
        assert_eq!(
            [at(86_399), at(1), at(86_398), at(2)].map(Option::unwrap),
            [86_399, 86_401, 86_398, 86_402]
        );
    }
}
