//! One step of a print format: the text before a conversion, and how the conversion prints its argument.

use super::eval::Record;
use super::expr::{CType, Expr, Num};
use super::ready::Ready;
use super::spec::{self, Conv, Layout, Spec};
use super::{Symbolizer, lately, number, pointer};
use crate::ftrace::{Endian, Field, FieldType, Value, until_nul};

/// Text, and a conversion behind it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub(super) before: Ready<32>,
    pub(super) what: What,
}

impl Step {
    /// ` name=value` of a field.
    pub(super) fn pair(field: Field) -> Step {
        Step { before: Ready::default(), what: What::Pair(Box::new(field)) }
    }
}

/// How an argument is printed. The first ones are what most formats are made of.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    /// Only the text before it is printed.
    Nothing,
    /// `%d` and the like of an integer in the record, without flags or width.
    Decimal(Load),
    /// `%x`, likewise.
    Hex(Load),
    /// `%s` of a field that is text.
    FieldText(Box<Field>),
    /// `%s` of what one integer of the record decides: names of flags, and words for numbers.
    NumberText { load: Load, text: Box<NumberText> },
    /// `%s` of anything, without width or precision.
    PlainText(Box<Expr>),
    /// `%pS` (whole) or `%ps` of an address in a field.
    Symbol { load: Load, whole: bool },
    /// `%p` of an address in a field.
    Address(Load),
    /// An argument that only the kernel can compute.
    Unknown,
    /// ` field=value`: what the unknown ones would have told.
    Pair(Box<Field>),
    /// Everything else.
    Print(Box<Print>),
}

/// The text behind a number, and the id under which it is remembered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NumberText {
    id: u64,
    value: Expr,
}

/// Any conversion of any argument.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Print {
    spec: Spec,
    width: Option<Expr>,
    precision: Option<Expr>,
    value: Expr,
}

/// Reads an integer out of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Load {
    offset: u32,
    size: u32,
    /// Whether the record's integer is to be sign-extended.
    signed: bool,
    /// Of the conversion: its bits that do not count, and whether it prints a sign.
    unused: u32,
    prints_sign: bool,
}

impl Load {
    /// Of an integer field, or of an element of an array in the record, as `spec` prints it.
    fn of(value: &Expr, spec: &Spec) -> Option<Load> {
        let (offset, size, signed) = match value {
            Expr::Field(field) => match field.ty {
                FieldType::Int => (field.offset, field.size, true),
                FieldType::Uint => (field.offset, field.size, false),
                _ => return None,
            },
            Expr::Element { array, index, elem } => match (array.as_ref(), index.as_ref()) {
                (Expr::Field(field), Expr::Num(Num { v, .. }))
                    if matches!(field.ty, FieldType::Bytes { .. }) =>
                {
                    let size = u32::from(elem.bytes);
                    let at = u32::try_from(*v).ok()?.checked_mul(size)?;
                    let inside = at.checked_add(size)? <= field.size;
                    (field.offset.checked_add(at).filter(|_| inside)?, size, elem.signed)
                }
                _ => return None,
            },
            _ => return None,
        };
        let unused = 64 - u32::from(spec.bits);
        Some(Load { offset, size, signed, unused, prints_sign: spec.conv == Conv::Signed })
    }

    #[inline]
    fn value(&self, record: &[u8], endian: Endian) -> Option<i64> {
        let v = self.whole(record, endian)?;
        Some(match self.prints_sign {
            true => v << self.unused >> self.unused,
            false => ((v as u64) << self.unused >> self.unused) as i64,
        })
    }

    /// The integer itself, whatever the conversion takes of it.
    #[inline]
    fn whole(&self, record: &[u8], endian: Endian) -> Option<i64> {
        let start = self.offset as usize;
        let bytes = record.get(start..start + self.size as usize)?;
        if self.signed { endian.int(bytes) } else { Some(endian.uint(bytes)? as i64) }
    }
}

