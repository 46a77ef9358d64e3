//! Reads ftrace as text: the kernel's `trace` and `trace_pipe`, the output of `atrace` (plain or `-z`) and of
//! `trace-cmd report`, and systrace's HTML pages that contain any of these.
//!
//! [`container`] takes the texts out of the file, [`other_layouts`] rewrites those of other layouts,
//! [`event_line`] parses a line up to the event's name, and [`event_classifier`] turns the rest of the line
//! into an event type and field values.

mod container;
mod cut_line;
mod event_classifier;
mod event_line;
mod other_layouts;

use std::io;
use std::ops::Range;

use super::input::Input;
use super::run_order::{RunCursor, RunItem, RunSorter, SortedRuns};
use super::text_lines::{FileMemory, lines};
use super::unpack_budget::{UnpackBudget, UnpackLimit};
use super::{
    Damage, Event, FormatError, Head, LossKind, LossPlace, OpenedInput, Order, Payload, ReadReport,
    Recording, Sink, event_catalog,
};
use crate::clock::{Clock, Snapshots, Timestamp};
use crate::formats::input::DETECTION_BYTES;
use crate::ids::Cpu;
use crate::varint;
use container::TextContents;
pub(super) use container::is_html_page;
use event_classifier::{EventClassifier, FieldValues};
pub(crate) use event_line::LOSSES_COMMENT;
use event_line::{EventLine, OtherLine};

/// How many damaged lines are reported one by one. Further ones are only counted.
const MAX_REPORTED_DAMAGE: usize = 10;
/// How many lines at the start of a text are searched for the number of CPUs.
const HEADER_LINES: usize = 30;
/// Why a line is left out.
const UNKNOWN_LINE: &str = "neither an event nor a comment";
const CUT_LINE: &str = "cut (neither an event nor a comment is whole in it)";
/// How many bytes of a damaged line are quoted in its report.
const QUOTED_BYTES: usize = 40;

/// An ftrace text or an HTML page whose texts are taken out of their container and whose head is read.
pub struct TextRecording<'a> {
    contents: TextContents<'a>,
    memory: FileMemory<'a>,
    head: Head,
    /// The damage and the notes from taking the text out of its container.
    opening_report: ReadReport,
}

/// Opens `input` as ftrace's text, or as an HTML page with such a text in it.
pub(super) fn open(input: &Input) -> Result<OpenedInput<'_>, FormatError> {
    let memory = FileMemory { owner: Some(input), len: input.len() };
    Ok(OpenedInput::Recording(Box::new(TextRecording::open_within(input, memory, &input.unpack_budget))))
}

/// Opens a text or an HTML page and pushes all of it to `sink`.
///
/// # Errors
/// The errors of the sink, and [`io::ErrorKind::InvalidData`] where the file has more event types than memory
/// should hold. All other faults of the file are listed as damage in the report.
pub fn read(data: &[u8], order: Order, sink: &mut dyn Sink) -> io::Result<ReadReport> {
    TextRecording::open(data).read(order, sink)
}

impl<'a> TextRecording<'a> {
    /// Takes the text out of its container. Any bytes can be opened; each reading reports the faults of the
    /// file.
    pub fn open(data: &'a [u8]) -> TextRecording<'a> {
        let memory = FileMemory::of_bytes(data.len());
        TextRecording::open_within(data, memory, &UnpackLimit::default().budget(data.len() as u64))
    }

    /// The same as [`TextRecording::open`], with the memory of the bytes, and a limit on what compressed
    /// texts may unpack to.
    fn open_within(data: &'a [u8], memory: FileMemory<'a>, budget: &UnpackBudget) -> TextRecording<'a> {
        let mut opening_report = ReadReport::default();
        let contents = container::open(data, memory, budget, &mut opening_report);
        let all_lines = contents.traces.iter().flat_map(|text| memory.lines(text));
        let first = all_lines.into_iter().find_map(|(_, line)| event_line::parse(line));
        let head = Head {
            format: contents.format.to_owned(),
            clock: Clock::Unknown,
            precision: first.map_or(6, |l| l.decimals),
            snapshots: Snapshots::default(),
            cpus: contents.traces.iter().find_map(|t| cpu_count(t)),
            machine: None,
            device: None,
            android_sdk: None,
            facts: None,
        };
        TextRecording { contents, memory, head, opening_report }
    }
}

