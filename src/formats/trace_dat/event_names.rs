//! Names threads, and tells their processes, by the events that hold them. The file's own list lacks threads
//! that ended before the recording did: the kernel keeps the names of some hundred threads
//! (`saved_cmdlines_size`), and a recorder on a locked phone may not read its list at all.

use std::collections::{HashMap, HashSet};
use std::io;

use crate::formats::{CLONE_THREAD, Event, EventType, Sink, ThreadInfo};

/// Events that hold a thread's name: the event, the field with the thread's id, the field with its name.
const NAMING_FIELDS: [(&str, &str, &str); 8] = [
    ("sched_switch", "prev_pid", "prev_comm"),
    ("sched_switch", "next_pid", "next_comm"),
    ("sched_waking", "pid", "comm"),
    ("sched_wakeup", "pid", "comm"),
    ("sched_wakeup_new", "pid", "comm"),
    ("sched_process_exit", "pid", "comm"),
    (TASK_NEWTASK, "pid", "comm"),
    (TASK_RENAME, "pid", "newcomm"),
];

/// After this event a thread has another name.
const TASK_RENAME: &str = "task_rename";

/// The event of a thread that is made, by the thread that makes it.
const TASK_NEWTASK: &str = "task_newtask";

/// The threads that have a name, and where each type of event holds names.
#[derive(Debug, Default)]
pub(super) struct EventNames {
    named: TidSet,
    /// The process of each thread that the file or an event names. Empty where the file's own list is: then
    /// its text has no processes either, and events add none.
    tgids: HashMap<i32, i32>,
    /// By event type.
    fields: Vec<NamingFields>,
}

/// Where an event of one type holds names, by the numbers of its fields.
#[derive(Debug)]
struct NamingFields {
    /// The fields with a thread's id and its name.
    names: Vec<(usize, usize)>,
    /// The fields with the id of a new thread and its `clone_flags`.
    new_thread: Option<(usize, usize)>,
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
        if self.fields[number].names.is_empty() { Ok(()) } else { self.learn_named(event, types, sink) }
    }

    fn learn_named<S: Sink + ?Sized>(
        &mut self,
        event: &Event<'_>,
        types: &[EventType],
        sink: &mut S,
    ) -> io::Result<()> {
        let number = event.kind.0 as usize;
        let kind = &types[number];
        let fields = &self.fields[number];
        if let Some((tid, flags)) = fields.new_thread
            && !self.tgids.is_empty()
            && let Some((tid, tgid)) = process_of_new_thread(event, kind, tid, flags, &self.tgids)
            && self.tgids.insert(tid, tgid) != Some(tgid)
        {
            sink.thread(&ThreadInfo { tid, tgid: Some(tgid), name: None })?;
        }
        for (id, name) in &fields.names {
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

/// The new thread of an event, and its process. `None` where the process of its maker is not known.
fn process_of_new_thread(
    event: &Event<'_>,
    kind: &EventType,
    tid: usize,
    flags: usize,
    tgids: &HashMap<i32, i32>,
) -> Option<(i32, i32)> {
    let tid = i32::try_from(event.int(kind, tid)?).ok().filter(|tid| *tid > 0)?;
    let is_thread = event.int(kind, flags)? & CLONE_THREAD != 0;
    Some((tid, if is_thread { *tgids.get(&event.tid)? } else { tid }))
}

fn naming_fields(kind: &EventType) -> NamingFields {
    let of_kind = NAMING_FIELDS.iter().filter(|(event, ..)| *event == kind.name);
    let names = of_kind.filter_map(|(_, id, name)| Some((kind.field(id)?, kind.field(name)?))).collect();
    let new_thread = (kind.name == TASK_NEWTASK).then(|| kind.field("pid").zip(kind.field("clone_flags")));
    NamingFields { names, new_thread: new_thread.flatten() }
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
    use crate::formats::{EventTypeId, Field, FieldType, Payload, Value};

    /// Collects what is told of threads: id, process, name.
    #[derive(Default)]
    struct Told(Vec<(i32, Option<i32>, Option<String>)>);

    impl Sink for Told {
        fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
            Ok(())
        }

        fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
            let name = thread.name.map(|name| String::from_utf8_lossy(name).into_owned());
            self.0.push((thread.tid, thread.tgid, name));
            Ok(())
        }
    }

    /// What is told of a thread 9 that thread `maker` makes, in a file that knows these processes.
    fn told(maker: i32, flags: i64, tgids: &[(i32, i32)]) -> Vec<(i32, Option<i32>, Option<String>)> {
        let field =
            |name: &str, ty| Field { name: name.into(), ctype: String::new(), ty, offset: 0, size: 0 };
        let fields = vec![
            field("pid", FieldType::Int),
            field("comm", FieldType::TailStr),
            field("clone_flags", FieldType::Int),
        ];
        let kind = EventType { system: "task".into(), name: "task_newtask".into(), fields, print_fmt: None };
        let values = [Value::Int(9), Value::Str(b"worker"), Value::Int(flags)];
        let event = Event {
            ts: 1,
            cpu: 0,
            tid: maker,
            kind: EventTypeId(0),
            flags: 0,
            preempt_count: 0,
            comm: None,
            tgid: None,
            payload: Payload::Values { values: &values, text: None },
        };
        let mut names = EventNames::new([].into_iter(), tgids.iter().copied().collect());
        let mut told = Told::default();
        names.learn(&event, &[kind], &mut told).unwrap();
        told.0
    }

    #[test]
    fn a_new_thread_has_the_process_of_its_maker_and_a_new_process_its_own() {
        let named = (9, None, Some("worker".to_owned()));
        assert_eq!(told(7, 0x3d_0f00, &[(7, 5)]), [(9, Some(5), None), named.clone()]);
        assert_eq!(told(7, 0x120_0011, &[(7, 5)]), [(9, Some(9), None), named.clone()]);
        // The file's table has an earlier thread of this id.
        assert_eq!(told(7, 0x3d_0f00, &[(7, 5), (9, 9)]), [(9, Some(5), None), named.clone()]);
        assert_eq!(told(7, 0x3d_0f00, &[(7, 5), (9, 5)]), std::slice::from_ref(&named));
        // The process of the maker is not known, and the file has no processes at all.
        assert_eq!(told(8, 0x3d_0f00, &[(7, 5)]), std::slice::from_ref(&named));
        assert_eq!(told(7, 0x120_0011, &[]), [named]);
    }

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
