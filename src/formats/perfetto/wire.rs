//! Protobuf's wire format, reading: fields of one message as they come.

/// One field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// Wire types 0, 1 and 5.
    Number(u64),
    /// Wire type 2.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub fn number(self) -> u64 {
        match self {
            Value::Number(v) => v,
            Value::Bytes(_) => 0,
        }
    }

    pub fn bytes(self) -> &'a [u8] {
        match self {
            Value::Number(_) => &[],
            Value::Bytes(b) => b,
        }
    }

    /// `int32`: negative ones come as ten bytes, but some writers cut them to five.
    pub fn int32(self) -> i32 {
        self.number() as i32
    }
}

/// A varint at the start of `data`, and what is behind it.
#[inline]
pub(super) fn varint(data: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (i, byte) in data.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((value, &data[i + 1..]));
        }
    }
    None
}

/// The fields of a message, up to its end or to what is no field.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    /// What followed could not be read.
    pub broken: bool,
}

pub(super) fn fields(message: &[u8]) -> Fields<'_> {
    Fields { rest: message, broken: false }
}

impl<'a> Fields<'a> {
    /// What is not yet read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    fn field(&mut self) -> Option<(u32, Value<'a>)> {
        let (tag, rest) = varint(self.rest)?;
        let number = u32::try_from(tag >> 3).ok().filter(|n| *n > 0)?;
        let (value, rest) = match tag & 7 {
            0 => {
                let (value, rest) = varint(rest)?;
                (Value::Number(value), rest)
            }
            1 => {
                let (bytes, rest) = rest.split_first_chunk::<8>()?;
                (Value::Number(u64::from_le_bytes(*bytes)), rest)
            }
            2 => {
                let (len, rest) = varint(rest)?;
                let (bytes, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
                (Value::Bytes(bytes), rest)
            }
            5 => {
                let (bytes, rest) = rest.split_first_chunk::<4>()?;
                (Value::Number(u64::from(u32::from_le_bytes(*bytes))), rest)
            }
            _ => return None,
        };
        self.rest = rest;
        Some((number, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, Value<'a>);

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

/// A packed repeated field of varints.
pub(super) fn packed(data: &[u8]) -> impl Iterator<Item = u64> + use<'_> {
    let mut rest = data;
    std::iter::from_fn(move || {
        let (value, after) = varint(rest)?;
        rest = after;
        Some(value)
    })
}

/// The last value of field `number`; protobuf lets a later one override.
pub(super) fn find(message: &[u8], number: u32) -> Option<Value<'_>> {
    fields(message).filter(|(n, _)| *n == number).last().map(|(_, v)| v)
}
