//! Puts a text together of short pieces.
//!
//! A line consists of some twenty pieces of a few bytes each. Appended one by one to a `Vec`, each piece
//! reads the vector's length from memory, checks its capacity and writes the length back. Here the length
//! stays in a register, and a piece is copied at a fixed length, which takes a few instructions. A copy of
//! any other length takes a call, so that [`InlineBytes`] has bytes that are copied often at a fixed length.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{digits, end_no_line, until_nul};

/// The pieces are appended once they have more bytes than this: about one line.
const FULL: usize = 192;
/// The longest piece, bytes.
const MAX_PIECE: usize = 64;

/// Room for the pieces that are not appended yet. To make it costs more than a piece, so it is used again.
pub struct PieceRoom([u8; FULL + MAX_PIECE]);

impl Default for PieceRoom {
    fn default() -> PieceRoom {
        PieceRoom([0; FULL + MAX_PIECE])
    }
}

/// A text and the pieces that will be appended to it.
pub struct PieceWriter<'a> {
    room: &'a mut PieceRoom,
    /// Bytes of the pieces in `room`.
    len: usize,
    out: &'a mut Vec<u8>,
}

impl<'a> PieceWriter<'a> {
    /// Appends to `out`. What is in `room` does not count.
    #[inline(always)]
    pub fn new(room: &'a mut PieceRoom, out: &'a mut Vec<u8>) -> PieceWriter<'a> {
        PieceWriter { room, len: 0, out }
    }

    /// Calls `print` with a copy of this writer, whose length the compiler can keep in a register. If `print`
    /// fails, nothing is added.
    #[inline(always)]
    pub fn attempt(&mut self, print: impl FnOnce(&mut PieceWriter<'_>) -> Option<()>) -> Option<()> {
        let start = self.out.len() + self.len;
        let mut copy = PieceWriter { room: &mut *self.room, len: self.len, out: &mut *self.out };
        let done = print(&mut copy);
        self.len = copy.len;
        if done.is_none() {
            self.long().truncate(start);
        }
        done
    }

    /// Adds the first `len` bytes of `piece`.
    #[inline(always)]
    pub fn put<const N: usize>(&mut self, piece: &[u8; N], len: usize) {
        const { assert!(N <= MAX_PIECE) };
        if self.len > FULL {
            append(self.out, self.room, self.len);
            self.len = 0;
        }
        let at = self.len;
        self.room.0[at..at + N].copy_from_slice(piece);
        self.len = at + len;
    }

    /// The text with all pieces, for an addition that may be long.
    #[inline(always)]
    pub fn long(&mut self) -> &mut Vec<u8> {
        append(self.out, self.room, self.len);
        self.len = 0;
        self.out
    }

    /// Adds a text that is mostly short.
    #[inline(always)]
    pub fn text<const N: usize>(&mut self, text: &InlineBytes<N>) {
        let (short, len, rest) = text.parts();
        self.put(short, len);
        if !rest.is_empty() {
            self.long().extend_from_slice(rest);
        }
    }

    /// Adds the bytes before the first NUL of `bytes`, or all of them. The name of a thread stays in its
    /// line: whoever names it may write any byte, and a line end would make two lines of an event.
    #[inline(always)]
    pub fn until_nul(&mut self, bytes: &[u8]) {
        // Names of threads have 16 bytes.
        match <&[u8; 16]>::try_from(bytes) {
            Ok(name) if may_end_line(name) => self.put(&one_line(*name), until_nul(name).len()),
            Ok(name) => self.put(name, until_nul(name).len()),
            Err(_) => self.long().extend_from_slice(until_nul(bytes)),
        }
    }

    /// Adds `v` in decimal.
    #[inline(always)]
    pub fn decimal(&mut self, v: u64) {
        if v < 10 {
            self.put(&[b'0' + v as u8], 1);
        } else if v < 100_000_000 {
            let (digits, len) = digits::short_decimal(v as u32);
            self.put(&digits, len);
        } else {
            let (digits, len) = digits::long_decimal(v);
            self.put(&digits, len);
        }
    }

    /// Adds `v` in decimal, with a sign if it is negative.
    #[inline(always)]
    pub(crate) fn signed_decimal(&mut self, v: i64) {
        if v < 0 {
            self.put(b"-", 1);
        }
        self.decimal(v.unsigned_abs());
    }

    /// Adds `v` in lower-case hexadecimal with at least `width` digits. A `width` above 16 counts as 16.
    #[inline(always)]
    pub fn hex(&mut self, v: u64, width: usize) {
        let (digits, len) = digits::hex(v, width);
        self.put(&digits, len);
    }
}

/// Whether one of the bytes is a line end; may be true for other bytes from 8 to 15 as well.
#[inline(always)]
fn may_end_line(name: &[u8; 16]) -> bool {
    const ONES: u128 = u128::MAX / 255;
    // Bytes from 8 to 15 become those below 8.
    let bytes = u128::from_le_bytes(*name) ^ (ONES * 8);
    bytes.wrapping_sub(ONES * 8) & !bytes & (ONES * 0x80) != 0
}

#[cold]
fn one_line(mut name: [u8; 16]) -> [u8; 16] {
    end_no_line(&mut name);
    name
}

/// Takes no writer, because a writer whose address is passed on cannot be kept in registers.
#[inline(never)]
fn append(out: &mut Vec<u8>, room: &PieceRoom, len: usize) {
    out.extend_from_slice(&room.0[..len]);
}

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

// Caches the texts of numbers that cost much to print: addresses, whose symbols are searched for, and flags
// with names.
//
// Events come from few places in the kernel and have few combinations of flags, so most texts are printed
// again soon.

/// log2 of the number of texts that each thread keeps.
const CACHE_BITS: u32 = 11;

