//! What reading a file came to: counts, losses, damage. Every reader hands one back, complete or not.

use std::collections::BTreeMap;

use serde::Serialize;

/// A place where the file is not what it should be, and what that cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Bytes from the start of the file (of the decompressed text, for compressed inputs).
    pub offset: u64,
    /// What is wrong there, what is missing for it, and the cure where there is one.
    pub what: String,
}

/// One CPU's share of a recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CpuCount {
    /// Events read.
    pub events: u64,
    /// Events the kernel counted as lost (overrun, dropped, or missed between pages).
    pub lost: u64,
    /// Gaps whose size the kernel did not tell.
    pub gaps: u64,
}

/// What reading a file came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReadReport {
    /// Counts per CPU; CPUs without events are listed where the file names them.
    pub cpus: BTreeMap<u32, CpuCount>,
    /// Events that the file says were lost without naming their CPU.
    pub lost_anywhere: u64,
    /// Earliest event, ns in the file's clock.
    pub first_ts: Option<u64>,
    /// Latest event, ns in the file's clock.
    pub last_ts: Option<u64>,
    /// What is wrong with the file; empty for a sound one.
    pub damage: Vec<Damage>,
    /// What is there and not as in a plain recording, so that something had to be worked out (calls without an end, ids
    /// used twice); each line begins with how many.
    pub irregular: Vec<String>,
    /// Things worth saying that are no damage (a guest buffer skipped, an option not known).
    pub notes: Vec<String>,
}

impl ReadReport {
    /// All events of all CPUs.
    pub fn events(&self) -> u64 {
        self.cpus.values().map(|c| c.events).sum()
    }

    /// All events known lost, of all CPUs.
    pub fn lost(&self) -> u64 {
        self.cpus.values().map(|c| c.lost).sum::<u64>() + self.lost_anywhere
    }

    /// Counts an event.
    #[inline]
    pub fn count(&mut self, cpu: u32, ts: u64) {
        self.cpus.entry(cpu).or_default().events += 1;
        self.first_ts = Some(self.first_ts.map_or(ts, |first| first.min(ts)));
        self.last_ts = Some(self.last_ts.map_or(ts, |last| last.max(ts)));
    }

    /// Whether anything is missing: exit code 3 instead of 0.
    pub fn is_lossy(&self) -> bool {
        !(self.damage.is_empty() && self.irregular.is_empty())
            || self.lost_anywhere > 0
            || self.cpus.values().any(|c| c.lost > 0 || c.gaps > 0)
    }
}
