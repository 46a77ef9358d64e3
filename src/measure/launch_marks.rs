//! The markers of launches that a timeline holds, as they were met.

use std::collections::HashMap;

use super::launch::{LaunchType, Stage};
use super::mark::{AsyncMark, LaunchNews};
use crate::clock::Timestamp;
use crate::ids::{Pid, Tid};
use crate::tracks::{AsyncEdge, AsyncSlice, Span};

/// The most marks of one kind that are kept: a real recording has some thousands. So a hostile one cannot
/// take all memory.
pub(super) const MAX_MARKS: usize = 1 << 20;
/// The most slices that are kept as stages of one start of an activity.
const MAX_STAGES_OF_START: usize = 500;
/// The most threads on which the stages of a start are kept while a timeline goes on.
const MAX_STARTS_FOLLOWED: usize = 4096;
/// The most bytes of a stage's name that are kept.
const MAX_NAME_BYTES: usize = 200;

/// An asynchronous slice; `None` where the recording does not hold that end of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AsyncSpan {
    pub begin: Option<Timestamp>,
    pub end: Option<Timestamp>,
}

/// `launching: PACKAGE`.
#[derive(Debug, Clone)]
pub(super) struct Launching {
    pub package: String,
    /// The process that wrote the marker.
    pub pid: Pid,
    pub cookie: i64,
    pub span: AsyncSpan,
    /// Whether it ended under the name of another package: another activity came up instead.
    pub is_failed: bool,
}

/// `launchingActivity#N:completed`.
#[derive(Debug, Clone)]
pub(super) struct Completion {
    pub number: i64,
    pub ts: Timestamp,
    pub launch_type: Option<LaunchType>,
    pub package: String,
}

/// Which of the steps that tell the type of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepKind {
    Bind,
    Start,
    Resume,
}

/// A step of a launch on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub kind: StepKind,
    pub tid: Tid,
    pub begin: Timestamp,
    pub end: Timestamp,
}

impl Step {
    /// The process of a step on its main thread, which all steps are that count.
    pub fn process(&self) -> Pid {
        Pid::of_main_thread(self.tid)
    }
}

/// The slices of a thread from the begin of a step to the end of the first frame after it.
#[derive(Debug, Default)]
struct OpenStart {
    stages: usize,
}

/// All marks of launches.
#[derive(Debug, Default)]
pub(super) struct LaunchMarks {
    pub launching: Vec<Launching>,
    pub numbered: Vec<(i64, AsyncSpan)>,
    /// Whether an instant tells of a numbered launch.
    pub has_news: bool,
    pub completions: Vec<Completion>,
    /// When intents to start an activity came.
    pub intents: Vec<Timestamp>,
    /// When launches were seen to end well.
    pub finished: Vec<Timestamp>,
    /// Whether the class that writes these two wrote anything.
    pub has_logger: bool,
    pub steps: Vec<Step>,
    /// When apps said on a thread that they are fully drawn.
    pub reports: Vec<(Tid, Timestamp)>,
    /// Stages by thread.
    pub stages: HashMap<Tid, Vec<Stage>>,
    /// Marks that were left out because there are too many.
    pub left_out: u64,
    /// Stages that were left out because a start of an activity has too many.
    pub stages_left_out: u64,
    open: HashMap<(Pid, Vec<u8>, i64), usize>,
    open_numbered: HashMap<(Pid, i64, i64), usize>,
    starts: HashMap<Tid, OpenStart>,
}

impl LaunchMarks {
    /// Adds `item` to `list`, unless that is full. Returns its index.
    fn push<T>(list: &mut Vec<T>, left_out: &mut u64, item: T) -> Option<usize> {
        if list.len() >= MAX_MARKS {
            *left_out += 1;
            return None;
        }
        list.push(item);
        Some(list.len() - 1)
    }

    /// How many marks of launches there are, which grows with each.
    pub fn count(&self) -> usize {
        [
            self.launching.len(),
            self.launching.iter().filter(|it| it.span.end.is_some()).count(),
            self.numbered.len(),
            self.numbered.iter().filter(|(_, span)| span.end.is_some()).count(),
            self.completions.len(),
            self.intents.len(),
            self.finished.len(),
            self.steps.len(),
            self.reports.len(),
        ]
        .iter()
        .sum()
    }

    /// Forgets what came before the time `ts`.
    pub fn forget_before(&mut self, ts: Timestamp) {
        let is_late = |span: AsyncSpan| span.end.or(span.begin).is_some_and(|at| at >= ts);
        keep(&mut self.launching, &mut self.open, |launching| is_late(launching.span));
        keep(&mut self.numbered, &mut self.open_numbered, |(_, span)| is_late(*span));
        self.completions.retain(|completion| completion.ts >= ts);
        self.intents.retain(|at| *at >= ts);
        self.finished.retain(|at| *at >= ts);
        self.steps.retain(|step| step.end >= ts);
        self.reports.retain(|(_, at)| *at >= ts);
        self.stages.values_mut().for_each(|stages| stages.retain(|stage| stage.span.end >= ts));
        self.stages.retain(|_, stages| !stages.is_empty());
        if self.starts.len() > MAX_STARTS_FOLLOWED {
            self.starts = HashMap::new();
        }
    }

