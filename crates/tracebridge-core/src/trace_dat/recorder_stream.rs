//! A recording as a stream of frames, for a pipe (`record -o -` over `adb exec-out`). Each frame is a step
//! that builds a trace.dat; the recorder sends the steps in order, and the host carries them out.
//!
//! A stream is [`MAGIC`] and then frames. A frame is a u8 kind, a u32 CPU (0 for a frame that belongs to no
//! CPU), a u32 length, and a payload of that length. All integers are little-endian.

use std::io;

use super::CpuData;
use crate::clock::Timestamp;
use crate::ftrace::page_format::{MAX_CPUS, is_sub_buffer_size};
use crate::ids::Cpu;

/// The first bytes of a stream.
pub const MAGIC: &[u8; 8] = b"TBSTRM1\n";

/// Bytes before a frame's payload.
pub const FRAME_HEAD_BYTES: usize = 9;

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// The payload is a [`HeadInfo`] and then the head of a trace.dat v6.
    Head,
    /// The payload is whole pages of the frame's CPU.
    Pages,
    /// The payload is a u64 offset and the bytes to write over the head there.
    Patch,
    /// The buffers of all CPUs have been read once. The payload is a u64: the time of the recording's clock
    /// just before that, in ns. Every event of an earlier time is in the frames before this one. Only
    /// `record --live` sends it, and the trace.dat that is made of a stream holds nothing of it.
    Round,
    /// The recording is complete. The payload is the last [`RecorderInfo`](super::RecorderInfo) as JSON.
    End,
}

impl FrameKind {
    fn code(self) -> u8 {
        match self {
            FrameKind::Head => b'H',
            FrameKind::Pages => b'P',
            FrameKind::Patch => b'W',
            FrameKind::Round => b'R',
            FrameKind::End => b'E',
        }
    }
}

/// The bytes before a payload of `len` bytes.
pub fn frame_head(kind: FrameKind, cpu: Cpu, len: usize) -> [u8; FRAME_HEAD_BYTES] {
    let mut out = [kind.code(); FRAME_HEAD_BYTES];
    out[1..5].copy_from_slice(&cpu.0.to_le_bytes());
    out[5..].copy_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes());
    out
}

/// The numbers at the start of a [`FrameKind::Head`] payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadInfo {
    /// Bytes of a page.
    pub page_size: u32,
    /// Number of entries in the table of CPUs.
    pub cpus: u32,
    /// Offset of the table of CPUs in the head, bytes.
    pub table_at: u64,
    /// Offset and length of the option CLOCK_SNAPSHOTS in the head, bytes.
    pub extra: (u64, u64),
}

impl HeadInfo {
    /// Bytes of the numbers in a payload: u32 page size, u32 CPUs, and three u64.
    pub const BYTES: usize = 32;

    /// The numbers as they stand in a payload.
    pub fn encode(&self) -> [u8; HeadInfo::BYTES] {
        let mut out = [0; HeadInfo::BYTES];
        out[..4].copy_from_slice(&self.page_size.to_le_bytes());
        out[4..8].copy_from_slice(&self.cpus.to_le_bytes());
        for (at, n) in [(8, self.table_at), (16, self.extra.0), (24, self.extra.1)] {
            out[at..at + 8].copy_from_slice(&n.to_le_bytes());
        }
        out
    }
}

/// The longest payload that is accepted, bytes. A head with kallsyms and all event formats is far below it.
const MAX_FRAME_BYTES: usize = 256 << 20;

/// Every kind of frame that a stream can have.
const FRAME_KINDS: [FrameKind; 5] =
    [FrameKind::Head, FrameKind::Pages, FrameKind::Patch, FrameKind::Round, FrameKind::End];

/// The kind, the CPU and the payload's length of a frame. `None` where the bytes start no frame.
pub fn parse_frame_head(head: &[u8; FRAME_HEAD_BYTES]) -> Option<(FrameKind, Cpu, usize)> {
    let kind = FRAME_KINDS.into_iter().find(|kind| kind.code() == head[0])?;
    let number = |at: usize| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?));
    let len = number(5)? as usize;
    (len <= MAX_FRAME_BYTES).then_some((kind, Cpu(number(1)?), len))
}

