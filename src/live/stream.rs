//! Takes the recorder's stream apart as its bytes come, in pieces of any size.

use crate::clock::Timestamp;
use crate::ids::Cpu;
use crate::trace_dat::recorder_stream::{
    FRAME_HEAD_BYTES, FrameKind, MAGIC, StreamError, StreamFault, StreamedHead, parse_frame_head, parse_round,
};

/// The longest head that is accepted, bytes: the symbols of a large kernel are 15 MiB.
const MAX_HEAD_BYTES: usize = 64 << 20;
/// Bytes of the time of a round.
const ROUND_BYTES: usize = 8;
/// Bytes of the offset that a patch begins with.
const PATCH_OFFSET_BYTES: usize = 8;

/// Receives what a stream consists of.
pub(super) trait StreamSteps {
    /// The head, with which the stream begins.
    fn head(&mut self, head: &StreamedHead) -> Result<(), StreamFault>;
    /// One page.
    fn page(&mut self, cpu: Cpu, page: &[u8]) -> Result<(), StreamFault>;
    /// The head as it is from now on.
    fn patched(&mut self, head: &StreamedHead);
    /// All events before this time of the pages' clock have come.
    fn round(&mut self, ts: Timestamp);
}

/// The place in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamStage {
    Magic,
    /// Before a frame.
    Frame,
    /// In a frame of this kind, of which so many bytes are left.
    Payload(FrameKind, Cpu, usize),
    /// Behind the last frame.
    End,
}

/// A stream, as far as it has come.
pub(super) struct StreamReader {
    place: StreamStage,
    head: Option<StreamedHead>,
    /// Bytes that are less than what is waited for.
    rest: Vec<u8>,
    /// Offset of `rest` in the stream.
    offset: u64,
    failed: Option<StreamError>,
}

impl StreamReader {
    /// A stream of which nothing has come.
    pub fn new() -> StreamReader {
        StreamReader { place: StreamStage::Magic, head: None, rest: Vec::new(), offset: 0, failed: None }
    }

    /// Whether its last frame has come.
    pub fn is_ended(&self) -> bool {
        self.place == StreamStage::End
    }

    /// Whether nothing has come.
    pub fn is_empty(&self) -> bool {
        self.offset == 0 && self.rest.is_empty()
    }

    /// Takes bytes. Behind the last frame they are ignored.
    pub fn feed(&mut self, mut bytes: &[u8], steps: &mut impl StreamSteps) -> Result<(), StreamError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        while self.place != StreamStage::End {
            let wanted = self.wanted();
            if self.rest.is_empty() {
                let Some((unit, left)) = bytes.split_at_checked(wanted) else { break };
                self.take(unit, steps)?;
                bytes = left;
            } else {
                let missing = wanted.saturating_sub(self.rest.len());
                let Some((more, left)) = bytes.split_at_checked(missing) else { break };
                let mut unit = std::mem::take(&mut self.rest);
                unit.extend_from_slice(more);
                self.take(&unit, steps)?;
                bytes = left;
            }
        }
        if self.place != StreamStage::End {
            self.rest.extend_from_slice(bytes);
        }
        Ok(())
    }

    /// The number of bytes with which it goes on.
    fn wanted(&self) -> usize {
        match self.place {
            StreamStage::Magic => MAGIC.len(),
            StreamStage::Frame => FRAME_HEAD_BYTES,
            StreamStage::Payload(FrameKind::Pages, _, left) => left.min(self.page_size()),
            StreamStage::Payload(.., left) => left,
            StreamStage::End => 0,
        }
    }

    fn page_size(&self) -> usize {
        self.head.as_ref().map_or(1, |head| head.info.page_size as usize)
    }

    fn take(&mut self, unit: &[u8], steps: &mut impl StreamSteps) -> Result<(), StreamError> {
        let taken = self.step(unit, steps).map_err(|fault| StreamError { offset: self.offset, fault });
        if let Err(error) = &taken {
            self.failed = Some(error.clone());
        }
        self.offset += unit.len() as u64;
        taken
    }

    fn step(&mut self, unit: &[u8], steps: &mut impl StreamSteps) -> Result<(), StreamFault> {
        self.place = match self.place {
            StreamStage::Magic if unit == MAGIC => StreamStage::Frame,
            StreamStage::Magic => return Err(StreamFault::NoStream),
            StreamStage::Frame => self.frame(unit)?,
            StreamStage::Payload(FrameKind::Pages, cpu, left) => {
                steps.page(cpu, unit)?;
                match left.saturating_sub(unit.len()) {
                    0 => StreamStage::Frame,
                    left => StreamStage::Payload(FrameKind::Pages, cpu, left),
                }
            }
            StreamStage::Payload(kind, ..) => {
                self.payload(kind, unit, steps)?;
                if kind == FrameKind::End { StreamStage::End } else { StreamStage::Frame }
            }
            StreamStage::End => StreamStage::End,
        };
        Ok(())
    }

    /// Checks the head of a frame. No payload is waited for that its kind cannot have.
    fn frame(&self, unit: &[u8]) -> Result<StreamStage, StreamFault> {
        let head = unit.first_chunk().and_then(parse_frame_head);
        let (kind, cpu, len) = head.ok_or(StreamFault::NoFrame)?;
        let Some(head) = &self.head else {
            let is_head = kind == FrameKind::Head && len <= MAX_HEAD_BYTES;
            return if is_head { Ok(StreamStage::Payload(kind, cpu, len)) } else { Err(StreamFault::NoHead) };
        };
        match kind {
            FrameKind::Head => return Err(StreamFault::SecondHead),
            FrameKind::Pages if !len.is_multiple_of(head.info.page_size as usize) => {
                return Err(StreamFault::PartOfPage);
            }
            FrameKind::Pages if cpu.0 >= head.info.cpus => return Err(StreamFault::UnknownCpu),
            FrameKind::Pages if len == 0 => return Ok(StreamStage::Frame),
            FrameKind::Patch if len > head.bytes.len() + PATCH_OFFSET_BYTES => {
                return Err(StreamFault::PatchOutsideHead);
            }
            FrameKind::Round if len != ROUND_BYTES => return Err(StreamFault::RoundWithoutTime),
            FrameKind::End if len as u64 > head.info.extra.1 => return Err(StreamFault::LongEnd),
            _ => {}
        }
        Ok(StreamStage::Payload(kind, cpu, len))
    }

    fn payload(
        &mut self,
        kind: FrameKind,
        payload: &[u8],
        steps: &mut impl StreamSteps,
    ) -> Result<(), StreamFault> {
        let Some(head) = &mut self.head else {
            let head = StreamedHead::parse(payload)?;
            steps.head(&head)?;
            self.head = Some(head);
            return Ok(());
        };
        match kind {
            FrameKind::Patch => head.patch(payload)?,
            FrameKind::End => head.end(payload)?,
            FrameKind::Round => {
                steps.round(parse_round(payload).ok_or(StreamFault::RoundWithoutTime)?);
                return Ok(());
            }
            FrameKind::Head | FrameKind::Pages => return Ok(()),
        }
        steps.patched(head);
        Ok(())
    }
}
