//! Work that several threads share. Where the system starts no thread, or fewer than are wanted, the calling
//! thread does the work.
//!
//! Some results are wanted in the order in which their work was handed over: [`InOrder`] brings results in
//! order, whichever of several threads has one first, and [`Ordered`] is the threads, the work that waits for
//! them, and the order. No thread only collects. The thread whose result is next hands it to the sink, and
//! all results behind it that became ready in the meantime; the others leave their results to it. A thread of
//! its own would have to be woken for each result.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::{fmt, io};

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

/// Takes results in their order.
pub(crate) trait OrderedSink {
    /// A result.
    type Item;
    /// The reason why a result cannot be taken. No other result is then taken.
    type Error;
    /// Takes the next result.
    fn take(&mut self, item: Self::Item) -> Result<(), Self::Error>;
}

/// The reason why results are missing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure<E> {
    /// The sink's error.
    Sink(E),
    /// A thread panicked before its result was there.
    Panicked,
}

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Sink(error) => error.fmt(f),
            Failure::Panicked => f.write_str("a thread ended unexpectedly before its part was done"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for Failure<E> {}

impl From<Failure<io::Error>> for io::Error {
    fn from(failure: Failure<io::Error>) -> io::Error {
        match failure {
            Failure::Sink(error) => error,
            panicked @ Failure::Panicked => io::Error::other(panicked),
        }
    }
}

/// Brings results in the order of their numbers, which begin at 0.
pub(crate) struct InOrder<C: OrderedSink> {
    state: Mutex<OrderedResults<C>>,
    /// Another result was taken, or no more will be.
    advanced: Condvar,
}

struct OrderedResults<C: OrderedSink> {
    /// The number of the result that is taken next.
    next: usize,
    /// Results that wait for an earlier one, by number.
    waiting: BTreeMap<usize, C::Item>,
    /// `None` while a thread hands results to it, and after an error.
    sink: Option<C>,
    has_failed: bool,
    failure: Option<Failure<C::Error>>,
}

impl<C: OrderedSink> InOrder<C> {
    /// Hands results to `sink`.
    pub(crate) fn new(sink: C) -> InOrder<C> {
        let state = OrderedResults {
            next: 0,
            waiting: BTreeMap::new(),
            sink: Some(sink),
            has_failed: false,
            failure: None,
        };
        InOrder { state: Mutex::new(state), advanced: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, OrderedResults<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, condition: impl FnMut(&mut OrderedResults<C>) -> bool) -> bool {
        let state = self.advanced.wait_while(self.lock(), condition);
        !state.unwrap_or_else(PoisonError::into_inner).has_failed
    }

    /// Waits until fewer than `ahead` results are missing before the one with this number: so many may be on
    /// their way at a time, which bounds the memory. Returns whether there is a point in going on.
    pub(crate) fn wait_for_turn(&self, number: usize, ahead: usize) -> bool {
        self.wait_while(|state| !state.has_failed && number >= state.next + ahead)
    }

    /// Waits until the first `count` results have been taken. Returns `false` after a failure.
    fn wait_until_taken(&self, count: usize) -> bool {
        self.wait_while(|state| !state.has_failed && state.next < count)
    }

    /// Hands the result with this number to the sink, or leaves that to the thread that hands over the
    /// result before it. Returns whether there is a point in going on.
    pub(crate) fn deliver(&self, number: usize, item: C::Item) -> bool {
        let mut state = self.lock();
        state.waiting.insert(number, item);
        let Some(mut sink) = state.sink.take() else { return !state.has_failed };
        while !state.has_failed {
            let next = state.next;
            let Some(item) = state.waiting.remove(&next) else {
                state.sink = Some(sink);
                return true;
            };
            drop(state);
            let taken = sink.take(item);
            state = self.lock();
            state.next += 1;
            if let Err(error) = taken {
                state.fail(Failure::Sink(error));
            }
            self.advanced.notify_all();
        }
        false
    }

    /// Gives the results up if the calling thread panics before the guard is dropped: its result would be
    /// waited for without end.
    pub(crate) fn guard(&self) -> PanicGuard<'_, C> {
        PanicGuard(self)
    }

    /// The sink, once the first `count` results have been taken and nobody delivers any more.
    fn finish(&self, count: usize) -> Result<C, Failure<C::Error>> {
        let mut state = self.lock();
        match (state.failure.take(), state.sink.take()) {
            (Some(failure), _) => Err(failure),
            (None, Some(sink)) if state.next == count => Ok(sink),
            _ => Err(Failure::Panicked),
        }
    }

    /// The sink, once `count` results have been taken.
    ///
    /// # Errors
    /// The first failure.
    pub(crate) fn into_sink(self, count: usize) -> Result<C, Failure<C::Error>> {
        self.finish(count)
    }
}

impl<C: OrderedSink> OrderedResults<C> {
    fn fail(&mut self, failure: Failure<C::Error>) {
        self.has_failed = true;
        self.failure.get_or_insert(failure);
        self.waiting.clear();
    }
}

/// See [`InOrder::guard`].
pub(crate) struct PanicGuard<'a, C: OrderedSink>(&'a InOrder<C>);

