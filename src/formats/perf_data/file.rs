//! The parts of a perf.data file: its head, the event types, the feature sections and the records, in the
//! form of a file or of a pipe (torvalds/linux tools/perf/Documentation/perf.data-file-format.txt).

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::attribute::{Attribute, MIN_ATTRIBUTE_BYTES, event_descriptions};
use super::bytes::{Bytes, lossy};
use super::features::{self, feature};
use super::records::{HEADER_BYTES, RecordHeader, record_type};
use crate::formats::Damage;
use crate::formats::spill::{FileBytes, FilePart, SpillWriter};
use crate::formats::unpack::ZstdStream;
use crate::formats::unpack_budget::{UnpackBudget, is_over_limit};

/// The magic of a machine with the lowest byte first.
pub(super) const MAGIC: &[u8] = b"PERFILE2";
/// The magic of a machine with the highest byte first.
pub(super) const SWAPPED_MAGIC: &[u8] = b"2ELIFREP";

/// The size of the head in the form of a pipe, bytes.
const PIPE_HEAD_BYTES: u64 = 16;
/// The number of feature sections that a head has bits for.
const FEATURES: u32 = 256;
/// The largest number of event types that are read.
const MAX_ATTRIBUTES: usize = 4096;

/// The reason why a perf.data file cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PerfDataError {
    /// The head is cut.
    #[error("the file ends inside of its head, at offset {0}: copy it again")]
    CutHead(usize),
    /// No event type can be read.
    #[error("no event type of the file can be read (offset {0}): it is damaged, or of a newer version")]
    NoEventTypes(u64),
}

/// The parts of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct PerfFile<'a> {
    pub is_big_endian: bool,
    pub is_pipe: bool,
    pub attributes: Vec<Attribute>,
    /// The feature sections by number.
    pub features: BTreeMap<u32, &'a [u8]>,
    /// All records; what was compressed is unpacked.
    pub records: FilePart<'a>,
    /// Where the records lie in the file; 0 where they are unpacked.
    pub records_at: u64,
    /// Whether records were compressed.
    pub is_compressed: bool,
    /// Whether the file says that no record is compressed.
    says_plain: bool,
    pub damage: Vec<Damage>,
    pub notes: Vec<String>,
}

/// A range of the file that another part names.
#[derive(Debug, Clone, Copy, Default)]
struct Section {
    offset: u64,
    size: u64,
}

impl Section {
    fn parse(bytes: &mut Bytes<'_>) -> Option<Section> {
        Some(Section { offset: bytes.u64()?, size: bytes.u64()? })
    }

    /// The bytes of the section that the file has.
    fn bytes<'a>(&self, data: &'a [u8]) -> &'a [u8] {
        let start = usize::try_from(self.offset).unwrap_or(usize::MAX).min(data.len());
        let end = self.offset.saturating_add(self.size);
        let end = usize::try_from(end).unwrap_or(usize::MAX).min(data.len());
        &data[start..end]
    }

    fn is_whole_in(&self, data: &[u8]) -> bool {
        self.offset.checked_add(self.size).is_some_and(|end| end <= data.len() as u64)
    }
}

/// The damage of so many event types beyond [`MAX_ATTRIBUTES`].
fn unread_attributes(offset: u64, count: u64) -> Option<Damage> {
    let what = format!(
        "{count} event types are not read: the file has more than {MAX_ATTRIBUTES}; their samples are misread"
    );
    (count > 0).then_some(Damage { offset, what })
}

