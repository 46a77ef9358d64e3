//! Compiles a print format to a program, and runs the program over records.

use super::eval::{self, Evaluator};
use super::expr::{CType, Expr, Num};
use super::spec::{self, ConversionKind, ConversionSpec, FormatPiece, TextLayout, WidthSource};
use super::{PrintFmtError, Symbolizer, byte_text, parse};
use crate::ftrace::{Endian, EventType, Field, FieldType, Value};
use crate::text::digits;
use crate::text::pieces::{InlineBytes, PieceRoom, PieceWriter, render_id, with_rendered};

/// The program that a print format is compiled to.
#[derive(Debug, Clone)]
pub struct PrintFmt {
    instructions: Vec<Instruction>,
    too_complex: Option<PrintFmtError>,
}

impl PrintFmt {
    /// Compiles the print format of an event type. `long_size` is the size of the recording kernel's `long`,
    /// bytes.
    ///
    /// # Errors
    /// Returns [`PrintFmtError`] for a format that cannot be followed. [`PrintFmt::pairs`] then prints the
    /// fields.
    pub fn compile(kind: &EventType, long_size: u8) -> Result<PrintFmt, PrintFmtError> {
        let source = kind.print_fmt.as_deref().unwrap_or_default();
        let parsed = parse::parse(source, kind, long_size)?;
        let mut arguments = parsed.arguments.into_iter();
        let mut next =
            || arguments.next().ok_or(PrintFmtError::Syntax("fewer arguments than conversions".into()));
        let mut instructions = Vec::new();
        let mut text = Vec::new();
        for piece in spec::parse(&parsed.format, 8 * long_size)? {
            let op = match piece {
                FormatPiece::Text(piece) => {
                    text = piece;
                    continue;
                }
                FormatPiece::Conversion(spec) => {
                    let width = if spec.width == WidthSource::Argument { Some(next()?) } else { None };
                    let precision =
                        if spec.precision == WidthSource::Argument { Some(next()?) } else { None };
                    let stars_known = width != Some(None) && precision != Some(None);
                    match next()?.filter(|_| stars_known) {
                        Some(value) => Op::new(spec, width.flatten(), precision.flatten(), value),
                        None => Op::Unknown,
                    }
                }
            };
            instructions.push(Instruction { text: InlineBytes::new(&std::mem::take(&mut text)), op });
        }
        // Some formats of the kernel end with a line break, which does not belong to the text.
        instructions.push(Instruction { text: InlineBytes::new(text.trim_ascii_end()), op: Op::Nothing });
        instructions.extend(parsed.unused.into_iter().map(Instruction::pair));
        Ok(PrintFmt { instructions, too_complex: parsed.too_complex })
    }

    /// A program that prints `name=value` for each field, for an event type whose print format cannot be
    /// followed.
    pub fn pairs(kind: &EventType) -> PrintFmt {
        let instructions = kind.fields.iter().cloned().map(Instruction::pair).collect();
        PrintFmt { instructions, too_complex: None }
    }

    /// Why an argument of the format is printed as `?` although it could be computed: it exceeds a limit.
    pub fn too_complex(&self) -> Option<&PrintFmtError> {
        self.too_complex.as_ref()
    }

    /// Appends the text that the kernel would print for `record`. Returns `None` and appends nothing where
    /// the record lacks bytes that its format promises.
    pub fn print(
        &self,
        record: &[u8],
        endian: Endian,
        symbolizer: &Symbolizer,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let mut room = PieceRoom::default();
        let mut line = PieceWriter::new(&mut room, out);
        let done = self.print_to(&mut line, &InlineBytes::default(), record, endian, symbolizer);
        line.long();
        done
    }

