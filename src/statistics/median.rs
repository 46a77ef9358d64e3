//! The median.

/// The median; of an even number the mean of the two in the middle, rounded down.
pub(crate) fn median(values: &[u64]) -> u64 {
    let mut values = values.to_vec();
    values.sort_unstable();
    match (values.len() / 2, values.len() % 2) {
        (0, 0) => 0,
        (middle, 0) => values[middle - 1].midpoint(values[middle]),
        (middle, _) => values[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        assert_eq!(median(&[4, 1, 3, 2]), 2);
        assert_eq!(median(&[7, 1, 3]), 3);
        assert_eq!(median(&[]), 0);
    }
}
