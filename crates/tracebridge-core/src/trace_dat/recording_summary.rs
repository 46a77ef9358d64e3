//! The summary of a recording, which the recorder prints as JSON and both sides print as text: for the
//! device's own commands one line for each CPU, for the host's `adb` commands the sums.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{RingProgram, RingsInfo};
use crate::ids::{Cpu, Pid, Tid};

/// The most programs that the capture's head names. It has a fixed size.
const MAX_PROGRAMS_IN_HEAD: usize = 64;
/// The most lines of the text that name programs, threads or refused rings.
const MAX_RING_LINES: usize = 16;

/// The counts of one CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CpuSummary {
    /// The CPU's id.
    pub cpu: Cpu,
    /// Events in the capture.
    pub events: u64,
    /// Events that another program has read out of the same buffer: what the kernel counts as read and the
    /// capture does not hold.
    pub taken: u64,
    /// Events that were read out of the buffer, and that the reader of a stream did not take before the end.
    pub unsent: u64,
    /// Bytes of pages written to the capture.
    pub bytes: u64,
    /// Events that were overwritten before they were read.
    pub overrun: u64,
    /// Events that the kernel did not write because the buffer was full.
    pub dropped: u64,
    /// Events lost because an interrupt came while the writer was changing pages.
    pub commit_overrun: u64,
    /// Pages whose header says that events were lost before the page.
    pub gaps: u64,
    /// Events lost in these gaps, where the pages give a number.
    pub missed: u64,
    /// Events that stayed in the kernel's buffer because the recording ended before the buffer was empty.
    pub left: u64,
}

impl CpuSummary {
    /// The number of events known to be lost: the kernel's count or, if that is larger, the count of the page
    /// headers. In a recording that is read only at its end, these are not losses but the events that the
    /// ring has overwritten or the full buffer has refused.
    pub fn lost(&self) -> u64 {
        self.overwritten().saturating_add(self.taken).saturating_add(self.unsent)
    }

    fn overwritten(&self) -> u64 {
        let counted = self.overrun.saturating_add(self.dropped).saturating_add(self.commit_overrun);
        counted.max(self.missed).max(u64::from(self.gaps > 0))
    }
}

/// How another program took the trace buffer over.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BufferTakeover {
    /// When that was noticed, seconds after the start; it happened at most a second before.
    pub seconds: f64,
    /// The settings that the program changed: `tracing_on from 1 to 0`.
    pub changes: Vec<String>,
}

/// The summary of a recording. Its JSON form is part of the command line's interface. A field that a recorder
/// of another version does not print is empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RecordingSummary {
    /// The capture's path; `-` for a stream.
    pub output: PathBuf,
    /// The capture's length, bytes.
    pub bytes: u64,
    /// Whether pages were read while the buffer filled. Only then are overwritten and refused events losses.
    pub streaming: bool,
    /// The time between switching tracing on and off, seconds.
    pub seconds: f64,
    /// ftrace's name of the trace clock.
    pub clock: String,
    /// time, signal NAME, size, full, another program, an error, or dump.
    pub ended_by: RecordingEndReason,
    /// The counts of each CPU.
    pub cpus: Vec<CpuSummary>,
    /// Markers that programs wrote into rings in their memory.
    pub rings: RingsSummary,
    /// Sentences about what was not available or went wrong without ending the recording.
    pub notes: Vec<String>,
    /// The settings that another program changed when it took the buffer over; `None` if none did. The
    /// recording ended there.
    pub taken_over: Option<BufferTakeover>,
    /// The error that ended the recording, if one did. The capture holds everything that was written before.
    pub error: Option<String>,
    /// How the recorder was scheduled while it recorded: `real-time 1`, `nice -19`, `ordinary`.
    pub scheduling: String,
    /// The recorder's user and system time, seconds.
    pub cpu_seconds: f64,
    /// The recorder's peak resident memory, KiB.
    pub peak_rss_kb: u64,
}

