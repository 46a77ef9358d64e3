//! Reports the format, clocks, counts, losses and damage of a file: of a recording, a method trace or
//! samples. `tracebridge info` prints these reports.

pub mod container;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::clock::{Clock, Timestamp};
use crate::formats::ScreenVideo;
use crate::formats::art_method::{CallAnomalies, Counts, MethodTrace};
use crate::formats::input::Input;
use crate::formats::samples::{
    PACKETS_OF_SAMPLES, Sample, SampleEvent, SampleReading, SampleRecording, SampleSink, SampleTables,
    SampleThread,
};
use crate::formats::unpack_budget::UnpackLimit;
use crate::formats::{
    self, Damage, Event, EventType, EventTypeId, InputFiles, OpenError, OpenedInput, Order, ReadReport,
    Recording, Sink, SinkAdapter, ThreadInfo,
};
use crate::ids::{Cpu, Pid, Tid};
use crate::measure::{Cancelled, FinderSink, Frame, FrameSummary, Launch, TimelineCounts, summarize};
use crate::profile::count::flat::FlatProfile;
use crate::profile::count::selection::ProfileSelection;
use crate::timeline::{MergeSummary, MissingSwitches, TimelineSink};
use crate::tracks::TrackBuilder;
use container::ContainerReport;

/// The report of an input, by the kind of its contents.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Contents {
    /// A file with kernel events.
    Recording(Box<RecordingReport>),
    /// A method trace.
    MethodTrace(Box<MethodTraceReport>),
    /// A file with samples.
    Samples(Box<SamplesReport>),
}

/// The report of one input.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct InputReport {
    /// The path as given.
    pub path: String,
    /// Size on disk, bytes.
    pub bytes: u64,
    /// The encoding that was undone: `gzip`, `zstd` or `tracebridge's stream`.
    pub packed: Option<&'static str>,
    /// The report of the file's contents.
    #[serde(flatten)]
    pub contents: Contents,
    /// Damage that was found while the file was decompressed.
    #[serde(skip)]
    pub unpacking_damage: Vec<Damage>,
}

/// The reason why an input cannot be inspected.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The input cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The input brings more event types than memory should hold.
    #[error("{0}")]
    Read(#[from] std::io::Error),
}

impl InputReport {
    /// Whether irregular records had to be interpreted. Nothing is missing because of them.
    pub fn is_irregular(&self) -> bool {
        match &self.contents {
            Contents::Recording(recording) => !recording.report.irregular.is_empty(),
            Contents::MethodTrace(trace) => !trace.report.irregular.is_empty(),
            Contents::Samples(samples) => !samples.report.irregular.is_empty(),
        }
    }

    /// Whether anything is missing or damaged.
    pub fn is_lossy(&self) -> bool {
        !self.unpacking_damage.is_empty()
            || match &self.contents {
                Contents::Recording(recording) => recording.report.is_lossy(),
                Contents::Samples(samples) => samples.report.is_lossy(),
                Contents::MethodTrace(trace) => trace.report.is_lossy(),
            }
    }
}

/// The reports of the files of one input.
#[derive(Debug, Default)]
pub struct InspectedFiles {
    /// The files of an archive.
    pub archive: Option<ContainerReport>,
    /// The report of each trace.
    pub reports: Vec<InputReport>,
    /// Why there are no more reports.
    pub error: Option<InspectError>,
}

/// Inspects the input in `files`; of an archive or of a text with dumps of threads, the traces inside.
pub fn inspect_files(files: &InputFiles, limit: &UnpackLimit) -> InspectedFiles {
    let mut inspected = InspectedFiles::default();
    if let Err(error) = inspected.add(files, limit) {
        inspected.error = Some(error);
    }
    inspected
}

impl InspectedFiles {
    fn add(&mut self, files: &InputFiles, limit: &UnpackLimit) -> Result<(), InspectError> {
        for input in files.open_unexpanded(limit)? {
            self.archive = container::search_archive(&input);
            for input in formats::expand(input)?.inputs {
                self.reports.extend(inspect_all(&input)?);
            }
        }
        Ok(())
    }
}

/// Inspects `input`, and the method traces that a recording holds beside its events.
///
/// # Errors
/// [`InspectError`].
pub fn inspect_all(input: &Input) -> Result<Vec<InputReport>, InspectError> {
    let opened = formats::open(input)?;
    let contained = opened.contained_inputs(&input.name);
    let mut reports = vec![inspect_opened(input, opened)?];
    for input in &contained {
        reports.push(inspect(input)?);
    }
    Ok(reports)
}

/// Reads all of `input` and counts its events or records.
///
/// # Errors
/// [`InspectError`].
pub fn inspect(input: &Input) -> Result<InputReport, InspectError> {
    inspect_opened(input, formats::open(input)?)
}

