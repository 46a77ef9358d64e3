//! The event that every reader pushes and every exporter receives. An event borrows its data, so that passing
//! it on copies nothing.

use crate::ftrace::{Endian, EventType, Value};

/// The name of the only field of an event type whose text cannot be split into fields. The field holds the
/// whole text.
pub const TEXT_FIELD: &str = "text";

/// The number of an [`EventType`]. Numbers start at 0 and have no holes; each file has its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventTypeId(pub u32);

/// The flag in `clone_flags` of the event `task_newtask` (clone(2)): the new thread belongs to the process of
/// the thread that makes it.
pub(crate) const CLONE_THREAD: i64 = 0x0001_0000;

/// One kernel event. A marker is a kernel event too, of type `print`.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// Time of the event, ns of the file's clock ([`super::Head::clock`]).
    pub ts: u64,
    /// The CPU whose ring buffer held the event.
    pub cpu: u32,
    /// The kernel thread id of the thread that was running (`common_pid`); 0 is the idle task of the CPU.
    pub tid: i32,
    /// The event's type.
    pub kind: EventTypeId,
    /// `common_flags`: the bits of the kernel's `trace_flag_type`, and above them bit 8, which only text
    /// lines set: the kernel could not tell whether interrupts were off.
    pub flags: u16,
    /// `common_preempt_count`.
    pub preempt_count: u8,
    /// The thread's name, where the event itself holds it (text lines do). Where this is `None`, a sink looks
    /// the name up by `tid`.
    pub comm: Option<&'a [u8]>,
    /// The process id, where the event itself holds it (text lines with a TGID column do).
    pub tgid: Option<i32>,
    /// The values of the event's fields.
    pub payload: Payload<'a>,
}

/// The values of an [`Event`]'s fields, in the form in which the file stores them.
#[derive(Debug, Clone, Copy)]
pub enum Payload<'a> {
    /// The record as the kernel wrote it, `common_` fields included;
    /// [`Field::offset`](crate::ftrace::Field::offset) is the position of each field in it.
    Raw {
        /// The bytes of the record.
        data: &'a [u8],
        /// The byte order of the machine that recorded.
        endian: Endian,
    },
    /// Values in the order of [`EventType::fields`].
    Values {
        /// One value per field; a file may hold fewer values than the type has fields.
        values: &'a [Value<'a>],
        /// The text behind `name: ` in a text line. With it an exporter can write the line unchanged.
        text: Option<&'a [u8]>,
    },
}

impl<'a> Event<'a> {
    /// The value of field number `index` of `kind`, which must be this event's type. `None` where the record
    /// is too short for the field, or where the field points outside of the record.
    pub fn value(&self, kind: &EventType, index: usize) -> Option<Value<'a>> {
        match self.payload {
            Payload::Values { values, .. } => values.get(index).copied(),
            Payload::Raw { data, endian } => kind.fields.get(index)?.value(data, endian),
        }
    }

    /// The value of a field as an integer; a text that is a decimal number counts as an integer.
    pub fn int(&self, kind: &EventType, index: usize) -> Option<i64> {
        match self.value(kind, index)? {
            Value::Int(v) => Some(v),
            Value::Uint(v) => Some(v as i64),
            Value::Str(s) => std::str::from_utf8(s).ok()?.trim().parse().ok(),
            Value::Bytes(_) => None,
        }
    }

    /// The value of a field as text, cut at its NUL.
    pub fn text(&self, kind: &EventType, index: usize) -> Option<&'a [u8]> {
        match self.value(kind, index)? {
            Value::Str(s) => Some(s),
            _ => None,
        }
    }
}
