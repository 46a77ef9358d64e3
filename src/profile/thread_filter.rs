//! Finds the threads that a request names.

use crate::formats::art_method::{MethodTrace, TracedThread};

/// The word that selects the main thread.
const MAIN: &str = "main";

/// For each thread of the trace whether `wanted` names it: a part of its name, its id in the trace, or `main`
/// for the main thread.
pub(super) fn matching(trace: &MethodTrace<'_>, wanted: &str) -> Vec<bool> {
    let threads = trace.threads();
    if wanted == MAIN {
        let main = main_thread(threads, trace.header().pid);
        return (0..threads.len()).map(|thread| Some(thread) == main).collect();
    }
    let matches =
        |thread: &TracedThread<'_>| thread.label().contains(wanted) || wanted.parse() == Ok(thread.id);
    threads.iter().map(matches).collect()
}

/// The index of the main thread: the thread whose id is the process's; without one the thread that is called
/// `main`; without one the thread with the lowest id. Runtimes from before May 2023 write the kernel's tids,
/// cut to 16 bits, and the main thread's tid is the pid. Later ones count threads from 1 as they start.
fn main_thread(threads: &[TracedThread<'_>], pid: Option<i32>) -> Option<usize> {
    let pid = pid.and_then(|pid| u32::try_from(pid).ok());
    let is_process =
        |t: &TracedThread<'_>| !t.reused_id && pid.is_some_and(|pid| t.id == pid || t.id == pid & 0xffff);
    let by_id = || (0..threads.len()).min_by_key(|thread| threads[*thread].id);
    threads
        .iter()
        .position(is_process)
        .or_else(|| threads.iter().position(|thread| thread.name == MAIN))
        .or_else(by_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn main_of(threads: &[(u32, &'static str)], pid: Option<i32>) -> Option<&'static str> {
        let traced = |(id, name): &(u32, &'static str)| TracedThread {
            id: *id,
            name: (*name).into(),
            declared: true,
            reused_id: false,
            records: 1,
        };
        let traced: Vec<_> = threads.iter().map(traced).collect();
        main_thread(&traced, pid).map(|thread| threads[thread].1)
    }

    #[test]
    fn the_main_thread_is_found_whatever_its_name() {
        assert_eq!(
            main_of(&[(3_171, "main"), (3_142, "com.example.app")], Some(3_142)),
            Some("com.example.app")
        );
        assert_eq!(main_of(&[(9, "x"), (4_464, "cut to 16 bits")], Some(70_000)), Some("cut to 16 bits"));
        assert_eq!(
            main_of(&[(1, "Signal Catcher"), (2, "main"), (3, "mainloop")], Some(70_000)),
            Some("main")
        );
        assert_eq!(main_of(&[(4, "worker"), (2, "example.app"), (3, "pool")], None), Some("example.app"));
        assert_eq!(main_of(&[], Some(1)), None);
    }
}
