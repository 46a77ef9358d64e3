//! The columns of a page's tracks: they are collected in memory in the encodings of docs/report-format.md, as
//! far as their values are final, and appended to a block at the end.
//!
//! Times are collected as they are; [`Base`] is the trace's start, which is known only at the end. Columns of
//! differences need it for their first value alone.

use serde::ser::{Serialize, Serializer};

use crate::clock::Timestamp;
use crate::ids::{Cpu, Tid};
use crate::tracks::Span;
use crate::varint;

/// The deepest level that the page's column holds.
const MAX_DEPTH: usize = u16::MAX as usize;

/// A slice's end was not recorded.
pub(super) const NO_END: u8 = 2;
/// A frame was late.
pub(super) const LATE: u8 = 4;
/// No deadline of a frame is known.
pub(super) const NO_DEADLINE: u8 = 8;
/// A frame was slow: its CPU time is above Perfetto's limit.
pub(super) const SLOW: u8 = 16;
/// The work of the app's threads on a frame is not known.
pub(super) const NO_WORK: u8 = 32;

/// The encodings of columns, as the index names them.
pub(super) mod encoding {
    pub const VARINT: &str = "varint";
    pub const ZIGZAG: &str = "zigzag";
    pub const DELTA: &str = "delta";
    pub const ZIGZAG_DELTA: &str = "zigzag-delta";
    pub const F64: &str = "f64";
}

/// The name and the encoding of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ColumnName {
    name: &'static str,
    encoding: &'static str,
    /// Stored values are this part of the values themselves.
    factor: u64,
}

impl ColumnName {
    pub fn new(name: &'static str, encoding: &'static str) -> ColumnName {
        ColumnName { name, encoding, factor: 1 }
    }

    fn times(self, factor: u64) -> ColumnName {
        ColumnName { factor, ..self }
    }
}

/// As an array of two, or of three with a factor.
impl Serialize for ColumnName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.factor {
            1 => (self.name, self.encoding).serialize(serializer),
            factor => (self.name, self.encoding, factor).serialize(serializer),
        }
    }
}

/// The factor of times that are whole µs: of most method traces. It makes a page of them a quarter smaller.
const MICROSECOND: u64 = 1_000;

/// [`MICROSECOND`] if all values are multiples of it, else 1.
fn factor_of(values: impl IntoIterator<Item = u64>) -> u64 {
    let all = values.into_iter().all(|value| value.is_multiple_of(MICROSECOND));
    if all { MICROSECOND } else { 1 }
}

/// The facts that are known at the end only: the trace's start, and the index of each thread on the page.
pub(super) struct Base<'a> {
    pub start: Timestamp,
    pub thread: &'a dyn Fn(Tid) -> Option<usize>,
}

impl Base<'_> {
    /// The thread's index plus 1, or 0 where there is none.
    pub fn thread_or_none(&self, tid: Tid) -> u64 {
        (self.thread)(tid).map_or(0, |index| index as u64 + 1)
    }
}

/// A column of times that never decrease.
#[derive(Default)]
pub(super) struct TimeColumn {
    /// The first time and the last one.
    range: Option<(Timestamp, Timestamp)>,
    /// The differences behind the first time.
    deltas: Vec<u8>,
    /// Whether a difference is no multiple of [`MICROSECOND`].
    is_finer: bool,
}

impl TimeColumn {
    /// Appends a time, and returns the appended time. A time before the last one is replaced by the last one.
    #[inline]
    pub fn push(&mut self, ts: Timestamp) -> Timestamp {
        match &mut self.range {
            Some((_, last)) => {
                let ts = ts.max(*last);
                let delta = ts - *last;
                varint::push(&mut self.deltas, delta);
                self.is_finer |= !delta.is_multiple_of(MICROSECOND);
                *last = ts;
                ts
            }
            None => {
                self.range = Some((ts, ts));
                ts
            }
        }
    }

    pub fn first(&self) -> Option<Timestamp> {
        self.range.map(|(first, _)| first)
    }

    pub fn last(&self) -> Option<Timestamp> {
        self.range.map(|(_, last)| last)
    }

    /// The times.
    fn all(&self) -> impl Iterator<Item = Timestamp> {
        let deltas = varint::all(&self.deltas);
        let times = |first| {
            std::iter::once(0).chain(deltas).scan(first, |ts, delta| {
                *ts += delta;
                Some(*ts)
            })
        };
        self.first().map(times).into_iter().flatten()
    }

