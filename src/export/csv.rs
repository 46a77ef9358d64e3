//! Writes slices, thread states, counters and all other events as one table, for spreadsheets and data
//! frames.
//!
//! The format is RFC 4180 with a header line. Times are ns; a column is empty where it does not apply. The
//! columns `thread` and `process` hold the names that are known at the time of the row; `thread` holds the
//! name of a program's own track that is no thread. The column `details`
//! holds the fields of an event that is none of the others, the track of an asynchronous slice, and what is
//! known of a frame, whose token is in `value`. The
//! column `cpu_dur_ns` holds the CPU time of a method call where the trace has it beside wall time.
//!
//! The column `tid` holds the kernel's thread id. A thread of a method trace that is not identified with a
//! kernel thread has no such id. The `method` rows of that thread hold, in `tid`, the thread id that the
//! method trace itself gives. For these threads rows `method_thread` give the thread's name, as rows `thread`
//! do for the kernel's threads.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, Write};

use super::Out;
use super::writer_thread::WriterThread;
use crate::clock::Timestamp;
use crate::formats::{CounterValue, Event, EventType, TimelineFrame, event_catalog};
use crate::ids::{Cpu, Pid, Tid};
use crate::text::push_csv_field;
use crate::timeline::{MergeSummary, MethodThread, TimelineSink};
use crate::tracks::{
    AsyncEdge, AsyncSlice, CounterSample, CounterScope, MethodCall, OwnTrack, Span, Task, Tasks, ThreadState,
    TrackBuilder, TrackSink, counter_number,
};

const HEADER: &[u8] =
    b"kind,ts_ns,dur_ns,cpu,pid,tid,depth,name,value,thread,process,signature,file,details,cpu_dur_ns\n";

/// Makes the writer, which writes to `out`.
pub(super) fn create(out: Out) -> Box<dyn TimelineSink> {
    let csv =
        CsvWriter { writer: WriterThread::new(out), out: HEADER.to_vec(), method_threads: BTreeMap::new() };
    Box::new(TrackBuilder::new(csv))
}

struct CsvWriter {
    writer: WriterThread,
    out: Vec<u8>,
    /// The threads without a kernel thread id, by [`MethodThread::index`].
    method_threads: BTreeMap<u32, MethodThread>,
}

/// One line of the table. `None` and empty texts become empty columns.
#[derive(Default)]
struct CsvRow<'a> {
    kind: &'a str,
    ts: Timestamp,
    dur: Option<u64>,
    cpu: Option<Cpu>,
    pid: Option<Pid>,
    tid: Option<Tid>,
    depth: Option<usize>,
    name: &'a [u8],
    value: Option<i64>,
    /// The value where it is no whole number.
    fraction: Option<f64>,
    thread: &'a str,
    process: &'a str,
    signature: &'a str,
    file: &'a str,
    details: &'a [u8],
    cpu_dur: Option<u64>,
}

impl CsvWriter {
    fn row(&mut self, row: &CsvRow<'_>) -> io::Result<()> {
        let out = &mut self.out;
        write!(out, "{},{},", row.kind, row.ts)?;
        push_number(out, row.dur)?;
        push_number(out, row.cpu)?;
        push_number(out, row.pid)?;
        push_number(out, row.tid)?;
        push_number(out, row.depth)?;
        push_csv_field(out, row.name);
        out.push(b',');
        match row.fraction {
            Some(fraction) => write!(out, "{fraction},")?,
            None => push_number(out, row.value)?,
        }
        for text in [row.thread, row.process, row.signature, row.file] {
            push_csv_field(out, text.as_bytes());
            out.push(b',');
        }
        push_csv_field(out, row.details);
        out.push(b',');
        if let Some(cpu_dur) = row.cpu_dur {
            write!(out, "{cpu_dur}")?;
        }
        out.push(b'\n');
        self.writer.write_if_full(&mut self.out)
    }

    /// Writes a row of a thread.
    fn thread_row(&mut self, names: &Tasks, at: Task, row: CsvRow<'_>) -> io::Result<()> {
        let thread = names.thread_name(at.tid);
        let process = at.tgid.map(|pid| names.process_name(pid)).unwrap_or_default();
        self.row(&CsvRow { pid: at.tgid, tid: Some(at.tid), thread: &thread, process: &process, ..row })
    }
}

/// Appends a number and the comma behind it.
fn push_number(out: &mut Vec<u8>, value: Option<impl Display>) -> io::Result<()> {
    match value {
        Some(value) => write!(out, "{value},"),
        None => write!(out, ","),
    }
}

impl<'a> CsvRow<'a> {
    fn from_span(kind: &'a str, span: Span, name: &'a [u8]) -> CsvRow<'a> {
        let dur = Some(span.end.since(span.start));
        CsvRow { kind, ts: span.start, dur, name, ..CsvRow::default() }
    }
}