impl<C: OrderedSink> Drop for PanicGuard<'_, C> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().fail(Failure::Panicked);
            self.0.advanced.notify_all();
        }
    }
}

/// Threads that turn jobs into results, which a sink takes in the order of the jobs. Where the system
/// starts no thread, each job is done on the thread that hands it over.
pub(crate) struct Ordered<J, C: OrderedSink> {
    shared: Arc<Shared<J, C>>,
    threads: Vec<JoinHandle<()>>,
    /// Does the jobs where there are no threads.
    on_caller: Option<Work<J, C::Item>>,
    /// The number of jobs that were handed over.
    count: usize,
    /// The most jobs that are on their way at a time.
    ahead: usize,
}

type Work<J, R> = Box<dyn FnMut(J) -> R + Send>;

struct Shared<J, C: OrderedSink> {
    queue: Mutex<Queue<J>>,
    /// A job has arrived, or none will any more.
    arrived: Condvar,
    results: InOrder<C>,
}

struct Queue<J> {
    /// Jobs that no thread has begun, each with its number.
    jobs: VecDeque<(usize, J)>,
    is_closed: bool,
}

impl<J, C: OrderedSink> Shared<J, C> {
    fn queue(&self) -> MutexGuard<'_, Queue<J>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does jobs until there are no more.
    fn work(&self, mut work: Work<J, C::Item>) {
        let _guard = self.results.guard();
        loop {
            let is_idle = |queue: &mut Queue<J>| queue.jobs.is_empty() && !queue.is_closed;
            let queue = self.arrived.wait_while(self.queue(), is_idle);
            let job = queue.unwrap_or_else(PoisonError::into_inner).jobs.pop_front();
            let Some((number, job)) = job else { return };
            if !self.results.deliver(number, work(job)) {
                return;
            }
        }
    }
}

impl<J, C> Ordered<J, C>
where
    J: Send + 'static,
    C: OrderedSink<Item: Send, Error: Send> + Send + 'static,
{
    /// Starts up to `threads` threads. Each has a worker of its own, which `worker` makes; `ahead` is the
    /// most jobs that are on their way at a time.
    pub(crate) fn new<W: FnMut(J) -> C::Item + Send + 'static>(
        threads: usize,
        ahead: usize,
        sink: C,
        worker: impl Fn() -> W,
    ) -> Ordered<J, C> {
        let spawn = |run: Box<dyn FnOnce() + Send>| Builder::new().spawn(run);
        Ordered::with_spawn(threads, ahead, sink, worker, spawn)
    }

    fn with_spawn<W: FnMut(J) -> C::Item + Send + 'static>(
        threads: usize,
        ahead: usize,
        sink: C,
        worker: impl Fn() -> W,
        spawn: impl Fn(Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>>,
    ) -> Ordered<J, C> {
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue { jobs: VecDeque::new(), is_closed: false }),
            arrived: Condvar::new(),
            results: InOrder::new(sink),
        });
        let threads = started(threads, || {
            let shared: Arc<Shared<J, C>> = shared.clone();
            let work: Work<J, C::Item> = Box::new(worker());
            spawn(Box::new(move || shared.work(work)))
        });
        let on_caller: Option<Work<J, C::Item>> =
            if threads.is_empty() { Some(Box::new(worker())) } else { None };
        Ordered { shared, threads, on_caller, count: 0, ahead: ahead.max(1) }
    }

    /// Hands a job over; waits while too many are on their way. Returns `false` after a failure, which
    /// [`Ordered::finish`] tells.
    pub(crate) fn push(&mut self, job: J) -> bool {
        let number = self.count;
        self.count += 1;
        if let Some(work) = &mut self.on_caller {
            return self.shared.results.deliver(number, work(job));
        }
        if !self.shared.results.wait_for_turn(number, self.ahead) {
            return false;
        }
        self.shared.queue().jobs.push_back((number, job));
        self.shared.arrived.notify_one();
        true
    }

    /// Waits until everything that was handed over is taken. Returns `false` after a failure.
    pub(crate) fn wait(&self) -> bool {
        self.shared.results.wait_until_taken(self.count)
    }

    /// Waits until everything is taken, and returns the sink.
    ///
    /// # Errors
    /// The first failure.
    pub(crate) fn finish(mut self) -> Result<C, Failure<C::Error>> {
        self.end_threads();
        self.shared.results.finish(self.count)
    }
}

