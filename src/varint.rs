//! Numbers of variable length: seven bits in each byte, the lowest first, and the high bit of each byte but
//! the last one set. Protobuf calls them varints, DWARF and ART call them LEB128, and the columns of a report
//! page have them too. Signed numbers are in two's complement (SLEB128) or in zigzag encoding.

/// The longest encoding of a 64-bit number that protobuf permits, bytes.
const MAX_PROTOBUF_BYTES: usize = 10;
/// Numbers below this take at most four bytes.
pub(crate) const FOUR_BYTES: u64 = 1 << 28;
/// Numbers below this take at most seven bytes.
pub(crate) const SEVEN_BYTES: u64 = 1 << 49;
/// Numbers below this take at most eight bytes.
const EIGHT_BYTES: u64 = 1 << 56;
/// The bit of each of eight bytes that says that another byte follows.
const CONTINUED: u64 = 0x8080_8080_8080_8080;

/// Appends a number.
#[inline]
pub(crate) fn push(out: &mut Vec<u8>, value: u64) {
    if value < 0x80 {
        out.push(value as u8);
    } else if value < 0x4000 {
        out.extend_from_slice(&[value as u8 | 0x80, (value >> 7) as u8]);
    } else if value < EIGHT_BYTES {
        let (bytes, len) = up_to_eight_bytes(value);
        push_word(out, bytes, len);
    } else {
        // An address in the kernel takes ten bytes.
        push_word(out, sevens(value % EIGHT_BYTES) | CONTINUED, 8);
        push(out, value / EIGHT_BYTES);
    }
}

/// The lowest 56 bits of a number as eight bytes of seven bits, the first one lowest: halves, then quarters,
/// then eighths move apart. Without a loop, whose end the processor would have to guess for each number.
#[inline]
const fn sevens(value: u64) -> u64 {
    let halves = (value & 0x0fff_ffff) | ((value & 0x00ff_ffff_f000_0000) << 4);
    let quarters = (halves & 0x0000_3fff_0000_3fff) | ((halves & 0x0fff_c000_0fff_c000) << 2);
    (quarters & 0x007f_007f_007f_007f) | ((quarters & 0x3f80_3f80_3f80_3f80) << 1)
}

/// The encoding of a number that takes at most eight bytes, the first byte lowest, and its length in bytes.
#[inline]
pub(crate) const fn up_to_eight_bytes(value: u64) -> (u64, usize) {
    let len = encoded_len(value);
    (sevens(value) | CONTINUED & ((1 << (8 * (len - 1))) - 1), len)
}

/// The encoding of a number below [`FOUR_BYTES`], the first byte lowest, and its length in bytes. It takes
/// fewer instructions than [`up_to_eight_bytes`].
#[inline(always)]
pub(crate) const fn up_to_four_bytes(value: u64) -> (u64, usize) {
    let digits =
        value & 0x7f | (value & 0x3f80) << 1 | (value & 0x001f_c000) << 2 | (value & 0x0fe0_0000) << 3;
    let len = encoded_len(value);
    (digits | CONTINUED & ((1 << (8 * (len - 1))) - 1), len)
}

/// The length of the encoding, bytes: one for each seven bits that the number has.
#[inline(always)]
const fn encoded_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    (bits * 9 + 64) / 64
}

/// Appends the lowest `len` bytes of `bytes`. All eight are copied, and those that are too many cut off: a
/// copy of fixed length is one instruction.
#[inline]
pub(crate) fn push_word(out: &mut Vec<u8>, bytes: u64, len: usize) {
    let start = out.len();
    out.extend_from_slice(&bytes.to_le_bytes());
    out.truncate(start + len);
}

/// The number at the start of `data`, and the bytes behind it. `None` where the bytes end inside of it, or
/// where it has more bytes than protobuf permits.
#[inline]
pub(crate) fn read(data: &[u8]) -> Option<(u64, &[u8])> {
    read_up_to(data, MAX_PROTOBUF_BYTES)
}

/// Decodes an unsigned number of any length and removes it from `bytes`; bits beyond the 64th are dropped.
/// `None` where the bytes end inside of it.
#[inline]
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (value, rest) = read_up_to(bytes, usize::MAX)?;
    *bytes = rest;
    Some(value)
}

/// Decodes a signed number in two's complement as [`take`] does.
#[inline]
pub(crate) fn take_signed(bytes: &mut &[u8]) -> Option<i64> {
    let (value, rest) = read_up_to(bytes, usize::MAX)?;
    let len = bytes.len() - rest.len();
    let is_negative = bytes[len - 1] & 0x40 != 0;
    *bytes = rest;
    let bits = 7 * len;
    Some(if is_negative && bits < 64 { value | u64::MAX << bits } else { value } as i64)
}

#[inline]
fn read_up_to(data: &[u8], max_len: usize) -> Option<(u64, &[u8])> {
    match data {
        [byte, rest @ ..] if *byte < 0x80 => Some((u64::from(*byte), rest)),
        _ => read_long(data, max_len),
    }
}

