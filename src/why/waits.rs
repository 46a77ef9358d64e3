//! For what a thread waits, as the events before the wait, in it and at its end tell.
//!
//! The facts are those of kernel/sched/core.c (`try_to_wake_up`), the wait functions of fs, mm and
//! drivers/android, and of the markers that ART, bionic and the framework write around their locks.

use super::cause::Cause;
use super::grade::Grade;
use super::lock_marker::LockMarker;
use super::model::{
    BlockedReason, MARKS_BEFORE, MarkKind, Model, SchedState, StateChange, Syscall, ThreadHistory, Wake,
    WakeContext,
};

use crate::clock::Timestamp;
use crate::ids::{Pid, Tid};

/// The subject of a wait whose end no event tells.
const WITHOUT_WAKE_UP: &str = "the wake-up that ended the wait";

/// The cause of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wait<'m> {
    pub cause: Cause,
    /// A file, a function of the kernel, a marker.
    pub subject: Subject<'m>,
    /// The thread whose time explains the wait in turn.
    pub follow: Option<Tid>,
    pub grade: Grade,
}

impl<'m> Wait<'m> {
    /// A wait whose cause is known as well as `grade` says, and that no thread explains.
    fn leaf(grade: Grade, cause: Cause, subject: Subject<'m>) -> Wait<'m> {
        Wait { cause, subject, follow: None, grade }
    }
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
    /// The span is the thread's own: nobody waits for the thread.
    pub is_own: bool,
}

impl Model {
    /// For what the thread waits.
    pub(super) fn wait<'m>(&'m self, at: &WaitAt<'m>) -> Wait<'m> {
        match (at.change.state, &at.wake) {
            (SchedState::Unknown, _) => {
                Wait::leaf(Grade::Event, Cause::NotRecorded, Subject::Fixed("switches are missing"))
            }
            (SchedState::Gone, None) => {
                Wait::leaf(Grade::Event, Cause::Idle, Subject::Fixed("the thread has ended"))
            }
            (SchedState::Uninterruptible, wake) => self.uninterruptible(at, wake.as_ref()),
            (_, None) => Wait::leaf(Grade::Event, Cause::NotRecorded, Subject::Fixed(WITHOUT_WAKE_UP)),
            (SchedState::Stopped, Some(wake)) => self.hop_or(
                at,
                wake,
                Wait::leaf(Grade::WakeUp, Cause::Kernel, Subject::Fixed("the thread was stopped")),
            ),
            (_, Some(wake)) => self.interruptible(at, wake),
        }
    }

    /// A wait that only its event ends: for a device, for memory, for a lock of the kernel.
    fn uninterruptible<'m>(&'m self, at: &WaitAt<'m>, wake: Option<&Wake>) -> Wait<'m> {
        let told = self.reason(at.change).and_then(|reason| self.told_by_reason(at, wake, reason));
        if let Some(told) = told {
            return told;
        }
        let Some(wake) = wake else {
            return Wait::leaf(Grade::Event, Cause::NotRecorded, Subject::Fixed(WITHOUT_WAKE_UP));
        };
        if self.is_reclaiming(at) {
            return Wait::leaf(Grade::Event, Cause::Reclaim, Subject::None);
        }
        if let Some(file) = self.file_of(at) {
            return Wait::leaf(Grade::Event, Cause::Disk, Subject::Text(file));
        }
        let waker = self.tasks.thread_name(wake.waker);
        if self.is_device(wake) {
            return self.device_wait(at, wake);
        }
        match &*waker {
            name if name.starts_with("rcu") || name.starts_with("cpuhp") || name.starts_with("migration") => {
                Wait::leaf(Grade::WakeUp, Cause::Kernel, Subject::Thread(wake.waker))
            }
            name if is_kernel_worker(name) => match self.block_requests.tell_of(at.start, wake.ts) {
                Some(false) => Wait::leaf(Grade::WakeUp, Cause::Kernel, Subject::Thread(wake.waker)),
                Some(true) => Wait::leaf(Grade::WakeUp, Cause::Disk, Subject::None),
                None => Wait::leaf(Grade::Inferred, Cause::Disk, Subject::None),
            },
            _ => self.hop_or(
                at,
                wake,
                Wait::leaf(Grade::WakeUp, Cause::Lock, Subject::Fixed("a lock of the kernel")),
            ),
        }
    }

