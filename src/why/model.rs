//! The history of each thread and CPU, as the events of a timeline tell it, kept so that one can look back
//! from any moment.
//!
//! Times are ns of the timeline. A change of state holds from its time up to that of the next one.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::block_requests::BlockRequests;
use super::code_tree::{SampledStackId, SampledStacks};
use super::cpu_history::CpuHistory;
use super::cpu_speed::CpuSpeeds;
use super::names::{NameId, Names};
use super::quotas::{Quotas, ReadyTime};
use super::slices::{Slice, Slices};
use crate::clock::Timestamp;
use crate::ftrace::task_state::TaskState;
use crate::ids::{Cpu, Tid};
use crate::measure::Measured;
use crate::trace_dat::{EventCost, MachineFacts};
use crate::tracks::Tasks;

/// A state of a thread, as the scheduler has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SchedState {
    Running,
    Runnable,
    /// Runnable, because another thread took the CPU.
    Preempted,
    Interruptible,
    Uninterruptible,
    /// Stopped, traced, parked or an idle thread of the kernel.
    Stopped,
    Gone,
    /// Switches are missing from here on: nothing tells what the thread does.
    Unknown,
}

impl SchedState {
    /// The state of a thread that leaves its CPU, from `prev_state` of `sched_switch`.
    pub fn of_leaving(bits: u64) -> SchedState {
        match TaskState::of_leaving(bits) {
            TaskState::Sleeping => SchedState::Interruptible,
            TaskState::Uninterruptible | TaskState::IoWait => SchedState::Uninterruptible,
            TaskState::Dead => SchedState::Gone,
            TaskState::Stopped | TaskState::ParkedOrIdle => SchedState::Stopped,
            TaskState::Preempted | TaskState::Runnable | TaskState::Running => SchedState::Preempted,
        }
    }

    pub fn is_ready(self) -> bool {
        matches!(self, SchedState::Running | SchedState::Runnable | SchedState::Preempted)
    }
}

/// Where a wake-up came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WakeContext {
    /// The thread that was current woke the other one.
    Thread,
    /// A soft interrupt was served: the thread that was current is a bystander.
    SoftInterrupt,
    /// A hard interrupt was served, perhaps inside of a soft one.
    HardInterrupt,
}

/// A wake-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wake {
    pub ts: Timestamp,
    /// The thread that was current where the wake-up came from; 0 is the idle task.
    pub waker: Tid,
    /// The CPU where it came from.
    pub cpu: Cpu,
    pub context: WakeContext,
    /// Whether the thread is new.
    pub is_new: bool,
}

impl Wake {
    /// Whether it came from an interrupt, so that the waker is a bystander.
    pub fn is_from_interrupt(&self) -> bool {
        self.context != WakeContext::Thread
    }
}

/// The begin of a state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StateChange {
    pub since: Timestamp,
    /// Of a runnable thread the number of its wake-up in [`ThreadHistory::wakes`], of one that waits
    /// uninterruptibly that of its reason in [`Model::reasons`]. There are millions of changes: they are kept
    /// small.
    link: u32,
    cpu: u16,
    pub state: SchedState,
    /// The thread woke another one, wrote a marker or began an operation while it ran before this change.
    pub after_action: bool,
}

impl StateChange {
    fn new(since: Timestamp, state: SchedState, cpu: Cpu) -> StateChange {
        StateChange { since, link: NONE, cpu: short(cpu), state, after_action: false }
    }

    /// Where the thread runs, or ran last.
    pub fn cpu(&self) -> Cpu {
        Cpu(self.cpu.into())
    }
}

/// The number of a CPU, as it is kept: no machine has so many that it does not fit.
fn short(cpu: Cpu) -> u16 {
    u16::try_from(cpu.0).unwrap_or(u16::MAX)
}

/// A [`Wake`] without its time, which is that of the change.
#[derive(Debug, Clone, Copy)]
struct StoredWake {
    waker: Tid,
    cpu: u16,
    context: WakeContext,
    is_new: bool,
}

/// Marks further before a wait than this many say nothing about it.
pub(super) const MARKS_BEFORE: usize = 32;
/// How many changes of a thread stay behind the kept time: it is woken, and runs.
const FOLLOWING_CHANGES: usize = 3;
/// How many of the last changes of a thread stay: the next event may be about one of them.
const LAST_CHANGES: usize = 4;
/// So many are forgotten together.
const MANY: usize = 64;

/// The number of nothing, in [`StateChange`].
const NONE: u32 = u32::MAX;

/// The reason of an uninterruptible wait, by `sched_blocked_reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockedReason {
    /// The function of the kernel that waited.
    pub function: NameId,
    pub is_io: bool,
}

