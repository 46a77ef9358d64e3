//! Pushes the events of a trace.dat to a sink: all CPUs together by time, or one CPU after the other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::sync::Arc;

use super::cpu_data::{Compression, CpuRecordCursor, DecompressPool};
use super::event_names::EventNames;
use super::header::TraceDat;
use super::page_position::CpuRecords;
use crate::clock::Timestamp;
use crate::formats::{
    CpuCount, Damage, Event, EventType, EventTypeId, Losses, Order, Payload, ReadReport, Sink, ThreadInfo,
};
use crate::ftrace::{CommonFields, Endian, EventFormat, FieldSlot, LostEvents};
use crate::ids::{Cpu, Pid, Tid};
use crate::trace_dat::{RingsInfo, no_event_of};

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
    pub(super) fn read_head<S: Sink + ?Sized>(&self, sink: &mut S) -> io::Result<()> {
        sink.head(&self.head())?;
        sink.kernel(&Arc::new(self.symbolizer()))?;
        self.read_threads(sink)
    }

    /// Pushes the names and processes of the threads.
    pub(super) fn read_threads<S: Sink + ?Sized>(&self, sink: &mut S) -> io::Result<()> {
        let mut tgids: BTreeMap<Tid, Pid> = self.tgids().collect();
        for (tid, name) in lines_by_tid(&self.cmdlines) {
            sink.thread(&ThreadInfo { tid, tgid: tgids.remove(&tid), name: Some(name) })?;
        }
        for (tid, tgid) in tgids {
            sink.thread(&ThreadInfo { tid, tgid: Some(tgid), name: None })?;
        }
        Ok(())
    }

    /// The threads whose processes are in the head, each with its process.
    fn tgids(&self) -> impl Iterator<Item = (Tid, Pid)> {
        let lines = lines_by_tid(&self.options.tgids);
        lines.filter_map(|(tid, rest)| Some((tid, std::str::from_utf8(rest).ok()?.trim().parse().ok()?)))
    }

    fn read_events<'s, S: Sink + ?Sized>(
        &'s self,
        pool: &DecompressPool<'s>,
        order: Order,
        sink: &mut S,
    ) -> io::Result<ReadReport> {
        let cursor = |range| CpuRecordCursor::new(self.file, self.layout, range, self.release, pool.clone());
        let mut cursors: Vec<CpuRecordCursor<'s>> = self.cpu_data.iter().map(cursor).collect();
        let mut state = ReadState::new(self);
        let mut push = EventPush { dat: self, state: &mut state, sink };
        for cursor in &cursors {
            push.state.report.cpus.entry(cursor.cpu).or_default();
        }
        match order {
            Order::Time | Order::Markers => {
                // Records of equal times are in the order of their CPUs, then of their instances in the file.
                let mut heap = BinaryHeap::new();
                for (i, cursor) in cursors.iter_mut().enumerate() {
                    if cursor.advance() {
                        heap.push(Reverse((cursor.ts(), cursor.cpu, i)));
                    }
                }
                push.by_time(&mut cursors, &mut heap, Timestamp::MAX, order == Order::Markers)?;
                cursors.into_iter().for_each(|cursor| push.end_of(cursor));
            }
            Order::Any => {
                for mut cursor in cursors {
                    if cursor.advance() {
                        push.push_until(&mut cursor, Timestamp::MAX, false)?;
                    }
                    push.end_of(cursor);
                }
            }
        }
        Ok(state.finish(self))
    }
}

/// The next record of each CPU that has one: its time in the clock of the pages, its CPU, and the number of
/// its [`CpuRecords`].
pub(super) type NextRecords = BinaryHeap<Reverse<(Timestamp, Cpu, usize)>>;

/// The knowledge that grows while the events of a trace.dat are read.
pub(super) struct ReadState {
    types: EventTypes,
    names: EventNames,
    pub report: ReadReport,
}

