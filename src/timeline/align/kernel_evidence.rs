//! Evidence from recordings, with which method traces are compared: the threads' names, their times on a
//! CPU, and their markers.

use std::collections::{HashMap, HashSet};

use rustc_hash::FxHashMap;

use crate::clock::Timestamp;
use crate::formats::{Event, EventType, ThreadInfo};
use crate::ids::{Cpu, Pid, Tid};
use crate::markers::Marker;

/// The limit on the switches and markers that are kept over all recordings, 16 bytes each: 128 MiB.
const MAX_ENTRIES: usize = 8 << 20;
/// Stands for the name of a marker that has none, or of an end without its begin.
pub const UNKNOWN_NAME: u32 = u32::MAX;

/// Evidence from all recordings together, with which method traces are compared.
#[derive(Default)]
pub struct KernelEvidence {
    /// The kernel's threads by their id.
    pub threads: FxHashMap<Tid, ThreadActivity>,
    /// The number that stands for each marker name.
    pub names: HashMap<Vec<u8>, u32>,
    /// Stretches in which ART suspended all threads to begin a trace: begin and end, in the timeline's
    /// clock.
    pub art_starts: Vec<(Timestamp, Timestamp)>,
    /// Time of the earliest event, in the timeline's clock.
    pub first: Timestamp,
    /// Time of the latest event, in the timeline's clock.
    pub last: Timestamp,
    entries: usize,
    event_types: Vec<EvidenceType>,
    /// The processes whose threads' times on a CPU are kept; `None` keeps those of all.
    processes: Option<Vec<Pid>>,
}

/// The names, markers and times on a CPU of one kernel thread.
#[derive(Default)]
pub struct ThreadActivity {
    /// Every name that the thread had, at most 16.
    pub comms: Vec<Vec<u8>>,
    /// The thread's process, taken from the recording's thread list, its events, or the thread's own
    /// markers.
    pub tgid: Option<Pid>,
    /// Time of the thread's earliest event, in the timeline's clock.
    pub first: Timestamp,
    /// Time of the thread's latest event, in the timeline's clock.
    pub last: Timestamp,
    /// Begins and ends of the thread's slices.
    pub marks: Vec<SliceEdge>,
    /// Switches onto (`true`) and off a CPU, until [`ThreadActivity::finish`].
    switches: Vec<(Timestamp, Cpu, bool)>,
    /// Stretches on a CPU: begin, end, and how long all stretches before it are together, ns.
    on_cpu: Vec<(Timestamp, Timestamp, u64)>,
    /// Stretches in which the thread came onto a CPU or left it at an unknown time, because the switch is
    /// not recorded. Some kernels leave out switches of an idle CPU.
    unknown: Vec<(Timestamp, Timestamp)>,
}

/// The begin or the end of a slice.
#[derive(Debug, Clone, Copy)]
pub struct SliceEdge {
    /// Time of the begin or end, in the timeline's clock.
    pub ts: Timestamp,
    /// The number of the slice's name ([`KernelEvidence::names`]), or [`UNKNOWN_NAME`].
    pub name: u32,
    /// Whether the slice begins.
    pub begin: bool,
}

enum EvidenceType {
    /// `sched_switch`, with the indices of the fields `prev_comm prev_pid next_comm next_pid`.
    Switch([usize; 4]),
    /// A marker, with the index of the field that holds its text.
    Print(usize),
    Other,
}

impl KernelEvidence {
    /// Evidence for traces of these processes. Of a thread that is known to belong to another process the
    /// times on a CPU are not kept: they are most of a recording. `None` is the process of a trace that
    /// does not tell it, which may be any.
    pub fn of_processes(traced: &[Option<Pid>]) -> KernelEvidence {
        KernelEvidence { processes: traced.iter().copied().collect(), ..KernelEvidence::default() }
    }

    /// Whether the thread is known to belong to a process that no trace is of.
    fn is_of_another_process(&self, tid: Tid) -> bool {
        let Some(processes) = &self.processes else { return false };
        let tgid = self.threads.get(&tid).and_then(|activity| activity.tgid);
        tgid.is_some_and(|tgid| !processes.contains(&tgid))
    }

    fn activity(&mut self, tid: Tid, ts: Timestamp) -> &mut ThreadActivity {
        let activity = self.threads.entry(tid).or_insert_with(|| ThreadActivity {
            first: ts,
            last: ts,
            ..ThreadActivity::default()
        });
        activity.first = activity.first.min(ts);
        activity.last = activity.last.max(ts);
        activity
    }

