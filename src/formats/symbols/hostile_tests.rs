//! Files with symbols that would take all memory, all of the stack, or hours.

use super::elf::names;
use super::{SymbolAddress, SymbolFault, SymbolNames};
use crate::formats::unpack_budget::{UnpackLimit, names_limit};

const PROGBITS: u32 = 1;
const SYMTAB: u32 = 2;
const STRTAB: u32 = 3;
const COMPRESSED: u64 = 0x800;

/// A section of a file: name, type, flags, contents, the section that it refers to, and the size of an entry.
type Section<'a> = (&'a str, u32, u64, Vec<u8>, u32, u64);

fn numbers(out: &mut Vec<u8>, numbers: &[(u64, usize)]) {
    for (number, bytes) in numbers {
        out.extend_from_slice(&number.to_le_bytes()[..*bytes]);
    }
}

/// An ELF file of x86-64 with these sections, of which the first one has the number 1.
fn elf(sections: &[Section<'_>]) -> Vec<u8> {
    let mut texts = vec![0];
    let mut contents = Vec::new();
    let mut headers = vec![0; 64];
    let named = (".shstrtab", STRTAB, 0, Vec::new(), 0, 0);
    for (name, kind, flags, bytes, link, entry) in sections.iter().chain([&named]) {
        let name_at = texts.len() as u64;
        texts.extend_from_slice(name.as_bytes());
        texts.push(0);
        let bytes = if *name == named.0 { &texts } else { bytes };
        let place = (64 + contents.len()) as u64;
        numbers(&mut headers, &[(name_at, 4), (u64::from(*kind), 4), (*flags, 8), (0, 8), (place, 8)]);
        numbers(&mut headers, &[(bytes.len() as u64, 8), (u64::from(*link), 4), (1, 4), (1, 8), (*entry, 8)]);
        contents.extend_from_slice(bytes);
    }
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    let count = sections.len() as u64 + 2;
    numbers(&mut file, &[(3, 2), (62, 2), (1, 4), (0, 8), (0, 8), (64 + contents.len() as u64, 8), (0, 4)]);
    numbers(&mut file, &[(64, 2), (0, 2), (0, 2), (64, 2), (count, 2), (count - 1, 2)]);
    [file, contents, headers].concat()
}

/// A compressed section that says to have `size` bytes.
fn compressed(name: &str, kind: u64, size: usize, packed: &[u8]) -> Section<'static> {
    let mut bytes = Vec::new();
    numbers(&mut bytes, &[(kind, 4), (0, 4), (size as u64, 8), (1, 8)]);
    bytes.extend_from_slice(packed);
    (name.to_owned().leak(), PROGBITS, COMPRESSED, bytes, 0, 0)
}

/// Abbreviations of a unit, of a function and of an inlined one, both with name, address and size.
const ABBREVIATIONS: &[u8] = &[
    1, 0x11, 1, 0, 0, 2, 0x2e, 1, 3, 8, 0x11, 1, 0x12, 6, 0, 0, 3, 0x1d, 1, 3, 8, 0x11, 1, 0x12, 6, 0, 0, 0,
];

fn plain(name: &str, bytes: &[u8]) -> Section<'static> {
    (name.to_owned().leak(), PROGBITS, 0, bytes.to_vec(), 0, 0)
}

/// A unit with a function at 0x100 of 0x80 bytes, into which `levels` functions are inlined, one into the
/// other.
fn unit(levels: usize) -> Vec<u8> {
    let mut entries = vec![1];
    for level in 0..=levels {
        entries.push(if level == 0 { 2 } else { 3 });
        entries.extend_from_slice(if level == 0 { b"f\0" } else { b"i\0" });
        numbers(&mut entries, &[(0x100, 8), (0x80, 4)]);
    }
    entries.resize(entries.len() + levels + 2, 0);
    let mut unit = Vec::new();
    numbers(&mut unit, &[(7 + entries.len() as u64, 4), (4, 2), (0, 4), (8, 1)]);
    [unit, entries].concat()
}

fn names_at(file: &[u8], address: u64, limit: Option<u64>) -> SymbolNames {
    let budget = UnpackLimit::new(limit).budget(file.len() as u64);
    names(file, &[SymbolAddress { address, is_offset: false }], &budget)
}

