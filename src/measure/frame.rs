//! A frame of an app: its times, its deadline, and the parts that threads did of it, joined.

use std::collections::{HashMap, HashSet, VecDeque};

use schemars::JsonSchema;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::formats::TimelineFrame;
use crate::ids::{Pid, Tid};
use crate::tracks::{Span, Tasks};

/// A frame takes longer than this, ns, to be slow, a big jank and a huge jank: Perfetto's limits of CPU time
/// (`stdlib/android/frames/per_frame_metrics.sql`).
const SLOW_NS: u64 = 20_000_000;
const BIG_JANK_NS: u64 = 50_000_000;
const HUGE_JANK_NS: u64 = 200_000_000;

/// Where the deadline of a frame comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Deadline {
    /// SurfaceFlinger's FrameTimeline.
    FrameTimeline,
    /// The period of VSYNC, as the recording's counter `VSYNC-app` shows it.
    Vsync,
}

impl Deadline {
    /// The name in outputs.
    pub fn name(self) -> &'static str {
        match self {
            Deadline::FrameTimeline => "frame-timeline",
            Deadline::Vsync => "vsync",
        }
    }
}

/// The work of the UI thread and the RenderThread on a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameWork {
    pub ui_tid: Tid,
    pub render_tid: Tid,
    /// The end of the first `DrawFrame`.
    pub drawn: Timestamp,
    /// `Choreographer#doFrame` and all `DrawFrame` together, and with FrameTimeline by how much the frame
    /// began late, ns: Perfetto's CPU time of a frame.
    pub cpu_ns: u64,
    /// FrameTimeline expected the frame and does not have its begin: Perfetto has no CPU time of it.
    pub is_lateness_unknown: bool,
    /// From the begin of `Choreographer#doFrame` to the end of the first `DrawFrame`, ns: androidx's
    /// `frameDurationCpuMs`.
    pub duration_cpu_ns: u64,
}

/// A frame of an app. Times are those of the timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(into = "FrameJson")]
#[schemars(with = "FrameJson")]
pub(crate) struct Frame {
    /// The frame's number, which is that of its VSYNC (from Android 12 on).
    pub id: Option<i64>,
    pub pid: Pid,
    /// The app's name by its process; empty where the recording does not name it.
    pub package: String,
    /// The surface that the frame is for, where FrameTimeline names it.
    pub layer: Option<String>,
    /// The work of the app's threads; `None` for a frame that only FrameTimeline has.
    pub work: Option<FrameWork>,
    /// The begin of `Choreographer#doFrame`; with FrameTimeline that of the actual frame.
    pub begin: Timestamp,
    /// The end of the last `DrawFrame`; with FrameTimeline that of the actual frame.
    pub end: Timestamp,
    /// When the frame was to be done, and how that is known.
    pub expected_end: Option<Timestamp>,
    pub deadline: Option<Deadline>,
    /// With FrameTimeline, the end that Perfetto compares with that: of the layer that began first.
    pub timeline_end: Option<Timestamp>,
    /// SurfaceFlinger's word for the reason why the frame was late.
    pub jank_type: Option<String>,
}

impl Frame {
    /// The key by which frames are sorted.
    pub fn order(&self) -> (Timestamp, Pid, Option<i64>) {
        (self.begin, self.pid, self.id)
    }

    /// How long the frame took, ns.
    pub fn duration(&self) -> u64 {
        self.end.since(self.begin)
    }

    /// By how much the frame ended after its deadline, ns; negative if it was early.
    pub fn overrun(&self) -> Option<i64> {
        let expected = self.expected_end?;
        let end = self.timeline_end.unwrap_or(self.end);
        Some(i64::try_from(i128::from(end.0) - i128::from(expected.0)).unwrap_or(i64::MAX))
    }

    /// Whether the frame ended after its deadline.
    pub fn is_janky(&self) -> bool {
        self.overrun().is_some_and(|overrun| overrun > 0)
    }

    /// Perfetto's CPU time of the frame, ns.
    fn cpu(&self) -> Option<u64> {
        self.work.filter(|work| !work.is_lateness_unknown).map(|work| work.cpu_ns)
    }

    /// androidx's `frameDurationCpuMs`, ns.
    pub fn duration_cpu(&self) -> Option<u64> {
        self.work.map(|work| work.duration_cpu_ns)
    }

    /// The threads that worked on the frame.
    pub fn tids(&self) -> impl Iterator<Item = Tid> + use<> {
        self.work.into_iter().flat_map(|work| [work.ui_tid, work.render_tid])
    }

