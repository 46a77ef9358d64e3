//! Slices, states and counters as one table for spreadsheets and data frames (RFC 4180, a header line, times in ns).

use std::io::{self, Write};

use super::Out;
use super::background::Background;
use super::story::{AsyncEdge, AsyncSlice, Method, Owner, Span, Story, Task, Tasks, Teller};
use crate::formats::{Event, EventType};
use crate::text::push_csv_field;
use crate::timeline::{MergeSummary, MethodThread, TimelineSink};

const HEADER: &[u8] = b"what,ts_ns,dur_ns,cpu,pid,tid,depth,name,value\n";

/// The writer onto `out`.
pub(super) fn create(out: Out) -> Box<dyn TimelineSink> {
    let csv = Csv { background: Background::new(out), out: HEADER.to_vec() };
    Box::new(Teller::new(csv))
}

struct Csv {
    background: Background,
    out: Vec<u8>,
}

/// One line. Empty columns are what does not apply.
#[derive(Default)]
struct Row<'a> {
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

impl Csv {
    fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
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
        self.background.offer(&mut self.out)
    }

    fn span<'a>(&mut self, what: &'a str, span: Span, at: Option<Task>, name: &'a [u8]) -> io::Result<()> {
        self.row(&Row { tid: at.map(|t| t.tid), pid: at.and_then(|t| t.tgid), ..Row::of(what, span, name) })
    }
}

impl<'a> Row<'a> {
    fn of(what: &'a str, span: Span, name: &'a [u8]) -> Row<'a> {
        Row { what, ts: span.start, dur: Some(span.end.saturating_sub(span.start)), name, ..Row::default() }
    }
}

impl Story for Csv {
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
        let row = Row { what: "async", ts, dur, pid: Some(pid), name: slice.name, ..Row::default() };
        self.row(&Row { value: Some(slice.cookie), ..row })
    }

    fn instant(&mut self, at: Task, ts: u64, name: &[u8]) -> io::Result<()> {
        self.row(&Row { what: "instant", ts, pid: at.tgid, tid: Some(at.tid), name, ..Row::default() })
    }

    fn counter(&mut self, owner: Owner, ts: u64, name: &str, value: i64) -> io::Result<()> {
        let row = Row { what: "counter", ts, name: name.as_bytes(), value: Some(value), ..Row::default() };
        self.row(&match owner {
            Owner::Process(pid) => Row { pid: Some(pid), ..row },
            Owner::Cpu(cpu) => Row { cpu: Some(cpu), ..row },
            Owner::System => row,
        })
    }

    fn on_cpu(&mut self, cpu: u32, at: Task, name: &str, span: Span, prio: i64) -> io::Result<()> {
        let row = Row::of("sched", span, name.as_bytes());
        self.row(&Row { cpu: Some(cpu), pid: at.tgid, tid: Some(at.tid), value: Some(prio), ..row })
    }

    fn state(&mut self, at: Task, state: &'static str, span: Span) -> io::Result<()> {
        self.span("state", span, Some(at), state.as_bytes())
    }

    fn irq(&mut self, cpu: u32, name: &str, span: Span) -> io::Result<()> {
        self.row(&Row { cpu: Some(cpu), ..Row::of("irq", span, name.as_bytes()) })
    }

    fn method(&mut self, at: &MethodThread, method: &Method, span: Span, depth: usize) -> io::Result<()> {
        let row = Row::of("method", span, method.full.as_bytes());
        self.row(&Row { pid: at.tgid, tid: at.tid, depth: Some(depth), ..row })
    }

    fn other(&mut self, _: Task, _: &Event<'_>, _: &EventType) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, tasks: &Tasks, _: &MergeSummary) -> io::Result<()> {
        for (tid, thread) in tasks.threads.sorted() {
            if let Some(name) = thread.name_text() {
                let row = Row { what: "thread", pid: thread.tgid, tid: Some(tid), ..Row::default() };
                self.row(&Row { name: name.as_bytes(), ..row })?;
            }
        }
        for (pid, name) in &tasks.processes {
            self.row(&Row { what: "process", pid: Some(*pid), name: name.as_bytes(), ..Row::default() })?;
        }
        self.background.write(&mut self.out)?;
        self.background.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::story::tests::{TEXT, export};

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
}
