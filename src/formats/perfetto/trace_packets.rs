//! The packets of a trace, one after the other, also behind damaged bytes.
//!
//! A `Trace` has one field: `packet = 1`. Whatever else stands at the top level is damage: a bit of a
//! packet's key or of its length has changed. Reading goes on at the next whole packet behind it.

use std::ops::Range;

use super::fields::trace;
use super::packet_types::is_varint_field;
use super::wire::read::{MessageFields, WireValue, fields};
use super::wire::{LENGTH_DELIMITED, tag};
use crate::formats::Damage;
use crate::varint;

/// The key in front of each packet.
const PACKET_KEY: u8 = tag(trace::PACKET, LENGTH_DELIMITED) as u8;
/// The most bytes that the length of a packet takes: it has 32 bits.
const MAX_LEN_BYTES: usize = 5;
/// So many whole packets in a row are taken for packets, wherever they begin.
const SURE_PACKETS: usize = 2;
/// The number of fields that are examined in a packet that follows damage. The limit bounds the search in
/// hostile files.
const CHECKED_FIELDS: usize = 64;
/// The number of damaged places that are listed. Further places are only counted.
const MAX_REPORTED_PLACES: u64 = 16;

/// One packet of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlacedPacket<'a> {
    /// Its place in the trace: key, length and body.
    pub(crate) range: Range<usize>,
    /// The encoded `TracePacket`.
    pub(crate) body: &'a [u8],
}

/// Iterates over the packets of a trace.
pub(crate) struct TracePackets<'a> {
    data: &'a [u8],
    at: usize,
    damage: Vec<Damage>,
    unreported_places: u64,
}

/// The packets of the trace `data`.
pub(crate) fn packets(data: &[u8]) -> TracePackets<'_> {
    TracePackets { data, at: 0, damage: Vec::new(), unreported_places: 0 }
}

impl<'a> TracePackets<'a> {
    /// The damage that has been met so far.
    pub(crate) fn damage(self) -> Vec<Damage> {
        let mut damage = self.damage;
        if self.unreported_places > 0 {
            let what = format!("{} more places of the file hold no whole packet", self.unreported_places);
            damage.push(Damage { offset: 0, what });
        }
        damage
    }

    /// The packet at the current position, where a whole one is there.
    #[inline]
    fn packet_here(&self) -> Option<PlacedPacket<'a>> {
        let mut all = fields(&self.data[self.at..]);
        match all.next()? {
            (trace::PACKET, WireValue::Bytes(body)) => {
                Some(PlacedPacket { range: self.at..self.data.len() - all.rest().len(), body })
            }
            _ => None,
        }
    }

    /// Moves behind bytes that are no packet. Returns whether there are more packets.
    #[cold]
    fn skip_damage(&mut self) -> bool {
        let bad = self.at;
        let next = behind_damaged_key(self.data, bad).or_else(|| next_whole_packet(self.data, bad + 1));
        self.at = next.unwrap_or(self.data.len());
        let is_reported = self.unreported_places == 0 && (self.damage.len() as u64) < MAX_REPORTED_PLACES;
        match (next, is_reported) {
            (_, false) => self.unreported_places += 1,
            (None, true) if self.data[bad] == PACKET_KEY => self.damage.push(cut_packet(self.data, bad)),
            (_, true) => self.damage.push(no_packet(self.data, bad..self.at)),
        }
        next.is_some()
    }
}

impl<'a> Iterator for TracePackets<'a> {
    type Item = PlacedPacket<'a>;

    #[inline]
    fn next(&mut self) -> Option<PlacedPacket<'a>> {
        loop {
            if self.at >= self.data.len() {
                return None;
            }
            if let Some(packet) = self.packet_here() {
                self.at = packet.range.end;
                return Some(packet);
            }
            if !self.skip_damage() {
                return None;
            }
        }
    }
}

/// Describes a last packet that is cut, which begins at `at`.
fn cut_packet(data: &[u8], at: usize) -> Damage {
    let missing = varint::read(data.get(at + 1..).unwrap_or(&[])).map_or(String::new(), |(len, rest)| {
        format!(": the packet has {len} bytes, but the file holds only {} of them", rest.len())
    });
    Damage { offset: at as u64, what: format!("the file is cut inside a packet{missing}") }
}

/// Describes bytes that are no packet.
fn no_packet(data: &[u8], bad: Range<usize>) -> Damage {
    let key = data[bad.start];
    let what = format!(
        "{} bytes are no packet (a packet begins with 0x{PACKET_KEY:02x}, not 0x{key:02x}), and are left out",
        bad.len()
    );
    let what = if key == PACKET_KEY {
        format!("{} bytes are no whole packet, and are left out", bad.len())
    } else {
        what
    };
    Damage { offset: bad.start as u64, what }
}

