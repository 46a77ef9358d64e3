//! Android's property areas as bytes: the files below `/dev/__properties__` that bionic maps into every process.
//!
//! The format is that of bionic `libc/system_properties/` (`prop_area.h`, `prop_info.h`), unchanged since Android
//! 4.4: a head of 128 bytes, then a tree of name parts, each with a binary tree of siblings.

/// `PROP_AREA_MAGIC`.
const MAGIC: u32 = 0x504f_5250;
/// `PROP_AREA_VERSION`.
const VERSION: u32 = 0xfc6e_d0ab;
/// Bytes before the tree, from which all offsets count.
const HEAD: usize = 128;
/// Bytes of a value, its NUL included.
const VALUE_MAX: usize = 92;
/// Where an area keeps the number that grows with each change of any of its properties.
pub const AREA_SERIAL: usize = 4;

/// A tree's node: length of the name, then four offsets, then the name.
const NODE: usize = 20;

/// One area.
#[derive(Debug, Clone, Copy)]
pub struct PropertyArea<'a>(&'a [u8]);

/// A property found in an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found<'a> {
    /// Where its serial number is, bytes from the start of the area. Every change changes it.
    pub serial_at: usize,
    /// Its value.
    pub value: &'a [u8],
}

impl<'a> PropertyArea<'a> {
    /// Takes the bytes of a file for an area, if they are one.
    pub fn parse(bytes: &'a [u8]) -> Option<PropertyArea<'a>> {
        let area = PropertyArea(bytes);
        (area.word(8)? == MAGIC && area.word(12)? == VERSION).then_some(area)
    }

    fn word(&self, at: usize) -> Option<u32> {
        let bytes = self.0.get(at..at.checked_add(4)?)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    }

    /// The place an offset stands for; 0 stands for none.
    fn follow(&self, at: usize) -> Option<usize> {
        match self.word(at)? {
            0 => None,
            offset => HEAD.checked_add(offset as usize),
        }
    }

    /// The property called `name`.
    pub fn find(&self, name: &str) -> Option<Found<'a>> {
        let mut node = HEAD;
        for part in name.split('.') {
            node = self.sibling(self.follow(node + 16)?, part.as_bytes())?;
        }
        let info = self.follow(node + 4)?;
        let value = self.0.get(info + 4..info.checked_add(4 + VALUE_MAX)?)?;
        let end = value.iter().position(|b| *b == 0)?;
        Some(Found { serial_at: info, value: &value[..end] })
    }

    /// The node for `part` in the tree of siblings at `node`: shorter names left, then by bytes.
    fn sibling(&self, mut node: usize, part: &[u8]) -> Option<usize> {
        // A damaged tree may have cycles; a sound one is not deeper than it has nodes.
        for _ in 0..self.0.len() / NODE {
            let len = self.word(node)? as usize;
            let start = node.checked_add(NODE)?;
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

/// Builds an area, for tests and the fuzzer's corpus: without balancing, as bionic does.
#[cfg(test)]
pub(super) fn build(properties: &[(&str, &str)]) -> Vec<u8> {
    fn put(area: &mut [u8], at: usize, value: u32) {
        area[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    fn node(area: &mut Vec<u8>, name: &str) -> usize {
        let at = area.len();
        area.resize(at + (NODE + name.len() + 1).next_multiple_of(4), 0);
        put(area, at, name.len() as u32);
        area[at + NODE..at + NODE + name.len()].copy_from_slice(name.as_bytes());
        at
    }
    let mut area = vec![0; HEAD];
    put(&mut area, 8, MAGIC);
    put(&mut area, 12, VERSION);
    node(&mut area, "");
    for (name, value) in properties {
        let mut at = HEAD;
        for part in name.split('.') {
            let mut link = at + 16;
            at = loop {
                let Some(next) = PropertyArea(&area).follow(link) else {
                    let new = node(&mut area, part);
                    put(&mut area, link, (new - HEAD) as u32);
                    break new;
                };
                let len = PropertyArea(&area).word(next).unwrap() as usize;
                let other = &area[next + NODE..next + NODE + len];
                match part.len().cmp(&len).then_with(|| part.as_bytes().cmp(other)) {
                    std::cmp::Ordering::Equal => break next,
                    std::cmp::Ordering::Less => link = next + 8,
                    std::cmp::Ordering::Greater => link = next + 12,
                }
            };
        }
        let info = area.len();
        area.resize(info + (4 + VALUE_MAX + name.len() + 1).next_multiple_of(4), 0);
        put(&mut area, info, (value.len() as u32) << 24);
        area[info + 4..info + 4 + value.len()].copy_from_slice(value.as_bytes());
        put(&mut area, at + 4, (info - HEAD) as u32);
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
    fn a_damaged_area_ends_in_nothing_found() {
        let bytes = build(&PROPERTIES);
        for len in 0..bytes.len() {
            if let Some(area) = PropertyArea::parse(&bytes[..len]) {
                area.find("debug.atrace.app_0");
            }
        }
        for at in 16..bytes.len() {
            for value in [0x00, 0x14, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                PropertyArea::parse(&bytes).unwrap().find("debug.atrace.app_0");
            }
        }
    }
}
