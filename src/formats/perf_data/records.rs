//! The records of a perf.data file in the order of time.
//!
//! Each processor has a buffer of its own, from which the recorder copies one piece after another: records
//! are in the order of time only within a piece. A record `FINISHED_ROUND` of perf says that no later
//! record is older than the newest one of the round before. simpleperf writes no such records, but its
//! records are nearly in order.

use super::attribute::{Attribute, sample_type as bit};
use super::bytes::Bytes;

use crate::clock::Timestamp;
use crate::ids::Cpu;

/// The size of a record's header, bytes.
pub(super) const HEADER_BYTES: usize = 8;

/// The types of records that are used.
pub(super) mod record_type {
    pub(crate) const MMAP: u32 = 1;
    pub(crate) const LOST: u32 = 2;
    pub(crate) const COMM: u32 = 3;
    pub(crate) const THROTTLE: u32 = 5;
    pub(crate) const FORK: u32 = 7;
    pub(crate) const SAMPLE: u32 = 9;
    pub(crate) const MMAP2: u32 = 10;
    pub(crate) const AUX: u32 = 11;
    pub(crate) const LOST_SAMPLES: u32 = 13;
    pub(crate) const SWITCH: u32 = 14;
    pub(crate) const SWITCH_CPU_WIDE: u32 = 15;
    pub(crate) const KSYMBOL: u32 = 17;
    /// The first type that the recorder writes, and not the kernel.
    pub(crate) const FIRST_OF_RECORDER: u32 = 64;
    pub(crate) const HEADER_ATTR: u32 = 64;
    pub(crate) const TRACING_DATA: u32 = 66;
    pub(crate) const FINISHED_ROUND: u32 = 68;
    pub(crate) const AUXTRACE_INFO: u32 = 70;
    pub(crate) const AUXTRACE: u32 = 71;
    pub(crate) const EVENT_UPDATE: u32 = 78;
    pub(crate) const HEADER_FEATURE: u32 = 80;
    pub(crate) const COMPRESSED: u32 = 81;
    pub(crate) const COMPRESSED2: u32 = 83;
    /// The first type of simpleperf's own records.
    pub(crate) const FIRST_OF_SIMPLEPERF: u32 = 32768;
    pub(crate) const KERNEL_SYMBOL: u32 = 32769;
    pub(crate) const DSO: u32 = 32770;
    pub(crate) const SYMBOL: u32 = 32771;
    pub(crate) const EVENT_ID: u32 = 32774;
}

/// The header of a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordHeader {
    pub kind: u32,
    pub misc: u16,
    /// Size of the record with its header, bytes.
    pub size: usize,
}

impl RecordHeader {
    /// The header at `at`; `None` behind the last whole header, and where a record is smaller than its
    /// header.
    #[inline]
    pub(super) fn parse(records: &[u8], at: usize, is_big_endian: bool) -> Option<RecordHeader> {
        let mut bytes = Bytes::new(records.get(at..)?, is_big_endian);
        let kind = bytes.u32()?;
        let misc = bytes.u16()?;
        let size = bytes.u16()?;
        // simpleperf's own records have a size of 32 bits, whose upper half is in the place of `misc`.
        let (misc, size) = if kind >= record_type::FIRST_OF_SIMPLEPERF {
            (0, usize::from(misc) << 16 | usize::from(size))
        } else {
            (misc, usize::from(size))
        };
        (size >= HEADER_BYTES).then_some(RecordHeader { kind, misc, size })
    }

    /// The size of the data that follows the record and is not counted in its size.
    pub(super) fn data_behind(self, body: &[u8], is_big_endian: bool) -> usize {
        let mut bytes = Bytes::new(body, is_big_endian);
        let size = match self.kind {
            record_type::TRACING_DATA => bytes.u32().map(u64::from),
            record_type::AUXTRACE => bytes.u64(),
            _ => None,
        };
        size.and_then(|size| usize::try_from(size).ok()).unwrap_or(0)
    }
}

/// One record.
#[derive(Debug, Clone, Copy)]
pub(super) struct PerfRecord<'a> {
    pub kind: u32,
    pub misc: u16,
    pub body: &'a [u8],
    /// Index of the event type that the record belongs to.
    pub attribute: usize,
    /// Time, in the recording's clock; that of the record before where the record has none.
    pub time: Timestamp,
}

