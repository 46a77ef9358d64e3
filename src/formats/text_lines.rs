//! The lines of a text, and the memory of the file that the text lies in.

use crate::formats::run_order::RunSource;
use crate::formats::spill::{RELEASE_BYTES, Release};
use crate::progress;

/// After so many bytes the progress is told.
const PROGRESS_STEP_BYTES: usize = 64 << 10;

/// The memory of a file, of which a reader needs some MB at a time.
#[derive(Clone, Copy)]
pub(in crate::formats) struct FileMemory<'a> {
    /// The owner of the file's bytes, if they can be released.
    pub(in crate::formats) owner: Option<&'a dyn Release>,
    /// The bytes of the file.
    pub(in crate::formats) len: usize,
}

impl RunSource for FileMemory<'_> {
    fn release(&self) {
        self.owner.iter().for_each(|owner| owner.release(0..self.len));
    }
}

impl<'a> FileMemory<'a> {
    /// The memory of bytes that nobody can release.
    pub(in crate::formats) fn of_bytes(len: usize) -> FileMemory<'static> {
        FileMemory { owner: None, len }
    }

    /// A text in pieces of whole lines, each with its offset. The file's memory is released behind each large
    /// one.
    pub(in crate::formats) fn pieces<'t>(
        self,
        text: &'t [u8],
    ) -> impl Iterator<Item = (usize, &'t [u8])> + use<'a, 't> {
        let mut start = 0;
        std::iter::from_fn(move || {
            if start >= RELEASE_BYTES
                && let Some(owner) = self.owner
            {
                owner.release(0..self.len);
            }
            let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
            let behind = rest.get(RELEASE_BYTES..).unwrap_or(&[]);
            let len =
                memchr::memchr(b'\n', behind).map_or(rest.len(), |line_end| RELEASE_BYTES + line_end + 1);
            let piece = (start, &rest[..len]);
            start += len;
            Some(piece)
        })
    }

    /// The lines of a text, each with its offset. The file's memory is released behind those that were read.
    pub(in crate::formats) fn lines<'t>(
        self,
        text: &'t [u8],
    ) -> impl Iterator<Item = (usize, &'t [u8])> + use<'a, 't> {
        self.pieces(text).flat_map(|(start, piece)| lines(piece).map(move |(at, line)| (start + at, line)))
    }
}

/// The lines of `text` without their ends, each with its offset in bytes. A line may end with `\n`, with the
/// `\r\n` of Windows, or with `\r\r\n`, into which an old `adb shell` turns `\r\n`.
pub(in crate::formats) fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    let mut reported = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|r| !r.is_empty())?;
        let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let start = at;
        at += len + 1;
        if at - reported >= PROGRESS_STEP_BYTES {
            progress::advance((at - reported) as u64);
            reported = at;
        }
        Some((start, trim_carriage_returns(&rest[..len])))
    })
}

fn trim_carriage_returns(line: &[u8]) -> &[u8] {
    let count = line.iter().rev().take_while(|b| **b == b'\r').count();
    &line[..line.len() - count]
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::Mutex;

    use super::*;

    /// Notes what is released.
    #[derive(Default)]
    struct Released(Mutex<Vec<Range<usize>>>);

    impl Release for Released {
        fn release(&self, range: Range<usize>) {
            self.0.lock().unwrap().push(range);
        }
    }

    #[test]
    fn a_large_text_is_read_in_pieces_of_whole_lines_and_released_behind_each() {
        let text = b"a line of 16 by\n".repeat(2 * RELEASE_BYTES / 16 + 3);
        let owner = Released::default();
        let memory = FileMemory { owner: Some(&owner), len: text.len() };
        let mut end = 0;
        for (start, piece) in memory.pieces(&text) {
            assert!(start == end && piece.ends_with(b"\n") && piece.len() <= RELEASE_BYTES + 16);
            end = start + piece.len();
        }
        assert_eq!(end, text.len());
        assert_eq!(*owner.0.lock().unwrap(), vec![0..text.len(); 3]);
        assert!(memory.lines(&text).eq(lines(&text)));
    }

    #[test]
    fn a_text_without_a_line_end_is_one_piece() {
        let text = vec![b'x'; RELEASE_BYTES + 5];
        let pieces: Vec<(usize, usize)> = FileMemory::of_bytes(text.len())
            .pieces(&text)
            .map(|(start, piece)| (start, piece.len()))
            .collect();
        assert_eq!(pieces, [(0, text.len())]);
        assert_eq!(FileMemory::of_bytes(0).pieces(b"").count(), 0);
    }
}
