//! Writes slices, thread states and counters as one table for spreadsheets and data frames.
//!
//! The format is RFC 4180 with a header line. Times are ns; a column is empty where it does not apply. The
//! column `tid` holds the kernel's thread id. A thread of a method trace that is not identified with a kernel
//! thread has no such id. The `method` rows of that thread hold, in `tid`, the thread id that the method
//! trace itself gives. For these threads rows `method_thread` give the thread's name, as rows `thread` do for
//! the kernel's threads.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::Out;
use super::track_builder::{
    AsyncEdge, AsyncSlice, CounterScope, MethodLabel, Span, Task, Tasks, TrackBuilder, TrackSink,
};
use super::writer_thread::WriterThread;
use crate::formats::{Event, EventType};
use crate::text::push_csv_field;
use crate::timeline::{MergeSummary, MethodThread, TimelineSink};

const HEADER: &[u8] = b"what,ts_ns,dur_ns,cpu,pid,tid,depth,name,value\n";

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

/// One line of the table. `None` becomes an empty column.
#[derive(Default)]
struct CsvRow<'a> {
    what: &'a str,
    ts: u64,
    dur: Option<u64>,
    cpu: Option<u32>,
    pid: Option<i32>,
    tid: Option<i32>,
    depth: Option<usize>,
    name: &'a [u8],
    value: Option<i64>,
}

impl CsvWriter {
    fn row(&mut self, row: &CsvRow<'_>) -> io::Result<()> {
        let out = &mut self.out;
        write!(out, "{},{},", row.what, row.ts)?;
        let mut column = |value: Option<i64>| match value {
            Some(value) => write!(out, "{value},"),
            None => write!(out, ","),
        };
        column(row.dur.map(|d| d as i64))?;
        column(row.cpu.map(i64::from))?;
        column(row.pid.map(i64::from))?;
        column(row.tid.map(i64::from))?;
        column(row.depth.map(|d| d as i64))?;
        push_csv_field(out, row.name);
        out.push(b',');
        if let Some(value) = row.value {
            write!(out, "{value}")?;
        }
        out.push(b'\n');
        self.writer.write_if_full(&mut self.out)
    }

    fn span<'a>(&mut self, what: &'a str, span: Span, at: Option<Task>, name: &'a [u8]) -> io::Result<()> {
        self.row(&CsvRow {
            tid: at.map(|t| t.tid),
            pid: at.and_then(|t| t.tgid),
            ..CsvRow::of(what, span, name)
        })
    }
}

impl<'a> CsvRow<'a> {
    fn of(what: &'a str, span: Span, name: &'a [u8]) -> CsvRow<'a> {
        CsvRow {
            what,
            ts: span.start,
            dur: Some(span.end.saturating_sub(span.start)),
            name,
            ..CsvRow::default()
        }
    }
}

/// The kernel's thread id where it is known, or the thread id that the method trace gives.
fn thread_id(thread: &MethodThread) -> i32 {
    thread.tid.unwrap_or(thread.trace_id as i32)
}

impl TrackSink for CsvWriter {
    fn begin(&mut self, _: Task, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, at: Task, span: Span, name: &[u8]) -> io::Result<()> {
        self.span("slice", span, Some(at), name)
    }

    fn async_edge(&mut self, pid: i32, slice: &AsyncSlice<'_>) -> io::Result<()> {
        let (ts, dur) = match slice.edge {
            AsyncEdge::End(Some(start)) => (start, Some(slice.ts.saturating_sub(start))),
            AsyncEdge::Instant => (slice.ts, None),
            AsyncEdge::Begin | AsyncEdge::End(None) => return Ok(()),
        };
        let row = CsvRow { what: "async", ts, dur, pid: Some(pid), name: slice.name, ..CsvRow::default() };
        self.row(&CsvRow { value: Some(slice.cookie), ..row })
    }

    fn instant(&mut self, at: Task, ts: u64, name: &[u8]) -> io::Result<()> {
        self.row(&CsvRow { what: "instant", ts, pid: at.tgid, tid: Some(at.tid), name, ..CsvRow::default() })
    }

