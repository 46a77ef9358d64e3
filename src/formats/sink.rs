//! What a reader pushes to, and what it says before the first event.

use std::io;
use std::sync::Arc;

use super::{Event, EventType, EventTypeId};
use crate::clock::{Clock, Snapshots};
use crate::ftrace::print_fmt::Symbolizer;

/// What a source says before its first event.
#[derive(Debug, Clone)]
pub struct Head {
    /// The format for people: `trace.dat v7 (zstd)`.
    pub format: String,
    /// What the events' times are in.
    pub clock: Clock,
    /// Decimals of a second that the times really have: 9 for ns, 6 for texts.
    pub precision: u8,
    /// Clocks read back to back while recording.
    pub snapshots: Snapshots,
    /// CPUs of the recording machine, where known.
    pub cpus: Option<u32>,
    /// `uname -a` or the like of the recording machine.
    pub machine: Option<String>,
}

/// In which order a reader is asked to push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// By time over all CPUs; equal times by CPU.
    Time,
    /// One CPU after the other, or as the file has it: cheapest, and enough where the viewer sorts.
    Any,
}

/// A thread's name or process, as far as the source knows.
#[derive(Debug, Clone, Copy)]
pub struct ThreadInfo<'a> {
    /// Kernel thread id.
    pub tid: i32,
    /// Its process, where known.
    pub tgid: Option<i32>,
    /// Its name (comm), where known.
    pub name: Option<&'a [u8]>,
}

/// A process's full name, as far as the source knows.
#[derive(Debug, Clone, Copy)]
pub struct ProcessInfo<'a> {
    /// The process id (tgid).
    pub pid: i32,
    /// The parent process, where known.
    pub ppid: Option<i32>,
    /// The command line's first word or package name.
    pub name: Option<&'a [u8]>,
}

/// Takes what a reader finds. An error ends the reading and is handed back to the reader's caller.
pub trait Sink {
    /// Before everything else, once.
    fn head(&mut self, head: &Head) -> io::Result<()> {
        let _ = head;
        Ok(())
    }
    /// Before the first event of this kind, once. Ids come in growing order without holes.
    fn event_type(&mut self, id: EventTypeId, kind: &EventType) -> io::Result<()> {
        let _ = (id, kind);
        Ok(())
    }
    /// After the head and before the first kind, at most once a source: what prints records as their kernel would.
    fn kernel(&mut self, context: &Arc<Symbolizer>) -> io::Result<()> {
        let _ = context;
        Ok(())
    }
    /// At any time; a later one for the same id adds to or replaces an earlier one.
    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        let _ = thread;
        Ok(())
    }
    /// At any time.
    fn process(&mut self, process: &ProcessInfo<'_>) -> io::Result<()> {
        let _ = process;
        Ok(())
    }
    /// One event; `kind` is what [`Sink::event_type`] got for `event.kind`.
    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()>;
    /// Events are missing on `cpu` before the next event of that CPU; `count` where the kernel counted them.
    fn lost(&mut self, cpu: u32, count: Option<u64>) -> io::Result<()> {
        let _ = (cpu, count);
        Ok(())
    }
}