impl Recording for TextRecording<'_> {
    fn head(&self) -> &Head {
        &self.head
    }

    fn read(&self, order: Order, sink: &mut dyn Sink) -> io::Result<ReadReport> {
        sink.head(&self.head)?;
        for table in &self.contents.ps_tables {
            container::read(table, sink)?;
        }
        let report = self.opening_report.clone();
        let classifier = EventClassifier::default();
        let mut reader = TextReader {
            sink,
            memory: self.memory,
            report,
            classifier,
            announced_events: 0,
            unknown_lines: 0,
            last_ts: Timestamp::MIN,
            is_out_of_order: false,
        };
        for text in &self.contents.traces {
            reader.read_text(text, order)?;
        }
        Ok(reader.finish())
    }
}

/// Pushes the events of a file's texts to a sink.
struct TextReader<'s> {
    sink: &'s mut dyn Sink,
    memory: FileMemory<'s>,
    report: ReadReport,
    classifier: EventClassifier,
    /// The number of events that the headers of the texts announce.
    announced_events: u64,
    /// Lines that are neither an event nor a comment.
    unknown_lines: u64,
    /// The time of the last event of the text.
    last_ts: Timestamp,
    /// Whether an event of the text was earlier than the one before it.
    is_out_of_order: bool,
}

impl TextReader<'_> {
    fn read_text(&mut self, text: &[u8], order: Order) -> io::Result<()> {
        let memory = self.memory;
        let is_in_order = match order {
            Order::Any => true,
            Order::Time => {
                memory.lines(text).filter_map(|(_, line)| event_line::parse(line)).is_sorted_by_key(|l| l.ts)
            }
            Order::Markers => {
                let markers = memory.pieces(text).flat_map(|(_, piece)| marker_lines(piece));
                markers.filter_map(event_line::parse).is_sorted_by_key(|l| l.ts)
            }
        };
        if !is_in_order {
            self.report.notes.push(OUT_OF_ORDER.into());
            let blocks = blocks_by_time(text, memory)?;
            for block in RunCursor::new(&blocks, &memory) {
                let start = block.start as usize;
                self.read_lines(text, start..start + block.len as usize)?;
            }
            return Ok(());
        }
        self.last_ts = Timestamp::MIN;
        self.is_out_of_order = false;
        self.read_lines(text, 0..text.len())?;
        if order == Order::Markers && self.is_out_of_order {
            self.report.notes.push(OUT_OF_ORDER.into());
        }
        Ok(())
    }

    /// Reads the lines in `range` of `text`. An event is pushed when the next line is read, because a marker
    /// may run over several lines.
    fn read_lines<'a>(&mut self, text: &'a [u8], range: Range<usize>) -> io::Result<()> {
        let mut values = FieldValues::new();
        // An event's line, and the offset in `text` of the end of the event.
        let mut pending: Option<(EventLine<'a>, usize)> = None;
        for (start, raw) in self.memory.lines(&text[range.clone()]) {
            let end = range.start + start + raw.len();
            if let Some(line) = event_line::parse(raw) {
                if let Some((line, end)) = pending.replace((line, end)) {
                    self.push_event(&line, text, end, &mut values)?;
                }
                continue;
            }
            match event_line::parse_other(raw) {
                OtherLine::Comment | OtherLine::Cpus(_) => {}
                OtherLine::Losses(losses) => self.report.losses.extend(losses),
                OtherLine::Lost { cpu, count } => {
                    if let Some((line, end)) = pending.take() {
                        self.push_event(&line, text, end, &mut values)?;
                    }
                    self.report.cpus.entry(cpu).or_default().add_loss(count);
                    self.sink.lost(cpu, count)?;
                }
                OtherLine::Entries { in_file, written } => {
                    self.announced_events = self.announced_events.saturating_add(in_file);
                    let overwritten = written.saturating_sub(in_file);
                    self.report.losses.add(LossKind::OverwrittenEntries, LossPlace::Recording, overwritten);
                }
                OtherLine::Unknown => match &mut pending {
                    Some((line, event_end)) if may_continue(line.rest) && end < text.len() => {
                        *event_end = end;
                    }
                    _ => self.note_line(range.start + start, raw, UNKNOWN_LINE),
                },
            }
        }
        match pending {
            Some((line, end)) if end == text.len() && cut_line::is_cut(line.rest) => {
                let start = memchr::memrchr(b'\n', text).map_or(0, |newline| newline + 1);
                self.note_line(start, &text[start..], CUT_LINE);
                Ok(())
            }
            Some((line, end)) => self.push_event(&line, text, end, &mut values),
            None => Ok(()),
        }
    }

    /// Counts a line that was left out, and why.
    fn note_line(&mut self, offset: usize, line: &[u8], why: &str) {
        self.unknown_lines += 1;
        if self.report.damage.len() < MAX_REPORTED_DAMAGE {
            let quoted = String::from_utf8_lossy(&line[..line.len().min(QUOTED_BYTES)]).into_owned();
            let what = format!("this line is {why} and was left out: {quoted:?}");
            self.report.damage.push(Damage { offset: offset as u64, what });
        }
    }

    /// Pushes the event of `line`. The event ends at offset `end` of `text`: at the end of its line, or of
    /// the last line that continues it.
    fn push_event<'a>(
        &mut self,
        line: &EventLine<'a>,
        text: &'a [u8],
        end: usize,
        values: &mut FieldValues<'a>,
    ) -> io::Result<()> {
        // `line.rest` is a slice of `text`, so that the distance of the two pointers is its offset.
        let rest_at = line.rest.as_ptr() as usize - text.as_ptr() as usize;
        let rest = text.get(rest_at..end).unwrap_or(line.rest);
        let (kind, printed) = self.classifier.classify(rest, values, self.sink)?;
        self.report.count(line.cpu, line.ts);
        self.is_out_of_order |= line.ts < self.last_ts;
        self.last_ts = line.ts;
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
        self.sink.event(&event, self.classifier.get(kind))
    }

    fn finish(mut self) -> ReadReport {
        let events = self.report.events();
        let announced = self.announced_events;
        if events < announced {
            let what =
                format!("the header announces {announced} events, {events} are here: the file was cut");
            self.report.damage.push(Damage { offset: 0, what });
        }
        if self.unknown_lines > MAX_REPORTED_DAMAGE as u64 {
            let note = format!("{} lines in all are neither an event nor a comment", self.unknown_lines);
            self.report.notes.push(note);
        }
        self.report
    }
}