    /// The wait, by the kernel's own reason of it: the function that waited, and whether that was for input
    /// or output. `None` where the function says nothing and a thread may.
    fn told_by_reason<'m>(
        &'m self,
        at: &WaitAt<'m>,
        wake: Option<&Wake>,
        reason: BlockedReason,
    ) -> Option<Wait<'m>> {
        let leaf = |cause, subject| Some(Wait::leaf(Grade::Event, cause, subject));
        let function = self.names.text(reason.function);
        let known = function_cause(function);
        if known == Some(Cause::Lock) {
            return wake.map(|wake| {
                self.hop_or(at, wake, Wait::leaf(Grade::Event, Cause::Lock, Subject::Text(function)))
            });
        }
        if known == Some(Cause::Disk) || known.is_none() && reason.is_io {
            return leaf(Cause::Disk, Subject::Text(self.file_of(at).unwrap_or(function)));
        }
        let by_thread = wake.is_some_and(|wake| {
            !self.is_device(wake) && !is_kernel_worker(&self.tasks.thread_name(wake.waker))
        });
        match known {
            Some(cause) => leaf(cause, Subject::Text(function)),
            None if self.is_reclaiming(at) || by_thread || function.is_empty() => None,
            None => leaf(Cause::Kernel, Subject::Text(function)),
        }
    }

    /// An uninterruptible wait that an interrupt ended, and of which no event tells more.
    fn device_wait<'m>(&'m self, at: &WaitAt<'m>, wake: &Wake) -> Wait<'m> {
        match (self.device(wake), self.block_requests.tell_of(at.start, wake.ts)) {
            (Some(InterruptSource::Disk(_)), told) if told != Some(false) => {
                Wait::leaf(Grade::WakeUp, Cause::Disk, Subject::None)
            }
            (_, Some(true)) => Wait::leaf(Grade::WakeUp, Cause::Disk, Subject::None),
            (_, None) => Wait::leaf(Grade::Inferred, Cause::Disk, Subject::None),
            (Some(InterruptSource::Other(name)), Some(false)) => {
                Wait::leaf(Grade::WakeUp, Cause::Kernel, Subject::Text(name))
            }
            (_, Some(false)) => {
                Wait::leaf(Grade::Inferred, Cause::Kernel, Subject::Fixed("a driver, which no event names"))
            }
        }
    }

    /// A wait that a signal ends, too: for another thread, a message, a moment.
    fn interruptible<'m>(&'m self, at: &WaitAt<'m>, wake: &Wake) -> Wait<'m> {
        if let Some((cause, name)) = self.marked_wait(at) {
            return self.hop_or(at, wake, Wait::leaf(Grade::Event, cause, Subject::Text(name)));
        }
        let call = match pending_call(at.thread, at.start, self.has_call_ends) {
            Some(MarkKind::BinderCall) => Some(Call::Binder),
            Some(MarkKind::SyscallEnter(call, _)) => Some(Call::System(call)),
            _ => None,
        };
        let is_between_messages = matches!(call, None | Some(Call::System(Syscall::Poll | Syscall::Other)));
        let is_idle = at.is_own
            && is_between_messages
            && self.is_main(at.tid)
            && at.thread.slices.innermost(at.start).is_none();
        if self.is_device(wake) {
            return self.ended_by_device(wake, call, is_idle);
        }
        let waker = self.tasks.thread_name(wake.waker);
        if is_kernel_worker(&waker) {
            return match call {
                Some(Call::System(Syscall::Sync)) => {
                    Wait::leaf(Grade::Event, Cause::Disk, Subject::Thread(wake.waker))
                }
                _ => Wait::leaf(Grade::WakeUp, Cause::Kernel, Subject::Thread(wake.waker)),
            };
        }
        if self.is_vsync(wake.waker, at.tid) {
            return Wait::leaf(Grade::Inferred, Cause::Vsync, Subject::Thread(wake.waker));
        }
        let by_process = self.woken_by(wake.waker, at.tid);
        let (grade, cause) = match call {
            _ if waker.starts_with("HeapTaskDaemon") => (Grade::WakeUp, Cause::Gc),
            Some(Call::Binder) => (Grade::Event, Cause::Binder),
            _ if is_idle => (Grade::Inferred, Cause::Idle),
            Some(Call::System(Syscall::Futex)) => (Grade::Event, Cause::Lock),
            Some(Call::System(Syscall::Poll | Syscall::Transfer | Syscall::Child)) => {
                (Grade::Event, Cause::Ipc)
            }
            Some(Call::System(Syscall::Sleep)) => (Grade::Event, Cause::Sleep),
            Some(Call::System(Syscall::Ioctl)) if by_process == Cause::Ipc => (Grade::WakeUp, Cause::Binder),
            _ => (Grade::WakeUp, by_process),
        };
        self.hop_or(at, wake, Wait::leaf(grade, cause, Subject::None))
    }

    /// An interruptible wait that an interrupt ended.
    fn ended_by_device<'m>(&'m self, wake: &Wake, call: Option<Call>, is_idle: bool) -> Wait<'m> {
        let by_wake_up = |cause, subject| Wait::leaf(Grade::WakeUp, cause, subject);
        let is_timer = |source| match source {
            Some(source) => source == InterruptSource::Timer,
            // A device's interrupt would have been recorded.
            None => self.has_interrupts,
        };
        match (self.device(wake), call) {
            (_, Some(Call::System(Syscall::Sleep))) => Wait::leaf(Grade::Event, Cause::Sleep, Subject::None),
            (Some(InterruptSource::Disk(name)), _) => by_wake_up(Cause::Disk, Subject::Text(name)),
            (Some(InterruptSource::Network(name)), _) => by_wake_up(Cause::Ipc, Subject::Text(name)),
            (_, Some(Call::System(Syscall::Sync))) => Wait::leaf(Grade::Event, Cause::Disk, Subject::None),
            (_, Some(Call::System(Syscall::Transfer))) => {
                by_wake_up(Cause::Ipc, Subject::Fixed("a device or the network"))
            }
            _ if is_idle => Wait::leaf(Grade::Inferred, Cause::Idle, Subject::None),
            (source, Some(Call::System(Syscall::Futex))) if is_timer(source) || source.is_none() => {
                Wait::leaf(Grade::Event, Cause::Sleep, Subject::Fixed("the time-out of a wait for a lock"))
            }
            (source, Some(Call::System(Syscall::Poll))) if is_timer(source) || source.is_none() => {
                by_wake_up(Cause::Sleep, Subject::Fixed("the time-out of a wait for a message"))
            }
            (source, _) if is_timer(source) => by_wake_up(Cause::Sleep, Subject::Fixed("a timer")),
            _ => Wait::leaf(Grade::Inferred, Cause::Sleep, Subject::Fixed("a timer or a device")),
        }
    }

    /// A wait that another thread ended is explained by its time; one that an interrupt ended stays as it is.
    fn hop_or<'m>(&'m self, at: &WaitAt<'m>, wake: &Wake, wait: Wait<'m>) -> Wait<'m> {
        let is_thread = !self.is_device(wake) && wake.waker != at.tid;
        Wait { follow: is_thread.then_some(wake.waker), ..wait }
    }

    /// The cause that the innermost marker around the wait tells, and the marker's name. Around the marker
    /// of a monitor's own lock ART writes the one that names the methods.
    fn marked_wait<'m>(&'m self, at: &WaitAt<'m>) -> Option<(Cause, &'m str)> {
        let innermost = at.thread.slices.innermost(at.start)?;
        let around = at.thread.slices.outwards(innermost).take(3);
        let mut names = around.map(|slice| self.names.text(slice.name));
        let (cause, name) = names.find_map(|name| waiting_marker(name).map(|cause| (cause, name)))?;
        let outer =
            (cause == Cause::Lock).then(|| names.find(|name| LockMarker::parse(name).is_some())).flatten();
        Some((cause, outer.unwrap_or(name)))
    }

    /// Whether a wake-up came from an interrupt: then the waker is a bystander.
    pub(super) fn is_device(&self, wake: &Wake) -> bool {
        !wake.waker.is_thread() || wake.is_from_interrupt() || self.device(wake).is_some()
    }

    /// The device whose interrupt was served on the waker's CPU. A hard interrupt inside of a soft one that
    /// is recorded is not that one.
    fn device(&self, wake: &Wake) -> Option<InterruptSource<'_>> {
        let cpu = self.cpus.get(&wake.cpu)?;
        let from = wake.ts.saturating_sub(1);
        let open =
            cpu.interrupts_within(from, wake.ts + 1).find(|irq| irq.start <= wake.ts && irq.end > wake.ts)?;
        let name = self.names.text(open.name);
        let is_within = wake.context == WakeContext::HardInterrupt && is_soft_interrupt(name);
        (!is_within).then(|| InterruptSource::from_name(name))
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
    Other(&'m str),
}

