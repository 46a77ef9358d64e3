//! Prints a record as the kernel would: the `print fmt:` line of its event, parsed once into a program.

mod bprint;
mod eval;
mod expr;
mod lex;
pub(crate) mod number;
mod parse;
mod pointer;
mod spec;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use thiserror::Error;

use self::eval::Record;
use self::expr::{CType, Expr};
use self::spec::{Conv, Count, Layout, Piece, Spec};
use super::{Endian, EventKind, FieldType, Symbols, Value, parse_printk_formats};

/// Why a print format cannot be followed. The fields can be printed all the same.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PrintFmtError {
    /// It is not C, or more of C than these lines use.
    #[error("not understood: {0}")]
    Syntax(String),
    /// It uses something that only the kernel has.
    #[error("uses {0}")]
    Unsupported(String),
}

/// What is known of the machine that recorded, beyond the record. Its texts are read when first needed.
pub struct Context {
    /// Bytes of the kernel's long: 4 or 8.
    pub long_size: u8,
    /// Of all contexts of this process; not 0.
    id: u64,
    kallsyms: Loader,
    printk_formats: Loader,
    symbols: OnceLock<Symbols>,
    texts: OnceLock<HashMap<u64, Vec<u8>>>,
}

/// A context's id, an address, and whether the place in the function is printed too.
type SymbolKey = (u64, u64, bool);

/// Printed symbols kept by each thread.
const SYMBOLS_KEPT: usize = 1024;

/// Brings a text that may have to be unpacked.
pub type Loader = Box<dyn Fn() -> Vec<u8> + Send + Sync>;

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("long_size", &self.long_size).finish_non_exhaustive()
    }
}

impl Default for Context {
    fn default() -> Context {
        Context::new(8, Box::new(Vec::new), Box::new(Vec::new))
    }
}

impl Context {
    /// Of a kernel whose long has `long_size` bytes, and whose `kallsyms` and `printk_formats` these bring.
    pub fn new(long_size: u8, kallsyms: Loader, printk_formats: Loader) -> Context {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Context { long_size, id, kallsyms, printk_formats, symbols: OnceLock::new(), texts: OnceLock::new() }
    }

    /// The kernel's symbols; none if they were not recorded.
    pub fn symbols(&self) -> &Symbols {
        self.symbols.get_or_init(|| Symbols::parse((self.kallsyms)()))
    }

    fn kernel_text(&self, address: u64) -> Option<&[u8]> {
        let texts = self.texts.get_or_init(|| parse_printk_formats(&(self.printk_formats)()));
        texts.get(&address).map(Vec::as_slice)
    }

    /// Appends the name of the function at `address`, with the place in it if `whole`; the number if there is none.
    pub fn symbol(&self, address: u64, whole: bool, out: &mut Vec<u8>) {
        thread_local! {
            // Events come from few places in the kernel: what was printed for each lately.
            static LATELY: RefCell<Vec<(SymbolKey, Vec<u8>)>> = const { RefCell::new(Vec::new()) };
        }
        let key = (self.id, address, whole);
        let slot = (address ^ address >> 10 ^ u64::from(whole)) as usize % SYMBOLS_KEPT;
        LATELY.with_borrow_mut(|lately| {
            if lately.is_empty() {
                lately.resize_with(SYMBOLS_KEPT, Default::default);
            }
            let (kept, text) = &mut lately[slot];
            // No context has the id 0, which the empty slots have.
            if *kept != key {
                *kept = key;
                text.clear();
                self.find_symbol(address, whole, text);
            }
            out.extend_from_slice(text);
        });
    }

    fn find_symbol(&self, address: u64, whole: bool, out: &mut Vec<u8>) {
        let Some(symbol) = self.symbols().find(address) else {
            out.extend_from_slice(b"0x");
            return number::push_hex(out, address);
        };
        let (name, module) = match symbol.name.iter().position(|b| *b == b'\t') {
            Some(tab) => (&symbol.name[..tab], &symbol.name[tab + 1..]),
            None => (symbol.name, &b""[..]),
        };
        out.extend_from_slice(name);
        if whole {
            out.extend_from_slice(b"+0x");
            number::push_hex(out, symbol.offset);
            out.extend_from_slice(b"/0x");
            number::push_hex(out, symbol.size);
        }
        if !module.is_empty() {
            out.push(b' ');
            out.extend_from_slice(module);
        }
    }
}

/// A print format as a program.
#[derive(Debug, Clone)]
pub struct PrintFmt {
    steps: Vec<Step>,
}