    pub fn async_slice(&mut self, pid: Pid, slice: &AsyncSlice<'_>) {
        if slice.edge == AsyncEdge::Instant {
            return self.instant(slice.ts, slice.name);
        }
        let Some(mark) = AsyncMark::from_name(slice.name) else { return };
        let span = match slice.edge {
            AsyncEdge::End { open: true, .. } => return,
            AsyncEdge::End { begin, .. } => AsyncSpan { begin: Some(begin), end: Some(slice.ts) },
            AsyncEdge::EndWithoutBegin => AsyncSpan { begin: None, end: Some(slice.ts) },
            _ => AsyncSpan { begin: Some(slice.ts), end: None },
        };
        match mark {
            AsyncMark::Launching(package) => {
                let key = (pid, package.to_vec(), slice.cookie);
                let opened = span.end.and_then(|_| self.open.remove(&key));
                if let Some(launching) = opened.and_then(|at| self.launching.get_mut(at)) {
                    launching.span.end = span.end;
                    return;
                }
                let cookie = slice.cookie;
                let is_open = |it: &&mut Launching| {
                    it.pid == pid && it.cookie == cookie && it.span.begin.is_some() && it.span.end.is_none()
                };
                let before = self.launching.last_mut().filter(is_open);
                if let (None, Some(end), Some(before)) = (span.begin, span.end, before) {
                    before.span.end = Some(end);
                    before.is_failed = true;
                    return;
                }
                let package = String::from_utf8_lossy(package).into_owned();
                let launching = Launching { package, pid, cookie, span, is_failed: false };
                let at = Self::push(&mut self.launching, &mut self.left_out, launching);
                if let (Some(at), None) = (at, span.end) {
                    self.open.insert(key, at);
                }
            }
            AsyncMark::LaunchingActivity(number) => {
                let key = (pid, number, slice.cookie);
                let opened = span.end.and_then(|_| self.open_numbered.remove(&key));
                if let Some((_, opened)) = opened.and_then(|at| self.numbered.get_mut(at)) {
                    opened.end = span.end;
                    return;
                }
                let at = Self::push(&mut self.numbered, &mut self.left_out, (number, span));
                if let (Some(at), None) = (at, span.end) {
                    self.open_numbered.insert(key, at);
                }
            }
        }
    }

    pub fn instant(&mut self, ts: Timestamp, name: &[u8]) {
        let Some(LaunchNews { number, completed }) = LaunchNews::from_name(name) else { return };
        self.has_news = true;
        let Some((launch_type, package)) = completed else { return };
        let launch_type = match launch_type {
            b"-cold" => Some(LaunchType::Cold),
            b"-warm" => Some(LaunchType::Warm),
            b"-hot" => Some(LaunchType::Hot),
            _ => None,
        };
        let package = String::from_utf8_lossy(package).into_owned();
        let completion = Completion { number, ts, launch_type, package };
        Self::push(&mut self.completions, &mut self.left_out, completion);
    }

    pub fn intent(&mut self, ts: Timestamp) {
        Self::push(&mut self.intents, &mut self.left_out, ts);
    }

    pub fn finish(&mut self, ts: Timestamp) {
        Self::push(&mut self.finished, &mut self.left_out, ts);
    }

    pub fn report(&mut self, tid: Tid, ts: Timestamp) {
        Self::push(&mut self.reports, &mut self.left_out, (tid, ts));
    }

    /// A step begins on a thread: from now on its stages are kept.
    pub fn step_begins(&mut self, tid: Tid) {
        if self.starts.len() < MAX_MARKS {
            self.starts.entry(tid).or_default();
        } else {
            self.left_out += 1;
        }
    }

    pub fn step(&mut self, step: Step) {
        Self::push(&mut self.steps, &mut self.left_out, step);
    }

    pub fn stage(&mut self, tid: Tid, name: &[u8], span: Span) {
        let Some(start) = self.starts.get_mut(&tid) else { return };
        if start.stages >= MAX_STAGES_OF_START {
            self.stages_left_out += 1;
            return;
        }
        start.stages += 1;
        let name = String::from_utf8_lossy(&name[..name.len().min(MAX_NAME_BYTES)]).into_owned();
        self.stages.entry(tid).or_default().push(Stage { name, span });
    }

    /// A frame of a thread ended: it is the last stage of the start before it.
    pub fn frame_ended(&mut self, tid: Tid, name: &[u8], span: Span) {
        if self.starts.contains_key(&tid) {
            self.stage(tid, name, span);
            self.starts.remove(&tid);
        }
    }
}

/// Keeps those of `list` that `is_kept` says, and the indices of those that are.
fn keep<T, K>(list: &mut Vec<T>, open: &mut HashMap<K, usize>, is_kept: impl Fn(&T) -> bool) {
    let mut gone = 0;
    let new: Vec<Option<usize>> = list
        .iter()
        .enumerate()
        .map(|(at, item)| {
            let kept = is_kept(item);
            gone += usize::from(!kept);
            kept.then(|| at - gone)
        })
        .collect();
    list.retain(is_kept);
    open.retain(|_, at| match new.get(*at).copied().flatten() {
        Some(now) => {
            *at = now;
            true
        }
        None => false,
    });
}
