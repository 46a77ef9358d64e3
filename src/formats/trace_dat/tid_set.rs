//! A set of thread ids that is asked once or twice for each event.

use std::collections::HashSet;

/// The kernel gives no thread an id from here on (`PID_MAX_LIMIT` of 64-bit kernels).
const PID_MAX_LIMIT: u32 = 4 << 20;

/// Thread ids: a bit for each that a kernel can give, and a table for those that only a damaged file has.
#[derive(Debug, Default)]
pub(super) struct TidSet {
    bits: Vec<u64>,
    others: HashSet<i32>,
}

impl TidSet {
    /// Adds an id. Returns whether it was missing.
    pub(super) fn insert(&mut self, tid: i32) -> bool {
        let Some(number) = u32::try_from(tid).ok().filter(|tid| *tid < PID_MAX_LIMIT) else {
            return self.others.insert(tid);
        };
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        let was_missing = self.bits[word] & bit == 0;
        self.bits[word] |= bit;
        was_missing
    }
}

impl FromIterator<i32> for TidSet {
    fn from_iter<I: IntoIterator<Item = i32>>(tids: I) -> TidSet {
        let mut set = TidSet::default();
        for tid in tids {
            set.insert(tid);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_missing_once_whatever_its_size() {
        for tid in [0, 1, 63, 64, 32_768, 4_194_303, 4_194_304, i32::MAX, -1, i32::MIN] {
            let mut set: TidSet = [2].into_iter().collect();
            assert!(set.insert(tid), "{tid}");
            assert!(!set.insert(tid), "{tid}");
            assert!(!set.insert(2));
        }
    }
}