/// A step of it. The first ones are what most formats are made of.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Text(Vec<u8>),
    /// `%d` and the like of a field, without flags or width.
    Decimal(Load),
    /// `%x` of a field, likewise.
    Hex(Load),
    /// `%s` of a field that is text.
    FieldText(super::Field),
    /// `%s` of anything, without width or precision.
    PlainText(Expr),
    /// `%pS` (whole) or `%ps` of an address in a field.
    Symbol {
        load: Load,
        whole: bool,
    },
    /// `%p` of an address in a field.
    Address(Load),
    /// An argument that only the kernel can compute.
    Unknown,
    /// ` field=value`: what the unknown ones would have told.
    Pair(super::Field),
    /// Everything else.
    Print {
        spec: Spec,
        width: Option<Expr>,
        precision: Option<Expr>,
        value: Expr,
    },
}

/// Reads an integer out of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Load {
    offset: u32,
    size: u32,
    /// Whether the record's integer is to be sign-extended.
    signed: bool,
    /// Of the conversion: its bits that do not count, and whether it prints a sign.
    unused: u32,
    prints_sign: bool,
}

impl Load {
    #[inline]
    fn value(&self, record: &[u8], endian: Endian) -> Option<i64> {
        let start = self.offset as usize;
        let bytes = record.get(start..start + self.size as usize)?;
        let v = if self.signed { endian.int(bytes)? } else { endian.uint(bytes)? as i64 };
        Some(match self.prints_sign {
            true => v << self.unused >> self.unused,
            false => ((v as u64) << self.unused >> self.unused) as i64,
        })
    }
}

impl PrintFmt {
    /// Compiles the print format of `kind`. `long_size`: bytes of the recording kernel's long.
    pub fn compile(kind: &EventKind, long_size: u8) -> Result<PrintFmt, PrintFmtError> {
        let source = kind.print_fmt.as_deref().unwrap_or_default();
        let parsed = parse::parse(source, kind, long_size)?;
        let mut arguments = parsed.arguments.into_iter();
        let mut next =
            || arguments.next().ok_or(PrintFmtError::Syntax("fewer arguments than conversions".into()));
        let mut steps = Vec::new();
        for piece in spec::parse(&parsed.format, 8 * long_size)? {
            steps.push(match piece {
                Piece::Text(text) => Step::Text(text),
                Piece::Conv(spec) => {
                    let width = if spec.width == Count::Argument { Some(next()?) } else { None };
                    let precision = if spec.precision == Count::Argument { Some(next()?) } else { None };
                    let stars_known = width != Some(None) && precision != Some(None);
                    match next()?.filter(|_| stars_known) {
                        Some(value) => Step::print(spec, width.flatten(), precision.flatten(), value),
                        None => Step::Unknown,
                    }
                }
            });
        }
        // The kernel ends some formats with a line break of their own.
        if let Some(Step::Text(text)) = steps.last_mut() {
            text.truncate(text.trim_ascii_end().len());
        }
        steps.extend(parsed.unused.into_iter().map(Step::Pair));
        Ok(PrintFmt { steps })
    }

    /// `name=value` of each field, for an event whose print format cannot be followed.
    pub fn pairs(kind: &EventKind) -> PrintFmt {
        PrintFmt { steps: kind.fields.iter().cloned().map(Step::Pair).collect() }
    }

    /// Appends what the kernel would print for `record`. `None`, and nothing appended, where the record lacks bytes
    /// that its format promises.
    pub fn print(&self, record: &[u8], endian: Endian, context: &Context, out: &mut Vec<u8>) -> Option<()> {
        let start = out.len();
        let done = self.steps.iter().try_for_each(|step| step.run(record, endian, context, out));
        if done.is_none() {
            out.truncate(start);
        }
        done
    }
}

