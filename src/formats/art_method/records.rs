//! Records in file order, with dense indexes and with the wraps of 32-bit microseconds undone.

use super::body::{BlockCursor, FixedBody, FixedRecords, Segment, ThreadTable, decode};
use super::{Body, Header, MethodTrace};
use crate::art::{Action, BlockRecord, ClockMode, Fixed, RecordLayout};

/// One method event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Index into [`MethodTrace::threads`].
    pub thread: u32,
    /// Index into [`MethodTrace::methods`].
    pub method: u32,
    /// What happened.
    pub action: Action,
    /// ns since the trace's start ([`super::Header::start`]), in the clock of that start.
    pub wall: Option<u64>,
    /// ns of CPU time since the thread's first event.
    pub cpu: Option<u64>,
}

/// How far a clock may step back before it counts as a wrap of its 32 bits instead, µs: 10 s.
const STEP_BACK_MAX: u32 = 10_000_000;

/// Makes a growing number of the wrapping 32 bits that one clock of one thread writes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwrap {
    last: u32,
    wraps: u64,
}

impl Unwrap {
    /// The full time in µs. `may_wrap` is false where the header says that the whole trace was shorter than 2^32 µs.
    #[inline]
    pub fn take(&mut self, micros: u32, may_wrap: bool) -> u64 {
        if may_wrap && micros < self.last && self.last - micros > STEP_BACK_MAX {
            self.wraps += 1 << 32;
        }
        self.last = micros;
        self.wraps + u64::from(micros)
    }

    /// The full time in µs of `micros` behind `last`, where either may be on the other side of a wrap.
    pub fn step(&mut self, last: u32, micros: u32) -> u64 {
        self.last = last;
        self.take(micros, true)
    }

    /// For the first event of a thread: of all times with these 32 bits the one nearest to `near` (µs), which the
    /// record before it in the file has.
    pub fn nearest(micros: u32, near: u64) -> Unwrap {
        let ahead = micros.wrapping_sub(near as u32) as i32;
        let full = near.checked_add_signed(i64::from(ahead)).unwrap_or_else(|| u64::from(micros));
        Unwrap { last: micros, wraps: full & !u64::from(u32::MAX) }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct ThreadClocks {
    seen: bool,
    wall: Unwrap,
    cpu: Unwrap,
    cpu_base: u64,
}

#[derive(Debug, Clone)]
enum Source<'t, 'a> {
    Fixed { layout: RecordLayout, segments: std::slice::Iter<'t, Segment>, current: FixedRecords<'a> },
    Blocks(BlockCursor<'t, 'a>),
}

/// See [`MethodTrace::records`].
#[derive(Debug, Clone)]
pub struct Records<'t, 'a> {
    trace: &'t MethodTrace<'a>,
    source: Source<'t, 'a>,
    table: ThreadTable,
    clocks: Vec<ThreadClocks>,
    /// The wall time of the record before, µs.
    near: u64,
    rebase_cpu: bool,
}

impl<'t, 'a> Records<'t, 'a> {
    pub(super) fn new(trace: &'t MethodTrace<'a>) -> Self {
        let source = match &trace.body {
            Body::Fixed(FixedBody { layout, segments }) => Source::Fixed {
                layout: *layout,
                segments: segments.iter(),
                current: decode(&[], &(0..0), *layout),
            },
            Body::Blocks(body) => Source::Blocks(BlockCursor::new(trace.bytes, body, trace.threads.len())),
        };
        Records {
            trace,
            source,
            table: trace.table.clone(),
            clocks: vec![ThreadClocks::default(); trace.threads.len()],
            near: 0,
            rebase_cpu: true,
        }
    }

    /// The same with CPU times as the file has them, not counted from each thread's first event.
    pub fn as_written(mut self) -> Self {
        self.rebase_cpu = false;
        self
    }

    fn resolve(&mut self, record: Fixed) -> Option<Record> {
        let thread = self.table.get(record.thread);
        let method = self.trace.ids.get(u64::from(record.word));
        let action = record.action()?;
        let clocks = self.clocks.get_mut(thread as usize)?;
        let mode = self.trace.header.clock;
        let (cpu, wall) = match mode {
            ClockMode::ThreadCpu => (Some(record.first), None),
            ClockMode::Wall => (None, Some(record.first)),
            ClockMode::Dual => (Some(record.first), Some(record.second)),
        };
        let may_wrap = self.trace.may_wrap;
        let first = !std::mem::replace(&mut clocks.seen, true);
        let wall = wall.map(|micros| {
            if first && may_wrap {
                clocks.wall = Unwrap::nearest(micros, self.near);
            }
            self.near = clocks.wall.take(micros, may_wrap);
            self.near * 1_000
        });
        let cpu = cpu.map(|micros| {
            let full = clocks.cpu.take(micros, may_wrap);
            if first && self.rebase_cpu {
                clocks.cpu_base = full;
            }
            full.saturating_sub(clocks.cpu_base) * 1_000
        });
        Some(Record { thread, method, action, wall, cpu })
    }
}

impl Records<'_, '_> {
    fn resolve_block(&mut self, thread: u32, record: BlockRecord) -> Option<Record> {
        let Header { tick_ns, clock, .. } = self.trace.header;
        let action = Action::from_bits(record.word)?;
        let clocks = self.clocks.get_mut(thread as usize)?;
        if !std::mem::replace(&mut clocks.seen, true) && self.rebase_cpu {
            clocks.cpu_base = record.cpu;
        }
        let cpu = record.cpu.saturating_sub(clocks.cpu_base).saturating_mul(tick_ns);
        let wall = record.wall.saturating_mul(tick_ns);
        let method = self.trace.ids.get(record.word);
        Some(Record {
            thread,
            method,
            action,
            wall: clock.has_wall().then_some(wall),
            cpu: clock.has_cpu().then_some(cpu),
        })
    }
}

impl Iterator for Records<'_, '_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        loop {
            let resolved = match &mut self.source {
                Source::Blocks(cursor) => {
                    let (thread, record) = cursor.next()?;
                    self.resolve_block(thread, record)
                }
                Source::Fixed { layout, segments, current } => match current.next() {
                    Some(record) => self.resolve(record),
                    None => {
                        let segment = segments.next()?;
                        for (id, index) in &segment.binds {
                            self.table.bind(*id, *index);
                        }
                        *current = decode(self.trace.bytes, &segment.range, *layout);
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
