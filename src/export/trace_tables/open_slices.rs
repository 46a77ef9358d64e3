//! The slices that have begun and not ended, and the CPU time of threads.

use std::collections::HashMap;
use std::hash::Hash;

/// A slice that has begun.
#[derive(Debug, Clone, Copy)]
pub(super) struct StackedSlice {
    /// The slice's number in its trace.
    pub id: u64,
    /// The time of the slices in it that have ended, ns.
    inside_ns: u64,
    /// The CPU time of its thread at its begin, ns, where it is known.
    pub cpu_ns: Option<u64>,
}

/// A slice that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EndedSlice {
    pub id: u64,
    /// The slice around it.
    pub parent: Option<u64>,
    /// The number of slices around it.
    pub depth: usize,
    /// Its time without the slices in it, ns.
    pub exclusive_ns: u64,
    /// The CPU time of its thread at its begin, ns, where it is known.
    pub cpu_ns: Option<u64>,
}

/// The open slices of each thread or track, outermost first.
#[derive(Debug)]
pub(super) struct SliceStacks<K> {
    open: HashMap<K, Vec<StackedSlice>>,
}

impl<K> Default for SliceStacks<K> {
    fn default() -> Self {
        SliceStacks { open: HashMap::new() }
    }
}

impl<K: Eq + Hash> SliceStacks<K> {
    pub fn begin(&mut self, place: K, id: u64, cpu_ns: Option<u64>) {
        self.open.entry(place).or_default().push(StackedSlice { id, inside_ns: 0, cpu_ns });
    }

    /// The innermost open slice.
    pub fn innermost(&self, place: &K) -> Option<u64> {
        self.open.get(place)?.last().map(|slice| slice.id)
    }

    /// Ends the innermost slice, which took `ns`. `None` where none is open.
    pub fn end(&mut self, place: &K, ns: u64) -> Option<EndedSlice> {
        let open = self.open.get_mut(place)?;
        let slice = open.pop()?;
        let outer = open.last_mut();
        let parent = outer.as_ref().map(|outer| outer.id);
        if let Some(outer) = outer {
            outer.inside_ns = outer.inside_ns.saturating_add(ns);
        }
        Some(EndedSlice {
            id: slice.id,
            parent,
            depth: open.len(),
            exclusive_ns: ns.saturating_sub(slice.inside_ns),
            cpu_ns: slice.cpu_ns,
        })
    }
}

/// The time that each thread has had a CPU.
#[derive(Debug, Default)]
pub(super) struct CpuTimes {
    /// By thread: the time of the periods that have ended, ns, and the begin of one that has not.
    threads: HashMap<i32, (u64, Option<u64>)>,
}

impl CpuTimes {
    /// The thread gets a CPU.
    pub fn begin(&mut self, tid: i32, ts: u64) {
        self.threads.entry(tid).or_default().1 = Some(ts);
    }

    /// The thread has had a CPU for `ns`.
    pub fn end(&mut self, tid: i32, ns: u64) {
        let thread = self.threads.entry(tid).or_default();
        *thread = (thread.0.saturating_add(ns), None);
    }

    /// The CPU time of the thread that runs at `ts`, ns; `None` where it is not known to run, because its
    /// switch was not recorded.
    pub fn at(&self, tid: i32, ts: u64) -> Option<u64> {
        let (before, since) = self.threads.get(&tid)?;
        Some(before.saturating_add(ts.saturating_sub((*since)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exclusive_time_of_a_slice_is_without_the_slices_in_it() {
        let mut slices = SliceStacks::default();
        for id in 0..3 {
            slices.begin(7, id, None);
        }
        assert_eq!(slices.innermost(&7), Some(2));
        let ended =
            |id, parent, depth, exclusive_ns| EndedSlice { id, parent, depth, exclusive_ns, cpu_ns: None };
        assert_eq!(slices.end(&7, 10), Some(ended(2, Some(1), 2, 10)));
        assert_eq!(slices.end(&7, 25), Some(ended(1, Some(0), 1, 15)));
        slices.begin(7, 3, None);
        assert_eq!(slices.end(&7, 5), Some(ended(3, Some(0), 1, 5)));
        assert_eq!(slices.end(&7, 100), Some(ended(0, None, 0, 70)));
        assert_eq!(slices.end(&7, 1), None);
    }

    #[test]
    fn cpu_time_is_known_only_while_the_thread_is_known_to_run() {
        let mut times = CpuTimes::default();
        assert_eq!(times.at(7, 5), None);
        times.begin(7, 10);
        assert_eq!(times.at(7, 15), Some(5));
        times.end(7, 20);
        assert_eq!(times.at(7, 40), None);
        times.begin(7, 50);
        assert_eq!(times.at(7, 51), Some(21));
    }
}
