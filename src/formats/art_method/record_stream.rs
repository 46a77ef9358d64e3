//! Streams the records of a trace with their times in ticks, as the file has them, to a sink: the form in
//! which profiles count records.

use std::convert::Infallible;

use super::body::{BlockBody, BlockCursor, RecordVisitor, ThreadTable, for_each_record};
use super::ids::{IdMap, NONE};
use super::record_times::{CPU, Ticks, WALL, WrapCorrection};
use super::{Body, MethodTrace};
use crate::art::{ClockMode, FixedRecord, RecordLayout};

/// Times of version 4 and 5 records are limited to this, ticks (52 days in ns), so that sums over many calls
/// fit.
const MAX_TICKS: u64 = 1 << 52;

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
            _ if SIZE == RecordLayout::Dual.size() => self.take(records, decode, ClockMode::Dual),
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
