//! Finds where a method trace lies on the timeline: by the recording's clock snapshots, and by comparing the
//! trace's calls with the recording's markers and context switches.
//!
//! No field of a method trace names the clock of its start: Dalvik writes CLOCK_REALTIME, ART writes
//! CLOCK_MONOTONIC or, for a year (2023 to 2024), the CPU's counter. So each clock is tried: the snapshots
//! give the trace's place by this clock, and the residuals of markers and context switches show how well that
//! place fits. A clock is chosen only if its place fits clearly better than the places of all other clocks.

use super::clock_map::{self, ClockMap};
use super::corrections::correct;
use super::evidence::Evidence;
use super::kernel_evidence::KernelEvidence;
use super::method_evidence::{self, MethodEvidence};
use super::placement::{Finding, MergeOptions, Placement};
use super::residuals::{self, MatchedPair, Residuals, WINDOW_NS, geometric_mean};
use super::summary::Verdict;
use super::{identity, offset_histogram};
use crate::clock::{Clock, Snapshots};
use crate::formats::art_method::{MethodTrace, YEAR_2001_NS};
use crate::statistics::median;

/// The timeline's clock, and the snapshots that tie other clocks to it.
#[derive(Debug, Clone)]
pub struct ReferenceClock {
    /// The timeline's clock.
    pub clock: Clock,
    /// The recording's snapshots.
    pub snapshots: Snapshots,
}

/// A method trace could not be placed.
#[derive(Debug, thiserror::Error)]
pub enum AlignError {
    /// Neither the recording's snapshots nor a comparison of the two files decides where it began.
    #[error(
        "{name}: nothing tells when this method trace began on the recording's clock: {why}. Say it with \
         --clock (realtime, mono, boot, cpu-counter) or with --offset (ns to add to its times)"
    )]
    Unplaced {
        /// The path as given.
        name: String,
        /// What was tried, and why none of it decides the place: a sentence for people.
        why: String,
    },
    /// Its records have no times.
    #[error(
        "{name}: this method trace holds the order of calls but no times, so that no timeline can hold it: leave \
         it out; `tracebridge profile` counts its calls"
    )]
    NoTimes {
        /// The path as given.
        name: String,
    },
}

/// How far a trace may begin after the recording's end, or end before the recording's begin, and still be
/// tried: ns.
const MAX_OUTSIDE_RECORDING_NS: u64 = 1_000_000_000;
/// How exact a trace's start is, ns: the time is cut to µs, and a counter's reading is cut to its tick.
/// Candidates closer than this, and than the snapshots' own error, count as one.
const START_RESOLUTION_NS: u64 = 3_000;
/// Candidates closer than this are reported as ambiguous instead of refused: ns. 99 % of all calls may be off
/// by as much.
const AMBIGUITY_NS: u64 = 100_000;
/// The least ratio of the residual at places that are certainly wrong to the residual at the candidate. Below
/// this ratio the candidate fits by chance only.
const CHANCE_RATIO: f64 = 2.0;
/// Places that are certainly wrong, as distances from the candidate, ns. None is a multiple of a usual
/// period.
const CONTROL_OFFSETS_NS: [i64; 6] =
    [-53_939_171, -13_771_313, -7_313_737, 5_171_933, 17_393_911, 41_939_393];
/// The limits on the edges, and on the stretches off the CPU, of one thread that are compared at
/// [`CONTROL_OFFSETS_NS`].
const MAX_SAMPLED_PER_THREAD: usize = 2_048;
/// The least ratio of the second-best candidate's residual to the best one's, for the best one to be chosen.
const MIN_RATIO_TO_RUNNER_UP: f64 = 3.0;
/// If a candidate has a residual up to this, ns, no further candidates are looked for.
const GOOD_RESIDUAL_NS: f64 = 30_000.0;
/// A candidate with a larger residual than this, ns, is refused.
const MAX_RESIDUAL_NS: f64 = 500_000.0;

