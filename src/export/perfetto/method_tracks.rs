//! Writes method slices as `TrackEvent` messages.
//!
//! Each thread of a method trace gets a track and a packet sequence of its own. Method names are interned
//! once in each sequence, and timestamps are deltas, so that a packet takes few bytes.
//!
//! The packets are made on the writer thread. Slices go there in batches of many thousand: to hand a few
//! over costs more than to make their packets.

use super::packet::{FreeIds, packet};
use crate::clock::Timestamp;
use crate::formats::perfetto::fields::{
    clock_snapshot, clock_snapshot_clock, event_name, interned_data, process_descriptor, sequence_flags,
    thread_descriptor, trace, trace_packet, trace_packet_defaults, track_descriptor, track_event,
    track_event_defaults, track_event_type,
};
use crate::formats::perfetto::track_table::METHOD_TRACK;
use crate::formats::perfetto::wire::write::{bytes, int, message, string, uint};
use crate::formats::perfetto::wire::{LENGTH_DELIMITED, VARINT, tag};
use crate::timeline::{Edge, EdgeKind, MethodName, MethodThread};
use crate::varint;

/// The clock of the packet timestamps. Clocks 64 to 127 belong to a packet sequence, and this one is
/// incremental: each timestamp is the difference to the one before (`ClockSnapshot` in clock_snapshot.proto).
const DELTA_CLOCK: u64 = 64;
/// The track of a thread gets the uuid `sequence << TRACK_SHIFT`, and its parent one of the two uuids behind
/// it, unless an input uses them.
const TRACK_SHIFT: u32 = 8;

/// The output is enlarged for the packets of this many edges at a time.
const EDGES_AT_ONCE: usize = 32;

/// The threads and method names of all method traces.
#[derive(Default)]
pub(super) struct MethodTracks {
    /// Indexed by method id.
    names: Vec<Vec<u8>>,
    /// Indexed by [`MethodThread::index`].
    tracks: Vec<Option<MethodTrack>>,
}

/// The track of one thread of a method trace.
pub(super) struct MethodTrack {
    sequence: u64,
    /// The uuid.
    track: u64,
    /// The uuid of the track's parent: of the thread, or of its process if the thread is not known.
    parent: u64,
    /// The clock of the timeline, a value of the enum `BuiltinClock`.
    clock: u64,
    /// [`tail_fields`]: at most eight bytes.
    tail: ShortBytes,
    thread: MethodThread,
    started: bool,
    /// The time of the last packet.
    last: Timestamp,
    /// One bit for each method: whether the sequence has interned the method's name.
    interned: Vec<u64>,
}

impl MethodTracks {
    /// Gives the method with this id its name.
    fn set_name(&mut self, id: usize, name: Vec<u8>) {
        if self.names.len() <= id {
            self.names.resize(id + 1, Vec::new());
        }
        self.names[id] = name;
    }

    /// Adds the track of the thread with this index.
    fn set_track(&mut self, index: usize, track: MethodTrack) {
        if self.tracks.len() <= index {
            self.tracks.resize_with(index + 1, || None);
        }
        self.tracks[index] = Some(track);
    }

    /// Appends the packets for `edges` of the thread with the index `thread`.
    fn edges(&mut self, out: &mut Vec<u8>, thread: u32, edges: &[Edge]) {
        let Some(Some(track)) = self.tracks.get_mut(thread as usize) else { return };
        let Some(first) = edges.first() else { return };
        if !track.started {
            track.start(out, first.ts);
        }
        track.edges(out, edges, &self.names);
    }
}

impl MethodTrack {
    /// The track of a thread, whose slices are in a packet sequence and on tracks with free `ids`. `clock` is
    /// the clock of the timeline, a value of the enum `BuiltinClock`.
    pub(super) fn new(thread: &MethodThread, ids: &mut FreeIds, clock: u64) -> MethodTrack {
        let sequence = ids.sequence();
        let track = ids.track(sequence << TRACK_SHIFT);
        let parent = ids.track((sequence << TRACK_SHIFT) + if thread.tid.is_some() { 1 } else { 2 });
        let mut tail = Vec::new();
        tail_fields(&mut tail, sequence);
        MethodTrack {
            sequence,
            track,
            parent,
            clock,
            tail: ShortBytes::new(&tail),
            thread: thread.clone(),
            started: false,
            last: Timestamp::MIN,
            interned: Vec::new(),
        }
    }

    fn edges(&mut self, out: &mut Vec<u8>, mut edges: &[Edge], names: &[Vec<u8>]) {
        while !edges.is_empty() {
            let mut end = out.len();
            out.resize(end + edges.len().min(EDGES_AT_ONCE) * size_of::<PacketRoom>(), 0);
            while let Some((edge, rest)) = edges.split_first()
                && let Some(room) = out[end..].first_chunk_mut()
                && let Some(len) = self.short_packet(room, edge)
            {
                end += len;
                edges = rest;
            }
            out.truncate(end);
            if let Some((edge, rest)) = edges.split_first() {
                self.packet(out, edge, names);
                edges = rest;
            }
        }
    }

