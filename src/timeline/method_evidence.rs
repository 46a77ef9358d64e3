//! What a method trace says that a recording can be compared with: methods that have the name of a marker, and
//! stretches in which a thread did not run.

use std::collections::HashMap;

use super::kernel_evidence::UNKNOWN_NAME;
use crate::art::Action;
use crate::formats::art_method::{Method, MethodTrace};

/// Kept of each kind for each thread, at most.
const MAX_ENTRIES: usize = 1 << 20;
/// A stretch tells something from so much time off the CPU on: ns.
const MIN_OFF_CPU_NS: u64 = 100_000;

/// One thread of a method trace, as far as a recording can be compared with it.
#[derive(Debug, Clone, Default)]
pub struct MethodEvidence {
    /// Enters and exits of methods that have a marker's name, in order.
    pub edges: Vec<NamedEdge>,
    /// Stretches between two records in which the thread was off the CPU for a while.
    pub gaps: Vec<OffCpuGap>,
    /// Records at which the clock went back, and by how much: it was set.
    pub backward: Vec<(u64, u64)>,
    /// Records.
    pub records: u64,
    /// Time of the first record, ns of the trace's clock.
    pub first: u64,
    /// Time of the last record.
    pub last: u64,
}

impl MethodEvidence {
    /// Its first `most` of each kind.
    pub fn sample(&self, most: usize) -> MethodEvidence {
        let edges = self.edges.iter().take(most).copied().collect();
        let gaps = self.gaps.iter().take(most).copied().collect();
        MethodEvidence { edges, gaps, backward: self.backward.clone(), ..*self }
    }
}

/// An enter or exit of a method that has a marker's name.
#[derive(Debug, Clone, Copy)]
pub struct NamedEdge {
    /// Which of the thread's records.
    pub record: u64,
    /// in the trace's clock, ns.
    pub x: u64,
    /// The number of the marker's name.
    pub name: u32,
    /// Enter, or exit.
    pub begin: bool,
}

/// A stretch between two records.
#[derive(Debug, Clone, Copy)]
pub struct OffCpuGap {
    /// Which of the thread's records ends it.
    pub record: u64,
    /// Its begin, ns of the trace's clock.
    pub from: u64,
    /// Its end.
    pub to: u64,
    /// CPU time the thread spent in it, ns.
    pub cpu: u64,
}

/// How far a clock may go back without having been set, ns: records of one thread are in order but for rounding.
const CLOCK_SET_BACK_NS: u64 = 1_000_000;

/// 2^32 µs in ns: what a time before the start is too late by, since its difference to the start has 32 bits.
const WRAP_NS: u64 = (1 << 32) * 1_000;

/// No clock shows more: ns, the year 2116 for one that counts from 1970. So sums of readings cannot overflow.
const MAX_READING_NS: u64 = (i64::MAX / 2) as u64;

/// What the trace's clock showed `x` ns after the start. A clock that was set back behind the start gives a difference
/// below 0, which 32 bits hold as one of more than 35 minutes.
#[inline]
pub fn reading(trace: &MethodTrace<'_>, x: u64) -> u64 {
    let at = trace.header().start_ns().saturating_add(x).min(MAX_READING_NS);
    if x >= WRAP_NS / 2 && !trace.may_wrap() { at.saturating_sub(WRAP_NS) } else { at }
}

/// Goes over all records once.
pub fn collect(trace: &MethodTrace<'_>, markers: &HashMap<Vec<u8>, u32>) -> Vec<MethodEvidence> {
    let names = marker_names(trace.methods(), markers);
    let mut threads: Vec<MethodEvidence> = vec![MethodEvidence::default(); trace.threads().len()];
    let mut before: Vec<Option<(u64, Option<u64>)>> = vec![None; threads.len()];
    for record in trace.records() {
        let Some(x) = record.wall.map(|x| reading(trace, x)) else { continue };
        let Some(thread) = threads.get_mut(record.thread as usize) else { continue };
        if thread.records == 0 {
            (thread.first, thread.last) = (x, x);
        }
        thread.last = thread.last.max(x);
        let previous = before[record.thread as usize].replace((x, record.cpu));
        if let Some((from, cpu_before)) = previous {
            if x + CLOCK_SET_BACK_NS < from {
                thread.backward.push((thread.records, from - x));
            } else if let (Some(cpu), Some(cpu_before)) = (record.cpu, cpu_before)
                && let cpu = cpu.saturating_sub(cpu_before)
                && x.saturating_sub(from) >= cpu.saturating_add(MIN_OFF_CPU_NS)
                && thread.gaps.len() < MAX_ENTRIES
            {
                thread.gaps.push(OffCpuGap { record: thread.records, from, to: x, cpu });
            }
        }
        let name = names.get(record.method as usize).copied().unwrap_or(UNKNOWN_NAME);
        if name != UNKNOWN_NAME && thread.edges.len() < MAX_ENTRIES {
            let begin = record.action == Action::Enter;
            thread.edges.push(NamedEdge { record: thread.records, x, name, begin });
        }
        thread.records += 1;
    }
    threads
}

/// For each method the number of the marker that has its name, with or without its class.
fn marker_names(methods: &[Method<'_>], markers: &HashMap<Vec<u8>, u32>) -> Vec<u32> {
    if markers.is_empty() {
        return Vec::new();
    }
    let mut bare: HashMap<&str, u32> = HashMap::new();
    for method in methods {
        *bare.entry(&method.name).or_default() += 1;
    }
    let find = |method: &Method<'_>| {
        let class = method.class_name();
        let short = class.rsplit(['.', '$']).next().unwrap_or(&class);
        let with = |class: &str| {
            [".", "#", "::"]
                .iter()
                .find_map(|dot| markers.get(format!("{class}{dot}{}", method.name).as_bytes()))
        };
        // A bare name tells a method only if no other method has it.
        let alone = || markers.get(method.name.as_bytes()).filter(|_| bare.get(&*method.name) == Some(&1));
        with(&class).or_else(|| with(short)).or_else(alone).copied()
    };
    methods.iter().map(|m| if m.declared { find(m).unwrap_or(UNKNOWN_NAME) } else { UNKNOWN_NAME }).collect()
}
