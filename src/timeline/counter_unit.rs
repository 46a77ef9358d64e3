//! Decides whether the always-on tracer wrote its times as ns or as ticks of the CPU's counter. Its first
//! version wrote ticks, its second one ns, and neither says so; only the recording tells them apart.

use super::alignment::ReferenceClock;
use super::clock_map;
use super::kernel_evidence::KernelEvidence;
use crate::clock::Clock;
use crate::formats::art_method::{MethodTrace, Tracer};

/// A trace may begin so long before or after the recording, ns.
const MAX_OUTSIDE_RECORDING_NS: u64 = 60_000_000_000;

/// Reads the times of `trace` as ticks where only this puts them near the recording.
pub fn settle(trace: &mut MethodTrace<'_>, recordings: Option<&KernelEvidence>, reference: &ReferenceClock) {
    let header = trace.header();
    if header.tracer != Tracer::LongRunning || header.start_clock != Some(Clock::Counter) {
        return;
    }
    let (Some(kernel), Some(hz)) = (recordings, clock_map::counter_hz(&reference.snapshots)) else { return };
    let segments = clock_map::segments(&reference.snapshots, Clock::Counter, reference.clock);
    let is_near = |start_ns: u64| {
        segments.iter().map(|segment| segment.map(start_ns)).any(|begins| {
            begins.saturating_add(MAX_OUTSIDE_RECORDING_NS) >= kernel.first
                && begins <= kernel.last.saturating_add(MAX_OUTSIDE_RECORDING_NS)
        })
    };
    let in_ticks = trace.start_of_ticks(hz);
    if !is_near(header.start_ns()) && in_ticks.is_some_and(is_near) {
        trace.take_times_for_ticks(hz);
    }
}
