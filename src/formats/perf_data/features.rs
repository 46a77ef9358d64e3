//! The feature sections that are used: build ids, facts about the machine, clocks, and simpleperf's lists of
//! files with their symbols (android platform/system/extras, simpleperf/record_file.proto).

use super::attribute::clock_of_id;
use super::bytes::{Bytes, lossy};
use super::symbols::{FileSymbols, FileType};
use crate::clock::Clock;
use crate::formats::wire::read::{WireValue as Field, fields};

/// The numbers of feature sections.
pub(super) mod feature {
    pub(crate) const BUILD_ID: u32 = 2;
    pub(crate) const HOSTNAME: u32 = 3;
    pub(crate) const OSRELEASE: u32 = 4;
    pub(crate) const VERSION: u32 = 5;
    pub(crate) const ARCH: u32 = 6;
    pub(crate) const CMDLINE: u32 = 11;
    pub(crate) const EVENT_DESC: u32 = 12;
    pub(crate) const CLOCK_DATA: u32 = 29;
    pub(crate) const FILE: u32 = 128;
    pub(crate) const META_INFO: u32 = 129;
    pub(crate) const FILE2: u32 = 132;
}

/// A section's name for people.
pub(super) fn name(number: u32) -> String {
    let name = match number {
        feature::BUILD_ID => "BUILD_ID",
        feature::EVENT_DESC => "EVENT_DESC",
        feature::CMDLINE => "CMDLINE",
        feature::FILE => "FILE",
        feature::META_INFO => "META_INFO",
        feature::FILE2 => "FILE2",
        other => return format!("number {other}"),
    };
    name.to_owned()
}

/// The text of a section that has one text.
pub(super) fn text(section: &[u8], is_big_endian: bool) -> Option<String> {
    Bytes::new(section, is_big_endian).sized_text().map(lossy)
}

/// The words of the section `CMDLINE`.
pub(super) fn command_line(section: &[u8], is_big_endian: bool) -> Option<String> {
    let mut bytes = Bytes::new(section, is_big_endian);
    let count = bytes.u32()?;
    let words = (0..count).map_while(|_| bytes.sized_text().map(lossy));
    Some(words.collect::<Vec<_>>().join(" "))
}

/// A build id, and the path of its file.
pub(super) fn build_ids(section: &[u8], is_big_endian: bool) -> Vec<(String, String)> {
    /// `PERF_RECORD_MISC_BUILD_ID_SIZE`: a byte behind the id says how long it is.
    const HAS_SIZE: u16 = 1 << 15;
    const MAX_ID_BYTES: usize = 20;
    let mut bytes = Bytes::new(section, is_big_endian);
    let mut all = Vec::new();
    loop {
        let (Some(_), Some(misc), Some(size)) = (bytes.u32(), bytes.u16(), bytes.u16()) else { return all };
        let Some(body) = usize::from(size).checked_sub(8).and_then(|len| bytes.take(len)) else { return all };
        let mut body = Bytes::new(body, is_big_endian);
        let (Some(_pid), Some(id)) = (body.u32(), body.take(24)) else { return all };
        let len = if misc & HAS_SIZE != 0 { usize::from(id[MAX_ID_BYTES]) } else { MAX_ID_BYTES };
        let id = &id[..len.min(MAX_ID_BYTES)];
        all.push((lossy(body.text()), hex(id)));
    }
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

/// The section `CLOCK_DATA`: the samples' clock, and readings of CLOCK_REALTIME and of that clock at one
/// moment, ns.
pub(super) fn clock_data(section: &[u8], is_big_endian: bool) -> Option<(Clock, u64, u64)> {
    let mut bytes = Bytes::new(section, is_big_endian);
    let (_version, id) = (bytes.u32()?, bytes.u32()?);
    Some((clock_of_id(id), bytes.u64()?, bytes.u64()?))
}

/// The files of simpleperf's section `FILE`.
pub(super) fn files(section: &[u8], is_big_endian: bool) -> Vec<FileSymbols> {
    let mut bytes = Bytes::new(section, is_big_endian);
    let mut all = Vec::new();
    while let Some(file) = bytes.u32().and_then(|len| bytes.take(len as usize)) {
        all.extend(file_v1(Bytes::new(file, is_big_endian)));
    }
    all
}

fn file_v1(mut bytes: Bytes<'_>) -> Option<FileSymbols> {
    let path = lossy(bytes.text());
    let kind = FileType::of(bytes.u32()?);
    let mut file = FileSymbols::of(path, kind, bytes.u64()?);
    let symbols = bytes.u32()?;
    for _ in 0..symbols {
        let (Some(address), Some(len)) = (bytes.u64(), bytes.u32()) else { return Some(file) };
        file.add(address, u64::from(len), bytes.text());
    }
    match kind {
        FileType::Dex => {
            // Offsets of DEX files inside of the file.
        }
        FileType::Elf | FileType::KernelModule => file.offset_of_min_vaddr = bytes.u64(),
        _ => {}
    }
    Some(file)
}

/// The files of simpleperf's section `FILE2`: messages of protobuf, each behind its length.
pub(super) fn files2(section: &[u8], is_big_endian: bool) -> Vec<FileSymbols> {
    let mut bytes = Bytes::new(section, is_big_endian);
    let mut all = Vec::new();
    while let Some(message) = bytes.u32().and_then(|len| bytes.take(len as usize)) {
        let mut file = FileSymbols::default();
        for (number, value) in fields(message) {
            match (number, value) {
                (1, Field::Bytes(path)) => file.path = lossy(path),
                (2, Field::Number(kind)) => file.kind = FileType::of(kind as u32),
                (3, Field::Number(address)) => file.min_vaddr = address,
                (4, Field::Bytes(symbol)) => add_symbol(&mut file, symbol),
                (6 | 7, Field::Bytes(info)) => {
                    let offset = fields(info).find(|(number, _)| *number == 1);
                    file.offset_of_min_vaddr = match offset {
                        Some((_, Field::Number(offset))) => Some(offset),
                        _ => Some(0),
                    };
                }
                _ => {}
            }
        }
        all.push(file);
    }
    all
}

fn add_symbol(file: &mut FileSymbols, message: &[u8]) {
    let (mut address, mut len, mut name): (u64, u64, &[u8]) = (0, 0, &[]);
    for (number, value) in fields(message) {
        match (number, value) {
            (1, Field::Number(value)) => address = value,
            (2, Field::Number(value)) => len = value,
            (3, Field::Bytes(text)) => name = text,
            _ => {}
        }
    }
    file.add(address, len, name);
}
