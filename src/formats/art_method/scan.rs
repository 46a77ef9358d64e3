//! One pass over the records before anything else: ids that no list declares, counts, and thread ids used twice.

use std::collections::HashSet;

use super::body::{FixedBody, Segment, ThreadTable, decode};
use super::ids::{IdMap, NONE};
use crate::art::{ClockMode, Fixed, RecordLayout};

/// Below this many records a second core is not worth its start.
const PARALLEL_FROM: u64 = 200_000;

/// A thread whose CPU clock falls back to less than this with a method entry has just begun (µs): the clock's base
/// is the thread's first event.
const FRESH_CPU_MAX: u32 = 1_000;

/// What the records of one thread id came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadScan {
    /// Records.
    pub records: u64,
    /// Offsets where the CPU clock starts over: another thread under the same id.
    pub restarts: Vec<usize>,
    first: Option<Fixed>,
    first_at: usize,
    last: [u32; 2],
}

/// What a pass over all records found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scan {
    /// Records that enter, leave, unroll, and those with the fourth action, which no runtime writes.
    pub actions: [u64; 4],
    /// Method ids in records that no list declares, in order of appearance.
    pub methods: Vec<u32>,
    /// Thread ids in records that no list declares, in order of appearance.
    pub threads: Vec<u16>,
    /// By dense index: the declared threads, then `threads`.
    pub by_thread: Vec<ThreadScan>,
}

/// Scans all records, on several cores when there are many.
pub fn scan(bytes: &[u8], body: &FixedBody, clock: ClockMode, threads: &Declared<'_>) -> Scan {
    let records = body.records();
    let workers = if records < PARALLEL_FROM { 1 } else { workers() };
    let share = |n: u64| body.slice(records * n / workers, records * (n + 1) / workers);
    let parts = std::thread::scope(|scope| {
        let spawned: Vec<_> = (1..workers)
            .map(|n| scope.spawn(move || scan_part(bytes, &share(n), body.layout, clock, threads)))
            .collect();
        let mut parts = vec![scan_part(bytes, &share(0), body.layout, clock, threads)];
        parts.extend(spawned.into_iter().map(|s| s.join().unwrap_or_else(|e| std::panic::resume_unwind(e))));
        parts
    });
    merge(parts, threads.count, clock)
}

/// Cores to use.
pub fn workers() -> u64 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u64).min(8)
}

/// What the lists declare.
pub struct Declared<'a> {
    /// Methods by id.
    pub methods: &'a IdMap,
    /// Number of declared threads.
    pub count: usize,
    /// Their dense indexes.
    pub table: &'a ThreadTable,
}

fn scan_part(
    bytes: &[u8],
    part: &[Segment],
    layout: RecordLayout,
    clock: ClockMode,
    declared: &Declared<'_>,
) -> Scan {
    let mut state = Part {
        scan: Scan { by_thread: vec![ThreadScan::default(); declared.count], ..Scan::default() },
        table: declared.table.clone(),
        unknown: HashSet::new(),
        methods: declared.methods,
        clock,
    };
    for segment in part {
        for (id, index) in &segment.binds {
            state.table.bind(*id, *index);
        }
        let size = layout.size();
        for (n, record) in decode(bytes, &segment.range, layout).enumerate() {
            state.take(record, segment.range.start + n * size);
        }
    }
    state.scan
}

struct Part<'a> {
    scan: Scan,
    table: ThreadTable,
    unknown: HashSet<u32>,
    methods: &'a IdMap,
    clock: ClockMode,
}

impl Part<'_> {
    #[inline(always)]
    fn take(&mut self, record: Fixed, offset: usize) {
        self.scan.actions[(record.word & 3) as usize] += 1;
        if self.methods.get(u64::from(record.word)) == NONE {
            self.unknown_method(record.method());
        }
        let mut index = self.table.get(record.thread);
        if index as usize >= self.scan.by_thread.len() {
            index = self.unknown_thread(record.thread);
        }
        let thread = &mut self.scan.by_thread[index as usize];
        thread.records += 1;
        if record.first < thread.last[0] || thread.records == 1 {
            thread.irregular(record, offset, self.clock);
        }
        thread.last = [record.first, record.second];
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

impl ThreadScan {
    /// The thread's first record, or one whose clock steps back.
    #[cold]
    fn irregular(&mut self, record: Fixed, offset: usize, clock: ClockMode) {
        if self.records == 1 {
            (self.first, self.first_at) = (Some(record), offset);
        } else if starts_over(self.last, &record, clock) {
            self.restarts.push(offset);
        }
    }
}

/// Whether `next` is the first event of another thread than the one that wrote `last`.
#[inline(always)]
fn starts_over(last: [u32; 2], next: &Fixed, clock: ClockMode) -> bool {
    next.first < last[0]
        && clock.has_cpu()
        && next.first < FRESH_CPU_MAX
        // A wrap falls from the top of the 32-bit range.
        && (FRESH_CPU_MAX..u32::MAX / 2).contains(&last[0])
        && next.word & 3 == 0
        && (clock == ClockMode::ThreadCpu || next.second >= last[1])
}

fn merge(parts: Vec<Scan>, declared: usize, clock: ClockMode) -> Scan {
    let mut parts = parts.into_iter();
    let mut all = parts.next().unwrap_or_default();
    let mut known: HashSet<u32> = all.methods.iter().copied().collect();
    for part in parts {
        for (sum, n) in all.actions.iter_mut().zip(part.actions) {
            *sum += n;
        }
        all.methods.extend(part.methods.into_iter().filter(|id| known.insert(*id)));
        for (n, thread) in part.by_thread.into_iter().enumerate() {
            let index = match n.checked_sub(declared).and_then(|n| part.threads.get(n)) {
                None => n,
                Some(id) => declared + position_or_push(&mut all.threads, *id),
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

fn position_or_push(list: &mut Vec<u16>, id: u16) -> usize {
    list.iter().position(|known| *known == id).unwrap_or_else(|| {
        list.push(id);
        list.len() - 1
    })
}
