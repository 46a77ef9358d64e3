//! From the ids in records to dense indexes: one load for ART's small ids, a hash for Dalvik's pointers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// No index.
pub const NONE: u32 = u32::MAX;

/// Ids up to this many (after the shift by 2) get a direct table whatever the number of methods: 256 KiB of `u32`.
const DIRECT_AT_LEAST: u64 = 1 << 16;

/// Method ids to dense indexes. Ids are told apart by their bits above the lowest two, which hold the action.
#[derive(Debug, Clone, Default)]
pub struct IdMap {
    direct: Vec<u32>,
    hashed: HashMap<u64, u32, BuildHasherDefault<IdHasher>>,
}

impl IdMap {
    /// An empty map for about `count` ids; ids below a bound that follows from `count` are looked up directly.
    pub fn for_count(count: usize) -> IdMap {
        let size = (count as u64).saturating_mul(4).clamp(DIRECT_AT_LEAST, 1 << 22);
        IdMap { direct: vec![NONE; size as usize], hashed: HashMap::default() }
    }

    /// The index of `id`, or [`NONE`].
    #[inline]
    pub fn get(&self, id: u64) -> u32 {
        match self.direct.get((id >> 2) as usize) {
            Some(index) => *index,
            None => self.hashed.get(&(id >> 2)).copied().unwrap_or(NONE),
        }
    }

    /// Whether it was made by `Default` and has no room yet.
    pub fn is_empty(&self) -> bool {
        self.direct.is_empty()
    }

    /// Gives `id` an index unless it has one; says which it has.
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

/// One multiplication: ids are addresses or counters, not an adversary's strings.
#[derive(Debug, Clone, Copy, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }

    #[inline]
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(29) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    #[inline]
    fn finish(&self) -> u64 {
        // The table takes its bucket from the low bits and its tag from the high ones: both must vary.
        self.0 ^ (self.0 >> 32)
    }
}
