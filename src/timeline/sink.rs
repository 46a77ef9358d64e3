//! [`TimelineSink`], the trait that every exporter implements. An exporter receives kernel events through
//! [`Sink`], and method slices on the kernel's threads; all times are in one clock.
//!
//! The order of calls: [`Sink::head`] once; then, as they come, `event_type`, `thread`, `process`, `event`,
//! `lost`, [`TimelineSink::method`], [`TimelineSink::method_thread`], [`TimelineSink::edges`],
//! [`TimelineSink::sample_set`] and [`TimelineSink::sample`]; at the end [`TimelineSink::finish`] once. All
//! times are in [`Head::clock`](crate::formats::Head::clock).

use std::io;
use std::sync::Arc;

use super::align::placement::IdentityDoubt;
use super::summary::{DataCounts, MergeSummary};
use crate::clock::Timestamp;
use crate::formats::samples::{Sample, SampleTables};
use crate::formats::{Order, Sink, SinkAdapter};
use crate::ids::{Pid, Tid};

/// A reader broke the contract of [`Sink`]: an event came before what it refers to.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unannounced {
    #[error("an event of the type {0}, which was not announced")]
    EventType(u32),
    #[error("an event of the track {0}, which was not announced")]
    Track(u32),
}

impl From<Unannounced> for io::Error {
    fn from(error: Unannounced) -> io::Error {
        io::Error::other(error)
    }
}

/// The number of a method. Numbers start at 0 and have no holes; all inputs share them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MethodId(pub u32);

/// A method's name as the trace has it (after `--mapping`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodName<'a> {
    /// `java.lang.String`; empty where the trace does not declare the method.
    pub class: &'a str,
    /// `valueOf`; for an undeclared method its number, `0x7f001234`.
    pub name: &'a str,
    /// `(I)Ljava/lang/String;`, or empty.
    pub signature: &'a str,
    /// The source file, or empty.
    pub file: &'a str,
    /// The line in the source file, where it is known.
    pub line: Option<u32>,
}

/// A thread of a method trace, and which of the kernel's threads it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodThread {
    /// The thread's number in [`TimelineSink::edges`]. Numbers start at 0 and have no holes; all inputs share
    /// them.
    pub index: u32,
    /// The kernel's thread id, where the thread was found.
    pub tid: Option<Tid>,
    /// The thread's process, where it is known.
    pub tgid: Option<Pid>,
    /// The full name as the method trace has it.
    pub name: String,
    /// The id in the method trace.
    pub trace_id: u32,
    /// Why `tid` is missing.
    pub doubt: Option<IdentityDoubt>,
    /// The least that each edge took from the thread's time, because it was recorded, ns; 0 where the trace
    /// does not tell it.
    pub edge_cost_ns: u64,
}

/// Whether an edge enters or leaves a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeKind {
    /// A method begins.
    Enter,
    /// The innermost open method ends, by return or by exception.
    Exit,
}

/// One edge of a method slice: a method begins or ends on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Time of the edge, in the timeline's clock.
    pub ts: Timestamp,
    /// The thread's CPU time since its first record, ns; `None` where the trace has no such clock.
    pub cpu: Option<u64>,
    /// The method that begins or ends.
    pub method: MethodId,
    /// Whether the method begins or ends.
    pub kind: EdgeKind,
}

