//! Turns a method trace's records into edges of method slices on the timeline, in which every enter has its
//! exit.

use std::io;

use super::align::method_evidence::Readings;
use super::align::placement::Placement;
use super::sink::{Edge, EdgeKind, MethodId, MethodName, MethodThread, TimelineSink};
use super::summary::{DataCounts, DataKind};
use crate::art::{Action, ClockMode};
use crate::clock::Timestamp;
use crate::formats::art_method::call_stack::{ExitEffect, exit_effect};
use crate::formats::art_method::{CallAnomalies, MethodTrace, Record};
use crate::progress::Pass;

/// The number of edges of one thread that are pushed together.
const BATCH: usize = 1024;

/// Counts of a method trace that was pushed.
#[derive(Debug, Clone, Default)]
pub struct MethodCounts {
    /// Methods entered.
    pub enters: u64,
    /// Irregularities of the calls, such as exits without an enter.
    pub problems: CallAnomalies,
    /// Time of the earliest edge, in the timeline's clock.
    pub first: Option<Timestamp>,
    /// Time of the latest edge, in the timeline's clock.
    pub last: Option<Timestamp>,
    /// How much of each kind of data was pushed.
    pub contents: DataCounts,
}

/// The numbers of the next method and the next thread: all method traces share one numbering.
#[derive(Debug, Clone, Copy, Default)]
pub struct NextIds {
    /// The next [`MethodId`].
    pub method: u32,
    /// The next thread index.
    pub thread: u32,
}

/// The open calls of a thread.
///
/// It follows regular records without a branch on whether they enter or leave a method: the processor
/// predicts such a branch wrongly every other time.
struct OpenCalls {
    /// [`OUTSIDE`], the methods of the open calls, outermost first, and room for one more at least.
    methods: Vec<u64>,
    /// The number of open calls.
    depth: usize,
}

/// The lowest entry of a thread's stack, below the methods of its open calls. No method has this index.
const OUTSIDE: u64 = u64::MAX;

impl OpenCalls {
    fn new() -> OpenCalls {
        OpenCalls { methods: vec![OUTSIDE; 2], depth: 0 }
    }

    /// Opens a call or ends the innermost one. Returns false, and changes nothing, if the record leaves a
    /// method that is not the innermost call's.
    #[inline(always)]
    fn follow(&mut self, method: u32, action: Action) -> bool {
        if self.methods.len() < self.depth + 2 {
            self.grow();
        }
        let Some([innermost, next]) = self.methods.get_mut(self.depth..).and_then(|m| m.first_chunk_mut())
        else {
            return false;
        };
        // 0 for Enter, 1 for Exit and Unroll.
        let leave = (action as u64 + 1) >> 1;
        let method = u64::from(method);
        let is_regular = (*innermost ^ method) & leave.wrapping_neg() == 0;
        if is_regular {
            *next = method;
            self.depth = (self.depth + 1).wrapping_sub((leave as usize) << 1);
        }
        is_regular
    }

    #[cold]
    fn grow(&mut self) {
        self.methods.resize(2 * self.methods.len(), OUTSIDE);
    }

    /// The methods of the open calls, outermost first.
    fn methods(&self) -> &[u64] {
        &self.methods[1..=self.depth]
    }
}

struct OpenThread {
    declared: bool,
    open: OpenCalls,
    last: Edge,
    records: u64,
    /// The latest time of the thread's records, ns since the trace's start.
    reached: u64,
    batch: Vec<Edge>,
}

struct EdgePusher<'t, 'a, 'o> {
    trace: &'t MethodTrace<'a>,
    readings: Readings,
    placement: &'t Placement,
    next_ids: NextIds,
    out: &'o mut dyn TimelineSink,
    threads: Vec<OpenThread>,
    named: Vec<bool>,
    counts: MethodCounts,
    /// The number of edges whose time is not a whole number of µs.
    finer: u64,
}

