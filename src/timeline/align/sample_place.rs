//! Finds where samples lie on the timeline: by the clock that their file names, or by comparing the samples
//! with the recordings' context switches.
//!
//! A sample of a running thread can only lie where `sched_switch` says that the thread had the CPU, and a
//! sample of a switch only at this switch. So each clock that may be that of the samples is tried, as for
//! method traces; and where no clock fits, the offset at which the samples fit is looked for.

use std::ops::RangeInclusive;

use super::AlignError;
use super::candidates::MAX_OUTSIDE_RECORDING_NS;
use super::clock_map::{self, ClockMap, ReferenceClock};
use super::placement::{Finding, MergeOptions};
use super::reason::{NoSamplePlace, PlaceBasis, SamplesInside, Trial};
use super::running_times::RunningTimes;
use super::sample_evidence::{PlacedBySwitches, SampleEvidence};
use super::sample_offset::{self, InsideCount, SWITCH_TOLERANCE_NS};
use crate::clock::{Clock, Timestamp};
use crate::formats::samples::SampleRecording;
use crate::statistics::median;
use crate::timeline::summary::Verdict;

/// The least number of compared samples that proves or disproves a place.
const MIN_SAMPLES: u64 = 32;
/// The least share of compared samples that lie inside, for a place to be proven.
const MIN_SHARE_INSIDE: f64 = 0.95;
/// Samples fit a place if so many times fewer of them miss it than miss every other place.
const MIN_RATIO: f64 = 3.0;
/// An offset that is found is used if it is known at least this well, ns to both sides.
const MAX_WITHIN_NS: u64 = 500_000;
/// Below this share of samples inside a stated clock is contradicted, unless the samples fit it better than
/// other places.
const CONTRADICTED_SHARE: f64 = 0.5;
/// Places that are certainly wrong, as distances from the place that is checked, ns.
const CONTROL_OFFSETS_NS: [i64; 6] =
    [-53_939_171, -13_771_313, -7_313_737, 5_171_933, 17_393_911, 41_939_393];
/// Places closer than this are one, ns.
const SAME_NS: u64 = 100_000;

/// The place of samples on the timeline.
#[derive(Debug, Clone, Default)]
pub struct SamplePlacement {
    /// From the samples' clock to the timeline's.
    pub map: ClockMap,
    /// How the place was found.
    pub finding: Finding,
}

/// A place that was tried.
#[derive(Debug, Clone)]
struct TriedPlace {
    clock: Clock,
    map: ClockMap,
    count: InsideCount,
    /// How many times more samples miss the next place than this one.
    ratio: f64,
    within_ns: Option<u64>,
}

impl TriedPlace {
    fn is_compared(&self) -> bool {
        self.count.compared >= MIN_SAMPLES
    }

    fn share(&self) -> f64 {
        self.count.inside as f64 / self.count.compared.max(1) as f64
    }

    fn fits(&self) -> bool {
        self.is_compared() && self.share() >= MIN_SHARE_INSIDE && self.ratio >= MIN_RATIO
    }

    fn trial(&self) -> Trial {
        let TriedPlace { clock, count, .. } = self;
        Trial::SamplePlace { clock: *clock, inside: count.inside, compared: count.compared }
    }

    fn inside(&self) -> SamplesInside {
        SamplesInside {
            inside: self.count.inside,
            compared: self.count.compared,
            times_better: (self.ratio >= 1.0).then_some(self.ratio as u64),
            within_ns: self.within_ns,
        }
    }
}

/// The samples of one file, and the recordings with which they are compared.
pub struct SampleComparison<'s> {
    /// The path as given.
    pub name: &'s str,
    /// The opened file.
    pub recording: &'s dyn SampleRecording,
    /// Its samples.
    pub evidence: &'s SampleEvidence,
    /// The context switches of all recordings; `None` where there is no recording.
    pub running: Option<&'s RunningTimes>,
    /// The timeline's clock.
    pub reference: &'s ReferenceClock,
}

/// Places samples on the timeline.
pub fn place(compared: &SampleComparison<'_>, options: &MergeOptions) -> Result<SamplePlacement, AlignError> {
    let clock = options.clock.unwrap_or_else(|| compared.recording.clock());
    if let Some(offset) = options.offset_ns {
        return Ok(
            compared.settled(compared.tried(clock, ClockMap::offset(offset)), PlaceBasis::OffsetOption)
        );
    }
    let Some((first, last)) = compared.running.and_then(RunningTimes::extent) else {
        return Ok(compared.without_recording(clock));
    };
    if compared.evidence.extent.is_none() {
        return Err(AlignError::SamplesWithoutTimes { name: compared.name.to_owned() });
    }
    let mut trials = Vec::new();
    match compared.choose(clock, options, &(first..=last), &mut trials) {
        Ok((tried, basis)) => {
            let mut placement = compared.settled(tried, basis);
            placement.finding.trials = trials;
            Ok(placement)
        }
        Err(why) => Err(AlignError::UnplacedSamples { name: compared.name.to_owned(), why, trials }),
    }
}

