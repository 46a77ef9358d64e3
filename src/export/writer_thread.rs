//! Writes an exporter's output on a thread of its own, so that the next chunk is encoded while the last one
//! is written. A [`RecordBatch`] holds records of events on their way to that thread, copied out of the
//! memory of a reader.

use std::io::{self, Write};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::Out;
use crate::formats::{Event, EventTypeId, OwnedEvents};
use crate::ftrace::Endian;
use crate::ids::Cpu;
use crate::workers::{Ordered, OrderedSink};

/// Appends bytes to the output; runs on the writer thread.
pub(super) type EncodeJob = Box<dyn FnOnce(&mut Vec<u8>) + Send>;

/// The number of chunks that may wait for the writer thread: enough to even out the two threads' speeds,
/// few enough to bound memory.
const MAX_WAITING_CHUNKS: usize = 8;
/// The size that a chunk should have, bytes.
const CHUNK_BYTES: usize = 1 << 20;

/// One message to the writer thread.
enum Chunk {
    Bytes(Vec<u8>),
    Job(EncodeJob),
}

/// Writes chunks in their order, and hands the vectors of bytes back.
struct ChunkOutput {
    out: Out,
    /// Bytes of jobs that are not written yet.
    made: Vec<u8>,
    back: Sender<Vec<u8>>,
}

impl OrderedSink for ChunkOutput {
    type Item = Chunk;
    type Error = io::Error;

    fn take(&mut self, chunk: Chunk) -> io::Result<()> {
        match chunk {
            Chunk::Job(job) => job(&mut self.made),
            Chunk::Bytes(mut bytes) => {
                write(&mut self.out, &mut self.made, 1)?;
                write(&mut self.out, &mut bytes, 1)?;
                // Nobody wants the vector any more where the channel is full or closed.
                let _ = self.back.try_send(bytes);
            }
        }
        write(&mut self.out, &mut self.made, CHUNK_BYTES)
    }
}

/// Hands chunks to the writer thread, which writes them in the order of the calls.
pub(super) struct WriterThread {
    /// `None` once the output is finished.
    chunks: Option<Ordered<Chunk, ChunkOutput>>,
    empty: Receiver<Vec<u8>>,
}

impl WriterThread {
    pub(super) fn new(out: Out) -> WriterThread {
        WriterThread::with_threads(out, 1)
    }

    fn with_threads(out: Out, threads: usize) -> WriterThread {
        let (back, empty) = bounded::<Vec<u8>>(MAX_WAITING_CHUNKS);
        let output = ChunkOutput { out, made: Vec::new(), back };
        let chunks = Ordered::new(threads, MAX_WAITING_CHUNKS, output, || |chunk| chunk);
        WriterThread { chunks: Some(chunks), empty }
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
        let is_done = self.chunks.as_ref().is_some_and(Ordered::wait);
        if is_done { Ok(()) } else { self.finish() }
    }

    fn send(&mut self, chunk: Chunk) -> io::Result<()> {
        let is_taken = self.chunks.as_mut().is_some_and(|chunks| chunks.push(chunk));
        if is_taken { Ok(()) } else { self.finish() }
    }

    /// Waits until everything is written and flushed. An error of the writer thread is returned here at the
    /// latest.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let Some(chunks) = self.chunks.take() else { return Ok(()) };
        let mut output = chunks.finish()?;
        write(&mut output.out, &mut output.made, 1)?;
        output.out.flush()
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        let _ = self.finish();
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

/// The most records in a batch: many enough that handing a batch over costs next to nothing, and few enough
/// that a batch stays in the CPU's cache.
const BATCH_RECORDS: usize = 2048;
/// The size of a batch's records, in bytes, at which the batch is full whatever their number.
const BATCH_BYTES: usize = 1 << 18;

/// Consecutive records.
#[derive(Debug, Default)]
pub(super) struct RecordBatch(OwnedEvents);

impl RecordBatch {
    /// Adds an event whose payload is the record `data`.
    #[inline]
    pub(super) fn push(&mut self, event: &Event<'_>, data: &[u8], endian: Endian) {
        self.0.push_record(event, data, endian);
    }

    /// Adds what is no record under a type of the caller's own: `fill` appends its bytes.
    pub(super) fn push_other(&mut self, kind: EventTypeId, cpu: Cpu, fill: impl FnOnce(&mut Vec<u8>)) {
        self.0.push_other(kind, cpu, fill);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= BATCH_RECORDS || self.0.byte_len() >= BATCH_BYTES
    }

    /// The events in their order, each with the bytes of its record.
    #[inline]
    pub(super) fn events(&self) -> impl Iterator<Item = (Event<'_>, &[u8])> {
        self.0.records()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
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

    #[test]
    fn chunks_are_written_in_their_order_with_and_without_a_thread() {
        for threads in [0, 1] {
            let (sent, received) = std::sync::mpsc::channel();
            let mut writer = WriterThread::with_threads(Box::new(Sent(sent)), threads);
            for number in 0..100u8 {
                writer.write(&mut vec![number]).unwrap();
                writer.run(Box::new(move |out| out.push(number + 100))).unwrap();
            }
            writer.wait().unwrap();
            writer.finish().unwrap();
            let written: Vec<u8> = received.try_iter().flatten().collect();
            let expected: Vec<u8> = (0..100).flat_map(|number| [number, number + 100]).collect();
            assert_eq!(written, expected, "{threads} threads");
        }
    }

    /// Sends the written bytes on.
    struct Sent(std::sync::mpsc::Sender<Vec<u8>>);

    impl io::Write for Sent {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_vec()).unwrap();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_batch_is_full_by_number_or_by_size() {
        let mut batch = RecordBatch::default();
        (0..BATCH_RECORDS).for_each(|_| batch.push_other(EventTypeId(0), Cpu(0), |_| ()));
        assert!(batch.is_full());
        batch.clear();
        assert!(batch.is_empty());
        batch.push_other(EventTypeId(0), Cpu(0), |bytes| bytes.resize(BATCH_BYTES, 0));
        assert!(batch.is_full());
    }
}