    /// Writes the packet of an edge whose name is interned and whose numbers are small, as nearly all are.
    /// Returns the packet's length. For any other edge nothing is written, and `None` is returned.
    #[inline(always)]
    fn short_packet(&mut self, room: &mut PacketRoom, edge: &Edge) -> Option<usize> {
        let delta = edge.ts.0.wrapping_sub(self.last.0);
        let cpu_us = edge.cpu.unwrap_or(0) / 1000;
        let name = name_iid(edge.method.0);
        let enters = edge.kind == EdgeKind::Enter;
        let is_new = enters & !self.has_interned(edge.method.0);
        if (delta | cpu_us | name) >= SHORT_VARINT_LIMIT || is_new {
            return None;
        }
        self.last = edge.ts;
        let ty = if enters { track_event_type::SLICE_BEGIN } else { track_event_type::SLICE_END };
        let ty = ShortBytes::field(tag(track_event::TYPE, VARINT), ty);
        let name = ShortBytes::field(tag(track_event::NAME_IID, VARINT), name).only_if(enters);
        let cpu = ShortBytes::field(tag(track_event::THREAD_TIME_ABSOLUTE_US, VARINT), cpu_us);
        let cpu = cpu.only_if(edge.cpu.is_some());
        let event_len = (ty.len + name.len + cpu.len) as u64;
        let event = ShortBytes::field(tag(trace_packet::TRACK_EVENT, LENGTH_DELIMITED), event_len);
        let time = ShortBytes::field(tag(trace_packet::TIMESTAMP, VARINT), delta);
        let packet_len = time.len as u64 + event.len as u64 + event_len + self.tail.len as u64;
        let head = ShortBytes::field(tag(trace::PACKET, LENGTH_DELIMITED), packet_len).then(time);
        Some(write_pieces(room, [head, event.then(ty), name, cpu, self.tail]))
    }

    /// Appends the packet of any edge, and gives the edge's method its name.
    fn packet(&mut self, out: &mut Vec<u8>, edge: &Edge, names: &[Vec<u8>]) {
        if edge.ts < self.last {
            self.set_clock(out, edge.ts);
        }
        let delta = edge.ts - self.last;
        self.last = edge.ts;
        let enter = (edge.kind == EdgeKind::Enter).then_some(edge.method.0);
        let ty = if enter.is_some() { track_event_type::SLICE_BEGIN } else { track_event_type::SLICE_END };
        message(out, trace::PACKET, |out| {
            uint(out, trace_packet::TIMESTAMP, delta);
            message(out, trace_packet::TRACK_EVENT, |out| {
                uint(out, track_event::TYPE, ty);
                if let Some(id) = enter {
                    uint(out, track_event::NAME_IID, name_iid(id));
                }
                if let Some(cpu_ns) = edge.cpu {
                    uint(out, track_event::THREAD_TIME_ABSOLUTE_US, cpu_ns / 1000);
                }
            });
            tail_fields(out, self.sequence);
            if let Some(id) = enter.filter(|id| !self.has_interned(*id)) {
                self.mark_interned(id);
                intern(out, id, names);
            }
        });
    }

    /// Whether the sequence has interned this method's name.
    #[inline(always)]
    fn has_interned(&self, id: u32) -> bool {
        self.interned.get(id as usize / 64).is_some_and(|word| word >> (id % 64) & 1 != 0)
    }

    fn mark_interned(&mut self, id: u32) {
        let word = id as usize / 64;
        if self.interned.len() <= word {
            self.interned.resize(word + 1, 0);
        }
        self.interned[word] |= 1 << (id % 64);
    }

