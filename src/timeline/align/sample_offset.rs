//! Finds the offset of samples whose clock nobody names: the offset at which most of them lie where their
//! thread had a CPU.
//!
//! Each sample and each stretch of its thread allow a range of offsets. First the ranges of chosen samples
//! are counted over the whole range that is possible; then those of all samples near the best offset, and
//! then of one piece of time after the other, which follows two clocks that drift apart.

use std::ops::RangeInclusive;

use rustc_hash::FxHashMap;

use super::clock_map::ClockMap;
use super::running_times::{CpuStretch, RunningTimes};
use super::sample_evidence::PlacedBySwitches;
use crate::clock::Timestamp;
use crate::ids::Tid;

/// A sample of a switch lies at the end of a stretch, give or take this much, ns: both are taken on the way
/// through the scheduler.
pub const SWITCH_TOLERANCE_NS: u64 = 20_000;
/// The most pairs of a sample and a stretch that are counted over the whole range.
const MAX_PAIRS: usize = 16 << 20;
/// The most steps into which the range of possible offsets is divided, and the least width of one, ns.
const MAX_STEPS: u64 = 2 << 20;
const MIN_STEP_NS: u64 = 20_000;
/// Offsets closer than this to the best one fit nearly as well, because threads run for a while: they are no
/// other places. ns.
const SAME_PLACE_NS: u64 = 5_000_000;
/// At offsets where fewer samples than this share of the most lie in the recordings, nothing is decided.
const MIN_SHARE_COMPARED: f64 = 0.1;
/// Two clocks drift apart by less than this within a piece of time, ns.
const DRIFT_NS: i64 = 200_000;
/// The number of samples of a piece of time whose offset is found by itself.
const SAMPLES_PER_PIECE: usize = 1_024;
/// The offset of a piece is used where it is known at least this well, ns to both sides.
const MAX_PIECE_WIDTH_NS: i64 = 20_000;

/// Counts of samples that were compared with the times of their threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InsideCount {
    /// Samples in the recordings, of threads whose times on a CPU are known.
    pub compared: u64,
    /// Samples among them that lie where their thread had a CPU, or at the switch at which it lost it.
    pub inside: u64,
}

impl InsideCount {
    /// Adds the counts of other samples.
    pub fn add(&mut self, other: InsideCount) {
        self.compared += other.compared;
        self.inside += other.inside;
    }

    /// The share of samples that lie elsewhere. It is the higher the fewer samples there are, so that a few
    /// samples that fit by chance prove nothing.
    pub fn miss_rate(&self) -> f64 {
        const UNSURE: f64 = 4.0;
        ((self.compared - self.inside) as f64 + UNSURE) / (self.compared as f64 + UNSURE)
    }
}

/// An offset that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundOffset {
    /// From the samples' clock to the timeline's.
    pub map: ClockMap,
    /// The offset may be wrong by as much, ns.
    pub within_ns: u64,
    /// The counts of the best offset that is another place.
    pub runner_up: InsideCount,
}

/// The range of offsets at which a sample lies in a stretch, ns.
fn allowed(sample: &PlacedBySwitches, stretch: &CpuStretch) -> (i64, i64) {
    let tolerance = SWITCH_TOLERANCE_NS as i64;
    let apart = |ts: Timestamp| ts.wrapping_since(sample.time);
    let end = apart(stretch.to);
    if sample.is_off_cpu {
        return (end.saturating_sub(tolerance), end.saturating_add(tolerance));
    }
    (apart(stretch.from), end)
}

fn is_on_its_cpu(sample: &PlacedBySwitches, stretch: &CpuStretch) -> bool {
    sample.cpu.is_none_or(|cpu| cpu == stretch.cpu)
}

