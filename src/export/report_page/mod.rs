//! Writes a report page: one HTML file that shows a trace offline. docs/report-format.md defines its data.
//! The page itself is built from `web/`; `page.html` is what that gives.
//!
//! A page may also hold the trace as text, where every reader of systrace's pages looks for it.

mod blocks;
mod collector;
mod columns;
mod index;
mod page_trace;
mod rolling;
mod sample_strips;
mod tracks;
mod videos;

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use self::blocks::BlockWriter;
pub(crate) use self::collector::PageCollector;
pub(super) use self::page_trace::PageTrace;
pub(crate) use self::rolling::{RolledBatch, RolledTimes};
pub use self::videos::PageVideos;
use super::Out;
use super::held_memory::HeldLimit;
use super::systrace::SystraceWriter;
use crate::formats::samples::{Sample, SampleTables};
use crate::formats::{
    Event, EventType, EventTypeId, Head, Order, ProcessInfo, REPORT_DIRECTORY_ID, Sink, ThreadInfo, Track,
    TrackEvent,
};
use crate::ftrace::print_fmt::Symbolizer;
use crate::ids::Cpu;
use crate::markup::write_script_text;
use crate::measure::Comparison;
use crate::timeline::{DataCounts, Edge, MergeSummary, MethodId, MethodName, MethodThread, TimelineSink};

const PAGE: &str = include_str!("page.html");
/// The placeholder in [`PAGE`] that the data replaces.
const DATA_MARK: &str = "@TRACEBRIDGE_DATA@";

/// The end of the page's content-security policy for pictures, behind which that for videos is put.
const POLICY_OF_PICTURES: &str = "img-src data: blob:;";

/// Makes the writer of a page with these videos, of which no more than `limit` is kept in memory.
pub(super) fn create(out: Out, limit: HeldLimit, videos: PageVideos<'_>) -> Box<dyn TimelineSink + '_> {
    ReportWriter::boxed(out, limit, videos, false)
}

/// Makes the writer of a page that also holds the trace as text.
pub(super) fn create_with_text(
    out: Out,
    limit: HeldLimit,
    videos: PageVideos<'_>,
) -> Box<dyn TimelineSink + '_> {
    ReportWriter::boxed(out, limit, videos, true)
}

struct ReportWriter<'a> {
    trace: PageTrace,
    videos: PageVideos<'a>,
    text: Option<SystraceWriter>,
    out: SharedOut,
}

/// The output, which the writer of the text and the writer of the page around the text share.
#[derive(Clone)]
struct SharedOut(Arc<Mutex<Out>>);

impl SharedOut {
    fn lock(&self) -> MutexGuard<'_, Out> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for SharedOut {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lock().flush()
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

impl<'a> ReportWriter<'a> {
    fn boxed(
        out: Out,
        limit: HeldLimit,
        videos: PageVideos<'a>,
        with_text: bool,
    ) -> Box<dyn TimelineSink + 'a> {
        let out = SharedOut(Arc::new(Mutex::new(out)));
        let text = with_text.then(|| SystraceWriter::new(Box::new(ScriptText(out.clone()))));
        Box::new(ReportWriter { trace: PageTrace::new(limit), videos, text, out })
    }

    /// The sinks that receive everything.
    fn sinks(&mut self) -> impl Iterator<Item = &mut dyn TimelineSink> {
        let text = self.text.as_mut().map(|text| text as &mut dyn TimelineSink);
        text.into_iter().chain([&mut self.trace as &mut dyn TimelineSink])
    }
}

/// The role of a trace on its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TraceRole {
    /// The page's only trace.
    Only,
    /// The later one of two that are compared.
    New,
    /// The earlier one.
    Old,
}

impl TraceRole {
    fn name(self) -> &'static str {
        match self {
            TraceRole::Only => "trace",
            TraceRole::New => "new",
            TraceRole::Old => "old",
        }
    }
}

/// Writes the data of a page to `W`.
pub(super) struct PageData<W: Write + Send + 'static> {
    blocks: BlockWriter<W>,
    /// The entries of the directory.
    traces: Vec<Value>,
}

