//! Writes numbers as text without allocation.

use super::two_digits;

/// The hexadecimal texts of all bytes.
static HEX_PAIRS: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut i = 0;
    while i < 256 {
        pairs[i] = [digits[i / 16], digits[i % 16]];
        i += 1;
    }
    pairs
};

/// Writes the decimal digits of `v` so that they end before `end`. Returns where they start.
#[inline]
fn digits(mut v: u64, buffer: &mut [u8], end: usize) -> usize {
    let mut at = end;
    while v >= 100 {
        let pair = two_digits((v % 100) as u32);
        v /= 100;
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&pair);
    }
    if v >= 10 {
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&two_digits(v as u32));
    } else {
        at -= 1;
        buffer[at] = b'0' + v as u8;
    }
    at
}

/// Writes the decimal digits of `v` to the end of `buffer`. Returns where they start.
#[inline]
pub fn decimal(v: u64, buffer: &mut [u8; 24]) -> usize {
    digits(v, buffer, 24)
}

/// Writes the digits of `v` in base 2^`bits` to the end of `buffer`. Returns where they start.
#[inline]
pub(crate) fn power_of_two(mut v: u64, bits: u32, upper: bool, buffer: &mut [u8; 24]) -> usize {
    let digits: &[u8; 16] = if upper { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
    let mask = (1 << bits) - 1;
    let mut at = buffer.len();
    loop {
        at -= 1;
        buffer[at] = digits[(v & mask) as usize & 15];
        v >>= bits;
        if v == 0 || at == 0 {
            return at;
        }
    }
}

/// The digits of `v`, and their number.
#[inline]
pub(crate) fn long_decimal(v: u64) -> ([u8; 20], usize) {
    let len = v.checked_ilog10().unwrap_or(0) as usize + 1;
    let mut buffer = [0u8; 20];
    digits(v, &mut buffer, len);
    (buffer, len)
}

/// Appends `v` in decimal.
#[inline]
pub(crate) fn push_u64(out: &mut Vec<u8>, v: u64) {
    // The whole buffer is copied and then cut: a copy of fixed length is two instructions, any other copy a
    // call.
    let (digits, len) = long_decimal(v);
    let start = out.len();
    out.extend_from_slice(&digits);
    out.truncate(start + len);
}

/// Appends `v` in decimal, with a sign if it is negative.
#[inline]
pub fn push_i64(out: &mut Vec<u8>, v: i64) {
    if v < 0 {
        out.push(b'-');
    }
    push_u64(out, v.unsigned_abs());
}

/// The eight digits of `v`, which must be below 10^8. All are made at once: the two halves of four, then the
/// four pairs, then the digits lie side by side in one word.
#[inline]
pub fn eight_digits(v: u32) -> [u8; 8] {
    let v = u64::from(v);
    let fours = (v / 10_000) | ((v % 10_000) << 32);
    // n / 100 of both numbers below 10,000, and n / 10 of all four below 100, by multiplication.
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let pairs = hundreds | ((fours - 100 * hundreds) << 16);
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    let digits = tens | ((pairs - 10 * tens) << 8);
    (digits | 0x3030_3030_3030_3030).to_le_bytes()
}

/// The digits of `v`, which must be below 10^8, and their number.
#[inline]
pub(crate) fn short_decimal(v: u32) -> ([u8; 8], usize) {
    let digits = u64::from_le_bytes(eight_digits(v));
    // The first digit is in the lowest byte. The last one counts also where it is 0.
    let zeros = ((digits & 0x0f0f_0f0f_0f0f_0f0f) | (1 << 56)).trailing_zeros() / 8;
    ((digits >> (8 * zeros)).to_le_bytes(), 8 - zeros as usize)
}

/// `v` in lower-case hexadecimal with at least `width` digits, and the number of digits. A `width` above 16
/// counts as 16.
#[inline]
pub(crate) fn hex(v: u64, width: usize) -> ([u8; 16], usize) {
    let unused = ((v | 1).leading_zeros() / 4).min(16 - width.clamp(1, 16) as u32);
    let mut digits = [0; 16];
    for (pair, byte) in digits.chunks_exact_mut(2).zip((v << (4 * unused)).to_be_bytes()) {
        pair.copy_from_slice(&HEX_PAIRS[usize::from(byte)]);
    }
    (digits, 16 - unused as usize)
}

/// Appends `v` in lower-case hexadecimal.
#[inline]
pub fn push_hex(out: &mut Vec<u8>, v: u64) {
    push_hex_padded(out, v, 1);
}

/// Appends `v` in lower-case hexadecimal with at least `width` digits. A `width` above 16 counts as 16.
#[inline]
pub(crate) fn push_hex_padded(out: &mut Vec<u8>, v: u64, width: usize) {
    let (digits, len) = hex(v, width);
    let start = out.len();
    out.extend_from_slice(&digits);
    out.truncate(start + len);
}

/// Appends `v` in decimal with at least `width` characters, filled with `fill` on the left.
#[inline]
pub fn push_padded(out: &mut Vec<u8>, v: u64, width: usize, fill: u8) {
    let mut buffer = [fill; 24];
    let at = decimal(v, &mut buffer);
    out.extend_from_slice(&buffer[at.min(24 - width.min(24))..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_are_printed() {
        for v in [0, 9, 10, 0xfff, 0x1234_5678, 0x1_2345_6789, 99, 100, 12345, 999_999, u64::MAX] {
            let mut out = Vec::new();
            push_u64(&mut out, v);
            assert_eq!(out, v.to_string().as_bytes());
            out.clear();
            push_hex(&mut out, v);
            assert_eq!(out, format!("{v:x}").as_bytes());
            out.clear();
            push_hex_padded(&mut out, v, 8);
            assert_eq!(out, format!("{v:08x}").as_bytes());
            out.clear();
            push_padded(&mut out, v, 6, b'0');
            assert_eq!(out, format!("{v:06}").as_bytes());
        }
        let mut out = Vec::new();
        push_i64(&mut out, i64::MIN);
        assert_eq!(out, i64::MIN.to_string().as_bytes());
    }
}
