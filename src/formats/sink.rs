//! The sink that receives a reader's events, the adapter that passes them on to another sink, and the data
//! that a reader pushes besides events.

use std::io;
use std::sync::Arc;

use super::{Event, EventType, EventTypeId, Track, TrackEvent};
use crate::clock::{Clock, Snapshots};
use crate::ftrace::print_fmt::Symbolizer;
use crate::ids::{Cpu, Pid, Tid};
use crate::trace_dat::MachineFacts;

/// The facts about a recording that a reader knows before the first event.
#[derive(Debug, Clone)]
pub struct Head {
    /// The format's name for people: `trace.dat v7 (zstd)`.
    pub format: String,
    /// The clock of the events' times.
    pub clock: Clock,
    /// Decimals of a second that the times really have: 9 for ns, 6 for texts in µs.
    pub precision: u8,
    /// Readings of several clocks, taken back to back while recording.
    pub snapshots: Snapshots,
    /// The number of CPUs of the recording machine, where it is known.
    pub cpus: Option<u32>,
    /// `uname -a` or the like of the recording machine.
    pub machine: Option<String>,
    /// The recording device, where it is an Android device and the file names it: `Pixel 8, Android 15`.
    pub device: Option<String>,
    /// The SDK version of the recording device's Android, where the file has it (`ro.build.version.sdk`).
    pub android_sdk: Option<u32>,
    /// Facts about the recording machine that no event tells, where the recorder kept them.
    pub facts: Option<Arc<MachineFacts>>,
}

/// The order in which a reader pushes events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// By time over all CPUs; events of one time by CPU.
    Time,
    /// One CPU after the other, or in the file's order: the cheapest way, and enough where the viewer sorts.
    Any,
    /// Markers, the events of type `print`, by time over all CPUs; all other events in any order, some of
    /// them without values. So slices and instants come in order, for little more than [`Order::Any`] costs.
    Markers,
}

/// A thread's name or process, as far as the file knows them.
#[derive(Debug, Clone, Copy)]
pub struct ThreadInfo<'a> {
    /// Kernel thread id.
    pub tid: Tid,
    /// The thread's process, where it is known.
    pub tgid: Option<Pid>,
    /// The thread's name (comm), where it is known.
    pub name: Option<&'a [u8]>,
}

/// A process's full name, as far as the file knows it.
#[derive(Debug, Clone, Copy)]
pub struct ProcessInfo<'a> {
    /// The process id (tgid).
    pub pid: Pid,
    /// The parent process, where it is known.
    pub ppid: Option<Pid>,
    /// The command line's first word or package name.
    pub name: Option<&'a [u8]>,
    /// The app's package, where the file has the device's list of packages.
    pub package: Option<Package<'a>>,
}

/// An entry of the device's list of packages (`/data/system/packages.list`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package<'a> {
    /// `com.example.app`.
    pub name: &'a [u8],
    /// Whether its manifest says `android:debuggable`: ART then runs slower code.
    pub is_debuggable: bool,
}

/// Receives everything that a reader reads. An error ends the reading and is returned to the reader's caller.
///
/// The default methods ignore their arguments. A sink that passes most calls on to another sink implements
/// [`SinkAdapter`] instead, whose default methods pass every call on.
pub trait Sink {
    /// The file's head: called once, before everything else.
    fn head(&mut self, head: &Head) -> io::Result<()> {
        let _ = head;
        Ok(())
    }
    /// An event type: called once, before the first event of this type. Ids grow without holes.
    fn event_type(&mut self, id: EventTypeId, kind: &EventType) -> io::Result<()> {
        let _ = (id, kind);
        Ok(())
    }
    /// The symbols of the recording kernel, with which records are printed as that kernel would print them.
    /// Called at most once per file, after the head and before the first event type.
    fn kernel(&mut self, symbolizer: &Arc<Symbolizer>) -> io::Result<()> {
        let _ = symbolizer;
        Ok(())
    }
    /// A thread: called at any time. A later call for the same id adds to or replaces an earlier one.
    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        let _ = thread;
        Ok(())
    }
    /// A process: called at any time.
    fn process(&mut self, process: &ProcessInfo<'_>) -> io::Result<()> {
        let _ = process;
        Ok(())
    }
    /// One event. `kind` is the event type that [`Sink::event_type`] received for `event.kind`.
    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()>;
    /// A track: called once, before the first event of this track. Ids grow without holes.
    fn track(&mut self, track: &Track<'_>) -> io::Result<()> {
        let _ = track;
        Ok(())
    }
    /// An event of a track. The events of one track come in order of time.
    fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
        let _ = event;
        Ok(())
    }
    /// Events are missing on `cpu` before the next event of that CPU; `count` is how many, where the kernel
    /// counted them.
    fn lost(&mut self, cpu: Cpu, count: Option<u64>) -> io::Result<()> {
        let _ = (cpu, count);
        Ok(())
    }
}

/// A [`Sink`] that passes its calls on to another sink. Every method that an adapter does not override passes
/// its call on unchanged.
pub trait SinkAdapter {
    /// The sink behind the adapter.
    type Next: Sink + ?Sized;

    /// The sink that calls are passed on to.
    fn next(&mut self) -> &mut Self::Next;

    /// See [`Sink::head`].
    fn head(&mut self, head: &Head) -> io::Result<()> {
        self.next().head(head)
    }
    /// See [`Sink::event_type`].
    fn event_type(&mut self, id: EventTypeId, kind: &EventType) -> io::Result<()> {
        self.next().event_type(id, kind)
    }
    /// See [`Sink::kernel`].
    fn kernel(&mut self, symbolizer: &Arc<Symbolizer>) -> io::Result<()> {
        self.next().kernel(symbolizer)
    }
    /// See [`Sink::thread`].
    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        self.next().thread(thread)
    }
    /// See [`Sink::process`].
    fn process(&mut self, process: &ProcessInfo<'_>) -> io::Result<()> {
        self.next().process(process)
    }
    /// See [`Sink::event`].
    #[inline]
    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        self.next().event(event, kind)
    }
    /// See [`Sink::track`].
    fn track(&mut self, track: &Track<'_>) -> io::Result<()> {
        self.next().track(track)
    }
    /// See [`Sink::track_event`].
    fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
        self.next().track_event(event)
    }
    /// See [`Sink::lost`].
    fn lost(&mut self, cpu: Cpu, count: Option<u64>) -> io::Result<()> {
        self.next().lost(cpu, count)
    }
}

impl<A: SinkAdapter + ?Sized> Sink for A {
    fn head(&mut self, head: &Head) -> io::Result<()> {
        SinkAdapter::head(self, head)
    }
    fn event_type(&mut self, id: EventTypeId, kind: &EventType) -> io::Result<()> {
        SinkAdapter::event_type(self, id, kind)
    }
    fn kernel(&mut self, symbolizer: &Arc<Symbolizer>) -> io::Result<()> {
        SinkAdapter::kernel(self, symbolizer)
    }
    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        SinkAdapter::thread(self, thread)
    }
    fn process(&mut self, process: &ProcessInfo<'_>) -> io::Result<()> {
        SinkAdapter::process(self, process)
    }
    #[inline]
    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        SinkAdapter::event(self, event, kind)
    }
    fn track(&mut self, track: &Track<'_>) -> io::Result<()> {
        SinkAdapter::track(self, track)
    }
    fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
        SinkAdapter::track_event(self, event)
    }
    fn lost(&mut self, cpu: Cpu, count: Option<u64>) -> io::Result<()> {
        SinkAdapter::lost(self, cpu, count)
    }
}
