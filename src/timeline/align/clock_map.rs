//! Maps the readings of one clock to readings of another one: linearly between points at which both were
//! read.

use crate::clock::{Clock, Snapshots, Timestamp};

/// Two clocks drift apart by less than this, parts per million. Where their distance changes by more than the
/// drift and [`STEP_NS`] together, a clock was set, or the machine was suspended.
const STEP_PPM: i128 = 1_000;
/// The readings of one snapshot may be taken up to this long after each other, ns.
const STEP_NS: i128 = 1_000_000;

/// The timeline's clock, and the snapshots that tie other clocks to it.
#[derive(Debug, Clone)]
pub struct ReferenceClock {
    /// The timeline's clock.
    pub clock: Clock,
    /// The recording's snapshots.
    pub snapshots: Snapshots,
}

/// A piecewise linear function from one clock's ns to another's. Without points it maps each reading to
/// itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClockMap {
    /// Pairs of readings (source clock, target clock), ns, that grow in both coordinates. Before the first
    /// and after the last point both clocks run at the same rate.
    points: Vec<(i64, i64)>,
}

impl ClockMap {
    /// The map that adds `offset` ns.
    pub fn offset(offset: i64) -> ClockMap {
        ClockMap { points: vec![(0, offset)] }
    }

    /// The map through these points (source clock, target clock), ns, which must grow in both coordinates.
    pub fn through(points: Vec<(i64, i64)>) -> ClockMap {
        ClockMap { points }
    }

    /// The map that adds `offset` ns, and then does what this map does.
    pub fn after_offset(&self, offset: i64) -> ClockMap {
        match self.points.as_slice() {
            [] => ClockMap::offset(offset),
            points => ClockMap { points: points.iter().map(|(x, y)| (x.wrapping_sub(offset), *y)).collect() },
        }
    }

    /// The map that does what this map does, and then adds `offset` ns.
    pub fn then_offset(&self, offset: i64) -> ClockMap {
        match self.points.as_slice() {
            [] => ClockMap::offset(offset),
            _ => self.corrected(&[(0, offset)]),
        }
    }

    /// The time of the target clock at the time `ts` of the source clock; never below 0.
    #[inline]
    pub fn map(&self, ts: Timestamp) -> Timestamp {
        let x = ts.0 as i64;
        let y = match self.points.as_slice() {
            [] => x,
            [(x0, y0)] => x.wrapping_add(y0.wrapping_sub(*x0)),
            points => interpolate(points, x),
        };
        Timestamp(y.max(0) as u64)
    }

    /// The ns that the map adds at the time `ts` of the source clock.
    pub fn offset_at(&self, ts: Timestamp) -> i64 {
        (self.map(ts).0 as i64).wrapping_sub(ts.0 as i64)
    }

    /// The source clock's reading, ns, in the middle between the last point of `before` and the first
    /// point of `after`.
    pub fn between(before: &ClockMap, after: &ClockMap) -> i64 {
        match (before.points.last(), after.points.first()) {
            (Some((x0, _)), Some((x1, _))) => x0 / 2 + x1 / 2,
            _ => 0,
        }
    }

    /// This map with `corrections` added. Each correction is a reading of the source clock, ns, and the ns to
    /// add there; between two corrections the values are interpolated.
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
        let points =
            xs.into_iter().map(|x| (x, (self.map(Timestamp(x as u64)).0 as i64).wrapping_add(add(x))));
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

/// The readings of `clock` in each snapshot, ns. The counter's ticks are converted to ns by its frequency.
fn readings(snapshots: &Snapshots, clock: Clock) -> impl Iterator<Item = Option<i128>> + '_ {
    let hz = counter_hz(snapshots);
    snapshots.list.iter().map(move |s| {
        let raw = i128::from(s.get(clock, snapshots.ftrace_clock)?);
        match (clock, hz) {
            (Clock::Counter, Some(hz)) => Some(raw * 1_000_000_000 / i128::from(hz)),
            (Clock::Counter, None) => None,
            _ => (raw > 0).then_some(raw),
        }
    })
}

/// The counter's frequency, Hz: the stated one, else the measured one.
pub fn counter_hz(snapshots: &Snapshots) -> Option<u64> {
    snapshots.counter_hz.filter(|hz| *hz > 0).or_else(|| measured_hz(snapshots))
}

