//! What a kind of event is made of, and how its fields are read from a record.

use super::Endian;

/// A kind of event as its source describes it: `sched/sched_switch` and its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventType {
    /// The kernel's subsystem (`sched`); empty where the source (a text) does not tell.
    pub system: String,
    /// The event's name (`sched_switch`). Markers are always `print` here, also where a text calls them
    /// `tracing_mark_write` or `0`.
    pub name: String,
    /// The fields, without the `common_` ones (those are in [`Event`] itself).
    pub fields: Vec<Field>,
    /// The kernel's `print fmt:` line, where the source has it.
    pub print_fmt: Option<String>,
}

impl EventType {
    /// The position of the field called `name`. Look it up once per kind, not once per event.
    pub fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|f| f.name == name)
    }
}

/// One field of an [`EventType`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The kernel's name of it (`prev_comm`).
    pub name: String,
    /// The C type as the kernel prints it (`pid_t`, `char[16]`); empty where the source does not tell.
    pub ctype: String,
    /// How its bytes are to be read.
    pub ty: FieldType,
    /// Where it lies in [`Payload::Raw`], bytes from the start of the record.
    pub offset: u32,
    /// Its size in [`Payload::Raw`], bytes.
    pub size: u32,
}

/// How a field's bytes are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    /// A signed integer of the field's size.
    Int,
    /// An unsigned integer of the field's size.
    Uint,
    /// A char array of fixed size, ended by NUL if shorter.
    FixedStr,
    /// `__data_loc char[]`: a u32 whose low half is the offset from the record's start, whose high half is the
    /// length.
    DataLocStr,
    /// `__rel_loc char[]`: the same, but the offset counts from the end of this field (Linux ≥ 5.18).
    RelLocStr,
    /// A string that runs to the end of the record (`print`'s `buf`).
    TailStr,
    /// Any other array: elements of `elem` bytes. With a size of 0 it runs to the end of the record (`bprint`'s `buf`).
    Bytes {
        /// Bytes per element.
        elem: u8,
    },
    /// `__data_loc T[]` of something else than char.
    DataLocBytes {
        /// Bytes per element.
        elem: u8,
    },
    /// `__rel_loc T[]` of something else than char.
    RelLocBytes {
        /// Bytes per element.
        elem: u8,
    },
}

impl FieldType {
    /// Whether its value is a text.
    pub fn is_text(self) -> bool {
        use FieldType::{DataLocStr, FixedStr, RelLocStr, TailStr};
        matches!(self, FixedStr | DataLocStr | RelLocStr | TailStr)
    }
}

/// A field's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// Text as the source has it; UTF-8 not promised.
    Str(&'a [u8]),
    /// Other bytes.
    Bytes(&'a [u8]),
}

impl Field {
    /// This field's value in `record`, a record as the kernel wrote it. `None` where the record is too short for
    /// it or points outside of itself.
    #[inline]
    pub fn value<'a>(&self, record: &'a [u8], endian: Endian) -> Option<Value<'a>> {
        let bytes = self.bytes(record, endian)?;
        Some(match self.ty {
            FieldType::Int => Value::Int(endian.int(bytes)?),
            FieldType::Uint => Value::Uint(endian.uint(bytes)?),
            FieldType::FixedStr | FieldType::TailStr | FieldType::DataLocStr | FieldType::RelLocStr => {
                Value::Str(until_nul(bytes))
            }
            FieldType::Bytes { .. } | FieldType::DataLocBytes { .. } | FieldType::RelLocBytes { .. } => {
                Value::Bytes(bytes)
            }
        })
    }

    /// This field's bytes in `record`; of a located one those it points at. `None` as for [`Field::value`].
    #[inline]
    pub fn bytes<'a>(&self, record: &'a [u8], endian: Endian) -> Option<&'a [u8]> {
        let offset = self.offset as usize;
        let base = match self.ty {
            FieldType::DataLocStr | FieldType::DataLocBytes { .. } => 0,
            FieldType::RelLocStr | FieldType::RelLocBytes { .. } => offset.checked_add(4)?,
            _ if self.size == 0 => return record.get(offset..),
            _ => return record.get(offset..offset.checked_add(self.size as usize)?),
        };
        let word = endian.uint(record.get(offset..offset.checked_add(4)?)?)? as u32;
        let start = base.checked_add((word & 0xffff) as usize)?;
        record.get(start..start.checked_add((word >> 16) as usize)?)
    }
}

/// Text up to its NUL, or all of it.
#[inline]
pub fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.iter().position(|b| *b == 0).map_or(bytes, |n| &bytes[..n])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(ty: FieldType, offset: u32, size: u32) -> Field {
        Field { name: "f".into(), ctype: String::new(), ty, offset, size }
    }

    #[test]
    fn fields_are_read_in_the_recording_machines_byte_order() {
        let f = field(FieldType::Int, 1, 2);
        assert_eq!(f.value(&[9, 0xff, 0xfe], Endian::Big), Some(Value::Int(-2)));
        assert_eq!(f.value(&[9, 0xfe, 0xff], Endian::Little), Some(Value::Int(-2)));
    }

    #[test]
    fn a_located_string_outside_the_record_is_no_value() {
        let data = [8, 0, 3, 0, 8, 0, 200, 0, b'a', b'b', 0];
        assert_eq!(field(FieldType::DataLocStr, 0, 4).value(&data, Endian::Little), Some(Value::Str(b"ab")));
        assert_eq!(field(FieldType::DataLocStr, 4, 4).value(&data, Endian::Little), None);
        assert_eq!(field(FieldType::Int, 9, 4).value(&data, Endian::Little), None);
    }
}
