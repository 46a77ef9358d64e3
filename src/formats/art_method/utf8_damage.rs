//! Detects files whose binary part a tool has treated as text and re-encoded as UTF-8.

use super::Error;

/// The size of the inspected start of the binary part, bytes: enough for hundreds of records.
const INSPECTED_BYTES: usize = 8 << 10;

/// With fewer suspicious characters than this, intact records may look like UTF-8 by chance.
const MIN_SUSPICIOUS_CHARS: usize = 4;

/// Returns an error if `data`, which begins at `offset` of the file, was re-encoded as UTF-8.
pub fn check(data: &[u8], offset: usize) -> Result<(), Error> {
    let head = &data[..data.len().min(INSPECTED_BYTES)];
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The inspected bytes may end in the middle of a character.
        Err(e) if e.error_len().is_none() => {
            std::str::from_utf8(&head[..e.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return Ok(()),
    };
    let find = |range: std::ops::RangeInclusive<char>| {
        let mut hits = text.char_indices().filter(|(_, c)| range.contains(c));
        let first = hits.next().map(|(at, _)| (offset + at) as u64);
        first.map(|at| (at, 1 + hits.count()))
    };
    if let Some((offset, count)) = find('\u{fffd}'..='\u{fffd}')
        && count >= MIN_SUSPICIOUS_CHARS
    {
        let cure = "What they were is lost: take the file from its source again, and move it with tools that do not \
                    treat it as text (adb pull, adb exec-out, a binary attachment)";
        return Err(Error::Reencoded { offset, became: "EF BF BD", cure });
    }
    if let Some((offset, count)) = find('\u{80}'..='\u{ff}')
        && count >= MIN_SUSPICIOUS_CHARS
    {
        let cure = "This can be undone: iconv -f UTF-8 -t ISO-8859-1 FILE > REPAIRED";
        return Err(Error::Reencoded { offset, became: "two bytes, C2 or C3 first", cure });
    }
    Ok(())
}
