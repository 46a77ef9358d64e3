//! Rewrites single fields of packets that pass through: the sequence id, uuids of tracks, and obfuscated
//! names. Every other field keeps its bytes and its place.

use std::collections::HashMap;

use crate::art::Mapping;
use crate::formats::perfetto::fields::{
    event_name, ftrace_event, ftrace_event_bundle, interned_data, print_ftrace_event, trace, trace_packet,
    trace_packet_defaults, track_descriptor, track_event, track_event_defaults,
};
use crate::formats::perfetto::packets::decompress;
use crate::formats::perfetto::wire::read::{WireValue, fields};
use crate::formats::perfetto::wire::write::{bytes, string, uint};
use crate::formats::unpack_budget::UnpackBudget;
use crate::varint;

/// The changes to the packets of one trace.
#[derive(Default)]
pub(super) struct PacketRewriter<'m> {
    /// The new id of each packet sequence that another trace has too.
    pub(super) sequences: HashMap<u64, u64>,
    /// The new uuid of each track whose uuid is another track's in another trace.
    pub(super) tracks: HashMap<u64, u64>,
    /// Gives obfuscated names back.
    pub(super) mapping: Option<&'m Mapping<'m>>,
}

/// Which fields of a message are changed, and how.
type RewriteField<'f> = &'f mut dyn FnMut(u32, WireValue<'_>, &mut Vec<u8>) -> bool;

/// Appends the message `body` as field `number`, with the fields that `change` changes. `change` appends the
/// changed field and returns `true`, or appends nothing and returns `false`. Every other field, and bytes
/// behind a broken field, are copied. Appends nothing and returns `false` if no field changes.
fn nested(number: u32, body: &[u8], out: &mut Vec<u8>, change: RewriteField<'_>) -> bool {
    let mut all = fields(body);
    let mut new = Vec::new();
    let mut changed = Vec::new();
    let mut copied = 0;
    let mut start = 0;
    while let Some((number, value)) = all.next() {
        let end = body.len() - all.rest().len();
        if change(number, value, &mut changed) {
            new.extend_from_slice(&body[copied..start]);
            new.append(&mut changed);
            copied = end;
        }
        start = end;
    }
    if copied == 0 {
        return false;
    }
    new.extend_from_slice(&body[copied..]);
    bytes(out, number, &new);
    true
}

impl PacketRewriter<'_> {
    /// Whether every packet stays as it is.
    pub(super) fn changes_nothing(&self) -> bool {
        self.sequences.is_empty() && self.tracks.is_empty() && self.mapping.is_none()
    }

    /// Appends a packet with its changes: the field of `Trace` that encodes it, and its content. A packet of
    /// compressed packets is unpacked within `budget`.
    pub(super) fn packet(&self, encoded: &[u8], packet: &[u8], out: &mut Vec<u8>, budget: &UnpackBudget) {
        for (number, value) in fields(packet) {
            let mut unpacked = Vec::new();
            if decompress(number, value.bytes(), budget, &mut unpacked).is_some() {
                let mut inner = fields(&unpacked);
                let mut start = 0;
                while let Some((number, packet)) = inner.next() {
                    let end = unpacked.len() - inner.rest().len();
                    if number == trace::PACKET {
                        self.plain_packet(&unpacked[start..end], packet.bytes(), out);
                    }
                    start = end;
                }
                return;
            }
        }
        self.plain_packet(encoded, packet, out);
    }

    fn plain_packet(&self, encoded: &[u8], packet: &[u8], out: &mut Vec<u8>) {
        if !nested(trace::PACKET, packet, out, &mut |number, value, out| self.field(number, value, out)) {
            out.extend_from_slice(encoded);
        }
    }

    /// Changes a field of a packet.
    fn field(&self, number: u32, value: WireValue<'_>, out: &mut Vec<u8>) -> bool {
        let body = value.bytes();
        match number {
            trace_packet::TRUSTED_PACKET_SEQUENCE_ID => match self.sequences.get(&value.number()) {
                Some(id) => {
                    uint(out, number, *id);
                    true
                }
                None => false,
            },
            trace_packet::TRACK_DESCRIPTOR if !self.tracks.is_empty() => {
                nested(number, body, out, &mut |number, value, out| {
                    let is_uuid = matches!(number, track_descriptor::UUID | track_descriptor::PARENT_UUID);
                    is_uuid && self.uuid(number, value, out)
                })
            }
            trace_packet::TRACK_EVENT if !self.tracks.is_empty() || self.mapping.is_some() => {
                nested(number, body, out, &mut |number, value, out| self.track_event(number, value, out))
            }
            trace_packet::TRACE_PACKET_DEFAULTS if !self.tracks.is_empty() => {
                nested(number, body, out, &mut |number, value, out| {
                    number == trace_packet_defaults::TRACK_EVENT_DEFAULTS
                        && nested(number, value.bytes(), out, &mut |number, value, out| {
                            self.event_default(number, value, out)
                        })
                })
            }
            trace_packet::INTERNED_DATA if self.mapping.is_some() => {
                self.rename_at(number, &[interned_data::EVENT_NAMES, event_name::NAME], body, out)
            }
            trace_packet::FTRACE_EVENTS if self.mapping.is_some() => {
                let path = [ftrace_event_bundle::EVENT, ftrace_event::PRINT, print_ftrace_event::BUF];
                self.rename_at(number, &path, body, out)
            }
            _ => false,
        }
    }

    fn track_event(&self, number: u32, value: WireValue<'_>, out: &mut Vec<u8>) -> bool {
        match number {
            track_event::TRACK_UUID
            | track_event::EXTRA_COUNTER_TRACK_UUIDS
            | track_event::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS => self.uuid(number, value, out),
            track_event::NAME => self.rename(number, value.bytes(), out),
            _ => false,
        }
    }

    fn event_default(&self, number: u32, value: WireValue<'_>, out: &mut Vec<u8>) -> bool {
        match number {
            track_event_defaults::TRACK_UUID
            | track_event_defaults::EXTRA_COUNTER_TRACK_UUIDS
            | track_event_defaults::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS => self.uuid(number, value, out),
            _ => false,
        }
    }

    /// Appends a uuid, or a packed array of uuids, if one of them changes.
    fn uuid(&self, number: u32, value: WireValue<'_>, out: &mut Vec<u8>) -> bool {
        let new = |uuid: u64| self.tracks.get(&uuid).copied();
        match value {
            WireValue::Number(uuid) => match new(uuid) {
                Some(uuid) => {
                    uint(out, number, uuid);
                    true
                }
                None => false,
            },
            WireValue::Bytes(array) => {
                if !varint::all(array).any(|uuid| new(uuid).is_some()) {
                    return false;
                }
                let mut packed = Vec::new();
                varint::all(array).for_each(|uuid| varint::push(&mut packed, new(uuid).unwrap_or(uuid)));
                bytes(out, number, &packed);
                true
            }
        }
    }

    /// Appends the original name of `name` as field `number`, if the mapping knows it.
    fn rename(&self, number: u32, name: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(mapping) = self.mapping else { return false };
        match std::str::from_utf8(name).ok().and_then(|name| mapping.text(name)) {
            Some(original) => {
                string(out, number, original.as_bytes());
                true
            }
            None => false,
        }
    }

    /// Appends the message `body` as field `number`, with the names at `path` renamed: the numbers of the
    /// messages inside each other, and of the name. Appends nothing if no name changes.
    fn rename_at(&self, number: u32, path: &[u32], body: &[u8], out: &mut Vec<u8>) -> bool {
        nested(number, body, out, &mut |number, value, out| match path {
            [last] => number == *last && self.rename(number, value.bytes(), out),
            [first, rest @ ..] => number == *first && self.rename_at(number, rest, value.bytes(), out),
            [] => false,
        })
    }
}
