//! The Mann-Whitney test: whether two sets of measurements differ by more than chance explains; and the
//! correction for many tests at once: of a thousand tests at the level 0.005 five would refuse by chance.

use std::f64::consts::{PI, SQRT_2};

/// The least number of measurements on each side: with five the smallest one-sided p-value is 0.004.
pub(crate) const MIN_RUNS: usize = 5;
/// The least number for a p-value alone, which closes no gate.
const MIN_RUNS_OF_QUERY: usize = 3;
/// Up to this number on each side the orders are counted out, ties and all. Beyond it the distribution is
/// close to a normal one.
const MAX_EXACT: usize = 20;

/// The one-sided p-values of two sets of measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RankTest {
    /// The probability that the new set is at least so much greater if both sides measure the same.
    pub greater: f64,
    /// The same for a new set that is at least so much smaller.
    pub less: f64,
    /// The smallest `greater` that these numbers give, whichever side each of them came from. It is large
    /// where most numbers are equal.
    pub least_greater: f64,
    /// The same for `less`.
    pub least_less: f64,
}

impl RankTest {
    /// Tests whether `new` is greater or smaller than `old`. `None` with fewer than [`MIN_RUNS`]
    /// measurements on a side.
    pub fn compare(old: &[u64], new: &[u64]) -> Option<RankTest> {
        (old.len().min(new.len()) >= MIN_RUNS).then(|| RankTest::of(old, new))
    }

    /// The two-sided p-value with three measurements or more on each side, as the queries over a dataset
    /// print it.
    pub fn p_value(old: &[u64], new: &[u64]) -> Option<f64> {
        (old.len().min(new.len()) >= MIN_RUNS_OF_QUERY).then(|| RankTest::of(old, new).two_sided())
    }

    /// The same for any number of measurements.
    fn of(old: &[u64], new: &[u64]) -> RankTest {
        let ties = Ties::new(old, new);
        let (less, greater) =
            if old.len().max(new.len()) <= MAX_EXACT { ties.exact() } else { ties.approximate() };
        let least_greater = ties.least(ties.counts.iter().rev());
        let least_less = ties.least(ties.counts.iter());
        RankTest { greater, less, least_greater, least_less }
    }

    /// The smallest one-sided p-value of sets of these sizes.
    pub fn least_of(old: usize, new: usize) -> f64 {
        (-ln_orders(old + new, new)).exp()
    }

    /// The smallest two-sided p-value that these numbers give.
    pub fn least_two_sided(&self) -> f64 {
        (2.0 * self.least_greater.min(self.least_less)).min(1.0)
    }

    /// The two-sided p-value: how likely a difference at least as large is, in either direction.
    pub fn two_sided(&self) -> f64 {
        (2.0 * self.greater.min(self.less)).min(1.0)
    }
}

/// The number of ways to choose `chosen` of `all`. Exact up to 2^53.
fn orders(all: usize, chosen: usize) -> f64 {
    let chosen = chosen.min(all.saturating_sub(chosen));
    (0..chosen).fold(1.0, |ways, i| (ways * (all - i) as f64 / (i + 1) as f64).round())
}

/// The natural logarithm of the same, for numbers of any size.
fn ln_orders(all: usize, chosen: usize) -> f64 {
    let chosen = chosen.min(all.saturating_sub(chosen));
    (0..chosen).map(|i| ((all - i) as f64 / (i + 1) as f64).ln()).sum()
}

/// Equal measurements of both sides together, the smallest first.
struct Ties {
    /// For each value how many of the old set and how many of the new set have it.
    counts: Vec<[usize; 2]>,
    old: usize,
    new: usize,
}

impl Ties {
    fn new(old: &[u64], new: &[u64]) -> Ties {
        let side = |values: &[u64], side: usize| values.iter().map(|v| (*v, side)).collect::<Vec<_>>();
        let mut all = [side(old, 0), side(new, 1)].concat();
        all.sort_unstable();
        let count = |tied: &[(u64, usize)]| {
            let new = tied.iter().filter(|(_, side)| *side == 1).count();
            [tied.len() - new, new]
        };
        let counts = all.chunk_by(|a, b| a.0 == b.0).map(count).collect();
        Ties { counts, old: old.len(), new: new.len() }
    }

    /// Twice the number of pairs in which the new one is greater; pairs of equals count once.
    fn doubled_wins(&self) -> usize {
        let mut smaller = 0;
        let mut wins = 0;
        for [old, new] in &self.counts {
            wins += new * (2 * smaller + old);
            smaller += old;
        }
        wins
    }

