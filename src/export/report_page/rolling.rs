//! Takes the tracks of a recording that goes on out of their collector, batch by batch. docs/live-format.md
//! defines what a batch holds.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::collector::{PageCollector, StringTable};
use super::columns::{Base, ColumnName, SpanColumns, SpanItem, StateItem, encoding};
use super::page_trace::push_frame;
use super::tracks::{FrameTimes, Lanes, Owner, PageTrack, TrackColumns, TrackRole};
use crate::clock::Timestamp;
use crate::ids::{Cpu, Pid, Tid};
use crate::measure::Frame;
use crate::tracks::{OpenTimes, Span, Tasks, ThreadState};
use crate::varint;

/// The most open slices of a track: an app that begins slices and never ends them would have ever more.
const MAX_OPEN_OF_TRACK: usize = 500;
/// The most tracks that a batch holds for nothing but slices that are open.
const MAX_QUIET_TRACKS: usize = 2000;
/// The number of a track is the sum of its properties, in so many bits: JavaScript's numbers hold them.
const KEY_BITS: u32 = 52;

/// The times of a batch, in the recording's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RolledTimes {
    /// The session's start, from which the times of a batch count.
    pub start: Timestamp,
    /// The end of the batch.
    pub to: Timestamp,
    /// Whether the recording ends with it: nothing stays open.
    pub is_last: bool,
}

/// The tracks that have been taken out.
#[derive(Serialize)]
pub(crate) struct RolledBatch {
    strings: StringTable,
    processes: Vec<RolledProcess>,
    threads: Vec<RolledThread>,
    tracks: Vec<RolledTrack>,
    /// The columns of all tracks.
    #[serde(skip)]
    pub columns: Vec<u8>,
    /// Open slices that were given up, because there are too many.
    #[serde(skip)]
    pub given_up: u64,
}

impl RolledBatch {
    /// Whether no track is in it.
    pub fn is_empty(&self) -> bool {
        self.tracks.is_empty()
    }
}

/// A process of a batch.
#[derive(Serialize)]
struct RolledProcess {
    pid: Pid,
    name: String,
}

/// A thread of a batch.
#[derive(Serialize)]
struct RolledThread {
    tid: Tid,
    pid: Option<Pid>,
    name: String,
    main: bool,
}

/// A track of a batch.
#[derive(Serialize)]
struct RolledTrack {
    key: u64,
    kind: &'static str,
    role: &'static str,
    name: String,
    thread: Option<usize>,
    process: Option<usize>,
    cpu: Option<Cpu>,
    unit: &'static str,
    count: usize,
    open: usize,
    depth: usize,
    offset: usize,
    columns: Vec<ColumnName>,
}

/// The processes and threads of a batch, as they are met.
struct BatchPeople<'a> {
    tasks: &'a Tasks,
    processes: Vec<RolledProcess>,
    threads: Vec<RolledThread>,
    process_index: HashMap<Pid, usize>,
    thread_index: HashMap<Tid, usize>,
}

impl BatchPeople<'_> {
    fn process(&mut self, pid: Pid) -> usize {
        let next = self.processes.len();
        let at = *self.process_index.entry(pid).or_insert(next);
        if at == next {
            self.processes.push(RolledProcess { pid, name: self.tasks.process_name(pid).into_owned() });
        }
        at
    }

    fn thread(&mut self, tid: Tid) -> usize {
        let next = self.threads.len();
        let at = *self.thread_index.entry(tid).or_insert(next);
        if at == next {
            let pid = self.tasks.threads.tgid(tid);
            let name = match tid {
                Tid::IDLE => "idle".to_owned(),
                _ => self.tasks.thread_name(tid).into_owned(),
            };
            let main = pid.is_some_and(|pid| tid.is_main_of(pid));
            self.threads.push(RolledThread { tid, pid, name, main });
            pid.map(|pid| self.process(pid));
        }
        at
    }
}

/// The items of a track, and how many of them, the last ones, are open.
struct RolledItems<T> {
    items: Vec<T>,
    open: usize,
}

/// A slice with the measures of a frame, where it is one.
type RolledSlice = (SpanItem, Option<FrameTimes>);