/// Whether the text of the event `rest` may continue on the next lines: markers and stack traces do, and so
/// may events that the catalog does not know.
fn may_continue(rest: &[u8]) -> bool {
    let name = rest.split(|b| *b == b':').next().unwrap_or(rest);
    event_catalog::lookup(name).is_empty()
}

/// The number of CPUs that the header states: `#P:8` in the kernel's header, `cpus=8` in that of trace-cmd.
fn cpu_count(text: &[u8]) -> Option<u32> {
    lines(text).take(HEADER_LINES).find_map(|(_, l)| match event_line::parse_other(l) {
        OtherLine::Cpus(cpus) => Some(cpus),
        OtherLine::Entries { .. } => {
            let at = memchr::memmem::find(l, b"#P:")?;
            event_line::decimal(&l[at + 3..]).map(|(cpus, _)| cpus as u32)
        }
        _ => None,
    })
}

/// A line with an event and the lines that continue it.
#[derive(Clone, Copy)]
struct TextBlock {
    ts: Timestamp,
    cpu: Cpu,
    /// Offset in the text, and length, bytes.
    start: u64,
    len: u64,
}

impl<'a> RunItem<'a> for TextBlock {
    type Key = (Timestamp, Cpu, u64);
    type Source = FileMemory<'a>;

    fn key(&self) -> Self::Key {
        (self.ts, self.cpu, self.start)
    }

    fn store(&self, _: &FileMemory<'a>, out: &mut Vec<u8>) {
        for number in [self.ts.0, self.cpu.0.into(), self.start, self.len] {
            varint::push(out, number);
        }
    }

