//! `TracePacket`, the message of which a Perfetto trace consists, and the ids of packet sequences and tracks.

use crate::clock::Timestamp;
use crate::formats::perfetto::fields::{
    builtin_clock, trace, trace_attributes, trace_attributes_attribute, trace_packet,
};
use crate::formats::perfetto::wire::write::{message, string, uint};

/// The packet sequence of all packets that need no sequence of their own.
const MAIN_SEQUENCE: u64 = 1;
/// The first packet sequence of the others.
const FIRST_SEQUENCE: u64 = 16;

/// The number of ids that are tried. A trace can fill a filter only on purpose.
const MAX_TRIES: u32 = 1 << 20;

/// Appends a `TracePacket` of the packet sequence `sequence`, whose content `fill` appends.
pub(super) fn packet(out: &mut Vec<u8>, sequence: u64, fill: impl FnOnce(&mut Vec<u8>)) {
    message(out, trace::PACKET, |out| {
        fill(out);
        uint(out, trace_packet::TRUSTED_PACKET_SEQUENCE_ID, sequence);
    });
}

/// Appends an `Attribute` to `TraceAttributes`.
pub(super) fn attribute(out: &mut Vec<u8>, key: &str, value: &str) {
    message(out, trace_attributes::ATTRIBUTE, |out| {
        string(out, trace_attributes_attribute::KEY, key.as_bytes());
        string(out, trace_attributes_attribute::STRING_VALUE, value.as_bytes());
    });
}

/// Appends the timestamp of a packet, a time of `clock`, which is a value of the enum `BuiltinClock`.
/// BOOTTIME need not be named.
pub(super) fn timestamp(out: &mut Vec<u8>, ts: Timestamp, clock: u64) {
    uint(out, trace_packet::TIMESTAMP, ts.0);
    if clock != builtin_clock::BOOTTIME {
        uint(out, trace_packet::TIMESTAMP_CLOCK_ID, clock);
    }
}

/// Hands out packet sequence ids and track uuids. None of them is an id that an input uses whose packets pass
/// through.
pub(super) struct FreeIds {
    sequences: IdFilter,
    uuids: IdFilter,
    /// The sequence of all packets that need no sequence of their own.
    pub(super) main_sequence: u64,
    next_sequence: u64,
}

impl Default for FreeIds {
    fn default() -> FreeIds {
        FreeIds {
            sequences: IdFilter::default(),
            uuids: IdFilter::default(),
            main_sequence: MAIN_SEQUENCE,
            next_sequence: FIRST_SEQUENCE,
        }
    }
}

impl FreeIds {
    /// Ids that are not in the two sets.
    pub(super) fn beside(sequences: IdFilter, uuids: IdFilter) -> FreeIds {
        let mut ids = FreeIds { sequences, uuids, main_sequence: 0, next_sequence: MAIN_SEQUENCE };
        ids.main_sequence = ids.sequence();
        ids
    }

    /// A sequence id that nobody uses: a `uint32` greater than 0.
    pub(super) fn sequence(&mut self) -> u64 {
        for _ in 0..MAX_TRIES {
            let id = self.next_sequence;
            self.next_sequence = if id == u64::from(u32::MAX) { 1 } else { id + 1 };
            if !self.sequences.contains(id) {
                self.sequences.add(id);
                return id;
            }
        }
        MAIN_SEQUENCE
    }

    /// The uuid `wanted` if no input and no caller has it, else another one.
    pub(super) fn track(&mut self, wanted: u64) -> u64 {
        let mut uuid = wanted;
        for _ in 0..MAX_TRIES {
            if uuid != 0 && !self.uuids.contains(uuid) {
                break;
            }
            uuid = mixed(uuid.wrapping_add(0x9e37_79b9_7f4a_7c15));
        }
        self.uuids.add(uuid);
        uuid
    }
}

/// The least and the most bits of an [`IdFilter`]: 128 KiB and 8 MiB.
const MIN_FILTER_BITS: u64 = 1 << 20;
const MAX_FILTER_BITS: u64 = 1 << 26;

/// A set of ids in bounded memory. An id that was added is always found. An id that was not added may be
/// found too, because several ids share a bit. A caller that looks for a free id then tries the next id.
pub(super) struct IdFilter {
    bits: Vec<u64>,
}

impl Default for IdFilter {
    fn default() -> IdFilter {
        IdFilter::for_bytes(0)
    }
}

/// A number that depends on all bits of `id` (the finalizer of MurmurHash3).
fn mixed(id: u64) -> u64 {
    let id = (id ^ (id >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let id = (id ^ (id >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    id ^ (id >> 33)
}

impl IdFilter {
    /// A set for the ids of traces that have `bytes` bytes together: an id takes several bytes of them.
    pub(super) fn for_bytes(bytes: u64) -> IdFilter {
        let bits = bytes.clamp(MIN_FILTER_BITS, MAX_FILTER_BITS).next_power_of_two();
        IdFilter { bits: vec![0; (bits / 64) as usize] }
    }

    fn place(&self, id: u64) -> (usize, u64) {
        let bit = mixed(id) % (64 * self.bits.len() as u64);
        ((bit / 64) as usize, 1 << (bit % 64))
    }

    pub(super) fn add(&mut self, id: u64) {
        let (word, bit) = self.place(id);
        self.bits[word] |= bit;
    }

    fn contains(&self, id: u64) -> bool {
        let (word, bit) = self.place(id);
        self.bits[word] & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_inputs_are_not_handed_out_and_no_id_is_handed_out_twice() {
        let mut sequences = IdFilter::default();
        let mut uuids = IdFilter::default();
        [1, 2, 3, 5].into_iter().for_each(|id| sequences.add(id));
        uuids.add(4096);
        let mut ids = FreeIds::beside(sequences, uuids);
        assert_eq!((ids.main_sequence, ids.sequence(), ids.sequence()), (4, 6, 7));
        let tracks = [ids.track(4096), ids.track(4096), ids.track(4097), ids.track(0)];
        assert_eq!(tracks[2], 4097);
        for (n, uuid) in tracks.iter().enumerate() {
            assert!(*uuid != 4096 && *uuid != 0 && !tracks[..n].contains(uuid), "{tracks:?}");
        }
    }

    #[test]
    fn an_id_that_was_added_is_found_and_most_others_are_not() {
        let mut filter = IdFilter::default();
        assert!(!filter.contains(0));
        (0..10_000).for_each(|id| filter.add(id));
        assert!((0..10_000).all(|id| filter.contains(id)));
        let false_ones = (10_000..20_000).filter(|id| filter.contains(*id)).count();
        assert!(false_ones < 300, "{false_ones}");
    }
}