/// The clock of a trace's start: by the format where it decides that, else by the size of the number alone.
pub fn usual_clock(trace: &MethodTrace<'_>) -> Clock {
    let guess = if trace.header().start_ns() > YEAR_2001_NS { Clock::Realtime } else { Clock::Monotonic };
    trace.header().start_clock.unwrap_or(guess)
}

/// A place on the timeline that was tried.
struct Candidate {
    clock: Clock,
    /// From the trace's clock to the timeline's.
    segments: Vec<ClockMap>,
    /// Where the trace begins at this place, ns of the timeline.
    begins: u64,
    /// Where the trace's last record lies at this place, ns of the timeline.
    ends: u64,
    /// For each thread of the trace, the residuals with the kernel thread that fits best.
    fits: Vec<Option<Residuals>>,
    /// Geometric mean of the residuals, ns; `None` where there is nothing to compare, or where the residuals
    /// are as small at places that are certainly wrong.
    apart: Option<f64>,
    /// Both files hold something to compare, but not at the same time.
    contradicted: bool,
    /// Nothing proves this place: markers come so often that they would fit as well anywhere, or another
    /// place is as good.
    doubtful: bool,
}

/// Places `trace` on the timeline: by comparing the trace with the recordings, or, where there is no
/// recording, at the trace's own times.
pub fn align(
    name: &str,
    trace: &MethodTrace<'_>,
    recordings: Option<&KernelEvidence>,
    reference: &ReferenceClock,
    options: &MergeOptions,
) -> Result<Placement, AlignError> {
    if !trace.header().has_times() {
        return Err(AlignError::NoTimes { name: name.to_owned() });
    }
    let Some(kernel) = recordings.filter(|kernel| kernel.last > 0) else {
        return Ok(without_recording(trace, reference, options));
    };
    let threads = method_evidence::collect(trace, &kernel.names);
    let candidate_tids = identity::candidates(trace, kernel);
    let evidence = Evidence { trace, threads, kernel, candidate_tids };
    let mut explain = Vec::new();
    let (candidates, untried) = candidates(&evidence, reference, options, &mut explain);
    // The readings of a snapshot may be apart by as much as `took` ns, so each of two candidates may be
    // off by as much.
    let same = START_RESOLUTION_NS + 2 * reference.snapshots.list.iter().map(|s| s.took).max().unwrap_or(0);
    let chosen = choose(candidates, &untried, same, options, &mut explain);
    let (candidate, why) = chosen.map_err(|why| AlignError::Unplaced {
        name: name.to_owned(),
        why: format!("{why} ({})", explain.join("; ")),
    })?;
    Ok(settle(&evidence, candidate, why, explain))
}

/// The place of a method trace without a recording, or with one that has no events: the trace's own clock is
/// the timeline's, unless snapshots relate them.
fn without_recording(
    trace: &MethodTrace<'_>,
    reference: &ReferenceClock,
    options: &MergeOptions,
) -> Placement {
    let clock = options.clock.unwrap_or_else(|| usual_clock(trace));
    let why = match (options.offset_ns, trace.header().clock) {
        (Some(_), _) => "by --offset".to_owned(),
        (None, crate::art::ClockMode::ThreadCpu) => {
            "no recording to compare with; each thread's times are its own CPU time".to_owned()
        }
        _ => "no recording to compare with: its own times are kept".to_owned(),
    };
    let finding = Finding { clock, why, ..Finding::default() };
    Placement {
        start: trace.header().start_ns(),
        segments: match options.offset_ns {
            Some(offset) => vec![ClockMap::offset(offset)],
            None => {
                let segments = clock_map::segments(&reference.snapshots, clock, reference.clock);
                clock_map::joined(&segments).into_iter().collect()
            }
        },
        identities: identity::without_recording(trace),
        finding,
        ..Placement::default()
    }
}

