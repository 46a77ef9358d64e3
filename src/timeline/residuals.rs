//! How well one thread of a method trace and one of the kernel's threads fit, if the trace lies at a given place.

use std::collections::HashMap;

use super::clock_map::ClockMap;
use super::kernel_evidence::ThreadActivity;
use super::method_evidence::{MethodEvidence, NamedEdge, OffCpuGap};

/// What is further apart than this does not belong together: ns.
pub const WINDOW_NS: i64 = 2_000_000;
/// Fewer comparisons than this say nothing.
const MIN_COMPARISONS: usize = 4;

/// An enter or exit, and the marker it belongs to.
#[derive(Debug, Clone, Copy)]
pub struct MatchedPair {
    /// The trace's own time: ns in the trace's clock.
    pub at: u64,
    /// Era of the trace's clock.
    pub segment: usize,
    /// The marker's time less the enter's or exit's, ns: an enter comes before its marker, an exit after.
    pub apart: i64,
    /// Enter, or exit.
    pub begin: bool,
}

/// How well two threads residuals.
#[derive(Debug, Clone, Default)]
pub struct Residuals {
    /// Enters and exits with their markers.
    pub pairs: Vec<MatchedPair>,
    /// The ends of stretches off the CPU with the switches they belong to: the last record before comes before the
    /// switch, the first one behind after it, as an enter and an exit lie to their markers.
    pub switches: Vec<MatchedPair>,
    /// For each stretch off the CPU: how much the two recordings differ about the CPU time in it, ns.
    pub cpu_time: Vec<u64>,
    /// Medians: of each marker's name, and of the curve. Each at least 1 µs, at most [`WINDOW_NS`].
    pub medians: Vec<f64>,
    /// Where in the thread's records the trace's clock comes into its next segment.
    pub changes: Vec<u64>,
}

/// The middle one.
pub fn median<T: Ord + Copy>(values: &mut [T]) -> Option<T> {
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable(middle).1)
}

/// The mean of what may differ by powers of ten.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().map(|v| v.ln()).sum();
    (!values.is_empty()).then(|| (sum / values.len() as f64).exp())
}

/// Markers of one name and kind, in order.
type Groups = HashMap<(u32, bool), Vec<u64>>;

fn groups(activity: &ThreadActivity) -> Groups {
    let mut groups = Groups::new();
    for mark in &activity.marks {
        groups.entry((mark.name, mark.begin)).or_default().push(mark.ts);
    }
    groups
}

/// How far the marker nearest to `y` is from it.
fn nearest(group: &[u64], y: i64) -> Option<i64> {
    let after = group.partition_point(|ts| (*ts as i64) < y);
    let candidates = [after.checked_sub(1), Some(after)].into_iter().flatten();
    candidates
        .filter_map(|n| Some((*group.get(n)? as i64).wrapping_sub(y)))
        .min_by_key(|apart| apart.unsigned_abs())
}

