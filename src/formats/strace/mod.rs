//! The output of strace (strace(1)): system calls as slices on their threads, signals and exits as instants.
//!
//! A line has a time with `-ttt`, `-tt`, `-t` or `-r`. The length of a call is known with `-T`, and where the
//! lines of other threads come between its begin and its end. Any other call is an instant at its begin: it
//! has ended when the next line of its thread comes, and nothing says when. Perfetto's importer decides the
//! same. The arguments and the result of a call are the arguments `args` and `ret` of its slice, as that
//! importer names them.

mod line;
mod push;
mod threads;
mod walk;

use std::io;

use self::line::{AnyLine, LineContent, StampKind};
use self::threads::StraceFacts;
use super::input::{DETECTION_BYTES, Input};
use super::text_lines::{FileMemory, lines};
use super::{Damage, FormatError, FormatId, Head, OpenedInput, Order, ReadReport, Recording, Sink};
use crate::clock::{Clock, Snapshots};

/// So many lines at the start of a text are looked at.
const DETECTION_LINES: usize = 400;
/// How many bytes of a damaged line are quoted.
const QUOTED_BYTES: usize = 40;

/// Whether the bytes are the output of strace, with times: one of the first lines is a call with a time.
pub(super) fn detect(bytes: &[u8]) -> bool {
    first_lines(bytes).any(|line| match line::parse(line) {
        AnyLine::Strace(line) => !matches!(line.content, LineContent::Signal { .. } | LineContent::Exit(_)),
        _ => false,
    })
}

/// Whether the bytes are the output of strace without times: most of the first lines are calls.
pub(super) fn is_without_times(bytes: &[u8]) -> bool {
    let lines: Vec<AnyLine<'_>> = first_lines(bytes).map(line::parse).collect();
    let count = |kind: AnyLine<'_>| lines.iter().filter(|line| **line == kind).count();
    count(AnyLine::Timeless) > count(AnyLine::Other)
}

/// The whole lines at the start of a file.
fn first_lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let start = bytes.get(..DETECTION_BYTES).unwrap_or(bytes);
    lines(start).map(|(_, line)| line).take(DETECTION_LINES)
}

/// The output of strace, whose first pass is done.
pub struct StraceText<'a> {
    /// The lines that have an end.
    text: &'a [u8],
    memory: FileMemory<'a>,
    head: Head,
    facts: StraceFacts,
    opening_report: ReadReport,
}

/// Opens `input` as the output of strace.
pub(super) fn open(input: &Input) -> Result<OpenedInput<'_>, FormatError> {
    let memory = FileMemory { owner: Some(input), len: input.len() };
    Ok(OpenedInput::Recording(Box::new(StraceText::open_within(input, memory)?)))
}

/// Reads the output of strace and pushes all of it to `sink`.
///
/// # Errors
/// The errors of the sink. All faults of the file are in the report.
pub fn read(data: &[u8], order: Order, sink: &mut dyn Sink) -> io::Result<ReadReport> {
    StraceText::open_within(data, FileMemory::of_bytes(data.len()))?.read(order, sink)
}

impl<'a> StraceText<'a> {
    fn open_within(data: &'a [u8], memory: FileMemory<'a>) -> io::Result<StraceText<'a>> {
        let mut opening_report = ReadReport::default();
        let whole = memchr::memrchr(b'\n', data).map_or(0, |end| end + 1);
        let (text, cut) = data.split_at(whole);
        if !cut.is_empty() {
            let quoted = String::from_utf8_lossy(&cut[..cut.len().min(QUOTED_BYTES)]).into_owned();
            let what = format!(
                "the last line has no end, which strace writes: the file was cut, and the line is left out: \
                 {quoted:?}"
            );
            opening_report.damage.push(Damage { offset: whole as u64, what });
        }
        let facts = threads::read(text, memory)?;
        note_times(&facts, &mut opening_report);
        let head = Head {
            format: FormatId::Strace.name().into(),
            clock: match facts.kind {
                Some(StampKind::Epoch) => Clock::Realtime,
                _ => Clock::Unknown,
            },
            precision: if facts.decimals > 6 { 9 } else { 6 },
            snapshots: Snapshots::default(),
            cpus: None,
            machine: None,
            device: None,
            android_sdk: None,
            facts: None,
        };
        Ok(StraceText { text, memory, head, facts, opening_report })
    }
}