    /// As [`PrintFmt::print`], with `before` in front, for a caller that puts a line together.
    #[inline]
    pub fn print_to(
        &self,
        line: &mut PieceWriter<'_>,
        before: &InlineBytes<32>,
        record: &[u8],
        endian: Endian,
        symbolizer: &Symbolizer,
    ) -> Option<()> {
        line.attempt(|line| {
            line.text(before);
            // Each call is compiled for its own byte order, so that no value asks for it.
            match endian {
                Endian::Little => self.run(line, record, Endian::Little, symbolizer),
                Endian::Big => self.run(line, record, Endian::Big, symbolizer),
            }
        })
    }

    #[inline(always)]
    fn run(
        &self,
        line: &mut PieceWriter<'_>,
        record: &[u8],
        endian: Endian,
        symbolizer: &Symbolizer,
    ) -> Option<()> {
        for instruction in &self.instructions {
            line.text(&instruction.text);
            instruction.op.print(line, record, endian, symbolizer)?;
        }
        Some(())
    }
}

/// Prints a fixed text and then the argument of a conversion.
#[derive(Debug, Clone, PartialEq)]
struct Instruction {
    text: InlineBytes<32>,
    op: Op,
}

impl Instruction {
    /// Prints ` name=value` of a field.
    fn pair(field: Field) -> Instruction {
        Instruction { text: InlineBytes::default(), op: Op::Pair(Box::new(field)) }
    }
}

/// How an argument is printed. Most formats use only the first few variants.
#[derive(Debug, Clone, PartialEq)]
enum Op {
    /// Prints nothing.
    Nothing,
    /// `%d` or `%u` of an integer in the record, without flags or width.
    Decimal(IntLoad),
    /// `%x` of an integer in the record, without flags or width.
    Hex(IntLoad),
    /// `%s` of a field that is a text.
    FieldText(Box<Field>),
    /// `%s` of a text that depends on one integer of the record: the names of flags or of a number.
    NumberText { load: IntLoad, text: Box<NumberText> },
    /// `%s` of anything, without width or precision.
    PlainText(Box<Expr>),
    /// `%pS` (with the offset in the symbol) or `%ps` of an address in a field.
    Symbol { load: IntLoad, with_offset: bool },
    /// `%p` of an address in a field.
    Address(IntLoad),
    /// Prints `?` for an argument that only the kernel can compute.
    Unknown,
    /// Prints ` field=value` for a field that only unknown arguments use.
    Pair(Box<Field>),
    /// Any other conversion.
    Print(Box<Print>),
}

/// The expression for the text of a number, and the id under which such texts are cached.
#[derive(Debug, Clone, PartialEq)]
struct NumberText {
    id: u64,
    value: Expr,
}

/// A conversion with its argument, and the arguments for its width and precision.
#[derive(Debug, Clone, PartialEq)]
struct Print {
    spec: ConversionSpec,
    width: Option<Expr>,
    precision: Option<Expr>,
    value: Expr,
}

/// Reads an integer out of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct IntLoad {
    offset: u32,
    size: u32,
    /// Whether the record's integer is sign-extended.
    signed: bool,
    /// The number of upper bits that the conversion does not print.
    unused_bits: u32,
    /// Whether the conversion prints a sign.
    prints_sign: bool,
    /// The form that most integers have.
    plain: PlainInt,
}

/// Integers that a conversion prints with all their bits, and no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlainInt {
    /// Four bytes.
    Word,
    /// Eight bytes.
    Long,
    /// Any other integer.
    No,
}

impl IntLoad {
    /// The load of an integer field, or of an element of an array in the record, that `spec` prints. `None`
    /// for any other expression.
    fn find(value: &Expr, spec: &ConversionSpec) -> Option<IntLoad> {
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
        let unused_bits = 64 - u32::from(spec.bits);
        let plain = match (size, spec.bits) {
            (4, 32) => PlainInt::Word,
            (8, 64) => PlainInt::Long,
            _ => PlainInt::No,
        };
        let prints_sign = spec.conv == ConversionKind::Signed;
        Some(IntLoad { offset, size, signed, unused_bits, prints_sign, plain })
    }

