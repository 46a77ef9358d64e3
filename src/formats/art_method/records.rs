//! The records of a trace in file order, with dense indexes and with times in ns. The wraps of 32-bit times
//! are undone.

use std::convert::Infallible;
use std::ops::Range;

use super::body::{
    BlockBody, BlockCursor, CPU, FixedBody, FixedRecords, IdMap, MAX_TICKS, NONE, RecordVisitor, Segment,
    ThreadTable, Ticks, WALL, WrapCorrection, decode, for_each_record, parts,
};
use super::{Body, Header, MethodTrace};
use crate::art::{Action, BlockRecord, ClockMode, FixedRecord, RecordLayout};

/// One record: a thread enters or leaves a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Index into [`MethodTrace::threads`].
    pub thread: u32,
    /// Index into [`MethodTrace::methods`].
    pub method: u32,
    /// Whether the method was entered, returned, or was left by an exception.
    pub action: Action,
    /// Wall time, ns since the start of the trace ([`super::Header::start`]).
    pub wall: Option<u64>,
    /// CPU time of the thread, ns since the thread's first record.
    pub cpu: Option<u64>,
}

/// The first CPU time of a thread, from which its CPU times count.
#[derive(Debug, Clone, Copy, Default)]
struct CpuBase {
    seen: bool,
    ticks: u64,
}

#[derive(Debug, Clone)]
enum RecordSource<'t, 'a> {
    Fixed {
        layout: RecordLayout,
        segments: std::slice::Iter<'t, Segment>,
        /// The bytes of the current segment that are not in `current` yet.
        rest: Range<usize>,
        current: FixedRecords<'a>,
    },
    Blocks(BlockCursor<'t, 'a>),
}

impl<'a> MethodTrace<'a> {
    /// All records in file order, which is the order of time only within each thread.
    pub fn records(&self) -> Records<'_, 'a> {
        Records::new(self)
    }
}

/// The iterator of [`MethodTrace::records`].
#[derive(Debug, Clone)]
pub struct Records<'t, 'a> {
    trace: &'t MethodTrace<'a>,
    source: RecordSource<'t, 'a>,
    table: ThreadTable,
    wraps: WrapCorrection,
    /// By dense thread index; `None` leaves CPU times as the file has them.
    cpu_bases: Option<Vec<CpuBase>>,
}

impl<'t, 'a> Records<'t, 'a> {
    fn new(trace: &'t MethodTrace<'a>) -> Self {
        let source = match &trace.body {
            Body::Fixed(FixedBody { layout, segments }) => RecordSource::Fixed {
                layout: *layout,
                segments: segments.iter(),
                rest: 0..0,
                current: decode(&[], &(0..0), *layout),
            },
            Body::Blocks(body) => {
                RecordSource::Blocks(BlockCursor::new(trace.bytes, body, trace.threads.len(), trace.may_wrap))
            }
        };
        Records {
            trace,
            source,
            table: trace.table.clone(),
            wraps: WrapCorrection::new(trace.threads.len()),
            cpu_bases: Some(vec![CpuBase::default(); trace.threads.len()]),
        }
    }

    /// The same records with CPU times as the file has them, not counted from each thread's first record.
    pub fn as_written(mut self) -> Self {
        self.cpu_bases = None;
        self
    }

    /// Passes all records to `visit` until it fails. The records are those of the iterator; the loop over
    /// them is compiled for each layout, and is faster.
    pub(crate) fn try_each<E>(mut self, mut visit: impl FnMut(Record) -> Result<(), E>) -> Result<(), E> {
        let Body::Fixed(FixedBody { layout, segments }) = &self.trace.body else {
            return self.into_iter().try_for_each(visit);
        };
        let bytes = self.trace.bytes;
        let mut visitor = ResolvedRecords { records: &mut self, visit: &mut visit };
        for_each_record(bytes, segments, *layout, &mut visitor)
    }

    /// The record of versions 1 to 3 as a [`Record`]; `None` for an unknown action.
    #[inline(always)]
    fn resolve_fixed(&mut self, record: FixedRecord) -> Option<Record> {
        let thread = self.table.get(record.thread);
        let action = record.action()?;
        let times = record.times(self.trace.header.clock);
        let at =
            if self.trace.may_wrap { self.wraps.full_times(thread, times) } else { times.map(u64::from) };
        self.record(thread, u64::from(record.word), action, at)
    }

