//! Texts in UTF-16, as PowerShell's `>` writes them, read as UTF-8.

use std::io::{self, Read};

/// Why a text ends early.
const CUT: &str = "the last character is cut";

/// So many bytes at the start of a text without a byte order mark show that it is UTF-16.
pub(super) const SHOWING_BYTES: usize = 8;
/// The byte order mark.
const MARK: u16 = 0xfeff;

/// The order of the bytes of a unit of UTF-16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnitOrder {
    /// The low byte first.
    Little,
    /// The high byte first.
    Big,
}

impl UnitOrder {
    /// The order that the start of a file shows: by its byte order mark, or by characters of ASCII alone.
    pub(super) fn from_start(bytes: &[u8]) -> Option<UnitOrder> {
        match bytes {
            [0xff, 0xfe, ..] => return Some(UnitOrder::Little),
            [0xfe, 0xff, ..] => return Some(UnitOrder::Big),
            _ => {}
        }
        let (units, _) = bytes.get(..SHOWING_BYTES)?.as_chunks::<2>();
        let is_ascii = |order: UnitOrder| {
            let is_char = |unit: &[u8; 2]| matches!(order.unit(*unit), 0x09 | 0x0a | 0x0d | 0x20..=0x7e);
            units.iter().all(is_char)
        };
        [UnitOrder::Little, UnitOrder::Big].into_iter().find(|order| is_ascii(*order))
    }

    fn unit(self, bytes: [u8; 2]) -> u16 {
        match self {
            UnitOrder::Little => u16::from_le_bytes(bytes),
            UnitOrder::Big => u16::from_be_bytes(bytes),
        }
    }
}

/// Reads a text in UTF-16 as UTF-8, without its byte order mark. A unit that is half of no pair becomes
/// U+FFFD.
pub(super) struct Utf16Reader<'a> {
    rest: &'a [u8],
    order: UnitOrder,
    /// Bytes that did not fit into the last buffer.
    left: Vec<u8>,
}

impl<'a> Utf16Reader<'a> {
    pub(super) fn new(text: &'a [u8], order: UnitOrder) -> Utf16Reader<'a> {
        let has_mark = text.first_chunk().is_some_and(|unit| order.unit(*unit) == MARK);
        let rest = text.get(if has_mark { 2 } else { 0 }..).unwrap_or_default();
        Utf16Reader { rest, order, left: Vec::new() }
    }

    /// The next unit. It stays the next one until `rest` is moved.
    fn unit(&self) -> Option<u16> {
        self.rest.first_chunk().map(|unit| self.order.unit(*unit))
    }

    fn next_char(&mut self) -> Option<char> {
        let first = self.unit()?;
        self.rest = &self.rest[2..];
        let pair = [first, self.unit().unwrap_or(0)];
        let Some(Ok(decoded)) = char::decode_utf16(pair).next() else {
            return Some(char::REPLACEMENT_CHARACTER);
        };
        if decoded.len_utf16() == 2 {
            self.rest = &self.rest[2..];
        }
        Some(decoded)
    }
}

impl Read for Utf16Reader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut text = std::mem::take(&mut self.left);
        while text.len() < out.len() {
            let Some(next) = self.next_char() else { break };
            text.extend_from_slice(next.encode_utf8(&mut [0; 4]).as_bytes());
        }
        if text.is_empty() && !self.rest.is_empty() && !out.is_empty() {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, CUT));
        }
        self.left = text.split_off(text.len().min(out.len()));
        out[..text.len()].copy_from_slice(&text);
        Ok(text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], order: UnitOrder, step: usize) -> (String, bool) {
        let mut reader = Utf16Reader::new(bytes, order);
        let mut text = Vec::new();
        let mut part = vec![0; step];
        let is_cut = loop {
            match reader.read(&mut part) {
                Ok(0) => break false,
                Ok(count) => text.extend_from_slice(&part[..count]),
                Err(error) => break error.kind() == io::ErrorKind::UnexpectedEof,
            }
        };
        (String::from_utf8(text).unwrap(), is_cut)
    }

    #[test]
    fn a_text_is_the_same_in_both_orders_and_in_buffers_of_any_size() {
        let text = "# tracer: nop\r\n größer 𝄞 ende";
        let encoded = |order: UnitOrder| -> Vec<u8> {
            let bytes =
                |unit: u16| if order == UnitOrder::Big { unit.to_be_bytes() } else { unit.to_le_bytes() };
            std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(bytes).collect()
        };
        for order in [UnitOrder::Little, UnitOrder::Big] {
            let bytes = encoded(order);
            assert_eq!(UnitOrder::from_start(&bytes), Some(order));
            for step in [1, 2, 3, 7, 4096] {
                assert_eq!(read(&bytes, order, step), (text.to_owned(), false));
            }
            assert_eq!(
                read(&bytes[..bytes.len() - 1], order, 4096),
                ("# tracer: nop\r\n größer 𝄞 end".into(), true)
            );
        }
    }

    #[test]
    fn the_order_is_known_by_a_mark_or_by_ascii() {
        assert_eq!(UnitOrder::from_start(b"\xff\xfe"), Some(UnitOrder::Little));
        assert_eq!(UnitOrder::from_start(b"#\0 \0t\0r\0"), Some(UnitOrder::Little));
        assert_eq!(UnitOrder::from_start(b"\0#\0 \0t\0r"), Some(UnitOrder::Big));
        for other in [&b"#\0 \0t\0"[..], b"#\0 \0t\0\0\0", b"\x08\0\x04\0\x01\0\x02\0", b"# tracer"] {
            assert_eq!(UnitOrder::from_start(other), None, "{other:?}");
        }
        assert_eq!(read(b"#\0 \0t\0r\0", UnitOrder::Little, 3), ("# tr".into(), false));
    }

    #[test]
    fn half_of_a_pair_is_replaced() {
        assert_eq!(read(b"\xff\xfe\x34\xd8a\0", UnitOrder::Little, 8), ("\u{fffd}a".into(), false));
        assert_eq!(read(b"\xff\xfe\x34\xd8", UnitOrder::Little, 8), ("\u{fffd}".into(), false));
        assert_eq!(read(b"\xff\xfe", UnitOrder::Little, 8), (String::new(), false));
    }
}
