//! Names threads, and tells their processes, by the events that hold them. The file's own list lacks threads
//! that ended before the recording did: the kernel keeps the names of some hundred threads
//! (`saved_cmdlines_size`), and a recorder on a locked phone may not read its list at all.

use std::collections::{HashMap, HashSet};
use std::io;

use crate::formats::{Event, EventType, Sink, ThreadInfo};

/// Events that hold a thread's name: the event, the field with the thread's id, the field with its name.
const NAMING_FIELDS: [(&str, &str, &str); 8] = [
    ("sched_switch", "prev_pid", "prev_comm"),
    ("sched_switch", "next_pid", "next_comm"),
    ("sched_waking", "pid", "comm"),
    ("sched_wakeup", "pid", "comm"),
    ("sched_wakeup_new", "pid", "comm"),
    ("sched_process_exit", "pid", "comm"),
    ("task_newtask", "pid", "comm"),
    (TASK_RENAME, "pid", "newcomm"),
];

/// After this event a thread has another name.
const TASK_RENAME: &str = "task_rename";

/// The event of a thread that is made, by the thread that makes it. Its field `clone_flags` has
/// [`CLONE_THREAD`] where the new thread belongs to the process of the one that makes it.
const TASK_NEWTASK: &str = "task_newtask";

/// The flag of clone(2) for a thread of the same process.
const CLONE_THREAD: u64 = 0x0001_0000;

/// The threads that have a name, and where each type of event holds names.
#[derive(Debug, Default)]
pub(super) struct EventNames {
    named: TidSet,
    /// The process of each thread that the file or an event names. Empty where the file's own list is: then
    /// its text has no processes either, and events add none.
    tgids: HashMap<i32, i32>,
    /// By event type: the numbers of the fields with id and name.
    fields: Vec<Vec<(usize, usize)>>,
}

impl EventNames {
    /// Begins with the threads that have a name already, and with the processes of threads.
    pub(super) fn new(named: impl Iterator<Item = i32>, tgids: HashMap<i32, i32>) -> EventNames {
        EventNames { named: named.collect(), tgids, fields: Vec::new() }
    }

    /// Pushes the names that an event holds, of threads that have none yet, and the process of a new thread.
    /// `types` has the types of all events so far.
    #[inline]
    pub(super) fn learn<S: Sink + ?Sized>(
        &mut self,
        event: &Event<'_>,
        types: &[EventType],
        sink: &mut S,
    ) -> io::Result<()> {
        let number = event.kind.0 as usize;
        if self.fields.len() <= number {
            self.fields.extend(types[self.fields.len()..].iter().map(naming_fields));
        }
        // Most events hold no names.
        if self.fields[number].is_empty() { Ok(()) } else { self.learn_named(event, types, sink) }
    }

    fn learn_named<S: Sink + ?Sized>(
        &mut self,
        event: &Event<'_>,
        types: &[EventType],
        sink: &mut S,
    ) -> io::Result<()> {
        let number = event.kind.0 as usize;
        let kind = &types[number];
        if kind.name == TASK_NEWTASK && !self.tgids.is_empty() {
            self.learn_process(event, kind, sink)?;
        }
        for (id, name) in &self.fields[number] {
            let Some(tid) = event.int(kind, *id).and_then(|tid| i32::try_from(tid).ok()) else { continue };
            if tid <= 0 || (!self.named.insert(tid) && kind.name != TASK_RENAME) {
                continue;
            }
            if let Some(name) = event.text(kind, *name) {
                sink.thread(&ThreadInfo { tid, tgid: None, name: Some(name) })?;
            }
        }
        Ok(())
    }
}

impl EventNames {
    /// Pushes the process of a thread that is made. Where the process of its maker is not known, the file's
    /// own table stands.
    fn learn_process<S: Sink + ?Sized>(
        &mut self,
        event: &Event<'_>,
        kind: &EventType,
        sink: &mut S,
    ) -> io::Result<()> {
        let field = |name: &str| kind.fields.iter().position(|field| field.name == name);
        let (Some(pid), Some(flags)) = (field("pid"), field("clone_flags")) else { return Ok(()) };
        let Some(tid) = event.int(kind, pid).and_then(|tid| i32::try_from(tid).ok()).filter(|tid| *tid > 0)
        else {
            return Ok(());
        };
        let Some(flags) = event.int(kind, flags) else { return Ok(()) };
        let tgid =
            if flags as u64 & CLONE_THREAD != 0 { self.tgids.get(&event.tid).copied() } else { Some(tid) };
        let Some(tgid) = tgid else { return Ok(()) };
        if self.tgids.insert(tid, tgid) == Some(tgid) {
            return Ok(());
        }
        sink.thread(&ThreadInfo { tid, tgid: Some(tgid), name: None })
    }
}

fn naming_fields(kind: &EventType) -> Vec<(usize, usize)> {
    let number = |name: &str| kind.fields.iter().position(|field| field.name == name);
    let of_kind = NAMING_FIELDS.iter().filter(|(event, ..)| *event == kind.name);
    of_kind.filter_map(|(_, id, name)| Some((number(id)?, number(name)?))).collect()
}

/// The kernel gives no thread an id from here on (`PID_MAX_LIMIT` of 64-bit kernels).
const PID_MAX_LIMIT: u32 = 4 << 20;

/// Thread ids: a bit for each that a kernel can give, and a table for those that only a damaged file has.
#[derive(Debug, Default)]
pub(super) struct TidSet {
    bits: Vec<u64>,
    others: HashSet<i32>,
}

impl TidSet {
    /// Adds an id. Returns whether it was missing.
    pub(super) fn insert(&mut self, tid: i32) -> bool {
        let Some(number) = u32::try_from(tid).ok().filter(|tid| *tid < PID_MAX_LIMIT) else {
            return self.others.insert(tid);
        };
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        let was_missing = self.bits[word] & bit == 0;
        self.bits[word] |= bit;
        was_missing
    }
}

impl FromIterator<i32> for TidSet {
    fn from_iter<I: IntoIterator<Item = i32>>(tids: I) -> TidSet {
        let mut set = TidSet::default();
        for tid in tids {
            set.insert(tid);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_missing_once_whatever_its_size() {
        for tid in [0, 1, 63, 64, 32_768, 4_194_303, 4_194_304, i32::MAX, -1, i32::MIN] {
            let mut set: TidSet = [2].into_iter().collect();
            assert!(set.insert(tid), "{tid}");
            assert!(!set.insert(tid), "{tid}");
            assert!(!set.insert(2));
        }
    }
}