    pub fn is_slow(&self) -> bool {
        self.cpu() > Some(SLOW_NS)
    }

    pub fn is_big_jank(&self) -> bool {
        self.cpu() > Some(BIG_JANK_NS)
    }

    pub fn is_huge_jank(&self) -> bool {
        self.cpu() > Some(HUGE_JANK_NS)
    }
}

/// A frame as `info --json` prints it.
#[derive(Serialize, JsonSchema)]
struct FrameJson {
    /// The frame's number, from Android 12 on.
    id: Option<i64>,
    /// The process's name.
    package: String,
    pid: Pid,
    /// The surface, where FrameTimeline names it.
    layer: Option<String>,
    begin_ns: Timestamp,
    duration_ns: u64,
    /// `Choreographer#doFrame` and all `DrawFrame` together, ns; null for a frame that FrameTimeline
    /// expected and did not see, and for one that only FrameTimeline has.
    cpu_ns: Option<u64>,
    /// androidx's `frameDurationCpuMs`, ns; null for a frame that only FrameTimeline has.
    duration_cpu_ns: Option<u64>,
    /// By how much the frame ended after its deadline, ns.
    overrun_ns: Option<i64>,
    /// Whether the frame ended after its deadline; null without a deadline.
    janky: Option<bool>,
    /// Whether the CPU time is over 20 ms.
    slow: bool,
    /// SurfaceFlinger's reason of a late frame.
    jank_type: Option<String>,
}

impl From<Frame> for FrameJson {
    fn from(frame: Frame) -> FrameJson {
        FrameJson {
            duration_ns: frame.duration(),
            cpu_ns: frame.cpu(),
            duration_cpu_ns: frame.duration_cpu(),
            overrun_ns: frame.overrun(),
            janky: frame.overrun().map(|_| frame.is_janky()),
            slow: frame.is_slow(),
            id: frame.id,
            package: frame.package,
            pid: frame.pid,
            layer: frame.layer,
            begin_ns: frame.begin,
            jank_type: frame.jank_type,
        }
    }
}

// The deadlines of frames: by SurfaceFlinger's FrameTimeline, as Perfetto joins it with the frames of apps
// (`stdlib/android/frames/timeline.sql`, `per_frame_metrics.sql`), else by the period of the display, as the
// counter `VSYNC-app` shows it.

/// The most frames of each kind that are kept, as for the frames themselves.
const MAX_FRAMES: usize = 1 << 21;
/// SurfaceFlinger changes the value of this counter at each VSYNC that it tells apps of.
pub(super) const VSYNC_COUNTER: &str = "VSYNC-app";

/// Periods outside of these bounds, ns, are none: VSYNC is told only while somebody asks for it, and displays
/// have 10 to 500 Hz.
const PERIODS_NS: std::ops::RangeInclusive<u64> = 2_000_000..=100_000_000;
/// The least of so many intervals is the period: an interval in which nobody asked for a VSYNC is a multiple
/// of it.
const INTERVALS: usize = 3;

/// The actual frames of FrameTimeline as SurfaceFlinger judges them: of each layer of an app, and of the
/// display.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct TimelineCounts {
    /// Actual frames.
    pub actual: u64,
    /// Frames with a reason for being late, and frames that were presented late or never.
    pub late: u64,
}

/// Expected and actual frames, by process and token, which is the number of the app's frame.
#[derive(Debug, Default)]
pub(super) struct TimelineFrames {
    expected: HashMap<(Pid, i64), Span>,
    actual: HashMap<(Pid, i64), ActualTimes>,
    /// The end of the first display frame of each token: Perfetto takes it for the frame of an app with this
    /// number that has no actual frame of its own.
    display_ends: HashMap<i64, Timestamp>,
    pub counts: TimelineCounts,
    /// Frames that were left out because there are too many.
    pub left_out: u64,
}

/// An actual frame of an app, which has a row for each of its layers.
#[derive(Debug)]
struct ActualTimes {
    /// The begin and the end of the row that began first.
    begin: Timestamp,
    first_end: Timestamp,
    /// The longest time of a row, ns, and that row's layer and jank type.
    longest: u64,
    layer: String,
    jank: String,
}