/// The kernel's thread id where it is known, or the thread id that the method trace gives.
fn thread_id(thread: &MethodThread) -> Tid {
    thread.tid.unwrap_or(Tid(thread.trace_id as i32))
}

/// The name of a track that is not a thread itself. Threads without a kernel thread id are such tracks.
fn track_name(track: &OwnTrack) -> &str {
    if track.place().1.is_some() { "" } else { &track.name }
}

impl TrackSink for CsvWriter {
    fn begin(&mut self, _: Task, _: Timestamp, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, names: &Tasks, at: Task, span: Span, name: &[u8]) -> io::Result<()> {
        self.thread_row(names, at, CsvRow::from_span("slice", span, name))
    }

    fn async_edge(&mut self, names: &Tasks, pid: Pid, slice: &AsyncSlice<'_>) -> io::Result<()> {
        let (ts, dur) = match (slice.ended(), slice.edge) {
            (Some(span), _) => (span.start, Some(span.end.since(span.start))),
            (None, AsyncEdge::Instant) => (slice.ts, None),
            _ => return Ok(()),
        };
        let row = CsvRow { kind: "async", ts, dur, pid: Some(pid), name: slice.name, ..CsvRow::default() };
        let details = slice.track.unwrap_or_default();
        self.row(&CsvRow { value: Some(slice.cookie), process: &names.process_name(pid), details, ..row })
    }

    fn thread_ended(&mut self, names: &Tasks, at: Task) -> io::Result<()> {
        let name = names.thread_name(at.tid);
        let row = CsvRow { kind: "thread", pid: at.tgid, tid: Some(at.tid), ..CsvRow::default() };
        if name.is_empty() { Ok(()) } else { self.row(&CsvRow { name: name.as_bytes(), ..row }) }
    }

    fn instant(&mut self, names: &Tasks, at: Task, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        self.thread_row(names, at, CsvRow { kind: "instant", ts, name, ..CsvRow::default() })
    }

    fn counter(&mut self, names: &Tasks, scope: CounterScope, counter: CounterSample<'_>) -> io::Result<()> {
        let CounterSample { name, ts, value } = counter;
        let row =
            CsvRow { kind: "counter", ts, name: name.as_bytes(), value: Some(value), ..CsvRow::default() };
        match scope {
            CounterScope::Process(pid) => {
                self.row(&CsvRow { pid: Some(pid), process: &names.process_name(pid), ..row })
            }
            CounterScope::Cpu(cpu) => self.row(&CsvRow { cpu: Some(cpu), ..row }),
            CounterScope::System => self.row(&row),
        }
    }

    fn on_cpu(&mut self, names: &Tasks, cpu: Cpu, at: Task, span: Span, prio: i64) -> io::Result<()> {
        let name = names.thread_name(at.tid);
        let row = CsvRow::from_span("sched", span, name.as_bytes());
        self.thread_row(names, at, CsvRow { cpu: Some(cpu), value: Some(prio), ..row })
    }

    fn state(&mut self, names: &Tasks, at: Task, state: &ThreadState) -> io::Result<()> {
        self.thread_row(names, at, CsvRow::from_span("state", state.span, state.state.name().as_bytes()))
    }

    fn irq(&mut self, cpu: Cpu, name: &str, span: Span) -> io::Result<()> {
        self.row(&CsvRow { cpu: Some(cpu), ..CsvRow::from_span("irq", span, name.as_bytes()) })
    }

    fn method(&mut self, names: &Tasks, call: &MethodCall<'_>) -> io::Result<()> {
        let MethodCall { at, method, span, cpu, depth } = *call;
        if at.tid.is_none() && !self.method_threads.contains_key(&at.index) {
            self.method_threads.insert(at.index, at.clone());
        }
        let row = CsvRow::from_span("method", span, method.full.as_bytes());
        let process = at.tgid.map(|pid| names.process_name(pid)).unwrap_or_default();
        self.row(&CsvRow {
            pid: at.tgid,
            tid: Some(thread_id(at)),
            depth: Some(depth),
            thread: &at.name,
            process: &process,
            signature: &method.signature,
            file: &method.file,
            cpu_dur: cpu.map(|(begin, end)| end.saturating_sub(begin)),
            ..row
        })
    }

    fn other(&mut self, names: &Tasks, at: Task, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        let mut details = Vec::new();
        event_catalog::render(event, kind, &mut details);
        let row = CsvRow { kind: "event", ts: event.ts, cpu: Some(event.cpu), ..CsvRow::default() };
        self.thread_row(names, at, CsvRow { name: kind.name.as_bytes(), details: &details, ..row })
    }

    fn lost(&mut self, cpu: Cpu, ts: Timestamp, count: Option<u64>) -> io::Result<()> {
        let value = count.and_then(|count| i64::try_from(count).ok());
        let row = CsvRow { kind: "lost", ts, cpu: Some(cpu), value, ..CsvRow::default() };
        self.row(&CsvRow { name: b"events lost", ..row })
    }

