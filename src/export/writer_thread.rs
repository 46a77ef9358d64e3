//! Writes an exporter's output on a thread of its own, so that the next chunk is encoded while the last
//! one is written.

use std::io::{self, Write};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

/// Appends bytes to the output; runs on the writer thread.
pub(super) type EncodeJob = Box<dyn FnOnce(&mut Vec<u8>) + Send>;

use super::Out;

/// How many chunks may wait for the writer thread: enough to even out the two threads' speeds, few enough to
/// bound memory.
const MAX_WAITING_CHUNKS: usize = 8;
/// The size that a chunk should have, bytes.
const CHUNK_BYTES: usize = 1 << 20;

/// How often a waiting caller makes sure that the writer thread still runs.
const LIVENESS_INTERVAL: Duration = Duration::from_millis(10);

/// One message to the writer thread.
enum Chunk {
    Bytes(Vec<u8>),
    Job(EncodeJob),
}

/// Hands chunks to the writer thread, which writes them in the order of the calls.
pub(super) struct WriterThread {
    full: Option<Sender<Chunk>>,
    empty: Receiver<Vec<u8>>,
    thread: Option<JoinHandle<io::Result<()>>>,
    /// Why the thread could not be started: no memory, or too many threads.
    not_started: Option<io::Error>,
}

impl WriterThread {
    pub(super) fn new(mut out: Out) -> WriterThread {
        let (full, to_write) = bounded::<Chunk>(MAX_WAITING_CHUNKS);
        let (back, empty) = bounded::<Vec<u8>>(MAX_WAITING_CHUNKS);
        let thread = std::thread::Builder::new().spawn(move || {
            let mut made = Vec::new();
            for chunk in to_write {
                match chunk {
                    Chunk::Job(job) => job(&mut made),
                    Chunk::Bytes(mut bytes) => {
                        write(&mut out, &mut made, 1)?;
                        write(&mut out, &mut bytes, 1)?;
                        let _ = back.try_send(bytes);
                    }
                }
                write(&mut out, &mut made, CHUNK_BYTES)?;
            }
            write(&mut out, &mut made, 1)?;
            out.flush()
        });
        let (thread, not_started) = match thread {
            Ok(thread) => (Some(thread), None),
            Err(error) => (None, Some(error)),
        };
        WriterThread { full: Some(full), empty, thread, not_started }
    }

    /// Hands `bytes` over if they are at least [`CHUNK_BYTES`]; `bytes` is then empty afterwards.
    pub(super) fn write_if_full(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        if bytes.len() < CHUNK_BYTES { Ok(()) } else { self.write(bytes) }
    }

    /// Hands `bytes` over, and leaves an empty vector.
    pub(super) fn write(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        let next =
            self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 4));
        let full = std::mem::replace(bytes, next);
        self.send(Chunk::Bytes(full))
    }

    /// Runs `job` on the writer thread. The job's bytes follow all bytes that were handed over before.
    pub(super) fn run(&mut self, job: EncodeJob) -> io::Result<()> {
        self.send(Chunk::Job(job))
    }

    /// Waits until the writer thread has done everything so far.
    pub(super) fn wait(&mut self) -> io::Result<()> {
        let (done, waiting) = bounded(1);
        self.run(Box::new(move |_| {
            let _ = done.send(());
        }))?;
        // A thread that has ended because of an error leaves what was handed over as it is. The next call
        // returns the error.
        let has_ended = || self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        while waiting.recv_timeout(LIVENESS_INTERVAL) == Err(RecvTimeoutError::Timeout) && !has_ended() {}
        Ok(())
    }

    fn send(&mut self, chunk: Chunk) -> io::Result<()> {
        match &self.full {
            Some(channel) if channel.send(chunk).is_ok() => Ok(()),
            _ => self.finish(),
        }
    }

    /// Waits until everything is written and flushed. An error of the writer thread is returned here at the
    /// latest.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.full = None;
        if let Some(error) = self.not_started.take() {
            return Err(error);
        }
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(io::Error::other("the writer thread panicked")),
            None => Ok(()),
        }
    }
}

/// Writes and clears `bytes` if they are at least `least`.
fn write(out: &mut Out, bytes: &mut Vec<u8>, least: usize) -> io::Result<()> {
    if bytes.len() >= least {
        out.write_all(bytes)?;
        bytes.clear();
    }
    Ok(())
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An output without space.
    struct Full;

    impl io::Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nobody_waits_for_a_writer_thread_that_has_ended() {
        for jobs in 0..2 * MAX_WAITING_CHUNKS {
            let mut writer = WriterThread::new(Box::new(Full));
            let mut result = writer.write(&mut vec![0; CHUNK_BYTES]);
            for _ in 0..jobs {
                result = result.and_then(|()| writer.run(Box::new(|out| out.push(0))));
            }
            let result = result.and_then(|()| writer.wait()).and_then(|()| writer.finish());
            assert_eq!(result.unwrap_err().kind(), io::ErrorKind::StorageFull);
        }
    }
}
