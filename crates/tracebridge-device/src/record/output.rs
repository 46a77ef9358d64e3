//! The interface between the recording loop and where its pages go: a [capture
//! file](super::capture::CaptureFile) or a [stream](super::stream_output::StreamOutput).

use super::RecordError;
use crate::trace_dat::{RecorderInfo, Slot};

/// Receives a recording: pages of ring buffer as they come, and the parts of the head that change.
pub(crate) trait RecordingOutput {
    /// Writes whole pages of the CPU with this id.
    fn pages(&mut self, cpu: u32, pages: &[u8]) -> Result<(), RecordError>;
    /// Completes what an earlier call has left undone with [`RecordError::Stalled`]: the reader of a stream
    /// takes nothing. Until this succeeds, nothing else may be written.
    fn resume(&mut self) -> Result<(), RecordError> {
        Ok(())
    }
    /// Ends the output here, because its reader takes nothing. Returns the CPU whose last pages were not
    /// taken.
    fn give_up(&mut self) -> Option<u32> {
        None
    }
    /// Overwrites a slot of the head and fills the rest of the slot with `padding`. Returns whether all of
    /// `text` fitted.
    fn patch(&mut self, slot: Slot, text: &[u8], padding: u8) -> Result<bool, RecordError>;
    /// Overwrites the recorder's own part of the head (clock snapshots, losses, processes).
    fn put_extra(&mut self, extra: &RecorderInfo) -> Result<(), RecordError>;
    /// The number of bytes of pages written so far.
    fn data_bytes(&self) -> u64;
    /// Completes the output. Optional work, such as compressing, is abandoned once `hurry` returns true.
    fn finish(
        self: Box<Self>,
        extra: RecorderInfo,
        hurry: &dyn Fn() -> bool,
    ) -> Result<FinishedOutput, RecordError>;
}

/// The state of an output after [`RecordingOutput::finish`].
#[derive(Debug)]
pub(crate) struct FinishedOutput {
    /// The total length, bytes.
    pub(crate) bytes: u64,
    pub(crate) state: FinalState,
    /// Why the output is not compressed although compression was asked for.
    pub(crate) not_compressed: Option<RecordError>,
}

/// The state of a finished capture on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinalState {
    /// The file has no holes.
    Compact,
    /// The file keeps its holes: the file system can neither collapse them nor hold a copy of the data.
    Sparse,
    /// Somebody deleted the file while it was written.
    Deleted,
    /// The reader of a stream took nothing more, so that its last frames are missing.
    Cut,
}