impl TimelineFrames {
    /// Takes a frame. They come in the order of their begins.
    pub fn take(&mut self, span: Span, frame: &TimelineFrame<'_>) {
        let key = (frame.pid, frame.token());
        let Some(actual) = &frame.actual else {
            if frame.surface.is_some() {
                if self.expected.len() < MAX_FRAMES {
                    self.expected.entry(key).or_insert(span);
                } else {
                    self.left_out += 1;
                }
            }
            return;
        };
        self.counts.actual += 1;
        self.counts.late += u64::from(frame.is_late());
        // A frame without an end says nothing of how long it took.
        if span.open {
            return;
        }
        if self.actual.len() + self.display_ends.len() >= MAX_FRAMES && !self.actual.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        if frame.surface.is_none() {
            self.display_ends.entry(frame.token()).or_insert(span.end);
            return;
        }
        let known = self.actual.entry(key).or_insert_with(|| ActualTimes {
            begin: span.start,
            first_end: span.end,
            longest: 0,
            layer: String::new(),
            jank: String::new(),
        });
        // Of several layers, the one that took longest is the frame's.
        let duration = span.end.since(span.start);
        if known.layer.is_empty() || duration > known.longest {
            known.longest = duration;
            known.layer = String::from_utf8_lossy(frame.layer()).into_owned();
            known.jank = actual.jank.text();
        }
    }

    /// The frames of processes of which no frame with `Choreographer#doFrame` and `DrawFrame` is known, as
    /// Perfetto's `android_frame_timeline_metric` counts them: one for each token of the app.
    pub fn alone(&self, joined: &[Frame]) -> Vec<Frame> {
        let worked: HashSet<Pid> = joined.iter().map(|frame| frame.pid).collect();
        let alone = self.actual.keys().filter(|(pid, _)| !worked.contains(pid));
        let frame = |(pid, number): &(Pid, i64)| {
            let mut frame = Frame {
                id: Some(*number),
                pid: *pid,
                package: String::new(),
                layer: None,
                work: None,
                begin: Timestamp::default(),
                end: Timestamp::default(),
                expected_end: None,
                deadline: None,
                timeline_end: None,
                jank_type: None,
            };
            self.complete(&mut frame);
            frame
        };
        alone.map(frame).collect()
    }

    /// Adds to a frame what is known of it.
    pub fn complete(&self, frame: &mut Frame) {
        let Some(number) = frame.id else { return };
        let key = (frame.pid, number);
        let actual = self.actual.get(&key);
        if let Some(actual) = actual {
            frame.begin = actual.begin;
            frame.end = actual.begin.saturating_add(actual.longest);
            frame.layer = Some(actual.layer.clone());
            frame.jank_type = Some(actual.jank.clone());
        }
        let Some(expected) = self.expected.get(&key) else { return };
        let end = match actual {
            Some(actual) => {
                // The time by which the frame began late belongs to it, too.
                let late = actual.begin.since(expected.start);
                if let Some(work) = &mut frame.work {
                    work.cpu_ns = work.cpu_ns.saturating_add(late);
                }
                actual.first_end
            }
            None => {
                let Some(end) = self.display_ends.get(&number) else { return };
                if let Some(work) = &mut frame.work {
                    work.is_lateness_unknown = true;
                }
                *end
            }
        };
        frame.deadline = Some(Deadline::FrameTimeline);
        frame.expected_end = Some(expected.end);
        frame.timeline_end = Some(end);
    }
}

/// The latest VSYNCs.
#[derive(Debug, Default)]
pub(super) struct Vsync {
    last: Option<Timestamp>,
    /// The latest intervals, ns; 0 where there were fewer.
    intervals: [u64; INTERVALS],
    count: usize,
}

impl Vsync {
    /// Takes the time of a VSYNC.
    pub fn tick(&mut self, ts: Timestamp) {
        let interval = self.last.map_or(0, |last| ts.since(last));
        self.last = Some(ts);
        if PERIODS_NS.contains(&interval) {
            self.intervals[self.count % INTERVALS] = interval;
            self.count += 1;
        }
    }

    /// When a frame that begins at `ts` is to be done: one period after the VSYNC at which it began. `None`
    /// while the period is not known.
    pub fn deadline(&self, ts: Timestamp) -> Option<Timestamp> {
        let period = self.intervals.iter().copied().filter(|interval| *interval > 0).min()?;
        let vsync = self.last.filter(|last| ts.checked_since(*last).is_some_and(|after| after < period));
        vsync.unwrap_or(ts).checked_add(period)
    }
}

// Joins what the UI thread and the RenderThread did for a frame.

/// The most parts of frames that are kept: an hour of 120 Hz has 432 000 frames. So a hostile recording
/// cannot take all memory.
const MAX_PARTS: usize = 1 << 21;

