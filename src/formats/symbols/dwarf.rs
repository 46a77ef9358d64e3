//! The functions at addresses, with those that were inlined into them, from the debugging information of an
//! ELF file (dwarfstd.org, DWARF 5).
//!
//! The entries of one unit at a time are walked with a stack of this module's own: entries may lie inside
//! each other as deep as the section has bytes.

use std::collections::HashMap;
use std::rc::Rc;

use gimli::{
    Abbreviation, AttributeValue, DebugInfoOffset, DebugStrOffsetsBase, Dwarf, EndianSlice, EntriesRaw,
    Range, RunTimeEndian, Section, UnitHeader, UnitOffset, constants as dw,
};

use super::work_limit::WorkLimit;
use crate::varint;

type DwarfBytes<'d> = EndianSlice<'d, RunTimeEndian>;
type DwarfUnit<'d> = gimli::Unit<DwarfBytes<'d>>;

/// Most functions that are inlined into each other. Compilers stop far earlier.
pub(super) const MAX_INLINED: usize = 512;
/// Most attributes of an entry. Compilers write fewer than 30.
const MAX_ATTRIBUTES: usize = 256;
/// Most bytes of the table of abbreviations of a unit.
const MAX_ABBREVIATIONS_BYTES: usize = 2 << 20;
/// Most entries that are followed from an inlined function to its name.
const MAX_REFERENCES: usize = 16;
/// Most units that are kept for names that other units refer to.
const MAX_KEPT_UNITS: usize = 64;

/// The steps of work for a unit, and for an entry.
const STEPS_OF_UNIT: u64 = 1 << 10;
const STEPS_OF_ENTRY: u64 = 1 << 4;

/// The functions at an address: the one of the code, and behind it those inlined into it, the outermost
/// first.
#[derive(Debug, Clone, Default)]
struct Chain {
    entries: Vec<UnitOffset>,
    names: Vec<String>,
    is_named: bool,
}

/// A function that surrounds an entry, or one that was inlined.
struct OpenFunction {
    /// The depth of its entry in the tree.
    depth: isize,
    /// The number of functions around it that it was inlined into.
    level: usize,
    /// The entry of the function that is not inlined.
    function: UnitOffset,
}

struct InlinedFinder<'d, 'w> {
    dwarf: &'w Dwarf<DwarfBytes<'d>>,
    work: &'w mut WorkLimit,
    /// The addresses, sorted, and what is there.
    addresses: &'w [u64],
    chains: Vec<Chain>,
    /// The indexes of the chains that have entries of the current unit.
    touched: Vec<usize>,
    headers: Vec<(DebugInfoOffset, UnitHeader<DwarfBytes<'d>>)>,
    kept: HashMap<usize, Rc<DwarfUnit<'d>>>,
}

/// The names of the functions at `addresses`, which are sorted: for each address the outermost function
/// first, or none.
pub(super) fn function_names(
    dwarf: &Dwarf<DwarfBytes<'_>>,
    addresses: &[u64],
    work: &mut WorkLimit,
) -> Vec<Vec<String>> {
    let chains = vec![Chain::default(); addresses.len()];
    let mut finder = InlinedFinder {
        dwarf,
        work,
        addresses,
        chains,
        touched: Vec::new(),
        headers: Vec::new(),
        kept: HashMap::new(),
    };
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        let Some(offset) = header.debug_info_offset() else { continue };
        if finder.work.spend(STEPS_OF_UNIT).is_err() {
            break;
        }
        finder.headers.push((offset, header));
    }
    for number in 0..finder.headers.len() {
        if let Some(unit) = finder.unit(number)
            && finder.may_hold(&unit)
        {
            // What was found before a fault of the unit is used.
            let _ = finder.walk(&unit);
            finder.name_chains(&unit);
        }
    }
    finder.chains.into_iter().map(|chain| chain.names).collect()
}

/// The length of a table of abbreviations, at most [`MAX_ABBREVIATIONS_BYTES`] and a little; `None` where it
/// is cut or longer.
fn abbreviations_len(table: &[u8]) -> Option<usize> {
    let mut rest = table;
    let mut number = || {
        let value = varint::take(&mut rest)?;
        Some((value, table.len() - rest.len()))
    };
    loop {
        let (code, len) = number()?;
        if code == 0 {
            return Some(len);
        }
        if len > MAX_ABBREVIATIONS_BYTES {
            return None;
        }
        let _tag = number()?;
        let _has_children = number()?;
        loop {
            let (name, _) = number()?;
            let (form, len) = number()?;
            if len > MAX_ABBREVIATIONS_BYTES {
                return None;
            }
            if form == u64::from(dw::DW_FORM_implicit_const.0) {
                number()?;
            }
            if name == 0 && form == 0 {
                break;
            }
        }
    }
}

