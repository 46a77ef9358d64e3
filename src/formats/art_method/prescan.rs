//! The first pass over the records of versions 1 to 3: counts the records, and finds ids that no list
//! declares and the places where another thread takes over an id. Where several threads had the same id one
//! after another, a second pass assigns the records to the threads.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;

use super::body::{
    FixedBody, IdMap, NONE, PART_RECORDS, RecordVisitor, Segment, ThreadTable, for_each_record,
};
use super::{MAX_WORKERS, Method, TracedThread};
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
            thread.first = Some(record);
            thread.first_at = offset;
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

/// The result of [`separate_threads`].
#[derive(Debug, Default)]
pub(super) struct SeparatedThreads {
    /// Offset in the file, thread id, and the index of the thread that the id means from that offset on.
    pub binds: Vec<(usize, u16, u32)>,
    /// Number of ids that the thread list gives to several threads whose records cannot be separated.
    pub inseparable_ids: u64,
}

/// Separates the threads that had the same id one after another, and adds the threads that no list names.
///
/// Two signs prove that another thread has taken over an id: the CPU clock of the id starts over (the prescan
/// has found the places), or, for ids that the list gives to several threads, `Thread.run` is entered again
/// after all calls have ended.
pub(super) fn separate_threads(
    bytes: &[u8],
    body: &FixedBody,
    scan: &Prescan,
    threads: &mut Vec<TracedThread<'_>>,
    methods: &[Method<'_>],
    ids: &IdMap,
) -> SeparatedThreads {
    let shared = shared_ids(threads, scan);
    let wanted = shared.iter().filter(|shared| shared.needs_thread_run(scan)).map(|shared| shared.id);
    let mut wanted: HashMap<u16, ThreadRuns> = wanted.map(|id| (id, ThreadRuns::default())).collect();
    find_thread_runs(bytes, body, &mut wanted, methods, ids);
    let mut separated = SeparatedThreads::default();
    for shared in shared {
        let offsets = if shared.needs_thread_run(scan) {
            let runs = wanted.remove(&shared.id).unwrap_or_default();
            if runs.offsets.len() != shared.successors.len() {
                separated.inseparable_ids += 1;
                continue;
            }
            runs.offsets
        } else {
            scan.by_thread[shared.first].restarts.clone()
        };
        let mut successors = shared.successors.into_iter();
        for offset in offsets {
            let next = successors.next().unwrap_or_else(|| {
                threads.push(TracedThread {
                    id: threads[shared.first].id,
                    name: "".into(),
                    declared: false,
                    reused_id: true,
                    records: 0,
                });
                threads.len() as u32 - 1
            });
            separated.binds.push((offset, shared.id, next));
        }
    }
    separated
}

/// An id whose records may belong to several threads.
struct SharedId {
    id: u16,
    /// Index of the thread to which the scan gave the records.
    first: usize,
    /// Indexes of the later threads with the same id that have no records yet, in the order of the list.
    successors: Vec<u32>,
}

impl SharedId {
    /// Whether only the entries of `Thread.run` can separate the threads, because the CPU clock does not
    /// start over.
    fn needs_thread_run(&self, scan: &Prescan) -> bool {
        let first = &scan.by_thread[self.first];
        first.restarts.is_empty() && !self.successors.is_empty() && first.records > 0
    }
}

fn shared_ids(threads: &[TracedThread<'_>], scan: &Prescan) -> Vec<SharedId> {
    let mut successors: HashMap<u32, Vec<u32>> = HashMap::new();
    for (index, thread) in threads.iter().enumerate().filter(|(_, thread)| thread.reused_id) {
        successors.entry(thread.id).or_default().push(index as u32);
    }
    let mut shared = Vec::new();
    for (first, thread) in threads.iter().enumerate().take(scan.by_thread.len()) {
        let id = thread.id as u16;
        let mut successors = successors.remove(&thread.id).unwrap_or_default();
        // A streaming file declares threads between the records: those threads have their records already.
        successors.retain(|index| scan.by_thread.get(*index as usize).is_none_or(|scan| scan.records == 0));
        shared.push(SharedId { id, first, successors });
    }
    shared
}

/// The places where the threads of one id enter `Thread.run`.
#[derive(Debug, Default)]
struct ThreadRuns {
    depth: u64,
    seen: bool,
    /// Offsets in the file of the records that enter `Thread.run` while no call is open, except the first.
    offsets: Vec<usize>,
}

/// Finds the entries of `Thread.run` for all wanted ids in one pass over the records.
fn find_thread_runs(
    bytes: &[u8],
    body: &FixedBody,
    wanted: &mut HashMap<u16, ThreadRuns>,
    methods: &[Method<'_>],
    ids: &IdMap,
) {
    if wanted.is_empty() {
        return;
    }
    let mut finder = ThreadRunFinder { wanted, methods, ids };
    let Ok(()) = for_each_record(bytes, &body.segments, body.layout, &mut finder);
}

struct ThreadRunFinder<'f, 'a> {
    wanted: &'f mut HashMap<u16, ThreadRuns>,
    methods: &'f [Method<'a>],
    ids: &'f IdMap,
}

fn is_thread_run(methods: &[Method<'_>], ids: &IdMap, word: u32) -> bool {
    let method = methods.get(ids.get(u64::from(word)) as usize);
    method.is_some_and(|m| m.name == "run" && m.class_name() == "java.lang.Thread")
}

impl RecordVisitor for ThreadRunFinder<'_, '_> {
    type Error = Infallible;

    /// The finder follows ids, whatever thread they mean.
    fn bind(&mut self, _: u16, _: u32) {}

    fn records<const SIZE: usize>(
        &mut self,
        records: &[[u8; SIZE]],
        offset: usize,
        decode: impl Fn(&[u8; SIZE]) -> FixedRecord,
    ) -> Result<(), Infallible> {
        for (n, record) in records.iter().map(decode).enumerate() {
            let Some(runs) = self.wanted.get_mut(&record.thread) else { continue };
            match record.word & 3 {
                0 => {
                    let is_run = runs.depth == 0 && is_thread_run(self.methods, self.ids, record.word);
                    if is_run && std::mem::replace(&mut runs.seen, true) {
                        runs.offsets.push(offset + n * SIZE);
                    }
                    runs.depth += 1;
                }
                3 => {}
                _ => runs.depth = runs.depth.saturating_sub(1),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use crate::formats::art_method::MethodTrace;

    /// A trace of wall time whose list gives each of `ids` ids to two threads: each thread enters and leaves
    /// `Thread.run`, and between the two come `calls` calls of the first thread.
    fn trace_of_reused_ids(ids: u16, calls: u32) -> Vec<u8> {
        let mut text = String::from("*version\n2\nclock=wall\nelapsed-time-usec=1000000\n*threads\n");
        for thread in (1..=ids).chain(1..=ids) {
            let _ = writeln!(text, "{thread}\tthread {thread}");
        }
        text += "*methods\n0x4\tjava.lang.Thread\trun\t()V\tThread.java\n0x8\ta.B\tc\t()V\tB.java\n*end\n";
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(b"SLOW\x02\0\x20\0");
        bytes.extend_from_slice(&[0; 24]);
        let mut time_us = 0u32;
        let mut record = |thread: u16, word: u32| {
            time_us += 1;
            bytes.extend_from_slice(&thread.to_le_bytes());
            bytes.extend_from_slice(&word.to_le_bytes());
            bytes.extend_from_slice(&time_us.to_le_bytes());
        };
        for thread in 1..=ids {
            record(thread, 4);
            for _ in 0..calls {
                record(thread, 8);
                record(thread, 9);
            }
            record(thread, 5);
            record(thread, 4);
            record(thread, 5);
        }
        bytes
    }

    /// With one pass over the records for each id this test reads 2 billion records and takes minutes.
    #[test]
    fn three_thousand_reused_ids_are_separated_in_one_pass() {
        let bytes = trace_of_reused_ids(3_000, 100);
        let trace = MethodTrace::parse(&bytes).unwrap();
        assert_eq!(trace.counts().reused_threads, 3_000);
        let (first, second) = trace.threads().split_at(3_000);
        assert!(first.iter().all(|thread| thread.records == 202), "{:?}", first[0]);
        assert!(second.iter().all(|thread| thread.records == 2), "{:?}", second[0]);
    }
}
