//! Statistics of repeated measurements: medians, spreads, the Mann-Whitney test, the shift between two sets
//! by the Hodges-Lehmann estimate, and the correction for many tests at once. All compare ranks, so that a
//! single slow run counts no more than any other, and assume nothing about how measurements spread.

mod rank_test;
mod verdict;

pub(crate) use rank_test::{MIN_RUNS, RankTest, correct};
pub(crate) use verdict::{ChangeVerdict, LargestChange, runs_needed};

/// Numbers that have a median.
pub(crate) trait Number: Ord + Copy {
    /// The mean of two numbers, rounded towards zero.
    fn mean(self, other: Self) -> Self;
}

impl Number for u64 {
    fn mean(self, other: u64) -> u64 {
        self.midpoint(other)
    }
}

impl Number for i64 {
    fn mean(self, other: i64) -> i64 {
        self.midpoint(other)
    }
}

/// The median: of an even number of values the mean of the two in the middle. `None` for no values.
pub(crate) fn median<T: Number>(values: impl IntoIterator<Item = T>) -> Option<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    let [lower, upper] = middle_ranks(values.len())?;
    let (below, upper_value, _) = values.select_nth_unstable(upper);
    let upper_value = *upper_value;
    // The greatest of the smaller values stands directly below.
    let lower_value = if lower == upper { None } else { below.iter().max().copied() };
    Some(lower_value.map_or(upper_value, |lower_value| lower_value.mean(upper_value)))
}

/// The ranks, from 0, of the two values in the middle of `count` values in order: of an odd number they are
/// the same. `None` for no values.
pub(crate) fn middle_ranks(count: usize) -> Option<[usize; 2]> {
    Some([count.checked_sub(1)? / 2, count / 2])
}

/// Fewer times than this have no outliers: too little is known of the others.
const MIN_FOR_OUTLIERS: usize = 4;

/// The spread of several times.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Spread {
    pub least: u64,
    pub quarter: u64,
    pub median: u64,
    pub three_quarters: u64,
    pub most: u64,
    /// The numbers of the times that lie further from the middle half than one and a half times its width, as
    /// in a box plot.
    pub outliers: Vec<usize>,
}

impl Spread {
    /// The spread of these times; `None` for no times.
    pub fn new(times: &[u64]) -> Option<Spread> {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        let (least, most) = sorted.first().copied().zip(sorted.last().copied())?;
        let half = sorted.len().div_ceil(2);
        let quarter = median(sorted[..half].iter().copied())?;
        let three_quarters = median(sorted[sorted.len() - half..].iter().copied())?;
        let far = (three_quarters - quarter).saturating_mul(3) / 2;
        let is_far =
            |time: &u64| *time < quarter.saturating_sub(far) || *time > three_quarters.saturating_add(far);
        let numbers = times.iter().enumerate().filter(|(_, time)| is_far(time)).map(|(number, _)| number);
        let outliers = if times.len() < MIN_FOR_OUTLIERS { Vec::new() } else { numbers.collect() };
        Some(Spread { least, quarter, median: median(sorted)?, three_quarters, most, outliers })
    }
}

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
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        assert_eq!(median([4u64, 1, 3, 2]), Some(2));
        assert_eq!(median([7u64, 1, 3]), Some(3));
        assert_eq!(median([u64::MAX, u64::MAX]), Some(u64::MAX));
        assert_eq!(median([-9i64, -4]), Some(-6));
        assert_eq!(median([5i64]), Some(5));
        assert_eq!(median::<u64>([]), None);
    }

    #[test]
    fn the_ranks_in_the_middle_are_one_of_an_odd_number() {
        assert_eq!(middle_ranks(5), Some([2, 2]));
        assert_eq!(middle_ranks(4), Some([1, 2]));
        assert_eq!(middle_ranks(0), None);
    }

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
