//! Where the fields of records lie, which the event type decides, and the fields of a sample.

use super::attribute::{Attribute, sample_type as bit};
use super::bytes::Bytes;

/// The fields of a sample that are used.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RawSample<'a> {
    pub ip: u64,
    pub pid: u32,
    pub tid: u32,
    pub time: u64,
    pub cpu: Option<u32>,
    pub period: u64,
    /// The stack's addresses of 8 bytes each, innermost first, with marks of the kernel between them.
    pub chain: &'a [u8],
}

/// The layout of an event type's records.
#[derive(Debug, Clone)]
pub(super) struct RecordLayout {
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

impl RecordLayout {
    pub(super) fn new(attribute: &Attribute, is_big_endian: bool) -> RecordLayout {
        let kind = attribute.sample_type;
        let has = |flag: u64| kind & flag != 0;
        // In a sample the fields begin with these, of 8 bytes each.
        let place = |wanted: u64, order: &[u64]| {
            let before = order.iter().take_while(|flag| **flag != wanted).filter(|flag| has(**flag)).count();
            has(wanted).then_some(8 * before)
        };
        const FIRST: [u64; 8] =
            [bit::IDENTIFIER, bit::IP, bit::TID, bit::TIME, bit::ADDR, bit::ID, bit::STREAM_ID, bit::CPU];
        // Other records end with these.
        const LAST: [u64; 6] = [bit::IDENTIFIER, bit::CPU, bit::STREAM_ID, bit::ID, bit::TIME, bit::TID];
        let from_end = |wanted: u64| {
            let at = place(wanted, &LAST).filter(|_| attribute.has_sample_id_all());
            at.map(|behind| behind + 8)
        };
        RecordLayout {
            attribute: attribute.clone(),
            is_big_endian,
            sample_time_at: place(bit::TIME, &FIRST),
            sample_id_at: place(bit::IDENTIFIER, &FIRST).or_else(|| place(bit::ID, &FIRST)),
            other_time_from_end: from_end(bit::TIME),
            other_id_from_end: from_end(bit::IDENTIFIER).or_else(|| from_end(bit::ID)),
            other_tid_from_end: from_end(bit::TID),
        }
    }

    /// Whether the records of both event types have their ids at the same places, so that the id can be read
    /// before it is known whose record it is.
    pub(super) fn has_ids_where(&self, other: &RecordLayout) -> bool {
        self.sample_id_at == other.sample_id_at && self.other_id_from_end == other.other_id_from_end
    }

    fn word_at(&self, body: &[u8], at: usize) -> Option<u64> {
        Bytes::new(body.get(at..)?, self.is_big_endian).u64()
    }

    /// The id of the event type in a record's body.
    pub(super) fn id(&self, is_sample: bool, body: &[u8]) -> Option<u64> {
        match is_sample {
            true => self.word_at(body, self.sample_id_at?),
            false => self.word_at(body, body.len().checked_sub(self.other_id_from_end?)?),
        }
    }

    /// The time of a record.
    pub(super) fn time(&self, is_sample: bool, body: &[u8]) -> Option<u64> {
        match is_sample {
            true => self.word_at(body, self.sample_time_at?),
            false => self.word_at(body, body.len().checked_sub(self.other_time_from_end?)?),
        }
    }

    /// The thread of a record that is no sample: its process and its id.
    pub(super) fn thread(&self, body: &[u8]) -> Option<(u32, u32)> {
        let at = body.len().checked_sub(self.other_tid_from_end?)?;
        let mut bytes = Bytes::new(body.get(at..)?, self.is_big_endian);
        Some((bytes.u32()?, bytes.u32()?))
    }

    /// Whether samples have the raw memory of a stack in place of its frames.
    pub(super) fn copies_stacks(&self) -> bool {
        self.attribute.sample_type & bit::STACK_USER != 0
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
            sample.time = bytes.u64()?;
        }
        for flag in [bit::ADDR, bit::ID, bit::STREAM_ID] {
            if has(flag) {
                bytes.u64()?;
            }
        }
        if has(bit::CPU) {
            sample.cpu = Some(bytes.u32()?);
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
        Some(sample)
    }
}
