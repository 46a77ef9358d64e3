//! Work that several threads share. Where the system starts no thread, or fewer than are wanted, the calling
//! thread does the work.

mod ordered;

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

pub(crate) use ordered::{Failure, InOrder, Ordered, OrderedSink};

/// The number of worker threads: one for each processor that this process may use, and never more than
/// `at_most`, from where on further threads would only wait.
pub(crate) fn worker_count(at_most: usize) -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(at_most)
}

/// Starts up to `count` threads: fewer where the system starts no more. Returns what `start` gives for each.
pub(crate) fn started<T>(count: usize, start: impl Fn() -> io::Result<T>) -> Vec<T> {
    (0..count).map_while(|_| start().ok()).collect()
}

/// Runs `run` on each part, on a thread for each, and returns the results in the order of the parts. The
/// first part, and every part whose thread the system does not start, runs on the calling thread. A panic of
/// `run` goes on in the calling thread.
pub(crate) fn run_parts<P: Sync, R: Send>(parts: &[P], run: impl Fn(&P) -> R + Sync) -> Vec<R> {
    let Some((first, others)) = parts.split_first() else { return Vec::new() };
    let run = &run;
    std::thread::scope(|scope| {
        let start = |part| Builder::new().spawn_scoped(scope, move || run(part)).map_err(|_| part);
        let started: Vec<Result<_, &P>> = others.iter().map(start).collect();
        let mut results = vec![run(first)];
        results.extend(started.into_iter().map(|started| match started {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(part) => run(part),
        }));
        results
    })
}

/// Runs `run` on each part, on at most so many threads at a time, and returns the results in the order of
/// the parts. Where the system starts no thread, the calling thread does the work. A panic of `run` goes on
/// in the calling thread.
pub(crate) fn run_pool<P: Sync, R: Send>(
    parts: &[P],
    at_most: usize,
    run: impl Fn(&P) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let run_next = || {
        let mut results = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = parts.get(at) else { return results };
            results.push((at, run(part)));
        }
    };
    let workers: Vec<()> = vec![(); at_most.min(parts.len())];
    let mut results: Vec<(usize, R)> = run_parts(&workers, |()| run_next()).into_iter().flatten().collect();
    results.sort_unstable_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_of_parts_are_in_the_order_of_the_parts() {
        assert_eq!(run_parts(&[3, 1, 2], |part| part * 10), [30, 10, 20]);
        assert!(run_parts(&[], |part: &u8| *part).is_empty());
    }

    #[test]
    fn a_pool_does_every_part_once_and_has_no_more_threads_than_it_may() {
        let at_work = AtomicUsize::new(0);
        let parts: Vec<usize> = (0..100).collect();
        let results = run_pool(&parts, 3, |part| {
            assert!(at_work.fetch_add(1, Ordering::SeqCst) < 3);
            std::thread::yield_now();
            at_work.fetch_sub(1, Ordering::SeqCst);
            part * 2
        });
        assert_eq!(results, (0..100).map(|part| part * 2).collect::<Vec<_>>());
    }
}
