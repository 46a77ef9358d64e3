//! Parses Android's property areas: the files below `/dev/__properties__` that bionic maps into every
//! process.
//!
//! The format is that of bionic `libc/system_properties/` (`prop_area.h`, `prop_info.h`), unchanged since
//! Android 4.4: a header of 128 bytes, then a tree with one level per part of a name. The nodes of a level
//! form a binary tree.

/// `PROP_AREA_MAGIC`.
const MAGIC: u32 = 0x504f_5250;
/// `PROP_AREA_VERSION`.
const VERSION: u32 = 0xfc6e_d0ab;
/// Bytes before the tree. All offsets count from there.
const HEADER_BYTES: usize = 128;
/// `PROP_VALUE_MAX`: the most bytes of a value, its NUL included.
const VALUE_MAX_BYTES: usize = 92;
/// The offset of the serial number that grows with each change of any property of the area.
pub const AREA_SERIAL_OFFSET: usize = 4;

/// The bytes of a node before its name: the length of the name and four offsets.
const NODE_BYTES: usize = 20;

/// One property area.
#[derive(Debug, Clone, Copy)]
pub struct PropertyArea<'a>(&'a [u8]);

/// A property found in an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundProperty<'a> {
    /// The offset of the property's serial number in the area, in bytes. The number changes with every change
    /// of the property.
    pub serial_at: usize,
    /// The value, without its NUL.
    pub value: &'a [u8],
}

impl<'a> PropertyArea<'a> {
    /// Reads the bytes of a file as an area. Returns `None` if the magic or the version differs.
    pub fn parse(bytes: &'a [u8]) -> Option<PropertyArea<'a>> {
        let area = PropertyArea(bytes);
        (area.word(8)? == MAGIC && area.word(12)? == VERSION).then_some(area)
    }

    fn word(&self, at: usize) -> Option<u32> {
        let bytes = self.0.get(at..at.checked_add(4)?)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    }

    /// Returns the position that the offset at `at` points to. The offset 0 points nowhere.
    fn follow(&self, at: usize) -> Option<usize> {
        match self.word(at)? {
            0 => None,
            offset => HEADER_BYTES.checked_add(offset as usize),
        }
    }

    /// Finds the property called `name`.
    pub fn find(&self, name: &str) -> Option<FoundProperty<'a>> {
        let mut node = HEADER_BYTES;
        for part in name.split('.') {
            node = self.sibling(self.follow(node + 16)?, part.as_bytes())?;
        }
        let info = self.follow(node + 4)?;
        let value = self.0.get(info + 4..info.checked_add(4 + VALUE_MAX_BYTES)?)?;
        let end = value.iter().position(|b| *b == 0)?;
        Some(FoundProperty { serial_at: info, value: &value[..end] })
    }

    /// Finds the node for `part` in the binary tree below `node`, which is ordered by length, then by bytes.
    fn sibling(&self, mut node: usize, part: &[u8]) -> Option<usize> {
        // A damaged tree may have cycles. A sound one is not deeper than its number of nodes.
        for _ in 0..self.0.len() / NODE_BYTES {
            let len = self.word(node)? as usize;
            let start = node.checked_add(NODE_BYTES)?;
            let name = self.0.get(start..start.checked_add(len)?)?;
            match part.len().cmp(&len).then_with(|| part.cmp(name)) {
                std::cmp::Ordering::Equal => return Some(node),
                std::cmp::Ordering::Less => node = self.follow(node + 8)?,
                std::cmp::Ordering::Greater => node = self.follow(node + 12)?,
            }
        }
        None
    }
}

