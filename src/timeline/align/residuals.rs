//! Residuals: the distances between the calls of a thread of a method trace and the markers and switches of a
//! kernel thread, with the trace at a given place on the timeline; and the corrections of clock maps that
//! they demand.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use super::clock_map::ClockMap;
use super::kernel_evidence::ThreadActivity;
use super::method_evidence::{MethodEvidence, NamedEdge, OffCpuGap};
use crate::clock::Timestamp;
use crate::statistics::median;

/// An edge and a marker further apart than this, ns, do not belong together.
pub const WINDOW_NS: i64 = 2_000_000;
/// No median is taken of fewer comparisons than this.
const MIN_COMPARISONS: usize = 4;

/// An edge of the method trace and the marker or switch that belongs to it.
#[derive(Debug, Clone, Copy)]
pub struct MatchedPair {
    /// The edge's time, in the trace's clock.
    pub at: Timestamp,
    /// The number of the clock map that the edge's time was mapped by.
    pub segment: usize,
    /// The marker's time minus the edge's time, ns. An enter comes before its marker, an exit after its
    /// marker.
    pub apart: i64,
    /// Whether the edge is an enter.
    pub begin: bool,
}

/// The result of comparing a thread of a method trace with a kernel thread.
#[derive(Debug, Clone, Default)]
pub struct Residuals {
    /// Enters and exits, each with its marker.
    pub pairs: Vec<MatchedPair>,
    /// Stretches off the CPU with their switches. The last record before a stretch counts as an enter,
    /// because it comes before the switch; the first record after the stretch counts as an exit.
    pub switches: Vec<MatchedPair>,
    /// For each stretch off the CPU, the difference of the CPU times that the two files give for it, ns.
    pub cpu_time: Vec<u64>,
    /// Medians of the distances of each marker name, and of `cpu_time`: ns, each from 1 µs to [`WINDOW_NS`].
    pub medians: Vec<f64>,
    /// The number of the record from which on the second clock map applies, then the third, and so on.
    pub changes: Vec<u64>,
}

/// The least number of enters and exits matched with markers that suffices to correct and to prove a place.
pub const MIN_MARKER_PAIRS: usize = 8;

/// The pairs that correct a place, in order of time: those of markers, or of switches where there are few
/// markers.
pub fn pairs_to_correct_by(fits: &[Option<Residuals>]) -> Vec<MatchedPair> {
    let all = |which: fn(&Residuals) -> &[MatchedPair]| -> Vec<MatchedPair> {
        fits.iter().flatten().flat_map(|fit| which(fit).iter().copied()).collect()
    };
    let mut pairs = all(|fit| &fit.pairs);
    if pairs.len() < MIN_MARKER_PAIRS {
        pairs = all(|fit| &fit.switches);
    }
    pairs.sort_by_key(|pair| (pair.segment, pair.at));
    pairs
}

/// The geometric mean, which suits values that differ by powers of ten; `None` for no values.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().map(|v| v.ln()).sum();
    (!values.is_empty()).then(|| (sum / values.len() as f64).exp())
}

/// Times of markers in the timeline's clock, in order: one list for the begins of each name, and one for the
/// ends.
type Groups = HashMap<(u32, bool), Vec<Timestamp>>;

fn groups(activity: &ThreadActivity) -> Groups {
    let mut groups = Groups::new();
    for mark in &activity.marks {
        groups.entry((mark.name, mark.begin)).or_default().push(mark.ts);
    }
    groups
}

/// The time of the marker nearest to `y`, minus `y`, ns.
fn nearest(group: &[Timestamp], y: i64) -> Option<i64> {
    let after = group.partition_point(|ts| (ts.0 as i64) < y);
    let candidates = [after.checked_sub(1), Some(after)].into_iter().flatten();
    candidates
        .filter_map(|n| Some((group.get(n)?.0 as i64).wrapping_sub(y)))
        .min_by_key(|apart| apart.unsigned_abs())
}

