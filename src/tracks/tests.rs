//! A timeline that the tests of exporters share, and its way through an exporter.

use std::io;
use std::sync::{Arc, Mutex};

use crate::clock::{Clock, Timestamp};
use crate::formats::{ReadReport, ftrace_text};
use crate::ids::{Pid, Tid};
use crate::timeline::{Edge, EdgeKind, MergeSummary, MethodId, MethodName, MethodThread, TimelineSink};

/// Two threads of process 7, a wakeup, an interrupt, every kind of marker.
pub(crate) const TEXT: &str = "\
 a-7 (7) [000] d..2 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=main,app next_pid=7 next_prio=110
 a-7 (7) [000] ...1 1.000010: tracing_mark_write: B|7|draw \"x\"
 a-7 (7) [000] ...1 1.000020: tracing_mark_write: C|7|bytes|9007199254740993
 a-7 (7) [000] ...1 1.000021: tracing_mark_write: S|7|load|4
 a-7 (7) [000] ...1 1.000022: tracing_mark_write: I|7|moment
 a-7 (7) [000] d.h1 1.000030: irq_handler_entry: irq=3 name=touch
 a-7 (7) [000] d.h1 1.000035: irq_handler_exit: irq=3 ret=handled
 a-7 (7) [000] d..2 1.000040: sched_waking: comm=worker pid=8 prio=120 target_cpu=001
 b-8 (7) [001] d..2 1.000050: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=worker next_pid=8 next_prio=120
 b-8 (7) [001] ...1 1.000055: tracing_mark_write: F|7|load|4
 b-8 (7) [001] ...1 1.000056: cpu_frequency: state=600000 cpu_id=1
 b-8 (7) [001] ...1 1.000057: foo: a=1 b=two
 a-7 (7) [000] ...1 1.000060: tracing_mark_write: E|7
 b-8 (7) [001] d..2 1.000070: sched_switch: prev_comm=worker prev_pid=8 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
 a-7 (7) [000] ...1 1.000080: tracing_mark_write: B|7|open
";

#[derive(Clone, Default)]
struct SharedBytes(Arc<Mutex<Vec<u8>>>);

impl io::Write for SharedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the output of the exporter for `text` and one method on thread 7.
pub(crate) fn export(
    create: impl Fn(Box<dyn io::Write + Send>) -> Box<dyn TimelineSink>,
    text: &str,
) -> String {
    export_methods(create, text, &example_thread())
}

/// Returns the output of the exporter for `text` and one method on `thread`.
pub(crate) fn export_methods(
    create: impl Fn(Box<dyn io::Write + Send>) -> Box<dyn TimelineSink>,
    text: &str,
    thread: &MethodThread,
) -> String {
    let out = SharedBytes::default();
    let mut sink = create(Box::new(out.clone()));
    let report = push_methods(&mut *sink, text, thread);
    sink.finish(&summary(report)).unwrap();
    drop(sink);
    let bytes = out.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

/// Pushes `text` and one method call on thread 7.
pub(crate) fn push_example(sink: &mut dyn TimelineSink, text: &str) -> ReadReport {
    push_methods(sink, text, &example_thread())
}

fn push_methods(sink: &mut dyn TimelineSink, text: &str, thread: &MethodThread) -> ReadReport {
    let order = sink.order();
    let report = ftrace_text::read(text.as_bytes(), order, &mut *sink).unwrap();
    let name = MethodName { class: "a.B", name: "run", signature: "()V", file: "B.java", line: None };
    sink.method(MethodId(0), &name).unwrap();
    sink.method_thread(thread).unwrap();
    let edge = |ts, kind| Edge { ts, cpu: None, method: MethodId(0), kind };
    let edges =
        [edge(Timestamp(1_000_012_345), EdgeKind::Enter), edge(Timestamp(1_000_055_000), EdgeKind::Exit)];
    sink.edges(thread.index, &edges).unwrap();
    report
}

fn example_thread() -> MethodThread {
    let name = "main".into();
    MethodThread {
        index: 0,
        tid: Some(Tid(7)),
        tgid: Some(Pid(7)),
        name,
        trace_id: 1,
        doubt: None,
        edge_cost_ns: 0,
    }
}

fn summary(report: ReadReport) -> MergeSummary {
    let summary = MergeSummary::new(Clock::Boottime, Vec::new(), report);
    MergeSummary { markers: 7, methods: 1, threads: 2, ..summary }
}
