//! `--mapping`: gives obfuscated names back on their way to an exporter, of methods and inside markers alike.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use super::{Edge, MergeSummary, MethodId, MethodName, MethodThread, TimelineSink};
use crate::art::Mapping;
use crate::formats::{
    Event, EventType, EventTypeId, Head, Order, Payload, ProcessInfo, Sink, ThreadInfo, Value,
};
use crate::ftrace::print_fmt::Symbolizer;

/// Marker texts whose renaming is remembered: an app has fewer.
const MAX_CACHED: usize = 100_000;

/// An exporter behind a mapping file.
pub struct Renamed<'a> {
    to: &'a mut dyn TimelineSink,
    mapping: &'a Mapping<'a>,
    /// For each kind the field that holds a marker.
    markers: Vec<Option<usize>>,
    known: HashMap<Vec<u8>, Option<Vec<u8>>>,
}

impl<'a> Renamed<'a> {
    /// Renames by `mapping` what goes to `to`.
    pub fn new(to: &'a mut dyn TimelineSink, mapping: &'a Mapping<'a>) -> Renamed<'a> {
        Renamed { to, mapping, markers: Vec::new(), known: HashMap::new() }
    }

    /// The text of a marker with the real names in it; `None` where nothing changes.
    fn rename(&mut self, text: &[u8]) -> Option<Vec<u8>> {
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        let renamed =
            std::str::from_utf8(text).ok().and_then(|t| self.mapping.text(t)).map(String::into_bytes);
        if self.known.len() < MAX_CACHED {
            self.known.insert(text.to_vec(), renamed.clone());
        }
        renamed
    }
}

impl Sink for Renamed<'_> {
    fn head(&mut self, head: &Head) -> io::Result<()> {
        self.to.head(head)
    }

    fn kernel(&mut self, context: &Arc<Symbolizer>) -> io::Result<()> {
        self.to.kernel(context)
    }

    fn event_type(&mut self, id: EventTypeId, kind: &EventType) -> io::Result<()> {
        self.markers.push(if kind.name == "print" { kind.field("buf") } else { None });
        self.to.event_type(id, kind)
    }

    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        self.to.thread(thread)
    }

    fn process(&mut self, process: &ProcessInfo<'_>) -> io::Result<()> {
        self.to.process(process)
    }

    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        let buf = self.markers.get(event.kind.0 as usize).copied().flatten();
        let renamed = buf.and_then(|buf| Some((buf, self.rename(event.text(kind, buf)?)?)));
        let Some((buf, text)) = renamed else { return self.to.event(event, kind) };
        match event.payload {
            Payload::Raw { data, endian } => {
                // `buf` is the last field and ends with the record.
                let start = kind.fields[buf].offset as usize;
                let mut record = data.get(..start).unwrap_or(data).to_vec();
                record.extend_from_slice(&text);
                record.push(0);
                self.to.event(&Event { payload: Payload::Raw { data: &record, endian }, ..*event }, kind)
            }
            Payload::Values { values, text: printed } => {
                let mut values = values.to_vec();
                values[buf] = Value::Str(&text);
                let text = printed.map(|_| &text[..]);
                self.to.event(&Event { payload: Payload::Values { values: &values, text }, ..*event }, kind)
            }
        }
    }

    fn lost(&mut self, cpu: u32, count: Option<u64>) -> io::Result<()> {
        self.to.lost(cpu, count)
    }
}

impl TimelineSink for Renamed<'_> {
    fn order(&self) -> Order {
        self.to.order()
    }

    fn method(&mut self, id: MethodId, name: &MethodName<'_>) -> io::Result<()> {
        let class = name.class.replace('/', ".");
        match self.mapping.method(&class, name.name, name.signature, None) {
            Some(real) => self.to.method(id, &MethodName { class: &real.class, name: &real.name, ..*name }),
            None => self.to.method(id, name),
        }
    }

    fn method_thread(&mut self, thread: &MethodThread) -> io::Result<()> {
        self.to.method_thread(thread)
    }

    fn edges(&mut self, thread: u32, edges: &[Edge]) -> io::Result<()> {
        self.to.edges(thread, edges)
    }

    fn finish(&mut self, outcome: &MergeSummary) -> io::Result<()> {
        self.to.finish(outcome)
    }

    fn notes(&self) -> Vec<String> {
        self.to.notes()
    }
}
