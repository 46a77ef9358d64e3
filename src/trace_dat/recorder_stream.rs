//! A recording as a stream of frames, for a pipe (`record -o -` over `adb exec-out`): what the recorder would do to a
//! trace.dat, in order, to be done by the other end.
//!
//! [`MAGIC`], then frames: u8 kind, u32 CPU (0 where there is none), u32 length, and that many bytes; little-endian.

use std::io;

use super::CpuData;

/// The first bytes of a stream.
pub const MAGIC: &[u8; 8] = b"TBSTRM1\n";

/// Bytes before a frame's payload.
pub const FRAME_HEAD: usize = 9;

/// The longest payload a reader accepts, bytes: a head with kallsyms and all formats is far below.
pub const MAX_FRAME: usize = 256 << 20;

/// The largest page a reader accepts, bytes: far more than any kernel's sub-buffer. The head is padded to it.
const MAX_PAGE: u32 = 1 << 20;

/// What a frame is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// u32 page size, u32 CPUs, u64 offset of the table of CPUs, u64 offset and u64 length of the option
    /// CLOCK_SNAPSHOTS; then the head of a trace.dat v6.
    Head,
    /// Whole pages of a CPU.
    Pages,
    /// u64 offset; then bytes to be written over the head there.
    Patch,
    /// The recording came to its end: the last [`super::RecorderInfo`] as JSON.
    End,
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Kind::Head => b'H',
            Kind::Pages => b'P',
            Kind::Patch => b'W',
            Kind::End => b'E',
        }
    }
}

/// The bytes before the payload.
pub fn frame_head(kind: Kind, cpu: u32, len: usize) -> [u8; FRAME_HEAD] {
    let mut out = [kind.code(); FRAME_HEAD];
    out[1..5].copy_from_slice(&cpu.to_le_bytes());
    out[5..].copy_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes());
    out
}

/// Kind, CPU and length of the payload that follows. `None` where that is no frame.
pub fn parse_frame_head(head: &[u8; FRAME_HEAD]) -> Option<(Kind, u32, usize)> {
    let kind = [Kind::Head, Kind::Pages, Kind::Patch, Kind::End].into_iter().find(|k| k.code() == head[0])?;
    let number = |at: usize| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?));
    let len = number(5)? as usize;
    (len <= MAX_FRAME).then_some((kind, number(1)?, len))
}

/// The numbers at the start of a [`Kind::Head`] payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadInfo {
    /// Bytes of a page.
    pub page_size: u32,
    /// Entries of the table of CPUs.
    pub cpus: u32,
    /// Where the table is in the head.
    pub table_at: u64,
    /// Where the option CLOCK_SNAPSHOTS is in the head: offset and length.
    pub extra: (u64, u64),
}

impl HeadInfo {
    /// Bytes of it in a payload.
    pub const LEN: usize = 32;

    /// As it stands in a payload.
    pub fn encode(&self) -> [u8; HeadInfo::LEN] {
        let mut out = [0; HeadInfo::LEN];
        out[..4].copy_from_slice(&self.page_size.to_le_bytes());
        out[4..8].copy_from_slice(&self.cpus.to_le_bytes());
        for (at, n) in [(8, self.table_at), (16, self.extra.0), (24, self.extra.1)] {
            out[at..at + 8].copy_from_slice(&n.to_le_bytes());
        }
        out
    }

    /// Reads it, and hands back the head behind it. `None` where the places it names are not in that head.
    pub fn parse(payload: &[u8]) -> Option<(HeadInfo, &[u8])> {
        let (info, head) = payload.split_at_checked(HeadInfo::LEN)?;
        let u32_at = |at: usize| Some(u32::from_le_bytes(info.get(at..at + 4)?.try_into().ok()?));
        let u64_at = |at: usize| Some(u64::from_le_bytes(info.get(at..at + 8)?.try_into().ok()?));
        let info = HeadInfo {
            page_size: u32_at(0)?,
            cpus: u32_at(4)?,
            table_at: u64_at(8)?,
            extra: (u64_at(16)?, u64_at(24)?),
        };
        let len = head.len() as u64;
        let table_end = info.table_at.checked_add(u64::from(info.cpus) * 16)?;
        let extra_end = info.extra.0.checked_add(info.extra.1)?;
        let page_size = info.page_size.is_power_of_two() && info.page_size <= MAX_PAGE;
        let sound = page_size && table_end <= len && extra_end <= len;
        sound.then_some((info, head))
    }
}

