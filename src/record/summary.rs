//! The summary of a recording: a text for people, and JSON for scripts.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::rings::RingsSummary;

/// The counts of one CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct CpuSummary {
    /// The CPU's id.
    pub(crate) cpu: u32,
    /// Events in the capture.
    pub(crate) events: u64,
    /// Events that another program has read out of the same buffer: what the kernel counts as read and the
    /// capture does not hold.
    pub(crate) taken: u64,
    /// Events that were read out of the buffer, and that the reader of a stream did not take before the end.
    pub(crate) unsent: u64,
    /// Bytes of pages written to the capture.
    pub(crate) bytes: u64,
    /// Events that were overwritten before they were read.
    pub(crate) overrun: u64,
    /// Events that the kernel did not write because the buffer was full.
    pub(crate) dropped: u64,
    /// Events lost because an interrupt came while the writer was changing pages.
    pub(crate) commit_overrun: u64,
    /// Pages whose header says that events were lost before the page.
    pub(crate) gaps: u64,
    /// Events lost in these gaps, where the pages give a number.
    pub(crate) missed: u64,
    /// Events that stayed in the kernel's buffer because the recording ended before the buffer was empty.
    pub(crate) left: u64,
}

impl CpuSummary {
    /// The number of events known to be lost: the kernel's count or, if that is larger, the count of the page
    /// headers. In a recording that is read only at its end, these are not losses but the events that the
    /// ring has overwritten or the full buffer has refused.
    pub(crate) fn lost(&self) -> u64 {
        self.overwritten() + self.taken + self.unsent
    }

    fn overwritten(&self) -> u64 {
        (self.overrun + self.dropped + self.commit_overrun).max(self.missed).max(u64::from(self.gaps > 0))
    }
}

/// How another program took the trace buffer over.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct BufferTakeover {
    /// When that was noticed, seconds after the start; it happened at most a second before.
    pub(crate) seconds: f64,
    /// What the program changed: `tracing_on from 1 to 0`.
    pub(crate) changes: Vec<String>,
}

/// The summary of a recording. Its JSON form is part of the command line's interface.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct RecordingSummary {
    /// The capture's path; `-` for a stream.
    pub(crate) output: PathBuf,
    /// The capture's length, bytes.
    pub(crate) bytes: u64,
    /// Whether pages were read while the buffer filled. Only then are overwritten and refused events losses.
    pub(crate) streaming: bool,
    /// The time between switching tracing on and off, seconds.
    pub(crate) seconds: f64,
    /// ftrace's name of the trace clock.
    pub(crate) clock: String,
    /// Why the recording ended: `time`, `signal SIGINT`, `size`, `full`, `another program`, `an error`,
    /// `dump`.
    pub(crate) ended_by: String,
    /// The counts of each CPU.
    pub(crate) cpus: Vec<CpuSummary>,
    /// Markers that programs wrote into rings in their memory.
    pub(crate) rings: RingsSummary,
    /// Sentences about what was not available or went wrong without ending the recording.
    pub(crate) notes: Vec<String>,
    /// What another program changed when it took the buffer over; `None` if none did. The recording ended
    /// there.
    pub(crate) taken_over: Option<BufferTakeover>,
    /// The error that ended the recording, if one did. The capture holds everything that was written before.
    pub(crate) error: Option<String>,
    /// How the recorder was scheduled while it recorded: `real-time 1`, `nice -19`, `ordinary`.
    pub(crate) scheduling: String,
    /// The recorder's user and system time, seconds.
    pub(crate) cpu_seconds: f64,
    /// The recorder's peak resident memory, KiB.
    pub(crate) peak_rss_kb: u64,
}

impl RecordingSummary {
    /// The number of recorded events, all CPUs together.
    pub(crate) fn events(&self) -> u64 {
        self.cpus.iter().map(|c| c.events).sum()
    }

    /// The number of lost events, all CPUs together. In a recording that is read only at its end, only what
    /// another program has taken is lost.
    pub(crate) fn lost(&self) -> u64 {
        self.cpus.iter().map(|cpu| if self.streaming { cpu.lost() } else { cpu.taken + cpu.unsent }).sum()
    }