impl Step {
    fn print(spec: Spec, width: Option<Expr>, precision: Option<Expr>, value: Expr) -> Step {
        // `(void *)REC->ip` is as wide as the field itself.
        let bare = match &value {
            Expr::Cast(CType::Pointer(_), inner) if matches!(spec.conv, Conv::Pointer(_)) => inner,
            other => other,
        };
        if spec.is_plain()
            && let Expr::Field(field) = bare
        {
            let is_int = matches!(field.ty, FieldType::Int | FieldType::Uint);
            let load = Load {
                offset: field.offset,
                size: field.size,
                signed: field.ty == FieldType::Int,
                unused: 64 - u32::from(spec.bits),
                prints_sign: spec.conv == Conv::Signed,
            };
            match spec.conv {
                Conv::Signed | Conv::Unsigned if is_int => return Step::Decimal(load),
                Conv::Hex { upper: false } if is_int => return Step::Hex(load),
                Conv::Text
                    if matches!(
                        field.ty,
                        FieldType::FixedStr
                            | FieldType::DataLocStr
                            | FieldType::RelLocStr
                            | FieldType::TailStr
                    ) =>
                {
                    return Step::FieldText(field.clone());
                }
                Conv::Pointer(ref letters) if is_int && u32::from(spec.bits) == 8 * field.size => {
                    match letters.as_str() {
                        "S" | "F" | "s" | "f" => {
                            return Step::Symbol { load, whole: letters.starts_with(['S', 'F']) };
                        }
                        "" | "K" | "x" => return Step::Address(load),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        if spec.is_plain() && spec.conv == Conv::Text {
            return Step::PlainText(value);
        }
        Step::Print { spec, width, precision, value }
    }

    #[inline]
    fn run(&self, data: &[u8], endian: Endian, context: &Context, out: &mut Vec<u8>) -> Option<()> {
        match self {
            Step::Text(text) => out.extend_from_slice(text),
            Step::Decimal(load) => {
                let v = load.value(data, endian)?;
                if load.prints_sign { number::push_i64(out, v) } else { number::push_u64(out, v as u64) }
            }
            Step::Hex(load) => number::push_hex(out, load.value(data, endian)? as u64),
            Step::FieldText(field) => {
                out.extend_from_slice(super::kind::until_nul(field.bytes(data, endian)?))
            }
            Step::PlainText(value) => Record { data, endian, context }.text(value, out)?,
            Step::Symbol { load, whole } => {
                context.symbol(load.value(data, endian)? as u64, *whole, out);
            }
            Step::Address(load) => {
                number::push_hex_padded(out, load.value(data, endian)? as u64, 2 * load.size as usize);
            }
            Step::Unknown => out.push(b'?'),
            Step::Pair(field) => {
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
            Step::Print { spec, width, precision, value } => {
                let record = Record { data, endian, context };
                let count = |expr: &Option<Expr>| match expr {
                    Some(expr) => record.int(expr).map(|n| Some(n.v)),
                    None => Some(None),
                };
                let layout = Layout::new(spec, count(width)?, count(precision)?);
                record.print(spec, &layout, value, out)?;
            }
        }
        Some(())
    }
}

impl Record<'_> {
    fn print(&self, spec: &Spec, layout: &Layout, value: &Expr, out: &mut Vec<u8>) -> Option<()> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftrace::EventFormat;

    /// Prints a record with fields a: int at 0, b: u32 at 4, s: char[8] at 8, d: __data_loc at 16, u: u64 at 24,
    /// addr: u8[16] at 32.
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
        let context = Context::new(8, Box::new(kallsyms), Box::new(Vec::new));
        let mut out = Vec::new();
        let program = PrintFmt::compile(&kind, 8).unwrap();
        assert!(program.print(&record, Endian::Little, &context, &mut out).is_some(), "{format}");
        // Cut short it must say nothing rather than something wrong.
        for len in 0..record.len() {
            let mut cut = Vec::new();
            let _ = program.print(&record[..len], Endian::Little, &context, &mut cut);
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
    fn what_only_the_kernel_knows_is_a_question_mark_and_its_field() {
        assert_eq!(print(r#""%d %s %u", REC->a, kernel_only(REC->b, "x"), jiffies"#), "-2 ? ? b=2147483649");
        let page = r#""%p %d", REC->a ? ((struct page *)vmemmap_base + REC->b) : 0, REC->b"#;
        assert_eq!(print(page), "? -2147483647 a=-2");
    }

    #[test]
    fn hostile_formats_are_refused() {
        let deep = format!("\"%d\", {}1{}", "(".repeat(5000), ")".repeat(5000));
        for format in ["", "\"%d\"", "\"%", "\"%d\", 1) x", "x", "\"%q\", 1", &deep, "\"%d\", ----1 }"] {
            let kind = EventKind {
                system: String::new(),
                name: "x".into(),
                fields: Vec::new(),
                print_fmt: Some(format.into()),
            };
            if let Ok(program) = PrintFmt::compile(&kind, 8) {
                let mut out = Vec::new();
                let _ = program.print(&[], Endian::Big, &Context::default(), &mut out);
            }
        }
    }
}
