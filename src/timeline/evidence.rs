//! The evidence that decides the place of one method trace: evidence from the trace, and evidence from the
//! recordings.

use super::clock_map::ClockMap;
use super::kernel_evidence::KernelEvidence;
use super::method_evidence::MethodEvidence;
use super::residuals::{self, Residuals};
use crate::formats::art_method::MethodTrace;

/// The evidence that decides the place of one method trace.
pub struct Evidence<'t, 'a> {
    /// The method trace.
    pub trace: &'t MethodTrace<'a>,
    /// For each thread of the method trace, the calls and stretches that are compared with the recordings.
    pub threads: Vec<MethodEvidence>,
    /// The markers and context switches of all recordings.
    pub kernel: &'t KernelEvidence,
    /// For each thread of the method trace, the kernel threads that it may be by process, name and id.
    pub candidate_tids: Vec<Vec<i32>>,
}

impl Evidence<'_, '_> {
    /// Whether a trace that begins at `begins` (ns of the timeline) overlaps the recordings, give or take
    /// `slack` ns.
    pub fn is_within(&self, begins: u64, slack: u64) -> bool {
        let start = self.trace.header().start_ns();
        let longest = self.threads.iter().map(|t| t.last.saturating_sub(start)).max().unwrap_or(0);
        begins <= self.kernel.last.saturating_add(slack)
            && begins.saturating_add(longest).saturating_add(slack) >= self.kernel.first
    }

    /// The residuals of a thread with each kernel thread that it may be; `segments` turn the trace's clock
    /// into the timeline's.
    pub fn fits(&self, thread: usize, segments: &[ClockMap]) -> Vec<(i32, Residuals)> {
        let window = (self.kernel.first, self.kernel.last);
        let fit = |tid: &i32| {
            let seen = self.kernel.threads.get(tid)?;
            Some((*tid, residuals::compare(&self.threads[thread], seen, segments, window)))
        };
        self.candidate_tids[thread].iter().filter_map(fit).collect()
    }
}
