//! The types of events: their names, their fields, and how a field's value is read from a record in the byte
//! order of the machine that recorded it.

use crate::text::until_nul;

/// Byte order of the machine that recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endian {
    /// Least significant byte first: every Android device, x86.
    Little,
    /// Most significant byte first: old MIPS, s390x, some PowerPC.
    Big,
}

impl Endian {
    /// Byte order of the machine that this program runs on.
    pub const NATIVE: Endian = if cfg!(target_endian = "big") { Endian::Big } else { Endian::Little };

    /// Reads an unsigned integer of 1, 2, 4 or 8 bytes. Any other length gives `None`.
    #[inline]
    pub fn uint(self, bytes: &[u8]) -> Option<u64> {
        Some(match (bytes.len(), self) {
            (1, _) => u64::from(bytes[0]),
            (2, Endian::Little) => u64::from(u16::from_le_bytes(bytes.try_into().ok()?)),
            (2, Endian::Big) => u64::from(u16::from_be_bytes(bytes.try_into().ok()?)),
            (4, Endian::Little) => u64::from(u32::from_le_bytes(bytes.try_into().ok()?)),
            (4, Endian::Big) => u64::from(u32::from_be_bytes(bytes.try_into().ok()?)),
            (8, Endian::Little) => u64::from_le_bytes(bytes.try_into().ok()?),
            (8, Endian::Big) => u64::from_be_bytes(bytes.try_into().ok()?),
            _ => return None,
        })
    }

    /// Reads a signed integer of 1, 2, 4 or 8 bytes. Any other length gives `None`.
    #[inline]
    pub fn int(self, bytes: &[u8]) -> Option<i64> {
        let unused = 64u32.checked_sub(8 * bytes.len() as u32)?;
        Some(((self.uint(bytes)? << unused) as i64) >> unused)
    }
}

/// A type of event as its source describes it: `sched/sched_switch` and its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventType {
    /// The kernel's subsystem (`sched`). It is empty where the source (a text) does not name the subsystem.
    pub system: String,
    /// The event's name (`sched_switch`). A marker is always named `print`, even where a text calls it
    /// `tracing_mark_write` or `0`.
    pub name: String,
    /// The fields except the `common_` fields. Each event has the values of the `common_` fields beside its
    /// record.
    pub fields: Vec<Field>,
    /// The kernel's `print fmt:` line, where the source has one.
    pub print_fmt: Option<String>,
}

impl EventType {
    /// The index of the field with this name. Callers look it up once per event type, not once per event.
    pub fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|f| f.name == name)
    }
}

/// One field of an [`EventType`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The field's name in the kernel (`prev_comm`).
    pub name: String,
    /// The C type as the kernel prints it (`pid_t`, `char[16]`). It is empty where the source does not name
    /// the type.
    pub ctype: String,
    /// How the field's bytes are read.
    pub ty: FieldType,
    /// Offset of the field in a record as the kernel wrote it, bytes.
    pub offset: u32,
    /// Size of the field in such a record, bytes.
    pub size: u32,
}

/// How a field's bytes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    /// A signed integer of the field's size.
    Int,
    /// An unsigned integer of the field's size.
    Uint,
    /// A char array of fixed size. A shorter text ends with a NUL.
    FixedStr,
    /// `__data_loc char[]`: a u32. Its low half is the text's offset from the start of the record, its high
    /// half the text's length.
    DataLocStr,
    /// `__rel_loc char[]` (Linux ≥ 5.18): like `__data_loc`, but the offset counts from the end of this
    /// field.
    RelLocStr,
    /// A text that runs to the end of the record (field `buf` of `print`).
    TailStr,
    /// Any other array. With a size of 0 it runs to the end of the record (field `buf` of `bprint`).
    Bytes {
        /// Bytes per element.
        elem: u8,
    },
    /// `__data_loc T[]` of another type than char.
    DataLocBytes {
        /// Bytes per element.
        elem: u8,
    },
    /// `__rel_loc T[]` of another type than char.
    RelLocBytes {
        /// Bytes per element.
        elem: u8,
    },
}

impl FieldType {
    /// Whether the field's value is a text.
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
    /// A text as the source has it. It may be invalid UTF-8.
    Str(&'a [u8]),
    /// Other bytes.
    Bytes(&'a [u8]),
}

impl Field {
    /// The field's value in a record as the kernel wrote it. `None` where the record ends before the value
    /// does.
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

    /// The field's bytes in `record`. For `__data_loc` and `__rel_loc` these are the bytes that the field
    /// points at. `None` as for [`Field::value`].
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