impl<'a> PerfFile<'a> {
    pub(super) fn parse(data: &'a [u8], budget: &UnpackBudget) -> Result<PerfFile<'a>, PerfDataError> {
        let is_big_endian = data.starts_with(SWAPPED_MAGIC);
        let mut head = Bytes::new(data, is_big_endian);
        let cut = || PerfDataError::CutHead(data.len());
        head.take(MAGIC.len()).ok_or_else(cut)?;
        let size = head.u64().ok_or_else(cut)?;
        let mut file = PerfFile { is_big_endian, ..PerfFile::default() };
        if size == PIPE_HEAD_BYTES {
            file.read_pipe(data);
        } else {
            file.read_sections(data, head).ok_or_else(cut)?;
        }
        if file.attributes.is_empty() {
            return Err(PerfDataError::NoEventTypes(file.records_at));
        }
        file.name_attributes();
        if !file.says_plain {
            file.unpack(budget);
        }
        Ok(file)
    }

    /// Reads the form of a file, from the rest of the head on. `None` where the head is cut.
    fn read_sections(&mut self, data: &'a [u8], mut head: Bytes<'a>) -> Option<()> {
        let attribute_size = head.u64()?;
        let attributes = Section::parse(&mut head)?;
        let mut records = Section::parse(&mut head)?;
        let _event_types = Section::parse(&mut head)?;
        let mut has_feature = [0u64; FEATURES as usize / 64];
        for word in &mut has_feature {
            *word = head.u64()?;
        }
        self.read_attributes(data, attributes, attribute_size);
        if records.size == 0 && records.offset < data.len() as u64 {
            records.size = data.len() as u64 - records.offset;
            let what = "the head states no size of the records, as if the recorder was killed: the rest of the \
                        file is read as records";
            self.notes.push(what.to_owned());
        }
        self.records = FilePart::Borrowed(records.bytes(data));
        self.records_at = records.offset;
        if !records.is_whole_in(data) {
            let what = format!(
                "the file is cut: of {} bytes of records it holds {}",
                records.size,
                self.records.len()
            );
            self.damage.push(Damage { offset: data.len() as u64, what });
            return Some(());
        }
        let table = Section { offset: records.offset + records.size, size: u64::MAX };
        let mut table = Bytes::new(table.bytes(data), self.is_big_endian);
        let has = |number: u32| has_feature[number as usize / 64] >> (number % 64) & 1 != 0;
        for number in (0..FEATURES).filter(|number| has(*number)) {
            let section = Section::parse(&mut table).filter(|section| section.is_whole_in(data));
            match section {
                Some(section) => _ = self.features.insert(number, section.bytes(data)),
                None => self.damage.push(Damage {
                    offset: data.len() as u64,
                    what: format!(
                        "the file is cut: its section {} is missing, and with it names and facts",
                        features::name(number)
                    ),
                }),
            }
        }
        // perf names compression in its list of sections. simpleperf does not.
        let is_whole = self.damage.is_empty() && self.notes.is_empty();
        self.says_plain = is_whole && !has(feature::COMPRESSED) && !self.is_simpleperf();
        if self.features.contains_key(&feature::DIR_FORMAT) {
            let what = "perf record --threads wrote the samples into the files data.0, data.1 … beside this one, \
                        which are not read: record without --threads";
            self.damage.push(Damage { offset: records.offset, what: what.to_owned() });
        }
        Some(())
    }

    fn read_attributes(&mut self, data: &[u8], section: Section, size: u64) {
        let Ok(size) = usize::try_from(size) else { return };
        // Each entry is an attribute and the section of its ids.
        let Some(attribute_size) = size.checked_sub(16).filter(|size| *size >= MIN_ATTRIBUTE_BYTES) else {
            return;
        };
        let entries = section.bytes(data).chunks_exact(size);
        let unread = entries.len().saturating_sub(MAX_ATTRIBUTES);
        self.damage.extend(unread_attributes(section.offset, unread as u64));
        for entry in entries.take(MAX_ATTRIBUTES) {
            let (attribute, ids) = entry.split_at(attribute_size);
            let Some(mut attribute) = Attribute::parse(attribute, self.is_big_endian) else { return };
            if let Some(ids) = Section::parse(&mut Bytes::new(ids, self.is_big_endian)) {
                let mut ids = Bytes::new(ids.bytes(data), self.is_big_endian);
                attribute.ids.extend(std::iter::from_fn(|| ids.u64()));
            }
            self.attributes.push(attribute);
        }
    }

    /// Reads the form that comes through a pipe. It has records in place of the sections of a file.
    fn read_pipe(&mut self, data: &'a [u8]) {
        self.is_pipe = true;
        self.records_at = PIPE_HEAD_BYTES;
        let records = data.get(PIPE_HEAD_BYTES as usize..).unwrap_or(&[]);
        self.records = FilePart::Borrowed(records);
        let mut at = 0;
        let mut unread = 0;
        while let Some(header) = RecordHeader::parse(records, at, self.is_big_endian) {
            let Some(body) = records.get(at + HEADER_BYTES..at + header.size) else { break };
            match header.kind {
                record_type::HEADER_ATTR if self.attributes.len() < MAX_ATTRIBUTES => {
                    self.take_attribute(body);
                }
                record_type::HEADER_ATTR => unread += 1,
                record_type::HEADER_FEATURE => {
                    let mut bytes = Bytes::new(body, self.is_big_endian);
                    if let Some(number) = bytes.u64().and_then(|number| u32::try_from(number).ok()) {
                        self.features.insert(number, bytes.rest());
                    }
                }
                record_type::EVENT_UPDATE => self.take_update(body),
                _ => {}
            }
            at = (at + header.size).saturating_add(header.data_behind(body, self.is_big_endian));
        }
        self.damage.extend(unread_attributes(PIPE_HEAD_BYTES, unread));
    }

    fn take_attribute(&mut self, body: &[u8]) {
        let Some(mut attribute) = Attribute::parse(body, self.is_big_endian) else { return };
        let size = body.get(4..).and_then(|rest| Bytes::new(rest, self.is_big_endian).u32());
        let ids = size.and_then(|size| body.get(size as usize..)).unwrap_or(&[]);
        let mut ids = Bytes::new(ids, self.is_big_endian);
        attribute.ids.extend(std::iter::from_fn(|| ids.u64()));
        self.attributes.push(attribute);
    }

    /// Takes the name of an event type from a record `PERF_RECORD_EVENT_UPDATE`.
    fn take_update(&mut self, body: &[u8]) {
        const NAME: u64 = 2;
        let mut bytes = Bytes::new(body, self.is_big_endian);
        if let (Some(NAME), Some(id)) = (bytes.u64(), bytes.u64())
            && let Some(attribute) = self.attributes.iter_mut().find(|a| a.ids.contains(&id))
        {
            attribute.name = lossy(bytes.text());
        }
    }

    /// Gives the event types the names that feature sections have for them.
    fn name_attributes(&mut self) {
        if let Some(section) = self.features.get(&feature::EVENT_DESC) {
            for described in event_descriptions(section, self.is_big_endian) {
                let is_same = |a: &&mut Attribute| described.ids.first().is_some_and(|id| a.ids.contains(id));
                if let Some(attribute) = self.attributes.iter_mut().find(is_same) {
                    attribute.name = described.name;
                }
            }
        }
        for line in self.meta_info().get("event_type_info").map_or("", String::as_str).lines() {
            // A name of a tracepoint has no comma.
            let mut parts = line.split(',');
            let name = parts.next();
            let kind = parts.next();
            let config = parts.next();
            let number = |text: Option<&str>| text.and_then(|text| text.trim().parse::<u64>().ok());
            let (Some(name), Some(kind), Some(config)) = (name, number(kind), number(config)) else {
                continue;
            };
            for attribute in &mut self.attributes {
                if attribute.name.is_empty() && attribute.is(kind as u32, config) {
                    attribute.name = format!("{name}{}", attribute.modifier());
                }
            }
        }
    }

    /// The facts that simpleperf writes about a recording.
    pub(super) fn meta_info(&self) -> BTreeMap<String, String> {
        self.features.get(&feature::META_INFO).map_or_else(BTreeMap::new, |section| {
            let mut bytes = Bytes::new(section, self.is_big_endian);
            let mut info = BTreeMap::new();
            while !bytes.rest().is_empty() {
                let key = lossy(bytes.text());
                info.insert(key, lossy(bytes.text()));
            }
            info
        })
    }

    /// Whether simpleperf wrote the file.
    pub(super) fn is_simpleperf(&self) -> bool {
        [feature::META_INFO, feature::FILE, feature::FILE2].iter().any(|n| self.features.contains_key(n))
            || self
                .features
                .get(&feature::CMDLINE)
                .is_some_and(|text| memchr::memmem::find(text, b"simpleperf").is_some())
    }

    fn unpack(&mut self, budget: &UnpackBudget) {
        let unpacked = unpack(&self.records, self.records_at, self.is_big_endian, budget);
        if let Some((records, damage)) = unpacked {
            self.records = records.into();
            self.records_at = 0;
            self.is_compressed = true;
            self.damage.extend(damage);
        }
    }
}

/// The records with the compressed ones unpacked in their places, and the damage. `None` where no record is
/// compressed.
fn unpack(
    records: &[u8],
    records_at: u64,
    is_big_endian: bool,
    budget: &UnpackBudget,
) -> Option<(FileBytes, Option<Damage>)> {
    let mut at = 0;
    let mut unpacked: Option<Unpacker> = None;
    let mut plain_from = 0;
    let failed = |at: usize, what: String| {
        Some(Damage {
            offset: records_at + at as u64,
            what: format!("{what}; the records from here on are not read"),
        })
    };
    while let Some(header) = RecordHeader::parse(records, at, is_big_endian) {
        let Some(body) = records.get(at + HEADER_BYTES..at + header.size) else { break };
        let end =
            (at + header.size).saturating_add(header.data_behind(body, is_big_endian)).min(records.len());
        let packed = match header.kind {
            record_type::COMPRESSED => Some(body),
            record_type::COMPRESSED2 => {
                let mut bytes = Bytes::new(body, is_big_endian);
                bytes.u64().and_then(|len| bytes.take_u64_len(len))
            }
            _ => None,
        };
        if let Some(packed) = packed {
            let unpacker = match &mut unpacked {
                Some(unpacker) => unpacker,
                none => match Unpacker::new() {
                    Ok(unpacker) => none.insert(unpacker),
                    Err(error) => return Some((FileBytes::Owned(Vec::new()), failed(at, error.to_string()))),
                },
            };
            let result = unpacker.add_plain(&records[plain_from..at], budget);
            plain_from = end;
            if let Err(error) = result.and_then(|()| unpacker.add(packed, is_big_endian, budget)) {
                let what = if is_over_limit(&error) { "the file" } else { "can't be unpacked:" };
                let damage = failed(at, format!("{what} {error}"));
                return unpacked.map(|unpacker| unpacker.finish(damage, records_at));
            }
        }
        at = end;
    }
    let mut unpacker = unpacked?;
    let rest = unpacker.add_plain(&records[plain_from..], budget);
    let left = unpacker.partial.len();
    let damage = match rest {
        Err(error) => failed(plain_from, format!("the file {error}")),
        Ok(()) if left > 0 => failed(records.len(), format!("{left} bytes of a compressed record are cut")),
        Ok(()) => None,
    };
    Some(unpacker.finish(damage, records_at))
}

/// Unpacks records that `perf record -z` and `simpleperf record -z` have compressed with Zstandard: one
/// stream over the contents of all records `COMPRESSED` of the file. A record may begin in one of them and
/// end in the next.
struct Unpacker {
    stream: ZstdStream,
    out: SpillWriter,
    /// The beginning of a record whose end is in the next compressed record.
    partial: Vec<u8>,
}

impl Unpacker {
    fn new() -> io::Result<Unpacker> {
        Ok(Unpacker { stream: ZstdStream::new()?, out: SpillWriter::default(), partial: Vec::new() })
    }

