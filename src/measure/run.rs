//! Measures one run of a program: its launch, its stages, the states of its main thread, its methods, its
//! slices and its frames. Everything that compares runs compares these measures: the page of `report
//! --against`, `adb launch` and the gate.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;

use super::finder::{Finder, Measured};
use super::frame_figures::FrameFigures;
use super::launch::{Launch, LaunchType};
use crate::clock::Timestamp;
use crate::ftrace::task_state::TaskState;
use crate::ids::{Pid, Tid};
use crate::timeline::{MergeSummary, MethodThread};
use crate::tracks::{
    AsyncEdge, AsyncSlice, MethodCall, MethodLabel, OpenMethod, OwnTrack, Span, Task, Tasks, ThreadState,
    TrackObserver, TrackSink,
};

/// The kinds of measures of a run. Times are sums over the run, in ns; all but those of frames are 0 or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MeasureKind {
    /// From the begin of the launch of an app to its end.
    Launch,
    /// From the begin of the launch to the end of the drawing of its first frame.
    Ttid,
    /// From the begin of the launch to the end of the drawing of the first frame that is complete, as the app
    /// says.
    Ttfd,
    /// Of the frames of the launched app, else of all apps: a percentile of androidx's `frameDurationCpuMs`
    /// (`cpu.p95`) and `frameOverrunMs` (`overrun.p95`), which is negative where frames are early, and
    /// `janky`, the share of late ones.
    Frame,
    /// A slice of the main thread that lies in no other one, with all that is in it.
    Stage,
    /// A state of the main thread.
    State,
    /// A slice, without the slices in it, on all threads.
    Slice,
    /// A method, without the methods that it calls, on all threads, in the whole method trace.
    Method,
    /// A time that a benchmark has measured itself of this iteration: a metric of androidx
    /// (`timeToInitialDisplayMs`), or a percentile of one that has a value for each frame
    /// (`frameDurationCpuMs.p95`). A time after a deadline may be negative.
    Benchmark,
}

/// The time that something took in one run, all times together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Measure {
    pub ns: u64,
    pub count: u64,
    /// Length, ns, and begin of the longest time.
    pub longest: (u64, Timestamp),
}

impl Measure {
    /// Adds `ns` of a span of the timeline.
    fn add(&mut self, ns: u64, span: Span) {
        self.ns += ns;
        self.count += 1;
        self.longest = self.longest.max((length(span), span.start));
    }
}

/// The part of a run that is measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum MeasuredPart {
    /// From the first event to the last one.
    #[default]
    Recording,
    /// From the begin of the main thread's first slice to the end of its last one.
    MainThread,
    /// The launch of an app, or its part up to the slice that the user named.
    Launch,
    /// The period that the user named.
    Period,
}

impl MeasuredPart {
    pub fn text(self) -> &'static str {
        match self {
            MeasuredPart::Recording => "the whole recording",
            MeasuredPart::MainThread => "the main thread's slices, from first to last",
            MeasuredPart::Launch => "the launch",
            MeasuredPart::Period => "the period",
        }
    }
}

/// All measures of one run.
#[derive(Debug, Clone, Default)]
pub(crate) struct MeasuredRun {
    pub part: MeasuredPart,
    /// The length of that part, ns.
    pub total_ns: u64,
    /// The begin and the end of that part.
    pub extent: Option<(Timestamp, Timestamp)>,
    /// The launch of an app, where Android's markers of one are there.
    pub launch: Option<LaunchSpan>,
    /// The frames of the launched app, else of all apps.
    pub frames: FrameFigures,
    /// From the begin of the main thread's first slice to the end of its last one.
    pub stages: Option<(Timestamp, Timestamp)>,
    pub measures: BTreeMap<(MeasureKind, String), Measure>,
}

/// The launch that a run is measured by: one of those that a [`Finder`] finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LaunchSpan {
    pub from: Timestamp,
    /// The end of the slice that the user named, else of the launch.
    pub to: Timestamp,
    /// The events that it begins and ends with, as the table `launch` and the JSON of launches name them.
    pub begins_with: &'static str,
    pub ends_with: &'static str,
    /// Whether `to` is the end of the slice that the user named.
    pub is_named: bool,
    pub launch_type: Option<LaunchType>,
    pub main_tid: Option<Tid>,
    /// Times to initial and to full display, ns.
    pub ttid: Option<u64>,
    pub ttfd: Option<u64>,
}

