//! A recording as a stream of frames, for a pipe (`record -o -` over `adb exec-out`). Each frame is a step
//! that builds a trace.dat; the recorder sends the steps in order, and the host carries them out.
//!
//! A stream is [`MAGIC`] and then frames. A frame is a u8 kind, a u32 CPU (0 for a frame that belongs to no
//! CPU), a u32 length, and a payload of that length. All integers are little-endian. This module encodes,
//! `decoder` decodes.

pub mod decoder;

/// The first bytes of a stream.
pub const MAGIC: &[u8; 8] = b"TBSTRM1\n";

/// Bytes before a frame's payload.
pub(crate) const FRAME_HEAD_BYTES: usize = 9;

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// The payload is a [`HeadInfo`] and then the head of a trace.dat v6.
    Head,
    /// The payload is whole pages of the frame's CPU.
    Pages,
    /// The payload is a u64 offset and the bytes to write over the head there.
    Patch,
    /// The recording is complete. The payload is the last [`RecorderInfo`](super::RecorderInfo) as JSON.
    End,
}

impl FrameKind {
    fn code(self) -> u8 {
        match self {
            FrameKind::Head => b'H',
            FrameKind::Pages => b'P',
            FrameKind::Patch => b'W',
            FrameKind::End => b'E',
        }
    }
}

/// The bytes before a payload of `len` bytes.
pub fn frame_head(kind: FrameKind, cpu: u32, len: usize) -> [u8; FRAME_HEAD_BYTES] {
    let mut out = [kind.code(); FRAME_HEAD_BYTES];
    out[1..5].copy_from_slice(&cpu.to_le_bytes());
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