/// The layouts of the records of all event types.
#[derive(Debug, Clone)]
pub(super) struct Layouts {
    pub list: Vec<PerfRecordLayout>,
    pub by_id: rustc_hash::FxHashMap<u64, usize>,
    /// Whether ids lie at the same place in the records of all event types.
    has_ids: bool,
}

impl Layouts {
    pub(super) fn new(attributes: &[Attribute], is_big_endian: bool) -> Layouts {
        let list: Vec<PerfRecordLayout> =
            attributes.iter().map(|a| PerfRecordLayout::new(a, is_big_endian)).collect();
        let ids = attributes.iter().enumerate();
        let by_id = ids.flat_map(|(n, attribute)| attribute.ids.iter().map(move |id| (*id, n))).collect();
        let has_ids = list.len() > 1 && list.iter().all(|layout| layout.has_ids_where(&list[0]));
        Layouts { list, by_id, has_ids }
    }

    /// Adds the ids of event types of a record `EVENT_ID`.
    fn add_ids(&mut self, mut body: Bytes<'_>) {
        let count = body.u64().unwrap_or(0);
        for _ in 0..count {
            let (Some(attribute), Some(id)) = (body.u64(), body.u64()) else { return };
            let attribute = usize::try_from(attribute).unwrap_or(usize::MAX);
            if attribute < self.list.len() {
                self.by_id.insert(id, attribute);
            }
        }
    }

    /// The event type of a record; the first one where the record does not say it.
    #[inline]
    fn attribute(&self, is_sample: bool, body: &[u8]) -> usize {
        if !self.has_ids {
            return 0;
        }
        let id = self.list[0].id(is_sample, body);
        id.and_then(|id| self.by_id.get(&id)).copied().unwrap_or(0)
    }
}

/// Without rounds, so many records may be in another order.
const WINDOW_RECORDS: usize = 4096;
/// The most records of one round that are sorted at a time.
const MAX_ROUND_RECORDS: usize = 1 << 20;

/// A record that waits until all earlier records have been passed on.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    time: Timestamp,
    at: usize,
}

/// Walks through the records.
pub(super) struct RecordWalk<'a> {
    records: &'a [u8],
    is_big_endian: bool,
    /// The next record to look at.
    at: usize,
    waiting: Vec<Waiting>,
    /// How many of `waiting` are due, and how many of them have been returned.
    due: usize,
    returned: usize,
    has_rounds: bool,
    /// The newest time of all records so far, and the newest time of the records of earlier rounds.
    newest: Timestamp,
    newest_before: Timestamp,
    last_time: Timestamp,
    /// Where the records end early: at a record that is cut, or has an impossible size.
    pub broken_at: Option<usize>,
}

impl<'a> RecordWalk<'a> {
    pub(super) fn new(records: &'a [u8], is_big_endian: bool) -> RecordWalk<'a> {
        RecordWalk {
            records,
            is_big_endian,
            at: 0,
            waiting: Vec::new(),
            due: 0,
            returned: 0,
            has_rounds: false,
            newest: Timestamp::MIN,
            newest_before: Timestamp::MIN,
            last_time: Timestamp::MIN,
            broken_at: None,
        }
    }

    /// How many bytes of the records have been looked at.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// The next record in the order of time.
    #[inline]
    pub(super) fn next(&mut self, layouts: &mut Layouts) -> Option<PerfRecord<'a>> {
        while self.returned == self.due {
            if !self.fill(layouts) {
                return None;
            }
        }
        let Waiting { time, at } = self.waiting[self.returned];
        self.returned += 1;
        let header = RecordHeader::parse(self.records, at, self.is_big_endian)?;
        let body = self.records.get(at + HEADER_BYTES..at + header.size)?;
        let attribute = layouts.attribute(header.kind == record_type::SAMPLE, body);
        Some(PerfRecord { kind: header.kind, misc: header.misc, body, attribute, time })
    }

