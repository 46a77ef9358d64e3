//! Decodes base64 (RFC 4648, section 4).

/// The bytes that the text at the start of `text` stands for, and the length of that text with its padding.
/// The text ends at the first character that is not base64's. Bits that make no whole byte are dropped.
pub(super) fn decode(text: &[u8]) -> (Vec<u8>, usize) {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let (mut bits, mut count) = (0u32, 0);
    let mut len = 0;
    for sextet in text.iter().map_while(|byte| sextet(*byte)) {
        bits = bits << 6 | u32::from(sextet);
        count += 6;
        len += 1;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    let padding = text[len..].iter().take_while(|byte| **byte == b'=').count();
    (out, len + padding)
}

fn sextet(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard_are_decoded() {
        for (text, bytes) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm9vYmE=", "fooba"),
        ] {
            assert_eq!(decode(text.as_bytes()), (bytes.as_bytes().to_vec(), text.len()));
        }
        assert_eq!(decode(b"+/+/\r\nZm9v"), (vec![0xfb, 0xff, 0xbf], 4));
    }
}
