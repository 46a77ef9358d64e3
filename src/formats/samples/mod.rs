//! Samples: what threads executed at moments in time, each with its stack of calls. Every reader of samples
//! implements [`SampleRecording`], so that whoever counts, draws or writes samples knows no format.
//!
//! Stacks are interned: a sample names its stack by a number, and [`SampleTables`] has the frames behind it.

mod symbol_name;

use std::io;

use rustc_hash::FxHashMap;

use super::{LossKind, LossPlace, ReadReport};
use crate::clock::{Clock, Timestamp};
use crate::ids::{Cpu, Pid, Tid};

pub(crate) use symbol_name::readable;

/// The part of the system that a frame's code belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameKind {
    /// Machine code of a library or a program.
    #[default]
    Native,
    /// The kernel or one of its modules.
    Kernel,
    /// A method of Java or Kotlin, interpreted, or compiled before or while it ran.
    Java,
}

/// A function on a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleFrame {
    /// The function's name for people, demangled. A frame without a symbol is named by its place:
    /// `libfoo.so+0x1234`.
    pub name: String,
    /// Whether the function has a symbol.
    pub has_symbol: bool,
    /// The code's owner.
    pub kind: FrameKind,
    /// The index of the file that holds the code in [`SampleTables::modules`].
    pub module: u32,
    /// For a frame without a symbol the address in the file; else the address of its first use, or 0 where
    /// the recording has no addresses.
    pub address: u64,
}

impl SampleFrame {
    /// The class and the name of a method of Java. An unknown method is named by its file, and has no class.
    pub(crate) fn method(&self) -> Option<(&str, &str)> {
        let is_method = self.has_symbol && self.kind == FrameKind::Java;
        self.name.rsplit_once('.').filter(|_| is_method)
    }
}

/// A file with code: a library, a program, the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct SampleModule {
    /// The path on the recorded machine; `[kernel.kallsyms]` for the kernel, empty where it is not known.
    pub path: String,
    /// The build id in hexadecimal digits; empty where the recording does not state it.
    pub build_id: String,
    /// Whether the addresses of frames without a symbol are offsets in the file. Otherwise they are virtual
    /// addresses of the file.
    pub has_offsets: bool,
}

impl SampleModule {
    /// The last part of the path; `[unknown]` for code that lies in no known file.
    pub fn file_name(&self) -> &str {
        match self.path.rsplit('/').next() {
            None | Some("") => "[unknown]",
            Some(name) => name,
        }
    }
}

/// The path of the kernel itself.
pub(crate) const KERNEL_PATH: &str = "[kernel.kallsyms]";

/// Whether a file is the kernel or one of its modules.
pub(crate) fn is_kernel_file(path: &str) -> bool {
    path.starts_with("[kernel") || path.ends_with(".ko")
}

/// Whether a symbol of a file is a method of Java: the file holds compiled methods, or their DEX code, and
/// the name is not that of a function of C++.
fn is_java_method(path: &str, symbol: &[u8]) -> bool {
    const COMPILED: [&str; 6] = [".oat", ".odex", ".dex", ".vdex", ".jar", ".apk"];
    let is_method = symbol.contains(&b'.') && !symbol.contains(&b'(') && !symbol.starts_with(b"_Z");
    is_method && (COMPILED.iter().any(|end| path.ends_with(end)) || path.contains(JIT_MEMORY))
}

impl FrameKind {
    /// The owner of a file's code, where the recording does not state it. The symbol is empty where it is not
    /// known.
    pub(crate) fn of_code(path: &str, symbol: &[u8]) -> FrameKind {
        if is_kernel_file(path) {
            FrameKind::Kernel
        } else if is_java_method(path, symbol) {
            FrameKind::Java
        } else {
            FrameKind::Native
        }
    }
}

/// A part of the name of the memory to which ART compiles methods while they run.
const JIT_MEMORY: &str = "jit-cache";

/// The types of a Perfetto trace's packets that are read as samples.
pub(crate) const PACKETS_OF_SAMPLES: [&str; 5] =
    ["perf_sample", "streaming_profile_packet", "stack_sample", "module_symbols", "deobfuscation_mapping"];

/// The event type whose samples simpleperf's `--trace-offcpu` takes where a thread stops running.
pub(crate) const SCHED_SWITCH: &str = "sched:sched_switch";

/// Whether the periods of an event type with this name are times, ns.
pub(crate) fn measures_time(name: &str) -> bool {
    let name = name.split(':').next().unwrap_or(name);
    matches!(name, "cpu-clock" | "task-clock")
}

/// How often an event type takes a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SampleRate {
    /// So often in a second that a thread runs.
    Hz(u64),
    /// Each time that this many events have happened.
    Period(u64),
    /// The recording does not say.
    #[default]
    Unknown,
}