/// Compares `thread` with `activity`; `segments` turn the trace's clock into the timeline's. Edges outside of
/// `window`, which goes from the first to the last event of the recordings, are not compared.
pub fn compare(
    thread: &MethodEvidence,
    activity: &ThreadActivity,
    segments: &[ClockMap],
    window: RangeInclusive<Timestamp>,
) -> Residuals {
    let groups = groups(activity);
    let changes = changes(thread, activity, &groups, segments);
    let segment_of =
        |record: u64| changes.partition_point(|first| *first <= record).min(segments.len().saturating_sub(1));
    let time = |record: u64, x: Timestamp| segments.get(segment_of(record)).map_or(x, |map| map.map(x));
    let mut residuals = Residuals::default();
    let mut by_name: HashMap<u32, Vec<u64>> = HashMap::new();
    let mut drift = Drift::default();
    for edge in &thread.edges {
        let y = time(edge.record, edge.x);
        if !window.contains(&y) {
            continue;
        }
        let Some(group) = groups.get(&(edge.name, edge.begin)) else { continue };
        let found = nearest(group, (y.0 as i64).wrapping_add(drift.now))
            .filter(|apart| apart.unsigned_abs() <= WINDOW_NS as u64);
        by_name.entry(edge.name).or_default().push(found.map_or(WINDOW_NS as u64, i64::unsigned_abs));
        if let Some(apart) = found {
            let pair = MatchedPair {
                at: edge.x,
                segment: segment_of(edge.record),
                apart: apart + drift.now,
                begin: edge.begin,
            };
            residuals.pairs.push(pair);
            drift.follow(apart, edge.begin);
        }
    }
    let mut drift = Drift::default();
    for gap in &thread.gaps {
        let from = time(gap.record - 1, gap.from);
        let to = time(gap.record, gap.to);
        let moved = [from, to].map(|at| at.saturating_add_signed(drift.now));
        if let Some((cpu, on_cpu)) = gap.cpu.zip(activity.on_cpu(moved[0], moved[1])) {
            residuals.cpu_time.push(on_cpu.abs_diff(cpu));
        }
        if let Some((off, on)) = off_cpu_switches(gap, activity, moved) {
            let before = off.wrapping_since(from);
            let after = on.wrapping_since(to);
            let pair =
                |record, at, apart, begin| MatchedPair { at, segment: segment_of(record), apart, begin };
            residuals.switches.push(pair(gap.record - 1, gap.from, before, true));
            residuals.switches.push(pair(gap.record, gap.to, after, false));
            drift.follow(before - drift.now, true);
            drift.follow(after - drift.now, false);
        }
    }
    let mut names: Vec<_> = by_name.into_iter().collect();
    names.sort_unstable_by_key(|(name, _)| *name);
    let curve = residuals.cpu_time.clone();
    for values in names.into_iter().map(|(_, v)| v).chain([curve]).filter(|v| v.len() >= MIN_COMPARISONS) {
        residuals.medians.extend(median(values).map(|ns| (ns as f64).clamp(1e3, WINDOW_NS as f64)));
    }
    residuals.changes = changes;
    residuals
}

/// A stretch between two records is compared with switches only if the thread was on the CPU for at most this
/// time within it, ns.
const MAX_RUNNING_AROUND_GAP_NS: u64 = 100_000;

/// The times of the switches off and onto the CPU that caused a stretch between two records, in the
/// timeline's clock; `None` where the longest time off the CPU does not fit the stretch.
fn off_cpu_switches(
    gap: &OffCpuGap,
    activity: &ThreadActivity,
    [from, to]: [Timestamp; 2],
) -> Option<(Timestamp, Timestamp)> {
    let slack = WINDOW_NS as u64 / 8;
    let (off, on) = activity.longest_off_cpu(from.saturating_sub(slack), to.saturating_add(slack))?;
    let long = gap.to.since(gap.from);
    let rest = on - off;
    // The stretch's two times are cut to µs.
    (rest <= long + 2_000 && long - rest.min(long) <= MAX_RUNNING_AROUND_GAP_NS).then_some((off, on))
}

