//! Reads ftrace as text: the kernel's `trace` and `trace_pipe`, what `atrace` prints (plain or `-z`), what `trace-cmd
//! report` prints, and systrace's HTML pages around any of these.
//!
//! The lines are those of kernel/trace/trace_output.c; [`line`] takes them apart, [`kinds`] makes typed fields of
//! what stands behind the event's name, [`wrapping`] takes away what is around the text.

mod html;
mod kinds;
mod line;
mod tasks;
mod wrapping;

use std::borrow::Cow;
use std::io;

use super::known;
use super::{Damage, Event, Head, Order, Payload, ReadReport, Sink};
use crate::clock::{Clock, Snapshots};
use kinds::{Kinds, Values};
use line::{Line, Other};

/// Places of damage that are told one by one; further ones are counted.
const MAX_DAMAGE: usize = 10;

/// Reads all of a text or an HTML page.
///
/// # Errors
/// Only the sink's own, and [`io::ErrorKind::InvalidData`] where the file brings more kinds of events than memory should
/// hold. Whatever else is wrong is in the report's damage.
pub fn read(data: &[u8], order: Order, sink: &mut dyn Sink) -> io::Result<ReadReport> {
    let mut report = ReadReport::default();
    let parts = wrapping::unwrap(data, &mut report);
    let first = parts.texts.iter().flat_map(|t| lines(t)).find_map(|(_, l)| line::parse(l));
    let pound_p = parts.texts.iter().find_map(|t| cpu_count(t));
    sink.head(&Head {
        format: parts.format.to_string(),
        clock: Clock::Unknown,
        precision: first.map_or(6, |l| l.decimals),
        snapshots: Snapshots::default(),
        cpus: pound_p,
        machine: None,
    })?;
    let mut reader = Reader { sink, report, kinds: Kinds::default(), announced: 0, unknown_lines: 0 };
    for text in &parts.tasks {
        tasks::read(text, reader.sink)?;
    }
    for text in &parts.texts {
        reader.text(text, order)?;
    }
    Ok(reader.finish())
}

struct Reader<'s> {
    sink: &'s mut dyn Sink,
    report: ReadReport,
    kinds: Kinds,
    /// Events that the headers say are in the file.
    announced: u64,
    unknown_lines: u64,
}

impl Reader<'_> {
    fn text(&mut self, text: &[u8], order: Order) -> io::Result<()> {
        if order == Order::Time
            && let Some(sorted) = sort(text)
        {
            self.report.notes.push("the lines were not in order of time".into());
            for (_, _, start, end) in sorted {
                self.block(text, &text[start..end], start)?;
            }
            return Ok(());
        }
        self.block(text, text, 0)
    }

    /// Reads lines; `text` as a whole is at hand because a marker may run over several lines. `at` is where `block`
    /// lies in it.
    fn block<'a>(&mut self, text: &'a [u8], block: &'a [u8], at: usize) -> io::Result<()> {
        let mut values = Values::new();
        let mut pending: Option<(Line<'a>, usize)> = None;
        for (start, raw) in lines(block) {
            let start = at + start;
            if let Some(found) = line::parse(raw) {
                if let Some((line, end)) = pending.take() {
                    self.event(&line, text, end, &mut values)?;
                }
                pending = Some((found, start + raw.len()));
                continue;
            }
            match line::other(raw) {
                Other::Nothing if raw.is_empty() => {}
                Other::Nothing => {}
                Other::Lost { cpu, count } => {
                    if let Some((line, end)) = pending.take() {
                        self.event(&line, text, end, &mut values)?;
                    }
                    let entry = self.report.cpus.entry(cpu).or_default();
                    match count {
                        Some(count) => entry.lost += count,
                        None => entry.gaps += 1,
                    }
                    self.sink.lost(cpu, count)?;
                }
                Other::Entries { held, written } => {
                    self.announced += held;
                    self.report.lost_anywhere += written.saturating_sub(held);
                }
                Other::Cpus(_) => {}
                Other::Unknown => match &mut pending {
                    Some((line, end)) if runs_on(line.rest) && start + raw.len() < text.len() => {
                        *end = start + raw.len();
                    }
                    _ => self.unknown(start, raw),
                },
            }
        }
        match pending {
            Some((line, end)) => self.event(&line, text, end, &mut values),
            None => Ok(()),
        }
    }

    fn unknown(&mut self, offset: usize, raw: &[u8]) {
        self.unknown_lines += 1;
        if self.report.damage.len() < MAX_DAMAGE {
            let shown = String::from_utf8_lossy(&raw[..raw.len().min(40)]).into_owned();
            let what = format!("neither an event nor a comment, left out: {shown:?}");
            self.report.damage.push(Damage { offset: offset as u64, what });
        }
    }

    /// `end` is where the event's text ends in `text`: behind its line, or behind the lines that continue it.
    fn event<'a>(
        &mut self,
        line: &Line<'a>,
        text: &'a [u8],
        end: usize,
        values: &mut Values<'a>,
    ) -> io::Result<()> {
        // Both are slices of one text: the distance is the offset.
        let rest_at = line.rest.as_ptr() as usize - text.as_ptr() as usize;
        let rest = text.get(rest_at..end).unwrap_or(line.rest);
        let (kind, printed) = self.kinds.classify(rest, values, self.sink)?;
        self.report.count(line.cpu, line.ts);
        let (array, mut with_array);
        let mut list = &values.list;
        if let Some(at) = values.array_field {
            array = values.array;
            with_array = values.list;
            with_array[at] = super::Value::Bytes(&array);
            list = &with_array;
        }
        let event = Event {
            ts: line.ts,
            cpu: line.cpu,
            tid: line.tid,
            kind,
            flags: line.flags,
            preempt_count: line.preempt_count,
            comm: (line.comm != b"<...>").then_some(line.comm),
            tgid: line.tgid,
            payload: Payload::Values { values: &list[..values.len], text: Some(printed) },
        };
        self.sink.event(&event, self.kinds.get(kind))
    }

    fn finish(mut self) -> ReadReport {
        let events = self.report.events();
        if events < self.announced {
            let what = format!(
                "the header announces {} events, {events} are here: the file was cut",
                self.announced
            );
            self.report.damage.push(Damage { offset: 0, what });
        }
        if self.unknown_lines > MAX_DAMAGE as u64 {
            self.report.notes.push(format!("{} lines are no events in all", self.unknown_lines));
        }
        self.report
    }
}

