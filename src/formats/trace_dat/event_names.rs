//! The names and the processes of threads, as events of a trace.dat tell them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;

use crate::clock::Timestamp;
use crate::formats::{CLONE_THREAD, Event, EventType, Sink, ThreadIds, ThreadInfo};
use crate::ids::{Pid, Tid};

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

/// The most threads whose makers' processes are waited for. So a hostile recording cannot take all memory.
const MAX_WAITING: usize = 1 << 16;

/// The most threads of which something is known while a recording is followed.
const MAX_REMEMBERED: usize = 1 << 17;

/// The threads that have a name, the processes of threads, and the fields of each event type that hold names.
///
/// The file's own list lacks threads that ended before the recording did: the kernel keeps the names of some
/// hundred threads (`saved_cmdlines_size`), and a recorder on a locked phone may not read its list at all. So
/// threads are named by the events that hold names, too.
#[derive(Debug, Default)]
pub(super) struct EventNames {
    named: NamedThreads,
    /// When each thread that got another name got its last one. Events of different CPUs do not come in
    /// the order of their times, and the last name counts.
    renamed: HashMap<Tid, Timestamp>,
    /// The process of each thread that the file or an event names. Empty where the file's own list is: then
    /// its text has no processes either, and events add none.
    tgids: HashMap<Tid, Pid>,
    /// Threads whose processes are not known yet, and the threads that they have made, which belong to the
    /// same ones: (maker, made).
    made: BTreeSet<(Tid, Tid)>,
    /// The number of new threads that did not get into `made`, because it is full.
    not_waiting: u64,
    /// By event type.
    fields: Vec<NamingFields>,
}

/// The fields of one event type that name threads or tell of new ones, by their numbers.
#[derive(Debug)]
struct NamingFields {
    /// The fields with a thread's id and its name.
    names: Vec<(usize, usize)>,
    /// The fields with the id of a new thread and its `clone_flags`.
    new_thread: Option<(usize, usize)>,
}

impl EventNames {
    /// Begins with the threads that have a name already, and with the processes of threads.
    pub fn new(named: impl Iterator<Item = Tid>, tgids: HashMap<Tid, Pid>) -> EventNames {
        let mut threads = NamedThreads::default();
        for tid in named {
            threads.add(tid);
        }
        EventNames { named: threads, tgids, ..EventNames::default() }
    }

    /// Forgets what is known of threads where they are too many: later events tell it again.
    pub fn forget(&mut self) {
        if self.renamed.len() > MAX_REMEMBERED {
            self.renamed = HashMap::new();
        }
        if self.tgids.len() > MAX_REMEMBERED {
            // It is empty only where the file has no processes at all.
            self.tgids = HashMap::from([(Tid::IDLE, Pid::of_main_thread(Tid::IDLE))]);
        }
        if self.named.impossible.len() > MAX_REMEMBERED {
            self.named.impossible = HashSet::new();
        }
        if self.made.len() >= MAX_WAITING {
            self.made = BTreeSet::new();
        }
    }

    /// A sentence about threads whose processes are not known although the recording may tell them.
    pub fn note(&self) -> Option<String> {
        let what = format!(
            "the processes of {} new threads are not looked for: {MAX_WAITING} others wait until those of their makers \
             are known",
            self.not_waiting
        );
        (self.not_waiting > 0).then_some(what)
    }

    /// Pushes the names that an event holds, of threads that have none yet, and the process of a new thread.
    /// `types` has the types of all events so far.
    #[inline]
    pub fn learn<S: Sink + ?Sized>(
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
        if let Some((tid, flags)) = self.fields[number].new_thread
            && !self.tgids.is_empty()
        {
            self.learn_new_thread(event, kind, tid, flags, sink)?;
        }
        for (id, name) in &self.fields[number].names {
            let Some(tid) = event.tid_at(kind, *id).filter(|tid| tid.is_thread()) else { continue };
            let is_first = self.named.add(tid);
            if kind.name == TASK_RENAME {
                let renamed = self.renamed.entry(tid).or_default();
                if event.ts < *renamed {
                    continue;
                }
                *renamed = event.ts;
            } else if !is_first {
                continue;
            }
            if let Some(name) = event.text(kind, *name) {
                sink.thread(&ThreadInfo { tid, tgid: None, name: Some(name) })?;
            }
        }
        Ok(())
    }