    fn encode(&self, base: &Base<'_>, out: &mut Vec<u8>) {
        if let Some(first) = self.first() {
            varint::push(out, first.since(base.start));
            out.extend_from_slice(&self.deltas);
        }
    }

    /// The factor of the differences behind the first time.
    fn factor(&self) -> u64 {
        if self.is_finer { 1 } else { MICROSECOND }
    }

    /// Appends the times with [`TimeColumn::factor`].
    fn encode_with_factor(&self, base: &Base<'_>, out: &mut Vec<u8>) {
        if self.is_finer {
            return self.encode(base, out);
        }
        let Some(first) = self.first() else { return };
        varint::push(out, first.since(base.start));
        varint::all(&self.deltas).for_each(|delta| varint::push(out, delta / MICROSECOND));
    }
}

/// The columns of a track, of any kind.
pub(super) trait EncodedColumns {
    /// The number of values of each column.
    fn count(&self) -> usize;
    /// The earliest and the latest time.
    fn range(&self) -> Option<(Timestamp, Timestamp)>;
    /// The columns, in the order in which [`EncodedColumns::encode`] appends them.
    fn names(&self) -> Vec<ColumnName>;
    fn encode(&self, base: &Base<'_>, out: &mut Vec<u8>);
    /// The number of nested levels; 0 where there is no nesting.
    fn depth(&self) -> usize {
        0
    }
}

/// Slices and calls, in the order of their begins.
#[derive(Default)]
pub(super) struct SpanColumns {
    starts: TimeColumn,
    /// For a slice that has ended its length, for an open one its begin, ns.
    durations: Vec<u64>,
    depths: Vec<u8>,
    last_depth: i64,
    levels: usize,
    labels: Vec<u8>,
    /// Thread CPU time, ns: the CPU time of a call that has ended, or the thread's CPU time at the begin of
    /// an open call.
    cpu: Vec<u64>,
    has_cpu: bool,
    /// The flags of those slices that have any.
    flags: Vec<(u32, u8)>,
    /// The arguments of those slices that have any.
    args: Vec<(u32, u32)>,
    /// Thread ids, for slices that show which thread had a CPU.
    tids: Option<Vec<Tid>>,
    /// The open slices, the innermost one last.
    open: Vec<u32>,
    end: Timestamp,
    outermost_ns: u64,
    /// Slices that lie deeper than the page's column can say.
    pub clamped: u64,
}

impl SpanColumns {
    /// Spans that say which thread had a CPU.
    pub fn of_cpu() -> SpanColumns {
        SpanColumns { tids: Some(Vec::new()), ..SpanColumns::default() }
    }

    /// Appends an open span at level `depth`, and returns its number.
    fn add(&mut self, ts: Timestamp, depth: usize, label: u32) -> u32 {
        let number = self.durations.len() as u32;
        let ts = self.starts.push(ts);
        self.durations.push(ts.0);
        self.clamped += u64::from(depth > MAX_DEPTH);
        let depth = depth.min(MAX_DEPTH);
        varint::push(&mut self.depths, varint::zigzag(depth as i64 - self.last_depth));
        self.last_depth = depth as i64;
        self.levels = self.levels.max(depth + 1);
        varint::push(&mut self.labels, label.into());
        number
    }

    /// Ends the span with this number; returns its length, ns.
    fn close(&mut self, number: u32, ts: Timestamp, open: bool) -> u64 {
        let duration = &mut self.durations[number as usize];
        *duration = ts.0.saturating_sub(*duration);
        self.end = self.end.max(ts);
        if open {
            self.flags.push((number, NO_END));
        }
        *duration
    }

    /// Begins a slice inside of the innermost open one.
    pub fn begin(&mut self, ts: Timestamp, label: u32) {
        let number = self.add(ts, self.open.len(), label);
        self.open.push(number);
    }

    /// Gives the innermost open slice arguments.
    pub fn set_args(&mut self, args: u32) {
        self.args.extend(self.open.last().map(|number| (*number, args)));
    }

    /// Gives the slice that was added last arguments.
    pub fn set_last_args(&mut self, args: u32) {
        self.args.extend((self.durations.len() as u32).checked_sub(1).map(|number| (number, args)));
    }

    /// Begins a call; `cpu` is the thread's CPU time, ns.
    #[inline]
    pub fn begin_call(&mut self, ts: Timestamp, method: u32, cpu: Option<u64>) {
        self.begin(ts, method);
        self.cpu.push(cpu.unwrap_or(0));
    }

