//! Events with data of their own, so that they can be passed on later or on another thread: one kernel event
//! ([`OwnedEvent`]), many in shared memory ([`OwnedEvents`]), and one event of a track ([`OwnedTrackEvent`]).

use super::{
    Event, EventTypeId, Flow, Payload, SurfaceFrame, TimelineFrame, TrackArg, TrackEvent, TrackEventKind,
    TrackId, Value,
};
use crate::clock::Timestamp;
use crate::ftrace::Endian;
use crate::ids::{Cpu, Pid, Tid};
use crate::varint;

/// The part of an event that has a fixed size, and the form of its bytes.
#[derive(Debug, Clone, Copy)]
struct EventHead {
    ts: Timestamp,
    tid: Tid,
    cpu: Cpu,
    kind: EventTypeId,
    flags: u16,
    preempt_count: u8,
    form: StoredForm,
}

/// The form of an event's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoredForm {
    /// The kernel's record, little-endian.
    LittleRecord,
    /// The kernel's record, big-endian.
    BigRecord,
    /// The event has a name or a process of its own, or values in place of a record: [`Parts`].
    Parts,
}

impl StoredForm {
    fn of_record(endian: Endian) -> StoredForm {
        match endian {
            Endian::Little => StoredForm::LittleRecord,
            Endian::Big => StoredForm::BigRecord,
        }
    }
}

impl EventHead {
    #[inline]
    fn new(event: &Event<'_>, form: StoredForm) -> EventHead {
        let Event { ts, cpu, tid, kind, flags, preempt_count, .. } = *event;
        EventHead { ts, tid, cpu, kind, flags, preempt_count, form }
    }

    /// The head of an event, whose bytes are appended to `bytes`.
    #[inline]
    fn store(event: &Event<'_>, bytes: &mut Vec<u8>) -> EventHead {
        match event.payload {
            Payload::Raw { data, endian } if event.comm.is_none() && event.tgid.is_none() => {
                bytes.extend_from_slice(data);
                EventHead::new(event, StoredForm::of_record(endian))
            }
            _ => {
                Parts::new(event).store(bytes);
                EventHead::new(event, StoredForm::Parts)
            }
        }
    }

    /// An event with this head and the record `data`.
    #[inline]
    fn with_record<'a>(&self, data: &'a [u8], endian: Endian) -> Event<'a> {
        let EventHead { ts, tid, cpu, kind, flags, preempt_count, .. } = *self;
        let payload = Payload::Raw { data, endian };
        Event { ts, cpu, tid, kind, flags, preempt_count, comm: None, tgid: None, payload }
    }

    /// Calls `use_event` with the event whose bytes are `bytes`.
    fn with_event<R>(&self, bytes: &[u8], use_event: impl FnOnce(&Event<'_>) -> R) -> R {
        match self.form {
            StoredForm::LittleRecord => use_event(&self.with_record(bytes, Endian::Little)),
            StoredForm::BigRecord => use_event(&self.with_record(bytes, Endian::Big)),
            StoredForm::Parts => {
                let mut values = Vec::new();
                let parts = Parts::read(bytes, &mut values).unwrap_or_default();
                let payload = match parts.record {
                    Some((data, endian)) => Payload::Raw { data, endian },
                    None => Payload::Values { values: &values, text: parts.text },
                };
                let event = self.with_record(&[], Endian::Little);
                use_event(&Event { comm: parts.comm, tgid: parts.tgid, payload, ..event })
            }
        }
    }
}

/// The optional parts of an event, as bytes: first a mask that says which parts there are, then these parts
/// in the order of the fields here. A text has its length in front of it; numbers are varints.
#[derive(Debug, Clone, Copy, Default)]
struct Parts<'a> {
    comm: Option<&'a [u8]>,
    tgid: Option<Pid>,
    text: Option<&'a [u8]>,
    record: Option<(&'a [u8], Endian)>,
    /// The values to be stored. Those that are read stand elsewhere.
    values: &'a [Value<'a>],
}

