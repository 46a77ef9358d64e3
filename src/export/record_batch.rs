//! Records of events, copied out of the memory of a reader, on their way to another thread.

use crate::formats::{Event, EventTypeId, OwnedEvents};
use crate::ftrace::Endian;

/// The most records in a batch: many enough that handing a batch over costs next to nothing, and few enough
/// that a batch stays in the CPU's cache.
const BATCH_RECORDS: usize = 2048;
/// The size of a batch's records, in bytes, at which the batch is full whatever their number.
const BATCH_BYTES: usize = 1 << 18;

/// Consecutive records.
#[derive(Debug, Default)]
pub(super) struct RecordBatch(OwnedEvents);

impl RecordBatch {
    /// Adds an event whose payload is the record `data`.
    #[inline]
    pub(super) fn push(&mut self, event: &Event<'_>, data: &[u8], endian: Endian) {
        self.0.push_record(event, data, endian);
    }

    /// Adds what is no record under a type of the caller's own: `fill` appends its bytes.
    pub(super) fn push_other(&mut self, kind: EventTypeId, cpu: u32, fill: impl FnOnce(&mut Vec<u8>)) {
        self.0.push_other(kind, cpu, fill);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= BATCH_RECORDS || self.0.byte_len() >= BATCH_BYTES
    }

    /// The events in their order, each with the bytes of its record.
    #[inline]
    pub(super) fn events(&self) -> impl Iterator<Item = (Event<'_>, &[u8])> {
        self.0.records()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_full_by_number_or_by_size() {
        let mut batch = RecordBatch::default();
        (0..BATCH_RECORDS).for_each(|_| batch.push_other(EventTypeId(0), 0, |_| ()));
        assert!(batch.is_full());
        batch.clear();
        assert!(batch.is_empty());
        batch.push_other(EventTypeId(0), 0, |bytes| bytes.resize(BATCH_BYTES, 0));
        assert!(batch.is_full());
    }
}
