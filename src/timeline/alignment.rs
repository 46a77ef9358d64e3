//! Finds where a method trace lies on the timeline: by the recording's snapshots, and by what both contain.
//!
//! No field says in which clock a method trace's start is: Dalvik writes CLOCK_REALTIME, ART CLOCK_MONOTONIC or, for a
//! year (2023 to 2024), the CPU's counter. So each is tried: the snapshots say where the trace would lie, and what both
//! files contain says how well that fits. A clock is taken only if it fits clearly better than the others.

use super::clock_map::{self, ClockMap};
use super::corrections::correct;
use super::evidence::Evidence;
use super::kernel_evidence::KernelEvidence;
use super::method_evidence::{self, MethodEvidence};
use super::placement::{Finding, MergeOptions, Placement};
use super::residuals::{self, MatchedPair, Residuals, WINDOW_NS, geometric_mean, median};
use super::summary::Verdict;
use super::{identity, offset_histogram};
use crate::clock::{Clock, Snapshots};
use crate::formats::art_method::MethodTrace;

/// The timeline's clock, and what ties other clocks to it.
#[derive(Debug, Clone)]
pub struct ReferenceClock {
    /// The timeline's clock.
    pub clock: Clock,
    /// The recording's snapshots.
    pub snapshots: Snapshots,
}

/// Why a method trace could not be placed: nothing that both files hold, and no snapshot, decides it.
#[derive(Debug, thiserror::Error)]
#[error(
    "{name}: nothing tells when this method trace began on the recording's clock: {why}. Say it with --clock \
     (realtime, mono, boot, cpu-counter) or with --offset (ns to add to its times)"
)]
pub struct AlignError {
    /// The path as given.
    pub name: String,
    /// What was tried.
    pub why: String,
}

/// 2001 in ns since 1970: no machine has been up for that long.
const YEAR_2001_NS: u64 = 1_000_000_000_000_000_000;
/// A trace may begin before the recording, or end after it, and still be of the same moments: ns.
const MAX_OUTSIDE_RECORDING_NS: u64 = 1_000_000_000;
/// A trace's start and its records' times are cut to µs, a counter's reading to its tick: two places no further apart
/// are the same, beside what the snapshots themselves may be off by: ns.
const START_RESOLUTION_NS: u64 = 3_000;
/// Two places no further apart than this need not be told apart, only said: ns, what 99 % of all calls may be off by.
const AMBIGUITY_NS: u64 = 100_000;
/// How much further apart what should coincide must be at places that are wrong for sure, so that it proves anything.
const CHANCE_RATIO: f64 = 2.0;
/// Such places: away from the one tried by so many ns, which are no multiples of any usual period.
const CONTROL_OFFSETS_NS: [i64; 6] =
    [-53_939_171, -13_771_313, -7_313_737, 5_171_933, 17_393_911, 41_939_393];
/// Of each thread so much is compared there.
const MAX_SAMPLED_PER_THREAD: usize = 2_048;
/// One place is better than another if it fits so many times as well.
const MIN_RATIO_TO_RUNNER_UP: f64 = 3.0;
/// A place that fits so well needs no other to be looked for: ns.
const GOOD_RESIDUAL_NS: f64 = 30_000.0;
/// A place that fits worse than this is none: ns.
const MAX_RESIDUAL_NS: f64 = 500_000.0;

/// The clock that a trace's start is most likely in, by its size alone.
pub fn usual_clock(trace: &MethodTrace<'_>) -> Clock {
    if trace.header().start_ns() > YEAR_2001_NS { Clock::Realtime } else { Clock::Monotonic }
}

/// A place that was tried.
struct Candidate {
    clock: Clock,
    /// From the trace's clock to the timeline's.
    segments: Vec<ClockMap>,
    /// Where the trace begins so, ns of the timeline.
    begins: u64,
    /// Where its last record lies.
    ends: u64,
    /// The best fit of each thread, and with which kernel thread.
    fits: Vec<Option<Residuals>>,
    /// Geometric mean of what should be 0, ns; `None` where there is nothing to compare.
    apart: Option<f64>,
    /// Both have what could be compared, but not at the same time.
    contradicted: bool,
    /// What could be compared comes so often that it would fit as well anywhere; or another place is as good. So
    /// nothing proves this one.
    doubtful: bool,
}

/// Places `trace` on the timeline: by comparing it with the recordings, or, without any, at its own times.
pub fn align(
    name: &str,
    trace: &MethodTrace<'_>,
    recordings: Option<&KernelEvidence>,
    reference: &ReferenceClock,
    options: &MergeOptions,
) -> Result<Placement, AlignError> {
    let Some(kernel) = recordings else { return Ok(without_recording(trace, options)) };
    let threads = method_evidence::collect(trace, &kernel.names);
    let candidate_tids = identity::candidates(trace, kernel);
    let evidence = Evidence { trace, threads, kernel, candidate_tids };
    let mut explain = Vec::new();
    let (candidates, untried) = candidates(&evidence, reference, options, &mut explain);
    // Two readings of one snapshot may be so far from one moment, at either end.
    let same = START_RESOLUTION_NS + 2 * reference.snapshots.list.iter().map(|s| s.took).max().unwrap_or(0);
    let chosen = choose(candidates, &untried, same, options, &mut explain);
    let (candidate, why) = chosen.map_err(|why| AlignError {
        name: name.to_owned(),
        why: format!("{why} ({})", explain.join("; ")),
    })?;
    Ok(settle(&evidence, candidate, why, explain))
}