/// Why a stream cannot be read at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: {what}")]
pub struct StreamError {
    /// Bytes from the start of the stream.
    pub offset: u64,
    /// What is wrong there.
    pub what: &'static str,
}

/// A stream, taken apart: the trace.dat that it describes.
#[derive(Debug)]
pub struct Stream<'a> {
    page_size: usize,
    table_at: usize,
    head: Vec<u8>,
    /// Each CPU's pages, in order.
    cpus: Vec<Vec<&'a [u8]>>,
    /// Where and why it ends early, if it does.
    pub cut: Option<StreamError>,
}

/// More CPUs than Linux supports.
const MAX_CPUS: u32 = 8192;

impl<'a> Stream<'a> {
    /// Takes a stream apart, [`MAGIC`] included. One that is cut is a recording up to there.
    pub fn parse(bytes: &'a [u8]) -> Result<Stream<'a>, StreamError> {
        let error = |offset: usize, what| StreamError { offset: offset as u64, what };
        if !bytes.starts_with(MAGIC) {
            return Err(error(0, "not a stream of `tracebridge record -o -`"));
        }
        let mut at = MAGIC.len();
        let (kind, _, payload) = frame(bytes, at).map_err(|what| error(at, what))?;
        let info = HeadInfo::parse(payload).filter(|(i, _)| kind == Kind::Head && i.cpus <= MAX_CPUS);
        let (info, head) = info.ok_or(error(at, "the stream does not begin with a sound head"))?;
        let mut stream = Stream {
            page_size: info.page_size as usize,
            table_at: info.table_at as usize,
            head: head.to_vec(),
            cpus: vec![Vec::new(); info.cpus as usize],
            cut: None,
        };
        loop {
            at += FRAME_HEAD + frame(bytes, at).map_or(0, |(.., payload)| payload.len());
            let done = match frame(bytes, at) {
                Ok((kind, cpu, payload)) => stream.take(kind, cpu, payload, &info),
                Err(what) => Err(what),
            };
            match done {
                Ok(false) => {}
                Ok(true) => return Ok(stream),
                Err(what) => {
                    stream.cut = Some(error(at, what));
                    return Ok(stream);
                }
            }
        }
    }

    /// Does what a frame says. Whether it was the last.
    fn take(
        &mut self,
        kind: Kind,
        cpu: u32,
        payload: &'a [u8],
        info: &HeadInfo,
    ) -> Result<bool, &'static str> {
        match kind {
            Kind::Head => return Err("a second head"),
            Kind::Pages if !payload.len().is_multiple_of(self.page_size) => return Err("a part of a page"),
            Kind::Pages => self.cpus.get_mut(cpu as usize).ok_or("pages of an unknown CPU")?.push(payload),
            Kind::Patch => {
                let (at, bytes) = payload.split_at_checked(8).ok_or("a patch without an offset")?;
                let at = at.try_into().map_or(u64::MAX, u64::from_le_bytes);
                self.patch(at, bytes)?;
            }
            Kind::End => {
                let (at, len) = info.extra;
                if payload.len() as u64 > len {
                    return Err("an end longer than its place");
                }
                let mut padded = payload.to_vec();
                padded.resize(len as usize, b' ');
                self.patch(at, &padded)?;
            }
        }
        Ok(kind == Kind::End)
    }

    fn patch(&mut self, at: u64, bytes: &[u8]) -> Result<(), &'static str> {
        let end = at.checked_add(bytes.len() as u64).and_then(|end| usize::try_from(end).ok());
        let place = end.and_then(|end| self.head.get_mut(at as usize..end));
        place.ok_or("a patch outside of the head")?.copy_from_slice(bytes);
        Ok(())
    }

    /// Writes the trace.dat.
    pub fn write_dat(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let mut head = self.head.clone();
        let mut offset = head.len().next_multiple_of(self.page_size);
        let table = head.get_mut(self.table_at..).unwrap_or_default();
        for (entry, pages) in table.chunks_exact_mut(CpuData::ENTRY_LEN).zip(&self.cpus) {
            let size: usize = pages.iter().map(|p| p.len()).sum();
            entry.copy_from_slice(&CpuData { offset: offset as u64, size: size as u64 }.entry());
            offset += size;
        }
        head.resize(head.len().next_multiple_of(self.page_size), 0);
        out.write_all(&head)?;
        self.cpus.iter().flatten().try_for_each(|pages| out.write_all(pages))
    }
}

