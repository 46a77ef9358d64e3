//! The Hodges-Lehmann estimate: by how much one set of measurements is shifted against another.

use super::middle_ranks;

/// The half width of the interval, in standard deviations of the normal distribution: 95 % lie within.
const DEVIATIONS_95: f64 = 1.959_963_985;

/// By how much the new set is greater than the old one. It is the median of all differences between one
/// measurement of the new set and one of the old set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// The estimate, in the unit of the measurements.
    pub estimate: f64,
    /// The interval of the shift with a confidence of 95 %; `None` with too few measurements for that.
    pub interval: Option<[f64; 2]>,
}

impl Shift {
    /// The shift from `old` to `new`. `None` where one of them is empty.
    pub fn between(old: &[u64], new: &[u64]) -> Option<Shift> {
        let differences = Differences::new(old, new);
        let pairs = differences.len();
        let middle = middle_ranks(pairs)?.map(|rank| differences.at(rank) as f64);
        // The ranks of the differences that the Mann-Whitney test does not refuse, by its normal
        // approximation.
        let old = old.len() as f64;
        let new = new.len() as f64;
        let deviation = (old * new * (old + new + 1.0) / 12.0).sqrt();
        let first = (old * new / 2.0 - DEVIATIONS_95 * deviation).floor();
        let interval = (first >= 1.0).then(|| {
            let first = first as usize - 1;
            [first, pairs - 1 - first].map(|rank| differences.at(rank) as f64)
        });
        Some(Shift { estimate: middle[0].midpoint(middle[1]), interval })
    }
}

/// All differences between two sets, in order, without a list of them.
struct Differences {
    old: Vec<i128>,
    new: Vec<i128>,
}

impl Differences {
    fn new(old: &[u64], new: &[u64]) -> Differences {
        let [old, new] = [old, new].map(|values| {
            let mut values: Vec<i128> = values.iter().map(|value| i128::from(*value)).collect();
            values.sort_unstable();
            values
        });
        Differences { old, new }
    }

    fn len(&self) -> usize {
        self.old.len() * self.new.len()
    }

    /// The number of differences that are at most `limit`.
    fn up_to(&self, limit: i128) -> usize {
        let mut smaller = 0;
        let mut count = 0;
        for new in &self.new {
            // The first of the old ones that is near enough.
            smaller += self.old[smaller..].iter().take_while(|old| new - **old > limit).count();
            count += self.old.len() - smaller;
        }
        count
    }

    /// The difference of this rank, from 0.
    fn at(&self, rank: usize) -> i128 {
        let mut low = self.new[0] - self.old[self.old.len() - 1];
        let mut high = self.new[self.new.len() - 1] - self.old[0];
        while low < high {
            let middle = low + (high - low) / 2;
            if self.up_to(middle) > rank {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shift_is_the_median_of_all_differences() {
        let old = [10, 14, 11, 90, 12, 13];
        let new = [18, 15, 19, 16, 17];
        let differences = Differences::new(&old, &new);
        let mut all: Vec<i128> =
            new.iter().flat_map(|new| old.map(|old| i128::from(*new) - i128::from(old))).collect();
        all.sort_unstable();
        let found: Vec<i128> = (0..differences.len()).map(|rank| differences.at(rank)).collect();
        assert_eq!(found, all);
        let shift = Shift::between(&old, &new).unwrap();
        assert_eq!(shift.estimate, (all[14] + all[15]) as f64 / 2.0);
        // 15 - 1.96 * sqrt(30) = 4.3: the fourth difference from each end.
        assert_eq!(shift.interval, Some([all[3] as f64, all[26] as f64]));
    }

    #[test]
    fn few_measurements_have_a_shift_and_no_interval() {
        let expected = Shift { estimate: 4.0, interval: None };
        assert_eq!(Shift::between(&[1, 2, 3], &[5, 6, 7]), Some(expected));
        assert_eq!(Shift::between(&[], &[1]), None);
        assert_eq!(Shift::between(&[u64::MAX], &[0]).unwrap().estimate, -(u64::MAX as f64));
    }
}
