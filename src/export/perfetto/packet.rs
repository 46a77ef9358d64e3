//! `TracePacket`, the message of which a Perfetto trace consists, and the ids of packet sequences and tracks.

use super::taken_ids::{IdFilter, mixed};
use crate::formats::perfetto::fields::{builtin_clock, trace, trace_packet};
use crate::formats::perfetto::wire::write::{message, uint};

/// The packet sequence of all packets that need no sequence of their own.
const MAIN_SEQUENCE: u64 = 1;
/// The first packet sequence of the others.
const FIRST_SEQUENCE: u64 = 16;

/// How many ids are tried. A trace can fill a filter only on purpose.
const MAX_TRIES: u32 = 1 << 20;

/// Appends a `TracePacket` of the packet sequence `sequence`, whose content `fill` appends.
pub(super) fn packet(out: &mut Vec<u8>, sequence: u64, fill: impl FnOnce(&mut Vec<u8>)) {
    message(out, trace::PACKET, |out| {
        fill(out);
        uint(out, trace_packet::TRUSTED_PACKET_SEQUENCE_ID, sequence);
    });
}

/// Appends the timestamp of a packet, ns of `clock`, a value of the enum `BuiltinClock`. BOOTTIME need not be
/// named.
pub(super) fn timestamp(out: &mut Vec<u8>, ts: u64, clock: u64) {
    uint(out, trace_packet::TIMESTAMP, ts);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_inputs_are_not_handed_out_and_no_id_is_handed_out_twice() {
        let (mut sequences, mut uuids) = (IdFilter::default(), IdFilter::default());
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
}