    fn add_switch(&mut self, event: &Event<'_>, kind: &EventType, fields: [usize; 4]) {
        for (comm, pid, on) in [(fields[0], fields[1], false), (fields[2], fields[3], true)] {
            let Some(tid) = event.tid_at(kind, pid).filter(|tid| *tid != Tid::IDLE) else { continue };
            if self.is_of_another_process(tid) {
                continue;
            }
            let room = self.entries < MAX_ENTRIES;
            self.entries += 1;
            let activity = self.activity(tid, event.ts);
            if room {
                activity.switches.push((event.ts, event.cpu, on));
            }
            if let Some(name) = event.text(kind, comm) {
                activity.add_comm(name);
            }
        }
    }

    fn add_marker(&mut self, event: &Event<'_>, text: &[u8]) {
        let Some(marker) = Marker::parse(text) else { return };
        let pid = marker.pid().filter(|pid| *pid > 0).map(Pid);
        let (name, begin) = match marker {
            Marker::Begin { name, .. } => {
                let next = self.names.len() as u32;
                let number = match self.names.get(name) {
                    Some(number) => *number,
                    None => *self.names.entry(name.to_vec()).or_insert(next),
                };
                (number, true)
            }
            Marker::End { .. } => (UNKNOWN_NAME, false),
            _ => return,
        };
        let room = self.entries < MAX_ENTRIES;
        self.entries += 1;
        let activity = self.activity(event.tid, event.ts);
        activity.tgid = activity.tgid.or(pid);
        if room {
            activity.marks.push(SliceEdge { ts: event.ts, name, begin });
        }
    }

    /// Starts another recording: its event types are numbered anew.
    pub fn begin_recording(&mut self) {
        self.event_types.clear();
    }

    /// Adds the next event type of the recording.
    pub fn add_event_type(&mut self, event_type: &EventType) {
        let fields = ["prev_comm", "prev_pid", "next_comm", "next_pid"].map(|name| event_type.field(name));
        self.event_types.push(match (event_type.name.as_str(), fields, event_type.field("buf")) {
            ("sched_switch", [Some(a), Some(b), Some(c), Some(d)], _) => EvidenceType::Switch([a, b, c, d]),
            ("print", _, Some(buf)) => EvidenceType::Print(buf),
            _ => EvidenceType::Other,
        });
    }

    /// Adds the name and the process of a thread from the recording's thread list.
    pub fn add_thread(&mut self, thread: &ThreadInfo<'_>) {
        // A thread that is only listed has no events yet: `first` is the last moment of all until one
        // comes.
        let listed = || ThreadActivity { first: Timestamp::MAX, ..ThreadActivity::default() };
        let activity = self.threads.entry(thread.tid).or_insert_with(listed);
        activity.tgid = thread.tgid.or(activity.tgid);
        if let Some(name) = thread.name {
            activity.add_comm(name);
        }
    }

    /// Adds an event, whose time is in the timeline's clock; the event's type is still numbered as in its
    /// recording.
    pub fn add_event(&mut self, event: &Event<'_>, event_type: &EventType) {
        if self.last == Timestamp::MIN {
            self.first = event.ts;
        }
        self.first = self.first.min(event.ts);
        self.last = self.last.max(event.ts);
        if event.comm.is_some() || event.tgid.is_some() {
            let activity = self.activity(event.tid, event.ts);
            activity.tgid = event.tgid.or(activity.tgid);
            if let Some(name) = event.comm {
                activity.add_comm(name);
            }
        }
        match self.event_types.get(event.kind.0 as usize) {
            Some(EvidenceType::Switch(fields)) => {
                let fields = *fields;
                self.add_switch(event, event_type, fields);
            }
            Some(EvidenceType::Print(buf)) => {
                if let Some(text) = event.text(event_type, *buf) {
                    self.add_marker(event, text);
                }
            }
            _ => {}
        }
    }

    /// Sorts the markers, names each slice's end, sums the times on a CPU, and finds `art_starts`. Called
    /// once, after the last event.
    pub fn finish(&mut self) {
        let start =
            self.names.iter().filter(|(name, _)| name.starts_with(b"Mutator threads suspended for Start"));
        let starts: HashSet<u32> = start.map(|(_, number)| *number).collect();
        for activity in self.threads.values_mut() {
            activity.finish(self.first, self.last);
            let mut open = None;
            for mark in activity.marks.iter().filter(|m| starts.contains(&m.name)) {
                match (mark.begin, open.take()) {
                    (true, _) => open = Some(mark.ts),
                    (false, Some(begin)) => self.art_starts.push((begin, mark.ts)),
                    (false, None) => {}
                }
            }
        }
    }
}

/// The kernel's name of the thread that takes ART's samples.
const SAMPLER_COMM: &[u8] = b"Sampling Profil";

