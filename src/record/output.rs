//! Where a recording goes: a capture on disk, or a stream of frames that the other end makes a capture of.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::Error;
use super::capture::{Capture, Settled};
use crate::formats::stream::{FRAME_HEAD, HeadInfo, Kind, MAGIC, frame_head, parse_frame_head};
use crate::formats::trace_dat::{Extra, Header, Slot};

/// Where a recording goes.
pub trait Output {
    /// Takes whole pages of the CPU with this id.
    fn pages(&mut self, cpu: u32, pages: &[u8]) -> Result<(), Error>;
    /// Writes a slot of the head again, the rest of it `padding`. Whether all of `text` fitted.
    fn patch(&mut self, slot: Slot, text: &[u8], padding: u8) -> Result<bool, Error>;
    /// Writes what the recorder knows by now (clocks) into the head.
    fn put_extra(&mut self, extra: &Extra) -> Result<(), Error>;
    /// Bytes of pages so far.
    fn data_bytes(&self) -> u64;
    /// Ends it. Returns the bytes of all that was written.
    fn finish(self: Box<Self>, extra: Extra) -> Result<(u64, Settled), Error>;
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
    pub fn begin(to: W, header: &Header, cpus: usize, page_size: usize) -> Result<Frames<W>, Error> {
        let mut frames = Frames { to, name: "-".into(), extra: header.extra, pages: 0, bytes: 0 };
        let info = HeadInfo {
            page_size: page_size as u32,
            cpus: cpus as u32,
            table_at: header.table_at,
            extra: (header.extra.at, header.extra.len as u64),
        };
        frames.write(MAGIC)?;
        frames.frame(Kind::Head, 0, &info.encode(), &header.bytes)?;
        Ok(frames)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.bytes += bytes.len() as u64;
        self.to.write_all(bytes).map_err(|e| Error::output(&self.name, e))
    }

    fn frame(&mut self, kind: Kind, cpu: u32, first: &[u8], rest: &[u8]) -> Result<(), Error> {
        let head = frame_head(kind, cpu, first.len() + rest.len());
        self.write(&[&head[..], first].concat())?;
        self.write(rest)
    }
}

impl<W: Write> Output for Frames<W> {
    fn pages(&mut self, cpu: u32, pages: &[u8]) -> Result<(), Error> {
        self.pages += pages.len() as u64;
        self.frame(Kind::Pages, cpu, &[], pages)
    }

    fn patch(&mut self, slot: Slot, text: &[u8], padding: u8) -> Result<bool, Error> {
        let (bytes, fits) = slot.fit(text, padding);
        self.frame(Kind::Patch, 0, &slot.at.to_le_bytes(), &bytes)?;
        Ok(fits)
    }

    fn put_extra(&mut self, extra: &Extra) -> Result<(), Error> {
        let text = extra.to_json(self.extra.len);
        self.patch(self.extra, &text, b' ').map(drop)
    }

    fn data_bytes(&self) -> u64 {
        self.pages
    }

    fn finish(mut self: Box<Self>, extra: Extra) -> Result<(u64, Settled), Error> {
        let text = extra.to_json(self.extra.len);
        self.frame(Kind::End, 0, &[], &text)?;
        self.to.flush().map_err(|e| Error::output(&self.name, e))?;
        Ok((self.bytes, Settled::Compact))
    }
}

/// What a stream came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Bytes of the capture made of it.
    pub bytes: u64,
    /// Whether the stream came to its end, and where it stopped otherwise.
    pub cut: Option<String>,
}

/// Makes the capture at `path` of a stream, its [`MAGIC`] included. A stream that is cut leaves a capture of what came.
pub fn receive(from: &mut dyn Read, path: &Path) -> Result<Received, Error> {
    let mut offset = 0u64;
    let mut payload = Vec::new();
    let bad = |offset: u64, what: &str| Error::Format {
        path: "the stream".into(),
        what: format!("{what} at byte {offset}"),
    };
    let mut magic = [0; MAGIC.len()];
    if from.read_exact(&mut magic).is_err() || &magic != MAGIC {
        return Err(bad(0, "not a recording made with `record -o -`"));
    }
    offset += MAGIC.len() as u64;
    let (kind, ..) = next(from, &mut payload).map_err(|what| bad(offset, &what))?;
    let info = HeadInfo::parse(&payload).filter(|_| kind == Kind::Head);
    let Some((info, head)) = info else { return Err(bad(offset, "no sound head")) };
    offset += (FRAME_HEAD + payload.len()) as u64;
    let extra = Slot { at: info.extra.0, len: info.extra.1 as usize };
    let head_len = head.len() as u64;
    let header = Header {
        bytes: head.to_vec(),
        table_at: info.table_at,
        extra,
        comms: Slot::default(),
        options: Vec::new(),
    };
    let mut capture =
        Box::new(Capture::create(path, header, info.cpus as usize, info.page_size as usize, None)?);
    loop {
        let (kind, cpu, _) = match next(from, &mut payload) {
            Ok(frame) => frame,
            Err(what) => {
                let (bytes, _) = capture.close(None)?;
                return Ok(Received { bytes, cut: Some(format!("{what} at byte {offset}")) });
            }
        };
        match kind {
            Kind::Pages if cpu < info.cpus && payload.len() % info.page_size as usize == 0 => {
                capture.pages(cpu, &payload)?;
            }
            Kind::Patch => {
                let (at, bytes) = payload.split_at_checked(8).ok_or_else(|| bad(offset, "a short patch"))?;
                let at = at.try_into().map_or(u64::MAX, u64::from_le_bytes);
                if at.checked_add(bytes.len() as u64).is_none_or(|end| end > head_len) {
                    return Err(bad(offset, "a patch outside of the head"));
                }
                capture.patch(Slot { at, len: bytes.len() }, bytes, 0)?;
            }
            Kind::End => {
                let extra = serde_json::from_slice(&payload).map_err(|e| bad(offset, &e.to_string()))?;
                let (bytes, _) = capture.finish(extra)?;
                return Ok(Received { bytes, cut: None });
            }
            _ => return Err(bad(offset, "a frame that cannot be")),
        }
        offset += (FRAME_HEAD + payload.len()) as u64;
    }
}

/// Reads one frame into `payload`; an end in its middle is an error like any other.
fn next(from: &mut dyn Read, payload: &mut Vec<u8>) -> Result<(Kind, u32, usize), String> {
    let mut head = [0; FRAME_HEAD];
    from.read_exact(&mut head).map_err(|_| "it ends without its last frame".to_owned())?;
    let (kind, cpu, len) = parse_frame_head(&head).ok_or("no frame")?;
    payload.clear();
    // As much as really comes, not as much as is promised.
    match from.take(len as u64).read_to_end(payload) {
        Ok(got) if got == len => Ok((kind, cpu, len)),
        Ok(_) => Err("it ends in a frame".into()),
        Err(e) => Err(io::Error::to_string(&e)),
    }
}