/// A type of events that take samples.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct SampleEvent {
    /// The name: `cpu-clock`.
    pub name: String,
    /// How often a sample is taken.
    pub rate: SampleRate,
    /// Whether a sample's period is a time in ns, as that of `cpu-clock` is. Other periods count events.
    pub is_time: bool,
    /// Whether samples of this type stand where a thread stopped running. Their period is the time until it
    /// ran again, ns.
    pub is_off_cpu: bool,
    /// Number of samples.
    pub samples: u64,
    /// The sum of the samples' periods.
    pub period: u64,
}

/// A thread that was sampled.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct SampleThread {
    /// The process's id; 0 where the recording does not state it.
    pub pid: Pid,
    /// The kernel's thread id.
    pub tid: Tid,
    /// The name that the thread had last; empty where the recording does not state it.
    pub name: String,
    /// Number of samples.
    pub samples: u64,
}

/// One sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Time, in the recording's clock; 0 where samples have no times.
    pub time: Timestamp,
    /// Index of the thread in [`SampleTables::threads`].
    pub thread: u32,
    /// Index of the event type in [`SampleTables::events`].
    pub event: u32,
    /// The stack in [`SampleTables::stacks`], or [`NO_STACK`].
    pub stack: u32,
    /// The processor, where the recording states it.
    pub cpu: Option<Cpu>,
    /// The weight of the sample: events that have happened since the event type's last sample of this
    /// thread, or ns where the event type measures time.
    pub period: u64,
}

/// The tables that samples refer to. The tables grow while samples are read: an index in a sample is valid
/// when the sample is pushed.
#[derive(Debug, Clone, Default)]
pub struct SampleTables {
    /// The event types.
    pub events: Vec<SampleEvent>,
    /// The threads, in order of appearance.
    pub threads: Vec<SampleThread>,
    /// The files with code.
    pub modules: Vec<SampleModule>,
    /// The frames, by the symbol they belong to.
    pub frames: Vec<SampleFrame>,
    /// The stacks.
    pub stacks: StackTable,
}

impl SampleTables {
    /// The frame that names the code of a stack: the innermost method of Java, else the innermost function
    /// outside of the kernel, else the innermost one.
    pub fn own_frame(&self, stack: u32) -> Option<&SampleFrame> {
        let frames = || self.stacks.frames(stack).filter_map(|number| self.frames.get(number as usize));
        let of_kind = |kind| frames().find(|frame| frame.kind == kind);
        of_kind(FrameKind::Java).or_else(|| of_kind(FrameKind::Native)).or_else(|| frames().next())
    }
}

/// Samples that are missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct SampleLosses {
    /// Records that the kernel could not write, samples among them, and samples that the recorder dropped.
    pub lost: u64,
    /// How often the kernel stopped sampling for a while because it took too much time.
    pub throttled: u64,
}

/// The result of reading all samples of a recording.
#[derive(Debug, Clone, Default)]
pub struct SampleReading {
    /// The tables, complete.
    pub tables: SampleTables,
    /// Samples that are missing.
    pub losses: SampleLosses,
    /// The range of time, damage, irregularities and notes.
    pub report: ReadReport,
}

/// Receives samples.
pub trait SampleSink {
    /// Receives one sample, and the tables as far as they are known.
    ///
    /// # Errors
    /// Those of an output. The reading ends.
    fn sample(&mut self, tables: &SampleTables, sample: &Sample) -> io::Result<()>;
}

/// A file with samples, opened up to its head.
pub trait SampleRecording {
    /// A description of the format for people: `perf.data of simpleperf`.
    fn format(&self) -> String;

    /// The clock of the samples' times.
    fn clock(&self) -> Clock;

    /// The times of one moment in two clocks, where the file has them: in CLOCK_REALTIME, and in the clock of
    /// the samples.
    fn clock_pair(&self) -> Option<(Timestamp, Timestamp)> {
        None
    }

    /// The facts that the file states about itself, as keys and values for people.
    fn facts(&self) -> Vec<(String, String)>;

    /// Pushes all samples to `sink`, nearly in the order of time. Each call reads the file again.
    ///
    /// # Errors
    /// Those of `sink`. Faults of the file are in the report.
    fn read(&self, sink: &mut dyn SampleSink) -> io::Result<SampleReading>;
}

impl<T: SampleRecording + ?Sized> SampleRecording for &T {
    fn format(&self) -> String {
        (**self).format()
    }

    fn clock(&self) -> Clock {
        (**self).clock()
    }

    fn clock_pair(&self) -> Option<(Timestamp, Timestamp)> {
        (**self).clock_pair()
    }

