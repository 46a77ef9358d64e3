//! The measures of one run of a program: its launch, its stages, the states of its main thread, its methods,
//! its slices and its frames. Everything that compares runs compares these measures: the page of `report
//! --against`, `adb launch` and the gate.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::finder::Measured;
use super::frame_figures::FrameFigures;
use super::launch::{Launch, LaunchType};
use crate::clock::Timestamp;
use crate::formats::Losses;
use crate::ftrace::task_state::TaskState;
use crate::ids::Tid;

/// The kinds of measures of a run. Times are sums over the run, in ns; all but those of frames are 0 or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
    /// A method, without the methods that it calls, on all threads.
    Method,
    /// A time that a benchmark has measured itself of this iteration: a metric of androidx
    /// (`timeToInitialDisplayMs`), or a percentile of one that has a value for each frame
    /// (`frameDurationCpuMs.p95`). A time after a deadline may be negative.
    Benchmark,
}

impl MeasureKind {
    /// Every kind.
    pub const ALL: [MeasureKind; 9] = [
        MeasureKind::Launch,
        MeasureKind::Ttid,
        MeasureKind::Ttfd,
        MeasureKind::Frame,
        MeasureKind::Stage,
        MeasureKind::State,
        MeasureKind::Slice,
        MeasureKind::Method,
        MeasureKind::Benchmark,
    ];

    /// The name in the table `measure` of a dataset.
    pub fn name(self) -> &'static str {
        match self {
            MeasureKind::Launch => "launch",
            MeasureKind::Ttid => "ttid",
            MeasureKind::Ttfd => "ttfd",
            MeasureKind::Frame => "frame",
            MeasureKind::Stage => "stage",
            MeasureKind::State => "state",
            MeasureKind::Slice => "slice",
            MeasureKind::Method => "method",
            MeasureKind::Benchmark => "benchmark",
        }
    }
}

/// A measure of a run, as a dataset stores it and the gate reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunValue<'a> {
    pub kind: MeasureKind,
    pub name: Cow<'a, str>,
    /// The thread that is measured, if it is one.
    pub tid: Option<Tid>,
    /// ns, or for the share of late frames parts of [`WHOLE_SHARE`](super::WHOLE_SHARE).
    pub value: i64,
    /// The number of times that make up the value, if it is a sum.
    pub count: Option<u64>,
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
    /// Adds `ns` of a span that begins at `start` and is `length` ns long.
    pub fn add(&mut self, ns: u64, start: Timestamp, length: u64) {
        self.ns += ns;
        self.count += 1;
        self.longest = self.longest.max((length, start));
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
    /// The thread whose stages and states are measured.
    pub main_tid: Option<Tid>,
    /// The frames of the launched app, else of all apps.
    pub frames: FrameFigures,
    pub measures: BTreeMap<(MeasureKind, String), Measure>,
    /// The times that a benchmark has measured itself, ns: those of [`MeasureKind::Benchmark`], with negative
    /// ones.
    pub metrics: Vec<(String, i64)>,
}

impl MeasuredRun {
    /// Adds the times that a benchmark has measured itself. A time before its deadline, which is negative, is
    /// none that a comparison has.
    pub fn add_metrics(&mut self, metrics: Vec<(String, i64)>) {
        for (name, ns) in &metrics {
            if let Ok(ns) = u64::try_from(*ns) {
                let measure = Measure { ns, count: 1, longest: (ns, Timestamp::MIN) };
                self.measures.insert((MeasureKind::Benchmark, name.clone()), measure);
            }
        }
        self.metrics = metrics;
    }

    /// The launch, if it has a length.
    fn launch_with_length(&self) -> Option<&LaunchSpan> {
        self.launch.as_ref().filter(|span| span.from < span.to)
    }

    /// Every measure of the run.
    pub fn values(&self) -> Vec<RunValue<'_>> {
        let value = |kind, name, tid, value| RunValue { kind, name, tid, value, count: None };
        let in_ns = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let mut values = Vec::new();
        if let Some(span) = self.launch_with_length() {
            let times = [
                (MeasureKind::Launch, Some(span.to.since(span.from))),
                (MeasureKind::Ttid, span.ttid),
                (MeasureKind::Ttfd, span.ttfd),
            ];
            let times = times.into_iter().filter_map(|(kind, ns)| Some((kind, ns?)));
            values.extend(times.map(|(kind, ns)| value(kind, "".into(), span.main_tid, in_ns(ns))));
        }
        let figures = self.frames.figures().into_iter();
        values.extend(figures.map(|(name, ns)| value(MeasureKind::Frame, name.into(), None, ns)));
        let metrics = self.metrics.iter();
        values.extend(metrics.map(|(name, ns)| value(MeasureKind::Benchmark, name.into(), None, *ns)));
        for ((kind, name), measure) in &self.measures {
            let is_of_main = matches!(kind, MeasureKind::Stage | MeasureKind::State);
            let tid = self.main_tid.filter(|_| is_of_main);
            let sum = value(*kind, name.into(), tid, in_ns(measure.ns));
            match kind {
                MeasureKind::Benchmark => {}
                _ => values.push(RunValue { count: Some(measure.count), ..sum }),
            }
        }
        values
    }
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
    /// The first launch in a timeline that overlaps the part from `from` to `to` and that the recording does
    /// not cut. It ends with the first of the slices that the user named, which end at the times
    /// `named_ends`, behind the begin of the app.
    pub fn first(
        measured: &Measured,
        named_ends: &[Timestamp],
        from: Timestamp,
        to: Timestamp,
    ) -> Option<LaunchSpan> {
        let is_measured = |launch: &&Launch| launch.cut.is_none() && launch.begin <= to && launch.end >= from;
        let launch = measured.launches.iter().find(is_measured)?;
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

/// The name under which a state is measured: the four states that people tell apart, and the rest by its
/// own name.
pub(super) fn state_name(state: &str) -> &str {
    match TaskState::from_name(state) {
        Some(TaskState::Runnable | TaskState::Preempted) => "runnable",
        Some(TaskState::Running) => "running",
        Some(TaskState::IoWait) => "I/O",
        Some(TaskState::Uninterruptible) => "uninterruptible sleep",
        Some(TaskState::Sleeping) => "sleeping",
        _ => state,
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

/// The times of one run. Stages, states, methods and slices are those within the measured part: the launch of
/// an app where one is marked, else from the main thread's first slice to its last one, else the whole run.
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
    /// The account of missing data.
    pub losses: Losses,
    /// Whether events were lost, or an input is damaged.
    pub is_lossy: bool,
}

impl RunTimes {
    /// Takes the measures of a run that `filter` keeps.
    pub(crate) fn take(&mut self, run: &MeasuredRun, filter: &mut MeasureFilter<'_>) {
        if let Some(span) = run.launch_with_length() {
            self.launch_extent = Some([span.begins_with, span.ends_with].map(str::to_owned));
            self.launch_type = span.launch_type.map(|launch_type| launch_type.name().to_owned());
        }
        for RunValue { kind, name, value, .. } in run.values() {
            self.add(kind, &name, value, filter);
        }
    }

    /// Adds a measure, if `filter` keeps it.
    pub fn add(&mut self, kind: MeasureKind, name: &str, value: i64, filter: &mut MeasureFilter<'_>) {
        self.measured.insert(kind);
        if filter.keeps(kind, name) {
            self.times.insert((kind, name.to_owned()), value);
        }
    }
}
