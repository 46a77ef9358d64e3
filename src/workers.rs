//! How many threads share a piece of work.

/// The number of worker threads: one for each processor that this process may use, and never more than
/// `at_most`, from where on further threads would only wait.
pub(crate) fn worker_count(at_most: usize) -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(at_most)
}