/// The part of a frame that one thread did.
#[derive(Debug, Clone, Copy)]
struct FramePart {
    tid: Tid,
    /// The frame's number.
    number: Option<i64>,
    begin: Timestamp,
    end: Timestamp,
    /// When the frame is to be done, where the period of VSYNC tells it.
    deadline: Option<Timestamp>,
}

/// The drawing of one frame: it is drawn several times if it has several layers.
#[derive(Debug, Clone, Copy)]
struct Drawing {
    tid: Tid,
    /// The first `DrawFrame`.
    first: (Timestamp, Timestamp),
    /// The end of the last one.
    end: Timestamp,
    /// The time of all, ns.
    sum: u64,
}

impl Drawing {
    fn new(part: &FramePart) -> Drawing {
        let FramePart { tid, begin, end, .. } = *part;
        Drawing { tid, first: (begin, end), end, sum: end.since(begin) }
    }

    fn add(&mut self, part: &FramePart) {
        let other = Drawing::new(part);
        if other.first < self.first {
            self.tid = other.tid;
            self.first = other.first;
        }
        self.end = self.end.max(other.end);
        self.sum = self.sum.saturating_add(other.sum);
    }
}

/// The parts of all frames.
#[derive(Debug, Default)]
pub(super) struct FrameJoin {
    ui: Vec<FramePart>,
    drawn: Vec<FramePart>,
    /// The frames of FrameTimeline.
    pub timeline: TimelineFrames,
    /// Parts that were left out because there are too many.
    pub left_out: u64,
}

impl FrameJoin {
    fn push(list: &mut Vec<FramePart>, left_out: &mut u64, part: FramePart) {
        if list.len() < MAX_PARTS {
            list.push(part);
        } else {
            *left_out += 1;
        }
    }

    /// Takes a `Choreographer#doFrame` that has ended.
    pub fn ui(&mut self, tid: Tid, number: Option<i64>, span: Span, deadline: Option<Timestamp>) {
        let part = FramePart { tid, number, begin: span.start, end: span.end, deadline };
        Self::push(&mut self.ui, &mut self.left_out, part);
    }

    /// Takes a `DrawFrame` that has ended.
    pub fn drawn(&mut self, tid: Tid, number: Option<i64>, span: Span) {
        let part = FramePart { tid, number, begin: span.start, end: span.end, deadline: None };
        Self::push(&mut self.drawn, &mut self.left_out, part);
    }

    /// The frames that both threads did, in the order of their begins, and those that only FrameTimeline has;
    /// without the names of their apps.
    pub fn finish(mut self, tasks: &Tasks) -> (Vec<Frame>, Vec<Frame>, UiFrames) {
        let process = |part: &FramePart| tasks.task(part.tid).process();
        self.ui.sort_by_key(|part| part.begin);
        self.drawn.sort_by_key(|part| part.begin);
        let mut ui_frames = UiFrames::default();
        for part in &self.ui {
            ui_frames.by_process.entry(process(part)).or_default().push((part.begin, part.end));
        }
        let mut frames = joined_by_number(&self, &process);
        frames.extend(joined_by_order(&self, &process));
        for frame in &mut frames {
            self.timeline.complete(frame);
        }
        frames.sort_by_key(Frame::order);
        let alone = self.timeline.alone(&frames);
        (frames, alone, ui_frames)
    }
}

/// A part of a frame that a process has done nothing more for, for so long, is complete, ns.
const QUIET_NS: u64 = 250_000_000;
/// A part of a frame to which the other thread has done nothing for so long belongs to none, ns.
const FORGOTTEN_AFTER_NS: u64 = 60_000_000_000;

