//! Makes rows of a timeline: the tables of a dataset.
//!
//! The sink receives slices, states and counters as they end, and keeps only what is open. The method
//! profile is not made here: it follows the records of a method trace, not the timeline.

mod end_rows;
mod open_slices;
mod sink;

use std::collections::BTreeMap;
use std::io;

use self::end_rows::push_causes;
use self::sink::TableSink;
use crate::formats::input::Input;
use crate::formats::{Event, EventType, Head, Order, Sink, SinkAdapter};
use crate::tables::TraceRows;
use crate::timeline::{
    self, MergeError, MergeOptions, MergeSummary, MethodThread, TimelineAdapter, TimelineSink,
};
use crate::tracks::{Both, TrackBuilder};
use crate::why;

pub use end_rows::{TraceFacts, push_source, push_trace, realtime};
pub use sink::{LargeTables, utid};

/// A timeline of which the rows are made.
pub struct Tabulated {
    /// The timeline's counts, losses and verdicts.
    pub summary: MergeSummary,
    /// The timeline's head.
    pub head: Option<Head>,
    /// The threads of method traces by [`MethodThread::index`].
    pub threads: BTreeMap<u32, MethodThread>,
    /// Ends of asynchronous slices whose begin was not recorded.
    pub unmatched_asyncs: u64,
}

/// The most states of threads that are kept to find causes, some 100 MB. A longer trace has no rows of
/// causes.
const MAX_STATES: usize = 4_000_000;

/// Puts `inputs` on one clock, and makes the rows of their slices, states and counters, threads and
/// processes, of the launches and frames in them with their causes, and of the tables that `large` names.
///
/// # Errors
/// [`MergeError`]; the errors of `rows` are in [`MergeError::Io`].
pub fn tabulate(
    inputs: &[Input],
    options: &MergeOptions,
    rows: &mut TraceRows,
    large: LargeTables,
) -> Result<Tabulated, MergeError> {
    let why = why::ModelCollector::up_to(MAX_STATES);
    let both = Both::new(TableSink::new(rows, large), why);
    let mut tables = TraceTables { builder: TrackBuilder::new(both), head: None };
    let summary = timeline::merge(inputs, &mut tables, options)?;
    let TraceTables { mut builder, head } = tables;
    let (sink, why) = builder.sink().parts();
    if let Some(model) = std::mem::take(why).into_whole_model() {
        push_causes(&model, sink.rows)?;
    }
    let threads = std::mem::take(&mut sink.method_threads);
    Ok(Tabulated { summary, head, threads, unmatched_asyncs: sink.unmatched_ends })
}

/// Receives a timeline, and makes the rows of its trace.
struct TraceTables<'r> {
    builder: TrackBuilder<Both<TableSink<'r>, why::ModelCollector>>,
    head: Option<Head>,
}

impl<'r> SinkAdapter for TraceTables<'r> {
    type Next = TrackBuilder<Both<TableSink<'r>, why::ModelCollector>>;

    fn next(&mut self) -> &mut Self::Next {
        &mut self.builder
    }

    fn head(&mut self, head: &Head) -> io::Result<()> {
        self.head = Some(head.clone());
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        self.builder.sink().first.raw_event(event, kind)?;
        self.builder.event(event, kind)
    }
}

impl TimelineAdapter for TraceTables<'_> {
    /// The edges of a whole method trace in order of time would not fit into memory, and a stack of calls
    /// needs the order of its own thread alone.
    fn edge_order(&mut self) -> Order {
        Order::Any
    }

    fn method_thread(&mut self, thread: &MethodThread) -> io::Result<()> {
        self.builder.sink().first.method_threads.insert(thread.index, thread.clone());
        TimelineSink::method_thread(&mut self.builder, thread)
    }
}
