//! The result of a test in words: every command that compares runs uses these.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::rank_test::{MIN_RUNS, RankTest};

/// The result for one measure of two sets of runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(into = "VerdictJson")]
#[schemars(with = "VerdictJson")]
pub(crate) enum ChangeVerdict {
    /// The new set takes longer, and chance does not explain it.
    Slower,
    /// The new set takes less time, and chance does not explain it.
    Faster,
    /// The change is no larger than this, with a confidence of 95 %.
    NoChange(LargestChange),
    /// The runs are so few, or so few of them have the measure, that chance could explain any result.
    TooFewRuns {
        /// So many on each side are enough; `None` where there are as many, and few of them have the measure.
        needed: Option<usize>,
    },
}

/// The limit of a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum LargestChange {
    /// Percent of the old median.
    Percent(f64),
    /// ns, where the old median is 0 or counts from a deadline.
    Ns(f64),
    /// Percentage points, of a share.
    Points(f64),
}

impl ChangeVerdict {
    /// The word for scripts.
    pub fn word(self) -> &'static str {
        match self {
            ChangeVerdict::Slower => "slower",
            ChangeVerdict::Faster => "faster",
            ChangeVerdict::NoChange(_) => "no change",
            ChangeVerdict::TooFewRuns { .. } => "too few runs",
        }
    }

    /// The verdict of a test that can tell: `is_significant` in the direction of `change`, which lies in
    /// `interval` with a confidence of 95 %.
    pub fn tested(
        is_significant: bool,
        change: f64,
        interval: Option<[f64; 2]>,
        limit: impl Fn(f64) -> LargestChange,
    ) -> ChangeVerdict {
        match is_significant {
            true if change > 0.0 => ChangeVerdict::Slower,
            true if change < 0.0 => ChangeVerdict::Faster,
            _ => {
                let ends = interval.unwrap_or([change; 2]);
                ChangeVerdict::NoChange(limit(ends.map(f64::abs).into_iter().fold(0.0, f64::max)))
            }
        }
    }
}

impl fmt::Display for ChangeVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeVerdict::Slower | ChangeVerdict::Faster => f.write_str(self.word()),
            ChangeVerdict::NoChange(LargestChange::Percent(percent)) => {
                write!(f, "no change larger than {percent:.1} %")
            }
            ChangeVerdict::NoChange(LargestChange::Ns(ns)) => {
                write!(f, "no change larger than {:.3} ms", ns / 1e6)
            }
            ChangeVerdict::NoChange(LargestChange::Points(points)) => {
                write!(f, "no change larger than {points:.2} pp")
            }
            ChangeVerdict::TooFewRuns { needed: Some(needed) } => {
                write!(f, "too few runs to tell (at least {needed} a side)")
            }
            ChangeVerdict::TooFewRuns { needed: None } => {
                f.write_str("too few runs to tell (few of them have it)")
            }
        }
    }
}

/// A verdict as two fields of a measure in JSON.
#[derive(Serialize, JsonSchema)]
struct VerdictJson {
    /// slower and faster: the change is significant.
    #[schemars(extend("enum" = ["slower", "faster", "no change", "too few runs"]))]
    verdict: &'static str,
    /// The same for people: slower, faster, no change larger than x %, too few runs to tell (at least n a
    /// side).
    verdict_text: String,
}

impl From<ChangeVerdict> for VerdictJson {
    fn from(verdict: ChangeVerdict) -> VerdictJson {
        VerdictJson { verdict: verdict.word(), verdict_text: verdict.to_string() }
    }
}

/// The number of runs on each side with which the smallest one-sided p-value is at most `level`.
pub(crate) fn runs_needed(level: f64) -> usize {
    (MIN_RUNS..).find(|runs| RankTest::least_of(*runs, *runs) <= level).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_runs_a_side_are_the_least() {
        assert_eq!(runs_needed(0.025), 5);
        assert_eq!(runs_needed(0.005), 5);
        assert_eq!(runs_needed(0.005 / 6.0), 7);
        let text = ChangeVerdict::TooFewRuns { needed: Some(MIN_RUNS) }.to_string();
        assert_eq!(text, "too few runs to tell (at least 5 a side)");
    }

    #[test]
    fn a_change_that_may_be_chance_is_limited_by_the_interval() {
        let verdict = |is_significant, change| {
            ChangeVerdict::tested(is_significant, change, Some([-2.0, 3.0]), LargestChange::Percent)
                .to_string()
        };
        assert_eq!(verdict(true, 2.0), "slower");
        assert_eq!(verdict(true, -1.0), "faster");
        assert_eq!(verdict(false, 1.0), "no change larger than 3.0 %");
        assert_eq!(verdict(true, 0.0), "no change larger than 3.0 %");
    }
}
