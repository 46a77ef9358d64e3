//! The tracks of a page by role and owner, as they are collected.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use rustc_hash::FxHashMap;

use super::columns::{
    ArrowColumns, Base, CauseColumns, ColumnName, CounterColumns, EncodedColumns, InstantColumns, LATE,
    LaneSlice, LossColumns, NO_END, SpanColumns, SpanItem, StateColumns, encoding,
};
use crate::clock::Timestamp;
use crate::formats::TrackId;
use crate::ids::{Cpu, Pid, Tid};
use crate::timeline::MethodThread;
use crate::tracks::Span;
use crate::varint;

/// The machine, CPU, process or thread that a track belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Owner {
    Machine,
    Cpu(Cpu),
    Process(Pid),
    Thread(PageThreadId),
}

impl Owner {
    /// The thread, where it is one.
    pub fn thread_id(self) -> Option<PageThreadId> {
        match self {
            Owner::Thread(id) => Some(id),
            _ => None,
        }
    }
}

/// A thread of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum PageThreadId {
    /// A thread that the kernel names.
    Kernel(Tid),
    /// A thread of a method trace that is none of the kernel's threads that are known, by
    /// [`MethodThread::index`].
    Traced(u32),
    /// A thread whose id a later thread has, and its number among these threads.
    Ended(Tid, u32),
}

impl PageThreadId {
    /// The thread whose methods these are.
    pub fn of_methods(thread: &MethodThread) -> PageThreadId {
        thread.tid.map_or(PageThreadId::Traced(thread.index), PageThreadId::Kernel)
    }

    /// The kernel's id, where it is known.
    pub fn kernel(self) -> Option<Tid> {
        match self {
            PageThreadId::Kernel(tid) | PageThreadId::Ended(tid, _) if tid >= Tid::IDLE => Some(tid),
            PageThreadId::Ended(..) | PageThreadId::Kernel(_) | PageThreadId::Traced(_) => None,
        }
    }
}

impl Owner {
    /// A thread that the kernel names.
    pub fn thread(tid: Tid) -> Owner {
        Owner::Thread(PageThreadId::Kernel(tid))
    }
}

/// The role of a track, in the order in which the page has the tracks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum TrackRole {
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
    Samples,
    Own,
    Markers,
    Events,
    Causes,
    Wakeup,
    Binder,
    Flow,
}

impl TrackRole {
    /// The role's name in the index.
    pub fn name(self) -> &'static str {
        match self {
            TrackRole::Running => "running",
            TrackRole::Irq => "irq",
            TrackRole::Frequency => "frequency",
            TrackRole::Idle => "idle",
            TrackRole::Losses => "losses",
            TrackRole::Vsync => "vsync",
            TrackRole::ExpectedFrames => "expected_frames",
            TrackRole::ActualFrames => "actual_frames",
            TrackRole::Frames => "frames",
            TrackRole::Counter => "counter",
            TrackRole::Async => "async",
            TrackRole::States => "states",
            TrackRole::Atrace => "atrace",
            TrackRole::Methods => "methods",
            TrackRole::Samples => "samples",
            TrackRole::Own => "own",
            TrackRole::Markers => "markers",
            TrackRole::Events => "events",
            TrackRole::Causes => "causes",
            TrackRole::Wakeup => "wakeup",
            TrackRole::Binder => "binder",
            TrackRole::Flow => "flow",
        }
    }
}

impl TrackRole {
    /// The unit of a counter.
    pub fn unit(self) -> &'static str {
        if self == TrackRole::Frequency { "kHz" } else { "" }
    }
}

/// The columns of a track, by its kind.
pub(super) enum TrackColumns {
    Slices(SpanColumns),
    Calls(SpanColumns),
    Lanes(Lanes),
    Frames(PageFrames),
    States(StateColumns),
    Instants(InstantColumns),
    Counter(CounterColumns),
    Losses(LossColumns),
    Causes(CauseColumns),
    Arrows(ArrowColumns),
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

