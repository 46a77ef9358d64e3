//! Unpacks chunks on threads of their own, before they are wanted, so that unpacking and reading overlap.

use std::thread::Scope;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::codec::Codec;

/// More threads than this unpack faster than anybody reads.
const MAX_THREADS: usize = 4;

/// The threads, which end when the last clone of this is gone. Without threads each chunk is unpacked when asked for.
#[derive(Clone, Default)]
pub(super) struct Ahead<'a> {
    jobs: Option<Sender<Job<'a>>>,
}

struct Job<'a> {
    codec: Codec,
    data: &'a [u8],
    unpacked: usize,
    buffer: Vec<u8>,
    done: Sender<Unpacked>,
}

/// The pages of a chunk, as many of them as there are where it is damaged; and what is wrong with it.
type Unpacked = (Vec<u8>, Result<(), String>);

/// A chunk that is being unpacked.
pub(super) struct Unpacking {
    done: Receiver<Unpacked>,
    /// Bytes that it says it comes to.
    pub(super) unpacked: usize,
}

impl Job<'_> {
    fn run(mut self) {
        let result = self.codec.unpack(self.data, self.unpacked, &mut self.buffer);
        // Nobody waits for it where the reading ended early.
        let _ = self.done.send((self.buffer, result));
    }
}

impl<'a> Ahead<'a> {
    /// As many threads as the machine can use.
    pub(super) fn new<'scope>(scope: &'scope Scope<'scope, '_>) -> Ahead<'a>
    where
        'a: 'scope,
    {
        let (jobs, to_unpack) = unbounded::<Job<'a>>();
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(MAX_THREADS);
        for _ in 0..threads {
            let to_unpack = to_unpack.clone();
            scope.spawn(move || to_unpack.iter().for_each(Job::run));
        }
        Ahead { jobs: Some(jobs) }
    }

    /// Begins to unpack `data` into `buffer`.
    pub(super) fn unpack(&self, codec: Codec, data: &'a [u8], unpacked: usize, buffer: Vec<u8>) -> Unpacking {
        let (done, waiting) = bounded(1);
        let job = Job { codec, data, unpacked, buffer, done };
        match &self.jobs {
            Some(jobs) => {
                if let Err(refused) = jobs.send(job) {
                    refused.0.run();
                }
            }
            None => job.run(),
        }
        Unpacking { done: waiting, unpacked }
    }
}

impl Unpacking {
    /// Waits for the pages.
    pub(super) fn wait(self) -> Unpacked {
        self.done.recv().unwrap_or_else(|_| (Vec::new(), Err("was not unpacked".into())))
    }
}