/// Something that a thread did, which tells for what it waits afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkKind {
    /// A system call begins. The number is the low half of its first argument (the address of a futex, a file
    /// descriptor); 0 where it is not recorded.
    SyscallEnter(Syscall, u32),
    SyscallExit,
    /// A call through binder begins, for which the thread waits.
    BinderCall,
    /// A page of this file is brought in.
    FilePage(NameId),
    PageFault,
}

/// A system call, by what it may wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syscall {
    Futex,
    Sleep,
    Poll,
    /// Reads from a file, a pipe or a socket, or writes to it.
    Transfer,
    /// Waits until a file is on its device.
    Sync,
    /// Waits for a child.
    Child,
    Ioctl,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub ts: Timestamp,
    pub kind: MarkKind,
}

/// The states, slices, calls and marks of one thread.
#[derive(Debug, Default)]
pub(super) struct ThreadHistory {
    pub changes: Vec<StateChange>,
    wakes: Vec<StoredWake>,
    /// A wake-up of the running thread: it counts if the thread was about to wait.
    early_wake: Option<Wake>,
    /// The thread last woke another one, wrote a marker or began an operation at this time.
    last_action: Option<Timestamp>,
    pub slices: Slices,
    /// Slices of other tracks, and of the main thread those of its process.
    pub other_slices: Vec<Slice>,
    pub calls: Slices,
    /// The samples of the running thread, in order of time: when, and the stack.
    pub samples: Vec<(Timestamp, SampledStackId)>,
    /// The same where the thread stopped running: when, and the function that ran.
    pub off_cpu_samples: Vec<(Timestamp, NameId)>,
    /// The least that each begin and end of a call took because it was recorded, ns.
    pub call_edge_ns: u64,
    /// When the kernel looked for free memory on behalf of the thread.
    pub reclaims: Slices,
    pub marks: Vec<Mark>,
    /// The changes and marks that stay, from the begin on.
    kept: KeptCounts,
}

/// How many changes, wake-ups and marks of a thread stay, from the begin on.
#[derive(Debug, Default, Clone, Copy)]
struct KeptCounts {
    changes: usize,
    wakes: usize,
    marks: usize,
}

/// A sample that was taken when a thread stopped running lies so near to the switch, ns.
const SWITCH_NS: u64 = 50_000;

impl ThreadHistory {
    /// Calls `with` for the parts of `from..to`, in which the thread ran: each sample stands for the time
    /// that is nearer to it than to other samples. Without samples there is one part, with none.
    pub fn sampled_parts(
        &self,
        from: Timestamp,
        to: Timestamp,
        mut with: impl FnMut(Timestamp, Timestamp, Option<SampledStackId>),
    ) {
        let first = self.samples.partition_point(|(ts, _)| *ts < from);
        let samples = &self.samples[first..];
        let samples = &samples[..samples.partition_point(|(ts, _)| *ts < to)];
        let mut at = from;
        for (number, (ts, stack)) in samples.iter().enumerate() {
            let end = samples.get(number + 1).map_or(to, |(next, _)| ts.midpoint(*next));
            with(at, end, Some(*stack));
            at = end;
        }
        if samples.is_empty() {
            with(from, to, None);
        }
    }

    /// The function in which the thread stopped running at `since`, by a sample.
    pub fn stopped_in(&self, since: Timestamp) -> Option<NameId> {
        let near = self.off_cpu_samples.partition_point(|(ts, _)| ts.saturating_add(SWITCH_NS) < since);
        let found = self.off_cpu_samples.get(near).filter(|(ts, _)| *ts <= since.saturating_add(SWITCH_NS));
        found.map(|(_, name)| *name)
    }

    /// All that is there now stays, and the next changes, which tell how the last wait ended.
    pub fn keep(&mut self) {
        self.kept =
            KeptCounts { changes: self.changes.len(), wakes: self.wakes.len(), marks: self.marks.len() };
    }

    /// Forgets the changes and marks between those that stay and the last ones, where they are many.
    pub fn forget_old(&mut self) {
        let changes = self.kept.changes + FOLLOWING_CHANGES..self.changes.len().saturating_sub(LAST_CHANGES);
        if changes.len() >= MANY {
            self.changes.drain(changes);
            self.forget_wakes();
        }
        let marks = self.kept.marks..self.marks.len().saturating_sub(MARKS_BEFORE);
        if marks.len() >= MANY {
            self.marks.drain(marks);
        }
    }

    /// Forgets the wake-ups to which no change is linked any more.
    fn forget_wakes(&mut self) {
        let mut wakes = self.wakes.split_off(self.kept.wakes);
        for change in &mut self.changes[self.kept.changes..] {
            if change.state == SchedState::Runnable
                && let Some(at) = (change.link as usize).checked_sub(self.kept.wakes)
                && let Some(wake) = wakes.get_mut(at)
            {
                change.link = self.wakes.len() as u32;
                self.wakes.push(*wake);
            }
        }
    }

