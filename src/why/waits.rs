//! For what a thread waits, as the events before the wait, in it and at its end tell.
//!
//! The facts are those of kernel/sched/core.c (`try_to_wake_up`), the wait functions of fs, mm and
//! drivers/android, and of the markers that ART, bionic and the framework write around their locks.

use super::cause::Cause;
use super::model::{MARKS_BEFORE, MarkKind, Model, SchedState, StateChange, Syscall, ThreadHistory, Wake};

use crate::clock::Timestamp;
use crate::ids::{Pid, Tid};

/// The cause of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wait<'m> {
    pub cause: Cause,
    /// A file, a function of the kernel, a marker.
    pub subject: Subject<'m>,
    /// The thread whose time explains the wait in turn.
    pub follow: Option<Tid>,
}

/// The subject of a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject<'m> {
    None,
    /// A text that the timeline holds.
    Text(&'m str),
    /// A text of ours.
    Fixed(&'static str),
    /// A thread, by its id.
    Thread(Tid),
}

/// A wait of a thread: its state, and the wake-up that ended it.
pub(super) struct WaitAt<'m> {
    pub tid: Tid,
    pub thread: &'m ThreadHistory,
    pub start: Timestamp,
    pub change: &'m StateChange,
    pub wake: Option<Wake>,
}

impl Model {
    /// For what the thread waits.
    pub(super) fn wait<'m>(&'m self, at: &WaitAt<'m>) -> Wait<'m> {
        let leaf = |cause, subject| Wait { cause, subject, follow: None };
        let Some(wake) = &at.wake else {
            return match at.change.state {
                SchedState::Gone => leaf(Cause::Idle, Subject::Fixed("the thread has ended")),
                _ => leaf(Cause::NotRecorded, Subject::Fixed("the wake-up that ended the wait")),
            };
        };
        match at.change.state {
            SchedState::Uninterruptible => self.uninterruptible(at, wake),
            SchedState::Stopped => {
                self.hop_or(at, wake, Cause::Kernel, Subject::Fixed("the thread was stopped"))
            }
            _ => self.interruptible(at, wake),
        }
    }

    /// A wait that only its event ends: for a device, for memory, for a lock of the kernel.
    fn uninterruptible<'m>(&'m self, at: &WaitAt<'m>, wake: &Wake) -> Wait<'m> {
        let leaf = |cause, subject| Wait { cause, subject, follow: None };
        if let Some(reason) = self.reason(at.change) {
            let function = self.names.text(reason.function);
            let subject = self.file_of(at).map_or(Subject::Text(function), Subject::Text);
            match function_cause(function) {
                Some(Cause::Lock) => return self.hop_or(at, wake, Cause::Lock, Subject::Text(function)),
                Some(cause) => {
                    return leaf(cause, if cause == Cause::Disk { subject } else { Subject::Text(function) });
                }
                None if reason.is_io => return leaf(Cause::Disk, subject),
                None => {}
            }
        }
        let file = self.file_of(at).map_or(Subject::None, Subject::Text);
        if self.is_reclaiming(at) {
            return leaf(Cause::Reclaim, Subject::None);
        }
        if self.is_device(wake) {
            return leaf(Cause::Disk, file);
        }
        let waker = self.tasks.thread_name(wake.waker);
        match &*waker {
            name if name.starts_with("rcu") || name.starts_with("cpuhp") || name.starts_with("migration") => {
                leaf(Cause::Kernel, Subject::Thread(wake.waker))
            }
            name if is_kernel_worker(name) => leaf(Cause::Disk, file),
            _ if file != Subject::None => leaf(Cause::Disk, file),
            _ => self.hop_or(at, wake, Cause::Lock, Subject::Fixed("a lock of the kernel")),
        }
    }