    fn track_slice(&mut self, track: &OwnTrack, span: Span, name: &[u8], depth: usize) -> io::Result<()> {
        let (pid, tid) = track.place();
        let kind = if tid.is_some() { "slice" } else { "async" };
        self.row(&CsvRow {
            pid,
            tid,
            thread: track_name(track),
            depth: Some(depth),
            details: &track.details(),
            ..CsvRow::from_span(kind, span, name)
        })
    }

    fn track_instant(&mut self, track: &OwnTrack, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        let (pid, tid) = track.place();
        let details = &track.details();
        let thread = track_name(track);
        self.row(&CsvRow { kind: "instant", ts, pid, tid, name, thread, details, ..CsvRow::default() })
    }

    fn track_counter(&mut self, track: &OwnTrack, ts: Timestamp, value: CounterValue) -> io::Result<()> {
        let (pid, tid) = track.place();
        let label = track.label();
        let (value, fraction) = match counter_number(value) {
            Ok(value) => (Some(value), None),
            Err(value) => (None, Some(value)),
        };
        let row = CsvRow { kind: "counter", ts, pid, tid, name: label.as_bytes(), ..CsvRow::default() };
        self.row(&CsvRow { value, fraction, ..row })
    }

    fn frame(
        &mut self,
        names: &Tasks,
        track: &OwnTrack,
        span: Span,
        frame: &TimelineFrame<'_>,
    ) -> io::Result<()> {
        let row = CsvRow { pid: Some(frame.pid), ..CsvRow::from_span("frame", span, track.name.as_bytes()) };
        self.row(&CsvRow {
            value: Some(frame.token()),
            process: &names.process_name(frame.pid),
            details: frame.details().as_bytes(),
            ..row
        })
    }

    fn finish(&mut self, tasks: &Tasks, summary: &MergeSummary) -> io::Result<()> {
        for loss in summary.report.losses.iter() {
            let name = loss.to_string();
            let value = i64::try_from(loss.count.count).ok();
            self.row(&CsvRow { kind: "lost", name: name.as_bytes(), value, ..CsvRow::default() })?;
        }
        for (tid, thread) in tasks.threads.sorted() {
            if let Some(name) = thread.name_text() {
                let row = CsvRow { kind: "thread", pid: thread.tgid, tid: Some(tid), ..CsvRow::default() };
                self.row(&CsvRow { name: name.as_bytes(), ..row })?;
            }
        }
        for thread in std::mem::take(&mut self.method_threads).into_values() {
            let row = CsvRow { kind: "method_thread", pid: thread.tgid, ..CsvRow::default() };
            self.row(&CsvRow { tid: Some(thread_id(&thread)), name: thread.name.as_bytes(), ..row })?;
        }
        for (pid, name) in &tasks.processes {
            let row = CsvRow { kind: "process", pid: Some(*pid), ..CsvRow::default() };
            self.row(&CsvRow { name: name.as_bytes(), ..row })?;
        }
        self.writer.write(&mut self.out)?;
        self.writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use crate::timeline::{IdentityDoubt, MethodThread};
    use crate::tracks::tests::{TEXT, export, export_methods};

    #[test]
    fn each_slice_state_and_counter_is_a_line() {
        let text = export(super::create, TEXT);
        for line in [
            "kind,ts_ns,dur_ns,cpu,pid,tid,depth,name,value,thread,process,signature,file,details,cpu_dur_ns",
            "slice,1000010000,50000,,7,7,,\"draw \"\"x\"\"\",,a,a,,,,",
            "async,1000021000,34000,,7,,,load,4,,a,,,,",
            "counter,1000020000,,,7,,,bytes,9007199254740993,,a,,,,",
            "counter,1000056000,,1,,,,frequency (kHz),600000,,,,,,",
            "sched,1000050000,20000,1,7,8,,worker,120,worker,a,,,,",
            "state,1000040000,10000,,7,8,,Runnable,,worker,a,,,,",
            "method,1000012345,42655,,7,7,0,a.B.run,,main,main,()V,B.java,,",
            "irq,1000030000,5000,0,,,,touch,,,,,,,",
            "instant,1000022000,,,7,7,,moment,,a,a,,,,",
            "event,1000057000,,1,7,8,,foo,,b,a,,,a=1 b=two,",
            "thread,0,,,7,8,,worker,,,,,,,",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn a_thread_without_a_kernel_thread_id_has_the_id_and_the_name_of_the_method_trace() {
        let thread = MethodThread {
            index: 3,
            tid: None,
            tgid: None,
            name: "RenderThread".into(),
            trace_id: 19,
            doubt: Some(IdentityDoubt::NoThread),
            edge_cost_ns: 0,
        };
        let text = export_methods(super::create, "", &thread);
        for line in [
            "method,1000012345,42655,,,19,0,a.B.run,,RenderThread,,()V,B.java,,",
            "method_thread,0,,,,19,,RenderThread,,,,,,,",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
        }
    }
}