    fn counter(&mut self, scope: CounterScope, ts: u64, name: &str, value: i64) -> io::Result<()> {
        let row =
            CsvRow { what: "counter", ts, name: name.as_bytes(), value: Some(value), ..CsvRow::default() };
        self.row(&match scope {
            CounterScope::Process(pid) => CsvRow { pid: Some(pid), ..row },
            CounterScope::Cpu(cpu) => CsvRow { cpu: Some(cpu), ..row },
            CounterScope::System => row,
        })
    }

    fn on_cpu(&mut self, cpu: u32, at: Task, name: &str, span: Span, prio: i64) -> io::Result<()> {
        let row = CsvRow::of("sched", span, name.as_bytes());
        self.row(&CsvRow { cpu: Some(cpu), pid: at.tgid, tid: Some(at.tid), value: Some(prio), ..row })
    }

    fn state(&mut self, at: Task, state: &'static str, span: Span) -> io::Result<()> {
        self.span("state", span, Some(at), state.as_bytes())
    }

    fn irq(&mut self, cpu: u32, name: &str, span: Span) -> io::Result<()> {
        self.row(&CsvRow { cpu: Some(cpu), ..CsvRow::of("irq", span, name.as_bytes()) })
    }

    fn method(
        &mut self,
        at: &MethodThread,
        method: &MethodLabel,
        span: Span,
        depth: usize,
    ) -> io::Result<()> {
        let row = CsvRow::of("method", span, method.full.as_bytes());
        if at.tid.is_none() && !self.method_threads.contains_key(&at.index) {
            self.method_threads.insert(at.index, at.clone());
        }
        self.row(&CsvRow { pid: at.tgid, tid: Some(thread_id(at)), depth: Some(depth), ..row })
    }

    fn other(&mut self, _: Task, _: &Event<'_>, _: &EventType) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, tasks: &Tasks, _: &MergeSummary) -> io::Result<()> {
        for (tid, thread) in tasks.threads.sorted() {
            if let Some(name) = thread.name_text() {
                let row = CsvRow { what: "thread", pid: thread.tgid, tid: Some(tid), ..CsvRow::default() };
                self.row(&CsvRow { name: name.as_bytes(), ..row })?;
            }
        }
        for thread in std::mem::take(&mut self.method_threads).into_values() {
            let row = CsvRow { what: "method_thread", pid: thread.tgid, ..CsvRow::default() };
            self.row(&CsvRow { tid: Some(thread_id(&thread)), name: thread.name.as_bytes(), ..row })?;
        }
        for (pid, name) in &tasks.processes {
            self.row(&CsvRow {
                what: "process",
                pid: Some(*pid),
                name: name.as_bytes(),
                ..CsvRow::default()
            })?;
        }
        self.writer.write(&mut self.out)?;
        self.writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::track_builder::tests::{TEXT, export, export_methods};
    use crate::timeline::MethodThread;

    #[test]
    fn each_slice_state_and_counter_is_a_line() {
        let text = export(super::create, TEXT);
        for line in [
            "what,ts_ns,dur_ns,cpu,pid,tid,depth,name,value",
            "slice,1000010000,50000,,7,7,,\"draw \"\"x\"\"\",",
            "async,1000021000,34000,,7,,,load,4",
            "counter,1000020000,,,7,,,bytes,9007199254740993",
            "counter,1000056000,,1,,,,frequency (kHz),600000",
            "sched,1000050000,20000,1,7,8,,worker,120",
            "state,1000040000,10000,,7,8,,Runnable,",
            "method,1000012345,42655,,7,7,0,a.B.run,",
            "irq,1000030000,5000,0,,,,touch,",
            "instant,1000022000,,,7,7,,moment,",
            "thread,0,,,7,8,,worker,",
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
            doubt: Some("no kernel events".into()),
        };
        let text = export_methods(super::create, "", &thread);
        for line in ["method,1000012345,42655,,,19,0,a.B.run,", "method_thread,0,,,,19,,RenderThread,"] {
            assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
        }
    }
}