    pub fn columns(&self) -> &dyn EncodedColumns {
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

    /// Whether it holds slices, and all of them are open.
    pub fn is_quiet(&self) -> bool {
        match self {
            TrackColumns::Slices(spans) => spans.count() > 0 && spans.count() == spans.open_count(),
            TrackColumns::Lanes(lanes) => lanes.is_quiet(),
            _ => false,
        }
    }

    /// Gives slices that are open the labels that `rename` makes of theirs.
    pub fn relabel(&mut self, rename: &mut impl FnMut(u32) -> u32) {
        match self {
            TrackColumns::Slices(spans) => spans.relabel(rename),
            TrackColumns::Lanes(lanes) => {
                lanes.open_slices().iter_mut().for_each(|slice| slice.label = rename(slice.label));
            }
            _ => {}
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
    /// The open slices by their ids, which grow: their numbers in `slices`.
    open: BTreeMap<u64, usize>,
    /// The number of lanes, and those on which no slice is open.
    lanes: usize,
    free: BinaryHeap<Reverse<usize>>,
    /// The columns that are made of all this at the end.
    spans: SpanColumns,
}

impl Lanes {
    /// Begins a slice, whose end has the same `id`.
    pub fn begin(&mut self, ts: Timestamp, label: u32, id: u64) {
        let lane = self.free.pop().map_or(self.lanes, |Reverse(lane)| lane);
        self.lanes = self.lanes.max(lane + 1);
        self.open.insert(id, self.slices.len());
        self.slices.push(LaneSlice { start: ts, end: ts, label, lane, flags: NO_END });
    }

    /// Ends the slice, unless it has been given up.
    pub fn end(&mut self, ts: Timestamp, id: u64) {
        let Some(number) = self.open.remove(&id) else { return };
        let slice = &mut self.slices[number];
        slice.end = ts;
        slice.flags = 0;
        self.free.push(Reverse(slice.lane));
    }

    /// Orders the slices. Those without an end end at `end`.
    fn finish(&mut self, end: Timestamp) {
        for mut slice in std::mem::take(&mut self.slices) {
            if slice.flags & NO_END != 0 {
                slice.end = end.max(slice.start);
            }
            self.spans.add_slice(&slice);
        }
        self.open.clear();
    }

    /// Takes the slices that have ended out, each with its lane.
    pub fn take_ended(&mut self) -> Vec<LaneSlice> {
        let open: Vec<usize> = self.open.values().copied().collect();
        self.open.values_mut().zip(0..).for_each(|(number, at)| *number = at);
        let mut ended = Vec::new();
        let mut open = open.into_iter().peekable();
        for (number, slice) in std::mem::take(&mut self.slices).into_iter().enumerate() {
            if open.next_if_eq(&number).is_some() {
                self.slices.push(slice);
            } else {
                ended.push(slice);
            }
        }
        ended
    }

    /// Ends at `to` the slices that began first, until no more than `most` are open. Returns how many.
    pub fn give_up(&mut self, most: usize, to: Timestamp) -> usize {
        let surplus = self.open.len().saturating_sub(most);
        for _ in 0..surplus {
            let Some((_, number)) = self.open.pop_first() else { break };
            let slice = &mut self.slices[number];
            slice.end = to.max(slice.start);
            self.free.push(Reverse(slice.lane));
        }
        surplus
    }

    /// Whether it holds slices, and all of them are open.
    pub fn is_quiet(&self) -> bool {
        !self.slices.is_empty() && self.slices.len() == self.open.len()
    }

    /// The slices that are open, in the order of their begins.
    pub fn open_slices(&mut self) -> &mut [LaneSlice] {
        &mut self.slices
    }

    /// The earliest time.
    fn first(&self) -> Option<Timestamp> {
        self.slices.first().map(|slice| slice.start)
    }

    /// The latest time.
    fn last(&self) -> Option<Timestamp> {
        self.slices.iter().map(|slice| slice.end).max()
    }
}

/// A track of the page.
pub(super) struct PageTrack {
    pub role: TrackRole,
    pub owner: Owner,
    /// The track's own name; empty for the main track of its owner.
    pub name: String,
    pub columns: TrackColumns,
}

/// The name that tells the tracks of one role and one owner apart.
#[derive(Debug, Clone, Copy)]
pub(super) enum Name<'a> {
    /// The owner has one such track.
    Main,
    /// Each name has one.
    Named(&'a [u8]),
    /// A track that a program writes. It has one track of each kind here, whatever its name is.
    Own(TrackId, &'a str),
}

/// All tracks.
#[derive(Default)]
pub(super) struct PageTracks {
    pub list: Vec<PageTrack>,
    main: FxHashMap<(TrackRole, Owner), usize>,
    /// The number keeps the kinds of tracks apart.
    named: HashMap<(TrackRole, Owner, u8, Vec<u8>), usize>,
    own: FxHashMap<(TrackId, u8), usize>,
    /// By kind: the track that takes what is left out, behind the first [`MAX_TRACKS`].
    spare: [Option<usize>; KINDS],
    /// The begins, ends, values and states that are left out.
    pub left_out: u64,
}

/// Most tracks of a page. A phone's trace has some hundreds.
pub(super) const MAX_TRACKS: usize = 20_000;
/// The kinds of tracks that [`PageTracks::at`] makes.
const KINDS: usize = 8;

/// Makes an accessor to the track of a role, an owner and a name, which is made where it is not there yet.
macro_rules! accessor {
    ($method:ident, $variant:ident, $columns:ty, $number:literal, $new:expr) => {
        pub fn $method(&mut self, role: TrackRole, owner: Owner, name: Name<'_>) -> &mut $columns {
            let at = self.at(role, owner, $number, name, || TrackColumns::$variant($new));
            match &mut self.list[at].columns {
                TrackColumns::$variant(columns) => columns,
                _ => unreachable!("the number tells the kinds of tracks apart"),
            }
        }
    };
}

impl PageTracks {
    accessor!(slices, Slices, SpanColumns, 0, SpanColumns::default());
    accessor!(lanes, Lanes, Lanes, 1, Lanes::default());
    accessor!(states, States, StateColumns, 2, StateColumns::default());
    accessor!(instants, Instants, InstantColumns, 3, InstantColumns::default());
    accessor!(counter, Counter, CounterColumns, 4, CounterColumns::default());
    accessor!(losses, Losses, LossColumns, 5, LossColumns::default());
    accessor!(frames, Frames, PageFrames, 6, PageFrames::default());
    accessor!(causes, Causes, CauseColumns, 7, CauseColumns::default());

    fn at(
        &mut self,
        role: TrackRole,
        owner: Owner,
        kind: u8,
        name: Name<'_>,
        new: impl FnOnce() -> TrackColumns,
    ) -> usize {
        let next = self.list.len();
        if next >= MAX_TRACKS && !self.has(role, owner, kind, name) {
            self.left_out += 1;
            return self.spare_track(role, owner, kind, new());
        }
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

    fn has(&self, role: TrackRole, owner: Owner, kind: u8, name: Name<'_>) -> bool {
        match name {
            Name::Main => self.main.contains_key(&(role, owner)),
            Name::Named(name) => self.named.contains_key(&(role, owner, kind, name.to_vec())),
            Name::Own(id, _) => self.own.contains_key(&(id, kind)),
        }
    }

    /// A track that begins anew each time, and is empty at the end.
    fn spare_track(&mut self, role: TrackRole, owner: Owner, kind: u8, columns: TrackColumns) -> usize {
        let at = self.spare[usize::from(kind)].unwrap_or(self.list.len());
        let track = PageTrack { role, owner, name: String::new(), columns };
        match self.list.get_mut(at) {
            Some(spare) => *spare = track,
            None => self.list.push(track),
        }
        self.spare[usize::from(kind)] = Some(at);
        at
    }

    /// Empties the tracks that took what is left out. Returns the note about that.
    pub fn empty_spares(&mut self) -> Option<String> {
        for at in self.spare.iter().flatten() {
            self.list[*at].columns = TrackColumns::Slices(SpanColumns::default());
        }
        let left_out = self.left_out;
        (left_out > 0).then(|| {
            format!(
                "the page shows the first {MAX_TRACKS} tracks: {left_out} begins, ends, states and values of other \
                 tracks are left out; --from TIME and --to TIME show a part, and other formats hold all"
            )
        })
    }

    /// Gives the tracks of the thread that has the id to `ended`.
    pub fn end_thread(&mut self, tid: Tid, ended: PageThreadId) {
        for role in [TrackRole::Atrace, TrackRole::States, TrackRole::Markers, TrackRole::Events] {
            if let Some(at) = self.main.remove(&(role, Owner::thread(tid))) {
                self.list[at].owner = Owner::Thread(ended);
            }
        }
    }

    /// Takes all tracks out, each with the name that its calls have, where it has one.
    pub fn take(&mut self) -> Vec<(PageTrack, Option<Vec<u8>>)> {
        let taken = std::mem::take(self);
        let mut names: HashMap<usize, Vec<u8>> =
            taken.named.into_iter().map(|((.., name), at)| (at, name)).collect();
        taken.list.into_iter().enumerate().map(|(at, track)| (track, names.remove(&at))).collect()
    }

    /// Puts a track back that was taken out.
    pub fn put_back(&mut self, track: PageTrack, name: Option<&[u8]>) {
        let kind = match &track.columns {
            TrackColumns::Slices(_) => 0,
            TrackColumns::Lanes(_) => 1,
            _ => return,
        };
        let name = name.map_or(Name::Main, Name::Named);
        let PageTrack { role, owner, columns, .. } = track;
        self.at(role, owner, kind, name, || columns);
    }

    /// The threads that had a CPU.
    pub fn running(&mut self, cpu: Cpu) -> &mut SpanColumns {
        let at = self.at(TrackRole::Running, Owner::Cpu(cpu), 0, Name::Main, || {
            TrackColumns::Slices(SpanColumns::of_cpu())
        });
        match &mut self.list[at].columns {
            TrackColumns::Slices(spans) => spans,
            _ => unreachable!("a CPU has slices alone under this role"),
        }
    }

    /// Adds a track for the calls of one thread of a method trace, and returns its number.
    pub fn add_calls(&mut self, owner: Owner) -> usize {
        let columns = TrackColumns::Calls(SpanColumns::default());
        self.list.push(PageTrack { role: TrackRole::Methods, owner, name: String::new(), columns });
        self.list.len() - 1
    }

    /// Adds a track for the samples of one thread, as calls, and returns its number.
    pub fn add_sample_calls(&mut self, owner: Owner, name: String) -> usize {
        let columns = TrackColumns::Calls(SpanColumns::default());
        self.list.push(PageTrack { role: TrackRole::Samples, owner, name, columns });
        self.list.len() - 1
    }

    /// The calls of the track with this number.
    #[inline]
    pub fn calls(&mut self, number: usize) -> Option<&mut SpanColumns> {
        match &mut self.list.get_mut(number)?.columns {
            TrackColumns::Calls(spans) => Some(spans),
            _ => None,
        }
    }

    /// The earliest time of all tracks.
    pub fn first(&self) -> Option<Timestamp> {
        let first = |track: &PageTrack| match &track.columns {
            TrackColumns::Lanes(lanes) => lanes.first(),
            TrackColumns::Frames(frames) => frames.first(),
            other => other.columns().range().map(|(first, _)| first),
        };
        self.list.iter().filter_map(first).min()
    }

    /// The latest time of all tracks.
    pub fn last(&self) -> Option<Timestamp> {
        let last = |track: &PageTrack| match &track.columns {
            TrackColumns::Lanes(lanes) => lanes.last(),
            TrackColumns::Frames(frames) => frames.last(),
            other => other.columns().range().map(|(_, last)| last),
        };
        self.list.iter().filter_map(last).max()
    }

    /// Ends the open slices at `end`, the end of the trace.
    pub fn finish(&mut self, end: Timestamp) {
        for track in &mut self.list {
            match &mut track.columns {
                TrackColumns::Lanes(lanes) => lanes.finish(end),
                TrackColumns::Frames(frames) => frames.finish(),
                _ => {}
            }
        }
    }

    /// The track on which an arrow of a thread begins or ends: its states, or else another one of its own.
    pub fn of_thread(&self, tid: Tid) -> Option<usize> {
        let roles = [TrackRole::States, TrackRole::Atrace, TrackRole::Events, TrackRole::Markers];
        roles.iter().find_map(|role| self.main.get(&(*role, Owner::thread(tid))).copied())
    }

    /// The slices or the instants of a program's own track, on which an arrow begins or ends.
    pub fn of_own_track(&self, id: TrackId) -> Option<usize> {
        [0, 3].iter().find_map(|kind| self.own.get(&(id, *kind)).copied())
    }
}

/// The measures of a frame, ns: its time by androidx's `frameDurationCpuMs`, and by how much it ended
/// after its deadline.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameTimes {
    pub cpu: u64,
    pub overrun: i64,
}

/// One frame.
struct PageFrame {
    start: Timestamp,
    end: Timestamp,
    label: u32,
    args: Option<u32>,
    flags: u8,
    times: Option<FrameTimes>,
}

/// Frames as they come: those whose end is not known come last.
#[derive(Default)]
pub(super) struct PageFrames {
    list: Vec<PageFrame>,
    /// The columns that are made of them at the end.
    spans: SpanColumns,
    /// The measures of each; empty for a row of frames that were not.
    times: Vec<FrameTimes>,
}

impl PageFrames {
    /// Adds a frame of FrameTimeline; `label` and `args` are numbers of strings.
    pub fn push(&mut self, span: Span, label: u32, args: u32, is_late: bool) {
        let flags = if span.open { NO_END } else { 0 } | if is_late { LATE } else { 0 };
        let Span { start, end, .. } = span;
        self.list.push(PageFrame { start, end, label, args: Some(args), flags, times: None });
    }

    /// Adds a frame from `start` to `end` that was measured.
    pub fn push_measured(
        &mut self,
        start: Timestamp,
        end: Timestamp,
        label: u32,
        flags: u8,
        times: FrameTimes,
    ) {
        self.list.push(PageFrame { start, end, label, args: None, flags, times: Some(times) });
    }

    /// Takes all frames out, in the order of their begins, each with its measures.
    pub fn take(&mut self) -> Vec<(SpanItem, Option<FrameTimes>)> {
        self.finish();
        let times = std::mem::take(&mut self.times);
        let times = times.into_iter().map(Some).chain(std::iter::repeat(None));
        self.spans.take().into_iter().zip(times).collect()
    }

    /// The earliest time.
    pub fn first(&self) -> Option<Timestamp> {
        self.list.iter().map(|frame| frame.start).min()
    }

    /// The latest time.
    pub fn last(&self) -> Option<Timestamp> {
        self.list.iter().map(|frame| frame.end).max()
    }

    /// Orders the frames by their begins, and gives each the first lane that is free then.
    pub fn finish(&mut self) {
        let mut list = std::mem::take(&mut self.list);
        list.sort_by_key(|frame| frame.start);
        let mut lanes = 0;
        let mut free: BinaryHeap<Reverse<usize>> = BinaryHeap::new();
        let mut busy: BinaryHeap<Reverse<(Timestamp, usize)>> = BinaryHeap::new();
        for PageFrame { start, end, label, args, flags, times } in list {
            while busy.peek().is_some_and(|Reverse((end, _))| *end <= start) {
                free.extend(busy.pop().map(|Reverse((_, lane))| Reverse(lane)));
            }
            let lane = free.pop().map_or(lanes, |Reverse(lane)| lane);
            lanes = lanes.max(lane + 1);
            busy.push(Reverse((end, lane)));
            self.spans.add_slice(&LaneSlice { start, end, label, lane, flags });
            if let Some(args) = args {
                self.spans.set_last_args(args);
            }
            self.times.extend(times);
        }
    }
}

impl EncodedColumns for PageFrames {
    fn count(&self) -> usize {
        self.spans.count()
    }

    fn range(&self) -> Option<(Timestamp, Timestamp)> {
        self.spans.range()
    }

    fn depth(&self) -> usize {
        self.spans.depth()
    }

    fn names(&self) -> Vec<ColumnName> {
        let mut names = self.spans.names();
        if !self.times.is_empty() {
            names.push(ColumnName::new("cpu", encoding::VARINT));
            names.push(ColumnName::new("overrun", encoding::ZIGZAG));
        }
        names
    }

    fn encode(&self, base: &Base<'_>, out: &mut Vec<u8>) {
        self.spans.encode(base, out);
        self.times.iter().for_each(|times| varint::push(out, times.cpu));
        self.times.iter().for_each(|times| varint::push(out, varint::zigzag(times.overrun)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_overlap_lie_on_different_lanes_whatever_their_order() {
        let mut frames = PageFrames::default();
        for (start, end) in [(0, 20), (10, 30), (20, 25), (26, 40), (5, 50)] {
            frames.push(
                Span { start: Timestamp(start), end: Timestamp(end), open: end == 50 },
                start as u32,
                9,
                start == 10,
            );
        }
        assert_eq!((frames.first(), frames.last()), (Some(Timestamp(0)), Some(Timestamp(50))));
        frames.finish();
        let lanes: Vec<(usize, u32, u64)> = frames.spans.slices().collect();
        assert_eq!(lanes, [(0, 0, 20), (1, 5, 45), (2, 10, 20), (0, 20, 5), (0, 26, 14)]);
        assert_eq!((frames.count(), frames.names().len()), (5, 6));
    }

    #[test]
    fn the_measures_of_frames_stay_with_them_when_they_are_ordered() {
        let mut frames = PageFrames::default();
        for (start, cpu, overrun) in [(20, 7, -3), (10, 5, 4)] {
            frames.push_measured(
                Timestamp(start),
                Timestamp(start + 5),
                0,
                LATE,
                FrameTimes { cpu, overrun },
            );
        }
        frames.finish();
        let mut out = Vec::new();
        frames.encode(&Base { start: Timestamp(10), thread: &|_| None }, &mut out);
        // Starts, durations, depths, names, flags, CPU times, overruns.
        assert_eq!(out, [0, 10, 5, 5, 0, 0, 0, 0, LATE, LATE, 5, 7, 8, 5]);
    }
}