    /// The record of versions 4 and 5 as a [`Record`]; `None` for an unknown action.
    fn resolve_block(&mut self, thread: u32, record: BlockRecord) -> Option<Record> {
        self.record(thread, record.word, Action::from_bits(record.word)?, [record.cpu, record.wall])
    }

    #[inline(always)]
    fn record(&mut self, thread: u32, word: u64, action: Action, at: Ticks) -> Option<Record> {
        let Header { tick_ns, clock, .. } = self.trace.header;
        self.trace.threads.get(thread as usize)?;
        let cpu = match &mut self.cpu_bases {
            Some(bases) => {
                let base = bases.get_mut(thread as usize)?;
                if !std::mem::replace(&mut base.seen, true) {
                    base.ticks = at[CPU];
                }
                at[CPU].saturating_sub(base.ticks)
            }
            None => at[CPU],
        };
        Some(Record {
            thread,
            method: self.trace.ids.get(word),
            action,
            wall: clock.has_wall().then(|| at[WALL].saturating_mul(tick_ns)),
            cpu: clock.has_cpu().then(|| cpu.saturating_mul(tick_ns)),
        })
    }
}

/// Gives the records of versions 1 to 3 as [`Record`]s to a function.
struct ResolvedRecords<'v, 't, 'a, F> {
    records: &'v mut Records<'t, 'a>,
    visit: &'v mut F,
}

impl<E, F: FnMut(Record) -> Result<(), E>> RecordVisitor for ResolvedRecords<'_, '_, '_, F> {
    type Error = E;

    fn bind(&mut self, id: u16, thread: u32) {
        self.records.table.bind(id, thread);
    }

    #[inline(always)]
    fn records<const SIZE: usize>(
        &mut self,
        records: &[[u8; SIZE]],
        _: usize,
        decode: impl Fn(&[u8; SIZE]) -> FixedRecord,
    ) -> Result<(), E> {
        for record in records.iter().map(decode) {
            if let Some(record) = self.records.resolve_fixed(record) {
                (self.visit)(record)?;
            }
        }
        Ok(())
    }
}

impl Iterator for Records<'_, '_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        loop {
            let resolved = match &mut self.source {
                RecordSource::Blocks(cursor) => {
                    let (thread, record) = cursor.next()?;
                    self.resolve_block(thread, record)
                }
                RecordSource::Fixed { layout, segments, rest, current } => match current.next() {
                    Some(record) => self.resolve_fixed(record),
                    None => {
                        if rest.start >= rest.end {
                            let segment = segments.next()?;
                            for (id, index) in &segment.binds {
                                self.table.bind(*id, *index);
                            }
                            *rest = segment.range.clone();
                        }
                        let part = parts(rest.clone(), layout.size()).next().unwrap_or(rest.end..rest.end);
                        rest.start = part.end;
                        *current = decode(self.trace.bytes, &part, *layout);
                        None
                    }
                },
            };
            if resolved.is_some() {
                return resolved;
            }
        }
    }
}

/// 1 in a record that leaves its method, 0 in one that enters it.
///
/// It is a number that is calculated from the record's action, and not a `bool`: of a condition the compiler
/// makes jumps, which the processor predicts wrongly every other time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExitBit(pub u64);

impl ExitBit {
    /// Enters the method.
    pub const ENTER: ExitBit = ExitBit(0);
    /// Leaves the method.
    pub const EXIT: ExitBit = ExitBit(1);

    /// The bit for the action in the low two bits of a method word: 0 enters; 1 and 2 leave.
    #[inline(always)]
    fn of_word(word: u64) -> ExitBit {
        ExitBit(((word & 3) + 3) >> 2)
    }

    /// Whether the record leaves its method.
    #[inline(always)]
    pub fn leaves(self) -> bool {
        self != ExitBit::ENTER
    }
}

/// Receives the records of a trace. Thread and method indexes are dense.
pub(crate) trait RecordSink {
    /// Receives one record: the thread enters the method or leaves it.
    fn record(&mut self, thread: u32, method: u32, exit: ExitBit, at: Ticks);
    /// Receives the time of a record that is itself left out: the thread's open calls go on until then.
    fn advance(&mut self, thread: u32, at: Ticks);
}

/// The threads whose records are streamed: for each dense thread index, whether the thread counts. `None`
/// selects all threads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SelectedThreads<'s>(pub Option<&'s [bool]>);

impl SelectedThreads<'_> {
    /// Whether the thread with this dense index counts.
    #[inline(always)]
    pub fn has(self, thread: u32) -> bool {
        self.0.is_none_or(|threads| threads.get(thread as usize).copied().unwrap_or(false))
    }
}

