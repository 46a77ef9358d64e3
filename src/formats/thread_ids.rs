//! A set of thread ids, to count the threads of a trace.

/// Thread ids are below 2^22 (`PID_MAX_LIMIT`).
const LIMIT: u64 = 1 << 22;

/// A set of thread ids.
#[derive(Debug, Default)]
pub(crate) struct ThreadIds {
    /// A bit for each id, as far as the highest id in the set.
    words: Vec<u64>,
}

impl ThreadIds {
    /// Adds a thread id. What cannot be a thread id is left out.
    #[inline]
    pub(crate) fn add(&mut self, tid: u64) {
        if tid >= LIMIT {
            return;
        }
        let word = (tid / 64) as usize;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (tid % 64);
    }

    /// How many ids are in the set.
    pub(crate) fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_counts_once_and_impossible_ids_do_not_count() {
        let mut ids = ThreadIds::default();
        [7, 0, LIMIT - 1, 7, 64, LIMIT, u64::MAX].into_iter().for_each(|tid| ids.add(tid));
        assert_eq!(ids.count(), 4);
    }
}
