//! The lives of threads. The kernel gives the id of a thread that has ended to a later one, which has a
//! name, a process and slices of its own.

use std::io;

use super::builder::{Life, TrackBuilder};
use super::sink::TrackSink;
use crate::clock::Timestamp;
use crate::formats::{CLONE_THREAD, Event, EventType};
use crate::ftrace::task_state::TaskState;
use crate::ids::{Pid, Tid};

impl<S: TrackSink> TrackBuilder<S> {
    /// Handles a `task_newtask`.
    pub(super) fn task_begin(
        &mut self,
        event: &Event<'_>,
        kind: &EventType,
        pid: usize,
        comm: usize,
        clone_flags: usize,
    ) -> io::Result<()> {
        let tid = event.tid_at(kind, pid).unwrap_or(Tid::UNKNOWN);
        if !tid.is_thread() {
            return Ok(());
        }
        let is_known = self.lives.contains_key(&tid) || self.states.contains_key(&tid);
        if is_known || self.slices.get(&tid).is_some_and(|open| !open.slices.is_empty()) {
            self.begin_life(tid, event.ts)?;
            let is_of_process = event.int(kind, clone_flags).is_some_and(|flags| flags & CLONE_THREAD != 0);
            let tgid = if is_of_process { self.tasks.task(event.tid).tgid } else { Some(Pid(tid.0)) };
            self.tasks.threads.learn(tid, tgid, event.text(kind, comm));
        }
        self.lives.insert(tid, Life::Begun);
        Ok(())
    }

    /// Handles a `sched_process_exit` or a `sched_process_free`.
    pub(super) fn task_end(
        &mut self,
        event: &Event<'_>,
        kind: &EventType,
        pid: usize,
        is_freed: bool,
    ) -> io::Result<()> {
        let tid = event.tid_at(kind, pid).unwrap_or(Tid::UNKNOWN);
        // An id may be given away before the thread that had it is freed.
        if !tid.is_thread() || (is_freed && self.lives.get(&tid) == Some(&Life::Begun)) {
            return Ok(());
        }
        self.lives.insert(tid, if is_freed { Life::Freed } else { Life::Exited });
        if is_freed {
            self.end_states(tid, event.ts)?;
        }
        // A thread that has exited writes nothing more.
        let open = self.slices.remove(&tid).unwrap_or_default();
        self.end_slices(tid, open, event.ts)
    }

    /// Begins a new life of the id of a thread that has ended: a dead thread neither runs nor wakes.
    pub(super) fn begin_life_if_dead(&mut self, tid: Tid, ts: Timestamp) -> io::Result<()> {
        let is_freed = !self.lives.is_empty() && self.lives.get(&tid) == Some(&Life::Freed);
        if is_freed { self.begin_life(tid, ts) } else { Ok(()) }
    }

    /// The same of a thread that gets a CPU or is woken, and left its CPU for the last time before.
    pub(super) fn begin_life_if_left(&mut self, tid: Tid, ts: Timestamp) -> io::Result<()> {
        match self.states.get(&tid) {
            Some(open) if open.state == TaskState::Dead => self.begin_life(tid, ts),
            _ => self.begin_life_if_dead(tid, ts),
        }
    }

    fn begin_life(&mut self, tid: Tid, ts: Timestamp) -> io::Result<()> {
        let open = self.slices.remove(&tid).unwrap_or_default();
        self.end_slices(tid, open, ts)?;
        self.end_states(tid, ts)?;
        self.lives.remove(&tid);
        self.sink.thread_ended(&self.tasks, self.tasks.task(tid))?;
        self.tasks.forget(tid);
        Ok(())
    }

    fn end_states(&mut self, tid: Tid, ts: Timestamp) -> io::Result<()> {
        let at = self.tasks.task(tid);
        let states = self.states.remove(&tid).map(|open| open.until(ts)).unwrap_or_default();
        states.iter().try_for_each(|state| self.sink.state(&self.tasks, at, state))
    }
}