    /// A wait that a signal ends, too: for another thread, a message, a moment.
    fn interruptible<'m>(&'m self, at: &WaitAt<'m>, wake: &Wake) -> Wait<'m> {
        let leaf = |cause, subject| Wait { cause, subject, follow: None };
        let is_idle_main = self.is_main(at.tid) && at.thread.slices.innermost(at.start).is_none();
        if let Some((cause, name)) = self.marked_wait(at) {
            return self.hop_or(at, wake, cause, Subject::Text(name));
        }
        let call = pending_call(at);
        if self.is_device(wake) {
            return match (self.device(wake), call) {
                (_, Some(Pending::Syscall(Syscall::Sleep))) => leaf(Cause::Sleep, Subject::None),
                (Some(InterruptSource::Disk(name)), _) => leaf(Cause::Disk, Subject::Text(name)),
                (Some(InterruptSource::Network(name)), _) => leaf(Cause::Ipc, Subject::Text(name)),
                (_, Some(Pending::Syscall(Syscall::Sync))) => leaf(Cause::Disk, Subject::None),
                (_, Some(Pending::Syscall(Syscall::Transfer))) => {
                    leaf(Cause::Ipc, Subject::Fixed("a device or the network"))
                }
                _ if is_idle_main => leaf(Cause::Idle, Subject::None),
                // A device's interrupt would have been recorded.
                (None, _) if self.has_interrupts => leaf(Cause::Sleep, Subject::Fixed("a timer")),
                (Some(InterruptSource::Timer), _)
                | (None, Some(Pending::Syscall(Syscall::Futex | Syscall::Poll))) => {
                    leaf(Cause::Sleep, Subject::Fixed("a timer"))
                }
                _ => leaf(Cause::Sleep, Subject::Fixed("a timer or a device")),
            };
        }
        let waker = self.tasks.thread_name(wake.waker);
        if is_kernel_worker(&waker) {
            let cause = match call {
                Some(Pending::Syscall(Syscall::Sync)) => Cause::Disk,
                _ => Cause::Kernel,
            };
            return leaf(cause, Subject::Thread(wake.waker));
        }
        if self.is_vsync(wake.waker, at.tid) {
            return leaf(Cause::Vsync, Subject::Thread(wake.waker));
        }
        let by_process = self.woken_by(wake.waker, at.tid);
        let cause = match call {
            Some(Pending::Binder) => Cause::Binder,
            _ if is_idle_main => Cause::Idle,
            Some(Pending::Syscall(Syscall::Futex)) => Cause::Lock,
            Some(Pending::Syscall(Syscall::Poll | Syscall::Transfer | Syscall::Child)) => Cause::Ipc,
            Some(Pending::Syscall(Syscall::Sleep)) => Cause::Sleep,
            Some(Pending::Syscall(Syscall::Ioctl)) if by_process == Cause::Ipc => Cause::Binder,
            _ => by_process,
        };
        let is_gc = waker.starts_with("HeapTaskDaemon");
        self.hop_or(at, wake, if is_gc { Cause::Gc } else { cause }, Subject::None)
    }

    /// A wait that another thread ended, or, where an interrupt did, the cause without one.
    fn hop_or<'m>(&'m self, at: &WaitAt<'m>, wake: &Wake, cause: Cause, subject: Subject<'m>) -> Wait<'m> {
        let is_thread = !self.is_device(wake) && wake.waker != at.tid;
        Wait { cause, subject, follow: is_thread.then_some(wake.waker) }
    }

    /// The cause that the innermost marker around the wait tells, and the marker's name.
    fn marked_wait<'m>(&'m self, at: &WaitAt<'m>) -> Option<(Cause, &'m str)> {
        let innermost = at.thread.slices.innermost(at.start)?;
        let around = at.thread.slices.outwards(innermost).take(3);
        let names = around.map(|slice| self.names.text(slice.name));
        names.into_iter().find_map(|name| waiting_marker(name).map(|cause| (cause, name)))
    }

    /// Whether a wake-up came from an interrupt: then the waker is a bystander.
    pub(super) fn is_device(&self, wake: &Wake) -> bool {
        !wake.waker.is_thread() || wake.from_interrupt || self.device(wake).is_some()
    }

    /// The device whose interrupt was served on the waker's CPU.
    fn device(&self, wake: &Wake) -> Option<InterruptSource<'_>> {
        let cpu = self.cpus.get(&wake.cpu)?;
        let from = wake.ts.saturating_sub(1);
        let open =
            cpu.interrupts_within(from, wake.ts + 1).find(|irq| irq.start <= wake.ts && irq.end > wake.ts)?;
        Some(InterruptSource::from_name(self.names.text(open.name)))
    }

    /// The file whose pages the thread brought in shortly before or in the wait.
    fn file_of<'m>(&'m self, at: &WaitAt<'m>) -> Option<&'m str> {
        let end = at.wake.map_or(at.start, |wake| wake.ts);
        let within = at.thread.marks_within(at.start, end).iter();
        let before = at.thread.marks_before(at.start).take(MARKS_BEFORE);
        let pages = within.chain(before).take_while(|mark| !matches!(mark.kind, MarkKind::SyscallExit));
        let file = pages.into_iter().find_map(|mark| match mark.kind {
            MarkKind::FilePage(file) => Some(file),
            _ => None,
        })?;
        Some(self.names.text(file))
    }

    fn is_reclaiming(&self, at: &WaitAt<'_>) -> bool {
        at.thread.reclaims.innermost(at.start).is_some()
    }

    /// For what a thread waits that `waker` wakes, where nothing but the processes of the two tells it.
    pub(super) fn woken_by(&self, waker: Tid, woken: Tid) -> Cause {
        match (self.process(waker), self.process(woken)) {
            (Some(waker), Some(woken)) if waker == woken => Cause::Lock,
            (Some(_), Some(_)) => Cause::Ipc,
            _ => Cause::OtherThread,
        }
    }

    pub(super) fn process(&self, tid: Tid) -> Option<Pid> {
        self.tasks.threads.tgid(tid)
    }

    pub(super) fn is_main(&self, tid: Tid) -> bool {
        self.process(tid).is_some_and(|process| tid.is_main_of(process))
    }

    /// Whether a thread of SurfaceFlinger woke the app for its next frame.
    fn is_vsync(&self, waker: Tid, woken: Tid) -> bool {
        let name = self.tasks.thread_name(waker);
        let is_source =
            matches!(&*name, "app" | "appSf" | "sf" | "TimerDispatch" | "EventThread" | "DispSync");
        is_source && self.woken_by(waker, woken) != Cause::Lock
    }
}

