//! Makes packets of kernel events, on the writer thread or on the thread that reads.

use std::io;

use super::bundle::{CpuBundle, SchedFields};
use super::event_encoder::EventEncoder;
use super::kernel_symbols::KernelSymbols;
use super::write_error::PerfettoWriteError;
use crate::export::record_batch::RecordBatch;
use crate::formats::{Event, EventType, EventTypeId};
use crate::ftrace::limits::MAX_CPUS;

/// The type of what is no event in a batch: the kernel lost events. The bytes are their number, or none.
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
    pub(super) fn new(sequence: u64) -> KernelPackets {
        KernelPackets { sequence, encoders: Vec::new(), cpus: Vec::new(), symbols: KernelSymbols::default() }
    }

    /// Adds the next event type. Returns the names of its fields that Perfetto's message cannot hold.
    pub(super) fn add_type(&mut self, kind: &EventType) -> Vec<String> {
        let encoder = EventEncoder::new(kind);
        let left_out = encoder.left_out(kind).into_iter().map(str::to_owned).collect();
        self.encoders.push(TypeEncoder { kind: kind.clone(), encoder, sched: SchedFields::new(kind) });
        left_out
    }

    /// The bundle of a CPU.
    ///
    /// # Errors
    /// Returns an error for a number that no CPU has.
    pub(super) fn cpu(&mut self, number: u32) -> io::Result<&mut CpuBundle> {
        let (index, sequence) = (checked_cpu(number)? as usize, self.sequence);
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
    pub(super) fn event(&mut self, out: &mut Vec<u8>, event: &Event<'_>) -> io::Result<()> {
        if !matches!(self.cpus.get(event.cpu as usize), Some(Some(_))) {
            self.cpu(event.cpu)?;
        }
        let (Some(TypeEncoder { kind, encoder, sched }), Some(Some(cpu))) =
            (self.encoders.get(event.kind.0 as usize), self.cpus.get_mut(event.cpu as usize))
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
    pub(super) fn batch(&mut self, out: &mut Vec<u8>, batch: &RecordBatch) -> io::Result<()> {
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
pub(super) fn push_loss(batch: &mut RecordBatch, cpu: u32, count: Option<u64>) {
    batch.push_other(LOST, cpu, |bytes| bytes.extend(count.map(u64::to_le_bytes).into_iter().flatten()));
}

/// The number of a CPU.
///
/// # Errors
/// Returns an error for a number that no CPU has.
#[inline]
pub(super) fn checked_cpu(number: u32) -> io::Result<u32> {
    if number < MAX_CPUS { Ok(number) } else { Err(PerfettoWriteError::CpuNumber(number).into()) }
}
