//! `--mapping`: replaces obfuscated names by the original ones on their way to an exporter, in methods and in
//! markers.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use super::sink::{MethodId, MethodName, TimelineAdapter, TimelineSink};
use crate::art::Mapping;
use crate::formats::samples::SampleTables;
use crate::formats::{
    Event, EventType, EventTypeId, Payload, SinkAdapter, TrackEvent, TrackEventKind, Value,
};

/// The most marker texts whose original text is remembered; an app has fewer.
const MAX_CACHED: usize = 100_000;

/// Passes a timeline on to an exporter, with obfuscated names replaced by the original ones.
pub struct Deobfuscator<'a> {
    to: &'a mut dyn TimelineSink,
    mapping: &'a Mapping<'a>,
    /// For each event type, the index of the field that holds a marker's text; `None` where there is none.
    markers: Vec<Option<usize>>,
    cache: HashMap<Vec<u8>, Option<Vec<u8>>>,
}

impl<'a> Deobfuscator<'a> {
    /// An adapter that passes everything on to `to`, with names replaced by `mapping`.
    pub fn new(to: &'a mut dyn TimelineSink, mapping: &'a Mapping<'a>) -> Deobfuscator<'a> {
        Deobfuscator { to, mapping, markers: Vec::new(), cache: HashMap::new() }
    }

    /// The text of a marker with the original names; `None` where the text holds no obfuscated name.
    fn rename(&mut self, text: &[u8]) -> Option<Vec<u8>> {
        if let Some(cached) = self.cache.get(text) {
            return cached.clone();
        }
        let renamed =
            std::str::from_utf8(text).ok().and_then(|t| self.mapping.text(t)).map(String::into_bytes);
        if self.cache.len() < MAX_CACHED {
            self.cache.insert(text.to_vec(), renamed.clone());
        }
        renamed
    }
}

impl<'a> SinkAdapter for Deobfuscator<'a> {
    type Next = dyn TimelineSink + 'a;

    fn next(&mut self) -> &mut Self::Next {
        self.to
    }

    fn event_type(&mut self, id: EventTypeId, kind: &EventType) -> io::Result<()> {
        self.markers.push(if kind.name == "print" { kind.field("buf") } else { None });
        self.to.event_type(id, kind)
    }

    fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
        let (TrackEventKind::Begin { name } | TrackEventKind::Instant { name }) = event.kind else {
            return self.to.track_event(event);
        };
        let Some(original) = self.rename(name) else { return self.to.track_event(event) };
        let kind = match event.kind {
            TrackEventKind::Begin { .. } => TrackEventKind::Begin { name: &original },
            _ => TrackEventKind::Instant { name: &original },
        };
        self.to.track_event(&TrackEvent { kind, ..*event })
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
}

impl TimelineAdapter for Deobfuscator<'_> {
    fn sample_set(&mut self, set: u32, tables: &Arc<SampleTables>) -> io::Result<()> {
        let mut renamed = SampleTables::clone(tables);
        for frame in renamed.frames.iter_mut().filter(|frame| frame.has_symbol) {
            if let Some(name) = self.mapping.text(&frame.name) {
                frame.name = name;
            }
        }
        self.to.sample_set(set, &Arc::new(renamed))
    }

    fn method(&mut self, id: MethodId, name: &MethodName<'_>) -> io::Result<()> {
        let class = name.class.replace('/', ".");
        let signature = self.mapping.signature(name.signature);
        let signature = signature.as_deref().unwrap_or(name.signature);
        match self.mapping.method(&class, name.name, name.signature, None) {
            Some(real) => {
                let line = real.line.and_then(|line| u32::try_from(line).ok()).or(name.line);
                let real = MethodName { class: &real.class, name: &real.name, signature, line, ..*name };
                self.to.method(id, &real)
            }
            None => self.to.method(id, &MethodName { signature, ..*name }),
        }
    }
}
