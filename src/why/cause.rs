//! The causes that a span's time is split into, and the paths over threads that lead to them.

use rustc_hash::FxHashMap;

use super::names::NameId;
use crate::ids::{Cpu, Tid};

/// An occupation of a thread, or a reason of its wait. `docs/why.md` has the rule and the limits of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// The thread ran its own code.
    Running,
    /// The thread was ready, and its CPU had another one.
    Runnable,
    /// The thread was ready and its CPU idle: its group had used up its share of CPU time.
    Throttled,
    /// The time that running took longer because the CPU was slower than the fastest one.
    SlowCpu,
    /// A block device, or what stands before it.
    Disk,
    /// A page that had to be brought in, or a change of the memory map by another thread.
    PageFault,
    /// The kernel looked for free memory on behalf of the thread.
    Reclaim,
    /// A lock of the program, of ART or of the kernel, or another thread of the same process.
    Lock,
    /// A call through binder.
    Binder,
    /// Another process or the network, through a socket, a pipe or an eventfd.
    Ipc,
    /// A thread of which it is not known whether it belongs to the same process.
    OtherThread,
    /// Garbage collection.
    Gc,
    /// Just-in-time compilation.
    Jit,
    /// Loading, verifying and linking of classes and libraries.
    ClassLoading,
    /// The graphics processor, or a buffer that it or the display holds.
    Gpu,
    /// A delay that the program asked for.
    Sleep,
    /// The thread had nothing to do: nobody had sent it a message.
    Idle,
    /// The time at which the next frame begins.
    Vsync,
    /// An interrupt took the CPU from the running thread.
    Interrupt,
    /// Threads and drivers of the kernel.
    Kernel,
    /// Tracing itself.
    Tracing,
    /// The thread did not exist yet.
    Start,
    /// The events are there, and no rule says what they mean.
    Unexplained,
    /// Events that would tell are missing: not recorded, lost, or outside of the recording.
    NotRecorded,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Cause; 24] = [
        Cause::Running,
        Cause::Runnable,
        Cause::Throttled,
        Cause::SlowCpu,
        Cause::Disk,
        Cause::PageFault,
        Cause::Reclaim,
        Cause::Lock,
        Cause::Binder,
        Cause::Ipc,
        Cause::OtherThread,
        Cause::Gc,
        Cause::Jit,
        Cause::ClassLoading,
        Cause::Gpu,
        Cause::Sleep,
        Cause::Idle,
        Cause::Vsync,
        Cause::Interrupt,
        Cause::Kernel,
        Cause::Tracing,
        Cause::Start,
        Cause::Unexplained,
        Cause::NotRecorded,
    ];

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Running => "running",
            Cause::Runnable => "runnable",
            Cause::Throttled => "throttled",
            Cause::SlowCpu => "slow_cpu",
            Cause::Disk => "disk",
            Cause::PageFault => "page_fault",
            Cause::Reclaim => "reclaim",
            Cause::Lock => "lock",
            Cause::Binder => "binder",
            Cause::Ipc => "ipc",
            Cause::OtherThread => "other_thread",
            Cause::Gc => "gc",
            Cause::Jit => "jit",
            Cause::ClassLoading => "class_loading",
            Cause::Gpu => "gpu",
            Cause::Sleep => "sleep",
            Cause::Idle => "idle",
            Cause::Vsync => "vsync",
            Cause::Interrupt => "interrupt",
            Cause::Kernel => "kernel",
            Cause::Tracing => "tracing",
            Cause::Start => "start",
            Cause::Unexplained => "unexplained",
            Cause::NotRecorded => "not_recorded",
        }
    }
}

/// The number of a subject's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum SubjectId {
    None,
    Name(NameId),
    /// A thread, by its id.
    Thread(Tid),
    /// A thread that had the CPU, by its id and the kernel's priority of it, while another CPU that the ready
    /// thread may use was idle.
    Ran {
        tid: Tid,
        prio: Option<i16>,
        idle_cpu: Option<Cpu>,
    },
    /// The CPU left its idle state.
    IdleCpu,
    /// The CPU was idle, and did not take the thread.
    LongIdleCpu(Cpu),
    /// One of the fixed texts.
    Text(&'static str),
}

/// A thread, and what it did or waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Hop {
    pub cause: Cause,
    /// The kernel's thread id.
    pub tid: Tid,
    /// The marker or the function of the kernel that the events name for a wait, where it is followed to
    /// another thread.
    pub about: SubjectId,
}

/// The number of a path in [`Paths`]. The empty path is [`Paths::EMPTY`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct PathId(u32);

/// Paths from a span's own thread outwards. Each is a shorter path and one hop.
#[derive(Debug, Default)]
pub(super) struct Paths {
    /// Behind the empty path, which has no entry.
    hops: Vec<(PathId, Hop)>,
    numbers: FxHashMap<(PathId, Hop), PathId>,
}

impl Paths {
    pub const EMPTY: PathId = PathId(0);

    /// The path that leads one hop further.
    pub fn longer(&mut self, path: PathId, hop: Hop) -> PathId {
        let hops = &mut self.hops;
        *self.numbers.entry((path, hop)).or_insert_with(|| {
            hops.push((path, hop));
            PathId(hops.len() as u32)
        })
    }

    /// The hops of a path, from the span's own thread outwards.
    pub fn hops(&self, mut path: PathId) -> Vec<Hop> {
        let mut hops = Vec::new();
        while let Some((before, hop)) = (path.0 as usize).checked_sub(1).map(|at| self.hops[at]) {
            hops.push(hop);
            path = before;
        }
        hops.reverse();
        hops
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_paths_have_one_number() {
        let mut paths = Paths::default();
        let hop = |cause, tid| Hop { cause, tid: Tid(tid), about: SubjectId::None };
        let lock = hop(Cause::Lock, 1);
        let disk = hop(Cause::Disk, 2);
        let locked = paths.longer(Paths::EMPTY, lock);
        let read = paths.longer(locked, disk);
        assert_eq!(paths.longer(locked, disk), read);
        assert_ne!(paths.longer(Paths::EMPTY, disk), read);
        assert_eq!(paths.hops(read), [lock, disk]);
        assert_eq!(paths.hops(Paths::EMPTY), []);
    }
}