impl RecordingSummary {
    /// The number of recorded events, all CPUs together.
    pub fn events(&self) -> u64 {
        self.sum(|cpu| cpu.events)
    }

    /// The number of lost events, all CPUs together. In a recording that is read only at its end, only what
    /// another program has taken is lost.
    pub fn lost(&self) -> u64 {
        self.sum(|cpu| if self.streaming { cpu.lost() } else { cpu.taken.saturating_add(cpu.unsent) })
    }

    fn sum(&self, count: impl Fn(&CpuSummary) -> u64) -> u64 {
        self.cpus.iter().map(count).fold(0, u64::saturating_add)
    }

    /// The word for events that were overwritten or that a full buffer refused.
    fn overwritten_word(&self) -> &'static str {
        if self.streaming { "lost" } else { "overwritten or refused" }
    }

    /// Whether the capture is a stream on standard output.
    pub fn is_on_stdout(&self) -> bool {
        self.output == Path::new("-")
    }

    /// Whether anything is missing from the capture; the exit code is 3 then.
    pub fn is_lossy(&self) -> bool {
        self.error.is_some()
            || self.taken_over.is_some()
            || self.rings.is_lossy()
            || self.lost() > 0
            || (self.streaming && self.cpus.iter().any(|c| c.left > 0))
    }

    /// The summary as text for people, ending with a newline.
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
            let word = self.overwritten_word();
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
        out + &self.incidents_text()
    }

    /// A line for people with the number of events on all CPUs, ending with a newline.
    pub fn events_text(&self) -> String {
        let events = self.events();
        let cpus = self.cpus.len();
        let clock = &self.clock;
        match &self.ended_by {
            // It takes no time: the events are those that the buffer held.
            RecordingEndReason::Dump => format!("  {events} events on {cpus} CPUs, clock {clock}\n"),
            reason => format!(
                "  {events} events in {:.2} s on {cpus} CPUs, clock {clock}, ended by {reason}\n",
                self.seconds
            ),
        }
    }

    /// Lines for people with the events of all CPUs that are not in the recording, and with the markers from
    /// rings.
    pub fn losses_text(&self) -> String {
        let mut out = String::new();
        for (count, fate) in [
            (self.sum(CpuSummary::overwritten), self.overwritten_word()),
            (self.sum(|cpu| cpu.taken), "taken by another program"),
            (self.sum(|cpu| cpu.unsent), "not taken by the reader of the stream"),
            (self.sum(|cpu| cpu.left), "left in the kernel"),
        ] {
            if count > 0 {
                out += &format!("  {count} events {fate}\n");
            }
        }
        let RingsSummary { markers, dropped, .. } = self.rings;
        if markers > 0 || dropped > 0 {
            out += &format!("  {markers} markers from rings of programs, {dropped} dropped\n");
        }
        out
    }

    /// Lines for people about another program that took the buffer over, about what was not available, and
    /// about the error that ended the recording.
    pub fn incidents_text(&self) -> String {
        let mut out = String::new();
        if let Some(BufferTakeover { seconds, changes }) = &self.taken_over {
            out += &format!(
                "  after {seconds:.1} s another program took the trace buffer over and changed {}: the recording ends there. \
                 With --instance it has a buffer of its own\n",
                changes.join(", ")
            );
        }
        self.notes.iter().for_each(|note| out += &format!("  note: {note}\n"));
        if let Some(error) = &self.error {
            out += &format!("  ended early: {error}\n");
        }
        out
    }
}

/// Why a recording ended. In JSON it is the text of its `Display`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "String"))]
#[serde(into = "String", from = "String")]
pub enum RecordingEndReason {
    /// The time that was asked for was over.
    Time,
    /// The capture had the size that was asked for.
    Size,
    /// The buffer of a CPU was full.
    Full,
    /// The recorder received a signal.
    Signal(EndSignal),
    /// The launch around which the recording was made had ended.
    LaunchEnded,
    /// The command around which the recording was made had ended.
    CommandEnded,
    /// Another program has taken the trace buffer over.
    TakenOver,
    /// An error, which the summary has.
    Error,
    /// It is the contents of a flight recorder's buffer.
    Dump,
    /// The reason that a recorder of another version gives; empty if it gives none.
    Other(String),
}