/// Bits of the mask.
mod part {
    pub const COMM: u8 = 1;
    pub const TGID: u8 = 2;
    pub const TEXT: u8 = 4;
    pub const LITTLE_RECORD: u8 = 8;
    pub const BIG_RECORD: u8 = 16;
}

/// The byte in front of a value.
mod value_type {
    pub const INT: u8 = 0;
    pub const UINT: u8 = 1;
    pub const STR: u8 = 2;
    pub const BYTES: u8 = 3;
}

impl<'a> Parts<'a> {
    fn new(event: &Event<'a>) -> Parts<'a> {
        let own = Parts { comm: event.comm, tgid: event.tgid, ..Parts::default() };
        match event.payload {
            Payload::Raw { data, endian } => Parts { record: Some((data, endian)), ..own },
            Payload::Values { values, text } => Parts { text, values, ..own },
        }
    }

    fn mask(&self) -> u8 {
        let record = match self.record {
            Some((_, Endian::Little)) => part::LITTLE_RECORD,
            Some((_, Endian::Big)) => part::BIG_RECORD,
            None => 0,
        };
        let bit = |is_there: bool, bit: u8| if is_there { bit } else { 0 };
        bit(self.comm.is_some(), part::COMM)
            | bit(self.tgid.is_some(), part::TGID)
            | bit(self.text.is_some(), part::TEXT)
            | record
    }

    fn store(&self, out: &mut Vec<u8>) {
        out.push(self.mask());
        self.comm.iter().for_each(|comm| push_bytes(out, comm));
        self.tgid.iter().for_each(|tgid| varint::push(out, varint::zigzag((*tgid).into())));
        self.text.iter().for_each(|text| push_bytes(out, text));
        self.record.iter().for_each(|(data, _)| push_bytes(out, data));
        for value in self.values {
            match value {
                Value::Int(number) => {
                    out.push(value_type::INT);
                    varint::push(out, varint::zigzag(*number));
                }
                Value::Uint(number) => {
                    out.push(value_type::UINT);
                    varint::push(out, *number);
                }
                Value::Str(text) => {
                    out.push(value_type::STR);
                    push_bytes(out, text);
                }
                Value::Bytes(bytes) => {
                    out.push(value_type::BYTES);
                    push_bytes(out, bytes);
                }
            }
        }
    }

    /// Reads what [`Parts::store`] has written; the values go into `values`.
    fn read(bytes: &'a [u8], values: &mut Vec<Value<'a>>) -> Option<Parts<'a>> {
        let (mask, mut rest) = bytes.split_first()?;
        let has = |bit: u8| mask & bit != 0;
        let mut parts = Parts::default();
        if has(part::COMM) {
            parts.comm = Some(take_bytes(&mut rest)?);
        }
        if has(part::TGID) {
            parts.tgid = Some(Pid(varint::unzigzag(varint::take(&mut rest)?) as i32));
        }
        if has(part::TEXT) {
            parts.text = Some(take_bytes(&mut rest)?);
        }
        if has(part::LITTLE_RECORD) {
            parts.record = Some((take_bytes(&mut rest)?, Endian::Little));
        }
        if has(part::BIG_RECORD) {
            parts.record = Some((take_bytes(&mut rest)?, Endian::Big));
        }
        while let Some((ty, behind)) = rest.split_first() {
            rest = behind;
            values.push(match *ty {
                value_type::INT => Value::Int(varint::unzigzag(varint::take(&mut rest)?)),
                value_type::UINT => Value::Uint(varint::take(&mut rest)?),
                value_type::STR => Value::Str(take_bytes(&mut rest)?),
                _ => Value::Bytes(take_bytes(&mut rest)?),
            });
        }
        Some(parts)
    }
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    varint::push(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = varint::take(rest)?;
    let (bytes, behind) = rest.split_at_checked(usize::try_from(len).ok()?)?;
    *rest = behind;
    Some(bytes)
}

/// One kernel event.
#[derive(Debug, Clone)]
pub(crate) struct OwnedEvent {
    head: EventHead,
    bytes: Box<[u8]>,
}

impl OwnedEvent {
    /// Copies an event.
    pub(crate) fn new(event: &Event<'_>) -> OwnedEvent {
        let mut bytes = Vec::new();
        let head = EventHead::store(event, &mut bytes);
        OwnedEvent { head, bytes: bytes.into() }
    }

