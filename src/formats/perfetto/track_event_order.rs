//! The order of the track events of a trace: by time, in bounded memory.

use super::trace_streams::{TraceStreams, load_text, store_text};
use crate::clock::Timestamp;
use crate::formats::run_order::{RunCursor, RunItem, RunSorter, SortedRuns};
use crate::formats::{CounterValue, Flow, TrackEventKind, TrackId};
use crate::varint;

/// The most events of a run. They take 20 MiB.
pub(super) const RUN_EVENTS: usize = 256 << 10;

/// One event, at a time of the recording's clock.
#[derive(Debug, Clone)]
pub(super) struct PlacedTrackEvent<'a> {
    pub(super) ts: Timestamp,
    pub(super) track: TrackId,
    pub(super) kind: TrackEventKind<'a>,
    pub(super) thread_ns: Option<u64>,
    pub(super) flows: Box<[Flow]>,
}

pub(super) type TrackEventSorter<'a> = RunSorter<PlacedTrackEvent<'a>>;
pub(super) type SortedTrackEvents<'a> = SortedRuns<PlacedTrackEvent<'a>>;
pub(super) type TrackEventCursor<'s, 'a> = RunCursor<'s, 'a, PlacedTrackEvent<'a>>;

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

impl<'a> RunItem<'a> for PlacedTrackEvent<'a> {
    type Key = Timestamp;
    type Source = TraceStreams<'a>;

    fn key(&self) -> Timestamp {
        self.ts
    }

    fn store(&self, streams: &TraceStreams<'a>, out: &mut Vec<u8>) {
        let has_thread_time = if self.thread_ns.is_some() { stored::HAS_THREAD_TIME } else { 0 };
        let head = |tag: u64, out: &mut Vec<u8>| {
            varint::push(out, self.ts.0);
            varint::push(out, self.track.0.into());
            varint::push(out, tag | has_thread_time);
        };
        match self.kind {
            TrackEventKind::Begin { name } => {
                head(stored::BEGIN, out);
                store_text(name, streams, out);
            }
            TrackEventKind::Instant { name } => {
                head(stored::INSTANT, out);
                store_text(name, streams, out);
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
        varint::push(out, self.flows.len() as u64);
        for flow in &self.flows {
            varint::push(out, flow.id);
            varint::push(out, flow.ends.into());
        }
    }

    fn load(rest: &mut &[u8], streams: &'a TraceStreams<'a>) -> Option<Self> {
        let ts = Timestamp(varint::take(rest)?);
        let track = TrackId(varint::take(rest)? as u32);
        let tag = varint::take(rest)?;
        let kind = match tag & !stored::HAS_THREAD_TIME {
            stored::BEGIN => TrackEventKind::Begin { name: load_text(rest, streams)? },
            stored::INSTANT => TrackEventKind::Instant { name: load_text(rest, streams)? },
            stored::INT => TrackEventKind::Counter(CounterValue::Int(varint::unzigzag(varint::take(rest)?))),
            stored::DOUBLE => {
                TrackEventKind::Counter(CounterValue::Double(f64::from_bits(varint::take(rest)?)))
            }
            _ => TrackEventKind::End,
        };
        let has_thread_time = tag & stored::HAS_THREAD_TIME != 0;
        let thread_ns = if has_thread_time { Some(varint::take(rest)?) } else { None };
        let count = varint::take(rest)?;
        let mut flow = || Some(Flow { id: varint::take(rest)?, ends: varint::take(rest)? != 0 });
        let flows = (0..count).map(|_| flow()).collect::<Option<_>>()?;
        Some(PlacedTrackEvent { ts, track, kind, thread_ns, flows })
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
            let flows: Box<[Flow]> = vec![Flow { id: n as u64, ends: n.is_multiple_of(2) }; n % 3].into();
            (ts(n), TrackId(n as u32), kind, n.is_multiple_of(4).then_some(n as u64), flows)
        };
        let mut sorter = TrackEventSorter::new(RUN_EVENTS);
        for n in 0..count {
            let (ts, track, kind, thread_ns, flows) = event(n);
            sorter.push(PlacedTrackEvent { ts, track, kind, thread_ns, flows }, &streams);
        }
        let sorted = sorter.finish(&streams).unwrap();
        let mut cursor = TrackEventCursor::new(&sorted, &streams);
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|n| ts(*n));
        for n in order {
            let (ts, track, kind, thread_ns, flows) = event(n);
            assert_eq!(cursor.next_key(), Some(ts));
            let next = cursor.next().unwrap();
            assert_eq!((next.ts, next.track, next.kind, next.thread_ns), (ts, track, kind, thread_ns));
            assert_eq!(next.flows, flows);
        }
        assert!(cursor.next().is_none() && sorted.count == count as u64);
    }
}