/// Whether an event's text may go on over the next lines: markers and stack traces do, and events of formats that the
/// table does not know to be of one line.
fn runs_on(rest: &[u8]) -> bool {
    let name = rest.split(|b| *b == b':').next().unwrap_or(rest);
    known::lookup(name).is_empty()
}

/// The lines without their ends, each with its offset.
fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|r| !r.is_empty())?;
        let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let start = at;
        at += len + 1;
        Some((start, wrapping::trim_line(&rest[..len])))
    })
}

/// `#P:8` of the header, `cpus=8` of trace-cmd's.
fn cpu_count(text: &[u8]) -> Option<u32> {
    lines(text).take(30).find_map(|(_, l)| match line::other(l) {
        Other::Cpus(cpus) => Some(cpus),
        Other::Entries { .. } => {
            let at = memchr::memmem::find(l, b"#P:")?;
            line::decimal(&l[at + 3..]).map(|(cpus, _)| cpus as u32)
        }
        _ => None,
    })
}

/// (time, CPU, start, end) of each event with the lines that belong to it.
type Block = (u64, u32, usize, usize);

/// The blocks of a text in order of time; `None` where they are in that order already.
fn sort(text: &[u8]) -> Option<Vec<Block>> {
    let mut last = (0, 0);
    let sorted = lines(text).filter_map(|(_, l)| line::parse(l)).all(|l| {
        let now = (l.ts, 0);
        std::mem::replace(&mut last, now) <= now
    });
    if sorted {
        return None;
    }
    let mut blocks: Vec<Block> = Vec::new();
    for (start, l) in lines(text) {
        let found = line::parse(l);
        // A loss stands before the events it concerns: it stays with the time of the event before it.
        let alone = found.is_none() && !matches!(line::other(l), Other::Unknown);
        match (found, blocks.last_mut()) {
            (Some(l), _) => blocks.push((l.ts, l.cpu, start, start)),
            (None, Some((ts, cpu, ..))) if alone => {
                let before = (*ts, *cpu, start, start);
                blocks.push(before);
            }
            (None, Some(_)) => {}
            (None, None) => blocks.push((0, 0, start, start)),
        }
    }
    let ends: Vec<usize> = blocks.iter().skip(1).map(|b| b.2).chain([text.len()]).collect();
    for (block, end) in blocks.iter_mut().zip(ends) {
        block.3 = end;
    }
    blocks.sort_by_key(|b| (b.0, b.1));
    Some(blocks)
}

