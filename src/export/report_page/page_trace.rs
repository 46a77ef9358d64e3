//! One trace of a page: collects it, and writes its blocks and its index.

use std::io::{self, Write};
use std::sync::Arc;

use serde_json::{Value, json};

use super::blocks::BlockWriter;
use super::collector::{PageCollector, StringTable, WallMark};
use super::columns::{ArrowColumns, Base, LATE, NO_DEADLINE, NO_WORK, PageArrow, SLOW};
use super::index::{self, People, TrackEntry, track_order, without_directories};
use super::sample_strips::SampleStrips;
use super::tracks::{FrameTimes, Name, Owner, PageTrack, PageTracks, TrackColumns, TrackRole};
use super::videos::PageVideos;
use crate::clock::{Clock, Timestamp};
use crate::export::held_memory::{HeldBytes, HeldLimit, HeldMemory};
use crate::formats::samples::{Sample, SampleTables};
use crate::formats::{
    Event, EventType, EventTypeId, Head, Order, ProcessInfo, Sink, ThreadInfo, Track, TrackEvent,
};
use crate::ftrace::print_fmt::Symbolizer;
use crate::ids::Cpu;
use crate::measure::{Frame, Measured};
use crate::text::file_name;
use crate::timeline::{
    DataCounts, Edge, MergeSummary, MethodId, MethodName, MethodThread, TimelineSink, Window,
};
use crate::tracks::{ArrowKind, Both, Span, TrackBuilder};
use crate::why;

/// The bytes that the page and the model of its causes keep of an item, in tables that grow to twice what
/// they hold.
const HELD_BYTES: HeldBytes =
    HeldBytes { named: 24, running: 72, state: 72, arrow: 96, counter: 16, method_edge: 16, sample: 128 };

/// A trace as it is collected.
pub(in crate::export) struct PageTrace {
    builder: TrackBuilder<Both<Both<PageCollector, why::ModelCollector>, HeldMemory>>,
    head: Option<Head>,
    samples: SampleStrips,
    notes: Vec<String>,
    /// The trace's start, in its clock, once it is written.
    start: Timestamp,
}

impl PageTrace {
    /// A trace of which no more than `limit` is kept in memory.
    pub fn new(limit: HeldLimit) -> PageTrace {
        let both = Both::new(PageCollector::default(), why::ModelCollector::default());
        let builder = TrackBuilder::new(Both::new(both, HeldMemory::new(HELD_BYTES, limit)));
        PageTrace {
            builder,
            head: None,
            samples: SampleStrips::default(),
            notes: Vec::new(),
            start: Timestamp::MIN,
        }
    }

    fn page(&mut self) -> &mut PageCollector {
        self.builder.sink().first.parts().0
    }

    /// The trace's start, in its clock. Known when the trace has been written.
    pub fn start(&self) -> Timestamp {
        self.start
    }

    /// Adds sentences to the trace's notes.
    pub fn add_notes(&mut self, notes: Vec<String>) {
        self.notes.extend(notes);
    }