    /// The p-values for less and for greater.
    fn exact(&self) -> (f64, f64) {
        let sizes: Vec<usize> = self.counts.iter().map(|[old, new]| old + new).collect();
        let wins = self.doubled_wins();
        let most = 2 * self.old * self.new;
        // Only the smaller tail is counted out; the other one is the rest and the point between them.
        let (tail, point) = if wins <= most / 2 {
            smaller_tail(&sizes, self.new, wins)
        } else {
            let turned: Vec<usize> = sizes.into_iter().rev().collect();
            smaller_tail(&turned, self.new, most - wins)
        };
        let rest = (1.0 - tail + point).min(1.0);
        if wins <= most / 2 { (tail, rest) } else { (rest, tail) }
    }

    /// The p-values for less and for greater by the normal approximation, corrected for ties and for whole
    /// numbers.
    fn approximate(&self) -> (f64, f64) {
        let old = self.old as f64;
        let new = self.new as f64;
        let cubes = |[old, new]: &[usize; 2]| ((old + new) as f64).powi(3) - (old + new) as f64;
        let ties: f64 = self.counts.iter().map(cubes).sum();
        let all = old + new;
        let variance = old * new / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
        if variance <= 0.0 {
            return (1.0, 1.0);
        }
        let above = self.doubled_wins() as f64 / 2.0 - old * new / 2.0;
        let tail = |distance: f64| erfc((distance - 0.5) / variance.sqrt() / SQRT_2) / 2.0;
        (tail(-above), tail(above))
    }

    /// The share of the orders in which the new set has the first of `counts`.
    fn least<'a>(&self, counts: impl Iterator<Item = &'a [usize; 2]>) -> f64 {
        let mut missing = self.new;
        for [old, new] in counts {
            if old + new >= missing {
                let share = ln_orders(old + new, missing) - ln_orders(self.old + self.new, self.new);
                return share.exp().min(1.0);
            }
            missing -= old + new;
        }
        1.0
    }
}

/// Of all ways to choose `new` of the values, which come in groups of equal ones of these sizes, the smallest
/// value first: the share with at most so many doubled wins, and the share with exactly so many.
fn smaller_tail(sizes: &[usize], new: usize, doubled_wins: usize) -> (f64, f64) {
    // Without ties all numbers of wins are whole, and twice as many are even.
    let unit = if sizes.iter().all(|size| *size == 1) { 2 } else { 1 };
    let limit = doubled_wins / unit;
    // ways[n][w]: ways to choose n values of the groups so far with w wins.
    let mut ways = vec![vec![0.0; limit + 1]; new + 1];
    ways[0][0] = 1.0;
    let mut before = 0;
    for size in sizes {
        // From the back, so that a group is chosen from once.
        for n in (1..=new).rev() {
            let (fewer, rest) = ways.split_at_mut(n);
            for chosen in 1..=n.min(*size) {
                let from = n - chosen;
                let Some(smaller) = usize::checked_sub(before, from) else { continue };
                let wins = chosen * (2 * smaller + size - chosen) / unit;
                let ways_in_group = orders(*size, chosen);
                if let Some(room) = (limit + 1).checked_sub(wins) {
                    let targets = rest[0][wins..].iter_mut();
                    targets.zip(&fewer[from][..room]).for_each(|(to, ways)| *to += ways * ways_in_group);
                }
            }
        }
        before += size;
    }
    let all = orders(before, new);
    (ways[new].iter().sum::<f64>() / all, ways[new][limit] / all)
}

/// The complementary error function, to twelve digits: by its power series near zero, by its continued
/// fraction far from it (Abramowitz and Stegun, 7.1.6 and 7.1.14).
fn erfc(x: f64) -> f64 {
    /// At this value both converge within the number of terms below.
    const SERIES_UP_TO: f64 = 2.0;
    const TERMS: u32 = 80;
    if x < 0.0 {
        return 2.0 - erfc(-x);
    }
    let bell = (-x * x).exp() / PI.sqrt();
    if x < SERIES_UP_TO {
        let mut term = x;
        let mut sum = x;
        for n in 1..TERMS {
            term *= 2.0 * x * x / f64::from(2 * n + 1);
            sum += term;
        }
        return 1.0 - 2.0 * bell * sum;
    }
    bell / (1..TERMS).rev().fold(x, |below, n| x + f64::from(n) / 2.0 / below)
}

