//! What a recording says that a method trace can be compared with: names of threads, when each was on a CPU, and its
//! markers.

use std::collections::HashMap;
use std::io;

use crate::formats::{Event, EventType, EventTypeId, Sink, ThreadInfo};
use crate::markers::Marker;

/// Switches and markers that are kept at most: 16 bytes each.
const MAX_KEPT: usize = 8 << 20;
/// No name that anybody asked for.
pub const NO_NAME: u32 = u32::MAX;

/// A recording, as far as a method trace can be compared with it.
#[derive(Default)]
pub struct Observed {
    /// By kernel thread id.
    pub threads: HashMap<i32, Seen>,
    /// Marker names, numbered.
    pub names: HashMap<Vec<u8>, u32>,
    /// Stretches in which ART held all threads to begin a trace: ns of the timeline.
    pub art_starts: Vec<(u64, u64)>,
    /// Earliest and latest event.
    pub first: u64,
    /// Latest event.
    pub last: u64,
    kept: usize,
    kinds: Vec<Kind>,
}

/// One kernel thread.
#[derive(Default)]
pub struct Seen {
    /// Every name it had.
    pub comms: Vec<Vec<u8>>,
    /// Its process, where a list or its own markers say it.
    pub tgid: Option<i32>,
    /// Earliest event of it.
    pub first: u64,
    /// Latest event of it.
    pub last: u64,
    /// Its slices' begins and ends.
    pub marks: Vec<Mark>,
    switches: Vec<(u64, bool)>,
    /// When it was on a CPU: from, to, and the sum of all before.
    on_cpu: Vec<(u64, u64, u64)>,
}

/// A slice's begin or end.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    /// ns of the timeline.
    pub ts: u64,
    /// The number of its name; an end has that of its begin.
    pub name: u32,
    /// Begin, or end.
    pub begin: bool,
}

enum Kind {
    /// `prev_comm prev_pid next_comm next_pid`.
    Switch([usize; 4]),
    Print(usize),
    Else,
}

impl Observed {
    fn seen(&mut self, tid: i32, ts: u64) -> &mut Seen {
        let seen = self.threads.entry(tid).or_insert_with(|| Seen { first: ts, last: ts, ..Seen::default() });
        seen.first = seen.first.min(ts);
        seen.last = seen.last.max(ts);
        seen
    }

    fn switch(&mut self, event: &Event<'_>, kind: &EventType, fields: [usize; 4]) {
        for (comm, pid, on) in [(fields[0], fields[1], false), (fields[2], fields[3], true)] {
            let Some(tid) = event.int(kind, pid).and_then(|t| i32::try_from(t).ok()).filter(|t| *t != 0)
            else {
                continue;
            };
            let room = self.kept < MAX_KEPT;
            self.kept += 1;
            let seen = self.seen(tid, event.ts);
            if room {
                seen.switches.push((event.ts, on));
            }
            if let Some(name) = event.text(kind, comm) {
                seen.named(name);
            }
        }
    }

    fn marker(&mut self, event: &Event<'_>, text: &[u8]) {
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
            Marker::End { .. } => (NO_NAME, false),
            _ => return,
        };
        let room = self.kept < MAX_KEPT;
        self.kept += 1;
        let seen = self.seen(event.tid, event.ts);
        seen.tgid = seen.tgid.or(pid.filter(|p| *p > 0));
        if room {
            seen.marks.push(Mark { ts: event.ts, name, begin });
        }
    }

    /// After the last event: puts everything in order.
    pub fn finish(&mut self) {
        let start =
            self.names.iter().filter(|(name, _)| name.starts_with(b"Mutator threads suspended for Start"));
        let starts: Vec<u32> = start.map(|(_, number)| *number).collect();
        for seen in self.threads.values_mut() {
            seen.finish();
            let mut open = None;
            for mark in seen.marks.iter().filter(|m| starts.contains(&m.name)) {
                match (mark.begin, open.take()) {
                    (true, _) => open = Some(mark.ts),
                    (false, Some(begin)) => self.art_starts.push((begin, mark.ts)),
                    (false, None) => {}
                }
            }
        }
    }
}

impl Seen {
    fn named(&mut self, name: &[u8]) {
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
                mark.name = open.pop().unwrap_or(NO_NAME);
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
    pub fn longest_rest(&self, from: u64, to: u64) -> Option<(u64, u64)> {
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

/// Feeds an [`Observed`], at the timeline's times.
pub struct Observer<'o> {
    /// What is filled.
    pub observed: &'o mut Observed,
    /// From the recording's clock to the timeline's.
    pub map: super::map::ClockMap,
}

impl Sink for Observer<'_> {
    fn head(&mut self, _: &crate::formats::Head) -> io::Result<()> {
        self.observed.kinds.clear();
        Ok(())
    }

    fn event_type(&mut self, _: EventTypeId, kind: &EventType) -> io::Result<()> {
        let fields = ["prev_comm", "prev_pid", "next_comm", "next_pid"].map(|name| kind.field(name));
        self.observed.kinds.push(match (kind.name.as_str(), fields, kind.field("buf")) {
            ("sched_switch", [Some(a), Some(b), Some(c), Some(d)], _) => Kind::Switch([a, b, c, d]),
            ("print", _, Some(buf)) => Kind::Print(buf),
            _ => Kind::Else,
        });
        Ok(())
    }

    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        // Known is not seen: its times stay impossible until an event of it comes.
        let new = || Seen { first: u64::MAX, ..Seen::default() };
        let seen = self.observed.threads.entry(thread.tid).or_insert_with(new);
        seen.tgid = thread.tgid.or(seen.tgid);
        if let Some(name) = thread.name {
            seen.named(name);
        }
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        let event = &Event { ts: self.map.map(event.ts), ..*event };
        let observed = &mut *self.observed;
        if observed.last == 0 {
            observed.first = event.ts;
        }
        observed.first = observed.first.min(event.ts);
        observed.last = observed.last.max(event.ts);
        if event.comm.is_some() || event.tgid.is_some() {
            let seen = observed.seen(event.tid, event.ts);
            seen.tgid = event.tgid.or(seen.tgid);
            if let Some(name) = event.comm {
                seen.named(name);
            }
        }
        match observed.kinds.get(event.kind.0 as usize) {
            Some(Kind::Switch(fields)) => {
                let fields = *fields;
                observed.switch(event, kind, fields);
            }
            Some(Kind::Print(buf)) => {
                if let Some(text) = event.text(kind, *buf) {
                    observed.marker(event, text);
                }
            }
            _ => {}
        }
        Ok(())
    }
}
