//! A recording as a stream of frames on stdout. The receiving side makes a capture file of the frames; their
//! format is in [`crate::trace_dat::recorder_stream`].
//!
//! A reader that takes nothing does not hold the recorder up: when the timeout of the writer is over, the
//! rest of the frame is kept, and the next call continues with it. The events that come meanwhile are lost in
//! the kernel, which counts them.

use std::io::{self, Write};
use std::path::PathBuf;
use std::rc::Rc;

use super::RecordError;
use super::capture::{FinalState, FinishedOutput, RecordingOutput};
use super::interruptible_writer::{InterruptibleWriter, WriteTimeout};
use crate::clock::Timestamp;
use crate::ids::Cpu;
use crate::trace_dat::recorder_stream::{FrameKind, HeadInfo, MAGIC, frame_head};
use crate::trace_dat::{DatHead, RecorderInfo, Slot};

/// A live recording gathers what a round has to send, but not so many bytes of pages.
const GATHERED_BYTES: usize = 32 << 10;

/// Writes a recording to stdout as a stream of frames.
pub(crate) struct StreamOutput {
    to: InterruptibleWriter,
    name: PathBuf,
    extra: Slot,
    pages_bytes: u64,
    bytes: u64,
    /// Whether the frames of a round are sent together: a recording that somebody watches has many small
    /// ones.
    is_gathering: bool,
    /// Frames that are to be sent together, or the rest of a frame that the reader has not taken yet.
    rest: Vec<u8>,
    /// The CPU whose pages the rest ends with.
    rest_of: Option<Cpu>,
    /// Whether the stream ends here, without its last frames.
    given_up: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("the reader of the stream has gone away")]
struct ReaderGone;

impl StreamOutput {
    /// Begins the stream with the head of the recording.
    pub(crate) fn begin(
        header: &DatHead,
        cpus: usize,
        page_size: usize,
        timeout: &Rc<WriteTimeout>,
    ) -> Result<StreamOutput, RecordError> {
        let name = PathBuf::from("-");
        let to = InterruptibleWriter::new(&io::stdout(), timeout.clone());
        let mut stream = StreamOutput {
            to: to.map_err(|e| RecordError::output(&name, e))?,
            name,
            extra: header.extra,
            pages_bytes: 0,
            bytes: 0,
            is_gathering: false,
            rest: Vec::new(),
            rest_of: None,
            given_up: false,
        };
        let info = HeadInfo {
            page_size: page_size as u32,
            cpus: cpus as u32,
            table_at: header.table_at,
            extra: (header.extra.at, header.extra.len as u64),
        };
        let info = info.encode();
        let head = frame_head(FrameKind::Head, Cpu(0), info.len() + header.bytes.len());
        stream.send(None, &[&MAGIC[..], &head, &info, &header.bytes])?;
        Ok(stream)
    }

    /// Sends the parts of a frame, after the rest of the frame before. If the reader takes only a beginning,
    /// the rest is kept, and the error is [`RecordError::Stalled`].
    fn send(&mut self, cpu: Option<Cpu>, parts: &[&[u8]]) -> Result<(), RecordError> {
        if self.given_up {
            return Ok(());
        }
        self.resume()?;
        let mut stalled = Ok(());
        for part in parts {
            let mut left = *part;
            while stalled.is_ok() && !left.is_empty() {
                match self.write(left) {
                    Ok(written) => left = &left[written..],
                    Err(error @ RecordError::Stalled) => {
                        self.rest_of = cpu;
                        stalled = Err(error);
                    }
                    Err(error) => {
                        self.rest_of = cpu;
                        return Err(error);
                    }
                }
            }
            self.rest.extend_from_slice(left);
        }
        stalled
    }

