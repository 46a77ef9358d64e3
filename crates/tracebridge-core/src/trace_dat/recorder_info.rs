//! Facts that tracebridge's recorder stores beyond trace-cmd's format, as JSON in an option that other
//! readers skip; among them the facts about the recording machine that no event tells, read at the begin and
//! at the end of a recording.

use serde::{Deserialize, Serialize};

use crate::clock::Snapshots;
use crate::ids::{Cpu, Pid, Tid};

/// Facts about the recording machine that no event tells.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineFacts {
    /// The speed of each CPU, as far as the kernel tells it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<CpuSpeed>,
    /// Control groups whose CPU time has a quota.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quotas: Vec<CpuQuota>,
    /// Threads that may not use every CPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub affinities: Vec<Affinity>,
    /// Files that processes had mapped which were started during the recording.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<MappedInode>,
    /// The time that recording takes; `None` where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_cost: Option<EventCost>,
    /// The recorder's own process. Older recorders did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorder: Option<Pid>,
}

/// The speed of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuSpeed {
    /// Number of the CPU.
    pub cpu: Cpu,
    /// Its capacity at its highest frequency, where the fastest CPU has 1024 (`cpu_capacity` of sysfs).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u32>,
    /// Its highest frequency, kHz (`cpuinfo_max_freq` of sysfs).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_khz: Option<u32>,
}

/// A control group whose CPU time has a quota, and how often it had used that up during the recording
/// (`cpu.stat`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuQuota {
    /// The hierarchy's number, as in /proc/self/cgroup: 0 is that of version 2.
    pub hierarchy: u32,
    /// The group's path in its hierarchy.
    pub path: String,
    /// The CPU time that the group may use in each period, µs.
    pub quota_us: u64,
    /// The length of a period, µs.
    pub period_us: u64,
    /// Periods at whose end the group had been waiting.
    pub throttled: u64,
    /// How long the group waited on all CPUs together, ns.
    pub throttled_ns: u64,
    /// The group's processes at the end of the recording.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<Pid>,
}

/// A set of CPUs, and the threads that may use these alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Affinity {
    /// Numbers of the CPUs.
    pub cpus: Vec<Cpu>,
    /// The threads' ids.
    pub threads: Vec<Tid>,
}

/// A file that a process has mapped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedInode {
    /// The device's major and minor number.
    pub device: (u32, u32),
    /// The number of the inode.
    pub inode: u64,
    /// The path, as the process sees it.
    pub path: String,
}

/// The time that recording takes, as it was measured on the recording machine before the recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCost {
    /// One marker with its system call, ns.
    pub marker_ns: u64,
    /// One context switch that is recorded, with its wake-up, more than one that is not, ns.
    pub switch_ns: u64,
}

/// Facts that tracebridge's recorder stores beyond trace-cmd's format: the payload of the option
/// [`CLOCK_SNAPSHOTS`](super::option::CLOCK_SNAPSHOTS), as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecorderInfo {
    /// Whether the recorder ended the file. It is false in a file that a killed recorder left behind.
    #[serde(default = "yes")]
    pub complete: bool,
    /// Whether the recording was to keep only the last or only the first events that fit the kernel's buffer.
    /// The other events then do not count as lost.
    #[serde(default)]
    pub excerpt: bool,
    /// Whether the recorder's user could not see all of the trace buffer's settings, as on a locked phone:
    /// the kernel's list of names is missing, and events may be on that another user had switched on.
    #[serde(default)]
    pub restricted: bool,
    /// The recording device: `Pixel 8, Android 15`. `None` on other systems than Android.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Snapshots of several clocks, taken during the recording.
    #[serde(flatten)]
    pub snapshots: Snapshots,
    /// The events that the recorder has read from each CPU. Older recorders did not write it.
    #[serde(default)]
    pub recorded: Vec<CpuRecorded>,
    /// Losses of each CPU that lost events.
    #[serde(default)]
    pub lost: Vec<CpuLoss>,
    /// The markers that the recorder has read out of the rings of programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rings: Option<RingsInfo>,
    /// The categories and events that were asked for and switched on, and of which no event came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_events: Vec<String>,
    /// How to find the pages while the recorder removes the holes from the file. `None` at any
    /// other time.
    #[serde(default)]
    pub settle: Option<Settle>,
    /// Facts about the recording machine that no event tells. Older recorders did not write them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineFacts>,
    /// The account of missing data that belongs to no CPU, in a file that was converted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub losses: Option<serde_json::Value>,
    /// Processes of the recording machine: process id, the parent's process id, full name.
    #[serde(default)]
    pub processes: Vec<(Pid, Pid, String)>,
}

/// Says of which categories and events a recording has no event, if there are any.
pub fn no_event_of(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| format!("no event of {} is in the recording", names.join(", ")))
}

impl RecorderInfo {
    /// Encodes the facts as JSON of at most `room` bytes. Where that is too little, mapped files and the CPUs
    /// of threads are left out, then the processes too, and then all facts.
    pub fn to_json(&self, room: usize) -> Vec<u8> {
        let json = |extra: &RecorderInfo| serde_json::to_vec(extra).unwrap_or_default();
        let all = json(self);
        if all.len() <= room {
            return all;
        }
        let machine = self.machine.clone().map(|machine| MachineFacts {
            affinities: Vec::new(),
            files: Vec::new(),
            ..machine
        });
        let less = RecorderInfo { machine, ..self.clone() };
        let smaller = [&less, &RecorderInfo { processes: Vec::new(), ..less.clone() }];
        smaller.into_iter().map(json).find(|text| text.len() <= room).unwrap_or_default()
    }
}

