//! The places that a method trace may have on the timeline: one for each clock that may be that of its
//! start; and the choice among them. A trace that cannot be placed by clock snapshots is placed at the
//! offset at which calls and markers of the same name coincide most often.

use super::clock_map::{self, ClockMap, ReferenceClock};
use super::identity::Evidence;
use super::kernel_evidence::{KernelEvidence, ThreadActivity};
use super::method_evidence::{MethodEvidence, NamedEdge};
use super::placement::MergeOptions;
use super::reason::{ComparedAmount, NoPlace, PlaceBasis, PlaceFit, Trial};
use super::residuals::{self, Residuals, WINDOW_NS, correct, geometric_mean};
use super::running_fit::{self, MIN_RATIO, PlaceOfRecords, RunningFit};
use super::runtime_clock::{RuntimeClock, runtime_clock};
use crate::clock::{Clock, Timestamp};
use crate::ids::Tid;
use crate::statistics::median;

/// How far a trace may begin after the recording's end, or end before the recording's begin, and still be
/// tried: ns.
pub const MAX_OUTSIDE_RECORDING_NS: u64 = 1_000_000_000;
/// How exact a trace's start is, ns: the time is cut to µs, and a counter's reading is cut to its tick.
/// Candidates closer than this, and than the snapshots' own error, count as one.
pub const START_RESOLUTION_NS: u64 = 3_000;
/// Candidates closer than this are reported as ambiguous instead of refused: ns. 99 % of all calls may be
/// off by as much.
const AMBIGUITY_NS: u64 = 100_000;
/// The least ratio of the residual at places that are certainly wrong to the residual at the candidate.
/// Below this ratio the candidate fits by chance only.
const CHANCE_RATIO: f64 = 2.0;
/// Places that are certainly wrong, as distances from the candidate, ns. None is a multiple of a usual
/// period.
const CONTROL_OFFSETS_NS: [i64; 6] =
    [-53_939_171, -13_771_313, -7_313_737, 5_171_933, 17_393_911, 41_939_393];
/// The limits on the edges, and on the stretches off the CPU, of one thread that are compared at
/// [`CONTROL_OFFSETS_NS`].
const MAX_SAMPLED_PER_THREAD: usize = 2_048;
/// The least ratio of the second-best candidate's residual to the best one's, for the best one to be
/// chosen.
const MIN_RATIO_TO_RUNNER_UP: f64 = 3.0;
/// If a candidate has a residual up to this, ns, no further candidates are looked for.
const GOOD_RESIDUAL_NS: f64 = 30_000.0;
/// ART's markers of starts say something if together they are at most one part in so many of the
/// recordings.
const MAX_CHANCE_OF_START: u64 = 100;
/// A candidate with a larger residual than this, ns, is refused.
pub const MAX_RESIDUAL_NS: f64 = 500_000.0;

/// A place on the timeline that was tried.
pub struct Candidate {
    /// The clock of the trace's start that this place assumes.
    pub clock: Clock,
    /// From the trace's clock to the timeline's.
    pub segments: Vec<ClockMap>,
    /// Where the trace begins at this place, in the timeline's clock.
    begins: Timestamp,
    /// Where the trace's last record lies at this place, in the timeline's clock.
    ends: Timestamp,
    /// For each thread of the trace, the residuals with the kernel thread that fits best.
    pub fits: Vec<Option<Residuals>>,
    /// Geometric mean of the residuals, ns; `None` where there is nothing to compare, or where the
    /// residuals are as small at places that are certainly wrong.
    pub residual_ns: Option<f64>,
    /// The records of the trace, compared with the threads' times on a CPU.
    pub running: RunningFit,
    /// Some of the trace lies between the first and the last event of the recordings.
    is_in_recording: bool,
    /// A marker of ART lies around the begin of the trace: all threads were suspended for it.
    starts_in_marker: bool,
    /// The map comes from snapshots of this clock; otherwise markers alone led to the place.
    pub is_from_snapshots: bool,
    /// Both files hold something to compare, but not at the same time.
    contradicted: bool,
    /// Nothing proves this place: markers come so often that they would fit as well anywhere, or another
    /// place is as good.
    pub doubtful: bool,
}

