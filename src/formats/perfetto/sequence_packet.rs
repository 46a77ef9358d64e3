//! The fields by which a packet takes part in its packet sequence: time, interned data, defaults, and what
//! was lost before it (protos/perfetto/trace/trace_packet.proto).

use super::fields::{sequence_flags, trace_packet};
use super::wire::read::{WireValue, fields};

/// The part of a packet that concerns its sequence.
#[derive(Default)]
pub(super) struct SequencePacket<'a> {
    pub(super) sequence: u64,
    pub(super) timestamp: Option<u64>,
    pub(super) clock: Option<u64>,
    flags: u64,
    /// Whether the state of the sequence begins anew with this packet.
    pub(super) is_cleared: bool,
    pub(super) is_after_loss: bool,
    pub(super) interned: Option<&'a [u8]>,
    pub(super) defaults: Option<&'a [u8]>,
    pub(super) snapshot: Option<&'a [u8]>,
    pub(super) thread: Option<&'a [u8]>,
}

impl<'a> SequencePacket<'a> {
    /// Reads a packet. All other fields go to `other`.
    #[inline]
    pub(super) fn read(packet: &'a [u8], mut other: impl FnMut(u32, WireValue<'a>)) -> SequencePacket<'a> {
        let mut parts = SequencePacket::default();
        for (field, value) in fields(packet) {
            match field {
                trace_packet::TRUSTED_PACKET_SEQUENCE_ID => parts.sequence = value.number(),
                trace_packet::TIMESTAMP => parts.timestamp = Some(value.number()),
                trace_packet::TIMESTAMP_CLOCK_ID => parts.clock = Some(value.number()),
                trace_packet::SEQUENCE_FLAGS => parts.flags = value.number(),
                trace_packet::INCREMENTAL_STATE_CLEARED => parts.is_cleared = value.number() != 0,
                trace_packet::PREVIOUS_PACKET_DROPPED => parts.is_after_loss = value.number() != 0,
                trace_packet::INTERNED_DATA => parts.interned = Some(value.bytes()),
                trace_packet::TRACE_PACKET_DEFAULTS => parts.defaults = Some(value.bytes()),
                trace_packet::CLOCK_SNAPSHOT => parts.snapshot = Some(value.bytes()),
                trace_packet::THREAD_DESCRIPTOR => parts.thread = Some(value.bytes()),
                field => other(field, value),
            }
        }
        parts.is_cleared |= parts.flags & sequence_flags::INCREMENTAL_STATE_CLEARED != 0;
        parts
    }

    /// Whether the packet cannot be read without the state of its sequence.
    pub(super) fn needs_state(&self) -> bool {
        self.flags & sequence_flags::NEEDS_INCREMENTAL_STATE != 0
    }
}