/// A method trace without a recording: its own clock is the timeline's.
fn without_recording(trace: &MethodTrace<'_>, options: &MergeOptions) -> Placement {
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
        segments: options.offset_ns.map(ClockMap::offset).into_iter().collect(),
        identities: identity::without_recording(trace),
        finding,
        ..Placement::default()
    }
}

/// Every place the trace may lie at: for each clock, beginning in each of its segments.
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
        let all = [Clock::Monotonic, Clock::Realtime, Clock::Counter];
        for clock in if given.is_empty() { &all[..] } else { &given } {
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
        // No clock's snapshots give a place that fits well: where do markers and methods coincide, whatever the clock?
        let found = offset_histogram::most_frequent_offset(
            &evidence.threads,
            &evidence.candidate_tids,
            &evidence.kernel,
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

/// Takes the place that fits clearly best. `untried` are clocks that cannot be tried and cannot be ruled out; places no
/// further apart than `same` are one.
fn choose(
    mut candidates: Vec<Candidate>,
    untried: &[Clock],
    same: u64,
    options: &MergeOptions,
    explain: &mut Vec<String>,
) -> Result<(Candidate, String), String> {
    if options.offset_ns.is_some() || options.clock.is_some() {
        let best = candidates.into_iter().min_by(|a, b| a.order().total_cmp(&b.order()));
        let by = if options.offset_ns.is_some() { "by --offset" } else { "by --clock" };
        return best.map(|c| (c, by.to_owned())).ok_or("no snapshot of that clock in the recording".into());
    }
    candidates.sort_by(|a, b| a.order().total_cmp(&b.order()));
    let mut rest = candidates.into_iter();
    let mut best = rest
        .next()
        .ok_or("no clock's start falls into the recording, and no markers coincide often enough")?;
    let others: Vec<Candidate> = rest.filter(|c| c.distance(&best) > same).collect();
    let as_good = |c: &&Candidate| best.apart.is_none_or(|apart| c.order() < apart * MIN_RATIO_TO_RUNNER_UP);
    // What is as good and so near that it makes no difference is said; what makes one is not decided by chance.
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
        (Some(apart), _) if apart > MAX_RESIDUAL_NS => {
            Err(format!("what should coincide is {:.1} µs apart at best", apart / 1e3))
        }
        (Some(_), Some(second)) if doubt.is_some() => {
            Err(format!("{} and {} fit about as well", best.clock, second.clock))
        }
        (None, Some(second)) => Err(format!(
            "{} and {} both fall into the recording, and nothing in it tells them apart",
            best.clock, second.clock
        )),
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
        (None, None) if best.contradicted => Err(format!(
            "{} fits by its snapshots, but no marker of a traced method lies where it should",
            best.clock
        )),
        (None, None) if !untried.is_empty() => Err(format!(
            "{} and {} both fall into the recording, and nothing in it tells them apart",
            best.clock, untried[0]
        )),
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
    /// What to sort by: those that fit best come first, those that nothing speaks for last.
    fn order(&self) -> f64 {
        self.apart.unwrap_or(10.0 * WINDOW_NS as f64)
    }

    fn counts(&self) -> (usize, usize) {
        let fits = || self.fits.iter().flatten();
        (fits().map(|f| f.pairs.len()).sum(), fits().map(|f| f.cpu_time.len()).sum())
    }

    /// How far two places are from each other, ns.
    fn distance(&self, other: &Candidate) -> u64 {
        self.begins.abs_diff(other.begins).max(self.ends.abs_diff(other.ends))
    }
}

impl Evidence<'_, '_> {
    /// Which clock a place found by markers alone belongs to. The runtime measures the counter's frequency in a
    /// millisecond where the CPU does not tell it, so a start in that clock is off by a share of the whole uptime.
    /// `None` where the user named a clock that it cannot be.
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
        // ART takes the start while it holds all threads, and says so in the trace.
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

    /// Whether what should coincide does so clearly better here than at places where nothing does but by chance: markers
    /// that come every few µs are near to anything.
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
        let mut elsewhere = elsewhere.map(|ns| ns as u64);
        median(&mut elsewhere).is_none_or(|ns| ns as f64 >= here * CHANCE_RATIO)
    }
}

/// The place, corrected by what coincides, with each thread's identity.
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
    let at = |share: f64| {
        residuals.get(((residuals.len() as f64 * share) as usize).min(residuals.len().max(1) - 1)).copied()
    };
    let finding = &mut placement.finding;
    (finding.median, finding.p99) = (at(0.5), at(0.99));
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

/// Enters and exits with their markers that prove a place.
const MIN_MARKER_PAIRS: usize = 8;
