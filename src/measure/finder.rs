//! Watches a timeline pass, and finds the launches and frames in it.

use std::collections::HashMap;
use std::io;

use super::apps::{AppNames, Apps};
use super::frame::{
    Frame, FrameJoin, FrameWork, LatestFrames, TimelineCounts, UiFrames, VSYNC_COUNTER, Vsync,
};
use super::launch::{Cancelled, Cut, Launch, Rule};
use super::launch_marks::{LaunchMarks, Step, StepKind};
use super::mark::SliceMark;
use super::rules::{self, Found, TimelineExtent};
use crate::clock::Timestamp;
use crate::formats::{Head, TimelineFrame, TrackOwner};
use crate::ids::{Pid, Tid};
use crate::timeline::MergeSummary;
use crate::tracks::{
    AsyncEdge, AsyncSlice, CounterSample, OwnTrack, Span, Task, Tasks, TrackObserver, TrackSink,
};

/// The most stages of one launch.
const MAX_STAGES: usize = 200;

/// The launches and frames of a timeline.
#[derive(Debug, Clone, Default)]
pub(crate) struct Measured {
    /// In the order of their begins.
    pub launches: Vec<Launch>,
    /// Launches that came to nothing.
    pub cancelled: Vec<Cancelled>,
    /// In the order of their begins.
    pub frames: Vec<Frame>,
    /// The frames of FrameTimeline, as SurfaceFlinger judges them.
    pub timeline_frames: TimelineCounts,
    /// The names of the apps of both.
    pub names: AppNames,
    /// Marks of launches and frames that were left out because there are too many.
    pub left_out: u64,
    /// Stages of launches that were left out because a launch has too many.
    pub stages_left_out: u64,
}

/// Finds launches and frames while the slices, asynchronous slices, instants and counters of a timeline pass,
/// in the order of time.
#[derive(Debug, Default)]
pub(crate) struct Finder {
    sdk: Option<u32>,
    marks: LaunchMarks,
    frames: FrameJoin,
    vsync: Vsync,
    /// The deadline of the frame that each UI thread works on.
    deadlines: HashMap<Tid, Option<Timestamp>>,
    /// Frames that were handed out before the timeline ended.
    latest: LatestFrames,
    /// The names of apps, as the latest launches tell them.
    names: AppNames,
}

impl Finder {
    fn mark_ended(&mut self, tid: Tid, span: Span, name: &[u8], mark: SliceMark) {
        let step = |kind| Step { kind, tid, begin: span.start, end: span.end };
        match mark {
            SliceMark::Logger => {}
            SliceMark::IntentStarted => self.marks.intent(span.start),
            SliceMark::LaunchFinished => self.marks.finish(span.start),
            SliceMark::BindApplication => self.marks.step(step(StepKind::Bind)),
            SliceMark::ActivityStart => self.marks.step(step(StepKind::Start)),
            SliceMark::ActivityResume => self.marks.step(step(StepKind::Resume)),
            SliceMark::Stage => {}
            SliceMark::ReportFullyDrawn => self.marks.report(tid, span.start),
            SliceMark::DoFrame(number) => {
                let deadline = self.deadlines.remove(&tid).flatten();
                if !span.open {
                    self.frames.ui(tid, number, span, deadline);
                    self.latest.add_ui(tid, span);
                    self.marks.frame_ended(tid, name, span);
                }
            }
            SliceMark::DrawFrame(number) if !span.open => self.frames.drawn(tid, number, span),
            SliceMark::DrawFrame(_) => {}
        }
        match mark {
            SliceMark::Logger | SliceMark::IntentStarted | SliceMark::LaunchFinished => {
                self.marks.has_logger = true;
            }
            SliceMark::BindApplication
            | SliceMark::ActivityStart
            | SliceMark::ActivityResume
            | SliceMark::Stage => {
                self.marks.stage(tid, name, span);
            }
            _ => {}
        }
    }

    /// How many marks and stages are kept.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.marks.steps.len() + self.marks.stages.values().map(Vec::len).sum::<usize>()
    }

    /// The launches and frames of the timeline, which has ended. `tasks` has all names.
    pub fn finish(self, tasks: &Tasks, summary: &MergeSummary) -> Measured {
        let first = summary.report.first_ts.unwrap_or_default();
        let end = summary.report.last_ts.unwrap_or(first);
        self.finish_within(tasks, TimelineExtent { begin: first, end })
    }

    /// The same for a timeline of this extent.
    pub fn finish_within(self, tasks: &Tasks, extent: TimelineExtent) -> Measured {
        let Finder { sdk, marks, frames, .. } = self;
        let left_out = [marks.left_out, frames.left_out, frames.timeline.left_out];
        let left_out = left_out.into_iter().fold(0, u64::saturating_add);
        let timeline_frames = frames.timeline.counts;
        let (mut frames, alone, ui_frames) = frames.finish(tasks);
        let found = find_launches(&marks, sdk, tasks, &frames, &ui_frames, extent);
        let FoundLaunches { launches, cancelled, names, stages_left_out } = found;
        // Launches are found by the work of the app's threads.
        frames.extend(alone);
        frames.sort_by_key(Frame::order);
        for frame in &mut frames {
            frame.package = names.name(tasks, frame.pid).into_owned();
        }
        Measured { launches, cancelled, frames, timeline_frames, names, left_out, stages_left_out }
    }
}

