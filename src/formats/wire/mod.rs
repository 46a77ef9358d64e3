//! Protobuf's wire format (<https://protobuf.dev/programming-guides/encoding>): the decoder and the encoder.
//!
//! Signed integers are encoded as Perfetto's protos declare them: `int32` and `int64` as the 64 bits of the
//! number. The zigzag encoding (`sint32`, `sint64`) does not occur in the messages that are read and written
//! here.

pub(crate) mod read;
pub(crate) mod write;

/// Wire types: the low three bits of a tag say how a field's value is encoded.
pub(crate) const VARINT: u32 = 0;
const FIXED64: u32 = 1;
pub(crate) const LENGTH_DELIMITED: u32 = 2;
const FIXED32: u32 = 5;

/// The tag in front of a field's value.
pub(crate) const fn tag(field: u32, wire_type: u32) -> u64 {
    (field as u64) << 3 | wire_type as u64
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
    enum Sample {
        Varint(u64),
        Double(f64),
        Bytes(Vec<u8>),
        Message(Vec<(u32, Sample)>),
    }

    fn sample(random: &mut Random, depth: u32) -> Vec<(u32, Sample)> {
        let count = random.next() % 6;
        let one = |random: &mut Random| match random.next() % 4 {
            0 => Sample::Varint(random.number()),
            1 => Sample::Double(random.next() as i64 as f64 / 1e3),
            3 if depth < 4 => Sample::Message(sample(random, depth + 1)),
            _ => Sample::Bytes(random.bytes()),
        };
        (0..count).map(|_| (random.field(), one(random))).collect()
    }

    fn encode(out: &mut Vec<u8>, list: &[(u32, Sample)]) {
        for (field, value) in list {
            match value {
                Sample::Varint(v) => uint(out, *field, *v),
                Sample::Double(v) => double(out, *field, *v),
                Sample::Bytes(v) => bytes(out, *field, v),
                Sample::Message(v) => message(out, *field, |out| encode(out, v)),
            }
        }
    }

    /// Decodes `data`; `like` takes the place of the schema: it defines which bytes are messages.
    fn decode(data: &[u8], like: &[(u32, Sample)]) -> Vec<(u32, Sample)> {
        let mut all = fields(data);
        let list = all.by_ref().zip(like).map(|((field, value), (_, like))| {
            let value = match like {
                Sample::Varint(_) => Sample::Varint(value.number()),
                Sample::Double(_) => Sample::Double(f64::from_bits(value.number())),
                Sample::Bytes(_) => Sample::Bytes(value.bytes().to_vec()),
                Sample::Message(like) => Sample::Message(decode(value.bytes(), like)),
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
}
