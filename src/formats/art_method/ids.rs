//! Dense indexes for method ids: a table for ART's small ids, which costs one load, and a hash map for
//! Dalvik's pointers.

use rustc_hash::FxHashMap;

/// The value that stands for the index of an id without an index.
pub const NONE: u32 = u32::MAX;

/// The smallest size of the table, entries (256 KiB of `u32`); an entry stands for an id without its two
/// action bits.
const MIN_TABLE_ENTRIES: u64 = 1 << 16;

/// A map from method ids to dense indexes. The lowest two bits of an id hold the action and do not count.
#[derive(Debug, Clone, Default)]
pub struct IdMap {
    direct: Vec<u32>,
    hashed: FxHashMap<u64, u32>,
}

impl IdMap {
    /// An empty map for about `count` ids. The table for small ids has four entries for each of them.
    pub fn for_count(count: usize) -> IdMap {
        let size = (count as u64).saturating_mul(4).clamp(MIN_TABLE_ENTRIES, 1 << 22);
        IdMap { direct: vec![NONE; size as usize], hashed: FxHashMap::default() }
    }

    /// The index of `id`, or [`NONE`].
    #[inline]
    pub fn get(&self, id: u64) -> u32 {
        match self.direct.get((id >> 2) as usize) {
            Some(index) => *index,
            None => self.hashed.get(&(id >> 2)).copied().unwrap_or(NONE),
        }
    }

    /// Gives `id` the index unless `id` has one already. Returns the index that `id` has.
    pub fn insert(&mut self, id: u64, index: u32) -> u32 {
        let key = id >> 2;
        let slot = match self.direct.get_mut(key as usize) {
            Some(slot) => slot,
            None => self.hashed.entry(key).or_insert(NONE),
        };
        if *slot == NONE {
            *slot = index;
        }
        *slot
    }
}
