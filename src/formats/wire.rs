//! Protobuf's wire format (<https://protobuf.dev/programming-guides/encoding>): the decoder and the encoder.
//!
//! Signed integers are encoded as Perfetto's protos declare them: `int32` and `int64` as the 64 bits of the
//! number. The zigzag encoding (`sint32`, `sint64`) does not occur in the messages that are read and written
//! here.

/// Wire types: the low three bits of a tag say how a field's value is encoded.
pub(crate) const VARINT: u32 = 0;
const FIXED64: u32 = 1;
pub(crate) const LENGTH_DELIMITED: u32 = 2;
const FIXED32: u32 = 5;

/// The tag in front of a field's value.
pub(crate) const fn tag(field: u32, wire_type: u32) -> u64 {
    (field as u64) << 3 | wire_type as u64
}

/// The decoder: the fields of one message, in the order in which the message holds them.
pub(crate) mod read {
    use crate::formats::wire::{FIXED32, FIXED64, LENGTH_DELIMITED, VARINT};
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

    /// Iterates over the fields of a message. Iteration stops at the end of the message or at the first
    /// broken field.
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
}

/// The encoder: appends fields and messages to a byte vector.
pub(crate) mod write {
    use crate::formats::wire::{FIXED64, LENGTH_DELIMITED, VARINT, tag};
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

    /// Appends an `int32` or `int64` field.
    pub(crate) fn int(out: &mut Vec<u8>, field: u32, value: impl Into<i64>) {
        uint(out, field, value.into() as u64);
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

    /// Appends a `string` field. Bytes that are not UTF-8 (the kernel cuts a comm in the middle of a
    /// character) are replaced by U+FFFD, because a protobuf string must be UTF-8.
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
    /// One byte is reserved for the length, because most messages are shorter than 128 bytes. The content of
    /// a longer message is moved to make room.
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
}

#[cfg(test)]
mod tests {
    use super::read::{WireValue, fields, last_value};
    use super::write::{bytes, double, length_prefixed, message, string, uint};
    use super::*;
    use crate::varint;

    /// xorshift64: every run sees the same numbers, of all magnitudes.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }

        /// A number whose bit width is evenly distributed.
        fn number(&mut self) -> u64 {
            let width = self.next() % 65;
            self.next().checked_shr(64 - width as u32).unwrap_or(0)
        }

        fn field(&mut self) -> u32 {
            (self.number() as u32 >> 3).max(1)
        }

        fn bytes(&mut self) -> Vec<u8> {
            let len = self.next() % 300;
            (0..len).map(|_| self.next() as u8).collect()
        }
    }

    /// A field of a message: the value as it was handed to the encoder.
    #[derive(Debug, PartialEq)]
    enum SampleField {
        Varint(u64),
        Double(f64),
        Bytes(Vec<u8>),
        Message(Vec<(u32, SampleField)>),
    }

    fn sample(random: &mut Random, depth: u32) -> Vec<(u32, SampleField)> {
        let count = random.next() % 6;
        let one = |random: &mut Random| match random.next() % 4 {
            0 => SampleField::Varint(random.number()),
            1 => SampleField::Double(random.next() as i64 as f64 / 1e3),
            3 if depth < 4 => SampleField::Message(sample(random, depth + 1)),
            _ => SampleField::Bytes(random.bytes()),
        };
        (0..count).map(|_| (random.field(), one(random))).collect()
    }

    fn encode(out: &mut Vec<u8>, list: &[(u32, SampleField)]) {
        for (field, value) in list {
            match value {
                SampleField::Varint(v) => uint(out, *field, *v),
                SampleField::Double(v) => double(out, *field, *v),
                SampleField::Bytes(v) => bytes(out, *field, v),
                SampleField::Message(v) => message(out, *field, |out| encode(out, v)),
            }
        }
    }

    /// Decodes `data`; `like` takes the place of the schema: it defines which bytes are messages.
    fn decode(data: &[u8], like: &[(u32, SampleField)]) -> Vec<(u32, SampleField)> {
        let mut all = fields(data);
        let list = all.by_ref().zip(like).map(|((field, value), (_, like))| {
            let value = match like {
                SampleField::Varint(_) => SampleField::Varint(value.number()),
                SampleField::Double(_) => SampleField::Double(f64::from_bits(value.number())),
                SampleField::Bytes(_) => SampleField::Bytes(value.bytes().to_vec()),
                SampleField::Message(like) => SampleField::Message(decode(value.bytes(), like)),
            };
            (field, value)
        });
        let list = list.collect();
        assert!(all.next().is_none() && !all.broken);
        list
    }

    #[test]
    fn every_message_is_decoded_as_it_was_encoded() {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for _ in 0..2000 {
            let want = sample(&mut random, 0);
            let mut data = Vec::new();
            encode(&mut data, &want);
            assert_eq!(decode(&data, &want), want);
        }
    }

    #[test]
    fn every_varint_is_decoded_as_it_was_encoded() {
        let mut random = Random(88_172_645_463_325_252);
        let edges = (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit]).chain([u64::MAX, -1i32 as u64]);
        let numbers: Vec<u64> = edges.chain((0..10_000).map(|_| random.number())).collect();
        let mut array = Vec::new();
        for number in &numbers {
            let mut one = Vec::new();
            varint::push(&mut one, *number);
            assert_eq!(varint::read(&one), Some((*number, &[][..])));
            assert_eq!(varint::read(&one[..one.len() - 1]), None, "a cut varint is not a number");
            array.extend(one);
        }
        assert_eq!(varint::all(&array).collect::<Vec<_>>(), numbers);
    }

    #[test]
    fn negative_int32_values_come_back() {
        for number in [0, 1, -1, i32::MIN, i32::MAX] {
            let mut data = Vec::new();
            uint(&mut data, 3, i64::from(number) as u64);
            assert_eq!(last_value(&data, 3).map(WireValue::int32), Some(number));
            assert_eq!(data.len(), if number < 0 { 11 } else { data.len() });
        }
    }

    #[test]
    fn strings_that_are_not_utf8_are_replaced_and_length_prefixes_hold_the_length() {
        let mut data = Vec::new();
        string(&mut data, 1, b"caf\xc3");
        assert_eq!(last_value(&data, 1), Some(WireValue::Bytes("caf\u{fffd}".as_bytes())));
        for len in [0usize, 1, 127, 128, 300, 20_000] {
            let mut data = vec![9];
            length_prefixed(&mut data, |out| out.resize(out.len() + len, 7));
            let (found, rest) = varint::read(&data[1..]).unwrap();
            assert_eq!((found, rest.len()), (len as u64, len));
        }
    }

    #[test]
    fn a_fixed32_field_is_read_and_the_group_wire_types_are_refused() {
        let data = [tag(1, FIXED32) as u8, 1, 2, 0, 0, tag(2, VARINT) as u8, 7];
        let want = [(1, WireValue::Number(0x201)), (2, WireValue::Number(7))];
        assert_eq!(fields(&data).collect::<Vec<_>>(), want);
        for group in [3, 4, 6, 7] {
            let data = [0x08 | group, 0];
            let mut all = fields(&data);
            assert_eq!((all.next(), all.broken), (None, true));
        }
    }

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