fn inspect_opened(input: &Input, opened: OpenedInput<'_>) -> Result<InputReport, InspectError> {
    let contents = match opened {
        OpenedInput::Recording(recording) => {
            Contents::Recording(Box::new(inspect_recording(recording.as_ref())?))
        }
        OpenedInput::MethodTrace(trace) => Contents::MethodTrace(Box::new(inspect_method_trace(&trace))),
        OpenedInput::Samples(recording) => Contents::Samples(Box::new(inspect_samples(recording.as_ref())?)),
    };
    Ok(InputReport {
        path: input.name.clone(),
        bytes: input.size,
        packed: input.packed,
        contents,
        unpacking_damage: input.damage.clone(),
    })
}

// Counts the events and threads of a recording.

/// The report of one recording.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct RecordingReport {
    /// The format's name for people: `trace.dat v7 (zstd)`.
    pub format: String,
    /// The clock of the events' times.
    pub clock: Clock,
    /// Decimals of a second that the times really have.
    pub precision: u8,
    /// `uname -a` or the like of the recording machine.
    pub machine: Option<String>,
    /// The recording device: `Pixel 8, Android 15`.
    pub device: Option<String>,
    /// Events read.
    pub events: u64,
    /// Events known to be lost.
    pub lost: u64,
    /// Events of each type, the most frequent type first: `sched:sched_switch` and how many.
    #[serde(rename = "kinds", serialize_with = "as_map")]
    #[schemars(with = "BTreeMap<String, u64>")]
    pub event_types: Vec<(String, u64)>,
    /// Losses, damage and notes.
    pub report: ReadReport,
    /// Threads that the file lists.
    pub thread_count: usize,
    /// Processes that the listed threads belong to.
    pub process_count: usize,
    /// Number of clock snapshots that were taken while recording.
    pub snapshots: usize,
    /// Frequency of the CPU's counter, Hz.
    pub counter_hz: Option<u64>,
    /// The clocks that the snapshots have readings of.
    #[serde(skip)]
    pub snapshot_clocks: Vec<Clock>,
    /// The launches of apps, in the order of their begins.
    pub launches: Vec<Launch>,
    /// The samples that the file holds beside its events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<Box<SampleCounts>>,
    /// Launches that came to nothing.
    pub cancelled_launches: Vec<Cancelled>,
    /// The frames of each app and layer in numbers.
    pub frames: Vec<FrameSummary>,
    /// The frames of FrameTimeline, as SurfaceFlinger judges them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline_frames: Option<TimelineCounts>,
    /// The frames of a video of the screen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<VideoReport>,
    /// With `--frames`: every frame, in the order of the begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_frame: Option<Vec<Frame>>,
}

/// The frames of a video of the screen in numbers.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct VideoReport {
    /// Frames with a time.
    pub frames: u64,
    /// Frames of the video track; `None` where the file has no whole index.
    pub track_frames: Option<u64>,
    /// The duration that a player shows, ns.
    pub length_ns: u64,
    /// The time of the first frame in CLOCK_REALTIME, where the file tells it.
    pub wall_start_ns: Option<Timestamp>,
}

impl VideoReport {
    fn new(video: &ScreenVideo) -> VideoReport {
        let ScreenVideo { ref frames, track_frames, length_ns, wall_start } = *video;
        VideoReport { frames: frames.len() as u64, track_frames, length_ns, wall_start_ns: wall_start }
    }
}

fn as_map<S: Serializer>(counts: &[(String, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(counts.len()))?;
    for (name, count) in counts {
        map.serialize_entry(name, count)?;
    }
    map.end()
}

/// A sink that counts the events of each type and collects the listed threads.
struct EventTypeCounter {
    /// Finds launches and frames.
    finder: TrackBuilder<FinderSink>,
    event_types: Vec<(String, u64)>,
    /// Each listed thread's process, where known.
    threads: BTreeMap<Tid, Option<Pid>>,
    switches: MissingSwitches,
}

impl SinkAdapter for EventTypeCounter {
    type Next = TrackBuilder<FinderSink>;

    fn next(&mut self) -> &mut Self::Next {
        &mut self.finder
    }

    fn event_type(&mut self, id: EventTypeId, kind: &EventType) -> io::Result<()> {
        let colon = if kind.system.is_empty() { "" } else { ":" };
        self.event_types.push((format!("{}{colon}{}", kind.system, kind.name), 0));
        self.switches.add_event_type(kind);
        self.finder.event_type(id, kind)
    }

    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        let tgid = self.threads.entry(thread.tid).or_default();
        *tgid = thread.tgid.or(*tgid);
        self.finder.thread(thread)
    }

    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        if let Some((_, count)) = self.event_types.get_mut(event.kind.0 as usize) {
            *count += 1;
        }
        self.switches.add(event, kind, event.kind.0 as usize);
        self.finder.event(event, kind)
    }

    fn lost(&mut self, cpu: Cpu, count: Option<u64>) -> io::Result<()> {
        self.switches.lost(cpu);
        self.finder.lost(cpu, count)
    }
}