/// Compares `thread` with `activity`; `segments` turn the trace's clock into the timeline's.
pub fn compare(
    thread: &MethodEvidence,
    activity: &ThreadActivity,
    segments: &[ClockMap],
    window: (u64, u64),
) -> Residuals {
    let groups = groups(activity);
    let changes = changes(thread, activity, &groups, segments);
    let segment_of =
        |record: u64| changes.partition_point(|first| *first <= record).min(segments.len().saturating_sub(1));
    let time = |record: u64, x: u64| segments.get(segment_of(record)).map_or(x, |map| map.map(x));
    let mut residuals = Residuals::default();
    let mut by_name: HashMap<u32, Vec<u64>> = HashMap::new();
    let mut drift = Drift::default();
    for edge in &thread.edges {
        let y = time(edge.record, edge.x);
        if y < window.0 || y > window.1 {
            continue;
        }
        let Some(group) = groups.get(&(edge.name, edge.begin)) else { continue };
        let found = nearest(group, (y as i64).wrapping_add(drift.now))
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
        let (from, to) = (time(gap.record - 1, gap.from), time(gap.record, gap.to));
        let moved = [from, to].map(|at| at.saturating_add_signed(drift.now));
        if let Some(on_cpu) = activity.on_cpu(moved[0], moved[1]) {
            residuals.cpu_time.push(on_cpu.abs_diff(gap.cpu));
        }
        if let Some((off, on)) = off_cpu_switches(gap, activity, moved) {
            let before = off.wrapping_sub(from) as i64;
            let after = on.wrapping_sub(to) as i64;
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
    for mut values in names.into_iter().map(|(_, v)| v).chain([curve]).filter(|v| v.len() >= MIN_COMPARISONS)
    {
        residuals.medians.extend(median(&mut values).map(|ns| (ns as f64).clamp(1e3, WINDOW_NS as f64)));
    }
    residuals.changes = changes;
    residuals
}

/// Of a stretch between two records how much may be more than time off the CPU, so that its ends tell something: ns.
const MAX_RUNNING_AROUND_GAP_NS: u64 = 100_000;

/// The switches off and onto the CPU that a stretch between two records stems from, if there is no doubt about it.
fn off_cpu_switches(gap: &OffCpuGap, activity: &ThreadActivity, [from, to]: [u64; 2]) -> Option<(u64, u64)> {
    let slack = WINDOW_NS as u64 / 8;
    let (off, on) = activity.longest_off_cpu(from.saturating_sub(slack), to.saturating_add(slack))?;
    let (long, rest) = (gap.to.saturating_sub(gap.from), on - off);
    // Its two times are cut to µs.
    (rest <= long + 2_000 && long - rest.min(long) <= MAX_RUNNING_AROUND_GAP_NS).then_some((off, on))
}

/// Follows clocks that run apart: a runtime that measured the counter's frequency in a millisecond is off by that.
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

/// At which record of the thread each segment but the first begins: where markers and edges are nearest on the whole, and
/// where the time on the CPU is the same.
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
        // A clock set back shows in the records themselves.
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

/// The record at which the next segment begins, by what both contain.
fn change(
    thread: &MethodEvidence,
    activity: &ThreadActivity,
    groups: &Groups,
    segments: [&ClockMap; 2],
    since: u64,
) -> Option<u64> {
    let marker = |edge: &NamedEdge, map: &ClockMap| {
        let y = map.map(edge.x) as i64;
        let group = groups.get(&(edge.name, edge.begin))?;
        Some(nearest(group, y).map_or(WINDOW_NS, |apart| apart.saturating_abs().min(WINDOW_NS)))
    };
    let off_cpu = |gap: &OffCpuGap, map: &ClockMap| {
        let on_cpu = activity.on_cpu(map.map(gap.from), map.map(gap.to));
        on_cpu.map_or(WINDOW_NS, |ns| (ns.abs_diff(gap.cpu) as i64).min(WINDOW_NS))
    };
    let gain = |cost: [Option<i64>; 2]| Some(cost[0]? - cost[1]?);
    let by_markers =
        thread.edges.iter().filter_map(|e| Some((e.record, e.record, gain(segments.map(|m| marker(e, m)))?)));
    let gaps = thread.gaps.iter().filter(|_| activity.has_switches());
    // What lies between two gaps has no gap of its own: it begins where the gap before ended.
    let mut ended = since;
    let by_gaps = gaps.filter_map(|gap| {
        let from = std::mem::replace(&mut ended, gap.record);
        Some((gap.record, from, gain(segments.map(|m| Some(off_cpu(gap, m))))?))
    });
    let mut items: Vec<(u64, u64, i64)> = by_markers.chain(by_gaps).filter(|(r, ..)| *r >= since).collect();
    items.sort_by_key(|(record, ..)| *record);
    if items.len() < MIN_COMPARISONS {
        return None;
    }
    // The sum over all before the change in the one segment, and from it on in the next: its least.
    let (mut sum, mut least, mut at) = (0, 0, 0);
    for (n, (_, _, gain)) in items.iter().enumerate() {
        sum += gain;
        if sum < least {
            (least, at) = (sum, n + 1);
        }
    }
    Some(items.get(at).map_or(thread.records, |(_, from, _)| *from))
}

/// The first record that is surely at `x` or later, in the trace's clock.
pub fn change_at(thread: &MethodEvidence, x: i64) -> u64 {
    let x = x.max(0) as u64;
    if thread.first >= x {
        return 0;
    }
    thread.gaps.iter().find(|g| g.to >= x).map_or(thread.records, |g| g.record)
}
