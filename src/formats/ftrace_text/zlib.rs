//! Decompresses traces: the zlib stream that `atrace -z` prints, and a zlib stream in base64 inside a page.

use flate2::read::ZlibDecoder;

use crate::formats::unpack_budget::{UnpackBudget, is_over_limit};
use crate::formats::{Damage, ReadReport};

/// Whether `data` starts with the two header bytes of RFC 1950: the method is deflate, and the check bits
/// fit.
pub(super) fn is_zlib(data: &[u8]) -> bool {
    matches!(data, [cmf, flg, ..] if cmf & 0x0f == 8 && (u32::from(*cmf) << 8 | u32::from(*flg)) % 31 == 0)
}

/// Decompresses the zlib stream at the start of `data` up to its end or its first damage. `offset` is the
/// offset of `data` in the file.
pub(super) fn inflate(data: &[u8], offset: u64, budget: &UnpackBudget, report: &mut ReadReport) -> Vec<u8> {
    let mut out = Vec::new();
    let mut decoder = ZlibDecoder::new(data);
    let result = budget.read_to_end(&mut decoder, &mut out);
    let used = decoder.total_in();
    let mut damage = |what: String| report.damage.push(Damage { offset: offset + used, what });
    match result {
        Err(error) if is_over_limit(&error) => {
            damage(format!("the compressed text {error}; the rest is left out"));
        }
        Err(error) => damage(format!("the compressed text ends here ({error}); what came before it is used")),
        Ok(()) => {
            let behind = data.len() as u64 - used;
            if behind > 0 {
                report.notes.push(format!("{behind} bytes behind the compressed text are no part of it"));
            }
        }
    }
    out
}

/// The zlib stream that `text` holds in base64, as `systrace --compress` once wrote it into a page; `None`
/// where the text is something else.
pub(super) fn base64_zlib(text: &[u8]) -> Option<Vec<u8>> {
    // The four levels of zlib begin with the bytes 78 01, 78 5e, 78 9c and 78 da.
    if ![&b"eA"[..], b"eF", b"eJ", b"eN"].iter().any(|start| text.starts_with(start)) {
        return None;
    }
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut n) = (0u32, 0);
    for c in text.iter().filter(|c| !c.is_ascii_whitespace() && **c != b'=') {
        let six = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        n += 6;
        if n >= 8 {
            n -= 8;
            out.push((bits >> n) as u8);
        }
    }
    is_zlib(&out).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::unpack_budget::UnpackLimit;

    fn budget() -> UnpackBudget {
        UnpackLimit::default().budget(0)
    }

    #[test]
    fn only_base64_text_with_a_zlib_header_is_decoded() {
        // `zlib.compress(b"# tracer: nop\n")`.
        let text = b"eJxTVigpSkxOLbJSyMsv4AIAIWQEdg==";
        let mut report = ReadReport::default();
        let zlib = base64_zlib(text).unwrap();
        assert_eq!(inflate(&zlib, 0, &budget(), &mut report), b"# tracer: nop\n");
        assert!(report.damage.is_empty() && report.notes.is_empty(), "{report:?}");
        assert_eq!(base64_zlib(b"eJ is how this line starts"), None);
        assert_eq!(base64_zlib(b"# tracer: nop"), None);
    }

    #[test]
    fn bytes_behind_a_stream_are_noted_and_a_cut_stream_is_damage() {
        let zlib = base64_zlib(b"eJxTVigpSkxOLbJSyMsv4AIAIWQEdg==").unwrap();
        let mut report = ReadReport::default();
        inflate(&[&zlib[..], b"xyz"].concat(), 0, &budget(), &mut report);
        assert_eq!((report.damage.len(), report.notes.len()), (0, 1));
        inflate(&zlib[..zlib.len() - 6], 100, &budget(), &mut report);
        assert!(report.damage[0].offset > 100, "{report:?}");
    }
}