impl PageCollector {
    /// Takes everything out that has ended, and copies what is open. `frames` are the frames that have become
    /// complete.
    pub fn take_batch(&mut self, times: RolledTimes, open: OpenTimes<'_>, frames: &[Frame]) -> RolledBatch {
        for frame in frames {
            let shown = Span { start: frame.begin, end: frame.end, open: false };
            push_frame(frame, shown, &mut self.tracks, &mut self.strings);
        }
        self.arrows = Vec::new();
        self.on_cpu_ns = FxHashMap::default();
        self.ended_threads.clear();
        self.tids = Default::default();
        let mut roll = Roll {
            times,
            open,
            people: BatchPeople {
                tasks: open.tasks,
                processes: Vec::new(),
                threads: Vec::new(),
                process_index: HashMap::new(),
                thread_index: HashMap::new(),
            },
            strings: std::mem::take(&mut self.strings),
            tracks: Vec::new(),
            columns: Vec::new(),
            given_up: 0,
        };
        self.add_open(&mut roll);
        let taken = self.tracks.take();
        let quiet = taken.iter().filter(|(track, _)| track.columns.is_quiet()).count();
        let mut too_many = quiet.saturating_sub(MAX_QUIET_TRACKS);
        let mut kept = Vec::new();
        for (mut track, name) in taken {
            let is_given_up = too_many > 0 && track.columns.is_quiet();
            too_many -= usize::from(is_given_up);
            let left = roll.take_track(&mut track, if is_given_up { 0 } else { MAX_OPEN_OF_TRACK });
            kept.extend(left.map(|columns| (PageTrack { columns, ..track }, name)));
        }
        let texts = roll.strings.texts();
        let mut rename = |label: u32| self.strings.id(texts.get(label as usize).copied().unwrap_or_default());
        for (mut track, name) in kept {
            track.columns.relabel(&mut rename);
            self.tracks.put_back(track, name.as_deref());
        }
        let Roll { people, strings, tracks, columns, given_up, .. } = roll;
        let BatchPeople { processes, threads, .. } = people;
        RolledBatch { strings, processes, threads, tracks, columns, given_up }
    }

    /// Makes the tracks of the threads that run, where nothing else has made them.
    fn add_open(&mut self, roll: &mut Roll<'_>) {
        for (cpu, tid, _) in roll.open.running() {
            self.tracks.running(cpu);
            self.tracks.states(TrackRole::States, Owner::thread(tid), super::tracks::Name::Main);
        }
    }
}

/// A batch as it is made.
struct Roll<'a> {
    times: RolledTimes,
    open: OpenTimes<'a>,
    people: BatchPeople<'a>,
    strings: StringTable,
    tracks: Vec<RolledTrack>,
    columns: Vec<u8>,
    given_up: u64,
}