/// Finds the offset of `samples`; `None` where there is nothing to compare.
pub fn find(samples: &[PlacedBySwitches], running: &RunningTimes) -> Option<FoundOffset> {
    let known: Vec<PlacedBySwitches> =
        samples.iter().filter(|sample| !running.of(sample.tid).is_empty()).copied().collect();
    let survey = OffsetSurvey::new(&known, running)?;
    let (best, runner_up) = survey.best()?;
    let step = survey.step as i64;
    let at = survey.offset(best);
    let whole = plateau(&known, running, at.saturating_sub(step), at.saturating_add(step.saturating_mul(2)))?;
    let (map, within_ns) = followed(known, running, whole);
    Some(FoundOffset { map, within_ns, runner_up })
}

/// How many samples each offset allows, over the whole range in which samples and recordings overlap.
struct OffsetSurvey {
    /// The least offset, ns.
    least: i64,
    step: u64,
    /// By offset: the counts.
    counts: Vec<InsideCount>,
}

impl OffsetSurvey {
    fn new(samples: &[PlacedBySwitches], running: &RunningTimes) -> Option<OffsetSurvey> {
        let (first, last) = running.extent()?;
        let earliest = samples.iter().map(|sample| sample.time).min()?.0 as i64;
        let latest = samples.iter().map(|sample| sample.time).max()?.0 as i64;
        let least = (first.0 as i64).checked_sub(latest)?;
        let most = (last.0 as i64).checked_sub(earliest)?;
        let range = u64::try_from(most.checked_sub(least)?).ok()?;
        let step = (range / MAX_STEPS).max(MIN_STEP_NS);
        let steps = (range / step + 2) as usize;
        // Differences from one offset to the next, first; then sums.
        let mut compared = vec![0_i32; steps + 1];
        let mut inside = vec![0_i32; steps + 1];
        let index = |offset: i64| (offset.clamp(least, most).wrapping_sub(least) as u64 / step) as usize;
        for (sample, stretches) in chosen(samples, running) {
            let apart = |ts: Timestamp| ts.wrapping_since(sample.time);
            compared[index(apart(first))] += 1;
            compared[index(apart(last)) + 1] -= 1;
            // A step counts once for a sample, though two short stretches may both reach into it.
            let mut next = 0;
            for stretch in stretches.iter().filter(|stretch| is_on_its_cpu(sample, stretch)) {
                let (from, to) = allowed(sample, stretch);
                let from = index(from).max(next);
                let to = index(to) + 1;
                if from < to {
                    inside[from] += 1;
                    inside[to] -= 1;
                    next = to;
                }
            }
        }
        let mut sum = [0_i64; 2];
        let counts = compared.iter().zip(&inside).map(|(compared, inside)| {
            sum[0] += i64::from(*compared);
            sum[1] += i64::from(*inside);
            InsideCount { compared: sum[0] as u64, inside: sum[1].min(sum[0]) as u64 }
        });
        Some(OffsetSurvey { least, step, counts: counts.take(steps).collect() })
    }

    fn offset(&self, index: usize) -> i64 {
        self.least.wrapping_add((index as u64).wrapping_mul(self.step) as i64)
    }

    /// The offset at which most samples fit, and the counts of the best one that is another place.
    fn best(&self) -> Option<(usize, InsideCount)> {
        let most = self.counts.iter().map(|count| count.compared).max()?;
        let is_enough = |count: &InsideCount| count.compared as f64 >= most as f64 * MIN_SHARE_COMPARED;
        let candidates = || self.counts.iter().enumerate().filter(|(_, count)| is_enough(count));
        let rate = |(_, count): &(usize, &InsideCount)| count.miss_rate();
        let (best, _) = candidates().min_by(|a, b| rate(a).total_cmp(&rate(b)))?;
        let apart = (SAME_PLACE_NS / self.step).max(2) as usize;
        let others = candidates().filter(|(index, _)| index.abs_diff(best) > apart);
        let runner_up = others.min_by(|a, b| rate(a).total_cmp(&rate(b)));
        Some((best, runner_up.map_or_else(InsideCount::default, |(_, count)| *count)))
    }
}