    /// Writes the trace's blocks, and returns the number of the index's block.
    pub(super) fn write<W: Write + Send + 'static>(
        &mut self,
        summary: &MergeSummary,
        videos: &PageVideos<'_>,
        blocks: &mut BlockWriter<W>,
    ) -> io::Result<usize> {
        let samples = std::mem::take(&mut self.samples);
        let (page, why) = self.builder.sink().first.parts();
        samples.add_tracks(page);
        let model = std::mem::take(why).into_model();
        let first = page.tracks.first();
        let start = first.into_iter().chain(summary.report.first_ts).min().unwrap_or_default();
        // Times of a part count from its begin, whatever it begins with.
        let start = summary.window.map_or(start, |window| window.from);
        let ends =
            [summary.window.map_or(summary.report.last_ts, |window| Some(window.to)), page.tracks.last()];
        let end = ends.into_iter().flatten().max().unwrap_or(start).max(start);
        add_frames(&page.measured, start, end, &mut page.tracks, &mut page.strings);
        page.tracks.finish(end);
        add_causes(&model, start, end, page);
        drop(model);
        self.start = start;
        add_arrows(page);
        let people = People::new(page);
        self.notes.extend(page.tracks.empty_spares());
        self.notes.extend(depth_note(page));
        let base = Base { start, thread: &|tid| people.kernel_thread(tid) };
        let mut entries = Vec::new();
        let mut order = track_order(&page.tracks.list, &people);
        order.retain(|number| page.tracks.list[*number].columns.columns().count() > 0);
        renumber_arrows(&mut page.tracks.list, &order);
        for number in &order {
            let track = &page.tracks.list[*number];
            let columns = track.columns.columns();
            entries.push(TrackEntry::new(track, &people, blocks.place()));
            columns.encode(&base, &mut blocks.block);
            blocks.end_if_full()?;
        }
        let videos = videos.write(summary, start, &page.tracks.list, &order, blocks)?;
        let mut inclusive = InclusiveTimes::new(page.methods.len());
        for track in &page.tracks.list {
            if let TrackColumns::Calls(calls) = &track.columns {
                inclusive.add(calls.slices());
            }
        }
        page.methods.inclusive = inclusive.totals();
        let strings = blocks.json(&page.strings)?;
        let methods = (!page.methods.is_empty()).then(|| blocks.json(&page.methods)).transpose()?;
        let names: Vec<&str> = summary.inputs.iter().map(|input| file_name(&input.name)).collect();
        let has_cpu_time = page.tracks.list.iter().any(|track| match &track.columns {
            TrackColumns::Calls(calls) => calls.has_cpu(),
            _ => false,
        });
        let launches = index::launches(&page.measured, &people, start);
        let frames = index::frame_summaries(&page.measured);
        let head = self.head.as_ref();
        let index = json!({
            "title": names.join(" + "),
            "clock": summary.clock.name(),
            "start_ns": start.to_string(),
            "duration_ns": end - start,
            "wall_start_ns": wall_start(head, summary.clock, page.wall, start).map(|ns| ns.to_string()),
            "machine": head.and_then(|head| head.machine.as_ref()),
            "device": head.and_then(|head| head.device.as_ref()),
            "cpus": head.and_then(|head| head.cpus),
            "times": if only_cpu_times(summary) { "cpu" } else { "wall" },
            "has_cpu_time": has_cpu_time,
            "window": summary.window.map(Window::in_trace),
            "strings": strings,
            "methods": methods,
            "processes": people.processes,
            "threads": people.threads,
            "tracks": entries,
            "summary": summary_of(summary, &self.notes, self.builder.not_written())?,
            "launches": launches,
            "frames": frames,
            "videos": videos,
        });
        blocks.json(&index)
    }
}

/// Makes a track of the causes of each thread's time. The trace goes from `first` to `last`.
fn add_causes(model: &why::Model, first: Timestamp, last: Timestamp, page: &mut PageCollector) {
    let PageCollector { tracks, strings, .. } = page;
    for tid in model.scheduled_threads() {
        model.stretches(tid, |start, end, cause, subject, follow| {
            let start = start.clamp(first, last);
            let end = end.clamp(first, last);
            if start < end {
                let cause = strings.id(cause.name().as_bytes());
                let subject = (!subject.is_empty()).then(|| strings.id(subject.as_bytes()));
                tracks
                    .causes(TrackRole::Causes, Owner::thread(tid), Name::Main)
                    .push(start, end, cause, subject, follow);
            }
        });
    }
}

/// Makes the tracks of arrows.
fn add_arrows(page: &mut PageCollector) {
    for (role, kind) in [(TrackRole::Wakeup, ArrowKind::Wakeup), (TrackRole::Binder, ArrowKind::Binder)] {
        let of_kind = page.arrows.iter().filter(|arrow| arrow.kind == kind);
        let tracks = &page.tracks;
        let ends = of_kind.filter_map(|arrow| {
            Some(PageArrow {
                from_ts: arrow.from.0,
                to_ts: arrow.to.0,
                from_track: tracks.of_thread(arrow.from.1)?,
                to_track: tracks.of_thread(arrow.to.1)?,
            })
        });
        let ends = ends.collect();
        add_arrow_track(page, role, ends);
    }
    let flows = std::mem::take(&mut page.flows);
    add_arrow_track(page, TrackRole::Flow, flows);
}

fn add_arrow_track(page: &mut PageCollector, role: TrackRole, mut list: Vec<PageArrow>) {
    if list.is_empty() {
        return;
    }
    list.sort_by_key(|arrow| arrow.from_ts);
    let columns = TrackColumns::Arrows(ArrowColumns { list });
    page.tracks.list.push(PageTrack { role, owner: Owner::Machine, name: String::new(), columns });
}