impl LaunchSpan {
    /// The first launch in a timeline that the recording does not cut. It ends with the first of the slices
    /// that the user named, which end at the times `named_ends`, behind the begin of the app.
    pub fn first(measured: &Measured, named_ends: &[Timestamp]) -> Option<LaunchSpan> {
        let launch = measured.launches.iter().find(|launch| launch.cut.is_none())?;
        let app_begin = launch.bind().map_or(launch.begin, |bind| bind.start);
        let named = named_ends.iter().copied().filter(|end| *end > app_begin).min();
        let Launch { begin, end, launch_type, main_tid, ttid, ttfd, .. } = *launch;
        Some(LaunchSpan {
            from: begin,
            to: named.unwrap_or(end),
            begins_with: launch.begins_with.name(),
            ends_with: if named.is_some() { "named slice" } else { launch.ends_with.name() },
            is_named: named.is_some(),
            launch_type,
            main_tid,
            ttid,
            ttfd,
        })
    }
}

/// The most slices of the name that the user gave for the end of a launch whose ends are kept.
const MAX_NAMED_ENDS: usize = 1 << 16;

type Measures = HashMap<String, Measure>;

/// Adds one time to the measure of this name. Nothing is copied for a name that has been met before.
fn add(measures: &mut Measures, name: &str, ns: u64, span: Span) {
    if let Some(measure) = measures.get_mut(name) {
        measure.add(ns, span);
    } else {
        measures.insert(name.to_owned(), Measure { ns, count: 1, longest: (length(span), span.start) });
    }
}

/// The length of a span, ns.
fn length(span: Span) -> u64 {
    span.end.since(span.start)
}

/// Measures a run while its timeline passes.
#[derive(Default)]
pub(crate) struct RunMeter {
    /// By thread: for each open slice the time of the slices in it that have ended, ns.
    slices: HashMap<Tid, Vec<u64>>,
    /// By method thread: the same for open methods.
    methods: HashMap<u32, Vec<u64>>,
    /// By name, methods and slices of all threads.
    method_times: Measures,
    slice_times: Measures,
    stages: HashMap<Tid, Measures>,
    /// By thread: the begin of its first stage, and the end of its last one.
    staged: HashMap<Tid, (Timestamp, Timestamp)>,
    states: HashMap<Tid, BTreeMap<&'static str, Measure>>,
    /// The threads of method traces called `main`, and how long their outermost calls took, ns.
    method_mains: HashMap<Tid, u64>,
    finder: Finder,
    /// A part of the name of the slice with which the launch ends, and when slices of such a name ended.
    until: Option<String>,
    named_ends: Vec<Timestamp>,
    run: MeasuredRun,
}

impl RunMeter {
    /// A launch ends with the first slice whose name contains `until`, where that is given.
    pub fn until(until: Option<&str>) -> RunMeter {
        RunMeter { until: until.map(str::to_owned), ..RunMeter::default() }
    }

    fn slice_ended(&mut self, ts: Timestamp, name: &[u8]) {
        let Some(until) = &self.until else { return };
        if self.named_ends.len() < MAX_NAMED_ENDS && String::from_utf8_lossy(name).contains(until.as_str()) {
            self.named_ends.push(ts);
        }
    }

    /// The run, when the timeline has ended.
    pub fn into_run(self) -> MeasuredRun {
        self.run
    }

    /// The main thread of the program: of the launched one, else of the one with a method trace, else the
    /// main thread with the longest stages.
    fn main_thread(&self, tasks: &Tasks) -> Option<Tid> {
        let is_main = |tid: &Tid| tasks.threads.tgid(*tid).is_some_and(|process| tid.is_main_of(process));
        let time = |tid: &Tid| self.stages[tid].values().map(|stage| stage.ns).sum::<u64>();
        let traced = || self.method_mains.iter().max_by_key(|(tid, ns)| (**ns, **tid)).map(|(tid, _)| *tid);
        let longest = || self.stages.keys().filter(|tid| is_main(tid)).max_by_key(|tid| (time(tid), **tid));
        let any = || self.stages.keys().max_by_key(|tid| (time(tid), **tid));
        self.run
            .launch
            .as_ref()
            .and_then(|launch| launch.main_tid)
            .or_else(traced)
            .or_else(|| longest().or_else(any).copied())
    }
}

