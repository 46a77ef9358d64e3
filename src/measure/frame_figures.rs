//! The frames of an app in numbers: as androidx's benchmarks give them, and as runs are compared by them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::frame::{Deadline, Frame};

/// The percentiles that androidx's `FrameTimingMetric` gives.
pub(crate) const PERCENTILES: [u8; 4] = [50, 90, 95, 99];
/// The share of frames that ended after their deadline, of those whose deadline is known.
pub(crate) const JANKY: &str = "janky";
/// A share of all is so many: shares are counted in billionths.
pub(crate) const WHOLE_SHARE: i64 = 1_000_000_000;

/// The frames of one app and layer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct FrameSummary {
    /// The process's name.
    pub package: String,
    /// The surface, where FrameTimeline names it.
    pub layer: Option<String>,
    /// Frames that the UI thread and the RenderThread did.
    pub count: u64,
    /// Frames that ended after their deadline, of those whose deadline is known.
    pub janky: u64,
    /// The share of frames that ended after their deadline, 0 to 1; null where no deadline is known.
    pub janky_share: Option<f64>,
    /// Frames whose deadline is known.
    pub with_deadline: u64,
    /// Where the deadlines come from.
    pub deadline: Option<Deadline>,
    /// Frames with more than 20 ms of CPU time.
    pub slow: u64,
    /// Frames with more than 50 ms of CPU time.
    pub big_jank: u64,
    /// Frames with more than 200 ms of CPU time.
    pub huge_jank: u64,
    /// androidx's `frameDurationCpuMs`, ns: from the begin of `Choreographer#doFrame` to the end of the
    /// first `DrawFrame`; null where only FrameTimeline has the frames.
    pub duration_cpu_ns: Option<Percentiles>,
    /// androidx's `frameOverrunMs`, ns: from the deadline to the end; null where no deadline is known.
    pub overrun_ns: Option<Percentiles>,
}

/// The values at each of [`PERCENTILES`], ns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Percentiles {
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
}

impl From<[f64; 4]> for Percentiles {
    fn from([p50, p90, p95, p99]: [f64; 4]) -> Percentiles {
        Percentiles { p50, p90, p95, p99 }
    }
}

/// The percentile of numbers in order, between the two nearest ranks in proportion, as androidx's
/// `MetricResult.getPercentile` has it; `None` for no numbers.
fn percentile(sorted: &[i64], percent: u8) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let rank = last as f64 * f64::from(percent) / 100.0;
    let lower = rank.floor() as usize;
    let fraction = rank.fract();
    let low = sorted[lower.min(last)] as f64;
    let high = sorted[(lower + 1).min(last)] as f64;
    Some(low + (high - low) * fraction)
}

/// The percentiles of values at each of [`PERCENTILES`]; `None` for no values.
pub(crate) fn percentiles(mut values: Vec<i64>) -> Option<[f64; 4]> {
    values.sort_unstable();
    let [a, b, c, d] = PERCENTILES.map(|percent| percentile(&values, percent));
    Some([a?, b?, c?, d?])
}

type FrameGroups<'a> = BTreeMap<(&'a str, Option<&'a str>), Vec<&'a Frame>>;

/// The frames of each app and layer.
fn groups(frames: &[Frame]) -> FrameGroups<'_> {
    let mut groups = FrameGroups::new();
    for frame in frames {
        groups.entry((&frame.package, frame.layer.as_deref())).or_default().push(frame);
    }
    groups
}

/// The frames that ended after their deadline, in the order of their begins; of an app and a layer without
/// any deadline the slow frames.
pub(crate) fn late_frames(frames: &[Frame]) -> Vec<&Frame> {
    let mut late = Vec::new();
    for of_group in groups(frames).into_values() {
        let has_deadlines = of_group.iter().any(|frame| frame.overrun().is_some());
        let is_late = |frame: &&Frame| if has_deadlines { frame.is_janky() } else { frame.is_slow() };
        late.extend(of_group.into_iter().filter(is_late));
    }
    late.sort_by_key(|frame| frame.order());
    late
}

