//! Work that several threads share. Where the system starts no thread, or fewer than are wanted, the calling
//! thread does the work.

mod ordered;

use std::io;
use std::thread::Builder;

pub(crate) use ordered::{Collector, Failure, InOrder, Ordered};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_of_parts_are_in_the_order_of_the_parts() {
        assert_eq!(run_parts(&[3, 1, 2], |part| part * 10), [30, 10, 20]);
        assert!(run_parts(&[], |part: &u8| *part).is_empty());
    }
}
