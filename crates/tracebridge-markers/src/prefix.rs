//! The part that is the same in all markers of a process, and numbers as text, without the machinery of
//! `format!`.

/// The most bytes that an `i64` takes in decimal.
pub const MAX_DIGITS: usize = 20;

/// `|pid|`: the part that is the same in all markers of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix([u8; Prefix::ROOM]);

impl Prefix {
    /// Room for the text, and for its length in the last byte.
    pub const ROOM: usize = 16;

    /// Makes the prefix of the markers of this process.
    pub fn new(pid: i32) -> Prefix {
        let mut bytes = [b'|'; Prefix::ROOM];
        let end = put_decimal(&mut bytes, 1, i64::from(pid));
        bytes[Prefix::ROOM - 1] = end as u8 + 1;
        Prefix(bytes)
    }

    /// The bytes as two words.
    pub fn words(self) -> [u64; 2] {
        let (words, _) = self.0.as_chunks::<8>();
        [u64::from_ne_bytes(words[0]), u64::from_ne_bytes(words[1])]
    }

    /// The prefix that [`Prefix::words`] gave.
    #[inline]
    pub fn from_words(words: [u64; 2]) -> Prefix {
        let mut bytes = [0; Prefix::ROOM];
        bytes[..8].copy_from_slice(&words[0].to_ne_bytes());
        bytes[8..].copy_from_slice(&words[1].to_ne_bytes());
        Prefix(bytes)
    }

    /// The process id in the text.
    pub fn pid(&self) -> i32 {
        let digits = &self.0[1..self.len() - 1];
        std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    /// The text, followed by bytes without a meaning.
    #[inline]
    pub fn bytes(&self) -> &[u8; Prefix::ROOM] {
        &self.0
    }

    /// The length of the text, in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.0[Prefix::ROOM - 1])
    }
}

/// The texts of 0 to 99.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

/// The two decimal digits of `v`, which must be below 100. Writing two digits per step halves the chain of
/// divisions that depend on each other.
#[inline]
pub fn two_digits(v: u32) -> [u8; 2] {
    PAIRS[v as usize % 100]
}

/// Returns how many bytes [`put_decimal`] writes.
#[inline]
pub fn decimal_len(value: i64) -> usize {
    usize::from(value < 0) + value.unsigned_abs().checked_ilog10().unwrap_or(0) as usize + 1
}

/// Writes `value` in decimal into `buf` from `start` on, and returns where it ends. `buf` must have
/// [`decimal_len`] bytes from there.
#[inline]
pub fn put_decimal(buf: &mut [u8], start: usize, value: i64) -> usize {
    let end = start + decimal_len(value);
    let digits = &mut buf[start..end];
    if value < 0 {
        digits[0] = b'-';
    }
    let first = usize::from(value < 0);
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    while at >= first + 2 {
        digits[at - 2..at].copy_from_slice(&two_digits((rest % 100) as u32));
        rest /= 100;
        at -= 2;
    }
    if at > first {
        digits[first] = b'0' + rest as u8;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_survives_the_way_through_two_words() {
        for pid in [0, 1, 42, 4_194_304, i32::MAX, i32::MIN] {
            let prefix = Prefix::new(pid);
            assert_eq!(Prefix::from_words(prefix.words()), prefix);
            assert_eq!(&prefix.bytes()[..prefix.len()], format!("|{pid}|").as_bytes());
        }
    }

    #[test]
    fn numbers_are_written_as_the_standard_library_writes_them() {
        for value in [0, 1, 9, 10, 99, 100, -1, -10, 12_345_678, i64::MAX, i64::MIN, i64::MIN + 1] {
            let mut buf = [b'x'; MAX_DIGITS + 2];
            let end = put_decimal(&mut buf, 1, value);
            assert_eq!(&buf[1..end], value.to_string().as_bytes());
            assert!(buf[0] == b'x' && buf[end..].iter().all(|b| *b == b'x'), "{value}");
        }
    }
}
