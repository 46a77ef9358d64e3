//! Bytes as hexadecimal digits.

/// Bytes as two lower-case digits each, as `sha256sum` prints them.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_two_digits() {
        assert_eq!(hexadecimal(&[]), "");
        assert_eq!(hexadecimal(&[0, 9, 10, 0x5f, 0xf5, 255]), "00090a5ff5ff");
    }
}
