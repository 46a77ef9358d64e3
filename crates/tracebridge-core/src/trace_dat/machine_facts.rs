//! Facts about the recording machine that no event tells, as the recorder reads them at the begin and at the
//! end of a recording.

use serde::{Deserialize, Serialize};

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
}

/// The speed of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuSpeed {
    /// Number of the CPU.
    pub cpu: u32,
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
    pub processes: Vec<i32>,
}

/// A set of CPUs, and the threads that may use these alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Affinity {
    /// Numbers of the CPUs.
    pub cpus: Vec<u32>,
    /// The threads' ids.
    pub threads: Vec<i32>,
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
