//! Writes systrace text: the format of tracefs' `trace` file with the TGID column.
//!
//! Method calls become markers `B|pid|name` and `E|pid`, each on a thread beside the traced thread, whose id
//! no kernel thread has. Viewers end the innermost slice of a thread at each `E`. On the traced thread itself
//! an app's marker that is placed some µs beside its method would therefore end the wrong slice, and all
//! slices after it would be wrong.
//!
//! Records are turned into lines on several threads, a batch on each, and the batches are written in their
//! order.

mod line;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};

pub use line::{EventPrinter, LineColumns};

use self::line::{HEADER, MARKER};
use super::Out;
use super::writer_thread::RecordBatch;
use crate::formats::ftrace_text::LOSSES_COMMENT;
use crate::formats::{Event, EventType, EventTypeId, Head, Order, Payload, Sink, ThreadInfo};
use crate::ftrace::Endian;
use crate::ftrace::print_fmt::Symbolizer;
use crate::ids::{Cpu, Pid, Tid};
use crate::text::end_no_line;
use crate::text::pieces::{PieceRoom, PieceWriter};
use crate::timeline::{Edge, EdgeKind, MergeSummary, MethodId, MethodName, MethodThread, TimelineSink};
use crate::tracks::thread_names::{ThreadNames, method_process, method_track_id};
use crate::workers::{Ordered, OrderedSink, worker_count};

/// The length to which the name of a method thread is cut, in characters. The name only labels the thread
/// in viewers.
const MAX_THREAD_NAME_CHARS: usize = 48;
/// The most notes about print formats.
const MAX_NOTES: usize = 20;

/// Writes a timeline as systrace text.
pub struct SystraceWriter {
    out: LineFormatter,
    threads: Arc<ThreadNames>,
    printers: LinePrinters,
    context: Arc<Symbolizer>,
    /// Prints the columns of events whose values do not outlive the call. Such events are printed at once,
    /// not in a batch.
    columns: LineColumns,
    room: PieceRoom,
    /// Notes about print formats that exceed a limit.
    notes: Vec<String>,
    /// The names of methods, by method id.
    methods: Vec<Vec<u8>>,
    /// By [`MethodThread::index`].
    method_threads: HashMap<u32, MethodLines>,
}

/// The columns that the lines of a method thread have in common.
struct MethodLines {
    tid: Tid,
    tgid: Option<Pid>,
    comm: Vec<u8>,
}

impl SystraceWriter {
    /// A writer that writes to `out`.
    pub fn new(out: Out) -> SystraceWriter {
        SystraceWriter {
            out: LineFormatter::new(out),
            threads: Arc::default(),
            printers: Arc::default(),
            context: Arc::default(),
            columns: LineColumns::default(),
            room: PieceRoom::default(),
            notes: Vec::new(),
            methods: Vec::new(),
            method_threads: HashMap::new(),
        }
    }

    fn flush_if_full(&mut self) -> io::Result<()> {
        if self.out.batch.is_full() { self.out.flush(&self.printers, &self.threads) } else { Ok(()) }
    }
}

impl Sink for SystraceWriter {
    fn head(&mut self, _: &Head) -> io::Result<()> {
        self.out.batch.complete_line(|line| line.extend_from_slice(HEADER.as_bytes()));
        Ok(())
    }

    fn kernel(&mut self, context: &Arc<Symbolizer>) -> io::Result<()> {
        self.context = context.clone();
        Ok(())
    }

    fn event_type(&mut self, _: EventTypeId, kind: &EventType) -> io::Result<()> {
        let printer = EventPrinter::new(kind, &self.context);
        if let Some(error) = printer.too_complex().filter(|_| self.notes.len() < MAX_NOTES) {
            let event = format!("{}:{}", kind.system, kind.name);
            self.notes.push(format!(
                "{event}: the print format {error}: that argument is printed as `?`, and its fields behind it"
            ));
        }
        Arc::make_mut(&mut self.printers).push(Arc::new((printer, kind.clone())));
        Ok(())
    }

    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        Arc::make_mut(&mut self.threads).learn(thread.tid, thread.tgid, thread.name);
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        match event.payload {
            Payload::Raw { data, endian } if event.comm.is_none() && event.tgid.is_none() => {
                self.out.batch.record(event, data, endian);
            }
            _ => {
                let Some(printer) = self.printers.get(event.kind.0 as usize) else { return Ok(()) };
                self.columns.set_threads(&self.threads);
                self.out.batch.complete_line(|line| {
                    let mut line = PieceWriter::new(&mut self.room, line);
                    self.columns.push_to(&mut line, event);
                    printer.0.push_to(&mut line, event, kind);
                    line.put(b"\n", 1);
                    line.long();
                });
            }
        }
        self.flush_if_full()
    }

    fn lost(&mut self, cpu: Cpu, count: Option<u64>) -> io::Result<()> {
        // The wording is that of the kernel's trace_pipe.
        let line = match count {
            Some(count) => format!("CPU:{cpu} [LOST {count} EVENTS]\n"),
            None => format!("CPU:{cpu} [LOST EVENTS]\n"),
        };
        self.out.batch.complete_line(|out| out.extend_from_slice(line.as_bytes()));
        Ok(())
    }
}