/// Splits the payload of a [`FrameKind::Head`] into its numbers and the head of the trace.dat. `None` where
/// the numbers are offsets outside of that head.
pub fn parse_head(payload: &[u8]) -> Option<(HeadInfo, &[u8])> {
    let (info, head) = payload.split_at_checked(HeadInfo::BYTES)?;
    let u32_at = |at: usize| Some(u32::from_le_bytes(info.get(at..at + 4)?.try_into().ok()?));
    let u64_at = |at: usize| Some(u64::from_le_bytes(info.get(at..at + 8)?.try_into().ok()?));
    let info = HeadInfo {
        page_size: u32_at(0)?,
        cpus: u32_at(4)?,
        table_at: u64_at(8)?,
        extra: (u64_at(16)?, u64_at(24)?),
    };
    let len = head.len() as u64;
    let table_end = info.table_at.checked_add(u64::from(info.cpus) * CpuData::ENTRY_LEN as u64)?;
    let extra_end = info.extra.0.checked_add(info.extra.1)?;
    let is_page_size = info.page_size.is_power_of_two() && is_sub_buffer_size(info.page_size);
    (is_page_size && table_end <= len && extra_end <= len).then_some((info, head))
}

/// The time in the payload of a [`FrameKind::Round`], in the clock of the kernel's buffer. `None` where it is
/// none.
pub fn parse_round(payload: &[u8]) -> Option<Timestamp> {
    Some(Timestamp(u64::from_le_bytes(payload.try_into().ok()?)))
}

/// The reason why a stream, or the rest of a stream, cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: {fault}")]
pub struct StreamError {
    /// Bytes from the start of the stream.
    pub offset: u64,
    pub fault: StreamFault,
}

/// A fault of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StreamFault {
    #[error("not a stream of `tracebridge record -o -`")]
    NoStream,
    #[error("the stream does not begin with a sound head")]
    NoHead,
    #[error("the stream ends before its last frame")]
    NoEnd,
    #[error("the stream ends inside a frame's head")]
    CutHead,
    #[error("the stream ends inside a frame")]
    CutFrame,
    #[error("no frame begins here")]
    NoFrame,
    #[error("a second head")]
    SecondHead,
    #[error("a part of a page")]
    PartOfPage,
    #[error("pages of an unknown CPU")]
    UnknownCpu,
    #[error("a patch without an offset")]
    PatchWithoutOffset,
    #[error("a patch outside of the head")]
    PatchOutsideHead,
    #[error("a round without its time")]
    RoundWithoutTime,
    #[error("an end longer than its place")]
    LongEnd,
}

/// Whether a stream, which is one by its [`MAGIC`], ends before the last byte of its first frame of events or
/// of its end: no event can be read then. False where bytes that are no frame come before.
///
/// # Errors
/// The errors of reading.
pub fn ends_before_events(stream: &mut (impl io::Read + io::Seek)) -> io::Result<bool> {
    let len = stream.seek(io::SeekFrom::End(0))?;
    let mut at = MAGIC.len() as u64;
    loop {
        let payload_at = at + FRAME_HEAD_BYTES as u64;
        if len < payload_at {
            return Ok(true);
        }
        let mut head = [0; FRAME_HEAD_BYTES];
        stream.seek(io::SeekFrom::Start(at))?;
        stream.read_exact(&mut head)?;
        let Some((kind, _, payload)) = parse_frame_head(&head) else { return Ok(false) };
        at = payload_at + payload as u64;
        if at > len {
            return Ok(true);
        }
        if matches!(kind, FrameKind::Pages | FrameKind::End) {
            return Ok(false);
        }
    }
}

/// A decoded stream: the contents of the trace.dat that it describes.
#[derive(Debug)]
pub struct RecorderStream<'a> {
    head: StreamedHead,
    /// The pages of each CPU, in order.
    cpus: Vec<Vec<&'a [u8]>>,
    /// Where and why the stream ends before its last frame, if it does.
    pub cut: Option<StreamError>,
}

