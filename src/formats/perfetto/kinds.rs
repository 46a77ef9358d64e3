//! From a field number of `FtraceEvent` to a kind, and from the message in it to values.

use std::collections::HashMap;
use std::io;

use super::tables::{self, FieldKind};
use super::wire::{self, fields, find};
use crate::formats::event_catalog::{self, MAX_FIELDS};
use crate::formats::event_registry::{EventRegistry, is_shaped, type_of};
use crate::formats::{EventType, EventTypeId, Field, FieldType, Sink, Value};

/// `FtraceEvent.generic`: an event with its names in it.
const GENERIC: u32 = 327;
/// Bytes of arrays in one event.
const MAX_ARRAY: usize = 512;

/// How the values of a kind are taken from its message.
struct Layout {
    id: EventTypeId,
    /// For each field number of the message (it is the index) the value's place.
    places: Vec<Option<usize>>,
    /// What a field is that the message leaves out.
    defaults: Vec<Value<'static>>,
    /// The field that comes several times, as bytes of a number each.
    repeated: Option<usize>,
}

/// The kinds of one file.
#[derive(Default)]
pub(super) struct Kinds {
    kinds: EventRegistry,
    layouts: HashMap<u32, Layout>,
    generic: HashMap<Vec<u8>, Vec<EventTypeId>>,
    /// Numbers that nobody knows.
    pub unknown: Vec<u32>,
    switch: Option<EventTypeId>,
    waking: Option<EventTypeId>,
}

/// Values of one event; `array` is where a repeated field's numbers are.
pub(super) struct Values<'a> {
    pub list: [Value<'a>; MAX_FIELDS],
    pub len: usize,
    pub array: [u8; MAX_ARRAY],
    pub array_len: usize,
    pub array_field: Option<usize>,
}

impl Values<'_> {
    pub fn new() -> Self {
        Values {
            list: [Value::Int(0); MAX_FIELDS],
            len: 0,
            array: [0; MAX_ARRAY],
            array_len: 0,
            array_field: None,
        }
    }
}

impl Kinds {
    pub fn get(&self, id: EventTypeId) -> &EventType {
        self.kinds.get(id)
    }

    /// Takes in the bundle's own descriptions of events (`generic_event_descriptors`, since Perfetto v50).
    pub fn describe(&mut self, bundle: &[u8], sink: &mut dyn Sink) -> io::Result<()> {
        for (_, described) in fields(bundle).filter(|(n, _)| *n == 11) {
            let described = described.bytes();
            let number = find(described, 1).map_or(0, |v| v.number() as u32);
            if self.layouts.contains_key(&number) {
                continue;
            }
            let system = find(described, 3).map_or(&b""[..], |v| v.bytes());
            // A DescriptorProto: name 1, field 2 {name 1, number 3, label 4, type 5}.
            let message = find(described, 2).map_or(&b""[..], |v| v.bytes());
            let name = find(message, 1).map_or(&b""[..], |v| v.bytes());
            let list: Vec<(String, u32, FieldKind, bool)> = fields(message)
                .filter(|(n, _)| *n == 2)
                .take(MAX_FIELDS)
                .map(|(_, f)| {
                    let f = f.bytes();
                    let number = |n| find(f, n).map_or(0, |v| v.number());
                    let kind = match number(5) {
                        9 => FieldKind::Str,
                        12 => FieldKind::Bytes,
                        4 | 6 | 7 | 8 | 13 => FieldKind::Uint,
                        _ => FieldKind::Int,
                    };
                    let name = find(f, 1).map_or(&b""[..], |v| v.bytes());
                    (String::from_utf8_lossy(name).into_owned(), number(3) as u32, kind, number(4) == 3)
                })
                .collect();
            let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
            self.lay_out(number, text(system), text(name), &list, sink)?;
        }
        Ok(())
    }