impl KernelEvidence {
    /// The thread of this process that takes ART's samples of calls (`Debug.startMethodTracingSampling`).
    pub fn sampler(&self, pid: Option<Pid>) -> Option<&ThreadActivity> {
        let is_sampler = |activity: &&ThreadActivity| {
            activity.comms.iter().any(|comm| comm == SAMPLER_COMM)
                && (pid.is_none() || activity.tgid.is_none() || activity.tgid == pid)
        };
        self.threads.values().find(is_sampler)
    }
}

impl ThreadActivity {
    fn add_comm(&mut self, name: &[u8]) {
        if !self.comms.iter().any(|c| c == name) && self.comms.len() < 16 {
            self.comms.push(name.to_vec());
        }
    }

    /// `first` and `last` are the times of the first and the last event of all recordings: a thread whose
    /// first switch is off a CPU ran from the first event on, and one that was not switched off ran until
    /// the last.
    fn finish(&mut self, first: Timestamp, last: Timestamp) {
        self.marks.sort_by_key(|m| m.ts);
        let mut open = Vec::new();
        for mark in &mut self.marks {
            if mark.begin {
                open.push(mark.name);
            } else {
                mark.name = open.pop().unwrap_or(UNKNOWN_NAME);
            }
        }
        self.switches.sort_by_key(|s| s.0);
        // By CPU: the clocks of two CPUs may be so far apart that a thread seems to be on both.
        let mut since: FxHashMap<Cpu, Timestamp> = FxHashMap::default();
        if let Some((_, cpu, false)) = self.switches.first() {
            since.insert(*cpu, first);
        }
        if let Some((_, cpu, true)) = self.switches.last() {
            self.switches.push((last, *cpu, false));
        }
        let mut before = first;
        for (ts, cpu, on) in std::mem::take(&mut self.switches) {
            if on {
                let lost_off = since.insert(cpu, ts);
                self.unknown.extend(lost_off.map(|from| (from, ts)));
            } else if let Some(from) = since.remove(&cpu) {
                self.on_cpu.push((from, ts, 0));
            } else {
                self.unknown.push((before, ts));
            }
            before = ts;
        }
        self.unknown.sort_unstable();
        self.on_cpu.sort_unstable();
        let mut sum = 0;
        for (from, to, before) in &mut self.on_cpu {
            *before = sum;
            sum += to.since(*from);
        }
    }

    /// Whether the recordings hold a time that the thread was on a CPU.
    pub fn has_switches(&self) -> bool {
        !self.on_cpu.is_empty()
    }

    /// Whether a switch of the thread is missing between `from` and `to`.
    fn is_unknown(&self, from: Timestamp, to: Timestamp) -> bool {
        let after = self.unknown.partition_point(|(_, until)| *until <= from);
        self.unknown.get(after).is_some_and(|(since, _)| *since < to)
    }

    /// The distance of `ts` from the nearest time on a CPU, ns: 0 within one. `None` where no context
    /// switch tells it.
    pub fn distance_from_cpu(&self, ts: Timestamp) -> Option<u64> {
        if self.is_unknown(ts, ts + 1) {
            return None;
        }
        let after = self.on_cpu.partition_point(|(from, ..)| *from <= ts);
        let before = after.checked_sub(1).and_then(|n| self.on_cpu.get(n));
        let since_end = before.map(|(_, to, _)| ts.since(*to));
        let until_begin = self.on_cpu.get(after).map(|(from, ..)| from.since(ts));
        since_end.into_iter().chain(until_begin).min()
    }

    /// The longest stretch off the CPU (begin, end) that begins and ends between `from` and `to`; all in
    /// the timeline's clock.
    pub fn longest_off_cpu(&self, from: Timestamp, to: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let first = self.on_cpu.partition_point(|(_, until, _)| *until < from);
        let runs = self.on_cpu.get(first..)?.iter().take_while(|(since, ..)| *since <= to);
        let rests = runs.clone().zip(runs.skip(1)).map(|(before, after)| (before.1, after.0));
        rests.max_by_key(|(off, on)| *on - *off)
    }

    /// The thread's time on a CPU, ns, from its first stretch on a CPU to `ts` of the timeline's clock.
    fn on_cpu_until(&self, ts: Timestamp) -> u64 {
        let after = self.on_cpu.partition_point(|(from, ..)| *from <= ts);
        match after.checked_sub(1).and_then(|n| self.on_cpu.get(n)) {
            Some((from, to, sum)) => sum + (ts.min(*to) - *from),
            None => 0,
        }
    }

