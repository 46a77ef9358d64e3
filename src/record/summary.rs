//! What a recording came to, for people and (as JSON) for scripts.

use std::path::PathBuf;

use serde::Serialize;

/// One CPU's share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CpuSummary {
    /// The CPU.
    pub cpu: u32,
    /// Events the kernel handed out (`read events` of `stats`).
    pub events: u64,
    /// Bytes of pages written to the capture.
    pub bytes: u64,
    /// Events overwritten before they were read.
    pub overrun: u64,
    /// Events not written because the buffer was full.
    pub dropped: u64,
    /// Events lost to an interrupt in a bad moment.
    pub commit_overrun: u64,
    /// Gaps that the pages themselves tell of.
    pub gaps: u64,
    /// Events missing in them, as far as the pages told.
    pub missed: u64,
    /// Events left in the buffer, when a recording ended before it could be emptied.
    pub left: u64,
}

impl CpuSummary {
    /// Events known lost: what the kernel counted, or what the pages told where that is more. In a recording that is
    /// only read at its end these are no loss, but what a ring overwrites and a full buffer refuses.
    pub fn lost(&self) -> u64 {
        (self.overrun + self.dropped + self.commit_overrun).max(self.missed).max(u64::from(self.gaps > 0))
    }
}

/// What a recording came to.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Summary {
    /// The capture; `-` for a stream.
    pub output: PathBuf,
    /// Its length, bytes.
    pub bytes: u64,
    /// Whether pages were moved while they filled: then overwritten and refused events are losses.
    pub streaming: bool,
    /// From tracing on to tracing off, seconds.
    pub seconds: f64,
    /// ftrace's name of the clock of the events' times.
    pub clock: String,
    /// Why it ended: `time`, `signal SIGINT`, `size`, `full`, `an error`.
    pub ended_by: String,
    /// Per CPU.
    pub cpus: Vec<CpuSummary>,
    /// What could not be had or went wrong without ending the recording.
    pub notes: Vec<String>,
    /// The error that ended it, where one did; what was written before is there.
    pub error: Option<String>,
    /// User and system time of the recorder, seconds.
    pub cpu_seconds: f64,
    /// The most memory the recorder had, KiB.
    pub peak_rss_kb: u64,
}

impl Summary {
    /// Events of all CPUs.
    pub fn events(&self) -> u64 {
        self.cpus.iter().map(|c| c.events).sum()
    }

    /// Events lost of all CPUs.
    pub fn lost(&self) -> u64 {
        if self.streaming { self.cpus.iter().map(CpuSummary::lost).sum() } else { 0 }
    }

    /// Whether anything is missing: exit code 3.
    pub fn is_lossy(&self) -> bool {
        self.error.is_some() || self.lost() > 0 || (self.streaming && self.cpus.iter().any(|c| c.left > 0))
    }

    /// Adds what the process itself used so far.
    pub(super) fn add_usage(&mut self) {
        use nix::sys::resource::{UsageWho, getrusage};
        if let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) {
            let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
            self.cpu_seconds = seconds(usage.user_time()) + seconds(usage.system_time());
            self.peak_rss_kb = usage.max_rss() as u64;
        }
    }

    /// The lines for a person.
    pub fn text(&self) -> String {
        let mut out = format!(
            "{}: {} events in {:.2} s, {} bytes, clock {}, ended by {}\n",
            self.output.display(),
            self.events(),
            self.seconds,
            self.bytes,
            self.clock,
            self.ended_by
        );
        for c in &self.cpus {
            let word = if self.streaming { "lost" } else { "overwritten or refused" };
            out += &format!("  cpu {:>2}: {:>10} events, {} {word}", c.cpu, c.events, c.lost());
            if c.lost() > 0 {
                out += &format!(
                    " (overrun {}, dropped {}, commit overrun {}, gaps {})",
                    c.overrun, c.dropped, c.commit_overrun, c.gaps
                );
            }
            if c.left > 0 {
                out += &format!(", {} left in the kernel", c.left);
            }
            out.push('\n');
        }
        out += &format!(
            "  recorder: {:.2} CPU-seconds, at most {} KiB of memory\n",
            self.cpu_seconds, self.peak_rss_kb
        );
        self.notes.iter().for_each(|n| out += &format!("  note: {n}\n"));
        if let Some(error) = &self.error {
            out += &format!("  ended early: {error}\n");
        }
        out
    }
}
