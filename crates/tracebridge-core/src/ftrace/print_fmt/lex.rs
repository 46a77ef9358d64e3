//! Splits the C source of a `print fmt:` line into tokens.

use super::PrintFmtError;

/// A token of C.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Ident(String),
    Number(Literal),
    /// A string literal whose escapes are resolved. The parser joins adjacent literals.
    Text(Vec<u8>),
    /// An operator or a bracket.
    Punct(&'static str),
}

/// An integer literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Literal {
    pub(super) value: u64,
    pub(super) unsigned: bool,
    pub(super) long: bool,
}

/// The operators and brackets, longest first.
const PUNCT: [&str; 36] = [
    "->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "(", ")", "[", "]", "{", "}", ",", "?", ":", "+",
    "-", "*", "/", "%", "&", "|", "^", "~", "!", "<", ">", "=", ";", ".", "#", "@", "\\",
];

pub(super) fn lex(source: &str) -> Result<Vec<Token>, PrintFmtError> {
    let bytes = source.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        match b {
            _ if b.is_ascii_whitespace() => at += 1,
            b'"' => {
                let (text, end) = quoted(bytes, at, b'"')?;
                tokens.push(Token::Text(text));
                at = end;
            }
            b'\'' => {
                let (text, end) = quoted(bytes, at, b'\'')?;
                let value = text.first().map_or(0, |c| u64::from(*c));
                tokens.push(Token::Number(Literal { value, unsigned: false, long: false }));
                at = end;
            }
            b'0'..=b'9' => {
                let end = span(bytes, at, |b| b.is_ascii_alphanumeric());
                tokens.push(Token::Number(number(&source[at..end])?));
                at = end;
            }
            _ if b.is_ascii_alphabetic() || b == b'_' => {
                let end = span(bytes, at, |b| b.is_ascii_alphanumeric() || b == b'_');
                tokens.push(Token::Ident(source[at..end].to_owned()));
                at = end;
            }
            _ => {
                let rest = &bytes[at..];
                let punct = PUNCT.iter().find(|p| rest.starts_with(p.as_bytes()));
                let punct = punct.ok_or_else(|| PrintFmtError::Syntax(format!("byte {b:#04x}")))?;
                tokens.push(Token::Punct(punct));
                at += punct.len();
            }
        }
    }
    Ok(tokens)
}

fn span(bytes: &[u8], from: usize, is: impl Fn(u8) -> bool) -> usize {
    bytes[from..].iter().position(|b| !is(*b)).map_or(bytes.len(), |n| from + n)
}

fn number(text: &str) -> Result<Literal, PrintFmtError> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let suffix = text[digits.len()..].to_ascii_lowercase();
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    let value =
        u64::from_str_radix(digits, radix).map_err(|_| PrintFmtError::Syntax(format!("number `{text}`")))?;
    // A literal has the first type that can hold it. Only a hexadecimal or octal literal may be unsigned
    // without a suffix.
    let long =
        suffix.contains('l') || value > u64::from(u32::MAX) || (radix == 10 && value > i32::MAX as u64);
    let beyond = if long { value > i64::MAX as u64 } else { value > i32::MAX as u64 };
    Ok(Literal { value, unsigned: suffix.contains('u') || beyond, long })
}

/// The text between the quotes from `at` on, and the offset behind the closing quote.
fn quoted(bytes: &[u8], at: usize, quote: u8) -> Result<(Vec<u8>, usize), PrintFmtError> {
    let mut out = Vec::new();
    let mut i = at + 1;
    while let Some(&b) = bytes.get(i) {
        i += 1;
        match b {
            b if b == quote => return Ok((out, i)),
            b'\\' => {
                let escape = bytes.get(i).copied().unwrap_or(b'\\');
                i += 1;
                out.push(match escape {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'a' => 7,
                    b'b' => 8,
                    b'f' => 12,
                    b'v' => 11,
                    b'x' => {
                        let end = span(bytes, i, |b| b.is_ascii_hexdigit()).min(i + 2);
                        let hex = std::str::from_utf8(&bytes[i..end]).unwrap_or_default();
                        i = end;
                        u8::from_str_radix(hex, 16).unwrap_or(b'x')
                    }
                    b'0'..=b'7' => {
                        let end = span(bytes, i, |b| (b'0'..=b'7').contains(&b)).min(i + 2);
                        let octal = std::str::from_utf8(&bytes[i - 1..end]).unwrap_or_default();
                        i = end;
                        u8::from_str_radix(octal, 8).unwrap_or(0)
                    }
                    other => other,
                });
            }
            b => out.push(b),
        }
    }
    Err(PrintFmtError::Syntax("a text that does not end".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_have_the_types_of_c() {
        let of = |text: &str| {
            let n = number(text).unwrap();
            (n.value, n.unsigned, n.long)
        };
        assert_eq!(of("12"), (12, false, false));
        assert_eq!(of("0x80000000"), (0x8000_0000, true, false));
        assert_eq!(of("2147483648"), (0x8000_0000, false, true));
        assert_eq!(of("1UL"), (1, true, true));
        assert_eq!(of("017"), (15, false, false));
        assert!(number("0y").is_err());
    }

    #[test]
    fn texts_resolve_their_escapes() {
        assert_eq!(lex(r#""a\n\x41\101\"" 'B'"#).unwrap()[0], Token::Text(b"a\nAA\"".to_vec()));
        assert!(lex("\"open").is_err());
    }
}
