//! Joins what the UI thread and the RenderThread did for a frame.

use std::collections::HashMap;

use super::frame::{Deadline, Frame};
use super::frame_deadline::TimelineFrames;
use crate::tracks::{Span, Tasks};

/// The most parts of frames that are kept: an hour of 120 Hz has 432 000 frames. So a hostile recording
/// cannot take all memory.
const MAX_PARTS: usize = 1 << 21;

/// The part of a frame that one thread did.
#[derive(Debug, Clone, Copy)]
struct FramePart {
    tid: i32,
    /// The frame's number.
    number: Option<i64>,
    begin: u64,
    end: u64,
    /// When the frame is to be done, where the period of VSYNC tells it.
    deadline: Option<u64>,
}

/// The drawing of one frame: it is drawn several times if it has several layers.
#[derive(Debug, Clone, Copy)]
struct Drawing {
    tid: i32,
    /// The first `DrawFrame`.
    first: (u64, u64),
    /// The end of the last one.
    end: u64,
    sum: u64,
}

impl Drawing {
    fn new(part: &FramePart) -> Drawing {
        let FramePart { tid, begin, end, .. } = *part;
        Drawing { tid, first: (begin, end), end, sum: end.saturating_sub(begin) }
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
    pub fn ui(&mut self, tid: i32, number: Option<i64>, span: Span, deadline: Option<u64>) {
        let part = FramePart { tid, number, begin: span.start, end: span.end, deadline };
        Self::push(&mut self.ui, &mut self.left_out, part);
    }

    /// Takes a `DrawFrame` that has ended.
    pub fn drawn(&mut self, tid: i32, number: Option<i64>, span: Span) {
        let part = FramePart { tid, number, begin: span.start, end: span.end, deadline: None };
        Self::push(&mut self.drawn, &mut self.left_out, part);
    }

    /// The frames that both threads did, in the order of their begins; without the names of their apps.
    pub fn finish(mut self, tasks: &Tasks) -> (Vec<Frame>, UiFrames) {
        let process = |part: &FramePart| tasks.threads.tgid(part.tid).unwrap_or(part.tid);
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
        frames.sort_by_key(|frame| (frame.begin, frame.pid, frame.id));
        (frames, ui_frames)
    }
}

/// Begin and end of each `Choreographer#doFrame`, by process, in the order of the begins: also of those that
/// no `DrawFrame` belongs to.
#[derive(Debug, Default)]
pub(super) struct UiFrames {
    by_process: HashMap<i32, Vec<(u64, u64)>>,
}

impl UiFrames {
    /// The first one of a process that begins at `from` or later.
    pub fn first(&self, pid: i32, from: u64) -> Option<(u64, u64)> {
        let frames = self.by_process.get(&pid)?;
        frames.get(frames.partition_point(|(begin, _)| *begin < from)).copied()
    }
}

fn frame(pid: i32, ui: &FramePart, drawing: &Drawing) -> Frame {
    Frame {
        id: ui.number,
        pid,
        package: String::new(),
        layer: None,
        ui_tid: ui.tid,
        render_tid: drawing.tid,
        begin: ui.begin,
        end: drawing.end,
        drawn: drawing.first.1,
        cpu_ns: ui.end.saturating_sub(ui.begin).saturating_add(drawing.sum),
        is_lateness_unknown: false,
        duration_cpu_ns: drawing.first.1.saturating_sub(ui.begin),
        expected_end: ui.deadline,
        deadline: ui.deadline.map(|_| Deadline::Vsync),
        timeline_end: None,
        jank_type: None,
    }
}

/// From Android 12 on, both threads name the number of the frame.
fn joined_by_number(parts: &FrameJoin, process: &impl Fn(&FramePart) -> i32) -> Vec<Frame> {
    let mut drawings: HashMap<(i32, i64), Drawing> = HashMap::new();
    for part in &parts.drawn {
        let Some(number) = part.number else { continue };
        let drawing = drawings.entry((process(part), number));
        drawing.and_modify(|drawing| drawing.add(part)).or_insert_with(|| Drawing::new(part));
    }
    let mut ui: HashMap<(i32, i64), &FramePart> = HashMap::new();
    for part in &parts.ui {
        let Some(number) = part.number else { continue };
        let key = (process(part), number);
        // A process can have a second thread with a Choreographer. The frame is the main thread's.
        let known = ui.entry(key).or_insert(part);
        if known.tid != key.0 && part.tid == key.0 {
            *known = part;
        }
    }
    let joined = ui.iter().filter_map(|(key, part)| Some(frame(key.0, part, drawings.get(key)?)));
    joined.collect()
}

/// Before Android 12 the order tells: a frame is drawn after its `doFrame` of the main thread has begun, and
/// before the next one begins.
fn joined_by_order(parts: &FrameJoin, process: &impl Fn(&FramePart) -> i32) -> Vec<Frame> {
    let mut ui: HashMap<i32, Vec<&FramePart>> = HashMap::new();
    for part in parts.ui.iter().filter(|part| part.number.is_none() && process(part) == part.tid) {
        ui.entry(part.tid).or_default().push(part);
    }
    let mut drawings: HashMap<(i32, usize), Drawing> = HashMap::new();
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