/// The source of an interrupt, by its name or by that of the soft interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InterruptSource<'m> {
    Timer,
    Disk(&'m str),
    Network(&'m str),
    Other,
}

impl<'m> InterruptSource<'m> {
    fn from_name(name: &'m str) -> InterruptSource<'m> {
        let lower = name.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        if has(&["timer", "hrtimer", "softirq sched"]) {
            InterruptSource::Timer
        } else if has(&["block", "ufs", "mmc", "nvme", "virtio-blk", "sdhci", "irq_poll"]) {
            InterruptSource::Disk(name)
        } else if has(&["net_rx", "net_tx", "eth", "wlan", "wifi"]) {
            InterruptSource::Network(name)
        } else {
            InterruptSource::Other
        }
    }
}

/// A call that a thread has begun, and whose end it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pending {
    Binder,
    Syscall(Syscall),
}

/// The call that the thread had begun before the wait, and had not ended.
fn pending_call(at: &WaitAt<'_>) -> Option<Pending> {
    for mark in at.thread.marks_before(at.start).take(MARKS_BEFORE) {
        match mark.kind {
            MarkKind::SyscallEnter(call) => return Some(Pending::Syscall(call)),
            MarkKind::SyscallExit => return None,
            MarkKind::BinderCall => {
                // Since the call the thread must not have run again.
                let ran = at.thread.change_at(mark.ts).map(|at| at + 1);
                let waits = at.thread.change_at(at.start);
                return (ran.is_some() && ran == waits).then_some(Pending::Binder);
            }
            _ => {}
        }
    }
    None
}

/// Begins of names of markers around a wait, and the cause that they tell: markers of ART
/// (runtime/monitor.cc, runtime/base/mutex.cc, runtime/gc/heap.cc), bionic (pthread_mutex.cpp) and hwui.
const WAITING_MARKERS: &[(Cause, &[&str])] = &[
    (Cause::Lock, &["Lock contention on", "monitor contention with", "Contending for pthread mutex"]),
    (Cause::Gc, &["GC: Wait For", "WaitForGcToComplete", "SuspendAll", "ScopedPause"]),
    (
        Cause::Gpu,
        &["waiting for GPU", "waitForever", "dequeueBuffer", "waiting for fence", "Waiting for GPU"],
    ),
];

/// Begins of names of functions of the kernel that wait, and the cause of the wait. The first that fits
/// counts.
const WAITING_FUNCTIONS: &[(Cause, &[&str])] = &[
    (
        Cause::Reclaim,
        &[
            "do_try_to_free_pages",
            "shrink_",
            "throttle_direct_reclaim",
            "mem_cgroup_handle_over_high",
            "reclaim_throttle",
            "congestion_wait",
        ],
    ),
    (
        Cause::Lock,
        &[
            "rwsem_down",
            "__rwsem_down",
            "down_read",
            "down_write",
            "mmap_read_lock",
            "mmap_write_lock",
            "percpu_rwsem_wait",
            "__mutex_lock",
            "mutex_lock",
            "__down",
        ],
    ),
    (Cause::Gpu, &["dma_fence", "sync_wait", "kgsl_", "mali_", "drm_"]),
    (
        Cause::Kernel,
        &[
            "synchronize_",
            "cgroup_",
            "freezer",
            "do_freezer_trap",
            "__refrigerator",
            "rcu_",
            "wait_rcu",
            "usleep_range",
            "msleep",
        ],
    ),
    (Cause::PageFault, &["do_swap_page", "__lock_folio_or_retry"]),
    (
        Cause::Disk,
        &[
            "folio_wait_bit",
            "__folio_lock",
            "filemap_",
            "do_page_cache_ra",
            "io_schedule",
            "wait_on_page_bit",
            "__lock_page",
            "lock_page",
            "f2fs_",
            "jbd2_",
            "blk_mq_get_tag",
            "rq_qos_wait",
            "ext4_",
            "submit_bio_wait",
            "__wait_on_buffer",
            "bit_wait_io",
            "wait_on_buffer",
        ],
    ),
];

/// The first cause of a table with whose words `name` begins.
fn cause_by_begin(table: &[(Cause, &[&str])], name: &str) -> Option<Cause> {
    let fits = |(_, words): &&(Cause, &[&str])| words.iter().any(|word| name.starts_with(word));
    table.iter().find(fits).map(|(cause, _)| *cause)
}

/// The cause that a marker around a wait tells.
pub(super) fn waiting_marker(name: &str) -> Option<Cause> {
    let is_binder = name == "binder transaction" || name.ends_with("::client");
    cause_by_begin(WAITING_MARKERS, name).or_else(|| is_binder.then_some(Cause::Binder))
}

/// The cause of a wait in a function of the kernel.
fn function_cause(function: &str) -> Option<Cause> {
    cause_by_begin(WAITING_FUNCTIONS, function)
}

/// Whether a thread of this name is one of the kernel's, which works for others.
pub(super) fn is_kernel_worker(name: &str) -> bool {
    let words = [
        "kworker/",
        "ksoftirqd/",
        "irq/",
        "jbd2/",
        "kswapd",
        "kcompactd",
        "kblockd",
        "mmcqd/",
        "rcu_",
        "rcuc/",
        "rcub/",
        "rcuop/",
        "migration/",
        "kthreadd",
        "khugepaged",
        "ext4-rsv-",
        "cpuhp/",
        "kdmflush/",
        "dmcrypt_write/",
        "f2fs_gc-",
        "f2fs_flush-",
        "f2fs_discard-",
        "f2fs_ckpt-",
        "scsi_eh_",
        "kauditd",
        "oom_reaper",
    ];
    let numbered = ["loop", "nvme", "xfsaild/"];
    let is_numbered = |word: &str| {
        let rest = name.strip_prefix(word).unwrap_or_default();
        rest.starts_with(|c: char| c.is_ascii_digit())
    };
    words.iter().any(|word| name.starts_with(word)) || numbered.into_iter().any(is_numbered)
}

/// Whether a thread of this name records the trace.
pub(super) fn is_tracer(name: &str) -> bool {
    matches!(name, "tracebridge" | "traced" | "traced_probes" | "atrace" | "trace-cmd" | "perfetto")
}

/// Begins of names of markers in which a thread runs, and the cause of its time.
const RUNNING_MARKERS: &[(Cause, &[&str])] = &[
    (Cause::Gc, &["GC: ", "Alloc GC", "WaitForGcToComplete"]),
    (
        Cause::Jit,
        &["JIT compiling", "JitProfile", "Compiling baseline", "Compiling optimized", "Compiling OSR"],
    ),
    (
        Cause::ClassLoading,
        &["VerifyClass", "OpenDexFilesFromOat", "dlopen", "location=", "AppImage:", "ClassLinker"],
    ),
];

/// The cause of the time that a thread runs in this marker, where it is not the program's own code.
pub(super) fn running_marker(name: &str) -> Option<Cause> {
    if name.ends_with(" GC") {
        return Some(Cause::Gc);
    }
    // The descriptor of a class: `Lcom/example/Main;`.
    let is_descriptor = name.starts_with('L') && name.ends_with(';') && !name.contains(' ');
    if is_descriptor { Some(Cause::ClassLoading) } else { cause_by_begin(RUNNING_MARKERS, name) }
}
