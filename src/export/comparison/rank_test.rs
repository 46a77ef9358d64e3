//! The Mann-Whitney test: whether two sets of measurements differ by more than chance explains. It compares
//! ranks, so that a single slow run counts no more than any other, and it needs no assumption about how
//! measurements spread.

/// The least number of measurements on each side: with three the smallest possible p-value is 0.1.
const MIN_RUNS: usize = 3;
/// Up to this number on each side the distribution is counted out; it is close to a normal one beyond.
const MAX_EXACT: usize = 20;

/// The two-sided p-value: how likely a difference at least as large is if both sides measure the same. `None`
/// with fewer than three measurements on a side.
pub(super) fn p_value(one: &[u64], other: &[u64]) -> Option<f64> {
    if one.len() < MIN_RUNS || other.len() < MIN_RUNS {
        return None;
    }
    // Twice the number of pairs in which `one` is greater; ties count half.
    let doubled: u64 = one.iter().map(|a| other.iter().map(|b| wins(*a, *b)).sum::<u64>()).sum();
    let pairs = (one.len() * other.len()) as u64;
    let doubled = doubled.min(2 * pairs - doubled);
    let ties = has_ties(one, other);
    Some(match one.len().max(other.len()) <= MAX_EXACT && !ties {
        true => exact(one.len(), other.len(), (doubled / 2) as usize),
        false => approximate(one, other, doubled as f64 / 2.0),
    })
}

fn wins(a: u64, b: u64) -> u64 {
    match a.cmp(&b) {
        std::cmp::Ordering::Greater => 2,
        std::cmp::Ordering::Equal => 1,
        std::cmp::Ordering::Less => 0,
    }
}

/// All values of both sides in order.
fn sorted(one: &[u64], other: &[u64]) -> Vec<u64> {
    let mut all = [one, other].concat();
    all.sort_unstable();
    all
}

fn has_ties(one: &[u64], other: &[u64]) -> bool {
    sorted(one, other).windows(2).any(|pair| pair[0] == pair[1])
}

/// Twice the share of all orders of `m + n` values in which the statistic is at most `u`.
fn exact(m: usize, n: usize, u: usize) -> f64 {
    // ways[j][v]: orders of the first i values of one side and j of the other with the statistic v.
    let most = m * n;
    let mut ways = vec![vec![0.0; most + 1]; n + 1];
    ways.iter_mut().for_each(|of_j| of_j[0] = 1.0);
    for _ in 0..m {
        // One value more on the first side: it is greater than j of the other side, for j from 0 to n.
        let mut next = vec![vec![0.0; most + 1]; n + 1];
        for j in 0..=n {
            for v in 0..=most {
                let below = if j > 0 { next[j - 1][v] } else { 0.0 };
                let with = if v >= j { ways[j][v - j] } else { 0.0 };
                next[j][v] = below + with;
            }
        }
        ways = next;
    }
    let all: f64 = ways[n].iter().sum();
    let tail: f64 = ways[n][..=u].iter().sum();
    (2.0 * tail / all).min(1.0)
}

/// The normal approximation, corrected for ties and for whole numbers.
fn approximate(one: &[u64], other: &[u64], u: f64) -> f64 {
    let (m, n) = (one.len() as f64, other.len() as f64);
    let all = sorted(one, other);
    let ties: f64 =
        all.chunk_by(|a, b| a == b).map(|tied| (tied.len() as f64).powi(3) - tied.len() as f64).sum();
    let count = m + n;
    let variance = m * n / 12.0 * (count + 1.0 - ties / (count * (count - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let z = ((m * n / 2.0 - u - 0.5).max(0.0)) / variance.sqrt();
    erfc(z / std::f64::consts::SQRT_2).min(1.0)
}

/// The complementary error function, to seven digits (Abramowitz and Stegun, 7.1.26).
fn erfc(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let polynomial = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592];
    polynomial.iter().fold(0.0, |sum, factor| (sum + factor) * t) * (-x * x).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: Option<f64>, expected: f64, within: f64) {
        let value = value.unwrap();
        assert!((value - expected).abs() < within, "{value} is not {expected}");
    }

    /// The expected values are shares of orders: 2 of 20, 2 of 252, 48 of 70.
    #[test]
    fn small_sets_without_ties_have_the_exact_p_value() {
        near(p_value(&[1, 2, 3], &[4, 5, 6]), 0.1, 1e-12);
        near(p_value(&[4, 5, 6], &[1, 2, 3]), 0.1, 1e-12);
        near(p_value(&[1, 2, 3, 4, 5], &[6, 7, 8, 9, 10]), 0.007_936_507_936, 1e-9);
        near(p_value(&[1, 3, 5, 7], &[2, 4, 6, 8]), 0.685_714_285_714, 1e-9);
        assert_eq!(p_value(&[1, 2], &[3, 4, 5]), None);
    }

    #[test]
    fn ties_and_large_sets_have_the_normal_approximation() {
        near(p_value(&[5, 5, 5, 5], &[5, 5, 5, 5]), 1.0, 1e-9);
        // The formula with ties and with the C library's erfc.
        near(p_value(&[1, 2, 2, 3, 3, 4], &[4, 5, 5, 6, 6, 7]), 0.006_027_336_75, 1e-6);
        let (low, high): (Vec<u64>, Vec<u64>) = ((0..30).collect(), (15..45).collect());
        assert!(p_value(&low, &high).unwrap() < 0.001);
    }
}