impl TimelineSink for SystraceWriter {
    fn order(&mut self) -> Order {
        Order::Time
    }

    fn method(&mut self, id: MethodId, name: &MethodName<'_>) -> io::Result<()> {
        let at = id.0 as usize;
        if self.methods.len() <= at {
            self.methods.resize(at + 1, Vec::new());
        }
        let dot = if name.class.is_empty() { "" } else { "." };
        let mut full = format!("{}{dot}{}", name.class, name.name).into_bytes();
        end_no_line(&mut full);
        self.methods[at] = full;
        Ok(())
    }

    fn method_thread(&mut self, thread: &MethodThread) -> io::Result<()> {
        let shown =
            thread.name.chars().take(MAX_THREAD_NAME_CHARS).map(|c| if c.is_control() { ' ' } else { c });
        let comm = format!("{} methods", shown.collect::<String>()).into_bytes();
        let lines = MethodLines { tid: method_track_id(thread), tgid: method_process(thread), comm };
        self.method_threads.insert(thread.index, lines);
        Ok(())
    }

    fn edges(&mut self, thread: u32, edges: &[Edge]) -> io::Result<()> {
        for edge in edges {
            let Some(lines) = self.method_threads.get(&thread) else { return Ok(()) };
            let Some(name) = self.methods.get(edge.method.0 as usize) else { continue };
            let event = Event {
                ts: edge.ts,
                // The method trace does not say on which CPU the thread ran.
                cpu: Cpu(0),
                tid: lines.tid,
                kind: EventTypeId(0),
                flags: 0,
                preempt_count: 0,
                comm: Some(&lines.comm),
                tgid: lines.tgid,
                payload: Payload::Values { values: &[], text: None },
            };
            let pid = lines.tgid.unwrap_or_default();
            self.out.batch.complete_line(|line| {
                let mut columns = PieceWriter::new(&mut self.room, line);
                self.columns.push_to(&mut columns, &event);
                columns.long().extend_from_slice(MARKER);
                match edge.kind {
                    EdgeKind::Enter => {
                        line.extend_from_slice(format!("B|{pid}|").as_bytes());
                        line.extend_from_slice(name);
                    }
                    EdgeKind::Exit => line.extend_from_slice(format!("E|{pid}").as_bytes()),
                }
                line.push(b'\n');
            });
            self.flush_if_full()?;
        }
        Ok(())
    }

    fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    fn finish(&mut self, summary: &MergeSummary) -> io::Result<()> {
        if let Some(losses) = summary.report.losses.to_json() {
            let line = format!("{LOSSES_COMMENT}{losses}\n");
            self.out.batch.complete_line(|out| out.extend_from_slice(line.as_bytes()));
        }
        self.out.flush(&self.printers, &self.threads)?;
        self.out.finish()
    }
}

/// The number of batches that are on their way for each printing thread. Together with the size of a batch
/// this bounds the memory.
const BATCHES_PER_THREAD: usize = 4;
/// The most printing threads. More of them would only wait for the thread that reads.
const MAX_PRINTING_THREADS: usize = 6;

/// For each event type its printer, by the type's id.
type LinePrinters = Arc<Vec<Arc<(EventPrinter, EventType)>>>;

/// The type of the entries of a batch that are no events: lines that are complete.
const COMPLETE_LINE: EventTypeId = EventTypeId(u32::MAX);

/// Consecutive events, with the printers and thread names of their lines.
#[derive(Default)]
struct EventBatch {
    records: RecordBatch,
    printers: LinePrinters,
    threads: Arc<ThreadNames>,
    /// The printed lines.
    lines: Vec<u8>,
}

impl EventBatch {
    /// Adds a record that is to be printed.
    #[inline]
    fn record(&mut self, event: &Event<'_>, data: &[u8], endian: Endian) {
        self.records.push(event, data, endian);
    }

    /// Adds the complete line that `line` appends.
    fn complete_line(&mut self, line: impl FnOnce(&mut Vec<u8>)) {
        self.records.push_other(COMPLETE_LINE, Cpu(0), line);
    }

    fn is_full(&self) -> bool {
        self.records.is_full()
    }

