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
    /// Events known lost: what the kernel counted, or what the pages told where that is more.
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
    /// From tracing on to tracing off, seconds.
    pub seconds: f64,
    /// ftrace's name of the clock of the events' times.
    pub clock: String,
    /// Why it ended: `time`, `signal SIGINT`, `size`, `output`, `reader gone`.
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
        self.cpus.iter().map(CpuSummary::lost).sum()
    }

    /// Whether anything is missing: exit code 3.
    pub fn is_lossy(&self) -> bool {
        self.error.is_some() || self.cpus.iter().any(|c| c.lost() > 0 || c.left > 0)
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
            out += &format!("  cpu {:>2}: {:>10} events, {} lost", c.cpu, c.events, c.lost());
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