/// Every place that the trace may have: one for each clock that snapshots tie to the recording. Also
/// returns the clocks that cannot be tried and cannot be ruled out either.
pub fn candidates(
    evidence: &Evidence<'_, '_>,
    reference: &ReferenceClock,
    options: &MergeOptions,
    trials: &mut Vec<Trial>,
) -> (Vec<Candidate>, Vec<Clock>) {
    let start = Timestamp(evidence.trace.header().start_ns());
    let mut places: Vec<(Clock, Vec<ClockMap>)> = Vec::new();
    let mut untried = Vec::new();
    if let Some(offset) = options.offset_ns {
        places.push((options.clock.unwrap_or(Clock::Unknown), vec![ClockMap::offset(offset)]));
    } else {
        let given: Vec<Clock> = options.clock.into_iter().collect();
        let stated = evidence.trace.header().start_clock;
        let all = stated.map_or(vec![Clock::Monotonic, Clock::Realtime, Clock::Counter], |clock| vec![clock]);
        for clock in if given.is_empty() { &all } else { &given } {
            let segments = clock_map::segments(&reference.snapshots, *clock, reference.clock);
            if segments.is_empty() {
                trials.push(Trial::NoSnapshot(*clock));
            }
            let Some(begins) = segments.first().map(|map| map.map(start)) else { continue };
            let rough = *clock == Clock::Counter && reference.snapshots.counter_hz.is_none();
            let slack = MAX_OUTSIDE_RECORDING_NS + if rough { start.0 / 100 } else { 0 };
            let within = segments.iter().any(|map| evidence.is_within(map.map(start), slack));
            if within && rough {
                trials.push(Trial::RoughFrequency(*clock));
                untried.push(*clock);
            } else if within || !given.is_empty() {
                places.push((*clock, segments));
            } else {
                let first = evidence.kernel.first;
                let last = evidence.kernel.last;
                trials.push(Trial::OutsideRecording { clock: *clock, begins, first, last });
            }
        }
    }
    let mut tried: Vec<_> =
        places.into_iter().map(|(clock, segments)| evidence.candidate(clock, segments, true)).collect();
    let fits_well = |c: &Candidate| c.residual_ns.is_some_and(|ns| ns <= GOOD_RESIDUAL_NS);
    if options.offset_ns.is_none() && !tried.iter().any(fits_well) {
        // No clock's snapshots give a place that fits well, so markers and methods are compared at every
        // offset.
        let found = most_frequent_offset(&evidence.threads, &evidence.candidate_tids, evidence.kernel);
        let clock = |map: &ClockMap| evidence.roughly(map, reference, options);
        tried.extend(found.and_then(|map| Some(evidence.candidate(clock(&map)?, vec![map], false))));
    }
    trials.extend(tried.iter().map(Candidate::trial));
    (tried, untried)
}

/// The candidate that is chosen, and why.
pub struct ChosenPlace {
    pub candidate: Candidate,
    pub basis: PlaceBasis,
}

/// Chooses the candidate that fits clearly best. `untried` are clocks that cannot be tried and cannot be
/// ruled out; candidates no further apart than `same` ns count as one.
pub fn choose(
    mut candidates: Vec<Candidate>,
    untried: &[Clock],
    same: u64,
    options: &MergeOptions,
    runtime: RuntimeClock,
    trials: &mut Vec<Trial>,
) -> Result<ChosenPlace, NoPlace> {
    if options.offset_ns.is_some() || options.clock.is_some() {
        let best = candidates.into_iter().min_by(|a, b| a.order().total_cmp(&b.order()));
        let is_offset = options.offset_ns.is_some();
        let basis = if is_offset { PlaceBasis::OffsetOption } else { PlaceBasis::ClockOption };
        return best.map(|candidate| ChosenPlace { candidate, basis }).ok_or(NoPlace::NoSnapshot);
    }
    candidates.sort_by(|a, b| a.order().total_cmp(&b.order()));
    reject_by_running(&mut candidates);
    match choose_by_residuals(&candidates, untried, same, trials) {
        Ok((index, is_doubtful, basis)) => {
            let mut candidate = candidates.swap_remove(index);
            candidate.doubtful |= is_doubtful;
            Ok(ChosenPlace { candidate, basis })
        }
        Err(why) => choose_by_runtime(candidates, untried, runtime).ok_or(why),
    }
}

