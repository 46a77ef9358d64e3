//! The first pass over the records of versions 1 to 3: counts the records, and finds ids that no list
//! declares and the places where another thread takes over an id.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;

use super::MAX_WORKERS;
use super::body::{FixedBody, PART_RECORDS, RecordVisitor, Segment, ThreadTable, for_each_record};
use super::ids::{IdMap, NONE};
use crate::art::{ClockMode, FixedRecord, RecordLayout};
use crate::progress::Pass;
use crate::workers::{run_parts, worker_count};

/// With fewer records than this a second thread costs more than it saves.
const PARALLEL_FROM_RECORDS: u64 = 200_000;

/// A new thread has taken over an id if a record that enters a method has a CPU time below this, µs, and the
/// previous record of the id does not: CPU time counts from a thread's first record.
const FRESH_CPU_MAX_US: u32 = 1_000;

/// The width of a count of the records of one part, bits.
const COUNT_BITS: u64 = 20;
const _: () = assert!(PART_RECORDS < 1 << COUNT_BITS);

/// The findings for the records of one thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ThreadScan {
    /// Number of records.
    pub records: u64,
    /// Offsets where the CPU clock starts over, because another thread has taken over the id.
    pub restarts: Vec<usize>,
    first: Option<FixedRecord>,
    first_at: usize,
    last: [u32; 2],
}

/// The findings for all records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Prescan {
    /// The number of records by action: enter, exit, unroll, and the fourth action, which no runtime writes.
    pub actions: [u64; 4],
    /// Method ids in records that no list declares, in order of appearance.
    pub methods: Vec<u32>,
    /// Thread ids in records that no list declares, in order of appearance.
    pub threads: Vec<u16>,
    /// By dense thread index: the declared threads, then those in `threads`.
    pub by_thread: Vec<ThreadScan>,
}

/// Passes over all records, on several processors where there are many.
pub(super) fn prescan(
    bytes: &[u8],
    body: &FixedBody,
    clock: ClockMode,
    threads: &DeclaredIds<'_>,
) -> Prescan {
    let records = body.records();
    let workers = if records < PARALLEL_FROM_RECORDS { 1 } else { worker_count(MAX_WORKERS) as u64 };
    let share = |n: u64| body.slice(records * n / workers, records * (n + 1) / workers);
    let shares: Vec<_> = (0..workers).map(share).collect();
    let _pass = Pass::begin("reading records", records * body.layout.size() as u64);
    let scans = run_parts(&shares, |part| scan_part(bytes, part, body.layout, clock, threads));
    merge(scans, threads.count, clock)
}

/// The ids that the lists of the file declare.
pub(super) struct DeclaredIds<'a> {
    /// The methods.
    pub methods: &'a IdMap,
    /// The number of threads.
    pub count: usize,
    /// The dense indexes of the threads.
    pub table: &'a ThreadTable,
}

fn scan_part(
    bytes: &[u8],
    part: &[Segment],
    layout: RecordLayout,
    clock: ClockMode,
    declared: &DeclaredIds<'_>,
) -> Prescan {
    let mut state = PartScan {
        scan: Prescan { by_thread: vec![ThreadScan::default(); declared.count], ..Prescan::default() },
        table: declared.table.clone(),
        unknown: HashSet::new(),
        methods: declared.methods,
        clock,
    };
    let Ok(()) = for_each_record(bytes, part, layout, &mut state);
    state.scan
}

struct PartScan<'a> {
    scan: Prescan,
    table: ThreadTable,
    unknown: HashSet<u32>,
    methods: &'a IdMap,
    clock: ClockMode,
}