    /// Describes the track, and begins the sequence at the time `ts`.
    fn start(&mut self, out: &mut Vec<u8>, ts: Timestamp) {
        self.started = true;
        let parent = self.describe_parent(out);
        let name = match self.thread.tid {
            Some(_) => METHOD_TRACK.to_owned(),
            None => format!("{METHOD_TRACK}: {} (id {})", self.thread.name, self.thread.trace_id),
        };
        packet(out, self.sequence, |out| {
            message(out, trace_packet::TRACK_DESCRIPTOR, |out| {
                uint(out, track_descriptor::UUID, self.track);
                string(out, track_descriptor::NAME, name.as_bytes());
                if let Some(parent) = parent {
                    uint(out, track_descriptor::PARENT_UUID, parent);
                }
                if let Some(doubt) = &self.thread.doubt {
                    string(out, track_descriptor::DESCRIPTION, doubt.to_string().as_bytes());
                }
            });
        });
        self.set_clock(out, ts);
        message(out, trace::PACKET, |out| {
            uint(out, trace_packet::TRUSTED_PACKET_SEQUENCE_ID, self.sequence);
            uint(out, trace_packet::SEQUENCE_FLAGS, sequence_flags::INCREMENTAL_STATE_CLEARED);
            message(out, trace_packet::TRACE_PACKET_DEFAULTS, |out| {
                message(out, trace_packet_defaults::TRACK_EVENT_DEFAULTS, |out| {
                    uint(out, track_event_defaults::TRACK_UUID, self.track);
                });
                uint(out, trace_packet_defaults::TIMESTAMP_CLOCK_ID, DELTA_CLOCK);
            });
        });
        // Clearing the incremental state forgets the clock, so the clock is set once more.
        self.set_clock(out, ts);
    }

    /// Describes the track of the thread, or of the process if the thread is not known. Returns the uuid.
    fn describe_parent(&self, out: &mut Vec<u8>) -> Option<u64> {
        let pid = self.thread.tgid?;
        packet(out, self.sequence, |out| {
            message(out, trace_packet::TRACK_DESCRIPTOR, |out| {
                uint(out, track_descriptor::UUID, self.parent);
                match self.thread.tid {
                    Some(tid) => message(out, track_descriptor::THREAD, |out| {
                        int(out, thread_descriptor::PID, pid);
                        int(out, thread_descriptor::TID, tid);
                        string(out, thread_descriptor::THREAD_NAME, self.thread.name.as_bytes());
                    }),
                    None => message(out, track_descriptor::PROCESS, |out| {
                        int(out, process_descriptor::PID, pid);
                    }),
                }
            });
        });
        Some(self.parent)
    }

    /// Sets the sequence's delta clock to `ts` of the timeline's clock.
    fn set_clock(&mut self, out: &mut Vec<u8>, ts: Timestamp) {
        message(out, trace::PACKET, |out| {
            message(out, trace_packet::CLOCK_SNAPSHOT, |out| {
                for (id, incremental) in [(self.clock, false), (DELTA_CLOCK, true)] {
                    message(out, clock_snapshot::CLOCKS, |out| {
                        uint(out, clock_snapshot_clock::CLOCK_ID, id);
                        uint(out, clock_snapshot_clock::TIMESTAMP, ts.0);
                        if incremental {
                            uint(out, clock_snapshot_clock::IS_INCREMENTAL, 1);
                        }
                    });
                }
                uint(out, clock_snapshot::PRIMARY_TRACE_CLOCK, self.clock);
            });
            uint(out, trace_packet::TRUSTED_PACKET_SEQUENCE_ID, self.sequence);
            uint(out, trace_packet::TIMESTAMP_CLOCK_ID, self.clock);
            uint(out, trace_packet::TIMESTAMP, ts.0);
        });
        self.last = ts;
    }
}

/// Appends the two fields that every packet of a sequence with slices ends with.
fn tail_fields(out: &mut Vec<u8>, sequence: u64) {
    uint(out, trace_packet::TRUSTED_PACKET_SEQUENCE_ID, sequence);
    uint(out, trace_packet::SEQUENCE_FLAGS, sequence_flags::NEEDS_INCREMENTAL_STATE);
}

/// The interning id of a method's name: 0 is not a valid id.
fn name_iid(method: u32) -> u64 {
    u64::from(method) + 1
}

/// Appends the `InternedData` that gives a method's name.
#[cold]
fn intern(out: &mut Vec<u8>, id: u32, names: &[Vec<u8>]) {
    message(out, trace_packet::INTERNED_DATA, |out| {
        message(out, interned_data::EVENT_NAMES, |out| {
            uint(out, event_name::IID, name_iid(id));
            bytes(out, event_name::NAME, names.get(id as usize).map_or(&[], |n| n));
        });
    });
}

/// The number of edges that a batch should have.
const BATCH_EDGES: usize = 16 << 10;

/// Names, threads and edges that the writer thread does not have yet.
#[derive(Default)]
pub(super) struct MethodBatch {
    names: Vec<(usize, Vec<u8>)>,
    tracks: Vec<(usize, MethodTrack)>,
    edges: Vec<Edge>,
    /// A thread's index and the end of its part of `edges`, in the order in which the edges came.
    parts: Vec<(u32, usize)>,
}

impl MethodBatch {
    /// Adds the name of the method with this id.
    pub(super) fn method(&mut self, id: usize, name: &MethodName<'_>) {
        let dot = if name.class.is_empty() { "" } else { "." };
        self.names.push((id, format!("{}{dot}{}", name.class, name.name).into_bytes()));
    }

