//! Decodes the messages of `FtraceEvent`: which event type a message has, and the values of its fields.

use std::collections::HashMap;
use std::io;

use super::event_table::{self, ProtoType};
use super::fields::{
    descriptor_proto, field_descriptor_proto, field_descriptor_proto_label, field_descriptor_proto_type,
    ftrace_event, ftrace_event_bundle, generic_event_descriptor, generic_ftrace_event,
    generic_ftrace_event_field,
};
use super::wire::read::{WireValue, fields, last_value};
use crate::formats::event_catalog::{self, MAX_FIELDS};
use crate::formats::event_registry::{EventRegistry, TypesByShape, type_of};
use crate::formats::{EventType, EventTypeId, Field, FieldType, Sink, Value};
use crate::varint;

/// The most elements of a repeated field that are kept for one event.
const MAX_ELEMENTS: usize = 64;
/// Bytes of one element of a repeated field, as the event's value holds it.
const ARRAY_ELEMENT_BYTES: usize = 8;
const MAX_ARRAY_BYTES: usize = MAX_ELEMENTS * ARRAY_ELEMENT_BYTES;
/// The highest field number that a value is decoded for. Protobuf permits 2^29; real event messages stay
/// below this.
const MAX_FIELD_NUMBER: usize = 4096;

/// The positions of fields in the values of a decoded `sched_switch`.
pub(super) mod sched_switch_value {
    pub(in super::super) const NEXT_COMM: usize = 4;
    pub(in super::super) const NEXT_PID: usize = 5;
    pub(in super::super) const NEXT_PRIO: usize = 6;
}

/// The mapping of the fields of one event type's message to the event's values.
struct MessageLayout {
    id: EventTypeId,
    /// Indexed by field number: the position of the field's value.
    positions: Vec<Option<usize>>,
    /// The values of fields that the message leaves out.
    defaults: Vec<Value<'static>>,
    /// The position of the repeated field, if there is one.
    repeated: Option<usize>,
    /// The position of the field that may hold the interning id of a kernel symbol, if there is one.
    symbol: Option<usize>,
}

/// Decodes events, and announces each event type to the sink before the type's first event.
#[derive(Default)]
pub(super) struct EventDecoder {
    types: EventRegistry,
    layouts: HashMap<u32, MessageLayout>,
    generic: HashMap<Vec<u8>, TypesByShape>,
    /// Field numbers of `FtraceEvent` that neither Perfetto's protos nor the file describe.
    pub(super) unknown: Vec<u32>,
    /// Fields of events that the file describes, and the decoder has no place for.
    pub(super) unread_fields: u64,
    /// Values that the decoder has no place for: see [`DecodedValues::left_out`].
    pub(super) unread_values: u64,
    switch: Option<EventTypeId>,
    waking: Option<EventTypeId>,
}

/// The values of one event. The caller reuses this struct for all events.
pub(super) struct DecodedValues<'a> {
    pub(super) list: [Value<'a>; MAX_FIELDS],
    pub(super) len: usize,
    /// The elements of the repeated field, [`ARRAY_ELEMENT_BYTES`] bytes each, little-endian.
    pub(super) array: [u8; MAX_ARRAY_BYTES],
    pub(super) array_len: usize,
    /// The position of the repeated field in `list`, if the event has one.
    pub(super) array_field: Option<usize>,
    /// The number of the event's values beyond [`MAX_FIELDS`], and of its list's elements beyond
    /// [`MAX_ELEMENTS`].
    left_out: u64,
}

impl DecodedValues<'_> {
    pub(super) fn new() -> Self {
        DecodedValues {
            list: [Value::Int(0); MAX_FIELDS],
            len: 0,
            array: [0; MAX_ARRAY_BYTES],
            array_len: 0,
            array_field: None,
            left_out: 0,
        }
    }
}

/// One field of an event message, as Perfetto's protos or the file describe it.
struct FieldDescription {
    name: String,
    number: u32,
    ty: ProtoType,
    repeated: bool,
}

