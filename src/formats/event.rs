//! The event that every reader pushes and every exporter takes: borrowed, so that passing one on costs nothing.

use crate::ftrace::Endian;

/// Which [`EventKind`] an event is of; dense, starting at 0, per source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KindId(pub u32);

/// A kind of event as its source describes it: `sched/sched_switch` and its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventKind {
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

impl EventKind {
    /// The position of the field called `name`. Look it up once per kind, not once per event.
    pub fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|f| f.name == name)
    }
}

/// One field of an [`EventKind`].
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
    /// Any other array: elements of `elem` bytes.
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

/// One kernel event (a marker is one too: kind `print`).
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// When, in ns of the source's clock ([`super::Head::clock`]).
    pub ts: u64,
    /// The CPU whose buffer it was in.
    pub cpu: u32,
    /// The kernel thread id that was running (`common_pid`); 0 is the idle task of the CPU.
    pub tid: i32,
    /// What kind.
    pub kind: KindId,
    /// `common_flags`: the kernel's trace_flag_type bits.
    pub flags: u8,
    /// `common_preempt_count`.
    pub preempt_count: u8,
    /// The thread's name where the event itself says it (text lines do); else look it up by `tid`.
    pub comm: Option<&'a [u8]>,
    /// The process id where the event itself says it (text lines with a TGID column do).
    pub tgid: Option<i32>,
    /// The fields.
    pub payload: Payload<'a>,
}

/// Where the fields of an [`Event`] are.
#[derive(Debug, Clone, Copy)]
pub enum Payload<'a> {
    /// The record as the kernel wrote it, `common_` fields included; [`Field::offset`] tells where each lies.
    Raw {
        /// The record.
        data: &'a [u8],
        /// Byte order of the machine that recorded.
        endian: Endian,
    },
    /// Values in the order of [`EventKind::fields`].
    Values {
        /// One per field; a source may have fewer.
        values: &'a [Value<'a>],
        /// What stood behind `name: ` in a text, so that it can be written again as it was.
        text: Option<&'a [u8]>,
    },
}

impl<'a> Event<'a> {
    /// The value of field number `index` of `kind`, which must be this event's kind. `None` where the record is
    /// too short for it or points outside of itself.
    pub fn value(&self, kind: &EventKind, index: usize) -> Option<Value<'a>> {
        match self.payload {
            Payload::Values { values, .. } => values.get(index).copied(),
            Payload::Raw { data, endian } => raw_value(data, endian, kind.fields.get(index)?),
        }
    }

    /// The same as an integer; a text that is a decimal number counts as one.
    pub fn int(&self, kind: &EventKind, index: usize) -> Option<i64> {
        match self.value(kind, index)? {
            Value::Int(v) => Some(v),
            Value::Uint(v) => Some(v as i64),
            Value::Str(s) => std::str::from_utf8(s).ok()?.trim().parse().ok(),
            Value::Bytes(_) => None,
        }
    }

    /// The same as text, cut at its NUL.
    pub fn text(&self, kind: &EventKind, index: usize) -> Option<&'a [u8]> {
        match self.value(kind, index)? {
            Value::Str(s) => Some(s),
            _ => None,
        }
    }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.iter().position(|b| *b == 0).map_or(bytes, |n| &bytes[..n])
}

fn raw_value<'a>(data: &'a [u8], endian: Endian, field: &Field) -> Option<Value<'a>> {
    let offset = field.offset as usize;
    let own = || data.get(offset..offset.checked_add(field.size as usize)?);
    let located = |relative: bool| -> Option<&'a [u8]> {
        let word = endian.uint(data.get(offset..offset.checked_add(4)?)?)? as u32;
        let base = if relative { offset + 4 } else { 0 };
        let start = base.checked_add((word & 0xffff) as usize)?;
        data.get(start..start.checked_add((word >> 16) as usize)?)
    };
    Some(match field.ty {
        FieldType::Int => Value::Int(endian.int(own()?)?),
        FieldType::Uint => Value::Uint(endian.uint(own()?)?),
        FieldType::FixedStr => Value::Str(until_nul(own()?)),
        FieldType::TailStr => Value::Str(until_nul(data.get(offset..)?)),
        FieldType::DataLocStr => Value::Str(until_nul(located(false)?)),
        FieldType::RelLocStr => Value::Str(until_nul(located(true)?)),
        FieldType::Bytes { .. } => Value::Bytes(own()?),
        FieldType::DataLocBytes { .. } => Value::Bytes(located(false)?),
        FieldType::RelLocBytes { .. } => Value::Bytes(located(true)?),
    })
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
        assert_eq!(raw_value(&[9, 0xff, 0xfe], Endian::Big, &f), Some(Value::Int(-2)));
        assert_eq!(raw_value(&[9, 0xfe, 0xff], Endian::Little, &f), Some(Value::Int(-2)));
    }

    #[test]
    fn a_located_string_outside_the_record_is_no_value() {
        let data = [8, 0, 3, 0, 8, 0, 200, 0, b'a', b'b', 0];
        assert_eq!(
            raw_value(&data, Endian::Little, &field(FieldType::DataLocStr, 0, 4)),
            Some(Value::Str(b"ab"))
        );
        assert_eq!(raw_value(&data, Endian::Little, &field(FieldType::DataLocStr, 4, 4)), None);
        assert_eq!(raw_value(&data, Endian::Little, &field(FieldType::Int, 9, 4)), None);
    }
}