/// Leaves out the places at which clearly more records lie where their threads did not run than at the best
/// one.
fn reject_by_running(candidates: &mut Vec<Candidate>) {
    let rate = |c: &Candidate| c.running.here.miss_rate();
    let proven = candidates.iter().filter(|c| c.running.proves());
    let Some(best) = proven.min_by(|a, b| rate(a).total_cmp(&rate(b))) else { return };
    let limit = rate(best) * MIN_RATIO;
    let keep: Vec<bool> = candidates
        .iter()
        .map(|c| c.distance(best) <= AMBIGUITY_NS || (c.running.is_compared() && rate(c) < limit))
        .collect();
    let mut keep = keep.into_iter();
    candidates.retain(|_| keep.next().unwrap_or(true));
}

/// The place by the clock that the runtime's source names, unless records contradict it; or the only place
/// that records prove.
fn choose_by_runtime(
    candidates: Vec<Candidate>,
    untried: &[Clock],
    runtime: RuntimeClock,
) -> Option<ChosenPlace> {
    let is_only_one = candidates.len() == 1;
    let is_believed = runtime.is_certain || untried.is_empty();
    let is_possible = |c: &Candidate| {
        let is_runtimes = c.clock == runtime.clock && c.is_from_snapshots;
        let is_contradicted = c.contradicted || c.running.contradicts();
        let fits = c.running.agrees() || (is_believed && c.is_in_recording && !is_contradicted);
        (is_runtimes && fits) || (is_only_one && c.running.proves())
    };
    let candidate = candidates.into_iter().find(is_possible)?;
    let basis = if candidate.running.proves() {
        let compared = candidate.compared();
        let has_clock = candidate.clock != Clock::Unknown;
        PlaceBasis::Fits { has_clock, compared, residual_ns: candidate.residual_ns, runner_up: None }
    } else {
        PlaceBasis::RuntimeClock { clock: candidate.clock, compared: candidate.compared() }
    };
    Some(ChosenPlace { candidate, basis })
}

/// The index of the candidate whose residuals are clearly smallest, whether it is doubtful, and why it is
/// chosen. `candidates` are sorted by their residuals.
fn choose_by_residuals(
    candidates: &[Candidate],
    untried: &[Clock],
    same: u64,
    trials: &mut Vec<Trial>,
) -> Result<(usize, bool, PlaceBasis), NoPlace> {
    let (best, rest) = candidates.split_first().ok_or(NoPlace::NoCandidate)?;
    let others: Vec<&Candidate> = rest.iter().filter(|c| c.distance(best) > same).collect();
    let as_good = |c: &&&Candidate| best.residual_ns.is_none_or(|ns| c.order() < ns * MIN_RATIO_TO_RUNNER_UP);
    // A candidate that is as good and near is reported; one that is as good and far away must not be
    // decided by chance.
    let doubt = others.iter().filter(as_good).max_by_key(|c| c.distance(best));
    let near = doubt.filter(|c| {
        c.distance(best) <= AMBIGUITY_NS && best.residual_ns.is_none_or(|ns| ns <= MAX_RESIDUAL_NS)
    });
    if let Some(other) = near {
        let distance_ns = other.distance(best);
        let basis = PlaceBasis::NearTie { clock: best.clock, other: other.clock, distance_ns };
        return Ok((0, true, basis));
    }
    match (best.residual_ns, others.first()) {
        (Some(residual_ns), _) if residual_ns > MAX_RESIDUAL_NS => Err(NoPlace::Apart { residual_ns }),
        (Some(_), Some(second)) if doubt.is_some() => Err(NoPlace::BothFit(best.clock, second.clock)),
        (None, Some(second)) => Err(NoPlace::BothPossible(best.clock, second.clock)),
        (Some(residual_ns), second) => {
            let basis = PlaceBasis::Fits {
                has_clock: best.clock != Clock::Unknown,
                compared: best.compared(),
                residual_ns: Some(residual_ns),
                runner_up: second.map(|second| ((second.order() / residual_ns) as u64, second.clock)),
            };
            Ok((0, false, basis))
        }
        // The records decide, with the runtime's clock.
        (None, None) if best.running.is_compared() => Err(NoPlace::Contradicted(best.clock)),
        (None, None) if best.contradicted => Err(NoPlace::Contradicted(best.clock)),
        (None, None) if !untried.is_empty() => Err(NoPlace::BothPossible(best.clock, untried[0])),
        (None, None) => {
            trials.push(Trial::NothingToCompare);
            Ok((0, false, PlaceBasis::OnlyClock))
        }
    }
}

