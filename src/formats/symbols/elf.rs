//! The symbols of ELF files: `.symtab`, `.dynsym`, the packed symbols of Android and Fedora
//! (`.gnu_debugdata`), and the functions that were inlined, from the debugging information.

use std::borrow::Cow;
use std::io::{self, Read, Write};

use addr2line::gimli::{self, EndianSlice, RunTimeEndian};
use object::{CompressionFormat, Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};

use super::address::{FunctionNames, SymbolAddress};

/// The most bytes that the packed symbols of a file, or one section, may unpack to.
const MAX_UNPACKED_BYTES: u64 = 512 << 20;

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

/// The functions at these addresses.
pub(super) fn names(data: &[u8], addresses: &[SymbolAddress]) -> Vec<Option<FunctionNames>> {
    let Ok(file) = object::File::parse(data) else { return vec![None; addresses.len()] };
    let mut table = ElfSymbolTable::default();
    table.add(&file);
    let packed = section(&file, ".gnu_debugdata").and_then(|packed| unpacked(&packed));
    if let Some(packed) = &packed
        && let Ok(packed) = object::File::parse(packed.as_slice())
    {
        table.add(&packed);
    }
    table.sort();
    let sections = gimli::DwarfSections::load(|id| {
        Ok::<_, gimli::Error>(section(&file, id.name()).unwrap_or(Cow::Borrowed(&[])))
    });
    let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let context = sections.as_ref().ok().filter(|_| file.section_by_name(".debug_info").is_some());
    let context = context.and_then(|sections| {
        let dwarf = sections.borrow(|section| EndianSlice::new(section, endian));
        addr2line::Context::from_dwarf(dwarf).ok()
    });
    let name = |asked: &SymbolAddress| {
        let address = if asked.is_offset { virtual_address(&file, asked.address)? } else { asked.address };
        let symbol = table.find(address);
        let mut names: FunctionNames = Vec::new();
        if let Some(Ok(mut frames)) = context.as_ref().map(|c| c.find_frames(address).skip_all_loads()) {
            while let Ok(Some(frame)) = frames.next() {
                let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
                names.extend(name.map(Cow::into_owned));
            }
        }
        // The debugging information has the innermost function first. The symbol has the mangled name of the
        // outermost one, which the debugging information of C lacks.
        names.reverse();
        if let (Some(symbol), Some(first)) = (symbol, names.first_mut()) {
            symbol.clone_into(first);
        }
        if names.is_empty() {
            names.extend(symbol.map(str::to_owned));
        }
        (!names.is_empty()).then_some(names)
    };
    addresses.iter().map(name).collect()
}

/// The virtual address of an offset in the file.
fn virtual_address(file: &object::File<'_>, offset: u64) -> Option<u64> {
    file.segments().find_map(|segment| {
        let (start, size) = segment.file_range();
        let inside = offset.checked_sub(start).filter(|inside| *inside < size)?;
        segment.address().checked_add(inside)
    })
}

/// A section, unpacked; `None` where it is missing or broken.
fn section<'d>(file: &object::File<'d>, name: &str) -> Option<Cow<'d, [u8]>> {
    let compressed = file.section_by_name(name)?.compressed_data().ok()?;
    let limit = compressed.uncompressed_size.min(MAX_UNPACKED_BYTES);
    let mut out = Vec::new();
    let read = match compressed.format {
        CompressionFormat::None => return Some(Cow::Borrowed(compressed.data)),
        CompressionFormat::Zlib => {
            flate2::read::ZlibDecoder::new(compressed.data).take(limit).read_to_end(&mut out)
        }
        CompressionFormat::Zstandard => {
            let decoder = zstd::stream::read::Decoder::new(compressed.data).ok()?;
            decoder.take(limit).read_to_end(&mut out)
        }
        _ => return None,
    };
    read.ok().map(|_| Cow::Owned(out))
}

/// Takes up to [`MAX_UNPACKED_BYTES`].
struct LimitedBytes(Vec<u8>);

impl Write for LimitedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() as u64 + bytes.len() as u64 > MAX_UNPACKED_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The bytes of a file that is packed with xz.
fn unpacked(packed: &[u8]) -> Option<Vec<u8>> {
    let mut out = LimitedBytes(Vec::new());
    lzma_rs::xz_decompress(&mut io::BufReader::new(packed), &mut out).ok()?;
    Some(out.0)
}

/// The functions of a file by address.
#[derive(Default)]
struct ElfSymbolTable {
    /// Start, size, which may be 0, and name.
    functions: Vec<(u64, u64, Box<str>)>,
}

impl ElfSymbolTable {
    fn add(&mut self, file: &object::File<'_>) {
        // The lowest bit of an address of 32-bit ARM says which set of instructions the function uses.
        let mask = if file.architecture() == object::Architecture::Arm { !1 } else { !0 };
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let is_function = symbol.kind() == SymbolKind::Text && symbol.is_definition();
            let name = symbol.name().ok().filter(|name| is_function && !name.is_empty());
            // Mapping symbols ($x, $d) name no function.
            let name = name.filter(|name| !name.starts_with('$'));
            self.functions.extend(name.map(|name| (symbol.address() & mask, symbol.size(), name.into())));
        }
    }

    fn sort(&mut self) {
        self.functions.sort_by(|a, b| (a.0, b.1, &a.2).cmp(&(b.0, a.1, &b.2)));
        self.functions.dedup_by_key(|function| function.0);
    }

    /// The function at an address. A function without a size reaches up to the next one.
    fn find(&self, address: u64) -> Option<&str> {
        let after = self.functions.partition_point(|(start, ..)| *start <= address);
        let (start, size, name) = self.functions.get(after.checked_sub(1)?)?;
        (*size == 0 || address - start < *size).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_ends_with_its_size_or_at_the_next_one() {
        let mut table = ElfSymbolTable::default();
        for (start, size, name) in [(0x20, 0, "b"), (0x10, 4, "a"), (0x20, 8, "alias"), (0x40, 0, "c")] {
            table.functions.push((start, size, name.into()));
        }
        table.sort();
        let found = [0x0f, 0x10, 0x13, 0x14, 0x27, 0x28, 0x99].map(|address| table.find(address));
        assert_eq!(found, [None, Some("a"), Some("a"), None, Some("alias"), None, Some("c")]);
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
        let found = names(&program, &[at(wanted.address()), at(1)]);
        let first = found[0].as_ref().map(|names| names[0].as_str());
        assert!(first.is_some_and(|name| name.contains("program_are_found_in_it")), "{found:?}");
        for cut in (0..program.len()).step_by(program.len() / 50) {
            let _ = names(&program[..cut], &[at(wanted.address())]);
        }
    }

    #[test]
    fn any_bytes_are_no_panic() {
        let mut header = b"\x7fELF\x02\x01\x01".to_vec();
        header.resize(64, 0xff);
        assert_eq!(names(&header, &[SymbolAddress { address: 1, is_offset: true }]), [None]);
        assert_eq!(build_id(b"\x7fELF"), None);
    }
}
