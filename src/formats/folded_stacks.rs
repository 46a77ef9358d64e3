//! Folded stacks as samples: the lines `outermost;…;innermost 123` that flamegraph.pl, inferno and speedscope
//! read. The collapsers of perf, simpleperf and async-profiler write them, and so does `profile --folded`.
//!
//! perf's and simpleperf's collapsers and tracebridge begin each line with the thread. Others begin it with a
//! function. A first name that also stands deeper in a line is a function, and then all first names are.

use std::io;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Damage;
use super::input::{DETECTION_BYTES, Input};
use super::recording::{FormatError, OpenedInput};
use super::samples::{
    FrameIndex, FrameKind, NO_STACK, Sample, SampleCollector, SampleEvent, SampleModule, SampleReading,
    SampleRecording, SampleSink,
};
use crate::clock::{Clock, Timestamp};
use crate::ids::{Pid, Tid};
use crate::progress::{self, Pass};

/// The name of the event type: the lines do not say what they count.
const EVENT: &str = "count";
/// The most threads. In a file with more first names these are functions.
const MAX_THREADS: usize = 1 << 16;
/// The most places without a stack that are listed.
const MAX_LISTED_LINES: usize = 16;

/// Whether these are the bytes of folded stacks: a text in which each line ends with a number, and some line
/// has several names.
pub(super) fn detect(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(DETECTION_BYTES)];
    // The last line that is looked at may be cut.
    let end =
        if start.len() < bytes.len() { memchr::memrchr(b'\n', start).unwrap_or(0) } else { start.len() };
    let start = &start[..end];
    if start.contains(&0) {
        return false;
    }
    let mut has_stack = false;
    for line in lines(start).filter(|line| !is_left_out(line)) {
        match FoldedLine::parse(line) {
            Some(line) if !line.stack.ends_with(b"=") => has_stack |= line.stack.contains(&b';'),
            _ => return false,
        }
    }
    has_stack
}

/// Opens folded stacks.
pub(super) fn open(input: &Input) -> Result<OpenedInput<'_>, FormatError> {
    Ok(OpenedInput::Samples(Box::new(FoldedFile { data: input })))
}

/// A file of folded stacks.
struct FoldedFile<'a> {
    data: &'a [u8],
}

/// The lines of a text, without the bytes that end them.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// Whether a line is empty or a comment.
fn is_left_out(line: &[u8]) -> bool {
    line.is_empty() || line.starts_with(b"#")
}

/// A line: names between semicolons, and a number.
struct FoldedLine<'a> {
    stack: &'a [u8],
    count: u64,
    /// Whether the number has a fraction, which is rounded.
    is_rounded: bool,
    /// Whether a second number stands before the last, as in a comparison of two profiles.
    is_comparison: bool,
}

impl<'a> FoldedLine<'a> {
    fn parse(line: &'a [u8]) -> Option<FoldedLine<'a>> {
        let space = memchr::memrchr(b' ', line)?;
        let (count, is_rounded) = number(&line[space + 1..])?;
        let stack = line[..space].trim_ascii_end();
        let before = memchr::memrchr(b' ', stack).filter(|at| number(&stack[at + 1..]).is_some());
        (!stack.is_empty()).then_some(FoldedLine {
            stack,
            count,
            is_rounded,
            is_comparison: before.is_some_and(|at| at > 0),
        })
    }

    /// The names, the outermost first.
    fn names(&self) -> impl Iterator<Item = &'a [u8]> {
        self.stack.split(|byte| *byte == b';')
    }
}

/// A number of digits with an optional fraction, and whether it has one.
fn number(text: &[u8]) -> Option<(u64, bool)> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = std::str::from_utf8(text.get(..digits)?).ok()?.parse::<u64>().ok()?;
    match &text[digits..] {
        [] => Some((whole, false)),
        [b'.', fraction @ ..] if !fraction.is_empty() && fraction.iter().all(u8::is_ascii_digit) => {
            Some((whole.saturating_add(u64::from(fraction[0] >= b'5')), true))
        }
        _ => None,
    }
}

