//! How events of one kind are encoded, worked out once per kind: which field of the record becomes which field of
//! the message. Typed messages where Perfetto has one, `GenericFtraceEvent` for all others.

use super::proto::{bytes, message, string, uint, varint};
use crate::formats::perfetto::tables::{self, FieldKind, FieldSpec};
use crate::formats::{Event, EventType, Field, FieldType, Payload, Value};
use crate::ftrace::{Endian, task_state};

/// `FtraceEvent.generic`.
const GENERIC: u32 = 327;

/// How events of one kind are encoded.
pub enum Plan {
    /// A message of its own: its field number in `FtraceEvent`, and what goes into it.
    Typed {
        /// Field number in `FtraceEvent`.
        number: u32,
        /// What goes into it, in the order of the proto.
        steps: Vec<Step>,
    },
    /// `GenericFtraceEvent`.
    Generic {
        /// Its `event_name` field, encoded.
        name: Vec<u8>,
        /// Per field of the kind, its `name` field, encoded.
        fields: Vec<Vec<u8>>,
    },
}

/// One field of the message.
pub struct Step {
    field: usize,
    number: u32,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    /// An integer that lies in a little-endian record: where, and how wide.
    Int { offset: u32, size: u8, signed: bool },
    /// Elements of an array, one field each.
    Array { elem: u8 },
    /// Whatever the value is, made fit for the proto's type.
    Any(FieldKind),
}

impl Plan {
    /// The plan for events of `kind`.
    pub fn new(kind: &EventType) -> Plan {
        match tables::by_name(&kind.system, &kind.name) {
            Some(spec) => {
                let steps = spec.fields.iter().filter_map(|f| Step::new(kind, f));
                // 15 % of a whole trace, and nobody looks at it: the address of the kernel's own marker code.
                let steps = steps.filter(|s| kind.name != "print" || kind.fields[s.field].name != "ip");
                Plan::Typed { number: spec.number, steps: steps.collect() }
            }
            None => {
                let encoded = |text: &str| {
                    let mut out = Vec::new();
                    string(&mut out, 1, text.as_bytes());
                    out
                };
                Plan::Generic {
                    name: encoded(&kind.name),
                    fields: kind.fields.iter().map(|f| encoded(&f.name)).collect(),
                }
            }
        }
    }

    /// Fields of the kind that Perfetto's message has no place for.
    pub fn left_out<'k>(&self, kind: &'k EventType) -> Vec<&'k str> {
        match self {
            Plan::Generic { .. } => Vec::new(),
            Plan::Typed { steps, .. } => {
                let has = |n: usize| steps.iter().any(|s| s.field == n) || kind.fields[n].name == "ip";
                (0..kind.fields.len()).filter(|n| !has(*n)).map(|n| kind.fields[n].name.as_str()).collect()
            }
        }
    }

    /// Appends the event's message, as a field of `FtraceEvent`.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>, event: &Event<'_>, kind: &EventType) {
        match self {
            Plan::Typed { number, steps } => message(out, *number, |out| {
                for step in steps {
                    step.encode(out, event, kind);
                }
            }),
            Plan::Generic { name, fields } => message(out, GENERIC, |out| {
                out.extend_from_slice(name);
                for (index, name) in fields.iter().enumerate() {
                    let Some(value) = event.value(kind, index) else { continue };
                    message(out, 2, |out| {
                        out.extend_from_slice(name);
                        generic_value(out, value);
                    });
                }
            }),
        }
    }
}

fn generic_value(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Str(s) => string(out, 3, s),
        Value::Int(v) => uint(out, 4, v as u64),
        Value::Uint(v) => uint(out, 5, v),
        Value::Bytes(b) => string(out, 3, hex(b).as_bytes()),
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut s, b| {
        let _ = write!(s, "{b:02x}");
        s
    })
}

impl Step {
    fn new(kind: &EventType, spec: &FieldSpec) -> Option<Step> {
        let field = kind.field(spec.name)?;
        let Field { ty, offset, size, .. } = kind.fields[field];
        let int = matches!(spec.ty, FieldKind::Int | FieldKind::Uint);
        let what = match ty {
            FieldType::Int | FieldType::Uint if int && matches!(size, 1 | 2 | 4 | 8) => {
                What::Int { offset, size: size as u8, signed: ty == FieldType::Int }
            }
            FieldType::Bytes { elem }
            | FieldType::DataLocBytes { elem }
            | FieldType::RelLocBytes { elem }
                if int && spec.repeated =>
            {
                What::Array { elem }
            }
            _ => What::Any(spec.ty),
        };
        Some(Step { field, number: spec.number, what })
    }

