//! The event that every reader pushes and every exporter takes: borrowed, so that passing one on costs nothing.

use crate::ftrace::{Endian, EventType, Value};

/// Which [`EventType`] an event is of; dense, starting at 0, per source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventTypeId(pub u32);

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
    pub kind: EventTypeId,
    /// `common_flags`: the bits of the kernel's `trace_flag_type`, and above them what only a text says
    /// (bit 8: the kernel cannot tell whether interrupts were off).
    pub flags: u16,
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
    /// Values in the order of [`EventType::fields`].
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
    pub fn value(&self, kind: &EventType, index: usize) -> Option<Value<'a>> {
        match self.payload {
            Payload::Values { values, .. } => values.get(index).copied(),
            Payload::Raw { data, endian } => kind.fields.get(index)?.value(data, endian),
        }
    }

    /// The same as an integer; a text that is a decimal number counts as one.
    pub fn int(&self, kind: &EventType, index: usize) -> Option<i64> {
        match self.value(kind, index)? {
            Value::Int(v) => Some(v),
            Value::Uint(v) => Some(v as i64),
            Value::Str(s) => std::str::from_utf8(s).ok()?.trim().parse().ok(),
            Value::Bytes(_) => None,
        }
    }

    /// The same as text, cut at its NUL.
    pub fn text(&self, kind: &EventType, index: usize) -> Option<&'a [u8]> {
        match self.value(kind, index)? {
            Value::Str(s) => Some(s),
            _ => None,
        }
    }
}
