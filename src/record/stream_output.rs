//! A recording as a stream of frames on stdout. The receiving side makes a capture file of the frames; their
//! format is in [`crate::trace_dat::recorder_stream`].

use std::io::Write;
use std::path::PathBuf;

use super::RecordError;
use super::output::{FinalState, FinishedOutput, RecordingOutput};
use crate::trace_dat::recorder_stream::{FrameKind, HeadInfo, MAGIC, frame_head};
use crate::trace_dat::{DatHead, RecorderInfo, Slot};

/// Writes a recording to `W` as a stream of frames.
pub(crate) struct StreamOutput<W> {
    to: W,
    name: PathBuf,
    extra: Slot,
    pages_bytes: u64,
    bytes: u64,
}

impl<W: Write> StreamOutput<W> {
    /// Begins the stream with the head of the recording.
    pub(crate) fn begin(
        to: W,
        header: &DatHead,
        cpus: usize,
        page_size: usize,
    ) -> Result<StreamOutput<W>, RecordError> {
        let mut stream = StreamOutput { to, name: "-".into(), extra: header.extra, pages_bytes: 0, bytes: 0 };
        let info = HeadInfo {
            page_size: page_size as u32,
            cpus: cpus as u32,
            table_at: header.table_at,
            extra: (header.extra.at, header.extra.len as u64),
        };
        stream.write(MAGIC)?;
        stream.frame(FrameKind::Head, 0, &info.encode(), &header.bytes)?;
        Ok(stream)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        self.bytes += bytes.len() as u64;
        self.to.write_all(bytes).map_err(|e| RecordError::output(&self.name, e))
    }

    fn frame(&mut self, kind: FrameKind, cpu: u32, first: &[u8], rest: &[u8]) -> Result<(), RecordError> {
        let head = frame_head(kind, cpu, first.len() + rest.len());
        self.write(&[&head[..], first].concat())?;
        self.write(rest)
    }
}

impl<W: Write> RecordingOutput for StreamOutput<W> {
    fn pages(&mut self, cpu: u32, pages: &[u8]) -> Result<(), RecordError> {
        self.pages_bytes += pages.len() as u64;
        self.frame(FrameKind::Pages, cpu, &[], pages)
    }

    fn patch(&mut self, slot: Slot, text: &[u8], padding: u8) -> Result<bool, RecordError> {
        let (bytes, fits) = slot.fit(text, padding);
        self.frame(FrameKind::Patch, 0, &slot.at.to_le_bytes(), &bytes)?;
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
        self.frame(FrameKind::End, 0, &[], &text)?;
        self.to.flush().map_err(|e| RecordError::output(&self.name, e))?;
        Ok(FinishedOutput { bytes: self.bytes, state: FinalState::Compact, not_compressed: None })
    }
}
