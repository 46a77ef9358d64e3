//! Holds the events of one recording in memory, so that they can be pushed in time order between the events
//! of another recording.

use std::io;

use crate::formats::{Event, EventType, OwnedEvents, Sink};

/// An event of [`EventBuffer::events`].
struct BufferedEvent {
    number: usize,
    /// The number of its type in [`EventBuffer::event_types`].
    own_type: usize,
}

/// Events of one recording, held in memory until the timeline reaches their times.
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
    pub fn sort(&mut self) {
        self.order.sort_by_key(|event| self.events.place(event.number));
        self.order.reverse();
    }

    /// The time of the next event, ns of the timeline.
    pub fn next_ts(&self) -> Option<u64> {
        self.order.last().map(|event| self.events.place(event.number).0)
    }

    /// Removes the earliest event and pushes it to `out`; does nothing where no event is left.
    pub fn pop(&mut self, out: &mut (impl Sink + ?Sized)) -> io::Result<()> {
        let Some(BufferedEvent { number, own_type }) = self.order.pop() else { return Ok(()) };
        let Some(kind) = self.event_types.get(own_type) else { return Ok(()) };
        self.events.with_event(number, |event| out.event(event, kind)).unwrap_or(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_data::{print_event, print_type};
    use super::*;
    use crate::formats::{EventTypeId, Payload, Value};
    use crate::ftrace::Endian;

    #[derive(Default)]
    struct TextLog(Vec<(u64, u32, String)>);

    impl Sink for TextLog {
        fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
            let text = event.text(kind, 0).unwrap_or(b"none");
            self.0.push((event.ts, event.kind.0, String::from_utf8_lossy(text).into_owned()));
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
            Event { kind: EventTypeId(5), ..print_event(30, &[Value::Str(b"third")]) },
            Event { payload: raw, ..print_event(20, &[]) },
            print_event(10, &[Value::Str(b"first")]),
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
        assert_eq!(times, [10, 20, 30]);
        let texts: Vec<_> = log.0.iter().map(|(ts, kind, text)| (*ts, *kind, text.as_str())).collect();
        assert_eq!(texts, [(10, 0, "first"), (20, 0, "raw"), (30, 5, "third")]);
    }
}