impl Candidate {
    /// The sort key: candidates with the smallest residuals come first, those with nothing to compare come
    /// last.
    fn order(&self) -> f64 {
        self.residual_ns.unwrap_or(10.0 * WINDOW_NS as f64)
    }

    /// The amounts of evidence that were compared at this place.
    pub fn compared(&self) -> ComparedAmount {
        let fits = || self.fits.iter().flatten();
        ComparedAmount {
            markers: fits().map(|fit| fit.pairs.len()).sum(),
            gaps: fits().map(|fit| fit.cpu_time.len().max(fit.switches.len() / 2)).sum(),
            starts_in_marker: self.starts_in_marker,
            records: self.running.here,
        }
    }

    /// The trial of this place, for `--explain`.
    fn trial(&self) -> Trial {
        let fit = match self.residual_ns {
            Some(ns) => PlaceFit::Residual(ns),
            None if self.doubtful => PlaceFit::Anywhere,
            None => PlaceFit::NotCompared,
        };
        Trial::Place { clock: self.clock, begins: self.begins, fit, compared: self.compared() }
    }

    /// The distance of two candidates, ns: the larger of the distances of their begins and of their ends.
    fn distance(&self, other: &Candidate) -> u64 {
        self.begins.abs_diff(other.begins).max(self.ends.abs_diff(other.ends))
    }
}

impl Evidence<'_, '_> {
    /// The clock of a place that was found by markers alone: the counter, if the place is near to where
    /// the counter puts the trace, else unknown. Where the CPU does not report the counter's frequency,
    /// the runtime measures the frequency within a millisecond. The measured frequency is not exact, so a
    /// start in this clock is off by a share of the whole uptime. `None` where the user named another
    /// clock.
    fn roughly(&self, map: &ClockMap, reference: &ReferenceClock, options: &MergeOptions) -> Option<Clock> {
        let start = Timestamp(self.trace.header().start_ns());
        let found = map.map(start);
        let segments = clock_map::segments(&reference.snapshots, Clock::Counter, reference.clock);
        let near = segments.iter().any(|segment| segment.map(start).abs_diff(found) <= start.0 / 100);
        let clock = if near { Clock::Counter } else { Clock::Unknown };
        options.clock.is_none_or(|given| given == clock).then_some(clock)
    }