/// Whether an interrupt of this name is a soft one.
fn is_soft_interrupt(name: &str) -> bool {
    name.starts_with("softirq")
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
            InterruptSource::Other(name)
        }
    }
}

/// A call that a thread has begun, and whose end it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Binder,
    System(Syscall),
}

/// The call that the thread had begun before it waited from `start` on, and had not ended. Where the ends of
/// calls are not recorded, it has begun since the thread came to run.
pub(super) fn pending_call(
    thread: &ThreadHistory,
    start: Timestamp,
    has_call_ends: bool,
) -> Option<MarkKind> {
    let wait = thread.change_at(start);
    let ran = wait.and_then(|wait| thread.changes.get(wait.checked_sub(1)?)).map(|ran| ran.since);
    for mark in thread.marks_before(start).take(MARKS_BEFORE) {
        match mark.kind {
            MarkKind::SyscallEnter(..) => {
                let is_open = has_call_ends || ran.is_none_or(|ran| mark.ts >= ran);
                return is_open.then_some(mark.kind);
            }
            MarkKind::SyscallExit => return None,
            MarkKind::BinderCall => {
                // Since the call the thread must not have run again.
                let ran = thread.change_at(mark.ts).map(|at| at + 1);
                return (ran.is_some() && ran == wait).then_some(mark.kind);
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