/// The counter's frequency, Hz, measured from the first to the last snapshot: for CPUs that do not report it.
fn measured_hz(snapshots: &Snapshots) -> Option<u64> {
    let reading = |s: &crate::clock::Snapshot| Some((s.counter?, s.monotonic_raw));
    let first = reading(snapshots.list.first()?)?;
    let last = reading(snapshots.list.last()?)?;
    let ticks = last.0.checked_sub(first.0)?;
    let ns = last.1.checked_sub(first.1).filter(|ns| *ns > 0)?;
    u64::try_from(u128::from(ticks) * 1_000_000_000 / u128::from(ns)).ok().filter(|hz| *hz > 0)
}

/// The maps from the clock `from` to the clock `to` by the snapshots. A new map begins where one of the
/// clocks was set or stood still between two snapshots: the change happened at an unknown moment between
/// the last point of one map and the first point of the next one.
///
/// Readings of the counter are its ticks converted to ns, as ART writes them.
pub fn segments(snapshots: &Snapshots, from: Clock, to: Clock) -> Vec<ClockMap> {
    if from == to {
        return vec![ClockMap::offset(0)];
    }
    let mut segments: Vec<Vec<(i64, i64)>> = Vec::new();
    let mut last: Option<(i128, i128)> = None;
    for (x, y) in readings(snapshots, from).zip(readings(snapshots, to)).filter_map(|(x, y)| Some((x?, y?))) {
        let stepped = last.is_none_or(|(x0, y0)| {
            let dx = x - x0;
            let dy = y - y0;
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

/// Joins several maps to one. The change from one map to the next is put in the middle between them.
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
    fn drift_is_interpolated_and_a_suspend_begins_a_new_segment() {
        let s = snapshots(&[
            (1_000_000_000, 5_000_000_000),
            (2_000_000_000, 6_000_010_000),
            (3_000_000_000, 17_000_000_000),
        ]);
        let segments = segments(&s, Clock::Monotonic, Clock::Boottime);
        assert_eq!(segments.len(), 2);
        assert_eq!(segments[0].map(Timestamp(1_500_000_000)), Timestamp(5_500_005_000));
        assert_eq!(segments[0].map(Timestamp(2_100_000_000)), Timestamp(6_100_010_000));
        assert_eq!(segments[1].map(Timestamp(2_900_000_000)), Timestamp(16_900_000_000));
    }

    #[test]
    fn corrections_hold_at_their_points_and_between() {
        let map = ClockMap::offset(100).corrected(&[(1_000, 10), (2_000, 30)]);
        assert_eq!(
            [500, 1_000, 1_500, 2_000, 3_000].map(|x| map.offset_at(Timestamp(x))),
            [110, 110, 120, 130, 130]
        );
    }

    #[test]
    fn an_offset_is_added_before_or_after_a_map() {
        let map = ClockMap::through(vec![(1_000, 5_000), (2_000, 7_000)]);
        let at = Timestamp(1_400);
        assert_eq!(
            (map.after_offset(100).map(at), map.then_offset(100).map(at)),
            (Timestamp(6_000), Timestamp(5_900))
        );
        assert_eq!(ClockMap::default().after_offset(7).map(at), Timestamp(1_407));
        assert_eq!(ClockMap::default().then_offset(-7).map(at), Timestamp(1_393));
    }

    #[test]
    fn joined_segments_meet_in_the_middle_of_the_gap_between_them() {
        // Both clocks run alike; the target clock stood still for 4,000 ns between the two segments.
        let before = ClockMap::through(vec![(0, 100), (1_000, 1_100)]);
        let after = ClockMap::through(vec![(9_000, 5_100), (10_000, 6_100)]);
        let joined = joined(&[before, after]).unwrap();
        assert_eq!(
            [500, 2_000, 8_000, 9_500].map(|x| joined.map(Timestamp(x)).0),
            [600, 2_100, 4_100, 5_600]
        );
        assert_eq!(super::joined(&[]), None);
    }

    #[test]
    fn a_map_of_one_point_adds_its_distance_and_never_goes_below_zero() {
        let map = ClockMap::through(vec![(1_000, 400)]);
        assert_eq!([1_000, 5_000, 300].map(|x| map.map(Timestamp(x)).0), [400, 4_400, 0]);
        assert_eq!(ClockMap::default().map(Timestamp(77)), Timestamp(77));
    }
}
