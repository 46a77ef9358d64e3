//! The losses that `FtraceStats` messages count.

use std::collections::BTreeMap;

use super::fields::{ftrace_cpu_stats, ftrace_stats, ftrace_stats_phase};
use super::wire::read::{WireValue, fields, last_value};

/// Lost events of one CPU as the kernel counts them: overrun and dropped events since the ring buffer was
/// allocated.
#[derive(Default)]
struct LostEventCount {
    at_start: Option<u64>,
    at_end: u64,
}

/// The lost events of all CPUs.
#[derive(Default)]
pub(super) struct KernelLosses(BTreeMap<u32, LostEventCount>);

impl KernelLosses {
    /// Reads an `FtraceStats` message.
    pub(super) fn add_stats(&mut self, body: &[u8]) {
        let phase = last_value(body, ftrace_stats::PHASE).map(WireValue::number);
        for (_, cpu) in fields(body).filter(|(n, _)| *n == ftrace_stats::CPU_STATS) {
            let number = |n| last_value(cpu.bytes(), n).map_or(0, |v| v.number());
            let overrun = number(ftrace_cpu_stats::OVERRUN);
            let lost = overrun.saturating_add(number(ftrace_cpu_stats::DROPPED_EVENTS));
            let count = self.0.entry(number(ftrace_cpu_stats::CPU) as u32).or_default();
            match phase {
                Some(ftrace_stats_phase::START_OF_TRACE) => count.at_start = Some(lost),
                _ => count.at_end = lost,
            }
        }
    }

    /// The CPUs and the number of events that each of them lost during the recording. CPUs without a count
    /// from the start of the recording are left out: the kernel's count may include losses from before the
    /// recording.
    pub(super) fn by_cpu(&self) -> impl Iterator<Item = (u32, u64)> + use<'_> {
        let lost = |c: &LostEventCount| c.at_start.map(|start| c.at_end.saturating_sub(start));
        self.0.iter().filter_map(move |(cpu, count)| Some((*cpu, lost(count)?)))
    }
}