    /// The thread gets `cpu`.
    pub fn runs(&mut self, ts: Timestamp, cpu: Cpu) {
        self.early_wake = None;
        self.changes.push(StateChange::new(ts, SchedState::Running, cpu));
    }

    /// The thread leaves `cpu`. Where that is the first event of it, it has run until now.
    pub fn leaves(&mut self, ts: Timestamp, cpu: Cpu, state: SchedState, first_ts: Timestamp) {
        if self.changes.is_empty() && ts > first_ts {
            self.runs(first_ts, cpu);
        }
        let ran_from = self.changes.last().filter(|last| last.state == SchedState::Running);
        let after_action = ran_from.is_none_or(|ran| self.last_action.is_some_and(|ts| ts >= ran.since));
        self.changes.push(StateChange { after_action, ..StateChange::new(ts, state, cpu) });
    }

    /// The running thread wakes another one, writes a marker, or begins an operation.
    pub fn acts(&mut self, ts: Timestamp) {
        self.last_action = Some(ts);
    }

    /// From `ts` on nothing tells what the thread does, up to its next change.
    pub fn becomes_unknown(&mut self, ts: Timestamp) {
        let cpu = self.changes.last().map_or(Cpu(0), StateChange::cpu);
        self.changes.push(StateChange::new(ts, SchedState::Unknown, cpu));
    }

    /// The thread, which had `cpu` at `ts`, may have left it any time after: nothing tells what it does, up
    /// to its next change.
    pub fn is_unknown_on(&mut self, cpu: Cpu, ts: Timestamp) {
        let Some(at) = self.change_at(ts) else { return };
        let before = self.changes[at];
        if before.state == SchedState::Running && before.cpu() == cpu {
            self.changes.insert(at + 1, StateChange::new(ts, SchedState::Unknown, cpu));
            if self.kept.changes > at + 1 {
                self.kept.changes += 1;
            }
        }
    }

    /// The thread is woken. `is_late` tells that the event may come from where the thread will run, and not
    /// from its waker: `sched_wakeup`.
    pub fn wakes(&mut self, wake: Wake, is_late: bool) {
        let last = self.changes.last().map(|change| (change.state, change.since, change.cpu()));
        let cpu = last.map_or(Cpu(0), |(_, _, cpu)| cpu);
        let wake = match last {
            Some((SchedState::Running, _, _)) => {
                self.early_wake = Some(wake);
                return;
            }
            Some((state, _, _)) if state.is_ready() => return,
            Some((_, since, _)) if is_late => {
                let early = self.early_wake.take().filter(|early| early.ts <= since);
                early.map_or(wake, |early| Wake { ts: wake.ts, ..early })
            }
            _ => wake,
        };
        let link = self.wakes.len() as u32;
        self.wakes.push(StoredWake {
            waker: wake.waker,
            cpu: short(wake.cpu),
            context: wake.context,
            is_new: wake.is_new,
        });
        self.changes.push(StateChange { link, ..StateChange::new(wake.ts, SchedState::Runnable, cpu) });
    }

    /// The thread's last uninterruptible wait had this reason.
    pub fn was_blocked(&mut self, reason: u32) {
        let recent = self.changes.iter_mut().rev().take(3);
        if let Some(wait) = recent.into_iter().find(|change| change.state == SchedState::Uninterruptible) {
            wait.link = reason;
        }
    }

    /// The wake-up with which a state began.
    pub fn wake(&self, change: &StateChange) -> Option<Wake> {
        let stored = self.wakes.get(change.link as usize).filter(|_| change.state == SchedState::Runnable)?;
        let StoredWake { waker, cpu, context, is_new } = *stored;
        Some(Wake { ts: change.since, waker, cpu: Cpu(cpu.into()), context, is_new })
    }

    /// The number of the change that holds at `ts`.
    pub fn change_at(&self, ts: Timestamp) -> Option<usize> {
        self.changes.partition_point(|change| change.since <= ts).checked_sub(1)
    }

    /// The marks of the thread that are before `ts`, the latest first.
    pub fn marks_before(&self, ts: Timestamp) -> impl Iterator<Item = &Mark> {
        let end = self.marks.partition_point(|mark| mark.ts <= ts);
        self.marks[..end].iter().rev()
    }

    /// The marks from `from` to `to`.
    pub fn marks_within(&self, from: Timestamp, to: Timestamp) -> &[Mark] {
        let begin = self.marks.partition_point(|mark| mark.ts < from);
        let end = self.marks.partition_point(|mark| mark.ts <= to);
        &self.marks[begin..end.max(begin)]
    }
}

