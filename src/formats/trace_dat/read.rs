//! Pushes the events of a trace.dat to a sink: all CPUs together by time, or one CPU after the other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::io;
use std::sync::Arc;

use super::cpu_data::{Compression, CpuRecordCursor, DecompressPool};
use super::header::TraceDat;
use crate::formats::{
    CLONE_THREAD, CpuCount, Damage, Event, EventType, EventTypeId, Order, Payload, ReadReport, Sink,
    ThreadIds, ThreadInfo,
};
use crate::ftrace::{CommonFields, Endian, EventFormat, FieldSlot, LostEvents};
use crate::trace_dat::RingsInfo;

/// The number of event ids without a format that are reported one by one. If there are more, only their
/// number is reported.
const MAX_UNKNOWN_ID_LINES: usize = 8;

impl TraceDat<'_> {
    /// Pushes the head, the threads and all events to `sink`. The report lists the faults of the file.
    ///
    /// # Errors
    /// Returns the errors of the sink.
    pub fn read<S: Sink + ?Sized>(&self, order: Order, sink: &mut S) -> io::Result<ReadReport> {
        self.read_head(sink)?;
        let compressed = self.cpu_data.iter().any(|range| range.compression != Compression::None);
        std::thread::scope(|scope| {
            let pool = if compressed { DecompressPool::new(scope) } else { DecompressPool::default() };
            self.read_events(&pool, order, sink)
        })
    }

    /// Pushes the head, and the names and processes of the threads.
    ///
    /// # Errors
    /// Returns the errors of the sink.
    fn read_head<S: Sink + ?Sized>(&self, sink: &mut S) -> io::Result<()> {
        sink.head(&self.head())?;
        sink.kernel(&Arc::new(self.symbolizer()))?;
        let mut tgids: BTreeMap<i32, i32> = self.tgids().collect();
        for (tid, name) in numbered_lines(&self.cmdlines) {
            sink.thread(&ThreadInfo { tid, tgid: tgids.remove(&tid), name: Some(name) })?;
        }
        for (tid, tgid) in tgids {
            sink.thread(&ThreadInfo { tid, tgid: Some(tgid), name: None })?;
        }
        Ok(())
    }

    /// The threads whose processes are in the head, each with its process.
    fn tgids(&self) -> impl Iterator<Item = (i32, i32)> {
        let lines = numbered_lines(&self.options.tgids);
        lines.filter_map(|(tid, rest)| Some((tid, std::str::from_utf8(rest).ok()?.trim().parse().ok()?)))
    }

    fn read_events<'s, S: Sink + ?Sized>(
        &'s self,
        pool: &DecompressPool<'s>,
        order: Order,
        sink: &mut S,
    ) -> io::Result<ReadReport> {
        let cursor = |range| CpuRecordCursor::new(self.file, self.layout, range, self.release, pool.clone());
        let cursors: Vec<CpuRecordCursor<'s>> = self.cpu_data.iter().map(cursor).collect();
        let mut push = EventPush {
            dat: self,
            types: EventTypes::new(self),
            names: EventNames::new(
                numbered_lines(&self.cmdlines).map(|(tid, _)| tid),
                self.tgids().collect(),
            ),
            report: ReadReport::default(),
            sink,
        };
        for cursor in &cursors {
            push.report.cpus.entry(cursor.cpu).or_default();
        }
        match order {
            Order::Time | Order::Markers => push.by_time(cursors, order == Order::Markers)?,
            Order::Any => {
                for mut cursor in cursors {
                    if cursor.advance() {
                        push.push_until(&mut cursor, u64::MAX, false)?;
                    }
                    push.end_of(cursor);
                }
            }
        }
        Ok(push.finish())
    }
}

/// Pushes events of several CPUs to one sink.
struct EventPush<'d, 'a, 's, S: Sink + ?Sized> {
    dat: &'d TraceDat<'a>,
    types: EventTypes<'d, 'a>,
    names: EventNames,
    report: ReadReport,
    sink: &'s mut S,
}

