//! Turns a method trace's records into edges of method slices on the timeline, in which every enter has its
//! exit.

use std::io;

use super::data_kind::{DataCounts, DataKind};
use super::method_evidence::Readings;
use super::placement::Placement;
use super::sink::{Edge, EdgeKind, MethodId, MethodName, MethodThread, TimelineSink};
use crate::art::Action;
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
    /// Earliest edge, ns of the timeline.
    pub first: Option<u64>,
    /// Latest edge, ns of the timeline.
    pub last: Option<u64>,
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

struct ThreadState {
    declared: bool,
    stack: Vec<u32>,
    last: Edge,
    records: u64,
    /// The latest time of the thread's records, ns since the trace's start.
    reached: u64,
    batch: Vec<Edge>,
}

struct Pusher<'t, 'a, 'o> {
    trace: &'t MethodTrace<'a>,
    readings: Readings,
    placement: &'t Placement,
    next_ids: NextIds,
    out: &'o mut dyn TimelineSink,
    threads: Vec<ThreadState>,
    named: Vec<bool>,
    counts: MethodCounts,
}

/// Pushes every record of `trace`, at the times and on the threads that `placement` gives.
pub fn push(
    trace: &MethodTrace<'_>,
    placement: &Placement,
    next_ids: &mut NextIds,
    out: &mut dyn TimelineSink,
) -> io::Result<MethodCounts> {
    let nothing = Edge { ts: 0, cpu: None, method: MethodId(0), kind: EdgeKind::Exit };
    let new = || ThreadState {
        declared: false,
        stack: Vec::new(),
        last: nothing,
        records: 0,
        reached: 0,
        batch: Vec::new(),
    };
    let mut pusher = Pusher {
        trace,
        readings: Readings::of(trace),
        placement,
        next_ids: *next_ids,
        out,
        threads: trace.threads().iter().map(|_| new()).collect(),
        named: vec![false; trace.methods().len()],
        counts: MethodCounts::default(),
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
    Ok(counts)
}

impl Pusher<'_, '_, '_> {
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
        match record.action {
            Action::Enter => {
                thread.stack.push(record.method);
                thread.batch.push(Edge { kind: EdgeKind::Enter, ..edge });
                self.counts.enters += 1;
                self.name(record.method)?;
            }
            Action::Exit | Action::Unroll => {
                let problems = &mut self.counts.problems;
                let effect = exit_effect(&thread.stack, record.method, |method| *method, problems);
                let ExitEffect::EndsCalls { depth } = effect else { return Ok(()) };
                for method in thread.stack.drain(depth..).rev() {
                    thread.batch.push(Edge { method: MethodId(self.next_ids.method + method), ..edge });
                }
            }
        }
        if self.threads[record.thread as usize].batch.len() >= BATCH {
            self.flush(record.thread)
        } else {
            Ok(())
        }
    }

    fn name(&mut self, index: u32) -> io::Result<()> {
        let Some(named) = self.named.get_mut(index as usize) else { return Ok(()) };
        if std::mem::replace(named, true) {
            return Ok(());
        }
        let method = &self.trace.methods()[index as usize];
        let has_signature = !(method.signature.is_empty() && method.file.is_empty());
        self.counts.contents.add(DataKind::MethodSignatures, u64::from(has_signature));
        let (class, number) = (method.class_name(), format!("{:#x}", method.id));
        self.out.method(
            MethodId(self.next_ids.method + index),
            &MethodName {
                class: &class,
                name: if method.declared { &method.name } else { &number },
                signature: &method.signature,
                file: &method.file,
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
            })?;
        }
        if let (Some(first), Some(last)) = (thread.batch.first(), thread.batch.last()) {
            self.counts.first = Some(self.counts.first.map_or(first.ts, |t| t.min(first.ts)));
            self.counts.last = self.counts.last.max(Some(last.ts));
        }
        let finer = thread.batch.iter().filter(|edge| !edge.ts.is_multiple_of(1000)).count() as u64;
        let with_cpu = thread.batch.iter().filter(|e| e.kind == EdgeKind::Enter && e.cpu.is_some()).count();
        self.counts.contents.add(DataKind::TimesBelowMicrosecond, finer);
        // A trace without wall time has its CPU time as the time of the timeline.
        let has_both = self.trace.header().clock.has_wall();
        self.counts.contents.add(DataKind::MethodCpuTimes, if has_both { with_cpu as u64 } else { 0 });
        self.out.edges(number, &thread.batch)?;
        thread.batch.clear();
        Ok(())
    }

    fn end(&mut self, index: u32) -> io::Result<()> {
        let thread = &mut self.threads[index as usize];
        if self.trace.may_wrap() {
            self.counts.problems.reached([thread.reached / 1_000, 0]);
        }
        self.counts.problems.open_at_end += thread.stack.len() as u64;
        while let Some(method) = thread.stack.pop() {
            let method = MethodId(self.next_ids.method + method);
            thread.batch.push(Edge { method, kind: EdgeKind::Exit, ..thread.last });
        }
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
            self.edges.extend(edges.iter().map(|e| (thread, e.ts, e.method.0, e.kind)));
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
        let (mut log, mut next) = (EdgeLog::default(), NextIds { method: 10, thread: 3 });
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