    /// The kind of the message with this number in `FtraceEvent`, and its values.
    pub fn decode<'a>(
        &mut self,
        number: u32,
        message: &'a [u8],
        values: &mut Values<'a>,
        sink: &mut dyn Sink,
    ) -> io::Result<EventTypeId> {
        values.array_field = None;
        if number == GENERIC {
            return self.generic(message, values, sink);
        }
        if !self.layouts.contains_key(&number) {
            self.typed(number, sink)?;
        }
        let Some(layout) = self.layouts.get(&number) else {
            return Err(io::Error::other("a kind was announced and is not there"));
        };
        values.len = layout.defaults.len();
        values.list[..values.len].copy_from_slice(&layout.defaults);
        values.array_field = layout.repeated;
        values.array_len = 0;
        for (number, value) in fields(message) {
            let Some(place) = layout.places.get(number as usize).copied().flatten() else { continue };
            if layout.repeated == Some(place) {
                let mut push = |v: u64| {
                    if let Some(slot) = values.array.get_mut(values.array_len..values.array_len + 8) {
                        slot.copy_from_slice(&v.to_le_bytes());
                        values.array_len += 8;
                    }
                };
                match value {
                    wire::Value::Number(v) => push(v),
                    wire::Value::Bytes(b) => wire::packed(b).for_each(push),
                }
                continue;
            }
            values.list[place] = match (layout.defaults[place], value) {
                (Value::Int(_), v) => Value::Int(v.number() as i64),
                (Value::Uint(_), v) => Value::Uint(v.number()),
                (Value::Str(_), v) => Value::Str(v.bytes()),
                (Value::Bytes(_), v) => Value::Bytes(v.bytes()),
            };
        }
        Ok(layout.id)
    }

    /// `sched_switch` as `CompactSched` has it.
    pub fn switch(&mut self, sink: &mut dyn Sink) -> io::Result<EventTypeId> {
        if self.switch.is_none() {
            self.switch = Some(self.typed(4, sink)?);
        }
        Ok(self.switch.unwrap_or(EventTypeId(0)))
    }

    /// `sched_waking` as `CompactSched` has it.
    pub fn waking(&mut self, sink: &mut dyn Sink) -> io::Result<EventTypeId> {
        if self.waking.is_none() {
            self.waking = Some(self.typed(20, sink)?);
        }
        Ok(self.waking.unwrap_or(EventTypeId(0)))
    }

    fn typed(&mut self, number: u32, sink: &mut dyn Sink) -> io::Result<EventTypeId> {
        if let Some(layout) = self.layouts.get(&number) {
            return Ok(layout.id);
        }
        let Some(spec) = tables::by_number(number) else {
            self.unknown.push(number);
            return self.lay_out(number, String::new(), format!("ftrace_event_{number}"), &[], sink);
        };
        let list: Vec<_> =
            spec.fields.iter().map(|f| (f.name.to_owned(), f.number, f.ty, f.repeated)).collect();
        let system = match spec.name {
            "print" => "ftrace",
            name => event_catalog::lookup(name.as_bytes()).first().map_or("", |k| &k.kind.system),
        };
        self.lay_out(number, system.to_owned(), spec.name.to_owned(), &list, sink)
    }

    fn lay_out(
        &mut self,
        number: u32,
        system: String,
        name: String,
        list: &[(String, u32, FieldKind, bool)],
        sink: &mut dyn Sink,
    ) -> io::Result<EventTypeId> {
        let list = &list[..list.len().min(MAX_FIELDS)];
        // A field number is at most 2^29; a place for each up to what real messages have.
        let most = list.iter().map(|f| f.1 as usize).max().unwrap_or(0).min(4096);
        let mut places = vec![None; most + 1];
        let (mut defaults, mut repeated, mut kind_fields) = (Vec::new(), None, Vec::new());
        for (place, (name, number, kind, many)) in list.iter().enumerate() {
            if let Some(slot) = places.get_mut(*number as usize) {
                *slot = Some(place);
            }
            let (default, ty) = match kind {
                _ if *many => (Value::Bytes(&[][..]), FieldType::Bytes { elem: 8 }),
                FieldKind::Int => (Value::Int(0), FieldType::Int),
                FieldKind::Uint => (Value::Uint(0), FieldType::Uint),
                FieldKind::Str => (Value::Str(&[][..]), FieldType::DataLocStr),
                FieldKind::Bytes => (Value::Bytes(&[][..]), FieldType::DataLocBytes { elem: 1 }),
            };
            repeated = if *many { Some(place) } else { repeated };
            defaults.push(default);
            kind_fields.push(field(name.clone(), ty));
        }
        let id = self.kinds.add(EventType { system, name, fields: kind_fields, print_fmt: None }, sink)?;
        self.layouts.insert(number, Layout { id, places, defaults, repeated });
        Ok(id)
    }

    /// `GenericFtraceEvent`: event_name 1, field 2 {name 1, str_value 3, int_value 4, uint_value 5}.
    fn generic<'a>(
        &mut self,
        message: &'a [u8],
        values: &mut Values<'a>,
        sink: &mut dyn Sink,
    ) -> io::Result<EventTypeId> {
        let mut name: &[u8] = b"";
        let mut keys: [&[u8]; MAX_FIELDS] = [b""; MAX_FIELDS];
        let mut len = 0;
        for (number, value) in fields(message) {
            match number {
                1 => name = value.bytes(),
                2 if len < MAX_FIELDS => {
                    values.list[len] = Value::Str(b"");
                    for (number, value) in fields(value.bytes()) {
                        match number {
                            1 => keys[len] = value.bytes(),
                            3 => values.list[len] = Value::Str(value.bytes()),
                            4 => values.list[len] = Value::Int(value.number() as i64),
                            5 => values.list[len] = Value::Uint(value.number()),
                            _ => {}
                        }
                    }
                    len += 1;
                }
                _ => {}
            }
        }
        values.len = len;
        let same = |id: &&EventTypeId| is_shaped(self.kinds.get(**id), &keys[..len], &values.list);
        let known = self.generic.get(name);
        if let Some(id) = known.and_then(|ids| ids.iter().find(same)) {
            return Ok(*id);
        }
        let text = String::from_utf8_lossy(name);
        let (system, short) = text.split_once('/').unwrap_or(("", &text));
        let list = keys[..len].iter().zip(&values.list);
        let kind = EventType {
            system: system.to_owned(),
            name: short.to_owned(),
            fields: list.map(|(k, v)| field(String::from_utf8_lossy(k).into_owned(), type_of(v))).collect(),
            print_fmt: None,
        };
        let id = self.kinds.add(kind, sink)?;
        self.generic.entry(name.to_vec()).or_default().push(id);
        Ok(id)
    }
}

fn field(name: String, ty: FieldType) -> Field {
    Field { name, ctype: String::new(), ty, offset: 0, size: 0 }
}