impl FieldDescription {
    /// Reads a `FieldDescriptorProto`.
    fn read(descriptor: &[u8]) -> FieldDescription {
        use field_descriptor_proto_type as proto_type;
        let number = |n| last_value(descriptor, n).map_or(0, |v| v.number());
        let ty = match number(field_descriptor_proto::TYPE) {
            proto_type::STRING => ProtoType::Str,
            proto_type::BYTES => ProtoType::Bytes,
            proto_type::UINT64
            | proto_type::FIXED64
            | proto_type::FIXED32
            | proto_type::BOOL
            | proto_type::UINT32 => ProtoType::Uint,
            _ => ProtoType::Int,
        };
        FieldDescription {
            name: text(descriptor, field_descriptor_proto::NAME),
            number: number(field_descriptor_proto::NUMBER) as u32,
            ty,
            repeated: number(field_descriptor_proto::LABEL) == field_descriptor_proto_label::REPEATED,
        }
    }
}

/// The string in field `number` of a message; empty where it is absent.
fn text(message: &[u8], number: u32) -> String {
    String::from_utf8_lossy(last_value(message, number).map_or(&[][..], WireValue::bytes)).into_owned()
}

/// An event type was announced, and the decoder knows no layout of its messages.
#[derive(Debug, thiserror::Error)]
#[error("the event type with the field {0} was announced but has no layout")]
struct NoLayout(u32);

impl EventDecoder {
    pub(super) fn get(&self, id: EventTypeId) -> &EventType {
        self.types.get(id)
    }

    /// Adds the event types that the bundle itself describes (`generic_event_descriptors`, since Perfetto
    /// v50).
    pub(super) fn learn(&mut self, bundle: &[u8], sink: &mut dyn Sink) -> io::Result<()> {
        let descriptors =
            fields(bundle).filter(|(n, _)| *n == ftrace_event_bundle::GENERIC_EVENT_DESCRIPTORS);
        for (_, descriptor) in descriptors {
            let descriptor = descriptor.bytes();
            let number =
                last_value(descriptor, generic_event_descriptor::FIELD_ID).map_or(0, |v| v.number() as u32);
            if self.layouts.contains_key(&number) {
                continue;
            }
            let system = text(descriptor, generic_event_descriptor::GROUP_NAME);
            let message = last_value(descriptor, generic_event_descriptor::EVENT_DESCRIPTOR)
                .map_or(&b""[..], |v| v.bytes());
            let list: Vec<FieldDescription> = fields(message)
                .filter(|(n, _)| *n == descriptor_proto::FIELD)
                .map(|(_, field)| FieldDescription::read(field.bytes()))
                .collect();
            self.add_layout(number, system, text(message, descriptor_proto::NAME), &list, sink)?;
        }
        Ok(())
    }