impl<'a> RecorderStream<'a> {
    /// Decodes a stream that starts with [`MAGIC`]. A stream that is cut gives the recording up to the cut.
    ///
    /// # Errors
    /// Returns [`StreamError`] where `bytes` does not start with a sound head, so that no event can be read.
    pub fn parse(bytes: &'a [u8]) -> Result<RecorderStream<'a>, StreamError> {
        let error = |offset: usize, fault| StreamError { offset: offset as u64, fault };
        if !bytes.starts_with(MAGIC) {
            return Err(error(0, StreamFault::NoStream));
        }
        let mut at = MAGIC.len();
        let (kind, _, payload) = frame(bytes, at).map_err(|fault| error(at, fault))?;
        let is_head = kind == FrameKind::Head;
        let head = if is_head { StreamedHead::parse(payload) } else { Err(StreamFault::NoHead) };
        let head = head.map_err(|fault| error(at, fault))?;
        let cpus = vec![Vec::new(); head.info.cpus as usize];
        let mut stream = RecorderStream { head, cpus, cut: None };
        loop {
            at += FRAME_HEAD_BYTES + frame(bytes, at).map_or(0, |(.., payload)| payload.len());
            let ended = match frame(bytes, at) {
                Ok((kind, cpu, payload)) => stream.apply(kind, cpu, payload),
                Err(fault) => Err(fault),
            };
            match ended {
                Ok(false) => {}
                Ok(true) => return Ok(stream),
                Err(fault) => {
                    stream.cut = Some(error(at, fault));
                    return Ok(stream);
                }
            }
        }
    }

    /// Applies a frame. Returns whether it was the last frame.
    fn apply(&mut self, kind: FrameKind, cpu: Cpu, payload: &'a [u8]) -> Result<bool, StreamFault> {
        match kind {
            FrameKind::Head => return Err(StreamFault::SecondHead),
            FrameKind::Pages if !payload.len().is_multiple_of(self.head.info.page_size as usize) => {
                return Err(StreamFault::PartOfPage);
            }
            FrameKind::Pages => self.cpus.get_mut(cpu.index()).ok_or(StreamFault::UnknownCpu)?.push(payload),
            FrameKind::Patch => self.head.patch(payload)?,
            FrameKind::Round => {
                parse_round(payload).ok_or(StreamFault::RoundWithoutTime)?;
            }
            FrameKind::End => self.head.end(payload)?,
        }
        Ok(kind == FrameKind::End)
    }

    /// Writes the trace.dat to `out`.
    pub fn write_dat(&self, out: &mut dyn io::Write) -> io::Result<()> {
        self.head.write_dat(&self.cpus, out)
    }
}

/// The head of a trace.dat, which a stream begins with and patches.
#[derive(Debug, Clone)]
pub struct StreamedHead {
    pub info: HeadInfo,
    pub bytes: Vec<u8>,
}

impl StreamedHead {
    /// Reads the payload of a [`FrameKind::Head`].
    ///
    /// # Errors
    /// [`StreamFault::NoHead`].
    pub fn parse(payload: &[u8]) -> Result<StreamedHead, StreamFault> {
        let parsed = parse_head(payload).filter(|(info, _)| info.cpus <= MAX_CPUS);
        let (info, head) = parsed.ok_or(StreamFault::NoHead)?;
        Ok(StreamedHead { info, bytes: head.to_vec() })
    }

    /// Carries out a [`FrameKind::Patch`].
    ///
    /// # Errors
    /// [`StreamFault::PatchWithoutOffset`] and [`StreamFault::PatchOutsideHead`].
    pub fn patch(&mut self, payload: &[u8]) -> Result<(), StreamFault> {
        let (at, bytes) = payload.split_at_checked(8).ok_or(StreamFault::PatchWithoutOffset)?;
        self.write(at.try_into().map_or(u64::MAX, u64::from_le_bytes), bytes)
    }

    /// Carries out a [`FrameKind::End`]: puts the last facts about the recording into their place.
    ///
    /// # Errors
    /// [`StreamFault::LongEnd`].
    pub fn end(&mut self, payload: &[u8]) -> Result<(), StreamFault> {
        let (at, len) = self.info.extra;
        if payload.len() as u64 > len {
            return Err(StreamFault::LongEnd);
        }
        let mut padded = payload.to_vec();
        padded.resize(len as usize, b' ');
        self.write(at, &padded)
    }

