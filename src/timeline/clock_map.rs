//! From one clock's readings to another's: straight pieces between known points.

use crate::clock::{Clock, Snapshots};

/// A change of the distance between two clocks that no drift explains (1,000 ppm, and 1 ms for the readings
/// themselves): somebody set the clock, or the machine was suspended.
const STEP_PPM: i128 = 1_000;
const STEP_NS: i128 = 1_000_000;

/// A function from one clock's ns to another's, made of straight pieces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClockMap {
    /// Points, growing in both; before the first and after the last the clocks run alike.
    points: Vec<(i64, i64)>,
}

impl ClockMap {
    /// Adds `offset` ns.
    pub fn offset(offset: i64) -> ClockMap {
        ClockMap { points: vec![(0, offset)] }
    }

    /// Through these points, which must grow in both.
    pub fn through(points: Vec<(i64, i64)>) -> ClockMap {
        ClockMap { points }
    }

    /// What `x` is in the other clock.
    #[inline]
    pub fn map(&self, x: u64) -> u64 {
        let y = match self.points.as_slice() {
            [] => x as i64,
            [(x0, y0)] => (x as i64).wrapping_add(y0.wrapping_sub(*x0)),
            points => interpolate(points, x as i64),
        };
        y.max(0) as u64
    }

    /// What is added at `x`, ns.
    pub fn offset_at(&self, x: u64) -> i64 {
        (self.map(x) as i64).wrapping_sub(x as i64)
    }

    /// A reading of the source clock in the middle between two segments.
    pub fn between(before: &ClockMap, after: &ClockMap) -> i64 {
        match (before.points.last(), after.points.first()) {
            (Some((x0, _)), Some((x1, _))) => x0 / 2 + x1 / 2,
            _ => 0,
        }
    }

    /// This map, and then `corrections`: ns to add, at readings of the source clock, straight between them.
    pub fn corrected(&self, corrections: &[(i64, i64)]) -> ClockMap {
        let [first, .., last] = corrections else {
            let all = corrections.first().map_or(0, |c| c.1);
            return ClockMap { points: self.points.iter().map(|(x, y)| (*x, y.wrapping_add(all))).collect() };
        };
        let add = |x: i64| interpolate(corrections, x.clamp(first.0, last.0));
        let mut xs: Vec<i64> =
            self.points.iter().map(|p| p.0).chain(corrections.iter().map(|c| c.0)).collect();
        xs.retain(|x| *x > 0);
        xs.sort_unstable();
        xs.dedup();
        let points = xs.into_iter().map(|x| (x, (self.map(x as u64) as i64).wrapping_add(add(x))));
        ClockMap { points: points.collect() }
    }
}

#[inline]
fn interpolate(points: &[(i64, i64)], x: i64) -> i64 {
    let after = points.partition_point(|p| p.0 <= x);
    match (after.checked_sub(1).and_then(|n| points.get(n)), points.get(after)) {
        (Some((x0, y0)), Some((x1, y1))) => {
            let wide = i128::from;
            let share = (wide(x) - wide(*x0)) * (wide(*y1) - wide(*y0)) / (wide(*x1) - wide(*x0)).max(1);
            y0.wrapping_add(share as i64)
        }
        (Some((x0, y0)), None) | (None, Some((x0, y0))) => y0.wrapping_add(x.wrapping_sub(*x0)),
        (None, None) => x,
    }
}

/// The readings of `clock` in a list of snapshots, ns; the counter's ticks as ns since it began.
fn readings(snapshots: &Snapshots, clock: Clock) -> impl Iterator<Item = Option<i128>> + '_ {
    let hz = snapshots.counter_hz.filter(|hz| *hz > 0).or_else(|| measured_hz(snapshots));
    snapshots.list.iter().map(move |s| {
        let raw = i128::from(s.get(clock, snapshots.ftrace_clock)?);
        match (clock, hz) {
            (Clock::Counter, Some(hz)) => Some(raw * 1_000_000_000 / i128::from(hz)),
            (Clock::Counter, None) => None,
            _ => (raw > 0).then_some(raw),
        }
    })
}

