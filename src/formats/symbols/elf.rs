//! The symbols of ELF files: `.symtab`, `.dynsym`, the packed symbols of Android and Fedora
//! (`.gnu_debugdata`), and the functions that were inlined, from the debugging information.

use std::io;

use gimli::{EndianSlice, RunTimeEndian};
use object::{CompressionFormat, Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};

use super::address::{FunctionNames, SymbolAddress};
use super::dwarf;
use super::work_limit::{OverWorkLimit, WorkLimit};
use super::{SymbolFault, SymbolNames};
use crate::formats::spill::{FilePart, SpillWriter};
use crate::formats::unpack::Packing;
use crate::formats::unpack_budget::UnpackBudget;

/// Whether these are the first bytes of an ELF file.
pub(super) fn detect(head: &[u8]) -> bool {
    head.starts_with(b"\x7fELF")
}

/// The build id of a file in hexadecimal digits, empty where it has none; `None` for a broken file.
pub(super) fn build_id(data: &[u8]) -> Option<String> {
    let file = object::File::parse(data).ok()?;
    let id = file.build_id().ok().flatten().unwrap_or(&[]);
    Some(data_encoding::HEXLOWER.encode(id))
}

/// The functions at these addresses. ElfSections are unpacked within `budget`.
pub(super) fn names(data: &[u8], addresses: &[SymbolAddress], budget: &UnpackBudget) -> SymbolNames {
    let mut found = SymbolNames { names: vec![None; addresses.len()], fault: None };
    let Ok(file) = object::File::parse(data) else { return found };
    let mut work = WorkLimit::default();
    let mut sections = ElfSections { file: &file, budget, fault: None };
    let packed = sections.packed_symbols();
    let packed = packed.as_ref().and_then(|packed| object::File::parse(&**packed).ok());
    let mut table = ElfSymbolTable::default();
    let added = table.add(&file, &mut work);
    let _ = added.and_then(|()| packed.map_or(Ok(()), |packed| table.add(&packed, &mut work)));
    table.sort();
    let places: Vec<Option<u64>> = addresses
        .iter()
        .map(
            |asked| if asked.is_offset { virtual_address(&file, asked.address) } else { Some(asked.address) },
        )
        .collect();
    let mut sorted: Vec<u64> = places.iter().flatten().copied().collect();
    sorted.sort_unstable();
    sorted.dedup();
    let described = sections.functions(&sorted, &mut work);
    for (names, place) in found.names.iter_mut().zip(places) {
        let Some(place) = place else { continue };
        let described = sorted.binary_search(&place).ok().and_then(|index| described.get(index));
        *names = function_names(table.find(place), described, &mut work);
    }
    let over = work.is_over.then_some(SymbolFault::Work(OverWorkLimit));
    found.fault = sections.fault.map(SymbolFault::Section).or(over);
    found
}

/// The names at an address: those of the debugging information. The symbol has the mangled name of the
/// outermost function, which the debugging information of C lacks.
fn function_names(
    symbol: Option<&[u8]>,
    described: Option<&Vec<String>>,
    work: &mut WorkLimit,
) -> Option<FunctionNames> {
    let symbol = symbol.and_then(|symbol| work.name(symbol).ok());
    let inlined = described.into_iter().flatten().skip(usize::from(symbol.is_some()));
    let names: FunctionNames = symbol.into_iter().chain(inlined.cloned()).collect();
    (!names.is_empty()).then_some(names)
}

/// The virtual address of an offset in the file.
fn virtual_address(file: &object::File<'_>, offset: u64) -> Option<u64> {
    file.segments().find_map(|segment| {
        let (start, size) = segment.file_range();
        let inside = offset.checked_sub(start).filter(|inside| *inside < size)?;
        segment.address().checked_add(inside)
    })
}

/// The sections of a file that are read, unpacked within one budget.
struct ElfSections<'f, 'd> {
    file: &'f object::File<'d>,
    budget: &'f UnpackBudget,
    /// The first fault of a section that can't be unpacked.
    fault: Option<io::Error>,
}

