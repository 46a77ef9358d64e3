//! Up to eight bytes of a message in one register. Most packets of method slices consist of a few of these,
//! which are written without a loop and without a branch on the lengths of their varints: the processor
//! predicts such branches wrongly every other time.

use crate::varint;

/// Numbers below this have varints that [`ShortBytes`] can encode.
pub(super) const SHORT_VARINT_LIMIT: u64 = varint::FOUR_BYTES;

/// Up to eight bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ShortBytes {
    /// The first byte is the lowest; bytes behind the last one are 0.
    bytes: u64,
    pub(super) len: usize,
}

impl ShortBytes {
    /// These bytes, or the first eight of them.
    pub(super) fn new(bytes: &[u8]) -> ShortBytes {
        let mut all = [0; 8];
        let len = bytes.len().min(all.len());
        all[..len].copy_from_slice(&bytes[..len]);
        ShortBytes { bytes: u64::from_le_bytes(all), len }
    }

    /// The varint of a number below [`SHORT_VARINT_LIMIT`].
    #[inline(always)]
    pub(super) const fn varint(value: u64) -> ShortBytes {
        let (bytes, len) = varint::up_to_four_bytes(value);
        ShortBytes { bytes, len }
    }

    /// A varint field: `tag` and `value` are below [`SHORT_VARINT_LIMIT`].
    #[inline(always)]
    pub(super) const fn field(tag: u64, value: u64) -> ShortBytes {
        ShortBytes::varint(tag).then(ShortBytes::varint(value))
    }

    /// These bytes and those behind them, eight at most.
    #[inline(always)]
    pub(super) const fn then(self, behind: ShortBytes) -> ShortBytes {
        ShortBytes { bytes: self.bytes | behind.bytes << (8 * self.len), len: self.len + behind.len }
    }

    /// These bytes where `keep` is true, none otherwise.
    #[inline(always)]
    pub(super) fn only_if(self, keep: bool) -> ShortBytes {
        ShortBytes { bytes: self.bytes, len: self.len * usize::from(keep) }
    }
}

/// Room for [`ROOM_PIECES`] pieces of any length, and for the zeros behind the last one.
pub(super) type Room = [u8; 8 * ROOM_PIECES];

const ROOM_PIECES: usize = 5;

/// Writes pieces one behind the other. Returns the number of bytes, without the zeros that follow them.
#[inline(always)]
pub(super) fn write(room: &mut Room, pieces: [ShortBytes; ROOM_PIECES]) -> usize {
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
        let len = super::write(&mut room, [c, b.only_if(false), c.only_if(true), a.then(b), c]);
        assert_eq!(&room[..len], b"efghijklefghijklabcdefghijkl");
    }
}
