//! Puts the track events of a trace in order of time, in bounded memory.
//!
//! The events are divided into runs. The events of a run are sorted in memory. Where there is more than one
//! run, they are stored in a temporary file ([`SpillWriter`]), and all runs are merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::ops::Range;

use super::trace_streams::TraceStreams;
use crate::clock::Timestamp;
use crate::formats::spill::{FileBytes, RELEASE_BYTES, Release, SpillWriter};
use crate::formats::{CounterValue, Flow, TrackEventKind, TrackId};
use crate::varint;

/// The most events of a run. They take 18 MiB.
const RUN_EVENTS: usize = 256 << 10;

/// One event, at a time of the recording's clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedTrackEvent<'a> {
    pub(super) ts: Timestamp,
    pub(super) track: TrackId,
    pub(super) kind: TrackEventKind<'a>,
    pub(super) thread_ns: Option<u64>,
    /// The event's flows, among those of its run.
    flows: (u32, u32),
}

/// Collects the events in the order of the file.
#[derive(Default)]
pub(super) struct TrackEventSorter<'a> {
    events: Vec<PlacedTrackEvent<'a>>,
    flows: Vec<Flow>,
    runs: Vec<Range<usize>>,
    store: SpillWriter,
    count: u64,
    /// The first error of the store, after which no event is kept.
    error: Option<io::Error>,
}

/// The events of all runs.
pub(super) struct SortedTrackEvents<'a> {
    events: Vec<PlacedTrackEvent<'a>>,
    flows: Vec<Flow>,
    runs: Vec<Range<usize>>,
    store: FileBytes,
    pub(super) count: u64,
}

/// The tags of stored events.
mod stored {
    pub const BEGIN: u64 = 0;
    pub const END: u64 = 1;
    pub const INSTANT: u64 = 2;
    pub const INT: u64 = 3;
    pub const DOUBLE: u64 = 4;
    /// The event also has the time of its thread.
    pub const HAS_THREAD_TIME: u64 = 8;
}

impl<'a> TrackEventSorter<'a> {
    /// Adds an event. Frames are no such events.
    pub(super) fn push(
        &mut self,
        ts: Timestamp,
        track: TrackId,
        kind: TrackEventKind<'a>,
        thread_ns: Option<u64>,
        flows: &[Flow],
        streams: &TraceStreams<'_>,
    ) {
        let place = (self.flows.len() as u32, flows.len() as u32);
        self.flows.extend_from_slice(flows);
        self.events.push(PlacedTrackEvent { ts, track, kind, thread_ns, flows: place });
        self.count += 1;
        if self.events.len() >= RUN_EVENTS {
            self.end_run(streams);
        }
    }

    /// Stores the events of the current run.
    fn end_run(&mut self, streams: &TraceStreams<'_>) {
        self.events.sort_by_key(|event| event.ts);
        let start = self.store.len();
        let mut bytes = Vec::new();
        for event in &self.events {
            bytes.clear();
            event.store(&self.flows, streams, &mut bytes);
            if let Err(error) = io::Write::write_all(&mut self.store, &bytes) {
                self.error.get_or_insert(error);
                break;
            }
        }
        self.runs.push(start..self.store.len());
        self.events.clear();
        self.flows.clear();
    }

    /// # Errors
    /// Those of the temporary file.
    pub(super) fn finish(mut self, streams: &TraceStreams<'_>) -> io::Result<SortedTrackEvents<'a>> {
        if !self.runs.is_empty() && !self.events.is_empty() {
            self.end_run(streams);
        }
        self.events.sort_by_key(|event| event.ts);
        let TrackEventSorter { events, flows, runs, store, count, error } = self;
        let store = error.map_or_else(|| store.finish(), Err)?;
        Ok(SortedTrackEvents { events, flows, runs, store, count })
    }
}

impl Default for SortedTrackEvents<'_> {
    fn default() -> Self {
        SortedTrackEvents {
            events: Vec::new(),
            flows: Vec::new(),
            runs: Vec::new(),
            store: FileBytes::Owned(Vec::new()),
            count: 0,
        }
    }
}

