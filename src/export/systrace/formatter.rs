//! Turns records into lines: several threads each print a batch of records, and write the batches in their
//! order.

use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::line::{EventPrinter, LineColumns};
use super::ordered_output::{OrderedOutput, Piece};
use crate::export::Out;
use crate::export::thread_names::ThreadNames;
use crate::formats::{Event, EventType, EventTypeId, Payload};
use crate::ftrace::Endian;
use crate::ftrace::print_fmt::piece_writer::{PieceRoom, PieceWriter};

/// The most events in a batch: many enough that handing a batch over costs next to nothing, and few enough
/// that a batch stays in the CPU's cache.
const BATCH_EVENTS: usize = 2048;
/// The size of a batch's records, in bytes, at which the batch is full whatever the number of its events.
const BATCH_BYTES: usize = 1 << 18;
/// How many batches exist for each printing thread. Together with the size of a batch this bounds the memory.
const BATCHES_PER_THREAD: usize = 4;
/// The most printing threads. More of them would only wait for the thread that reads.
const MAX_PRINTING_THREADS: usize = 6;

/// For each event type its printer, by the type's id.
pub(super) type Printers = Arc<Vec<Arc<(EventPrinter, EventType)>>>;

/// Consecutive events, and the printers and thread names that are needed to print them.
#[derive(Default)]
pub(super) struct EventBatch {
    entries: Vec<BatchEntry>,
    /// The records of events that are to be printed, and lines that are complete.
    bytes: Vec<u8>,
    printers: Printers,
    threads: Arc<ThreadNames>,
    /// The printed lines.
    lines: Vec<u8>,
}

/// One record or one complete line of a batch.
struct BatchEntry {
    ts: u64,
    /// Where the record or the line lies in the batch's bytes.
    start: u32,
    end: u32,
    tid: i32,
    cpu: u32,
    /// The event type; `None` for a line that is complete.
    kind: Option<u32>,
    flags: u16,
    preempt_count: u8,
    endian: Endian,
}

impl EventBatch {
    /// Adds a record that is to be printed.
    #[inline]
    pub(super) fn record(&mut self, event: &Event<'_>, data: &[u8], endian: Endian) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(data);
        self.entries.push(BatchEntry {
            ts: event.ts,
            start,
            end: self.bytes.len() as u32,
            tid: event.tid,
            cpu: event.cpu,
            kind: Some(event.kind.0),
            flags: event.flags,
            preempt_count: event.preempt_count,
            endian,
        });
    }

    /// Adds the complete line that `line` appends.
    pub(super) fn complete_line(&mut self, line: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len() as u32;
        line(&mut self.bytes);
        let end = self.bytes.len() as u32;
        let (flags, preempt_count, endian) = (0, 0, Endian::Little);
        self.entries.push(BatchEntry {
            ts: 0,
            start,
            end,
            tid: 0,
            cpu: 0,
            kind: None,
            flags,
            preempt_count,
            endian,
        });
    }

    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= BATCH_EVENTS || self.bytes.len() >= BATCH_BYTES
    }

    fn print(&mut self, columns: &mut LineColumns, room: &mut PieceRoom) {
        columns.set_threads(&self.threads);
        let mut line = PieceWriter::new(room, &mut self.lines);
        for entry in &self.entries {
            let data = self.bytes.get(entry.start as usize..entry.end as usize).unwrap_or_default();
            let printer = entry.kind.and_then(|kind| self.printers.get(kind as usize));
            let Some(printer) = printer else {
                line.long().extend_from_slice(data);
                continue;
            };
            let event = Event {
                ts: entry.ts,
                cpu: entry.cpu,
                tid: entry.tid,
                kind: EventTypeId(entry.kind.unwrap_or_default()),
                flags: entry.flags,
                preempt_count: entry.preempt_count,
                comm: None,
                tgid: None,
                payload: Payload::Raw { data, endian: entry.endian },
            };
            columns.push(&event, &mut line);
            printer.0.push_to(&mut line, &event, &printer.1);
            line.put(b"\n", 1);
        }
        line.long();
    }
}

impl Piece for EventBatch {
    fn made(&self) -> &[u8] {
        &self.lines
    }

    fn cleared(mut self) -> EventBatch {
        self.entries.clear();
        self.bytes.clear();
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