    fn facts(&self) -> Vec<(String, String)> {
        (**self).facts()
    }

    fn read(&self, sink: &mut dyn SampleSink) -> io::Result<SampleReading> {
        (**self).read(sink)
    }
}

/// A sink that only counts: the tables hold the counts.
#[derive(Debug, Clone, Copy, Default)]
pub struct CountOnly;

impl SampleSink for CountOnly {
    fn sample(&mut self, _: &SampleTables, _: &Sample) -> io::Result<()> {
        Ok(())
    }
}

/// Counts samples on their way to a sink.
///
/// A sample that was taken when its thread stopped running waits until the thread runs again: only then its
/// duration is known.
#[derive(Debug, Default)]
pub(crate) struct SampleCollector {
    /// The result so far.
    pub reading: SampleReading,
    /// By thread: the sample that waits.
    waiting: Vec<Option<Sample>>,
}

impl SampleCollector {
    /// Adds a thread, and returns its index.
    pub(crate) fn add_thread(&mut self, pid: Pid, tid: Tid, name: String) -> u32 {
        let threads = &mut self.reading.tables.threads;
        let index = threads.len() as u32;
        threads.push(SampleThread { pid, tid, name, samples: 0 });
        self.waiting.push(None);
        index
    }

    /// Takes a sample. It ends the time that its thread did not run.
    pub(crate) fn take(&mut self, sample: Sample, sink: &mut dyn SampleSink) -> io::Result<()> {
        self.runs_again(sample.thread, sample.time, sink)?;
        if self.reading.tables.events[sample.event as usize].is_off_cpu {
            self.waiting[sample.thread as usize] = Some(sample);
            return Ok(());
        }
        self.push(sample, sink)
    }

    /// A thread runs at `time`: pushes the sample of the time that it did not run.
    pub(crate) fn runs_again(
        &mut self,
        thread: u32,
        time: Timestamp,
        sink: &mut dyn SampleSink,
    ) -> io::Result<()> {
        match self.waiting[thread as usize].take() {
            Some(sample) => self.push(Sample { period: time.since(sample.time), ..sample }, sink),
            None => Ok(()),
        }
    }

    /// Counts a sample whose period is known, and passes it on.
    pub(crate) fn push(&mut self, sample: Sample, sink: &mut dyn SampleSink) -> io::Result<()> {
        let SampleReading { tables, report, .. } = &mut self.reading;
        let event = &mut tables.events[sample.event as usize];
        event.samples += 1;
        event.period = event.period.saturating_add(sample.period);
        tables.threads[sample.thread as usize].samples += 1;
        if sample.time > Timestamp::MIN {
            report.cover(sample.time);
        }
        sink.sample(tables, &sample)
    }

    /// Pushes the samples of threads that did not run again; how long they waited is not known.
    pub(crate) fn finish(mut self, sink: &mut dyn SampleSink) -> io::Result<SampleReading> {
        for thread in 0..self.waiting.len() {
            if let Some(sample) = self.waiting[thread].take() {
                self.push(Sample { period: 0, ..sample }, sink)?;
            }
        }
        let lost = self.reading.losses.lost;
        self.reading.report.losses.add(LossKind::Samples, LossPlace::Recording, lost);
        Ok(self.reading)
    }
}

/// The number that stands for an empty stack.
pub const NO_STACK: u32 = u32::MAX;

/// A stack: its innermost frame, and the stack of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackNode {
    /// The stack without its innermost frame, which has a lower number; [`NO_STACK`] below the outermost.
    pub parent: u32,
    /// The index of the innermost frame.
    pub frame: u32,
}

/// All distinct stacks, by number.
#[derive(Debug, Clone, Default)]
pub struct StackTable {
    nodes: Vec<StackNode>,
    children: FxHashMap<(u32, u32), u32>,
}

impl StackTable {
    /// The stack of `frame` called from `parent`.
    pub fn child(&mut self, parent: u32, frame: u32) -> u32 {
        let next = self.nodes.len() as u32;
        let stack = *self.children.entry((parent, frame)).or_insert(next);
        if stack == next {
            self.nodes.push(StackNode { parent, frame });
        }
        stack
    }

    /// The stack of frames, the outermost first.
    pub fn of_frames(&mut self, outermost_first: impl IntoIterator<Item = u32>) -> u32 {
        outermost_first.into_iter().fold(NO_STACK, |parent, frame| self.child(parent, frame))
    }

    /// The nodes; a parent stands before its children.
    pub fn nodes(&self) -> &[StackNode] {
        &self.nodes
    }