impl<'d> ElfSections<'_, 'd> {
    /// A section; `None` where it is missing, broken, or unpacks to more than is left.
    fn unpacked(&mut self, name: &str) -> Option<FilePart<'d>> {
        let section = self.file.section_by_name(name)?.compressed_data().ok()?;
        let packing = match section.format {
            CompressionFormat::None => return Some(FilePart::Borrowed(section.data)),
            CompressionFormat::Zlib => Packing::Zlib,
            CompressionFormat::Zstandard => Packing::Zstd,
            _ => return None,
        };
        self.unpack(packing, section.data, name)
    }

    /// The packed symbols of the file, an ELF file of their own.
    fn packed_symbols(&mut self) -> Option<FilePart<'d>> {
        let packed = self.unpacked(".gnu_debugdata")?;
        self.unpack(Packing::Xz, &packed, ".gnu_debugdata")
    }

    fn unpack(&mut self, packing: Packing, packed: &[u8], name: &str) -> Option<FilePart<'d>> {
        let mut out = SpillWriter::default();
        match self.budget.unpack(packing, packed, &mut out).and_then(|()| out.finish()) {
            Ok(bytes) => Some(bytes.into()),
            Err(error) => {
                let error = io::Error::new(error.kind(), format!("its section {name} {error}"));
                self.fault.get_or_insert(error);
                None
            }
        }
    }

    /// The functions at these addresses, by the debugging information.
    fn functions(&mut self, addresses: &[u64], work: &mut WorkLimit) -> Vec<Vec<String>> {
        use gimli::SectionId as Id;
        if addresses.is_empty() || self.file.section_by_name(".debug_info").is_none() {
            return Vec::new();
        }
        let needed = |id| {
            matches!(
                id,
                Id::DebugInfo | Id::DebugAbbrev | Id::DebugAddr | Id::DebugRanges | Id::DebugRngLists
            ) || matches!(id, Id::DebugStr | Id::DebugLineStr | Id::DebugStrOffsets)
        };
        let mut section = |id: Id| needed(id).then(|| self.unpacked(id.name())).flatten();
        let sections =
            gimli::DwarfSections::load(|id| Ok::<_, gimli::Error>(section(id).unwrap_or_default()));
        let Ok(sections) = sections else { return Vec::new() };
        let endian = if self.file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let dwarf = sections.borrow(|section| EndianSlice::new(section, endian));
        dwarf::function_names(&dwarf, addresses, work)
    }
}

/// The functions of a file by address.
#[derive(Default)]
struct ElfSymbolTable<'d> {
    /// Start, size, which may be 0, and name.
    functions: Vec<(u64, u64, &'d [u8])>,
}

impl<'d> ElfSymbolTable<'d> {
    /// # Errors
    /// [`OverWorkLimit`], with the symbols before the limit added.
    fn add(&mut self, file: &object::File<'d>, work: &mut WorkLimit) -> Result<(), OverWorkLimit> {
        // The lowest bit of an address of 32-bit ARM says which set of instructions the function uses.
        let mask = if file.architecture() == object::Architecture::Arm { !1 } else { !0 };
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            work.spend(1)?;
            if symbol.kind() != SymbolKind::Text || !symbol.is_definition() {
                continue;
            }
            let name = symbol.name_bytes().unwrap_or_default();
            // Many symbols may share the end of one long name.
            work.spend(name.len() as u64)?;
            // Mapping symbols ($x, $d) name no function.
            if !name.is_empty() && !name.starts_with(b"$") {
                self.functions.push((symbol.address() & mask, symbol.size(), name));
            }
        }
        Ok(())
    }

    fn sort(&mut self) {
        self.functions.sort_by(|a, b| (a.0, b.1, a.2).cmp(&(b.0, a.1, b.2)));
        self.functions.dedup_by_key(|function| function.0);
    }

    /// The function at an address. A function without a size reaches up to the next one.
    fn find(&self, address: u64) -> Option<&'d [u8]> {
        let after = self.functions.partition_point(|(start, ..)| *start <= address);
        let (start, size, name) = self.functions.get(after.checked_sub(1)?)?;
        (*size == 0 || address - start < *size).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::unpack_budget::UnpackLimit;

    #[test]
    fn a_symbol_ends_with_its_size_or_at_the_next_one() {
        let mut table = ElfSymbolTable::default();
        for (start, size, name) in
            [(0x20, 0, &b"b"[..]), (0x10, 4, b"a"), (0x20, 8, b"alias"), (0x40, 0, b"c")]
        {
            table.functions.push((start, size, name));
        }
        table.sort();
        let found = [0x0f, 0x10, 0x13, 0x14, 0x27, 0x28, 0x99].map(|address| table.find(address));
        let name = |name: Option<&'static [u8]>| name;
        let expected = [None, name(Some(b"a")), Some(b"a"), None, Some(b"alias"), None, Some(b"c")];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_functions_of_this_test_program_are_found_in_it() {
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        if !detect(&program) {
            return;
        }
        let file = object::File::parse(&*program).unwrap();
        let wanted = file
            .symbols()
            .find(|symbol| {
                symbol.name().is_ok_and(|name| name.contains("program_are_found_in_it")) && symbol.size() > 1
            })
            .expect("the program has symbols");
        let at = |address| SymbolAddress { address, is_offset: false };
        let budget = UnpackLimit::default().budget(program.len() as u64);
        let found = names(&program, &[at(wanted.address()), at(1)], &budget).names;
        let first = found[0].as_ref().map(|names| names[0].as_str());
        assert!(first.is_some_and(|name| name.contains("program_are_found_in_it")), "{found:?}");
        for cut in (0..program.len()).step_by(program.len() / 50) {
            let _ = names(&program[..cut], &[at(wanted.address())], &budget);
        }
    }

    #[test]
    fn any_bytes_are_no_panic() {
        let mut header = b"\x7fELF\x02\x01\x01".to_vec();
        header.resize(64, 0xff);
        let budget = UnpackLimit::default().budget(0);
        let found = names(&header, &[SymbolAddress { address: 1, is_offset: true }], &budget);
        assert_eq!(found.names, [None]);
        assert_eq!(build_id(b"\x7fELF"), None);
    }
}
