//! Writes a report page: one HTML file that shows a trace offline. docs/report-format.md defines its data; the
//! page itself is built from `web/`, and `page.html` is what that gives.
//!
//! Where all inputs are texts of ftrace or systrace, the page also holds the trace as text, where every reader
//! of systrace's pages looks for it.

mod base64;
mod blocks;
mod collector;
mod columns;
mod index;
mod strings;
mod tracks;

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use self::blocks::BlockWriter;
use self::collector::Collector;
use self::columns::{Arrows, Base};
use self::index::{People, TrackEntry, directory, file_name, track_order, without_directories};
use self::tracks::{Owner, PageTrack, Role, TrackColumns};
use super::Out;
use super::systrace::SystraceWriter;
use super::track_builder::{ArrowKind, TrackBuilder};
use crate::clock::Clock;
use crate::formats::input::Input;
use crate::formats::{
    self, Event, EventType, EventTypeId, Head, Order, ProcessInfo, REPORT_DIRECTORY_ID, Sink, ThreadInfo,
    Track, TrackEvent,
};
use crate::ftrace::print_fmt::Symbolizer;
use crate::text::markup::write_script_text;
use crate::timeline::{
    DataCounts, Edge, MergeSummary, MethodId, MethodName, MethodThread, TimelineSink, Window,
};

const PAGE: &str = include_str!("page.html");
/// The placeholder in [`PAGE`] that the data replaces.
const DATA_MARK: &str = "@TRACEBRIDGE_DATA@";

/// Makes the writer of a page, which also holds the trace as text where all inputs are such texts.
pub(super) fn create(out: Out, inputs: &[Input]) -> Box<dyn TimelineSink> {
    let is_text = |input: &Input| formats::identify(input).is_ok_and(|format| format.is_text);
    ReportWriter::boxed(out, !inputs.is_empty() && inputs.iter().all(is_text))
}

/// Makes the writer of a page that also holds the trace as text.
pub(super) fn create_with_text(out: Out, _: &[Input]) -> Box<dyn TimelineSink> {
    ReportWriter::boxed(out, true)
}

struct ReportWriter {
    builder: TrackBuilder<Collector>,
    text: Option<SystraceWriter>,
    out: SharedOut,
    head: Option<Head>,
    notes: Vec<String>,
}

/// The output, which the writer of the text and the writer of the page around the text share.
#[derive(Clone)]
struct SharedOut(Arc<Mutex<Out>>);

impl SharedOut {
    fn lock(&self) -> MutexGuard<'_, Out> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes text for the inside of a script element. Each piece that is written consists of whole lines, so
/// that no piece ends inside a tag.
struct ScriptText(SharedOut);

impl Write for ScriptText {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        write_script_text(piece, &mut *self.0.lock())?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ReportWriter {
    fn boxed(out: Out, with_text: bool) -> Box<dyn TimelineSink> {
        let out = SharedOut(Arc::new(Mutex::new(out)));
        let text = with_text.then(|| SystraceWriter::new(Box::new(ScriptText(out.clone()))));
        let builder = TrackBuilder::new(Collector::default());
        Box::new(ReportWriter { builder, text, out, head: None, notes: Vec::new() })
    }

    /// The sinks that receive everything.
    fn sinks(&mut self) -> impl Iterator<Item = &mut dyn TimelineSink> {
        let text = self.text.as_mut().map(|text| text as &mut dyn TimelineSink);
        text.into_iter().chain([&mut self.builder as &mut dyn TimelineSink])
    }