/// Builds an area for tests. The trees are not balanced, as in bionic.
#[cfg(test)]
pub(super) fn build(properties: &[(&str, &str)]) -> Vec<u8> {
    fn put(area: &mut [u8], at: usize, value: u32) {
        area[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    fn node(area: &mut Vec<u8>, name: &str) -> usize {
        let at = area.len();
        area.resize(at + (NODE_BYTES + name.len() + 1).next_multiple_of(4), 0);
        put(area, at, name.len() as u32);
        area[at + NODE_BYTES..at + NODE_BYTES + name.len()].copy_from_slice(name.as_bytes());
        at
    }
    let mut area = vec![0; HEADER_BYTES];
    put(&mut area, 8, MAGIC);
    put(&mut area, 12, VERSION);
    node(&mut area, "");
    for (name, value) in properties {
        let mut at = HEADER_BYTES;
        for part in name.split('.') {
            let mut link = at + 16;
            at = loop {
                let Some(next) = PropertyArea(&area).follow(link) else {
                    let new = node(&mut area, part);
                    put(&mut area, link, (new - HEADER_BYTES) as u32);
                    break new;
                };
                let len = PropertyArea(&area).word(next).unwrap() as usize;
                let other = &area[next + NODE_BYTES..next + NODE_BYTES + len];
                match part.len().cmp(&len).then_with(|| part.as_bytes().cmp(other)) {
                    std::cmp::Ordering::Equal => break next,
                    std::cmp::Ordering::Less => link = next + 8,
                    std::cmp::Ordering::Greater => link = next + 12,
                }
            };
        }
        let info = area.len();
        area.resize(info + (4 + VALUE_MAX_BYTES + name.len() + 1).next_multiple_of(4), 0);
        put(&mut area, info, (value.len() as u32) << 24);
        area[info + 4..info + 4 + value.len()].copy_from_slice(value.as_bytes());
        put(&mut area, at + 4, (info - HEADER_BYTES) as u32);
    }
    area
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROPERTIES: [(&str, &str); 4] = [
        ("debug.atrace.tags.enableflags", "0x8"),
        ("debug.atrace.app_number", "1"),
        ("debug.atrace.app_0", "com.example"),
        ("debug.x", ""),
    ];

    #[test]
    fn properties_are_found_by_their_names() {
        let bytes = build(&PROPERTIES);
        let area = PropertyArea::parse(&bytes).unwrap();
        for (name, value) in PROPERTIES {
            assert_eq!(area.find(name).map(|f| f.value), Some(value.as_bytes()), "{name}");
        }
        for absent in ["debug", "debug.atrace", "debug.atrace.app_1", "", "ro.x"] {
            assert_eq!(area.find(absent), None, "{absent}");
        }
    }

    #[test]
    fn a_cut_area_holds_the_property_or_nothing() {
        let bytes = build(&PROPERTIES);
        let whole = PropertyArea::parse(&bytes).unwrap().find("debug.atrace.app_0");
        let found_in = |len: usize| PropertyArea::parse(&bytes[..len])?.find("debug.atrace.app_0");
        for len in 0..bytes.len() {
            let found = found_in(len);
            assert!(found.is_none() || found == whole, "{len} bytes: {found:?}");
        }
        assert_eq!(found_in(HEADER_BYTES), None);
    }

    #[test]
    fn a_damaged_area_never_yields_bytes_from_outside() {
        let bytes = build(&PROPERTIES);
        for at in 16..bytes.len() {
            for value in [0x00, 0x14, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                if let Some(found) = PropertyArea::parse(&bytes).unwrap().find("debug.atrace.app_0") {
                    assert!(found.serial_at + 4 + found.value.len() < bytes.len(), "byte {at}: {found:?}");
                    assert!(found.value.len() < VALUE_MAX_BYTES, "byte {at}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn a_tree_with_a_cycle_ends_in_nothing_found() {
        let mut bytes = build(&[("b", "1")]);
        // The left child of the node `b` becomes the node itself.
        let root_child = PropertyArea(&bytes).follow(HEADER_BYTES + 16).unwrap();
        let offset = ((root_child - HEADER_BYTES) as u32).to_ne_bytes();
        bytes[root_child + 8..root_child + 12].copy_from_slice(&offset);
        assert_eq!(PropertyArea::parse(&bytes).unwrap().find("a"), None);
    }
}
