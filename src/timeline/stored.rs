//! Events of a recording, kept: to tell which of them another recording has too, and to come in between another's.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;

use super::map::ClockMap;
use crate::formats::{Event, EventType, EventTypeId, Payload, Sink, Value};
use crate::ftrace::Endian;

/// What tells an event from all others: when (to the µs, since texts know no more), where, who, what.
fn key(micros: u64, event: &Event<'_>, kind: &EventType) -> u64 {
    let mut hasher = DefaultHasher::new();
    (micros, event.cpu, event.tid, &kind.name).hash(&mut hasher);
    if kind.name == "print"
        && let Some(text) = kind.field("buf").and_then(|buf| event.text(kind, buf))
    {
        text.trim_ascii_end().hash(&mut hasher);
    }
    hasher.finish()
}

/// How many events of a [`key`] there are in the first and in the second half of their µs: those of the second are in
/// the next one where a text rounds.
type Halves = [u32; 2];

/// The events of recordings, so that the same one in another is known. Each stands for one event of each other
/// recording: what a recording has twice stays twice.
#[derive(Default)]
pub struct Known {
    have: HashMap<u64, Halves>,
    /// Of those, the ones that the recording at hand has too.
    met: HashMap<u64, Halves>,
    /// What the recording at hand has beyond them, for the next one.
    new: HashMap<u64, Halves>,
    /// From the recording's clock to the timeline's, while one is read only to be known.
    pub map: ClockMap,
}

impl Known {
    /// Another recording begins: what the one before has is known from now on.
    pub fn next_recording(&mut self) {
        self.met.clear();
        for (key, [first, second]) in self.new.drain() {
            let have = self.have.entry(key).or_default();
            have[0] += first;
            have[1] += second;
        }
    }

    /// Adds an event of the recording at hand, at the timeline's time.
    pub fn learn(&mut self, event: &Event<'_>, kind: &EventType) {
        let half = usize::from(event.ts % 1_000 >= 500);
        self.new.entry(key(event.ts / 1_000, event, kind)).or_default()[half] += 1;
    }

    /// Whether this event, at the timeline's time, is known, and was not met before in this recording. Texts cut or
    /// round to µs, so both are looked for.
    pub fn meet(&mut self, event: &Event<'_>, kind: &EventType) -> bool {
        let micros = event.ts / 1_000;
        let this = key(micros, event, kind);
        self.meet_one(this, 0)
            || self.meet_one(this, 1)
            || (micros > 0
                && event.ts.is_multiple_of(1_000)
                && self.meet_one(key(micros - 1, event, kind), 1))
    }

    fn meet_one(&mut self, key: u64, half: usize) -> bool {
        let Some(have) = self.have.get(&key).filter(|have| have[half] > 0) else { return false };
        let met = self.met.entry(key).or_default();
        let left = met[half] < have[half];
        met[half] += u32::from(left);
        left
    }
}

impl Sink for Known {
    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        let ts = self.map.map(event.ts);
        self.learn(&Event { ts, ..*event }, kind);
        Ok(())
    }
}

/// Where a text is in [`Stored`]: from, and how long.
type Range = (usize, usize);

struct One {
    ts: u64,
    cpu: u32,
    tid: i32,
    kind: EventTypeId,
    own_kind: usize,
    flags: u16,
    preempt_count: u8,
    comm: Option<Range>,
    tgid: Option<i32>,
    what: Kept,
}

enum Kept {
    Raw(Range, Endian),
    Values(Range, Option<Range>),
}

enum KeptValue {
    Int(i64),
    Uint(u64),
    Str(Range),
    Bytes(Range),
}

/// Events of one recording, kept in memory until their time comes.
#[derive(Default)]
pub struct Stored {
    kinds: Vec<EventType>,
    events: Vec<One>,
    values: Vec<KeptValue>,
    bytes: Vec<u8>,
}

impl Stored {
    /// The next kind of the recording.
    pub fn kind(&mut self, kind: &EventType) {
        self.kinds.push(kind.clone());
    }

    fn keep(&mut self, bytes: &[u8]) -> Range {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        (at, bytes.len())
    }

    /// Keeps an event; `own_kind` is its recording's number for the kind.
    pub fn push(&mut self, event: &Event<'_>, own_kind: usize) {
        let what = match event.payload {
            Payload::Raw { data, endian } => Kept::Raw(self.keep(data), endian),
            Payload::Values { values, text } => {
                let at = self.values.len();
                for value in values {
                    let value = match value {
                        Value::Int(v) => KeptValue::Int(*v),
                        Value::Uint(v) => KeptValue::Uint(*v),
                        Value::Str(s) => KeptValue::Str(self.keep(s)),
                        Value::Bytes(b) => KeptValue::Bytes(self.keep(b)),
                    };
                    self.values.push(value);
                }
                Kept::Values((at, values.len()), text.map(|t| self.keep(t)))
            }
        };
        let comm = event.comm.map(|c| self.keep(c));
        let Event { ts, cpu, tid, kind, flags, preempt_count, tgid, .. } = *event;
        self.events.push(One { ts, cpu, tid, kind, own_kind, flags, preempt_count, comm, tgid, what });
    }

    /// After the last one.
    pub fn sort(&mut self) {
        self.events.sort_by_key(|e| (e.ts, e.cpu));
        self.events.reverse();
    }

    /// When the next one is.
    pub fn next_ts(&self) -> Option<u64> {
        self.events.last().map(|e| e.ts)
    }

    /// Pushes the next one.
    pub fn pop(&mut self, out: &mut (impl Sink + ?Sized)) -> io::Result<()> {
        let Some(one) = self.events.pop() else { return Ok(()) };
        let text = |(at, len): Range| self.bytes.get(at..at + len).unwrap_or_default();
        let mut values = Vec::new();
        let payload = match one.what {
            Kept::Raw(range, endian) => Payload::Raw { data: text(range), endian },
            Kept::Values((at, len), line) => {
                values.extend(self.values.iter().skip(at).take(len).map(|value| match value {
                    KeptValue::Int(v) => Value::Int(*v),
                    KeptValue::Uint(v) => Value::Uint(*v),
                    KeptValue::Str(range) => Value::Str(text(*range)),
                    KeptValue::Bytes(range) => Value::Bytes(text(*range)),
                }));
                Payload::Values { values: &values, text: line.map(text) }
            }
        };
        let Some(kind) = self.kinds.get(one.own_kind) else { return Ok(()) };
        let One { ts, cpu, tid, kind: id, flags, preempt_count, comm, tgid, .. } = one;
        let comm = comm.map(text);
        out.event(&Event { ts, cpu, tid, kind: id, flags, preempt_count, comm, tgid, payload }, kind)
    }
}