    /// Pushes the process of a new thread, and of those that wait for it. `tid` and `flags` are the numbers
    /// of the event's fields.
    fn learn_new_thread<S: Sink + ?Sized>(
        &mut self,
        event: &Event<'_>,
        kind: &EventType,
        tid: usize,
        flags: usize,
        sink: &mut S,
    ) -> io::Result<()> {
        let Some(flags) = event.int(kind, flags) else { return Ok(()) };
        let Some(tid) = event.tid_at(kind, tid).filter(|tid| tid.is_thread()) else { return Ok(()) };
        let tgid = if flags & CLONE_THREAD == 0 {
            Some(Pid::of_main_thread(tid))
        } else {
            self.tgids.get(&event.tid).copied()
        };
        let Some(tgid) = tgid else {
            // Its maker is a new thread, too, and was made on a CPU whose events come later.
            if self.made.len() < MAX_WAITING {
                self.made.insert((event.tid, tid));
            } else {
                self.not_waiting += 1;
            }
            return Ok(());
        };
        let mut known = vec![tid];
        while let Some(tid) = known.pop() {
            if self.tgids.insert(tid, tgid) != Some(tgid) {
                sink.thread(&ThreadInfo { tid, tgid: Some(tgid), name: None })?;
            }
            let made: Vec<_> =
                self.made.range((tid, Tid(i32::MIN))..=(tid, Tid(i32::MAX))).copied().collect();
            known.extend(made.iter().map(|(_, made)| *made));
            made.iter().for_each(|pair| _ = self.made.remove(pair));
        }
        Ok(())
    }
}

/// The threads that have a name.
#[derive(Debug, Default)]
struct NamedThreads {
    ids: ThreadIds,
    /// Numbers that no thread can have: only a damaged file names them.
    impossible: HashSet<Tid>,
}

impl NamedThreads {
    /// Adds a thread. Returns whether it had no name before.
    fn add(&mut self, tid: Tid) -> bool {
        self.ids.insert(tid).unwrap_or_else(|| self.impossible.insert(tid))
    }
}