impl RecordingEndReason {
    /// The reasons that carry nothing, each with its name in JSON.
    const NAMES: [(RecordingEndReason, &str); 8] = [
        (RecordingEndReason::Time, "time"),
        (RecordingEndReason::Size, "size"),
        (RecordingEndReason::Full, "full"),
        (RecordingEndReason::LaunchEnded, "the launch ended"),
        (RecordingEndReason::CommandEnded, "the command ended"),
        (RecordingEndReason::TakenOver, "another program"),
        (RecordingEndReason::Error, "an error"),
        (RecordingEndReason::Dump, "dump"),
    ];
}

impl Default for RecordingEndReason {
    fn default() -> RecordingEndReason {
        RecordingEndReason::Other(String::new())
    }
}

impl fmt::Display for RecordingEndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordingEndReason::Signal(signal) => write!(f, "signal {}", signal.name()),
            RecordingEndReason::Other(text) => f.write_str(text),
            plain => {
                let named = RecordingEndReason::NAMES.iter().find(|(reason, _)| reason == plain);
                f.write_str(named.map_or("", |(_, name)| name))
            }
        }
    }
}

impl From<RecordingEndReason> for String {
    fn from(reason: RecordingEndReason) -> String {
        reason.to_string()
    }
}

impl From<String> for RecordingEndReason {
    fn from(text: String) -> RecordingEndReason {
        if let Some((reason, _)) = RecordingEndReason::NAMES.into_iter().find(|(_, name)| *name == text) {
            return reason;
        }
        let signal = text.strip_prefix("signal ").and_then(EndSignal::of_name);
        signal.map_or(RecordingEndReason::Other(text), RecordingEndReason::Signal)
    }
}

/// The signals that end a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndSignal {
    /// SIGHUP
    HangUp,
    /// SIGINT
    Interrupt,
    /// SIGQUIT
    Quit,
    /// SIGTERM
    Terminate,
}

impl EndSignal {
    const ALL: [EndSignal; 4] =
        [EndSignal::HangUp, EndSignal::Interrupt, EndSignal::Quit, EndSignal::Terminate];

    /// The system's name of the signal: `SIGINT`.
    pub fn name(self) -> &'static str {
        match self {
            EndSignal::HangUp => "SIGHUP",
            EndSignal::Interrupt => "SIGINT",
            EndSignal::Quit => "SIGQUIT",
            EndSignal::Terminate => "SIGTERM",
        }
    }

    fn of_name(name: &str) -> Option<EndSignal> {
        EndSignal::ALL.into_iter().find(|signal| signal.name() == name)
    }
}

/// The markers of all rings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RingsSummary {
    /// Markers in the capture that came from rings.
    pub markers: u64,
    /// Markers that programs dropped because a ring was full.
    pub dropped: u64,
    /// Markers that were stored with a later time than their own, because their thread was interrupted for
    /// long while it wrote them.
    pub late: u64,
    /// The programs whose rings were read.
    pub programs: Vec<ProgramSummary>,
    /// Why files with the name of a ring were not read: `process 42: its size is not sealed …`.
    pub refused: Vec<String>,
    /// Programs whose rings were not read because no place was left for them. Their markers are missing.
    pub shut_out: u64,
}

/// The markers of one program's ring.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ProgramSummary {
    pub pid: Pid,
    /// The kernel's name of the process.
    pub name: String,
    pub markers: u64,
    pub dropped: u64,
    /// The part of the dropped markers that no block was free for: more threads wrote at the same time than
    /// the ring has blocks.
    pub without_block: u64,
    /// Threads that dropped markers, at most 64 of them, those with the most first.
    pub threads: Vec<ThreadSummary>,
    /// Parts of the ring that were given up because their contents do not add up.
    pub damage: Vec<String>,
}

