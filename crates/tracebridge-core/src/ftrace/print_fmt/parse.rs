//! Parses a `print fmt:` line, which is a format string and its arguments. The arguments are C expressions.

use super::PrintFmtError;
use super::expr::{BinaryOp, CType, Expr, IntType, NameTable, Num, ctype};
use super::lex::{Token, lex};
use crate::depth::Depth;
use crate::ftrace::{EventType, Field, FieldType};

type Result<T> = std::result::Result<T, PrintFmtError>;

/// How deep brackets may nest. A format comes from a file and may nest them without end.
const DEPTH: Depth = Depth::new(64);
/// The most operators in one argument, not counting those of constants. A chain `a+a+…` is as deep a tree as
/// it has operators, and evaluation follows the tree with calls. The kernel's arguments have fewer than 100.
const MAX_OPERATORS: u32 = 1000;

/// Constants that the kernel's formats refer to by name (include/linux/hrtimer.h).
const CONSTANTS: [(&str, i64); 14] = [
    ("HRTIMER_MODE_ABS", 0),
    ("HRTIMER_MODE_REL", 1),
    ("HRTIMER_MODE_ABS_PINNED", 2),
    ("HRTIMER_MODE_REL_PINNED", 3),
    ("HRTIMER_MODE_ABS_SOFT", 4),
    ("HRTIMER_MODE_REL_SOFT", 5),
    ("HRTIMER_MODE_ABS_PINNED_SOFT", 6),
    ("HRTIMER_MODE_REL_PINNED_SOFT", 7),
    ("HRTIMER_MODE_ABS_HARD", 8),
    ("HRTIMER_MODE_REL_HARD", 9),
    ("HRTIMER_MODE_ABS_PINNED_HARD", 10),
    ("HRTIMER_MODE_REL_PINNED_HARD", 11),
    ("HRTIMER_MODE_PINNED", 2),
    ("HRTIMER_MODE_SOFT", 4),
];

pub(super) struct Parser<'k> {
    tokens: Vec<Token>,
    at: usize,
    kind: &'k EventType,
    long_size: u8,
    depth: Depth,
    /// The operators of the current argument that remained after constants were folded.
    operators: u32,
    /// The fields that the parsed part of the format uses.
    used: Vec<usize>,
}

/// A parsed print format.
pub(super) struct ParsedFormat {
    pub(super) format: Vec<u8>,
    /// `None` for an argument that only the kernel can compute.
    pub(super) arguments: Vec<Option<Expr>>,
    /// The fields that only arguments with `None` use.
    pub(super) unused: Vec<Field>,
    /// Why an argument was refused that could be computed, but not within the limits.
    pub(super) too_complex: Option<PrintFmtError>,
}

/// Parses a format string and its arguments.
pub(super) fn parse(source: &str, kind: &EventType, long_size: u8) -> Result<ParsedFormat> {
    let mut p =
        Parser { tokens: lex(source)?, at: 0, kind, long_size, depth: DEPTH, operators: 0, used: Vec::new() };
    let bracketed = p.take("(");
    let Some(format) = p.text() else {
        return Err(PrintFmtError::Syntax("no format string at its start".into()));
    };
    let mut arguments = Vec::new();
    let mut lacking = Vec::new();
    let mut too_complex = None;
    while p.take(",") {
        let start = p.at;
        let used_before = p.used.len();
        p.depth = DEPTH;
        p.operators = 0;
        let argument = match p.expr() {
            Ok(argument) => Some(argument).filter(|_| p.is(",") || p.at_end(bracketed)),
            Err(error) => {
                too_complex =
                    too_complex.or(Some(error).filter(|e| matches!(e, PrintFmtError::TooComplex(_))));
                None
            }
        };
        if argument.is_none() {
            p.at = start;
            p.skip_argument();
            lacking.extend(p.used.drain(used_before..));
            lacking.extend(p.fields_in(start));
        }
        arguments.push(argument);
    }
    if bracketed {
        p.expect(")")?;
    }
    if let Some(token) = p.peek() {
        return Err(PrintFmtError::Syntax(format!("{token:?} after the last argument")));
    }
    lacking.sort_unstable();
    lacking.dedup();
    p.used.sort_unstable();
    lacking.retain(|field| p.used.binary_search(field).is_err());
    let unused = lacking.into_iter().filter_map(|i| kind.fields.get(i).cloned()).collect();
    Ok(ParsedFormat { format, arguments, unused, too_complex })
}

