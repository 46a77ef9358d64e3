//! Many tests at once: of a thousand tests at the level 0.005 five would refuse by chance.

/// The number by which the level of each test is divided: the smallest one for which no more tests than that
/// can reach the level at all (Tarone 1990). `least` has the smallest p-value that each test can give. A test
/// whose numbers are nearly all equal can refuse nothing, and costs the others nothing.
pub(crate) fn tested_together(least: &[f64], level: f64) -> usize {
    let mut sorted = least.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let reached = |divisor: usize| sorted.partition_point(|p| *p <= level / divisor as f64);
    (1..=least.len()).find(|divisor| reached(*divisor) <= *divisor).unwrap_or(1)
}

/// The p-values after the correction of Holm (1979): where one is below a level, the chance that any of all
/// tests refuses wrongly is below it too.
pub(crate) fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (place, test) in order.into_iter().enumerate() {
        largest = largest.max(p_values[test] * (p_values.len() - place) as f64).min(1.0);
        adjusted[test] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_values_grow_with_the_number_of_tests_and_keep_their_order() {
        assert_eq!(holm(&[0.25, 0.125, 0.5]), [0.5, 0.375, 0.5]);
        assert_eq!(holm(&[0.5, 0.75]), [1.0, 1.0]);
        assert_eq!(holm(&[]), [0.0; 0]);
    }

    #[test]
    fn tests_that_can_refuse_nothing_cost_nothing() {
        // At 0.25 three of five tests are left, at 0.125 two, which are no more than two.
        assert_eq!(tested_together(&[0.01, 0.02, 0.2, 0.5, 0.9], 0.25), 2);
        assert_eq!(tested_together(&[0.001; 7], 0.05), 7);
        assert_eq!(tested_together(&[0.9; 7], 0.05), 1);
        assert_eq!(tested_together(&[], 0.05), 1);
    }
}