    fn load(rest: &mut &[u8], _: &'a FileMemory<'a>) -> Option<TextBlock> {
        let ts = Timestamp(varint::take(rest)?);
        let cpu = Cpu(varint::take(rest)? as u32);
        Some(TextBlock { ts, cpu, start: varint::take(rest)?, len: varint::take(rest)? })
    }
}

/// The most blocks that are sorted in memory. They take 16 MiB.
const RUN_BLOCKS: usize = 512 << 10;

/// The note about a text whose lines are sorted.
const OUT_OF_ORDER: &str = "the lines were not in order of time";

/// The lines that may hold a marker: they contain one of the names that [`EventClassifier`] takes for one.
/// The names are looked for in the whole text, which takes a small part of the time that reading its lines
/// takes.
fn marker_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let names = [&b"mark_write"[..], b"print:", b" 0:"];
    let mut places = names.map(|name| memchr::memmem::find_iter(text, name).peekable());
    let mut next_line = 0;
    std::iter::from_fn(move || {
        let mut first: Option<usize> = None;
        for places in &mut places {
            while places.next_if(|at| *at < next_line).is_some() {}
            first = first.into_iter().chain(places.peek().copied()).min();
        }
        let at = first?;
        let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |before| before + 1);
        let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |len| at + len);
        next_line = end;
        Some(&text[start..end])
    })
}

/// The blocks of a text's lines in order of time.
///
/// # Errors
/// Those of a temporary file, in which many blocks are.
fn blocks_by_time(text: &[u8], memory: FileMemory<'_>) -> io::Result<SortedRuns<TextBlock>> {
    let mut blocks = RunSorter::new(RUN_BLOCKS);
    let mut last: Option<TextBlock> = None;
    let mut end_last = |last: Option<TextBlock>, end: usize| {
        let ended = last.map(|last| TextBlock { len: end as u64 - last.start, ..last });
        ended.into_iter().for_each(|block| blocks.push(block, &memory));
    };
    for (start, l) in memory.lines(text) {
        let event = event_line::parse(l);
        // The line of a loss stands before the events that follow the loss. It is sorted by the time of the
        // event before it.
        let is_header_or_loss = event.is_none() && !matches!(event_line::parse_other(l), OtherLine::Unknown);
        let (ts, cpu) = match (event, &last) {
            (Some(l), _) => (l.ts, l.cpu),
            (None, Some(last)) if is_header_or_loss => (last.ts, last.cpu),
            (None, Some(_)) => continue,
            (None, None) => (Timestamp::MIN, Cpu(0)),
        };
        end_last(last.replace(TextBlock { ts, cpu, start: start as u64, len: 0 }), start);
    }
    end_last(last, text.len());
    blocks.finish(&memory)
}

/// The number of lines at the start of a text that are inspected.
const DETECTION_LINES: usize = 400;

/// Whether a file with these bytes is ftrace's text: it has ftrace's header, atrace's `TRACE:`, or a line
/// with `-12 [000] … 12.345678: name:` among the first lines.
pub(in crate::formats) fn detect(bytes: &[u8]) -> bool {
    let head = first_bytes(bytes);
    if head.trim_ascii_start().starts_with(b"# tracer:") {
        return !other_layouts::lacks_times(head);
    }
    let mut lines = head.split(|b| *b == b'\n').map(|l| l.trim_ascii()).take(DETECTION_LINES);
    !is_html_page(head)
        && lines.any(|line| {
            line.starts_with(b"# tracer:")
                || line.starts_with(b"TRACE:")
                || line == b"capturing trace... done"
                || line.starts_with(b"/proc/")
                || line.starts_with(b"proc/")
                || event_line::parse(line).is_some()
        })
}

fn first_bytes(bytes: &[u8]) -> &[u8] {
    bytes.get(..DETECTION_BYTES).unwrap_or(bytes)
}