/// Gives the ends of arrows the numbers that their tracks have on the page. `order` holds for each place on
/// the page the track that has it.
fn renumber_arrows(tracks: &mut [PageTrack], order: &[usize]) {
    let mut place = vec![0; tracks.len()];
    order.iter().enumerate().for_each(|(at, number)| place[*number] = at);
    for track in tracks {
        let TrackColumns::Arrows(arrows) = &mut track.columns else { continue };
        for arrow in &mut arrows.list {
            arrow.from_track = place[arrow.from_track];
            arrow.to_track = place[arrow.to_track];
        }
    }
}

/// The note about calls that lie too deep for the page.
fn depth_note(page: &PageCollector) -> Option<String> {
    let clamped = page.tracks.list.iter().map(|track| match &track.columns {
        TrackColumns::Calls(spans) | TrackColumns::Slices(spans) => spans.clamped,
        _ => 0,
    });
    let clamped: u64 = clamped.sum();
    (clamped > 0)
        .then(|| format!("{clamped} calls lie deeper than 65,536 levels: the page shows them at that level"))
}

/// Whether the inputs are method traces that have the CPU times of threads alone.
fn only_cpu_times(summary: &MergeSummary) -> bool {
    let is_cpu = |header: &[(String, String)]| header.iter().any(|(k, v)| k == "clock" && v == "thread-cpu");
    !summary.inputs.is_empty() && summary.inputs.iter().all(|input| is_cpu(&input.header))
}

/// The time in CLOCK_REALTIME at `start`.
fn wall_start(
    head: Option<&Head>,
    clock: Clock,
    mark: Option<WallMark>,
    start: Timestamp,
) -> Option<Timestamp> {
    let by_snapshots = || head?.snapshots.convert(start.0, clock, Clock::Realtime).map(Timestamp);
    let since = |mark: WallMark| start.wrapping_since(mark.ts);
    let by_marker = || mark.map(|mark| mark.realtime.saturating_add_signed(since(mark)));
    match clock {
        Clock::Realtime => Some(start),
        _ => by_snapshots().filter(|wall| *wall > Timestamp::MIN).or_else(by_marker),
    }
}

/// The summary as the page holds it.
fn summary_of(summary: &MergeSummary, notes: &[String], not_written: DataCounts) -> io::Result<Value> {
    let mut value = serde_json::to_value(summary)?;
    for (entry, input) in value["inputs"].as_array_mut().into_iter().flatten().zip(&summary.inputs) {
        if !input.header.is_empty() {
            entry["header"] = json!(input.header);
        }
    }
    if let Some(all) = value["report"]["notes"].as_array_mut() {
        all.extend(notes.iter().map(|note| json!(note)));
    }
    value["not_written"] = json!(not_written);
    let paths: Vec<String> = summary.inputs.iter().map(|input| input.name.clone()).collect();
    without_directories(&mut value, &paths);
    Ok(value)
}

impl Sink for PageTrace {
    fn head(&mut self, head: &Head) -> io::Result<()> {
        self.head = Some(head.clone());
        self.builder.head(head)
    }

    fn event_type(&mut self, id: EventTypeId, kind: &EventType) -> io::Result<()> {
        self.builder.event_type(id, kind)
    }

    fn kernel(&mut self, symbolizer: &Arc<Symbolizer>) -> io::Result<()> {
        self.builder.kernel(symbolizer)
    }

    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        self.builder.thread(thread)
    }

    fn process(&mut self, process: &ProcessInfo<'_>) -> io::Result<()> {
        self.builder.process(process)
    }

    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        self.page().tids.insert(event.tid);
        self.builder.event(event, kind)
    }

    fn track(&mut self, track: &Track<'_>) -> io::Result<()> {
        self.builder.track(track)
    }

    fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
        self.builder.track_event(event)
    }

    fn lost(&mut self, cpu: Cpu, count: Option<u64>) -> io::Result<()> {
        self.builder.lost(cpu, count)
    }
}

impl TimelineSink for PageTrace {
    fn order(&mut self) -> Order {
        Order::Time
    }

    /// The page needs the calls of each thread in their order, and no order over all threads.
    fn edge_order(&mut self) -> Order {
        Order::Any
    }

    fn method(&mut self, id: MethodId, name: &MethodName<'_>) -> io::Result<()> {
        self.page().method_name(id, name);
        self.builder.method(id, name)
    }

    fn method_thread(&mut self, thread: &MethodThread) -> io::Result<()> {
        let comm = self.builder.tasks().thread_name(thread.tid.unwrap_or_default()).into_owned();
        self.page().method_thread(thread, comm);
        self.builder.method_thread(thread)
    }

