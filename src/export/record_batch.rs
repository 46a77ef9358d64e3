//! Records of events, copied out of the memory of a reader, on their way to another thread.

use crate::formats::{Event, EventTypeId, Payload};
use crate::ftrace::Endian;

/// The most records in a batch: many enough that handing a batch over costs next to nothing, and few enough
/// that a batch stays in the CPU's cache.
const BATCH_RECORDS: usize = 2048;
/// The size of a batch's records, in bytes, at which the batch is full whatever their number.
const BATCH_BYTES: usize = 1 << 18;

/// Consecutive records.
#[derive(Debug, Default)]
pub(super) struct RecordBatch {
    entries: Vec<Entry>,
    bytes: Vec<u8>,
}

/// One record of a batch.
#[derive(Debug)]
struct Entry {
    ts: u64,
    /// Where the record begins and ends in the batch's bytes.
    start: u32,
    end: u32,
    tid: i32,
    cpu: u32,
    kind: EventTypeId,
    flags: u16,
    preempt_count: u8,
    endian: Endian,
}

impl RecordBatch {
    /// Adds an event whose payload is the record `data`.
    #[inline]
    pub(super) fn push(&mut self, event: &Event<'_>, data: &[u8], endian: Endian) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(data);
        self.entry(event, start, endian);
    }

    /// Adds what is no record under a type of the caller's own: `fill` appends its bytes.
    pub(super) fn push_other(&mut self, kind: EventTypeId, cpu: u32, fill: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len() as u32;
        fill(&mut self.bytes);
        let payload = Payload::Values { values: &[], text: None };
        let event =
            Event { ts: 0, cpu, tid: 0, kind, flags: 0, preempt_count: 0, comm: None, tgid: None, payload };
        self.entry(&event, start, Endian::Little);
    }

    #[inline]
    fn entry(&mut self, event: &Event<'_>, start: u32, endian: Endian) {
        self.entries.push(Entry {
            ts: event.ts,
            start,
            end: self.bytes.len() as u32,
            tid: event.tid,
            cpu: event.cpu,
            kind: event.kind,
            flags: event.flags,
            preempt_count: event.preempt_count,
            endian,
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= BATCH_RECORDS || self.bytes.len() >= BATCH_BYTES
    }

    /// The events in their order, each with the bytes of its record.
    #[inline]
    pub(super) fn events(&self) -> impl Iterator<Item = (Event<'_>, &[u8])> {
        self.entries.iter().map(|entry| {
            let data = self.bytes.get(entry.start as usize..entry.end as usize).unwrap_or_default();
            let event = Event {
                ts: entry.ts,
                cpu: entry.cpu,
                tid: entry.tid,
                kind: entry.kind,
                flags: entry.flags,
                preempt_count: entry.preempt_count,
                comm: None,
                tgid: None,
                payload: Payload::Raw { data, endian: entry.endian },
            };
            (event, data)
        })
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_in_their_order_with_their_own_bytes() {
        let mut batch = RecordBatch::default();
        let record = |ts, data| Event {
            ts,
            cpu: 3,
            tid: 7,
            kind: EventTypeId(2),
            flags: 1,
            preempt_count: 4,
            comm: None,
            tgid: None,
            payload: Payload::Raw { data, endian: Endian::Big },
        };
        batch.push(&record(10, b"abc"), b"abc", Endian::Big);
        batch.push_other(EventTypeId(u32::MAX), 1, |bytes| bytes.extend_from_slice(b"line"));
        batch.push(&record(11, b""), b"", Endian::Big);
        let events: Vec<_> = batch.events().collect();
        let seen: Vec<_> =
            events.iter().map(|(event, data)| (event.ts, event.cpu, event.kind.0, *data)).collect();
        let want: [(u64, u32, u32, &[u8]); 3] =
            [(10, 3, 2, b"abc"), (0, 1, u32::MAX, b"line"), (11, 3, 2, b"")];
        assert_eq!(seen, want);
        assert_eq!((events[0].0.flags, events[0].0.preempt_count, events[0].0.tid), (1, 4, 7));
        assert!(matches!(events[2].0.payload, Payload::Raw { endian: Endian::Big, .. }));
        batch.clear();
        assert!(batch.is_empty());
    }

    #[test]
    fn a_batch_is_full_by_number_or_by_size() {
        let mut batch = RecordBatch::default();
        (0..BATCH_RECORDS).for_each(|_| batch.push_other(EventTypeId(0), 0, |_| ()));
        assert!(batch.is_full());
        batch.clear();
        batch.push_other(EventTypeId(0), 0, |bytes| bytes.resize(BATCH_BYTES, 0));
        assert!(batch.is_full());
    }
}