impl<W: Write + Send + 'static> PageData<W> {
    pub fn new(out: W) -> PageData<W> {
        PageData { blocks: BlockWriter::new(out), traces: Vec::new() }
    }

    /// Adds a trace that has been collected whole. The page shows the first one first.
    pub fn add(
        &mut self,
        role: TraceRole,
        trace: &mut PageTrace,
        summary: &MergeSummary,
        videos: &PageVideos<'_>,
    ) -> io::Result<()> {
        let index = trace.write(summary, videos, &mut self.blocks)?;
        self.traces.push(json!({ "role": role.name(), "index": index }));
        Ok(())
    }

    /// Writes the comparison of the traces, if there is one, and the directory. Returns the output.
    pub fn finish(mut self, comparison: Option<&Comparison>) -> io::Result<W> {
        let comparison = comparison.map(|comparison| self.blocks.json(comparison)).transpose()?;
        let directory = json!({
            "format": "tracebridge-report",
            "version": 7,
            "generator": concat!("tracebridge ", env!("CARGO_PKG_VERSION")),
            "traces": self.traces,
            "comparison": comparison,
        });
        let mut out = self.blocks.finish()?;
        write!(out, "<script type=\"application/json\" id=\"{REPORT_DIRECTORY_ID}\">")?;
        out.write_all(directory.to_string().replace('<', "\\u003c").as_bytes())?;
        out.write_all(b"</script>\n")?;
        Ok(out)
    }
}

/// Writes the part of the page before its data. The page may load `videos`, and nothing else.
pub(super) fn begin_page(out: &mut dyn Write, videos: &PageVideos<'_>) -> io::Result<()> {
    let head = PAGE.split(DATA_MARK).next().unwrap_or_default();
    let policy = format!("{POLICY_OF_PICTURES}{}", videos.policy());
    out.write_all(head.replacen(POLICY_OF_PICTURES, &policy, 1).as_bytes())
}

/// Writes the part of the page behind its data, and flushes.
pub(super) fn end_page(out: &mut dyn Write) -> io::Result<()> {
    out.write_all(PAGE.split(DATA_MARK).nth(1).unwrap_or_default().as_bytes())?;
    out.flush()
}

impl Sink for ReportWriter<'_> {
    fn head(&mut self, head: &Head) -> io::Result<()> {
        begin_page(&mut *self.out.lock(), &self.videos)?;
        if self.text.is_some() {
            let section = b"<script class=\"trace-data\" type=\"application/text\">\n";
            self.out.lock().write_all(section)?;
        }
        self.sinks().try_for_each(|sink| sink.head(head))
    }

    fn event_type(&mut self, id: EventTypeId, kind: &EventType) -> io::Result<()> {
        self.sinks().try_for_each(|sink| sink.event_type(id, kind))
    }

    fn kernel(&mut self, symbolizer: &Arc<Symbolizer>) -> io::Result<()> {
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

    fn lost(&mut self, cpu: Cpu, count: Option<u64>) -> io::Result<()> {
        self.sinks().try_for_each(|sink| sink.lost(cpu, count))
    }
}

impl TimelineSink for ReportWriter<'_> {
    fn order(&mut self) -> Order {
        Order::Time
    }

    /// The page needs the calls of each thread in their order, and no order over all threads.
    fn edge_order(&mut self) -> Order {
        if self.text.is_some() { Order::Time } else { Order::Any }
    }

    fn method(&mut self, id: MethodId, name: &MethodName<'_>) -> io::Result<()> {
        self.sinks().try_for_each(|sink| sink.method(id, name))
    }

    fn method_thread(&mut self, thread: &MethodThread) -> io::Result<()> {
        self.sinks().try_for_each(|sink| sink.method_thread(thread))
    }

    fn edges(&mut self, thread: u32, edges: &[Edge]) -> io::Result<()> {
        self.sinks().try_for_each(|sink| sink.edges(thread, edges))
    }

    fn sample_set(&mut self, set: u32, tables: &Arc<SampleTables>) -> io::Result<()> {
        self.sinks().try_for_each(|sink| sink.sample_set(set, tables))
    }

    fn sample(&mut self, set: u32, sample: &Sample) -> io::Result<()> {
        self.sinks().try_for_each(|sink| sink.sample(set, sample))
    }

    fn finish(&mut self, summary: &MergeSummary) -> io::Result<()> {
        if let Some(text) = &mut self.text {
            text.finish(summary)?;
            self.trace.add_notes(text.notes());
            self.out.lock().write_all(b"</script>\n")?;
        }
        self.trace.add_notes(self.videos.notes(summary));
        self.trace.finish(summary)?;
        let mut data = PageData::new(self.out.clone());
        data.add(TraceRole::Only, &mut self.trace, summary, &self.videos)?;
        end_page(&mut data.finish(None)?)
    }

    fn notes(&mut self) -> Vec<String> {
        self.trace.notes()
    }

    fn not_written(&mut self) -> DataCounts {
        self.trace.not_written()
    }
}