/// A part of the file as it is, or taken out of its wrapping.
type Text<'a> = Cow<'a, [u8]>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{EventType, ThreadInfo, Value};

    #[derive(Default)]
    struct Log(Vec<String>);

    impl Sink for Log {
        fn thread(&mut self, t: &ThreadInfo<'_>) -> io::Result<()> {
            self.0.push(format!("thread {} of {:?}", t.tid, t.tgid));
            Ok(())
        }
        fn event(&mut self, e: &Event<'_>, kind: &EventType) -> io::Result<()> {
            let last = kind.fields.len().saturating_sub(1);
            let value = match e.value(kind, last) {
                Some(Value::Str(s)) => String::from_utf8_lossy(s).into_owned(),
                other => format!("{other:?}"),
            };
            self.0.push(format!("{} {} {value}", e.ts, kind.name));
            Ok(())
        }
        fn lost(&mut self, cpu: u32, count: Option<u64>) -> io::Result<()> {
            self.0.push(format!("lost {count:?} on {cpu}"));
            Ok(())
        }
    }

    fn read_log(data: &[u8], order: Order) -> (Vec<String>, ReadReport) {
        let mut log = Log::default();
        let report = read(data, order, &mut log).unwrap();
        (log.0, report)
    }

    const TWO: &str = "# tracer: nop\n a-1 [000] 1.5: tracing_mark_write: B|1|x\n a-1 [000] 1.6: 0: E\n";
    const TWO_READ: [&str; 2] = ["1500000000 print B|1|x", "1600000000 print E"];

    #[test]
    fn every_line_end_and_wrapping_gives_the_same_events() {
        let zlib = |text: &str| {
            let mut z = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            io::Write::write_all(&mut z, text.as_bytes()).unwrap();
            [b"capturing trace... done\r\nTRACE:\r\n", &z.finish().unwrap()[..]].concat()
        };
        let page = format!(
            "<!DOCTYPE html><script>x='<script class=\\\"trace-data\\\">'</script>\n\
             <script class=\"trace-data\" type=\"application/text\">\n{TWO}</script>"
        );
        let old =
            format!("<html><script>var linuxPerfData = \"\\\n{}\";</script>", TWO.replace('\n', "\\n\\\n"));
        for data in [
            TWO.into(),
            TWO.trim_end().into(),
            TWO.replace('\n', "\r\n").into_bytes(),
            TWO.replace('\n', "\r\r\n").into_bytes(),
            TWO.replace('\n', "\\n\\\n").into_bytes(),
            format!("capturing trace...\n done\nTRACE:\n{TWO}").into_bytes(),
            zlib(TWO),
            page.into_bytes(),
            old.into_bytes(),
        ] {
            let shown = String::from_utf8_lossy(&data).into_owned();
            let (log, report) = read_log(&data, Order::Any);
            assert_eq!(log, TWO_READ, "{shown}");
            assert!(!report.is_lossy(), "{shown}: {report:?}");
        }
    }

    #[test]
    fn a_cut_zlib_stream_gives_what_it_holds_and_says_so() {
        let mut z = flate2::write::ZlibEncoder::new(b"TRACE:\n".to_vec(), flate2::Compression::none());
        io::Write::write_all(&mut z, TWO.as_bytes()).unwrap();
        let data = z.finish().unwrap();
        let (log, report) = read_log(&data[..data.len() - 20], Order::Any);
        assert_eq!(log, TWO_READ[..1]);
        assert!(report.is_lossy(), "{report:?}");
    }

    #[test]
    fn gaps_and_counted_losses_are_told_where_they_are() {
        let text = "# entries-in-buffer/entries-written: 2/12\n a-1 [000] 1.5: 0: E\n\
                    ##### CPU 1 buffer started ####\nCPU:0 [LOST 7 EVENTS]\n a-1 [000] 1.6: 0: E\n";
        let (log, report) = read_log(text.as_bytes(), Order::Any);
        assert_eq!(log, ["1500000000 print E", "lost None on 1", "lost Some(7) on 0", "1600000000 print E"]);
        assert_eq!((report.lost(), report.cpus[&1].gaps), (17, 1));
    }

    #[test]
    fn a_marker_may_run_over_lines_and_order_can_be_asked_for() {
        let text = " a-1 [000] 2.5: print: 0xffffs: two\nlines\n a-1 [000] 1.6: 0: E\n";
        assert_eq!(
            read_log(text.as_bytes(), Order::Any).0,
            ["2500000000 print two\nlines", "1600000000 print E"]
        );
        assert_eq!(
            read_log(text.as_bytes(), Order::Time).0,
            ["1600000000 print E", "2500000000 print two\nlines"]
        );
    }

    #[test]
    fn garbage_is_no_trace_and_harms_nothing() {
        for data in [&b""[..], b"\0\0\0", b"hello\nworld\n", b"<html></html>", b"TRACE:\n\x78\x9c\xff"] {
            let (log, _) = read_log(data, Order::Time);
            assert!(log.is_empty());
        }
        let (log, report) =
            read_log(b" a-1 [000] 1.5: 0: E\n  <idle>-0     [000] d..2  1136.0972", Order::Any);
        assert_eq!((log.len(), report.damage.len()), (1, 1), "the cut last line is said");
    }
}
