//! Opening: the text section, the binary header, declarations, one pass over the records, and what is wrong with them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use super::body::{FixedBody, Segment, ThreadTable};
use super::ids::IdMap;
use super::scan::{self, Declared};
use super::{Body, Counts, Error, Header, Method, MethodTrace, TracedThread, open_blocks, reencoded, reused};
use crate::art::{
    ClockMode, DataHeader, KeySection, MAGIC, MethodLine, Packet, RecordLayout, next_packet,
    parse_method_line,
};
use crate::formats::{Damage, ReadReport};

/// At most this many bad lines are reported one by one.
const BAD_LINES_SHOWN: usize = 10;

/// What is gathered while opening.
#[derive(Default)]
pub(super) struct Opening<'a> {
    report: ReadReport,
    keys: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    pub(super) threads: Vec<TracedThread<'a>>,
    pub(super) methods: Vec<Method<'a>>,
    pub(super) ids: IdMap,
    table: Option<ThreadTable>,
    /// The last thread of each id.
    pub(super) latest: HashMap<u32, u32>,
}

/// See [`MethodTrace::parse`].
pub fn open(bytes: &[u8]) -> Result<MethodTrace<'_>, Error> {
    if bytes.is_empty() {
        return Err(Error::Empty);
    }
    let text = KeySection::parse(bytes);
    if text.is_none() && !bytes.starts_with(MAGIC) {
        return Err(Error::NotATrace);
    }
    let mut opening = Opening { table: Some(ThreadTable::empty()), ..Opening::default() };
    let mut data_at = 0;
    let mut version = 0;
    match text {
        Some(text) => {
            (data_at, version) = (text.len, text.version);
            if !text.complete {
                opening.damage(data_at, "the text section has no *end: methods and threads may be missing");
            }
            opening.take_text(text, 0, true);
        }
        None => opening.ids = IdMap::for_count(0),
    }
    let data = &bytes[data_at..];
    reencoded::check(data, data_at)?;
    let header = match DataHeader::parse(data) {
        Ok(header) => header,
        Err(reason) if data_at == 0 => return Err(Error::Header { offset: 0, reason }),
        Err(reason) => {
            opening.damage(data_at, reason);
            no_records(version, data)
        }
    };
    Ok(opening.finish(bytes, data_at, header))
}

/// Stands in for a binary header that cannot be read: no records follow.
fn no_records(version: u16, data: &[u8]) -> DataHeader {
    let version = if (1..=3).contains(&version) { version } else { 3 };
    let data_offset = data.len();
    DataHeader {
        version,
        streaming: false,
        data_offset,
        start: 0,
        record_size: 0,
        tsc_frequency: 0,
        start_tsc: 0,
    }
}

impl<'a> Opening<'a> {
    pub(super) fn damage(&mut self, offset: usize, what: impl ToString) {
        self.report.damage.push(Damage { offset: offset as u64, what: what.to_string() });
    }

    fn irregular(&mut self, n: u64, what: &str) {
        if n > 0 {
            self.report.irregular.push(format!("{n} {what}"));
        }
    }