    /// Collects records until some are due. Returns whether any are.
    fn fill(&mut self, layouts: &mut Layouts) -> bool {
        self.waiting.drain(..self.returned);
        self.due = 0;
        self.returned = 0;
        loop {
            let Some(header) = self.next_header() else {
                self.release(Timestamp::MAX);
                return self.due > 0;
            };
            let body = &self.records[self.at + HEADER_BYTES..self.at + header.size];
            let at = self.at;
            self.at += header.size;
            self.at = self.at.saturating_add(header.data_behind(body, self.is_big_endian));
            if header.kind == record_type::FINISHED_ROUND {
                self.has_rounds = true;
                self.release(self.newest_before);
                self.newest_before = self.newest;
                if self.due > 0 {
                    return true;
                }
                continue;
            }
            if header.kind == record_type::EVENT_ID {
                layouts.add_ids(Bytes::new(body, self.is_big_endian));
            }
            let is_of_kernel = header.kind < record_type::FIRST_OF_RECORDER;
            let is_sample = header.kind == record_type::SAMPLE;
            let time = is_of_kernel
                .then(|| layouts.list[layouts.attribute(is_sample, body)].time(is_sample, body))
                .flatten();
            let time = time.unwrap_or(self.last_time);
            self.last_time = time;
            self.newest = self.newest.max(time);
            self.waiting.push(Waiting { time, at });
            let most = if self.has_rounds { MAX_ROUND_RECORDS } else { 2 * WINDOW_RECORDS };
            if self.waiting.len() >= most {
                self.release_older_half();
                return true;
            }
        }
    }

    fn next_header(&mut self) -> Option<RecordHeader> {
        if self.at >= self.records.len() {
            return None;
        }
        let header = RecordHeader::parse(self.records, self.at, self.is_big_endian);
        match header.filter(|header| self.at + header.size <= self.records.len()) {
            Some(header) => Some(header),
            None => {
                self.broken_at = Some(self.at);
                self.at = self.records.len();
                None
            }
        }
    }

    fn sort(&mut self) {
        if !self.waiting.is_sorted_by_key(|record| record.time) {
            self.waiting.sort_by_key(|record| record.time);
        }
    }

    /// Makes the records up to a time due.
    fn release(&mut self, up_to: Timestamp) {
        self.sort();
        self.due = self.waiting.partition_point(|record| record.time <= up_to);
    }

    /// Makes the older half of the records due.
    fn release_older_half(&mut self) {
        self.sort();
        self.due = self.waiting.len() / 2;
    }
}

/// The fields of a sample that are used.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RawSample<'a> {
    pub ip: u64,
    pub pid: u32,
    pub tid: u32,
    pub time: Timestamp,
    pub cpu: Option<Cpu>,
    pub period: u64,
    /// The stack's addresses of 8 bytes each, innermost first, with marks of the kernel between them.
    pub chain: &'a [u8],
    /// The sample has the memory of its stack, which is not unwound.
    pub copies_stack: bool,
}

/// The fields with which a sample begins, of 8 bytes each.
const SAMPLE_FIELDS: [u64; 8] =
    [bit::IDENTIFIER, bit::IP, bit::TID, bit::TIME, bit::ADDR, bit::ID, bit::STREAM_ID, bit::CPU];

/// The layout of an event type's records.
#[derive(Debug, Clone)]
pub(super) struct PerfRecordLayout {
    attribute: Attribute,
    is_big_endian: bool,
    /// Where a sample's time lies, bytes behind the record's header.
    sample_time_at: Option<usize>,
    /// Where a sample's id lies.
    sample_id_at: Option<usize>,
    /// Where the time of another record lies, bytes before its end.
    other_time_from_end: Option<usize>,
    /// Where the id of another record lies, bytes before its end.
    other_id_from_end: Option<usize>,
    /// Where the ids of the thread lie in another record, bytes before its end.
    other_tid_from_end: Option<usize>,
}

impl PerfRecordLayout {
    pub(super) fn new(attribute: &Attribute, is_big_endian: bool) -> PerfRecordLayout {
        /// The fields with which other records end.
        const LAST: [u64; 6] = [bit::IDENTIFIER, bit::CPU, bit::STREAM_ID, bit::ID, bit::TIME, bit::TID];
        let kind = attribute.sample_type;
        let has = |flag: u64| kind & flag != 0;
        let place = |wanted: u64, order: &[u64]| {
            let before = order.iter().take_while(|flag| **flag != wanted).filter(|flag| has(**flag)).count();
            has(wanted).then_some(8 * before)
        };
        let from_end = |wanted: u64| {
            let at = place(wanted, &LAST).filter(|_| attribute.has_sample_id_all());
            at.map(|behind| behind + 8)
        };
        PerfRecordLayout {
            attribute: attribute.clone(),
            is_big_endian,
            sample_time_at: place(bit::TIME, &SAMPLE_FIELDS),
            sample_id_at: place(bit::IDENTIFIER, &SAMPLE_FIELDS).or_else(|| place(bit::ID, &SAMPLE_FIELDS)),
            other_time_from_end: from_end(bit::TIME),
            other_id_from_end: from_end(bit::IDENTIFIER).or_else(|| from_end(bit::ID)),
            other_tid_from_end: from_end(bit::TID),
        }
    }