/// The p-values of tests that are made at the same time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CorrectedTests {
    /// The p-value of each test after the correction for the others: where it is below the level, the chance
    /// that any of all tests refuses wrongly is below the level too.
    pub p_values: Vec<f64>,
    /// Which tests can reach the level. The others cost them nothing, and have a p-value above it.
    pub are_tested: Vec<bool>,
    /// The level of a single test.
    pub single_level: f64,
}

/// Corrects the p-values of tests, each given with the smallest p-value that its numbers can give (above 1
/// where there are too few of them): by Holm's rule among the tests that can reach the level at all, which
/// Tarone's rule chooses.
pub(crate) fn correct(tests: &[(f64, f64)], level: f64) -> CorrectedTests {
    let least: Vec<f64> = tests.iter().map(|(_, least)| *least).collect();
    let divisor = tested_together(&least, level) as f64;
    let single_level = level / divisor;
    let are_tested: Vec<bool> = least.iter().map(|least| *least <= single_level).collect();
    let of_tested = tests.iter().zip(&are_tested).filter(|(_, is_tested)| **is_tested);
    let mut adjusted = holm(&of_tested.map(|((p, _), _)| *p).collect::<Vec<_>>()).into_iter();
    let p_value = |((p, _), is_tested): (&(f64, f64), &bool)| {
        let alone = (p * divisor).min(1.0);
        if *is_tested { adjusted.next().unwrap_or(alone) } else { alone }
    };
    let p_values = tests.iter().zip(&are_tested).map(p_value).collect();
    CorrectedTests { p_values, are_tested, single_level }
}

/// The number by which the level of each test is divided: the smallest one for which no more tests than that
/// can reach the level at all (Tarone 1990). `least` has the smallest p-value that each test can give. A test
/// whose numbers are nearly all equal can refuse nothing, and costs the others nothing.
fn tested_together(least: &[f64], level: f64) -> usize {
    let mut sorted = least.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let reached = |divisor: usize| sorted.partition_point(|p| *p <= level / divisor as f64);
    (1..=least.len()).find(|divisor| reached(*divisor) <= *divisor).unwrap_or(1)
}

