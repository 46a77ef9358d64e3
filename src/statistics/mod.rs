//! Statistics of repeated measurements: medians, spreads, the Mann-Whitney test, the shift between two
//! sets, and the correction for many tests at once. All compare ranks, so that a single slow run counts no
//! more than any other, and assume nothing about how measurements spread.

mod rank_test;
mod shift;

pub(crate) use rank_test::{RankTest, holm, tested_together};
pub use shift::Shift;

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
}