    /// Whether the capture is a stream on standard output.
    pub(crate) fn is_on_stdout(&self) -> bool {
        self.output == Path::new("-")
    }

    /// Whether anything is missing from the capture; the exit code is 3 then.
    pub(crate) fn is_lossy(&self) -> bool {
        self.error.is_some()
            || self.taken_over.is_some()
            || self.rings.is_lossy()
            || self.lost() > 0
            || (self.streaming && self.cpus.iter().any(|c| c.left > 0))
    }

    /// Fills in the CPU time and memory that this process has used so far.
    pub(super) fn add_usage(&mut self) {
        use nix::sys::resource::{UsageWho, getrusage};
        if let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) {
            let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
            self.cpu_seconds = seconds(usage.user_time()) + seconds(usage.system_time());
            self.peak_rss_kb = usage.max_rss() as u64;
        }
    }

    /// The summary as text for people, ending with a newline.
    pub(crate) fn text(&self) -> String {
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
            out += &format!("  cpu {:>2}: {:>10} events, {} {word}", c.cpu, c.events, c.overwritten());
            if c.overwritten() > 0 {
                out += &format!(
                    " (overrun {}, dropped {}, commit overrun {}, gaps {})",
                    c.overrun, c.dropped, c.commit_overrun, c.gaps
                );
            }
            if c.taken > 0 {
                out += &format!(", {} taken by another program", c.taken);
            }
            if c.unsent > 0 {
                out += &format!(", {} not taken by the reader of the stream", c.unsent);
            }
            if c.left > 0 {
                out += &format!(", {} left in the kernel", c.left);
            }
            out.push('\n');
        }
        out += &self.rings.text();
        out += &format!(
            "  recorder: {:.2} CPU-seconds, at most {} KiB of memory{}\n",
            self.cpu_seconds,
            self.peak_rss_kb,
            if self.scheduling.is_empty() {
                String::new()
            } else {
                format!(", {} scheduling", self.scheduling)
            }
        );
        if let Some(BufferTakeover { seconds, changes }) = &self.taken_over {
            out += &format!(
                "  after {seconds:.1} s another program took the trace buffer over and changed {}: the recording ends there. \
                 With --instance it has a buffer of its own\n",
                changes.join(", ")
            );
        }
        self.notes.iter().for_each(|n| out += &format!("  note: {n}\n"));
        if let Some(error) = &self.error {
            out += &format!("  ended early: {error}\n");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(streaming: bool) -> RecordingSummary {
        let cpu = CpuSummary {
            cpu: 1,
            events: 7,
            overrun: 2,
            dropped: 1,
            gaps: 1,
            missed: 5,
            ..Default::default()
        };
        RecordingSummary { streaming, cpus: vec![cpu], ..RecordingSummary::default() }
    }

    #[test]
    fn overwritten_events_are_losses_only_while_pages_are_streamed() {
        assert_eq!((summary(true).lost(), summary(true).is_lossy()), (5, true));
        assert_eq!((summary(false).lost(), summary(false).is_lossy()), (0, false));
        assert!(summary(true).text().contains("5 lost (overrun 2, dropped 1"), "{}", summary(true).text());
        assert!(summary(false).text().contains("5 overwritten or refused"), "{}", summary(false).text());
    }

    #[test]
    fn what_another_reader_has_taken_is_lost_in_every_mode() {
        let cpu = CpuSummary { taken: 9, overrun: 4, ..CpuSummary::default() };
        let of = |streaming| RecordingSummary {
            streaming,
            cpus: vec![cpu.clone()],
            ..RecordingSummary::default()
        };
        assert_eq!((of(true).lost(), of(false).lost(), of(false).is_lossy()), (13, 9, true));
        assert!(of(false).text().contains("9 taken by another program"), "{}", of(false).text());
    }

    #[test]
    fn a_gap_without_a_number_counts_as_one_lost_event() {
        assert_eq!(CpuSummary { gaps: 3, ..CpuSummary::default() }.lost(), 1);
    }
}