    /// The bits of the integer that the conversion prints.
    #[inline(always)]
    fn value(&self, record: &[u8], endian: Endian) -> Option<i64> {
        let start = self.offset as usize;
        match self.plain {
            PlainInt::Word => {
                let word = endian.uint(record.get(start..start + 4)?)? as u32;
                return Some(if self.prints_sign { i64::from(word as i32) } else { i64::from(word) });
            }
            PlainInt::Long => return Some(endian.uint(record.get(start..start + 8)?)? as i64),
            PlainInt::No => {}
        }
        let v = self.whole(record, endian)?;
        Some(if self.prints_sign {
            v << self.unused_bits >> self.unused_bits
        } else {
            ((v as u64) << self.unused_bits >> self.unused_bits) as i64
        })
    }

    /// All bits of the integer.
    #[inline(always)]
    fn whole(&self, record: &[u8], endian: Endian) -> Option<i64> {
        let start = self.offset as usize;
        let bytes = record.get(start..start + self.size as usize)?;
        if self.signed { endian.int(bytes) } else { Some(endian.uint(bytes)? as i64) }
    }
}

impl Op {
    /// Chooses the operation by which `spec` prints `value`.
    fn new(spec: ConversionSpec, width: Option<Expr>, precision: Option<Expr>, value: Expr) -> Op {
        if !spec.is_plain() {
            return Op::Print(Box::new(Print { spec, width, precision, value }));
        }
        // `(void *)REC->ip` is as wide as the field itself.
        let bare = match &value {
            Expr::Cast(CType::Pointer(_), inner) if matches!(spec.conv, ConversionKind::Pointer(_)) => inner,
            other => other,
        };
        match (&spec.conv, IntLoad::find(bare, &spec), bare) {
            (ConversionKind::Signed | ConversionKind::Unsigned, Some(load), _) => return Op::Decimal(load),
            (ConversionKind::Hex { upper: false }, Some(load), _) => return Op::Hex(load),
            (ConversionKind::Pointer(letters), Some(load), _) if u32::from(spec.bits) == 8 * load.size => {
                match letters.as_str() {
                    "S" | "F" | "s" | "f" => {
                        return Op::Symbol { load, with_offset: letters.starts_with(['S', 'F']) };
                    }
                    "" | "K" | "x" => return Op::Address(load),
                    _ => {}
                }
            }
            (ConversionKind::Text, _, Expr::Field(field)) if field.ty.is_text() => {
                return Op::FieldText(Box::new(field.clone()));
            }
            (ConversionKind::Text, ..) => {
                let number =
                    value.sole_input().and_then(|field| IntLoad::find(&Expr::Field(field.clone()), &spec));
                return match number {
                    Some(load) => {
                        Op::NumberText { load, text: Box::new(NumberText { id: render_id(), value }) }
                    }
                    None => Op::PlainText(Box::new(value)),
                };
            }
            _ => {}
        }
        Op::Print(Box::new(Print { spec, width, precision, value }))
    }

    #[inline(always)]
    fn print(
        &self,
        line: &mut PieceWriter<'_>,
        data: &[u8],
        endian: Endian,
        symbolizer: &Symbolizer,
    ) -> Option<()> {
        match self {
            Op::Nothing => {}
            Op::Decimal(load) => {
                let v = load.value(data, endian)?;
                if load.prints_sign { line.signed_decimal(v) } else { line.decimal(v as u64) }
            }
            Op::Hex(load) => line.hex(load.value(data, endian)? as u64, 1),
            Op::FieldText(field) => line.until_nul(field.bytes(data, endian)?),
            Op::NumberText { load, text } => {
                let key = (symbolizer.id, text.id, load.whole(data, endian)? as u64);
                let make = |out: &mut Vec<u8>| Evaluator { data, endian, symbolizer }.text(&text.value, out);
                with_rendered(key, make, |text| line.text(text))?;
            }
            Op::Symbol { load, with_offset } => {
                let address = load.value(data, endian)? as u64;
                symbolizer.with_symbol(address, *with_offset, |text| line.text(text));
            }
            Op::Address(load) => line.hex(load.value(data, endian)? as u64, 2 * load.size as usize),
            Op::Unknown => line.put(b"?", 1),
            Op::PlainText(_) | Op::Pair(_) | Op::Print(_) => {
                self.print_long(&Evaluator { data, endian, symbolizer }, line.long())?;
            }
        }
        Some(())
    }

