//! LEB128 numbers of up to 64 bits, unsigned (ULEB) and signed (SLEB).

/// Decodes an unsigned number and removes it from `bytes`; `None` where the bytes end inside of it.
#[inline]
pub fn uleb(bytes: &mut &[u8]) -> Option<u64> {
    leb(bytes).map(|(value, _, _)| value)
}

/// Decodes a signed number and removes it from `bytes`; `None` where the bytes end inside of it.
#[inline]
pub fn sleb(bytes: &mut &[u8]) -> Option<i64> {
    let (value, bits, last) = leb(bytes)?;
    let negative = last & 0x40 != 0 && bits < 64;
    Some(if negative { value | u64::MAX << bits } else { value } as i64)
}

/// The number of whole numbers in `bytes`: each ends with a byte whose highest bit is clear.
pub fn count(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| ends(**byte)).count() as u64
}

/// Whether a number ends with this byte.
#[inline]
pub fn ends(byte: u8) -> bool {
    byte & 0x80 == 0
}

/// Decodes a number and removes it from `bytes`. Returns its value, the number of its bits, and its last
/// byte. Drops bits beyond the 64th.
#[inline]
fn leb(bytes: &mut &[u8]) -> Option<(u64, u32, u8)> {
    let mut value = 0;
    let mut bits = 0;
    for (n, byte) in bytes.iter().enumerate() {
        if bits < 64 {
            value |= u64::from(byte & 0x7f) << bits;
            bits += 7;
        }
        if ends(*byte) {
            *bytes = &bytes[n + 1..];
            return Some((value, bits, *byte));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_both_signs() {
        let mut bytes: &[u8] = &[0xe5, 0x8e, 0x26, 0x9b, 0xf1, 0x59, 0x7f, 0x80];
        assert_eq!(count(bytes), 3);
        assert_eq!(uleb(&mut bytes), Some(624_485));
        assert_eq!(sleb(&mut bytes), Some(-624_485));
        assert_eq!(sleb(&mut bytes), Some(-1));
        assert_eq!(uleb(&mut bytes), None);
    }
}
