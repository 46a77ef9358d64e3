//! What a recording says that a method trace can be compared with: names of threads, when each was on a CPU, and its
//! markers.

use std::collections::HashMap;

use crate::formats::{Event, EventType, ThreadInfo};
use crate::markers::Marker;

/// Switches and markers that are entries at most: 16 bytes each.
const MAX_ENTRIES: usize = 8 << 20;
/// No name that anybody asked for.
pub const UNKNOWN_NAME: u32 = u32::MAX;

/// A recording, as far as a method trace can be compared with it.
#[derive(Default)]
pub struct KernelEvidence {
    /// By kernel thread id.
    pub threads: HashMap<i32, ThreadActivity>,
    /// Marker names, numbered.
    pub names: HashMap<Vec<u8>, u32>,
    /// Stretches in which ART held all threads to begin a trace: ns of the timeline.
    pub art_starts: Vec<(u64, u64)>,
    /// Earliest and latest event.
    pub first: u64,
    /// Latest event.
    pub last: u64,
    entries: usize,
    event_types: Vec<EvidenceType>,
}

/// One kernel thread.
#[derive(Default)]
pub struct ThreadActivity {
    /// Every name it had.
    pub comms: Vec<Vec<u8>>,
    /// Its process, where a list or its own markers say it.
    pub tgid: Option<i32>,
    /// Earliest event of it.
    pub first: u64,
    /// Latest event of it.
    pub last: u64,
    /// Its slices' begins and ends.
    pub marks: Vec<SliceMark>,
    switches: Vec<(u64, bool)>,
    /// When it was on a CPU: from, to, and the sum of all before.
    on_cpu: Vec<(u64, u64, u64)>,
}

/// A slice's begin or end.
#[derive(Debug, Clone, Copy)]
pub struct SliceMark {
    /// ns of the timeline.
    pub ts: u64,
    /// The number of its name; an end has that of its begin.
    pub name: u32,
    /// Begin, or end.
    pub begin: bool,
}

enum EvidenceType {
    /// `prev_comm prev_pid next_comm next_pid`.
    Switch([usize; 4]),
    Print(usize),
    Other,
}

impl KernelEvidence {
    fn activity(&mut self, tid: i32, ts: u64) -> &mut ThreadActivity {
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
            let Some(tid) = event.int(kind, pid).and_then(|t| i32::try_from(t).ok()).filter(|t| *t != 0)
            else {
                continue;
            };
            let room = self.entries < MAX_ENTRIES;
            self.entries += 1;
            let activity = self.activity(tid, event.ts);
            if room {
                activity.switches.push((event.ts, on));
            }
            if let Some(name) = event.text(kind, comm) {
                activity.add_comm(name);
            }
        }
    }

    fn add_marker(&mut self, event: &Event<'_>, text: &[u8]) {
        let Some(marker) = Marker::parse(text) else { return };
        let pid = marker.pid();
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
        activity.tgid = activity.tgid.or(pid.filter(|p| *p > 0));
        if room {
            activity.marks.push(SliceMark { ts: event.ts, name, begin });
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

    /// Adds what the recording knows about a thread.
    pub fn add_thread(&mut self, thread: &ThreadInfo<'_>) {
        // A thread that is only listed has no events: its first event stays at the end of time until one comes.
        let listed = || ThreadActivity { first: u64::MAX, ..ThreadActivity::default() };
        let activity = self.threads.entry(thread.tid).or_insert_with(listed);
        activity.tgid = thread.tgid.or(activity.tgid);
        if let Some(name) = thread.name {
            activity.add_comm(name);
        }
    }

    /// Adds an event, whose time is in the timeline's clock; the event's type is still numbered as in its recording.
    pub fn add_event(&mut self, event: &Event<'_>, event_type: &EventType) {
        if self.last == 0 {
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

    /// After the last event: puts everything in order.
    pub fn finish(&mut self) {
        let start =
            self.names.iter().filter(|(name, _)| name.starts_with(b"Mutator threads suspended for Start"));
        let starts: Vec<u32> = start.map(|(_, number)| *number).collect();
        for activity in self.threads.values_mut() {
            activity.finish();
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

impl ThreadActivity {
    fn add_comm(&mut self, name: &[u8]) {
        if !self.comms.iter().any(|c| c == name) && self.comms.len() < 16 {
            self.comms.push(name.to_vec());
        }
    }

    fn finish(&mut self) {
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
        let (mut since, mut sum) = (None, 0);
        for (ts, on) in std::mem::take(&mut self.switches) {
            if on {
                since = Some(ts);
            } else if let Some(from) = since.take() {
                self.on_cpu.push((from, ts, sum));
                sum += ts - from;
            }
        }
    }

    /// Whether it is known when it was on a CPU.
    pub fn has_switches(&self) -> bool {
        !self.on_cpu.is_empty()
    }

    /// The longest stretch off the CPU that begins and ends between `from` and `to`.
    pub fn longest_off_cpu(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        let first = self.on_cpu.partition_point(|(_, until, _)| *until < from);
        let runs = self.on_cpu.get(first..)?.iter().take_while(|(since, ..)| *since <= to);
        let rests = runs.clone().zip(runs.skip(1)).map(|(before, after)| (before.1, after.0));
        rests.max_by_key(|(off, on)| on - off)
    }

    /// ns on a CPU from the first one to `ts`.
    fn on_cpu_until(&self, ts: u64) -> u64 {
        let after = self.on_cpu.partition_point(|(from, ..)| *from <= ts);
        match after.checked_sub(1).and_then(|n| self.on_cpu.get(n)) {
            Some((from, to, sum)) => sum + ts.min(*to) - from,
            None => 0,
        }
    }

    /// ns on a CPU from `from` to `to`; `None` where the recording does not cover both.
    pub fn on_cpu(&self, from: u64, to: u64) -> Option<u64> {
        let (first, last) = (self.on_cpu.first()?.0, self.on_cpu.last()?.1);
        (from >= first && to <= last && from <= to).then(|| self.on_cpu_until(to) - self.on_cpu_until(from))
    }
}
