//! The encoder: appends fields and messages to a byte vector.

use super::{FIXED64, LENGTH_DELIMITED, VARINT, tag};
use crate::varint::{self, SEVEN_BYTES};

/// Appends a varint field. A negative `int32` or `int64` is passed as its 64 bits and takes ten bytes.
#[inline]
pub(crate) fn uint(out: &mut Vec<u8>, field: u32, value: u64) {
    let tag = tag(field, VARINT);
    if tag >= 0x80 || value >= SEVEN_BYTES {
        varint::push(out, tag);
        varint::push(out, value);
    } else if value < 0x80 {
        out.extend_from_slice(&[tag as u8, value as u8]);
    } else {
        let (bytes, len) = varint::up_to_eight_bytes(value);
        varint::push_word(out, bytes << 8 | tag, len + 1);
    }
}

/// Appends a `double` field.
pub(crate) fn double(out: &mut Vec<u8>, field: u32, value: f64) {
    fixed64(out, field, value.to_bits());
}

/// Appends a `fixed64` field.
pub(crate) fn fixed64(out: &mut Vec<u8>, field: u32, value: u64) {
    varint::push(out, tag(field, FIXED64));
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a `bytes` field, an already encoded message, or a packed array.
#[inline]
pub(crate) fn bytes(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    varint::push(out, tag(field, LENGTH_DELIMITED));
    varint::push(out, value.len() as u64);
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
    varint::push(out, tag(field, LENGTH_DELIMITED));
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
    varint::push(&mut prefix, len as u64);
    out.splice(at..=at, prefix);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_varint_field_is_its_tag_and_its_value() {
        for value in (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) - 1, !(1 << bit)]) {
            for field in [1, 15, 16, 3000] {
                let mut expected = Vec::new();
                varint::push(&mut expected, u64::from(field) << 3);
                varint::push(&mut expected, value);
                let mut out = Vec::new();
                uint(&mut out, field, value);
                assert_eq!(out, expected, "{value:#x}");
            }
        }
    }
}