impl<S: Sink + ?Sized> EventPush<'_, '_, '_, S> {
    fn by_time(
        &mut self,
        mut cursors: Vec<CpuRecordCursor<'_>>,
        is_order_of_markers: bool,
    ) -> io::Result<()> {
        // Records of equal times are in the order of their CPUs, then of their instances in the file.
        let mut heap = BinaryHeap::new();
        for (i, cursor) in cursors.iter_mut().enumerate() {
            if cursor.advance() {
                heap.push(Reverse((cursor.span.ts, cursor.cpu, i)));
            }
        }
        while let Some(Reverse((_, cpu, i))) = heap.pop() {
            // One CPU often has several records before the next record of any other CPU. They are pushed
            // together.
            let limit = match heap.peek() {
                Some(Reverse((ts, other, j))) if (*other, *j) < (cpu, i) => ts.saturating_sub(1),
                Some(Reverse((ts, ..))) => *ts,
                None => u64::MAX,
            };
            let cursor = &mut cursors[i];
            if self.push_until(cursor, limit, is_order_of_markers)? {
                heap.push(Reverse((cursor.span.ts, cpu, i)));
            }
        }
        for cursor in cursors {
            self.end_of(cursor);
        }
        Ok(())
    }

    /// Pushes the cursor's current record and those after it up to `limit`, ns of the page's clock; where
    /// markers alone are to be in order, up to the first marker behind it. Returns whether the CPU has more
    /// records.
    fn push_until(
        &mut self,
        cursor: &mut CpuRecordCursor<'_>,
        limit: u64,
        is_order_of_markers: bool,
    ) -> io::Result<bool> {
        let mut count = CpuCount::default();
        let first = self.dat.options.time.apply(cursor.span.ts);
        self.report.first_ts = Some(self.report.first_ts.map_or(first, |t| t.min(first)));
        let mut last = first;
        let endian = self.dat.layout.endian;
        let more = loop {
            if let Some(lost) = cursor.lost.take() {
                let lost = if let LostEvents::Count(n) = lost { Some(n) } else { None };
                count.add_loss(lost);
                self.sink.lost(cursor.cpu, lost)?;
            }
            let record = cursor.record();
            if let Some(common) = self.types.common(record) {
                let id = self.types.resolve(common.id, self.sink)?;
                last = self.dat.options.time.apply(cursor.span.ts);
                let event = Event {
                    ts: last,
                    cpu: cursor.cpu,
                    tid: common.tid,
                    kind: id,
                    flags: common.flags.into(),
                    preempt_count: common.preempt_count,
                    comm: None,
                    tgid: None,
                    payload: Payload::Raw { data: record, endian },
                };
                self.names.learn(&event, &self.types.types, self.sink)?;
                self.sink.event(&event, &self.types.types[id.0 as usize])?;
                count.events += 1;
            }
            if !cursor.advance() {
                break false;
            }
            if cursor.span.ts > limit && !(is_order_of_markers && self.types.is_no_marker(cursor.record())) {
                break true;
            }
        };
        self.report.last_ts = self.report.last_ts.max(Some(last));
        let sum = self.report.cpus.entry(cursor.cpu).or_default();
        sum.events += count.events;
        sum.lost = sum.lost.saturating_add(count.lost);
        sum.gaps += count.gaps;
        Ok(more)
    }

    /// Adds the damage of a CPU that is read to its end to the report.
    fn end_of(&mut self, cursor: CpuRecordCursor<'_>) {
        let unlisted = cursor.unlisted_damage();
        self.report.damage.extend(cursor.damage);
        if unlisted > 0 {
            let offset = self.report.damage.last().map_or(0, |d| d.offset);
            let what = format!("CPU {}: {unlisted} more damaged places", cursor.cpu);
            self.report.damage.push(Damage { offset, what });
        }
    }

    fn finish(self) -> ReadReport {
        let mut report = self.report;
        for stat in &self.dat.options.stats {
            // The kernel's own count includes the losses that the pages state and losses after the last page.
            if let Some(count) = report.cpus.get_mut(&stat.cpu) {
                count.lost = count.lost.max(stat.lost);
            }
        }
        if self.dat.options.recorder_info.excerpt {
            let left_out = report.lost();
            for count in report.cpus.values_mut() {
                count.lost = 0;
                count.gaps = 0;
            }
            if left_out > 0 {
                report.notes.push(format!(
                    "{left_out} events had no room in the buffer, which was to keep only the last or the first events"
                ));
            }
        }
        for recorded in &self.dat.options.recorder_info.recorded {
            let Some(count) = report.cpus.get_mut(&recorded.cpu) else { continue };
            if recorded.events > count.events {
                let what = format!(
                    "CPU {}: the recorder wrote {} events, and the file has {}",
                    recorded.cpu, recorded.events, count.events
                );
                report.damage.push(Damage { offset: 0, what });
            }
            if recorded.taken > 0 {
                count.lost = count.lost.saturating_add(recorded.taken);
                report.notes.push(format!(
                    "CPU {}: another program read {} events out of the buffer while this recording ran",
                    recorded.cpu, recorded.taken
                ));
            }
        }
        if let Some(rings) = &self.dat.options.recorder_info.rings {
            read_rings(rings, &mut report);
        }
        if self.dat.options.is_unfinished {
            let what = "the recorder was killed, or is still recording: the file has only the events that were \
                        written to it until then";
            report.damage.push(Damage { offset: 0, what: what.into() });
        }
        report.damage.splice(0..0, self.dat.damage.iter().cloned());
        let unknown = self.types.damage;
        if self.dat.options.recorder_info.restricted {
            // The recorder's user could neither see nor switch off what another user had switched on.
            let names = unknown.iter().filter_map(|line| line.split(':').next());
            report.notes.extend(names.map(|events| {
                format!(
                    "{events}: another user had switched them on, and the recorder's user may not read it"
                )
            }));
        } else if unknown.len() > MAX_UNKNOWN_ID_LINES {
            let what = format!("events of {} ids have no format", unknown.len());
            report.damage.push(Damage { offset: 0, what });
        } else {
            report.damage.extend(unknown.into_iter().map(|what| Damage { offset: 0, what }));
        }
        report.notes.extend(self.dat.notes.iter().cloned());
        report
    }
}