impl SampleRecording for FoldedFile<'_> {
    fn format(&self) -> String {
        "folded stacks".to_owned()
    }

    fn clock(&self) -> Clock {
        Clock::Unknown
    }

    fn facts(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn read(&self, sink: &mut dyn SampleSink) -> io::Result<SampleReading> {
        let _pass = Pass::begin("reading samples", 2 * self.data.len() as u64);
        let mut reader = FoldedReader {
            has_threads: has_threads(self.data),
            collector: SampleCollector::default(),
            threads: FxHashMap::default(),
            frames: FxHashMap::default(),
            index: FrameIndex::default(),
            modules: FxHashMap::default(),
            lines: 0,
            comparisons: 0,
            rounded: 0,
            broken: Vec::new(),
            more_broken: 0,
        };
        let event = SampleEvent { name: EVENT.to_owned(), ..SampleEvent::default() };
        reader.collector.reading.tables.events.push(event);
        reader.collector.reading.tables.modules.push(SampleModule::default());
        // A comparison has two numbers in every line. A name may end with a number in some.
        let mut all = lines(self.data).filter(|line| !is_left_out(line)).peekable();
        let is_comparison = all.peek().is_some()
            && all.all(|line| FoldedLine::parse(line).is_some_and(|line| line.is_comparison));
        let mut offset = 0;
        for line in lines(self.data) {
            progress::advance(line.len() as u64 + 1);
            if !is_left_out(line) {
                reader.line(line, offset, is_comparison, sink)?;
            }
            offset = line.as_ptr() as usize - self.data.as_ptr() as usize + line.len() + 1;
        }
        reader.finish(is_comparison, sink)
    }
}

/// Whether the first name of each line is that of a thread.
fn has_threads(text: &[u8]) -> bool {
    let parsed = || lines(text).filter(|line| !is_left_out(line)).filter_map(FoldedLine::parse);
    let mut firsts: FxHashSet<&[u8]> = FxHashSet::default();
    for line in parsed() {
        firsts.extend(line.names().next());
        if firsts.len() > MAX_THREADS {
            return false;
        }
    }
    progress::advance(text.len() as u64);
    let mut all = parsed();
    !all.any(|line| line.names().skip(1).any(|name| firsts.contains(name)))
}

struct FoldedReader<'a> {
    has_threads: bool,
    collector: SampleCollector,
    threads: FxHashMap<&'a [u8], u32>,
    frames: FxHashMap<&'a [u8], u32>,
    index: FrameIndex,
    modules: FxHashMap<String, u32>,
    lines: u64,
    comparisons: u64,
    rounded: u64,
    /// Offsets of lines that are no stacks, and the number of those that are not listed.
    broken: Vec<u64>,
    more_broken: u64,
}

impl<'a> FoldedReader<'a> {
    fn line(
        &mut self,
        line: &'a [u8],
        offset: usize,
        is_comparison: bool,
        sink: &mut dyn SampleSink,
    ) -> io::Result<()> {
        self.lines += 1;
        let Some(mut parsed) = FoldedLine::parse(line) else {
            if self.broken.len() < MAX_LISTED_LINES {
                self.broken.push(offset as u64);
            } else {
                self.more_broken += 1;
            }
            return Ok(());
        };
        if is_comparison && let Some(at) = memchr::memrchr(b' ', parsed.stack) {
            parsed.stack = parsed.stack[..at].trim_ascii_end();
            self.comparisons += 1;
        }
        self.rounded += u64::from(parsed.is_rounded);
        if parsed.count == 0 {
            return Ok(());
        }
        let mut names = parsed.names();
        let thread = if self.has_threads { names.next().unwrap_or(b"") } else { b"" };
        let thread = self.thread(thread);
        let mut stack = NO_STACK;
        for name in names {
            let frame = self.frame(name);
            stack = self.collector.reading.tables.stacks.child(stack, frame);
        }
        let sample =
            Sample { time: Timestamp::MIN, thread, event: 0, stack, cpu: None, period: parsed.count };
        self.collector.take(sample, sink)
    }

    fn thread(&mut self, name: &'a [u8]) -> u32 {
        if let Some(thread) = self.threads.get(name) {
            return *thread;
        }
        // Without ids the threads are numbered.
        let tid = Tid(self.threads.len() as i32 + 1);
        let text = String::from_utf8_lossy(name).into_owned();
        let thread = self.collector.add_thread(Pid::default(), tid, text);
        self.threads.insert(name, thread);
        thread
    }

