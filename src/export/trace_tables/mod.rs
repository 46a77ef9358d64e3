//! Makes rows of a timeline: the tables of a dataset.
//!
//! The sink receives slices, states and counters as they end, and keeps only what is open. The rows of the
//! tables `launch`, `frame`, `cause`, `thread`, `process`, `trace` and `source` are made when the timeline
//! has ended. The method profile is not made here: it follows the records of a method trace, not the
//! timeline.

mod sink;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use self::sink::TableSink;
use crate::clock::{Clock, Timestamp};
use crate::formats::input::Input;
use crate::formats::{Damage, Event, EventType, Head, Order, Sink, SinkAdapter};
use crate::ids::{Pid, Tid};
use crate::measure::{Frame, Launch, LaunchBegin, LaunchType, MeasuredRun, RunMeter, RunValue};
use crate::tables::{COUNTED, Cell, SCHEMA_VERSION, TableId, TraceRows};
use crate::timeline::{
    self, DataKind, InputSummary, MergeError, MergeOptions, MergeSummary, MethodThread, TimelineAdapter,
    TimelineSink, WindowRequest,
};
use crate::tracks::{Both, Task, Tasks, TrackBuilder};
use crate::why::{self, Model};

pub use sink::{LargeTables, utid};

/// A timeline of which the rows are made.
pub struct Tabulated {
    /// The timeline's counts, losses and verdicts.
    pub summary: MergeSummary,
    /// The timeline's head.
    pub head: Option<Head>,
    /// The threads of method traces by [`MethodThread::index`].
    pub threads: BTreeMap<u32, MethodThread>,
}

/// The most states of threads that are kept to find causes, some 100 MB. A longer trace has no rows of
/// causes.
const MAX_STATES: usize = 4_000_000;

/// Puts `inputs` on one clock, and makes the rows of their slices, states and counters, threads and
/// processes, of the launches and frames in them with their causes, of the run's measures with the `metrics`
/// that a benchmark has measured, and of the tables that `large` names.
///
/// # Errors
/// [`MergeError`]; the errors of `rows` are in [`MergeError::Io`].
pub fn tabulate(
    inputs: &[Input],
    options: &MergeOptions,
    rows: &mut TraceRows,
    large: LargeTables,
    metrics: Vec<(String, i64)>,
) -> Result<Tabulated, MergeError> {
    let why = why::ModelCollector::up_to(MAX_STATES);
    let meter = RunMeter::new(None, WindowRequest::default());
    let both = Both::new(TableSink::new(rows, large), Both::new(why, meter));
    let mut tables = TraceTables { builder: TrackBuilder::new(both), head: None };
    let summary = timeline::merge(inputs, &mut tables, options)?;
    let TraceTables { mut builder, head } = tables;
    let (sink, others) = builder.sink().parts();
    let (why, meter) = others.parts();
    if let Some(model) = std::mem::take(why).into_whole_model() {
        push_causes(&model, sink.rows)?;
    }
    let mut meter = std::mem::take(meter);
    if let Some(again) = meter.for_second_reading() {
        let mut builder = TrackBuilder::new(again);
        timeline::merge(inputs, &mut builder, options)?;
        meter = std::mem::take(builder.sink());
    }
    let mut run = meter.into_run().unwrap_or_default();
    run.add_metrics(metrics);
    push_measures(&run, sink)?;
    let threads = std::mem::take(&mut sink.method_threads);
    Ok(Tabulated { summary, head, threads })
}

type Sinks<'r> = Both<TableSink<'r>, Both<why::ModelCollector, RunMeter>>;

/// Receives a timeline, and makes the rows of its trace.
struct TraceTables<'r> {
    builder: TrackBuilder<Sinks<'r>>,
    head: Option<Head>,
}

impl<'r> SinkAdapter for TraceTables<'r> {
    type Next = TrackBuilder<Sinks<'r>>;

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

impl TableSink<'_> {
    /// Makes a row of each launch that the recording does not cut.
    fn push_launches(&mut self, launches: &[Launch]) -> io::Result<()> {
        let between = |from: Option<Timestamp>, to: Option<Timestamp>| {
            Cell::from(from.zip(to).map(|(from, to)| to.since(from)))
        };
        for launch in launches.iter().filter(|launch| launch.cut.is_none()) {
            self.tids.extend(launch.main_tid);
            self.tids.extend(launch.render_tid);
            let bind = launch.bind();
            let bound = bind.map(|span| span.start);
            let bind_end = bind.map(|span| span.end);
            let requested = (launch.begins_with == LaunchBegin::Request).then_some(launch.begin);
            let frame_end = launch.first_frame().map(|span| span.end);
            self.rows.push(
                TableId::Launch,
                [
                    (!launch.package.is_empty()).then_some(&launch.package).into(),
                    launch.main_tid.into(),
                    Cell::Int(0),
                    launch.begin.into(),
                    launch.end.since(launch.begin).into(),
                    launch.begins_with.name().into(),
                    launch.ends_with.name().into(),
                    between(requested, bound),
                    between(bound, bind_end),
                    between(bind_end, frame_end),
                    launch.launch_type.map(LaunchType::name).into(),
                    launch.rule.name().into(),
                    launch.pid.into(),
                    launch.render_tid.into(),
                    launch.ttid.into(),
                    launch.ttfd.into(),
                    launch.is_overlapped.into(),
                ],
            )?;
        }
        Ok(())
    }