/// A timeline, ready for questions.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(super) names: Names,
    pub(super) threads: FxHashMap<Tid, ThreadHistory>,
    pub(super) cpus: BTreeMap<Cpu, CpuHistory>,
    pub(super) reasons: Vec<BlockedReason>,
    /// The stacks of samples.
    pub(super) stacks: SampledStacks,
    /// The source file of each method whose trace states it, and the line in it.
    pub(super) method_files: FxHashMap<NameId, (NameId, Option<u32>)>,
    /// The app's packages that the user has named.
    pub(crate) app_packages: Vec<String>,
    pub(super) speeds: CpuSpeeds,
    /// How often a switch took another thread from a CPU than the last one had brought there. Switches from
    /// an idle CPU that are missing the reader of the recording counts.
    pub(super) unlike_switches: u64,
    /// Where events of a CPU are missing; in order, without overlaps.
    pub(super) losses: Vec<(Timestamp, Timestamp)>,
    pub(super) tasks: Tasks,
    /// Facts about the recording machine that no event tells.
    pub(super) facts: Option<Arc<MachineFacts>>,
    pub(super) quotas: Quotas,
    /// The CPUs that a thread may use, where these are not all.
    pub(super) affinities: FxHashMap<Tid, Vec<Cpu>>,
    /// Whether interrupts were recorded.
    pub(super) has_interrupts: bool,
    /// Whether the ends of system calls were recorded.
    pub(super) has_call_ends: bool,
    /// When requests to block devices were open.
    pub(super) block_requests: BlockRequests,
    /// The times of the first and of the last event.
    pub(crate) extent: (Timestamp, Timestamp),
    pub(crate) measured: Measured,
}

/// Whether a thread of this name records traces for another program than tracebridge.
fn is_other_tracer(name: &str) -> bool {
    matches!(name, "traced" | "traced_probes" | "atrace" | "trace-cmd" | "perfetto")
}

impl Model {
    pub(super) fn reason(&self, change: &StateChange) -> Option<BlockedReason> {
        let reason = self.reasons.get(change.link as usize).copied();
        reason.filter(|_| change.state == SchedState::Uninterruptible)
    }

    /// Finds when groups with a quota of CPU time had used it up.
    pub(super) fn find_throttled(&mut self) {
        if self.quotas.is_empty() {
            return;
        }
        let mut times = Vec::new();
        for (tid, thread) in &self.threads {
            for pair in thread.changes.windows(2) {
                let [change, next] = pair else { continue };
                if change.state.is_ready() && change.since < next.since {
                    let is_running = change.state == SchedState::Running;
                    times.push(ReadyTime { tid: *tid, span: (change.since, next.since), is_running });
                }
            }
        }
        let tasks = &self.tasks;
        self.quotas.find_barred(&times, |tid| tasks.threads.tgid(tid));
    }

    /// Whether a thread records the trace: by the recorder's process, where the capture tells it, else by
    /// name.
    pub(super) fn is_recorder(&self, tid: Tid) -> bool {
        let name = self.tasks.thread_name(tid);
        let recorder = self.facts.as_ref().and_then(|facts| facts.recorder);
        // A recorder in a container knows another number of itself than the kernel.
        match recorder.filter(|pid| self.tasks.threads.get(pid.main_thread()).is_some()) {
            Some(recorder) => {
                self.tasks.threads.tgid(tid) == Some(recorder)
                    || tid == recorder.main_thread()
                    || is_other_tracer(&name)
            }
            None => name == "tracebridge" || is_other_tracer(&name),
        }
    }

    /// The time that recording takes; 0 where it was not measured.
    pub(super) fn costs(&self) -> EventCost {
        self.facts.as_ref().and_then(|facts| facts.event_cost).unwrap_or_default()
    }

    /// Sentences about events that the timeline lacks, and the categories that record them.
    pub(crate) fn missing(&self) -> Vec<String> {
        if self.threads.values().all(|thread| thread.changes.is_empty()) {
            let note = "no scheduling was recorded: record the category sched to tell running from waiting";
            return vec![note.to_owned()];
        }
        let mut missing = Vec::new();
        if self.unlike_switches > 0 {
            let times = self.unlike_switches;
            missing.push(format!(
                "switches between threads are missing ({times} times): a thread's time from there to its next \
                 event is not recorded"
            ));
        }
        if !self.has_interrupts {
            let note = "no interrupts were recorded: record the category irq to tell timers from devices";
            missing.push(note.to_owned());
        }
        if self.cpus.values().all(|cpu| cpu.frequencies.is_empty()) {
            let note = "no CPU frequencies were recorded: record the category freq to see slow clocks";
            missing.push(note.to_owned());
        }
        missing
    }
}
