//! Finds where a method trace lies on the timeline: by the recording's snapshots, and by what both contain.
//!
//! No field says in which clock a method trace's start is: Dalvik writes CLOCK_REALTIME, ART CLOCK_MONOTONIC or, for a
//! year (2023 to 2024), the CPU's counter. So each is tried: the snapshots say where the trace would lie, and what both
//! files contain says how well that fits. A clock is taken only if it fits clearly better than the others.

use std::io;

use super::Verdict;
use super::fit::{self, Fit, Pair, WINDOW, geometric_mean, median};
use super::identity;
use super::map::{self, ClockMap};
use super::merge::MergeOptions;
use super::observe::{Observed, Observer};
use super::place::{Finding, Placement};
use super::source::Kernel;
use super::traced::{self, Traced};
use super::vote;
use crate::clock::{Clock, Snapshots};
use crate::formats::Order;
use crate::formats::art_method::MethodTrace;

/// The timeline's clock, and what ties other clocks to it.
#[derive(Debug, Clone)]
pub struct Reference {
    /// The timeline's clock.
    pub clock: Clock,
    /// The recording's snapshots.
    pub snapshots: Snapshots,
}

/// Why a method trace could not be placed.
#[derive(Debug, thiserror::Error)]
pub enum AlignError {
    /// Nothing fits.
    #[error(
        "{name}: nothing tells when this method trace began on the recording's clock: {why}. Say it with --clock \
         (realtime, mono, boot, cpu-counter) or with --offset (ns to add to its times)"
    )]
    NoEvidence {
        /// The path as given.
        name: String,
        /// What was tried.
        why: String,
    },
    /// The recording could not be read.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// 2001 in ns since 1970: no machine has been up for that long.
const WALL_CLOCK: u64 = 1_000_000_000_000_000_000;
/// A trace may begin before the recording, or end after it, and still be of the same moments: ns.
const SLACK: u64 = 1_000_000_000;
/// A trace's start and its records' times are cut to µs, a counter's reading to its tick: two places no further apart
/// are the same, beside what the snapshots themselves may be off by: ns.
const CUT: u64 = 3_000;
/// Two places no further apart than this need not be told apart, only said: ns, what 99 % of all calls may be off by.
const NEAR: u64 = 100_000;
/// How much further apart what should coincide must be at places that are wrong for sure, so that it proves anything.
const BY_CHANCE: f64 = 2.0;
/// Such places: away from the one tried by so many ns, which are no multiples of any usual period.
const ELSEWHERE: [i64; 6] = [-53_939_171, -13_771_313, -7_313_737, 5_171_933, 17_393_911, 41_939_393];
/// Of each thread so much is compared there.
const SAMPLED: usize = 2_048;
/// One place is better than another if it fits so many times as well.
const CLEARLY: f64 = 3.0;
/// A place that fits so well needs no other to be looked for: ns.
const FITS_WELL: f64 = 30_000.0;
/// A place that fits worse than this is none: ns.
const FITS: f64 = 500_000.0;

/// The clock that a trace's start is most likely in, by its size alone.
pub fn usual_clock(trace: &MethodTrace<'_>) -> Clock {
    if trace.header().start_ns() > WALL_CLOCK { Clock::Realtime } else { Clock::Monotonic }
}

/// A place that was tried.
struct Candidate {
    clock: Clock,
    /// From the trace's clock to the timeline's.
    eras: Vec<ClockMap>,
    /// Where the trace begins so, ns of the timeline.
    begins: u64,
    /// Where its last record lies.
    ends: u64,
    /// The best fit of each thread, and with which kernel thread.
    fits: Vec<Option<Fit>>,
    /// Geometric mean of what should be 0, ns; `None` where there is nothing to compare.
    apart: Option<f64>,
    /// Both have what could be compared, but not at the same time.
    contradicted: bool,
    /// What could be compared comes so often that it would fit as well anywhere; or another place is as good. So
    /// nothing proves this one.
    doubtful: bool,
}

