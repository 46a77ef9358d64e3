//! Samples: what threads executed at moments in time, each with its stack of calls. Every reader of samples
//! implements [`SampleRecording`], so that whoever counts, draws or writes samples knows no format.
//!
//! Stacks are interned: a sample names its stack by a number, and [`SampleTables`] has the frames behind it.

mod collector;
mod stacks;
mod symbol_name;

use std::io;

pub(crate) use collector::SampleCollector;
pub use stacks::{FrameIndex, FrameKey, NO_STACK, StackNode, StackTable};
pub(crate) use symbol_name::readable;

use super::ReadReport;
use crate::clock::Clock;

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

/// A file with code: a library, a program, the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampleModule {
    /// The path on the recorded machine; `[kernel.kallsyms]` for the kernel, empty where it is not known.
    pub path: String,
    /// The build id in hexadecimal digits; empty where the recording does not state it.
    pub build_id: String,
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

/// The event type whose samples simpleperf's `--trace-offcpu` takes where a thread stops running.
pub(crate) const SCHED_SWITCH: &str = "sched:sched_switch";

/// Whether the periods of an event type with this name are times, ns.
pub(crate) fn measures_time(name: &str) -> bool {
    let name = name.split(':').next().unwrap_or(name);
    matches!(name, "cpu-clock" | "task-clock")
}

/// How often an event type takes a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
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
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
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
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct SampleThread {
    /// The process's id; 0 where the recording does not state it.
    pub pid: i32,
    /// The kernel's thread id.
    pub tid: i32,
    /// The name that the thread had last; empty where the recording does not state it.
    pub name: String,
    /// Number of samples.
    pub samples: u64,
}

/// One sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Time, ns of the recording's clock; 0 where samples have no times.
    pub time: u64,
    /// Index of the thread in [`SampleTables::threads`].
    pub thread: u32,
    /// Index of the event type in [`SampleTables::events`].
    pub event: u32,
    /// The stack in [`SampleTables::stacks`], or [`NO_STACK`].
    pub stack: u32,
    /// The processor, where the recording states it.
    pub cpu: Option<u32>,
    /// What the sample stands for: events that have happened since the event type's last sample of this
    /// thread, or ns where the event type measures time.
    pub period: u64,
}

/// What samples refer to. The tables grow while samples are read: an index in a sample is valid when the
/// sample is pushed.
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

    /// Readings of two clocks at one moment, where the file has them: of CLOCK_REALTIME, and of the clock of
    /// the samples, ns.
    fn clock_pair(&self) -> Option<(u64, u64)> {
        None
    }

    /// What the file says about itself, as keys and values for people.
    fn facts(&self) -> Vec<(String, String)>;

    /// Pushes all samples to `sink`, nearly in the order of time. Each call reads the file again.
    ///
    /// # Errors
    /// Those of `sink`. Faults of the file are in the report.
    fn read(&self, sink: &mut dyn SampleSink) -> io::Result<SampleReading>;
}

/// A sink that only counts: the tables hold the counts.
#[derive(Debug, Clone, Copy, Default)]
pub struct CountOnly;

impl SampleSink for CountOnly {
    fn sample(&mut self, _: &SampleTables, _: &Sample) -> io::Result<()> {
        Ok(())
    }
}
