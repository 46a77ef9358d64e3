//! The symbols of Breakpad, a text (github.com/google/breakpad, docs/symbol_files.md). Its addresses count
//! from where the file is loaded, which for ELF files is their virtual address 0.

use std::collections::HashMap;

use super::address::SymbolAddress;
use super::dwarf::MAX_INLINED;
use super::work_limit::{OverWorkLimit, WorkLimit};
use super::{SymbolFault, SymbolNames};

/// The facts in the first lines of a file.
pub(super) struct BreakpadModule {
    /// The build id in hexadecimal digits; of a file without the record CODE_ID the first 16 bytes.
    pub(super) build_id: String,
    pub(super) name: String,
}

/// The length of the part of a debug id that is made of the build id, digits.
const DEBUG_ID_DIGITS: usize = 32;

/// The module of a file that begins with these bytes; `None` for other files.
pub(super) fn module(head: &[u8]) -> Option<BreakpadModule> {
    let text = String::from_utf8_lossy(head.strip_prefix(b"MODULE ")?).into_owned();
    let mut lines = text.lines();
    let mut words = lines.next()?.splitn(4, ' ');
    let _system = words.next()?;
    let _architecture = words.next()?;
    let debug_id = words.next()?;
    let name = words.next().unwrap_or("").trim().to_owned();
    let code_id = lines.next().and_then(|line| line.strip_prefix("INFO CODE_ID "));
    let code_id = code_id.and_then(|line| line.split(' ').next()).map(str::to_ascii_lowercase);
    let build_id = code_id.or_else(|| build_id_of(debug_id)).unwrap_or_default();
    Some(BreakpadModule { build_id, name })
}

/// The first 16 bytes of the build id from which a debug id was made: its first three fields have another
/// order of bytes.
fn build_id_of(debug_id: &str) -> Option<String> {
    let digits = debug_id.get(..DEBUG_ID_DIGITS)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    Some(ORDER.iter().map(|at| digits[2 * at..2 * at + 2].to_ascii_lowercase()).collect())
}

/// A function of the file, or a public symbol, which has no size.
struct BreakpadFunction<'a> {
    start: u64,
    size: u64,
    name: &'a [u8],
    /// The functions that were inlined into it: depth, number of the name, start, size.
    inlined: Vec<(u64, u64, u64, u64)>,
}

fn hexadecimal(word: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()
}

fn decimal(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// A record `FUNC` or `PUBLIC`, without its first word.
fn function(rest: &[u8], has_size: bool) -> Option<BreakpadFunction<'_>> {
    let rest = rest.strip_prefix(b"m ").unwrap_or(rest);
    let mut words = rest.splitn(if has_size { 4 } else { 3 }, |byte| *byte == b' ');
    let start = hexadecimal(words.next()?)?;
    let size = if has_size { hexadecimal(words.next()?)? } else { 0 };
    let _parameters = words.next()?;
    Some(BreakpadFunction { start, size, name: words.next()?, inlined: Vec::new() })
}

/// Adds the places of a record `INLINE`: depth, line, file and number of the name, and pairs of start and
/// size.
fn add_inlined(function: &mut BreakpadFunction<'_>, rest: &[u8]) -> Option<()> {
    let mut words = rest.split(|byte| *byte == b' ');
    let depth = decimal(words.next()?)?;
    let _line = words.next()?;
    let _file = words.next()?;
    let origin = decimal(words.next()?)?;
    while let (Some(start), Some(size)) = (words.next(), words.next()) {
        function.inlined.push((depth, origin, hexadecimal(start)?, hexadecimal(size)?));
    }
    Some(())
}

/// The functions at these addresses.
pub(super) fn names(text: &[u8], addresses: &[SymbolAddress]) -> SymbolNames {
    let mut work = WorkLimit::default();
    let mut functions: Vec<BreakpadFunction<'_>> = Vec::new();
    let mut origins: HashMap<u64, &[u8]> = HashMap::new();
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(rest) = line.strip_prefix(b"FUNC ") {
            functions.extend(function(rest, true));
        } else if let Some(rest) = line.strip_prefix(b"PUBLIC ") {
            functions.extend(function(rest, false));
        } else if let Some(rest) = line.strip_prefix(b"INLINE ") {
            functions.last_mut().and_then(|function| add_inlined(function, rest));
        } else if let Some(rest) = line.strip_prefix(b"INLINE_ORIGIN ") {
            let mut words = rest.splitn(2, |byte| *byte == b' ');
            if let (Some(number), Some(name)) = (words.next().and_then(decimal), words.next()) {
                origins.insert(number, name);
            }
        }
    }
    // A function stands before a public symbol of the same address.
    functions.sort_by_key(|function| (function.start, std::cmp::Reverse(function.size)));
    functions.dedup_by_key(|function| function.start);
    let mut name = |asked: &SymbolAddress| {
        let address = Some(asked.address).filter(|_| !asked.is_offset)?;
        let after = functions.partition_point(|function| function.start <= address);
        let function = functions.get(after.checked_sub(1)?)?;
        if function.size > 0 && address - function.start >= function.size {
            return None;
        }
        let is_in = |(_, _, start, size): &&(u64, u64, u64, u64)| {
            address.checked_sub(*start).is_some_and(|at| at < *size)
        };
        work.spend(function.inlined.len() as u64).ok()?;
        let mut inlined: Vec<_> = function.inlined.iter().filter(is_in).collect();
        inlined.sort();
        work.is_over |= inlined.len() > MAX_INLINED;
        inlined.truncate(MAX_INLINED);
        let inlined = inlined.iter().filter_map(|(_, origin, _, _)| origins.get(origin));
        std::iter::once(function.name).chain(inlined.copied()).map(|name| work.name(name).ok()).collect()
    };
    let names = addresses.iter().map(&mut name).collect();
    SymbolNames { names, fault: work.is_over.then_some(SymbolFault::Work(OverWorkLimit)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debug_id_has_the_first_bytes_of_the_build_id_in_another_order() {
        let head = b"MODULE Linux x86_64 DDCCBBAA22114433556677889900AABB0 a b.so\n";
        let module = module(head).unwrap();
        assert_eq!(
            (module.build_id.as_str(), module.name.as_str()),
            ("aabbccdd11223344556677889900aabb", "a b.so")
        );
        assert!(super::module(b"MODULES\n").is_none());
        assert_eq!(super::module(b"MODULE Linux x86_64 zz x\n").unwrap().build_id, "");
    }

    #[test]
    fn a_broken_line_is_left_out() {
        let text = b"FUNC xyz\nFUNC 10\nINLINE 1 2\nFUNC 10 5 0 good\nPUBLIC\nINLINE 0 1 1\n";
        let names = names(text, &[SymbolAddress { address: 0x12, is_offset: false }]).names;
        assert_eq!(names, [Some(vec!["good".to_owned()])]);
    }
}
