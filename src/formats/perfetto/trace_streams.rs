//! The packets of a trace, also those that are in compressed packets, which are unpacked first.

use std::io::{self, Write};
use std::ops::Range;

use super::fields::trace_packet;
use super::trace_packets::{PlacedPacket, packets};
use super::wire::read::fields;
use crate::formats::run_order::RunSource;
use crate::formats::spill::{FileBytes, RELEASE_BYTES, Release, SpillWriter};
use crate::formats::unpack::Packing;
use crate::formats::unpack_budget::{self, UnpackBudget};
use crate::formats::{Damage, ReadReport};
use crate::progress;
use crate::varint;

/// Unpacks the field `number` of a packet to `out`, within the budget. Returns `None` if that field does not
/// hold compressed packets.
pub(crate) fn decompress(
    number: u32,
    body: &[u8],
    budget: &UnpackBudget,
    out: &mut impl Write,
) -> Option<io::Result<()>> {
    match number {
        trace_packet::COMPRESSED_PACKETS => Some(budget.unpack(Packing::Zlib, body, out)),
        trace_packet::ZSTD_COMPRESSED_PACKETS => Some(budget.unpack(Packing::Zstd, body, out)),
        _ => None,
    }
}

/// Describes the damage of a compressed packet that could not be unpacked wholly. `None` if all that there is
/// to say of the limit has been said: `is_over_limit` remembers that.
pub(super) fn unpack_damage(error: &io::Error, offset: u64, is_over_limit: &mut bool) -> Option<Damage> {
    let what = if !unpack_budget::is_over_limit(error) {
        format!("the compressed packets can be unpacked in part only: {error}")
    } else if std::mem::replace(is_over_limit, true) {
        return None;
    } else {
        format!("the file {error}; its compressed packets from here on are not read")
    };
    Some(Damage { offset, what })
}

/// The packets of a trace: those of its file, and behind them those that were unpacked of compressed packets.
pub(super) struct TraceStreams<'a> {
    file: &'a [u8],
    /// The owner of the file's bytes.
    release: Option<&'a dyn Release>,
    unpacked: FileBytes,
    /// Where the packets of each compressed packet lie in `unpacked`.
    parts: Vec<Range<usize>>,
}

/// Where a text lies in the bytes of a trace: in the file or, with stream 1, in what was unpacked.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StreamPlace {
    pub(super) stream: usize,
    pub(super) offset: usize,
}

impl<'a> TraceStreams<'a> {
    /// A file of which nothing was unpacked.
    #[cfg(test)]
    pub(super) fn of_file(file: &'a [u8]) -> TraceStreams<'a> {
        TraceStreams { file, release: None, unpacked: FileBytes::Owned(Vec::new()), parts: Vec::new() }
    }

    /// All packets. Memory of those that were read is released, as [`TraceStreams::release`] does.
    pub(super) fn packets(&self) -> impl Iterator<Item = PlacedPacket<'_>> {
        let mut read = 0;
        let all = packets(self.file).chain(self.unpacked_parts().flat_map(packets));
        all.inspect(move |packet| {
            read += packet.range.len();
            if read >= RELEASE_BYTES {
                read = 0;
                self.release();
            }
        })
    }

    /// The packets of each compressed packet.
    fn unpacked_parts(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().map(|part| &self.unpacked[part.clone()])
    }

    /// The bytes of all packets.
    pub(super) fn byte_len(&self) -> u64 {
        (self.file.len() + self.unpacked.len()) as u64
    }

    /// The bytes of a [`StreamPlace::stream`].
    pub(super) fn stream(&self, number: usize) -> &[u8] {
        if number == 0 { self.file } else { &self.unpacked }
    }

    /// The place of a part of a packet.
    pub(super) fn place_of(&self, part: &[u8]) -> Option<StreamPlace> {
        let at = part.as_ptr() as usize;
        [0, 1].into_iter().find_map(|stream| {
            let bytes = self.stream(stream);
            let offset = at.checked_sub(bytes.as_ptr() as usize)?;
            (offset + part.len() <= bytes.len()).then_some(StreamPlace { stream, offset })
        })
    }