impl<'a> PlacedTrackEvent<'a> {
    fn store(&self, flows: &[Flow], streams: &TraceStreams<'_>, out: &mut Vec<u8>) {
        let has_thread_time = if self.thread_ns.is_some() { stored::HAS_THREAD_TIME } else { 0 };
        let head = |tag: u64, out: &mut Vec<u8>| {
            varint::push(out, self.ts.0);
            varint::push(out, self.track.0.into());
            varint::push(out, tag | has_thread_time);
        };
        match self.kind {
            TrackEventKind::Begin { name } => {
                head(stored::BEGIN, out);
                store_name(name, streams, out);
            }
            TrackEventKind::Instant { name } => {
                head(stored::INSTANT, out);
                store_name(name, streams, out);
            }
            TrackEventKind::Counter(CounterValue::Int(value)) => {
                head(stored::INT, out);
                varint::push(out, varint::zigzag(value));
            }
            TrackEventKind::Counter(CounterValue::Double(value)) => {
                head(stored::DOUBLE, out);
                varint::push(out, value.to_bits());
            }
            TrackEventKind::End | TrackEventKind::Frame(_) => head(stored::END, out),
        }
        self.thread_ns.iter().for_each(|ns| varint::push(out, *ns));
        let flows = flows_of(self, flows);
        varint::push(out, flows.len() as u64);
        for flow in flows {
            varint::push(out, flow.id);
            varint::push(out, flow.ends.into());
        }
    }

    /// Reads an event that [`PlacedTrackEvent::store`] has written; its flows replace those of `flows`.
    fn read(rest: &mut &[u8], flows: &mut Vec<Flow>, streams: &'a TraceStreams<'_>) -> Option<Self> {
        let ts = Timestamp(varint::take(rest)?);
        let track = TrackId(varint::take(rest)? as u32);
        let tag = varint::take(rest)?;
        let kind = match tag & !stored::HAS_THREAD_TIME {
            stored::BEGIN => TrackEventKind::Begin { name: read_name(rest, streams)? },
            stored::INSTANT => TrackEventKind::Instant { name: read_name(rest, streams)? },
            stored::INT => TrackEventKind::Counter(CounterValue::Int(varint::unzigzag(varint::take(rest)?))),
            stored::DOUBLE => {
                TrackEventKind::Counter(CounterValue::Double(f64::from_bits(varint::take(rest)?)))
            }
            _ => TrackEventKind::End,
        };
        let has_thread_time = tag & stored::HAS_THREAD_TIME != 0;
        let thread_ns = if has_thread_time { Some(varint::take(rest)?) } else { None };
        let count = varint::take(rest)?;
        flows.clear();
        for _ in 0..count {
            flows.push(Flow { id: varint::take(rest)?, ends: varint::take(rest)? != 0 });
        }
        Some(PlacedTrackEvent { ts, track, kind, thread_ns, flows: (0, count as u32) })
    }
}

/// Stores the place of a name in the trace.
fn store_name(name: &[u8], streams: &TraceStreams<'_>, out: &mut Vec<u8>) {
    let place = streams.place_of(name).unwrap_or_default();
    varint::push(out, place.stream as u64);
    varint::push(out, place.offset as u64);
    varint::push(out, name.len() as u64);
}

fn read_name<'a>(rest: &mut &[u8], streams: &'a TraceStreams<'_>) -> Option<&'a [u8]> {
    let stream = varint::take(rest)? as usize;
    let offset = varint::take(rest)? as usize;
    let len = varint::take(rest)? as usize;
    streams.stream(stream).get(offset..offset.checked_add(len)?)
}

/// The flows of an event among those of its run.
fn flows_of<'f>(event: &PlacedTrackEvent<'_>, flows: &'f [Flow]) -> &'f [Flow] {
    let (first, count) = event.flows;
    let first = first as usize;
    flows.get(first..first + count as usize).unwrap_or_default()
}

/// The rest of a run, with its next event.
struct RunCursor<'s, 'a> {
    rest: &'s [u8],
    next: PlacedTrackEvent<'a>,
    flows: Vec<Flow>,
}

/// Goes through all events in order of time; of one time in the order of the file.
pub(super) struct TrackEventCursor<'s, 'a> {
    sorted: &'s SortedTrackEvents<'a>,
    streams: &'a TraceStreams<'a>,
    /// The number of the next event of the only run.
    at: usize,
    runs: Vec<Option<RunCursor<'s, 'a>>>,
    heap: BinaryHeap<Reverse<(Timestamp, usize)>>,
    /// The bytes that were read since memory was released.
    read: usize,
    flows: Vec<Flow>,
}

