//! Perfetto traces whose packets pass through to a Perfetto trace.
//!
//! - **One trace, nothing added** ([`copy`]): every packet is written as it is, in order.
//! - **Something is added** ([`PassedInputs`]): what tracebridge adds is written first, in packet sequences
//!   and on tracks of its own, whose ids no input uses. The packets of the inputs follow, as they are and in
//!   order. Perfetto sorts events by time, but in a trace that was written while it was recorded it does so
//!   piece by piece, and drops an event that comes behind the piece it belongs to. An event at the beginning
//!   of the file is behind nothing.
//! - **Several traces**: the packets of one trace follow those of the other. In the second and later traces
//!   two things change: the id of a packet sequence that an earlier trace has too, and the uuid of a track if
//!   an earlier trace gives that uuid to another track. A process or thread that two traces describe by one
//!   uuid stays one track.
//!
//! **Timestamps never change.** Each packet says in which clock its time is. A clock of a packet sequence (64
//! to 127) stays with its sequence, whatever that sequence's id. The clocks of the machine (BOOTTIME,
//! MONOTONIC …) are the same in all traces of one machine since it was booted, and Perfetto turns one into
//! the other by the clock snapshots of all traces together: so an app's own trace, which has times in
//! MONOTONIC and no snapshot, is placed by the snapshots of the system's trace. A clock of a sequence's own
//! could not move a trace: the events of the kernel do not go by the clock of their sequence. Traces of
//! different machines, or from before and after a reboot, have no clock in common, and are not related to
//! each other here either.
//!
//! [`PacketRewriter`] changes single fields of packets that pass through: the sequence id, uuids of tracks,
//! and obfuscated names. Every other field keeps its bytes and its place.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;

use super::super::Out;
use super::packet::{FreeIds, IdFilter};
use crate::art::Mapping;
use crate::formats::input::Input;
use crate::formats::perfetto::fields::{
    event_name, ftrace_event, ftrace_event_bundle, interned_data, print_ftrace_event, process_descriptor,
    thread_descriptor, trace, trace_packet, trace_packet_defaults, track_descriptor, track_event,
    track_event_defaults,
};
use crate::formats::perfetto::scan::TraceScan;
use crate::formats::perfetto::trace_packets::packets;
use crate::formats::perfetto::trace_streams::decompress;
use crate::formats::perfetto::wire::read::{WireValue, fields, last_value};
use crate::formats::perfetto::wire::write::{bytes, string, uint};
use crate::formats::unpack_budget::UnpackBudget;
use crate::formats::{FormatId, Release, has_format};
use crate::varint;

/// Packets are written in pieces of about this size, bytes.
const PIECE_BYTES: usize = 4 << 20;

/// Copies every packet of `input` to `out`, and counts what the packets hold.
///
/// # Errors
/// Errors of writing.
pub(in crate::export) fn copy(input: &Input, out: &mut Out) -> io::Result<TraceScan> {
    let mut scan = TraceScan::new(input.unpack_budget.clone());
    let mut all = packets(input);
    let mut piece = 0..0;
    for packet in all.by_ref() {
        if packet.range.start != piece.end || piece.len() >= PIECE_BYTES {
            out.write_all(&input[piece.clone()])?;
            input.release(piece);
            piece = packet.range.start..packet.range.start;
        }
        piece.end = packet.range.end;
        scan.packet(packet.body, packet.range.start as u64);
    }
    out.write_all(&input[piece])?;
    scan.add_damage(all.damage());
    out.flush()?;
    Ok(scan)
}

/// The Perfetto traces among the inputs of a timeline.
pub(super) struct PassedInputs<'a> {
    list: Vec<PassedInput<'a>>,
    /// Whether one of the traces has a `ClockSnapshot`.
    pub(super) has_clock_snapshots: bool,
}

struct PassedInput<'a> {
    /// The number among the inputs.
    index: usize,
    input: &'a Input,
    changes: PacketRewriter<'a>,
}