/// Pushes every record of `trace`, at the times and on the threads that `placement` gives.
pub fn push(
    trace: &MethodTrace<'_>,
    placement: &Placement,
    next_ids: &mut NextIds,
    out: &mut dyn TimelineSink,
) -> io::Result<MethodCounts> {
    let nothing = Edge { ts: Timestamp::MIN, cpu: None, method: MethodId(0), kind: EdgeKind::Exit };
    let new = || OpenThread {
        declared: false,
        open: OpenCalls::new(),
        last: nothing,
        records: 0,
        reached: 0,
        batch: Vec::new(),
    };
    let mut pusher = EdgePusher {
        trace,
        readings: Readings::new(trace),
        placement,
        next_ids: *next_ids,
        out,
        threads: trace.threads().iter().map(|_| new()).collect(),
        named: vec![false; trace.methods().len()],
        counts: MethodCounts::default(),
        finer: 0,
    };
    let _pass = Pass::begin("writing method calls", trace.record_bytes());
    trace.records().try_each(|record| pusher.record(&record))?;
    for index in 0..pusher.threads.len() {
        pusher.end(index as u32)?;
    }
    next_ids.method += trace.methods().len() as u32;
    next_ids.thread += trace.threads().len() as u32;
    let mut counts = pusher.counts;
    counts.contents.add(DataKind::Methods, counts.enters);
    counts.contents.add(DataKind::TimesBelowMicrosecond, pusher.finer);
    // A trace without wall time has its CPU time as the time of the timeline.
    if trace.header().clock == ClockMode::Dual {
        counts.contents.add(DataKind::MethodCpuTimes, counts.enters);
    }
    Ok(counts)
}