    /// Adds the track of the thread with this index.
    pub(super) fn thread(&mut self, index: u32, track: MethodTrack) {
        self.tracks.push((index as usize, track));
    }

    /// Adds edges of a thread. Returns whether the batch should be handed over.
    pub(super) fn edges(&mut self, thread: u32, edges: &[Edge]) -> bool {
        if self.edges.capacity() == 0 {
            self.edges.reserve(BATCH_EDGES + edges.len());
        }
        self.edges.extend_from_slice(edges);
        self.parts.push((thread, self.edges.len()));
        self.edges.len() >= BATCH_EDGES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.tracks.is_empty() && self.names.is_empty()
    }

    /// Appends the packets for the batch's edges.
    pub(super) fn write(self, tracks: &mut MethodTracks, out: &mut Vec<u8>) {
        for (id, name) in self.names {
            tracks.set_name(id, name);
        }
        for (index, track) in self.tracks {
            tracks.set_track(index, track);
        }
        let mut start = 0;
        for (thread, end) in self.parts {
            tracks.edges(out, thread, &self.edges[start..end]);
            start = end;
        }
    }
}

/// Numbers below this have varints that [`ShortBytes`] can encode.
const SHORT_VARINT_LIMIT: u64 = varint::FOUR_BYTES;

/// Up to eight bytes of a message in one register. Most packets of method slices consist of a few of these,
/// which are written without a loop and without a branch on the lengths of their varints: the processor
/// predicts such branches wrongly every other time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ShortBytes {
    /// The first byte is the lowest; bytes behind the last one are 0.
    bytes: u64,
    len: usize,
}

impl ShortBytes {
    /// These bytes, or the first eight of them.
    fn new(bytes: &[u8]) -> ShortBytes {
        let mut all = [0; 8];
        let len = bytes.len().min(all.len());
        all[..len].copy_from_slice(&bytes[..len]);
        ShortBytes { bytes: u64::from_le_bytes(all), len }
    }

    /// The varint of a number below [`SHORT_VARINT_LIMIT`].
    #[inline(always)]
    const fn varint(value: u64) -> ShortBytes {
        let (bytes, len) = varint::up_to_four_bytes(value);
        ShortBytes { bytes, len }
    }

    /// A varint field: `tag` and `value` are below [`SHORT_VARINT_LIMIT`].
    #[inline(always)]
    const fn field(tag: u64, value: u64) -> ShortBytes {
        ShortBytes::varint(tag).then(ShortBytes::varint(value))
    }

    /// These bytes and those behind them, eight at most.
    #[inline(always)]
    const fn then(self, behind: ShortBytes) -> ShortBytes {
        ShortBytes { bytes: self.bytes | behind.bytes << (8 * self.len), len: self.len + behind.len }
    }

    /// These bytes where `keep` is true, none otherwise.
    #[inline(always)]
    fn only_if(self, keep: bool) -> ShortBytes {
        ShortBytes { bytes: self.bytes, len: self.len * usize::from(keep) }
    }
}

/// Room for [`ROOM_PIECES`] pieces of any length, and for the zeros behind the last one.
type PacketRoom = [u8; 8 * ROOM_PIECES];

const ROOM_PIECES: usize = 5;

/// Writes pieces one behind the other. Returns the number of bytes, without the zeros that follow them.
#[inline(always)]
fn write_pieces(room: &mut PacketRoom, pieces: [ShortBytes; ROOM_PIECES]) -> usize {
    let mut at = 0;
    for piece in pieces {
        // Four pieces take at most 32 bytes; the remainder is for the compiler, which then checks nothing.
        let place = at.min(8 * (ROOM_PIECES - 1));
        room[place..place + 8].copy_from_slice(&piece.bytes.to_le_bytes());
        at += piece.len;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_varint_is_the_same_as_any_varint() {
        for bits in 0..28 {
            for value in [1 << bits, (1 << bits) - 1, (1 << bits) | 1, 0x0aaa_aaaa & ((1 << bits) - 1)] {
                let mut expected = Vec::new();
                varint::push(&mut expected, value);
                assert_eq!(ShortBytes::varint(value), ShortBytes::new(&expected), "{value}");
            }
        }
        let last = SHORT_VARINT_LIMIT - 1;
        assert_eq!(ShortBytes::varint(last), ShortBytes::new(&[0xff, 0xff, 0xff, 0x7f]));
    }

    #[test]
    fn pieces_follow_each_other_and_left_out_ones_take_no_room() {
        let [a, b, c] = [&b"abc"[..], b"d", b"efghijkl"].map(ShortBytes::new);
        let mut room = [0xff; 40];
        let len = write_pieces(&mut room, [c, b.only_if(false), c.only_if(true), a.then(b), c]);
        assert_eq!(&room[..len], b"efghijklefghijklabcdefghijkl");
    }
}