/// The end of the packet at `at` if only the packet's key is damaged: then another packet or the end of the
/// file follows.
fn behind_damaged_key(data: &[u8], at: usize) -> Option<usize> {
    let behind = data.get(at + 1..)?;
    let (len, body) = varint::read(behind)?;
    let rest = body.get(usize::try_from(len).ok()?..)?;
    let is_length = behind.len() - body.len() <= MAX_LEN_BYTES && len > 0;
    (is_length && (rest.is_empty() || sure_packets(rest) >= 1)).then(|| data.len() - rest.len())
}

/// Where the next packet begins, at `from` or later.
fn next_whole_packet(data: &[u8], from: usize) -> Option<usize> {
    let rest = data.get(from..)?;
    let starts = memchr::memchr_iter(PACKET_KEY, rest).map(|at| from + at);
    starts.into_iter().find(|at| sure_packets(&data[*at..]) >= SURE_PACKETS)
}

/// How many packets begin one behind the other with `data`, [`SURE_PACKETS`] at most. A packet with which the
/// file ends is as good as [`SURE_PACKETS`].
fn sure_packets(data: &[u8]) -> usize {
    let mut all = fields(data);
    for count in 0..SURE_PACKETS {
        let at_key = all.rest().first() == Some(&PACKET_KEY);
        let Some((trace::PACKET, WireValue::Bytes(body))) = all.next().filter(|_| at_key) else {
            return count;
        };
        if !may_be_packet(body) {
            return count;
        }
        if all.rest().is_empty() {
            return SURE_PACKETS;
        }
    }
    SURE_PACKETS
}

/// Whether the bytes may be those of a packet: its fields have the wire types that a packet's fields have. A
/// message inside of a packet nearly always has a number in a field that is a message in a packet.
fn may_be_packet(body: &[u8]) -> bool {
    let mut all = fields(body);
    let is_fit = all
        .by_ref()
        .take(CHECKED_FIELDS)
        .all(|(number, value)| matches!(value, WireValue::Number(_)) == is_varint_field(number));
    !body.is_empty() && is_fit && !all.broken
}

/// How many items at the start of a file are looked at to see whether it is a trace.
const DETECTED_ITEMS: usize = 8;
/// How many bytes at the start of a file show whether it is a text.
const TEXT_BYTES: usize = 256;

/// Whether a file with these bytes may be a Perfetto trace: its first packets are whole messages. There may
/// be empty packets and other fields among them. Of a packet that is longer than `bytes`, what is there must
/// be the start of a message.
pub(in crate::formats) fn detect(bytes: &[u8]) -> bool {
    // A text that begins with a line feed and blanks could be read as packets.
    if is_text(&bytes[..bytes.len().min(TEXT_BYTES)]) {
        return false;
    }
    let mut at = 0;
    let mut is_packet_seen = false;
    for _ in 0..DETECTED_ITEMS {
        let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) else { break };
        let mut all = fields(rest);
        match all.next() {
            Some((trace::PACKET, WireValue::Bytes(body))) => {
                if !body.is_empty() && !may_be_packet(body) {
                    return is_packet_seen;
                }
                // A file of nothing but empty packets is a trace, too.
                is_packet_seen |= !body.is_empty() || all.rest().is_empty();
            }
            Some(_) => {}
            None => return is_packet_seen || begins_packet(rest),
        }
        at = bytes.len() - all.rest().len();
    }
    is_packet_seen
}

/// Whether the bytes are the start of a packet that is longer than they are.
fn begins_packet(bytes: &[u8]) -> bool {
    let Some((&PACKET_KEY, rest)) = bytes.split_first() else { return false };
    let Some((len, body)) = varint::read(rest) else { return false };
    let mut inside: MessageFields<'_> = fields(body);
    let first = inside.next();
    let Some(key) = body.first() else { return false };
    // A packet's first field: of wire type varint, 64 bit, length or 32 bit, and not field 0.
    let begins_a_field = first.is_some() || matches!(key & 7, 0 | 1 | 2 | 5) && key >> 3 != 0;
    len > body.len() as u64 && rest.len() - body.len() <= MAX_LEN_BYTES && begins_a_field
}

/// Whether these bytes are printable characters and white space.
fn is_text(bytes: &[u8]) -> bool {
    let is_printed = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0x80..);
    // At the end a character may be cut.
    let is_utf8 = std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true);
    bytes.iter().all(is_printed) && is_utf8
}

#[cfg(test)]
mod tests {
    use super::super::fields::trace_packet;
    use super::super::wire::write::{bytes, message, uint};
    use super::*;

