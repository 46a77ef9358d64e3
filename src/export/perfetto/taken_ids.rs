//! The packet sequence ids and track uuids that traces use.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::formats::perfetto::fields::{
    process_descriptor, thread_descriptor, trace_packet, trace_packet_defaults, track_descriptor,
    track_event, track_event_defaults,
};
use crate::formats::perfetto::packets::decompress;
use crate::formats::perfetto::trace_packets::packets;
use crate::formats::perfetto::wire::read::{WireValue, fields, last_value};
use crate::formats::unpack_budget::UnpackBudget;

/// The least and the most bits of an [`IdFilter`]: 128 KiB and 8 MiB.
const MIN_FILTER_BITS: u64 = 1 << 20;
const MAX_FILTER_BITS: u64 = 1 << 26;

/// A set of ids in bounded memory. An id that was added is always found. An id that was not added is found
/// too if its bit is that of another one, so callers that look for a free id try the next one then.
pub(super) struct IdFilter {
    bits: Vec<u64>,
}

impl Default for IdFilter {
    fn default() -> IdFilter {
        IdFilter::for_bytes(0)
    }
}

/// A number that depends on all bits of `id` (the finalizer of MurmurHash3).
pub(super) fn mixed(id: u64) -> u64 {
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

    pub(super) fn contains(&self, id: u64) -> bool {
        let (word, bit) = self.place(id);
        self.bits[word] & bit != 0
    }
}

/// The ids of one trace.
#[derive(Default)]
pub(super) struct TraceIds {
    /// Every sequence id once, in the order of the trace.
    pub(super) sequences: Vec<u64>,
    seen_sequences: HashSet<u64>,
    /// What each described track is: a hash of its process, thread or name. A hash that differs means another
    /// track.
    pub(super) described: HashMap<u64, u64>,
    /// Whether the trace has a `ClockSnapshot`.
    pub(super) has_clock_snapshots: bool,
}

impl TraceIds {
    /// Reads the ids of all packets of `data`, compressed packets among them. Adds every uuid of a track,
    /// described or not, to `uuids`. Compressed packets are unpacked within `budget`.
    pub(super) fn of(data: &[u8], budget: UnpackBudget, uuids: &mut IdFilter) -> TraceIds {
        let mut ids = TraceIds::default();
        ids.packets(data, uuids, Some(&budget));
        ids
    }

    /// `budget` is `None` inside of compressed packets.
    fn packets(&mut self, data: &[u8], uuids: &mut IdFilter, budget: Option<&UnpackBudget>) {
        for packet in packets(data) {
            for (number, value) in fields(packet.body) {
                match number {
                    trace_packet::TRUSTED_PACKET_SEQUENCE_ID => self.sequence(value.number()),
                    trace_packet::TRACK_DESCRIPTOR => self.descriptor(value.bytes(), uuids),
                    trace_packet::TRACK_EVENT => {
                        let track = last_value(value.bytes(), track_event::TRACK_UUID);
                        track.into_iter().for_each(|uuid| uuids.add(uuid.number()));
                    }
                    trace_packet::TRACE_PACKET_DEFAULTS => {
                        let defaults = last_value(value.bytes(), trace_packet_defaults::TRACK_EVENT_DEFAULTS);
                        let defaults = defaults.map_or(&[][..], WireValue::bytes);
                        let track = last_value(defaults, track_event_defaults::TRACK_UUID);
                        track.into_iter().for_each(|uuid| uuids.add(uuid.number()));
                    }
                    trace_packet::CLOCK_SNAPSHOT => self.has_clock_snapshots = true,
                    trace_packet::COMPRESSED_PACKETS | trace_packet::ZSTD_COMPRESSED_PACKETS => {
                        let Some(budget) = budget else { continue };
                        let mut unpacked = Vec::new();
                        let _ = decompress(number, value.bytes(), budget, &mut unpacked);
                        self.packets(&unpacked, uuids, None);
                    }
                    _ => {}
                }
            }
        }
    }

    fn sequence(&mut self, id: u64) {
        if self.seen_sequences.insert(id) {
            self.sequences.push(id);
        }
    }

    fn descriptor(&mut self, descriptor: &[u8], uuids: &mut IdFilter) {
        let Some(uuid) = last_value(descriptor, track_descriptor::UUID).map(WireValue::number) else {
            return;
        };
        uuids.add(uuid);
        let number = |message: &[u8], n| last_value(message, n).map(WireValue::number);
        let nested = |n| last_value(descriptor, n).map(WireValue::bytes);
        let mut hasher = DefaultHasher::new();
        if let Some(thread) = nested(track_descriptor::THREAD) {
            ("thread", number(thread, thread_descriptor::TID)).hash(&mut hasher);
        } else if let Some(process) = nested(track_descriptor::PROCESS) {
            ("process", number(process, process_descriptor::PID)).hash(&mut hasher);
        } else {
            let names =
                [track_descriptor::NAME, track_descriptor::STATIC_NAME, track_descriptor::ATRACE_NAME];
            ("track", names.map(nested), number(descriptor, track_descriptor::PARENT_UUID)).hash(&mut hasher);
        }
        self.described.entry(uuid).or_insert(hasher.finish());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