    /// Makes a row of each frame.
    fn push_frames(&mut self, frames: &[Frame]) -> io::Result<()> {
        for frame in frames {
            self.tids.extend(frame.tids());
            let work = frame.work.as_ref();
            self.rows.push(
                TableId::Frame,
                [
                    frame.id.into(),
                    (!frame.package.is_empty()).then_some(&frame.package).into(),
                    frame.pid.into(),
                    frame.layer.as_ref().into(),
                    work.map(|work| work.ui_tid).into(),
                    work.map(|work| work.render_tid).into(),
                    Cell::Int(0),
                    frame.begin.into(),
                    frame.duration().into(),
                    work.map(|work| work.cpu_ns).into(),
                    frame.duration_cpu().into(),
                    frame.overrun().into(),
                    frame.deadline.map(|deadline| deadline.name()).into(),
                    frame.jank_type.as_ref().into(),
                ],
            )?;
        }
        Ok(())
    }

    /// Makes a row of each thread and process that the timeline names.
    /// Makes the row of a thread. A thread whose id is not known has a negative one.
    fn thread_row(
        &mut self,
        utid: i64,
        at: Task,
        name: Option<&str>,
        traced: Option<&MethodThread>,
    ) -> io::Result<()> {
        let tid = Some(at.tid).filter(|tid| *tid >= Tid::IDLE);
        let traced_name = traced.map(|thread| &thread.name);
        let doubt = traced.and_then(|thread| thread.doubt.as_ref()).map(ToString::to_string);
        self.rows.push(
            TableId::Thread,
            [
                utid.into(),
                tid.into(),
                at.tgid.into(),
                name.or(traced_name.map(String::as_str)).into(),
                tid.zip(at.tgid).map(|(tid, pid)| tid.is_main_of(pid)).into(),
                traced.map(|thread| thread.trace_id).into(),
                traced_name.into(),
                doubt.as_deref().into(),
            ],
        )
    }

    fn push_threads(&mut self, tasks: &Tasks) -> io::Result<()> {
        let mut pids: BTreeSet<Pid> = tasks.processes.keys().copied().collect();
        let mut of_trace: BTreeMap<i64, MethodThread> = BTreeMap::new();
        for thread in self.method_threads.values() {
            of_trace.entry(utid(thread)).or_insert_with(|| thread.clone());
        }
        let mut tids = std::mem::take(&mut self.tids);
        tids.extend(tasks.threads.sorted().into_iter().map(|(tid, _)| tid));
        let mut utids: BTreeMap<i64, Option<Tid>> = of_trace.keys().map(|utid| (*utid, None)).collect();
        utids.extend(
            tids.iter().map(|tid| (self.current_utid(*tid), Some(*tid).filter(|tid| *tid >= Tid::IDLE))),
        );
        for (number, tid) in utids {
            let traced = of_trace.get(&number);
            let tid = tid.or(Tid::try_from(number).ok().filter(|tid| *tid >= Tid::IDLE));
            let known = tid.and_then(|tid| tasks.threads.get(tid));
            let tgid = known.and_then(|thread| thread.tgid).or(traced.and_then(|thread| thread.tgid));
            pids.extend(tgid);
            let name = known.and_then(|thread| thread.name_text());
            let at = Task { tid: tid.unwrap_or(Tid::UNKNOWN), tgid };
            self.thread_row(number, at, name.as_deref(), traced)?;
        }
        for pid in pids {
            let name = tasks.process_name(pid);
            let name = Some(&*name).filter(|name| !name.is_empty());
            self.rows.push(TableId::Process, [pid.into(), Cell::from(name)])?;
        }
        Ok(())
    }
}

/// Makes a row of each cause of each launch and of each late frame.
fn push_causes(model: &Model, rows: &mut TraceRows) -> io::Result<()> {
    for span in model.measured_spans() {
        let explained = model.explain(&span.asked);
        for part in &explained.causes {
            let path = part.path_text();
            rows.push(
                TableId::Cause,
                [
                    span.kind.name().into(),
                    Some(&span.app).filter(|app| !app.is_empty()).into(),
                    span.frame.into(),
                    Cell::Int(0),
                    explained.begin.into(),
                    explained.duration.into(),
                    part.cause_name().into(),
                    (&path).into(),
                    Some(&part.subject).filter(|subject| !subject.is_empty()).into(),
                    part.ns.into(),
                    part.count.into(),
                    part.own.as_ref().map(|own| &own.frame.name).into(),
                ],
            )?;
        }
    }
    Ok(())
}