/// The frames of each app and layer in numbers, in the order of their names.
pub(crate) fn summarize(frames: &[Frame]) -> Vec<FrameSummary> {
    let summary = |((package, layer), frames): ((&str, Option<&str>), Vec<&Frame>)| {
        let count = |is: fn(&Frame) -> bool| frames.iter().filter(|frame| is(frame)).count() as u64;
        let overruns: Vec<i64> = frames.iter().filter_map(|frame| frame.overrun()).collect();
        let durations = frames.iter().filter_map(|frame| frame.duration_cpu()).map(|ns| ns as i64).collect();
        FrameSummary {
            package: package.to_owned(),
            layer: layer.map(str::to_owned),
            count: frames.len() as u64,
            janky: count(Frame::is_janky),
            janky_share: (!overruns.is_empty())
                .then(|| count(Frame::is_janky) as f64 / overruns.len() as f64),
            with_deadline: overruns.len() as u64,
            deadline: frames.iter().find_map(|frame| frame.deadline),
            slow: count(Frame::is_slow),
            big_jank: count(Frame::is_big_jank),
            huge_jank: count(Frame::is_huge_jank),
            duration_cpu_ns: percentiles(durations).map(Percentiles::from),
            overrun_ns: percentiles(overruns).map(Percentiles::from),
        }
    };
    groups(frames).into_iter().map(summary).collect()
}

/// The times of the frames of a run, ns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FrameFigures {
    /// androidx's `frameDurationCpuMs` of each frame.
    cpu: Vec<i64>,
    /// androidx's `frameOverrunMs` of each frame whose deadline is known.
    overrun: Vec<i64>,
}

impl FrameFigures {
    /// Adds a frame.
    pub fn add(&mut self, cpu_ns: Option<u64>, overrun_ns: Option<i64>) {
        self.cpu.extend(cpu_ns.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX)));
        self.overrun.extend(overrun_ns);
    }

    /// The figures by their names in conditions: `cpu.p95`, `overrun.p95`, `janky`.
    pub fn figures(&self) -> Vec<(String, i64)> {
        let mut figures = Vec::new();
        for (name, values) in [("cpu", &self.cpu), ("overrun", &self.overrun)] {
            let values = percentiles(values.clone()).into_iter().flatten();
            let of = |(percent, value): (&u8, f64)| (format!("{name}.p{percent}"), value as i64);
            figures.extend(PERCENTILES.iter().zip(values).map(of));
        }
        if !self.overrun.is_empty() {
            let janky = self.overrun.iter().filter(|overrun| **overrun > 0).count();
            let share = janky as f64 / self.overrun.len() as f64;
            figures.push((JANKY.to_owned(), (share * WHOLE_SHARE as f64).round() as i64));
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_percentiles_and_a_share_of_late_ones_where_deadlines_are_known() {
        let mut frames = FrameFigures::default();
        for (cpu, overrun) in [(10, Some(-5)), (30, Some(7)), (20, None), (40, Some(-1)), (50, Some(0))] {
            frames.add(Some(cpu), overrun);
        }
        let figures: BTreeMap<String, i64> = frames.figures().into_iter().collect();
        assert_eq!((figures["cpu.p50"], figures["cpu.p90"]), (30, 46));
        assert_eq!((figures["overrun.p50"], figures["overrun.p99"]), (0, 6));
        assert_eq!(figures[JANKY], WHOLE_SHARE / 4);
        let mut without = FrameFigures::default();
        without.add(Some(10), None);
        assert_eq!(without.figures().len(), PERCENTILES.len());
        assert_eq!(FrameFigures::default().figures(), []);
    }

    #[test]
    fn a_percentile_lies_between_the_two_nearest_ranks() {
        assert_eq!(percentile(&[], 50), None);
        assert_eq!(percentile(&[7], 99), Some(7.0));
        assert_eq!(percentile(&[10, 20, 30, 40], 50), Some(25.0));
        assert_eq!(percentile(&(0..=100).collect::<Vec<i64>>(), 95), Some(95.0));
        assert_eq!(percentile(&[-10, 0], 90), Some(-1.0));
    }
}