    /// Prints an argument that may be long, or that takes long to compute.
    #[inline(never)]
    fn print_long(&self, record: &Evaluator<'_>, out: &mut Vec<u8>) -> Option<()> {
        match self {
            Op::PlainText(value) => record.text(value, out),
            Op::Pair(field) => {
                pair(field, record.data, record.endian, out);
                Some(())
            }
            Op::Print(print) => {
                let count = |expr: &Option<Expr>| match expr {
                    Some(expr) => record.int(expr).map(|n| Some(n.v)),
                    None => Some(None),
                };
                let layout = TextLayout::new(&print.spec, count(&print.width)?, count(&print.precision)?);
                record.print(&print.spec, &layout, &print.value, out)
            }
            _ => None,
        }
    }
}

/// Appends ` name=value`, or ` name=?` where the record lacks the field's bytes.
fn pair(field: &Field, data: &[u8], endian: Endian, out: &mut Vec<u8>) {
    if out.last().is_some_and(|b| *b != b' ') {
        out.push(b' ');
    }
    out.extend_from_slice(field.name.as_bytes());
    out.push(b'=');
    match field.value(data, endian) {
        Some(Value::Int(v)) => digits::push_i64(out, v),
        Some(Value::Uint(v)) => digits::push_u64(out, v),
        Some(Value::Str(text)) => out.extend_from_slice(text),
        Some(Value::Bytes(bytes)) => byte_text::hex_bytes(out, bytes, b" "),
        None => out.push(b'?'),
    }
}

