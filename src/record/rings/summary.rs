//! What the rings of programs brought, for the summary and the capture.

use std::collections::HashMap;

use serde::Serialize;

use super::program::{Program, ThreadCount};
use crate::trace_dat::{RingProgram, RingsInfo};

/// The most threads of one program that are named with their losses.
const MAX_THREADS: usize = 64;
/// The most programs that the capture's head names. It has a fixed size.
const MAX_PROGRAMS_IN_HEAD: usize = 64;
/// The most lines of the text that name programs, threads or refused rings.
const MAX_LINES: usize = 16;

/// The markers of all rings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct RingsSummary {
    /// Markers in the capture that came from rings.
    pub(crate) markers: u64,
    /// Markers that programs dropped because a ring was full.
    pub(crate) dropped: u64,
    /// Markers that were stored with a later time than their own, because their thread was interrupted for
    /// long while it wrote them.
    pub(crate) late: u64,
    /// The programs whose rings were read.
    pub(crate) programs: Vec<ProgramSummary>,
    /// Why files with the name of a ring were not read: `process 42: its size is not sealed …`.
    pub(crate) refused: Vec<String>,
}

/// The markers of one program's ring.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ProgramSummary {
    pub(crate) pid: i32,
    /// The kernel's name of the process.
    pub(crate) name: String,
    pub(crate) markers: u64,
    pub(crate) dropped: u64,
    /// The part of the dropped markers that no block was free for: more threads wrote at the same time than
    /// the ring has blocks.
    pub(crate) without_block: u64,
    /// Threads that dropped markers, at most 64 of them, those with the most first.
    pub(crate) threads: Vec<ThreadSummary>,
    /// Parts of the ring that were given up because their contents do not add up.
    pub(crate) damage: Vec<String>,
}

/// The markers of one thread that dropped some.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ThreadSummary {
    /// 0 stands for threads that are not counted one by one.
    pub(crate) tid: i32,
    pub(crate) name: String,
    pub(crate) markers: u64,
    pub(crate) dropped: u64,
}

impl ProgramSummary {
    /// Counts what a program has written and dropped.
    pub(super) fn of(program: &Program) -> ProgramSummary {
        let Program { pid, name, without_block, threads, damage, .. } = program;
        ProgramSummary {
            pid: *pid,
            name: name.clone(),
            markers: threads.values().map(|thread| thread.markers).sum(),
            dropped: threads.values().map(|thread| thread.dropped).sum::<u64>() + without_block,
            without_block: *without_block,
            threads: with_losses(threads),
            damage: damage.clone(),
        }
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

impl RingsSummary {
    /// Whether markers are missing.
    pub(crate) fn is_lossy(&self) -> bool {
        self.dropped > 0 || self.programs.iter().any(|program| !program.damage.is_empty())
    }

    /// The summary for the head of a capture. `cpu` is the entry of the table of CPUs with the markers.
    pub(crate) fn info(&self, cpu: u32) -> RingsInfo {
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
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        if !self.programs.is_empty() {
            let (markers, programs, dropped) = (self.markers, self.programs.len(), self.dropped);
            out += &format!("  rings: {markers:>8} markers of {programs} programs, {dropped} dropped\n");
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
        lines.extend(self.refused.iter().map(|what| format!("  note: a ring is not read: {what}")));
        let more = lines.len().saturating_sub(MAX_LINES);
        lines.truncate(MAX_LINES);
        lines.iter().for_each(|line| out += &format!("{line}\n"));
        if more > 0 {
            out += &format!("    and {more} more: see --json\n");
        }
        out
    }
}