/// Streams the records of the selected threads to `sink`, in file order. Records with an action that no
/// runtime writes are left out.
pub(crate) fn stream(trace: &MethodTrace<'_>, threads: SelectedThreads<'_>, sink: &mut impl RecordSink) {
    let body = match &trace.body {
        Body::Fixed(body) => body,
        Body::Blocks(body) => return stream_blocks(trace, body, threads, sink),
    };
    let may_wrap = trace.may_wrap;
    let mut table = trace.table.clone();
    // Where times may have wrapped, the records of all threads are needed to follow the clocks.
    if !may_wrap {
        table.retain(|index| threads.has(index));
    }
    let mut visitor = SinkVisitor {
        sink,
        threads,
        all: threads.0.is_none() || !may_wrap,
        may_wrap,
        clock: trace.header.clock,
        wraps: WrapCorrection::new(trace.threads.len()),
        table,
        ids: &trace.ids,
    };
    let Ok(()) = for_each_record(trace.bytes, &body.segments, body.layout, &mut visitor);
}

/// Gives the records of versions 1 to 3 to a sink.
struct SinkVisitor<'v, S> {
    sink: &'v mut S,
    threads: SelectedThreads<'v>,
    /// Whether each thread in `table` counts.
    all: bool,
    may_wrap: bool,
    clock: ClockMode,
    wraps: WrapCorrection,
    table: ThreadTable,
    ids: &'v IdMap,
}

impl<S: RecordSink> RecordVisitor for SinkVisitor<'_, S> {
    type Error = Infallible;

    fn bind(&mut self, id: u16, thread: u32) {
        if self.may_wrap || self.threads.has(thread) {
            self.table.bind(id, thread);
        }
    }

    #[inline(always)]
    fn records<const SIZE: usize>(
        &mut self,
        records: &[[u8; SIZE]],
        _: usize,
        decode: impl Fn(&[u8; SIZE]) -> FixedRecord,
    ) -> Result<(), Infallible> {
        // The compiler makes one copy of the loop for each layout and clock, so that the loop itself never
        // asks for them.
        match self.clock {
            ClockMode::Dual if SIZE == RecordLayout::Dual.size() => {
                self.take(records, decode, ClockMode::Dual);
            }
            ClockMode::Wall => self.take(records, decode, ClockMode::Wall),
            _ => self.take(records, decode, ClockMode::ThreadCpu),
        }
        Ok(())
    }
}

impl<S: RecordSink> SinkVisitor<'_, S> {
    #[inline(always)]
    fn take<const SIZE: usize>(
        &mut self,
        records: &[[u8; SIZE]],
        decode: impl Fn(&[u8; SIZE]) -> FixedRecord,
        clock: ClockMode,
    ) {
        for bytes in records {
            let record = decode(bytes);
            let thread = self.table.get(record.thread);
            // Records with the fourth action, which no runtime writes, are left out with their times.
            if thread == NONE || record.word & 3 == 3 {
                continue;
            }
            let times = record.times(clock);
            let at = if self.may_wrap { self.wraps.full_times(thread, times) } else { times.map(u64::from) };
            // A match on the action would cost a jump that the processor predicts wrongly every other time.
            if self.all || self.threads.has(thread) {
                let word = u64::from(record.word);
                self.sink.record(thread, self.ids.get(word), ExitBit::of_word(word), at);
            }
        }
    }
}

fn stream_blocks(
    trace: &MethodTrace<'_>,
    body: &BlockBody,
    threads: SelectedThreads<'_>,
    sink: &mut impl RecordSink,
) {
    let mut last = vec![None; trace.threads.len()];
    for (thread, record) in BlockCursor::new(trace.bytes, body, trace.threads.len(), trace.may_wrap) {
        if record.word & 3 != 3 && threads.has(thread) {
            let at = [record.cpu.min(MAX_TICKS), record.wall.min(MAX_TICKS)];
            let exit = ExitBit::of_word(record.word);
            sink.record(thread, trace.ids.get(record.word), exit, at);
            last[thread as usize] = Some((exit, at));
        }
    }
    if trace.header.has_times() {
        return;
    }
    // Without times the wall time of a record counts the calls before it. A call that is the last record
    // counts too.
    for (thread, last) in last.into_iter().enumerate() {
        if let Some((ExitBit::ENTER, at)) = last {
            sink.advance(thread as u32, [at[CPU], at[WALL] + 1]);
        }
    }
}
