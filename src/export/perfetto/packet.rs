//! `TracePacket`, the message of which a Perfetto trace consists.

use crate::formats::perfetto::fields::{trace, trace_packet};
use crate::formats::perfetto::wire::write::{message, uint};

/// The packet sequence of all packets that need no sequence of their own.
pub(super) const SEQUENCE: u64 = 1;

/// Appends a `TracePacket` whose content `fill` appends.
pub(super) fn packet(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    message(out, trace::PACKET, |out| {
        fill(out);
        uint(out, trace_packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
    });
}