impl FrameJoin {
    /// Takes out the frames that are complete at the time `now`, in the order of their begins: something
    /// later of their process has been drawn, or nothing for a while. With `is_last` nothing more will come.
    pub fn take_complete(&mut self, tasks: &Tasks, now: Timestamp, is_last: bool) -> Vec<Frame> {
        if self.drawn.is_empty() && self.ui.len() < MAX_WAITING_PARTS {
            return Vec::new();
        }
        let process = |part: &FramePart| tasks.task(part.tid).process();
        self.ui.sort_by_key(|part| part.begin);
        self.drawn.sort_by_key(|part| part.begin);
        let mut last_drawn: HashMap<Pid, Timestamp> = HashMap::new();
        for part in &self.drawn {
            let last = last_drawn.entry(process(part)).or_default();
            *last = part.begin.max(*last);
        }
        let mut next_ui: HashMap<Pid, Vec<Timestamp>> = HashMap::new();
        for part in self.ui.iter().filter(|part| part.number.is_none()) {
            next_ui.entry(process(part)).or_default().push(part.begin);
        }
        let next_begin = |frame: &Frame| {
            let begins = next_ui.get(&frame.pid).map_or(&[][..], Vec::as_slice);
            begins.get(begins.partition_point(|begin| *begin <= frame.begin)).copied()
        };
        let drawn_later = |frame: &Frame| {
            let after = if frame.id.is_some() { Some(frame.end) } else { next_begin(frame) };
            after.is_some_and(|after| last_drawn.get(&frame.pid).is_some_and(|last| *last >= after))
        };
        let mut frames = joined_by_number(self, &process);
        frames.extend(joined_by_order(self, &process));
        frames.retain(|frame| is_last || drawn_later(frame) || frame.end.saturating_add(QUIET_NS) < now);
        let numbers: HashSet<(Pid, i64)> =
            frames.iter().filter_map(|frame| Some((frame.pid, frame.id?))).collect();
        // What came before a complete frame without a number belongs to none that is still to come.
        let mut ordered: HashMap<Pid, (Timestamp, Timestamp)> = HashMap::new();
        for frame in frames.iter().filter(|frame| frame.id.is_none()) {
            let done = ordered.entry(frame.pid).or_default();
            let drawn_until = next_begin(frame).map_or(frame.end, |next| next.saturating_sub(1));
            *done = (done.0.max(frame.begin), done.1.max(drawn_until));
        }
        let since = now.saturating_sub(FORGOTTEN_AFTER_NS);
        let is_done = |part: &FramePart, until: fn(&(Timestamp, Timestamp)) -> Timestamp| match part.number {
            Some(number) => numbers.contains(&(process(part), number)),
            None => ordered.get(&process(part)).is_some_and(|done| part.begin <= until(done)),
        };
        self.ui.retain(|part| part.end >= since && !is_done(part, |done| done.0));
        self.drawn.retain(|part| part.end >= since && !is_done(part, |done| done.1));
        for list in [&mut self.ui, &mut self.drawn] {
            list.drain(..list.len().saturating_sub(MAX_WAITING_PARTS));
        }
        for frame in &mut frames {
            self.timeline.complete(frame);
        }
        frames.sort_by_key(Frame::order);
        frames
    }
}

/// The most parts that wait for their frames to be complete while a timeline goes on.
const MAX_WAITING_PARTS: usize = 4096;

/// Begin and end of each `Choreographer#doFrame`, by process, in the order of the begins: also of those that
/// no `DrawFrame` belongs to.
#[derive(Debug, Default)]
pub(super) struct UiFrames {
    by_process: HashMap<Pid, Vec<(Timestamp, Timestamp)>>,
}

/// The latest frames of a timeline that goes on, by which launches are found.
#[derive(Debug, Default)]
pub(super) struct LatestFrames {
    /// In the order in which they were complete.
    frames: VecDeque<Frame>,
    /// Thread, begin and end of each `Choreographer#doFrame`.
    ui: VecDeque<(Tid, Timestamp, Timestamp)>,
}

/// The most frames that are kept to find launches by: 120 Hz for two minutes.
const MAX_LATEST: usize = 14_400;

impl LatestFrames {
    /// Adds a frame that is complete.
    pub fn add(&mut self, frame: &Frame) {
        self.frames.push_back(frame.clone());
        self.frames.drain(..self.frames.len().saturating_sub(MAX_LATEST));
    }

    /// Adds a `Choreographer#doFrame`.
    pub fn add_ui(&mut self, tid: Tid, span: Span) {
        self.ui.push_back((tid, span.start, span.end));
        self.ui.drain(..self.ui.len().saturating_sub(MAX_LATEST));
    }

    /// All frames that are kept, in the order of their begins.
    pub fn all(&self, tasks: &Tasks) -> (Vec<Frame>, UiFrames) {
        let mut frames: Vec<Frame> = self.frames.iter().cloned().collect();
        frames.sort_by_key(Frame::order);
        let mut ui = UiFrames::default();
        for (tid, begin, end) in &self.ui {
            ui.by_process.entry(tasks.task(*tid).process()).or_default().push((*begin, *end));
        }
        ui.by_process.values_mut().for_each(|spans| spans.sort_unstable());
        (frames, ui)
    }
}