    /// Ends the innermost open slice. `open` says that no end was recorded.
    pub fn end(&mut self, ts: Timestamp, open: bool) {
        let Some(number) = self.open.pop() else { return };
        let duration = self.close(number, ts, open);
        if self.open.is_empty() {
            self.outermost_ns += duration;
        }
    }

    /// Ends the innermost open call; `cpu` is the thread's CPU time, ns.
    #[inline]
    pub fn end_call(&mut self, ts: Timestamp, cpu: Option<u64>) {
        let Some(number) = self.open.last().map(|number| *number as usize) else { return };
        self.has_cpu |= cpu.is_some();
        self.cpu[number] = cpu.map_or(0, |cpu| cpu.saturating_sub(self.cpu[number]));
        self.end(ts, false);
    }

    /// Appends the time in which a thread had the CPU.
    pub fn add_running(&mut self, start: Timestamp, end: Timestamp, label: u32, tid: Tid, open: bool) {
        let number = self.add(start, 0, label);
        self.close(number, end, open);
        self.tids.get_or_insert_default().push(tid);
    }

    /// Appends a whole slice at a level of its own choice.
    pub fn add_slice(&mut self, slice: &LaneSlice) {
        let number = self.add(slice.start, slice.lane, slice.label);
        self.close(number, slice.end, false);
        if slice.flags != 0 {
            self.flags.push((number, slice.flags));
        }
    }

    /// The time inside of the outermost slices, ns.
    pub fn outermost_ns(&self) -> u64 {
        self.outermost_ns
    }

    pub fn has_cpu(&self) -> bool {
        self.has_cpu
    }

    /// The depth, the label and the length in ns of each slice, once all have ended.
    pub fn slices(&self) -> impl Iterator<Item = (usize, u32, u64)> {
        let depths = varint::all(&self.depths).scan(0, |depth, step| {
            *depth += varint::unzigzag(step);
            Some(*depth as usize)
        });
        let labels = varint::all(&self.labels).map(|label| label as u32);
        depths.zip(labels).zip(&self.durations).map(|((depth, label), length)| (depth, label, *length))
    }
}

/// A slice that has been taken out of its columns.
pub(super) struct SpanItem {
    pub start: Timestamp,
    /// Meaningless for an open slice.
    pub end: Timestamp,
    pub depth: usize,
    pub label: u32,
    pub flags: u8,
    pub args: Option<u32>,
    /// The thread that had the CPU.
    pub tid: Option<Tid>,
    /// Whether nothing has ended it yet.
    pub is_open: bool,
}

impl SpanColumns {
    /// The number of slices that are open.
    pub fn open_count(&self) -> usize {
        self.open.len()
    }

    /// Gives each slice the label that `rename` makes of its own.
    pub fn relabel(&mut self, rename: &mut impl FnMut(u32) -> u32) {
        let labels = std::mem::take(&mut self.labels);
        varint::all(&labels).for_each(|label| varint::push(&mut self.labels, rename(label as u32).into()));
        self.args.iter_mut().for_each(|(_, args)| *args = rename(*args));
    }

    /// Takes all slices out, in the order of their begins. Nothing is left, and nothing open.
    pub fn take(&mut self) -> Vec<SpanItem> {
        let empty = SpanColumns { tids: self.tids.as_ref().map(|_| Vec::new()), ..SpanColumns::default() };
        let taken = std::mem::replace(self, empty);
        let starts = taken.starts.all();
        let mut items: Vec<SpanItem> = starts
            .zip(taken.slices())
            .map(|(start, (depth, label, length))| SpanItem {
                start,
                end: start.saturating_add(length),
                depth,
                label,
                flags: 0,
                args: None,
                tid: None,
                is_open: false,
            })
            .collect();
        for (number, flags) in &taken.flags {
            items[*number as usize].flags |= flags;
        }
        for (number, args) in &taken.args {
            items[*number as usize].args = Some(*args);
        }
        for (item, tid) in items.iter_mut().zip(taken.tids.iter().flatten()) {
            item.tid = Some(*tid);
        }
        for number in &taken.open {
            items[*number as usize].is_open = true;
        }
        items
    }
}

impl EncodedColumns for SpanColumns {
    fn count(&self) -> usize {
        self.durations.len()
    }

    fn range(&self) -> Option<(Timestamp, Timestamp)> {
        self.starts.first().map(|first| (first, self.end.max(self.starts.last().unwrap_or(first))))
    }

    fn depth(&self) -> usize {
        self.levels
    }

