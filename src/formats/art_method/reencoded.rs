//! Tells a binary part that some tool took for text and re-encoded.

use super::Error;

/// How much of the binary part is looked at, bytes: enough for hundreds of records.
const LOOK_AT: usize = 8 << 10;

/// Below this many characters of the kind in question chance is not ruled out.
const MIN_EVIDENCE: usize = 4;

/// The error for `data` (which begins at `offset` of the file) if it was re-encoded as UTF-8.
pub fn check(data: &[u8], offset: usize) -> Result<(), Error> {
    let head = &data[..data.len().min(LOOK_AT)];
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // A character may be cut at the end of what is looked at.
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
        && count >= MIN_EVIDENCE
    {
        let cure = "What they were is lost: take the file from its source again, and move it with tools that do not \
                    treat it as text (adb pull, adb exec-out, a binary attachment)";
        return Err(Error::Reencoded { offset, became: "EF BF BD", cure });
    }
    if let Some((offset, count)) = find('\u{80}'..='\u{ff}')
        && count >= MIN_EVIDENCE
    {
        let cure = "This can be undone: iconv -f UTF-8 -t ISO-8859-1 FILE > REPAIRED";
        return Err(Error::Reencoded { offset, became: "two bytes, C2 or C3 first", cure });
    }
    Ok(())
}