/// Ends the innermost of the open spans, which took `ns`. Returns what it took without the spans in it, and
/// whether it was in no other one.
fn end_span(open: &mut Vec<u64>, ns: u64) -> (u64, bool) {
    let inside = open.pop().unwrap_or(0);
    if let Some(outer) = open.last_mut() {
        *outer += ns;
    }
    (ns.saturating_sub(inside), open.is_empty())
}

/// The name under which a state is measured: the four states that people tell apart, and the rest by its
/// own name.
pub(crate) fn state_name(state: &str) -> &str {
    match TaskState::from_name(state) {
        Some(TaskState::Runnable | TaskState::Preempted) => "runnable",
        Some(TaskState::Running) => "running",
        Some(TaskState::IoWait) => "I/O",
        Some(TaskState::Uninterruptible) => "uninterruptible sleep",
        Some(TaskState::Sleeping) => "sleeping",
        _ => state,
    }
}

impl TrackSink for RunMeter {
    fn observer(&mut self) -> Option<&mut dyn TrackObserver> {
        Some(&mut self.finder)
    }

    fn begin(&mut self, at: Task, _: Timestamp, _: &[u8]) -> io::Result<()> {
        self.slices.entry(at.tid).or_default().push(0);
        Ok(())
    }

    fn end(&mut self, _: &Tasks, at: Task, span: Span, name: &[u8]) -> io::Result<()> {
        if !span.open {
            self.slice_ended(span.end, name);
        }
        let name = String::from_utf8_lossy(name);
        let ns = length(span);
        let (own, is_outermost) = end_span(self.slices.entry(at.tid).or_default(), ns);
        add(&mut self.slice_times, &name, own, span);
        if is_outermost {
            let stages = self.stages.entry(at.tid).or_default();
            add(stages, &name, ns, span);
            let staged = self.staged.entry(at.tid).or_insert((span.start, span.end));
            *staged = (staged.0.min(span.start), staged.1.max(span.end));
        }
        Ok(())
    }

    fn async_edge(&mut self, _: &Tasks, _: Pid, slice: &AsyncSlice<'_>) -> io::Result<()> {
        if matches!(slice.edge, AsyncEdge::End { open: false, .. } | AsyncEdge::EndWithoutBegin) {
            self.slice_ended(slice.ts, slice.name);
        }
        Ok(())
    }

    fn state(&mut self, _: &Tasks, at: Task, state: &ThreadState) -> io::Result<()> {
        let states = self.states.entry(at.tid).or_default();
        states.entry(state_name(state.state.name())).or_default().add(length(state.span), state.span);
        Ok(())
    }

    fn method_begin(&mut self, at: &MethodThread, _: &MethodLabel, _: &OpenMethod) -> io::Result<()> {
        self.methods.entry(at.index).or_default().push(0);
        Ok(())
    }

    fn method(&mut self, _: &Tasks, call: &MethodCall<'_>) -> io::Result<()> {
        let ns = length(call.span);
        let (own, is_outermost) = end_span(self.methods.entry(call.at.index).or_default(), ns);
        add(&mut self.method_times, &call.method.full, own, call.span);
        if is_outermost
            && call.at.name == "main"
            && let Some(tid) = call.at.tid
        {
            *self.method_mains.entry(tid).or_default() += ns;
        }
        Ok(())
    }

    fn track_slice(&mut self, _: &OwnTrack, span: Span, name: &[u8], _: usize) -> io::Result<()> {
        add(&mut self.slice_times, &String::from_utf8_lossy(name), length(span), span);
        Ok(())
    }