    fn names(&self) -> Vec<ColumnName> {
        let label = if self.cpu.is_empty() { "name" } else { "method" };
        let varint = |name| ColumnName::new(name, encoding::VARINT);
        let mut names = vec![
            ColumnName::new("start", encoding::DELTA).times(self.starts.factor()),
            varint("duration").times(factor_of(self.durations.iter().copied())),
            ColumnName::new("depth", encoding::ZIGZAG_DELTA),
            varint(label),
        ];
        let optional = [
            (varint("cpu").times(factor_of(self.cpu.iter().copied())), self.has_cpu),
            (varint("flags"), !self.flags.is_empty()),
            (varint("args"), !self.args.is_empty()),
            (varint("thread"), self.tids.is_some()),
        ];
        names.extend(optional.iter().filter(|(_, is_there)| *is_there).map(|(name, _)| *name));
        names
    }

    fn encode(&self, base: &Base<'_>, out: &mut Vec<u8>) {
        self.starts.encode_with_factor(base, out);
        let factor = factor_of(self.durations.iter().copied());
        self.durations.iter().for_each(|duration| varint::push(out, duration / factor));
        out.extend_from_slice(&self.depths);
        out.extend_from_slice(&self.labels);
        if self.has_cpu {
            let factor = factor_of(self.cpu.iter().copied());
            self.cpu.iter().for_each(|cpu| varint::push(out, cpu / factor));
        }
        if !self.flags.is_empty() {
            let start = out.len();
            out.resize(start + self.durations.len(), 0);
            self.flags.iter().for_each(|(number, flags)| out[start + *number as usize] |= flags);
        }
        if !self.args.is_empty() {
            // A slice may get its arguments at its end, behind those of slices inside of it.
            let mut sorted = self.args.clone();
            sorted.sort_by_key(|(of, _)| *of);
            let mut args = sorted.iter().peekable();
            for number in 0..self.durations.len() as u32 {
                let args = args.next_if(|(of, _)| *of == number);
                varint::push(out, args.map_or(0, |(_, args)| u64::from(*args) + 1));
            }
        }
        for tid in self.tids.iter().flatten() {
            varint::push(out, base.thread_or_none(*tid));
        }
    }
}

/// An asynchronous slice: slices that overlap lie on different lanes.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaneSlice {
    pub start: Timestamp,
    pub end: Timestamp,
    pub label: u32,
    pub lane: usize,
    pub flags: u8,
}

/// One thread's states.
#[derive(Default)]
pub(super) struct StateColumns {
    starts: TimeColumn,
    durations: Vec<u8>,
    states: Vec<u8>,
    cpus: Vec<u8>,
    /// Thread ids; 0 is none.
    wakers: Vec<Tid>,
    end: Timestamp,
}

impl StateColumns {
    pub fn push(&mut self, span: Span, state: u32, cpu: Option<Cpu>, waker: Option<Tid>) {
        let start = self.starts.push(span.start);
        let end = span.end;
        varint::push(&mut self.durations, end.since(start));
        varint::push(&mut self.states, state.into());
        varint::push(&mut self.cpus, cpu.map_or(0, |cpu| cpu.count_if_last().into()));
        self.wakers.push(waker.unwrap_or_default());
        self.end = self.end.max(end);
    }
}

/// A state that has been taken out of its columns.
pub(super) struct StateItem {
    pub span: Span,
    pub state: u32,
    /// 0 is none, else the CPU's number plus 1.
    pub cpu: u64,
    pub waker: Option<Tid>,
}

impl StateColumns {
    /// Takes all states out.
    pub fn take(&mut self) -> Vec<StateItem> {
        let taken = std::mem::take(self);
        let mut lengths = varint::all(&taken.durations);
        let mut states = varint::all(&taken.states);
        let mut cpus = varint::all(&taken.cpus);
        let items = taken.starts.all().zip(&taken.wakers).map_while(|(start, waker)| {
            let end = start.saturating_add(lengths.next()?);
            Some(StateItem {
                span: Span { start, end, open: false },
                state: states.next()? as u32,
                cpu: cpus.next()?,
                waker: waker.is_thread().then_some(*waker),
            })
        });
        items.collect()
    }
}

impl EncodedColumns for StateColumns {
    fn count(&self) -> usize {
        self.wakers.len()
    }

    fn range(&self) -> Option<(Timestamp, Timestamp)> {
        self.starts.first().map(|first| (first, self.end))
    }

