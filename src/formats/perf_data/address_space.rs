//! The files that processes have mapped into their memory, as the records of the kernel tell it.

use std::collections::BTreeMap;
use std::rc::Rc;

use rustc_hash::FxHashMap;

/// A piece of a file in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Map {
    pub start: u64,
    /// The address behind the last byte.
    pub end: u64,
    /// Where the piece begins in the file, bytes.
    pub offset: u64,
    /// Index of the file.
    pub module: u32,
    /// Whether the file has symbols of methods that were compiled while they ran, by addresses in memory.
    pub is_jit_symbols: bool,
}

/// The pieces of one address space by the addresses where they begin. No two overlap.
#[derive(Debug, Clone, Default)]
struct Maps {
    pieces: Rc<BTreeMap<u64, Map>>,
    /// A number that no address space with other pieces has; 0 until somebody asks for it.
    version: u32,
}

impl Maps {
    /// Adds a piece, and returns how many pieces more are in memory.
    fn add(&mut self, map: Map) -> usize {
        let copied = if Rc::strong_count(&self.pieces) > 1 { self.pieces.len() } else { 0 };
        let pieces = Rc::make_mut(&mut self.pieces);
        let before = pieces.len();
        // What the new piece covers is gone; the rest of a piece stays.
        if let Some((_, piece)) = pieces.range(..map.start).next_back()
            && piece.end > map.start
        {
            let piece = *piece;
            pieces.insert(piece.start, Map { end: map.start, ..piece });
            if piece.end > map.end {
                insert_rest(pieces, piece, map.end);
            }
        }
        while let Some((start, piece)) = pieces.range(map.start..map.end).next() {
            let (start, piece) = (*start, *piece);
            pieces.remove(&start);
            if piece.end > map.end {
                insert_rest(pieces, piece, map.end);
            }
        }
        pieces.insert(map.start, map);
        self.version = 0;
        (copied + pieces.len()).saturating_sub(if copied > 0 { 0 } else { before })
    }

    fn find(&self, address: u64) -> Option<Map> {
        let (_, piece) = self.pieces.range(..=address).next_back()?;
        (address < piece.end).then_some(*piece)
    }
}

/// Keeps the end of a piece whose beginning is hidden.
fn insert_rest(pieces: &mut BTreeMap<u64, Map>, piece: Map, start: u64) {
    let offset = piece.offset.wrapping_add(start - piece.start);
    pieces.insert(start, Map { start, offset, ..piece });
}

/// The most pieces that are kept in memory, of all processes: some 300 MB. A process has at most 65,530
/// pieces where nobody has changed the kernel's limit.
const MAX_PIECES: usize = 4 << 20;

/// The address spaces of all processes, and that of the kernel.
#[derive(Debug, Default)]
pub(super) struct AddressSpaces {
    processes: FxHashMap<u32, Maps>,
    kernel: Maps,
    versions: u32,
    pieces: usize,
    /// How many pieces were left out because there were too many.
    pub left_out: u64,
}

impl AddressSpaces {
    /// A process maps a piece of a file.
    pub(super) fn add(&mut self, pid: u32, map: Map) {
        if self.pieces < MAX_PIECES {
            self.pieces += self.processes.entry(pid).or_default().add(map);
        } else {
            self.left_out += 1;
        }
    }

    /// A piece of the kernel, or one of its modules.
    pub(super) fn add_kernel(&mut self, map: Map) {
        if self.pieces < MAX_PIECES {
            self.pieces += self.kernel.add(map);
        } else {
            self.left_out += 1;
        }
    }

    /// A new process begins with the pieces of its parent.
    pub(super) fn fork(&mut self, pid: u32, parent: u32) {
        if pid != parent
            && let Some(maps) = self.processes.get(&parent).cloned()
        {
            self.processes.insert(pid, maps);
        }
    }

    /// The piece at an address of a process.
    pub(super) fn find(&self, pid: u32, address: u64) -> Option<Map> {
        self.processes.get(&pid)?.find(address)
    }

    /// The piece of the kernel at an address.
    pub(super) fn find_kernel(&self, address: u64) -> Option<Map> {
        self.kernel.find(address)
    }

    /// A number that changes whenever an address of the process, or of the kernel, may mean something else.
    pub(super) fn version(&mut self, pid: u32) -> u64 {
        let versions = &mut self.versions;
        let mut version_of = |maps: &mut Maps| {
            if maps.version == 0 {
                *versions += 1;
                maps.version = *versions;
            }
            u64::from(maps.version)
        };
        let kernel = version_of(&mut self.kernel);
        let process = self.processes.entry(pid).or_default();
        kernel << 32 | version_of(process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(start: u64, end: u64, module: u32) -> Map {
        Map { start, end, offset: 0, module, is_jit_symbols: false }
    }

    #[test]
    fn a_new_piece_hides_what_it_covers_and_no_more() {
        let mut spaces = AddressSpaces::default();
        spaces.add(1, map(100, 200, 0));
        spaces.add(1, map(300, 400, 1));
        spaces.add(1, map(150, 160, 2));
        spaces.add(1, map(190, 310, 3));
        let found =
            |address| spaces.find(1, address).map(|map| (map.module, address - map.start + map.offset));
        assert_eq!(found(99), None);
        assert_eq!(found(149), Some((0, 49)));
        assert_eq!(found(150), Some((2, 0)));
        assert_eq!(found(160), Some((0, 60)));
        assert_eq!(found(189), Some((0, 89)));
        assert_eq!(found(190), Some((3, 0)));
        assert_eq!(found(309), Some((3, 119)));
        assert_eq!(found(310), Some((1, 10)));
        assert_eq!(found(400), None);
    }

    #[test]
    fn a_process_begins_with_its_parents_pieces_and_goes_its_own_way() {
        let mut spaces = AddressSpaces::default();
        spaces.add(1, map(100, 200, 0));
        spaces.fork(2, 1);
        let same = (spaces.version(1), spaces.version(1));
        assert_eq!(same.0, same.1);
        spaces.add(2, map(100, 200, 1));
        assert_eq!(spaces.find(1, 150).map(|map| map.module), Some(0));
        assert_eq!(spaces.find(2, 150).map(|map| map.module), Some(1));
        assert_ne!(spaces.version(1), spaces.version(2));
        spaces.add_kernel(map(1 << 63, u64::MAX, 2));
        assert_ne!(spaces.version(1), same.0);
    }
}