impl EdgePusher<'_, '_, '_> {
    #[inline(always)]
    fn record(&mut self, record: &Record) -> io::Result<()> {
        let Some(thread) = self.threads.get_mut(record.thread as usize) else { return Ok(()) };
        let Some(x) = record.wall.or(record.cpu) else { return Ok(()) };
        let at = self.readings.at(x);
        let ts = self.placement.time(record.thread, thread.records, at).max(thread.last.ts);
        self.counts.problems.time_steps_back += u64::from(x < thread.reached);
        thread.reached = thread.reached.max(x);
        thread.records += 1;
        let edge = Edge {
            ts,
            cpu: record.cpu,
            method: MethodId(self.next_ids.method + record.method),
            kind: EdgeKind::Exit,
        };
        thread.last = edge;
        if !thread.open.follow(record.method, record.action) {
            return self.irregular_exit(record);
        }
        let enters = record.action == Action::Enter;
        thread.batch.push(Edge { kind: if enters { EdgeKind::Enter } else { EdgeKind::Exit }, ..edge });
        self.finer += u64::from(ts.is_finer_than_us());
        self.counts.enters += u64::from(enters);
        let is_named = self.named.get(record.method as usize).is_none_or(|named| *named);
        if !is_named && enters {
            self.name(record.method)?;
        }
        self.flush_if_full(record.thread)
    }

    /// Handles an exit from a method that is not the innermost call's, at the thread's last time.
    #[cold]
    fn irregular_exit(&mut self, record: &Record) -> io::Result<()> {
        let thread = &mut self.threads[record.thread as usize];
        let open = thread.open.methods();
        let effect = exit_effect(open, record.method, |method| *method as u32, &mut self.counts.problems);
        if let ExitEffect::EndsCalls { depth } = effect {
            self.end_calls(record.thread, depth);
        }
        self.flush_if_full(record.thread)
    }

    /// Ends a thread's innermost calls at its last time until `depth` calls are open.
    fn end_calls(&mut self, index: u32, depth: usize) {
        let thread = &mut self.threads[index as usize];
        for method in thread.open.methods()[depth..].iter().rev() {
            let method = MethodId(self.next_ids.method + *method as u32);
            thread.batch.push(Edge { method, kind: EdgeKind::Exit, ..thread.last });
            self.finer += u64::from(thread.last.ts.is_finer_than_us());
        }
        thread.open.depth = depth;
    }

    fn flush_if_full(&mut self, index: u32) -> io::Result<()> {
        if self.threads[index as usize].batch.len() >= BATCH { self.flush(index) } else { Ok(()) }
    }

    fn name(&mut self, index: u32) -> io::Result<()> {
        let Some(named) = self.named.get_mut(index as usize) else { return Ok(()) };
        if std::mem::replace(named, true) {
            return Ok(());
        }
        let method = &self.trace.methods()[index as usize];
        let has_signature = !(method.signature.is_empty() && method.file.is_empty());
        self.counts.contents.add(DataKind::MethodSignatures, u64::from(has_signature));
        let class = method.class_name();
        let number = format!("{:#x}", method.id);
        self.out.method(
            MethodId(self.next_ids.method + index),
            &MethodName {
                class: &class,
                name: if method.declared { &method.name } else { &number },
                signature: &method.signature,
                file: &method.file,
                line: method.line.and_then(|line| u32::try_from(line).ok()).filter(|line| *line > 0),
            },
        )
    }

    fn flush(&mut self, index: u32) -> io::Result<()> {
        let thread = &mut self.threads[index as usize];
        let number = self.next_ids.thread + index;
        if !std::mem::replace(&mut thread.declared, true) {
            let about = &self.trace.threads()[index as usize];
            let identity = self.placement.identity(index);
            self.out.method_thread(&MethodThread {
                index: number,
                tid: identity.tid,
                tgid: identity.tgid,
                name: about.label().into_owned(),
                trace_id: about.id,
                doubt: identity.doubt.clone(),
                edge_cost_ns: self.trace.header().clock_read_ns(),
            })?;
        }
        if let (Some(first), Some(last)) = (thread.batch.first(), thread.batch.last()) {
            self.counts.first = Some(self.counts.first.map_or(first.ts, |t| t.min(first.ts)));
            self.counts.last = self.counts.last.max(Some(last.ts));
        }
        self.out.edges(number, &thread.batch)?;
        thread.batch.clear();
        Ok(())
    }

    fn end(&mut self, index: u32) -> io::Result<()> {
        let thread = &self.threads[index as usize];
        if self.trace.may_wrap() {
            self.counts.problems.reached([thread.reached / 1_000, 0]);
        }
        self.counts.problems.open_at_end += thread.open.depth as u64;
        self.end_calls(index, 0);
        if self.threads[index as usize].batch.is_empty() { Ok(()) } else { self.flush(index) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::summary::MergeSummary;
    use super::super::test_data::method_trace;
    use super::*;
    use crate::formats::{Event, EventType, Sink};

    #[derive(Default)]
    struct EdgeLog {
        names: Vec<(u32, String)>,
        edges: Vec<(u32, u64, u32, EdgeKind)>,
    }

    impl Sink for EdgeLog {
        fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
            Ok(())
        }
    }

    impl TimelineSink for EdgeLog {
        fn method(&mut self, id: MethodId, name: &MethodName<'_>) -> io::Result<()> {
            self.names.push((id.0, format!("{}.{}", name.class, name.name)));
            Ok(())
        }
        fn edges(&mut self, thread: u32, edges: &[Edge]) -> io::Result<()> {
            self.edges.extend(edges.iter().map(|e| (thread, e.ts.0, e.method.0, e.kind)));
            Ok(())
        }
        fn finish(&mut self, _: &MergeSummary) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_enter_gets_its_exit() {
        // `run` enters `draw`, whose exit is missing; then comes an exit of a `draw` that was never entered.
        let bytes = method_trace(
            1_000,
            &[(7, 0, 0, 0, 10), (7, 1, 0, 0, 20), (7, 0, 1, 0, 30), (7, 1, 1, 0, 40), (7, 1, 0, 0, 50)],
        );
        let trace = MethodTrace::parse(&bytes).unwrap();
        let mut log = EdgeLog::default();
        let mut next = NextIds { method: 10, thread: 3 };
        let counts = push(&trace, &Placement::default(), &mut next, &mut log).unwrap();
        assert_eq!(log.names, [(10, "a.B.run".to_owned()), (11, "a.B.draw".to_owned())]);
        use EdgeKind::{Enter, Exit};
        assert_eq!(
            log.edges,
            [
                (3, 1_010_000, 10, Enter),
                (3, 1_020_000, 11, Enter),
                (3, 1_030_000, 11, Exit),
                (3, 1_030_000, 10, Exit),
                (3, 1_050_000, 11, Enter),
                (3, 1_050_000, 11, Exit),
            ]
        );
        assert_eq!(counts.enters, 3);
        let problems = counts.problems;
        assert_eq!((problems.missing_exits, problems.exits_without_enter, problems.open_at_end), (1, 1, 1));
        assert_eq!((next.method, next.thread), (12, 5), "the next trace's ids come after these");
    }
}
