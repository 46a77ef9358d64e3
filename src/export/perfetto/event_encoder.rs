//! Encodes events as `FtraceEvent` messages.
//!
//! An [`EventEncoder`] is made once for each event type. It maps the fields of the kernel's record to the
//! fields of the message. Event types without a message of their own in Perfetto become
//! `GenericFtraceEvent` messages.
//!
//! Fields that hold the address of a kernel function have its name in Perfetto: Perfetto's own recorder
//! writes an interning id in place of the address, and the name under that id as
//! `InternedData.kernel_symbols` of the packet sequence. trace_processor looks the name up in the fields of
//! [`event_table::SYMBOL_FIELDS`] (src/trace_processor/importers/ftrace/ftrace_parser.cc,
//! kKernelFunctionFields).

use std::collections::HashMap;
use std::sync::Arc;

use data_encoding::HEXLOWER;

use super::packet::packet;
use crate::formats::perfetto::event_table::{self, MessageField, ProtoType};
use crate::formats::perfetto::fields::{
    ftrace_event, generic_ftrace_event, generic_ftrace_event_field, interned_data, interned_string,
    sequence_flags, trace_packet,
};
use crate::formats::perfetto::wire::write::{bytes, message, string, uint};
use crate::formats::{Event, EventType, Field, FieldType, Payload, Value};
use crate::ftrace::print_fmt::Symbolizer;
use crate::ftrace::{Endian, task_state};

/// Encodes events of one type.
pub(super) enum EventEncoder {
    /// Perfetto has a message for this event type.
    Typed {
        /// The message's field number in `FtraceEvent`.
        number: u32,
        /// The encoders of the message's fields, in the order of the proto.
        fields: Vec<FieldEncoder>,
    },
    /// The event becomes a `GenericFtraceEvent`.
    Generic {
        /// The encoded field `event_name`.
        name: Vec<u8>,
        /// For each field of the event type, the encoded field `GenericFtraceEvent.Field.name`.
        fields: Vec<Vec<u8>>,
    },
}

/// Encodes one field of the message.
pub(super) struct FieldEncoder {
    /// The index of the field in the event type.
    field: usize,
    /// The field number in the message.
    number: u32,
    source: FieldSource,
}

/// The source of a field's value.
#[derive(Clone, Copy)]
enum FieldSource {
    /// An integer of `size` bytes at `offset` in a little-endian record.
    Int { offset: u32, size: u8, signed: bool },
    /// An array with elements of `elem` bytes. Each element becomes a field.
    Array { elem: u8 },
    /// An address in the kernel, or the name of a symbol. `by_address` says whether addresses become symbols.
    Symbol { by_address: bool },
    /// A decoded value, converted to the type that the proto declares.
    Converted(ProtoType),
}

impl EventEncoder {
    pub(super) fn new(kind: &EventType) -> EventEncoder {
        match event_table::by_name(&kind.system, &kind.name) {
            Some(message) => {
                let fields = message.fields.iter().filter_map(|f| FieldEncoder::new(kind, f));
                // `ip` is the address of the kernel's own marker code: no viewer shows it, and it takes 15 %
                // of a trace.
                let fields = fields.filter(|f| kind.name != "print" || kind.fields[f.field].name != "ip");
                EventEncoder::Typed { number: message.number, fields: fields.collect() }
            }
            None => {
                let encoded = |number: u32, text: &str| {
                    let mut out = Vec::new();
                    string(&mut out, number, text.as_bytes());
                    out
                };
                let field = |f: &Field| encoded(generic_ftrace_event_field::NAME, &f.name);
                EventEncoder::Generic {
                    name: encoded(generic_ftrace_event::EVENT_NAME, &kind.name),
                    fields: kind.fields.iter().map(field).collect(),
                }
            }
        }
    }