/// Follows the drift between two clocks. Clocks drift apart where the runtime measured the counter's
/// frequency within a millisecond, which is not exact.
#[derive(Default)]
struct Drift {
    now: i64,
    begin: i64,
    end: i64,
}

impl Drift {
    fn follow(&mut self, apart: i64, begin: bool) {
        if apart.abs() > WINDOW_NS / 8 {
            return;
        }
        let mean = if begin { &mut self.begin } else { &mut self.end };
        *mean += (apart - *mean) / 8;
        let off = (self.begin + self.end) / 2;
        if off.abs() > 4_000 {
            self.now += off / 8;
            self.begin -= off / 8;
            self.end -= off / 8;
        }
    }
}

/// For each clock map but the first, the number of the thread's record from which on the map applies. The
/// records are chosen so that markers and CPU times fit best.
fn changes(
    thread: &MethodEvidence,
    activity: &ThreadActivity,
    groups: &Groups,
    segments: &[ClockMap],
) -> Vec<u64> {
    let mut changes: Vec<u64> = Vec::new();
    for pair in segments.windows(2) {
        let since = changes.last().copied().unwrap_or(0);
        let by_contents = change(thread, activity, groups, [&pair[0], &pair[1]], since);
        // A clock that was set back shows in the records themselves.
        let back = thread.backward.iter().map(|(record, _)| *record).filter(|r| *r > since);
        let change = match by_contents {
            Some(found) => {
                back.min_by_key(|r| r.abs_diff(found)).filter(|r| r.abs_diff(found) < 4096).unwrap_or(found)
            }
            None => back.min().unwrap_or_else(|| change_at(thread, ClockMap::between(&pair[0], &pair[1]))),
        };
        changes.push(change);
    }
    changes
}

/// The number of the record from which on the second of two clock maps applies, by markers and CPU times;
/// `None` where there is too little to compare.
fn change(
    thread: &MethodEvidence,
    activity: &ThreadActivity,
    groups: &Groups,
    segments: [&ClockMap; 2],
    since_record: u64,
) -> Option<u64> {
    let marker = |edge: &NamedEdge, map: &ClockMap| {
        let y = map.map(edge.x).0 as i64;
        let group = groups.get(&(edge.name, edge.begin))?;
        Some(nearest(group, y).map_or(WINDOW_NS, |apart| apart.saturating_abs().min(WINDOW_NS)))
    };
    let off_cpu = |gap: &OffCpuGap, map: &ClockMap| {
        let on_cpu = activity.on_cpu(map.map(gap.from), map.map(gap.to));
        let apart = |(cpu, on_cpu): (u64, u64)| (cpu.abs_diff(on_cpu) as i64).min(WINDOW_NS);
        gap.cpu.zip(on_cpu).map_or(WINDOW_NS, apart)
    };
    let gain = |cost: [Option<i64>; 2]| Some(cost[0]? - cost[1]?);
    let by_markers =
        thread.edges.iter().filter_map(|e| Some((e.record, e.record, gain(segments.map(|m| marker(e, m)))?)));
    let gaps = thread.gaps.iter().filter(|gap| gap.cpu.is_some() && activity.has_switches());
    // Records between two gaps have nothing to compare: they go with the gap before them.
    let mut ended = since_record;
    let by_gaps = gaps.filter_map(|gap| {
        let from = std::mem::replace(&mut ended, gap.record);
        Some((gap.record, from, gain(segments.map(|m| Some(off_cpu(gap, m))))?))
    });
    let mut items: Vec<(u64, u64, i64)> =
        by_markers.chain(by_gaps).filter(|(r, ..)| *r >= since_record).collect();
    items.sort_by_key(|(record, ..)| *record);
    if items.len() < MIN_COMPARISONS {
        return None;
    }
    // The change is put where the total cost is least: the costs by the first map of all items before the
    // change, plus the costs by the second map of all items from the change on.
    let mut sum = 0;
    let mut least = 0;
    let mut at = 0;
    for (n, (_, _, gain)) in items.iter().enumerate() {
        sum += gain;
        if sum < least {
            least = sum;
            at = n + 1;
        }
    }
    Some(items.get(at).map_or(thread.records, |(_, from, _)| *from))
}