impl<'d> InlinedFinder<'d, '_> {
    /// The unit with this number among the headers.
    fn unit(&mut self, number: usize) -> Option<Rc<DwarfUnit<'d>>> {
        if let Some(unit) = self.kept.get(&number) {
            return Some(unit.clone());
        }
        let (_, header) = self.headers.get(number)?;
        let header = *header;
        let table = self.dwarf.debug_abbrev.reader().slice();
        let len = abbreviations_len(table.get(header.debug_abbrev_offset().0..)?);
        let Some(len) = len else {
            self.work.is_over |= table.len() > MAX_ABBREVIATIONS_BYTES;
            return None;
        };
        self.work.spend(STEPS_OF_UNIT + len as u64).ok()?;
        let unit = Rc::new(self.opened(header)?);
        if self.kept.len() >= MAX_KEPT_UNITS {
            self.kept.clear();
        }
        self.kept.insert(number, unit.clone());
        Some(unit)
    }

    /// The unit without its table of lines, which the crate would read for each unit.
    fn opened(&mut self, header: UnitHeader<DwarfBytes<'d>>) -> Option<DwarfUnit<'d>> {
        let encoding = header.encoding();
        let file_type = self.dwarf.file_type;
        let mut unit = gimli::Unit {
            abbreviations: self.dwarf.abbreviations(&header).ok()?,
            name: None,
            comp_dir: None,
            low_pc: 0,
            str_offsets_base: DebugStrOffsetsBase::default_for_encoding_and_file(encoding, file_type),
            addr_base: gimli::DebugAddrBase(0),
            loclists_base: gimli::DebugLocListsBase::default_for_encoding_and_file(encoding, file_type),
            rnglists_base: gimli::DebugRngListsBase::default_for_encoding_and_file(encoding, file_type),
            line_program: None,
            dwo_id: None,
            header,
        };
        let mut low_pc = None;
        {
            let mut entries = unit.header.entries_raw(&unit.abbreviations, None).ok()?;
            let abbreviation = entries.read_abbreviation().ok()??;
            self.spend_entry(abbreviation)?;
            for spec in abbreviation.attributes() {
                let attribute = entries.read_attribute(*spec).ok()?;
                match (attribute.name(), attribute.value()) {
                    (dw::DW_AT_low_pc, value) => low_pc = Some(value),
                    (_, AttributeValue::DebugStrOffsetsBase(base)) => unit.str_offsets_base = base,
                    (_, AttributeValue::DebugAddrBase(base)) => unit.addr_base = base,
                    (_, AttributeValue::DebugRngListsBase(base)) => unit.rnglists_base = base,
                    _ => {}
                }
            }
        }
        if let Some(value) = low_pc {
            unit.low_pc = self.dwarf.attr_address(&unit, value).ok()?.unwrap_or(0);
        }
        Some(unit)
    }

    /// Counts the work of an entry; `None` where there is too much, or the entry has too many attributes.
    fn spend_entry(&mut self, abbreviation: &Abbreviation) -> Option<()> {
        let attributes = abbreviation.attributes().len();
        if attributes > MAX_ATTRIBUTES {
            self.work.is_over = true;
            return None;
        }
        self.work.spend(STEPS_OF_ENTRY + attributes as u64).ok()
    }

    /// Whether the unit may have a function at one of the addresses.
    fn may_hold(&mut self, unit: &DwarfUnit<'d>) -> bool {
        let mut has_range = false;
        let mut holds = false;
        let entries = unit.entries_raw(None).ok();
        let root = entries.and_then(|mut entries| {
            let abbreviation = entries.read_abbreviation().ok()??;
            self.each_range(unit, &mut entries, abbreviation, |finder, range| {
                has_range = true;
                holds |= !finder.indexes_in(range).is_empty();
                Some(())
            })
        });
        root.is_none() || holds || !has_range
    }

    /// The indexes of the addresses in a range.
    fn indexes_in(&self, range: Range) -> std::ops::Range<usize> {
        let start = self.addresses.partition_point(|address| *address < range.begin);
        let end = self.addresses.partition_point(|address| *address < range.end);
        start..end.max(start)
    }

    /// Reads the attributes of an entry, and calls `each` with its ranges of addresses.
    fn each_range(
        &mut self,
        unit: &DwarfUnit<'d>,
        entries: &mut EntriesRaw<'_, DwarfBytes<'d>>,
        abbreviation: &Abbreviation,
        mut each: impl FnMut(&mut Self, Range) -> Option<()>,
    ) -> Option<()> {
        self.spend_entry(abbreviation)?;
        let mut low = None;
        let mut high = None;
        let mut list = None;
        for spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(*spec).ok()?;
            match (attribute.name(), attribute.value()) {
                (dw::DW_AT_low_pc, value) => low = self.dwarf.attr_address(unit, value).ok()?,
                (dw::DW_AT_high_pc, value) => high = Some(value),
                (dw::DW_AT_ranges, value) => list = self.dwarf.attr_ranges(unit, value).ok()?,
                _ => {}
            }
        }
        if let Some(mut list) = list {
            while let Some(range) = list.next().ok()? {
                self.work.spend(1).ok()?;
                if range.begin < range.end {
                    each(self, range)?;
                }
            }
            return Some(());
        }
        let (Some(begin), Some(high)) = (low, high) else { return Some(()) };
        let end = match high {
            AttributeValue::Udata(size) => begin.wrapping_add(size),
            value => self.dwarf.attr_address(unit, value).ok()?.unwrap_or(begin),
        };
        if begin < end { each(self, Range { begin, end }) } else { Some(()) }
    }

    /// Finds the functions of a unit that have the addresses. `None` where a fault or the limit ended that.
    fn walk(&mut self, unit: &DwarfUnit<'d>) -> Option<()> {
        let mut entries = unit.entries_raw(None).ok()?;
        let mut open: Vec<OpenFunction> = Vec::new();
        while !entries.is_empty() {
            let offset = entries.next_offset();
            let depth = entries.next_depth();
            while open.last().is_some_and(|function| function.depth >= depth) {
                open.pop();
            }
            let Some(abbreviation) = entries.read_abbreviation().ok()? else { continue };
            let function = match (abbreviation.tag(), open.last()) {
                (dw::DW_TAG_subprogram, _) => Some(OpenFunction { depth, level: 0, function: offset }),
                (dw::DW_TAG_inlined_subroutine, Some(outer)) => {
                    self.work.is_over |= outer.level >= MAX_INLINED;
                    let level = outer.level + 1;
                    (level <= MAX_INLINED).then_some(OpenFunction { depth, level, function: outer.function })
                }
                _ => None,
            };
            let Some(function) = function else {
                self.spend_entry(abbreviation)?;
                entries.skip_attributes(abbreviation.attributes()).ok()?;
                continue;
            };
            self.each_range(unit, &mut entries, abbreviation, |finder, range| {
                finder.enter(range, &function, offset)
            })?;
            if abbreviation.has_children() {
                open.push(function);
            }
        }
        Some(())
    }

    /// Adds the function whose entry is at `offset` to the chains of the addresses in its range.
    fn enter(&mut self, range: Range, function: &OpenFunction, offset: UnitOffset) -> Option<()> {
        let indexes = self.indexes_in(range);
        self.work.spend(1 + indexes.len() as u64).ok()?;
        for index in indexes {
            let chain = &mut self.chains[index];
            let is_next = chain.entries.len() == function.level
                && chain.entries.first().is_none_or(|first| *first == function.function);
            if !chain.is_named && is_next {
                chain.entries.push(offset);
                if function.level == 0 {
                    self.touched.push(index);
                }
            }
        }
        Some(())
    }

    /// Gives the functions names that were found in this unit.
    fn name_chains(&mut self, unit: &Rc<DwarfUnit<'d>>) {
        let mut known: HashMap<UnitOffset, Option<String>> = HashMap::new();
        for index in std::mem::take(&mut self.touched) {
            let entries = std::mem::take(&mut self.chains[index].entries);
            self.chains[index].is_named |= !entries.is_empty();
            for entry in entries {
                let Some(name) = known.entry(entry).or_insert_with(|| self.name(unit, entry)) else {
                    continue;
                };
                let Ok(name) = self.work.name(name.as_bytes()) else { return };
                self.chains[index].names.push(name);
            }
        }
    }

    /// The name of the function with the entry at `offset`: as the linker has it, or else as the source.
    fn name(&mut self, unit: &Rc<DwarfUnit<'d>>, offset: UnitOffset) -> Option<String> {
        let mut unit = unit.clone();
        let mut offset = offset;
        for _ in 0..MAX_REFERENCES {
            let mut name = None;
            let mut origin = None;
            {
                let mut entries = unit.entries_raw(Some(offset)).ok()?;
                let abbreviation = entries.read_abbreviation().ok()??;
                self.spend_entry(abbreviation)?;
                for spec in abbreviation.attributes() {
                    let attribute = entries.read_attribute(*spec).ok()?;
                    match attribute.name() {
                        dw::DW_AT_linkage_name | dw::DW_AT_MIPS_linkage_name => {
                            name = self.dwarf.attr_string(&unit, attribute.value()).ok();
                            break;
                        }
                        dw::DW_AT_name => name = self.dwarf.attr_string(&unit, attribute.value()).ok(),
                        dw::DW_AT_abstract_origin | dw::DW_AT_specification => {
                            origin = Some(attribute.value());
                        }
                        _ => {}
                    }
                }
            }
            if let Some(name) = name {
                self.work.spend(name.slice().len() as u64).ok()?;
                return self.work.name(name.slice()).ok();
            }
            match origin? {
                AttributeValue::UnitRef(at) => offset = at,
                AttributeValue::DebugInfoRef(at) => {
                    let behind = self.headers.partition_point(|(start, _)| start.0 <= at.0);
                    unit = self.unit(behind.checked_sub(1)?)?;
                    offset = at.to_unit_offset(&unit.header)?;
                }
                _ => return None,
            }
        }
        None
    }
}
