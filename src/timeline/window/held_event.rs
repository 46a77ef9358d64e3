//! An event with data of its own, so that it can be passed on later.

use std::io;

use crate::formats::{Event, EventType, EventTypeId, Payload, Sink, Value};
use crate::ftrace::Endian;

/// One kernel event with its own data.
#[derive(Debug, Clone)]
pub(super) struct HeldEvent {
    cpu: u32,
    tid: i32,
    pub(super) kind: EventTypeId,
    flags: u16,
    preempt_count: u8,
    comm: Option<Box<[u8]>>,
    tgid: Option<i32>,
    payload: HeldPayload,
}

#[derive(Debug, Clone)]
enum HeldPayload {
    Raw(Box<[u8]>, Endian),
    Values(Box<[HeldValue]>, Option<Box<[u8]>>),
}

#[derive(Debug, Clone)]
enum HeldValue {
    Int(i64),
    Uint(u64),
    Str(Box<[u8]>),
    Bytes(Box<[u8]>),
}

impl HeldEvent {
    pub fn new(event: &Event<'_>) -> HeldEvent {
        let payload = match event.payload {
            Payload::Raw { data, endian } => HeldPayload::Raw(data.into(), endian),
            Payload::Values { values, text } => {
                let own = |value: &Value<'_>| match *value {
                    Value::Int(v) => HeldValue::Int(v),
                    Value::Uint(v) => HeldValue::Uint(v),
                    Value::Str(text) => HeldValue::Str(text.into()),
                    Value::Bytes(bytes) => HeldValue::Bytes(bytes.into()),
                };
                HeldPayload::Values(values.iter().map(own).collect(), text.map(Into::into))
            }
        };
        let Event { cpu, tid, kind, flags, preempt_count, tgid, .. } = *event;
        let comm = event.comm.map(Into::into);
        HeldEvent { cpu, tid, kind, flags, preempt_count, comm, tgid, payload }
    }

    /// Passes the event on as one of the time `ts`.
    pub fn push(&self, ts: u64, kind: &EventType, out: &mut (impl Sink + ?Sized)) -> io::Result<()> {
        let values: Vec<Value<'_>>;
        let payload = match &self.payload {
            HeldPayload::Raw(data, endian) => Payload::Raw { data, endian: *endian },
            HeldPayload::Values(own, text) => {
                let value = |own| match own {
                    &HeldValue::Int(v) => Value::Int(v),
                    &HeldValue::Uint(v) => Value::Uint(v),
                    HeldValue::Str(text) => Value::Str(text),
                    HeldValue::Bytes(bytes) => Value::Bytes(bytes),
                };
                values = own.iter().map(value).collect();
                Payload::Values { values: &values, text: text.as_deref() }
            }
        };
        let HeldEvent { cpu, tid, kind: id, flags, preempt_count, tgid, .. } = *self;
        let comm = self.comm.as_deref();
        out.event(&Event { ts, cpu, tid, kind: id, flags, preempt_count, comm, tgid, payload }, kind)
    }
}
