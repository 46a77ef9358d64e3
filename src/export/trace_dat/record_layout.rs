//! The layout of the records of each event type: the places of the fields, the `format` text that describes
//! them, and the encoder.

use std::borrow::Cow;

use crate::formats::{Event, EventType, Field, FieldType, Payload, Value, event_catalog};
use crate::ftrace::Endian;

/// The first id that this module gives to an event type. Smaller ids belong to the kernel's own types
/// (`ftrace/print` has 5).
const FIRST_ID: u16 = 300;
/// The id that every kernel gives to `ftrace/print` (TRACE_PRINT of enum trace_type).
const PRINT_ID: u16 = 5;
/// The address of a marker whose source names no address. [`KALLSYMS`] gives it the symbol
/// `tracing_mark_write`.
const MARKER_IP: u64 = 0xffff_ffff_8000_0000;
/// The text of `/proc/kallsyms` for the file: the one symbol that markers without an address need.
pub(super) const KALLSYMS: &str = "ffffffff80000000 T tracing_mark_write\nffffffff80001000 T _etext\n";

/// The layout of the records of one event type.
pub(super) struct DatRecordLayout {
    /// The `common_type` of the records.
    pub(super) id: u16,
    /// The subsystem in whose directory the `format` file belongs.
    pub(super) system: String,
    /// Text of the `format` file.
    pub(super) format: String,
    fields: Vec<Field>,
    /// Bytes of a record before the texts and arrays whose lengths vary.
    fixed_bytes: usize,
}

impl DatRecordLayout {
    /// The layout of event type number `index`. `None` where the file has more event types than ids.
    pub(super) fn new(index: u32, kind: &EventType) -> Option<DatRecordLayout> {
        let is_print = kind.name == "print";
        let id = if is_print { PRINT_ID } else { u16::try_from(index).ok()?.checked_add(FIRST_ID)? };
        let (fields, print_fmt) = placed(kind);
        let fixed_bytes =
            fields.iter().map(|f| f.offset + f.size).max().unwrap_or(event_catalog::COMMON_SIZE) as usize;
        let system = match kind.system.as_str() {
            _ if is_print => "ftrace",
            // The source (a text) does not name the subsystem.
            "" => "text",
            system => system,
        };
        let format = format_text(&kind.name, id, &fields, &print_fmt);
        Some(DatRecordLayout { id, system: system.to_owned(), format, fields, fixed_bytes })
    }

    /// Appends the event's record to `out`. A value that does not fit its field is cut, or left out where a
    /// part of it would be wrong. Returns the number of such values.
    pub(super) fn encode(&self, event: &Event<'_>, kind: &EventType, out: &mut Vec<u8>) -> u64 {
        let start = out.len();
        if let Payload::Raw { data, endian: Endian::Little } = event.payload
            && data.len() >= event_catalog::COMMON_SIZE as usize
        {
            // The record stays as the kernel wrote it. Only its event id is this file's.
            out.extend_from_slice(data);
            out[start..start + 2].copy_from_slice(&self.id.to_le_bytes());
            return 0;
        }
        out.extend_from_slice(&self.id.to_le_bytes());
        out.extend_from_slice(&[event.flags as u8, event.preempt_count]);
        out.extend_from_slice(&event.tid.0.to_le_bytes());
        out.resize(start + self.fixed_bytes, 0);
        let mut unfit = 0;
        for (i, field) in self.fields.iter().enumerate() {
            let fits = event.value(kind, i).is_none_or(|value| put(out, start, field, value));
            unfit += u64::from(!fits);
        }
        unfit
    }
}

/// Puts one value into the record that starts at `start`. Returns whether the value fits its field.
fn put(out: &mut Vec<u8>, start: usize, field: &Field, value: Value<'_>) -> bool {
    let at = start + field.offset as usize;
    let size = field.size as usize;
    let number = |out: &mut Vec<u8>, v: u64| {
        out[at..at + size].copy_from_slice(&v.to_le_bytes()[..size.min(8)]);
        true
    };
    match (field.ty, value) {
        (FieldType::Int | FieldType::Uint, Value::Int(v)) => number(out, v as u64),
        (FieldType::Int | FieldType::Uint, Value::Uint(0)) if field.name == "ip" => number(out, MARKER_IP),
        (FieldType::Int | FieldType::Uint, Value::Uint(v)) => number(out, v),
        // The source has the name of the symbol at an address, and not the address.
        (FieldType::Int | FieldType::Uint, _) => false,
        (FieldType::FixedStr, Value::Str(s)) => {
            let len = s.len().min(size.saturating_sub(1));
            out[at..at + len].copy_from_slice(&s[..len]);
            len == s.len()
        }
        (FieldType::TailStr, Value::Str(s)) => {
            out.extend_from_slice(s);
            // The kernel ends each marker with a line break.
            if s.last() != Some(&b'\n') {
                out.push(b'\n');
            }
            out.push(0);
            true
        }
        (FieldType::Bytes { .. }, Value::Bytes(b)) => {
            let len = b.len().min(size);
            out[at..at + len].copy_from_slice(&b[..len]);
            len == b.len()
        }
        (FieldType::DataLocStr, Value::Str(s)) => located(out, start, at, s, true),
        (FieldType::DataLocBytes { .. }, Value::Bytes(b)) => located(out, start, at, b, false),
        _ => false,
    }
}