    /// Decodes the message in field `number` of `FtraceEvent` into `values`, and returns its event type.
    /// `symbols` are the kernel symbols that the packet sequence has interned.
    pub(super) fn decode<'a>(
        &mut self,
        number: u32,
        message: &'a [u8],
        values: &mut DecodedValues<'a>,
        symbols: Option<&HashMap<u64, &'a [u8]>>,
        sink: &mut dyn Sink,
    ) -> io::Result<EventTypeId> {
        values.array_field = None;
        values.left_out = 0;
        if number == ftrace_event::GENERIC {
            return self.generic(message, values, sink);
        }
        if !self.layouts.contains_key(&number) {
            self.typed(number, sink)?;
        }
        let Some(layout) = self.layouts.get(&number) else {
            return Err(io::Error::other(NoLayout(number)));
        };
        layout.decode(message, values);
        self.unread_values += values.left_out;
        if let (Some(at), Some(symbols)) = (layout.symbol, symbols)
            && let Value::Uint(id) = values.list[at]
            && let Some(name) = symbols.get(&id)
        {
            values.list[at] = Value::Str(name);
        }
        Ok(layout.id)
    }

    /// Sentences about what the decoder had no place for.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> + use<> {
        let fields = format!(
            "{} fields that the trace describes are not read: of an event, {MAX_FIELDS} fields with numbers up to \
             {MAX_FIELD_NUMBER} are",
            self.unread_fields
        );
        let values = format!(
            "{} values of events are not read: of an event, {MAX_FIELDS} fields are, and of a list {MAX_ELEMENTS} \
             elements",
            self.unread_values
        );
        let told = [(self.unread_fields, fields), (self.unread_values, values)];
        told.into_iter().filter(|(count, _)| *count > 0).map(|(_, note)| note)
    }

    /// The type of the `sched_switch` events in `CompactSched`.
    pub(super) fn switch(&mut self, sink: &mut dyn Sink) -> io::Result<EventTypeId> {
        if self.switch.is_none() {
            self.switch = Some(self.typed(ftrace_event::SCHED_SWITCH, sink)?);
        }
        Ok(self.switch.unwrap_or(EventTypeId(0)))
    }

    /// The type of the `sched_waking` events in `CompactSched`.
    pub(super) fn waking(&mut self, sink: &mut dyn Sink) -> io::Result<EventTypeId> {
        if self.waking.is_none() {
            self.waking = Some(self.typed(ftrace_event::SCHED_WAKING, sink)?);
        }
        Ok(self.waking.unwrap_or(EventTypeId(0)))
    }

    /// The type of the events whose message is in field `number` of `FtraceEvent`.
    pub(super) fn typed(&mut self, number: u32, sink: &mut dyn Sink) -> io::Result<EventTypeId> {
        if let Some(layout) = self.layouts.get(&number) {
            return Ok(layout.id);
        }
        let Some(message) = event_table::by_number(number) else {
            self.unknown.push(number);
            return self.add_layout(number, String::new(), format!("ftrace_event_{number}"), &[], sink);
        };
        let describe = |f: &event_table::MessageField| FieldDescription {
            name: f.name.to_owned(),
            number: f.number,
            ty: f.ty,
            repeated: f.repeated,
        };
        let list: Vec<_> = message.fields.iter().map(describe).collect();
        let system = match message.name {
            "print" => "ftrace",
            name => event_catalog::lookup(name.as_bytes()).first().map_or("", |k| &k.kind.system),
        };
        self.add_layout(number, system.to_owned(), message.name.to_owned(), &list, sink)
    }

    fn add_layout(
        &mut self,
        number: u32,
        system: String,
        name: String,
        list: &[FieldDescription],
        sink: &mut dyn Sink,
    ) -> io::Result<EventTypeId> {
        let has_place = |field: &FieldDescription| field.number as usize <= MAX_FIELD_NUMBER;
        let all = list;
        let list = &all[..all.len().min(MAX_FIELDS)];
        self.unread_fields += (all.len() - list.iter().filter(|field| has_place(field)).count()) as u64;
        let highest = list.iter().map(|f| f.number as usize).max().unwrap_or(0).min(MAX_FIELD_NUMBER);
        let mut positions = vec![None; highest + 1];
        let mut defaults = Vec::new();
        let mut repeated = None;
        let mut type_fields = Vec::new();
        for (position, description) in list.iter().enumerate() {
            if let Some(slot) = positions.get_mut(description.number as usize) {
                *slot = Some(position);
            }
            let (default, ty) = match description.ty {
                _ if description.repeated => {
                    (Value::Bytes(&[][..]), FieldType::Bytes { elem: ARRAY_ELEMENT_BYTES as u8 })
                }
                ProtoType::Int => (Value::Int(0), FieldType::Int),
                ProtoType::Uint => (Value::Uint(0), FieldType::Uint),
                ProtoType::Str => (Value::Str(&[][..]), FieldType::DataLocStr),
                ProtoType::Bytes => (Value::Bytes(&[][..]), FieldType::DataLocBytes { elem: 1 }),
            };
            repeated = if description.repeated { Some(position) } else { repeated };
            defaults.push(default);
            type_fields.push(field(description.name.clone(), ty));
        }
        let symbol = list.iter().position(|field| event_table::is_symbol(&name, &field.name));
        let id = self.types.add(EventType { system, name, fields: type_fields, print_fmt: None }, sink)?;
        self.layouts.insert(number, MessageLayout { id, positions, defaults, repeated, symbol });
        Ok(id)
    }

    /// Decodes a `GenericFtraceEvent`, which holds the names of the event and of its fields.
    fn generic<'a>(
        &mut self,
        message: &'a [u8],
        values: &mut DecodedValues<'a>,
        sink: &mut dyn Sink,
    ) -> io::Result<EventTypeId> {
        let mut name: &[u8] = b"";
        let mut keys: [&[u8]; MAX_FIELDS] = [b""; MAX_FIELDS];
        let mut len = 0;
        for (number, value) in fields(message) {
            match number {
                generic_ftrace_event::EVENT_NAME => name = value.bytes(),
                generic_ftrace_event::FIELD if len < MAX_FIELDS => {
                    let (key, value) = generic_field(value.bytes());
                    keys[len] = key;
                    values.list[len] = value;
                    len += 1;
                }
                generic_ftrace_event::FIELD => self.unread_values += 1,
                _ => {}
            }
        }
        values.len = len;
        let known = self.generic.get(name);
        if let Some(id) = known.and_then(|types| types.find(&self.types, &keys[..len], &values.list)) {
            return Ok(id);
        }
        let text = String::from_utf8_lossy(name);
        let (system, event_name) = text.split_once('/').unwrap_or(("", &text));
        let list = keys[..len].iter().zip(&values.list);
        let event_type = EventType {
            system: system.to_owned(),
            name: event_name.to_owned(),
            fields: list.map(|(k, v)| field(String::from_utf8_lossy(k).into_owned(), type_of(v))).collect(),
            print_fmt: None,
        };
        let id = self.types.add(event_type, sink)?;
        self.generic.entry(name.to_vec()).or_default().add(id, &keys[..len], &values.list);
        Ok(id)
    }
}

