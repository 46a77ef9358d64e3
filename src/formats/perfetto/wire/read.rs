//! The decoder: the fields of one message, in the order in which the message holds them.

use super::{FIXED32, FIXED64, LENGTH_DELIMITED, VARINT};

/// The longest encoding of a 64-bit varint, bytes.
const MAX_VARINT_LEN: usize = 10;

/// The value of one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WireValue<'a> {
    /// Wire types varint, 64 bit and 32 bit.
    Number(u64),
    /// Wire type length-delimited: bytes, a string, a message or a packed array.
    Bytes(&'a [u8]),
}

impl<'a> WireValue<'a> {
    /// The number, or 0 where the file has bytes in the number's place.
    pub(crate) fn number(self) -> u64 {
        match self {
            WireValue::Number(v) => v,
            WireValue::Bytes(_) => 0,
        }
    }

    /// The bytes, or none where the file has a number in their place.
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            WireValue::Number(_) => &[],
            WireValue::Bytes(b) => b,
        }
    }

    /// An `int32`. A negative number takes ten bytes, but some writers cut it to five.
    pub(crate) fn int32(self) -> i32 {
        self.number() as i32
    }
}

/// The varint at the start of `data`, and the bytes behind it.
#[inline]
pub(crate) fn varint(data: &[u8]) -> Option<(u64, &[u8])> {
    match data {
        [byte, rest @ ..] if *byte < 0x80 => Some((u64::from(*byte), rest)),
        _ => long_varint(data),
    }
}

/// [`varint`] of more than one byte. Up to eight bytes are decoded at once: the high bit of each byte but the
/// last one is set, and the low seven bits of all bytes are moved together.
#[inline]
fn long_varint(data: &[u8]) -> Option<(u64, &[u8])> {
    if let Some(chunk) = data.first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let ends = !word & 0x8080_8080_8080_8080;
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
    for (i, byte) in data.iter().take(MAX_VARINT_LEN).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((value, &data[i + 1..]));
        }
    }
    None
}

/// Iterates over the fields of a message. Iteration stops at the end of the message or at the first broken
/// field.
pub(crate) struct MessageFields<'a> {
    rest: &'a [u8],
    /// Whether iteration stopped at bytes that are not a field.
    pub(crate) broken: bool,
}

pub(crate) fn fields(message: &[u8]) -> MessageFields<'_> {
    MessageFields { rest: message, broken: false }
}

impl<'a> MessageFields<'a> {
    /// The bytes behind the last field that was returned.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    fn field(&mut self) -> Option<(u32, WireValue<'a>)> {
        let (tag, rest) = varint(self.rest)?;
        let number = u32::try_from(tag >> 3).ok().filter(|n| *n > 0)?;
        let (value, rest) = match tag as u32 & 7 {
            VARINT => {
                let (value, rest) = varint(rest)?;
                (WireValue::Number(value), rest)
            }
            FIXED64 => {
                let (bytes, rest) = rest.split_first_chunk::<8>()?;
                (WireValue::Number(u64::from_le_bytes(*bytes)), rest)
            }
            LENGTH_DELIMITED => {
                let (len, rest) = varint(rest)?;
                let (bytes, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
                (WireValue::Bytes(bytes), rest)
            }
            FIXED32 => {
                let (bytes, rest) = rest.split_first_chunk::<4>()?;
                (WireValue::Number(u64::from(u32::from_le_bytes(*bytes))), rest)
            }
            _ => return None,
        };
        self.rest = rest;
        Some((number, value))
    }
}

impl<'a> Iterator for MessageFields<'a> {
    type Item = (u32, WireValue<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let found = self.field();
        if found.is_none() {
            self.broken = true;
            self.rest = &[];
        }
        found
    }
}

/// The elements of a packed repeated field of varints.
pub(crate) fn packed_varints(data: &[u8]) -> impl Iterator<Item = u64> + use<'_> {
    let mut rest = data;
    std::iter::from_fn(move || {
        let (value, after) = varint(rest)?;
        rest = after;
        Some(value)
    })
}

/// The last value of field `number`: in protobuf a later value overrides an earlier one.
pub(crate) fn last_value(message: &[u8], number: u32) -> Option<WireValue<'_>> {
    fields(message).filter(|(n, _)| *n == number).last().map(|(_, v)| v)
}
