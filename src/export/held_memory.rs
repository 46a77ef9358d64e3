//! The limit on what an output keeps in memory. A page and a profile for Firefox have tables that stand
//! before what refers to them, so that all of a timeline is held until its end: a small file of many small
//! events would take all of a machine's memory.
//!
//! The items are counted, each with the bytes that it takes in the tables of its format. Names are kept once,
//! and are no more than what the inputs may unpack to.

use std::io;

use crate::clock::Timestamp;
use crate::formats::unpack_budget::UnpackLimit;
use crate::formats::{CounterValue, Event, EventType, Flow, TimelineFrame};
use crate::ids::{Cpu, Pid};
use crate::timeline::{MergeSummary, MethodThread};
use crate::tracks::{
    Arrow, AsyncSlice, CounterSample, CounterScope, MethodLabel, OpenMethod, OwnTrack, Span, TakenSample,
    Task, Tasks, ThreadState, TrackSink,
};

/// Without a limit of the user's, an output of large files may keep this many bytes: a page of 60 million
/// calls or 7 million events of the scheduler.
const DEFAULT_BYTES: u64 = 3 << 29;

/// The most that an output may keep in memory, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldLimit(u64);

impl Default for HeldLimit {
    fn default() -> HeldLimit {
        HeldLimit(DEFAULT_BYTES)
    }
}

/// Without a limit of the user's, an output of small files may keep this many bytes, or this many times their
/// size.
const SMALL_BYTES: u64 = 256 << 20;
const RATIO: u64 = 16;

impl HeldLimit {
    /// The user's limit on memory, which is one for inputs and outputs. Without one it follows the size of
    /// the files, which have `bytes` together.
    pub fn of_inputs(limit: &UnpackLimit, bytes: u64) -> HeldLimit {
        let usual = bytes.saturating_mul(RATIO).clamp(SMALL_BYTES, DEFAULT_BYTES);
        HeldLimit(limit.max().unwrap_or(usual))
    }
}

/// Whether an error says that an output would have to keep too much.
pub(super) fn is_over_held_limit(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<OverHeldLimit>())
}

/// An output would have to keep more in memory than it may.
#[derive(Debug, thiserror::Error)]
#[error(
    "the output is kept in memory until it is complete, and {items} slices, states, calls, samples and values take more \
     than {limit} bytes, the limit: write a part with --from TIME and --to TIME, or a format that needs no memory \
     (.pftrace, .json, .csv), or set another limit with --max-memory BYTES"
)]
struct OverHeldLimit {
    items: u64,
    limit: u64,
}

/// The bytes that a format keeps for an item of each kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeldBytes {
    /// A slice, an instant, or another item with a name.
    pub named: u64,
    /// The time of a thread on a CPU.
    pub running: u64,
    /// The state of a thread.
    pub state: u64,
    /// An arrow from a thread to another one, or a step of a flow.
    pub arrow: u64,
    pub counter: u64,
    /// The begin or the end of a method.
    pub method_edge: u64,
    pub sample: u64,
}

/// Counts what an output keeps in memory, and ends it at the limit.
#[derive(Debug)]
pub(super) struct HeldMemory {
    each: HeldBytes,
    limit: u64,
    items: u64,
    bytes: u64,
}

impl HeldMemory {
    pub fn new(each: HeldBytes, limit: HeldLimit) -> HeldMemory {
        HeldMemory { each, limit: limit.0, items: 0, bytes: 0 }
    }

    #[inline]
    fn add(&mut self, bytes: u64) -> io::Result<()> {
        self.items += 1;
        self.bytes += bytes;
        self.check()
    }

    #[inline]
    fn check(&self) -> io::Result<()> {
        if self.bytes <= self.limit {
            return Ok(());
        }
        Err(io::Error::other(OverHeldLimit { items: self.items, limit: self.limit }))
    }

    /// Counts the texts of arguments, which are kept once for each different text: at most so many bytes.
    fn add_args(&mut self, track: &OwnTrack) -> io::Result<()> {
        let bytes: usize = track.args().iter().map(|(name, value)| name.len() + value.len()).sum();
        self.bytes += bytes as u64;
        self.check()
    }
}

impl TrackSink for HeldMemory {
    fn begin(&mut self, _: Task, _: Timestamp, _: &[u8]) -> io::Result<()> {
        self.add(self.each.named)
    }

    fn async_edge(&mut self, _: &Tasks, _: Pid, _: &AsyncSlice<'_>) -> io::Result<()> {
        self.add(self.each.named)
    }

    fn instant(&mut self, _: &Tasks, _: Task, _: Timestamp, _: &[u8]) -> io::Result<()> {
        self.add(self.each.named)
    }

    fn counter(&mut self, _: &Tasks, _: CounterScope, _: CounterSample<'_>) -> io::Result<()> {
        self.add(self.each.counter)
    }

    fn on_cpu(&mut self, _: &Tasks, _: Cpu, _: Task, _: Span, _: i64) -> io::Result<()> {
        self.add(self.each.running)
    }

    fn state(&mut self, _: &Tasks, _: Task, _: &ThreadState) -> io::Result<()> {
        self.add(self.each.state)
    }

    fn arrow(&mut self, _: &Arrow) -> io::Result<()> {
        self.add(self.each.arrow)
    }

    fn irq_begin(&mut self, _: Cpu, _: Timestamp, _: &str) -> io::Result<()> {
        self.add(self.each.named)
    }

    fn stack(
        &mut self,
        _: &MethodThread,
        _: &[OpenMethod],
        _: &[MethodLabel],
        _: Timestamp,
    ) -> io::Result<()> {
        self.add(self.each.method_edge)
    }

    fn sample(&mut self, _: &Tasks, _: &TakenSample<'_>) -> io::Result<()> {
        self.add(self.each.sample)
    }

    fn track_begin(&mut self, _: &OwnTrack, _: Timestamp, _: &[u8]) -> io::Result<()> {
        self.add(self.each.named)
    }

    fn track_slice(&mut self, track: &OwnTrack, _: Span, _: &[u8], _: usize) -> io::Result<()> {
        self.add_args(track)
    }

    fn track_instant(&mut self, track: &OwnTrack, _: Timestamp, _: &[u8]) -> io::Result<()> {
        self.add_args(track)?;
        self.add(self.each.named)
    }

    fn track_counter(&mut self, _: &OwnTrack, _: Timestamp, _: CounterValue) -> io::Result<()> {
        self.add(self.each.counter)
    }

    fn frame(&mut self, _: &Tasks, _: &OwnTrack, _: Span, _: &TimelineFrame<'_>) -> io::Result<()> {
        self.add(self.each.named)
    }

    fn track_flow(&mut self, _: &OwnTrack, _: Timestamp, _: Flow) -> io::Result<()> {
        self.add(self.each.arrow)
    }

    fn other(&mut self, _: &Tasks, _: Task, _: &Event<'_>, _: &EventType) -> io::Result<()> {
        self.add(self.each.named)
    }

    fn lost_between(&mut self, _: Cpu, _: Span, _: Option<u64>) -> io::Result<()> {
        self.add(self.each.named)
    }

    fn finish(&mut self, _: &Tasks, _: &MergeSummary) -> io::Result<()> {
        log::debug!("the output keeps {} items in memory, some {} bytes", self.items, self.bytes);
        Ok(())
    }
}
