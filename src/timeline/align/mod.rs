//! Finds where a method trace lies on the timeline: by the recording's clock snapshots, and by comparing
//! the trace's calls with the recording's markers and context switches.
//!
//! No field of a method trace names the clock of its start: Dalvik writes CLOCK_REALTIME, ART writes
//! CLOCK_MONOTONIC or, for a year (2023 to 2024), the CPU's counter. So each clock is tried: the snapshots
//! give the trace's place by this clock, and the residuals of markers and context switches show how well
//! that place fits. A clock is chosen only if its place fits clearly better than the places of all other
//! clocks.
//!
//! Samples are placed by the times that their threads had a CPU (`sample_place.rs`).

pub(super) mod boots;
mod candidates;
pub(super) mod clock_map;
mod identity;
pub(super) mod kernel_evidence;
pub(super) mod method_evidence;
mod place_error;
pub(super) mod placement;
pub(super) mod reason;
mod residuals;
mod running_fit;
pub(super) mod running_times;
mod runtime_clock;
pub(super) mod sample_evidence;
mod sample_offset;
pub(super) mod sample_place;

use self::candidates::{ChosenPlace, MAX_RESIDUAL_NS, START_RESOLUTION_NS, candidates, choose};
use self::clock_map::{ClockMap, ReferenceClock};
use self::identity::Evidence;
use self::kernel_evidence::KernelEvidence;
use self::place_error::PlaceFacts;
use self::placement::{Finding, MergeOptions, Placement};
use self::reason::{NoPlace, NoSamplePlace, PlaceBasis, Trial};
use self::residuals::{MIN_MARKER_PAIRS, correct, pairs_to_correct_by};
use self::runtime_clock::runtime_clock;
use super::summary::Verdict;
use crate::art::ClockMode;
use crate::clock::{Clock, Timestamp};
use crate::formats::art_method::{MethodTrace, Tracer};
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

/// A place that is farther off than this, ns, is not proven.
const MAX_PROVEN_ERROR_NS: u64 = 100_000;
/// A recording whose clock is the kernel's trace clock is related to others by times that are printed in µs
/// and read from a file: their error, ns.
const TRACE_CLOCK_ERROR_NS: u64 = 10_000;
/// The farthest before or after a recording that a trace may begin, ns. The unit of a trace's times, ticks
/// or ns, is chosen so that the trace begins within this distance.
const MAX_UNIT_DISTANCE_NS: u64 = 60_000_000_000;

/// The clock of a trace's start by its runtime's source.
pub fn usual_clock(trace: &MethodTrace<'_>) -> Clock {
    runtime_clock(trace).clock
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
    let is_system_clock =
        matches!(reference.clock, Clock::Boottime | Clock::Monotonic | Clock::MonotonicRaw | Clock::Realtime);
    let relation_ns = same + if is_system_clock { 0 } else { TRACE_CLOCK_ERROR_NS };
    match choose(candidates, &untried, same, options, runtime_clock(trace), &mut trials) {
        Ok(choice) => Ok(settle(&evidence, choice, relation_ns, trials)),
        Err(why) => Err(AlignError::Unplaced { name: name.to_owned(), why, trials }),
    }
}

/// The place of a method trace without a recording, or with one that has no events: the trace's own clock
/// is the timeline's, unless snapshots relate them.
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
fn settle(
    evidence: &Evidence<'_, '_>,
    choice: ChosenPlace,
    relation_ns: u64,
    trials: Vec<Trial>,
) -> Placement {
    let ChosenPlace { candidate, basis } = choice;
    let compared = candidate.compared();
    let by_markers =
        candidate.fits.iter().flatten().map(|fit| fit.pairs.len()).sum::<usize>() >= MIN_MARKER_PAIRS;
    let runtime = runtime_clock(evidence.trace);
    let mut pairs = pairs_to_correct_by(&candidate.fits);
    // A clock that is certain is corrected only where the records do not lie where their threads ran.
    // Samples are not taken while their thread runs: what lies between two of them bounds nothing.
    let is_exact = runtime.is_certain && runtime.clock == candidate.clock && candidate.is_from_snapshots;
    if candidate.doubtful || candidate.running.are_samples || (is_exact && candidate.running.agrees()) {
        pairs.clear();
    }
    let (segments, corrected) = correct(candidate.segments.clone(), &pairs);
    let start = Timestamp(evidence.trace.header().start_ns());
    let last = evidence.threads.iter().map(|thread| thread.last).max().unwrap_or(start);
    let error_ns = PlaceFacts {
        relation_ns: candidate.is_from_snapshots.then_some(relation_ns),
        is_exact,
        is_corrected: segments != candidate.segments,
        pairs: &corrected,
        length_ns: last.since(start),
    }
    .error_ns();
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
        start,
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
    let is_close = |limit: u64| finding.median.is_some_and(|ns| ns <= limit);
    let coincides = !candidate.doubtful
        && if by_markers { is_close(100_000) } else { residuals.len() >= 32 && is_close(50_000) };
    let fits = candidate.residual_ns.is_some_and(|ns| ns <= MAX_RESIDUAL_NS)
        || candidate.running.agrees()
        || (is_exact && candidate.running.contradicts_nothing());
    let is_proven = coincides || candidate.running.proves() || (compared.starts_in_marker && fits);
    if evidence.trace.header().clock == ClockMode::ThreadCpu {
        finding.verdict = Verdict::Assumed;
        finding.basis = PlaceBasis::OnlyStart(finding.clock);
        return placement;
    }
    finding.verdict = if compared.is_nothing() || candidate.running.contradicts() {
        Verdict::Assumed
    } else if is_proven && error_ns.is_some_and(|ns| ns <= MAX_PROVEN_ERROR_NS) {
        Verdict::Proven
    } else if is_proven || fits {
        Verdict::Consistent
    } else {
        Verdict::Assumed
    };
    finding.error_ns = error_ns.filter(|_| finding.verdict != Verdict::Assumed);
    placement
}

/// Reads the times of a trace of the always-on tracer as ticks of the CPU's counter where only this puts
/// them near the recording. Its first version wrote ticks, its second one ns, and neither says so.
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