/// Receives a whole timeline. Every exporter implements this trait. An error ends the merge.
pub trait TimelineSink: Sink {
    /// The order in which the exporter wants events and edges. With [`Order::Time`] kernel events and
    /// edges come in one order of time, which takes memory for all inputs but one recording. With
    /// [`Order::Any`] each CPU and each thread is in order by itself, which is cheapest.
    fn order(&mut self) -> Order {
        Order::Any
    }
    /// The order in which the exporter wants the edges of method traces and samples, where it wants events in
    /// order of time: with [`Order::Any`] each thread's edges are in order by itself, and samples nearly so.
    fn edge_order(&mut self) -> Order {
        self.order()
    }
    /// A sink that looks at the recording before it is pushed, if it is the only one. It gets markers in the
    /// order of time and all other events in any order, all in the timeline's clock, and tells the exporter
    /// of which parts it needs the whole.
    fn scout(&mut self) -> Option<&mut dyn TimelineSink> {
        None
    }
    /// Whether the exporter itself takes the contents of the recording with this number among the inputs from
    /// the input's bytes. Its contents are then read and counted, but not pushed.
    fn passes_through(&mut self, input: usize) -> bool {
        let _ = input;
        false
    }
    /// A method: called once, before the first edge of this method.
    fn method(&mut self, id: MethodId, name: &MethodName<'_>) -> io::Result<()> {
        let _ = (id, name);
        Ok(())
    }
    /// A thread of a method trace: called once, before the first edge of this thread.
    fn method_thread(&mut self, thread: &MethodThread) -> io::Result<()> {
        let _ = thread;
        Ok(())
    }
    /// Edges of one thread, in order of time. Every exit ends the innermost open method, and at the end of
    /// the timeline no method is open.
    fn edges(&mut self, thread: u32, edges: &[Edge]) -> io::Result<()> {
        let _ = (thread, edges);
        Ok(())
    }
    /// A set of samples, which one input holds: called once, before the first sample of this set. Sets are
    /// numbered from 0 without holes. The tables are complete.
    fn sample_set(&mut self, set: u32, tables: &Arc<SampleTables>) -> io::Result<()> {
        let _ = (set, tables);
        Ok(())
    }
    /// A sample of a set, at its time in the timeline's clock. Its numbers are those of the set's tables.
    fn sample(&mut self, set: u32, sample: &Sample) -> io::Result<()> {
        let _ = (set, sample);
        Ok(())
    }
    /// The end of the timeline, with losses and verdicts. The exporter writes the rest of the output and
    /// flushes it; the output is complete only after this call.
    fn finish(&mut self, summary: &MergeSummary) -> io::Result<()>;
    /// Sentences for the summary about the data that the output holds differently than the inputs. The merge
    /// calls this after [`TimelineSink::finish`].
    fn notes(&mut self) -> Vec<String> {
        Vec::new()
    }
    /// The data that the exporter met and could not write, although its format holds data of this kind: a
    /// value that does not fit its field. The table of what each format holds says the rest. The merge calls
    /// this after [`TimelineSink::finish`].
    fn not_written(&mut self) -> DataCounts {
        DataCounts::default()
    }
}

/// A [`TimelineSink`] that passes its calls on to another one. Every method that an adapter does not override
/// passes its call on unchanged; see [`SinkAdapter`] for the methods that receive kernel events.
pub trait TimelineAdapter: SinkAdapter<Next: TimelineSink> {
    /// See [`TimelineSink::order`].
    fn order(&mut self) -> Order {
        self.next().order()
    }
    /// See [`TimelineSink::edge_order`].
    fn edge_order(&mut self) -> Order {
        self.next().edge_order()
    }
    /// See [`TimelineSink::scout`].
    fn scout(&mut self) -> Option<&mut dyn TimelineSink> {
        self.next().scout()
    }
    /// See [`TimelineSink::passes_through`].
    fn passes_through(&mut self, input: usize) -> bool {
        self.next().passes_through(input)
    }
    /// See [`TimelineSink::method`].
    fn method(&mut self, id: MethodId, name: &MethodName<'_>) -> io::Result<()> {
        self.next().method(id, name)
    }
    /// See [`TimelineSink::method_thread`].
    fn method_thread(&mut self, thread: &MethodThread) -> io::Result<()> {
        self.next().method_thread(thread)
    }
    /// See [`TimelineSink::edges`].
    fn edges(&mut self, thread: u32, edges: &[Edge]) -> io::Result<()> {
        self.next().edges(thread, edges)
    }
    /// See [`TimelineSink::sample_set`].
    fn sample_set(&mut self, set: u32, tables: &Arc<SampleTables>) -> io::Result<()> {
        self.next().sample_set(set, tables)
    }
    /// See [`TimelineSink::sample`].
    fn sample(&mut self, set: u32, sample: &Sample) -> io::Result<()> {
        self.next().sample(set, sample)
    }
    /// See [`TimelineSink::finish`].
    fn finish(&mut self, summary: &MergeSummary) -> io::Result<()> {
        self.next().finish(summary)
    }
    /// See [`TimelineSink::notes`].
    fn notes(&mut self) -> Vec<String> {
        self.next().notes()
    }
    /// See [`TimelineSink::not_written`].
    fn not_written(&mut self) -> DataCounts {
        self.next().not_written()
    }
}