/// Every place that the trace may have: one for each clock that snapshots tie to the recording. Also returns
/// the clocks that cannot be tried and cannot be ruled out either.
fn candidates(
    evidence: &Evidence<'_, '_>,
    reference: &ReferenceClock,
    options: &MergeOptions,
    explain: &mut Vec<String>,
) -> (Vec<Candidate>, Vec<Clock>) {
    let start = evidence.trace.header().start_ns();
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
                explain.push(format!("{clock}: no snapshot ties it to the recording"));
            }
            let Some(begins) = segments.first().map(|map| map.map(start)) else { continue };
            let rough = *clock == Clock::Counter && reference.snapshots.counter_hz.is_none();
            let slack = MAX_OUTSIDE_RECORDING_NS + if rough { start / 100 } else { 0 };
            let within = segments.iter().any(|map| evidence.is_within(map.map(start), slack));
            if within && rough {
                let about = "begins in the recording, but its frequency is not known well enough";
                explain.push(format!("{clock}: {about}"));
                untried.push(*clock);
            } else if within || !given.is_empty() {
                places.push((*clock, segments));
            } else {
                let (from, to) = (evidence.kernel.first, evidence.kernel.last);
                explain.push(format!(
                    "{clock}: begins at {begins} ns, but the recording is from {from} to {to}"
                ));
            }
        }
    }
    let mut tried: Vec<_> =
        places.into_iter().map(|(clock, segments)| evidence.candidate(clock, segments)).collect();
    let fits_well = |c: &Candidate| c.apart.is_some_and(|ns| ns <= GOOD_RESIDUAL_NS);
    if options.offset_ns.is_none() && !tried.iter().any(fits_well) {
        // No clock's snapshots give a place that fits well, so markers and methods are compared at every
        // offset.
        let found = offset_histogram::most_frequent_offset(
            &evidence.threads,
            &evidence.candidate_tids,
            evidence.kernel,
        );
        let clock = |map: &ClockMap| evidence.roughly(map, reference, options);
        tried.extend(found.and_then(|map| Some(evidence.candidate(clock(&map)?, vec![map]))));
    }
    for candidate in &tried {
        let begins = candidate.begins;
        let (pairs, gaps) = candidate.counts();
        let apart = match candidate.apart {
            Some(ns) => format!("{:.1} µs apart", ns / 1e3),
            None if candidate.doubtful => "what there is to compare would fit as well anywhere".into(),
            None => "nothing to compare".into(),
        };
        let clock = candidate.clock;
        explain.push(format!(
            "{clock}: begins at {begins} ns: {apart} over {pairs} markers and {gaps} stretches off the CPU"
        ));
    }
    (tried, untried)
}

/// Why no candidate is chosen.
#[derive(Debug, thiserror::Error)]
enum NoPlace {
    #[error("no snapshot of that clock in the recording")]
    NoSnapshot,
    #[error("no clock's start falls into the recording, and no markers coincide often enough")]
    NoCandidate,
    #[error("what should coincide is {us:.1} µs apart at best")]
    Apart { us: f64 },
    #[error("{0} and {1} fit about as well")]
    BothFit(Clock, Clock),
    #[error("{0} and {1} both fall into the recording, and nothing in it tells them apart")]
    BothPossible(Clock, Clock),
    #[error("{0} fits by its snapshots, but no marker of a traced method lies where it should")]
    Contradicted(Clock),
}