    fn names(&self) -> Vec<ColumnName> {
        let varint =
            ["duration", "state", "cpu", "waker"].map(|name| ColumnName::new(name, encoding::VARINT));
        [&[ColumnName::new("start", encoding::DELTA)][..], &varint].concat()
    }

    fn encode(&self, base: &Base<'_>, out: &mut Vec<u8>) {
        self.starts.encode(base, out);
        [&self.durations, &self.states, &self.cpus]
            .into_iter()
            .for_each(|column| out.extend_from_slice(column));
        for waker in &self.wakers {
            varint::push(out, if waker.is_thread() { base.thread_or_none(*waker) } else { 0 });
        }
    }
}

/// Instants, with texts about them.
#[derive(Default)]
pub(super) struct InstantColumns {
    times: TimeColumn,
    count: usize,
    labels: Vec<u8>,
    args: Vec<u8>,
    has_args: bool,
}

impl InstantColumns {
    pub fn push(&mut self, ts: Timestamp, label: u32, args: Option<u32>) {
        self.times.push(ts);
        self.count += 1;
        varint::push(&mut self.labels, label.into());
        varint::push(&mut self.args, args.map_or(0, |args| u64::from(args) + 1));
        self.has_args |= args.is_some();
    }
}

impl EncodedColumns for InstantColumns {
    fn count(&self) -> usize {
        self.count
    }

    fn range(&self) -> Option<(Timestamp, Timestamp)> {
        self.times.first().zip(self.times.last())
    }

    fn names(&self) -> Vec<ColumnName> {
        let mut names =
            vec![ColumnName::new("time", encoding::DELTA), ColumnName::new("name", encoding::VARINT)];
        names.extend(self.has_args.then_some(ColumnName::new("args", encoding::VARINT)));
        names
    }

    fn encode(&self, base: &Base<'_>, out: &mut Vec<u8>) {
        self.times.encode(base, out);
        out.extend_from_slice(&self.labels);
        if self.has_args {
            out.extend_from_slice(&self.args);
        }
    }
}

/// The values of a counter.
#[derive(Default)]
pub(super) struct CounterColumns {
    times: TimeColumn,
    /// The values, as long as all are whole numbers whose differences are 64-bit numbers.
    whole: Vec<i64>,
    fractions: Option<Vec<f64>>,
}

impl CounterColumns {
    pub fn push(&mut self, ts: Timestamp, value: Result<i64, f64>) {
        self.times.push(ts);
        let fits = |value: i64| self.whole.last().is_none_or(|last| value.checked_sub(*last).is_some());
        match (value, &mut self.fractions) {
            (Ok(value), None) if fits(value) => self.whole.push(value),
            (value, fractions) => {
                let whole = &mut self.whole;
                let all = fractions.get_or_insert_with(|| whole.drain(..).map(|v| v as f64).collect());
                all.push(value.map_or_else(|fraction| fraction, |whole| whole as f64));
            }
        }
    }
}

impl EncodedColumns for CounterColumns {
    fn count(&self) -> usize {
        self.fractions.as_ref().map_or(self.whole.len(), Vec::len)
    }

    fn range(&self) -> Option<(Timestamp, Timestamp)> {
        self.times.first().zip(self.times.last())
    }

    fn names(&self) -> Vec<ColumnName> {
        let values = if self.fractions.is_some() { encoding::F64 } else { encoding::ZIGZAG_DELTA };
        vec![ColumnName::new("time", encoding::DELTA), ColumnName::new("value", values)]
    }

    fn encode(&self, base: &Base<'_>, out: &mut Vec<u8>) {
        self.times.encode(base, out);
        let mut last = 0;
        for value in &self.whole {
            varint::push(out, varint::zigzag(value.wrapping_sub(last)));
            last = *value;
        }
        self.fractions.iter().flatten().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
    }
}

/// Periods in which events of a CPU are missing.
#[derive(Default)]
pub(super) struct LossColumns {
    /// Begin, end, and how many, where that is known.
    periods: Vec<(Timestamp, Timestamp, Option<u64>)>,
}

impl LossColumns {
    pub fn push(&mut self, start: Timestamp, end: Timestamp, count: Option<u64>) {
        self.periods.push((start, end, count));
    }
}

impl EncodedColumns for LossColumns {
    fn count(&self) -> usize {
        self.periods.len()
    }

    /// The begins of losses are times of other events.
    fn range(&self) -> Option<(Timestamp, Timestamp)> {
        let ends = self.periods.iter().map(|(_, end, _)| *end);
        ends.clone().min().zip(ends.max())
    }