/// Makes a row of each measure of the run.
fn push_measures(run: &MeasuredRun, sink: &mut TableSink<'_>) -> io::Result<()> {
    for RunValue { kind, name, tid, value, count } in run.values() {
        let utid = tid.map(|tid| sink.current_utid(tid));
        sink.rows.push(
            TableId::Measure,
            [kind.name().into(), (&*name).into(), utid.into(), value.into(), count.into()],
        )?;
    }
    Ok(())
}

/// The facts of a trace that are known at its end.
pub struct TraceFacts<'a> {
    /// The names of its inputs, for people.
    pub name: &'a str,
    /// The timeline's head.
    pub head: &'a Head,
    /// The timeline's counts, losses and verdicts.
    pub summary: &'a MergeSummary,
    /// When the trace begins, in CLOCK_REALTIME: since 1970 in UTC.
    pub start_realtime: Option<Timestamp>,
    /// The day of the partition, `2026-11-22`.
    pub day: &'a str,
    /// The source of the day: `wall clock` or `file`.
    pub day_from: &'static str,
    /// Whether the table `method_call` has the calls.
    pub has_method_calls: bool,
}

/// The places of damage that a row names; the others are counted.
const NAMED_DAMAGE: usize = 3;

/// Makes the row of the trace: the last one of its rows.
///
/// # Errors
/// The system's error.
pub fn push_trace(rows: &mut TraceRows, facts: &TraceFacts<'_>) -> io::Result<()> {
    let TraceFacts { head, summary, .. } = facts;
    let report = &summary.report;
    let first = report.first_ts.unwrap_or_default();
    let last = report.last_ts.unwrap_or_default();
    let uncounted = report.losses.iter().filter(|loss| !loss.kind.counts_events());
    let uncounted: u64 = uncounted.map(|loss| loss.count.count).sum();
    let gaps = report.cpus.values().map(|cpu| cpu.gaps).sum::<u64>() + uncounted;
    let unmatched = summary.not_written.get(DataKind::UnmatchedEnds);
    let named: Vec<String> = report.damage.iter().take(NAMED_DAMAGE).map(damage_text).collect();
    let damage = named.join("; ");
    let traced = || summary.inputs.iter().filter(|input| input.method_edges > 0);
    let verdict = traced().map(|input| input.verdict).min();
    let release = head.device.as_deref().and_then(|device| device.rsplit_once("Android "));
    let release = release.map(|(_, release)| release.trim());
    let counts = COUNTED.map(|(table, _)| Cell::from(rows.count(table)));
    let [slices, scheds, states, counters, profiles, calls, launches, raw_events] = counts;
    rows.push(
        TableId::Trace,
        [
            SCHEMA_VERSION.into(),
            env!("CARGO_PKG_VERSION").into(),
            facts.name.into(),
            (&head.format).into(),
            summary.clock.name().into(),
            first.into(),
            last.since(first).into(),
            facts.start_realtime.into(),
            facts.day.into(),
            facts.day_from.into(),
            head.machine.as_ref().into(),
            head.device.as_ref().into(),
            release.into(),
            head.cpus.into(),
            report.events().into(),
            report.lost().into(),
            gaps.into(),
            unmatched.into(),
            report.damage.len().into(),
            Some(&damage).filter(|damage| !damage.is_empty()).into(),
            verdict.map(|verdict| verdict.name()).into(),
            traced().filter_map(|input| input.residual_median_ns).max().into(),
            traced().filter_map(|input| input.residual_p99_ns).max().into(),
            facts.has_method_calls.into(),
            slices,
            scheds,
            states,
            counters,
            profiles,
            calls,
            launches,
            raw_events,
        ],
    )
}

fn damage_text(damage: &Damage) -> String {
    format!("at byte {}: {}", damage.offset, damage.what)
}

/// Makes the row of an input. `path_bytes` is its path where that is no text.
///
/// # Errors
/// The system's error.
pub fn push_source(
    rows: &mut TraceRows,
    number: usize,
    input: &InputSummary,
    path_bytes: Option<&[u8]>,
) -> io::Result<()> {
    rows.push(
        TableId::Source,
        [
            number.into(),
            (&input.name).into(),
            path_bytes.map_or(Cell::Null, Cell::Bytes),
            input.size.into(),
            (&input.format).into(),
            input.clock.name().into(),
            input.verdict.name().into(),
            (&input.why.to_string()).into(),
            input.offset_ns.into(),
            input.residual_median_ns.into(),
            input.residual_p99_ns.into(),
            input.events.into(),
            input.duplicates.into(),
            input.method_edges.into(),
        ],
    )
}

/// The time in CLOCK_REALTIME at `ts` of the timeline's clock; `None` where nothing of the trace tells it.
pub fn realtime(head: &Head, clock: Clock, ts: Timestamp) -> Option<Timestamp> {
    head.snapshots.convert(ts.0, clock, Clock::Realtime).map(Timestamp)
}
