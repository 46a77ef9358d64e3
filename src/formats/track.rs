//! Tracks and their events: the slices, instants and counters that a program writes itself, without the
//! kernel's ring buffer; and the frames of SurfaceFlinger.

use super::TimelineFrame;

/// The number of a [`Track`]. Numbers start at 0 and have no holes; each file has its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrackId(pub u32);

/// The owner of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrackOwner {
    /// A thread.
    Thread {
        /// The kernel's thread id.
        tid: i32,
        /// The thread's process, where it is known.
        tgid: Option<i32>,
    },
    /// A process.
    Process(i32),
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

/// One event of a track.
#[derive(Debug, Clone, Copy)]
pub struct TrackEvent<'a> {
    /// Time of the event, ns of the file's clock ([`super::Head::clock`]).
    pub ts: u64,
    /// The track, which [`super::Sink::track`] has received.
    pub track: TrackId,
    /// The kind of the event, with its data.
    pub kind: TrackEventKind<'a>,
    /// The CPU time of the thread at this moment, ns, where the file has it.
    pub thread_ns: Option<u64>,
    /// The flows that go through this event.
    pub flows: &'a [Flow],
}
