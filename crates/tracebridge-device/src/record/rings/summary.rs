//! Sums up what a program has written into its ring, for the summary of the recording.

use std::collections::HashMap;

use super::program::{Program, ThreadCount};
use crate::trace_dat::recording_summary::{ProgramSummary, ThreadSummary};

/// The most threads of one program that are named with their losses.
const MAX_THREADS: usize = 64;

/// Counts what a program has written and dropped.
pub(super) fn summarize(program: &Program) -> ProgramSummary {
    let Program { pid, name, without_block, threads, untimely, unlooked, .. } = program;
    let mut damage = program.damage.clone();
    if *untimely > 0 {
        damage.push(format!(
            "{untimely} markers are dropped: their times are before the recording, or had not come yet"
        ));
    }
    if *unlooked > 0 {
        damage.push(format!("{unlooked} markers are dropped: their threads came too fast to be looked at"));
    }
    ProgramSummary {
        pid: *pid,
        name: name.clone(),
        markers: threads.values().map(|thread| thread.markers).sum(),
        dropped: threads.values().map(|thread| thread.dropped).sum::<u64>() + without_block,
        without_block: *without_block,
        threads: with_losses(threads),
        damage,
    }
}

fn with_losses(threads: &HashMap<i32, ThreadCount>) -> Vec<ThreadSummary> {
    let lossy = threads.iter().filter(|(_, count)| count.dropped > 0);
    let mut lossy: Vec<ThreadSummary> = lossy
        .map(|(tid, count)| ThreadSummary {
            tid: *tid,
            name: String::from_utf8_lossy(&count.name).into_owned(),
            markers: count.markers,
            dropped: count.dropped,
        })
        .collect();
    lossy.sort_by_key(|thread| (u64::MAX - thread.dropped, thread.tid));
    lossy.truncate(MAX_THREADS);
    lossy
}