    /// Releases the memory that holds the packets, as far as they are in files. They are read from there when
    /// they are used again.
    pub(super) fn release(&self) {
        self.release.iter().for_each(|owner| owner.release(0..self.file.len()));
        self.unpacked.release(0..self.unpacked.len());
    }
}

/// Stores the place of a text in the trace.
pub(super) fn store_text(text: &[u8], streams: &TraceStreams<'_>, out: &mut Vec<u8>) {
    let place = streams.place_of(text).unwrap_or_default();
    varint::push(out, place.stream as u64);
    varint::push(out, place.offset as u64);
    varint::push(out, text.len() as u64);
}

/// Reads a text that [`store_text`] has stored.
pub(super) fn load_text<'a>(rest: &mut &[u8], streams: &'a TraceStreams<'_>) -> Option<&'a [u8]> {
    let stream = varint::take(rest)? as usize;
    let offset = varint::take(rest)? as usize;
    let len = varint::take(rest)? as usize;
    streams.stream(stream).get(offset..offset.checked_add(len)?)
}

impl RunSource for TraceStreams<'_> {
    fn release(&self) {
        TraceStreams::release(self);
    }
}

/// Unpacks the compressed packets of a file.
pub(super) fn unpack<'a>(
    data: &'a [u8],
    release: Option<&'a dyn Release>,
    budget: &UnpackBudget,
    report: &mut ReadReport,
) -> TraceStreams<'a> {
    let mut is_over_limit = false;
    let mut out = SpillWriter::default();
    let mut parts: Vec<Range<usize>> = Vec::new();
    // By compressed packet: its place, and the damage that ended it, unless that has been said.
    let mut found: Vec<(u64, Option<Option<Damage>>)> = Vec::new();
    let mut all = packets(data);
    for packet in all.by_ref() {
        progress::advance(packet.body.len() as u64);
        let at = packet.range.start as u64;
        for (number, compressed) in fields(packet.body) {
            let start = out.len();
            let Some(result) = decompress(number, compressed.bytes(), budget, &mut out) else { continue };
            let damage = result.err().map(|error| unpack_damage(&error, at, &mut is_over_limit));
            parts.push(start..out.len());
            found.push((at, damage));
        }
    }
    let unpacked = out.finish().unwrap_or_else(|error| {
        let what = format!("the compressed packets are not read: {error}");
        report.damage.push(Damage { offset: 0, what });
        parts.clear();
        FileBytes::Owned(Vec::new())
    });
    let streams = TraceStreams { file: data, release, unpacked, parts };
    for (stream, (at, damage)) in streams.unpacked_parts().zip(found) {
        match damage {
            Some(damage) => report.damage.extend(damage),
            None => report.damage.extend(damage_inside(stream, at)),
        }
        streams.release();
    }
    report.damage.extend(all.damage());
    streams
}

/// The damage among the packets that were unpacked of the packet at the offset `at`.
pub(super) fn damage_inside(unpacked: &[u8], at: u64) -> Vec<Damage> {
    let mut all = packets(unpacked);
    all.by_ref().for_each(drop);
    let inside = all.damage().into_iter();
    inside
        .map(|damage| Damage {
            offset: at,
            what: format!("byte {} of the compressed packets: {}", damage.offset, damage.what),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::fields::trace;
    use super::super::wire::write::{bytes, message};
    use super::*;
    use crate::formats::unpack_budget::UnpackLimit;

    #[test]
    fn the_limit_of_unpacking_is_told_once() {
        let zeros = zstd::encode_all(&[0; 5_000][..], 1).unwrap();
        let mut compressed = Vec::new();
        message(&mut compressed, trace::PACKET, |packet| {
            bytes(packet, trace_packet::ZSTD_COMPRESSED_PACKETS, &zeros);
        });
        let mut report = ReadReport::default();
        let data = [&compressed[..], &compressed].concat();
        unpack(&data, None, &UnpackLimit::new(Some(1_000)).budget(0), &mut report);
        let told: Vec<&str> = report.damage.iter().map(|damage| damage.what.as_str()).collect();
        assert!(told.len() == 1 && told[0].contains("--max-memory"), "{told:?}");
    }
}