    fn finish(&mut self, tasks: &Tasks, summary: &MergeSummary) -> io::Result<()> {
        let measured = std::mem::take(&mut self.finder).finish(tasks, summary);
        self.run.launch = LaunchSpan::first(&measured, &self.named_ends);
        let launched = self.run.launch.as_ref().and_then(|launch| launch.main_tid);
        let of_app =
            measured.frames.iter().filter(|frame| launched.is_none_or(|main| main.is_main_of(frame.pid)));
        of_app.for_each(|frame| self.run.frames.add(frame.duration_cpu_ns, frame.overrun()));
        let main = self.main_thread(tasks);
        let all = summary.report.last_ts.zip(summary.report.first_ts).map(|(last, first)| (first, last));
        let staged = main.and_then(|tid| self.staged.get(&tid).copied());
        self.run.stages = staged;
        self.run.part = staged.map_or(MeasuredPart::Recording, |_| MeasuredPart::MainThread);
        self.run.extent = staged.or(all);
        self.run.total_ns = self.run.extent.map_or(0, |(from, to)| to.since(from));
        let of_main = main.and_then(|tid| self.stages.remove(&tid)).unwrap_or_default();
        let states = main.and_then(|tid| self.states.remove(&tid)).unwrap_or_default();
        let states = states.into_iter().map(|(name, measure)| (name.to_owned(), measure)).collect();
        let of_kind = [
            (MeasureKind::Stage, of_main),
            (MeasureKind::State, states),
            (MeasureKind::Method, std::mem::take(&mut self.method_times)),
            (MeasureKind::Slice, std::mem::take(&mut self.slice_times)),
        ];
        for (kind, measures) in of_kind {
            let measures = measures.into_iter().map(|(name, measure)| ((kind, name), measure));
            self.run.measures.extend(measures);
        }
        Ok(())
    }
}

/// Selects the measures that are kept of runs.
pub struct MeasureFilter<'a> {
    /// The kinds that are kept.
    pub kinds: &'a BTreeSet<MeasureKind>,
    /// Returns whether to keep the measure of this kind and name.
    pub keep: &'a mut dyn FnMut(MeasureKind, &str) -> bool,
}

impl MeasureFilter<'_> {
    fn keeps(&mut self, kind: MeasureKind, name: &str) -> bool {
        self.kinds.contains(&kind) && (self.keep)(kind, name)
    }
}

/// The times of one run. Stages, states and slices are those within the launch of an app where one is marked,
/// else those of the whole run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunTimes {
    /// The name, for people.
    pub name: String,
    /// Runs that have the same one are the same run.
    pub identity: String,
    /// The begin and the end of the launch of an app, as the table `launch` names them.
    pub launch_extent: Option<[String; 2]>,
    /// `cold`, `warm` or `hot`, where the launch's type is known.
    pub launch_type: Option<String>,
    /// The kinds that the run has measures of, kept or not. A slice that such a run lacks took no time.
    pub measured: BTreeSet<MeasureKind>,
    /// The kept times, by name, ns; a share in parts of `measure::WHOLE_SHARE`. A launch has no name.
    pub times: BTreeMap<(MeasureKind, String), i64>,
    /// Whether events were lost, or an input is damaged.
    pub is_lossy: bool,
}

impl RunTimes {
    /// Adds `ns` to the measure of this kind and name, if `filter` keeps it.
    pub fn add(&mut self, kind: MeasureKind, name: &str, ns: u64, filter: &mut MeasureFilter<'_>) {
        self.measured.insert(kind);
        if filter.keeps(kind, name) {
            let sum = self.times.entry((kind, name.to_owned())).or_default();
            *sum = sum.saturating_add(i64::try_from(ns).unwrap_or(i64::MAX));
        }
    }

    /// Adds the metrics of a benchmark's iteration that `filter` keeps.
    pub(crate) fn add_metrics(&mut self, metrics: &[(String, i64)], filter: &mut MeasureFilter<'_>) {
        for (name, ns) in metrics {
            self.measured.insert(MeasureKind::Benchmark);
            if filter.keeps(MeasureKind::Benchmark, name) {
                self.times.insert((MeasureKind::Benchmark, name.clone()), *ns);
            }
        }
    }

    /// Adds the figures of the run's frames that `filter` keeps.
    pub(crate) fn add_frames(&mut self, frames: &FrameFigures, filter: &mut MeasureFilter<'_>) {
        for (name, value) in frames.figures() {
            self.measured.insert(MeasureKind::Frame);
            if filter.keeps(MeasureKind::Frame, &name) {
                self.times.insert((MeasureKind::Frame, name), value);
            }
        }
    }
}
