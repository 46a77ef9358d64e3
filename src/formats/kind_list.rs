//! The kinds that a reader meets in one file and makes up itself, told to the sink once each.

use std::io;

use super::{EventType, EventTypeId, FieldType, Sink, Value};

/// Kinds that one file may bring about: a file of garbage must not fill the memory.
const MAX_KINDS: usize = 20_000;

/// The kinds of one file, in the order of their ids.
#[derive(Default)]
pub(super) struct KindList(Vec<EventType>);

impl KindList {
    /// The kind behind an id that [`KindList::add`] gave.
    pub fn get(&self, id: EventTypeId) -> &EventType {
        &self.0[id.0 as usize]
    }

    /// Takes a new kind in, and tells the sink.
    pub fn add(&mut self, kind: EventType, sink: &mut dyn Sink) -> io::Result<EventTypeId> {
        if self.0.len() >= MAX_KINDS {
            let what = format!("more than {MAX_KINDS} kinds of events: this is hardly a trace");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let id = EventTypeId(self.0.len() as u32);
        sink.event_type(id, &kind)?;
        self.0.push(kind);
        Ok(id)
    }

    /// The first kind that `wanted` is true of.
    pub fn find(&self, wanted: impl Fn(&EventType) -> bool) -> Option<EventTypeId> {
        self.0.iter().position(wanted).map(|at| EventTypeId(at as u32))
    }
}

/// How a value that came without a description is described.
pub(super) fn type_of(value: &Value<'_>) -> FieldType {
    match value {
        Value::Int(_) => FieldType::Int,
        Value::Uint(_) => FieldType::Uint,
        _ => FieldType::DataLocStr,
    }
}

/// Whether `kind` has just these fields, in this order, for values like these.
pub(super) fn is_shaped(kind: &EventType, keys: &[&[u8]], values: &[Value<'_>]) -> bool {
    let fits = |(field, (key, value)): (&super::Field, (&&[u8], &Value<'_>))| {
        field.name.as_bytes() == *key && field.ty == type_of(value)
    };
    kind.fields.len() == keys.len() && kind.fields.iter().zip(keys.iter().zip(values)).all(fits)
}