impl RecordVisitor for PartScan<'_> {
    type Error = Infallible;

    fn bind(&mut self, id: u16, thread: u32) {
        self.table.bind(id, thread);
    }

    /// Takes records. Records of one thread that follow each other are taken together: what changes with each
    /// of them is then in registers.
    #[inline(always)]
    fn records<const SIZE: usize>(
        &mut self,
        records: &[[u8; SIZE]],
        offset: usize,
        decode: impl Fn(&[u8; SIZE]) -> FixedRecord,
    ) -> Result<(), Infallible> {
        // The number of records by action, in one number: all parts have fewer than 2^COUNT_BITS records. The
        // fourth action's lowest bits alone are in it; its count is what remains.
        let mut packed = 0u64;
        let mut taken = 0;
        while let Some(first) = records.get(taken).map(&decode) {
            let index = self.thread(first, offset + taken * SIZE);
            let mut last = self.scan.by_thread[index].last;
            let from = taken;
            for record in records[from..].iter().map(&decode) {
                if record.thread != first.thread {
                    break;
                }
                let word = u64::from(record.word);
                packed = packed.wrapping_add(1 << ((word & 3) * COUNT_BITS));
                if self.methods.get(word) == NONE {
                    self.unknown_method(record.method());
                }
                if record.first < last[0] && starts_over(last, &record, self.clock) {
                    self.restart(index, offset + taken * SIZE);
                }
                last = [record.first, record.second];
                taken += 1;
            }
            let thread = &mut self.scan.by_thread[index];
            thread.records += (taken - from) as u64;
            thread.last = last;
        }
        let mut counts = [0, 1, 2, 0].map(|action| packed >> (action * COUNT_BITS) & ((1 << COUNT_BITS) - 1));
        counts[3] = records.len() as u64 - counts[0] - counts[1] - counts[2];
        self.scan.actions.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
        Ok(())
    }
}

impl PartScan<'_> {
    /// The dense index of the thread of a record, which begins at `offset`.
    fn thread(&mut self, record: FixedRecord, offset: usize) -> usize {
        let mut index = self.table.get(record.thread);
        if index as usize >= self.scan.by_thread.len() {
            index = self.unknown_thread(record.thread);
        }
        let thread = &mut self.scan.by_thread[index as usize];
        if thread.records == 0 {
            (thread.first, thread.first_at) = (Some(record), offset);
            thread.last = [record.first, record.second];
        }
        index as usize
    }

    #[cold]
    fn restart(&mut self, thread: usize, offset: usize) {
        self.scan.by_thread[thread].restarts.push(offset);
    }

    #[cold]
    fn unknown_method(&mut self, id: u32) {
        if self.unknown.insert(id) {
            self.scan.methods.push(id);
        }
    }

    #[cold]
    fn unknown_thread(&mut self, id: u16) -> u32 {
        let index = self.scan.by_thread.len() as u32;
        self.scan.threads.push(id);
        self.scan.by_thread.push(ThreadScan::default());
        self.table.bind(id, index);
        index
    }
}

/// Whether `next` is the first record of another thread than the thread whose times were `last`.
#[inline(always)]
fn starts_over(last: [u32; 2], next: &FixedRecord, clock: ClockMode) -> bool {
    next.first < last[0]
        && clock.has_cpu()
        && next.first < FRESH_CPU_MAX_US
        // A clock that wraps falls from the top of the 32-bit range.
        && (FRESH_CPU_MAX_US..u32::MAX / 2).contains(&last[0])
        && next.word & 3 == 0
        && (clock == ClockMode::ThreadCpu || next.second >= last[1])
}

fn merge(parts: Vec<Prescan>, declared: usize, clock: ClockMode) -> Prescan {
    let mut parts = parts.into_iter();
    let mut all = parts.next().unwrap_or_default();
    let mut known: HashSet<u32> = all.methods.iter().copied().collect();
    let mut places: HashMap<u16, usize> = all.threads.iter().enumerate().map(|(n, id)| (*id, n)).collect();
    for part in parts {
        for (sum, n) in all.actions.iter_mut().zip(part.actions) {
            *sum += n;
        }
        all.methods.extend(part.methods.into_iter().filter(|id| known.insert(*id)));
        for (n, thread) in part.by_thread.into_iter().enumerate() {
            let index = match n.checked_sub(declared).and_then(|n| part.threads.get(n)) {
                None => n,
                Some(id) => {
                    declared
                        + *places.entry(*id).or_insert_with(|| {
                            all.threads.push(*id);
                            all.threads.len() - 1
                        })
                }
            };
            if index >= all.by_thread.len() {
                all.by_thread.push(ThreadScan::default());
            }
            let sum = &mut all.by_thread[index];
            if let Some(first) = thread.first
                && sum.records > 0
                && starts_over(sum.last, &first, clock)
            {
                sum.restarts.push(thread.first_at);
            }
            sum.records += thread.records;
            sum.restarts.extend(thread.restarts);
            sum.first = sum.first.or(thread.first);
            sum.last = if thread.records > 0 { thread.last } else { sum.last };
        }
    }
    all
}
