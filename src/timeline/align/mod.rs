//! Finds where a method trace lies on the timeline: by the recording's clock snapshots, and by comparing the
//! trace's calls with the recording's markers and context switches.
//!
//! No field of a method trace names the clock of its start: Dalvik writes CLOCK_REALTIME, ART writes
//! CLOCK_MONOTONIC or, for a year (2023 to 2024), the CPU's counter. So each clock is tried: the snapshots
//! give the trace's place by this clock, and the residuals of markers and context switches show how well that
//! place fits. A clock is chosen only if its place fits clearly better than the places of all other clocks.
//!
//! Samples are placed by the times that their threads had a CPU (`sample_place.rs`).

pub(super) mod boots;
mod candidates;
pub(super) mod clock_map;
mod identity;
pub(super) mod kernel_evidence;
pub(super) mod method_evidence;
pub(super) mod placement;
pub(super) mod reason;
mod residuals;
pub(super) mod running_times;
pub(super) mod sample_evidence;
mod sample_offset;
pub(super) mod sample_place;

use self::candidates::{ChosenPlace, MAX_RESIDUAL_NS, START_RESOLUTION_NS, candidates, choose};
use self::clock_map::{ClockMap, ReferenceClock};
use self::identity::Evidence;
use self::kernel_evidence::KernelEvidence;
use self::placement::{Finding, MergeOptions, Placement};
use self::reason::{NoPlace, NoSamplePlace, PlaceBasis, Trial};
use self::residuals::{MatchedPair, Residuals, correct};
use super::summary::Verdict;
use crate::art::ClockMode;
use crate::clock::{Clock, Timestamp};
use crate::formats::art_method::{MethodTrace, Tracer, YEAR_2001_NS};
use crate::statistics::median;