    pub(super) fn key(&self, name: &str) -> Option<&str> {
        self.keys.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_ref())
    }

    fn table(&mut self) -> &mut ThreadTable {
        self.table.get_or_insert_with(ThreadTable::empty)
    }

    /// `fresh` where ids that come twice are two threads, and not the same one named again.
    pub(super) fn take_text(&mut self, text: KeySection<'a>, at: usize, fresh: bool) {
        for (offset, why) in text.bad_lines.iter().take(BAD_LINES_SHOWN) {
            self.damage(at + offset, format!("a line of the text section is skipped: {why}"));
        }
        if let Some(more) = text.bad_lines.len().checked_sub(BAD_LINES_SHOWN).filter(|n| *n > 0) {
            self.report.notes.push(format!("{more} more bad lines in the text section"));
        }
        if self.ids.is_empty() {
            self.ids = IdMap::for_count(text.methods.len());
        }
        self.keys.extend(text.keys);
        self.threads.reserve(text.threads.len());
        for (id, name) in text.threads {
            if fresh || !self.latest.contains_key(&id) {
                self.add_thread(id, name);
            }
        }
        if text.crlf_lines > 0 {
            let lines = text.crlf_lines;
            self.irregular(lines, "lines of text end in CR LF: some tool rewrote them, and maybe more");
        }
        self.methods.reserve(text.methods.len());
        for line in text.methods {
            self.add_method(line);
        }
    }

    pub(super) fn add_thread(&mut self, id: u32, name: Cow<'a, str>) -> u32 {
        let index = self.threads.len() as u32;
        let reused_id = self.latest.insert(id, index).is_some();
        self.threads.push(TracedThread { id, name, declared: true, reused_id, records: 0 });
        if let Ok(id) = u16::try_from(id)
            && !reused_id
        {
            self.table().bind(id, index);
        }
        index
    }

    pub(super) fn add_method(&mut self, line: MethodLine<'a>) {
        let index = self.methods.len() as u32;
        if self.ids.insert(line.id, index) == index {
            let MethodLine { id, class, name, signature, file, line } = line;
            self.methods.push(Method { id, class, name, signature, file, line, declared: true });
        }
    }

    fn finish(mut self, bytes: &'a [u8], data_at: usize, header: DataHeader) -> MethodTrace<'a> {
        let start_of_records = data_at + header.data_offset;
        let (body, clock, tick_ns, mut counts) = if header.version > 3 {
            let blocks = open_blocks::open(&mut self, bytes, start_of_records, &header);
            (Body::Blocks(blocks.body), blocks.clock, blocks.tick_ns, blocks.counts)
        } else {
            let (body, clock, counts) = self.fixed(bytes, data_at, &header);
            (Body::Fixed(body), clock, 1_000, counts)
        };
        counts.non_ascii_names = self.non_ascii_names();
        self.check_promises(&header, &counts, start_of_records..bytes.len());
        let number = |name: &str| self.key(name).and_then(|v| v.parse::<u64>().ok());
        let elapsed_ns =
            number("elapsed-time-nsec").or(number("elapsed-time-usec").map(|t| t.saturating_mul(1_000)));
        let header = Header {
            version: header.version,
            streaming: header.streaming,
            clock,
            clock_declared: self.key("clock").and_then(ClockMode::from_key).is_some(),
            start: header.start,
            // The encoding by counter ticks has its start in ns whatever else.
            start_unit_ns: tick_ns,
            tick_ns,
            vm: self.key("vm").map(str::to_owned),
            pid: self.key("pid").and_then(|v| v.parse().ok()),
            overflow: self.key("data-file-overflow") == Some("true"),
            elapsed_ns,
            keys: std::mem::take(&mut self.keys),
        };
        MethodTrace {
            bytes,
            may_wrap: header.version <= 3 && elapsed_ns.is_none_or(|t| t > u64::from(u32::MAX) * 1_000),
            header,
            threads: self.threads,
            methods: self.methods,
            counts,
            body,
            table: self.table.unwrap_or_else(ThreadTable::empty),
            ids: self.ids,
            report: self.report,
        }
    }

    /// Versions 1 to 3: records of fixed size.
    fn fixed(
        &mut self,
        bytes: &'a [u8],
        data_at: usize,
        header: &DataHeader,
    ) -> (FixedBody, ClockMode, Counts) {
        let from = data_at + header.data_offset;
        let clock_key = self.key("clock").and_then(ClockMode::from_key);
        let layout = RecordLayout::choose(header.version, header.record_size, clock_key);
        let mut body = FixedBody { layout: layout.unwrap_or(RecordLayout::Dual), segments: Vec::new() };
        match layout {
            None => self
                .damage(data_at + 16, format!("no runtime writes records of {} bytes", header.record_size)),
            Some(_) if header.streaming => self.streaming(bytes, from, &mut body),
            Some(_) => self.regular(bytes, from, &mut body),
        }
        // A streaming file names its clock in the summary at the end.
        let clock_key = self.key("clock").and_then(ClockMode::from_key);
        let clock = self.clock(clock_key, body.layout);
        let counts = self.scan(bytes, &mut body, clock);
        (body, clock, counts)
    }

    fn clock(&mut self, declared: Option<ClockMode>, layout: RecordLayout) -> ClockMode {
        let two = layout == RecordLayout::Dual;
        match declared {
            Some(clock) if (clock == ClockMode::Dual) == two => clock,
            Some(clock) => {
                let now = if two { ClockMode::Dual } else { ClockMode::ThreadCpu };
                let (said, taken) = (clock.name(), now.name());
                self.report
                    .notes
                    .push(format!("clock={said}, but the record size says {taken}: {taken} taken"));
                now
            }
            None if two => ClockMode::Dual,
            None => {
                self.report.notes.push("no clock= key: the times are taken for thread-CPU time".into());
                ClockMode::ThreadCpu
            }
        }
    }

    fn regular(&mut self, bytes: &[u8], from: usize, body: &mut FixedBody) {
        let size = body.layout.size();
        let left = bytes.len().saturating_sub(from);
        let end = from + left / size * size;
        if from < end {
            body.segments.push(Segment { range: from..end, binds: Vec::new() });
        }
        if !left.is_multiple_of(size) {
            let rest = left % size;
            self.damage(end, format!("the last record is cut: {rest} of its {size} bytes are there"));
        }
    }

    fn streaming(&mut self, bytes: &'a [u8], from: usize, body: &mut FixedBody) {
        let mut at = from;
        let mut summary = None;
        let mut binds = Vec::new();
        while let Some(next) = next_packet(&bytes[at..], body.layout) {
            let (packet, len) = match next {
                Ok(next) => next,
                Err(error) => {
                    let left = bytes.len() - at;
                    self.damage(at, format!("{error}: the last {left} bytes are not read"));
                    break;
                }
            };
            match packet {
                Packet::Records(_) => {
                    body.segments.push(Segment { range: at..at + len, binds: std::mem::take(&mut binds) });
                }
                Packet::Method(line) => match parse_method_line(line) {
                    Some(method) => self.add_method(method),
                    None => self.damage(at, "a method's declaration has no id, class and name"),
                },
                Packet::Thread(id, name) => {
                    let name = String::from_utf8_lossy(name);
                    let known = self.latest.get(&u32::from(id)).copied();
                    if known.is_none_or(|n| self.threads[n as usize].name != name) {
                        let index = self.add_thread(u32::from(id), name);
                        if known.is_some() {
                            binds.push((id, index));
                        }
                    }
                }
                Packet::Summary(text) => {
                    let text_at = at + len - text.len();
                    summary = Some((text, text_at));
                    at += len;
                    break;
                }
            }
            at += len;
        }
        match summary.map(|(text, text_at)| (KeySection::parse(text), text_at)) {
            Some((Some(text), text_at)) => {
                self.take_text(text, text_at, false);
                if at < bytes.len() {
                    self.damage(at, format!("{} bytes follow the summary and are not read", bytes.len() - at));
                }
            }
            Some((None, text_at)) => self.damage(text_at, "the summary does not begin with *version"),
            None => self.damage(
                at,
                "no summary at the end: the app was killed or the file was cut while tracing, so later calls may \
                 be missing, and clock and pid are not stated",
            ),
        }
    }

    /// The pass over all records: gives undeclared ids their places and parts threads that shared an id.
    fn scan(&mut self, bytes: &[u8], body: &mut FixedBody, clock: ClockMode) -> Counts {
        let table = self.table().clone();
        let declared = Declared { methods: &self.ids, count: self.threads.len(), table: &table };
        let mut found = scan::scan(bytes, body, clock, &declared);
        let mut counts = Counts {
            records: body.records(),
            enters: found.actions[0],
            exits: found.actions[1],
            unrolls: found.actions[2],
            bad_actions: found.actions[3],
            declared_methods: self.methods.len() as u64,
            declared_threads: self.threads.len() as u64,
            undeclared_methods: found.methods.len() as u64,
            undeclared_threads: found.threads.len() as u64,
            ..Counts::default()
        };
        for id in &found.methods {
            self.ids.insert(u64::from(*id), self.methods.len() as u32);
            self.methods.push(unknown_method(u64::from(*id)));
        }
        for id in &found.threads {
            let index = self.threads.len() as u32;
            self.table().bind(*id, index);
            self.threads.push(TracedThread {
                id: u32::from(*id),
                name: Cow::Borrowed(""),
                declared: false,
                reused_id: false,
                records: 0,
            });
        }
        if self.threads.iter().any(|t| t.reused_id) || found.by_thread.iter().any(|t| !t.restarts.is_empty())
        {
            let together = reused::part(bytes, body, &found, &mut self.threads, &self.methods, &self.ids);
            self.irregular(
                together,
                "thread ids are listed more than once and nothing tells their threads apart: taken for the first",
            );
            let table = self.table().clone();
            let all = Declared { methods: &self.ids, count: self.threads.len(), table: &table };
            found = scan::scan(bytes, body, clock, &all);
        }
        for (thread, scan) in self.threads.iter_mut().zip(&found.by_thread) {
            thread.records = scan.records;
        }
        counts.reused_threads = self.threads.iter().filter(|t| t.reused_id && t.records > 0).count() as u64;
        counts
    }

    fn non_ascii_names(&self) -> u64 {
        let threads = self.threads.iter().filter(|t| !t.name.is_ascii()).count();
        let methods = self.methods.iter().filter(|m| !(m.class.is_ascii() && m.name.is_ascii())).count();
        (threads + methods) as u64
    }

    fn check_promises(&mut self, header: &DataHeader, counts: &Counts, records: Range<usize>) {
        let (records_at, end) = (records.start, records.end);
        if self.key("data-file-overflow") == Some("true") {
            self.damage(
                end,
                "data-file-overflow=true: the buffer was full, and what came later was not recorded",
            );
        }
        let promised = self.key("num-method-calls").and_then(|v| v.parse::<u64>().ok());
        if let Some(promised) = promised.filter(|n| *n > counts.records && !header.streaming) {
            let there = counts.records;
            self.damage(
                end,
                format!("num-method-calls={promised}, but {there} records are there: the end is missing"),
            );
        }
        if counts.bad_actions > 0 {
            let what = format!(
                "{} records have an action that no runtime writes, and are left out",
                counts.bad_actions
            );
            self.damage(records_at, what);
        }
        for (count, what) in [(counts.undeclared_methods, "methods"), (counts.undeclared_threads, "threads")]
        {
            if count > 0 {
                self.damage(
                    records_at,
                    format!("{count} {what} in records are in no list: their names are not in the file"),
                );
            }
        }
        self.irregular(counts.reused_threads, "threads took the id of one that had ended");
        self.irregular(counts.unrolls, "calls were left by an exception (unroll)");
        let names =
            self.threads.iter().map(|t| &t.name).chain(self.methods.iter().flat_map(|m| [&m.class, &m.name]));
        let broken = names.filter(|name| name.contains('\u{fffd}')).count() as u64;
        self.irregular(broken, "names are not valid UTF-8; \u{fffd} stands for what cannot be read");
    }
}

pub(super) fn unknown_method<'a>(id: u64) -> Method<'a> {
    let none = || Cow::Borrowed("");
    Method { id, class: none(), name: none(), signature: none(), file: none(), line: None, declared: false }
}