/// Chooses the candidate that fits clearly best, and returns the reason as a sentence for people.
/// `untried` are clocks that cannot be tried and cannot be ruled out; candidates no further apart than
/// `same` ns count as one.
fn choose(
    mut candidates: Vec<Candidate>,
    untried: &[Clock],
    same: u64,
    options: &MergeOptions,
    explain: &mut Vec<String>,
) -> Result<(Candidate, String), NoPlace> {
    if options.offset_ns.is_some() || options.clock.is_some() {
        let best = candidates.into_iter().min_by(|a, b| a.order().total_cmp(&b.order()));
        let by = if options.offset_ns.is_some() { "by --offset" } else { "by --clock" };
        return best.map(|c| (c, by.to_owned())).ok_or(NoPlace::NoSnapshot);
    }
    candidates.sort_by(|a, b| a.order().total_cmp(&b.order()));
    let mut rest = candidates.into_iter();
    let mut best = rest.next().ok_or(NoPlace::NoCandidate)?;
    let others: Vec<Candidate> = rest.filter(|c| c.distance(&best) > same).collect();
    let as_good = |c: &&Candidate| best.apart.is_none_or(|apart| c.order() < apart * MIN_RATIO_TO_RUNNER_UP);
    // A candidate that is as good and near is reported; one that is as good and far away must not be decided
    // by chance.
    let doubt = others.iter().filter(as_good).max_by_key(|c| c.distance(&best));
    let near = doubt
        .filter(|c| c.distance(&best) <= AMBIGUITY_NS && best.apart.is_none_or(|ns| ns <= MAX_RESIDUAL_NS));
    if let Some(other) = near {
        let (clock, apart) = (other.clock, other.distance(&best) as f64 / 1e3);
        let why =
            format!("{} fits, and {clock}, which is {apart:.1} µs from it, fits about as well", best.clock);
        best.doubtful = true;
        return Ok((best, why));
    }
    match (best.apart, others.first()) {
        (Some(apart), _) if apart > MAX_RESIDUAL_NS => Err(NoPlace::Apart { us: apart / 1e3 }),
        (Some(_), Some(second)) if doubt.is_some() => Err(NoPlace::BothFit(best.clock, second.clock)),
        (None, Some(second)) => Err(NoPlace::BothPossible(best.clock, second.clock)),
        (Some(apart), second) => {
            let (pairs, gaps) = best.counts();
            let next = second.map_or(String::new(), |s| {
                format!(", {} times better than {}", (s.order() / apart) as u64, s.clock)
            });
            let how =
                if best.clock == Clock::Unknown { "markers coincide most often here" } else { "it fits" };
            Ok((
                best,
                format!(
                    "{how}: {pairs} markers and {gaps} stretches off the CPU, typically {:.1} µs apart{next}",
                    apart / 1e3
                ),
            ))
        }
        (None, None) if best.contradicted => Err(NoPlace::Contradicted(best.clock)),
        (None, None) if !untried.is_empty() => Err(NoPlace::BothPossible(best.clock, untried[0])),
        (None, None) => {
            explain.push("no markers of traced methods, no CPU times to compare".into());
            let why =
                "the only clock whose snapshots put the start into the recording; nothing else to compare"
                    .to_owned();
            Ok((best, why))
        }
    }
}

impl Candidate {
    /// The sort key: candidates with the smallest residuals come first, those with nothing to compare come
    /// last.
    fn order(&self) -> f64 {
        self.apart.unwrap_or(10.0 * WINDOW_NS as f64)
    }

    fn counts(&self) -> (usize, usize) {
        let fits = || self.fits.iter().flatten();
        (fits().map(|f| f.pairs.len()).sum(), fits().map(|f| f.cpu_time.len()).sum())
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
        let start = self.trace.header().start_ns();
        let found = map.map(start);
        let segments = clock_map::segments(&reference.snapshots, Clock::Counter, reference.clock);
        let near = segments.iter().any(|segment| segment.map(start).abs_diff(found) <= start / 100);
        let clock = if near { Clock::Counter } else { Clock::Unknown };
        options.clock.is_none_or(|given| given == clock).then_some(clock)
    }

    fn candidate(&self, clock: Clock, segments: Vec<ClockMap>) -> Candidate {
        let of = |fit: &Residuals| geometric_mean(&fit.medians).unwrap_or(f64::MAX);
        let best = |thread| {
            let fits = self.fits(thread, &segments).into_iter();
            fits.min_by(|(_, a), (_, b)| of(a).total_cmp(&of(b))).map(|(_, fit)| fit)
        };
        let fits: Vec<Option<Residuals>> = (0..self.threads.len()).map(best).collect();
        let mut items: Vec<f64> = fits.iter().flatten().flat_map(|f| f.medians.iter().copied()).collect();
        let begins = segments.first().map_or(0, |m| m.map(self.trace.header().start_ns()));
        // ART reads the start time while all threads are suspended, and writes a marker around that stretch.
        items.extend(
            self.kernel.art_starts.iter().map(|(from, to)| distance(begins, *from, *to)).reduce(f64::min),
        );
        let apart = geometric_mean(&items);
        let contradicted = apart.is_none() && self.threads.iter().any(|t| t.edges.len() >= 16);
        let doubtful = apart.is_some() && !self.fits_only_here(&segments);
        let apart = apart.filter(|_| !doubtful);
        let last = self.threads.iter().map(|t| t.last).max().unwrap_or(0);
        let ends = segments.last().map_or(0, |m| m.map(last));
        Candidate { clock, segments, begins, ends, fits, apart, contradicted, doubtful }
    }

