//! Turns records into lines: several threads each print a batch of records, and write the batches in their
//! order.

use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::line::{EventPrinter, LineColumns};
use super::ordered_output::{OrderedOutput, Piece};
use crate::export::Out;
use crate::export::record_batch::RecordBatch;
use crate::export::thread_names::ThreadNames;
use crate::formats::{Event, EventType, EventTypeId};
use crate::ftrace::Endian;
use crate::ftrace::print_fmt::piece_writer::{PieceRoom, PieceWriter};

/// How many batches exist for each printing thread. Together with the size of a batch this bounds the memory.
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

impl Piece for EventBatch {
    fn made(&self) -> &[u8] {
        &self.lines
    }

    fn cleared(mut self) -> EventBatch {
        self.records.clear();
        self.lines.clear();
        self
    }
}

/// The threads that print and write, and the batch that is being filled.
pub(super) struct LineFormatter {
    pub(super) batch: EventBatch,
    /// The number of the batch that is being filled.
    next: u64,
    /// Where full batches go; `None` once the output is finished.
    jobs: Option<Sender<(u64, EventBatch)>>,
    /// Empty batches, which come back when they are written.
    free: Receiver<EventBatch>,
    printing: Vec<JoinHandle<()>>,
    output: Arc<OrderedOutput<EventBatch>>,
    /// Why a thread could not be started: no memory, or too many threads.
    not_started: Option<io::Error>,
}

impl LineFormatter {
    pub(super) fn new(out: Out) -> LineFormatter {
        let threads = crate::workers::worker_count(MAX_PRINTING_THREADS);
        let in_flight = threads * BATCHES_PER_THREAD;
        let (jobs, to_print) = bounded::<(u64, EventBatch)>(in_flight);
        let (freed, free) = bounded(in_flight);
        for _ in 0..in_flight {
            let _ = freed.send(EventBatch::default());
        }
        let output = Arc::new(OrderedOutput::new(out, freed));
        let printing = (0..threads).map(|_| {
            let (to_print, output) = (to_print.clone(), output.clone());
            Builder::new().spawn(move || {
                let _guard = output.guard();
                let (mut columns, mut room) = (LineColumns::default(), PieceRoom::default());
                for (number, mut batch) in to_print {
                    batch.print(&mut columns, &mut room);
                    if !output.write(number, batch) {
                        break;
                    }
                }
            })
        });
        let (printing, not_started) = match printing.collect::<io::Result<_>>() {
            Ok(printing) => (printing, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let batch = EventBatch::default();
        LineFormatter { batch, next: 0, jobs: Some(jobs), free, printing, output, not_started }
    }

    /// Hands the batch to the printing threads. Its lines show the names and processes that `threads` holds
    /// now.
    pub(super) fn flush(&mut self, printers: &Printers, threads: &Arc<ThreadNames>) -> io::Result<()> {
        self.batch.printers = printers.clone();
        self.batch.threads = threads.clone();
        // Waits until a written batch is free again. This wait bounds the memory.
        let Ok(empty) = self.free.recv() else { return self.finish() };
        let full = std::mem::replace(&mut self.batch, empty);
        let number = self.next;
        self.next += 1;
        match &self.jobs {
            Some(jobs) if jobs.send((number, full)).is_ok() => Ok(()),
            _ => self.finish(),
        }
    }

    /// Waits until everything is written. An error of the output is returned here at the latest.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.jobs = None;
        if let Some(error) = self.not_started.take() {
            return Err(error);
        }
        // What a thread that ended unexpectedly has not printed is missing in the output, which says so.
        self.printing.drain(..).for_each(|thread| drop(thread.join()));
        self.output.finish(self.next)
    }
}