/// The markers of one thread that dropped some.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ThreadSummary {
    /// 0 stands for threads that are not counted one by one.
    pub tid: Tid,
    pub name: String,
    pub markers: u64,
    pub dropped: u64,
}

impl RingsSummary {
    /// Whether markers are missing.
    pub fn is_lossy(&self) -> bool {
        self.dropped > 0
            || self.shut_out > 0
            || self.programs.iter().any(|program| !program.damage.is_empty())
    }

    /// The summary for the head of a capture. `cpu` is the entry of the table of CPUs with the markers.
    pub fn info(&self, cpu: Cpu) -> RingsInfo {
        let of = |program: &ProgramSummary| RingProgram {
            pid: program.pid,
            markers: program.markers,
            dropped: program.dropped,
            given_up: program.damage.len() as u64,
        };
        let programs = self.programs.iter().take(MAX_PROGRAMS_IN_HEAD).map(of).collect();
        let given_up = self.programs.iter().map(|program| program.damage.len() as u64).sum();
        RingsInfo { cpu, markers: self.markers, dropped: self.dropped, given_up, programs }
    }

    /// Lines for people; none where no program had a ring.
    pub fn text(&self) -> String {
        let mut out = String::new();
        if !self.programs.is_empty() {
            out += &format!(
                "  rings: {:>8} markers of {} programs, {} dropped\n",
                self.markers,
                self.programs.len(),
                self.dropped
            );
        }
        let mut lines = Vec::new();
        for ProgramSummary { pid, name, dropped, without_block, threads, damage, .. } in &self.programs {
            if *dropped > 0 {
                lines.push(format!("    {name} ({pid}) dropped {dropped}: its rings were full"));
            }
            lines.extend(threads.iter().map(|t| {
                format!("      thread {} ({}): {} written, {} dropped", t.name, t.tid, t.markers, t.dropped)
            }));
            if *without_block > 0 {
                lines.push(format!("      {without_block} dropped: more threads than the ring has blocks"));
            }
            lines.extend(damage.iter().map(|what| format!("    {name} ({pid}): {what}")));
        }
        if self.shut_out > 0 {
            let programs = self.shut_out;
            lines.push(format!(
                "    {programs} programs with a ring were not read: their markers are missing"
            ));
        }
        lines.extend(self.refused.iter().map(|what| format!("  note: a ring is not read: {what}")));
        let more = lines.len().saturating_sub(MAX_RING_LINES);
        lines.truncate(MAX_RING_LINES);
        lines.iter().for_each(|line| out += &format!("{line}\n"));
        if more > 0 {
            out += &format!("    and {more} more: see --json\n");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(streaming: bool) -> RecordingSummary {
        let cpu = CpuSummary {
            cpu: Cpu(1),
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

    #[test]
    fn counts_that_no_recorder_prints_do_not_overflow() {
        let cpu =
            CpuSummary { events: u64::MAX, overrun: u64::MAX, dropped: 1, taken: 1, ..CpuSummary::default() };
        let summary =
            RecordingSummary { streaming: true, cpus: vec![cpu.clone(), cpu], ..Default::default() };
        assert_eq!((summary.lost(), summary.events()), (u64::MAX, u64::MAX));
    }

    #[test]
    fn the_reason_of_the_end_is_a_text_in_json_and_comes_back_as_itself() {
        let signals = EndSignal::ALL.map(RecordingEndReason::Signal);
        let plain = RecordingEndReason::NAMES.map(|(reason, _)| reason);
        for reason in plain.into_iter().chain(signals) {
            let json = serde_json::to_string(&reason).unwrap();
            assert_eq!(json, format!("\"{reason}\""));
            assert_eq!(serde_json::from_str::<RecordingEndReason>(&json).unwrap(), reason);
        }
        assert_eq!(RecordingEndReason::Signal(EndSignal::Interrupt).to_string(), "signal SIGINT");
        let newer = RecordingEndReason::from("moonlight".to_owned());
        assert_eq!(newer.to_string(), "moonlight");
    }
}
