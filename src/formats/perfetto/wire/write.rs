//! The encoder: appends varints, fields and messages to a byte vector.

use super::{FIXED64, LENGTH_DELIMITED, VARINT, tag};

/// Numbers below this have varints of at most eight bytes.
const EIGHT_BYTES: u64 = 1 << 56;
/// Numbers below this have varints of at most seven bytes.
const SEVEN_BYTES: u64 = 1 << 49;
/// The bit of a byte that says that another byte follows.
const CONTINUED: u64 = 0x8080_8080_8080_8080;

#[inline]
pub(crate) fn varint(out: &mut Vec<u8>, value: u64) {
    if value < 0x80 {
        out.push(value as u8);
    } else if value < 0x4000 {
        out.extend_from_slice(&[value as u8 | 0x80, (value >> 7) as u8]);
    } else if value < EIGHT_BYTES {
        let (bytes, len) = short_varint(value);
        extend(out, bytes, len);
    } else {
        // An address in the kernel takes ten bytes.
        extend(out, sevens(value % EIGHT_BYTES) | CONTINUED, 8);
        varint(out, value / EIGHT_BYTES);
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

/// The bytes of the varint of a number below [`EIGHT_BYTES`], and how many they are.
#[inline]
const fn short_varint(value: u64) -> (u64, usize) {
    // One byte for each seven bits that the number has.
    let bits = 64 - (value | 1).leading_zeros() as usize;
    let len = (bits * 9 + 64) / 64;
    (sevens(value) | CONTINUED & ((1 << (8 * (len - 1))) - 1), len)
}

/// Appends the lowest `len` bytes of `bytes`. All eight are copied, and those that are too many cut off: a
/// copy of fixed length is one instruction.
#[inline]
fn extend(out: &mut Vec<u8>, bytes: u64, len: usize) {
    let start = out.len();
    out.extend_from_slice(&bytes.to_le_bytes());
    out.truncate(start + len);
}

/// Appends a varint field. A negative `int32` or `int64` is passed as its 64 bits and takes ten bytes.
#[inline]
pub(crate) fn uint(out: &mut Vec<u8>, field: u32, value: u64) {
    let tag = tag(field, VARINT);
    if tag >= 0x80 || value >= SEVEN_BYTES {
        varint(out, tag);
        varint(out, value);
    } else if value < 0x80 {
        out.extend_from_slice(&[tag as u8, value as u8]);
    } else {
        let (bytes, len) = short_varint(value);
        extend(out, bytes << 8 | tag, len + 1);
    }
}

/// Appends a `double` field.
pub(crate) fn double(out: &mut Vec<u8>, field: u32, value: f64) {
    fixed64(out, field, value.to_bits());
}

/// Appends a `fixed64` field.
pub(crate) fn fixed64(out: &mut Vec<u8>, field: u32, value: u64) {
    varint(out, tag(field, FIXED64));
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a `bytes` field, an already encoded message, or a packed array.
#[inline]
pub(crate) fn bytes(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    varint(out, tag(field, LENGTH_DELIMITED));
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Appends a `string` field. Bytes that are not UTF-8 (the kernel cuts a comm in the middle of a character)
/// are replaced by U+FFFD, because a protobuf string must be UTF-8.
#[inline]
pub(crate) fn string(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    if value.is_ascii() {
        bytes(out, field, value);
    } else {
        bytes(out, field, String::from_utf8_lossy(value).as_bytes());
    }
}

/// Appends a message field whose content `fill` appends.
#[inline]
pub(crate) fn message(out: &mut Vec<u8>, field: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    varint(out, tag(field, LENGTH_DELIMITED));
    length_prefixed(out, fill);
}

/// Appends the length of a message, then the content that `fill` appends.
///
/// One byte is reserved for the length, because most messages are shorter than 128 bytes. The content of a
/// longer message is moved to make room.
#[inline]
pub(crate) fn length_prefixed(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.push(0);
    fill(out);
    let len = out.len() - at - 1;
    if len < 0x80 {
        out[at] = len as u8;
    } else {
        lengthen(out, at, len);
    }
}

#[cold]
fn lengthen(out: &mut Vec<u8>, at: usize, len: usize) {
    let mut prefix = Vec::with_capacity(10);
    varint(&mut prefix, len as u64);
    out.splice(at..=at, prefix);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The varint of a number, as the encoding is defined: seven bits at a time.
    fn defined(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    #[test]
    fn varints_of_every_length_are_those_of_the_definition() {
        for bit in 0..64 {
            let power = 1_u64 << bit;
            for value in
                [power, power - 1, power | 1, power | (power >> 3), 0xaaaa_aaaa_aaaa_aaaa >> bit, !power]
            {
                let mut out = b"before".to_vec();
                varint(&mut out, value);
                assert_eq!(out, [b"before".to_vec(), defined(value)].concat(), "{value:#x}");
                for field in [1, 15, 16, 3000] {
                    let mut out = Vec::new();
                    uint(&mut out, field, value);
                    assert_eq!(out, [defined(u64::from(field) << 3), defined(value)].concat(), "{value:#x}");
                }
            }
        }
    }
}