    fn write(&mut self, bytes: &[u8]) -> Result<usize, RecordError> {
        match self.to.write(bytes) {
            Ok(0) => Err(RecordError::output(&self.name, io::ErrorKind::WriteZero.into())),
            Ok(written) => {
                self.bytes += written as u64;
                Ok(written)
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(RecordError::Stalled),
            Err(error) => {
                // The recording still has its counts.
                self.given_up = true;
                // A command that only prints is done when its reader goes away; a recording has failed.
                let error = match error.kind() {
                    io::ErrorKind::BrokenPipe => io::Error::other(ReaderGone),
                    _ => error,
                };
                Err(RecordError::output(&self.name, error))
            }
        }
    }

    fn frame(&mut self, kind: FrameKind, cpu: Cpu, first: &[u8], rest: &[u8]) -> Result<(), RecordError> {
        let head = frame_head(kind, cpu, first.len() + rest.len());
        self.send((kind == FrameKind::Pages).then_some(cpu), &[&head, first, rest])
    }
}

impl RecordingOutput for StreamOutput {
    fn pages(&mut self, cpu: Cpu, pages: &[u8]) -> Result<(), RecordError> {
        self.pages_bytes += pages.len() as u64;
        if !self.is_gathering || self.given_up {
            return self.frame(FrameKind::Pages, cpu, &[], pages);
        }
        self.rest.extend(frame_head(FrameKind::Pages, cpu, pages.len()));
        // The head goes with what was gathered before it, and so many pages are not copied.
        let sent = if pages.len() < GATHERED_BYTES { None } else { Some(self.resume()) };
        if let Some(Ok(())) = sent {
            return self.send(Some(cpu), &[pages]);
        }
        self.rest.extend_from_slice(pages);
        self.rest_of = Some(cpu);
        sent.unwrap_or(Ok(()))
    }

    fn begin_live(&mut self) {
        self.is_gathering = true;
    }

    fn round(&mut self, complete: Timestamp) -> Result<(), RecordError> {
        let time = complete.0.to_le_bytes();
        self.rest.extend(frame_head(FrameKind::Round, Cpu(0), time.len()));
        self.rest.extend(time);
        self.resume()
    }

    fn resume(&mut self) -> Result<(), RecordError> {
        if self.given_up {
            return Err(RecordError::Stalled);
        }
        let mut sent = 0;
        while sent < self.rest.len() {
            let left = std::mem::take(&mut self.rest);
            let written = self.write(&left[sent..]);
            self.rest = left;
            match written {
                Ok(written) => sent += written,
                Err(error) => {
                    self.rest.drain(..sent);
                    return Err(error);
                }
            }
        }
        self.rest.clear();
        self.rest_of = None;
        Ok(())
    }

    fn give_up(&mut self) -> Option<Cpu> {
        self.given_up = true;
        self.rest_of
    }

    fn patch(&mut self, slot: Slot, text: &[u8], padding: u8) -> Result<bool, RecordError> {
        let (bytes, fits) = slot.fit(text, padding);
        self.frame(FrameKind::Patch, Cpu(0), &slot.at.to_le_bytes(), &bytes)?;
        Ok(fits)
    }

    fn put_extra(&mut self, extra: &RecorderInfo) -> Result<(), RecordError> {
        let text = extra.to_json(self.extra.len);
        self.patch(self.extra, &text, b' ').map(drop)
    }

    fn data_bytes(&self) -> u64 {
        self.pages_bytes
    }

    fn finish(
        mut self: Box<Self>,
        extra: RecorderInfo,
        _: &dyn Fn() -> bool,
    ) -> Result<FinishedOutput, RecordError> {
        let extra = RecorderInfo { complete: true, ..extra };
        let text = extra.to_json(self.extra.len);
        match self.frame(FrameKind::End, Cpu(0), &[], &text) {
            Err(RecordError::Stalled) => self.given_up = true,
            sent => sent?,
        }
        let state = if self.given_up { FinalState::Cut } else { FinalState::Compact };
        Ok(FinishedOutput { bytes: self.bytes, state, not_compressed: None })
    }
}
