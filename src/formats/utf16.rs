//! Texts in UTF-16, as PowerShell's `>` writes them, read as UTF-8.

use std::io::{self, Read};

/// Why a text ends early.
const CUT: &str = "the last character is cut";

/// The order of the bytes of a unit of UTF-16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnitOrder {
    /// The low byte first.
    Little,
    /// The high byte first.
    Big,
}

impl UnitOrder {
    /// The order that a byte order mark at the start of a file shows.
    pub(super) fn from_mark(bytes: [u8; 2]) -> Option<UnitOrder> {
        match bytes {
            [0xff, 0xfe] => Some(UnitOrder::Little),
            [0xfe, 0xff] => Some(UnitOrder::Big),
            _ => None,
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
        Utf16Reader { rest: text.get(2..).unwrap_or_default(), order, left: Vec::new() }
    }

    /// The next unit. It stays the next one until `rest` is moved.
    fn unit(&self) -> Option<u16> {
        let unit = *self.rest.first_chunk()?;
        Some(match self.order {
            UnitOrder::Little => u16::from_le_bytes(unit),
            UnitOrder::Big => u16::from_be_bytes(unit),
        })
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
            assert_eq!(UnitOrder::from_mark(*bytes.first_chunk().unwrap()), Some(order));
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
    fn half_of_a_pair_is_replaced() {
        assert_eq!(read(b"\xff\xfe\x34\xd8a\0", UnitOrder::Little, 8), ("\u{fffd}a".into(), false));
        assert_eq!(read(b"\xff\xfe\x34\xd8", UnitOrder::Little, 8), ("\u{fffd}".into(), false));
        assert_eq!(read(b"\xff\xfe", UnitOrder::Little, 8), (String::new(), false));
    }
}