    /// The thread's time on a CPU from `from` to `to`, ns; `None` where the recordings do not cover both
    /// times.
    pub fn on_cpu(&self, from: Timestamp, to: Timestamp) -> Option<u64> {
        let first = self.on_cpu.first()?.0;
        let last = self.on_cpu.last()?.1;
        let is_known = from >= first && to <= last && from <= to && !self.is_unknown(from, to);
        is_known.then(|| self.on_cpu_until(to) - self.on_cpu_until(from))
    }
}

#[cfg(test)]
impl ThreadActivity {
    /// A thread with these begins and ends of slices.
    pub fn with_marks(marks: Vec<SliceEdge>) -> ThreadActivity {
        ThreadActivity { marks, ..ThreadActivity::default() }
    }

    /// A thread that was on a CPU in these stretches of the timeline, ns.
    pub fn with_cpu_times(stretches: &[(u64, u64)]) -> ThreadActivity {
        let mut activity = ThreadActivity::default();
        for (on, off) in stretches {
            activity.switches.extend([(Timestamp(*on), Cpu(0), true), (Timestamp(*off), Cpu(0), false)]);
        }
        activity.finish(Timestamp::MIN, Timestamp::MIN);
        activity
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock_map::ClockMap;
    use super::*;
    use crate::formats::{Order, ftrace_text};
    use crate::timeline::recording_pass::EvidencePass;

    const TEXT: &str = "\
 a-7 (    5) [000] d..2 1.000100: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=main next_pid=7 next_prio=110
 a-7 (    5) [000] ...1 1.000110: tracing_mark_write: B|5|outer
 a-7 (    5) [000] ...1 1.000120: tracing_mark_write: B|5|inner
 a-7 (    5) [000] ...1 1.000130: tracing_mark_write: E|5
 a-7 (    5) [000] ...1 1.000140: tracing_mark_write: E|5
 a-7 (    5) [000] d..2 1.000300: sched_switch: prev_comm=main prev_pid=7 prev_prio=110 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
 a-7 (    5) [000] d..2 1.000700: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=main next_pid=7 next_prio=110
 a-7 (    5) [000] d..2 1.001000: sched_switch: prev_comm=main prev_pid=7 prev_prio=110 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
";

    #[test]
    fn names_markers_and_times_on_the_cpu_are_kept_per_thread() {
        let mut evidence = KernelEvidence::default();
        let map = ClockMap::offset(1_000);
        let mut pass = EvidencePass { evidence: Some(&mut evidence), ..EvidencePass::new(&map) };
        ftrace_text::read(TEXT.as_bytes(), Order::Any, &mut pass).unwrap();
        evidence.finish();
        assert_eq!((evidence.first.0, evidence.last.0), (1_000_101_000, 1_001_001_000));
        let main = &evidence.threads[&Tid(7)];
        assert_eq!(main.tgid, Some(Pid(5)));
        assert!(main.comms.iter().any(|comm| comm == b"main"));
        let outer = evidence.names[&b"outer"[..]];
        let inner = evidence.names[&b"inner"[..]];
        let marks: Vec<_> = main.marks.iter().map(|m| (m.ts.0 / 1_000, m.name, m.begin)).collect();
        assert_eq!(
            marks,
            [
                (1_000_111, outer, true),
                (1_000_121, inner, true),
                (1_000_131, inner, false),
                (1_000_141, outer, false)
            ]
        );
        let on_cpu = |from, to| main.on_cpu(Timestamp(from), Timestamp(to));
        // On the CPU from 101 to 301 µs and from 701 to 1,001 µs after the first second.
        assert_eq!(on_cpu(1_000_201_000, 1_000_801_000), Some(200_000));
        let longest = main.longest_off_cpu(Timestamp(1_000_101_000), Timestamp(1_001_001_000));
        assert_eq!(longest, Some((Timestamp(1_000_301_000), Timestamp(1_000_701_000))));
        assert_eq!(on_cpu(0, 1_000_801_000), None, "before the recording nothing is known");
        assert!(!evidence.threads.contains_key(&Tid::IDLE), "the idle task is no thread");
    }

    #[test]
    fn the_stretch_in_which_art_suspends_all_threads_is_kept() {
        let text = " a-9 (    5) [000] ...1 1.5: tracing_mark_write: B|5|Mutator threads suspended for Start\n \
                    a-9 (    5) [000] ...1 1.6: tracing_mark_write: E|5\n";
        let mut evidence = KernelEvidence::default();
        let map = ClockMap::default();
        let mut pass = EvidencePass { evidence: Some(&mut evidence), ..EvidencePass::new(&map) };
        ftrace_text::read(text.as_bytes(), Order::Any, &mut pass).unwrap();
        evidence.finish();
        assert_eq!(evidence.art_starts, [(Timestamp(1_500_000_000), Timestamp(1_600_000_000))]);
    }
}
