//! Which thread has each CPU, and the state of each thread.

use std::collections::BTreeMap;
use std::io;

use super::{RunningTask, Span, TrackBuilder, TrackSink};
use crate::formats::{Event, EventType};
use crate::ftrace::task_state;

const RUNNING: &str = "Running";
const RUNNABLE: &str = "Runnable";
const PREEMPTED: &str = "Runnable (Preempted)";
const DEAD: &str = "Dead";

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
        let (ts, cpu) = (event.ts, event.cpu);
        let tid = |at| event.int(kind, at).unwrap_or(-1) as i32;
        let (left, entered) = (tid(prev[1]), tid(next[1]));
        for (tid, comm) in [(left, prev[0]), (entered, next[0])] {
            if tid > 0 {
                self.tasks.threads.learn(tid, None, event.text(kind, comm));
            }
        }
        let prio = event.int(kind, next[2]).unwrap_or(0);
        if let Some(task) = self.cpus.insert(cpu, RunningTask { tid: entered, since: ts, prio }) {
            self.end_on_cpu(cpu, &task, Span { start: task.since, end: ts, open: false })?;
        }
        let state = task_state::words(event.int(kind, prev[2]).unwrap_or(0) as u64);
        self.change_state(left, state, ts)?;
        self.change_state(entered, RUNNING, ts)
    }

    /// Passes the time that a thread had a CPU on to the sink.
    fn end_on_cpu(&mut self, cpu: u32, task: &RunningTask, span: Span) -> io::Result<()> {
        if task.tid <= 0 {
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
        let tid = event.int(kind, pid).unwrap_or(-1) as i32;
        self.tasks.threads.learn(tid, None, event.text(kind, comm));
        match self.states.get(&tid) {
            Some((RUNNING | RUNNABLE | PREEMPTED, _)) => Ok(()),
            _ => self.change_state(tid, RUNNABLE, event.ts),
        }
    }

    /// Ends the thread's state and begins the next one.
    fn change_state(&mut self, tid: i32, state: &'static str, ts: u64) -> io::Result<()> {
        if tid <= 0 {
            return Ok(());
        }
        if let Some((was, start)) = self.states.insert(tid, (state, ts))
            && ts > start
        {
            let at = self.tasks.task(tid);
            self.sink.state(&self.tasks, at, was, Span { start, end: ts, open: false })?;
        }
        Ok(())
    }

    /// Ends at `end` the times on a CPU and the thread states that no event ended.
    pub(super) fn close_thread_states(&mut self, end: u64) -> io::Result<()> {
        for (cpu, task) in std::mem::take(&mut self.cpus) {
            self.end_on_cpu(cpu, &task, Span { start: task.since, end, open: true })?;
        }
        // In the order of thread ids, so that the same input always gives the same output.
        let states: BTreeMap<i32, _> = std::mem::take(&mut self.states).into_iter().collect();
        for (tid, (state, start)) in states {
            if end > start && state != DEAD {
                self.sink.state(&self.tasks, self.tasks.task(tid), state, Span { start, end, open: true })?;
            }
        }
        Ok(())
    }
}