/// Writes a `__data_loc` value: appends the bytes to the record, and puts their offset and length into the
/// field. Returns whether both numbers fit into 16 bits.
fn located(out: &mut Vec<u8>, start: usize, at: usize, bytes: &[u8], string: bool) -> bool {
    let offset = out.len() - start;
    let len = bytes.len() + usize::from(string);
    let (Ok(offset), Ok(len)) = (u16::try_from(offset), u16::try_from(len)) else { return false };
    out.extend_from_slice(bytes);
    if string {
        out.push(0);
    }
    let word = u32::from(len) << 16 | u32::from(offset);
    out[at..at + 4].copy_from_slice(&word.to_le_bytes());
    true
}

/// The event type's fields, each with its place in the record, and the print format.
fn placed(kind: &EventType) -> (Vec<Field>, String) {
    let has_places =
        kind.fields.iter().all(|f| f.offset >= event_catalog::COMMON_SIZE && !f.ctype.is_empty());
    if has_places {
        return (kind.fields.clone(), kind.print_fmt.clone().unwrap_or_else(|| print_fmt(&kind.fields)));
    }
    let like = event_catalog::lookup(kind.name.as_bytes())
        .iter()
        .find(|k| k.kind.fields.iter().all(|f| kind.field(&f.name).is_some()));
    let mut offset = event_catalog::COMMON_SIZE;
    let fields: Vec<Field> = kind
        .fields
        .iter()
        .map(|f| {
            let twin = like.and_then(|k| Some(&k.kind.fields[k.kind.field(&f.name)?]));
            let (ctype, ty, size) = match (twin, f.ty) {
                (Some(twin), _) => (twin.ctype.clone(), twin.ty, twin.size),
                (None, _) if kind.name == "print" && f.name == "buf" => {
                    ("char[]".into(), FieldType::TailStr, 0)
                }
                (None, FieldType::Int) => ("long".into(), f.ty, 8),
                (None, FieldType::Uint) => ("unsigned long".into(), f.ty, 8),
                (None, FieldType::Bytes { .. } | FieldType::DataLocBytes { .. }) => {
                    ("__data_loc unsigned char[]".into(), FieldType::DataLocBytes { elem: 1 }, 4)
                }
                _ => ("__data_loc char[]".into(), FieldType::DataLocStr, 4),
            };
            let align = match ty {
                FieldType::FixedStr => 1,
                FieldType::Bytes { elem } => u32::from(elem),
                _ => size,
            };
            let place = offset.next_multiple_of(align.max(1));
            offset = place + size;
            Field { name: f.name.clone(), ctype, ty, offset: place, size }
        })
        .collect();
    let print = match (like.and_then(|k| k.kind.print_fmt.clone()), kind.name.as_str()) {
        (Some(print), _) => print,
        (None, "print") => r#""%ps: %s", (void *)REC->ip, REC->buf"#.into(),
        (None, _) => print_fmt(&fields),
    };
    (fields, print)
}

/// A print format that prints `name=value` for each field.
fn print_fmt(fields: &[Field]) -> String {
    let mut fmt = String::new();
    let mut args = String::new();
    for field in fields {
        let name = &field.name;
        let (conversion, arg) = match field.ty {
            FieldType::Int => ("%ld", format!("REC->{}", identifier(name))),
            FieldType::Uint => ("%lu", format!("REC->{}", identifier(name))),
            FieldType::DataLocStr => ("%s", format!("__get_str({})", identifier(name))),
            FieldType::FixedStr | FieldType::TailStr => ("%s", format!("REC->{}", identifier(name))),
            _ => continue,
        };
        let is_text = fields.len() == 1 && *name == crate::formats::TEXT_FIELD;
        let label = if is_text { String::new() } else { format!("{name}=") };
        fmt.push_str(&format!("{}{label}{conversion}", if fmt.is_empty() { "" } else { " " }));
        args.push_str(", ");
        args.push_str(&arg);
    }
    format!("\"{fmt}\"{args}")
}

/// The name of a field as C permits it: a text may have `.ext_prio=7`.
fn identifier(name: &str) -> Cow<'_, str> {
    let starts_with_digit = name.starts_with(|first: char| first.is_ascii_digit());
    match (starts_with_digit, name.contains('.')) {
        (false, false) => name.into(),
        (starts_with_digit, _) => {
            format!("{}{}", if starts_with_digit { "_" } else { "" }, name.replace('.', "_dot_")).into()
        }
    }
}

