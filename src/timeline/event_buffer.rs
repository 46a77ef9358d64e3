//! Buffers events and edges in memory, so that they can be pushed in order of time between the events of the
//! recording that is read last.

use std::io;

use super::sink::{Edge, TimelineSink};
use crate::clock::Timestamp;
use crate::formats::samples::Sample;
use crate::formats::{Event, EventType, OwnedEvents, OwnedTrackEvent, Sink};

/// Everything that waits until the timeline reaches its time.
#[derive(Default)]
pub struct TimelineBuffer {
    /// Events of recordings.
    recordings: Vec<EventBuffer>,
    /// Track events, the latest first.
    track_events: Vec<OwnedTrackEvent>,
    /// Edges of method threads, each with its thread's index, the latest first.
    edges: Vec<(u32, Edge)>,
    /// Samples, each with the number of its set, the latest first.
    samples: Vec<(u32, Sample)>,
}

/// The length of a [`TimelineBuffer`] before an input was added.
#[derive(Debug, Clone, Copy)]
pub struct BufferLength {
    track_events: usize,
    edges: usize,
}

impl TimelineBuffer {
    /// Adds a track event. [`TimelineBuffer::end_recording`] sorts it in.
    pub fn add_track_event(&mut self, event: OwnedTrackEvent) {
        self.track_events.push(event);
    }

    /// Adds edges of a method thread. [`TimelineBuffer::end_recording`] or [`TimelineBuffer::sort_edges`]
    /// sorts them in.
    pub fn add_edges(&mut self, thread: u32, edges: &[Edge]) {
        self.edges.extend(edges.iter().map(|edge| (thread, *edge)));
    }

    /// Adds a sample. [`TimelineBuffer::sort_samples`] sorts it in.
    pub fn add_sample(&mut self, set: u32, sample: &Sample) {
        self.samples.push((set, *sample));
    }

    /// Puts the latest sample first. Where times are equal, the order of the inputs stays.
    pub fn sort_samples(&mut self) {
        self.samples.sort_by_key(|(_, sample)| sample.time);
        self.samples.reverse();
    }

    /// Puts the latest edge first. Where times are equal, each thread's own order stays.
    pub fn sort_edges(&mut self) {
        self.edges.sort_by_key(|(_, edge)| edge.ts);
        self.edges.reverse();
    }

    /// The length up to which everything is sorted.
    pub fn sorted_length(&self) -> BufferLength {
        BufferLength { track_events: self.track_events.len(), edges: self.edges.len() }
    }

    /// Adds the events of a recording, and sorts in the track events and edges that were added since the
    /// buffer had the length `sorted`.
    pub fn end_recording(&mut self, mut events: EventBuffer, sorted: BufferLength) {
        events.sort();
        self.recordings.push(events);
        let added = self.edges.split_off(sorted.edges);
        self.edges.reverse();
        self.edges.extend(added);
        self.sort_edges();
        let added = self.track_events.split_off(sorted.track_events);
        self.track_events.reverse();
        self.track_events.extend(added);
        self.track_events.sort_by_key(|event| event.ts);
        self.track_events.reverse();
    }

    /// Pushes everything whose time is `ts` or earlier.
    #[inline]
    pub fn push_until(&mut self, ts: Timestamp, out: &mut dyn TimelineSink) -> io::Result<()> {
        let is_empty = self.edges.is_empty()
            && self.recordings.is_empty()
            && self.track_events.is_empty()
            && self.samples.is_empty();
        if is_empty { Ok(()) } else { self.push_some_until(ts, out) }
    }

    fn push_some_until(&mut self, ts: Timestamp, out: &mut dyn TimelineSink) -> io::Result<()> {
        loop {
            let next =
                self.recordings.iter_mut().min_by_key(|events| events.next_ts().unwrap_or(Timestamp::MAX));
            let Some((next, next_ts)) = next.and_then(|next| next.next_ts().map(|ts| (next, ts))) else {
                break;
            };
            if next_ts > ts {
                break;
            }
            push_tracks_until(next_ts, &mut self.edges, &mut self.track_events, out)?;
            push_samples_until(next_ts, &mut self.samples, out)?;
            next.pop(out)?;
        }
        push_tracks_until(ts, &mut self.edges, &mut self.track_events, out)?;
        push_samples_until(ts, &mut self.samples, out)
    }
}