/// The counter's frequency by the snapshots themselves, where the CPU does not tell it.
fn measured_hz(snapshots: &Snapshots) -> Option<u64> {
    let reading = |s: &crate::clock::Snapshot| Some((s.counter?, s.monotonic_raw));
    let (first, last) = (reading(snapshots.list.first()?)?, reading(snapshots.list.last()?)?);
    let (ticks, ns) = (last.0.checked_sub(first.0)?, last.1.checked_sub(first.1).filter(|ns| *ns > 0)?);
    u64::try_from(u128::from(ticks) * 1_000_000_000 / u128::from(ns)).ok().filter(|hz| *hz > 0)
}

/// The maps from `from` to `to` that snapshots give: one, or several if one of the clocks was set or stood still
/// in between. When exactly that was is not known: between the last point of one and the first of the next.
///
/// The counter is taken in ns (ticks by their frequency), as ART writes it.
pub fn segments(snapshots: &Snapshots, from: Clock, to: Clock) -> Vec<ClockMap> {
    if from == to {
        return vec![ClockMap::offset(0)];
    }
    let mut segments: Vec<Vec<(i64, i64)>> = Vec::new();
    let mut last: Option<(i128, i128)> = None;
    for (x, y) in readings(snapshots, from).zip(readings(snapshots, to)).filter_map(|(x, y)| Some((x?, y?))) {
        let stepped = last.is_none_or(|(x0, y0)| {
            let (dx, dy) = (x - x0, y - y0);
            dx <= 0 || dy <= 0 || (dy - dx).abs() > STEP_NS + dx.max(dy) * STEP_PPM / 1_000_000
        });
        let (Ok(point_x), Ok(point_y)) = (i64::try_from(x), i64::try_from(y)) else { continue };
        match segments.last_mut() {
            Some(segment) if !stepped => segment.push((point_x, point_y)),
            _ => segments.push(vec![(point_x, point_y)]),
        }
        last = Some((x, y));
    }
    segments.into_iter().map(ClockMap::through).collect()
}

/// One map of several segments, where nothing tells when one ended and the next began: in the middle.
pub fn joined(segments: &[ClockMap]) -> Option<ClockMap> {
    let mut points: Vec<(i64, i64)> = Vec::new();
    for segment in segments {
        if let (Some((x0, y0)), Some((x1, y1))) = (points.last().copied(), segment.points.first().copied()) {
            let middle = ((x1 - x0).max(0).min(y1 - y0) / 2).max(0);
            points.extend([(x0 + middle, y0 + middle), (x1 - middle, y1 - middle)]);
        }
        points.extend_from_slice(&segment.points);
    }
    points.dedup_by_key(|p| p.0);
    (!points.is_empty()).then_some(ClockMap { points })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Snapshot;

    fn snapshots(list: &[(u64, u64)]) -> Snapshots {
        let list = list.iter().map(|(m, b)| Snapshot { monotonic: *m, boottime: *b, ..Snapshot::default() });
        Snapshots { list: list.collect(), ..Snapshots::default() }
    }

    #[test]
    fn drift_is_spread_and_a_suspend_is_a_new_era() {
        let s = snapshots(&[
            (1_000_000_000, 5_000_000_000),
            (2_000_000_000, 6_000_010_000),
            (3_000_000_000, 17_000_000_000),
        ]);
        let segments = segments(&s, Clock::Monotonic, Clock::Boottime);
        assert_eq!(segments.len(), 2);
        assert_eq!(segments[0].map(1_500_000_000), 5_500_005_000);
        assert_eq!(segments[0].map(2_100_000_000), 6_100_010_000);
        assert_eq!(segments[1].map(2_900_000_000), 16_900_000_000);
    }

    #[test]
    fn corrections_hold_at_their_points_and_between() {
        let map = ClockMap::offset(100).corrected(&[(1_000, 10), (2_000, 30)]);
        assert_eq!([500, 1_000, 1_500, 2_000, 3_000].map(|x| map.offset_at(x)), [110, 110, 120, 130, 130]);
    }
}