/// The launches of a timeline, with the names of their apps.
struct FoundLaunches {
    launches: Vec<Launch>,
    cancelled: Vec<Cancelled>,
    names: AppNames,
    stages_left_out: u64,
}

/// Finds launches by their marks and by frames.
fn find_launches(
    marks: &LaunchMarks,
    sdk: Option<u32>,
    tasks: &Tasks,
    frames: &[Frame],
    ui_frames: &UiFrames,
    extent: TimelineExtent,
) -> FoundLaunches {
    let apps = Apps::new(tasks, marks, frames, ui_frames);
    let rule = rules::choose(marks, sdk);
    let Found { mut launches, cancelled } = rules::find(rule, marks, &apps, extent);
    let mut stages_left_out = marks.stages_left_out;
    for launch in &mut launches {
        stages_left_out += complete(launch, &apps, marks);
    }
    launches.sort_by(|a, b| (a.begin, a.end, &a.package).cmp(&(b.begin, b.end, &b.package)));
    mark_overlaps(&mut launches);
    drop(apps);
    let names = AppNames::new(tasks, &launches);
    // A launch that is found by the app's own markers is named by the process alone.
    for launch in &mut launches {
        if let Some(pid) = launch.pid.filter(|pid| tasks.process_name(*pid) == launch.package) {
            launch.package = names.name(tasks, pid).into_owned();
        }
    }
    FoundLaunches { launches, cancelled, names, stages_left_out }
}

/// Marks of launches of a timeline that goes on are kept so long, ns.
const MARKS_KEPT_NS: u64 = 180_000_000_000;

/// A timeline that goes on.
impl Finder {
    /// The frames that are complete at the time `now`, in the order of their begins; each is handed out
    /// once. With `is_last` the timeline has ended.
    pub fn take_frames(&mut self, tasks: &Tasks, now: Timestamp, is_last: bool) -> Vec<Frame> {
        let mut frames = self.frames.take_complete(tasks, now, is_last);
        for frame in &mut frames {
            frame.package = self.names.name(tasks, frame.pid).into_owned();
            self.latest.add(frame);
        }
        frames
    }

    /// The number of marks of launches that are kept: launches are the same as long as it is.
    pub fn launch_marks(&self) -> usize {
        self.marks.count()
    }

    /// The launches of the last minutes up to the time `now`, by the marks and frames so far.
    pub fn latest_launches(&mut self, tasks: &Tasks, now: Timestamp) -> Vec<Launch> {
        let begin = now.saturating_sub(MARKS_KEPT_NS);
        self.marks.forget_before(begin);
        let (frames, ui) = self.latest.all(tasks);
        let extent = TimelineExtent { begin, end: now };
        let found = find_launches(&self.marks, self.sdk, tasks, &frames, &ui, extent);
        self.names = found.names;
        found.launches
    }
}

impl TrackObserver for Finder {
    /// Takes the timeline's head, which may tell the release of Android.
    fn head(&mut self, head: &Head) {
        self.sdk = head.android_sdk.or(self.sdk);
    }

    #[inline]
    fn begin(&mut self, at: Task, ts: Timestamp, name: &[u8]) {
        match SliceMark::from_name(name) {
            Some(SliceMark::BindApplication | SliceMark::ActivityStart | SliceMark::ActivityResume) => {
                self.marks.step_begins(at.tid);
            }
            Some(SliceMark::DoFrame(_)) => {
                self.deadlines.insert(at.tid, self.vsync.deadline(ts));
            }
            _ => {}
        }
    }

    #[inline]
    fn end(&mut self, at: Task, span: Span, name: &[u8]) {
        if let Some(mark) = SliceMark::from_name(name) {
            self.mark_ended(at.tid, span, name, mark);
        } else if name.first() == Some(&b'l') && span.end == span.start {
            // Some writers make an instant of a begin and an end at one time.
            self.marks.instant(span.start, name);
        }
    }

    #[inline]
    fn async_edge(&mut self, pid: Pid, slice: &AsyncSlice<'_>) {
        if slice.name.first() == Some(&b'l') {
            self.marks.async_slice(pid, slice);
        }
    }