/// Reads all of a recording, counts its events and threads, and finds the launches and frames in it.
fn inspect_recording(recording: &dyn Recording) -> io::Result<RecordingReport> {
    let finder = TrackBuilder::of_markers(FinderSink::default());
    let mut counter = EventTypeCounter {
        finder,
        event_types: Vec::new(),
        threads: BTreeMap::new(),
        switches: MissingSwitches::default(),
    };
    // Slices that begin on one CPU may end on another one.
    let report = recording.read(Order::Markers, &mut counter)?;
    let head = recording.head();
    let EventTypeCounter { mut finder, mut event_types, threads, switches } = counter;
    finder.finish(&MergeSummary::new(head.clock, Vec::new(), report.clone()))?;
    let measured = std::mem::take(&mut finder.sink().measured);
    let mut report = report;
    report.notes.extend(MissingSwitches::sentence(switches.times()));
    if measured.left_out > 0 {
        let left_out = measured.left_out;
        report
            .notes
            .push(format!("{left_out} marks of launches and frames are left out: there are too many"));
    }
    if measured.stages_left_out > 0 {
        let left_out = measured.stages_left_out;
        report
            .notes
            .push(format!("{left_out} stages of launches are left out: there are too many in a launch"));
    }
    event_types.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let clocks = [Clock::Realtime, Clock::Monotonic, Clock::MonotonicRaw, Clock::Boottime, Clock::Counter];
    let is_told = |clock: &Clock| {
        head.snapshots.list.iter().any(|s| s.get(*clock, None).is_some_and(|reading| reading > 0))
    };
    Ok(RecordingReport {
        format: head.format.clone(),
        clock: head.clock,
        precision: head.precision,
        machine: head.machine.clone(),
        device: head.device.clone(),
        events: report.events(),
        lost: report.lost(),
        event_types,
        process_count: threads.values().flatten().collect::<BTreeSet<_>>().len(),
        thread_count: threads.len(),
        snapshots: head.snapshots.list.len(),
        counter_hz: head.snapshots.counter_hz,
        snapshot_clocks: clocks.into_iter().filter(is_told).collect(),
        launches: measured.launches,
        cancelled_launches: measured.cancelled,
        frames: summarize(&measured.frames),
        timeline_frames: Some(measured.timeline_frames).filter(|frames| frames.actual > 0),
        video: recording.video().map(VideoReport::new),
        every_frame: Some(measured.frames),
        samples: inspect_samples_beside(recording, &mut report)?,
        report,
    })
}

// Counts the records, threads and methods of a method trace.

/// The report of one method trace.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct MethodTraceReport {
    /// The format's name for people: `method trace v3, streaming, dual clock`.
    pub format: String,
    /// The format's version: 1 to 6; 0 in files of the always-on tracer, which have no header.
    pub version: u16,
    /// Whether the file was written while the app ran, not at the end.
    pub streaming: bool,
    /// The clocks that records carry, as the file's `clock=` names them.
    pub clock_mode: &'static str,
    /// When the trace began, ns of [`MethodTraceReport::start_clock`], or of a clock that the file does not
    /// name.
    pub start_ns: u64,
    /// The clock of the start, where the format decides it.
    pub start_clock: Option<Clock>,
    /// Duration of the trace, ns, where the file states it.
    pub elapsed_ns: Option<u64>,
    /// The runtime: `art` or `dalvik`.
    pub vm: Option<String>,
    /// The traced process.
    pub pid: Option<Pid>,
    /// Whether the buffer was full before the trace was stopped.
    pub overflow: bool,
    /// Counts from opening the file.
    pub counts: Counts,
    /// Calls whose enters and exits do not fit together.
    pub problems: CallAnomalies,
    /// Threads that the file declares, and threads that occur only in records.
    pub threads: Vec<ThreadReport>,
    /// Number of methods, declared or not.
    pub methods: usize,
    /// Damage, irregularities and notes.
    pub report: ReadReport,
}

/// One thread of a method trace.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct ThreadReport {
    /// The thread's id in the trace.
    pub id: u32,
    /// The thread's name; empty where the file does not name the thread.
    pub name: String,
    /// Records of this thread.
    pub records: u64,
    /// The thread's name, or `thread ID` where the file does not name the thread.
    #[serde(skip)]
    pub label: String,
}