    /// Appends records that are not compressed.
    fn add_plain(&mut self, records: &[u8], budget: &UnpackBudget) -> io::Result<()> {
        budget.take(records.len() as u64).map_err(io::Error::other)?;
        self.out.write_all(records)
    }

    /// Unpacks the content of one record, and appends the records that are whole.
    fn add(&mut self, packed: &[u8], is_big_endian: bool, budget: &UnpackBudget) -> io::Result<()> {
        let Unpacker { stream, out, partial } = self;
        stream.unpack(packed, budget, |unpacked| {
            partial.extend_from_slice(unpacked);
            let mut end = 0;
            while let Some(header) = RecordHeader::parse(partial, end, is_big_endian)
                && end + header.size <= partial.len()
            {
                end += header.size;
            }
            out.write_all(&partial[..end])?;
            partial.drain(..end);
            Ok(())
        })
    }

    /// The records that were unpacked, with the damage of the file or of the temporary file.
    fn finish(self, damage: Option<Damage>, records_at: u64) -> (FileBytes, Option<Damage>) {
        match self.out.finish() {
            Ok(records) => (records, damage),
            Err(error) => {
                let what = format!("the compressed records are not read: {error}");
                (FileBytes::Owned(Vec::new()), Some(Damage { offset: records_at, what }))
            }
        }
    }
}