    #[inline]
    fn instant(&mut self, ts: Timestamp, name: &[u8]) {
        if name.first() == Some(&b'l') {
            self.marks.instant(ts, name);
        }
    }

    #[inline]
    fn counter(&mut self, at: &CounterSample<'_>) {
        if at.name == VSYNC_COUNTER {
            self.vsync.tick(at.ts);
        }
    }

    fn frame(&mut self, span: Span, frame: &TimelineFrame<'_>) {
        self.frames.timeline.take(span, frame);
    }

    /// A track of a thread stands for the thread, as in Perfetto's table of slices.
    fn track_begin(&mut self, track: &OwnTrack, ts: Timestamp, name: &[u8]) {
        if let TrackOwner::Thread { tid, tgid } = track.owner {
            self.begin(Task { tid, tgid }, ts, name);
        }
    }

    /// A slice on a track of a process is as an asynchronous slice of that process.
    fn track_slice(&mut self, track: &OwnTrack, span: Span, name: &[u8]) {
        match track.owner {
            TrackOwner::Thread { tid, tgid } => self.end(Task { tid, tgid }, span, name),
            TrackOwner::Process(pid) => {
                let ended = AsyncEdge::End { begin: span.start, open: false };
                let edge = if span.open { AsyncEdge::Begin } else { ended };
                let ts = if span.open { span.start } else { span.end };
                self.async_edge(pid, &AsyncSlice { id: 0, track: None, name, cookie: 0, ts, edge });
            }
            TrackOwner::Machine => {}
        }
    }

    fn track_instant(&mut self, ts: Timestamp, name: &[u8]) {
        self.instant(ts, name);
    }
}

/// Adds to a launch its process, its type, its times to display and its stages. Returns how many stages it
/// has beyond those that are kept.
fn complete(launch: &mut Launch, apps: &Apps<'_>, marks: &LaunchMarks) -> u64 {
    let handled = launch.pid.or_else(|| apps.of_launch(&launch.package, launch.begin, launch.end));
    if launch.rule != Rule::App && launch.launch_type.is_none() && launch.cut != Some(Cut::Begin) {
        launch.launch_type = handled.and_then(|pid| apps.launch_type(pid, launch.begin, launch.end));
    }
    launch.pid = handled.or_else(|| apps.named(&launch.package));
    let Some(pid) = launch.pid else { return 0 };
    if launch.package.is_empty() {
        launch.package = apps.name(pid).into_owned();
    }
    let main = pid.main_thread();
    launch.main_tid = Some(main);
    let first_frame = apps.first_frame(pid, launch.begin);
    let first_work = first_frame.and_then(|frame| frame.work);
    launch.render_tid = first_work.map(|work| work.render_tid);
    if launch.cut != Some(Cut::Begin) {
        let since_begin = |work: FrameWork| work.drawn.since(launch.begin);
        launch.ttid = first_work.map(since_begin);
        let full_work = apps.full_frame(pid, launch.begin).and_then(|frame| frame.work);
        launch.ttfd = full_work.map(since_begin);
    }
    let until = launch.end.max(launch.ttid.map_or(Timestamp::MIN, |ttid| launch.begin.saturating_add(ttid)));
    let stages = marks.stages.get(&main).map_or(&[][..], Vec::as_slice);
    let is_within = |start: Timestamp| (launch.begin..=until).contains(&start);
    let within = stages.iter().filter(|stage| is_within(stage.span.start));
    launch.stages = within.clone().take(MAX_STAGES).cloned().collect();
    launch.stages.sort_by_key(|stage| (stage.span.start, std::cmp::Reverse(stage.span.end)));
    within.count().saturating_sub(MAX_STAGES) as u64
}

/// Marks launches, which are in the order of their begins, that go on while another one does.
fn mark_overlaps(launches: &mut [Launch]) {
    let mut longest: Option<usize> = None;
    for at in 0..launches.len() {
        if let Some(before) = longest
            && launches[at].begin < launches[before].end
        {
            launches[before].is_overlapped = true;
            launches[at].is_overlapped = true;
        }
        if longest.is_none_or(|before| launches[at].end > launches[before].end) {
            longest = Some(at);
        }
    }
}

/// A sink that finds launches and frames, and nothing else.
#[derive(Debug, Default)]
pub(crate) struct FinderSink {
    finder: Finder,
    /// The launches and frames, when the timeline has ended.
    pub measured: Measured,
}

impl TrackSink for FinderSink {
    fn observer(&mut self) -> Option<&mut dyn TrackObserver> {
        Some(&mut self.finder)
    }

    fn finish(&mut self, tasks: &Tasks, summary: &MergeSummary) -> io::Result<()> {
        self.measured = std::mem::take(&mut self.finder).finish(tasks, summary);
        Ok(())
    }
}
