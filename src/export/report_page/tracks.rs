//! The tracks of a page by role and owner, as they are collected.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::columns::{
    Arrows, Causes, Columns, Counter, Instants, LaneSlice, Losses, NO_BEGIN, NO_END, Spans, States,
};
use super::frames::PageFrames;
use crate::formats::TrackId;

/// What a track belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Owner {
    Machine,
    Cpu(u32),
    Process(i32),
    /// A thread, by the kernel's id or as [`method_thread_id`] numbers it.
    Thread(i32),
}

/// The number of a thread of a method trace that is none of the kernel's threads that are known. No thread of
/// the kernel has a negative id.
pub(super) fn method_thread_id(index: u32) -> i32 {
    -1 - index as i32
}

/// The role of a track, in the order in which the page has the tracks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Role {
    Running,
    Irq,
    Frequency,
    Idle,
    Losses,
    Vsync,
    ExpectedFrames,
    ActualFrames,
    Frames,
    Counter,
    Async,
    States,
    Atrace,
    Methods,
    Own,
    Markers,
    Events,
    Causes,
    Wakeup,
    Binder,
    Flow,
}

impl Role {
    /// The role's name in the index.
    pub fn name(self) -> &'static str {
        match self {
            Role::Running => "running",
            Role::Irq => "irq",
            Role::Frequency => "frequency",
            Role::Idle => "idle",
            Role::Losses => "losses",
            Role::Vsync => "vsync",
            Role::ExpectedFrames => "expected_frames",
            Role::ActualFrames => "actual_frames",
            Role::Frames => "frames",
            Role::Counter => "counter",
            Role::Async => "async",
            Role::States => "states",
            Role::Atrace => "atrace",
            Role::Methods => "methods",
            Role::Own => "own",
            Role::Markers => "markers",
            Role::Events => "events",
            Role::Causes => "causes",
            Role::Wakeup => "wakeup",
            Role::Binder => "binder",
            Role::Flow => "flow",
        }
    }
}

/// The columns of a track, by its kind.
pub(super) enum TrackColumns {
    Slices(Spans),
    Calls(Spans),
    Lanes(Lanes),
    Frames(PageFrames),
    States(States),
    Instants(Instants),
    Counter(Counter),
    Losses(Losses),
    Causes(Causes),
    Arrows(Arrows),
}

impl TrackColumns {
    /// The kind's name in the index.
    pub fn kind(&self) -> &'static str {
        match self {
            TrackColumns::Slices(_) | TrackColumns::Lanes(_) | TrackColumns::Frames(_) => "slices",
            TrackColumns::Calls(_) => "calls",
            TrackColumns::States(_) => "states",
            TrackColumns::Instants(_) => "instants",
            TrackColumns::Counter(_) => "counter",
            TrackColumns::Losses(_) => "losses",
            TrackColumns::Causes(_) => "causes",
            TrackColumns::Arrows(_) => "arrows",
        }
    }

    pub fn columns(&self) -> &dyn Columns {
        match self {
            TrackColumns::Slices(spans) | TrackColumns::Calls(spans) => spans,
            TrackColumns::Lanes(lanes) => &lanes.spans,
            TrackColumns::Frames(frames) => frames,
            TrackColumns::States(states) => states,
            TrackColumns::Instants(instants) => instants,
            TrackColumns::Counter(counter) => counter,
            TrackColumns::Losses(losses) => losses,
            TrackColumns::Causes(causes) => causes,
            TrackColumns::Arrows(arrows) => arrows,
        }
    }

    /// The time inside of the outermost slices and calls, ns.
    pub fn outermost_ns(&self) -> u64 {
        match self {
            TrackColumns::Slices(spans) | TrackColumns::Calls(spans) => spans.outermost_ns(),
            _ => 0,
        }
    }
}