/// The number of the first record that certainly lies at `x` of the trace's clock, ns, or later.
pub fn change_at(thread: &MethodEvidence, x: i64) -> u64 {
    let x = Timestamp(x.max(0) as u64);
    if thread.first >= x {
        return 0;
    }
    thread.gaps.iter().find(|g| g.to >= x).map_or(thread.records, |g| g.record)
}

/// Half the number of pairs in a stretch that gets a correction of its own.
const PAIRS_PER_CORRECTION: usize = 32;
/// An edge may lie on the wrong side of its marker by this much, ns: the trace's times are cut to µs.
const ROUNDING_NS: i64 = 2_000;

/// Corrects the maps that the pairs contradict: an enter comes before its marker, an exit after it. A map
/// that nothing contradicts stays, since the snapshots are more exact. Also returns the pairs with their
/// distances by the new maps.
pub fn correct(segments: Vec<ClockMap>, pairs: &[MatchedPair]) -> (Vec<ClockMap>, Vec<MatchedPair>) {
    let mut all = Vec::with_capacity(pairs.len());
    let mut by_segment: Vec<Vec<MatchedPair>> = vec![Vec::new(); segments.len()];
    for pair in pairs {
        if let Some(own) = by_segment.get_mut(pair.segment) {
            own.push(*pair);
        }
    }
    let corrected = segments.into_iter().zip(by_segment).map(|(map, own)| {
        let corrections = corrections(&own);
        let new = if corrections.is_empty() { map.clone() } else { map.corrected(&corrections) };
        all.extend(own.iter().map(|p| {
            let moved = new.map(p.at).wrapping_since(map.map(p.at));
            MatchedPair { apart: p.apart - moved, ..*p }
        }));
        new
    });
    (corrected.collect(), all)
}

