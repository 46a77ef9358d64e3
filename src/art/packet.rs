//! Streaming files of versions 1 to 3 (written as 0xF1 to 0xF3): declarations between the records.

use thiserror::Error;

use super::{RecordLayout, u16_at, u32_at};

/// One element of a streaming file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    /// Consecutive records, by their size in bytes. They end at the next declaration, or with the last whole
    /// record of the file.
    Records(usize),
    /// A method, declared by a line like those of the method list.
    Method(&'a [u8]),
    /// A thread's id and name.
    Thread(u16, &'a [u8]),
    /// The text section, which ends the file.
    Summary(&'a [u8]),
}

/// The reason why no further element can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PacketError {
    /// The file ends inside a declaration or record.
    #[error("the file ends in the middle of a record or declaration")]
    Cut,
    /// A declaration with an unknown code has an unknown length, so nothing behind it can be read.
    #[error("no runtime writes declarations with code {0} (1 method, 2 thread, 3 summary)")]
    Code(u8),
}

/// Reads the element at the start of `bytes` and returns it with its length in bytes; `None` at the end of
/// the file.
pub fn next_packet(bytes: &[u8], layout: RecordLayout) -> Option<Result<(Packet<'_>, usize), PacketError>> {
    if bytes.is_empty() {
        return None;
    }
    let run = records_run(bytes, layout);
    if run > 0 {
        return Some(Ok((Packet::Records(run), run)));
    }
    Some(declaration(bytes, layout))
}

/// The size in bytes of the whole records before the first thread id 0. That id marks a declaration.
fn records_run(bytes: &[u8], layout: RecordLayout) -> usize {
    let size = layout.size();
    let records = bytes.len() / size * size;
    let marks = |record: &[u8]| record[0] == 0 && (layout == RecordLayout::Narrow || record[1] == 0);
    bytes.chunks_exact(size).position(marks).map_or(records, |n| n * size)
}

fn declaration(bytes: &[u8], layout: RecordLayout) -> Result<(Packet<'_>, usize), PacketError> {
    let id_size = if layout == RecordLayout::Narrow { 1 } else { 2 };
    if bytes.len() < id_size || bytes[..id_size].iter().any(|b| *b != 0) {
        return Err(PacketError::Cut);
    }
    let code = *bytes.get(id_size).ok_or(PacketError::Cut)?;
    let at = id_size + 1;
    let text = |from: usize, len: usize| -> Result<&[u8], PacketError> {
        let end = from.checked_add(len).ok_or(PacketError::Cut)?;
        bytes.get(from..end).ok_or(PacketError::Cut)
    };
    let u16_here = |at: usize| u16_at(bytes, at).ok_or(PacketError::Cut);
    let (packet, body, from) = match code {
        1 => {
            let line = text(at + 2, usize::from(u16_here(at)?))?;
            (Packet::Method(line), line, at + 2)
        }
        2 => {
            let name = text(at + 4, usize::from(u16_here(at + 2)?))?;
            (Packet::Thread(u16_here(at)?, name), name, at + 4)
        }
        3 => {
            let len = u32_at(bytes, at).ok_or(PacketError::Cut)?;
            let summary = text(at + 4, usize::try_from(len).map_err(|_| PacketError::Cut)?)?;
            (Packet::Summary(summary), summary, at + 4)
        }
        other => return Err(PacketError::Code(other)),
    };
    Ok((packet, from + body.len()))
}
