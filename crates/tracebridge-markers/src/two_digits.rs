//! Two decimal digits at a time: half the divisions of one at a time, each of which waits for the one before.

static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

/// The two decimal digits of `v`, which must be below 100.
#[inline]
pub fn two_digits(v: u32) -> [u8; 2] {
    PAIRS[v as usize % 100]
}