/// The name and the value of a `GenericFtraceEvent.Field`.
fn generic_field(message: &[u8]) -> (&[u8], Value<'_>) {
    let mut name = &b""[..];
    let mut content = Value::Str(b"");
    for (number, value) in fields(message) {
        match number {
            generic_ftrace_event_field::NAME => name = value.bytes(),
            generic_ftrace_event_field::STR_VALUE => content = Value::Str(value.bytes()),
            generic_ftrace_event_field::INT_VALUE => content = Value::Int(value.number() as i64),
            generic_ftrace_event_field::UINT_VALUE => content = Value::Uint(value.number()),
            _ => {}
        }
    }
    (name, content)
}

impl MessageLayout {
    fn decode<'a>(&self, message: &'a [u8], values: &mut DecodedValues<'a>) {
        values.len = self.defaults.len();
        values.list[..values.len].copy_from_slice(&self.defaults);
        values.array_field = self.repeated;
        values.array_len = 0;
        for (number, value) in fields(message) {
            let Some(position) = self.positions.get(number as usize).copied().flatten() else { continue };
            if self.repeated == Some(position) {
                match value {
                    WireValue::Number(v) => values.push_element(v),
                    WireValue::Bytes(b) => varint::all(b).for_each(|v| values.push_element(v)),
                }
                continue;
            }
            values.list[position] = match (self.defaults[position], value) {
                (Value::Int(_), v) => Value::Int(v.number() as i64),
                (Value::Uint(_), v) => Value::Uint(v.number()),
                (Value::Str(_), v) => Value::Str(v.bytes()),
                (Value::Bytes(_), v) => Value::Bytes(v.bytes()),
            };
        }
    }
}

impl DecodedValues<'_> {
    /// Appends an element of the repeated field. Elements beyond [`MAX_ELEMENTS`] are counted.
    fn push_element(&mut self, element: u64) {
        let end = self.array_len + ARRAY_ELEMENT_BYTES;
        if let Some(slot) = self.array.get_mut(self.array_len..end) {
            slot.copy_from_slice(&element.to_le_bytes());
            self.array_len = end;
        } else {
            self.left_out += 1;
        }
    }
}

fn field(name: String, ty: FieldType) -> Field {
    Field { name, ctype: String::new(), ty, offset: 0, size: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_rows_list_their_values_in_the_order_of_the_table() {
        let names = |number| {
            let message = event_table::by_number(number).unwrap();
            message.fields.iter().map(|f| f.name).collect::<Vec<_>>()
        };
        let switch = names(ftrace_event::SCHED_SWITCH);
        let want = ["prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid", "next_prio"];
        assert_eq!(switch, want);
        assert_eq!(switch[sched_switch_value::NEXT_COMM], "next_comm");
        assert_eq!(switch[sched_switch_value::NEXT_PID], "next_pid");
        assert_eq!(switch[sched_switch_value::NEXT_PRIO], "next_prio");
        assert_eq!(names(ftrace_event::SCHED_WAKING), ["comm", "pid", "prio", "success", "target_cpu"]);
    }

    #[test]
    fn elements_beyond_the_limit_are_counted() {
        let mut values = DecodedValues::new();
        (0..1000).for_each(|v| values.push_element(v));
        assert_eq!((values.array_len, values.left_out), (MAX_ARRAY_BYTES, 1000 - MAX_ELEMENTS as u64));
        assert_eq!(values.array[MAX_ARRAY_BYTES - 8..], 63u64.to_le_bytes());
    }
}
