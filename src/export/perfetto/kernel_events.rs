//! Kernel events on their way to packets: they go in batches to the writer thread, which makes packets of
//! one batch while the next one is read.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::bundle::{CpuBundle, SchedFields};
use super::event_encoder::{EventEncoder, KernelSymbols};
use crate::export::writer_thread::{RecordBatch, WriterThread};
use crate::formats::{Event, EventType, EventTypeId, Payload};
use crate::ftrace::page_format::MAX_CPUS;
use crate::ids::Cpu;

/// Collects records in batches. Events that are no records (events of texts, for example) borrow from the
/// reader, so packets are made of them at once. After the first such event packets are made of all events at
/// once.
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

    /// The encoder's state, which is shared with the writer thread. As long as events go in batches it lags
    /// behind [`KernelEvents::event`].
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
    pub(super) fn lost(&mut self, out: &mut Vec<u8>, cpu: Cpu, count: Option<u64>) -> io::Result<()> {
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
        let packets = Arc::clone(&self.packets);
        let used = self.used.0.clone();
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

/// The type of the entries of a batch that are no events: the kernel lost events. The bytes are their
/// number, or none.
const LOST: EventTypeId = EventTypeId(u32::MAX);

/// The encoders of all event types, and the bundles that are being filled.
pub(super) struct KernelPackets {
    /// The packet sequence of the bundles.
    sequence: u64,
    /// Indexed by event type.
    encoders: Vec<TypeEncoder>,
    /// Indexed by CPU number.
    pub(super) cpus: Vec<Option<CpuBundle>>,
    pub(super) symbols: KernelSymbols,
}

struct TypeEncoder {
    kind: EventType,
    encoder: EventEncoder,
    sched: Option<SchedFields>,
}

impl KernelPackets {
    /// No events yet; bundles will be of this packet sequence.
    fn new(sequence: u64) -> KernelPackets {
        KernelPackets { sequence, encoders: Vec::new(), cpus: Vec::new(), symbols: KernelSymbols::default() }
    }

    /// Adds the next event type. Returns the names of its fields that Perfetto's message cannot hold.
    fn add_type(&mut self, kind: &EventType) -> Vec<String> {
        let encoder = EventEncoder::new(kind);
        let left_out = encoder.left_out(kind).into_iter().map(str::to_owned).collect();
        self.encoders.push(TypeEncoder { kind: kind.clone(), encoder, sched: SchedFields::new(kind) });
        left_out
    }

    /// The bundle of a CPU.
    ///
    /// # Errors
    /// Returns an error for a number that no CPU has.
    pub(super) fn cpu(&mut self, number: Cpu) -> io::Result<&mut CpuBundle> {
        let index = checked_cpu(number)?.index();
        let sequence = self.sequence;
        if self.cpus.len() <= index {
            self.cpus.resize_with(index + 1, || None);
        }
        Ok(self.cpus[index].get_or_insert_with(|| CpuBundle::new(number, sequence)))
    }

    /// Adds an event to the bundle of its CPU, and appends the bundle to `out` once it is full.
    ///
    /// # Errors
    /// Returns an error for a number that no CPU has, or for a type that was not added.
    #[inline]
    fn event(&mut self, out: &mut Vec<u8>, event: &Event<'_>) -> io::Result<()> {
        if !matches!(self.cpus.get(event.cpu.index()), Some(Some(_))) {
            self.cpu(event.cpu)?;
        }
        let (Some(TypeEncoder { kind, encoder, sched }), Some(Some(cpu))) =
            (self.encoders.get(event.kind.0 as usize), self.cpus.get_mut(event.cpu.index()))
        else {
            return Err(PerfettoWriteError::UnknownType(event.kind.0).into());
        };
        cpu.event(out, event, kind, encoder, sched.as_ref(), &mut self.symbols);
        Ok(())
    }

    /// Adds the events and the losses of a batch.
    ///
    /// # Errors
    /// As [`KernelPackets::event`].
    fn batch(&mut self, out: &mut Vec<u8>, batch: &RecordBatch) -> io::Result<()> {
        for (event, data) in batch.events() {
            match event.kind {
                LOST => self.cpu(event.cpu)?.lost(out, data.first_chunk().map(|n| u64::from_le_bytes(*n))),
                _ => self.event(out, &event)?,
            }
        }
        Ok(())
    }

    /// Appends the bundles that are not full.
    pub(super) fn close(&mut self, out: &mut Vec<u8>) {
        self.cpus.iter_mut().flatten().for_each(|cpu| cpu.close(out));
    }
}

/// Adds a loss to a batch, for [`KernelPackets::batch`].
fn push_loss(batch: &mut RecordBatch, cpu: Cpu, count: Option<u64>) {
    batch.push_other(LOST, cpu, |bytes| bytes.extend(count.map(u64::to_le_bytes).into_iter().flatten()));
}

/// The number of a CPU.
///
/// # Errors
/// Returns an error for a number that no CPU has.
#[inline]
fn checked_cpu(cpu: Cpu) -> io::Result<Cpu> {
    if cpu.0 < MAX_CPUS { Ok(cpu) } else { Err(PerfettoWriteError::CpuNumber(cpu).into()) }
}

/// A reader broke the contract of [`Sink`](crate::formats::Sink), or an input is damaged.
#[derive(Debug, thiserror::Error)]
enum PerfettoWriteError {
    #[error("CPU {0} is more than any machine has ({MAX_CPUS})")]
    CpuNumber(Cpu),
    #[error("event type {0} was announced out of order")]
    TypeOutOfOrder(u32),
    #[error("an event has the type {0}, which was not announced")]
    UnknownType(u32),
}

impl From<PerfettoWriteError> for io::Error {
    fn from(error: PerfettoWriteError) -> io::Error {
        io::Error::other(error)
    }
}
