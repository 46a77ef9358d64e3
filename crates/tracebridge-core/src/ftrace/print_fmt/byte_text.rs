//! Texts of bytes and structures, as the letters behind `%p` print them: network addresses, UUIDs, bit masks,
//! plain bytes.
//!
//! The kernel's Documentation/core-api/printk-formats.rst defines them.

use crate::ftrace::Endian;
use crate::text::digits::{push_hex, push_hex_padded, push_padded, push_u64};

const AF_INET: u64 = 2;
const AF_INET6: u64 = 10;

/// Appends bytes in hexadecimal, with `separator` between them.
pub(super) fn hex_bytes(out: &mut Vec<u8>, bytes: &[u8], separator: &[u8]) {
    for (i, byte) in bytes.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(separator);
        }
        push_hex_padded(out, (*byte).into(), 2);
    }
}

/// The words of a mask of longs, lowest first.
fn words(mask: &[u8], endian: Endian, long_size: u8) -> impl Iterator<Item = u32> {
    mask.chunks(long_size.max(4).into()).flat_map(move |long| {
        let halves = long.len().div_ceil(4);
        let long = endian.uint(long).unwrap_or(0);
        (0..halves).map(move |half| (long >> (32 * half)) as u32)
    })
}

/// Appends a bit mask as `%*pb` does: groups of 32 bits, highest first.
pub(super) fn bitmap(out: &mut Vec<u8>, mask: &[u8], endian: Endian, long_size: u8) {
    let words: Vec<u32> = words(mask, endian, long_size).collect();
    for (i, word) in words.iter().rev().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_hex_padded(out, (*word).into(), 8);
    }
}

/// Appends a bit mask as `%*pbl` does: the ranges of the bits that are set.
pub(super) fn bitmap_list(out: &mut Vec<u8>, mask: &[u8], endian: Endian, long_size: u8) {
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

/// Appends an IPv4 address.
pub(super) fn ipv4(out: &mut Vec<u8>, bytes: &[u8], leading_zeros: bool) {
    for (i, byte) in bytes.iter().enumerate() {
        if i > 0 {
            out.push(b'.');
        }
        let width = if leading_zeros { 3 } else { 1 };
        push_padded(out, (*byte).into(), width, b'0');
    }
}

/// Appends an IPv6 address: compressed, or all digits with or without colons.
pub(super) fn ipv6(out: &mut Vec<u8>, bytes: &[u8], compressed: bool, colons: bool) {
    let Ok(octets) = <[u8; 16]>::try_from(bytes) else { return };
    if compressed {
        // Both the kernel and the standard library write the form of RFC 5952.
        return out.extend_from_slice(std::net::Ipv6Addr::from(octets).to_string().as_bytes());
    }
    for (i, pair) in octets.chunks(2).enumerate() {
        if i > 0 && colons {
            out.push(b':');
        }
        hex_bytes(out, pair, b"");
    }
}

/// Appends a `struct sockaddr`. `letters` has `p` for the port, and `c` for the compressed form of an IPv6
/// address. `None` where bytes are missing.
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

/// Appends a UUID. The letter `form` is `b` or `l` for the byte order, and upper-case for upper-case digits.
pub(super) fn uuid(out: &mut Vec<u8>, bytes: &[u8], form: u8) {
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
