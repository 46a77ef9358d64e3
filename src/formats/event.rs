//! The event that every reader pushes and every exporter receives. An event borrows its data, so that passing
//! it on copies nothing.
//!
//! Beside the kernel's events there are tracks and their events: the slices, instants and counters that a
//! program writes itself, without the kernel's ring buffer; and the frames of SurfaceFlinger.

use super::TimelineFrame;
use crate::clock::Timestamp;
use crate::ftrace::{Endian, EventType, Field, FieldType, Value};
use crate::ids::{Cpu, Pid, Tid};

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
    /// Time of the event, in the file's clock ([`super::Head::clock`]).
    pub ts: Timestamp,
    /// The CPU whose ring buffer held the event.
    pub cpu: Cpu,
    /// The kernel thread id of the thread that was running (`common_pid`); 0 is the idle task of the CPU.
    pub tid: Tid,
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
    pub tgid: Option<Pid>,
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
    #[inline]
    pub fn int(&self, kind: &EventType, index: usize) -> Option<i64> {
        // Most of what is asked for are thread ids, millions of times.
        if let Payload::Raw { data, endian: Endian::Little } = self.payload
            && let Some(Field { ty: FieldType::Int, size: 4, offset, .. }) = kind.fields.get(index)
        {
            let bytes = data.get(*offset as usize..)?.first_chunk()?;
            return Some(i32::from_le_bytes(*bytes).into());
        }
        match self.value(kind, index)? {
            Value::Int(v) => Some(v),
            Value::Uint(v) => Some(v as i64),
            Value::Str(s) => std::str::from_utf8(s).ok()?.trim().parse().ok(),
            Value::Bytes(_) => None,
        }
    }

    /// The value of a field that holds a thread's id; `None` where it does not fit one.
    #[inline]
    pub fn tid_at(&self, kind: &EventType, index: usize) -> Option<Tid> {
        Tid::try_from(self.int(kind, index)?).ok()
    }

    /// The value of a field that holds a CPU's number; `None` where it does not fit one.
    #[inline]
    pub fn cpu_at(&self, kind: &EventType, index: usize) -> Option<Cpu> {
        Cpu::try_from(self.int(kind, index)?).ok()
    }

    /// The value of a field as text, cut at its NUL.
    pub fn text(&self, kind: &EventType, index: usize) -> Option<&'a [u8]> {
        match self.value(kind, index)? {
            Value::Str(s) => Some(s),
            _ => None,
        }
    }
}

/// The number of a [`Track`]. Numbers start at 0 and have no holes; each file has its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrackId(pub u32);

/// The owner of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrackOwner {
    /// A thread.
    Thread {
        /// The kernel's thread id.
        tid: Tid,
        /// The thread's process, where it is known.
        tgid: Option<Pid>,
    },
    /// A process.
    Process(Pid),
    /// The whole machine.
    Machine,
}

/// The kind of events that a track has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrackKind {
    /// Slices and instants. The slices of one track lie inside each other.
    Slices,
    /// Calls of methods, which a method trace has recorded: slices with the names of class and method.
    Methods,
    /// Values of a counter.
    Counter,
    /// Frames of a process. They may overlap.
    Frames,
}

/// A track.
#[derive(Debug, Clone, Copy)]
pub struct Track<'a> {
    /// The track's number.
    pub id: TrackId,
    /// The track's own name; empty for the track that stands for its owner.
    pub name: &'a [u8],
    /// The full name of the thread or process that the track belongs to; empty where it is not known.
    pub owner_name: &'a [u8],
    /// The owner of the track.
    pub owner: TrackOwner,
    /// The kind of the track's events.
    pub kind: TrackKind,
}

/// The value of a counter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CounterValue {
    /// An integer.
    Int(i64),
    /// A number with a fraction.
    Double(f64),
}

/// The kind of an event of a track.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TrackEventKind<'a> {
    /// A slice begins.
    Begin {
        /// The slice's name.
        name: &'a [u8],
    },
    /// The innermost open slice of the track ends.
    End,
    /// Something happens at one moment.
    Instant {
        /// The instant's name.
        name: &'a [u8],
    },
    /// A counter has a new value.
    Counter(CounterValue),
    /// A frame begins. Its end is in it.
    Frame(&'a TimelineFrame<'a>),
}

/// An arrow from one event to the next event of the same flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// The number of the flow.
    pub id: u64,
    /// Whether the flow ends with this event.
    pub ends: bool,
}

/// An argument of an event of a track, as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackArg<'a> {
    /// The argument's name. Where a slice has the same argument at its begin and at its end, the text of the
    /// end continues that of the begin.
    pub name: &'static str,
    /// The argument's text.
    pub value: &'a [u8],
}

/// One event of a track.
#[derive(Debug, Clone, Copy)]
pub struct TrackEvent<'a> {
    /// Time of the event, in the file's clock ([`super::Head::clock`]).
    pub ts: Timestamp,
    /// The track, which [`super::Sink::track`] has received.
    pub track: TrackId,
    /// The kind of the event, with its data.
    pub kind: TrackEventKind<'a>,
    /// The CPU time of the thread at this moment, ns, where the file has it.
    pub thread_ns: Option<u64>,
    /// The flows that go through this event.
    pub flows: &'a [Flow],
    /// The event's arguments.
    pub args: &'a [TrackArg<'a>],
}