    fn candidate(&self, clock: Clock, segments: Vec<ClockMap>, is_from_snapshots: bool) -> Candidate {
        let mean = |fit: &Residuals| geometric_mean(&fit.medians).unwrap_or(f64::MAX);
        let best = |thread| {
            let fits = self.fits(thread, &segments).into_iter();
            fits.min_by(|(_, a), (_, b)| mean(a).total_cmp(&mean(b))).map(|(_, fit)| fit)
        };
        let fits: Vec<Option<Residuals>> = (0..self.threads.len()).map(best).collect();
        let mut items: Vec<f64> = fits.iter().flatten().flat_map(|f| f.medians.iter().copied()).collect();
        let begins =
            segments.first().map_or(Timestamp::MIN, |m| m.map(Timestamp(self.trace.header().start_ns())));
        // ART reads the start time while all threads are suspended, and writes a marker around that
        // stretch.
        let from_start = self.kernel.art_starts.iter().map(|(from, to)| distance(begins, *from, *to));
        let from_start = from_start.reduce(f64::min).filter(|_| self.is_start_rare());
        items.extend(from_start);
        let residual_ns = geometric_mean(&items);
        let contradicted = residual_ns.is_none() && self.threads.iter().any(|t| t.edges.len() >= 16);
        let doubtful = residual_ns.is_some() && !self.fits_only_here(&segments);
        let residual_ns = residual_ns.filter(|_| !doubtful);
        let last = self.threads.iter().map(|t| t.last).max().unwrap_or_default();
        let ends = segments.last().map_or(Timestamp::MIN, |m| m.map(last));
        let running = self.running_fit(&segments, &fits);
        Candidate {
            clock,
            segments,
            begins,
            ends,
            running,
            is_in_recording: self.is_within(begins, 0),
            starts_in_marker: from_start.is_some_and(|ns| ns < GOOD_RESIDUAL_NS),
            is_from_snapshots,
            fits,
            residual_ns,
            contradicted,
            doubtful,
        }
    }

    /// Whether a trace that lies anywhere in the recordings hardly begins in one of ART's markers by
    /// chance.
    fn is_start_rare(&self) -> bool {
        let near = 2 * GOOD_RESIDUAL_NS as u64;
        let marked: u64 = self.kernel.art_starts.iter().map(|(from, to)| to.since(*from) + near).sum();
        marked.saturating_mul(MAX_CHANCE_OF_START) <= self.kernel.last.since(self.kernel.first)
    }

    /// Compares the trace's records with the times that the threads had a CPU, here and at places that are
    /// certainly wrong. Where the trace's clock may drift, the place is corrected first.
    fn running_fit(&self, segments: &[ClockMap], fits: &[Option<Residuals>]) -> RunningFit {
        let changes: Vec<&[u64]> =
            fits.iter().map(|fit| fit.as_ref().map_or(&[][..], |fit| &fit.changes)).collect();
        let corrected = (!runtime_clock(self.trace).is_certain).then(|| {
            let pairs = residuals::pairs_to_correct_by(fits);
            correct(segments.to_vec(), &pairs).0
        });
        let segments = corrected.as_deref().unwrap_or(segments);
        let sample: Vec<MethodEvidence> =
            self.threads.iter().map(|t| t.sample(MAX_SAMPLED_PER_THREAD)).collect();
        let count = |threads: &[MethodEvidence], moved| {
            running_fit::count(self, threads, &PlaceOfRecords { segments, changes: &changes, moved })
        };
        let elsewhere = CONTROL_OFFSETS_NS.map(|moved| count(&sample, moved).0);
        let best = elsewhere.into_iter().min_by(|a, b| a.miss_rate().total_cmp(&b.miss_rate()));
        let (here, are_samples) = count(&self.threads, 0);
        RunningFit { here, elsewhere: best.unwrap_or_default(), are_samples }
    }

