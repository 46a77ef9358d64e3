//! What tracebridge's recorder knows beyond trace-cmd's format, as JSON in an option that other readers skip.

use serde::{Deserialize, Serialize};

use crate::clock::Snapshots;

/// What tracebridge's recorder knows beyond trace-cmd's format: the payload of [`option::CLOCK_SNAPSHOTS`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecorderInfo {
    /// Whether the recording came to its end, or this is what a killed recorder left.
    #[serde(default = "yes")]
    pub complete: bool,
    /// Only the last events that fit the kernel's buffer were wanted, or only the first: the others are no loss.
    #[serde(default)]
    pub excerpt: bool,
    /// Clocks read back to back during the recording.
    #[serde(flatten)]
    pub snapshots: Snapshots,
    /// Losses per CPU, where there were any.
    #[serde(default)]
    pub lost: Vec<CpuLoss>,
    /// The holes that are being taken out of the file at its end; `None` before and after.
    #[serde(default)]
    pub settle: Option<Settle>,
    /// Processes of the recording machine by their full names: pid, parent's pid, name.
    #[serde(default)]
    pub processes: Vec<(i32, i32, String)>,
}

impl RecorderInfo {
    /// As JSON of at most `room` bytes: what does not fit goes, the processes first.
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

// A file that does not say is none of a recorder of ours that was killed.
fn yes() -> bool {
    true
}

/// What one CPU's buffer lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuLoss {
    /// The CPU.
    pub cpu: u32,
    /// Events overwritten before they were read (`overrun` of `stats`).
    pub overrun: u64,
    /// Events not written because the buffer was full (`dropped events`) or because an interrupt came while a page
    /// was being entered (`commit overrun`).
    pub dropped: u64,
}

/// How a file with holes between its CPUs' data becomes one without: each hole is taken out by one
/// `fallocate(FALLOC_FL_COLLAPSE_RANGE)`, the last one first, and the file gets shorter by its length each time. A
/// recorder that is killed in between leaves a table whose offsets no longer fit; the file's length tells how far it
/// came. While this is present, offsets are to be taken from [`Settle::offset`] (sizes still from the table).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settle {
    /// The file's length before the first hole was taken out, bytes.
    pub file_len: u64,
    /// The holes as (offset, length), bytes, in the order in which they are taken out.
    pub holes: Vec<(u64, u64)>,
    /// Where each CPU's data was before the first hole was taken out.
    pub offsets: Vec<u64>,
}

impl Settle {
    /// Where the data of CPU number `cpu` of the table is, now that the file is `file_len` long, bytes. `None` where
    /// that is no length the file passes through.
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
    fn a_half_settled_file_tells_by_its_length_where_the_data_is() {
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
