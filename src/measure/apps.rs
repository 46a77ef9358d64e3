//! Which process a launch is of, and what its main thread did.

use std::collections::HashMap;

use super::app_names::fit;
use super::frame::Frame;
use super::frame_join::UiFrames;
use super::launch::LaunchType;
use super::launch_marks::{LaunchMarks, Step, StepKind};
use crate::tracks::Tasks;

/// The most steps that are examined for one launch. So a hostile recording cannot take all time.
const MAX_EXAMINED: usize = 10_000;
/// The processes of a timeline, and what marks of launches and frames they have.
pub(super) struct Apps<'a> {
    tasks: &'a Tasks,
    /// The steps of main threads, in the order of their begins.
    resumes: Vec<Step>,
    /// All steps by thread, in the order of their begins.
    steps: HashMap<i32, Vec<Step>>,
    /// When each thread said that the app is fully drawn, in order.
    reports: HashMap<i32, Vec<u64>>,
    /// Frames by process, in the order of their begins; and the latest end up to each.
    frames: HashMap<i32, Vec<(&'a Frame, u64)>>,
    pub ui_frames: &'a UiFrames,
}

impl<'a> Apps<'a> {
    /// `frames` must be in the order of their begins.
    pub fn new(
        tasks: &'a Tasks,
        marks: &LaunchMarks,
        frames: &'a [Frame],
        ui_frames: &'a UiFrames,
    ) -> Apps<'a> {
        let is_main = |step: &&Step| tasks.threads.tgid(step.tid).is_none_or(|tgid| tgid == step.tid);
        let mut all: Vec<Step> = marks.steps.iter().filter(is_main).copied().collect();
        all.sort_by_key(|step| step.begin);
        let resumes = all.iter().filter(|step| step.kind == StepKind::Resume).copied().collect();
        let mut steps: HashMap<i32, Vec<Step>> = HashMap::new();
        for step in all {
            steps.entry(step.tid).or_default().push(step);
        }
        let mut reports: HashMap<i32, Vec<u64>> = HashMap::new();
        for (tid, ts) in &marks.reports {
            reports.entry(*tid).or_default().push(*ts);
        }
        reports.values_mut().for_each(|times| times.sort_unstable());
        let mut by_process: HashMap<i32, Vec<(&Frame, u64)>> = HashMap::new();
        for frame in frames {
            let of_process = by_process.entry(frame.pid).or_default();
            let latest = of_process.last().map_or(frame.end, |(_, latest)| frame.end.max(*latest));
            of_process.push((frame, latest));
        }
        Apps { tasks, resumes, steps, reports, frames: by_process, ui_frames }
    }

    /// The process that handled a launch from `begin` to `end`: its main thread has `activityResume` then,
    /// and its name is the package's. Of several the name that fits best counts, then the latest: a process
    /// may die during its launch, and come again.
    pub fn of_launch(&self, package: &str, begin: u64, end: u64) -> Option<i32> {
        let first = self.resumes.partition_point(|step| step.begin < begin);
        let within = self.resumes[first..].iter().take_while(|step| step.begin < end).take(MAX_EXAMINED);
        let fits = within.filter_map(|step| Some((fit(package, &self.name(step.tid))?, step.tid)));
        let fits: Vec<(u8, i32)> = fits.collect();
        let best = fits.iter().map(|(fit, _)| *fit).max()?;
        let mut pids = fits.iter().rev().filter(|(fit, _)| *fit == best).map(|(_, pid)| *pid);
        let pid = pids.next()?;
        // A process without a name is the launch's only where there is no other one.
        (best > 0 || pids.all(|other| other == pid)).then_some(pid)
    }

    /// The process with exactly this name.
    pub fn named(&self, package: &str) -> Option<i32> {
        let mut named = self.tasks.processes.iter().filter(|(_, name)| !name.is_empty() && *name == package);
        named.next().map(|(pid, _)| *pid)
    }

    /// The name of a process.
    pub fn name(&self, pid: i32) -> std::borrow::Cow<'_, str> {
        self.tasks.process_name(pid)
    }

    /// The type of a launch, by the steps of the main thread that begin in it.
    pub fn launch_type(&self, tid: i32, begin: u64, end: u64) -> Option<LaunchType> {
        let steps = self.steps.get(&tid)?;
        let first = steps.partition_point(|step| step.begin < begin);
        let within = || steps[first..].iter().take_while(|step| step.begin < end).take(MAX_EXAMINED);
        let has = |kind| within().any(|step| step.kind == kind);
        if !has(StepKind::Resume) {
            return None;
        }
        Some(match (has(StepKind::Bind), has(StepKind::Start)) {
            (true, true) => LaunchType::Cold,
            (false, true) => LaunchType::Warm,
            _ => LaunchType::Hot,
        })
    }

    /// The steps of all main threads, each thread's in the order of their begins.
    pub fn steps(&self) -> impl Iterator<Item = (i32, &[Step])> {
        self.steps.iter().map(|(tid, steps)| (*tid, steps.as_slice()))
    }

    /// Every `activityResume` of a main thread, in the order of their begins.
    pub fn resumes(&self) -> &[Step] {
        &self.resumes
    }

    /// The first frame of a process that begins at `from` or later.
    pub fn first_frame(&self, pid: i32, from: u64) -> Option<&'a Frame> {
        let frames = self.frames.get(&pid)?;
        frames.get(frames.partition_point(|(frame, _)| frame.begin < from)).map(|(frame, _)| *frame)
    }

    /// The first frame of a process's main thread that ends after the thread's first report, at `from` or
    /// later, that it is fully drawn.
    pub fn full_frame(&self, pid: i32, from: u64) -> Option<&'a Frame> {
        let reports = self.reports.get(&pid)?;
        let report = *reports.get(reports.partition_point(|ts| *ts < from))?;
        let frames = self.frames.get(&pid)?;
        let first = frames.partition_point(|(_, latest)| *latest <= report);
        let mut later = frames[first..].iter().map(|(frame, _)| *frame);
        later.find(|frame| frame.end > report && frame.ui_tid == pid)
    }
}