/// Samples with the stretches of their threads: so many that the pairs stay within [`MAX_PAIRS`], evenly
/// chosen of each thread.
fn chosen<'s>(
    samples: &'s [PlacedBySwitches],
    running: &'s RunningTimes,
) -> impl Iterator<Item = (&'s PlacedBySwitches, &'s [CpuStretch])> {
    let mut by_thread: FxHashMap<Tid, Vec<&PlacedBySwitches>> = FxHashMap::default();
    for sample in samples {
        by_thread.entry(sample.tid).or_default().push(sample);
    }
    let pairs_each = MAX_PAIRS / by_thread.len().max(1);
    by_thread.into_iter().flat_map(move |(tid, samples)| {
        let stretches = running.of(tid);
        let count = (pairs_each / stretches.len().max(1)).max(1);
        let every = samples.len().div_ceil(count);
        samples.into_iter().step_by(every.max(1)).map(move |sample| (sample, stretches))
    })
}

/// The offsets from `least` to `most` at which the most samples fit: the least and the greatest of them.
fn plateau(
    samples: &[PlacedBySwitches],
    running: &RunningTimes,
    least: i64,
    most: i64,
) -> Option<RangeInclusive<i64>> {
    let mut edges: Vec<(i64, i32)> = Vec::new();
    for sample in samples {
        let stretches = running.of(sample.tid);
        let earliest = Timestamp((sample.time.0 as i64).wrapping_add(least).max(0) as u64);
        let reach = SWITCH_TOLERANCE_NS;
        // Of stretches that do not overlap, ends are in the order of begins.
        let first = stretches.partition_point(|stretch| stretch.to.saturating_add(reach) < earliest);
        for stretch in &stretches[first..] {
            let (from, to) = allowed(sample, stretch);
            if from > most {
                break;
            }
            let from = from.max(least);
            let to = to.min(most);
            if from <= to && is_on_its_cpu(sample, stretch) {
                edges.extend([(from, 1), (to.saturating_add(1), -1)]);
            }
        }
    }
    edges.sort_unstable();
    let mut best = (0, 0, 0);
    let mut inside = 0;
    for (at, edge) in edges.iter().enumerate() {
        inside += edge.1;
        let next = edges.get(at + 1).map_or(edge.0, |next| next.0);
        if next == edge.0 {
            continue;
        }
        if inside > best.0 {
            best = (inside, edge.0, next - 1);
        } else if inside == best.0 {
            best.2 = next - 1;
        }
    }
    (best.0 > 0).then_some(best.1..=best.2)
}