impl<A: TimelineAdapter + ?Sized> TimelineSink for A {
    fn order(&mut self) -> Order {
        TimelineAdapter::order(self)
    }
    fn edge_order(&mut self) -> Order {
        TimelineAdapter::edge_order(self)
    }
    fn scout(&mut self) -> Option<&mut dyn TimelineSink> {
        TimelineAdapter::scout(self)
    }
    fn passes_through(&mut self, input: usize) -> bool {
        TimelineAdapter::passes_through(self, input)
    }
    fn method(&mut self, id: MethodId, name: &MethodName<'_>) -> io::Result<()> {
        TimelineAdapter::method(self, id, name)
    }
    fn method_thread(&mut self, thread: &MethodThread) -> io::Result<()> {
        TimelineAdapter::method_thread(self, thread)
    }
    fn edges(&mut self, thread: u32, edges: &[Edge]) -> io::Result<()> {
        TimelineAdapter::edges(self, thread, edges)
    }
    fn sample_set(&mut self, set: u32, tables: &Arc<SampleTables>) -> io::Result<()> {
        TimelineAdapter::sample_set(self, set, tables)
    }
    fn sample(&mut self, set: u32, sample: &Sample) -> io::Result<()> {
        TimelineAdapter::sample(self, set, sample)
    }
    fn finish(&mut self, summary: &MergeSummary) -> io::Result<()> {
        TimelineAdapter::finish(self, summary)
    }
    fn notes(&mut self) -> Vec<String> {
        TimelineAdapter::notes(self)
    }
    fn not_written(&mut self) -> DataCounts {
        TimelineAdapter::not_written(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::summary::DataKind;
    use super::super::test_data::{first_type_event, print_type};
    use super::*;
    use crate::clock::{Clock, Snapshots};
    use crate::formats::{Event, EventType, EventTypeId, Head, ProcessInfo, ReadReport, ThreadInfo};
    use crate::ftrace::print_fmt::Symbolizer;
    use crate::ids::Cpu;

    /// Writes down the name of every call.
    #[derive(Default)]
    struct CallLog(Vec<&'static str>);

    impl CallLog {
        fn add(&mut self, call: &'static str) -> io::Result<()> {
            self.0.push(call);
            Ok(())
        }
    }

    impl Sink for CallLog {
        fn head(&mut self, _: &Head) -> io::Result<()> {
            self.add("head")
        }
        fn event_type(&mut self, _: EventTypeId, _: &EventType) -> io::Result<()> {
            self.add("event_type")
        }
        fn kernel(&mut self, _: &Arc<Symbolizer>) -> io::Result<()> {
            self.add("kernel")
        }
        fn thread(&mut self, _: &ThreadInfo<'_>) -> io::Result<()> {
            self.add("thread")
        }
        fn process(&mut self, _: &ProcessInfo<'_>) -> io::Result<()> {
            self.add("process")
        }
        fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
            self.add("event")
        }
        fn lost(&mut self, _: Cpu, _: Option<u64>) -> io::Result<()> {
            self.add("lost")
        }
    }

    impl TimelineSink for CallLog {
        fn order(&mut self) -> Order {
            Order::Time
        }
        fn edge_order(&mut self) -> Order {
            Order::Any
        }
        fn passes_through(&mut self, input: usize) -> bool {
            input == 3
        }
        fn notes(&mut self) -> Vec<String> {
            vec!["a note".into()]
        }
        fn not_written(&mut self) -> DataCounts {
            let mut counts = DataCounts::default();
            counts.add(DataKind::FieldValues, 2);
            counts
        }
        fn method(&mut self, _: MethodId, _: &MethodName<'_>) -> io::Result<()> {
            self.add("method")
        }
        fn method_thread(&mut self, _: &MethodThread) -> io::Result<()> {
            self.add("method_thread")
        }
        fn edges(&mut self, _: u32, _: &[Edge]) -> io::Result<()> {
            self.add("edges")
        }
        fn sample_set(&mut self, _: u32, _: &Arc<SampleTables>) -> io::Result<()> {
            self.add("sample_set")
        }
        fn sample(&mut self, _: u32, _: &Sample) -> io::Result<()> {
            self.add("sample")
        }
        fn finish(&mut self, _: &MergeSummary) -> io::Result<()> {
            self.add("finish")
        }
    }

    struct OverridesNothing(CallLog);

    impl SinkAdapter for OverridesNothing {
        type Next = CallLog;
        fn next(&mut self) -> &mut CallLog {
            &mut self.0
        }
    }

    impl TimelineAdapter for OverridesNothing {}

    /// Calls every method of a timeline sink once.
    fn call_all(sink: &mut dyn TimelineSink) -> io::Result<()> {
        let head = Head {
            format: String::new(),
            clock: Clock::Boottime,
            precision: 9,
            snapshots: Snapshots::default(),
            cpus: None,
            machine: None,
            device: None,
            android_sdk: None,
            facts: None,
        };
        let event_type = print_type();
        let event = first_type_event(1, &[]);
        let thread = MethodThread {
            index: 0,
            tid: None,
            tgid: None,
            name: "main".into(),
            trace_id: 1,
            doubt: None,
            edge_cost_ns: 0,
        };
        sink.head(&head)?;
        sink.kernel(&Arc::new(Symbolizer::default()))?;
        sink.event_type(EventTypeId(0), &event_type)?;
        sink.thread(&ThreadInfo { tid: Tid(1), tgid: None, name: None })?;
        sink.process(&ProcessInfo { pid: Pid(1), ppid: None, name: None, package: None })?;
        sink.event(&event, &event_type)?;
        sink.lost(Cpu(0), None)?;
        sink.method(MethodId(0), &MethodName { class: "", name: "", signature: "", file: "", line: None })?;
        sink.method_thread(&thread)?;
        sink.edges(0, &[])?;
        sink.sample_set(0, &Arc::default())?;
        sink.sample(0, &Sample { time: Timestamp(1), thread: 0, event: 0, stack: 0, cpu: None, period: 1 })?;
        sink.finish(&MergeSummary::new(Clock::Boottime, Vec::new(), ReadReport::default()))
    }

    #[test]
    fn an_adapter_that_overrides_nothing_passes_every_call_on() {
        let mut direct = CallLog::default();
        let mut adapter = OverridesNothing(CallLog::default());
        call_all(&mut direct).unwrap();
        call_all(&mut adapter).unwrap();
        assert_eq!(direct.0.len(), 13, "every method is called: {:?}", direct.0);
        assert_eq!(adapter.0.0, direct.0);
        assert_eq!(TimelineSink::order(&mut adapter), Order::Time);
        assert_eq!(TimelineSink::edge_order(&mut adapter), Order::Any);
        assert!(TimelineSink::passes_through(&mut adapter, 3));
        assert_eq!(TimelineSink::notes(&mut adapter), ["a note"]);
        assert_eq!(TimelineSink::not_written(&mut adapter).get(DataKind::FieldValues), 2);
    }
}