    #[inline]
    fn encode(&self, out: &mut Vec<u8>, event: &Event<'_>, kind: &EventType) {
        if let (What::Int { offset, size, signed }, Payload::Raw { data, endian: Endian::Little }) =
            (self.what, event.payload)
        {
            if let Some(value) = little(data, offset as usize, size, signed) {
                uint(out, self.number, value);
            }
            return;
        }
        let Some(value) = event.value(kind, self.field) else { return };
        match (self.what, value) {
            (What::Array { elem }, Value::Bytes(b)) => {
                let Payload::Raw { endian, .. } = event.payload else { return };
                for element in b.chunks_exact(usize::from(elem).max(1)) {
                    uint(out, self.number, endian.uint(element).unwrap_or(0));
                }
            }
            (What::Any(FieldKind::Str), Value::Str(s)) => string(out, self.number, s),
            (What::Any(FieldKind::Str), value) => string(out, self.number, as_text(value).as_bytes()),
            (What::Any(FieldKind::Bytes), Value::Bytes(b) | Value::Str(b)) => bytes(out, self.number, b),
            (_, value) => {
                if let Some(number) = as_number(value) {
                    uint(out, self.number, number);
                }
            }
        }
    }
}

/// The integer at `offset` of a little-endian record, sign-extended if it is signed.
#[inline]
fn little(data: &[u8], offset: usize, size: u8, signed: bool) -> Option<u64> {
    let at = data.get(offset..)?;
    Some(match (size, signed) {
        (4, true) => i64::from(i32::from_le_bytes(*at.first_chunk()?)) as u64,
        (4, false) => u64::from(u32::from_le_bytes(*at.first_chunk()?)),
        (8, _) => u64::from_le_bytes(*at.first_chunk()?),
        (2, true) => i64::from(i16::from_le_bytes(*at.first_chunk()?)) as u64,
        (2, false) => u64::from(u16::from_le_bytes(*at.first_chunk()?)),
        (_, true) => i64::from(*at.first()? as i8) as u64,
        (_, false) => u64::from(*at.first()?),
    })
}

fn as_text(value: Value<'_>) -> String {
    match value {
        Value::Int(v) => v.to_string(),
        // A pointer to a string that the source could not resolve.
        Value::Uint(v) => format!("{v:#x}"),
        Value::Str(s) | Value::Bytes(s) => String::from_utf8_lossy(s).into_owned(),
    }
}

/// A value as an integer: texts give decimal or hexadecimal numbers, and task states as letters.
pub fn as_number(value: Value<'_>) -> Option<u64> {
    let text = match value {
        Value::Int(v) => return Some(v as u64),
        Value::Uint(v) => return Some(v),
        Value::Bytes(b) if b.len() <= 8 => return Endian::Little.uint(b),
        Value::Bytes(_) => return None,
        Value::Str(s) => std::str::from_utf8(s).ok()?.trim(),
    };
    if let Ok(number) = text.parse::<i64>() {
        return Some(number as u64);
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    text.parse::<u64>().ok().or_else(|| task_state::decode(text.as_bytes()))
}

/// Appends a packed array's next element.
#[inline]
pub fn packed(out: &mut Vec<u8>, value: i64) {
    varint(out, value as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_texts_write_them() {
        for (text, want) in [
            ("7", Some(7)),
            ("-1", Some(u64::MAX)),
            ("0xff", Some(255)),
            ("S", Some(1)),
            ("R+", Some(256)),
            ("?", None),
        ] {
            assert_eq!(as_number(Value::Str(text.as_bytes())), want, "{text}");
        }
    }

    #[test]
    fn a_record_too_short_for_a_field_leaves_it_out() {
        assert_eq!(little(&[1, 2, 3], 0, 4, false), None);
        assert_eq!(little(&[0, 0xff, 0xff], 1, 2, true), Some(u64::MAX));
        assert_eq!(little(&[0], 9, 1, true), None);
    }
}
