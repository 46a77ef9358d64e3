//! Evaluates the expressions of a print format over one record, prints `%p` by the letters behind it, and
//! prints the records of `trace_printk()`, whose format is a text in the kernel and whose arguments are
//! packed into the record.
//!
//! The letters behind `%p` are symbols, or the bytes that the pointer points at in the record; the kernel's
//! Documentation/core-api/printk-formats.rst defines them. vbin_printf() and bstr_printf() in the kernel's
//! lib/vsprintf.c define how arguments are packed.

use super::Symbolizer;
use super::byte_text::{bitmap, bitmap_list, hex_bytes, ipv4, ipv6, sockaddr, uuid};
use super::expr::{BinaryOp, CType, Expr, IntType, Num};
use super::spec::{self, ConversionKind, ConversionSpec, FormatPiece, TextLayout, WidthSource};
use crate::ftrace::{Endian, Value};
use crate::text::digits::{self, push_hex, push_hex_padded};
use crate::text::until_nul;

/// One record, and the machine that recorded it.
#[derive(Clone, Copy)]
pub(super) struct Evaluator<'r> {
    pub(super) data: &'r [u8],
    pub(super) endian: Endian,
    pub(super) symbolizer: &'r Symbolizer,
}

/// The value of an expression whose operands are all numbers. `None` for any other expression.
pub(super) fn constant(expr: &Expr) -> Option<Num> {
    let only_numbers = match expr {
        Expr::Binary(_, a, b) => matches!((a.as_ref(), b.as_ref()), (Expr::Num(_), Expr::Num(_))),
        Expr::Negate(a) | Expr::Complement(a) | Expr::Cast(_, a) => matches!(a.as_ref(), Expr::Num(_)),
        _ => false,
    };
    let symbolizer = Symbolizer::default();
    let no_record = Evaluator { data: &[], endian: Endian::Little, symbolizer: &symbolizer };
    only_numbers.then(|| no_record.int(expr)).flatten()
}

impl<'r> Evaluator<'r> {
    /// The value of an integer expression. `None` where the record lacks bytes.
    pub(super) fn int(&self, expr: &Expr) -> Option<Num> {
        Some(match expr {
            Expr::Num(n) => *n,
            Expr::Field(field) => match field.value(self.data, self.endian)? {
                Value::Int(v) => Num { v, unsigned: false, wide: field.size > 4 },
                Value::Uint(v) => Num { v: v as i64, unsigned: field.size >= 4, wide: field.size > 4 },
                // A pointer into the record. Its value is only ever compared with 0.
                Value::Str(s) | Value::Bytes(s) => {
                    Num { v: i64::from(!s.is_empty()), unsigned: true, wide: true }
                }
            },
            Expr::Element { array, index, elem } => {
                let bytes = self.bytes(array)?;
                let at = usize::try_from(self.int(index)?.v).ok()?.checked_mul(elem.bytes.into())?;
                let bytes = bytes.get(at..at.checked_add(elem.bytes.into())?)?;
                let wide = elem.bytes > 4;
                if elem.signed {
                    Num { v: self.endian.int(bytes)?, unsigned: false, wide }
                } else {
                    Num { v: self.endian.uint(bytes)? as i64, unsigned: elem.bytes >= 4, wide }
                }
            }
            Expr::Not(inner) => Num::int(i64::from(self.int(inner)?.v == 0)),
            Expr::Complement(inner) => {
                let n = self.int(inner)?;
                Num::new(!n.v, n.unsigned, n.wide)
            }
            Expr::Negate(inner) => {
                let n = self.int(inner)?;
                Num::new(n.v.wrapping_neg(), n.unsigned, n.wide)
            }
            Expr::Binary(op, a, b) => self.binary(*op, a, b)?,
            Expr::Ternary(condition, then, other) => match (self.int(condition)?, then) {
                (Num { v: 0, .. }, _) => self.int(other)?,
                (value, None) => value,
                (_, Some(then)) => self.int(then)?,
            },
            Expr::Cast(ctype, inner) => self.cast(*ctype, inner)?,
            Expr::Len(inner) => Num { v: self.bytes(inner)?.len() as i64, unsigned: false, wide: false },
            Expr::Swap { value, bytes, always } => {
                let v = self.int(value)?.v as u64;
                let swap = *always || self.endian == Endian::Little;
                let v = match (bytes, swap) {
                    (2, true) => u64::from((v as u16).swap_bytes()),
                    (4, true) => u64::from((v as u32).swap_bytes()),
                    (_, true) => v.swap_bytes(),
                    (_, false) => v,
                };
                Num { v: v as i64, unsigned: *bytes >= 4, wide: *bytes > 4 }
            }
            Expr::Text(_) => Num { v: 1, unsigned: true, wide: true },
            Expr::Address(inner) => self.int(inner)?,
            _ => return None,
        })
    }

