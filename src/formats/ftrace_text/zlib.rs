//! Decompresses traces: the zlib stream that `atrace -z` prints, and a zlib stream in base64 inside a page.

use std::io::Read;

use flate2::read::ZlibDecoder;

use crate::formats::{Damage, ReadReport};

/// The most bytes that a compressed text may unpack to. The buffers of a phone hold far less.
const MAX_INFLATED_BYTES: u64 = 2 << 30;

/// Whether `data` starts with the two header bytes of RFC 1950: the method is deflate, and the check bits
/// fit.
pub(super) fn is_zlib(data: &[u8]) -> bool {
    matches!(data, [cmf, flg, ..] if cmf & 0x0f == 8 && (u32::from(*cmf) << 8 | u32::from(*flg)) % 31 == 0)
}

/// Decompresses the zlib stream at the start of `data` up to its end or its first damage. `offset` is the
/// offset of `data` in the file.
pub(super) fn inflate(data: &[u8], offset: u64, report: &mut ReadReport) -> Vec<u8> {
    let mut out = Vec::new();
    let mut decoder = ZlibDecoder::new(data);
    let result = decoder.by_ref().take(MAX_INFLATED_BYTES).read_to_end(&mut out);
    let used = decoder.total_in();
    let mut damage = |what: String| report.damage.push(Damage { offset: offset + used, what });
    match result {
        Err(error) => damage(format!("the compressed text ends here ({error}); what came before it is used")),
        Ok(_) if out.len() as u64 == MAX_INFLATED_BYTES => {
            damage(format!("the compressed text is over {MAX_INFLATED_BYTES} bytes; the rest is left out"));
        }
        Ok(_) => {
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
    if !text.starts_with(b"eJ") && !text.starts_with(b"eA") {
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

    #[test]
    fn only_base64_text_with_a_zlib_header_is_decoded() {
        // `zlib.compress(b"# tracer: nop\n")`.
        let text = b"eJxTVigpSkxOLbJSyMsv4AIAIWQEdg==";
        let mut report = ReadReport::default();
        let zlib = base64_zlib(text).unwrap();
        assert_eq!(inflate(&zlib, 0, &mut report), b"# tracer: nop\n");
        assert!(report.damage.is_empty() && report.notes.is_empty(), "{report:?}");
        assert_eq!(base64_zlib(b"eJ is how this line starts"), None);
        assert_eq!(base64_zlib(b"# tracer: nop"), None);
    }

    #[test]
    fn bytes_behind_a_stream_are_noted_and_a_cut_stream_is_damage() {
        let zlib = base64_zlib(b"eJxTVigpSkxOLbJSyMsv4AIAIWQEdg==").unwrap();
        let mut report = ReadReport::default();
        inflate(&[&zlib[..], b"xyz"].concat(), 0, &mut report);
        assert_eq!((report.damage.len(), report.notes.len()), (0, 1));
        inflate(&zlib[..zlib.len() - 6], 100, &mut report);
        assert!(report.damage[0].offset > 100, "{report:?}");
    }
}