/// Adds the recorder's knowledge of the rings of programs to the report.
fn read_rings(rings: &RingsInfo, report: &mut ReadReport) {
    let RingsInfo { cpu, markers, dropped, given_up, programs } = rings;
    if *markers > 0 {
        report.notes.push(format!(
            "CPU {cpu} is none: it has the {markers} markers that programs wrote into rings in their memory"
        ));
    }
    if *dropped > 0 {
        let count = report.cpus.entry(*cpu).or_default();
        count.lost = count.lost.max(*dropped);
        let lossy = programs.iter().filter(|program| program.dropped > 0);
        let pids: Vec<String> = lossy.map(|program| program.pid.to_string()).collect();
        let of = if pids.is_empty() { String::new() } else { format!(" (processes {})", pids.join(", ")) };
        report.notes.push(format!("{dropped} markers were dropped by programs whose rings were full{of}"));
    }
    let events = report.cpus.get(cpu).map_or(0, |count| count.events);
    if *markers > events {
        let what = format!("the recorder wrote {markers} markers of rings, and the file has {events}");
        report.damage.push(Damage { offset: 0, what });
    }
    if *given_up > 0 {
        let what =
            format!("{given_up} parts of rings of programs were given up: their contents did not add up");
        report.damage.push(Damage { offset: 0, what });
    }
}

/// The lines of `text` that are a number, a space and a text.
fn numbered_lines(text: &[u8]) -> impl Iterator<Item = (i32, &[u8])> {
    text.split(|b| *b == b'\n' || *b == 0).filter_map(|line| {
        let line = line.trim_ascii();
        let space = line.iter().position(|b| *b == b' ')?;
        let number = std::str::from_utf8(&line[..space]).ok()?.parse().ok()?;
        Some((number, &line[space + 1..]))
    })
}

/// The values of a record's `common_` fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct CommonValues {
    id: u16,
    flags: u8,
    preempt_count: u8,
    tid: i32,
}

/// The event types that have occurred so far while the file is read once.
struct EventTypes<'d, 'a> {
    dat: &'d TraceDat<'a>,
    common: CommonFields,
    endian: Endian,
    /// By event id: the index into `types` plus one, or 0 before the first event.
    index: Vec<u32>,
    types: Vec<EventType>,
    /// By event type: whether its events are markers.
    are_markers: Vec<bool>,
    /// A line for each event id that has no usable format.
    damage: Vec<String>,
}

/// The places of the `common_` fields in every kernel since 2.6.31.
const USUAL_COMMON_FIELDS: CommonFields = CommonFields {
    id: FieldSlot { offset: 0, size: 2 },
    flags: FieldSlot { offset: 2, size: 1 },
    preempt_count: FieldSlot { offset: 3, size: 1 },
    pid: FieldSlot { offset: 4, size: 4 },
};

impl<'d, 'a> EventTypes<'d, 'a> {
    fn new(dat: &'d TraceDat<'a>) -> EventTypes<'d, 'a> {
        let first = dat
            .formats
            .first()
            .and_then(|(system, text)| EventFormat::parse(system, &String::from_utf8_lossy(text)).ok());
        let common = first.map_or(USUAL_COMMON_FIELDS, |f| f.common);
        let endian = dat.layout.endian;
        EventTypes {
            dat,
            common,
            endian,
            index: vec![0; 1 << 16],
            types: Vec::new(),
            are_markers: Vec::new(),
            damage: Vec::new(),
        }
    }

