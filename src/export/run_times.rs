//! What a run took, for whoever compares many runs: of the whole run, its stages, the states of its main
//! thread, its slices and its methods only those that are wanted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::compare::{measure, runs_of, window};
use super::comparison::{Kind, state_name};
use super::convert::{ConvertError, ConvertRequest};
use crate::formats::unpack_budget::UnpackLimit;
use crate::measure::FrameFigures;
use crate::text::file_name;

/// What is measured of a run. Times are sums over the run, in ns; all but those of frames are 0 or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
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
}

/// Which times are wanted of runs.
pub struct Wanted<'a> {
    /// What of.
    pub figures: &'a BTreeSet<Figure>,
    /// Whether the time of what has this name is wanted.
    pub is_wanted: &'a mut dyn FnMut(Figure, &str) -> bool,
}

/// The times of one run. Stages, states and slices are those within the launch of an app where one is marked,
/// else those of the whole run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunTimes {
    /// The name, for people.
    pub name: String,
    /// Runs that have the same one are the same run.
    pub identity: String,
    /// With what the launch of an app begins and ends, as the table `launch` has it.
    pub launch_extent: Option<[String; 2]>,
    /// `cold`, `warm` or `hot`, where the launch's type is known.
    pub launch_type: Option<String>,
    /// What the run has any of, whether it is wanted or not. A slice that such a run lacks took no time.
    pub measured: BTreeSet<Figure>,
    /// The wanted times, by name, ns; a share in parts of `measure::WHOLE_SHARE`. A launch has no name.
    pub times: BTreeMap<(Figure, String), i64>,
    /// Whether events were lost, or an input is damaged.
    pub is_lossy: bool,
}

impl RunTimes {
    /// Adds `ns` to the time of what has this name, if that is wanted.
    pub fn add(&mut self, figure: Figure, name: &str, ns: u64, wanted: &mut Wanted<'_>) {
        self.measured.insert(figure);
        if wanted.figures.contains(&figure) && (wanted.is_wanted)(figure, name) {
            let sum = self.times.entry((figure, name.to_owned())).or_default();
            *sum = sum.saturating_add(i64::try_from(ns).unwrap_or(i64::MAX));
        }
    }

    /// Adds what of the frames of the run is wanted.
    pub(crate) fn add_frames(&mut self, frames: &FrameFigures, wanted: &mut Wanted<'_>) {
        for (name, value) in frames.figures() {
            self.measured.insert(Figure::Frame);
            if wanted.figures.contains(&Figure::Frame) && (wanted.is_wanted)(Figure::Frame, &name) {
                self.times.insert((Figure::Frame, name), value);
            }
        }
    }

    /// The runs in these files. Files of one directory whose names differ in their endings alone are one run:
    /// a recording and its method trace.
    ///
    /// # Errors
    /// [`ConvertError`] where a file cannot be read.
    pub fn of_files(
        files: &[PathBuf],
        limit: UnpackLimit,
        wanted: &mut Wanted<'_>,
    ) -> Result<Vec<RunTimes>, ConvertError> {
        runs_of(files).iter().map(|inputs| RunTimes::measure(inputs, limit, wanted)).collect()
    }

    fn measure(
        inputs: &[PathBuf],
        limit: UnpackLimit,
        wanted: &mut Wanted<'_>,
    ) -> Result<RunTimes, ConvertError> {
        // Nothing is written: the name only chooses a format that holds everything.
        let request =
            ConvertRequest { unpack_limit: limit, ..ConvertRequest::of(inputs, Path::new("run.pftrace")) };
        let (whole, summary) = measure(request, None)?;
        let paths = inputs.iter().map(|path| path.display().to_string());
        let same = |path: &PathBuf| std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        let mut identities: Vec<String> =
            inputs.iter().map(|path| same(path).to_string_lossy().into_owned()).collect();
        identities.sort_unstable();
        let mut run = RunTimes {
            name: paths.map(|path| file_name(&path).to_owned()).collect::<Vec<_>>().join(" + "),
            identity: identities.join("\n"),
            is_lossy: summary.report.is_lossy(),
            ..RunTimes::default()
        };
        let launch = whole.launch.clone().filter(|span| span.from < span.to);
        run.add_frames(&whole.frames, wanted);
        let mut part = None;
        if let Some(span) = launch {
            run.launch_extent = Some([span.begins_with, span.ends_with].map(str::to_owned));
            run.launch_type = span.launch_type.map(|launch_type| launch_type.name().to_owned());
            run.add(Figure::Launch, "", span.to - span.from, wanted);
            for (figure, ns) in [(Figure::Ttid, span.ttid), (Figure::Ttfd, span.ttfd)] {
                if let Some(ns) = ns {
                    run.add(figure, "", ns, wanted);
                }
            }
            let is_of_launch = |figure| matches!(figure, Figure::Stage | Figure::State | Figure::Slice);
            if wanted.figures.iter().copied().any(is_of_launch)
                && let Some(first) = summary.report.first_ts
            {
                let window = window(span.from..span.to, first);
                part = Some(measure(ConvertRequest { window, ..request }, None)?.0);
            }
        }
        let of_launch = part.as_ref().unwrap_or(&whole);
        for (run_of_kind, is_method) in [(of_launch, false), (&whole, true)] {
            for ((kind, name), measure) in &run_of_kind.measures {
                if (*kind == Kind::Method) == is_method {
                    run.add(Figure::from(*kind), name, measure.ns, wanted);
                }
            }
        }
        Ok(run)
    }
}

impl From<Kind> for Figure {
    fn from(kind: Kind) -> Figure {
        match kind {
            Kind::Stage => Figure::Stage,
            Kind::State => Figure::State,
            Kind::Method => Figure::Method,
            Kind::Slice => Figure::Slice,
        }
    }
}

/// The name under which a state of the table `thread_state` is measured: `runnable` for `Runnable
/// (Preempted)`.
pub fn measured_state(state: &str) -> &str {
    state_name(state)
}