/// All that placing needs.
pub struct Evidence<'t, 'a> {
    /// The trace.
    pub trace: &'t MethodTrace<'a>,
    /// Its threads.
    pub traced: Vec<Traced>,
    /// The recording.
    pub observed: Observed,
    /// For each thread, which kernel threads it may be.
    pub may_be: Vec<Vec<i32>>,
}

/// Places `trace` among `kernels`, each with its map to the timeline.
pub fn place(
    name: &str,
    trace: &MethodTrace<'_>,
    kernels: &[(&Kernel<'_>, ClockMap)],
    reference: &Reference,
    options: &MergeOptions,
) -> Result<Placement, AlignError> {
    if kernels.is_empty() {
        return Ok(alone(trace, options));
    }
    let mut observed = Observed::default();
    for (kernel, map) in kernels {
        kernel.read(Order::Any, &mut Observer { observed: &mut observed, map: map.clone() })?;
    }
    observed.finish();
    let traced = traced::traced(trace, &observed.names);
    let may_be = identity::candidates(trace, &observed);
    let evidence = Evidence { trace, traced, observed, may_be };
    let mut explain = Vec::new();
    let (candidates, maybe) = candidates(&evidence, reference, options, &mut explain);
    // Two readings of one snapshot may be so far from one moment, at either end.
    let same = CUT + 2 * reference.snapshots.list.iter().map(|s| s.took).max().unwrap_or(0);
    let chosen = choose(candidates, &maybe, same, options, &mut explain);
    let (candidate, why) = chosen.map_err(|why| AlignError::NoEvidence {
        name: name.to_owned(),
        why: format!("{why} ({})", explain.join("; ")),
    })?;
    Ok(evidence.settle(candidate, why, explain))
}

/// A method trace without a recording: its own clock is the timeline's.
fn alone(trace: &MethodTrace<'_>, options: &MergeOptions) -> Placement {
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
        eras: options.offset_ns.map(ClockMap::offset).into_iter().collect(),
        identities: identity::alone(trace),
        finding,
        ..Placement::default()
    }
}

/// Every place the trace may lie at: for each clock, beginning in each of its eras.
fn candidates(
    evidence: &Evidence<'_, '_>,
    reference: &Reference,
    options: &MergeOptions,
    explain: &mut Vec<String>,
) -> (Vec<Candidate>, Vec<Clock>) {
    let start = evidence.trace.header().start_ns();
    let mut places: Vec<(Clock, Vec<ClockMap>)> = Vec::new();
    let mut maybe = Vec::new();
    if let Some(offset) = options.offset_ns {
        places.push((options.clock.unwrap_or(Clock::Unknown), vec![ClockMap::offset(offset)]));
    } else {
        let given: Vec<Clock> = options.clock.into_iter().collect();
        let all = [Clock::Monotonic, Clock::Realtime, Clock::Counter];
        for clock in if given.is_empty() { &all[..] } else { &given } {
            let eras = map::eras(&reference.snapshots, *clock, reference.clock);
            if eras.is_empty() {
                explain.push(format!("{clock}: no snapshot ties it to the recording"));
            }
            let Some(begins) = eras.first().map(|map| map.map(start)) else { continue };
            let rough = *clock == Clock::Counter && reference.snapshots.counter_hz.is_none();
            let slack = SLACK + if rough { start / 100 } else { 0 };
            let within = eras.iter().any(|map| evidence.is_within(map.map(start), slack));
            if within && rough {
                let about = "begins in the recording, but its frequency is not known well enough";
                explain.push(format!("{clock}: {about}"));
                maybe.push(*clock);
            } else if within || !given.is_empty() {
                places.push((*clock, eras));
            } else {
                let (from, to) = (evidence.observed.first, evidence.observed.last);
                explain.push(format!(
                    "{clock}: begins at {begins} ns, but the recording is from {from} to {to}"
                ));
            }
        }
    }
    let mut tried: Vec<_> = places.into_iter().map(|(clock, eras)| evidence.candidate(clock, eras)).collect();
    let fits_well = |c: &Candidate| c.apart.is_some_and(|ns| ns <= FITS_WELL);
    if options.offset_ns.is_none() && !tried.iter().any(fits_well) {
        // No clock's snapshots give a place that fits well: where do markers and methods coincide, whatever the clock?
        let found = vote::vote(&evidence.traced, &evidence.may_be, &evidence.observed);
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
    (tried, maybe)
}

/// Takes the place that fits clearly best. `maybe` are clocks that cannot be tried and cannot be ruled out; places no
/// further apart than `same` are one.
fn choose(
    mut candidates: Vec<Candidate>,
    maybe: &[Clock],
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
    let as_good = |c: &&Candidate| best.apart.is_none_or(|apart| c.order() < apart * CLEARLY);
    // What is as good and so near that it makes no difference is said; what makes one is not decided by chance.
    let doubt = others.iter().filter(as_good).max_by_key(|c| c.distance(&best));
    let near = doubt.filter(|c| c.distance(&best) <= NEAR && best.apart.is_none_or(|ns| ns <= FITS));
    if let Some(other) = near {
        let (clock, apart) = (other.clock, other.distance(&best) as f64 / 1e3);
        let why =
            format!("{} fits, and {clock}, which is {apart:.1} µs from it, fits about as well", best.clock);
        best.doubtful = true;
        return Ok((best, why));
    }
    match (best.apart, others.first()) {
        (Some(apart), _) if apart > FITS => {
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
        (None, None) if !maybe.is_empty() => Err(format!(
            "{} and {} both fall into the recording, and nothing in it tells them apart",
            best.clock, maybe[0]
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
        self.apart.unwrap_or(10.0 * WINDOW as f64)
    }

    fn counts(&self) -> (usize, usize) {
        let fits = || self.fits.iter().flatten();
        (fits().map(|f| f.pairs.len()).sum(), fits().map(|f| f.curve.len()).sum())
    }

    /// How far two places are from each other, ns.
    fn distance(&self, other: &Candidate) -> u64 {
        self.begins.abs_diff(other.begins).max(self.ends.abs_diff(other.ends))
    }
}

impl<'t, 'a> Evidence<'t, 'a> {
    fn is_within(&self, begins: u64, slack: u64) -> bool {
        let start = self.trace.header().start_ns();
        let longest = self.traced.iter().map(|t| t.last.saturating_sub(start)).max().unwrap_or(0);
        begins <= self.observed.last.saturating_add(slack)
            && begins.saturating_add(longest).saturating_add(slack) >= self.observed.first
    }

    /// How a thread fits each kernel thread it may be, if the trace lies so.
    pub fn fits(&self, thread: usize, eras: &[ClockMap]) -> Vec<(i32, Fit)> {
        let window = (self.observed.first, self.observed.last);
        let fit = |tid: &i32| {
            let seen = self.observed.threads.get(tid)?;
            Some((*tid, fit::fit(&self.traced[thread], seen, eras, window)))
        };
        self.may_be[thread].iter().filter_map(fit).collect()
    }

    /// Which clock a place found by markers alone belongs to. The runtime measures the counter's frequency in a
    /// millisecond where the CPU does not tell it, so a start in that clock is off by a share of the whole uptime.
    /// `None` where the user named a clock that it cannot be.
    fn roughly(&self, map: &ClockMap, reference: &Reference, options: &MergeOptions) -> Option<Clock> {
        let start = self.trace.header().start_ns();
        let found = map.map(start);
        let eras = map::eras(&reference.snapshots, Clock::Counter, reference.clock);
        let near = eras.iter().any(|era| era.map(start).abs_diff(found) <= start / 100);
        let clock = if near { Clock::Counter } else { Clock::Unknown };
        options.clock.is_none_or(|given| given == clock).then_some(clock)
    }

    fn candidate(&self, clock: Clock, eras: Vec<ClockMap>) -> Candidate {
        let of = |fit: &Fit| geometric_mean(&fit.items).unwrap_or(f64::MAX);
        let best = |thread| {
            let fits = self.fits(thread, &eras).into_iter();
            fits.min_by(|(_, a), (_, b)| of(a).total_cmp(&of(b))).map(|(_, fit)| fit)
        };
        let fits: Vec<Option<Fit>> = (0..self.traced.len()).map(best).collect();
        let mut items: Vec<f64> = fits.iter().flatten().flat_map(|f| f.items.iter().copied()).collect();
        let begins = eras.first().map_or(0, |m| m.map(self.trace.header().start_ns()));
        // ART takes the start while it holds all threads, and says so in the trace.
        items.extend(
            self.observed.art_starts.iter().map(|(from, to)| distance(begins, *from, *to)).reduce(f64::min),
        );
        let apart = geometric_mean(&items);
        let contradicted = apart.is_none() && self.traced.iter().any(|t| t.edges.len() >= 16);
        let doubtful = apart.is_some() && !self.fits_only_here(&eras);
        let apart = apart.filter(|_| !doubtful);
        let last = self.traced.iter().map(|t| t.last).max().unwrap_or(0);
        let ends = eras.last().map_or(0, |m| m.map(last));
        Candidate { clock, eras, begins, ends, fits, apart, contradicted, doubtful }
    }

    /// Whether what should coincide does so clearly better here than at places where nothing does but by chance: markers
    /// that come every few µs are near to anything.
    fn fits_only_here(&self, eras: &[ClockMap]) -> bool {
        let sample: Vec<Traced> = self.traced.iter().map(|t| t.sample(SAMPLED)).collect();
        let window = (self.observed.first, self.observed.last);
        let apart = |eras: &[ClockMap]| {
            let of = |(thread, tids): (&Traced, &Vec<i32>)| {
                let seen = tids.iter().filter_map(|tid| self.observed.threads.get(tid));
                let fits = seen.map(|seen| fit::fit(thread, seen, eras, window).items);
                fits.min_by(|a, b| {
                    geometric_mean(a).unwrap_or(f64::MAX).total_cmp(&geometric_mean(b).unwrap_or(f64::MAX))
                })
            };
            geometric_mean(&sample.iter().zip(&self.may_be).filter_map(of).flatten().collect::<Vec<f64>>())
        };
        let Some(here) = apart(eras) else { return true };
        let elsewhere = ELSEWHERE.map(|by| {
            let moved: Vec<ClockMap> = eras.iter().map(|map| map.corrected(&[(0, by)])).collect();
            apart(&moved).unwrap_or(WINDOW as f64)
        });
        let mut elsewhere = elsewhere.map(|ns| ns as u64);
        median(&mut elsewhere).is_none_or(|ns| ns as f64 >= here * BY_CHANCE)
    }

    /// The place, corrected by what coincides, with each thread's identity.
    fn settle(self, candidate: Candidate, why: String, explain: Vec<String>) -> Placement {
        let of = |which: fn(&Fit) -> &[Pair]| -> Vec<Pair> {
            candidate.fits.iter().flatten().flat_map(|f| which(f).iter().copied()).collect()
        };
        let mut pairs = of(|f| &f.pairs);
        let by_markers = pairs.len() >= ENOUGH_MARKERS;
        if !by_markers {
            pairs = of(|f| &f.rests);
        }
        if candidate.doubtful {
            pairs.clear();
        }
        pairs.sort_by_key(|p| (p.era, p.at));
        let (eras, corrected) = correct(candidate.eras, &pairs);
        let identities = identity::decide(&self, &eras);
        let middle = |pair: &[ClockMap]| ClockMap::between(&pair[0], &pair[1]);
        let guess = |thread: usize| {
            eras.windows(2).map(|pair| fit::change_at(&self.traced[thread], middle(pair))).collect()
        };
        let changes = candidate.fits.into_iter().enumerate();
        let changes = changes.map(|(thread, fit)| fit.map_or_else(|| guess(thread), |f| f.changes)).collect();
        let mut placement = Placement {
            start: self.trace.header().start_ns(),
            eras,
            changes,
            identities,
            finding: Finding { clock: candidate.clock, why, explain, ..Finding::default() },
        };
        let mut apart: Vec<u64> = corrected.iter().map(|p| p.apart.unsigned_abs()).collect();
        let mut curve: Vec<u64> = Vec::new();
        for (thread, identity) in placement.identities.iter().enumerate() {
            let Some(seen) = identity.tid.and_then(|tid| self.observed.threads.get(&tid)) else { continue };
            let window = (self.observed.first, self.observed.last);
            let fit = fit::fit(&self.traced[thread], seen, &placement.eras, window);
            curve.extend(fit.curve);
        }
        let residuals = if by_markers { &mut apart } else { &mut curve };
        residuals.sort_unstable();
        let at = |share: f64| {
            residuals
                .get(((residuals.len() as f64 * share) as usize).min(residuals.len().max(1) - 1))
                .copied()
        };
        let finding = &mut placement.finding;
        (finding.median, finding.p99) = (at(0.5), at(0.99));
        finding.verdict = match (finding.median, candidate.apart) {
            _ if candidate.doubtful && candidate.apart.is_none() => Verdict::Assumed,
            _ if candidate.doubtful => Verdict::Consistent,
            (Some(ns), _) if ns <= 100_000 && by_markers => Verdict::Proven,
            (Some(ns), _) if ns <= 50_000 && residuals.len() >= 32 => Verdict::Proven,
            (_, Some(ns)) if ns <= FITS => Verdict::Consistent,
            _ => Verdict::Assumed,
        };
        placement
    }
}

fn distance(at: u64, from: u64, to: u64) -> f64 {
    let outside = from.saturating_sub(at).max(at.saturating_sub(to));
    (outside as f64).clamp(1e3, WINDOW as f64)
}

/// Enters and exits with their markers that prove a place.
const ENOUGH_MARKERS: usize = 8;
/// Pairs of one kind in a stretch that is corrected by itself.
const STRETCH: usize = 32;
/// The trace's times are cut to µs, so this much earlier or later than its marker is no contradiction: ns.
const ROUNDING: i64 = 2_000;

/// Moves the maps where the pairs contradict them: an enter comes before its marker, an exit after. Where they do not,
/// the snapshots know better. Also gives the pairs as they are apart afterwards.
fn correct(eras: Vec<ClockMap>, pairs: &[Pair]) -> (Vec<ClockMap>, Vec<Pair>) {
    let mut all = Vec::with_capacity(pairs.len());
    let corrected = eras.into_iter().enumerate().map(|(era, map)| {
        let own: Vec<Pair> = pairs.iter().filter(|p| p.era == era).copied().collect();
        let corrections = corrections(&own);
        let new = if corrections.is_empty() { map.clone() } else { map.corrected(&corrections) };
        all.extend(own.iter().map(|p| {
            let moved = (new.map(p.at) as i64).wrapping_sub(map.map(p.at) as i64);
            Pair { apart: p.apart - moved, ..*p }
        }));
        new
    });
    (corrected.collect(), all)
}

/// Readings of the trace's clock, and what to add there: ns. Empty where nothing contradicts the map.
fn corrections(pairs: &[Pair]) -> Vec<(i64, i64)> {
    let mut corrections = Vec::new();
    let mut contradicted = false;
    for stretch in pairs.chunks(2 * STRETCH) {
        let of = |begin: bool| -> Option<i64> {
            let mut apart: Vec<i64> = stretch.iter().filter(|p| p.begin == begin).map(|p| p.apart).collect();
            if apart.len() < STRETCH / 4 { None } else { median(&mut apart) }
        };
        let (Some(enter), Some(exit)) = (of(true), of(false)) else { continue };
        contradicted |= enter < -ROUNDING || exit > ROUNDING;
        let middle = stretch[stretch.len() / 2].at as i64;
        corrections.push((middle, enter.midpoint(exit)));
    }
    corrections.dedup_by_key(|(at, _)| *at);
    if contradicted { corrections } else { Vec::new() }
}