    /// The values of a record's `common_` fields. `None` for a record that is too short.
    #[inline]
    fn common(&self, record: &[u8]) -> Option<CommonValues> {
        if self.common == USUAL_COMMON_FIELDS {
            let head: &[u8; 8] = record.first_chunk()?;
            let id = [head[0], head[1]];
            let tid = [head[4], head[5], head[6], head[7]];
            return Some(match self.endian {
                Endian::Little => CommonValues {
                    id: u16::from_le_bytes(id),
                    flags: head[2],
                    preempt_count: head[3],
                    tid: i32::from_le_bytes(tid),
                },
                Endian::Big => CommonValues {
                    id: u16::from_be_bytes(id),
                    flags: head[2],
                    preempt_count: head[3],
                    tid: i32::from_be_bytes(tid),
                },
            });
        }
        let at = |slot: FieldSlot| {
            let start = slot.offset as usize;
            self.endian.uint(record.get(start..start.checked_add(slot.size as usize)?)?)
        };
        Some(CommonValues {
            id: at(self.common.id)? as u16,
            flags: at(self.common.flags).unwrap_or(0) as u8,
            preempt_count: at(self.common.preempt_count).unwrap_or(0) as u8,
            tid: at(self.common.pid).unwrap_or(0) as i32,
        })
    }

    /// The event type of an event id. At the type's first event the type is pushed to `sink`.
    #[inline]
    fn resolve<S: Sink + ?Sized>(&mut self, id: u16, sink: &mut S) -> io::Result<EventTypeId> {
        match self.index[usize::from(id)] {
            0 => self.add(id, sink),
            number => Ok(EventTypeId(number - 1)),
        }
    }

    /// Whether a record is of a type that has been met, and that is none of markers.
    fn is_no_marker(&self, record: &[u8]) -> bool {
        let number = self.common(record).map_or(0, |common| self.index[usize::from(common.id)]);
        number.checked_sub(1).is_some_and(|at| !self.are_markers[at as usize])
    }

    #[cold]
    fn add<S: Sink + ?Sized>(&mut self, id: u16, sink: &mut S) -> io::Result<EventTypeId> {
        let parsed = self.dat.by_id.get(&id).and_then(|at| {
            let (system, text) = self.dat.formats.get(*at)?;
            EventFormat::parse(system, &String::from_utf8_lossy(text)).ok()
        });
        let kind = match parsed {
            Some(format) => format.kind,
            None => {
                self.damage.push(format!("events of id {id} have no format: their fields cannot be read"));
                let name = format!("unknown_event_{id}");
                EventType { system: String::new(), name, fields: Vec::new(), print_fmt: None }
            }
        };
        let new = EventTypeId(self.types.len() as u32);
        sink.event_type(new, &kind)?;
        self.are_markers.push(kind.name == "print");
        self.types.push(kind);
        self.index[usize::from(id)] = self.types.len() as u32;
        Ok(new)
    }
}

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

/// The threads that have a name, the processes of threads, and the fields of each event type that hold names.
///
/// The file's own list lacks threads that ended before the recording did: the kernel keeps the names of some
/// hundred threads (`saved_cmdlines_size`), and a recorder on a locked phone may not read its list at all. So
/// threads are named by the events that hold names, too.
#[derive(Debug, Default)]
struct EventNames {
    named: NamedThreads,
    /// The process of each thread that the file or an event names. Empty where the file's own list is: then
    /// its text has no processes either, and events add none.
    tgids: HashMap<i32, i32>,
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
    fn new(named: impl Iterator<Item = i32>, tgids: HashMap<i32, i32>) -> EventNames {
        let mut threads = NamedThreads::default();
        for tid in named {
            threads.add(tid);
        }
        EventNames { named: threads, tgids, fields: Vec::new() }
    }

    /// Pushes the names that an event holds, of threads that have none yet, and the process of a new thread.
    /// `types` has the types of all events so far.
    #[inline]
    fn learn<S: Sink + ?Sized>(
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
            if tid <= 0 || (!self.named.add(tid) && kind.name != TASK_RENAME) {
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

/// The threads that have a name.
#[derive(Debug, Default)]
struct NamedThreads {
    ids: ThreadIds,
    /// Numbers that no thread can have: only a damaged file names them.
    impossible: HashSet<i32>,
}

impl NamedThreads {
    /// Adds a thread. Returns whether it had no name before.
    fn add(&mut self, tid: i32) -> bool {
        let added = u64::try_from(tid).ok().and_then(|tid| self.ids.insert(tid));
        added.unwrap_or_else(|| self.impossible.insert(tid))
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
    use crate::formats::{Field, FieldType, Value};

    /// The threads that the sink has received: id, process, name.
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

    /// The threads that the sink is told of when thread `maker` makes thread 9, in a file with these
    /// processes.
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
            let mut names = EventNames::new([2].into_iter(), HashMap::new()).named;
            assert!(names.add(tid), "{tid}");
            assert!(!names.add(tid), "{tid}");
            assert!(!names.add(2));
        }
    }
}
