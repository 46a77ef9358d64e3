//! A recording as a stream of frames, for a pipe (`record -o -` over `adb exec-out`): what the recorder would do to a
//! trace.dat, in order, to be done by the other end.
//!
//! [`MAGIC`], then frames: u8 kind, u32 CPU (0 where there is none), u32 length, and that many bytes; little-endian.

/// The first bytes of a stream.
pub const MAGIC: &[u8; 8] = b"TBSTRM1\n";

/// Bytes before a frame's payload.
pub const FRAME_HEAD: usize = 9;

/// The longest payload a reader accepts, bytes: a head with kallsyms and all formats is far below.
pub const MAX_FRAME: usize = 256 << 20;

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
    /// The recording came to its end: the last [`super::trace_dat::Extra`] as JSON.
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
        let sound = info.page_size.is_power_of_two() && table_end <= len && extra_end <= len;
        sound.then_some((info, head))
    }
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
}