/// A method trace or samples could not be placed.
#[derive(Debug, thiserror::Error)]
pub enum AlignError {
    /// Neither the recording's snapshots nor a comparison of the two files decides where it began.
    #[error(
        "{name}: nothing tells when this method trace began on the recording's clock: {why} ({}). Say it with \
         --clock (realtime, mono, boot, cpu-counter) or with --offset (ns to add to its times)",
        joined(.trials)
    )]
    Unplaced {
        /// The path as given.
        name: String,
        /// Why none of the places that were tried is chosen.
        why: NoPlace,
        /// The places that were tried.
        trials: Vec<Trial>,
    },
    /// Neither the samples' clock nor a comparison with the recording decides where the samples lie.
    #[error(
        "{name}: nothing tells where these samples lie on the recording's clock: {why} ({}). Say it with --clock \
         (realtime, mono, boot) or with --offset (ns to add to their times)",
        joined(.trials)
    )]
    UnplacedSamples {
        /// The path as given.
        name: String,
        /// Why none of the places that were tried is chosen.
        why: NoSamplePlace,
        /// The places that were tried.
        trials: Vec<Trial>,
    },
    /// The samples have no times.
    #[error(
        "{name}: these samples have no times, so that no timeline can hold them: leave them out; `tracebridge \
         profile` counts them"
    )]
    SamplesWithoutTimes {
        /// The path as given.
        name: String,
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

/// The places that were tried, for people.
fn joined(trials: &[Trial]) -> String {
    trials.iter().map(Trial::to_string).collect::<Vec<_>>().join("; ")
}

/// The least number of enters and exits matched with markers that suffices to correct and to prove a place.
const MIN_MARKER_PAIRS: usize = 8;
/// The farthest before or after a recording that a trace may begin, ns. The unit of a trace's times, ticks or
/// ns, is chosen so that the trace begins within this distance.
const MAX_UNIT_DISTANCE_NS: u64 = 60_000_000_000;

/// The clock of a trace's start: by the format where it decides that, else by the size of the number alone.
pub fn usual_clock(trace: &MethodTrace<'_>) -> Clock {
    let guess = if trace.header().start_ns() > YEAR_2001_NS { Clock::Realtime } else { Clock::Monotonic };
    trace.header().start_clock.unwrap_or(guess)
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
    let Some(kernel) = recordings.filter(|kernel| kernel.last > Timestamp::MIN) else {
        return Ok(without_recording(trace, reference, options));
    };
    let threads = method_evidence::collect(trace, &kernel.names);
    let candidate_tids = identity::candidates(trace, kernel);
    let evidence = Evidence { trace, threads, kernel, candidate_tids };
    let mut trials = Vec::new();
    let (candidates, untried) = candidates(&evidence, reference, options, &mut trials);
    // The readings of a snapshot may be apart by as much as `took` ns, so each of two candidates may be
    // off by as much.
    let same = START_RESOLUTION_NS + 2 * reference.snapshots.list.iter().map(|s| s.took).max().unwrap_or(0);
    match choose(candidates, &untried, same, options, &mut trials) {
        Ok(choice) => Ok(settle(&evidence, choice, trials)),
        Err(why) => Err(AlignError::Unplaced { name: name.to_owned(), why, trials }),
    }
}

/// The place of a method trace without a recording, or with one that has no events: the trace's own clock is
/// the timeline's, unless snapshots relate them.
fn without_recording(
    trace: &MethodTrace<'_>,
    reference: &ReferenceClock,
    options: &MergeOptions,
) -> Placement {
    let clock = options.clock.unwrap_or_else(|| usual_clock(trace));
    let basis = if options.offset_ns.is_some() {
        PlaceBasis::OffsetOption
    } else {
        PlaceBasis::NoRecording { is_cpu_time: trace.header().clock == ClockMode::ThreadCpu }
    };
    let finding = Finding { clock, basis, ..Finding::default() };
    Placement {
        start: Timestamp(trace.header().start_ns()),
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

/// Makes the placement of the chosen candidate: corrects its clock maps by the matched pairs, and decides
/// which kernel thread each thread of the trace is.
fn settle(evidence: &Evidence<'_, '_>, choice: ChosenPlace, trials: Vec<Trial>) -> Placement {
    let ChosenPlace { candidate, basis } = choice;
    let all = |which: fn(&Residuals) -> &[MatchedPair]| -> Vec<MatchedPair> {
        candidate.fits.iter().flatten().flat_map(|f| which(f).iter().copied()).collect()
    };
    let mut pairs = all(|fit| &fit.pairs);
    let by_markers = pairs.len() >= MIN_MARKER_PAIRS;
    if !by_markers {
        pairs = all(|fit| &fit.switches);
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
        start: Timestamp(evidence.trace.header().start_ns()),
        segments,
        changes,
        identities,
        finding: Finding { clock: candidate.clock, basis, trials, ..Finding::default() },
    };
    let mut apart: Vec<u64> = corrected.iter().map(|p| p.apart.unsigned_abs()).collect();
    let mut curve: Vec<u64> = Vec::new();
    for (thread, identity) in placement.identities.iter().enumerate() {
        let Some(seen) = identity.tid.and_then(|tid| evidence.kernel.threads.get(&tid)) else { continue };
        let window = evidence.kernel.first..=evidence.kernel.last;
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
    finding.verdict = match (finding.median, candidate.residual_ns) {
        _ if candidate.doubtful && candidate.residual_ns.is_none() => Verdict::Assumed,
        _ if candidate.doubtful => Verdict::Consistent,
        (Some(ns), _) if ns <= 100_000 && by_markers => Verdict::Proven,
        (Some(ns), _) if ns <= 50_000 && residuals.len() >= 32 => Verdict::Proven,
        (_, Some(ns)) if ns <= MAX_RESIDUAL_NS => Verdict::Consistent,
        _ => Verdict::Assumed,
    };
    placement
}

/// Reads the times of a trace of the always-on tracer as ticks of the CPU's counter where only this puts them
/// near the recording. Its first version wrote ticks, its second one ns, and neither says so.
pub fn settle_counter_unit(
    trace: &mut MethodTrace<'_>,
    recordings: Option<&KernelEvidence>,
    reference: &ReferenceClock,
) {
    let header = trace.header();
    if header.tracer != Tracer::LongRunning || header.start_clock != Some(Clock::Counter) {
        return;
    }
    let Some(kernel) = recordings else { return };
    let Some(hz) = clock_map::counter_hz(&reference.snapshots) else { return };
    let segments = clock_map::segments(&reference.snapshots, Clock::Counter, reference.clock);
    let is_near = |start_ns: u64| {
        segments.iter().map(|segment| segment.map(Timestamp(start_ns))).any(|begins| {
            begins.saturating_add(MAX_UNIT_DISTANCE_NS) >= kernel.first
                && begins <= kernel.last.saturating_add(MAX_UNIT_DISTANCE_NS)
        })
    };
    let in_ticks = trace.start_of_ticks(hz);
    if !is_near(header.start_ns()) && in_ticks.is_some_and(is_near) {
        trace.take_times_for_ticks(hz);
    }
}