/// The key of a cached text: the [`render_id`] of the source of names, the way of printing, and the number.
/// The way of printing is a [`render_id`] too, or 0 or 1 for symbols without and with their offset.
pub(crate) type RenderKey = (u64, u64, u64);

/// Returns an id that no other caller in this process gets. Ids are larger than 1.
pub(crate) fn render_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(2);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

thread_local! {
    static CACHE: RefCell<Vec<(RenderKey, InlineBytes<40>)>> = const { RefCell::new(Vec::new()) };
}

/// Calls `with` with the text of `key`. Where the cache does not have the text, `make` appends it to an empty
/// one. `None` where `make` fails.
#[inline]
pub(crate) fn with_rendered(
    key: RenderKey,
    make: impl FnOnce(&mut Vec<u8>) -> Option<()>,
    with: impl FnOnce(&InlineBytes<40>),
) -> Option<()> {
    let mixed = (key.1 ^ key.2.rotate_left(8)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let slot = (mixed >> (u64::BITS - CACHE_BITS)) as usize;
    CACHE.with_borrow_mut(|cache| {
        if cache.is_empty() {
            cache.resize_with(1 << CACHE_BITS, Default::default);
        }
        let (cached_key, text) = &mut cache[slot];
        // The keys of empty slots are all 0. No other key is: no id is 0.
        if *cached_key != key {
            let mut made = Vec::new();
            make(&mut made)?;
            text.set(&made);
            *cached_key = key;
        }
        with(text);
        Some(())
    })
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

    #[test]
    fn line_ends_in_a_threads_name_become_blanks() {
        let mut room = PieceRoom::default();
        for other in 0..=u8::MAX {
            for end in [b'\n', b'\r', other] {
                let name = [b'a', other, b'b', end, 0, b'\n', 0, 0, 0, 0, 0, 0, 0, 0, 0, b'\n'];
                let mut out = Vec::new();
                let mut line = PieceWriter::new(&mut room, &mut out);
                line.until_nul(&name);
                line.long();
                let shown = |byte: u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte };
                let want = [b'a', shown(other), b'b', shown(end)];
                assert_eq!(out, until_nul(&want), "{name:?}");
            }
        }
    }

    #[test]
    fn pieces_are_appended_in_their_order_whatever_their_lengths() {
        let mut room = PieceRoom::default();
        let mut out = Vec::new();
        let mut want = Vec::new();
        let mut line = PieceWriter::new(&mut room, &mut out);
        for n in 0..300_u64 {
            let text = vec![b'a' + (n % 26) as u8; (n % 70) as usize];
            line.text(&InlineBytes::<32>::new(&text));
            line.hex(n, 4);
            line.signed_decimal(n as i64 - 100);
            let mut name = [0; 16];
            let length = (n % 17) as usize;
            name[..length].fill(b'n');
            line.until_nul(&name);
            want.extend_from_slice(&text);
            want.extend_from_slice(format!("{n:04x}{}", n as i64 - 100).as_bytes());
            want.extend_from_slice(&name[..length]);
        }
        line.until_nul(b"longer than sixteen bytes\0rest");
        line.put(&[b'p'; 64], 64);
        line.put(b"end", 3);
        line.long();
        want.extend_from_slice(b"longer than sixteen bytes");
        want.extend_from_slice(&[b'p'; 64]);
        want.extend_from_slice(b"end");
        assert_eq!(String::from_utf8(out).unwrap(), String::from_utf8(want).unwrap());
    }

    #[test]
    fn an_attempt_that_fails_adds_nothing() {
        for pieces in [1, 100] {
            let mut room = PieceRoom::default();
            let mut out = b"before ".to_vec();
            let mut line = PieceWriter::new(&mut room, &mut out);
            line.put(b"kept ", 5);
            let failed = line.attempt(|line| {
                (0..pieces).for_each(|_| line.put(b"dropped ", 8));
                None
            });
            assert_eq!(failed, None);
            line.attempt(|line| {
                line.put(b"added", 5);
                Some(())
            });
            line.long();
            assert_eq!(String::from_utf8(out).unwrap(), "before kept added");
        }
    }

    #[test]
    fn numbers_of_every_length_are_added() {
        let powers = (0..20).map(|n| 10_u64.pow(n));
        for v in powers.flat_map(|v| [v - 1, v, v + 1, v / 7 * 3]).chain([u64::MAX]) {
            let mut room = PieceRoom::default();
            let mut out = Vec::new();
            let mut line = PieceWriter::new(&mut room, &mut out);
            line.decimal(v);
            line.put(b" ", 1);
            line.signed_decimal((v as i64).wrapping_neg());
            line.put(b" ", 1);
            line.hex(v, 1);
            line.long();
            assert_eq!(String::from_utf8(out).unwrap(), format!("{v} {} {v:x}", (v as i64).wrapping_neg()));
        }
    }

    #[test]
    fn a_text_is_made_once_and_a_failure_is_not_cached() {
        let key = (render_id(), render_id(), 7);
        let mut out = Vec::new();
        assert_eq!(with_rendered(key, |_| None, |_| unreachable!()), None);
        for round in 0..2 {
            let mut made = 0;
            let make = |text: &mut Vec<u8>| {
                made += 1;
                text.extend_from_slice(b"seven ");
                Some(())
            };
            with_rendered(key, make, |text| text.push(&mut out));
            assert_eq!(made, usize::from(round == 0));
        }
        assert_eq!(out, b"seven seven ");
        let make = |text: &mut Vec<u8>| {
            text.extend_from_slice(b"eight");
            Some(())
        };
        with_rendered((key.0, key.1, 8), make, |text| text.push(&mut out));
        assert_eq!(out, b"seven seven eight");
    }
}