    /// A trace of `count` packets with a process tree of some processes each.
    fn trace_of(count: u64) -> (Vec<u8>, Vec<Range<usize>>) {
        let mut out = Vec::new();
        let mut ranges = Vec::new();
        for number in 0..count {
            let start = out.len();
            message(&mut out, trace::PACKET, |out| {
                uint(out, trace_packet::TIMESTAMP, 1_000_000 * number);
                message(out, trace_packet::PROCESS_TREE, |out| {
                    for pid in 0..5 + number {
                        message(out, 1, |out| {
                            uint(out, 1, 100 + pid);
                            bytes(out, 3, b"com.example.app");
                        });
                    }
                });
                uint(out, trace_packet::TRUSTED_PACKET_SEQUENCE_ID, 1);
            });
            ranges.push(start..out.len());
        }
        (out, ranges)
    }

    #[test]
    fn behind_a_damaged_key_the_next_packet_is_read() {
        let (sound, ranges) = trace_of(12);
        for damaged in 0..ranges.len() {
            for bit in 0..8 {
                let mut data = sound.clone();
                data[ranges[damaged].start] ^= 1 << bit;
                let mut all = packets(&data);
                let seen: Vec<Range<usize>> = all.by_ref().map(|packet| packet.range).collect();
                let others: Vec<_> =
                    ranges.iter().filter(|range| **range != ranges[damaged]).cloned().collect();
                assert_eq!(seen, others, "packet {damaged}, bit {bit}");
                let damage = all.damage();
                assert_eq!(damage.len(), 1, "packet {damaged}, bit {bit}: {damage:?}");
                assert_eq!(damage[0].offset, ranges[damaged].start as u64);
            }
        }
    }

    #[test]
    fn a_damaged_length_costs_its_packet_and_at_most_the_next_one() {
        let (sound, ranges) = trace_of(12);
        for damaged in 0..ranges.len() - 2 {
            for bit in 0..8 {
                let mut data = sound.clone();
                data[ranges[damaged].start + 1] ^= 1 << bit;
                let mut all = packets(&data);
                let seen: Vec<Range<usize>> = all.by_ref().map(|packet| packet.range).collect();
                for range in ranges[..damaged].iter().chain(&ranges[damaged + 2..]) {
                    assert!(seen.contains(range), "packet {damaged}, bit {bit}: {range:?} of {seen:?}");
                }
                assert!(!all.damage().is_empty(), "packet {damaged}, bit {bit}");
            }
        }
    }

    #[test]
    fn a_cut_trace_is_not_searched_for_packets_inside_of_its_last_one() {
        let (sound, ranges) = trace_of(4);
        let last = ranges[3].clone();
        for cut in last.start + 1..last.end {
            let mut all = packets(&sound[..cut]);
            assert_eq!(all.by_ref().count(), 3, "cut at {cut}");
            let damage = all.damage();
            assert_eq!((damage.len(), damage[0].offset), (1, last.start as u64), "cut at {cut}");
            assert!(damage[0].what.contains("cut inside a packet"), "{damage:?}");
        }
    }

    #[test]
    fn many_damaged_places_are_counted() {
        let (sound, ranges) = trace_of(60);
        let mut data = sound.clone();
        ranges.iter().step_by(2).for_each(|range| data[range.start] = 0x1a);
        let mut all = packets(&data);
        assert_eq!(all.by_ref().count(), 30);
        let damage = all.damage();
        assert_eq!(damage.len() as u64, MAX_REPORTED_PLACES + 1);
        assert!(damage.last().unwrap().what.starts_with("14 more places"), "{damage:?}");
    }

    #[test]
    fn a_trace_is_told_by_whole_packets() {
        let (trace, ranges) = trace_of(3);
        let empty = b"\x0a\0";
        let unknown = b"\x1a\x02\x08\x01";
        let with = |parts: &[&[u8]]| detect(&parts.concat());
        assert!(with(&[&trace]));
        assert!(with(&[empty, &trace]));
        assert!(with(&[empty, empty]));
        assert!(with(&[unknown, &trace]));
        assert!(with(&[empty, unknown, b"\x10\x05", &trace]));
        for cut in 5..trace.len() {
            assert!(with(&[&trace[..cut]]), "cut at {cut}");
        }
        assert!(ranges[0].len() > 20);
        assert!(!with(&[unknown]));
        assert!(!with(&[b"\x0a\x03\x08\x01\x0b"]), "the first packet is no message");
        let blanks = [b' '; 300];
        for text in [&b"{\"traceEvents\": []}"[..], b"[{\"ph\": \"X\"}]", b"# tracer: nop\n", b"x"] {
            for indent in 0..blanks.len() {
                assert!(!with(&[b"\n", &blanks[..indent], text]), "{indent} blanks");
            }
        }
    }
}
