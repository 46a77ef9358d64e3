//! `trace_printk()`: a format that lies in the kernel, and its arguments packed behind each other in the record.
//!
//! Defined by vbin_printf() and bstr_printf() in the kernel's lib/vsprintf.c.

use super::Symbolizer;
use super::eval::Record;
use super::expr::{Expr, Num};
use super::spec::{self, Conv, Count, Layout, Piece};
use crate::ftrace::Endian;

/// The packed arguments of a record.
struct Packed<'r> {
    bytes: &'r [u8],
    at: usize,
    endian: Endian,
}

impl<'r> Packed<'r> {
    /// An integer of 1, 2, 4 or 8 bytes. Those of 8 are aligned to 4 only.
    fn int(&mut self, size: usize, signed: bool) -> Option<i64> {
        let start = self.at.checked_next_multiple_of(size.min(4))?;
        let bytes = self.bytes.get(start..start + size)?;
        self.at = start + size;
        if signed { self.endian.int(bytes) } else { Some(self.endian.uint(bytes)? as i64) }
    }

    fn text(&mut self) -> Option<&'r [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let len = rest.iter().position(|b| *b == 0)?;
        self.at += len + 1;
        Some(&rest[..len])
    }
}

impl Symbolizer {
    /// Appends what the `trace_printk` format at `address` says with the arguments in `packed`; the bare address and
    /// nothing more where the format was not recorded. `None`, and nothing appended, where arguments are missing.
    pub fn bprint(&self, address: u64, packed: &[u8], endian: Endian, out: &mut Vec<u8>) -> Option<()> {
        let start = out.len();
        let done = self.bprint_inner(address, packed, endian, out);
        if done.is_none() {
            out.truncate(start);
        }
        done
    }

    fn bprint_inner(&self, address: u64, packed: &[u8], endian: Endian, out: &mut Vec<u8>) -> Option<()> {
        let Some(format) = self.kernel_text(address) else {
            out.extend_from_slice(b"(format at 0x");
            super::number::push_hex(out, address);
            out.extend_from_slice(b" not recorded)");
            return Some(());
        };
        let mut packed = Packed { bytes: packed, at: 0, endian };
        let record = Record { data: &[], endian, context: self };
        for piece in spec::parse(format, 8 * self.long_size).ok()? {
            let spec = match piece {
                Piece::Text(text) => {
                    out.extend_from_slice(&text);
                    continue;
                }
                Piece::Conv(spec) => spec,
            };
            let mut star = |count| match count {
                Count::Argument => packed.int(4, true).map(Some),
                _ => Some(None),
            };
            let (width, precision) = (star(spec.width)?, star(spec.precision)?);
            let layout = Layout::new(&spec, width, precision);
            let value = match &spec.conv {
                Conv::Text => Expr::Text(packed.text()?.to_vec()),
                // Since Linux 5.6 only symbols are kept as addresses; all else is text already.
                Conv::Pointer(extension)
                    if !extension.is_empty()
                        && !extension.starts_with(['s', 'S', 'f', 'F', 'x', 'K', 'B']) =>
                {
                    let start = out.len();
                    out.extend_from_slice(packed.text()?);
                    spec::pad(out, start, &layout);
                    continue;
                }
                Conv::Char => Expr::Num(Num::int(packed.int(1, false)?)),
                conv => {
                    let size = usize::from(spec.bits / 8);
                    Expr::Num(Num::new(packed.int(size, *conv == Conv::Signed)?, false, true))
                }
            };
            record.print(&spec, &layout, &value, out)?;
        }
        Some(())
    }
}