    fn frame(&mut self, name: &'a [u8]) -> u32 {
        if let Some(frame) = self.frames.get(name) {
            return *frame;
        }
        let named = NamedFrame::parse(&String::from_utf8_lossy(name));
        let tables = &mut self.collector.reading.tables;
        let module = if named.module.is_empty() {
            0
        } else {
            *self.modules.entry(named.module).or_insert_with_key(|path| {
                tables.modules.push(SampleModule { path: path.clone(), ..SampleModule::default() });
                tables.modules.len() as u32 - 1
            })
        };
        let frame = self.index.intern(tables, &named.name, module, named.kind, named.address);
        tables.frames[frame as usize].has_symbol = named.has_symbol;
        self.frames.insert(name, frame);
        frame
    }

    fn finish(self, is_comparison: bool, sink: &mut dyn SampleSink) -> io::Result<SampleReading> {
        let mut reading = self.collector.finish(sink)?;
        let report = &mut reading.report;
        report.damage.extend(self.broken.iter().map(|offset| Damage {
            offset: *offset,
            what: "the line is no stack: it does not end with a number".to_owned(),
        }));
        if self.more_broken > 0 {
            let what = format!("{} more lines are no stacks", self.more_broken);
            report.damage.push(Damage { offset: 0, what });
        }
        if self.has_threads && self.lines > 0 {
            report.notes.push("the first name of each line is taken for that of the thread".to_owned());
        }
        if is_comparison {
            let what =
                "each line has two numbers, as in a comparison of two profiles: the second one is read";
            report.notes.push(what.to_owned());
        }
        if self.rounded > 0 {
            report.notes.push(format!("{} numbers have fractions, which are rounded", self.rounded));
        }
        Ok(reading)
    }
}

/// The parts of a name in a line.
struct NamedFrame {
    name: String,
    has_symbol: bool,
    kind: FrameKind,
    /// The file of a function without a symbol; else empty.
    module: String,
    address: u64,
}

impl NamedFrame {
    /// Takes a name apart. Collapsers mark functions of the kernel, compiled methods and inlined functions by
    /// `_[k]`, `_[j]` and `_[i]` behind the name, and write `[libfoo.so]` for an unknown function of a file;
    /// tracebridge writes `libfoo.so+0x1234`.
    fn parse(text: &str) -> NamedFrame {
        let marks = [("_[k]", FrameKind::Kernel), ("_[j]", FrameKind::Java), ("_[i]", FrameKind::Native)];
        let marked = marks.iter().find_map(|(mark, kind)| Some((text.strip_suffix(mark)?, *kind)));
        let (name, kind) = marked.unwrap_or((text, FrameKind::Native));
        let known = |name: String, kind| NamedFrame {
            name,
            has_symbol: true,
            kind,
            module: String::new(),
            address: 0,
        };
        if kind == FrameKind::Java {
            return known(name.replace('/', "."), kind);
        }
        if let Some(file) = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
            let module = if file == "unknown" { String::new() } else { file.to_owned() };
            return NamedFrame { has_symbol: false, module, ..known(name.to_owned(), kind) };
        }
        if let Some((file, digits)) = name.rsplit_once("+0x")
            && let Ok(address) = u64::from_str_radix(digits, 16)
        {
            let module = if file == "[unknown]" { String::new() } else { file.to_owned() };
            return NamedFrame { has_symbol: false, module, address, ..known(name.to_owned(), kind) };
        }
        known(name.to_owned(), kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::samples::{CountOnly, SampleTables};

    /// Collects samples: thread, functions from the outermost, and count.
    #[derive(Default)]
    struct FoldedLog(Vec<(String, Vec<String>, u64)>);

    impl SampleSink for FoldedLog {
        fn sample(&mut self, tables: &SampleTables, sample: &Sample) -> io::Result<()> {
            let names = tables.stacks.frames(sample.stack).map(|n| tables.frames[n as usize].name.clone());
            let mut names: Vec<String> = names.collect();
            names.reverse();
            self.0.push((tables.threads[sample.thread as usize].name.clone(), names, sample.period));
            Ok(())
        }
    }

    fn read(text: &str) -> (Vec<(String, Vec<String>, u64)>, SampleReading) {
        let mut log = FoldedLog::default();
        let reading = FoldedFile { data: text.as_bytes() }.read(&mut log).unwrap();
        (log.0, reading)
    }

    #[test]
    fn lines_are_samples_of_threads_with_their_numbers() {
        let (samples, reading) =
            read("# a comment\nmain;a;b 3\r\nmain;a 2.5\nRender Thread;c;libx.so+0x10 7\n\nmain 1\n");
        let line = |thread: &str, names: &[&str], count| {
            (thread.to_owned(), names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), count)
        };
        let expected = [
            line("main", &["a", "b"], 3),
            line("main", &["a"], 3),
            line("Render Thread", &["c", "libx.so+0x10"], 7),
            line("main", &[], 1),
        ];
        assert_eq!(samples, expected);
        let unknown = &reading.tables.frames[3];
        assert_eq!((unknown.has_symbol, unknown.address), (false, 0x10), "{unknown:?}");
        assert_eq!(reading.tables.modules[unknown.module as usize].path, "libx.so");
        assert_eq!(reading.report.notes.len(), 2, "the threads, and the fraction");
    }

