//! Base64 (RFC 4648, section 4) in texts that other programs have written: with or without padding, and cut.

use std::sync::LazyLock;

use data_encoding::{BASE64_NOPAD, Encoding};

/// Without padding. The bits behind the last whole byte may have any value.
static LENIENT: LazyLock<Encoding> = LazyLock::new(|| {
    let mut specification = BASE64_NOPAD.specification();
    specification.check_trailing_bits = false;
    specification.encoding().unwrap_or(BASE64_NOPAD)
});

/// The bytes that the text at the start of `text` stands for, and the length of that text with its padding.
/// The text ends at the first character that is not base64's. Bits that make no whole byte are dropped.
pub(super) fn decode(text: &[u8]) -> (Vec<u8>, usize) {
    let len = text.iter().take_while(|byte| is_symbol(**byte)).count();
    let padding = text[len..].iter().take_while(|byte| **byte == b'=').count();
    (decode_symbols(&text[..len]).unwrap_or_default(), len + padding)
}

/// The bytes that these characters stand for; `None` where one of them is not base64's, not even as padding.
pub(super) fn decode_symbols(symbols: &[u8]) -> Option<Vec<u8>> {
    // One character has no whole byte.
    let len = if symbols.len() % 4 == 1 { symbols.len() - 1 } else { symbols.len() };
    let is_last_known = symbols[len..].iter().all(|byte| is_symbol(*byte));
    LENIENT.decode(&symbols[..len]).ok().filter(|_| is_last_known)
}

fn is_symbol(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')
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

    #[test]
    fn what_is_cut_keeps_its_whole_bytes() {
        for (text, bytes) in
            [("Zm9vY", "foo"), ("Zm9vYm", "foob"), ("Zm9vYn", "foob"), ("Zm9vYmE", "fooba"), ("Z", "")]
        {
            assert_eq!(decode(text.as_bytes()), (bytes.as_bytes().to_vec(), text.len()), "{text}");
        }
        assert_eq!(decode_symbols(b"Zm9v-"), None);
        assert_eq!(decode_symbols(b"Zm-v"), None);
    }
}
