//! The period of the display, as the counter `VSYNC-app` shows it.

/// SurfaceFlinger changes the value of this counter at each VSYNC that it tells apps of.
pub(super) const COUNTER: &str = "VSYNC-app";

/// Periods outside of these bounds, ns, are none: VSYNC is told only while somebody asks for it, and displays
/// have 10 to 500 Hz.
const PERIODS_NS: std::ops::RangeInclusive<u64> = 2_000_000..=100_000_000;
/// The least of so many intervals is the period: an interval in which nobody asked for a VSYNC is a multiple
/// of it.
const INTERVALS: usize = 3;

/// The latest VSYNCs.
#[derive(Debug, Default)]
pub(super) struct Vsync {
    last: Option<u64>,
    /// The latest intervals, ns; 0 where there were fewer.
    intervals: [u64; INTERVALS],
    count: usize,
}

impl Vsync {
    /// Takes the time of a VSYNC, ns.
    pub fn tick(&mut self, ts: u64) {
        let interval = self.last.map_or(0, |last| ts.saturating_sub(last));
        self.last = Some(ts);
        if PERIODS_NS.contains(&interval) {
            self.intervals[self.count % INTERVALS] = interval;
            self.count += 1;
        }
    }

    /// When a frame that begins at `ts` is to be done: one period after the VSYNC at which it began. `None`
    /// while the period is not known.
    pub fn deadline(&self, ts: u64) -> Option<u64> {
        let period = self.intervals.iter().copied().filter(|interval| *interval > 0).min()?;
        let vsync = self.last.filter(|last| ts.checked_sub(*last).is_some_and(|after| after < period));
        vsync.unwrap_or(ts).checked_add(period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_follows_the_display_from_120_to_60_hz() {
        let mut vsync = Vsync::default();
        assert_eq!(vsync.deadline(0), None);
        [0, 8_333_333, 16_666_666, 25_000_000].into_iter().for_each(|ts| vsync.tick(ts));
        assert_eq!(vsync.deadline(25_100_000), Some(33_333_333));
        // Nobody asked for a VSYNC for a while.
        vsync.tick(100_000_000);
        assert_eq!(vsync.deadline(100_000_001), Some(108_333_333));
        [116_666_667, 133_333_334, 150_000_001].into_iter().for_each(|ts| vsync.tick(ts));
        assert_eq!(vsync.deadline(150_000_002), Some(166_666_668));
        // A frame that began long after the last VSYNC.
        assert_eq!(vsync.deadline(400_000_000), Some(416_666_667));
    }
}