impl<'s, 'a> TrackEventCursor<'s, 'a> {
    pub(super) fn new(
        sorted: &'s SortedTrackEvents<'a>,
        streams: &'a TraceStreams<'a>,
    ) -> TrackEventCursor<'s, 'a> {
        let mut cursor = TrackEventCursor {
            sorted,
            streams,
            at: 0,
            runs: Vec::new(),
            heap: BinaryHeap::new(),
            read: 0,
            flows: Vec::new(),
        };
        for range in &sorted.runs {
            let rest = sorted.store.get(range.clone()).unwrap_or_default();
            cursor.runs.push(None);
            cursor.enter(cursor.runs.len() - 1, rest, Vec::new());
        }
        cursor
    }

    /// Reads the next event of a run.
    fn enter(&mut self, run: usize, mut rest: &'s [u8], mut flows: Vec<Flow>) {
        let before = rest.len();
        let next = PlacedTrackEvent::read(&mut rest, &mut flows, self.streams);
        self.read += before - rest.len();
        if let Some(next) = next {
            self.heap.push(Reverse((next.ts, run)));
            self.runs[run] = Some(RunCursor { rest, next, flows });
        }
    }

    /// The time of the next event.
    pub(super) fn next_ts(&self) -> Option<Timestamp> {
        let stored = self.heap.peek().map(|Reverse((ts, _))| *ts);
        stored.or_else(|| self.sorted.events.get(self.at).map(|event| event.ts))
    }

    /// The next event, and its flows.
    pub(super) fn next(&mut self) -> Option<(PlacedTrackEvent<'a>, &[Flow])> {
        let Some(Reverse((_, run))) = self.heap.pop() else {
            let event = *self.sorted.events.get(self.at)?;
            self.at += 1;
            return Some((event, flows_of(&event, &self.sorted.flows)));
        };
        let RunCursor { rest, next, flows } = self.runs.get_mut(run)?.take()?;
        let reused = std::mem::replace(&mut self.flows, flows);
        self.enter(run, rest, reused);
        if self.read >= RELEASE_BYTES {
            self.read = 0;
            self.sorted.store.release(0..self.sorted.store.len());
            self.streams.release();
        }
        Some((next, &self.flows))
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::write::{message, string, uint};
    use super::*;

    #[test]
    fn events_of_many_runs_come_in_order_with_all_that_they_have() {
        let mut data = Vec::new();
        message(&mut data, 1, |packet| {
            uint(packet, 8, 1);
            string(packet, 2, b"the name");
        });
        let streams = TraceStreams::of_file(&data);
        let at = data.len() - b"the name".len();
        let name = &streams.stream(0)[at..];
        let count = 2 * RUN_EVENTS + 3;
        // Every seventh event comes with the times of the end of the file, and the last run begins early.
        let ts = |n: usize| Timestamp(((n * 7) % count) as u64);
        let event = |n: usize| {
            let kind = match n % 5 {
                0 => TrackEventKind::Begin { name },
                1 => TrackEventKind::End,
                2 => TrackEventKind::Instant { name },
                3 => TrackEventKind::Counter(CounterValue::Int(-(n as i64))),
                _ => TrackEventKind::Counter(CounterValue::Double(n as f64 / 8.0)),
            };
            let flows = vec![Flow { id: n as u64, ends: n.is_multiple_of(2) }; n % 3];
            (ts(n), TrackId(n as u32), kind, n.is_multiple_of(4).then_some(n as u64), flows)
        };
        let mut sorter = TrackEventSorter::default();
        for n in 0..count {
            let (ts, track, kind, thread_ns, flows) = event(n);
            sorter.push(ts, track, kind, thread_ns, &flows, &streams);
        }
        assert_eq!((sorter.events.len(), sorter.runs.len()), (3, 2), "what is in memory");
        let sorted = sorter.finish(&streams).unwrap();
        let mut cursor = TrackEventCursor::new(&sorted, &streams);
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|n| ts(*n));
        for n in order {
            let (ts, track, kind, thread_ns, flows) = event(n);
            assert_eq!(cursor.next_ts(), Some(ts));
            let (next, next_flows) = cursor.next().unwrap();
            assert_eq!((next.ts, next.track, next.kind, next.thread_ns), (ts, track, kind, thread_ns));
            assert_eq!(next_flows, flows);
        }
        assert!(cursor.next().is_none() && sorted.count == count as u64);
    }
}