    /// Writes the blocks and the directory.
    fn write_data(&mut self, summary: &MergeSummary) -> io::Result<()> {
        let page = self.builder.sink();
        let first = page.tracks.first();
        let start = first.into_iter().chain(summary.report.first_ts).min().unwrap_or(0);
        let start = summary.window.map_or(start, |window| first.unwrap_or(window.from).max(window.from));
        let ends =
            [summary.window.map_or(summary.report.last_ts, |window| Some(window.to)), page.tracks.last()];
        let end = ends.into_iter().flatten().max().unwrap_or(start).max(start);
        page.tracks.finish(start, end);
        add_arrows(page);
        let people = People::of(page);
        self.notes.extend(depth_note(page));
        let mut out = self.out.lock();
        let mut blocks = BlockWriter::new(&mut *out)?;
        let base = Base { start, thread: &|number| people.thread(number) };
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
        let strings = blocks.json(&page.strings)?;
        let methods = (!page.methods.is_empty()).then(|| blocks.json(&page.methods)).transpose()?;
        let names: Vec<&str> = summary.inputs.iter().map(|input| file_name(&input.name)).collect();
        let has_cpu_time = page.tracks.list.iter().any(|track| match &track.columns {
            TrackColumns::Calls(calls) => calls.has_cpu(),
            _ => false,
        });
        let head = self.head.as_ref();
        let index = json!({
            "title": names.join(" + "),
            "clock": summary.clock.name(),
            "start_ns": start.to_string(),
            "duration_ns": end - start,
            "wall_start_ns": wall_start(head, summary.clock, page.wall, start).map(|ns| ns.to_string()),
            "machine": head.and_then(|head| head.machine.as_ref()),
            "device": null,
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
            "launch": null,
        });
        let index = blocks.json(&index)?;
        let out = blocks.finish()?;
        write!(out, "<script type=\"application/json\" id=\"{REPORT_DIRECTORY_ID}\">")?;
        out.write_all(directory(index).to_string().replace('<', "\\u003c").as_bytes())?;
        out.write_all(b"</script>\n")
    }
}

/// Makes the tracks of arrows.
fn add_arrows(page: &mut Collector) {
    for (role, kind) in [(Role::Wakeup, ArrowKind::Wakeup), (Role::Binder, ArrowKind::Binder)] {
        let of_kind = page.arrows.iter().filter(|arrow| arrow.kind == kind);
        let tracks = &page.tracks;
        let ends = of_kind.filter_map(|arrow| {
            let (from, to) = tracks.of_thread(arrow.from.1).zip(tracks.of_thread(arrow.to.1))?;
            Some((arrow.from.0, arrow.to.0, from, to))
        });
        let ends = ends.collect();
        add_arrow_track(page, role, ends);
    }
    let flows = std::mem::take(&mut page.flows);
    add_arrow_track(page, Role::Flow, flows);
}

fn add_arrow_track(page: &mut Collector, role: Role, mut list: Vec<(u64, u64, usize, usize)>) {
    if list.is_empty() {
        return;
    }
    list.sort_by_key(|arrow| arrow.0);
    let columns = TrackColumns::Arrows(Arrows { list });
    page.tracks.list.push(PageTrack { role, owner: Owner::Machine, name: String::new(), columns });
}

/// Gives the ends of arrows the numbers that their tracks have on the page. `order` holds for each place on the
/// page the track that has it.
fn renumber_arrows(tracks: &mut [PageTrack], order: &[usize]) {
    let mut place = vec![0; tracks.len()];
    order.iter().enumerate().for_each(|(at, number)| place[*number] = at);
    for track in tracks {
        let TrackColumns::Arrows(arrows) = &mut track.columns else { continue };
        for (_, _, from, to) in &mut arrows.list {
            (*from, *to) = (place[*from], place[*to]);
        }
    }
}

/// What the page says about calls that lie too deep for it.
fn depth_note(page: &Collector) -> Option<String> {
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

/// The time of day at `start`, ns since 1970-01-01 UTC.
fn wall_start(head: Option<&Head>, clock: Clock, marker: Option<(u64, u64)>, start: u64) -> Option<u64> {
    let by_snapshots = || head?.snapshots.convert(start, clock, Clock::Realtime);
    let by_marker = || marker.map(|(ts, wall)| wall.saturating_add_signed(start.wrapping_sub(ts) as i64));
    match clock {
        Clock::Realtime => Some(start),
        _ => by_snapshots().filter(|wall| *wall > 0).or_else(by_marker),
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

impl Sink for ReportWriter {
    fn head(&mut self, head: &Head) -> io::Result<()> {
        let before = PAGE.split(DATA_MARK).next().unwrap_or_default();
        self.out.lock().write_all(before.as_bytes())?;
        if self.text.is_some() {
            let section = b"<script class=\"trace-data\" type=\"application/text\">\n";
            self.out.lock().write_all(section)?;
        }
        self.head = Some(head.clone());
        self.sinks().try_for_each(|sink| sink.head(head))
    }

    fn event_type(&mut self, id: EventTypeId, kind: &EventType) -> io::Result<()> {
        self.builder.sink().event_type();
        self.sinks().try_for_each(|sink| sink.event_type(id, kind))
    }

    fn kernel(&mut self, symbolizer: &Arc<Symbolizer>) -> io::Result<()> {
        self.builder.sink().kernel(symbolizer);
        self.sinks().try_for_each(|sink| sink.kernel(symbolizer))
    }

    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        self.sinks().try_for_each(|sink| sink.thread(thread))
    }

    fn process(&mut self, process: &ProcessInfo<'_>) -> io::Result<()> {
        self.sinks().try_for_each(|sink| sink.process(process))
    }

    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        self.sinks().try_for_each(|sink| sink.event(event, kind))
    }

    fn track(&mut self, track: &Track<'_>) -> io::Result<()> {
        self.sinks().try_for_each(|sink| sink.track(track))
    }

    fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
        self.sinks().try_for_each(|sink| sink.track_event(event))
    }

    fn lost(&mut self, cpu: u32, count: Option<u64>) -> io::Result<()> {
        self.sinks().try_for_each(|sink| sink.lost(cpu, count))
    }
}

impl TimelineSink for ReportWriter {
    fn order(&mut self) -> Order {
        Order::Time
    }

    /// The page needs the calls of each thread in their order, and no order over all threads.
    fn edge_order(&mut self) -> Order {
        if self.text.is_some() { Order::Time } else { Order::Any }
    }

    fn method(&mut self, id: MethodId, name: &MethodName<'_>) -> io::Result<()> {
        self.builder.sink().method_name(id, name);
        self.sinks().try_for_each(|sink| sink.method(id, name))
    }

    fn method_thread(&mut self, thread: &MethodThread) -> io::Result<()> {
        self.builder.sink().method_thread(thread);
        self.sinks().try_for_each(|sink| sink.method_thread(thread))
    }

    fn edges(&mut self, thread: u32, edges: &[Edge]) -> io::Result<()> {
        self.sinks().try_for_each(|sink| sink.edges(thread, edges))
    }

    fn finish(&mut self, summary: &MergeSummary) -> io::Result<()> {
        if let Some(text) = &mut self.text {
            text.finish(summary)?;
            self.notes = text.notes();
            self.out.lock().write_all(b"</script>\n")?;
        }
        self.builder.finish(summary)?;
        self.write_data(summary)?;
        let behind = PAGE.split(DATA_MARK).nth(1).unwrap_or_default();
        self.out.lock().write_all(behind.as_bytes())?;
        self.out.lock().flush()
    }

    fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    fn not_written(&mut self) -> DataCounts {
        self.builder.not_written()
    }
}