impl<J, C: OrderedSink> Ordered<J, C> {
    fn end_threads(&mut self) {
        self.shared.queue().is_closed = true;
        self.shared.arrived.notify_all();
        // A panic has been noted by the thread's guard.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl<J, C: OrderedSink> Drop for Ordered<J, C> {
    fn drop(&mut self) {
        self.end_threads();
    }
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

    /// Keeps what it takes; refuses 13.
    #[derive(Debug, Default, PartialEq, Eq)]
    struct Kept(Vec<usize>);

    impl OrderedSink for Kept {
        type Item = usize;
        type Error = &'static str;

        fn take(&mut self, item: usize) -> Result<(), &'static str> {
            if item == 13 {
                return Err("no space");
            }
            self.0.push(item);
            Ok(())
        }
    }

    #[test]
    fn results_are_taken_in_the_order_of_their_numbers() {
        let results = InOrder::new(Kept::default());
        for number in [2, 0, 3, 1] {
            assert!(results.deliver(number, 10 * number));
        }
        assert!(results.wait_for_turn(4, 1));
        assert_eq!(results.into_sink(4), Ok(Kept(vec![0, 10, 20, 30])));
    }

    #[test]
    fn after_an_error_nothing_is_taken_and_no_result_is_waited_for() {
        let results = InOrder::new(Kept::default());
        assert!(results.deliver(0, 0));
        assert!(!results.deliver(1, 13));
        assert!(!results.deliver(2, 2));
        assert!(!results.wait_for_turn(9, 1));
        assert_eq!(results.into_sink(3), Err(Failure::Sink("no space")));
    }

    #[test]
    fn a_result_that_is_missing_at_the_end_is_a_failure() {
        let results = InOrder::new(Kept::default());
        assert!(results.deliver(1, 1));
        assert_eq!(results.into_sink(2), Err(Failure::Panicked));
    }

    /// The jobs 0 to `count`, each of which gives its number times 10, on up to three threads.
    fn tens(
        count: usize,
        spawn: impl Fn(Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>>,
    ) -> Result<Kept, Failure<&'static str>> {
        let mut jobs = Ordered::with_spawn(3, 2, Kept::default(), || |job: usize| 10 * job, spawn);
        assert!((0..count).all(|job| jobs.push(job)));
        assert!(jobs.wait());
        jobs.finish()
    }

    #[test]
    fn the_results_of_jobs_come_in_the_order_of_the_jobs() {
        let expected = Kept((0..100).map(|job| 10 * job).collect());
        assert_eq!(tens(100, |run| Builder::new().spawn(run)), Ok(expected));
    }

    #[test]
    fn where_the_system_starts_no_thread_the_caller_does_the_jobs() {
        let expected = Kept((0..100).map(|job| 10 * job).collect());
        assert_eq!(tens(100, |_| Err(io::ErrorKind::WouldBlock.into())), Ok(expected));
    }

    #[test]
    fn one_thread_is_enough() {
        let is_first = std::cell::Cell::new(true);
        let expected = Kept((0..100).map(|job| 10 * job).collect());
        let spawn = |run| {
            if is_first.replace(false) {
                Builder::new().spawn(run)
            } else {
                Err(io::ErrorKind::WouldBlock.into())
            }
        };
        assert_eq!(tens(100, spawn), Ok(expected));
    }

    #[test]
    fn an_error_of_the_sink_ends_the_jobs_with_and_without_threads() {
        for threads in [0, 3] {
            let mut jobs = Ordered::new(threads, 2, Kept::default(), || |job: usize| job);
            let pushed = (0..1000).take_while(|job| jobs.push(*job)).count();
            assert!((13..=16).contains(&pushed), "{pushed} with {threads} threads");
            assert!(!jobs.wait());
            assert_eq!(jobs.finish(), Err(Failure::Sink("no space")));
        }
    }

    #[test]
    fn a_worker_that_panics_ends_the_jobs() {
        let work = || |job: usize| if job == 5 { panic!("while job 5 is done") } else { job };
        let mut jobs = Ordered::new(2, 2, Kept::default(), work);
        let pushed = (0..1000).take_while(|job| jobs.push(*job)).count();
        assert!(pushed < 1000);
        let failure = jobs.finish().unwrap_err();
        assert_eq!(failure, Failure::Panicked);
        assert!(failure.to_string().contains("ended unexpectedly"));
    }

    #[test]
    fn threads_end_with_the_jobs_that_nobody_finishes() {
        let mut jobs = Ordered::new(2, 2, Kept::default(), || |job: usize| job);
        assert!(jobs.push(1));
        let shared = jobs.shared.clone();
        drop(jobs);
        assert_eq!(Arc::strong_count(&shared), 1);
    }
}
