//! The figures of each method on each thread, for tables of many traces.

use rustc_hash::FxHashMap;

use super::add;
use super::call_stacks::{CallStacks, CallVisitor, OpenCall};
use super::flat::MethodStat;
use super::selection::{ProfileSelection, stream};
use crate::formats::art_method::{CPU, MethodTrace, Ticks, WALL};
use crate::profile::names::TraceNames;
use crate::profile::source::ProfileSource;
use crate::progress::Pass;

/// A method on a thread; times in ns, `None` in a clock that the trace does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadMethod<'n> {
    /// Dense index of the thread in its trace.
    pub thread: u32,
    /// Class and method: `java.lang.String.valueOf`.
    pub full_name: &'n str,
    /// The class with its package; `(unknown)` for an undeclared method.
    pub class: &'n str,
    /// The method without its class.
    pub name: &'n str,
    /// The JVM descriptor; empty where the trace has none.
    pub signature: &'n str,
    /// The source file.
    pub file: Option<&'n str>,
    /// Calls while no other call of the same method was open on the thread.
    pub calls: u64,
    /// Calls from within the method itself, directly or not.
    pub recursive_calls: u64,
    /// Wall time in the method and not in the methods that it called.
    pub wall_exclusive_ns: Option<u64>,
    /// Wall time in the method and in all methods that it called.
    pub wall_inclusive_ns: Option<u64>,
    /// CPU time of the thread in the method and not in the methods that it called.
    pub cpu_exclusive_ns: Option<u64>,
    /// CPU time of the thread in the method and in all methods that it called.
    pub cpu_inclusive_ns: Option<u64>,
}

/// Calls `visit` for each method on each thread that has called it, by thread and in the order of their first
/// calls. The sums over the threads are the figures of `profile`.
///
/// # Errors
/// The error of `visit`, which ends the visits.
pub fn for_each<E>(
    trace: &MethodTrace<'_>,
    mut visit: impl FnMut(&ThreadMethod<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let names = TraceNames::new(ProfileSource::Calls(trace));
    let columns = ProfileSource::Calls(trace).columns();
    let tick_ns = trace.header().tick_ns;
    for method in methods_of(trace) {
        if trace.methods().get(method.method as usize).is_none() {
            continue;
        }
        let of_clock =
            |clock: usize, ticks: Ticks| columns.has(clock).then(|| ticks[clock].saturating_mul(tick_ns));
        let MethodStat { calls, recursive, exclusive, inclusive } = method.stat;
        visit(&ThreadMethod {
            thread: method.thread,
            full_name: &names.full(method.method),
            class: &names.class(method.method),
            name: names.own(method.method),
            signature: names.signature(method.method),
            file: names.source(method.method).0,
            calls,
            recursive_calls: recursive,
            wall_exclusive_ns: of_clock(WALL, exclusive),
            wall_inclusive_ns: of_clock(WALL, inclusive),
            cpu_exclusive_ns: of_clock(CPU, exclusive),
            cpu_inclusive_ns: of_clock(CPU, inclusive),
        })?;
    }
    Ok(())
}

/// The figures of one method on one thread; times in ticks of the trace.
#[derive(Debug, Clone, Copy)]
struct Figures {
    thread: u32,
    method: u32,
    stat: MethodStat,
    /// Open calls of the method on the thread.
    open: u32,
}

/// The figures of all methods on all threads, by thread.
fn methods_of(trace: &MethodTrace<'_>) -> Vec<Figures> {
    let mut stacks = CallStacks::new(trace.threads().len(), ThreadMethodCounter::default());
    let _pass = Pass::begin("profiling", trace.record_bytes());
    stream(trace, &ProfileSelection::default(), &mut stacks);
    stacks.finish(trace.may_wrap());
    let mut figures = stacks.visitor.figures;
    figures.sort_by_key(|method| method.thread);
    figures
}

#[derive(Debug, Default)]
struct ThreadMethodCounter {
    numbers: FxHashMap<u64, u32>,
    figures: Vec<Figures>,
}

impl ThreadMethodCounter {
    /// The number of the figures of a method on a thread.
    fn number(&mut self, thread: u32, method: u32) -> u32 {
        let next = self.figures.len() as u32;
        let number = *self.numbers.entry(u64::from(thread) << 32 | u64::from(method)).or_insert(next);
        if number == next {
            self.figures.push(Figures { thread, method, stat: MethodStat::default(), open: 0 });
        }
        number
    }
}

impl CallVisitor for ThreadMethodCounter {
    fn enter(&mut self, thread: u32, method: u32, _: Option<&OpenCall>, _: Ticks) -> u32 {
        let number = self.number(thread, method);
        let figures = &mut self.figures[number as usize];
        if figures.open == 0 {
            figures.stat.calls += 1;
        } else {
            figures.stat.recursive += 1;
        }
        figures.open += 1;
        number
    }

    fn leave(&mut self, _: u32, call: &OpenCall, total: Ticks, _: Ticks) {
        let figures = &mut self.figures[call.tag as usize];
        add(&mut figures.stat.exclusive, call.own);
        figures.open -= 1;
        if figures.open == 0 {
            add(&mut figures.stat.inclusive, total);
        }
    }

    fn leave_unentered(&mut self, thread: u32, method: u32, own: Ticks, total: Ticks, _: Ticks) {
        let number = self.number(thread, method);
        let stat = &mut self.figures[number as usize].stat;
        stat.calls += 1;
        add(&mut stat.exclusive, own);
        add(&mut stat.inclusive, total);
    }

    fn idle(&mut self, _: u32, _: Ticks) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::count::flat::FlatProfile;
    use crate::profile::count::flat::tests::random_trace;

    #[test]
    fn the_sums_over_the_threads_are_the_flat_profile() {
        for seed in 1..=100 {
            let bytes = random_trace(seed, 1_000);
            let trace = MethodTrace::parse(&bytes).unwrap();
            let flat = FlatProfile::from_trace(&trace, &ProfileSelection::default());
            let mut sums = vec![MethodStat::default(); trace.methods().len()];
            for method in methods_of(&trace) {
                sums[method.method as usize].add(&method.stat);
            }
            assert_eq!(sums, flat.methods, "seed {seed}");
            let mut threads = 0;
            for_each(&trace, |method| {
                threads |= 1 << method.thread;
                Ok::<_, ()>(())
            })
            .unwrap();
            assert_eq!(threads, 0b11, "seed {seed}");
        }
    }
}