    /// Whether the residuals at this place are clearly smaller than at places that are certainly wrong.
    /// Where markers come every few µs, every edge has a marker nearby at any place.
    fn fits_only_here(&self, segments: &[ClockMap]) -> bool {
        let sample: Vec<MethodEvidence> =
            self.threads.iter().map(|t| t.sample(MAX_SAMPLED_PER_THREAD)).collect();
        let window = (self.kernel.first, self.kernel.last);
        let apart = |segments: &[ClockMap]| {
            let of = |(thread, tids): (&MethodEvidence, &Vec<i32>)| {
                let seen = tids.iter().filter_map(|tid| self.kernel.threads.get(tid));
                let fits = seen.map(|seen| residuals::compare(thread, seen, segments, window).medians);
                fits.min_by(|a, b| {
                    geometric_mean(a).unwrap_or(f64::MAX).total_cmp(&geometric_mean(b).unwrap_or(f64::MAX))
                })
            };
            geometric_mean(
                &sample.iter().zip(&self.candidate_tids).filter_map(of).flatten().collect::<Vec<f64>>(),
            )
        };
        let Some(here) = apart(segments) else { return true };
        let elsewhere = CONTROL_OFFSETS_NS.map(|by| {
            let moved: Vec<ClockMap> = segments.iter().map(|map| map.corrected(&[(0, by)])).collect();
            apart(&moved).unwrap_or(WINDOW_NS as f64)
        });
        median(elsewhere.map(|ns| ns as u64)).is_none_or(|ns| ns as f64 >= here * CHANCE_RATIO)
    }
}

/// Makes the placement of the chosen candidate: corrects its clock maps by the matched pairs, and decides
/// which kernel thread each thread of the trace is.
fn settle(evidence: &Evidence<'_, '_>, candidate: Candidate, why: String, explain: Vec<String>) -> Placement {
    let of = |which: fn(&Residuals) -> &[MatchedPair]| -> Vec<MatchedPair> {
        candidate.fits.iter().flatten().flat_map(|f| which(f).iter().copied()).collect()
    };
    let mut pairs = of(|f| &f.pairs);
    let by_markers = pairs.len() >= MIN_MARKER_PAIRS;
    if !by_markers {
        pairs = of(|f| &f.switches);
    }
    if candidate.doubtful {
        pairs.clear();
    }
    pairs.sort_by_key(|p| (p.segment, p.at));
    let (segments, corrected) = correct(candidate.segments, &pairs);
    let identities = identity::decide(evidence, &segments);
    let middle = |pair: &[ClockMap]| ClockMap::between(&pair[0], &pair[1]);
    let guess = |thread: usize| {
        segments
            .windows(2)
            .map(|pair| residuals::change_at(&evidence.threads[thread], middle(pair)))
            .collect()
    };
    let changes = candidate.fits.into_iter().enumerate();
    let changes = changes.map(|(thread, fit)| fit.map_or_else(|| guess(thread), |f| f.changes)).collect();
    let mut placement = Placement {
        start: evidence.trace.header().start_ns(),
        segments,
        changes,
        identities,
        finding: Finding { clock: candidate.clock, why, explain, ..Finding::default() },
    };
    let mut apart: Vec<u64> = corrected.iter().map(|p| p.apart.unsigned_abs()).collect();
    let mut curve: Vec<u64> = Vec::new();
    for (thread, identity) in placement.identities.iter().enumerate() {
        let Some(seen) = identity.tid.and_then(|tid| evidence.kernel.threads.get(&tid)) else { continue };
        let window = (evidence.kernel.first, evidence.kernel.last);
        let fit = residuals::compare(&evidence.threads[thread], seen, &placement.segments, window);
        curve.extend(fit.cpu_time);
    }
    let residuals = if by_markers { &mut apart } else { &mut curve };
    residuals.sort_unstable();
    let last = residuals.len().saturating_sub(1);
    let p99 = residuals.get(((residuals.len() as f64 * 0.99) as usize).min(last)).copied();
    let finding = &mut placement.finding;
    finding.median = median(residuals.iter().copied());
    finding.p99 = p99;
    finding.verdict = match (finding.median, candidate.apart) {
        _ if candidate.doubtful && candidate.apart.is_none() => Verdict::Assumed,
        _ if candidate.doubtful => Verdict::Consistent,
        (Some(ns), _) if ns <= 100_000 && by_markers => Verdict::Proven,
        (Some(ns), _) if ns <= 50_000 && residuals.len() >= 32 => Verdict::Proven,
        (_, Some(ns)) if ns <= MAX_RESIDUAL_NS => Verdict::Consistent,
        _ => Verdict::Assumed,
    };
    placement
}