    /// The facts about the recording, as JSON.
    pub fn facts(&self) -> &[u8] {
        let (at, len) = self.info.extra;
        self.bytes.get(at as usize..(at + len) as usize).unwrap_or_default()
    }

    /// Writes a trace.dat with these pages of each CPU to `out`.
    pub fn write_dat(&self, cpus: &[Vec<&[u8]>], out: &mut dyn io::Write) -> io::Result<()> {
        let page_size = self.info.page_size as usize;
        let mut head = self.bytes.clone();
        let mut offset = head.len().next_multiple_of(page_size);
        let table = head.get_mut(self.info.table_at as usize..).unwrap_or_default();
        for (entry, pages) in table.chunks_exact_mut(CpuData::ENTRY_LEN).zip(cpus) {
            let size: usize = pages.iter().map(|p| p.len()).sum();
            entry.copy_from_slice(&CpuData { offset: offset as u64, size: size as u64 }.entry());
            offset += size;
        }
        head.resize(head.len().next_multiple_of(page_size), 0);
        out.write_all(&head)?;
        cpus.iter().flatten().try_for_each(|pages| out.write_all(pages))
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), StreamFault> {
        let end = at.checked_add(bytes.len() as u64).and_then(|end| usize::try_from(end).ok());
        let patched = end.and_then(|end| self.bytes.get_mut(at as usize..end));
        patched.ok_or(StreamFault::PatchOutsideHead)?.copy_from_slice(bytes);
        Ok(())
    }
}

/// The kind, the CPU and the payload of the frame at byte `at`.
fn frame(bytes: &[u8], at: usize) -> Result<(FrameKind, Cpu, &[u8]), StreamFault> {
    let rest = bytes.get(at..).filter(|rest| !rest.is_empty()).ok_or(StreamFault::NoEnd)?;
    let (head, rest) = rest.split_first_chunk::<FRAME_HEAD_BYTES>().ok_or(StreamFault::CutHead)?;
    let (kind, cpu, len) = parse_frame_head(head).ok_or(StreamFault::NoFrame)?;
    Ok((kind, cpu, rest.get(..len).ok_or(StreamFault::CutFrame)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_frame_decodes_to_the_same_frame() {
        for kind in FRAME_KINDS {
            let head = frame_head(kind, Cpu(3), 70_000);
            assert_eq!(parse_frame_head(&head), Some((kind, Cpu(3), 70_000)));
        }
        assert_eq!(parse_frame_head(b"Xaaaabbbb"), None);
        assert_eq!(parse_frame_head(&frame_head(FrameKind::Pages, Cpu(0), MAX_FRAME_BYTES + 1)), None);
    }

    #[test]
    fn a_head_with_offsets_outside_of_it_is_refused() {
        let mut info = HeadInfo { page_size: 4096, cpus: 2, table_at: 68, extra: (0, 10) };
        let payload = |info: &HeadInfo| [&info.encode()[..], &[0; 100]].concat();
        assert_eq!(parse_head(&payload(&info)).map(|(i, head)| (i, head.len())), Some((info, 100)));
        info.cpus = 3;
        assert_eq!(parse_head(&payload(&info)), None);
        assert_eq!(parse_head(&[0; 31]), None);
    }

    fn stream(frames: &[(FrameKind, u32, &[u8])]) -> Vec<u8> {
        let info = HeadInfo { page_size: 512, cpus: 2, table_at: 4, extra: (36, 8) };
        let head = [&info.encode()[..], &[b'h'; 44]].concat();
        let mut out = MAGIC.to_vec();
        for (kind, cpu, payload) in [(FrameKind::Head, 0, &head[..])].iter().chain(frames) {
            out.extend(frame_head(*kind, Cpu(*cpu), payload.len()));
            out.extend(*payload);
        }
        out
    }

    #[test]
    fn interleaved_pages_are_grouped_by_cpu_in_the_file() {
        let patch = [&0u64.to_le_bytes()[..], b"HH"].concat();
        let bytes = stream(&[
            (FrameKind::Pages, 1, &[1; 512]),
            (FrameKind::Pages, 0, &[2; 1024]),
            (FrameKind::Patch, 0, &patch),
            (FrameKind::Pages, 1, &[3; 512]),
            (FrameKind::End, 0, b"{}"),
        ]);
        let stream = RecorderStream::parse(&bytes).unwrap();
        let mut dat = Vec::new();
        stream.write_dat(&mut dat).unwrap();
        assert_eq!((stream.cut, dat.len()), (None, 5 * 512));
        assert_eq!((&dat[..4], &dat[36..44]), (&b"HHhh"[..], &b"{}      "[..]));
        assert_eq!(&dat[4..20], CpuData { offset: 512, size: 1024 }.entry());
        assert_eq!(&dat[20..36], CpuData { offset: 1536, size: 1024 }.entry());
        assert_eq!((dat[512], dat[1536], dat[2048]), (2, 1, 3));
    }

    #[test]
    fn rounds_leave_nothing_in_the_file_and_one_without_its_time_ends_what_is_read() {
        let time = 70_000_000_000u64.to_le_bytes();
        let pages: (_, _, &[u8]) = (FrameKind::Pages, 0, &[2; 512]);
        let end: (_, _, &[u8]) = (FrameKind::End, 0, b"{}");
        let round: (_, _, &[u8]) = (FrameKind::Round, 0, &time);
        let dat = |bytes: &[u8]| {
            let stream = RecorderStream::parse(bytes).unwrap();
            let mut dat = Vec::new();
            stream.write_dat(&mut dat).unwrap();
            (stream.cut.map(|cut| cut.fault), dat)
        };
        let without = dat(&stream(&[pages, pages, end]));
        assert_eq!(without.0, None);
        assert_eq!(dat(&stream(&[round, pages, round, pages, round, end])), without);
        assert_eq!(parse_round(&time), Some(Timestamp(70_000_000_000)));
        for payload in [&time[..7], &[0; 9], &[]] {
            let cut = dat(&stream(&[pages, pages, (FrameKind::Round, 0, payload), end]));
            assert_eq!(cut.0, Some(StreamFault::RoundWithoutTime));
            assert_eq!(cut.1.len(), without.1.len());
        }
    }

    #[test]
    fn a_stream_without_its_first_page_is_told_from_one_that_is_empty_or_damaged() {
        let ends_before_events = |bytes: &[u8]| ends_before_events(&mut io::Cursor::new(bytes)).unwrap();
        let patch = [&0u64.to_le_bytes()[..], b"HH"].concat();
        let pages: (_, _, &[u8]) = (FrameKind::Pages, 0, &[2; 512]);
        let round: (_, _, &[u8]) = (FrameKind::Round, 0, &[9; 8]);
        let start = [(FrameKind::Patch, 0, &patch[..]), round, pages];
        let bytes = stream(&[&start[..], &[pages, round, (FrameKind::End, 0, b"{}")]].concat());
        let first_page = stream(&start).len();
        for len in 0..=bytes.len() {
            assert_eq!(ends_before_events(&bytes[..len]), len < first_page, "cut at {len}");
        }
        assert!(!ends_before_events(&stream(&[(FrameKind::End, 0, b"{}")])));
        assert!(!ends_before_events(b"TBSTRM1\nXxxxxxxxx"));
    }

    #[test]
    fn a_stream_cut_behind_its_head_is_read_up_to_the_cut_and_one_cut_before_is_refused() {
        let pages: (_, _, &[u8]) = (FrameKind::Pages, 0, &[2; 512]);
        let bytes = stream(&[pages, (FrameKind::Round, 0, &[9; 8]), (FrameKind::End, 0, b"{}")]);
        for len in 0..bytes.len() {
            match RecorderStream::parse(&bytes[..len]) {
                Ok(stream) => assert!(stream.cut.is_some(), "cut at {len}"),
                Err(error) => assert!(len < MAGIC.len() + FRAME_HEAD_BYTES + 76, "cut at {len}: {error}"),
            }
        }
    }
}
