//! The frames of a run in the figures that runs are compared by.

use super::summary::{PERCENTILES, percentile};

/// The share of frames that ended after their deadline, of those whose deadline is known.
pub(crate) const JANKY: &str = "janky";
/// A share of all is so many: shares are counted in billionths.
pub(crate) const WHOLE_SHARE: i64 = 1_000_000_000;

/// What is measured of the frames of a run, ns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FrameFigures {
    /// androidx's `frameDurationCpuMs` of each frame.
    cpu: Vec<i64>,
    /// androidx's `frameOverrunMs` of each frame whose deadline is known.
    overrun: Vec<i64>,
}

impl FrameFigures {
    /// Adds a frame.
    pub fn add(&mut self, cpu_ns: u64, overrun_ns: Option<i64>) {
        self.cpu.push(i64::try_from(cpu_ns).unwrap_or(i64::MAX));
        self.overrun.extend(overrun_ns);
    }

    /// The figures by their names in conditions: `cpu.p95`, `overrun.p95`, `janky`.
    pub fn figures(&self) -> Vec<(String, i64)> {
        let mut figures = Vec::new();
        for (name, values) in [("cpu", &self.cpu), ("overrun", &self.overrun)] {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            if !sorted.is_empty() {
                let of = |percent: &u8| (format!("{name}.p{percent}"), percentile(&sorted, *percent) as i64);
                figures.extend(PERCENTILES.iter().map(of));
            }
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
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn frames_have_percentiles_and_a_share_of_late_ones_where_deadlines_are_known() {
        let mut frames = FrameFigures::default();
        for (cpu, overrun) in [(10, Some(-5)), (30, Some(7)), (20, None), (40, Some(-1)), (50, Some(0))] {
            frames.add(cpu, overrun);
        }
        let figures: BTreeMap<String, i64> = frames.figures().into_iter().collect();
        assert_eq!((figures["cpu.p50"], figures["cpu.p90"]), (30, 46));
        assert_eq!((figures["overrun.p50"], figures["overrun.p99"]), (0, 6));
        assert_eq!(figures[JANKY], WHOLE_SHARE / 4);
        let mut without = FrameFigures::default();
        without.add(10, None);
        assert_eq!(without.figures().len(), PERCENTILES.len());
        assert_eq!(FrameFigures::default().figures(), []);
    }
}