impl<'a> PassedInputs<'a> {
    /// Finds the Perfetto traces among `inputs`, and the ids that none of them uses. `mapping` gives
    /// obfuscated names back.
    pub(super) fn new(inputs: &'a [Input], mapping: Option<&'a Mapping<'a>>) -> (PassedInputs<'a>, FreeIds) {
        let perfetto: Vec<(usize, &Input)> =
            inputs.iter().enumerate().filter(|(_, input)| has_format(input, FormatId::Perfetto)).collect();
        let bytes = perfetto.iter().map(|(_, input)| input.len() as u64).sum();
        let mut sequences = IdFilter::for_bytes(bytes);
        let mut uuids = IdFilter::for_bytes(bytes);
        let traces: Vec<(usize, &Input, TraceIds)> = perfetto
            .into_iter()
            .map(|(index, input)| {
                (index, input, TraceIds::read(input, input.unpack_budget.afresh(), &mut uuids))
            })
            .collect();
        for (_, _, ids) in &traces {
            ids.sequences.iter().for_each(|id| sequences.add(*id));
        }
        let has_clock_snapshots = traces.iter().any(|(_, _, ids)| ids.has_clock_snapshots);
        let mut free = FreeIds::beside(sequences, uuids);
        let mut earlier = EarlierIds::default();
        let list = traces.into_iter().map(|(index, input, ids)| {
            let changes = PacketRewriter { mapping, ..earlier.changes(&ids, &mut free) };
            PassedInput { index, input, changes }
        });
        (PassedInputs { list: list.collect(), has_clock_snapshots }, free)
    }

    pub(super) fn contains(&self, index: usize) -> bool {
        self.list.iter().any(|passed| passed.index == index)
    }

    /// Hands the packets of all traces to `write`, in pieces.
    pub(super) fn write(&self, write: &mut dyn FnMut(&mut Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        for PassedInput { input, changes, .. } in &self.list {
            let budget = input.unpack_budget.afresh();
            let mut out = Vec::new();
            let mut released = 0;
            for packet in packets(input) {
                let end = packet.range.end;
                let encoded = &input[packet.range];
                if changes.changes_nothing() {
                    out.extend_from_slice(encoded);
                } else {
                    changes.packet(encoded, packet.body, &mut out, &budget);
                }
                if out.len() >= PIECE_BYTES {
                    write(&mut out)?;
                    out.clear();
                    input.release(released..end);
                    released = end;
                }
            }
            write(&mut out)?;
        }
        Ok(())
    }
}

/// The ids of the traces before the current one.
#[derive(Default)]
struct EarlierIds {
    sequences: HashSet<u64>,
    /// The described tracks, each with the hash that [`TraceIds::described`] has.
    tracks: HashMap<u64, u64>,
}

impl EarlierIds {
    /// The changes that keep the ids of the next trace apart from those of the earlier ones.
    fn changes(&mut self, ids: &TraceIds, free: &mut FreeIds) -> PacketRewriter<'static> {
        let mut changes = PacketRewriter::default();
        for id in &ids.sequences {
            if *id != 0 && self.sequences.contains(id) {
                changes.sequences.insert(*id, free.sequence());
            }
        }
        for (uuid, identity) in &ids.described {
            if self.tracks.get(uuid).is_some_and(|earlier| earlier != identity) {
                changes.tracks.insert(*uuid, free.track(*uuid));
            }
        }
        self.sequences
            .extend(ids.sequences.iter().map(|id| changes.sequences.get(id).copied().unwrap_or(*id)));
        for (uuid, identity) in &ids.described {
            let uuid = changes.tracks.get(uuid).unwrap_or(uuid);
            self.tracks.entry(*uuid).or_insert(*identity);
        }
        changes
    }
}

/// The ids of one trace.
#[derive(Default)]
struct TraceIds {
    /// Every sequence id once, in the order of the trace.
    sequences: Vec<u64>,
    seen_sequences: HashSet<u64>,
    /// For each described track a hash of its process, thread or name. A hash that differs means another
    /// track.
    described: HashMap<u64, u64>,
    /// Whether the trace has a `ClockSnapshot`.
    has_clock_snapshots: bool,
}

impl TraceIds {
    /// Reads the ids of all packets of `data`, compressed packets among them. Adds every uuid of a track,
    /// described or not, to `uuids`. Compressed packets are unpacked within `budget`.
    fn read(data: &[u8], budget: UnpackBudget, uuids: &mut IdFilter) -> TraceIds {
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

/// The changes to the packets of one trace.
#[derive(Default)]
pub(super) struct PacketRewriter<'m> {
    /// The new id of each packet sequence that another trace has too.
    pub(super) sequences: HashMap<u64, u64>,
    /// The new uuid of each track that has the uuid of another track in another trace.
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
