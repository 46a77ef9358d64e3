//! The flat profile: calls and times of each method, in both clocks, on several cores.
//!
//! This is the stack machine of [`super::machine`] once more, in the one form that has no branch on what a record
//! says: whether the next record enters or leaves a method is as good as random, and a processor that guesses wrong
//! half of the time needs three times as long. A test holds the two against each other.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::drive::{Feed, Selection, drive};
use super::machine::{Ticks, add, since};
use crate::formats::art_method::ids::IdHasher;
use crate::formats::art_method::{CallAnomalies, MethodTrace, cores};

/// One method's figures; times in ticks of the trace ([`super::Units`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stat {
    /// Calls while no other call of the same method was open in the thread.
    pub calls: u64,
    /// Calls from within the method itself, directly or not.
    pub recursive: u64,
    /// Time in the method and not in what it called.
    pub exclusive: Ticks,
    /// Time in the method and all it called; the outermost call alone of a recursion.
    pub inclusive: Ticks,
}

impl Stat {
    /// Adds another part's figures.
    pub fn add(&mut self, other: &Stat) {
        self.calls += other.calls;
        self.recursive += other.recursive;
        add(&mut self.exclusive, other.exclusive);
        add(&mut self.inclusive, other.inclusive);
    }

    /// Whether the method was called at all.
    pub fn is_empty(&self) -> bool {
        self.calls + self.recursive == 0
    }
}

/// One thread's figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadStat {
    /// Calls, recursive ones included.
    pub calls: u64,
    /// From its first event to its last.
    pub total: Ticks,
    /// Of that, outside of any traced call.
    pub idle: Ticks,
    /// Time of the first event.
    pub first: Ticks,
}

/// The flat profile of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flat {
    /// By dense method index.
    pub methods: Vec<Stat>,
    /// By dense thread index.
    pub threads: Vec<ThreadStat>,
    /// What did not fit together.
    pub problems: CallAnomalies,
}

/// Below this many records one core is as fast.
const PARALLEL_FROM: u64 = 100_000;

impl Flat {
    /// Profiles the selected records: threads are dealt out to the cores.
    pub fn of(trace: &MethodTrace<'_>, selection: &Selection) -> Flat {
        Flat::run(trace, selection, trace.methods().len(), |counter, share| drive(trace, share, counter))
    }

    /// Profiles groups of methods as if each were one method: `groups` has each method's, `count` is how many there
    /// are. A call from one method of a group to another is then a recursive one.
    pub fn of_groups(trace: &MethodTrace<'_>, selection: &Selection, groups: &[u32], count: usize) -> Flat {
        Flat::run(trace, selection, count, |counter, share| {
            drive(trace, share, &mut Grouped { groups, counter })
        })
    }

    fn run(
        trace: &MethodTrace<'_>,
        selection: &Selection,
        methods: usize,
        drive: impl Fn(&mut Counter, &Selection) + Sync,
    ) -> Flat {
        let shares = if trace.counts().records < PARALLEL_FROM { 1 } else { cores() };
        let run = |selection: &Selection| {
            let mut counter = Counter::new(trace.threads().len(), methods);
            drive(&mut counter, selection);
            counter.finish(trace.may_wrap());
            counter
        };
        let shares = selection.deal(trace, shares as usize);
        let counters = std::thread::scope(|scope| {
            let spawned: Vec<_> = shares[1..].iter().map(|share| scope.spawn(move || run(share))).collect();
            let mut all = vec![run(&shares[0])];
            all.extend(
                spawned.into_iter().map(|s| s.join().unwrap_or_else(|e| std::panic::resume_unwind(e))),
            );
            all
        });
        collect(counters)
    }
}

fn collect(counters: Vec<Counter>) -> Flat {
    let mut flat = Flat::default();
    for counter in counters {
        flat.methods.resize(counter.stats.len(), Stat::default());
        flat.threads.resize(counter.lanes.len(), ThreadStat::default());
        for (sum, stat) in flat.methods.iter_mut().zip(&counter.stats) {
            sum.add(stat);
        }
        for (thread, lane) in flat.threads.iter_mut().zip(&counter.lanes).filter(|(_, lane)| lane.seen) {
            let total = since(lane.last, lane.first);
            *thread = ThreadStat { calls: lane.calls, total, idle: lane.idle, first: lane.first };
        }
        flat.problems.add(counter.problems);
    }
    flat
}

