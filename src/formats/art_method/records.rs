//! The records of a trace in file order, with dense indexes and with times in ns. The wraps of 32-bit times
//! are undone.

use std::ops::Range;

use super::body::{
    BlockCursor, FixedBody, FixedRecords, RecordVisitor, Segment, ThreadTable, decode, for_each_record, parts,
};
use super::record_times::{CPU, Ticks, WALL, WrapCorrection};
use super::{Body, Header, MethodTrace};
use crate::art::{Action, BlockRecord, FixedRecord, RecordLayout};

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
        let at = match self.trace.may_wrap {
            true => self.wraps.full_times(thread, times),
            false => times.map(u64::from),
        };
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
