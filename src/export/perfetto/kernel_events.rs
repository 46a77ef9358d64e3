//! Kernel events on their way to the writer thread, which makes packets of them while the next ones are read.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::kernel_packets::{KernelPackets, checked_cpu, push_loss};
use super::write_error::PerfettoWriteError;
use crate::export::record_batch::RecordBatch;
use crate::export::writer_thread::WriterThread;
use crate::formats::{Event, EventType, EventTypeId, Payload};

/// Collects records in batches. Events that are no records (those of texts, for example) borrow from the
/// reader, so that packets are made of them at once; from the first of them on this holds for all events.
pub(super) struct KernelEvents {
    packets: Arc<Mutex<KernelPackets>>,
    /// The number of event types.
    types: u32,
    in_batches: bool,
    batch: RecordBatch,
    /// Batches of which packets were made, to be filled again.
    used: (Sender<RecordBatch>, Receiver<RecordBatch>),
}

impl KernelEvents {
    /// No events yet; their packets will be of this sequence.
    pub(super) fn new(sequence: u64) -> KernelEvents {
        let packets = Arc::new(Mutex::new(KernelPackets::new(sequence)));
        KernelEvents { packets, types: 0, in_batches: true, batch: RecordBatch::default(), used: unbounded() }
    }

    /// The state of which packets are made. It may be behind the events as long as they go in batches.
    pub(super) fn packets(&self) -> MutexGuard<'_, KernelPackets> {
        self.packets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the next event type. Returns the names of its fields that Perfetto's message cannot hold.
    ///
    /// # Errors
    /// Returns an error if the types do not come in the order of their numbers.
    pub(super) fn add_type(&mut self, id: EventTypeId, kind: &EventType) -> io::Result<Vec<String>> {
        if id.0 != self.types {
            return Err(PerfettoWriteError::TypeOutOfOrder(id.0).into());
        }
        self.types += 1;
        Ok(self.packets().add_type(kind))
    }

    /// Adds an event. Packets that it completes go to the writer thread, or to `out`.
    ///
    /// # Errors
    /// Returns the errors of the writer thread, and an error for a CPU or a type that there is not.
    #[inline]
    pub(super) fn event(
        &mut self,
        writer: &mut WriterThread,
        out: &mut Vec<u8>,
        event: &Event<'_>,
    ) -> io::Result<()> {
        match event.payload {
            Payload::Raw { data, endian } if self.in_batches => {
                checked_cpu(event.cpu)?;
                if event.kind.0 >= self.types {
                    return Err(PerfettoWriteError::UnknownType(event.kind.0).into());
                }
                self.batch.push(event, data, endian);
                if self.batch.is_full() { self.hand_over(writer, out) } else { Ok(()) }
            }
            _ => {
                self.stop_batches(writer, out)?;
                self.packets().event(out, event)
            }
        }
    }

    /// Notes that the kernel lost events of a CPU before its next event.
    ///
    /// # Errors
    /// As [`KernelEvents::event`].
    pub(super) fn lost(&mut self, out: &mut Vec<u8>, cpu: u32, count: Option<u64>) -> io::Result<()> {
        checked_cpu(cpu)?;
        if self.in_batches {
            push_loss(&mut self.batch, cpu, count);
        } else {
            self.packets().cpu(cpu)?.lost(out, count);
        }
        Ok(())
    }

    /// Hands the batch to the writer thread, behind what is in `out`.
    fn hand_over(&mut self, writer: &mut WriterThread, out: &mut Vec<u8>) -> io::Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        if !out.is_empty() {
            writer.write(out)?;
        }
        let next = self.used.1.try_recv().unwrap_or_default();
        let mut batch = std::mem::replace(&mut self.batch, next);
        let (packets, used) = (Arc::clone(&self.packets), self.used.0.clone());
        writer.run(Box::new(move |out| {
            // CPUs and types were checked before.
            let _ = packets.lock().unwrap_or_else(PoisonError::into_inner).batch(out, &batch);
            batch.clear();
            let _ = used.send(batch);
        }))
    }

    /// Waits until packets are made of all events so far. From then on they are made at once.
    ///
    /// # Errors
    /// Returns the errors of the writer thread.
    pub(super) fn stop_batches(&mut self, writer: &mut WriterThread, out: &mut Vec<u8>) -> io::Result<()> {
        if !std::mem::take(&mut self.in_batches) {
            return Ok(());
        }
        self.hand_over(writer, out)?;
        writer.wait()
    }
}
