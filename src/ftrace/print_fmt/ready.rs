//! Text that is copied often: its first N bytes at a known length, which takes a few moves, where a copy of unknown
//! length takes a call.

/// A text of which most are no longer than `N` bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ready<const N: usize> {
    short: [u8; N],
    /// Of `short`.
    len: usize,
    /// What is longer than `short`.
    rest: Vec<u8>,
}

impl<const N: usize> Default for Ready<N> {
    fn default() -> Ready<N> {
        Ready { short: [0; N], len: 0, rest: Vec::new() }
    }
}

impl<const N: usize> Ready<N> {
    pub(crate) fn new(text: &[u8]) -> Ready<N> {
        let mut ready = Ready::default();
        ready.set(text);
        ready
    }

    pub(crate) fn set(&mut self, text: &[u8]) {
        let (short, rest) = text.split_at(text.len().min(N));
        self.short[..short.len()].copy_from_slice(short);
        self.len = short.len();
        self.rest.clear();
        self.rest.extend_from_slice(rest);
    }

    /// Appends the text.
    #[inline]
    pub(crate) fn push(&self, out: &mut Vec<u8>) {
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
    fn texts_shorter_and_longer_than_the_room_come_out_whole() {
        let mut ready = Ready::<4>::default();
        for text in ["", "abc", "abcd", "abcdefgh", "x"] {
            ready.set(text.as_bytes());
            let mut out = b"<".to_vec();
            ready.push(&mut out);
            assert_eq!(out, format!("<{text}").as_bytes());
        }
    }
}