impl ReadState {
    pub fn new(dat: &TraceDat<'_>) -> ReadState {
        ReadState {
            types: EventTypes::new(dat),
            names: EventNames::new(lines_by_tid(&dat.cmdlines).map(|(tid, _)| tid), dat.tgids().collect()),
            report: ReadReport::default(),
        }
    }
}

/// Pushes events of several CPUs to one sink.
pub(super) struct EventPush<'d, 'a, 's, S: Sink + ?Sized> {
    pub dat: &'d TraceDat<'a>,
    pub state: &'s mut ReadState,
    pub sink: &'s mut S,
}

impl<S: Sink + ?Sized> EventPush<'_, '_, '_, S> {
    /// Pushes the records of all CPUs up to the time `until` of the pages' clock, in the order of time.
    /// Those behind it stay.
    pub fn by_time<C: CpuRecords>(
        &mut self,
        cursors: &mut [C],
        heap: &mut NextRecords,
        until: Timestamp,
        is_order_of_markers: bool,
    ) -> io::Result<()> {
        while let Some(Reverse((ts, cpu, i))) = heap.pop() {
            if ts > until {
                heap.push(Reverse((ts, cpu, i)));
                break;
            }
            // One CPU often has several records before the next record of any other CPU. They are pushed
            // together.
            let limit = match heap.peek() {
                Some(Reverse((ts, other, j))) if (*other, *j) < (cpu, i) => ts.saturating_sub(1),
                Some(Reverse((ts, ..))) => *ts,
                None => Timestamp::MAX,
            };
            let cursor = &mut cursors[i];
            if self.push_until(cursor, limit.min(until), is_order_of_markers)? {
                heap.push(Reverse((cursor.ts(), cpu, i)));
            }
        }
        Ok(())
    }

    /// Pushes the cursor's current record and those after it up to `limit`, a time of the pages' clock; where
    /// markers alone are to be in order, up to the first marker behind it. Returns whether the CPU has more
    /// records.
    fn push_until<C: CpuRecords>(
        &mut self,
        cursor: &mut C,
        limit: Timestamp,
        is_order_of_markers: bool,
    ) -> io::Result<bool> {
        let EventPush { dat, state, sink } = self;
        let ReadState { types, names, report } = &mut **state;
        let cpu = cursor.cpu();
        let mut count = CpuCount::default();
        let first = dat.options.time.apply(cursor.ts());
        report.first_ts = Some(report.first_ts.map_or(first, |t| t.min(first)));
        let mut last = first;
        let endian = dat.layout.endian;
        let more = loop {
            if let Some(lost) = cursor.take_lost() {
                let lost = if let LostEvents::Count(n) = lost { Some(n) } else { None };
                count.add_loss(lost);
                sink.lost(cpu, lost)?;
            }
            let record = cursor.record();
            if let Some(common) = types.common(record) {
                let id = types.resolve(dat, common.id, &mut **sink)?;
                last = dat.options.time.apply(cursor.ts());
                let event = Event {
                    ts: last,
                    cpu,
                    tid: common.tid,
                    kind: id,
                    flags: common.flags.into(),
                    preempt_count: common.preempt_count,
                    comm: None,
                    tgid: None,
                    payload: Payload::Raw { data: record, endian },
                };
                names.learn(&event, &types.types, &mut **sink)?;
                sink.event(&event, &types.types[id.0 as usize])?;
                count.events += 1;
            }
            if !cursor.advance() {
                break false;
            }
            if cursor.ts() > limit && !(is_order_of_markers && types.is_no_marker(cursor.record())) {
                break true;
            }
        };
        report.last_ts = report.last_ts.max(Some(last));
        let sum = report.cpus.entry(cpu).or_default();
        sum.events += count.events;
        sum.lost = sum.lost.saturating_add(count.lost);
        sum.gaps += count.gaps;
        Ok(more)
    }

    /// Adds the damage of a CPU that is read to its end to the report.
    fn end_of(&mut self, cursor: CpuRecordCursor<'_>) {
        let unlisted = cursor.unlisted_damage();
        let report = &mut self.state.report;
        report.damage.extend(cursor.damage);
        if unlisted > 0 {
            let offset = report.damage.last().map_or(0, |d| d.offset);
            let what = format!("CPU {}: {unlisted} more damaged places", cursor.cpu);
            report.damage.push(Damage { offset, what });
        }
    }
}

