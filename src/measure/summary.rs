//! The frames of an app and a layer in numbers, as androidx's benchmarks give them.

use std::collections::BTreeMap;

use super::frame::{Deadline, Frame};

/// The percentiles that androidx's `FrameTimingMetric` gives.
pub(crate) const PERCENTILES: [u8; 4] = [50, 90, 95, 99];

/// The frames of one app and layer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FrameSummary {
    pub package: String,
    pub layer: Option<String>,
    pub count: u64,
    /// How many ended after their deadline; of those whose deadline is known.
    pub janky: u64,
    /// How many have a deadline, and where it comes from.
    pub with_deadline: u64,
    pub deadline: Option<Deadline>,
    pub slow: u64,
    pub big_jank: u64,
    pub huge_jank: u64,
    /// androidx's `frameDurationCpuMs`, ns, at each of [`PERCENTILES`].
    pub duration_cpu_ns: [f64; 4],
    /// androidx's `frameOverrunMs`, ns, at each of [`PERCENTILES`]; `None` where no deadline is known.
    pub overrun_ns: Option<[f64; 4]>,
}

impl FrameSummary {
    /// The share of frames that ended after their deadline, 0 to 1; `None` where no deadline is known.
    pub fn janky_share(&self) -> Option<f64> {
        (self.with_deadline > 0).then(|| self.janky as f64 / self.with_deadline as f64)
    }
}

/// The percentile of numbers in order, between the two nearest ranks in proportion, as androidx's
/// `MetricResult.getPercentile` has it; 0 for no numbers.
pub(crate) fn percentile(sorted: &[i64], percent: u8) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let rank = last as f64 * f64::from(percent) / 100.0;
    let (lower, fraction) = (rank.floor() as usize, rank.fract());
    let low = sorted[lower.min(last)] as f64;
    let high = sorted[(lower + 1).min(last)] as f64;
    low + (high - low) * fraction
}

fn percentiles(mut values: Vec<i64>) -> [f64; 4] {
    values.sort_unstable();
    PERCENTILES.map(|percent| percentile(&values, percent))
}

/// The frames of each app and layer, in the order of their names.
pub(crate) fn summarize(frames: &[Frame]) -> Vec<FrameSummary> {
    let mut groups: BTreeMap<(&str, Option<&str>), Vec<&Frame>> = BTreeMap::new();
    for frame in frames {
        groups.entry((&frame.package, frame.layer.as_deref())).or_default().push(frame);
    }
    let summary = |((package, layer), frames): ((&str, Option<&str>), Vec<&Frame>)| {
        let count = |is: fn(&Frame) -> bool| frames.iter().filter(|frame| is(frame)).count() as u64;
        let overruns: Vec<i64> = frames.iter().filter_map(|frame| frame.overrun()).collect();
        FrameSummary {
            package: package.to_owned(),
            layer: layer.map(str::to_owned),
            count: frames.len() as u64,
            janky: count(Frame::is_janky),
            with_deadline: overruns.len() as u64,
            deadline: frames.iter().find_map(|frame| frame.deadline),
            slow: count(Frame::is_slow),
            big_jank: count(Frame::is_big_jank),
            huge_jank: count(Frame::is_huge_jank),
            duration_cpu_ns: percentiles(frames.iter().map(|frame| frame.duration_cpu_ns as i64).collect()),
            overrun_ns: (!overruns.is_empty()).then(|| percentiles(overruns)),
        }
    };
    groups.into_iter().map(summary).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_lies_between_the_two_nearest_ranks() {
        assert_eq!(percentile(&[], 50), 0.0);
        assert_eq!(percentile(&[7], 99), 7.0);
        assert_eq!(percentile(&[10, 20, 30, 40], 50), 25.0);
        assert_eq!(percentile(&(0..=100).collect::<Vec<i64>>(), 95), 95.0);
        assert_eq!(percentile(&[-10, 0], 90), -1.0);
    }
}