    /// Whether the residuals at this place are clearly smaller than at places that are certainly wrong.
    /// Where markers come every few µs, every edge has a marker nearby at any place.
    fn fits_only_here(&self, segments: &[ClockMap]) -> bool {
        let sample: Vec<MethodEvidence> =
            self.threads.iter().map(|t| t.sample(MAX_SAMPLED_PER_THREAD)).collect();
        let window = || self.kernel.first..=self.kernel.last;
        let residual = |segments: &[ClockMap]| {
            let best_medians = |(thread, tids): (&MethodEvidence, &Vec<Tid>)| {
                let seen = tids.iter().filter_map(|tid| self.kernel.threads.get(tid));
                let fits = seen.map(|seen| residuals::compare(thread, seen, segments, window()).medians);
                fits.min_by(|a, b| {
                    geometric_mean(a).unwrap_or(f64::MAX).total_cmp(&geometric_mean(b).unwrap_or(f64::MAX))
                })
            };
            geometric_mean(
                &sample
                    .iter()
                    .zip(&self.candidate_tids)
                    .filter_map(best_medians)
                    .flatten()
                    .collect::<Vec<f64>>(),
            )
        };
        let Some(here) = residual(segments) else { return true };
        let elsewhere = CONTROL_OFFSETS_NS.map(|by| {
            let moved: Vec<ClockMap> = segments.iter().map(|map| map.corrected(&[(0, by)])).collect();
            residual(&moved).unwrap_or(WINDOW_NS as f64)
        });
        median(elsewhere.map(|ns| ns as u64)).is_none_or(|ns| ns as f64 >= here * CHANCE_RATIO)
    }
}

fn distance(at: Timestamp, from: Timestamp, to: Timestamp) -> f64 {
    let outside = from.since(at).max(at.since(to));
    (outside as f64).clamp(1e3, WINDOW_NS as f64)
}

/// Offsets no further apart than this, ns, count as one. Even the intervals between regular calls vary by
/// more than this.
const BIN_WIDTH_NS: i64 = 20_000;
/// The number of edges whose offsets are counted together. It is small, so that the clocks do not drift
/// apart between the first and the last of these edges.
const EDGES_PER_BLOCK: usize = 32;
/// Names with more markers than this are not used, since each edge is compared with every marker of its
/// name.
const MAX_MARKERS: usize = 20_000;
/// The share of a block's edges that must agree about an offset.
const MIN_AGREEING_SHARE: f64 = 0.6;
/// The best offset must have this many times as many edges as any other offset.
const MIN_RATIO_TO_OTHER_OFFSETS: usize = 2;

/// The map from the trace's clock to the timeline's at which most calls coincide with their markers;
/// `None` where no offset stands out. `may_be` gives the candidate thread ids of each traced thread.
pub fn most_frequent_offset(
    traced: &[MethodEvidence],
    may_be: &[Vec<Tid>],
    observed: &KernelEvidence,
) -> Option<ClockMap> {
    let mut points: Vec<(i64, i64, usize)> = Vec::new();
    for (thread, tids) in traced.iter().zip(may_be) {
        for seen in tids.iter().filter_map(|tid| observed.threads.get(tid)) {
            let Some(edges) = rarest(thread, seen) else { continue };
            let blocks = [edges.chunks(EDGES_PER_BLOCK).next(), edges.rchunks(EDGES_PER_BLOCK).next()];
            points.extend(blocks.into_iter().flatten().filter_map(|block| agreed(block, seen)));
        }
    }
    // Offsets that do not lie on one line with the best one are dropped: clocks drift, but they do not
    // jump.
    let best = *points.iter().max_by_key(|p| p.2)?;
    points.retain(|p| p.1.abs_diff(best.1) <= 1_000_000 + p.0.abs_diff(best.0) / 500);
    let first = points.iter().min_by_key(|p| p.0)?;
    let last = points.iter().max_by_key(|p| p.0)?;
    let mut line = vec![(first.0, first.0.wrapping_add(first.1)), (last.0, last.0.wrapping_add(last.1))];
    if last.0.abs_diff(first.0) < 100_000_000 {
        line = vec![(best.0, best.0.wrapping_add(best.1))];
    }
    Some(ClockMap::through(line))
}

/// The enters of the method with the fewest markers (but at least 8): frequent calls coincide with markers
/// by chance.
fn rarest(thread: &MethodEvidence, seen: &ThreadActivity) -> Option<Vec<NamedEdge>> {
    let mut counts = std::collections::HashMap::<u32, usize>::new();
    for mark in seen.marks.iter().filter(|m| m.begin) {
        *counts.entry(mark.name).or_default() += 1;
    }
    let mut names: Vec<(usize, u32)> = counts
        .into_iter()
        .filter(|(_, n)| (8..=MAX_MARKERS).contains(n))
        .map(|(name, n)| (n, name))
        .collect();
    names.sort_unstable();
    names.into_iter().find_map(|(_, name)| {
        let edges: Vec<NamedEdge> =
            thread.edges.iter().filter(|e| e.begin && e.name == name).copied().collect();
        (edges.len() >= 8).then_some(edges)
    })
}