    /// The names of the event type's fields that Perfetto's message cannot hold.
    pub(super) fn left_out<'k>(&self, kind: &'k EventType) -> Vec<&'k str> {
        match self {
            EventEncoder::Generic { .. } => Vec::new(),
            EventEncoder::Typed { fields, .. } => {
                let has = |n: usize| fields.iter().any(|f| f.field == n) || kind.fields[n].name == "ip";
                (0..kind.fields.len()).filter(|n| !has(*n)).map(|n| kind.fields[n].name.as_str()).collect()
            }
        }
    }

    /// Appends the event's message, as a field of `FtraceEvent`.
    #[inline]
    pub(super) fn encode(
        &self,
        out: &mut Vec<u8>,
        event: &Event<'_>,
        kind: &EventType,
        symbols: &mut KernelSymbols,
    ) {
        match self {
            EventEncoder::Typed { number, fields } => message(out, *number, |out| {
                for field in fields {
                    field.encode(out, event, kind, symbols);
                }
            }),
            EventEncoder::Generic { name, fields } => message(out, ftrace_event::GENERIC, |out| {
                out.extend_from_slice(name);
                for (index, name) in fields.iter().enumerate() {
                    let Some(value) = event.value(kind, index) else { continue };
                    message(out, generic_ftrace_event::FIELD, |out| {
                        out.extend_from_slice(name);
                        generic_value(out, value);
                    });
                }
            }),
        }
    }
}

fn generic_value(out: &mut Vec<u8>, value: Value<'_>) {
    use generic_ftrace_event_field as field;
    match value {
        Value::Str(s) => string(out, field::STR_VALUE, s),
        Value::Int(v) => uint(out, field::INT_VALUE, v as u64),
        Value::Uint(v) => uint(out, field::UINT_VALUE, v),
        Value::Bytes(b) => string(out, field::STR_VALUE, HEXLOWER.encode(b).as_bytes()),
    }
}

impl FieldEncoder {
    fn new(kind: &EventType, spec: &MessageField) -> Option<FieldEncoder> {
        let field = kind.field(spec.name)?;
        let Field { ty, offset, size, .. } = kind.fields[field];
        let int = matches!(spec.ty, ProtoType::Int | ProtoType::Uint);
        let is_symbol = event_table::is_symbol(&kind.name, spec.name);
        let source = match ty {
            // Texts have the name of a function in many fields.
            _ if spec.ty == ProtoType::Uint
                && !spec.repeated
                && (is_symbol || (size == 0 && is_function_field(spec.name))) =>
            {
                FieldSource::Symbol { by_address: is_symbol }
            }
            FieldType::Int | FieldType::Uint if int && matches!(size, 1 | 2 | 4 | 8) => {
                FieldSource::Int { offset, size: size as u8, signed: ty == FieldType::Int }
            }
            FieldType::Bytes { elem }
            | FieldType::DataLocBytes { elem }
            | FieldType::RelLocBytes { elem }
                if int && spec.repeated =>
            {
                FieldSource::Array { elem }
            }
            _ => FieldSource::Converted(spec.ty),
        };
        Some(FieldEncoder { field, number: spec.number, source })
    }