/// What stands on each thread's stack below all calls: no method has this index.
const OUTSIDE: u32 = u32::MAX >> 1;

#[derive(Debug, Clone)]
struct Lane {
    /// Methods of the open calls above [`OUTSIDE`], innermost at `top`; always at least one longer than that.
    stack: Vec<u32>,
    top: usize,
    first: Ticks,
    last: Ticks,
    idle: Ticks,
    seen: bool,
    calls: u64,
}

/// Which methods are on a thread's stack, a bit each: small enough to stay in the nearest cache.
#[derive(Debug, Clone)]
struct OnStack {
    /// Words a thread.
    stride: usize,
    /// Empty where the table would be larger than the trace is worth.
    table: Vec<u64>,
    sparse: HashMap<u64, u64, BuildHasherDefault<IdHasher>>,
}

/// The most words that [`OnStack`] gets a table of: 32 MiB.
const TABLE_MAX: usize = 4 << 20;

impl OnStack {
    fn new(threads: usize, methods: usize) -> OnStack {
        let stride = methods.div_ceil(64);
        let size = threads.checked_mul(stride).filter(|n| *n <= TABLE_MAX).unwrap_or(0);
        OnStack { stride, table: vec![0; size], sparse: HashMap::default() }
    }

    #[inline(always)]
    fn word(&mut self, thread: u32, method: u32) -> &mut u64 {
        let place = thread as usize * self.stride + (method >> 6) as usize;
        match self.table.get_mut(place) {
            Some(word) => word,
            None => self.sparse.entry(place as u64).or_default(),
        }
    }
}

/// Marks a stack entry whose method is on the stack already, further out.
const RECURSIVE: u32 = 1 << 31;

#[derive(Debug, Clone)]
struct Counter {
    stats: Vec<Stat>,
    lanes: Vec<Lane>,
    on_stack: OnStack,
    problems: CallAnomalies,
}

impl Counter {
    fn new(threads: usize, methods: usize) -> Counter {
        let lane = Lane {
            stack: vec![OUTSIDE; 2],
            top: 0,
            first: [0; 2],
            last: [0; 2],
            idle: [0; 2],
            seen: false,
            calls: 0,
        };
        Counter {
            stats: vec![Stat::default(); methods],
            lanes: vec![lane; threads],
            on_stack: OnStack::new(threads, methods),
            problems: CallAnomalies::default(),
        }
    }

    /// One record.
    #[inline(always)]
    fn take(&mut self, thread: u32, method: u32, exit: bool, at: Ticks) {
        let Some(lane) = self.lanes.get_mut(thread as usize) else { return };
        let [mut a, mut b] = at;
        if !lane.seen || a < lane.last[0] || b < lane.last[1] || lane.stack.len() < lane.top + 2 {
            (a, b) = lane.irregular(a, b, &mut self.problems);
        }
        let spent = [a - lane.last[0], b - lane.last[1]];
        lane.last = [a, b];
        let Some([top, next]) = lane.stack.get_mut(lane.top..).and_then(|s| s.first_chunk_mut()) else {
            return;
        };
        // The time since the thread's last record was spent in the innermost call, whatever comes now.
        let innermost = *top & !RECURSIVE;
        match self.stats.get_mut(innermost as usize) {
            Some(stat) => add(&mut stat.exclusive, spent),
            None => add(&mut lane.idle, spent),
        }
        if exit & (innermost != method) {
            return self.mismatch(thread, method, spent, [a, b]);
        }
        let enter = u64::from(!exit);
        let leave = u64::from(exit);
        let word = self.on_stack.word(thread, method);
        let recursive = (*word >> (method & 63)) & enter | u64::from(*top >> 31) & leave;
        // The outermost call of a method sets its bit, and its exit clears it.
        *word ^= (recursive ^ 1) << (method & 63);
        let Some(stat) = self.stats.get_mut(method as usize) else { return };
        lane.calls += enter;
        if recursive == 0 {
            stat.calls += enter;
            // Inclusive time is the sum of exits' times less that of entries'; the sum comes out right in the end.
            let minus = enter.wrapping_neg();
            stat.inclusive[0] = stat.inclusive[0].wrapping_add((a ^ minus).wrapping_sub(minus));
            stat.inclusive[1] = stat.inclusive[1].wrapping_add((b ^ minus).wrapping_sub(minus));
        } else {
            stat.recursive += enter;
        }
        *next = method | (recursive as u32) << 31;
        lane.top = lane.top.wrapping_add(1).wrapping_sub(usize::from(exit) << 1);
    }