    fn cast(&self, ctype: CType, inner: &Expr) -> Option<Num> {
        let n = self.int(inner)?;
        Some(match ctype {
            CType::Bool => Num::int(i64::from(n.v != 0)),
            CType::Int(IntType { bytes, signed }) if bytes < 8 => {
                let unused = 64 - 8 * u32::from(bytes.max(1));
                let v =
                    if signed { n.v << unused >> unused } else { ((n.v as u64) << unused >> unused) as i64 };
                Num { v, unsigned: !signed && bytes == 4, wide: false }
            }
            CType::Int(IntType { signed, .. }) => Num { v: n.v, unsigned: !signed, wide: true },
            CType::Pointer(_) | CType::Void => Num { v: n.v, unsigned: true, wide: true },
        })
    }

    fn binary(&self, op: BinaryOp, a: &Expr, b: &Expr) -> Option<Num> {
        let a = self.int(a)?;
        match op {
            BinaryOp::AndAnd if a.v == 0 => return Some(Num::int(0)),
            BinaryOp::OrOr if a.v != 0 => return Some(Num::int(1)),
            _ => {}
        }
        let b = self.int(b)?;
        // These are C's usual arithmetic conversions, for 32 and 64 bits.
        let wide = a.wide || b.wide;
        let unsigned = (a.unsigned && a.wide == wide) || (b.unsigned && b.wide == wide);
        let x = Num::new(a.v, unsigned, wide).v;
        let y = Num::new(b.v, unsigned, wide).v;
        let arithmetic = |v| Some(Num::new(v, unsigned, wide));
        let truth = |t: bool| Some(Num::int(i64::from(t)));
        let order = if unsigned { (x as u64).cmp(&(y as u64)) } else { x.cmp(&y) };
        match op {
            BinaryOp::Add => arithmetic(x.wrapping_add(y)),
            BinaryOp::Sub => arithmetic(x.wrapping_sub(y)),
            BinaryOp::Mul => arithmetic(x.wrapping_mul(y)),
            BinaryOp::Div | BinaryOp::Rem if y == 0 => None,
            BinaryOp::Div if unsigned => arithmetic((x as u64 / y as u64) as i64),
            BinaryOp::Div => arithmetic(x.wrapping_div(y)),
            BinaryOp::Rem if unsigned => arithmetic((x as u64 % y as u64) as i64),
            BinaryOp::Rem => arithmetic(x.wrapping_rem(y)),
            BinaryOp::And => arithmetic(x & y),
            BinaryOp::Or => arithmetic(x | y),
            BinaryOp::Xor => arithmetic(x ^ y),
            // A shift has the type of its left operand.
            BinaryOp::Shl => Some(Num::new(a.v.checked_shl(b.v as u32).unwrap_or(0), a.unsigned, a.wide)),
            BinaryOp::Shr if a.unsigned => {
                Some(Num::new((a.v as u64).checked_shr(b.v as u32).unwrap_or(0) as i64, true, a.wide))
            }
            BinaryOp::Shr => Some(Num::new(a.v >> b.v.clamp(0, 63), false, a.wide)),
            BinaryOp::Lt => truth(order.is_lt()),
            BinaryOp::Gt => truth(order.is_gt()),
            BinaryOp::Le => truth(order.is_le()),
            BinaryOp::Ge => truth(order.is_ge()),
            BinaryOp::Eq => truth(order.is_eq()),
            BinaryOp::Ne => truth(order.is_ne()),
            BinaryOp::AndAnd | BinaryOp::OrOr => truth(b.v != 0),
        }
    }