    fn names(&self) -> Vec<ColumnName> {
        vec![
            ColumnName::new("start", encoding::DELTA),
            ColumnName::new("duration", encoding::VARINT),
            ColumnName::new("count", encoding::VARINT),
        ]
    }

    fn encode(&self, base: &Base<'_>, out: &mut Vec<u8>) {
        let mut starts = TimeColumn::default();
        // A loss before the CPU's first event begins with the trace.
        let start = |period: &(Timestamp, Timestamp, _)| period.0.max(base.start);
        self.periods.iter().for_each(|period| _ = starts.push(start(period)));
        starts.encode(base, out);
        self.periods.iter().for_each(|period| varint::push(out, period.1.since(start(period))));
        self.periods.iter().for_each(|(_, _, count)| varint::push(out, count.unwrap_or(0)));
    }
}

/// The causes of a thread's time, in order: what it did and waited for.
#[derive(Default)]
pub(super) struct CauseColumns {
    starts: TimeColumn,
    durations: Vec<u64>,
    /// The string ids of the causes.
    causes: Vec<u32>,
    /// The string ids of the subjects of the causes, plus 1; 0 is none.
    subjects: Vec<u32>,
    /// The threads whose time is the cause.
    follows: Vec<Option<Tid>>,
}

impl CauseColumns {
    /// Appends the time from `start` to `end`. `follow` is the thread whose time is the cause.
    pub fn push(
        &mut self,
        start: Timestamp,
        end: Timestamp,
        cause: u32,
        subject: Option<u32>,
        follow: Option<Tid>,
    ) {
        let start = self.starts.push(start);
        self.durations.push(end.since(start));
        self.causes.push(cause);
        self.subjects.push(subject.map_or(0, |id| id + 1));
        self.follows.push(follow);
    }
}

impl EncodedColumns for CauseColumns {
    fn count(&self) -> usize {
        self.durations.len()
    }

    /// The first and the last stretch lie within other tracks.
    fn range(&self) -> Option<(Timestamp, Timestamp)> {
        None
    }

    fn names(&self) -> Vec<ColumnName> {
        vec![
            ColumnName::new("start", encoding::DELTA),
            ColumnName::new("duration", encoding::VARINT),
            ColumnName::new("cause", encoding::VARINT),
            ColumnName::new("subject", encoding::VARINT),
            ColumnName::new("follow", encoding::VARINT),
        ]
    }

    fn encode(&self, base: &Base<'_>, out: &mut Vec<u8>) {
        self.starts.encode(base, out);
        self.durations.iter().for_each(|ns| varint::push(out, *ns));
        self.causes.iter().for_each(|id| varint::push(out, (*id).into()));
        self.subjects.iter().for_each(|id| varint::push(out, (*id).into()));
        let thread = |tid: &Option<Tid>| tid.map_or(0, |tid| base.thread_or_none(tid));
        self.follows.iter().for_each(|tid| varint::push(out, thread(tid)));
    }
}

/// Arrows between tracks of the page, ordered by their begins.
#[derive(Default)]
pub(super) struct ArrowColumns {
    pub list: Vec<PageArrow>,
}

/// An arrow between two tracks.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageArrow {
    /// The time at which it begins.
    pub from_ts: Timestamp,
    /// The time at which it ends.
    pub to_ts: Timestamp,
    /// The number of the track on which it begins.
    pub from_track: usize,
    /// The number of the track on which it ends.
    pub to_track: usize,
}

impl EncodedColumns for ArrowColumns {
    fn count(&self) -> usize {
        self.list.len()
    }

    fn range(&self) -> Option<(Timestamp, Timestamp)> {
        None
    }

    fn names(&self) -> Vec<ColumnName> {
        let tracks = ["from_track", "to_track"].map(|name| ColumnName::new(name, encoding::VARINT));
        [&[ColumnName::new("from", encoding::DELTA), ColumnName::new("to", encoding::ZIGZAG)][..], &tracks]
            .concat()
    }

    fn encode(&self, base: &Base<'_>, out: &mut Vec<u8>) {
        let mut from = TimeColumn::default();
        self.list.iter().for_each(|arrow| _ = from.push(arrow.from_ts));
        from.encode(base, out);
        self.list.iter().for_each(|arrow| {
            varint::push(out, varint::zigzag(arrow.to_ts.wrapping_since(arrow.from_ts)));
        });
        self.list.iter().for_each(|arrow| varint::push(out, arrow.from_track as u64));
        self.list.iter().for_each(|arrow| varint::push(out, arrow.to_track as u64));
    }
}