#[test]
fn inlined_functions_are_named_the_outermost_first() {
    let file = elf(&[plain(".debug_info", &unit(2)), plain(".debug_abbrev", ABBREVIATIONS)]);
    let found = names_at(&file, 0x17f, None);
    assert_eq!(found.names, [Some(vec!["f".to_owned(), "i".to_owned(), "i".to_owned()])]);
    assert!(found.fault.is_none(), "{:?}", found.fault);
    assert_eq!(names_at(&file, 0x180, None).names, [None]);
}

#[test]
fn functions_inlined_deep_into_each_other_do_not_overflow_the_stack() {
    let file = elf(&[plain(".debug_info", &unit(200_000)), plain(".debug_abbrev", ABBREVIATIONS)]);
    let found = names_at(&file, 0x100, None);
    assert_eq!(found.names[0].as_ref().map(Vec::len), Some(super::dwarf::MAX_INLINED + 1));
    assert!(matches!(found.fault, Some(SymbolFault::Work(_))), "{:?}", found.fault);
}

#[test]
fn compressed_sections_share_one_budget() {
    let zeros = vec![0; 3 << 20];
    let zstd = zstd::encode_all(&zeros[..], 1).unwrap();
    let info = zstd::encode_all(&unit(1)[..], 1).unwrap();
    let parts = |big: &[u8], size: usize| {
        let sections = [".debug_str", ".debug_ranges", ".debug_line_str"];
        let big = sections.map(|name| compressed(name, 2, size, big));
        let info = compressed(".debug_info", 2, unit(1).len(), &info);
        elf(&[&big[..], &[info, plain(".debug_abbrev", ABBREVIATIONS)]].concat())
    };
    let file = parts(&zstd, zeros.len());
    assert!(names_at(&file, 0x100, None).fault.is_none());
    let fault = names_at(&file, 0x100, Some(8 << 20)).fault.map(|fault| fault.to_string()).unwrap();
    assert!(names_limit(&fault) && fault.contains("its section .debug_"), "{fault}");
    let found = names_at(&parts(&zstd[..20], zeros.len()), 0x100, None);
    assert!(matches!(found.fault, Some(SymbolFault::Section(_))), "a damaged section is named");
}

#[test]
fn packed_symbols_are_not_unpacked_beyond_the_limit() {
    let mut xz = b"\xfd7zXZ\0\0\x01crc4\x02\0\x21\x01\0\0\0\0crc4".to_vec();
    for _ in 0..(1 << 15) {
        xz.extend([0xe0, 0xff, 0xff, 0, 0, 7]);
    }
    let fault = names_at(&elf(&[plain(".gnu_debugdata", &xz)]), 1, None).fault.map(|fault| fault.to_string());
    assert!(fault.as_ref().is_some_and(|fault| fault.contains("its section .gnu_debugdata")), "{fault:?}");
}

#[test]
fn symbols_that_share_a_long_name_take_bounded_work_and_memory() {
    let name_bytes = 4 << 20;
    let mut table = vec![0; 24];
    for symbol in 0..2_000u64 {
        // Each name is the rest of one long text. The type is that of a function.
        numbers(&mut table, &[(1 + symbol, 4), (2, 1), (0, 1), (1, 2), (symbol * 8, 8), (8, 8)]);
    }
    let texts = [&[0][..], &vec![b'n'; name_bytes], &[0]].concat();
    let file = elf(&[(".symtab", SYMTAB, 0, table, 2, 24), (".strtab", STRTAB, 0, texts, 0, 0)]);
    let found = names_at(&file, 8, None);
    assert_eq!(found.names[0].as_ref().map(|names| names[0].len()), Some(64 << 10));
    assert!(matches!(found.fault, Some(SymbolFault::Work(_))), "{:?}", found.fault);
}

#[test]
fn damaged_debugging_information_is_no_panic() {
    let sections = [plain(".debug_info", &unit(3)), plain(".debug_abbrev", ABBREVIATIONS)];
    let file = elf(&sections);
    for at in 0..file.len() {
        for value in [0, 0x7f, 0x80, 0xff] {
            let mut bad = file.clone();
            bad[at] = value;
            let _ = names_at(&bad, 0x100, None);
        }
    }
}
