//! One event of a Chrome JSON trace.

use crate::clock::Timestamp;
use crate::formats::json::{Fault, JsonText, Scanner, Value, integer, nanoseconds};

/// A process id, a thread id or the id of a flow or of asynchronous slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Id<'a> {
    /// A number.
    Number(i64),
    /// A text; for processes and threads it is their name, too. As the file has it, with escapes.
    Text(&'a [u8]),
}

impl<'a> Id<'a> {
    /// The parts by which ids are told apart: the type, the number and the text.
    pub(super) fn parts(self) -> (u8, i64, &'a [u8]) {
        match self {
            Id::Number(number) => (0, number, b""),
            Id::Text(text) => (1, 0, text),
        }
    }
}

/// Among which events an id of asynchronous slices is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdScope {
    /// `id`: those of the whole file that have the same category.
    Unscoped,
    /// `id2.local`: those of the process.
    Local,
    /// `id2.global`: those of all processes.
    Global,
}

/// Where an instant belongs (`s`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstantScope {
    /// To its thread.
    Thread,
    /// To its process.
    Process,
    /// To nobody.
    Global,
}

/// One event. Times are nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct JsonEvent<'a> {
    /// The phase (`ph`): the first character is the type of the event.
    pub phase: u8,
    /// The time; `None` where there is none, or none that is a number.
    pub ts: Option<i64>,
    /// The duration of an `X` event.
    pub dur: Option<i64>,
    /// The CPU time of the thread at the beginning.
    pub tts: Option<i64>,
    /// The CPU time of the thread in an `X` event.
    pub tdur: Option<i64>,
    /// The process.
    pub pid: Option<Id<'a>>,
    /// The thread.
    pub tid: Option<Id<'a>>,
    /// The name.
    pub name: Option<JsonText<'a>>,
    /// The categories, with commas between them.
    pub cat: Option<JsonText<'a>>,
    /// The id of asynchronous slices, flows and counters, and its scope.
    pub id: Option<(IdScope, Id<'a>)>,
    /// The id of a flow through the slice itself.
    pub bind_id: Option<Id<'a>>,
    /// Whether that flow comes into the slice.
    pub flow_in: bool,
    /// Whether that flow goes out of the slice.
    pub flow_out: bool,
    /// Whether a flow's end binds to the slice around it (`"bp": "e"`), in place of the next one.
    pub binds_to_enclosing: bool,
    /// Where an instant belongs; `None` where the file names a scope that the format does not have.
    pub instant: Option<InstantScope>,
    /// The arguments: an object with its braces.
    pub args: Option<&'a [u8]>,
    /// Whether the event names a stack (`sf`, `stack`).
    pub has_stack: bool,
}

impl<'a> JsonEvent<'a> {
    const EMPTY: JsonEvent<'static> = JsonEvent {
        phase: 0,
        ts: None,
        dur: None,
        tts: None,
        tdur: None,
        pid: None,
        tid: None,
        name: None,
        cat: None,
        id: None,
        bind_id: None,
        flow_in: false,
        flow_out: false,
        binds_to_enclosing: false,
        instant: Some(InstantScope::Thread),
        args: None,
        has_stack: false,
    };

    /// Reads the event whose brace is next. Its phase is 0 where the object has none.
    #[inline]
    pub(super) fn read(scanner: &mut Scanner<'a>) -> Result<JsonEvent<'a>, Fault> {
        if !scanner.skip(b'{') {
            return Err(if scanner.peek().is_none() { Fault::Cut } else { Fault::Syntax });
        }
        let mut event: JsonEvent<'a> = JsonEvent::EMPTY;
        while let Some(name) = scanner.member_name()? {
            let value = scanner.value()?;
            event.member(name.raw(), value);
        }
        Ok(event)
    }

    #[inline]
    fn member(&mut self, name: &[u8], value: Value<'a>) {
        match name {
            b"ph" => self.phase = text(value).and_then(|text| text.raw().first().copied()).unwrap_or(0),
            b"ts" => self.ts = time(value),
            b"dur" => self.dur = time(value),
            b"tts" => self.tts = time(value),
            b"tdur" => self.tdur = time(value),
            b"pid" => self.pid = id(value),
            b"tid" => self.tid = id(value),
            b"name" => self.name = text(value),
            b"cat" => self.cat = text(value),
            b"id" => self.id = id(value).map(|id| (IdScope::Unscoped, id)).or(self.id),
            b"id2" => {
                let Value::Object(object) = value else { return };
                for (name, value) in crate::formats::json::members(object) {
                    let scope = match name.raw() {
                        b"local" => IdScope::Local,
                        b"global" => IdScope::Global,
                        _ => continue,
                    };
                    self.id = self.id.or(id(value).map(|id| (scope, id)));
                }
            }
            b"bind_id" => self.bind_id = id(value),
            b"flow_in" => self.flow_in = is_true(value),
            b"flow_out" => self.flow_out = is_true(value),
            b"bp" => self.binds_to_enclosing = text(value).is_some_and(|text| text.raw() == b"e"),
            b"s" => {
                self.instant = match text(value).map(JsonText::raw) {
                    Some(b"t") => Some(InstantScope::Thread),
                    Some(b"p") => Some(InstantScope::Process),
                    Some(b"g") => Some(InstantScope::Global),
                    _ => None,
                }
            }
            b"args" => {
                if let Value::Object(object) = value {
                    self.args = Some(object);
                }
            }
            b"sf" | b"stack" => self.has_stack = true,
            _ => {}
        }
    }

    /// Whether the event takes place at a time: names and other metadata do not.
    pub(super) fn is_placed(&self) -> bool {
        const PLACED: &[u8] = b"BEXiIRbenSTpFCstf";
        self.time().is_some() && PLACED.contains(&self.phase)
    }

    /// The time; `None` where there is none, or one before the clock's zero.
    pub(crate) fn time(&self) -> Option<Timestamp> {
        u64::try_from(self.ts?).ok().map(Timestamp)
    }

    /// The key by which events are sorted: their time. Of several events at one time whole slices come first,
    /// and a longer slice comes before the slices inside of it.
    pub(super) fn sort_key(&self) -> (Timestamp, u64) {
        let dur = if self.phase == b'X' { self.dur.unwrap_or(0).max(0) as u64 } else { 0 };
        let rank = if self.phase == b'X' { u64::MAX - 1 - dur } else { u64::MAX };
        (self.time().unwrap_or_default(), rank)
    }
}

