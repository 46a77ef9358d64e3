//! Prints `%p` by the letters behind it: symbols, or the bytes that the pointer points at in the record.
//!
//! The kernel's Documentation/core-api/printk-formats.rst defines the letters.

use super::byte_text::{bitmap, bitmap_list, hex_bytes, ipv4, ipv6, sockaddr, uuid};
use super::eval::Evaluator;
use super::expr::Expr;
use super::spec::{ConversionSpec, TextLayout};
use crate::text::digits::push_hex_padded;

impl Evaluator<'_> {
    /// Appends what `%p` with the letters of `extension` prints for the argument `expr`, without padding.
    /// `None` where the record lacks bytes.
    pub(super) fn pointer(
        &self,
        out: &mut Vec<u8>,
        extension: &str,
        spec: &ConversionSpec,
        layout: &TextLayout,
        expr: &Expr,
    ) -> Option<()> {
        let letters = extension.as_bytes();
        let bytes = |len: usize| self.bytes(expr).and_then(|b| b.get(..len));
        match letters {
            [b'S' | b'F' | b'B', ..] => self.symbolizer.symbol(self.int(expr)?.v as u64, true, out),
            [b's' | b'f', ..] => self.symbolizer.symbol(self.int(expr)?.v as u64, false, out),
            [b'M' | b'm', rest @ ..] => {
                let separator: &[u8] = match (letters[0], rest.first()) {
                    (b'm', _) => b"",
                    (_, Some(b'F')) => b"-",
                    _ => b":",
                };
                hex_bytes(out, bytes(6)?, separator);
            }
            [b'I' | b'i', b'4', ..] => ipv4(out, bytes(4)?, letters[0] == b'i'),
            [b'I' | b'i', b'6', rest @ ..] => ipv6(out, bytes(16)?, rest.contains(&b'c'), letters[0] == b'I'),
            [b'I' | b'i', b'S', rest @ ..] => {
                sockaddr(out, self.bytes(expr)?, self.endian, std::str::from_utf8(rest).ok()?)?;
            }
            [b'U', rest @ ..] => uuid(out, bytes(16)?, rest.first().copied().unwrap_or(b'b')),
            [b'h', rest @ ..] => {
                let separator: &[u8] = match rest.first() {
                    Some(b'C') => b":",
                    Some(b'D') => b"-",
                    Some(b'N') => b"",
                    _ => b" ",
                };
                let all = self.bytes(expr)?;
                hex_bytes(out, all.get(..layout.width.clamp(1, 64).min(all.len()))?, separator);
            }
            [b'b', rest @ ..] => {
                let mask = self.bytes(expr)?;
                let mask = mask.get(..layout.width.div_ceil(8).min(mask.len()))?;
                match rest.first() {
                    Some(b'l') => bitmap_list(out, mask, self.endian, self.symbolizer.long_size),
                    _ => bitmap(out, mask, self.endian, self.symbolizer.long_size),
                }
            }
            // `%pa` prints the address to which the pointer points.
            [b'a', ..] => {
                let long = bytes(8).or_else(|| bytes(4))?;
                out.extend_from_slice(b"0x");
                push_hex_padded(out, self.endian.uint(long)?, 2 * long.len());
            }
            _ => {
                if spec.alternate {
                    out.extend_from_slice(b"0x");
                }
                let v = self.int(expr)?.v as u64;
                let v = if self.symbolizer.long_size == 4 { u64::from(v as u32) } else { v };
                push_hex_padded(out, v, 2 * usize::from(self.symbolizer.long_size));
            }
        }
        Some(())
    }
}

/// Whether a width before such a pointer is the length of the argument instead of the length of the text.
pub(super) fn takes_width(extension: &str) -> bool {
    extension.starts_with(['h', 'b'])
}
