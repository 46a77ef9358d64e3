//! Splits a text into lines.

use crate::progress;

/// After so many bytes the progress is told.
const PROGRESS_STEP_BYTES: usize = 64 << 10;

/// The lines of `text` without their ends, each with its offset in bytes. A line may end with `\n`, with the
/// `\r\n` of Windows, or with `\r\r\n`, into which an old `adb shell` turns `\r\n`.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let (mut at, mut told) = (0, 0);
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|r| !r.is_empty())?;
        let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let start = at;
        at += len + 1;
        if at - told >= PROGRESS_STEP_BYTES {
            progress::advance((at - told) as u64);
            told = at;
        }
        Some((start, trim_carriage_returns(&rest[..len])))
    })
}

fn trim_carriage_returns(line: &[u8]) -> &[u8] {
    let count = line.iter().rev().take_while(|b| **b == b'\r').count();
    &line[..line.len() - count]
}