/// Notes what the times of a text are, and what is not read.
fn note_times(facts: &StraceFacts, report: &mut ReadReport) {
    let notes = &mut report.notes;
    match facts.kind {
        Some(StampKind::TimeOfDay) => notes.push(
            "the times are times of day without a date, on a clock of their own that begins at midnight; \
             `strace -ttt` has the date"
                .into(),
        ),
        Some(StampKind::SinceLine) => notes.push(
            "each time is the sum of the differences of `strace -r` up to its line; `strace -ttt` has times"
                .into(),
        ),
        Some(StampKind::Epoch) | None => {}
    }
    if facts.sorted.is_some() {
        notes.push("the lines were not in order of time".into());
    }
    if facts.has_threadless && facts.root.is_none() {
        notes.push(
            "the lines name no thread: the calls are on a track of the machine; `strace -f` has ids".into(),
        );
    }
    let counts = &facts.counts;
    if counts.stack_frames > 0 {
        report.unread.insert("stack frames (strace -k)".into(), counts.stack_frames);
    }
    let mut irregular = |count: u64, what: String| {
        if count > 0 {
            report.irregular.push(format!("{count} {what}"));
        }
    };
    if let Some((offset, quoted)) = &counts.first_other {
        irregular(
            counts.other,
            format!("lines are not strace's and are left out, the first at byte {offset}: {quoted:?}"),
        );
    }
    irregular(counts.timeless, "lines of strace have no time and are left out".into());
    irregular(
        counts.mended,
        "calls are on two lines, because something else was printed between: their arguments may hold it"
            .into(),
    );
    irregular(
        facts.other_clocks,
        "lines tell their time in another way than the first line and are left out".into(),
    );
}

impl Recording for StraceText<'_> {
    fn head(&self) -> &Head {
        &self.head
    }

    fn read(&self, _: Order, sink: &mut dyn Sink) -> io::Result<ReadReport> {
        sink.head(&self.head)?;
        push::push(self.text, self.memory, &self.facts, self.opening_report.clone(), sink)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::formats::{Event, EventType, Track, TrackEvent};

    /// Checks that tracks are announced in order and that the events of each come in order of time.
    #[derive(Default)]
    struct InOrder(Vec<Timestamp>);

    impl Sink for InOrder {
        fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
            Ok(())
        }
        fn track(&mut self, track: &Track<'_>) -> io::Result<()> {
            assert_eq!(track.id.0 as usize, self.0.len());
            self.0.push(Timestamp(0));
            Ok(())
        }
        fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
            let last = &mut self.0[event.track.0 as usize];
            assert!(*last <= event.ts, "{event:?}");
            *last = event.ts;
            Ok(())
        }
    }

    const TEXT: &str = "7 23:59:59.9 execve(\"/bin/sh\", [\"sh\"], 0x7) = 0 <0.3>\n7 00:00:00.1 clone(flags=CLONE_VM) = 8 <0.1>\n\
        8 00:00:00.2 wait4(-1,  <unfinished ...>\n7 00:00:00.3 read(3, \"\", 1) = 0 <9.5>\n7 00:00:00.4 close(3) = 0 <0.1>\n\
        8 00:00:00.5 <... wait4 resumed>[], 0 <unfinished ...>\n8 00:00:00.6 --- SIGCHLD {si_pid=7} ---\n\
        8 00:00:00.7 <... wait4 resumed>) = 7 <0.5>\n8 00:00:00.8 futex(0x7 <detached ...>\n7 00:00:00.9 +++ exited with 0 +++\n";

    #[test]
    fn any_bytes_are_read_and_the_events_of_each_track_come_in_order_of_time() {
        // xorshift64 gives the same bytes in every run.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        let lines: Vec<&str> = TEXT.split_inclusive('\n').collect();
        for round in 0..3_000 {
            let mut text: Vec<u8> = match round % 3 {
                0 => TEXT.into(),
                _ => (0..12).flat_map(|_| lines[random(lines.len())].bytes()).collect(),
            };
            for _ in 0..random(6) {
                let at = random(text.len().max(1));
                match random(if text.is_empty() { 1 } else { 4 }) {
                    0 if text.is_empty() => text.push(b'7'),
                    0 => text[at] = random(256) as u8,
                    1 => _ = text.remove(at),
                    2 => text.insert(at, b"0123456789.:<>()=\n [\xff"[random(21)]),
                    _ => text.truncate(at.max(1)),
                }
            }
            read(&text, Order::Time, &mut InOrder::default()).unwrap();
            let _ = (detect(&text), is_without_times(&text));
        }
    }

    #[test]
    fn a_call_that_says_to_end_behind_the_next_line_of_its_thread_ends_there() {
        let report = read(TEXT.as_bytes(), Order::Time, &mut InOrder::default()).unwrap();
        assert!(
            report.irregular.iter().any(|line| line.starts_with("2 calls end at the next line")),
            "{report:?}"
        );
        assert_eq!((report.track_events.slices, report.track_events.instants), (7, 2), "{report:?}");
        assert!(report.damage.is_empty(), "{report:?}");
    }
}