/// [`read_up_to`] of more than one byte. Up to eight bytes are decoded at once: the high bit of each byte but
/// the last one is set, and the low seven bits of all bytes are moved together.
#[inline]
fn read_long(data: &[u8], max_len: usize) -> Option<(u64, &[u8])> {
    if let Some(chunk) = data.first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let ends = !word & CONTINUED;
        if ends != 0 {
            let bits = ends.trailing_zeros() + 1;
            let sevens = word & (u64::MAX >> (64 - bits)) & 0x7f7f_7f7f_7f7f_7f7f;
            let pairs = (sevens & 0x007f_007f_007f_007f) | ((sevens & 0x7f00_7f00_7f00_7f00) >> 1);
            let fours = (pairs & 0x0000_3fff_0000_3fff) | ((pairs & 0x3fff_0000_3fff_0000) >> 2);
            let value = (fours & 0x0fff_ffff) | ((fours & 0x0fff_ffff_0000_0000) >> 4);
            return Some((value, data.get((bits / 8) as usize..)?));
        }
    }
    let mut value = 0;
    for (n, byte) in data.iter().take(max_len).enumerate() {
        if n < MAX_PROTOBUF_BYTES {
            value |= u64::from(byte & 0x7f) << (7 * n);
        }
        if is_last(*byte) {
            return Some((value, &data[n + 1..]));
        }
    }
    None
}

/// Whether a number ends with this byte.
#[inline]
pub(crate) fn is_last(byte: u8) -> bool {
    byte & 0x80 == 0
}

/// The number of whole numbers in `bytes`.
pub(crate) fn count(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| is_last(**byte)).count() as u64
}

/// The numbers in `data`, up to the end or to the first that [`read`] refuses.
pub(crate) fn all(data: &[u8]) -> impl Iterator<Item = u64> + use<'_> {
    let mut rest = data;
    std::iter::from_fn(move || {
        let (value, after) = read(rest)?;
        rest = after;
        Some(value)
    })
}

/// The zigzag number of a value: 0, -1, 1, -2 … are 0, 1, 2, 3 …
#[inline]
pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The value that has this zigzag number.
#[inline]
pub(crate) fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The encoding as it is defined: seven bits at a time.
    fn defined(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    /// Numbers of every bit width, at its ends and with bits in between.
    fn samples() -> impl Iterator<Item = u64> {
        (0..64).flat_map(|bit| {
            let power = 1_u64 << bit;
            [power, power - 1, power | 1, power | (power >> 3), 0xaaaa_aaaa_aaaa_aaaa >> bit, !power]
        })
    }

    #[test]
    fn numbers_of_every_length_are_encoded_as_defined_and_decoded_again() {
        for value in samples() {
            let mut out = b"before".to_vec();
            push(&mut out, value);
            assert_eq!(out, [b"before".to_vec(), defined(value)].concat(), "{value:#x}");
            // With and without bytes behind it: of eight bytes and more, all are read at once.
            for behind in [&b""[..], b"0123456789"] {
                let bytes = [&out[6..], behind].concat();
                assert_eq!(read(&bytes), Some((value, behind)), "{value:#x}");
                let mut rest = &bytes[..];
                assert_eq!(take(&mut rest), Some(value), "{value:#x}");
                assert_eq!(rest, behind);
            }
            assert_eq!(read(&out[6..out.len() - 1]), None, "{value:#x} is cut");
            assert_eq!(unzigzag(zigzag(value as i64)), value as i64);
        }
    }

    #[test]
    fn the_words_of_short_numbers_are_their_encoding() {
        for value in samples().filter(|value| *value < EIGHT_BYTES) {
            let mut expected = [0; 8];
            let bytes = defined(value);
            expected[..bytes.len()].copy_from_slice(&bytes);
            let expected = (u64::from_le_bytes(expected), bytes.len());
            assert_eq!(up_to_eight_bytes(value), expected, "{value:#x}");
            if value < FOUR_BYTES {
                assert_eq!(up_to_four_bytes(value), expected, "{value:#x}");
            }
        }
    }

    #[test]
    fn numbers_of_both_signs() {
        let mut bytes: &[u8] = &[0xe5, 0x8e, 0x26, 0x9b, 0xf1, 0x59, 0x7f, 0x80];
        assert_eq!(count(bytes), 3);
        assert_eq!(take(&mut bytes), Some(624_485));
        assert_eq!(take_signed(&mut bytes), Some(-624_485));
        assert_eq!(take_signed(&mut bytes), Some(-1));
        assert_eq!(take(&mut bytes), None);
        assert_eq!(bytes, [0x80], "what is cut stays");
        let least = [&[0x80; 9][..], &[0x7f]].concat();
        assert_eq!(take_signed(&mut &least[..]), Some(i64::MIN));
        assert_eq!([0, -1, 1, -2].map(zigzag), [0, 1, 2, 3]);
    }

    #[test]
    fn a_number_of_more_than_ten_bytes_is_none_of_protobuf() {
        let long = [&[0x81; 11][..], &[0x01]].concat();
        assert_eq!(read(&long), None);
        let mut rest = &long[..];
        assert_eq!(take(&mut rest), Some(0x8102_0408_1020_4081));
        assert!(rest.is_empty());
        assert_eq!(all(&[1, 0x82, 1, 0x80]).collect::<Vec<_>>(), [1, 130]);
    }
}