/// Asynchronous slices as they begin and end.
#[derive(Default)]
pub(super) struct Lanes {
    slices: Vec<LaneSlice>,
    /// The open slices of each name and cookie: their numbers in `slices`.
    open: HashMap<(u32, i64), Vec<usize>>,
    /// The number of lanes, and those on which no slice is open.
    lanes: usize,
    free: BinaryHeap<Reverse<usize>>,
    /// The ends whose begins were not recorded, each with its label.
    ends: Vec<(u64, u32)>,
    /// What becomes of all this at the end.
    spans: Spans,
}

impl Lanes {
    /// Begins a slice. `key` is what its end has too.
    pub fn begin(&mut self, ts: u64, label: u32, key: (u32, i64)) {
        let lane = self.free.pop().map_or(self.lanes, |Reverse(lane)| lane);
        self.lanes = self.lanes.max(lane + 1);
        self.open.entry(key).or_default().push(self.slices.len());
        self.slices.push(LaneSlice { start: ts, end: ts, label, lane, flags: NO_END });
    }

    /// Ends the last slice with this key; without one, a slice began before the recording.
    pub fn end(&mut self, ts: u64, label: u32, key: (u32, i64)) {
        let Some(number) = self.open.get_mut(&key).and_then(Vec::pop) else {
            self.ends.push((ts, label));
            return;
        };
        let slice = &mut self.slices[number];
        (slice.end, slice.flags) = (ts, 0);
        self.free.push(Reverse(slice.lane));
    }

    /// Orders the slices. Those without a begin begin at `start`, those without an end end at `end`.
    fn finish(&mut self, start: u64, end: u64) {
        let lanes = self.lanes;
        for (at, (ts, label)) in std::mem::take(&mut self.ends).into_iter().enumerate() {
            let (lane, flags) = (lanes + at, NO_BEGIN);
            self.spans.add_slice(&LaneSlice { start: start.min(ts), end: ts, label, lane, flags });
        }
        for mut slice in std::mem::take(&mut self.slices) {
            if slice.flags & NO_END != 0 {
                slice.end = end.max(slice.start);
            }
            self.spans.add_slice(&slice);
        }
        self.open.clear();
    }

    /// The earliest time, ns.
    fn first(&self) -> Option<u64> {
        let (slice, end) = (self.slices.first().map(|slice| slice.start), self.ends.first().map(|end| end.0));
        slice.into_iter().chain(end).min()
    }

    /// The latest time, ns.
    fn last(&self) -> Option<u64> {
        self.slices.iter().map(|slice| slice.end).chain(self.ends.iter().map(|(ts, _)| *ts)).max()
    }
}

/// A track of the page.
pub(super) struct PageTrack {
    pub role: Role,
    pub owner: Owner,
    /// The track's own name; empty for the main track of its owner.
    pub name: String,
    pub columns: TrackColumns,
}

