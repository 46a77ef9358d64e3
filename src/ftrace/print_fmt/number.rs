//! Numbers to text without allocation.

static PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut i = 0;
    while i < 100 {
        pairs[2 * i] = b'0' + (i / 10) as u8;
        pairs[2 * i + 1] = b'0' + (i % 10) as u8;
        i += 1;
    }
    pairs
};

/// Writes the decimal digits of `v` so that they end before `end`; hands back where they start.
#[inline]
fn digits(mut v: u64, buffer: &mut [u8], end: usize) -> usize {
    let mut at = end;
    while v >= 100 {
        let pair = (v % 100) as usize * 2;
        v /= 100;
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if v >= 10 {
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&PAIRS[v as usize * 2..v as usize * 2 + 2]);
    } else {
        at -= 1;
        buffer[at] = b'0' + v as u8;
    }
    at
}

/// The decimal digits of `v`, at the end of `buffer`; hands back where they start.
#[inline]
pub(crate) fn decimal(v: u64, buffer: &mut [u8; 24]) -> usize {
    digits(v, buffer, 24)
}

/// The digits of `v` in base 2^`bits`, at the end of `buffer`.
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

/// Appends `v` in decimal.
#[inline]
pub(crate) fn push_u64(out: &mut Vec<u8>, v: u64) {
    // The buffer is copied whole and cut: a copy of known length is two moves, one of unknown length a call.
    let len = v.checked_ilog10().unwrap_or(0) as usize + 1;
    let mut buffer = [0u8; 20];
    digits(v, &mut buffer, len);
    let start = out.len();
    out.extend_from_slice(&buffer);
    out.truncate(start + len);
}

/// Appends `v` in decimal.
#[inline]
pub(crate) fn push_i64(out: &mut Vec<u8>, v: i64) {
    if v < 0 {
        out.push(b'-');
    }
    push_u64(out, v.unsigned_abs());
}

/// Appends `v` in lower-case hexadecimal.
#[inline]
pub(crate) fn push_hex(out: &mut Vec<u8>, v: u64) {
    let len = (v | 1).ilog2() as usize / 4 + 1;
    let mut buffer = [0u8; 16];
    for (i, digit) in buffer.iter_mut().take(len).enumerate() {
        *digit = b"0123456789abcdef"[(v >> (4 * (len - 1 - i))) as usize & 15];
    }
    let start = out.len();
    out.extend_from_slice(&buffer);
    out.truncate(start + len);
}

/// Appends `v` in lower-case hexadecimal with at least `width` digits.
pub(crate) fn push_hex_padded(out: &mut Vec<u8>, v: u64, width: usize) {
    let mut buffer = [b'0'; 24];
    let at = power_of_two(v, 4, false, &mut buffer);
    out.extend_from_slice(&buffer[at.min(24 - width.min(24))..]);
}

/// Appends `v` in decimal with at least `width` characters, filled with `fill` on the left.
#[inline]
pub(crate) fn push_padded(out: &mut Vec<u8>, v: u64, width: usize, fill: u8) {
    let mut buffer = [fill; 24];
    let at = decimal(v, &mut buffer);
    out.extend_from_slice(&buffer[at.min(24 - width.min(24))..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_of_number() {
        for v in [0, 9, 10, 99, 100, 12345, 999_999, u64::MAX] {
            let mut out = Vec::new();
            push_u64(&mut out, v);
            assert_eq!(out, v.to_string().as_bytes());
            out.clear();
            push_hex(&mut out, v);
            assert_eq!(out, format!("{v:x}").as_bytes());
            out.clear();
            push_padded(&mut out, v, 6, b'0');
            assert_eq!(out, format!("{v:06}").as_bytes());
        }
        let mut out = Vec::new();
        push_i64(&mut out, i64::MIN);
        assert_eq!(out, i64::MIN.to_string().as_bytes());
    }
}
