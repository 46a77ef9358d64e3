//! Evidence from a method trace, which is compared with recordings: calls of methods that have a marker's
//! name, and stretches in which a thread did not run.

use std::collections::HashMap;

use super::kernel_evidence::UNKNOWN_NAME;
use crate::art::Action;
use crate::clock::Timestamp;
use crate::formats::art_method::{Method, MethodTrace};
use crate::progress::Pass;

/// The limit on the edges, and on the stretches, that are kept of one thread.
const MAX_ENTRIES: usize = 1 << 20;
/// Stretches with less time off the CPU than this, ns, are not kept.
const MIN_OFF_CPU_NS: u64 = 100_000;
/// Of records closer together than this, ns, one is kept to be compared with the thread's times on a CPU.
const RECORD_SPACING_NS: u64 = 200_000;

/// The evidence from one thread of a method trace.
#[derive(Debug, Clone, Default)]
pub struct MethodEvidence {
    /// Enters and exits of methods that have a marker's name, in order.
    pub edges: Vec<NamedEdge>,
    /// Stretches between two records in which the thread was, or may have been, off the CPU for at least
    /// 100 µs.
    pub gaps: Vec<OffCpuGap>,
    /// Records at least 200 µs apart, and those at both ends of the gaps: the thread was on a CPU then.
    pub running: Vec<RecordTime>,
    /// For each record at which the clock was set back: the record's number, and by how much, ns.
    pub backward: Vec<(u64, u64)>,
    /// How many records the thread has.
    pub records: u64,
    /// Time of the first record, in the trace's clock.
    pub first: Timestamp,
    /// Time of the last record, in the trace's clock.
    pub last: Timestamp,
}

impl MethodEvidence {
    /// A copy with only the first `most` edges and the first `most` stretches.
    pub fn sample(&self, most: usize) -> MethodEvidence {
        let edges = self.edges.iter().take(most).copied().collect();
        let gaps = self.gaps.iter().take(most).copied().collect();
        let every = self.running.len().div_ceil(most).max(1);
        let running = self.running.iter().step_by(every).copied().collect();
        MethodEvidence { edges, gaps, running, backward: self.backward.clone(), ..*self }
    }

    /// Keeps the time of a record, in the order of records.
    fn keep_time(&mut self, at: RecordTime) {
        if self.running.last() != Some(&at) && self.running.len() < MAX_ENTRIES {
            self.running.push(at);
        }
    }
}

/// The time of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordTime {
    /// The number of the record among the thread's records.
    pub record: u64,
    /// The record's time, in the trace's clock.
    pub x: Timestamp,
}

/// An enter or exit of a method that has a marker's name.
#[derive(Debug, Clone, Copy)]
pub struct NamedEdge {
    /// The number of the record among the thread's records.
    pub record: u64,
    /// The record's time, in the trace's clock.
    pub x: Timestamp,
    /// The number of the marker's name.
    pub name: u32,
    /// Whether the record is an enter.
    pub begin: bool,
}

/// A stretch between two records in which the thread was off the CPU for at least 100 µs; in a trace without
/// thread-CPU times, any stretch as long.
#[derive(Debug, Clone, Copy)]
pub struct OffCpuGap {
    /// The number of the record that ends the stretch, among the thread's records.
    pub record: u64,
    /// When the stretch begins, in the trace's clock.
    pub from: Timestamp,
    /// When the stretch ends, in the trace's clock.
    pub to: Timestamp,
    /// CPU time that the thread spent in the stretch, ns, where the trace has it.
    pub cpu: Option<u64>,
}

/// A step back by more than this, ns, shows that the clock was set. Otherwise the records of one thread
/// are in time order, except for rounding.
const CLOCK_SET_BACK_NS: u64 = 1_000_000;

/// 2^32 µs in ns. A record's time is an unsigned 32-bit number of µs since the start, so a time before the
/// start appears too late by this.
const WRAP_NS: u64 = (1 << 32) * 1_000;

/// The latest time; later ones are cut to it, so that sums of times cannot overflow. For a clock that counts
/// from 1970 it is the year 2116.
const LATEST: Timestamp = Timestamp((i64::MAX / 2) as u64);

/// The readings of a trace's clock at the times of its records.
#[derive(Debug, Clone, Copy)]
pub struct Readings {
    start: Timestamp,
    /// So many ns after the start and later, times are negative.
    negative_from_ns: u64,
}