/// The p-values after the correction of Holm (1979): where one is below a level, the chance that any of all
/// tests refuses wrongly is below it too.
fn holm(p_values: &[f64]) -> Vec<f64> {
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

    fn near(value: f64, expected: f64, within: f64) {
        assert!((value - expected).abs() <= within * expected, "{value} is not {expected}");
    }

    fn two_sided(old: &[u64], new: &[u64]) -> f64 {
        RankTest::of(old, new).two_sided()
    }

    /// The expected values are shares of orders: 2 of 20, 2 of 252, 48 of 70.
    #[test]
    fn small_sets_have_the_exact_p_value() {
        near(two_sided(&[1, 2, 3], &[4, 5, 6]), 0.1, 1e-12);
        near(two_sided(&[4, 5, 6], &[1, 2, 3]), 0.1, 1e-12);
        near(two_sided(&[1, 2, 3, 4, 5], &[6, 7, 8, 9, 10]), 2.0 / 252.0, 1e-12);
        near(two_sided(&[1, 3, 5, 7], &[2, 4, 6, 8]), 48.0 / 70.0, 1e-12);
        let slower = RankTest::of(&[1, 2, 3], &[4, 5, 6]);
        near(slower.greater, 1.0 / 20.0, 1e-12);
        near(slower.less, 1.0, 1e-12);
        near(slower.least_greater, 1.0 / 20.0, 1e-12);
        near(slower.least_less, 1.0 / 20.0, 1e-12);
        near(RankTest::least_of(5, 5), 1.0 / 252.0, 1e-12);
        assert!(RankTest::least_of(1_000, 1_000) < 1e-300);
        assert_eq!(RankTest::compare(&[1, 2, 3, 4], &[3, 4, 5, 6, 7]), None);
    }

    /// Chooses the new set in every possible way, and counts the ways with at least so many wins.
    fn counted(old: &[u64], new: &[u64]) -> (f64, f64) {
        let wins = |old: &[u64], new: &[u64]| -> i32 {
            let pair = |a: &u64| old.iter().map(|b| a.cmp(b) as i32 + 1).sum::<i32>();
            new.iter().map(pair).sum()
        };
        let all = [old, new].concat();
        let mut ways = 0.0;
        let mut less = 0.0;
        let mut greater = 0.0;
        for chosen in (0_u32..1 << all.len()).filter(|set| set.count_ones() as usize == new.len()) {
            let of = |side: bool| -> Vec<u64> {
                let is_there = |at: &usize| (chosen >> at & 1 == 1) == side;
                (0..all.len()).filter(is_there).map(|at| all[at]).collect()
            };
            let other = wins(&of(false), &of(true));
            ways += 1.0;
            less += f64::from(other <= wins(old, new));
            greater += f64::from(other >= wins(old, new));
        }
        (less / ways, greater / ways)
    }

    #[test]
    fn ties_are_counted_out_in_small_sets() {
        for (old, new) in [
            (&[1, 2, 2, 3, 3, 4][..], &[4, 5, 5, 6, 6, 7][..]),
            (&[0, 0, 0, 0, 0, 0], &[0, 0, 0, 5, 6, 7, 8]),
            (&[0, 0, 9, 0, 0], &[0, 0, 0]),
            (&[5, 5, 5, 5], &[5, 5, 5, 5]),
            (&[3, 1, 4, 1, 5, 9, 2, 6], &[2, 7, 1, 8, 2, 8, 1]),
        ] {
            let test = RankTest::of(old, new);
            let (less, greater) = counted(old, new);
            near(test.less, less, 1e-12);
            near(test.greater, greater, 1e-12);
        }
        // A slice that one run of twenty has says nothing.
        let rare = RankTest::compare(&[0; 10], &[0, 0, 0, 0, 0, 0, 0, 0, 0, 1]).unwrap();
        near(rare.least_greater, 0.5, 1e-12);
    }

    #[test]
    fn large_sets_have_the_normal_approximation() {
        let low: Vec<u64> = (0..30).collect();
        let high: Vec<u64> = (15..45).collect();
        let test = RankTest::compare(&low, &high).unwrap();
        // 112.5 of 900 wins with ties, by the formula and the C library's erfc.
        near(test.two_sided(), two_sided_of(337.5, 900.0, 30.0, 15.0), 1e-9);
        assert!(test.greater < 0.001 && test.less > 0.999, "{test:?}");
        // Where the exact distribution ends the approximation takes over without a step.
        let set = |from: u64| (0..MAX_EXACT as u64).map(|i| from + 10 * i).collect::<Vec<u64>>();
        let ties = Ties::new(&set(0), &set(65));
        near(ties.approximate().1, ties.exact().1, 0.3);
    }

    /// The formula for two sets of `n` with `ties` pairs of equals.
    fn two_sided_of(above: f64, pairs: f64, n: f64, ties: f64) -> f64 {
        let all = 2.0 * n;
        let variance = pairs / 12.0 * (all + 1.0 - ties * 6.0 / (all * (all - 1.0)));
        erfc((above - 0.5) / variance.sqrt() / SQRT_2)
    }

    #[test]
    fn tests_that_can_reach_the_level_are_corrected_for_each_other_alone() {
        // The third test can refuse nothing: the level is shared by two.
        let corrected = correct(&[(0.01, 0.001), (0.02, 0.001), (0.5, 0.4)], 0.05);
        assert_eq!(corrected.are_tested, [true, true, false]);
        assert_eq!(corrected.p_values, [0.02, 0.02, 1.0]);
        near(corrected.single_level, 0.025, 1e-12);
        // Twenty tests of unchanged programs: one at 0.026 is nothing, and one at 0.001 is something.
        let mut tests = vec![(0.5, 0.000_1); 18];
        tests.extend([(0.026, 0.000_1), (0.001, 0.000_1)]);
        let p_values = correct(&tests, 0.05).p_values;
        assert!(p_values[18] > 0.4 && p_values[19] < 0.05, "{p_values:?}");
        // Numbers that are too few for any test refuse nothing.
        let few = correct(&[(0.1, 0.1), (0.2, f64::INFINITY)], 0.05);
        assert!(few.p_values.iter().all(|p| *p > 0.05) && few.are_tested == [false, false], "{few:?}");
        assert_eq!(correct(&[], 0.05).p_values, [0.0; 0]);
    }

    /// The expected values are those of the C library.
    #[test]
    fn the_error_function_is_exact_near_and_far() {
        for (x, expected) in [
            (-1.0, 1.842_700_792_949_715),
            (0.0, 1.0),
            (0.5, 0.479_500_122_186_953_5),
            (1.999, 0.004_698_443_348_629_488),
            (2.0, 0.004_677_734_981_047_266),
            (5.0, 1.537_459_794_428_035e-12),
        ] {
            near(erfc(x), expected, 1e-11);
        }
    }

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