/// Follows the calls of all records and counts those whose enters and exits do not fit together.
fn inspect_method_trace(trace: &MethodTrace<'_>) -> MethodTraceReport {
    let header = trace.header();
    let problems = FlatProfile::from_trace(trace, &ProfileSelection::default()).anomalies;
    let mut report = trace.report().clone();
    report.add_anomalies(&problems);
    let threads = trace.threads().iter().map(|thread| ThreadReport {
        id: thread.id,
        name: thread.name.to_string(),
        records: thread.records,
        label: thread.label().into_owned(),
    });
    MethodTraceReport {
        format: trace.format(),
        version: header.version,
        streaming: header.streaming,
        clock_mode: header.clock.name(),
        start_ns: header.start_ns(),
        start_clock: header.start_clock,
        elapsed_ns: header.elapsed_ns,
        vm: header.vm.clone(),
        pid: header.pid,
        overflow: header.overflow,
        counts: *trace.counts(),
        problems,
        threads: threads.collect(),
        methods: trace.methods().len(),
        report,
    }
}

// Counts the samples of a file.

/// The report of a file with samples.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct SamplesReport {
    /// The format's name for people: `perf.data of simpleperf`.
    pub format: String,
    /// The clock of the samples' times.
    pub clock: Clock,
    /// The samples in numbers.
    pub samples: SampleCounts,
    /// Facts that the file states about itself: keys and values.
    pub facts: Vec<(String, String)>,
    /// The range of time, damage, irregularities and notes.
    pub report: ReadReport,
}

/// The samples of a file in numbers.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct SampleCounts {
    /// Number of samples.
    pub count: u64,
    /// Records that the kernel could not write, samples among them, and samples that the recorder dropped.
    pub lost: u64,
    /// How often the kernel stopped sampling for a while because it took too much time.
    pub throttled: u64,
    /// Number of different stacks.
    pub stacks: usize,
    /// Number of different functions.
    pub functions: usize,
    /// The share of the samples whose innermost function has no symbol, percent.
    pub unsymbolised_percent: f64,
    /// The event types.
    pub events: Vec<SampleEvent>,
    /// The threads with samples.
    pub threads: Vec<SampleThread>,
}

/// Counts the samples whose innermost function has no symbol.
#[derive(Default)]
struct Unsymbolised(u64);

impl SampleSink for Unsymbolised {
    fn sample(&mut self, tables: &SampleTables, sample: &Sample) -> io::Result<()> {
        let innermost = tables.stacks.frames(sample.stack).next();
        let frame = innermost.and_then(|frame| tables.frames.get(frame as usize));
        self.0 += u64::from(!frame.is_some_and(|frame| frame.has_symbol));
        Ok(())
    }
}

/// Counts the samples of a recording, and adds their losses and notes to its report.
fn inspect_samples_beside(
    recording: &dyn Recording,
    report: &mut ReadReport,
) -> io::Result<Option<Box<SampleCounts>>> {
    let Some(samples) = recording.samples() else { return Ok(None) };
    let SamplesReport { samples, report: of_samples, .. } = inspect_samples(samples.as_ref())?;
    report.add(of_samples);
    PACKETS_OF_SAMPLES.iter().for_each(|kind| _ = report.unread.remove(*kind));
    Ok(Some(Box::new(samples)))
}

/// Reads all samples and counts them.
fn inspect_samples(recording: &dyn SampleRecording) -> io::Result<SamplesReport> {
    let mut unsymbolised = Unsymbolised::default();
    let SampleReading { tables, losses, report } = recording.read(&mut unsymbolised)?;
    let count = tables.events.iter().map(|event| event.samples).sum();
    let percent = if count == 0 { 0.0 } else { 100.0 * unsymbolised.0 as f64 / count as f64 };
    Ok(SamplesReport {
        format: recording.format(),
        clock: recording.clock(),
        samples: SampleCounts {
            count,
            lost: losses.lost,
            throttled: losses.throttled,
            stacks: tables.stacks.nodes().len(),
            functions: tables.frames.len(),
            unsymbolised_percent: percent,
            events: tables.events,
            threads: tables.threads,
        },
        facts: recording.facts(),
        report,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_counted() {
        let text = "# tracer: nop\n#\n  a-7 (    5) [001] ...1 1.5: tracing_mark_write: B|5|x\n  a-7 (    5) [001] ...1 1.6: tracing_mark_write: E|5\n";
        let input = Input::from_bytes("t.txt", text.as_bytes().to_vec());
        let report = inspect(&input).unwrap();
        assert!(!report.is_lossy());
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["path"], "t.txt");
        assert_eq!(json["bytes"], text.len());
        assert_eq!(json["events"], 2);
        assert_eq!(json["kinds"], serde_json::json!({ "ftrace:print": 2 }));
        assert_eq!(json["report"]["first_ts"], 1_500_000_000);
    }
}