fn distance(at: u64, from: u64, to: u64) -> f64 {
    let outside = from.saturating_sub(at).max(at.saturating_sub(to));
    (outside as f64).clamp(1e3, WINDOW_NS as f64)
}

/// The least number of enters and exits matched with markers that suffices to correct and to prove a place.
const MIN_MARKER_PAIRS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// A candidate that begins at `begins` ns, whose residuals are `apart` ns.
    fn candidate(clock: Clock, begins: u64, apart: Option<f64>) -> Candidate {
        Candidate {
            clock,
            segments: vec![ClockMap::offset(0)],
            begins,
            ends: begins + 1_000_000,
            fits: Vec::new(),
            apart,
            contradicted: false,
            doubtful: false,
        }
    }

    fn chosen(candidates: Vec<Candidate>) -> Result<(Clock, bool, String), String> {
        let found = choose(candidates, &[], START_RESOLUTION_NS, &MergeOptions::default(), &mut Vec::new());
        let found = found.map_err(|error| error.to_string());
        found.map(|(candidate, why)| (candidate.clock, candidate.doubtful, why))
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
        assert!(why.contains("10 times better"), "{why}");
    }

    #[test]
    fn two_clocks_that_fit_about_as_well_are_refused_unless_they_are_near() {
        let far =
            vec![candidate(REAL, SECOND_NS, Some(6_000.0)), candidate(MONO, 5 * SECOND_NS, Some(5_000.0))];
        assert!(chosen(far).unwrap_err().contains("fit about as well"));
        let near = vec![
            candidate(REAL, SECOND_NS + 50_000, Some(6_000.0)),
            candidate(MONO, SECOND_NS, Some(5_000.0)),
        ];
        let (clock, doubtful, why) = chosen(near).unwrap();
        assert_eq!((clock, doubtful), (MONO, true));
        assert!(why.contains("50.0 µs from it"), "{why}");
        let same = vec![
            candidate(REAL, SECOND_NS + 2_000, Some(6_000.0)),
            candidate(MONO, SECOND_NS, Some(5_000.0)),
        ];
        assert!(!chosen(same).unwrap().1, "closer than a start is exact, two places are one");
    }

    #[test]
    fn a_place_is_refused_if_it_fits_badly_or_if_another_clock_is_possible_too() {
        let bad = vec![candidate(MONO, SECOND_NS, Some(600_000.0))];
        assert!(chosen(bad).unwrap_err().contains("600.0 µs apart at best"));
        let open = vec![candidate(MONO, SECOND_NS, None), candidate(REAL, 5 * SECOND_NS, None)];
        assert!(chosen(open).unwrap_err().contains("nothing in it tells them apart"));
        assert!(chosen(vec![candidate(MONO, SECOND_NS, None)]).is_ok(), "the only clock that is possible");
        assert!(chosen(Vec::new()).is_err());
    }
}