// tracebridge's recorder always writes the field, so a file without it is not one that a killed recorder
// left.
fn yes() -> bool {
    true
}

/// Events that were read from one CPU's buffer while the recording ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuRecorded {
    /// Number of the CPU.
    pub cpu: Cpu,
    /// Events in the pages that the recorder wrote.
    pub events: u64,
    /// Events that another program read, which the pages lack.
    pub taken: u64,
}

/// Events that one CPU's buffer lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuLoss {
    /// Number of the CPU.
    pub cpu: Cpu,
    /// Events overwritten before they were read (`overrun` of `stats`).
    pub overrun: u64,
    /// Events not written because the buffer was full (`dropped events`) or because an interrupt came while a
    /// page was being entered (`commit overrun`).
    pub dropped: u64,
}

/// Markers that programs wrote into rings in their memory, instead of into `trace_marker`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingsInfo {
    /// The entry of the table of CPUs with these markers. It stands for no CPU.
    pub cpu: Cpu,
    /// Markers that the recorder wrote.
    #[serde(default)]
    pub markers: u64,
    /// Markers that the programs dropped because a ring was full.
    #[serde(default)]
    pub dropped: u64,
    /// Parts of rings that were given up because their contents did not add up.
    #[serde(default)]
    pub given_up: u64,
    /// The programs, at most 64.
    #[serde(default)]
    pub programs: Vec<RingProgram>,
}

/// Markers from one program's ring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingProgram {
    /// The process id.
    pub pid: Pid,
    /// Markers that the recorder wrote.
    pub markers: u64,
    /// Markers that the program dropped.
    pub dropped: u64,
    /// Parts of the ring that were given up.
    pub given_up: u64,
}

/// The plan by which the recorder removes the holes between the pages of its CPUs from the file.
///
/// One `fallocate(FALLOC_FL_COLLAPSE_RANGE)` removes each hole, the last one first, and shortens the file by
/// the hole's length. A recorder that is killed in between leaves a table of CPUs whose offsets are wrong;
/// the file's length then shows which holes are gone. While the file has this plan, a reader takes offsets
/// from [`Settle::offsets_in`] and only the sizes from the table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settle {
    /// The file's length before the first hole was removed, bytes.
    pub file_len: u64,
    /// The holes as (offset, length), bytes, in the order in which they are removed.
    pub holes: Vec<(u64, u64)>,
    /// Offset of each CPU's pages before the first hole was removed, bytes.
    pub offsets: Vec<u64>,
}

impl Settle {
    /// Offset of the pages of entry number `cpu` of the table in a file of `file_len` bytes. `None` where the
    /// file never has that length.
    pub fn offset(&self, cpu: usize, file_len: u64) -> Option<u64> {
        self.offsets_in(file_len)?.get(cpu).copied()
    }

    /// Offsets of the pages of each entry of the table in a file of `file_len` bytes. `None` where the file
    /// never has that length.
    pub fn offsets_in(&self, file_len: u64) -> Option<Vec<u64>> {
        let mut gone = self.file_len.checked_sub(file_len)?;
        let mut removed = Vec::new();
        for (hole, len) in &self.holes {
            if gone == 0 {
                break;
            }
            gone = gone.checked_sub(*len)?;
            removed.push((*hole, *len));
        }
        if gone > 0 {
            return None;
        }
        removed.sort_unstable();
        // For each hole the length of all holes up to it. It is at most the length that the file has lost.
        let mut moved = 0;
        for (_, len) in &mut removed {
            moved += *len;
            *len = moved;
        }
        let offset = |start: &u64| {
            let before = removed.partition_point(|(hole, _)| hole < start);
            let moved = before.checked_sub(1).and_then(|n| removed.get(n)).map_or(0, |(_, moved)| *moved);
            start.checked_sub(moved)
        };
        self.offsets.iter().map(offset).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_half_settled_file_gives_the_offsets_of_its_pages() {
        let settle =
            Settle { file_len: 1000, holes: vec![(600, 200), (100, 300)], offsets: vec![50, 400, 800] };
        assert_eq!(settle.offsets_in(1000), Some(vec![50, 400, 800]));
        assert_eq!(settle.offsets_in(800), Some(vec![50, 400, 600]));
        assert_eq!(settle.offsets_in(500), Some(vec![50, 100, 300]));
        assert_eq!(settle.offsets_in(700), None);
        assert_eq!(settle.offsets_in(2000), None);
    }

    /// Comparing each CPU with each hole takes 10 billion steps.
    #[test]
    fn a_hundred_thousand_holes_and_cpus_are_compared_in_one_pass() {
        let each = || (0..100_000u64).map(|n| n * 10);
        let holes = each().map(|at| (at + 5, 1)).collect();
        let offsets = each().collect();
        let settle = Settle { file_len: 1_000_000, holes, offsets };
        let found = settle.offsets_in(900_000).unwrap();
        assert_eq!((found[0], found[1], found[99_999]), (0, 9, 999_990 - 99_999));
    }
}