fn naming_fields(kind: &EventType) -> NamingFields {
    let of_kind = NAMING_FIELDS.iter().filter(|(event, ..)| *event == kind.name);
    let names = of_kind.filter_map(|(_, id, name)| Some((kind.field(id)?, kind.field(name)?))).collect();
    let new_thread = (kind.name == TASK_NEWTASK).then(|| kind.field("pid").zip(kind.field("clone_flags")));
    NamingFields { names, new_thread: new_thread.flatten() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{EventTypeId, Field, FieldType, Payload, Value};
    use crate::ids::Cpu;

    /// The threads that the sink has received: id, process, name.
    #[derive(Default)]
    struct Told(Vec<(i32, Option<i32>, Option<String>)>);

    impl Sink for Told {
        fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
            Ok(())
        }

        fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
            let name = thread.name.map(|name| String::from_utf8_lossy(name).into_owned());
            self.0.push((thread.tid.0, thread.tgid.map(|tgid| tgid.0), name));
            Ok(())
        }
    }

    fn kind(name: &str, fields: [(&str, FieldType); 3]) -> EventType {
        let field = |(name, ty): (&str, FieldType)| Field {
            name: name.to_owned(),
            ctype: String::new(),
            ty,
            offset: 0,
            size: 0,
        };
        let fields = fields.into_iter().map(field).collect();
        EventType { system: "task".into(), name: name.into(), fields, print_fmt: None }
    }

    /// A part of a recording: threads with names, processes of threads, and what its events tell.
    struct Recorded {
        names: EventNames,
        types: [EventType; 2],
        told: Told,
    }

    impl Recorded {
        fn new(tgids: &[(i32, i32)]) -> Recorded {
            let int = FieldType::Int;
            let text = FieldType::TailStr;
            let tgids = tgids.iter().map(|(tid, tgid)| (Tid(*tid), Pid(*tgid)));
            Recorded {
                names: EventNames::new([].into_iter(), tgids.collect()),
                types: [
                    kind(TASK_NEWTASK, [("pid", int), ("comm", text), ("clone_flags", int)]),
                    kind(TASK_RENAME, [("pid", int), ("newcomm", text), ("oom_score_adj", int)]),
                ],
                told: Told::default(),
            }
        }

        fn event(&mut self, number: u32, ts: Timestamp, tid: Tid, values: [Value<'_>; 3]) {
            let event = Event {
                ts,
                cpu: Cpu(0),
                tid,
                kind: EventTypeId(number),
                flags: 0,
                preempt_count: 0,
                comm: None,
                tgid: None,
                payload: Payload::Values { values: &values, text: None },
            };
            self.names.learn(&event, &self.types, &mut self.told).unwrap();
        }

        fn makes(&mut self, maker: Tid, made: i64, flags: i64) {
            self.event(0, Timestamp(1), maker, [Value::Int(made), Value::Str(b"worker"), Value::Int(flags)]);
        }

        fn is_renamed(&mut self, ts: Timestamp, name: &[u8]) {
            self.event(1, ts, Tid(9), [Value::Int(9), Value::Str(name), Value::Int(0)]);
        }
    }

    /// The threads that the sink is told of when thread `maker` makes thread 9, in a file with these
    /// processes.
    fn told(maker: Tid, flags: i64, tgids: &[(i32, i32)]) -> Vec<(i32, Option<i32>, Option<String>)> {
        let mut recorded = Recorded::new(tgids);
        recorded.makes(maker, 9, flags);
        recorded.told.0
    }

    #[test]
    fn a_new_thread_has_the_process_of_its_maker_and_a_new_process_its_own() {
        let named = (9, None, Some("worker".to_owned()));
        assert_eq!(told(Tid(7), 0x3d_0f00, &[(7, 5)]), [(9, Some(5), None), named.clone()]);
        assert_eq!(told(Tid(7), 0x120_0011, &[(7, 5)]), [(9, Some(9), None), named.clone()]);
        // The file's table has an earlier thread of this id.
        assert_eq!(told(Tid(7), 0x3d_0f00, &[(7, 5), (9, 9)]), [(9, Some(5), None), named.clone()]);
        assert_eq!(told(Tid(7), 0x3d_0f00, &[(7, 5), (9, 5)]), std::slice::from_ref(&named));
        // The process of the maker is not known, and the file has no processes at all.
        assert_eq!(told(Tid(8), 0x3d_0f00, &[(7, 5)]), std::slice::from_ref(&named));
        assert_eq!(told(Tid(7), 0x120_0011, &[]), [named]);
    }

    #[test]
    fn a_thread_has_its_last_name_in_whatever_order_its_names_come() {
        // Started on one CPU and named on another, which is read first.
        let mut recorded = Recorded::new(&[]);
        recorded.is_renamed(Timestamp(70), b"com.example");
        recorded.is_renamed(Timestamp(60), b"exe");
        recorded.makes(Tid(7), 9, 0);
        assert_eq!(recorded.told.0, [(9, None, Some("com.example".to_owned()))]);
        recorded.is_renamed(Timestamp(80), b"com.other");
        assert_eq!(recorded.told.0.last().unwrap().2.as_deref(), Some("com.other"));
    }

    #[test]
    fn a_thread_whose_maker_is_told_of_later_has_its_makers_process() {
        let thread = 0x3d_0f00;
        let mut recorded = Recorded::new(&[(1, 1)]);
        recorded.makes(Tid(21), 22, thread);
        recorded.makes(Tid(20), 21, thread);
        recorded.makes(Tid(30), 31, thread);
        recorded.makes(Tid(1), 20, 0x120_0011);
        let processes = recorded.told.0.iter().filter_map(|(tid, tgid, _)| Some((*tid, (*tgid)?)));
        assert_eq!(processes.collect::<Vec<_>>(), [(20, 20), (21, 20), (22, 20)]);
        assert_eq!(recorded.names.made.len(), 1, "nothing tells who made thread 30");
        assert_eq!(recorded.names.note(), None);
    }

    #[test]
    fn threads_that_are_too_many_to_wait_are_told_of() {
        let mut recorded = Recorded::new(&[(1, 1)]);
        for made in 0..MAX_WAITING as i64 + 3 {
            recorded.makes(Tid(500), 600 + made, 0x3d_0f00);
        }
        let note = recorded.names.note().unwrap();
        assert!(note.starts_with("the processes of 3 new threads are not looked for"), "{note}");
    }

    #[test]
    fn an_id_is_missing_once_whatever_its_size() {
        let ids = [0, 1, 63, 64, 32_768, 4_194_303, 4_194_304, i32::MAX, -1, i32::MIN];
        for tid in ids.map(Tid) {
            let mut names = EventNames::new([Tid(2)].into_iter(), HashMap::new()).named;
            assert!(names.add(tid), "{tid}");
            assert!(!names.add(tid), "{tid}");
            assert!(!names.add(Tid(2)));
        }
    }
}
