//! Holds the events of one recording in memory, so that they can be pushed in time order between the events
//! of another recording.

use std::io;

use crate::formats::{Event, EventType, EventTypeId, Payload, Sink, Value};
use crate::ftrace::Endian;

/// Where bytes lie in [`EventBuffer::bytes`]: their start and their length.
type ByteRange = (usize, usize);

struct BufferedEvent {
    ts: u64,
    cpu: u32,
    tid: i32,
    kind: EventTypeId,
    own_type: usize,
    flags: u16,
    preempt_count: u8,
    comm: Option<ByteRange>,
    tgid: Option<i32>,
    payload: BufferedPayload,
}

enum BufferedPayload {
    Raw(ByteRange, Endian),
    Values(ByteRange, Option<ByteRange>),
}

enum BufferedValue {
    Int(i64),
    Uint(u64),
    Str(ByteRange),
    Bytes(ByteRange),
}

/// Events of one recording, held in memory until the timeline reaches their times.
#[derive(Default)]
pub struct EventBuffer {
    event_types: Vec<EventType>,
    events: Vec<BufferedEvent>,
    values: Vec<BufferedValue>,
    bytes: Vec<u8>,
}

impl EventBuffer {
    /// Adds the next event type of the recording.
    pub fn add_event_type(&mut self, kind: &EventType) {
        self.event_types.push(kind.clone());
    }

    fn store(&mut self, bytes: &[u8]) -> ByteRange {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        (at, bytes.len())
    }

    /// Adds an event. `own_type` is the number of the event's type in its own recording; `event.kind` is the
    /// number over all inputs.
    pub fn push(&mut self, event: &Event<'_>, own_type: usize) {
        let payload = match event.payload {
            Payload::Raw { data, endian } => BufferedPayload::Raw(self.store(data), endian),
            Payload::Values { values, text } => {
                let at = self.values.len();
                for value in values {
                    let value = match value {
                        Value::Int(v) => BufferedValue::Int(*v),
                        Value::Uint(v) => BufferedValue::Uint(*v),
                        Value::Str(s) => BufferedValue::Str(self.store(s)),
                        Value::Bytes(b) => BufferedValue::Bytes(self.store(b)),
                    };
                    self.values.push(value);
                }
                BufferedPayload::Values((at, values.len()), text.map(|t| self.store(t)))
            }
        };
        let comm = event.comm.map(|c| self.store(c));
        let Event { ts, cpu, tid, kind, flags, preempt_count, tgid, .. } = *event;
        self.events.push(BufferedEvent {
            ts,
            cpu,
            tid,
            kind,
            own_type,
            flags,
            preempt_count,
            comm,
            tgid,
            payload,
        });
    }

    /// Sorts the events by time. Called once, after the last `push` and before the first `pop`.
    pub fn sort(&mut self) {
        self.events.sort_by_key(|e| (e.ts, e.cpu));
        self.events.reverse();
    }

    /// The time of the next event, ns of the timeline.
    pub fn next_ts(&self) -> Option<u64> {
        self.events.last().map(|e| e.ts)
    }

    /// Removes the earliest event and pushes it to `out`; does nothing where no event is left.
    pub fn pop(&mut self, out: &mut (impl Sink + ?Sized)) -> io::Result<()> {
        let Some(buffered) = self.events.pop() else { return Ok(()) };
        let text = |(at, len): ByteRange| self.bytes.get(at..at + len).unwrap_or_default();
        let mut values = Vec::new();
        let payload = match buffered.payload {
            BufferedPayload::Raw(range, endian) => Payload::Raw { data: text(range), endian },
            BufferedPayload::Values((at, len), line) => {
                values.extend(self.values.iter().skip(at).take(len).map(|value| match value {
                    BufferedValue::Int(v) => Value::Int(*v),
                    BufferedValue::Uint(v) => Value::Uint(*v),
                    BufferedValue::Str(range) => Value::Str(text(*range)),
                    BufferedValue::Bytes(range) => Value::Bytes(text(*range)),
                }));
                Payload::Values { values: &values, text: line.map(text) }
            }
        };
        let Some(kind) = self.event_types.get(buffered.own_type) else { return Ok(()) };
        let BufferedEvent { ts, cpu, tid, kind: id, flags, preempt_count, comm, tgid, .. } = buffered;
        let comm = comm.map(text);
        out.event(&Event { ts, cpu, tid, kind: id, flags, preempt_count, comm, tgid, payload }, kind)
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_data::{print_event, print_type};
    use super::*;

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
