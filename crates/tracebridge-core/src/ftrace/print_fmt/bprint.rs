//! Prints the records of `trace_printk()`. The format is a text in the kernel, and the record holds the
//! packed arguments.
//!
//! vbin_printf() and bstr_printf() in the kernel's lib/vsprintf.c define how arguments are packed.

use super::eval::Evaluator;
use super::expr::{Expr, Num};
use super::spec::{self, ConversionKind, FormatPiece, TextLayout, WidthSource};
use super::symbolizer::Symbolizer;
use crate::ftrace::Endian;
use crate::text::digits;

/// A position in the packed arguments of a record.
struct PackedArguments<'r> {
    bytes: &'r [u8],
    at: usize,
    endian: Endian,
}

impl<'r> PackedArguments<'r> {
    /// Reads an integer of 1, 2, 4 or 8 bytes. An integer of 8 bytes is aligned to 4 bytes.
    fn int(&mut self, size: usize, signed: bool) -> Option<i64> {
        let start = self.at.checked_next_multiple_of(size.min(4))?;
        let bytes = self.bytes.get(start..start + size)?;
        self.at = start + size;
        if signed { self.endian.int(bytes) } else { Some(self.endian.uint(bytes)? as i64) }
    }

    /// Reads a text that ends with a NUL.
    fn text(&mut self) -> Option<&'r [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let len = rest.iter().position(|b| *b == 0)?;
        self.at += len + 1;
        Some(&rest[..len])
    }
}

impl Symbolizer {
    /// Appends the text of the `trace_printk` format at `address` with the arguments in `packed`. Where the
    /// format was not recorded, appends its address instead. Returns `None` and appends nothing where
    /// arguments are missing.
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
            digits::push_hex(out, address);
            out.extend_from_slice(b" not recorded)");
            return Some(());
        };
        let mut packed = PackedArguments { bytes: packed, at: 0, endian };
        let record = Evaluator { data: &[], endian, symbolizer: self };
        for piece in spec::parse(format, 8 * self.long_size).ok()? {
            let spec = match piece {
                FormatPiece::Text(text) => {
                    out.extend_from_slice(&text);
                    continue;
                }
                FormatPiece::Conversion(spec) => spec,
            };
            let mut star = |count| match count {
                WidthSource::Argument => packed.int(4, true).map(Some),
                _ => Some(None),
            };
            let width = star(spec.width)?;
            let precision = star(spec.precision)?;
            let layout = TextLayout::new(&spec, width, precision);
            let value = match &spec.conv {
                ConversionKind::Text => Expr::Text(packed.text()?.to_vec()),
                // Since Linux 5.6 only symbols are packed as addresses. All other pointers are packed as
                // texts.
                ConversionKind::Pointer(extension)
                    if !extension.is_empty()
                        && !extension.starts_with(['s', 'S', 'f', 'F', 'x', 'K', 'B']) =>
                {
                    let start = out.len();
                    out.extend_from_slice(packed.text()?);
                    spec::pad(out, start, &layout);
                    continue;
                }
                ConversionKind::Char => Expr::Num(Num::int(packed.int(1, false)?)),
                conv => {
                    let size = usize::from(spec.bits / 8);
                    Expr::Num(Num::new(packed.int(size, *conv == ConversionKind::Signed)?, false, true))
                }
            };
            record.print(&spec, &layout, &value, out)?;
        }
        Some(())
    }
}