    #[test]
    fn a_first_name_that_is_also_a_caller_is_a_function() {
        let (samples, _) = read("run;a 1\nrun;run;b 2\n");
        assert_eq!(samples[1].1, ["run", "run", "b"]);
        assert_eq!(samples[1].0, "");
    }

    #[test]
    fn marks_of_collapsers_are_kinds() {
        let (_, reading) = read("java;java/lang/Thread.run_[j];do_syscall_64_[k];[libc.so.6] 4\n");
        let frames: Vec<_> =
            reading.tables.frames.iter().map(|f| (f.name.as_str(), f.kind, f.has_symbol)).collect();
        let expected = [
            ("java.lang.Thread.run", FrameKind::Java, true),
            ("do_syscall_64", FrameKind::Kernel, true),
            ("[libc.so.6]", FrameKind::Native, false),
        ];
        assert_eq!(frames, expected);
    }

    #[test]
    fn of_a_comparison_the_second_number_is_read() {
        let (samples, reading) = read("t;a 1 5\nt;b 0 2\n");
        assert_eq!(samples.iter().map(|sample| sample.2).collect::<Vec<_>>(), [5, 2]);
        assert_eq!(samples[0].1, ["a"]);
        assert!(reading.report.notes.iter().any(|note| note.contains("comparison")));
    }

    #[test]
    fn a_line_that_is_no_stack_is_damage_at_its_offset() {
        let (samples, reading) = read("t;a 1\nt;b\nt;c 2\n");
        assert_eq!(samples.len(), 2);
        assert_eq!(reading.report.damage[0].offset, 6);
    }

    #[test]
    fn folded_stacks_are_told_from_other_texts() {
        for (text, is_folded) in [
            ("a;b 1\n", true),
            ("a b;c 1\nd 2\n", true),
            ("a 1\nb 2\n", false),
            ("read(3, \"a;b\", 5) = 3\n", false),
            ("a;b c\n", false),
            ("hello\n", false),
            ("", false),
        ] {
            assert_eq!(detect(text.as_bytes()), is_folded, "{text}");
        }
        let long = "a;b 1\n".repeat(DETECTION_BYTES);
        assert!(detect(long.as_bytes()), "the last line that is looked at may be cut");
    }

    #[test]
    fn a_text_cut_anywhere_is_read_as_far_as_it_goes() {
        let text: String = (0..40).map(|n| format!("main;f{n};g 7\n")).collect();
        for cut in 0..text.len() {
            let reading = FoldedFile { data: &text.as_bytes()[..cut] }.read(&mut CountOnly).unwrap();
            let whole = text[..cut].matches('\n').count() as u64;
            let found = reading.tables.events[0].samples;
            assert!(found == whole || found == whole + 1, "cut at {cut}: {found} of {whole}");
        }
    }
}
