//! The decoder: the fields of one message, in the order in which the message holds them.

use super::{FIXED32, FIXED64, LENGTH_DELIMITED, VARINT};
use crate::varint;

/// The value of one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireValue<'a> {
    /// Wire types varint, 64 bit and 32 bit.
    Number(u64),
    /// Wire type length-delimited: bytes, a string, a message or a packed array.
    Bytes(&'a [u8]),
}

impl<'a> WireValue<'a> {
    /// The number, or 0 where the file has bytes in the number's place.
    pub fn number(self) -> u64 {
        match self {
            WireValue::Number(v) => v,
            WireValue::Bytes(_) => 0,
        }
    }

    /// The bytes, or none where the file has a number in their place.
    pub fn bytes(self) -> &'a [u8] {
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

/// Iterates over the fields of a message. Iteration stops at the end of the message or at the first broken
/// field.
pub struct MessageFields<'a> {
    rest: &'a [u8],
    /// Whether iteration stopped at bytes that are not a field.
    pub broken: bool,
}

/// The fields of a message, in the order in which it holds them.
pub fn fields(message: &[u8]) -> MessageFields<'_> {
    MessageFields { rest: message, broken: false }
}

impl<'a> MessageFields<'a> {
    /// The bytes behind the last field that was returned.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    fn field(&mut self) -> Option<(u32, WireValue<'a>)> {
        let (tag, rest) = varint::read(self.rest)?;
        let number = u32::try_from(tag >> 3).ok().filter(|n| *n > 0)?;
        let (value, rest) = match tag as u32 & 7 {
            VARINT => {
                let (value, rest) = varint::read(rest)?;
                (WireValue::Number(value), rest)
            }
            FIXED64 => {
                let (bytes, rest) = rest.split_first_chunk::<8>()?;
                (WireValue::Number(u64::from_le_bytes(*bytes)), rest)
            }
            LENGTH_DELIMITED => {
                let (len, rest) = varint::read(rest)?;
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

/// The last value of field `number`: in protobuf a later value overrides an earlier one.
pub(crate) fn last_value(message: &[u8], number: u32) -> Option<WireValue<'_>> {
    fields(message).filter(|(n, _)| *n == number).last().map(|(_, v)| v)
}

/// Appends the elements of a repeated field of numbers, packed or not.
pub(crate) fn append_numbers(out: &mut Vec<u64>, value: WireValue<'_>) {
    match value {
        WireValue::Number(number) => out.push(number),
        WireValue::Bytes(packed) => out.extend(varint::all(packed)),
    }
}