    /// The bytes of the record that an expression points at.
    pub(super) fn bytes(&self, expr: &Expr) -> Option<&'r [u8]> {
        match expr {
            Expr::Field(field) => field.bytes(self.data, self.endian),
            Expr::Address(inner) | Expr::Cast(_, inner) => self.bytes(inner),
            Expr::Element { array, index, elem } => {
                let at = usize::try_from(self.int(index)?.v).ok()?.checked_mul(elem.bytes.into())?;
                self.bytes(array)?.get(at..)
            }
            Expr::Ternary(condition, then, other) => {
                self.bytes(self.branch(condition, then.as_deref(), other)?)
            }
            Expr::Binary(BinaryOp::Add, a, b) => self.bytes(a)?.get(usize::try_from(self.int(b)?.v).ok()?..),
            _ => None,
        }
    }

    /// Appends the text of an argument of `%s`. `None` where the record lacks bytes.
    pub(super) fn text(&self, expr: &Expr, out: &mut Vec<u8>) -> Option<()> {
        match expr {
            Expr::Text(text) => out.extend_from_slice(text),
            Expr::Ternary(condition, then, other) => {
                return self.text(self.branch(condition, then.as_deref(), other)?, out);
            }
            Expr::Cast(_, inner) => return self.text(inner, out),
            Expr::Flags { value, delimiter, table } => {
                self.flags(self.unsigned(value)?, delimiter, table, out);
            }
            Expr::Symbolic { value, table } => {
                let v = self.unsigned(value)?;
                match table.iter().find(|(known, _)| *known == v) {
                    Some((_, name)) => out.extend_from_slice(name),
                    None => hex(out, v),
                }
            }
            Expr::Hex { buffer, len, spaced } => {
                let bytes = self.bytes(buffer)?;
                let len = usize::try_from(self.int(len)?.v).ok()?;
                hex_bytes(out, bytes.get(..len.min(bytes.len()))?, if *spaced { b" " } else { b"" });
            }
            Expr::Array { buffer, count, size } => self.array(buffer, count, size, out)?,
            Expr::Bitmask(inner) => bitmap(out, self.bytes(inner)?, self.endian, self.symbolizer.long_size),
            Expr::Sockaddr(inner) => sockaddr(out, self.bytes(inner)?, self.endian, "pc")?,
            Expr::Field(field) => match field.value(self.data, self.endian)? {
                Value::Str(s) => out.extend_from_slice(s),
                Value::Bytes(b) => out.extend_from_slice(until_nul(b)),
                // The address of a text in the kernel. The text is known if printk_formats has it.
                Value::Int(v) => self.kernel_text(v as u64, out),
                Value::Uint(v) => self.kernel_text(v, out),
            },
            Expr::Address(_) | Expr::Binary(BinaryOp::Add, ..) | Expr::Element { .. }
                if self.bytes(expr).is_some() =>
            {
                out.extend_from_slice(until_nul(self.bytes(expr)?));
            }
            _ => self.kernel_text(self.int(expr)?.v as u64, out),
        }
        Some(())
    }

    /// The branch of a conditional expression that its condition chooses.
    fn branch<'e>(&self, condition: &'e Expr, then: Option<&'e Expr>, other: &'e Expr) -> Option<&'e Expr> {
        let holds = self.int(condition)?.v != 0;
        Some(if holds { then.unwrap_or(condition) } else { other })
    }

    fn unsigned(&self, expr: &Expr) -> Option<u64> {
        let v = self.int(expr)?.v;
        Some(if self.symbolizer.long_size == 4 { u64::from(v as u32) } else { v as u64 })
    }

    fn kernel_text(&self, address: u64, out: &mut Vec<u8>) {
        match self.symbolizer.kernel_text(address) {
            Some(text) => out.extend_from_slice(text),
            None if address == 0 => out.extend_from_slice(b"(null)"),
            None => hex(out, address),
        }
    }

    fn flags(&self, mut v: u64, delimiter: &[u8], table: &[(u64, Vec<u8>)], out: &mut Vec<u8>) {
        let start = out.len();
        for (mask, name) in table {
            if v == 0 {
                break;
            }
            if v & mask != *mask {
                continue;
            }
            if out.len() > start {
                out.extend_from_slice(delimiter);
            }
            out.extend_from_slice(name);
            v &= !mask;
        }
        if v != 0 {
            if out.len() > start {
                out.extend_from_slice(delimiter);
            }
            hex(out, v);
        }
    }

    fn array(&self, buffer: &Expr, count: &Expr, size: &Expr, out: &mut Vec<u8>) -> Option<()> {
        let bytes = self.bytes(buffer)?;
        let size = usize::try_from(self.int(size)?.v).ok().filter(|s| matches!(s, 1 | 2 | 4 | 8))?;
        let count = usize::try_from(self.int(count)?.v).ok()?;
        out.push(b'{');
        for (i, element) in bytes.chunks_exact(size).take(count).enumerate() {
            if i > 0 {
                out.push(b',');
            }
            hex(out, self.endian.uint(element)?);
        }
        out.push(b'}');
        Some(())
    }
}

fn hex(out: &mut Vec<u8>, v: u64) {
    out.extend_from_slice(b"0x");
    push_hex(out, v);
}

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