/// The time of the block's middle (ns of the trace's clock), the offset that most of its edges agree about
/// (ns), and how many agree; `None` where no offset stands out.
fn agreed(block: &[NamedEdge], seen: &ThreadActivity) -> Option<(i64, i64, usize)> {
    let name = block.first()?.name;
    let marks: Vec<i64> =
        seen.marks.iter().filter(|m| m.begin && m.name == name).map(|m| m.ts.0 as i64).collect();
    let at = |edge: &NamedEdge| edge.x.0 as i64;
    let mut offsets: Vec<i64> =
        block.iter().flat_map(|edge| marks.iter().map(move |mark| mark.wrapping_sub(at(edge)))).collect();
    offsets.sort_unstable();
    // For each offset, how many offsets lie up to BIN_WIDTH_NS above it.
    let mut best = (0, 0, 0);
    let mut counts = Vec::with_capacity(offsets.len());
    let mut end = 0;
    for from in 0..offsets.len() {
        while offsets.get(end).is_some_and(|o| *o <= offsets[from].saturating_add(BIN_WIDTH_NS)) {
            end += 1;
        }
        counts.push(end - from);
        if end - from > best.0 {
            best = (end - from, from, end);
        }
    }
    let (count, from, end) = best;
    let offset = median(offsets[from..end].iter().copied())?;
    let others = offsets.iter().zip(&counts).filter(|(o, _)| o.abs_diff(offset) > 10 * BIN_WIDTH_NS as u64);
    let second = others.map(|(_, n)| *n).max().unwrap_or(0);
    let enough = count >= 8
        && count as f64 >= MIN_AGREEING_SHARE * block.len() as f64
        && count >= MIN_RATIO_TO_OTHER_OFFSETS * second;
    enough.then(|| (at(&block[block.len() / 2]), offset, count))
}

#[cfg(test)]
mod tests {
    use super::super::kernel_evidence::SliceEdge;
    use super::*;

    /// A candidate that begins at `begins` ns, whose residuals are `residual_ns`.
    fn candidate(clock: Clock, begins: u64, residual_ns: Option<f64>) -> Candidate {
        Candidate {
            clock,
            segments: vec![ClockMap::offset(0)],
            begins: Timestamp(begins),
            ends: Timestamp(begins + 1_000_000),
            fits: Vec::new(),
            running: RunningFit::default(),
            is_in_recording: true,
            starts_in_marker: false,
            is_from_snapshots: true,
            residual_ns,
            contradicted: false,
            doubtful: false,
        }
    }

    const UNKNOWN_RUNTIME: RuntimeClock = RuntimeClock { clock: Clock::Unknown, is_certain: false };

    /// The clock of the choice, whether it is doubtful, and the reason.
    fn chosen(candidates: Vec<Candidate>) -> Result<(Clock, bool, PlaceBasis), NoPlace> {
        let found = choose(
            candidates,
            &[],
            START_RESOLUTION_NS,
            &MergeOptions::default(),
            UNKNOWN_RUNTIME,
            &mut Vec::new(),
        );
        found.map(|choice| (choice.candidate.clock, choice.candidate.doubtful, choice.basis))
    }

    const MONO: Clock = Clock::Monotonic;
    const REAL: Clock = Clock::Realtime;
    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn the_clock_that_fits_clearly_better_is_chosen() {
        let tried =
            vec![candidate(REAL, SECOND_NS, Some(50_000.0)), candidate(MONO, 5 * SECOND_NS, Some(5_000.0))];
        let (clock, doubtful, why) = chosen(tried).unwrap();
        assert_eq!((clock, doubtful), (MONO, false));
        assert!(why.to_string().contains("10 times better"), "{why}");
    }

