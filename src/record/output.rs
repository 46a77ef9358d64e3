//! Where a recording goes: a capture on disk, or a stream of frames that the other end makes a capture of.

use std::io::Write;
use std::path::PathBuf;

use super::Error;
use super::capture::Settled;
use crate::trace_dat::recorder_stream::{FrameKind, HeadInfo, MAGIC, frame_head};
use crate::trace_dat::{DatHead, RecorderInfo, Slot};

/// Where a recording goes.
pub trait Output {
    /// Takes whole pages of the CPU with this id.
    fn pages(&mut self, cpu: u32, pages: &[u8]) -> Result<(), Error>;
    /// Writes a slot of the head again, the rest of it `padding`. Whether all of `text` fitted.
    fn patch(&mut self, slot: Slot, text: &[u8], padding: u8) -> Result<bool, Error>;
    /// Writes what the recorder knows by now (clocks) into the head.
    fn put_extra(&mut self, extra: &RecorderInfo) -> Result<(), Error>;
    /// Bytes of pages so far.
    fn data_bytes(&self) -> u64;
    /// Ends it. What can be left out of that is, once `hurry` says so.
    fn finish(self: Box<Self>, extra: RecorderInfo, hurry: &dyn Fn() -> bool) -> Result<Finished, Error>;
}

/// What a recording's output came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Bytes of all that was written.
    pub bytes: u64,
    /// Whether it has holes, and its name.
    pub settled: Settled,
    /// Why it is not compressed, although that was asked for.
    pub raw: Option<String>,
}

/// A stream of frames to `to`.
pub struct Frames<W> {
    to: W,
    name: PathBuf,
    extra: Slot,
    pages: u64,
    bytes: u64,
}

impl<W: Write> Frames<W> {
    /// Begins the stream with the head.
    pub fn begin(to: W, header: &DatHead, cpus: usize, page_size: usize) -> Result<Frames<W>, Error> {
        let mut frames = Frames { to, name: "-".into(), extra: header.extra, pages: 0, bytes: 0 };
        let info = HeadInfo {
            page_size: page_size as u32,
            cpus: cpus as u32,
            table_at: header.table_at,
            extra: (header.extra.at, header.extra.len as u64),
        };
        frames.write(MAGIC)?;
        frames.frame(FrameKind::Head, 0, &info.encode(), &header.bytes)?;
        Ok(frames)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.bytes += bytes.len() as u64;
        self.to.write_all(bytes).map_err(|e| Error::output(&self.name, e))
    }

    fn frame(&mut self, kind: FrameKind, cpu: u32, first: &[u8], rest: &[u8]) -> Result<(), Error> {
        let head = frame_head(kind, cpu, first.len() + rest.len());
        self.write(&[&head[..], first].concat())?;
        self.write(rest)
    }
}

impl<W: Write> Output for Frames<W> {
    fn pages(&mut self, cpu: u32, pages: &[u8]) -> Result<(), Error> {
        self.pages += pages.len() as u64;
        self.frame(FrameKind::Pages, cpu, &[], pages)
    }

    fn patch(&mut self, slot: Slot, text: &[u8], padding: u8) -> Result<bool, Error> {
        let (bytes, fits) = slot.fit(text, padding);
        self.frame(FrameKind::Patch, 0, &slot.at.to_le_bytes(), &bytes)?;
        Ok(fits)
    }

    fn put_extra(&mut self, extra: &RecorderInfo) -> Result<(), Error> {
        let text = extra.to_json(self.extra.len);
        self.patch(self.extra, &text, b' ').map(drop)
    }

    fn data_bytes(&self) -> u64 {
        self.pages
    }

    fn finish(mut self: Box<Self>, extra: RecorderInfo, _: &dyn Fn() -> bool) -> Result<Finished, Error> {
        let extra = RecorderInfo { complete: true, ..extra };
        let text = extra.to_json(self.extra.len);
        self.frame(FrameKind::End, 0, &[], &text)?;
        self.to.flush().map_err(|e| Error::output(&self.name, e))?;
        Ok(Finished { bytes: self.bytes, settled: Settled::Compact, raw: None })
    }
}
