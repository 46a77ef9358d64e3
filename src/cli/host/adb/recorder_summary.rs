//! The summary that a recorder on a device prints (docs/schemas/record.json), as far as people read it here.

use serde::Deserialize;

/// The summary of a recording. A field that an older recorder does not print is empty.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RecorderSummary {
    streaming: bool,
    seconds: f64,
    clock: String,
    ended_by: String,
    cpus: Vec<Cpu>,
    rings: Rings,
    notes: Vec<String>,
    error: Option<String>,
    app_start: Option<AppStart>,
}

/// What `launch` tells of the app's start.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AppStart {
    /// Lines of `am start`.
    times: Vec<String>,
}

/// Markers that programs wrote into rings in their memory.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Rings {
    markers: u64,
    dropped: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cpu {
    events: u64,
    taken: u64,
    unsent: u64,
    overrun: u64,
    dropped: u64,
    commit_overrun: u64,
    missed: u64,
    left: u64,
}

impl RecorderSummary {
    /// The summary in lines for people.
    pub(super) fn text(&self) -> String {
        let sum = |of: fn(&Cpu) -> u64| self.cpus.iter().map(of).fold(0, u64::saturating_add);
        let overwritten = sum(|cpu| (cpu.overrun + cpu.dropped + cpu.commit_overrun).max(cpu.missed));
        let events = sum(|cpu| cpu.events);
        let times = self.app_start.iter().flat_map(|start| &start.times);
        let mut out: String = times.map(|line| format!("  {line}\n")).collect();
        if self.cpus.is_empty() {
            // Another program has recorded.
            return out;
        }
        out += &format!(
            "  {events} events in {:.2} s on {} CPUs, clock {}, ended by {}\n",
            self.seconds,
            self.cpus.len(),
            self.clock,
            self.ended_by
        );
        let word = if self.streaming { "lost" } else { "overwritten or refused" };
        for (count, what) in [
            (overwritten, word),
            (sum(|cpu| cpu.taken), "taken by another program"),
            (sum(|cpu| cpu.unsent), "not taken by the reader of the stream"),
            (sum(|cpu| cpu.left), "left in the kernel"),
        ] {
            if count > 0 {
                out += &format!("  {count} events {what}\n");
            }
        }
        if self.rings.markers > 0 || self.rings.dropped > 0 {
            let Rings { markers, dropped } = self.rings;
            out += &format!("  {markers} markers from rings of programs, {dropped} dropped\n");
        }
        self.notes.iter().for_each(|note| out += &format!("  note: {note}\n"));
        self.error.iter().for_each(|error| out += &format!("  ended early: {error}\n"));
        out
    }
}
