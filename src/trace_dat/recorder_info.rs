//! Facts that tracebridge's recorder stores beyond trace-cmd's format, as JSON in an option that other
//! readers skip.

use serde::{Deserialize, Serialize};

use crate::clock::Snapshots;

/// Facts that tracebridge's recorder stores beyond trace-cmd's format: the payload of the option
/// [`CLOCK_SNAPSHOTS`](super::file_format::option::CLOCK_SNAPSHOTS), as JSON.
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
    /// Snapshots of several clocks, taken during the recording.
    #[serde(flatten)]
    pub snapshots: Snapshots,
    /// What the recorder has read from each CPU. Older recorders did not write it.
    #[serde(default)]
    pub recorded: Vec<CpuRecorded>,
    /// Losses of each CPU that lost events.
    #[serde(default)]
    pub lost: Vec<CpuLoss>,
    /// How to find the pages while the recorder removes the holes from the file. `None` at any
    /// other time.
    #[serde(default)]
    pub settle: Option<Settle>,
    /// Processes of the recording machine: process id, the parent's process id, full name.
    #[serde(default)]
    pub processes: Vec<(i32, i32, String)>,
}

impl RecorderInfo {
    /// Encodes the facts as JSON of at most `room` bytes. Where that is too little, the processes are left
    /// out, and then all facts.
    pub fn to_json(&self, room: usize) -> Vec<u8> {
        let json = |extra: &RecorderInfo| serde_json::to_vec(extra).unwrap_or_default();
        let all = json(self);
        if all.len() <= room {
            return all;
        }
        let less = json(&RecorderInfo { processes: Vec::new(), ..self.clone() });
        if less.len() <= room { less } else { Vec::new() }
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
    pub cpu: u32,
    /// Events in the pages that the recorder wrote.
    pub events: u64,
    /// Events that another program read, which the pages lack.
    pub taken: u64,
}

/// Events that one CPU's buffer lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuLoss {
    /// Number of the CPU.
    pub cpu: u32,
    /// Events overwritten before they were read (`overrun` of `stats`).
    pub overrun: u64,
    /// Events not written because the buffer was full (`dropped events`) or because an interrupt came while a
    /// page was being entered (`commit overrun`).
    pub dropped: u64,
}

/// The plan by which the recorder removes the holes between the pages of its CPUs from the file.
///
/// One `fallocate(FALLOC_FL_COLLAPSE_RANGE)` removes each hole, the last one first, and shortens the file by
/// the hole's length. A recorder that is killed in between leaves a table of CPUs whose offsets are wrong;
/// the file's length then shows which holes are gone. While the file has this plan, a reader takes offsets
/// from [`Settle::offset`] and only the sizes from the table.
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
        let start = *self.offsets.get(cpu)?;
        let mut gone = self.file_len.checked_sub(file_len)?;
        let mut moved = 0u64;
        for (hole, len) in &self.holes {
            if gone == 0 {
                break;
            }
            gone = gone.checked_sub(*len)?;
            if *hole < start {
                moved = moved.checked_add(*len)?;
            }
        }
        if gone == 0 { start.checked_sub(moved) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_half_settled_file_gives_the_offsets_of_its_pages() {
        let settle =
            Settle { file_len: 1000, holes: vec![(600, 200), (100, 300)], offsets: vec![50, 400, 800] };
        let at = |file_len| [0, 1, 2].map(|cpu| settle.offset(cpu, file_len));
        assert_eq!(at(1000), [Some(50), Some(400), Some(800)]);
        assert_eq!(at(800), [Some(50), Some(400), Some(600)]);
        assert_eq!(at(500), [Some(50), Some(100), Some(300)]);
        assert_eq!(at(700), [None; 3]);
        assert_eq!(at(2000), [None; 3]);
    }
}
