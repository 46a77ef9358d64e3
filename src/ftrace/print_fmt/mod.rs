//! Prints a record as the kernel would: the `print fmt:` line of its event, parsed once into a program.

mod bprint;
mod eval;
mod expr;
mod lately;
mod lex;
pub(crate) mod number;
mod parse;
mod pointer;
pub(crate) mod ready;
mod spec;
mod step;
mod symbolizer;

use thiserror::Error;

use self::ready::Ready;
use self::spec::{Count, Piece};
use self::step::{Step, What};
pub use self::symbolizer::{Loader, Symbolizer};
use super::{Endian, EventType};

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

/// A print format as a program.
#[derive(Debug, Clone)]
pub struct PrintFmt {
    steps: Vec<Step>,
}

impl PrintFmt {
    /// Compiles the print format of `kind`. `long_size`: bytes of the recording kernel's long.
    pub fn compile(kind: &EventType, long_size: u8) -> Result<PrintFmt, PrintFmtError> {
        let source = kind.print_fmt.as_deref().unwrap_or_default();
        let parsed = parse::parse(source, kind, long_size)?;
        let mut arguments = parsed.arguments.into_iter();
        let mut next =
            || arguments.next().ok_or(PrintFmtError::Syntax("fewer arguments than conversions".into()));
        let (mut steps, mut before) = (Vec::new(), Vec::new());
        for piece in spec::parse(&parsed.format, 8 * long_size)? {
            let what = match piece {
                Piece::Text(text) => {
                    before = text;
                    continue;
                }
                Piece::Conv(spec) => {
                    let width = if spec.width == Count::Argument { Some(next()?) } else { None };
                    let precision = if spec.precision == Count::Argument { Some(next()?) } else { None };
                    let stars_known = width != Some(None) && precision != Some(None);
                    match next()?.filter(|_| stars_known) {
                        Some(value) => What::new(spec, width.flatten(), precision.flatten(), value),
                        None => What::Unknown,
                    }
                }
            };
            steps.push(Step { before: Ready::new(&std::mem::take(&mut before)), what });
        }
        // The kernel ends some formats with a line break of their own.
        steps.push(Step { before: Ready::new(before.trim_ascii_end()), what: What::Nothing });
        steps.extend(parsed.unused.into_iter().map(Step::pair));
        Ok(PrintFmt { steps })
    }

    /// `name=value` of each field, for an event whose print format cannot be followed.
    pub fn pairs(kind: &EventType) -> PrintFmt {
        PrintFmt { steps: kind.fields.iter().cloned().map(Step::pair).collect() }
    }

    /// Appends what the kernel would print for `record`. `None`, and nothing appended, where the record lacks bytes
    /// that its format promises.
    pub fn print(
        &self,
        record: &[u8],
        endian: Endian,
        context: &Symbolizer,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let start = out.len();
        let done = self.steps.iter().try_for_each(|step| {
            step.before.push(out);
            step.what.print(record, endian, context, out)
        });
        if done.is_none() {
            out.truncate(start);
        }
        done
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
        let context = Symbolizer::new(8, Box::new(kallsyms), Box::new(Vec::new));
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
            let kind = EventType {
                system: String::new(),
                name: "x".into(),
                fields: Vec::new(),
                print_fmt: Some(format.into()),
            };
            if let Ok(program) = PrintFmt::compile(&kind, 8) {
                let mut out = Vec::new();
                let _ = program.print(&[], Endian::Big, &Symbolizer::default(), &mut out);
            }
        }
    }
}