    /// The event's type.
    pub(crate) fn kind(&self) -> EventTypeId {
        self.head.kind
    }

    /// Calls `use_event` with the event as one of the time `ts`.
    pub(crate) fn with_event_at<R>(&self, ts: Timestamp, use_event: impl FnOnce(&Event<'_>) -> R) -> R {
        EventHead { ts, ..self.head }.with_event(&self.bytes, use_event)
    }
}

/// An event of [`OwnedEvents`].
#[derive(Debug, Clone, Copy)]
struct StoredEvent {
    head: EventHead,
    /// The offset of the event's bytes, and their number.
    start: u64,
    len: u32,
}

/// Kernel events in shared memory.
#[derive(Debug, Default)]
pub(crate) struct OwnedEvents {
    entries: Vec<StoredEvent>,
    bytes: Vec<u8>,
}

impl OwnedEvents {
    /// Adds an event.
    pub(crate) fn push(&mut self, event: &Event<'_>) {
        let start = self.bytes.len();
        let head = EventHead::store(event, &mut self.bytes);
        self.enter(head, start);
    }

    /// Adds an event with the record `data`, and without a name and a process of its own.
    #[inline]
    pub(crate) fn push_record(&mut self, event: &Event<'_>, data: &[u8], endian: Endian) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(data);
        self.enter(EventHead::new(event, StoredForm::of_record(endian)), start);
    }

    /// Adds what is no event under a type of the caller's own: `fill` appends its bytes, which come back as a
    /// record.
    pub(crate) fn push_other(&mut self, kind: EventTypeId, cpu: Cpu, fill: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        fill(&mut self.bytes);
        let form = StoredForm::LittleRecord;
        self.enter(
            EventHead { ts: Timestamp::MIN, tid: Tid::IDLE, cpu, kind, flags: 0, preempt_count: 0, form },
            start,
        );
    }

    #[inline]
    fn enter(&mut self, head: EventHead, start: usize) {
        let len = (self.bytes.len() - start) as u32;
        self.entries.push(StoredEvent { head, start: start as u64, len });
    }

    /// The number of events.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The size of the events' own data, bytes.
    #[inline]
    pub(crate) fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Removes all events. Their memory stays for others.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
    }

    /// Time and CPU of an event; zeros where there is none of this number.
    pub(crate) fn place(&self, number: usize) -> (Timestamp, Cpu) {
        self.entries.get(number).map_or((Timestamp::MIN, Cpu(0)), |entry| (entry.head.ts, entry.head.cpu))
    }

