//! Which thread has each CPU, and the state of each thread.

use std::collections::BTreeMap;
use std::io;

use super::builder::{OpenState, RunningTask, TrackBuilder};
use super::sink::{Arrow, ArrowKind, CpuSwitch, Span, ThreadState, TrackSink};
use crate::clock::Timestamp;
use crate::formats::{Event, EventType};
use crate::ftrace::task_state::TaskState;
use crate::ids::{Cpu, Tid};

impl<S: TrackSink> TrackBuilder<S> {
    /// Handles a `sched_switch`: `prev` are the fields comm, pid and state, `next` the fields comm, pid and
    /// priority.
    pub(super) fn switch(
        &mut self,
        event: &Event<'_>,
        kind: &EventType,
        prev: [usize; 3],
        next: [usize; 3],
    ) -> io::Result<()> {
        let ts = event.ts;
        let cpu = event.cpu;
        let tid = |at| event.tid_at(kind, at).unwrap_or(Tid::UNKNOWN);
        let left = tid(prev[1]);
        let entered = tid(next[1]);
        self.begin_life_if_left(entered, ts)?;
        for (tid, comm) in [(left, prev[0]), (entered, next[0])] {
            if tid.is_thread() {
                self.tasks.threads.learn(tid, None, event.text(kind, comm));
            }
        }
        let left_state = event.int(kind, prev[2]).unwrap_or(0).cast_unsigned();
        let prio = event.int(kind, next[2]).unwrap_or(0);
        self.sink.switch(&CpuSwitch { ts, cpu, left, left_state, entered, entered_prio: prio });
        if !self.sink.wants_states() {
            return Ok(());
        }
        if let Some(task) = self.cpus.insert(cpu, RunningTask { tid: entered, since: ts, prio }) {
            self.end_on_cpu(cpu, &task, Span { start: task.since, end: ts, open: false })?;
        }
        self.sink.run_begin(entered, ts);
        self.change_state(left, TaskState::of_leaving(left_state), ts, None, None)?;
        self.change_state(entered, TaskState::Running, ts, Some(cpu), None)
    }

    /// Passes the time that a thread had a CPU on to the sink.
    fn end_on_cpu(&mut self, cpu: Cpu, task: &RunningTask, span: Span) -> io::Result<()> {
        if !task.tid.is_thread() {
            return Ok(());
        }
        self.sink.on_cpu(&self.tasks, cpu, self.tasks.task(task.tid), span, task.prio)
    }

    /// Handles a wakeup. A thread that is runnable already stays so.
    pub(super) fn wake(
        &mut self,
        event: &Event<'_>,
        kind: &EventType,
        pid: usize,
        comm: usize,
    ) -> io::Result<()> {
        let tid = event.tid_at(kind, pid).unwrap_or(Tid::UNKNOWN);
        self.begin_life_if_left(tid, event.ts)?;
        self.tasks.threads.learn(tid, None, event.text(kind, comm));
        self.sink.wake(event, kind, tid);
        if !self.sink.wants_states() {
            return Ok(());
        }
        let is_runnable = |open: &OpenState| {
            matches!(open.state, TaskState::Running | TaskState::Runnable | TaskState::Preempted)
        };
        if !tid.is_thread() || self.states.get(&tid).is_some_and(is_runnable) {
            return Ok(());
        }
        let ts = event.ts;
        let waker = event.tid;
        self.sink.arrow(&Arrow { kind: ArrowKind::Wakeup, from: (ts, waker), to: (ts, tid) })?;
        self.change_state(tid, TaskState::Runnable, ts, None, Some(waker))
    }

    /// Handles a `sched_blocked_reason`, which says of what kind the thread's last sleep was.
    pub(super) fn blocked_reason(&mut self, event: &Event<'_>, kind: &EventType, pid: usize, io_wait: usize) {
        let tid = event.tid_at(kind, pid).unwrap_or(Tid::UNKNOWN);
        if event.int(kind, io_wait) != Some(1) {
            return;
        }
        let Some(open) = self.states.get_mut(&tid) else { return };
        match &mut open.sleep_before {
            Some(sleep) => sleep.state = TaskState::IoWait,
            None if open.state == TaskState::Uninterruptible => open.state = TaskState::IoWait,
            None => {}
        }
    }

    /// Ends the thread's state and begins the next one, on `cpu` where the thread runs. `waker` is the thread
    /// that ended the state by a wake-up.
    fn change_state(
        &mut self,
        tid: Tid,
        state: TaskState,
        ts: Timestamp,
        cpu: Option<Cpu>,
        waker: Option<Tid>,
    ) -> io::Result<()> {
        if !tid.is_thread() {
            return Ok(());
        }
        let next = OpenState { state, since: ts, cpu, sleep_before: None };
        let Some(was) = self.states.insert(tid, next) else { return Ok(()) };
        let at = self.tasks.task(tid);
        if let Some(sleep) = was.sleep_before {
            self.sink.state(&self.tasks, at, &sleep)?;
        }
        let span = Span { start: was.since, end: ts, open: false };
        let ended = ThreadState { state: was.state, span, cpu: was.cpu, waker };
        if ts <= was.since {
            return Ok(());
        }
        if was.state == TaskState::Uninterruptible {
            if let Some(next) = self.states.get_mut(&tid) {
                next.sleep_before = Some(ended);
            }
            return Ok(());
        }
        self.sink.state(&self.tasks, at, &ended)
    }

    /// Ends at `end` the times on a CPU and the thread states that no event ended.
    pub(super) fn close_thread_states(&mut self, end: Timestamp) -> io::Result<()> {
        for (cpu, task) in std::mem::take(&mut self.cpus) {
            self.end_on_cpu(cpu, &task, Span { start: task.since, end, open: true })?;
        }
        // In the order of thread ids, so that the same input always gives the same output.
        let states: BTreeMap<Tid, _> = std::mem::take(&mut self.states).into_iter().collect();
        for (tid, open) in states {
            let at = self.tasks.task(tid);
            open.until(end).iter().try_for_each(|state| self.sink.state(&self.tasks, at, state))?;
        }
        Ok(())
    }
}