/// The frame at `at`: its kind, CPU and payload.
fn frame(bytes: &[u8], at: usize) -> Result<(Kind, u32, &[u8]), &'static str> {
    let rest = bytes.get(at..).filter(|rest| !rest.is_empty()).ok_or("it ends without its last frame")?;
    let (head, rest) = rest.split_first_chunk::<FRAME_HEAD>().ok_or("it ends within a frame's head")?;
    let (kind, cpu, len) = parse_frame_head(head).ok_or("no frame begins here")?;
    Ok((kind, cpu, rest.get(..len).ok_or("it ends within a frame")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_as_they_were() {
        let head = frame_head(Kind::Patch, 3, 70_000);
        assert_eq!(parse_frame_head(&head), Some((Kind::Patch, 3, 70_000)));
        assert_eq!(parse_frame_head(b"Xaaaabbbb"), None);
        assert_eq!(parse_frame_head(&frame_head(Kind::Pages, 0, MAX_FRAME + 1)), None);
    }

    #[test]
    fn a_head_whose_places_lie_outside_of_it_is_refused() {
        let mut info = HeadInfo { page_size: 4096, cpus: 2, table_at: 68, extra: (0, 10) };
        let payload = |info: &HeadInfo| [&info.encode()[..], &[0; 100]].concat();
        assert_eq!(HeadInfo::parse(&payload(&info)).map(|(i, head)| (i, head.len())), Some((info, 100)));
        info.cpus = 3;
        assert_eq!(HeadInfo::parse(&payload(&info)), None);
        assert_eq!(HeadInfo::parse(&[0; 31]), None);
    }

    fn stream(frames: &[(Kind, u32, &[u8])]) -> Vec<u8> {
        let info = HeadInfo { page_size: 512, cpus: 2, table_at: 4, extra: (36, 8) };
        let head = [&info.encode()[..], &[b'h'; 44]].concat();
        let mut out = MAGIC.to_vec();
        for (kind, cpu, payload) in [(Kind::Head, 0, &head[..])].iter().chain(frames) {
            out.extend(frame_head(*kind, *cpu, payload.len()));
            out.extend(*payload);
        }
        out
    }

    #[test]
    fn pages_of_cpus_that_came_mixed_lie_together_in_the_file() {
        let patch = [&0u64.to_le_bytes()[..], b"HH"].concat();
        let bytes = stream(&[
            (Kind::Pages, 1, &[1; 512]),
            (Kind::Pages, 0, &[2; 1024]),
            (Kind::Patch, 0, &patch),
            (Kind::Pages, 1, &[3; 512]),
            (Kind::End, 0, b"{}"),
        ]);
        let stream = Stream::parse(&bytes).unwrap();
        let mut dat = Vec::new();
        stream.write_dat(&mut dat).unwrap();
        assert_eq!((stream.cut, dat.len()), (None, 5 * 512));
        assert_eq!((&dat[..4], &dat[36..44]), (&b"HHhh"[..], &b"{}      "[..]));
        assert_eq!(&dat[4..20], CpuData { offset: 512, size: 1024 }.entry());
        assert_eq!(&dat[20..36], CpuData { offset: 1536, size: 1024 }.entry());
        assert_eq!((dat[512], dat[1536], dat[2048]), (2, 1, 3));
    }

    #[test]
    fn a_stream_cut_anywhere_is_a_recording_up_to_there_or_says_that_it_is_none() {
        let bytes = stream(&[(Kind::Pages, 0, &[2; 512]), (Kind::End, 0, b"{}")]);
        for len in 0..bytes.len() {
            match Stream::parse(&bytes[..len]) {
                Ok(stream) => assert!(stream.cut.is_some(), "cut at {len}"),
                Err(error) => assert!(len < MAGIC.len() + FRAME_HEAD + 76, "cut at {len}: {error}"),
            }
        }
    }
}