impl UiFrames {
    /// The first one of a process that begins at `from` or later.
    pub fn first(&self, pid: Pid, from: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let frames = self.by_process.get(&pid)?;
        frames.get(frames.partition_point(|(begin, _)| *begin < from)).copied()
    }
}

fn frame(pid: Pid, ui: &FramePart, drawing: &Drawing) -> Frame {
    Frame {
        id: ui.number,
        pid,
        package: String::new(),
        layer: None,
        work: Some(FrameWork {
            ui_tid: ui.tid,
            render_tid: drawing.tid,
            drawn: drawing.first.1,
            cpu_ns: ui.end.since(ui.begin).saturating_add(drawing.sum),
            is_lateness_unknown: false,
            duration_cpu_ns: drawing.first.1.since(ui.begin),
        }),
        begin: ui.begin,
        end: drawing.end,
        expected_end: ui.deadline,
        deadline: ui.deadline.map(|_| Deadline::Vsync),
        timeline_end: None,
        jank_type: None,
    }
}

/// From Android 12 on, both threads name the number of the frame.
fn joined_by_number(parts: &FrameJoin, process: &impl Fn(&FramePart) -> Pid) -> Vec<Frame> {
    let mut drawings: HashMap<(Pid, i64), Drawing> = HashMap::new();
    for part in &parts.drawn {
        let Some(number) = part.number else { continue };
        let drawing = drawings.entry((process(part), number));
        drawing.and_modify(|drawing| drawing.add(part)).or_insert_with(|| Drawing::new(part));
    }
    let mut ui: HashMap<(Pid, i64), &FramePart> = HashMap::new();
    for part in &parts.ui {
        let Some(number) = part.number else { continue };
        let key = (process(part), number);
        // A process can have a second thread with a Choreographer. The frame is the main thread's.
        let known = ui.entry(key).or_insert(part);
        if !known.tid.is_main_of(key.0) && part.tid.is_main_of(key.0) {
            *known = part;
        }
    }
    let joined = ui.iter().filter_map(|(key, part)| Some(frame(key.0, part, drawings.get(key)?)));
    joined.collect()
}

/// Before Android 12 the order tells: a frame is drawn after its `doFrame` of the main thread has begun, and
/// before the next one begins.
fn joined_by_order(parts: &FrameJoin, process: &impl Fn(&FramePart) -> Pid) -> Vec<Frame> {
    let mut ui: HashMap<Pid, Vec<&FramePart>> = HashMap::new();
    for part in parts.ui.iter().filter(|part| part.number.is_none()) {
        let pid = process(part);
        if part.tid.is_main_of(pid) {
            ui.entry(pid).or_default().push(part);
        }
    }
    let mut drawings: HashMap<(Pid, usize), Drawing> = HashMap::new();
    for part in parts.drawn.iter().filter(|part| part.number.is_none()) {
        let pid = process(part);
        let before = ui.get(&pid).map_or(0, |frames| frames.partition_point(|ui| ui.begin <= part.begin));
        let Some(at) = before.checked_sub(1) else { continue };
        let drawing = drawings.entry((pid, at));
        drawing.and_modify(|drawing| drawing.add(part)).or_insert_with(|| Drawing::new(part));
    }
    let joined = drawings.iter().filter_map(|((pid, at), drawing)| {
        let part = ui.get(pid)?.get(*at)?;
        Some(frame(*pid, part, drawing))
    });
    joined.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_follows_the_display_from_120_to_60_hz() {
        let mut vsync = Vsync::default();
        let deadline = |vsync: &Vsync, ts| vsync.deadline(Timestamp(ts)).map(|at| at.0);
        assert_eq!(deadline(&vsync, 0), None);
        [0, 8_333_333, 16_666_666, 25_000_000].into_iter().for_each(|ts| vsync.tick(Timestamp(ts)));
        assert_eq!(deadline(&vsync, 25_100_000), Some(33_333_333));
        // Nobody asked for a VSYNC for a while.
        vsync.tick(Timestamp(100_000_000));
        assert_eq!(deadline(&vsync, 100_000_001), Some(108_333_333));
        [116_666_667, 133_333_334, 150_000_001].into_iter().for_each(|ts| vsync.tick(Timestamp(ts)));
        assert_eq!(deadline(&vsync, 150_000_002), Some(166_666_668));
        // A frame that began long after the last VSYNC.
        assert_eq!(deadline(&vsync, 400_000_000), Some(416_666_667));
    }
}
