//! Decompresses chunks on extra threads before a reader needs them, so that decompressing and reading
//! overlap.

use std::thread::{Builder, Scope};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::compression::{Compression, DecompressError};
use crate::workers::{started, worker_count};

/// The largest number of threads. More threads would decompress faster than a reader can read the chunks.
const MAX_THREADS: usize = 4;

/// The threads that decompress chunks. They end when the last clone of the pool is dropped. The default pool
/// has no threads and decompresses each chunk at once.
#[derive(Clone, Default)]
pub(super) struct DecompressPool<'a> {
    jobs: Option<Sender<DecompressJob<'a>>>,
}

struct DecompressJob<'a> {
    compression: Compression,
    data: &'a [u8],
    unpacked: usize,
    buffer: Vec<u8>,
    done: Sender<Decompressed>,
}

/// The pages of a chunk, and what is wrong with the chunk. A damaged chunk has as many pages as could be
/// decompressed.
type Decompressed = (Vec<u8>, Result<(), DecompressError>);

/// A chunk that is being decompressed.
pub(super) struct PendingChunk {
    done: Receiver<Decompressed>,
    /// Size of the decompressed chunk as the file states it, bytes.
    pub(super) unpacked: usize,
}

impl DecompressJob<'_> {
    fn run(mut self) {
        let result = self.compression.decompress(self.data, self.unpacked, &mut self.buffer);
        // The reader may have ended early. Then no one receives the chunk.
        let _ = self.done.send((self.buffer, result));
    }
}

impl<'a> DecompressPool<'a> {
    /// A pool with as many threads as the machine can use, and at most [`MAX_THREADS`].
    pub(super) fn new<'scope>(scope: &'scope Scope<'scope, '_>) -> DecompressPool<'a>
    where
        'a: 'scope,
    {
        let (jobs, queue) = unbounded::<DecompressJob<'a>>();
        let threads = started(worker_count(MAX_THREADS), || {
            let queue = queue.clone();
            Builder::new().spawn_scoped(scope, move || queue.iter().for_each(DecompressJob::run))
        });
        // Without threads the reader decompresses by itself.
        DecompressPool { jobs: (!threads.is_empty()).then_some(jobs) }
    }

    /// Begins to decompress `data`, which becomes `unpacked` bytes, into `buffer`.
    pub(super) fn decompress(
        &self,
        compression: Compression,
        data: &'a [u8],
        unpacked: usize,
        buffer: Vec<u8>,
    ) -> PendingChunk {
        let (done, waiting) = bounded(1);
        let job = DecompressJob { compression, data, unpacked, buffer, done };
        match &self.jobs {
            Some(jobs) => {
                if let Err(refused) = jobs.send(job) {
                    refused.0.run();
                }
            }
            None => job.run(),
        }
        PendingChunk { done: waiting, unpacked }
    }
}

impl PendingChunk {
    /// Waits until the chunk is decompressed.
    pub(super) fn wait(self) -> Decompressed {
        self.done.recv().unwrap_or_else(|_| (Vec::new(), Err(DecompressError::NotDone)))
    }
}