/// The corrections of one map: pairs of a reading of the trace's clock, ns, and the ns to add there. Empty
/// where no pair contradicts the map.
fn corrections(pairs: &[MatchedPair]) -> Vec<(i64, i64)> {
    let mut corrections = Vec::new();
    let mut contradicted = false;
    for stretch in pairs.chunks(2 * PAIRS_PER_CORRECTION) {
        let median_of = |begin: bool| -> Option<i64> {
            let apart: Vec<i64> = stretch.iter().filter(|p| p.begin == begin).map(|p| p.apart).collect();
            if apart.len() < PAIRS_PER_CORRECTION / 4 { None } else { median(apart) }
        };
        let Some((enter, exit)) = median_of(true).zip(median_of(false)) else { continue };
        contradicted |= enter < -ROUNDING_NS || exit > ROUNDING_NS;
        let middle = stretch[stretch.len() / 2].at.0 as i64;
        corrections.push((middle, enter.midpoint(exit)));
    }
    corrections.dedup_by_key(|(at, _)| *at);
    if contradicted { corrections } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::super::kernel_evidence::SliceEdge;
    use super::*;

    const WHOLE_RECORDING: RangeInclusive<Timestamp> = Timestamp::MIN..=Timestamp::MAX;

    /// Four calls of one method, 100 µs long, at 1, 2, 3 and 4 ms of the trace's clock.
    fn four_calls() -> MethodEvidence {
        let edge = |n: u64| {
            let call = n / 2;
            let begin = n.is_multiple_of(2);
            let x = (call + 1) * 1_000_000 + if begin { 0 } else { 100_000 };
            NamedEdge { record: n, x: Timestamp(x), name: 0, begin }
        };
        MethodEvidence { edges: (0..8).map(edge).collect(), records: 8, ..MethodEvidence::default() }
    }

    /// The markers of [`four_calls`] where the timeline is 10 ms ahead of the trace: each begins 3 µs after
    /// its call and ends 2 µs before the call's end.
    fn four_slices() -> ThreadActivity {
        let mark = |edge: &NamedEdge| {
            let ts = edge.x + 10_000_000;
            SliceEdge { ts: if edge.begin { ts + 3_000 } else { ts - 2_000 }, name: 0, begin: edge.begin }
        };
        let marks = four_calls().edges.iter().map(mark).collect();
        ThreadActivity::with_marks(marks)
    }

    #[test]
    fn enters_and_exits_are_paired_with_their_markers() {
        let maps = [ClockMap::offset(10_000_000)];
        let residuals = compare(&four_calls(), &four_slices(), &maps, WHOLE_RECORDING);
        assert_eq!(residuals.pairs.len(), 8);
        assert!(residuals.pairs.iter().all(|p| p.apart == if p.begin { 3_000 } else { -2_000 }));
        // 2,000 and 3,000 ns, four times each: the mean of the two in the middle.
        assert_eq!(residuals.medians, [2_500.0]);
        assert!(residuals.cpu_time.is_empty() && residuals.switches.is_empty());
    }

    #[test]
    fn at_a_wrong_place_no_edge_is_paired() {
        let maps = [ClockMap::offset(500_000_000)];
        let residuals = compare(&four_calls(), &four_slices(), &maps, WHOLE_RECORDING);
        assert!(residuals.pairs.is_empty());
        assert_eq!(residuals.medians, [WINDOW_NS as f64]);
        let residuals = compare(&four_calls(), &four_slices(), &maps, Timestamp(0)..=Timestamp(20_000_000));
        assert!(residuals.medians.is_empty(), "what lies outside of the recording is not compared");
    }

    #[test]
    fn a_stretch_off_the_cpu_is_paired_with_its_switches() {
        // On the CPU from 0 to 1 ms and from 3 to 5 ms.
        let activity = ThreadActivity::with_cpu_times(&[(0, 1_000_000), (3_000_000, 5_000_000)]);
        let gap =
            OffCpuGap { record: 1, from: Timestamp(990_000), to: Timestamp(3_010_000), cpu: Some(25_000) };
        let thread = MethodEvidence { gaps: vec![gap], records: 2, ..MethodEvidence::default() };
        let residuals = compare(&thread, &activity, &[ClockMap::offset(0)], WHOLE_RECORDING);
        // On the CPU during the gap: 10 µs before and 10 µs after the switches by the kernel's events, 25
        // µs by the method trace.
        assert_eq!(residuals.cpu_time, [5_000]);
        let switches: Vec<_> = residuals.switches.iter().map(|p| (p.at.0, p.apart, p.begin)).collect();
        assert_eq!(switches, [(990_000, 10_000, true), (3_010_000, -10_000, false)]);
    }

    #[test]
    fn geometric_means_of_small_examples() {
        assert!((geometric_mean(&[10.0, 1_000.0]).unwrap() - 100.0).abs() < 1e-9);
    }

    /// 16 enters, whose markers come `enter` ns later, and 16 exits, whose markers come `exit` ns later.
    fn pairs(enter: i64, exit: i64) -> Vec<MatchedPair> {
        let pair = |n: u64| {
            let begin = n.is_multiple_of(2);
            MatchedPair {
                at: Timestamp(1_000_000 + n * 10_000),
                segment: 0,
                apart: if begin { enter } else { exit },
                begin,
            }
        };
        (0..32).map(pair).collect()
    }

    #[test]
    fn a_map_that_puts_enters_behind_their_markers_is_moved_to_the_middle() {
        // By this map, markers come 5 µs before the enters and 9 µs before the exits: the map is 7 µs late.
        let (maps, moved) = correct(vec![ClockMap::offset(50_000)], &pairs(-5_000, -9_000));
        assert_eq!(maps[0].offset_at(Timestamp(1_100_000)), 43_000);
        assert!(moved.iter().all(|p| p.apart == if p.begin { 2_000 } else { -2_000 }), "{moved:?}");
    }

    #[test]
    fn a_map_that_nothing_contradicts_stays() {
        let (maps, moved) = correct(vec![ClockMap::offset(50_000)], &pairs(3_000, -3_000));
        assert_eq!(maps, [ClockMap::offset(50_000)]);
        assert_eq!(moved[0].apart, 3_000);
    }
}
