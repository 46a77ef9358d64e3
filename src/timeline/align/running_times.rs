//! When each sampled thread had a CPU, by the context switches of all recordings: with these times the place
//! of samples is found and checked.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::clock::Timestamp;
use crate::formats::{Event, EventType};
use crate::ids::{Cpu, Tid};

/// The limit on the stretches that are kept over all recordings, 24 bytes each: 96 MiB.
const MAX_STRETCHES: usize = 4 << 20;

/// A stretch of time in which a thread had a CPU, in the timeline's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuStretch {
    /// Its begin: the switch to the thread, or the first event of the CPU.
    pub from: Timestamp,
    /// Its end: the switch to another thread, or the last event of the CPU.
    pub to: Timestamp,
    /// The CPU.
    pub cpu: Cpu,
}

/// The thread that has a CPU.
#[derive(Debug, Clone, Copy)]
enum Occupant {
    /// The thread to which the last switch went, at this time.
    Known(Tid, Timestamp),
    /// No switch has told it since this time: the next one does.
    Unknown(Timestamp),
}

/// The times of the sampled threads on CPUs, by the switches of all recordings.
#[derive(Debug, Default)]
pub struct RunningTimes {
    /// The threads that were sampled.
    wanted: FxHashSet<Tid>,
    /// By event type: the indices of `prev_pid` and `next_pid`, if it is `sched_switch`.
    event_types: Vec<Option<[usize; 2]>>,
    /// By CPU of the recording that is read: who has it, and the time of its last event.
    cpus: BTreeMap<Cpu, (Occupant, Timestamp)>,
    /// By thread, in order of time after [`RunningTimes::finish`].
    stretches: FxHashMap<Tid, Vec<CpuStretch>>,
    count: usize,
    /// The first and the last event of all recordings, in the timeline's clock.
    extent: Option<(Timestamp, Timestamp)>,
}

impl RunningTimes {
    /// No times yet, of these threads.
    pub fn of_threads(wanted: impl Iterator<Item = Tid>) -> RunningTimes {
        RunningTimes { wanted: wanted.filter(|tid| tid.is_thread()).collect(), ..RunningTimes::default() }
    }

    /// Starts another recording: its event types are numbered anew.
    pub fn begin_recording(&mut self) {
        self.end_recording();
        self.event_types.clear();
    }

    /// Adds the next event type of the recording.
    pub fn add_event_type(&mut self, kind: &EventType) {
        let fields = kind.field("prev_pid").zip(kind.field("next_pid"));
        let is_switch = kind.name == "sched_switch";
        self.event_types.push(fields.filter(|_| is_switch).map(|(prev, next)| [prev, next]));
    }

    /// Adds an event, whose time is in the timeline's clock.
    pub fn add_event(&mut self, event: &Event<'_>, kind: &EventType) {
        let (first, last) = self.extent.unwrap_or((event.ts, event.ts));
        self.extent = Some((first.min(event.ts), last.max(event.ts)));
        let (occupant, last) = self.cpus.entry(event.cpu).or_insert((Occupant::Unknown(event.ts), event.ts));
        *last = event.ts;
        let Some(Some([prev, next])) = self.event_types.get(event.kind.0 as usize) else { return };
        let [Some(prev), Some(next)] = [prev, next].map(|field| event.tid_at(kind, *field)) else { return };
        let before = std::mem::replace(occupant, Occupant::Known(next, event.ts));
        match before {
            Occupant::Known(tid, since) if tid == prev => self.add(tid, since, event.ts, event.cpu),
            Occupant::Unknown(since) => self.add(prev, since, event.ts, event.cpu),
            // A switch between the two is missing.
            Occupant::Known(..) => {}
        }
    }

    /// Events of a CPU are missing before its next one.
    pub fn add_loss(&mut self, cpu: Cpu) {
        self.cpus.remove(&cpu);
    }

    fn add(&mut self, tid: Tid, from: Timestamp, to: Timestamp, cpu: Cpu) {
        if from < to && self.wanted.contains(&tid) && self.count < MAX_STRETCHES {
            self.count += 1;
            self.stretches.entry(tid).or_default().push(CpuStretch { from, to, cpu });
        }
    }

    fn end_recording(&mut self) {
        for (cpu, (occupant, last)) in std::mem::take(&mut self.cpus) {
            if let Occupant::Known(tid, since) = occupant {
                self.add(tid, since, last, cpu);
            }
        }
    }

    /// Sorts the stretches. Called once, after the last event.
    pub fn finish(&mut self) {
        self.end_recording();
        for stretches in self.stretches.values_mut() {
            stretches.sort_unstable_by_key(|stretch| stretch.from);
        }
    }

    /// The first and the last event of all recordings, in the timeline's clock; `None` without events.
    pub fn extent(&self) -> Option<(Timestamp, Timestamp)> {
        self.extent
    }