impl Roll<'_> {
    /// Takes the items of a track. Returns columns of what is open on it, at most `most` slices, where the
    /// track's own columns hold that.
    fn take_track(&mut self, track: &mut PageTrack, most: usize) -> Option<TrackColumns> {
        let role = track.role;
        match &mut track.columns {
            TrackColumns::Slices(spans) if role == TrackRole::Running => {
                let ended = spans.take();
                self.add_running(track, ended);
                None
            }
            TrackColumns::Slices(spans) => {
                let items = spans.take();
                let (items, left) = self.part_open(items, most);
                self.add_slices(track, items);
                left.map(TrackColumns::Slices)
            }
            TrackColumns::Lanes(lanes) => {
                let (items, left) = self.part_lanes(lanes, most);
                self.add_slices(track, items);
                left.map(TrackColumns::Lanes)
            }
            TrackColumns::Frames(frames) => {
                let mut items = frames.take();
                items.sort_by_key(|(item, _)| item.end);
                self.add_slices(track, RolledItems { items, open: 0 });
                None
            }
            TrackColumns::States(states) => {
                let states = states.take();
                self.add_states(track, states);
                None
            }
            TrackColumns::Instants(_) | TrackColumns::Counter(_) | TrackColumns::Losses(_) => {
                self.add_as_it_is(track);
                None
            }
            TrackColumns::Calls(_) | TrackColumns::Causes(_) | TrackColumns::Arrows(_) => None,
        }
    }

    /// Parts the slices of a thread or a CPU into those of the batch and columns with those that are open.
    fn part_open(
        &mut self,
        items: Vec<SpanItem>,
        most: usize,
    ) -> (RolledItems<RolledSlice>, Option<SpanColumns>) {
        let (mut open, mut ended): (Vec<SpanItem>, Vec<SpanItem>) =
            items.into_iter().partition(|item| item.is_open);
        let surplus = open.len().saturating_sub(most);
        self.given_up += surplus as u64;
        // The outermost ones are the oldest ones: their ends have been lost.
        ended.extend(open.drain(..surplus).map(|item| self.given_up(item)));
        let mut left = SpanColumns::default();
        for item in &mut open {
            left.begin(item.start, item.label);
            item.args.into_iter().for_each(|args| left.set_args(args));
            item.end = self.times.to.max(item.start);
        }
        let left = (!open.is_empty()).then_some(left);
        (ordered(ended, open), left)
    }

    fn given_up(&self, item: SpanItem) -> SpanItem {
        SpanItem { end: self.times.to.max(item.start), flags: item.flags | super::columns::NO_END, ..item }
    }

    /// The same for asynchronous slices.
    fn part_lanes(&mut self, lanes: &mut Lanes, most: usize) -> (RolledItems<RolledSlice>, Option<Lanes>) {
        let to = self.times.to;
        let surplus = lanes.give_up(if self.times.is_last { 0 } else { most }, to);
        self.given_up += if self.times.is_last { 0 } else { surplus as u64 };
        let item = |slice: &super::columns::LaneSlice, is_open| SpanItem {
            start: slice.start,
            end: if is_open { to.max(slice.start) } else { slice.end },
            depth: slice.lane,
            label: slice.label,
            flags: if is_open { 0 } else { slice.flags },
            args: None,
            tid: None,
            is_open,
        };
        let ended = lanes.take_ended().iter().map(|slice| item(slice, false)).collect();
        let open: Vec<SpanItem> = lanes.open_slices().iter().map(|slice| item(slice, true)).collect();
        let left = (!open.is_empty()).then(|| std::mem::take(lanes));
        (ordered(ended, open), left)
    }

    /// Adds the times that threads had a CPU, and the thread that has it.
    fn add_running(&mut self, track: &PageTrack, ended: Vec<SpanItem>) {
        let Owner::Cpu(cpu) = track.owner else { return };
        let running = self.open.running().find(|(of, ..)| *of == cpu);
        let now = running.map(|(_, tid, since)| {
            let name = self.people.tasks.thread_name(tid);
            let label = self
                .strings
                .id(if name.is_empty() { format!("thread {tid}") } else { name.into() }.as_bytes());
            SpanItem {
                start: since,
                end: self.times.to.max(since),
                depth: 0,
                label,
                flags: 0,
                args: None,
                tid: Some(tid),
                is_open: true,
            }
        });
        self.add_slices(track, ordered(ended, now.into_iter().collect()));
    }

    fn add_slices(&mut self, track: &PageTrack, rolled: RolledItems<RolledSlice>) {
        let RolledItems { items, open } = rolled;
        if items.is_empty() {
            return;
        }
        let varint = |name| ColumnName::new(name, encoding::VARINT);
        let mut names = vec![
            ColumnName::new("start", encoding::ZIGZAG_DELTA),
            varint("duration"),
            ColumnName::new("depth", encoding::ZIGZAG_DELTA),
            varint("name"),
        ];
        let levels = items.iter().map(|(item, _)| item.depth + 1).max().unwrap_or(0);
        let offset = self.columns.len();
        push_differences(
            &mut self.columns,
            items.iter().map(|(item, _)| item.start.0.wrapping_sub(self.times.start.0)),
        );
        push_all(&mut self.columns, items.iter().map(|(item, _)| item.end.since(item.start)));
        push_differences(&mut self.columns, items.iter().map(|(item, _)| item.depth as u64));
        push_all(&mut self.columns, items.iter().map(|(item, _)| item.label.into()));
        if items.iter().any(|(item, _)| item.flags != 0) {
            names.push(varint("flags"));
            push_all(&mut self.columns, items.iter().map(|(item, _)| item.flags.into()));
        }
        if items.iter().any(|(item, _)| item.args.is_some()) {
            names.push(varint("args"));
            let number = |args: Option<u32>| args.map_or(0, |args| u64::from(args) + 1);
            push_all(&mut self.columns, items.iter().map(|(item, _)| number(item.args)));
        }
        if track.role == TrackRole::Running {
            names.push(varint("thread"));
            for (item, _) in &items {
                let thread = item.tid.filter(|tid| tid.is_thread()).map(|tid| self.people.thread(tid));
                varint::push(&mut self.columns, thread.map_or(0, |index| index as u64 + 1));
            }
        }
        if items.iter().any(|(_, times)| times.is_some()) {
            names.push(varint("cpu"));
            names.push(ColumnName::new("overrun", encoding::ZIGZAG));
            let times = || items.iter().map(|(_, times)| times.unwrap_or(FrameTimes { cpu: 0, overrun: 0 }));
            push_all(&mut self.columns, times().map(|times| times.cpu));
            push_all(&mut self.columns, times().map(|times| varint::zigzag(times.overrun)));
        }
        self.add_track(track, TrackPlace { count: items.len(), open, levels, offset }, names);
    }

    /// Adds the states of a thread that have ended, and the last one.
    fn add_states(&mut self, track: &PageTrack, ended: Vec<StateItem>) {
        let Owner::Thread(thread) = track.owner else { return };
        let Some(tid) = thread.kernel() else { return };
        let mut items = ended;
        let before = items.len();
        for ThreadState { state, span, cpu, waker } in self.open.states(tid, self.times.to) {
            let state = self.strings.id(state.name().as_bytes());
            let cpu = cpu.map_or(0, |cpu| cpu.count_if_last().into());
            items.push(StateItem { span, state, cpu, waker: waker.filter(|waker| waker.is_thread()) });
        }
        if items.is_empty() {
            return;
        }
        let varint = |name| ColumnName::new(name, encoding::VARINT);
        let mut names = vec![ColumnName::new("start", encoding::ZIGZAG_DELTA)];
        names.extend(["duration", "state", "cpu", "waker"].map(varint));
        let offset = self.columns.len();
        push_differences(
            &mut self.columns,
            items.iter().map(|item| item.span.start.0.wrapping_sub(self.times.start.0)),
        );
        push_all(&mut self.columns, items.iter().map(|item| item.span.end.since(item.span.start)));
        push_all(&mut self.columns, items.iter().map(|item| item.state.into()));
        push_all(&mut self.columns, items.iter().map(|item| item.cpu));
        for item in &items {
            let waker = item.waker.map(|waker| self.people.thread(waker));
            varint::push(&mut self.columns, waker.map_or(0, |index| index as u64 + 1));
        }
        let place = TrackPlace { count: items.len(), open: items.len() - before, levels: 0, offset };
        self.add_track(track, place, names);
    }

    /// Adds columns that hold nothing open in the encoding of the report page.
    fn add_as_it_is(&mut self, track: &PageTrack) {
        let columns = track.columns.columns();
        if columns.count() == 0 {
            return;
        }
        let offset = self.columns.len();
        columns.encode(&Base { start: self.times.start, thread: &|_| None }, &mut self.columns);
        let place = TrackPlace { count: columns.count(), open: 0, levels: 0, offset };
        self.add_track(track, place, columns.names());
    }

    fn add_track(&mut self, track: &PageTrack, place: TrackPlace, columns: Vec<ColumnName>) {
        let mut thread = None;
        let mut process = None;
        let mut cpu = None;
        match track.owner {
            Owner::Machine => {}
            Owner::Cpu(number) => cpu = Some(number),
            Owner::Process(pid) => process = Some(self.people.process(pid)),
            Owner::Thread(id) => {
                let tid = id.kernel().unwrap_or(Tid::UNKNOWN);
                thread = Some(self.people.thread(tid));
                process = self.people.tasks.threads.tgid(tid).map(|pid| self.people.process(pid));
            }
        }
        self.tracks.push(RolledTrack {
            key: key_of(track),
            kind: track.columns.kind(),
            role: track.role.name(),
            name: track.name.clone(),
            thread,
            process,
            cpu,
            unit: track.role.unit(),
            count: place.count,
            open: place.open,
            depth: place.levels,
            offset: place.offset,
            columns,
        });
    }
}