impl Evaluator<'_> {
    /// Appends one argument as its conversion prints it. `None` where the record lacks bytes.
    pub(super) fn print(
        &self,
        spec: &ConversionSpec,
        layout: &TextLayout,
        value: &Expr,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let start = out.len();
        match &spec.conv {
            ConversionKind::Text => {
                self.text(value, out)?;
                spec::finish_text(out, start, layout);
            }
            ConversionKind::Char => {
                out.extend(Some(self.int(value)?.v as u8).filter(|c| *c != 0));
                spec::pad(out, start, layout);
            }
            ConversionKind::Pointer(extension) => {
                self.pointer(out, extension, spec, layout, value)?;
                if !eval::takes_width(extension) {
                    spec::pad(out, start, layout);
                }
            }
            _ => spec::integer(out, spec, layout, self.int(value)?.v),
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftrace::EventFormat;

    /// Prints a record with fields a: int at 0, b: u32 at 4, s: char[8] at 8, d: __data_loc at 16, u: u64 at
    /// 24, addr: u8[16] at 32.
    fn print(format: &str) -> String {
        let text = format!(
            "name: x\nID: 1\nformat:\n\tfield:int a;\toffset:0;\tsize:4;\tsigned:1;\n\
             \tfield:u32 b;\toffset:4;\tsize:4;\tsigned:0;\n\tfield:char s[8];\toffset:8;\tsize:8;\tsigned:0;\n\
             \tfield:__data_loc char[] d;\toffset:16;\tsize:4;\tsigned:0;\n\
             \tfield:u64 u;\toffset:24;\tsize:8;\tsigned:0;\n\
             \tfield:__u8 addr[16];\toffset:32;\tsize:16;\tsigned:0;\n\nprint fmt: {format}\n"
        );
        let kind = EventFormat::parse("s", &text).unwrap().kind;
        let mut record = vec![0; 52];
        record[0..4].copy_from_slice(&(-2i32).to_le_bytes());
        record[4..8].copy_from_slice(&0x8000_0001u32.to_le_bytes());
        record[8..11].copy_from_slice(b"abc");
        record[16..20].copy_from_slice(&(4 << 16 | 48u32).to_le_bytes());
        record[24..32].copy_from_slice(&0xffff_ffff_8123_4567u64.to_le_bytes());
        record[32..38].copy_from_slice(&[127, 0, 0, 1, 0xaa, 0xbb]);
        record[48..52].copy_from_slice(b"xyz\0");
        let kallsyms = || b"ffffffff81234560 T func\nffffffff81234600 T next\n".to_vec();
        let context = Symbolizer::new(8, Box::new(kallsyms), Box::new(Vec::new));
        let mut out = Vec::new();
        let program = PrintFmt::compile(&kind, 8).unwrap();
        assert!(program.print(&record, Endian::Little, &context, &mut out).is_some(), "{format}");
        // A record that is cut gives the same text, no text, or a text that shows the missing field.
        for len in 0..record.len() {
            let mut cut = b"before ".to_vec();
            match program.print(&record[..len], Endian::Little, &context, &mut cut) {
                None => assert_eq!(cut, b"before ", "{format} cut to {len} bytes"),
                Some(()) => assert!(
                    cut[7..] == out || cut.ends_with(b"=?"),
                    "{format} cut to {len} bytes: {}",
                    String::from_utf8_lossy(&cut)
                ),
            }
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn fields_conversions_and_arithmetic_are_those_of_c() {
        for (format, want) in [
            (
                r#""a=%d b=%u b=%d s=%s d=%s", REC->a, REC->b, REC->b, REC->s, __get_str(d)"#,
                "a=-2 b=2147483649 b=-2147483647 s=abc d=xyz",
            ),
            (
                r#""%s|%5d|%-5s|%#x", REC->a < 0 ? "neg" : "pos", REC->a, REC->s, REC->b"#,
                "neg|   -2|abc  |0x80000001",
            ),
            (r#""%d %u", REC->b >> 31, (unsigned int)REC->a / 2"#, "1 2147483647"),
            (r#""%lu", (unsigned long)(REC->a & 0xff) << 33 | 1UL"#, "2181843386369"),
            (r#""%d", -1 < 1U"#, "0"),
            (r#""%d,%d", (((unsigned int) ((REC->b) >> 20))), ((REC->b) & ((1U << 20) - 1))"#, "2048,1"),
            (r#""%.*s|%*d", 2, REC->s, 4, 7"#, "ab|   7"),
            (r#""100%% %c", 'x'"#, "100% x"),
            (r#""%llx", REC->u"#, "ffffffff81234567"),
            (r#""%u", sizeof(u32) + sizeof(REC->addr)"#, "20"),
            (r#""%u", ntohs(*(u16 *)REC->addr)"#, "32512"),
            (r#""%x", ((u8 *)REC->addr)[4]"#, "aa"),
        ] {
            assert_eq!(print(format), want, "{format}");
        }
    }

    #[test]
    fn helpers_print_as_in_the_kernel() {
        for (format, want) in [
            (r#""%s", __print_flags(REC->b, "|", { 1, "ONE" }, { 2, "TWO" })"#, "ONE|0x80000000"),
            (
                r#""%s", __print_flags(REC->a & 3, "|", { 1, "ONE" }, { 2, "TWO" }, { -1, ((void *)0) })"#,
                "TWO",
            ),
            (r#""[%s]", __print_flags(0, "|", { 1, "ONE" })"#, "[]"),
            (r#""%s", __print_symbolic(REC->a, { -2, "M2" }, { 0, "Z" })"#, "M2"),
            (r#""%s", __print_symbolic(5, { UNRESOLVED, "U" }, { 0, "Z" })"#, "0x5"),
            (r#""%s %s", __print_hex(REC->addr, 3), __print_hex_str(REC->addr, 3)"#, "7f 00 00 7f0000"),
            (r#""%s", __print_array(REC->addr, 4, 1)"#, "{0x7f,0x0,0x0,0x1}"),
            (r#""%s", __get_bitmask(d)"#, "007a7978"),
            (r#""%ps %pS %ps", (void *)REC->u, (void *)REC->u, (void *)1"#, "func func+0x7/0xa0 0x1"),
            (
                r#""%pM %pI4 %p", REC->addr, REC->addr, (void *)0x12UL"#,
                "7f:00:00:01:aa:bb 127.0.0.1 0000000000000012",
            ),
            (r#""%*ph %*pbl", 3, REC->addr, 8, REC->addr"#, "7f 00 00 0-6"),
            (r#""%pI6c", REC->addr"#, "7f00:1:aabb::"),
        ] {
            assert_eq!(print(format), want, "{format}");
        }
    }

    #[test]
    fn an_argument_that_only_the_kernel_can_compute_prints_as_a_question_mark_and_its_field() {
        assert_eq!(print(r#""%d %s %u", REC->a, kernel_only(REC->b, "x"), jiffies"#), "-2 ? ? b=2147483649");
        let page = r#""%p %d", REC->a ? ((struct page *)vmemmap_base + REC->b) : 0, REC->b"#;
        assert_eq!(print(page), "? -2147483647 a=-2");
    }

    #[test]
    fn hostile_formats_are_refused() {
        let deep = format!("\"%d\", {}1{}", "(".repeat(5000), ")".repeat(5000));
        let compile = |format: &str| {
            let kind = EventType {
                system: String::new(),
                name: "x".to_owned(),
                fields: Vec::new(),
                print_fmt: Some(format.to_owned()),
            };
            PrintFmt::compile(&kind, 8)
        };
        for format in ["", "\"%d\"", "\"%", "\"%d\", 1) x", "x", "\"%q\", 1", "\"%d\", ----1 }"] {
            assert!(matches!(compile(format), Err(PrintFmtError::Syntax(_))), "{format}");
        }
        // An argument that nests too deep counts as one that cannot be computed.
        let mut out = Vec::new();
        let program = compile(&deep).unwrap();
        assert_eq!(program.print(&[], Endian::Big, &Symbolizer::default(), &mut out), Some(()));
        assert_eq!(out, b"?");
    }

    /// `a ?: b` nested this many times, in brackets on the left.
    fn nested_conditions(levels: usize) -> String {
        format!("\"%d\", {}REC->a{}", "(".repeat(levels), " ?: 1)".repeat(levels))
    }

    #[test]
    fn nested_conditions_without_a_middle_are_evaluated_once() {
        for levels in [1, 20, 30] {
            assert_eq!(print(&nested_conditions(levels)), "-2", "{levels} levels");
        }
        assert_eq!(print(&nested_conditions(10_000)), "? a=-2");
    }

    #[test]
    fn an_argument_of_25000_terms_is_unknown_and_its_fields_are_printed() {
        let chain = |terms: usize| format!("\"%d %u\", REC->a{}, REC->b", " + REC->a".repeat(terms - 1));
        assert_eq!(print(&chain(3)), "-6 2147483649");
        assert_eq!(print(&chain(900)), "-1800 2147483649");
        assert_eq!(print(&chain(25_000)), "? 2147483649 a=-2");
        let constant = format!("\"%d\", 1{}", " + 1".repeat(24_999));
        assert_eq!(print(&constant), "25000");
        let unary = format!("\"%d\", {}REC->a", "-".repeat(25_000));
        assert_eq!(print(&unary), "? a=-2");
    }
}