    fn print(&mut self, columns: &mut LineColumns, room: &mut PieceRoom) {
        columns.set_threads(&self.threads);
        let mut line = PieceWriter::new(room, &mut self.lines);
        for (event, data) in self.records.events() {
            match self.printers.get(event.kind.0 as usize) {
                Some(printer) => {
                    columns.push_to(&mut line, &event);
                    printer.0.push_to(&mut line, &event, &printer.1);
                    line.put(b"\n", 1);
                }
                None => line.long().extend_from_slice(data),
            }
        }
        line.long();
    }
}

/// Writes printed batches, and hands them back empty.
struct LineOutput {
    out: Out,
    freed: Sender<EventBatch>,
}

impl OrderedSink for LineOutput {
    type Item = EventBatch;
    type Error = io::Error;

    fn take(&mut self, mut batch: EventBatch) -> io::Result<()> {
        self.out.write_all(&batch.lines)?;
        batch.records.clear();
        batch.lines.clear();
        // Nobody wants the batch any more where the channel is full or closed.
        let _ = self.freed.try_send(batch);
        Ok(())
    }
}

/// The threads that print and write, and the batch that is being filled.
struct LineFormatter {
    batch: EventBatch,
    /// Empty batches, which come back when they are written.
    free: Receiver<EventBatch>,
    /// `None` once the output is finished.
    jobs: Option<Ordered<EventBatch, LineOutput>>,
}

impl LineFormatter {
    fn new(out: Out) -> LineFormatter {
        LineFormatter::with_threads(out, worker_count(MAX_PRINTING_THREADS))
    }

    fn with_threads(out: Out, threads: usize) -> LineFormatter {
        let in_flight = threads.max(1) * BATCHES_PER_THREAD;
        let (freed, free) = bounded(in_flight);
        let jobs = Ordered::new(threads, in_flight, LineOutput { out, freed }, || {
            let mut columns = LineColumns::default();
            let mut room = PieceRoom::default();
            move |mut batch: EventBatch| {
                batch.print(&mut columns, &mut room);
                batch
            }
        });
        LineFormatter { batch: EventBatch::default(), free, jobs: Some(jobs) }
    }

    /// Hands the batch to the printing threads; waits while too many batches are on their way. Its lines show
    /// the names and processes that `threads` holds now.
    fn flush(&mut self, printers: &LinePrinters, threads: &Arc<ThreadNames>) -> io::Result<()> {
        self.batch.printers = printers.clone();
        self.batch.threads = threads.clone();
        let empty = self.free.try_recv().unwrap_or_default();
        let full = std::mem::replace(&mut self.batch, empty);
        let is_taken = self.jobs.as_mut().is_some_and(|jobs| jobs.push(full));
        if is_taken { Ok(()) } else { self.finish() }
    }

    /// Waits until everything is written. An error of the output is returned here at the latest.
    fn finish(&mut self) -> io::Result<()> {
        let Some(jobs) = self.jobs.take() else { return Ok(()) };
        jobs.finish()?.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Mutex;

    use super::*;
    use crate::tracks::tests::export;

    #[test]
    fn a_text_keeps_its_flags_when_it_is_written_again() {
        let columns =
            ["dLh1.", "dBs2.", "db.3.", "Xl...", "X..1.", "D.H.1", "bnz..", ".NZf.", ".p.1.", "....."];
        let lines = columns.iter().enumerate().map(|(i, column)| {
            format!(
                "              sh-7       (      7) [001] {column}     1.00000{i}: tracing_mark_write: E|7\n"
            )
        });
        let lines: String = lines.collect();
        let written = export(|out| Box::new(SystraceWriter::new(out)), &lines);
        assert!(written.contains(&lines), "{written}\n{lines}");
    }

    #[test]
    fn a_method_call_becomes_a_slice_on_a_thread_beside_the_traced_thread() {
        let written = export(|out| Box::new(SystraceWriter::new(out)), "");
        let lines =
            "    main methods-16777223 (      7) [000] .....     1.000012: tracing_mark_write: B|7|a.B.run
    main methods-16777223 (      7) [000] .....     1.000055: tracing_mark_write: E|7
";
        assert!(written.ends_with(lines), "{written}");
    }

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn batches_are_written_in_their_order_with_and_without_threads() {
        for threads in [0, 1, 3] {
            let written = Written::default();
            let mut lines = LineFormatter::with_threads(Box::new(written.clone()), threads);
            let mut expected = Vec::new();
            for number in 0..100 {
                let line = format!("line {number}\n");
                expected.extend_from_slice(line.as_bytes());
                lines.batch.complete_line(|out| out.extend_from_slice(line.as_bytes()));
                lines.flush(&LinePrinters::default(), &Arc::default()).unwrap();
            }
            lines.finish().unwrap();
            assert_eq!(*written.0.lock().unwrap(), expected, "{threads} threads");
        }
    }
}