    /// The frames of a stack, the innermost first.
    pub fn frames(&self, stack: u32) -> impl Iterator<Item = u32> {
        let mut at = stack;
        std::iter::from_fn(move || {
            let node = self.nodes.get(at as usize)?;
            at = node.parent;
            Some(node.frame)
        })
    }
}

/// The identity of a frame: its name, its file and its kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FrameKey {
    /// The name of the symbol; empty for a frame without one.
    pub symbol: String,
    /// The index of the file.
    pub module: u32,
    /// The code's owner.
    pub kind: FrameKind,
    /// The address in the file of a frame without a symbol; else 0.
    pub unknown_address: u64,
}

/// The frames of [`SampleTables`] by what makes them the same.
#[derive(Debug, Default)]
pub struct FrameIndex {
    known: FxHashMap<FrameKey, u32>,
}

impl FrameIndex {
    /// The frames that the tables have.
    pub(crate) fn of_tables(tables: &SampleTables) -> FrameIndex {
        let key = |frame: &SampleFrame| FrameKey {
            symbol: if frame.has_symbol { frame.name.clone() } else { String::new() },
            module: frame.module,
            kind: frame.kind,
            unknown_address: if frame.has_symbol { 0 } else { frame.address },
        };
        let known = tables.frames.iter().enumerate();
        FrameIndex { known: known.map(|(number, frame)| (key(frame), number as u32)).collect() }
    }

    /// The index of a frame; a new frame is added to `tables`. `address` is the address in the file, and
    /// `symbol` the readable name of the function, empty where it is not known.
    pub fn intern(
        &mut self,
        tables: &mut SampleTables,
        symbol: &str,
        module: u32,
        kind: FrameKind,
        address: u64,
    ) -> u32 {
        let has_symbol = !symbol.is_empty();
        let unknown_address = if has_symbol { 0 } else { address };
        let key = FrameKey { symbol: symbol.to_owned(), module, kind, unknown_address };
        let next = tables.frames.len() as u32;
        let index = *self.known.entry(key).or_insert(next);
        if index == next {
            let name = if has_symbol {
                symbol.to_owned()
            } else {
                let file = tables.modules.get(module as usize).map_or("[unknown]", |m| m.file_name());
                format!("{file}+0x{address:x}")
            };
            tables.frames.push(SampleFrame { name, has_symbol, kind, module, address });
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_and_equal_frames_are_stored_once() {
        let mut tables = SampleTables::default();
        let mut index = FrameIndex::default();
        let main = index.intern(&mut tables, "main", 0, FrameKind::Native, 0x10);
        let run = index.intern(&mut tables, "run", 0, FrameKind::Native, 0x20);
        assert_eq!(index.intern(&mut tables, "main", 0, FrameKind::Native, 0x18), main, "at another address");
        let unknown = index.intern(&mut tables, "", 0, FrameKind::Native, 0x30);
        assert_ne!(index.intern(&mut tables, "", 0, FrameKind::Native, 0x38), unknown);
        assert_eq!(tables.frames[unknown as usize].name, "[unknown]+0x30");

        let mut stacks = StackTable::default();
        let deep = stacks.of_frames([main, run, run]);
        assert_eq!(stacks.of_frames([main, run, run]), deep);
        assert_eq!(stacks.frames(deep).collect::<Vec<_>>(), [run, run, main]);
        assert_eq!((stacks.nodes().len(), stacks.frames(NO_STACK).count()), (3, 0));
    }

    /// The times and periods of pushed samples.
    #[derive(Default)]
    struct Pushed(Vec<(u64, u64)>);

    impl SampleSink for Pushed {
        fn sample(&mut self, _: &SampleTables, sample: &Sample) -> io::Result<()> {
            self.0.push((sample.time.0, sample.period));
            Ok(())
        }
    }

    #[test]
    fn the_sample_of_a_switch_lasts_until_its_thread_runs_again() {
        let mut collector = SampleCollector::default();
        collector.reading.tables.events.push(SampleEvent { is_off_cpu: true, ..SampleEvent::default() });
        let thread = collector.add_thread(Pid(1), Tid(2), "main".into());
        let sample = |time| Sample { time, thread, event: 0, cpu: None, stack: NO_STACK, period: 1 };
        let mut sink = Pushed::default();
        collector.take(sample(Timestamp(10)), &mut sink).unwrap();
        collector.runs_again(thread, Timestamp(25), &mut sink).unwrap();
        collector.take(sample(Timestamp(40)), &mut sink).unwrap();
        let reading = collector.finish(&mut sink).unwrap();
        assert_eq!(sink.0, [(10, 15), (40, 0)]);
        assert_eq!((reading.tables.threads[0].samples, reading.tables.events[0].period), (2, 15));
    }
}
