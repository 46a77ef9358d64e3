//! Events of a recording, kept: to tell which of them another recording has too, and to come in between another's.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;

use super::map::ClockMap;
use crate::formats::{Event, EventKind, KindId, Payload, Sink, Value};
use crate::ftrace::Endian;

/// What tells an event from all others: when (to the µs, since texts know no more), where, who, what.
fn key(micros: u64, event: &Event<'_>, kind: &EventKind) -> u64 {
    let mut hasher = DefaultHasher::new();
    (micros, event.cpu, event.tid, &kind.name).hash(&mut hasher);
    if kind.name == "print"
        && let Some(text) = kind.field("buf").and_then(|buf| event.text(kind, buf))
    {
        text.trim_ascii_end().hash(&mut hasher);
    }
    hasher.finish()
}

/// The events of recordings, so that the same one in another is known.
#[derive(Default)]
pub struct Known {
    keys: HashSet<u64>,
    /// From the recording's clock to the timeline's.
    pub map: ClockMap,
}

impl Known {
    /// Whether this event, at the timeline's time, is known. Texts cut or round to µs, so both are looked for.
    pub fn has(&self, event: &Event<'_>, kind: &EventKind) -> bool {
        !self.keys.is_empty() && self.keys.contains(&key(event.ts / 1_000, event, kind))
    }
}

impl Sink for Known {
    fn event(&mut self, event: &Event<'_>, kind: &EventKind) -> io::Result<()> {
        let ts = self.map.map(event.ts);
        self.keys.insert(key(ts / 1_000, event, kind));
        self.keys.insert(key((ts + 500) / 1_000, event, kind));
        Ok(())
    }
}

/// Where a text is in [`Stored`]: from, and how long.
type Range = (usize, usize);

struct One {
    ts: u64,
    cpu: u32,
    tid: i32,
    kind: KindId,
    own_kind: usize,
    flags: u8,
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
    kinds: Vec<EventKind>,
    events: Vec<One>,
    values: Vec<KeptValue>,
    bytes: Vec<u8>,
}

impl Stored {
    /// The next kind of the recording.
    pub fn kind(&mut self, kind: &EventKind) {
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