/// The map through the offsets of pieces of time, around the offset of the whole. Where no piece tells its
/// own offset well, that of the whole holds. Also returns how far an offset may be wrong, ns.
fn followed(
    mut samples: Vec<PlacedBySwitches>,
    running: &RunningTimes,
    whole: RangeInclusive<i64>,
) -> (ClockMap, u64) {
    let middle = |range: &RangeInclusive<i64>| range.start().midpoint(*range.end());
    let half = |range: &RangeInclusive<i64>| range.end().saturating_sub(*range.start()) / 2;
    samples.sort_unstable_by_key(|sample| sample.time);
    let pieces: Vec<&[PlacedBySwitches]> = samples.chunks(SAMPLES_PER_PIECE).collect();
    let mut found: Vec<(i64, i64, i64)> = Vec::new();
    // The whole fits best somewhere in the middle, from where its neighbours are followed.
    let start = pieces.len() / 2;
    let mut follow = |pieces: &mut dyn Iterator<Item = &&[PlacedBySwitches]>| {
        let mut near = middle(&whole);
        for piece in pieces {
            let [least, most] = [near.saturating_sub(DRIFT_NS), near.saturating_add(DRIFT_NS)];
            let Some(range) = plateau(piece, running, least, most) else { continue };
            if half(&range) <= MAX_PIECE_WIDTH_NS {
                near = middle(&range);
                found.push((piece[piece.len() / 2].time.0 as i64, near, half(&range)));
            }
        }
    };
    follow(&mut pieces[start..].iter());
    follow(&mut pieces[..start].iter().rev());
    found.sort_unstable();
    found.dedup_by_key(|(at, ..)| *at);
    let Some(within) = found.iter().map(|(.., half)| *half).max() else {
        return (ClockMap::offset(middle(&whole)), half(&whole) as u64);
    };
    let points: Vec<(i64, i64)> =
        found.iter().map(|(at, offset, _)| (*at, at.wrapping_add(*offset))).collect();
    let grows = points.windows(2).all(|pair| pair[0].1 < pair[1].1);
    if grows {
        return (ClockMap::through(points), within as u64);
    }
    (ClockMap::offset(middle(&whole)), half(&whole) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Cpu;

    /// Threads that run for irregular times on two CPUs within `seconds`, and a sample in each second
    /// stretch. The samples' clock is 5 s behind, and runs fast by `ppm` parts of a million.
    fn sampled(seconds: u64, ppm: u64) -> (Vec<PlacedBySwitches>, RunningTimes) {
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = |limit: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % limit
        };
        let mut samples = Vec::new();
        let mut running = Vec::new();
        for cpu in [Cpu(0), Cpu(1)] {
            let mut from = 20_000_000_000;
            while from < (20 + seconds) * 1_000_000_000 {
                let to = from + 50_000 + next(3_000_000);
                let tid = Tid(10 + cpu.0 as i32 * 3 + next(3) as i32);
                running.push((tid, CpuStretch { from: Timestamp(from), to: Timestamp(to), cpu }));
                if next(2) == 0 {
                    let at = from + next(to - from) - 5_000_000_000;
                    let time = at + at / 1_000_000 * ppm;
                    samples.push(PlacedBySwitches {
                        time: Timestamp(time),
                        tid,
                        cpu: Some(cpu),
                        is_off_cpu: false,
                    });
                }
                from = to + next(1_000_000);
            }
        }
        (samples, RunningTimes::of_stretches(&running))
    }

    #[test]
    fn an_offset_is_found_as_exactly_as_is_said() {
        let (samples, running) = sampled(5, 0);
        let found = find(&samples, &running).unwrap();
        let apart = found.map.offset_at(Timestamp(16_000_000_000)) - 5_000_000_000;
        assert!(apart.unsigned_abs() <= found.within_ns && found.within_ns < 20_000, "{apart} {found:?}");
        assert!(found.runner_up.miss_rate() > 0.3, "{found:?}");
    }

    #[test]
    fn a_clock_that_runs_fast_is_followed() {
        let (samples, running) = sampled(12, 20);
        let found = find(&samples, &running).unwrap();
        for sample in &samples {
            let at = found.map.map(sample.time);
            // 20 of a million less, and 5 s more.
            let truth = sample.time - sample.time.0 / 1_000_020 * 20 + 5_000_000_000;
            assert!(at.abs_diff(truth) < 40_000, "{} ns at {}", at.abs_diff(truth), sample.time);
        }
    }

    #[test]
    fn samples_of_switches_lie_at_the_ends_of_stretches() {
        let (_, running) = sampled(5, 0);
        let tid = Tid(11);
        let ends = running.of(tid).iter().map(|stretch| stretch.to + 3_000 - 5_000_000_000);
        let sample = |time| PlacedBySwitches { time, tid, cpu: None, is_off_cpu: true };
        let samples: Vec<PlacedBySwitches> = ends.map(sample).collect();
        let found = find(&samples, &running).unwrap();
        assert!((found.map.offset_at(samples[0].time) - 5_000_000_000).abs() <= 20_000, "{found:?}");
    }

    #[test]
    fn without_a_common_thread_nothing_is_found() {
        let (samples, _) = sampled(1, 0);
        assert_eq!(find(&samples, &RunningTimes::of_stretches(&[])), None);
        assert_eq!(find(&[], &sampled(1, 0).1), None);
    }
}
