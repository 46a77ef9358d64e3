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

use std::collections::{HashMap, HashSet};
use std::io;

use super::super::Out;
use super::packet::FreeIds;
use super::rewrite::PacketRewriter;
use super::taken_ids::{IdFilter, TraceIds};
use crate::art::Mapping;
use crate::formats::input::Input;
use crate::formats::perfetto::scan::TraceScan;
use crate::formats::perfetto::trace_packets::packets;
use crate::formats::trace_dat::Release;
use crate::formats::{FormatId, has_format};

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
        let (mut sequences, mut uuids) = (IdFilter::for_bytes(bytes), IdFilter::for_bytes(bytes));
        let traces: Vec<(usize, &Input, TraceIds)> = perfetto
            .into_iter()
            .map(|(index, input)| {
                (index, input, TraceIds::of(input, input.unpack_budget.afresh(), &mut uuids))
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
    /// Described tracks, and what each is.
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