/// What tells the tracks of one role and one owner apart.
#[derive(Debug, Clone, Copy)]
pub(super) enum Name<'a> {
    /// The owner has one such track.
    Main,
    /// Each name has one.
    Named(&'a [u8]),
    /// Each of the tracks that programs write has one of each kind, whatever its name is.
    Own(TrackId, &'a str),
}

/// All tracks.
#[derive(Default)]
pub(super) struct PageTracks {
    pub list: Vec<PageTrack>,
    main: HashMap<(Role, Owner), usize>,
    /// The number keeps the kinds of tracks apart.
    named: HashMap<(Role, Owner, u8, Vec<u8>), usize>,
    own: HashMap<(TrackId, u8), usize>,
}

/// Makes an accessor to the track of a role, an owner and a name, which is made where it is not there yet.
macro_rules! accessor {
    ($method:ident, $variant:ident, $columns:ty, $number:literal, $new:expr) => {
        pub fn $method(&mut self, role: Role, owner: Owner, name: Name<'_>) -> &mut $columns {
            let at = self.at(role, owner, $number, name, || TrackColumns::$variant($new));
            match &mut self.list[at].columns {
                TrackColumns::$variant(columns) => columns,
                _ => unreachable!("the number tells the kinds of tracks apart"),
            }
        }
    };
}

impl PageTracks {
    accessor!(slices, Slices, Spans, 0, Spans::default());
    accessor!(lanes, Lanes, Lanes, 1, Lanes::default());
    accessor!(states, States, States, 2, States::default());
    accessor!(instants, Instants, Instants, 3, Instants::default());
    accessor!(counter, Counter, Counter, 4, Counter::default());
    accessor!(losses, Losses, Losses, 5, Losses::default());
    accessor!(frames, Frames, PageFrames, 6, PageFrames::default());
    accessor!(causes, Causes, Causes, 7, Causes::default());

    fn at(
        &mut self,
        role: Role,
        owner: Owner,
        kind: u8,
        name: Name<'_>,
        new: impl FnOnce() -> TrackColumns,
    ) -> usize {
        let next = self.list.len();
        let (at, name) = match name {
            Name::Main => (*self.main.entry((role, owner)).or_insert(next), "".into()),
            Name::Named(name) => {
                let at = *self.named.entry((role, owner, kind, name.to_vec())).or_insert(next);
                (at, String::from_utf8_lossy(name))
            }
            Name::Own(id, name) => (*self.own.entry((id, kind)).or_insert(next), name.into()),
        };
        if at == next {
            let name = name.into_owned();
            self.list.push(PageTrack { role, owner, name, columns: new() });
        }
        at
    }

    /// Who had a CPU.
    pub fn running(&mut self, cpu: u32) -> &mut Spans {
        let at =
            self.at(Role::Running, Owner::Cpu(cpu), 0, Name::Main, || TrackColumns::Slices(Spans::of_cpu()));
        match &mut self.list[at].columns {
            TrackColumns::Slices(spans) => spans,
            _ => unreachable!("a CPU has slices alone under this role"),
        }
    }

    /// Adds a track for the calls of one thread of a method trace, and returns its number.
    pub fn add_calls(&mut self, owner: Owner) -> usize {
        let columns = TrackColumns::Calls(Spans::default());
        self.list.push(PageTrack { role: Role::Methods, owner, name: String::new(), columns });
        self.list.len() - 1
    }

    /// The calls of the track with this number.
    #[inline]
    pub fn calls(&mut self, number: usize) -> Option<&mut Spans> {
        match &mut self.list.get_mut(number)?.columns {
            TrackColumns::Calls(spans) => Some(spans),
            _ => None,
        }
    }

    /// The earliest time of all tracks, ns.
    pub fn first(&self) -> Option<u64> {
        let first = |track: &PageTrack| match &track.columns {
            TrackColumns::Lanes(lanes) => lanes.first(),
            TrackColumns::Frames(frames) => frames.first(),
            other => other.columns().range().map(|(first, _)| first),
        };
        self.list.iter().filter_map(first).min()
    }

    /// The latest time of all tracks, ns.
    pub fn last(&self) -> Option<u64> {
        let last = |track: &PageTrack| match &track.columns {
            TrackColumns::Lanes(lanes) => lanes.last(),
            TrackColumns::Frames(frames) => frames.last(),
            other => other.columns().range().map(|(_, last)| last),
        };
        self.list.iter().filter_map(last).max()
    }

    /// Ends what is open. `start` and `end` are those of the trace, ns.
    pub fn finish(&mut self, start: u64, end: u64) {
        for track in &mut self.list {
            match &mut track.columns {
                TrackColumns::Lanes(lanes) => lanes.finish(start, end),
                TrackColumns::Frames(frames) => frames.finish(),
                _ => {}
            }
        }
    }

    /// The track on which an arrow of a thread begins or ends: its states, or else another one of its own.
    pub fn of_thread(&self, tid: i32) -> Option<usize> {
        let roles = [Role::States, Role::Atrace, Role::Events, Role::Markers];
        roles.iter().find_map(|role| self.main.get(&(*role, Owner::Thread(tid))).copied())
    }

    /// The slices or the instants of a program's own track, on which an arrow begins or ends.
    pub fn of_own_track(&self, id: TrackId) -> Option<usize> {
        [0, 3].iter().find_map(|kind| self.own.get(&(id, *kind)).copied())
    }
}
