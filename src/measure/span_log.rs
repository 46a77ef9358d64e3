//! Spans in a few bytes each. A meter keeps them until the part of the run that it measures is known: the
//! marker that completes a launch comes behind the launch.

use std::io;

use rustc_hash::FxHashMap;

use crate::clock::Timestamp;
use crate::tracks::Span;
use crate::varint;

/// The names of spans, each with a number.
#[derive(Debug, Default)]
pub(super) struct SpanNames {
    numbers: FxHashMap<Box<[u8]>, u32>,
    names: Vec<String>,
}

impl SpanNames {
    /// The number of a name.
    ///
    /// # Errors
    /// There are more than 2^32 names.
    pub fn number(&mut self, name: &[u8]) -> io::Result<u32> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        let number = u32::try_from(self.names.len()).map_err(io::Error::other)?;
        self.names.push(String::from_utf8_lossy(name).into_owned());
        self.numbers.insert(name.into(), number);
        Ok(number)
    }

    pub fn name(&self, number: u32) -> &str {
        &self.names[number as usize]
    }
}

/// A span with the number of its name, and the number of spans around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NamedSpan {
    pub name: u32,
    pub depth: usize,
    pub start: Timestamp,
    pub end: Timestamp,
}

impl NamedSpan {
    pub fn new(name: u32, depth: usize, span: Span) -> NamedSpan {
        NamedSpan { name, depth, start: span.start, end: span.end }
    }

    /// ns.
    pub fn length(&self) -> u64 {
        self.end.since(self.start)
    }
}

/// Spans in the order of their ends.
#[derive(Debug, Default)]
pub(super) struct SpanLog {
    bytes: Vec<u8>,
    last_end: Timestamp,
}

impl SpanLog {
    /// Appends a span. Returns the number of bytes that it takes.
    pub fn push(&mut self, span: NamedSpan) -> usize {
        let before = self.bytes.len();
        varint::push(&mut self.bytes, u64::from(span.name));
        varint::push(&mut self.bytes, span.depth as u64);
        varint::push(&mut self.bytes, varint::zigzag(span.end.wrapping_since(self.last_end)));
        varint::push(&mut self.bytes, span.end.since(span.start));
        self.last_end = span.end;
        self.bytes.len() - before
    }

    /// The spans, in the order in which they were appended.
    pub fn spans(&self) -> impl Iterator<Item = NamedSpan> {
        let mut bytes = &self.bytes[..];
        let mut last_end = Timestamp::default();
        std::iter::from_fn(move || {
            let name = varint::take(&mut bytes)? as u32;
            let depth = varint::take(&mut bytes)? as usize;
            let since_last = varint::unzigzag(varint::take(&mut bytes)?);
            let end = Timestamp(last_end.0.wrapping_add_signed(since_last));
            let start = end.saturating_sub(varint::take(&mut bytes)?);
            last_end = end;
            Some(NamedSpan { name, depth, start, end })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_come_back_as_they_were_appended() {
        let spans: Vec<NamedSpan> = [(0, 3, 10, 20), (7, 0, 5, 25), (1 << 30, 9, 0, u64::MAX), (2, 0, 1, 1)]
            .map(|(name, depth, start, end)| NamedSpan {
                name,
                depth,
                start: Timestamp(start),
                end: Timestamp(end),
            })
            .to_vec();
        let mut log = SpanLog::default();
        spans.iter().for_each(|span| _ = log.push(*span));
        assert_eq!(log.spans().collect::<Vec<_>>(), spans);
    }

    #[test]
    fn a_name_has_one_number() {
        let mut names = SpanNames::default();
        let numbers = [b"a", b"b", b"a"].map(|name| names.number(name).unwrap());
        assert_eq!(numbers, [0, 1, 0]);
        assert_eq!(names.name(1), "b");
    }
}