    #[inline]
    fn encode(&self, out: &mut Vec<u8>, event: &Event<'_>, kind: &EventType, symbols: &mut KernelSymbols) {
        if let (FieldSource::Int { offset, size, signed }, Payload::Raw { data, endian: Endian::Little }) =
            (self.source, event.payload)
        {
            if let Some(value) = little(data, offset as usize, size, signed) {
                uint(out, self.number, value);
            }
            return;
        }
        let Some(value) = event.value(kind, self.field) else { return };
        match (self.source, value) {
            (FieldSource::Array { elem }, Value::Bytes(b)) => {
                let Payload::Raw { endian, .. } = event.payload else { return };
                for element in b.chunks_exact(usize::from(elem).max(1)) {
                    uint(out, self.number, endian.uint(element).unwrap_or(0));
                }
            }
            (FieldSource::Symbol { by_address }, value) => {
                let id = match (as_number(value), value) {
                    (Some(address), _) if by_address => Some(symbols.of_address(address).unwrap_or(address)),
                    (Some(number), _) => Some(number),
                    (None, Value::Str(text)) => symbols.of_text(text),
                    (None, _) => None,
                };
                if let Some(id) = id {
                    uint(out, self.number, id);
                }
            }
            (FieldSource::Converted(ProtoType::Str), Value::Str(s)) => string(out, self.number, s),
            (FieldSource::Converted(ProtoType::Str), value) => {
                string(out, self.number, as_text(value).as_bytes());
            }
            (FieldSource::Converted(ProtoType::Bytes), Value::Bytes(b) | Value::Str(b)) => {
                bytes(out, self.number, b);
            }
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
        // The record holds a pointer to a string, and the recording does not hold that string.
        Value::Uint(v) => format!("{v:#x}"),
        Value::Str(s) | Value::Bytes(s) => String::from_utf8_lossy(s).into_owned(),
    }
}

/// A value as an integer. Text formats write integers in decimal or hexadecimal, and task states as letters.
pub(super) fn as_number(value: Value<'_>) -> Option<u64> {
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

/// The names of fields in which texts have the name of a function.
const FUNCTION_FIELDS: &[&str] =
    &["function", "func", "caller", "call_site", "callsite", "callback", "ip", "parent_ip", "shrink"];

/// Whether a field of this name holds the address of a function.
fn is_function_field(name: &str) -> bool {
    FUNCTION_FIELDS.contains(&name)
}

/// The symbols that have been interned.
#[derive(Default)]
pub(super) struct KernelSymbols {
    ids: HashMap<Vec<u8>, u64>,
    by_address: HashMap<u64, Option<u64>>,
    /// Symbols that no packet has announced yet.
    new: Vec<(u64, Vec<u8>)>,
    is_announced: bool,
    /// The kernel's own symbols, where the recording has them.
    pub(super) symbolizer: Option<Arc<Symbolizer>>,
}

impl KernelSymbols {
    /// The interning id of a symbol as a text has it: without the offset, the size and the module
    /// (`__fdget_pos+0x44/0x50 [fuse]`). `None` if `text` is not a symbol.
    fn of_text(&mut self, text: &[u8]) -> Option<u64> {
        let end = text.iter().position(|b| matches!(b, b'+' | b' ' | b'\t')).unwrap_or(text.len());
        let name = &text[..end];
        let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$' | b':');
        if name.is_empty() || name[0].is_ascii_digit() || !name.iter().all(is_name) {
            return None;
        }
        if let Some(id) = self.ids.get(name) {
            return Some(*id);
        }
        // 0 is not a valid id.
        let id = self.ids.len() as u64 + 1;
        self.ids.insert(name.to_vec(), id);
        self.new.push((id, name.to_vec()));
        Some(id)
    }

    /// The interning id of the symbol at `address`, where the recording has the kernel's symbols.
    fn of_address(&mut self, address: u64) -> Option<u64> {
        if let Some(known) = self.by_address.get(&address) {
            return *known;
        }
        let symbolizer = self.symbolizer.clone()?;
        let mut name = Vec::new();
        symbolizer.symbol(address, false, &mut name);
        let id = self.of_text(&name);
        self.by_address.insert(address, id);
        id
    }

    /// Appends a packet with the names of new symbols. It must come before the packets that refer to them.
    #[inline]
    pub(super) fn announce(&mut self, out: &mut Vec<u8>, sequence: u64) {
        if !self.new.is_empty() {
            self.announce_new(out, sequence);
        }
    }

    #[cold]
    fn announce_new(&mut self, out: &mut Vec<u8>, sequence: u64) {
        let flags = if std::mem::replace(&mut self.is_announced, true) {
            sequence_flags::NEEDS_INCREMENTAL_STATE
        } else {
            sequence_flags::INCREMENTAL_STATE_CLEARED
        };
        packet(out, sequence, |out| {
            message(out, trace_packet::INTERNED_DATA, |out| {
                for (id, name) in self.new.drain(..) {
                    message(out, interned_data::KERNEL_SYMBOLS, |out| {
                        uint(out, interned_string::IID, id);
                        string(out, interned_string::STR, &name);
                    });
                }
            });
            uint(out, trace_packet::SEQUENCE_FLAGS, flags);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_task_states_of_text_formats_become_integers() {
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

    #[test]
    fn a_symbol_is_interned_once_and_without_offset_and_module() {
        let mut symbols = KernelSymbols::default();
        let ids: Vec<Option<u64>> =
            ["devfreq_monitor", "__fdget_pos+0x44/0x50", "__fdget_pos", "fuse_do [fuse]"]
                .iter()
                .map(|text| symbols.of_text(text.as_bytes()))
                .collect();
        assert_eq!(ids, [Some(1), Some(2), Some(2), Some(3)]);
        for text in ["", "0xffffff8008", "12", "(null)", "a|b"] {
            assert_eq!(symbols.of_text(text.as_bytes()), None, "{text}");
        }
        let mut out = Vec::new();
        symbols.announce(&mut out, 1);
        assert!(!out.is_empty());
        let len = out.len();
        symbols.announce(&mut out, 1);
        assert_eq!(out.len(), len, "nothing is announced twice");
    }
}