/// Whether a file with these bytes is systrace's HTML page, in its old or its new form.
pub(in crate::formats) fn detect_html(bytes: &[u8]) -> bool {
    let sections: [&[u8]; 2] = [b"trace-data", b"linuxPerfData"];
    is_html_page(first_bytes(bytes))
        && sections.iter().any(|name| memchr::memmem::find(bytes, name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{EventType, ThreadInfo, Value};

    #[derive(Default)]
    struct TextEventLog(Vec<String>);

    impl Sink for TextEventLog {
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
        fn lost(&mut self, cpu: Cpu, count: Option<u64>) -> io::Result<()> {
            self.0.push(format!("lost {count:?} on {cpu}"));
            Ok(())
        }
    }

    fn read_log(data: &[u8], order: Order) -> (Vec<String>, ReadReport) {
        let mut log = TextEventLog::default();
        let report = read(data, order, &mut log).unwrap();
        (log.0, report)
    }

    const TWO: &str = "# tracer: nop\n a-1 [000] 1.5: tracing_mark_write: B|1|x\n a-1 [000] 1.6: 0: E\n";
    const TWO_READ: [&str; 2] = ["1500000000 print B|1|x", "1600000000 print E"];

    #[test]
    fn every_line_end_and_container_gives_the_same_events() {
        let zlib = |text: &str| {
            let mut z = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            io::Write::write_all(&mut z, text.as_bytes()).unwrap();
            [b"capturing trace... done\r\nTRACE:\r\n", &z.finish().unwrap()[..]].concat()
        };
        let page = format!(
            "<!DOCTYPE html><script>x='<script class=\\\"trace-data\\\">'</script>\n\
             <script class=\"trace-data\" type=\"application/text\">\n{TWO}</script></html>"
        );
        let old = format!(
            "<html><script>var linuxPerfData = \"\\\n{}\";</script></html>",
            TWO.replace('\n', "\\n\\\n")
        );
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
    fn a_page_behind_a_byte_order_mark_or_a_comment_is_a_page() {
        let page = format!(
            "<!DOCTYPE html><html><script class=\"trace-data\" type=\"application/text\">\n{TWO}</script></html>"
        );
        for before in ["", "\u{feff}", "<!-- saved by a browser -->\n"] {
            let page = format!("{before}{page}");
            assert!(detect_html(page.as_bytes()) && !detect(page.as_bytes()), "{before:?}");
            let (log, report) = read_log(page.as_bytes(), Order::Any);
            assert_eq!(log, TWO_READ, "{before:?}");
            assert!(!report.is_lossy(), "{before:?}: {report:?}");
        }
    }

    #[test]
    fn a_page_cut_anywhere_is_damaged() {
        let page = format!(
            "<!DOCTYPE html><html><body>\n<script class=\"trace-data\" type=\"application/text\">\n{TWO}</script>\n\
             </body>\n</html>\n"
        );
        assert!(!read_log(page.as_bytes(), Order::Any).1.is_lossy());
        for cut in 20..page.len() - 2 {
            assert!(read_log(&page.as_bytes()[..cut], Order::Any).1.is_lossy(), "cut at {cut}");
        }
    }

    #[test]
    fn lines_without_a_name_are_named_by_their_form() {
        for (line, name) in [
            ("#1     inner/outer(us):   12/11    ts:1499801089.066141940 count:1", "hwlat"),
            ("#1     context    irq timer_latency       932 ns", "timerlat"),
            ("1000000       190  99.98100   9     18      0    1007     18       1", "osnoise"),
            ("do_idle <-cpu_startup_entry", "function"),
            ("<stack trace>", "kernel_stack"),
            ("made up", "unknown"),
            ("1 2 3", "unknown"),
        ] {
            let text = format!("# tracer: nop\n a-1 [000] d... 1.5: {line}\n");
            let (log, _) = read_log(text.as_bytes(), Order::Any);
            assert!(log.join("\n").contains(name), "{line}: {log:?}");
        }
    }

    #[test]
    fn names_that_are_no_names_or_occur_twice_do_not_become_fields() {
        let line = |call: &str| format!("# tracer: nop\n a-1 [000] 1.5: {call}\n");
        for (call, last) in [
            ("sys_read(fd: 3, path: 7f \"a, b; c: d\")", "sys_enter_read 7f \"a, b; c: d\""),
            ("sys_getpid()", "sys_enter_getpid None"),
            ("sys_read(fd: 3, path: 7f, path: 8)", "sys_enter_read 7f, path: 8"),
            ("made_up: pid=1 pid=2", "made_up pid=1 pid=2"),
            ("sys_openat(: 3, filename: 7ff)", "unknown sys_openat(: 3, filename: 7ff)"),
            ("sys_openat(a;\tfield:int b: 3)", "unknown sys_openat(a;\tfield:int b: 3)"),
        ] {
            assert_eq!(read_log(line(call).as_bytes(), Order::Any).0, [format!("1500000000 {last}")]);
        }
    }

    #[test]
    fn a_cut_zlib_stream_gives_the_events_that_it_holds_and_is_reported() {
        let mut z = flate2::write::ZlibEncoder::new(b"TRACE:\n".to_vec(), flate2::Compression::none());
        io::Write::write_all(&mut z, TWO.as_bytes()).unwrap();
        let data = z.finish().unwrap();
        let (log, report) = read_log(&data[..data.len() - 20], Order::Any);
        assert_eq!(log, TWO_READ[..1]);
        assert!(report.is_lossy(), "{report:?}");
    }

    #[test]
    fn losses_are_pushed_between_the_events_that_they_separate() {
        let text = "# entries-in-buffer/entries-written: 2/12\n a-1 [000] 1.5: 0: E\n\
                    ##### CPU 1 buffer started ####\nCPU:0 [LOST 7 EVENTS]\n a-1 [000] 1.6: 0: E\n";
        let (log, report) = read_log(text.as_bytes(), Order::Any);
        assert_eq!(log, ["1500000000 print E", "lost None on 1", "lost Some(7) on 0", "1600000000 print E"]);
        assert_eq!((report.lost(), report.cpus[&Cpu(1)].gaps), (17, 1));
    }

    #[test]
    fn a_marker_may_run_over_lines_and_events_can_be_sorted_by_time() {
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
    fn markers_are_sorted_and_other_events_come_as_they_stand() {
        let other = |ts: &str| format!(" a-1 [000] {ts}: sched_process_exit: comm=a pid=1 prio=120\n");
        let marker = |ts: &str, name: &str| format!(" a-1 [000] {ts}: {name}: {ts}\n");
        let in_order = [other("1.9"), marker("1.5", "0"), other("1.2"), marker("1.6", "print")].concat();
        let (log, report) = read_log(in_order.as_bytes(), Order::Markers);
        let times = |log: &[String]| log.iter().map(|line| line[..2].to_owned()).collect::<Vec<_>>();
        assert_eq!(times(&log), ["19", "15", "12", "16"]);
        assert_eq!(report.notes, [OUT_OF_ORDER], "the text itself is not in order");
        let shuffled = [marker("1.5", "print"), other("1.1"), marker("1.4", "tracing_mark_write")].concat();
        let (log, report) = read_log(shuffled.as_bytes(), Order::Markers);
        assert_eq!(times(&log), ["11", "14", "15"]);
        assert_eq!(report.notes, [OUT_OF_ORDER]);
        assert!(read_log(TWO.as_bytes(), Order::Markers).1.notes.is_empty());
    }

    #[test]
    fn garbage_gives_no_events() {
        for data in [&b""[..], b"\0\0\0", b"hello\nworld\n", b"<html></html>", b"TRACE:\n\x78\x9c\xff"] {
            let (log, _) = read_log(data, Order::Time);
            assert!(log.is_empty());
        }
        let (log, report) =
            read_log(b" a-1 [000] 1.5: 0: E\n  <idle>-0     [000] d..2  1136.0972", Order::Any);
        assert_eq!((log.len(), report.damage.len()), (1, 1), "the cut last line is reported");
        // Also where its time is whole, and the event's name is not; not where the line has ended.
        for (end, expected) in
            [("sys_en", (1, 1)), ("sys_en\n", (2, 0)), ("", (1, 1)), ("sys_close()", (2, 0))]
        {
            let text = format!(" a-1 [000] 1.5: 0: E\n a-1 [000] 1.6: {end}");
            let (log, report) = read_log(text.as_bytes(), Order::Time);
            assert_eq!((log.len(), report.damage.len()), expected, "{end:?}: {report:?}");
        }
    }
}