impl SampleComparison<'_> {
    /// The place and the reason; `clock` is that which the user or the file names.
    fn choose(
        &self,
        clock: Clock,
        options: &MergeOptions,
        extent: &RangeInclusive<Timestamp>,
        trials: &mut Vec<Trial>,
    ) -> Result<(TriedPlace, PlaceBasis), NoSamplePlace> {
        let mut tried: Vec<TriedPlace> = Vec::new();
        for (clock, map) in self.maps(clock) {
            let place = self.tried(clock, map);
            if self.is_outside(&place.map, extent) && options.clock.is_none() {
                trials.push(Trial::SamplesOutside(clock));
                continue;
            }
            trials.push(place.trial());
            tried.push(place);
        }
        if options.clock.is_some() {
            let place = tried.into_iter().next().ok_or(NoSamplePlace::NoSnapshot)?;
            return Ok((place, PlaceBasis::ClockOption));
        }
        let is_stated = !matches!(clock, Clock::Unknown | Clock::TracePerf);
        let begins = self.evidence.extent.map_or(Timestamp::MIN, |(begins, _)| begins);
        if let Some(place) = best_of(&tried, begins) {
            let inside = place.inside();
            return Ok((place, PlaceBasis::SamplesFit { has_clock: true, inside }));
        }
        let contradicts = |place: &TriedPlace| {
            place.is_compared() && place.share() < CONTRADICTED_SHARE && place.ratio < MIN_RATIO
        };
        if is_stated && !tried.is_empty() {
            let place = tried.swap_remove(0);
            if contradicts(&place) {
                return Err(NoSamplePlace::Contradicted(
                    place.clock,
                    place.count.inside,
                    place.count.compared,
                ));
            }
            let to = self.reference.clock;
            let from = place.clock;
            let is_of_one_boot = place.is_compared();
            let basis = match (from == to, is_of_one_boot) {
                (true, true) => PlaceBasis::TimelineClock(to),
                (true, false) => PlaceBasis::SameClockName(to),
                (false, _) => PlaceBasis::Snapshots { from, to, is_of_one_boot, is_taken_for_mono: false },
            };
            return Ok((place, basis));
        }
        // simpleperf's report does not name its clock, which is MONOTONIC unless its user has asked for
        // another.
        let usual = tried.into_iter().find(|place| place.clock == Clock::Monotonic);
        match (self.searched(clock, trials), usual) {
            (Err(NoSamplePlace::NothingToCompare), Some(place)) => {
                Ok((place, PlaceBasis::UsualClock(Clock::Monotonic)))
            }
            (result, _) => result,
        }
    }

    /// The offset at which the samples fit.
    fn searched(
        &self,
        clock: Clock,
        trials: &mut Vec<Trial>,
    ) -> Result<(TriedPlace, PlaceBasis), NoSamplePlace> {
        let samples = &self.evidence.samples;
        let running = self.running.ok_or(NoSamplePlace::NothingToCompare)?;
        let found = sample_offset::find(samples, running).ok_or(NoSamplePlace::NothingToCompare)?;
        let count = self.count(&found.map, 0);
        let ratio = found.runner_up.miss_rate() / count.miss_rate();
        let place = TriedPlace { clock, map: found.map, count, ratio, within_ns: Some(found.within_ns) };
        trials.push(place.trial());
        let InsideCount { inside, compared } = count;
        if !place.is_compared() {
            return Err(NoSamplePlace::TooFew { compared });
        }
        if place.share() < MIN_SHARE_INSIDE {
            return Err(NoSamplePlace::NoneFits { inside, compared });
        }
        if place.ratio < MIN_RATIO {
            let other = found.runner_up;
            return Err(NoSamplePlace::SeveralFit {
                inside,
                compared,
                other: other.inside,
                of: other.compared,
            });
        }
        if found.within_ns > MAX_WITHIN_NS {
            return Err(NoSamplePlace::Loose { within_ns: found.within_ns });
        }
        let inside = place.inside();
        Ok((place, PlaceBasis::SamplesFit { has_clock: false, inside }))
    }

    /// The maps of the clocks that may be that of the samples, to the timeline's.
    fn maps(&self, clock: Clock) -> Vec<(Clock, ClockMap)> {
        const SYSTEM: [Clock; 4] = [Clock::Monotonic, Clock::Boottime, Clock::MonotonicRaw, Clock::Realtime];
        const KERNEL: [Clock; 3] = [Clock::TracePerf, Clock::TraceLocal, Clock::TraceGlobal];
        let to = self.reference.clock;
        let snapshots = &self.reference.snapshots;
        let map = |from: Clock| clock_map::joined(&clock_map::segments(snapshots, from, to));
        let clocks: Vec<Clock> = match clock {
            Clock::Unknown => SYSTEM.into_iter().chain([Clock::TracePerf]).collect(),
            clock => vec![clock],
        };
        let mut maps: Vec<(Clock, ClockMap)> =
            clocks.iter().filter_map(|clock| Some((*clock, map(*clock)?))).collect();
        let may_be_perf = matches!(clock, Clock::Unknown | Clock::TracePerf);
        if may_be_perf && (KERNEL.contains(&to) || to == Clock::Unknown) {
            // The clock of perf events is that of the scheduler, as these are; or nobody knows which this is.
            maps.push((clock, ClockMap::default()));
        }
        if maps.is_empty()
            && let Some((realtime, own)) = self.recording.clock_pair()
            && let Some(map) = map(Clock::Realtime)
        {
            let offset = map.map(realtime).wrapping_since(own);
            maps.push((clock, ClockMap::offset(offset)));
        }
        maps
    }

    fn is_outside(&self, map: &ClockMap, extent: &RangeInclusive<Timestamp>) -> bool {
        let Some((begins, ends)) = self.evidence.extent else { return false };
        map.map(begins) > extent.end().saturating_add(MAX_OUTSIDE_RECORDING_NS)
            || map.map(ends).saturating_add(MAX_OUTSIDE_RECORDING_NS) < *extent.start()
    }

    fn tried(&self, clock: Clock, map: ClockMap) -> TriedPlace {
        let count = self.count(&map, 0);
        let rate = |offset: &i64| self.count(&map, *offset).miss_rate();
        let least = CONTROL_OFFSETS_NS.iter().map(rate).fold(1.0, f64::min);
        TriedPlace { clock, ratio: least / count.miss_rate(), count, map, within_ns: None }
    }

    /// The distance of a sample at `ts` of the timeline from where it may lie, ns; `None` where this is not
    /// known.
    fn distance(&self, sample: &PlacedBySwitches, ts: Timestamp) -> Option<u64> {
        let running = self.running?;
        let (first, last) = running.extent()?;
        if ts < first || ts > last {
            return None;
        }
        if !sample.is_off_cpu {
            return running.distance(sample.tid, sample.cpu, ts);
        }
        let apart = running.distance_to_end(sample.tid, sample.cpu, ts)?;
        Some(if apart <= SWITCH_TOLERANCE_NS { 0 } else { apart })
    }

    fn distances(&self, map: &ClockMap, moved: i64) -> impl Iterator<Item = u64> {
        let at = move |sample: &PlacedBySwitches| map.map(sample.time).saturating_add_signed(moved);
        self.evidence.samples.iter().filter_map(move |sample| self.distance(sample, at(sample)))
    }

    fn count(&self, map: &ClockMap, moved: i64) -> InsideCount {
        let mut count = InsideCount::default();
        for distance in self.distances(map, moved) {
            count.compared += 1;
            count.inside += u64::from(distance == 0);
        }
        count
    }

    /// The placement at a place that is chosen.
    fn settled(&self, place: TriedPlace, basis: PlaceBasis) -> SamplePlacement {
        let mut distances: Vec<u64> = self.distances(&place.map, 0).collect();
        distances.sort_unstable();
        let p99 = distances.get((distances.len() * 99 / 100).min(distances.len().saturating_sub(1))).copied();
        let verdict = match basis {
            _ if place.fits() => Verdict::Proven,
            PlaceBasis::TimelineClock(_) | PlaceBasis::Snapshots { is_of_one_boot: true, .. } => {
                Verdict::Consistent
            }
            _ if place.is_compared() && place.share() >= MIN_SHARE_INSIDE => Verdict::Consistent,
            _ => Verdict::Assumed,
        };
        let median = median(distances.iter().copied());
        let finding = Finding {
            clock: place.clock,
            verdict,
            basis,
            error_ns: place.within_ns,
            median,
            p99,
            trials: Vec::new(),
        };
        SamplePlacement { map: place.map, finding }
    }

    fn without_recording(&self, clock: Clock) -> SamplePlacement {
        let segments = clock_map::segments(&self.reference.snapshots, clock, self.reference.clock);
        let basis = PlaceBasis::NoRecording { is_cpu_time: false };
        let finding = Finding { clock, basis, ..Finding::default() };
        SamplePlacement { map: clock_map::joined(&segments).unwrap_or_default(), finding }
    }
}

/// The place that fits clearly best: no other one that fits is elsewhere and about as good. The samples begin
/// at `begins` of their clock.
fn best_of(tried: &[TriedPlace], begins: Timestamp) -> Option<TriedPlace> {
    let fitting = || tried.iter().filter(|place| place.fits());
    let rate = |place: &&TriedPlace| place.count.miss_rate();
    let best = fitting().min_by(|a, b| rate(a).total_cmp(&rate(b)))?;
    let at = |place: &TriedPlace| place.map.map(begins);
    let is_other = |place: &&TriedPlace| at(place).abs_diff(at(best)) > SAME_NS;
    let is_clear = fitting().filter(is_other).all(|other| rate(&other) / rate(&best) >= MIN_RATIO);
    is_clear.then(|| best.clone())
}