    /// Whether the records of both event types have their ids at the same places, so that the id can be read
    /// before it is known whose record it is.
    pub(super) fn has_ids_where(&self, other: &PerfRecordLayout) -> bool {
        self.sample_id_at == other.sample_id_at && self.other_id_from_end == other.other_id_from_end
    }

    fn word_at(&self, body: &[u8], at: usize) -> Option<u64> {
        Bytes::new(body.get(at..)?, self.is_big_endian).u64()
    }

    /// The id of the event type in a record's body.
    pub(super) fn id(&self, is_sample: bool, body: &[u8]) -> Option<u64> {
        if is_sample {
            self.word_at(body, self.sample_id_at?)
        } else {
            self.word_at(body, body.len().checked_sub(self.other_id_from_end?)?)
        }
    }

    /// The time of a record.
    pub(super) fn time(&self, is_sample: bool, body: &[u8]) -> Option<Timestamp> {
        let at = if is_sample {
            self.sample_time_at?
        } else {
            body.len().checked_sub(self.other_time_from_end?)?
        };
        self.word_at(body, at).map(Timestamp)
    }

    /// The thread of a record that is no sample: its process and its id.
    pub(super) fn thread(&self, body: &[u8]) -> Option<(u32, u32)> {
        let at = body.len().checked_sub(self.other_tid_from_end?)?;
        let mut bytes = Bytes::new(body.get(at..)?, self.is_big_endian);
        Some((bytes.u32()?, bytes.u32()?))
    }

    /// Whether samples state in their periods how long their threads did not run.
    pub(super) fn states_off_cpu(&self) -> bool {
        self.attribute.states_off_cpu()
    }

    /// The counters of a sample that reads them, each by its id, with its value. `None` for other samples.
    pub(super) fn counters(&self, body: &[u8]) -> Option<Vec<(u64, u64)>> {
        let kind = self.attribute.sample_type;
        if kind & bit::READ == 0 {
            return None;
        }
        let before = SAMPLE_FIELDS.iter().chain(&[bit::PERIOD]).filter(|flag| kind & **flag != 0).count();
        self.attribute.counters(Bytes::new(body.get(8 * before..)?, self.is_big_endian))
    }

    /// The event type is one of simpleperf's `--add-counter`.
    pub(super) fn is_added_counter(&self) -> bool {
        self.attribute.is_added_counter()
    }

    /// A number by which the counters of the thread are told from those of others, where each thread has its
    /// own.
    pub(super) fn counting_thread(&self, tid: u32) -> u32 {
        if self.attribute.is_inherited() { tid } else { 0 }
    }

    /// The fields of a sample, from the body of its record. `None` where the record is too short for them.
    #[inline]
    pub(super) fn sample<'a>(&self, body: &'a [u8]) -> Option<RawSample<'a>> {
        let kind = self.attribute.sample_type;
        let has = |flag: u64| kind & flag != 0;
        let mut bytes = Bytes::new(body, self.is_big_endian);
        let mut sample = RawSample { period: self.attribute.default_period(), ..RawSample::default() };
        if has(bit::IDENTIFIER) {
            bytes.u64()?;
        }
        if has(bit::IP) {
            sample.ip = bytes.u64()?;
        }
        if has(bit::TID) {
            sample.pid = bytes.u32()?;
            sample.tid = bytes.u32()?;
        }
        if has(bit::TIME) {
            sample.time = Timestamp(bytes.u64()?);
        }
        for flag in [bit::ADDR, bit::ID, bit::STREAM_ID] {
            if has(flag) {
                bytes.u64()?;
            }
        }
        if has(bit::CPU) {
            sample.cpu = Some(Cpu(bytes.u32()?));
            bytes.u32()?;
        }
        if has(bit::PERIOD) {
            sample.period = bytes.u64()?;
        }
        if has(bit::READ) {
            let values = if self.attribute.reads_group() { Some(bytes.u64()?) } else { None };
            bytes.take_u64_len(self.attribute.read_bytes(values)?)?;
        }
        if has(bit::CALLCHAIN) {
            let frames = bytes.u64()?;
            sample.chain = bytes.take_u64_len(frames.checked_mul(8)?)?;
        }
        sample.copies_stack = self.attribute.copies_stack(bytes.rest().len());
        Some(sample)
    }
}
