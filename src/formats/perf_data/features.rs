//! The feature sections that are used: build ids, facts about the machine, clocks, and simpleperf's lists of
//! files with their symbols (android platform/system/extras, simpleperf/record_file.proto).

use super::attribute::clock_of_id;
use super::bytes::{Bytes, lossy};
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
    pub(crate) const DIR_FORMAT: u32 = 24;
    pub(crate) const COMPRESSED: u32 = 27;
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
fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

/// The section `CLOCK_DATA`: the samples' clock, and readings of CLOCK_REALTIME and of that clock at one
/// moment, ns.
pub(super) fn clock_data(section: &[u8], is_big_endian: bool) -> Option<(Clock, u64, u64)> {
    let mut bytes = Bytes::new(section, is_big_endian);
    let _version = bytes.u32()?;
    let id = bytes.u32()?;
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
    let kind = FileType::from_number(bytes.u32()?);
    let mut file = FileSymbols::new(path, kind, bytes.u64()?);
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
                (2, Field::Number(kind)) => file.kind = FileType::from_number(kind as u32),
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
    let mut address: u64 = 0;
    let mut len: u64 = 0;
    let mut name: &[u8] = &[];
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

/// The kind of a file, by simpleperf's numbers (`DsoType`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum FileType {
    /// The kernel.
    Kernel,
    /// A module of the kernel.
    KernelModule,
    /// A library or a program.
    #[default]
    Elf,
    /// A file with code of Dalvik, which ART interprets.
    Dex,
    /// A list of symbols, such as perf's `/tmp/perf-PID.map`.
    SymbolMap,
    /// Another file.
    Unknown,
}

impl FileType {
    pub(super) fn from_number(number: u32) -> FileType {
        match number {
            0 => FileType::Kernel,
            1 => FileType::KernelModule,
            2 => FileType::Elf,
            3 => FileType::Dex,
            4 => FileType::SymbolMap,
            _ => FileType::Unknown,
        }
    }
}

/// A function of a file.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    address: u64,
    /// Length, bytes; 0 for a function that ends where the next one begins.
    len: u64,
    name_at: u32,
    name_len: u32,
}

/// The functions of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct FileSymbols {
    pub path: String,
    pub kind: FileType,
    /// The address of the first code, as the file's segments state it.
    pub min_vaddr: u64,
    /// The offset of that code in the file. For a module of the kernel it is the offset in the module's
    /// memory.
    pub offset_of_min_vaddr: Option<u64>,
    symbols: Vec<Symbol>,
    /// The names, one behind the other.
    names: Vec<u8>,
    is_sorted: bool,
}

impl FileSymbols {
    /// A file without functions.
    pub(super) fn new(path: String, kind: FileType, min_vaddr: u64) -> FileSymbols {
        FileSymbols { path, kind, min_vaddr, ..FileSymbols::default() }
    }

    /// Adds a function.
    pub(super) fn add(&mut self, address: u64, len: u64, name: &[u8]) {
        let (Ok(name_at), Ok(name_len)) = (u32::try_from(self.names.len()), u32::try_from(name.len())) else {
            return;
        };
        self.names.extend_from_slice(name);
        self.symbols.push(Symbol { address, len, name_at, name_len });
        self.is_sorted = false;
    }

    /// Takes the functions of the kernel from the text of `/proc/kallsyms`.
    pub(super) fn add_kallsyms(&mut self, text: &[u8]) {
        for line in text.split(|byte| *byte == b'\n') {
            let mut words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
            let address = words.next().and_then(|word| std::str::from_utf8(word).ok());
            let address = address.and_then(|text| u64::from_str_radix(text, 16).ok());
            if let (Some(address @ 1..), Some(b"t" | b"T" | b"w" | b"W"), Some(name)) =
                (address, words.next(), words.next())
            {
                self.add(address, 0, name);
            }
        }
    }

    /// Whether the file has functions.
    pub(super) fn has_symbols(&self) -> bool {
        !self.symbols.is_empty()
    }

    /// The names of all functions.
    pub(super) fn all_names(&self) -> impl Iterator<Item = &[u8]> {
        self.symbols.iter().map(|symbol| self.name(symbol))
    }

    fn name(&self, symbol: &Symbol) -> &[u8] {
        let start = symbol.name_at as usize;
        self.names.get(start..start + symbol.name_len as usize).unwrap_or(&[])
    }

    /// Must be called behind the last [`FileSymbols::add`] and before [`FileSymbols::find`].
    pub(super) fn sort(&mut self) {
        if !std::mem::replace(&mut self.is_sorted, true) {
            self.symbols.sort_by_key(|symbol| symbol.address);
        }
    }