/// The text of `events/SYSTEM/NAME/format`.
fn format_text(name: &str, id: u16, fields: &[Field], print_fmt: &str) -> String {
    let line = |decl: &str, offset: u32, size: u32, signed: bool| {
        let signed = u8::from(signed);
        format!("\tfield:{decl};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n")
    };
    let mut out = format!("name: {name}\nID: {id}\nformat:\n");
    out += &line("unsigned short common_type", 0, 2, false);
    out += &line("unsigned char common_flags", 2, 1, false);
    out += &line("unsigned char common_preempt_count", 3, 1, false);
    out += &line("int common_pid", 4, 4, true);
    // libtraceevent insists on the empty line.
    out.push('\n');
    for f in fields {
        let decl = match f.ctype.split_once('[') {
            Some((base, len)) if !f.ctype.starts_with("__") => {
                format!("{base} {}[{len}", identifier(&f.name))
            }
            _ => format!("{} {}", f.ctype, identifier(&f.name)),
        };
        out += &line(&decl, f.offset, f.size, f.ty == FieldType::Int);
    }
    out + &format!("\nprint fmt: {print_fmt}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::formats::EventTypeId;
    use crate::ftrace::EventFormat;
    use crate::ftrace::print_fmt::{PrintFmt, Symbolizer};
    use crate::ids::{Cpu, Tid};

    fn field(name: &str, ctype: &str, ty: FieldType, offset: u32, size: u32) -> Field {
        Field { name: name.into(), ctype: ctype.into(), ty, offset, size }
    }

    fn event_type(fields: Vec<Field>) -> EventType {
        EventType { system: "test".into(), name: "test_event".into(), fields, print_fmt: None }
    }

    /// Encodes one event, and decodes the record by the `format` text of the layout.
    fn round_trip(kind: &EventType, values: &[Value<'_>]) -> (u64, Vec<u8>, EventFormat) {
        let layout = DatRecordLayout::new(0, kind).unwrap();
        let event = Event {
            ts: Timestamp(1),
            cpu: Cpu(0),
            tid: Tid(77),
            kind: EventTypeId(0),
            flags: 3,
            preempt_count: 2,
            comm: None,
            tgid: None,
            payload: Payload::Values { values, text: None },
        };
        let mut record = Vec::new();
        let unfit = layout.encode(&event, kind, &mut record);
        (unfit, record, EventFormat::parse(&layout.system, &layout.format).unwrap())
    }

    #[test]
    fn a_key_that_c_does_not_permit_as_a_name_keeps_its_value_and_its_label() {
        let kind = event_type(vec![
            field(".ext_prio", "", FieldType::Int, 0, 0),
            field("2nd", "", FieldType::DataLocStr, 0, 0),
        ]);
        let (unfit, record, format) = round_trip(&kind, &[Value::Int(7), Value::Str(b"x")]);
        assert_eq!(unfit, 0);
        let print = PrintFmt::compile(&format.kind, 8).unwrap();
        let symbols = Symbolizer::new(8, Box::new(Vec::new), Box::new(Vec::new));
        let mut text = Vec::new();
        print.print(&record, Endian::Little, &symbols, &mut text).unwrap();
        assert_eq!(String::from_utf8_lossy(&text), ".ext_prio=7 2nd=x");
    }

    #[test]
    fn an_encoded_record_is_decoded_by_its_own_format_text() {
        let kind = event_type(vec![
            field("number", "", FieldType::Int, 0, 0),
            field("address", "", FieldType::Uint, 0, 0),
            field("text", "", FieldType::DataLocStr, 0, 0),
            field("bytes", "", FieldType::DataLocBytes { elem: 1 }, 0, 0),
        ]);
        let values =
            [Value::Int(-5), Value::Uint(u64::MAX), Value::Str(b"some text"), Value::Bytes(&[1, 0, 2])];
        let (unfit, record, format) = round_trip(&kind, &values);
        assert_eq!(unfit, 0);
        assert_eq!(record[..8], [44, 1, 3, 2, 77, 0, 0, 0]);
        for (field, value) in format.kind.fields.iter().zip(values) {
            assert_eq!(field.value(&record, Endian::Little), Some(value), "{}", field.name);
        }
    }

    #[test]
    fn values_that_do_not_fit_their_field_are_cut_and_counted() {
        let kind = event_type(vec![
            field("comm", "char[8]", FieldType::FixedStr, 8, 8),
            field("address", "unsigned long", FieldType::Uint, 16, 8),
            field("text", "__data_loc char[]", FieldType::DataLocStr, 24, 4),
        ]);
        let long = vec![b'x'; 70_000];
        let values = [Value::Str(b"long name"), Value::Str(b"a_symbol"), Value::Str(&long)];
        let (unfit, record, format) = round_trip(&kind, &values);
        assert_eq!(unfit, 3);
        let decoded = |i: usize| format.kind.fields[i].value(&record, Endian::Little);
        assert_eq!(
            [decoded(0), decoded(1), decoded(2)],
            [Some(Value::Str(b"long na")), Some(Value::Uint(0)), Some(Value::Str(b""))]
        );
    }
}
