//! Turns batches of records into lines on several threads, and writes them in their order on one more.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::line::{Columns, Printer};
use crate::export::Out;
use crate::export::thread_names::ThreadNames;
use crate::formats::{Event, EventType, EventTypeId, Payload};
use crate::ftrace::Endian;

/// Events a batch has: enough that handing it over costs nothing, few enough that batches stay in the cache.
const BATCH_EVENTS: usize = 2048;
/// Bytes of records after which a batch ends all the same.
const BATCH_BYTES: usize = 1 << 18;
/// Batches under way for each thread; with their size, what bounds the memory.
const BATCHES_A_THREAD: usize = 4;
/// More threads than this only wait for the one that reads.
const MAX_THREADS: usize = 6;

/// How events of each kind are printed.
pub(super) type Printers = Arc<Vec<Arc<(Printer, EventType)>>>;

/// Some events in a row, with all that is needed to print them.
#[derive(Default)]
pub(super) struct Batch {
    entries: Vec<Entry>,
    /// The records, or lines that are ready.
    bytes: Vec<u8>,
    printers: Printers,
    threads: Arc<ThreadNames>,
    /// The lines that it becomes.
    lines: Vec<u8>,
}

struct Entry {
    ts: u64,
    start: u32,
    end: u32,
    tid: i32,
    cpu: u32,
    /// Which printer; `None` for a line that is ready.
    kind: Option<u32>,
    flags: u16,
    preempt_count: u8,
    endian: Endian,
}

impl Batch {
    /// Adds a record that is to be printed.
    #[inline]
    pub(super) fn record(&mut self, event: &Event<'_>, data: &[u8], endian: Endian) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(data);
        self.entries.push(Entry {
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

    /// Adds what `line` appends, a line that is ready.
    pub(super) fn ready(&mut self, line: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len() as u32;
        line(&mut self.bytes);
        let end = self.bytes.len() as u32;
        let (flags, preempt_count, endian) = (0, 0, Endian::Little);
        self.entries.push(Entry {
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

    fn print(&mut self, columns: &mut Columns) {
        columns.set_threads(&self.threads);
        for entry in &self.entries {
            let data = self.bytes.get(entry.start as usize..entry.end as usize).unwrap_or_default();
            let printer = entry.kind.and_then(|kind| self.printers.get(kind as usize));
            let Some(printer) = printer else {
                self.lines.extend_from_slice(data);
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
            columns.push(&event, &mut self.lines);
            printer.0.push(&event, &printer.1, &mut self.lines);
            self.lines.push(b'\n');
        }
    }

    fn clear(mut self) -> Batch {
        self.entries.clear();
        self.bytes.clear();
        self.lines.clear();
        self
    }
}

/// The threads, and the batch that is being filled.
pub(super) struct Formatter {
    pub(super) batch: Batch,
    next: u64,
    /// `None` after the end.
    jobs: Option<Sender<(u64, Batch)>>,
    free: Receiver<Batch>,
    printing: Vec<JoinHandle<()>>,
    writing: Option<JoinHandle<io::Result<()>>>,
}

impl Formatter {
    pub(super) fn new(out: Out) -> Formatter {
        let threads = crate::workers::worker_count(MAX_THREADS);
        let in_flight = threads * BATCHES_A_THREAD;
        let (jobs, to_print) = bounded::<(u64, Batch)>(in_flight);
        let (printed, to_write) = bounded::<(u64, Batch)>(in_flight);
        let (freed, free) = bounded(in_flight);
        for _ in 0..in_flight {
            let _ = freed.send(Batch::default());
        }
        let printing = (0..threads).map(|_| {
            let (to_print, printed) = (to_print.clone(), printed.clone());
            std::thread::spawn(move || {
                let mut columns = Columns::default();
                for (number, mut batch) in to_print {
                    batch.print(&mut columns);
                    if printed.send((number, batch)).is_err() {
                        break;
                    }
                }
            })
        });
        let printing = printing.collect();
        let writing = Some(std::thread::spawn(move || write(out, &to_write, &freed)));
        Formatter { batch: Batch::default(), next: 0, jobs: Some(jobs), free, printing, writing }
    }

    /// Hands the batch over, to be printed with what is known now.
    pub(super) fn flush(&mut self, printers: &Printers, threads: &Arc<ThreadNames>) -> io::Result<()> {
        self.batch.printers = printers.clone();
        self.batch.threads = threads.clone();
        // As many batches exist as may be under way: none is free until one is written.
        let Ok(empty) = self.free.recv() else { return self.finish() };
        let full = std::mem::replace(&mut self.batch, empty);
        let number = self.next;
        self.next += 1;
        match &self.jobs {
            Some(jobs) if jobs.send((number, full)).is_ok() => Ok(()),
            _ => self.finish(),
        }
    }

    /// Waits until all is written; what could not be written is said here at the latest.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.jobs = None;
        let gone = || io::Error::other("the threads that print ended");
        let printed = self.printing.drain(..).try_for_each(|thread| thread.join().map_err(|_| gone()));
        let written = match self.writing.take() {
            Some(thread) => thread.join().unwrap_or_else(|_| Err(gone())),
            None => Err(gone()),
        };
        written.and(printed)
    }
}

fn write(mut out: Out, printed: &Receiver<(u64, Batch)>, freed: &Sender<Batch>) -> io::Result<()> {
    let mut waiting = BTreeMap::new();
    let mut next = 0;
    for (number, batch) in printed {
        waiting.insert(number, batch);
        while let Some(batch) = waiting.remove(&next) {
            out.write_all(&batch.lines)?;
            let _ = freed.try_send(batch.clear());
            next += 1;
        }
    }
    out.flush()
}