    /// An exit that is not the innermost call's: see [`super::machine::Machine`] for what is made of it.
    #[cold]
    #[inline(never)]
    fn mismatch(&mut self, thread: u32, method: u32, spent: Ticks, at: Ticks) {
        let lane = &mut self.lanes[thread as usize];
        if lane.top == 0 {
            if let Some(stat) = self.stats.get_mut(method as usize) {
                self.problems.exits_without_enter += 1;
                lane.idle = since(lane.idle, spent);
                lane.calls += 1;
                stat.calls += 1;
                add(&mut stat.exclusive, spent);
                let total = since(at, lane.first);
                stat.inclusive =
                    [stat.inclusive[0].wrapping_add(total[0]), stat.inclusive[1].wrapping_add(total[1])];
            }
            return;
        }
        let open = &lane.stack[1..=lane.top];
        let Some(depth) = open.iter().rposition(|open| *open & !RECURSIVE == method) else {
            self.problems.unmatched_exits += 1;
            return;
        };
        self.problems.missing_exits += (open.len() - depth - 1) as u64;
        self.close(thread, depth, at);
    }

    /// Closes a thread's calls down to `depth` of them.
    fn close(&mut self, thread: u32, depth: usize, at: Ticks) {
        while self.lanes[thread as usize].top > depth {
            let lane = &self.lanes[thread as usize];
            self.take(thread, lane.stack[lane.top] & !RECURSIVE, true, at);
        }
    }

    /// Closes what is open at each thread's last event.
    fn finish(&mut self, may_wrap: bool) {
        for thread in 0..self.lanes.len() {
            let (open, last) = (self.lanes[thread].top, self.lanes[thread].last);
            self.problems.open_at_end += open as u64;
            if may_wrap {
                self.problems.reached(last);
            }
            self.close(thread as u32, 0, last);
        }
    }
}

impl Lane {
    /// The time to take a record at that is the thread's first, steps back, or needs more room on the stack.
    #[cold]
    #[inline(never)]
    fn irregular(&mut self, a: u64, b: u64, problems: &mut CallAnomalies) -> (u64, u64) {
        if self.stack.len() < self.top + 2 {
            self.stack.resize(2 * self.stack.len(), OUTSIDE);
        }
        if !std::mem::replace(&mut self.seen, true) {
            (self.first, self.last) = ([a, b], [a, b]);
        }
        let forward = (a.max(self.last[0]), b.max(self.last[1]));
        problems.time_steps_back += u64::from(forward != (a, b));
        forward
    }
}

impl Feed for Counter {
    #[inline(always)]
    fn feed(&mut self, thread: u32, method: u32, exit: bool, at: Ticks) {
        self.take(thread, method, exit, at);
    }

    fn pass(&mut self, thread: u32, at: Ticks) {
        let Some(lane) = self.lanes.get_mut(thread as usize).filter(|lane| lane.seen) else { return };
        let spent = since(at, lane.last);
        add(&mut lane.last, spent);
        match self.stats.get_mut((lane.stack[lane.top] & !RECURSIVE) as usize) {
            Some(stat) => add(&mut stat.exclusive, spent),
            None => add(&mut lane.idle, spent),
        }
    }
}

/// Passes each method's group on.
struct Grouped<'a> {
    groups: &'a [u32],
    counter: &'a mut Counter,
}

impl Feed for Grouped<'_> {
    #[inline(always)]
    fn feed(&mut self, thread: u32, method: u32, exit: bool, at: Ticks) {
        let group = self.groups.get(method as usize).copied().unwrap_or(u32::MAX);
        self.counter.take(thread, group, exit, at);
    }

    fn pass(&mut self, thread: u32, at: Ticks) {
        self.counter.pass(thread, at);
    }
}