    #[test]
    fn two_clocks_that_fit_about_as_well_are_refused_unless_they_are_near() {
        let far =
            vec![candidate(REAL, SECOND_NS, Some(6_000.0)), candidate(MONO, 5 * SECOND_NS, Some(5_000.0))];
        assert!(chosen(far).unwrap_err().to_string().contains("fit about as well"));
        let near = vec![
            candidate(REAL, SECOND_NS + 50_000, Some(6_000.0)),
            candidate(MONO, SECOND_NS, Some(5_000.0)),
        ];
        let (clock, doubtful, why) = chosen(near).unwrap();
        assert_eq!((clock, doubtful), (MONO, true));
        assert!(why.to_string().contains("50.0 µs from it"), "{why}");
        let same = vec![
            candidate(REAL, SECOND_NS + 2_000, Some(6_000.0)),
            candidate(MONO, SECOND_NS, Some(5_000.0)),
        ];
        assert!(!chosen(same).unwrap().1, "closer than a start is exact, two places are one");
    }

    #[test]
    fn a_place_is_refused_if_it_fits_badly_or_if_another_clock_is_possible_too() {
        let bad = vec![candidate(MONO, SECOND_NS, Some(600_000.0))];
        assert!(chosen(bad).unwrap_err().to_string().contains("600.0 µs apart at best"));
        let open = vec![candidate(MONO, SECOND_NS, None), candidate(REAL, 5 * SECOND_NS, None)];
        assert!(chosen(open).unwrap_err().to_string().contains("nothing in it tells them apart"));
        assert!(chosen(vec![candidate(MONO, SECOND_NS, None)]).is_ok(), "the only clock that is possible");
        assert!(chosen(Vec::new()).is_err());
    }

    /// Irregular times of calls, ns of the trace's clock.
    const CALLS: [u64; 12] = [0, 17, 31, 58, 73, 101, 140, 166, 203, 251, 290, 344];

    fn evidence(mark_offset_ns: impl Fn(usize) -> u64) -> (Vec<MethodEvidence>, KernelEvidence) {
        let edge = |(n, ms): (usize, &u64)| NamedEdge {
            record: n as u64,
            x: Timestamp(ms * 1_000_000),
            name: 0,
            begin: true,
        };
        let edges: Vec<NamedEdge> = CALLS.iter().enumerate().map(edge).collect();
        let mark = |(n, edge): (usize, &NamedEdge)| SliceEdge {
            ts: edge.x + mark_offset_ns(n),
            name: 0,
            begin: true,
        };
        let marks = edges.iter().enumerate().map(mark).collect();
        let mut kernel = KernelEvidence::default();
        kernel.threads.insert(Tid(7), ThreadActivity::with_marks(marks));
        (vec![MethodEvidence { edges, ..MethodEvidence::default() }], kernel)
    }

    #[test]
    fn the_offset_that_most_calls_agree_about_is_found() {
        let (threads, kernel) = evidence(|n| 9_000_000_000 + (n as u64 % 3) * 1_000);
        let map = most_frequent_offset(&threads, &[vec![Tid(7)]], &kernel).unwrap();
        assert!(map.offset_at(Timestamp(100_000_000)).abs_diff(9_000_001_000) <= 1_000);
    }

    #[test]
    fn the_offset_is_the_median_of_those_that_agree() {
        // Six calls have one offset and six another one: their middle lies between both.
        let (threads, kernel) = evidence(|n| 9_000_000_000 + (n as u64 % 2) * 1_000);
        let map = most_frequent_offset(&threads, &[vec![Tid(7)]], &kernel).unwrap();
        assert_eq!(map.offset_at(Timestamp(100_000_000)), 9_000_000_500);
    }

    #[test]
    fn markers_without_a_common_offset_give_none() {
        let (threads, kernel) = evidence(|n| 9_000_000_000 + (n * n) as u64 * 777_000);
        assert_eq!(most_frequent_offset(&threads, &[vec![Tid(7)]], &kernel), None);
    }
}
