//! The median.

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