impl ReadState {
    /// Forgets threads where too many are known.
    pub fn forget(&mut self) {
        self.names.forget();
    }

    /// The report of a file that is read to its end.
    fn finish(self, dat: &TraceDat<'_>) -> ReadReport {
        let mut report = self.report;
        for stat in &dat.options.stats {
            // The kernel's own count includes the losses that the pages state and losses after the last page.
            if let Some(count) = report.cpus.get_mut(&stat.cpu) {
                count.lost = count.lost.max(stat.lost);
            }
        }
        if dat.options.recorder_info.excerpt {
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
        for recorded in &dat.options.recorder_info.recorded {
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
        if let Some(rings) = &dat.options.recorder_info.rings {
            read_rings(rings, &mut report);
        }
        if dat.options.is_unfinished {
            let what = "the recorder was killed, or is still recording: the file has only the events that were \
                        written to it until then";
            report.damage.push(Damage { offset: 0, what: what.into() });
        }
        report.damage.splice(0..0, dat.damage.iter().cloned());
        let unknown = self.types.damage;
        if dat.options.recorder_info.restricted {
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
        report.notes.extend(self.names.note());
        report.notes.extend(no_event_of(&dat.options.recorder_info.without_events));
        if let Some(losses) = &dat.options.recorder_info.losses {
            report.losses.extend(Losses::from_json(losses.to_string().as_bytes()));
        }
        report.notes.extend(dat.notes.iter().cloned());
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

/// The lines of `text` that are a thread's id, a space and a text.
fn lines_by_tid(text: &[u8]) -> impl Iterator<Item = (Tid, &[u8])> {
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
    tid: Tid,
}

/// The event types that have occurred so far while the file is read once.
struct EventTypes {
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

impl EventTypes {
    fn new(dat: &TraceDat<'_>) -> EventTypes {
        let first = dat
            .formats
            .first()
            .and_then(|(system, text)| EventFormat::parse(system, &String::from_utf8_lossy(text)).ok());
        let common = first.map_or(USUAL_COMMON_FIELDS, |f| f.common);
        let endian = dat.layout.endian;
        EventTypes {
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
                    tid: Tid(i32::from_le_bytes(tid)),
                },
                Endian::Big => CommonValues {
                    id: u16::from_be_bytes(id),
                    flags: head[2],
                    preempt_count: head[3],
                    tid: Tid(i32::from_be_bytes(tid)),
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
            tid: Tid(at(self.common.pid).unwrap_or(0) as i32),
        })
    }

    /// The event type of an event id. At the type's first event the type is pushed to `sink`.
    #[inline]
    fn resolve<S: Sink + ?Sized>(
        &mut self,
        dat: &TraceDat<'_>,
        id: u16,
        sink: &mut S,
    ) -> io::Result<EventTypeId> {
        match self.index[usize::from(id)] {
            0 => self.add(dat, id, sink),
            number => Ok(EventTypeId(number - 1)),
        }
    }

    /// Whether a record is of a type that has been met, and that is none of markers.
    fn is_no_marker(&self, record: &[u8]) -> bool {
        let number = self.common(record).map_or(0, |common| self.index[usize::from(common.id)]);
        number.checked_sub(1).is_some_and(|at| !self.are_markers[at as usize])
    }

    #[cold]
    fn add<S: Sink + ?Sized>(
        &mut self,
        dat: &TraceDat<'_>,
        id: u16,
        sink: &mut S,
    ) -> io::Result<EventTypeId> {
        let parsed = dat.by_id.get(&id).and_then(|at| {
            let (system, text) = dat.formats.get(*at)?;
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
