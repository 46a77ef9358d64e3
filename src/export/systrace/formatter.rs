//! Turns records into lines: several threads each print a batch of records, and write the batches in their
//! order.

use std::io;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::line::{EventPrinter, LineColumns};
use crate::export::Out;
use crate::export::record_batch::RecordBatch;
use crate::formats::{Event, EventType, EventTypeId};
use crate::ftrace::Endian;
use crate::text::pieces::{PieceRoom, PieceWriter};
use crate::tracks::thread_names::ThreadNames;
use crate::workers::{Collector, Ordered, worker_count};

/// How many batches are on their way for each printing thread. Together with the size of a batch this bounds
/// the memory.
const BATCHES_PER_THREAD: usize = 4;
/// The most printing threads. More of them would only wait for the thread that reads.
const MAX_PRINTING_THREADS: usize = 6;

/// For each event type its printer, by the type's id.
pub(super) type Printers = Arc<Vec<Arc<(EventPrinter, EventType)>>>;

/// The type of what is no event in a batch: a line that is complete.
const COMPLETE_LINE: EventTypeId = EventTypeId(u32::MAX);

/// Consecutive events, and the printers and thread names that are needed to print them.
#[derive(Default)]
pub(super) struct EventBatch {
    records: RecordBatch,
    printers: Printers,
    threads: Arc<ThreadNames>,
    /// The printed lines.
    lines: Vec<u8>,
}

impl EventBatch {
    /// Adds a record that is to be printed.
    #[inline]
    pub(super) fn record(&mut self, event: &Event<'_>, data: &[u8], endian: Endian) {
        self.records.push(event, data, endian);
    }

    /// Adds the complete line that `line` appends.
    pub(super) fn complete_line(&mut self, line: impl FnOnce(&mut Vec<u8>)) {
        self.records.push_other(COMPLETE_LINE, 0, line);
    }

    pub(super) fn is_full(&self) -> bool {
        self.records.is_full()
    }

    fn print(&mut self, columns: &mut LineColumns, room: &mut PieceRoom) {
        columns.set_threads(&self.threads);
        let mut line = PieceWriter::new(room, &mut self.lines);
        for (event, data) in self.records.events() {
            match self.printers.get(event.kind.0 as usize) {
                Some(printer) => {
                    columns.push(&event, &mut line);
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

impl Collector for LineOutput {
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
pub(super) struct LineFormatter {
    pub(super) batch: EventBatch,
    /// Empty batches, which come back when they are written.
    free: Receiver<EventBatch>,
    /// `None` once the output is finished.
    jobs: Option<Ordered<EventBatch, LineOutput>>,
}

impl LineFormatter {
    pub(super) fn new(out: Out) -> LineFormatter {
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
    pub(super) fn flush(&mut self, printers: &Printers, threads: &Arc<ThreadNames>) -> io::Result<()> {
        self.batch.printers = printers.clone();
        self.batch.threads = threads.clone();
        let empty = self.free.try_recv().unwrap_or_default();
        let full = std::mem::replace(&mut self.batch, empty);
        let is_taken = self.jobs.as_mut().is_some_and(|jobs| jobs.push(full));
        if is_taken { Ok(()) } else { self.finish() }
    }

    /// Waits until everything is written. An error of the output is returned here at the latest.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let Some(jobs) = self.jobs.take() else { return Ok(()) };
        jobs.finish()?.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Mutex;

    use super::*;

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
                lines.flush(&Printers::default(), &Arc::default()).unwrap();
            }
            lines.finish().unwrap();
            assert_eq!(*written.0.lock().unwrap(), expected, "{threads} threads");
        }
    }
}