fn unsupported<T>(what: impl Into<String>) -> Result<T> {
    Err(PrintFmtError::Unsupported(what.into()))
}

fn too_complex<T>(what: String) -> Result<T> {
    Err(PrintFmtError::TooComplex(what))
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn is(&self, punct: &str) -> bool {
        self.peek_at(0, punct)
    }

    fn peek_at(&self, ahead: usize, punct: &str) -> bool {
        matches!(self.tokens.get(self.at + ahead), Some(Token::Punct(p)) if *p == punct)
    }

    fn take(&mut self, punct: &str) -> bool {
        let found = self.is(punct);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, punct: &str) -> Result<()> {
        if self.take(punct) {
            return Ok(());
        }
        Err(PrintFmtError::Syntax(format!("`{punct}` expected, found {:?}", self.peek())))
    }

    fn at_end(&self, bracketed: bool) -> bool {
        self.at + usize::from(bracketed) == self.tokens.len()
    }

    /// Skips an argument that cannot be parsed, up to the comma or the end behind it.
    fn skip_argument(&mut self) {
        let mut open = 0;
        while let Some(token) = self.peek() {
            match token {
                Token::Punct("(" | "[" | "{") => open += 1,
                Token::Punct(")" | "]" | "}") if open == 0 => return,
                Token::Punct(")" | "]" | "}") => open -= 1,
                Token::Punct(",") if open == 0 => return,
                _ => {}
            }
            self.at += 1;
        }
    }

    /// The fields whose names are among the tokens from `start` up to the current one.
    fn fields_in(&self, start: usize) -> Vec<usize> {
        let names = self.tokens[start..self.at].iter().filter_map(|token| match token {
            Token::Ident(name) => self.kind.field(name),
            _ => None,
        });
        names.collect()
    }

    /// Takes adjacent string literals as one text.
    fn text(&mut self) -> Option<Vec<u8>> {
        let mut out: Option<Vec<u8>> = None;
        while let Some(Token::Text(text)) = self.peek() {
            out.get_or_insert_default().extend_from_slice(text);
            self.at += 1;
        }
        out
    }

    fn ident(&mut self) -> Result<String> {
        match self.peek() {
            Some(Token::Ident(name)) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            other => Err(PrintFmtError::Syntax(format!("a name expected, found {other:?}"))),
        }
    }

    fn expr(&mut self) -> Result<Expr> {
        let outer = self.depth;
        self.depth = outer.inner().or_else(|deep| too_complex(format!("brackets {deep}")))?;
        let condition = self.binary(0)?;
        let out = if self.take("?") {
            // `a ?: b` is an extension of GNU C.
            let then = if self.is(":") { None } else { Some(Box::new(self.expr()?)) };
            self.expect(":")?;
            let other = self.expr()?;
            match condition {
                // The condition is a constant, which the kernel's configuration has decided.
                Expr::Num(n) if n.v != 0 => then.map_or(condition, |then| *then),
                Expr::Num(_) => other,
                _ => self.operator_node(Expr::Ternary(Box::new(condition), then, Box::new(other)))?,
            }
        } else {
            condition
        };
        self.depth = outer;
        Ok(out)
    }

    /// Replaces an operator whose operands are all numbers by its value, and counts any other operator.
    fn operator_node(&mut self, expr: Expr) -> Result<Expr> {
        let expr = fold(expr);
        self.operators += u32::from(!matches!(expr, Expr::Num(_)));
        if self.operators > MAX_OPERATORS {
            return too_complex(format!("more than {MAX_OPERATORS} operators in one argument"));
        }
        Ok(expr)
    }

    fn operator(&self) -> Option<(BinaryOp, u8)> {
        let Some(Token::Punct(punct)) = self.peek() else { return None };
        Some(match *punct {
            "||" => (BinaryOp::OrOr, 1),
            "&&" => (BinaryOp::AndAnd, 2),
            "|" => (BinaryOp::Or, 3),
            "^" => (BinaryOp::Xor, 4),
            "&" => (BinaryOp::And, 5),
            "==" => (BinaryOp::Eq, 6),
            "!=" => (BinaryOp::Ne, 6),
            "<" => (BinaryOp::Lt, 7),
            ">" => (BinaryOp::Gt, 7),
            "<=" => (BinaryOp::Le, 7),
            ">=" => (BinaryOp::Ge, 7),
            "<<" => (BinaryOp::Shl, 8),
            ">>" => (BinaryOp::Shr, 8),
            "+" => (BinaryOp::Add, 9),
            "-" => (BinaryOp::Sub, 9),
            "*" => (BinaryOp::Mul, 10),
            "/" => (BinaryOp::Div, 10),
            "%" => (BinaryOp::Rem, 10),
            _ => return None,
        })
    }

    /// Parses operators that bind tighter than `least`.
    fn binary(&mut self, least: u8) -> Result<Expr> {
        let mut left = self.unary()?;
        while let Some((op, tightness)) = self.operator().filter(|(_, t)| *t > least) {
            self.at += 1;
            let right = self.binary(tightness)?;
            left = self.operator_node(Expr::Binary(op, Box::new(left), Box::new(right)))?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr> {
        let outer = self.depth;
        self.depth = outer.inner().or_else(|deep| too_complex(format!("operators {deep}")))?;
        let out = self.unary_inner();
        self.depth = outer;
        out
    }

    fn unary_inner(&mut self) -> Result<Expr> {
        if self.take("-") {
            return Ok(fold(Expr::Negate(Box::new(self.unary()?))));
        }
        if self.take("+") {
            return self.unary();
        }
        if self.take("!") {
            return Ok(Expr::Not(Box::new(self.unary()?)));
        }
        if self.take("~") {
            return Ok(fold(Expr::Complement(Box::new(self.unary()?))));
        }
        if self.take("&") {
            return Ok(Expr::Address(Box::new(self.unary()?)));
        }
        if self.take("*") {
            let pointer = self.unary()?;
            let elem = self.element_of(&pointer)?;
            let index = Box::new(Expr::Num(Num::int(0)));
            return Ok(Expr::Element { array: Box::new(pointer), index, elem });
        }
        if let Some(ctype) = self.cast()? {
            return Ok(fold(Expr::Cast(ctype, Box::new(self.unary()?))));
        }
        let inner = self.primary()?;
        self.postfix(inner)
    }

    fn postfix(&mut self, mut inner: Expr) -> Result<Expr> {
        loop {
            if self.take("[") {
                let index = self.expr()?;
                self.expect("]")?;
                let elem = self.element_of(&inner)?;
                inner = match element_at(&inner, &index, elem) {
                    Some(field) => Expr::Field(field),
                    None => Expr::Element { array: Box::new(inner), index: Box::new(index), elem },
                };
            } else if self.is(".") || self.is("->") {
                return unsupported("a member of a structure inside the record");
            } else {
                return Ok(inner);
            }
        }
    }

    fn primary(&mut self) -> Result<Expr> {
        if let Some(text) = self.text() {
            return Ok(Expr::Text(text));
        }
        match self.peek().cloned() {
            Some(Token::Number(n)) => {
                self.at += 1;
                Ok(Expr::Num(Num::new(n.value as i64, n.unsigned, n.long)))
            }
            Some(Token::Punct("(")) => {
                self.at += 1;
                if self.is("{") {
                    return unsupported("a statement as an expression");
                }
                let inner = self.expr()?;
                self.expect(")")?;
                Ok(inner)
            }
            Some(Token::Ident(name)) => {
                self.at += 1;
                match name.as_str() {
                    "REC" | "__entry" if self.take("->") => Ok(Expr::Field(self.field()?)),
                    "sizeof" => self.size_of(),
                    "NULL" | "false" => Ok(Expr::Num(Num::int(0))),
                    "true" => Ok(Expr::Num(Num::int(1))),
                    _ if self.take("(") => self.call(&name),
                    _ => match CONSTANTS.iter().find(|(known, _)| *known == name) {
                        Some((_, value)) => Ok(Expr::Num(Num::int(*value))),
                        None => unsupported(format!("the name `{name}`")),
                    },
                }
            }
            other => Err(PrintFmtError::Syntax(format!("a value expected, found {other:?}"))),
        }
    }

    fn field(&mut self) -> Result<Field> {
        let name = self.ident()?;
        let Some(index) = self.kind.field(&name) else {
            return unsupported(format!("the field `{name}`, which its format lacks"));
        };
        self.used.push(index);
        Ok(self.kind.fields[index].clone())
    }

    /// Parses the one argument of a function, which is a field's name. Returns an expression for the field's
    /// bytes.
    fn field_argument(&mut self) -> Result<Box<Expr>> {
        let field = self.field()?;
        self.expect(")")?;
        Ok(Box::new(Expr::Field(field)))
    }

    fn call(&mut self, name: &str) -> Result<Expr> {
        match name {
            "__get_str" | "__get_rel_str" | "__get_dynamic_array" | "__get_rel_dynamic_array" => {
                Ok(*self.field_argument()?)
            }
            "__get_dynamic_array_len" | "__get_rel_dynamic_array_len" => {
                Ok(Expr::Len(self.field_argument()?))
            }
            "__get_bitmask" | "__get_rel_bitmask" | "__get_cpumask" | "__get_rel_cpumask" => {
                Ok(Expr::Bitmask(self.field_argument()?))
            }
            "__get_sockaddr" | "__get_rel_sockaddr" => Ok(Expr::Sockaddr(self.field_argument()?)),
            "__print_flags" | "__print_flags_u64" => self.flags(),
            "__print_symbolic" | "__print_symbolic_u64" => {
                let value = Box::new(self.expr()?);
                Ok(Expr::Symbolic { value, table: self.table()? })
            }
            "__print_hex" | "__print_hex_str" | "ftrace_print_hex_seq" => {
                let [buffer, len] = self.arguments()?;
                Ok(Expr::Hex { buffer, len, spaced: name != "__print_hex_str" })
            }
            "__print_array" => {
                let [buffer, count, size] = self.arguments()?;
                Ok(Expr::Array { buffer, count, size })
            }
            "__print_u8_array" | "__print_u16_array" | "__print_u32_array" | "__print_u64_array" => {
                let bits: i64 = name["__print_u".len()..].trim_end_matches("_array").parse().unwrap_or(8);
                let [buffer, count] = self.arguments()?;
                Ok(Expr::Array { buffer, count, size: Box::new(Expr::Num(Num::int(bits / 8))) })
            }
            "__builtin_expect" => {
                let [value, _] = self.arguments()?;
                Ok(*value)
            }
            "__builtin_constant_p" => {
                let [_] = self.arguments()?;
                Ok(Expr::Num(Num::int(0)))
            }
            "__print_ns_to_secs" | "__print_ns_without_secs" => {
                let [value] = self.arguments()?;
                let op = if name == "__print_ns_to_secs" { BinaryOp::Div } else { BinaryOp::Rem };
                let value = Box::new(Expr::Cast(CType::Int(IntType { bytes: 8, signed: false }), value));
                Ok(Expr::Binary(op, value, Box::new(Expr::Num(Num::int(1_000_000_000)))))
            }
            _ => match swapper(name) {
                Some((bytes, always)) => {
                    let [value] = self.arguments()?;
                    Ok(Expr::Swap { value, bytes, always })
                }
                None => unsupported(format!("the function `{name}`")),
            },
        }
    }

    /// Parses exactly N arguments and the closing bracket.
    fn arguments<const N: usize>(&mut self) -> Result<[Box<Expr>; N]> {
        let mut list = Vec::with_capacity(N);
        loop {
            list.push(Box::new(self.expr()?));
            if !self.take(",") {
                break;
            }
        }
        self.expect(")")?;
        list.try_into().map_err(|_| PrintFmtError::Syntax(format!("not {N} arguments")))
    }

    fn flags(&mut self) -> Result<Expr> {
        let value = Box::new(self.expr()?);
        self.expect(",")?;
        let delimiter = match self.text() {
            Some(text) => text,
            // The delimiter is NULL.
            None => {
                self.expr()?;
                Vec::new()
            }
        };
        Ok(Expr::Flags { value, delimiter, table: self.table()? })
    }

    /// Parses a table `, { value, "name" }, …)`. An entry whose value is an unknown name is left out. The
    /// number behind such a name is then printed as a number.
    fn table(&mut self) -> Result<NameTable> {
        let mut table = NameTable::new();
        let mut ended = false;
        while self.take(",") && !self.is(")") {
            self.expect("{")?;
            let start = self.at;
            let depth = self.depth;
            let value = self.expr();
            if value.is_err() {
                self.at = start;
                self.depth = depth;
                while !self.is(",") && self.at < self.tokens.len() {
                    self.at += 1;
                }
            }
            self.expect(",")?;
            let name = self.expr()?;
            self.take(",");
            self.expect("}")?;
            // An entry without a name ends the table for the kernel too.
            ended |= matches!(name, Expr::Num(_));
            if let (Ok(Expr::Num(n)), Expr::Text(name), false) = (value, name, ended) {
                let bits = if self.long_size == 4 { u64::from(n.v as u32) } else { n.v as u64 };
                table.push((bits, name));
            }
        }
        self.expect(")")?;
        Ok(table)
    }

    fn size_of(&mut self) -> Result<Expr> {
        let size = if let Some(ctype) = self.cast()? {
            match ctype {
                CType::Int(t) => t.bytes,
                CType::Pointer(_) => self.long_size,
                CType::Bool => 1,
                CType::Void => return unsupported("the size of a structure"),
            }
        } else {
            self.expect("(")?;
            let inner = self.expr()?;
            self.expect(")")?;
            match inner {
                Expr::Field(field) => u8::try_from(field.size).unwrap_or(0),
                _ => return unsupported("the size of an expression"),
            }
        };
        Ok(Expr::Num(Num::new(size.into(), true, self.long_size == 8)))
    }

    /// Takes `(type)` if the next tokens are a cast.
    fn cast(&mut self) -> Result<Option<CType>> {
        if !self.is("(") {
            return Ok(None);
        }
        let mut words = Vec::new();
        let mut pointers = 0;
        let mut end = self.at + 1;
        loop {
            match self.tokens.get(end) {
                Some(Token::Ident(word)) if pointers == 0 => words.push(word.as_str()),
                Some(Token::Punct("*")) if !words.is_empty() => pointers += 1,
                Some(Token::Punct(")")) if !words.is_empty() => break,
                _ => return Ok(None),
            }
            end += 1;
        }
        let Some(ctype) = ctype(&words, pointers, self.long_size) else { return Ok(None) };
        self.at = end + 1;
        Ok(Some(ctype))
    }

    /// The type of the elements of an array, or behind a pointer.
    fn element_of(&self, array: &Expr) -> Result<IntType> {
        match array {
            Expr::Cast(CType::Pointer(Some(elem)), _) => Ok(*elem),
            Expr::Cast(_, inner) | Expr::Address(inner) => self.element_of(inner),
            Expr::Field(field) => {
                let signed = !field.ctype.contains("unsigned") && !field.ctype.contains('u');
                let bytes = match field.ty {
                    FieldType::Bytes { elem }
                    | FieldType::DataLocBytes { elem }
                    | FieldType::RelLocBytes { elem } => elem,
                    FieldType::Int | FieldType::Uint => field.size as u8,
                    _ => 1,
                };
                Ok(IntType { bytes, signed })
            }
            _ => unsupported("an index into something else than a field"),
        }
    }
}

/// An element of an array as a field of its own, as for `REC->args[2]`. `None` where the index or the size is
/// not fixed.
fn element_at(array: &Expr, index: &Expr, elem: IntType) -> Option<Field> {
    let (Expr::Field(field), Expr::Num(index)) = (array, index) else { return None };
    let at = u32::try_from(index.v).ok()?.checked_mul(elem.bytes.into())?;
    let inside = at.checked_add(elem.bytes.into())? <= field.size;
    let fixed = matches!(field.ty, FieldType::Bytes { .. }) && field.size > 0;
    let ty = if elem.signed { FieldType::Int } else { FieldType::Uint };
    let offset = field.offset.checked_add(at)?;
    (fixed && inside).then(|| Field { offset, size: elem.bytes.into(), ty, ..field.clone() })
}

/// For a function that changes the byte order: the number of bytes, and whether it reverses them on every
/// machine.
fn swapper(name: &str) -> Option<(u8, bool)> {
    Some(match name {
        "ntohs" | "htons" | "__be16_to_cpu" | "be16_to_cpu" | "__ntohs" => (2, false),
        "ntohl" | "htonl" | "__be32_to_cpu" | "be32_to_cpu" | "__ntohl" => (4, false),
        "__be64_to_cpu" | "be64_to_cpu" => (8, false),
        "__fswab16" | "__swab16" => (2, true),
        "__fswab32" | "__swab32" => (4, true),
        "__fswab64" | "__swab64" => (8, true),
        _ => return None,
    })
}

/// Replaces an expression whose operands are all numbers by its value.
fn fold(expr: Expr) -> Expr {
    match super::eval::constant(&expr) {
        Some(n) => Expr::Num(n),
        None => expr,
    }
}