/// Pushes the samples whose time is `ts` or earlier.
fn push_samples_until(
    ts: Timestamp,
    samples: &mut Vec<(u32, Sample)>,
    out: &mut dyn TimelineSink,
) -> io::Result<()> {
    while let Some((set, sample)) = samples.pop_if(|(_, sample)| sample.time <= ts) {
        out.sample(set, &sample)?;
    }
    Ok(())
}

/// Pushes the edges, and then the track events, whose time is `ts` or earlier.
fn push_tracks_until(
    ts: Timestamp,
    edges: &mut Vec<(u32, Edge)>,
    track_events: &mut Vec<OwnedTrackEvent>,
    out: &mut dyn TimelineSink,
) -> io::Result<()> {
    while let Some((thread, edge)) = edges.pop_if(|(_, edge)| edge.ts <= ts) {
        out.edges(thread, &[edge])?;
    }
    while let Some(event) = track_events.pop_if(|event| event.ts <= ts) {
        event.with_event(|event| out.track_event(event))?;
    }
    Ok(())
}

/// An event of [`EventBuffer::events`].
struct BufferedEvent {
    number: usize,
    /// The number of its type in [`EventBuffer::event_types`].
    own_type: usize,
}

/// Events of one recording.
#[derive(Default)]
pub struct EventBuffer {
    event_types: Vec<EventType>,
    events: OwnedEvents,
    /// The events that have not been pushed on; after [`EventBuffer::sort`] the earliest stands last.
    order: Vec<BufferedEvent>,
}

impl EventBuffer {
    /// Adds the next event type of the recording.
    pub fn add_event_type(&mut self, kind: &EventType) {
        self.event_types.push(kind.clone());
    }

    /// Adds an event. `own_type` is the number of the event's type in its own recording; `event.kind` is the
    /// number over all inputs.
    pub fn push(&mut self, event: &Event<'_>, own_type: usize) {
        self.order.push(BufferedEvent { number: self.events.len(), own_type });
        self.events.push(event);
    }

    /// Sorts the events by time. Called once, after the last `push` and before the first `pop`.
    fn sort(&mut self) {
        self.order.sort_by_key(|event| self.events.place(event.number));
        self.order.reverse();
    }

    /// The time of the next event, in the timeline's clock.
    fn next_ts(&self) -> Option<Timestamp> {
        self.order.last().map(|event| self.events.place(event.number).0)
    }

    /// Removes the earliest event and pushes it to `out`; does nothing where no event is left.
    fn pop(&mut self, out: &mut (impl Sink + ?Sized)) -> io::Result<()> {
        let Some(BufferedEvent { number, own_type }) = self.order.pop() else { return Ok(()) };
        let Some(kind) = self.event_types.get(own_type) else { return Ok(()) };
        self.events.with_event(number, |event| out.event(event, kind)).unwrap_or(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_data::{first_type_event, print_type};
    use super::*;
    use crate::formats::{EventTypeId, Payload, Value};
    use crate::ftrace::Endian;

    #[derive(Default)]
    struct TextLog(Vec<(u64, u32, String)>);

    impl Sink for TextLog {
        fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
            let text = event.text(kind, 0).unwrap_or(b"none");
            self.0.push((event.ts.0, event.kind.0, String::from_utf8_lossy(text).into_owned()));
            Ok(())
        }
    }

    #[test]
    fn events_come_out_by_time_and_as_they_went_in() {
        let mut buffer = EventBuffer::default();
        buffer.add_event_type(&print_type());
        let mut record = vec![0; 16];
        record.extend_from_slice(b"raw\0");
        let raw = Payload::Raw { data: &record, endian: Endian::Little };
        for event in [
            Event { kind: EventTypeId(5), ..first_type_event(30, &[Value::Str(b"third")]) },
            Event { payload: raw, ..first_type_event(20, &[]) },
            first_type_event(10, &[Value::Str(b"first")]),
        ] {
            buffer.push(&event, 0);
        }
        buffer.sort();
        let mut log = TextLog::default();
        let mut times = Vec::new();
        while let Some(ts) = buffer.next_ts() {
            times.push(ts);
            buffer.pop(&mut log).unwrap();
        }
        assert_eq!(times, [10, 20, 30].map(Timestamp));
        let texts: Vec<_> = log.0.iter().map(|(ts, kind, text)| (*ts, *kind, text.as_str())).collect();
        assert_eq!(texts, [(10, 0, "first"), (20, 0, "raw"), (30, 5, "third")]);
    }
}
