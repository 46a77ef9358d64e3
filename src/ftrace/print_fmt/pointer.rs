//! `%p` and the letters behind it: symbols, addresses of networks and devices, bytes, bit masks.
//!
//! Defined by the kernel's Documentation/core-api/printk-formats.rst.

use super::eval::Record;
use super::expr::Expr;
use super::number::{push_hex, push_hex_padded, push_u64};
use super::spec::{Layout, Spec};
use crate::ftrace::Endian;

const AF_INET: u64 = 2;
const AF_INET6: u64 = 10;

impl Record<'_> {
    /// Appends what `%p…` with this argument says, not padded.
    pub(super) fn pointer(
        &self,
        out: &mut Vec<u8>,
        extension: &str,
        spec: &Spec,
        layout: &Layout,
        expr: &Expr,
    ) -> Option<()> {
        let letters = extension.as_bytes();
        let bytes = |len: usize| self.bytes(expr).and_then(|b| b.get(..len));
        match letters {
            [b'S' | b'F' | b'B', ..] => self.context.symbol(self.int(expr)?.v as u64, true, out),
            [b's' | b'f', ..] => self.context.symbol(self.int(expr)?.v as u64, false, out),
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
                    Some(b'l') => bitmap_list(out, mask, self.endian, self.context.long_size),
                    _ => bitmap(out, mask, self.endian, self.context.long_size),
                }
            }
            // An address by reference: the value behind the pointer.
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
                let v = if self.context.long_size == 4 { u64::from(v as u32) } else { v };
                push_hex_padded(out, v, 2 * usize::from(self.context.long_size));
            }
        }
        Some(())
    }
}

/// Whether the width of such a pointer is a length of its argument, and not of the text.
pub(super) fn takes_width(extension: &str) -> bool {
    extension.starts_with(['h', 'b'])
}

/// Bytes in hexadecimal, with `separator` between them.
pub(super) fn hex_bytes(out: &mut Vec<u8>, bytes: &[u8], separator: &[u8]) {
    for (i, byte) in bytes.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(separator);
        }
        push_hex_padded(out, (*byte).into(), 2);
    }
}

/// The bits of a mask of longs, lowest first.
fn words(mask: &[u8], endian: Endian, long_size: u8) -> impl Iterator<Item = u32> {
    mask.chunks(long_size.max(4).into()).flat_map(move |long| {
        let halves = long.len().div_ceil(4);
        let long = endian.uint(long).unwrap_or(0);
        (0..halves).map(move |half| (long >> (32 * half)) as u32)
    })
}

/// `%*pb`: groups of 32 bits, highest first.
pub(super) fn bitmap(out: &mut Vec<u8>, mask: &[u8], endian: Endian, long_size: u8) {
    let words: Vec<u32> = words(mask, endian, long_size).collect();
    for (i, word) in words.iter().rev().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_hex_padded(out, (*word).into(), 8);
    }
}

/// `%*pbl`: ranges of the bits that are set.
fn bitmap_list(out: &mut Vec<u8>, mask: &[u8], endian: Endian, long_size: u8) {
    let mut open: Option<u64> = None;
    let mut first = true;
    let bits = words(mask, endian, long_size).flat_map(|w| (0..32).map(move |b| w >> b & 1 == 1));
    for (n, set) in bits.chain([false]).enumerate() {
        let n = n as u64;
        match (set, open) {
            (true, None) => open = Some(n),
            (false, Some(start)) => {
                if !std::mem::take(&mut first) {
                    out.push(b',');
                }
                push_u64(out, start);
                if n - start > 1 {
                    out.push(b'-');
                    push_u64(out, n - 1);
                }
                open = None;
            }
            _ => {}
        }
    }
}

fn ipv4(out: &mut Vec<u8>, bytes: &[u8], leading_zeros: bool) {
    for (i, byte) in bytes.iter().enumerate() {
        if i > 0 {
            out.push(b'.');
        }
        let width = if leading_zeros { 3 } else { 1 };
        super::number::push_padded(out, (*byte).into(), width, b'0');
    }
}

fn ipv6(out: &mut Vec<u8>, bytes: &[u8], compressed: bool, colons: bool) {
    let Ok(octets) = <[u8; 16]>::try_from(bytes) else { return };
    if compressed {
        // The kernel writes RFC 5952's form, as the standard library does.
        return out.extend_from_slice(std::net::Ipv6Addr::from(octets).to_string().as_bytes());
    }
    for (i, pair) in octets.chunks(2).enumerate() {
        if i > 0 && colons {
            out.push(b':');
        }
        hex_bytes(out, pair, b"");
    }
}

/// A `struct sockaddr`: letters `p` for the port, `c` for the compressed form.
pub(super) fn sockaddr(out: &mut Vec<u8>, bytes: &[u8], endian: Endian, letters: &str) -> Option<()> {
    let with_port = letters.contains('p');
    let port = |out: &mut Vec<u8>| -> Option<()> {
        if with_port {
            out.push(b':');
            push_u64(out, Endian::Big.uint(bytes.get(2..4)?)?);
        }
        Some(())
    };
    match endian.uint(bytes.get(..2)?)? {
        AF_INET => {
            ipv4(out, bytes.get(4..8)?, false);
            port(out)
        }
        AF_INET6 => {
            if with_port {
                out.push(b'[');
            }
            ipv6(out, bytes.get(8..24)?, letters.contains('c'), true);
            if with_port {
                out.push(b']');
            }
            port(out)
        }
        family => {
            out.extend_from_slice(b"(sockaddr of family ");
            push_hex(out, family);
            out.push(b')');
            Some(())
        }
    }
}

fn uuid(out: &mut Vec<u8>, bytes: &[u8], form: u8) {
    const BIG: [usize; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    const LITTLE: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let start = out.len();
    let order = if form.eq_ignore_ascii_case(&b'l') { LITTLE } else { BIG };
    for (i, from) in order.into_iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        hex_bytes(out, bytes.get(from..from + 1).unwrap_or_default(), b"");
    }
    if form.is_ascii_uppercase() {
        out[start..].make_ascii_uppercase();
    }
}
