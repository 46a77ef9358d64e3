//! The event types that a reader defines while it reads a text or a Perfetto trace. Each type is announced to
//! the sink once.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io;

use super::{EventType, EventTypeId, FieldType, Sink, Value};

/// The largest number of event types that is accepted from one file, so that a damaged file cannot fill the
/// memory.
const MAX_EVENT_TYPES: usize = 20_000;

/// The event types of one file, in the order of their ids.
#[derive(Default)]
pub(super) struct EventRegistry(Vec<EventType>);

impl EventRegistry {
    /// The event type of an id that [`EventRegistry::add`] returned.
    pub fn get(&self, id: EventTypeId) -> &EventType {
        &self.0[id.0 as usize]
    }

    /// Adds an event type and announces it to the sink.
    pub fn add(&mut self, event_type: EventType, sink: &mut dyn Sink) -> io::Result<EventTypeId> {
        if self.0.len() >= MAX_EVENT_TYPES {
            let what = format!("more than {MAX_EVENT_TYPES} kinds of events: this is hardly a trace");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let id = EventTypeId(self.0.len() as u32);
        sink.event_type(id, &event_type)?;
        self.0.push(event_type);
        Ok(id)
    }

    /// The first event type that `wanted` accepts.
    pub fn find(&self, wanted: impl Fn(&EventType) -> bool) -> Option<EventTypeId> {
        self.0.iter().position(wanted).map(|at| EventTypeId(at as u32))
    }
}

/// The field type for a value whose type the file does not state.
pub(super) fn type_of(value: &Value<'_>) -> FieldType {
    match value {
        Value::Int(_) => FieldType::Int,
        Value::Uint(_) => FieldType::Uint,
        _ => FieldType::DataLocStr,
    }
}

/// How many event types of one name are compared with an event one after another. Events of most names have
/// one type.
const COMPARED_TYPES: usize = 4;

/// The event types of one name, which differ in their fields.
#[derive(Default)]
pub(super) struct TypesByShape {
    /// The types that came first.
    first: Vec<EventTypeId>,
    /// The other types by the hash of their fields' names and types.
    others: HashMap<u64, Vec<EventTypeId>>,
    hasher: RandomState,
}

impl TypesByShape {
    /// The type that has exactly the fields `keys`, in this order, with the types of `values`.
    pub fn find(&self, types: &EventRegistry, keys: &[&[u8]], values: &[Value<'_>]) -> Option<EventTypeId> {
        let fits = |id: &&EventTypeId| is_shaped(types.get(**id), keys, values);
        if let Some(id) = self.first.iter().find(fits) {
            return Some(*id);
        }
        if self.others.is_empty() {
            return None;
        }
        self.others.get(&self.hash(keys, values))?.iter().find(fits).copied()
    }

    /// Adds a type with the fields `keys` and the types of `values`.
    pub fn add(&mut self, id: EventTypeId, keys: &[&[u8]], values: &[Value<'_>]) {
        if self.first.len() < COMPARED_TYPES {
            return self.first.push(id);
        }
        let hash = self.hash(keys, values);
        self.others.entry(hash).or_default().push(id);
    }

    fn hash(&self, keys: &[&[u8]], values: &[Value<'_>]) -> u64 {
        let kind = |value| match type_of(value) {
            FieldType::Int => 0u8,
            FieldType::Uint => 1,
            _ => 2,
        };
        let kinds: Vec<u8> = values.iter().take(keys.len()).map(kind).collect();
        self.hasher.hash_one((keys, kinds))
    }
}

/// Whether `kind` has exactly the fields `keys`, in this order, with the types of `values`.
fn is_shaped(kind: &EventType, keys: &[&[u8]], values: &[Value<'_>]) -> bool {
    let fits = |(field, (key, value)): (&super::Field, (&&[u8], &Value<'_>))| {
        field.name.as_bytes() == *key && field.ty == type_of(value)
    };
    kind.fields.len() == keys.len() && kind.fields.iter().zip(keys.iter().zip(values)).all(fits)
}