    /// The stretches of a thread in order of time.
    pub fn of(&self, tid: Tid) -> &[CpuStretch] {
        self.stretches.get(&tid).map_or(&[], |stretches| stretches)
    }

    /// How far the time `ts` is from the nearest stretch in which the thread had the CPU, ns: 0 inside of
    /// one. `None` where no stretch of the thread is known.
    pub fn distance(&self, tid: Tid, cpu: Option<Cpu>, ts: Timestamp) -> Option<u64> {
        let distance = |stretch: &CpuStretch| stretch.from.since(ts).max(ts.since(stretch.to));
        self.near(tid, cpu, ts).map(distance).min()
    }

    /// How far the time `ts` is from the nearest end of a stretch of the thread, ns.
    pub fn distance_to_end(&self, tid: Tid, cpu: Option<Cpu>, ts: Timestamp) -> Option<u64> {
        self.near(tid, cpu, ts).map(|stretch| stretch.to.abs_diff(ts)).min()
    }

    /// The stretches around `ts`, on this CPU where it is known: at most two on each side.
    fn near(&self, tid: Tid, cpu: Option<Cpu>, ts: Timestamp) -> impl Iterator<Item = &CpuStretch> {
        let stretches = self.of(tid);
        let is_there = move |stretch: &&CpuStretch| cpu.is_none_or(|cpu| cpu == stretch.cpu);
        let (before, after) = stretches.split_at(stretches.partition_point(|stretch| stretch.from <= ts));
        before.iter().rev().filter(is_there).take(2).chain(after.iter().filter(is_there).take(2))
    }
}

#[cfg(test)]
impl RunningTimes {
    /// These stretches of threads.
    pub fn of_stretches(stretches: &[(Tid, CpuStretch)]) -> RunningTimes {
        let mut running = RunningTimes::of_threads(stretches.iter().map(|(tid, _)| *tid));
        for (tid, CpuStretch { from, to, cpu }) in stretches {
            let (first, last) = running.extent.unwrap_or((*from, *to));
            running.extent = Some((first.min(*from), last.max(*to)));
            running.add(*tid, *from, *to, *cpu);
        }
        running.finish();
        running
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock_map::ClockMap;
    use super::*;
    use crate::formats::{Order, ftrace_text};
    use crate::timeline::recording_pass::EvidencePass;

    /// The stretches of thread 7 by a text of switches: the CPU, µs behind the first second, and the ids of
    /// the thread that loses and that gets the CPU, or -1 for another event.
    fn stretches_of_7(switches: &[(u32, u64, i32, i32)]) -> Vec<(u64, u64, u32)> {
        let mut text = "# tracer: nop\n#\n".to_owned();
        for (cpu, us, prev, next) in switches {
            text += &match prev {
                0.. => format!(
                    " a-{prev} [{cpu:03}] d..2 1.{us:06}: sched_switch: prev_comm=a prev_pid={prev} prev_prio=120 \
                     prev_state=S ==> next_comm=a next_pid={next} next_prio=120\n"
                ),
                _ => format!(" a-5 [{cpu:03}] ...1 1.{us:06}: tracing_mark_write: I|5|x\n"),
            };
        }
        let mut running = RunningTimes::of_threads([Tid(7), Tid::IDLE].into_iter());
        let map = ClockMap::default();
        let mut pass = EvidencePass { running: Some(&mut running), ..EvidencePass::new(&map) };
        ftrace_text::read(text.as_bytes(), Order::Any, &mut pass).unwrap();
        running.finish();
        let us = |ts: Timestamp| (ts.0 - 1_000_000_000) / 1_000;
        running.of(Tid(7)).iter().map(|stretch| (us(stretch.from), us(stretch.to), stretch.cpu.0)).collect()
    }

    #[test]
    fn a_thread_runs_from_the_switch_to_it_until_the_switch_to_another_one() {
        let switches = [(0, 100, 0, 7), (1, 150, 0, 9), (0, 300, 7, 0), (1, 400, 9, 7), (1, 450, 7, 0)];
        assert_eq!(stretches_of_7(&switches), [(100, 300, 0), (400, 450, 1)]);
    }

    #[test]
    fn a_thread_whose_begin_or_end_is_not_recorded_ran_from_the_first_and_to_the_last_event_of_its_cpu() {
        let switches = [(0, 100, -1, -1), (0, 200, 7, 0), (1, 250, 0, 7), (1, 300, -1, -1), (0, 400, -1, -1)];
        assert_eq!(stretches_of_7(&switches), [(100, 200, 0), (250, 300, 1)]);
    }

    #[test]
    fn nothing_is_known_about_a_stretch_with_a_missing_switch() {
        assert_eq!(
            stretches_of_7(&[(0, 100, 0, 7), (0, 200, 8, 0), (0, 300, 0, 7), (0, 400, 7, 0)]),
            [(300, 400, 0)]
        );
    }
}