    /// The name of the function at an address of the file.
    pub(super) fn find(&self, address: u64) -> Option<&[u8]> {
        let behind = self.symbols.partition_point(|symbol| symbol.address <= address);
        let symbol = self.symbols.get(behind.checked_sub(1)?)?;
        let is_inside = symbol.len == 0 || address - symbol.address < symbol.len;
        is_inside.then(|| self.name(symbol))
    }

    /// The address in the file of an address in memory, where the file is mapped at `start` from its byte
    /// `offset` on.
    pub(super) fn address_in_file(&self, address: u64, start: u64, offset: u64) -> u64 {
        let in_map = address.wrapping_sub(start);
        match (self.kind, self.offset_of_min_vaddr) {
            (FileType::Kernel | FileType::SymbolMap, _) => address,
            (FileType::KernelModule, at) => in_map.wrapping_sub(at.unwrap_or(0)).wrapping_add(self.min_vaddr),
            (FileType::Dex, _) => in_map.wrapping_add(offset),
            (_, Some(at)) if at != u64::MAX => {
                in_map.wrapping_add(offset).wrapping_sub(at).wrapping_add(self.min_vaddr)
            }
            // Old files of simpleperf do not state the offset.
            (_, _) if self.has_symbols() => in_map.wrapping_add(self.min_vaddr),
            (_, _) => in_map.wrapping_add(offset),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::wire::write::{bytes, message, uint};

    #[test]
    fn an_address_is_found_in_the_function_around_it() {
        let mut file = FileSymbols::new("libx.so".into(), FileType::Elf, 0);
        file.add(0x300, 0, b"last");
        file.add(0x100, 0x10, b"first");
        file.sort();
        let name = |address| file.find(address).map(lossy);
        assert_eq!(name(0x10f).as_deref(), Some("first"));
        assert_eq!((name(0x110), name(0xff)), (None, None));
        assert_eq!(name(u64::MAX).as_deref(), Some("last"), "a function without a length ends nowhere");
    }

    #[test]
    fn the_text_of_kallsyms_gives_functions_and_no_data() {
        let mut kernel = FileSymbols::new("[kernel.kallsyms]".into(), FileType::Kernel, 0);
        kernel.add_kallsyms(b"ffff10 T start\nffff20 d data\n0 T hidden\nffff30 t inner\t[module]\n");
        let names: Vec<String> = kernel.all_names().map(lossy).collect();
        assert_eq!(names, ["start", "inner"]);
    }

    #[test]
    fn an_address_in_memory_is_one_of_the_file() {
        let at = |kind, offset_of_min_vaddr| {
            let mut file = FileSymbols::new(String::new(), kind, 0x1000);
            file.offset_of_min_vaddr = offset_of_min_vaddr;
            file.address_in_file(0x7010, 0x7000, 0x200)
        };
        assert_eq!(at(FileType::Kernel, None), 0x7010);
        assert_eq!(at(FileType::Dex, None), 0x210);
        assert_eq!(at(FileType::Elf, Some(0x100)), 0x1110);
        assert_eq!(at(FileType::KernelModule, Some(0x8)), 0x1008);
        assert_eq!(at(FileType::Elf, None), 0x210);
    }

    #[test]
    fn build_ids_have_their_own_length_where_the_section_states_it() {
        let mut section = Vec::new();
        for (misc, path) in [(0u16, b"a.so\0\0\0\0"), (1 << 15, b"b.so\0\0\0\0")] {
            section.extend([0; 4]);
            section.extend(misc.to_le_bytes());
            section.extend((8 + 4 + 24 + path.len() as u16).to_le_bytes());
            section.extend([0; 4]);
            section.extend([0xab; 20]);
            section.extend([4, 0, 0, 0]);
            section.extend(path);
        }
        let expected = [("a.so".to_owned(), "ab".repeat(20)), ("b.so".to_owned(), "ab".repeat(4))];
        assert_eq!(build_ids(&section, false), expected);
        for cut in 0..section.len() {
            assert!(build_ids(&section[..cut], false).len() <= 1);
        }
    }

    #[test]
    fn files_are_messages_behind_their_length() {
        let mut file = Vec::new();
        bytes(&mut file, 1, b"libx.so");
        uint(&mut file, 2, 2);
        message(&mut file, 4, |symbol| {
            uint(symbol, 1, 0x40);
            uint(symbol, 2, 0x10);
            bytes(symbol, 3, b"run");
        });
        let section = [&(file.len() as u32).to_le_bytes()[..], &file].concat();
        let mut found = files2(&section, false);
        assert_eq!((found.len(), found[0].path.as_str(), found[0].kind), (1, "libx.so", FileType::Elf));
        found[0].sort();
        assert_eq!(found[0].find(0x4f), Some(&b"run"[..]));
        assert!(files2(&section[..section.len() - 1], false).is_empty());
    }
}