impl What {
    /// How `spec` prints `value`.
    pub(super) fn new(spec: Spec, width: Option<Expr>, precision: Option<Expr>, value: Expr) -> What {
        if !spec.is_plain() {
            return What::Print(Box::new(Print { spec, width, precision, value }));
        }
        // `(void *)REC->ip` is as wide as the field itself.
        let bare = match &value {
            Expr::Cast(CType::Pointer(_), inner) if matches!(spec.conv, Conv::Pointer(_)) => inner,
            other => other,
        };
        match (&spec.conv, Load::of(bare, &spec), bare) {
            (Conv::Signed | Conv::Unsigned, Some(load), _) => return What::Decimal(load),
            (Conv::Hex { upper: false }, Some(load), _) => return What::Hex(load),
            (Conv::Pointer(letters), Some(load), _) if u32::from(spec.bits) == 8 * load.size => {
                match letters.as_str() {
                    "S" | "F" | "s" | "f" => {
                        return What::Symbol { load, whole: letters.starts_with(['S', 'F']) };
                    }
                    "" | "K" | "x" => return What::Address(load),
                    _ => {}
                }
            }
            (Conv::Text, _, Expr::Field(field)) if field.ty.is_text() => {
                return What::FieldText(Box::new(field.clone()));
            }
            (Conv::Text, ..) => {
                let number =
                    value.decided_by().and_then(|field| Load::of(&Expr::Field(field.clone()), &spec));
                return match number {
                    Some(load) => {
                        What::NumberText { load, text: Box::new(NumberText { id: lately::id(), value }) }
                    }
                    None => What::PlainText(Box::new(value)),
                };
            }
            _ => {}
        }
        What::Print(Box::new(Print { spec, width, precision, value }))
    }

    #[inline]
    pub(super) fn print(
        &self,
        data: &[u8],
        endian: Endian,
        context: &Symbolizer,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        match self {
            What::Nothing => {}
            What::Decimal(load) => {
                let v = load.value(data, endian)?;
                if load.prints_sign { number::push_i64(out, v) } else { number::push_u64(out, v as u64) }
            }
            What::Hex(load) => number::push_hex(out, load.value(data, endian)? as u64),
            What::FieldText(field) => out.extend_from_slice(until_nul(field.bytes(data, endian)?)),
            What::NumberText { load, text } => {
                let key = (context.id, text.id, load.whole(data, endian)? as u64);
                lately::push(key, out, |out| Record { data, endian, context }.text(&text.value, out))?;
            }
            What::PlainText(value) => Record { data, endian, context }.text(value, out)?,
            What::Symbol { load, whole } => {
                context.symbol(load.value(data, endian)? as u64, *whole, out);
            }
            What::Address(load) => {
                number::push_hex_padded(out, load.value(data, endian)? as u64, 2 * load.size as usize);
            }
            What::Unknown => out.push(b'?'),
            What::Pair(field) => pair(field, data, endian, out),
            What::Print(print) => {
                let record = Record { data, endian, context };
                let count = |expr: &Option<Expr>| match expr {
                    Some(expr) => record.int(expr).map(|n| Some(n.v)),
                    None => Some(None),
                };
                let layout = Layout::new(&print.spec, count(&print.width)?, count(&print.precision)?);
                record.print(&print.spec, &layout, &print.value, out)?;
            }
        }
        Some(())
    }
}

fn pair(field: &Field, data: &[u8], endian: Endian, out: &mut Vec<u8>) {
    if out.last().is_some_and(|b| *b != b' ') {
        out.push(b' ');
    }
    out.extend_from_slice(field.name.as_bytes());
    out.push(b'=');
    match field.value(data, endian) {
        Some(Value::Int(v)) => number::push_i64(out, v),
        Some(Value::Uint(v)) => number::push_u64(out, v),
        Some(Value::Str(text)) => out.extend_from_slice(text),
        Some(Value::Bytes(bytes)) => pointer::hex_bytes(out, bytes, b" "),
        None => out.push(b'?'),
    }
}

impl Record<'_> {
    pub(super) fn print(&self, spec: &Spec, layout: &Layout, value: &Expr, out: &mut Vec<u8>) -> Option<()> {
        let start = out.len();
        match &spec.conv {
            Conv::Text => {
                self.text(value, out)?;
                spec::finish_text(out, start, layout);
            }
            Conv::Char => {
                out.extend(Some(self.int(value)?.v as u8).filter(|c| *c != 0));
                spec::pad(out, start, layout);
            }
            Conv::Pointer(extension) => {
                self.pointer(out, extension, spec, layout, value)?;
                if !pointer::takes_width(extension) {
                    spec::pad(out, start, layout);
                }
            }
            _ => spec::integer(out, spec, layout, self.int(value)?.v),
        }
        Some(())
    }
}