    fn edges(&mut self, thread: u32, edges: &[Edge]) -> io::Result<()> {
        self.builder.edges(thread, edges)
    }

    fn sample_set(&mut self, set: u32, tables: &Arc<SampleTables>) -> io::Result<()> {
        self.samples.add_set(tables);
        self.builder.sample_set(set, tables)
    }

    fn sample(&mut self, set: u32, sample: &Sample) -> io::Result<()> {
        self.samples.add(set, sample);
        self.builder.sample(set, sample)
    }

    fn finish(&mut self, summary: &MergeSummary) -> io::Result<()> {
        self.builder.finish(summary)
    }

    fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    fn not_written(&mut self) -> DataCounts {
        self.builder.not_written()
    }
}

/// Makes a track of the frames of each process and layer, as far as they lie in the trace, which goes from
/// `start` to `end`.
fn add_frames(
    measured: &Measured,
    start: Timestamp,
    end: Timestamp,
    tracks: &mut PageTracks,
    strings: &mut StringTable,
) {
    let is_within = |frame: &&Frame| frame.end >= start && frame.begin <= end;
    for frame in measured.frames.iter().filter(is_within) {
        let shown = Span { start: frame.begin.max(start), end: frame.end.min(end), open: false };
        push_frame(frame, shown, tracks, strings);
    }
}

/// Adds a frame to the track of its process and layer. `shown` are its begin and its end there, ns.
pub(super) fn push_frame(frame: &Frame, shown: Span, tracks: &mut PageTracks, strings: &mut StringTable) {
    let label = strings.id(frame_name(frame).as_bytes());
    let layer = Name::Named(frame.layer.as_deref().unwrap_or_default().as_bytes());
    let overrun = frame.overrun();
    let cpu = frame.duration_cpu();
    let facts = [
        (frame.is_janky(), LATE),
        (overrun.is_none(), NO_DEADLINE),
        (frame.is_slow(), SLOW),
        (cpu.is_none(), NO_WORK),
    ];
    let flags = facts.into_iter().filter(|(is_so, _)| *is_so).map(|(_, flag)| flag).sum();
    let times = FrameTimes { cpu: cpu.unwrap_or(0), overrun: overrun.unwrap_or(0) };
    let track = tracks.frames(TrackRole::Frames, Owner::Process(frame.pid), layer);
    track.push_measured(shown.start, shown.end, label, flags, times);
}

/// The number of a frame, of a late one followed by SurfaceFlinger's word for the reason.
fn frame_name(frame: &Frame) -> String {
    let number = frame.id.map_or_else(|| "frame".to_owned(), |id| id.to_string());
    let reason = frame.jank_type.as_ref().filter(|_| frame.is_janky());
    reason.map_or_else(|| number.clone(), |reason| format!("{number} {reason}"))
}

/// The inclusive time of each method over all tracks, by which the page deals colours. A recursive call
/// does not count again.
#[derive(Default)]
struct InclusiveTimes {
    /// By method id, ns.
    totals: Vec<u64>,
    /// By method id: how many of the track's open calls are of this method.
    open: Vec<u32>,
}

impl InclusiveTimes {
    /// `methods` is the number of methods.
    fn new(methods: usize) -> InclusiveTimes {
        InclusiveTimes { totals: vec![0; methods], open: vec![0; methods] }
    }

    /// Adds the calls of a track in the order of their begins: depth, method id, and length in ns.
    fn add(&mut self, calls: impl Iterator<Item = (usize, u32, u64)>) {
        self.open.fill(0);
        let mut stack: Vec<usize> = Vec::new();
        for (depth, method, length) in calls {
            let method = method as usize;
            while stack.len() > depth {
                stack.pop().into_iter().for_each(|ended| self.open[ended] -= 1);
            }
            let (Some(total), Some(open)) = (self.totals.get_mut(method), self.open.get_mut(method)) else {
                continue;
            };
            if *open == 0 {
                *total += length;
            }
            *open += 1;
            stack.push(method);
        }
    }

    /// By method id, ns.
    fn totals(self) -> Vec<u64> {
        self.totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_call_of_a_recursion_counts() {
        let mut times = InclusiveTimes::new(3);
        times.add([(0, 0, 100), (1, 1, 60), (2, 0, 40), (2, 1, 10), (1, 1, 5), (0, 0, 7)].into_iter());
        times.add([(0, 1, 3)].into_iter());
        assert_eq!(times.totals(), [107, 68, 0]);
    }
}
