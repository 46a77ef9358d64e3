//! Bytes that are copied often and are mostly short.
//!
//! The first N bytes are copied at a fixed length, which takes a few instructions. A copy of any other length
//! takes a call.

/// A byte string for a place where most values have at most `N` bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlineBytes<const N: usize> {
    short: [u8; N],
    /// Number of bytes in `short`.
    len: usize,
    /// The bytes beyond the first `N`.
    rest: Vec<u8>,
}

impl<const N: usize> Default for InlineBytes<N> {
    fn default() -> InlineBytes<N> {
        InlineBytes { short: [0; N], len: 0, rest: Vec::new() }
    }
}

impl<const N: usize> InlineBytes<N> {
    pub fn new(text: &[u8]) -> InlineBytes<N> {
        let mut bytes = InlineBytes::default();
        bytes.set(text);
        bytes
    }

    pub fn set(&mut self, text: &[u8]) {
        let (short, rest) = text.split_at(text.len().min(N));
        self.short[..short.len()].copy_from_slice(short);
        self.len = short.len();
        self.rest.clear();
        self.rest.extend_from_slice(rest);
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes: those at a fixed length, how many of them count, and those behind them.
    #[inline]
    pub fn parts(&self) -> (&[u8; N], usize, &[u8]) {
        (&self.short, self.len, &self.rest)
    }

    /// Appends the bytes to `out`.
    #[inline]
    pub fn push(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.short);
        out.truncate(start + self.len);
        if !self.rest.is_empty() {
            out.extend_from_slice(&self.rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_shorter_and_longer_than_the_inline_part_are_copied_whole() {
        let mut ready = InlineBytes::<4>::default();
        for text in ["", "abc", "abcd", "abcdefgh", "x"] {
            ready.set(text.as_bytes());
            let mut out = b"<".to_vec();
            ready.push(&mut out);
            assert_eq!(out, format!("<{text}").as_bytes());
        }
    }
}