    /// Calls `use_event` with an event; `None` where there is none of this number.
    pub(crate) fn with_event<R>(&self, number: usize, use_event: impl FnOnce(&Event<'_>) -> R) -> Option<R> {
        let entry = self.entries.get(number)?;
        Some(entry.head.with_event(self.bytes_of(entry), use_event))
    }

    /// The events that were added as records, in their order, each with the bytes of its record.
    #[inline]
    pub(crate) fn records(&self) -> impl Iterator<Item = (Event<'_>, &[u8])> {
        self.entries.iter().map(|entry| {
            let data = self.bytes_of(entry);
            let endian = if entry.head.form == StoredForm::BigRecord { Endian::Big } else { Endian::Little };
            (entry.head.with_record(data, endian), data)
        })
    }

    #[inline]
    fn bytes_of(&self, entry: &StoredEvent) -> &[u8] {
        let start = entry.start as usize;
        self.bytes.get(start..start + entry.len as usize).unwrap_or_default()
    }
}

/// An event of a track.
pub(crate) struct OwnedTrackEvent {
    /// Time of the event, in the clock of the event that was copied.
    pub(crate) ts: Timestamp,
    track: TrackId,
    kind: OwnedTrackEventKind,
    thread_ns: Option<u64>,
    flows: Box<[Flow]>,
    args: Box<[OwnedTrackArg]>,
}

/// The name of an argument, and its text.
type OwnedTrackArg = (&'static str, Box<[u8]>);

enum OwnedTrackEventKind {
    Begin(Box<[u8]>),
    Instant(Box<[u8]>),
    Nameless(TrackEventKind<'static>),
    Frame(Box<OwnedFrame>),
}

/// A frame without what a layer has of it, and that: the token and the layer's name.
struct OwnedFrame {
    plain: TimelineFrame<'static>,
    surface: Option<(i64, Box<[u8]>)>,
}

impl OwnedTrackEvent {
    /// Copies an event.
    pub(crate) fn new(event: &TrackEvent<'_>) -> OwnedTrackEvent {
        let kind = match event.kind {
            TrackEventKind::Begin { name } => OwnedTrackEventKind::Begin(name.into()),
            TrackEventKind::Instant { name } => OwnedTrackEventKind::Instant(name.into()),
            TrackEventKind::End => OwnedTrackEventKind::Nameless(TrackEventKind::End),
            TrackEventKind::Counter(value) => OwnedTrackEventKind::Nameless(TrackEventKind::Counter(value)),
            TrackEventKind::Frame(frame) => OwnedTrackEventKind::Frame(OwnedFrame::new(frame)),
        };
        let TrackEvent { ts, track, thread_ns, .. } = *event;
        let args = event.args.iter().map(|arg| (arg.name, arg.value.into())).collect();
        OwnedTrackEvent { ts, track, kind, thread_ns, flows: event.flows.into(), args }
    }

    /// Calls `use_event` with the event.
    pub(crate) fn with_event<R>(&self, use_event: impl FnOnce(&TrackEvent<'_>) -> R) -> R {
        let frame;
        let kind = match &self.kind {
            OwnedTrackEventKind::Begin(name) => TrackEventKind::Begin { name },
            OwnedTrackEventKind::Instant(name) => TrackEventKind::Instant { name },
            OwnedTrackEventKind::Nameless(kind) => *kind,
            OwnedTrackEventKind::Frame(owned) => {
                frame = owned.frame();
                TrackEventKind::Frame(&frame)
            }
        };
        let OwnedTrackEvent { ts, track, thread_ns, .. } = *self;
        let args: Vec<TrackArg<'_>> =
            self.args.iter().map(|(name, value)| TrackArg { name, value }).collect();
        use_event(&TrackEvent { ts, track, kind, thread_ns, flows: &self.flows, args: &args })
    }
}

impl OwnedFrame {
    fn new(frame: &TimelineFrame<'_>) -> Box<OwnedFrame> {
        let surface = frame.surface.map(|surface| (surface.token, surface.layer.into()));
        let TimelineFrame { end, pid, display_token, actual, .. } = *frame;
        Box::new(OwnedFrame {
            plain: TimelineFrame { end, pid, display_token, surface: None, actual },
            surface,
        })
    }

    fn frame(&self) -> TimelineFrame<'_> {
        let surface = self.surface.as_ref().map(|(token, layer)| SurfaceFrame { token: *token, layer });
        TimelineFrame { surface, ..self.plain }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event of each form: a record, a record with a name, values, values with all that there is.
    const EVENTS: usize = 4;

    fn with_samples(check: impl Fn([Event<'_>; EVENTS])) {
        let record = Payload::Raw { data: b"record", endian: Endian::Big };
        let plain = Event {
            ts: Timestamp(10),
            cpu: Cpu(3),
            tid: Tid(7),
            kind: EventTypeId(2),
            flags: 1,
            preempt_count: 4,
            comm: None,
            tgid: None,
            payload: record,
        };
        let values = [Value::Int(-5), Value::Uint(u64::MAX), Value::Str(b"text"), Value::Bytes(b"\0\xff")];
        let all = Payload::Values { values: &values, text: Some(b"") };
        check([
            plain,
            Event { ts: Timestamp(11), comm: Some(b"name"), ..plain },
            Event { ts: Timestamp(12), payload: Payload::Values { values: &[], text: None }, ..plain },
            Event { ts: Timestamp(13), comm: Some(b""), tgid: Some(Pid(-1)), payload: all, ..plain },
        ]);
    }

    #[test]
    fn an_event_comes_back_as_it_was() {
        with_samples(|events| {
            for event in events {
                let owned = OwnedEvent::new(&event);
                assert_eq!(owned.kind(), event.kind);
                let seen = owned.with_event_at(Timestamp(99), |event| format!("{event:?}"));
                assert_eq!(seen, format!("{:?}", Event { ts: Timestamp(99), ..event }));
            }
        });
    }

    #[test]
    fn events_in_shared_memory_come_back_by_their_number() {
        with_samples(|events| {
            let mut owned = OwnedEvents::default();
            events.iter().for_each(|event| owned.push(event));
            for (number, event) in events.iter().enumerate() {
                let seen = owned.with_event(number, |event| format!("{event:?}"));
                assert_eq!(seen, Some(format!("{event:?}")));
                assert_eq!(owned.place(number), (event.ts, event.cpu));
            }
            assert_eq!(owned.with_event(EVENTS, |event| event.ts), None);
        });
    }

    #[test]
    fn records_come_back_in_their_order_with_their_own_bytes() {
        with_samples(|[event, ..]| {
            let mut owned = OwnedEvents::default();
            owned.push_record(&event, b"abc", Endian::Big);
            owned.push_other(EventTypeId(u32::MAX), Cpu(1), |bytes| bytes.extend_from_slice(b"line"));
            owned.push_record(&Event { ts: Timestamp(11), ..event }, b"", Endian::Little);
            let events: Vec<_> = owned.records().collect();
            let seen: Vec<_> =
                events.iter().map(|(event, data)| (event.ts.0, event.cpu, event.kind.0, *data)).collect();
            let want: [(u64, Cpu, u32, &[u8]); 3] =
                [(10, Cpu(3), 2, b"abc"), (0, Cpu(1), u32::MAX, b"line"), (11, Cpu(3), 2, b"")];
            assert_eq!(seen, want);
            assert_eq!((events[0].0.flags, events[0].0.preempt_count, events[0].0.tid), (1, 4, Tid(7)));
            assert!(matches!(events[0].0.payload, Payload::Raw { endian: Endian::Big, .. }));
            assert!(matches!(events[2].0.payload, Payload::Raw { endian: Endian::Little, .. }));
            owned.clear();
            assert_eq!((owned.len(), owned.byte_len()), (0, 0));
        });
    }

    #[test]
    fn an_event_of_a_track_comes_back_as_it_was() {
        let flows = [Flow { id: 4, ends: true }];
        let args = [TrackArg { name: "ret", value: b"3" }];
        let surface = Some(SurfaceFrame { token: 9, layer: b"TX - app#1" });
        let expected = TimelineFrame { end: None, pid: Pid(7), display_token: 3, surface, actual: None };
        let display = TimelineFrame { end: Some(Timestamp(8)), surface: None, ..expected };
        for kind in [
            TrackEventKind::Frame(&expected),
            TrackEventKind::Frame(&display),
            TrackEventKind::Begin { name: b"begin" },
            TrackEventKind::Instant { name: b"instant" },
            TrackEventKind::End,
            TrackEventKind::Counter(crate::formats::CounterValue::Int(3)),
        ] {
            let event = TrackEvent {
                ts: Timestamp(5),
                track: TrackId(1),
                kind,
                thread_ns: Some(2),
                flows: &flows,
                args: &args,
            };
            let copied = OwnedTrackEvent::new(&event).with_event(|copied| format!("{copied:?}"));
            assert_eq!(copied, format!("{event:?}"));
        }
    }
}