/// How much a track holds, and where.
struct TrackPlace {
    count: usize,
    open: usize,
    levels: usize,
    offset: usize,
}

/// The slices of a track in the order of their ends, an inner one before its outer ones; those that are open
/// come last, the outermost first.
fn ordered(mut ended: Vec<SpanItem>, open: Vec<SpanItem>) -> RolledItems<RolledSlice> {
    ended.sort_by_key(|item| (item.end, std::cmp::Reverse(item.depth)));
    let count = open.len();
    let items = ended.into_iter().chain(open).map(|item| (item, None)).collect();
    RolledItems { items, open: count }
}

fn push_all(out: &mut Vec<u8>, values: impl Iterator<Item = u64>) {
    values.for_each(|value| varint::push(out, value));
}

fn push_differences(out: &mut Vec<u8>, values: impl Iterator<Item = u64>) {
    let mut last = 0;
    for value in values {
        varint::push(out, varint::zigzag(value.wrapping_sub(last) as i64));
        last = value;
    }
}

/// The number of a track: that of its properties, which it keeps over all batches.
fn key_of(track: &PageTrack) -> u64 {
    let mut hasher = DefaultHasher::new();
    (track.role, track.owner, track.columns.kind(), &track.name).hash(&mut hasher);
    hasher.finish() >> (u64::BITS - KEY_BITS)
}