fn text(value: Value<'_>) -> Option<JsonText<'_>> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

/// A time in microseconds, also as a text.
fn time(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Number(number) => nanoseconds(number),
        Value::Text(text) => nanoseconds(text.raw()),
        _ => None,
    }
}

/// An id; an empty text is none.
fn id(value: Value<'_>) -> Option<Id<'_>> {
    match value {
        Value::Number(number) => match integer(number) {
            Some(number) => i64::try_from(number).ok().map(Id::Number),
            None => crate::formats::json::float(number).map(|number| Id::Number(number as i64)),
        },
        Value::Text(text) if !text.is_empty() => Some(Id::Text(text.raw())),
        _ => None,
    }
}

fn is_true(value: Value<'_>) -> bool {
    matches!(value, Value::Bool(true)) || matches!(value, Value::Text(text) if text.raw() == b"true")
}

/// A thread by the numbers of its process and itself. A text in their place has a number that no kernel
/// gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadKey {
    /// The process.
    pub pid: i64,
    /// The thread.
    pub tid: i64,
}

/// The facts that the file states about a thread.
#[derive(Debug, Clone, Default)]
pub struct JsonThread {
    /// Its name.
    pub name: Option<Vec<u8>>,
    /// Where viewers show it among the threads of its process (`thread_sort_index`).
    pub sort_index: Option<i64>,
    /// Whether threads of several processes have this number.
    pub is_ambiguous: bool,
}

/// The facts that the file states about a process.
#[derive(Debug, Clone, Default)]
pub struct JsonProcess {
    /// Its name.
    pub name: Option<Vec<u8>>,
    /// Where viewers show it among the processes (`process_sort_index`).
    pub sort_index: Option<i64>,
    /// Its labels.
    pub labels: Vec<Vec<u8>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: &str) -> JsonEvent<'_> {
        JsonEvent::read(&mut Scanner::new(text.as_bytes(), 0)).unwrap()
    }

    #[test]
    fn members_are_read_in_each_of_their_forms() {
        let read = event(
            r#"{"ph":"XXX","ts":"5.1","dur":500.1,"pid":"foo","tid":3.0,"name":"n","cat":"a,b",
               "id2":{"local":"0x5"},"flow_out":true,"s":"p","args":{"x":[1]},"sf":7}"#,
        );
        assert_eq!((read.phase, read.ts, read.dur), (b'X', Some(5_100), Some(500_100)));
        assert_eq!((read.pid, read.tid), (Some(Id::Text(b"foo")), Some(Id::Number(3))));
        assert_eq!(read.id, Some((IdScope::Local, Id::Text(b"0x5"))));
        assert_eq!((read.flow_out, read.instant, read.has_stack), (true, Some(InstantScope::Process), true));
        assert_eq!(read.args, Some(&br#"{"x":[1]}"#[..]));
        assert_eq!(event(r#"{"ph":"b","id":""}"#).id, None);
        assert_eq!(event(r#"{"ph":"i","s":"x"}"#).instant, None);
        assert_eq!(event(r#"{"ph":"X","ts":"100a"}"#).ts, None);
    }

    #[test]
    fn a_slice_is_sorted_before_those_inside_of_it() {
        let parent = event(r#"{"ph":"X","ts":1,"dur":10}"#).sort_key();
        let child = event(r#"{"ph":"X","ts":1,"dur":5}"#).sort_key();
        let end = event(r#"{"ph":"E","ts":1}"#).sort_key();
        assert!(parent < child && child < end);
    }
}