impl Readings {
    /// The readings for the records of `trace`. Where the clock was set back to before the start, the time
    /// since the start is negative; as an unsigned 32-bit number of µs it then appears as more than 35
    /// minutes.
    pub fn new(trace: &MethodTrace<'_>) -> Readings {
        let may_be_negative = trace.has_32_bit_times() && !trace.may_wrap();
        let negative_from_ns = if may_be_negative { WRAP_NS / 2 } else { u64::MAX };
        Readings { start: Timestamp(trace.header().start_ns()), negative_from_ns }
    }

    /// The time in the trace's clock of a record that lies `since_start_ns` after the start.
    #[inline]
    pub fn at(&self, since_start_ns: u64) -> Timestamp {
        let at = self.start.saturating_add(since_start_ns).min(LATEST);
        if since_start_ns >= self.negative_from_ns { at.saturating_sub(WRAP_NS) } else { at }
    }
}

/// Collects the evidence from each thread of `trace`, in one pass over the records. `markers` gives the
/// number of each marker name.
pub fn collect(trace: &MethodTrace<'_>, markers: &HashMap<Vec<u8>, u32>) -> Vec<MethodEvidence> {
    let names = marker_names(trace.methods(), markers);
    let readings = Readings::new(trace);
    let mut threads: Vec<MethodEvidence> = vec![MethodEvidence::default(); trace.threads().len()];
    let mut before: Vec<Option<(Timestamp, Option<u64>)>> = vec![None; threads.len()];
    let _pass = Pass::begin("looking for the clock", trace.record_bytes());
    for record in trace.records() {
        let Some(x) = record.wall.map(|x| readings.at(x)) else { continue };
        let Some(thread) = threads.get_mut(record.thread as usize) else { continue };
        if thread.records == 0 {
            thread.first = x;
            thread.last = x;
        }
        thread.last = thread.last.max(x);
        let previous = before[record.thread as usize].replace((x, record.cpu));
        if let Some((from, cpu_before)) = previous {
            if x + CLOCK_SET_BACK_NS < from {
                thread.backward.push((thread.records, from - x));
            } else if let cpu = record.cpu.zip(cpu_before).map(|(cpu, before)| cpu.saturating_sub(before))
                && x.since(from) >= cpu.unwrap_or(0).saturating_add(MIN_OFF_CPU_NS)
                && thread.gaps.len() < MAX_ENTRIES
            {
                thread.gaps.push(OffCpuGap { record: thread.records, from, to: x, cpu });
                thread.keep_time(RecordTime { record: thread.records - 1, x: from });
                thread.keep_time(RecordTime { record: thread.records, x });
            }
        }
        if thread.running.last().is_none_or(|kept| x.since(kept.x) >= RECORD_SPACING_NS) {
            thread.keep_time(RecordTime { record: thread.records, x });
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

/// For each method, the number of the marker name that is the method's name, with or without its class;
/// [`UNKNOWN_NAME`] where there is none.
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
        // A name without a class identifies a method only if no other method has this name.
        let alone = || markers.get(method.name.as_bytes()).filter(|_| bare.get(&*method.name) == Some(&1));
        with(&class).or_else(|| with(short)).or_else(alone).copied()
    };
    methods.iter().map(|m| if m.declared { find(m).unwrap_or(UNKNOWN_NAME) } else { UNKNOWN_NAME }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::test_data::method_trace;

    #[test]
    fn calls_with_the_name_of_a_marker_and_stretches_off_the_cpu_are_kept() {
        let bytes = method_trace(
            1_000,
            &[
                (7, 0, 0, 10, 10),
                (7, 1, 0, 20, 20),
                (7, 1, 1, 60, 560),
                (8, 0, 0, 5, 600),
                (7, 0, 1, 90, 590),
            ],
        );
        let trace = MethodTrace::parse(&bytes).unwrap();
        let markers = HashMap::from([(b"a.B.run".to_vec(), 4)]);
        let threads = collect(&trace, &markers);
        let edges: Vec<_> = threads[0].edges.iter().map(|e| (e.record, e.x.0, e.name, e.begin)).collect();
        // The trace starts at 1,000 µs; `draw` has no marker.
        assert_eq!(edges, [(0, 1_010_000, 4, true), (3, 1_590_000, 4, false)]);
        let gaps: Vec<_> = threads[0].gaps.iter().map(|g| (g.record, g.from.0, g.to.0, g.cpu)).collect();
        assert_eq!(gaps, [(2, 1_020_000, 1_560_000, Some(40_000))]);
        assert_eq!((threads[0].records, threads[0].first.0, threads[0].last.0), (4, 1_010_000, 1_590_000));
        assert_eq!((threads[1].records, threads[1].edges.len()), (1, 1));
    }
}
