//! Steps through JSON text without building values: the bytes of each value stay where they are.
//!
//! It is more lenient than RFC 8259 where writers of traces are: a comma may stand behind the last element,
//! and control characters may stand in strings.

use std::borrow::Cow;

/// A string, between its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JsonText<'a> {
    raw: &'a [u8],
}

impl<'a> JsonText<'a> {
    /// The bytes as the file has them, with escapes.
    pub(crate) fn raw(self) -> &'a [u8] {
        self.raw
    }

    /// Whether it has no character.
    pub(crate) fn is_empty(self) -> bool {
        self.raw.is_empty()
    }

    /// The text; what is no UTF-8 is replaced.
    pub(crate) fn to_text(self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// The text. What is no UTF-8 stays as it is; a lone surrogate becomes U+FFFD.
    pub(crate) fn bytes(self) -> Cow<'a, [u8]> {
        match memchr::memchr(b'\\', self.raw) {
            Some(_) => Cow::Owned(unescaped(self.raw)),
            None => Cow::Borrowed(self.raw),
        }
    }
}

/// A value. Numbers, objects and arrays are their text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A string.
    Text(JsonText<'a>),
    /// A number, or what stands in the place of one (`NaN`).
    Number(&'a [u8]),
    /// `true` or `false`.
    Bool(bool),
    /// `null`.
    Null,
    /// An object with its braces.
    Object(&'a [u8]),
    /// An array with its brackets.
    Array(&'a [u8]),
}

/// Why a value cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The text ends inside of the value.
    Cut,
    /// A character that JSON does not allow at its place.
    Syntax,
}

/// So many times eight bytes of a string are searched at once; behind them a longer search is set up.
const SHORT_TEXT_WORDS: usize = 3;

/// A position in a text.
#[derive(Debug, Clone)]
pub(super) struct Scanner<'a> {
    pub(super) data: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(data: &'a [u8], at: usize) -> Scanner<'a> {
        Scanner { data, at }
    }

    /// The next byte that is no white space. The position is then at it.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.data.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Moves behind `byte` if it is next.
    #[inline]
    pub(super) fn skip(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, byte: u8) -> Result<(), Fault> {
        match self.peek() {
            Some(next) if next == byte => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(Fault::Syntax),
            None => Err(Fault::Cut),
        }
    }

    /// Reads a string.
    #[inline]
    pub(super) fn text(&mut self) -> Result<JsonText<'a>, Fault> {
        self.expect(b'"')?;
        self.text_behind_quote()
    }

    /// Reads a string whose first quote has been read.
    #[inline]
    fn text_behind_quote(&mut self) -> Result<JsonText<'a>, Fault> {
        let start = self.at;
        // Most strings are short: to search them by eight bytes takes less than to set up a search.
        let (words, _) = self.data[start..].as_chunks::<8>();
        for (number, word) in words.iter().take(SHORT_TEXT_WORDS).enumerate() {
            let Some(within) = first_quote_or_backslash(*word) else { continue };
            let len = number * 8 + within;
            if word[within] == b'\\' {
                break;
            }
            self.at = start + len + 1;
            return Ok(JsonText { raw: &self.data[start..start + len] });
        }
        self.long_text(start)
    }

    /// Reads the rest of a string, of which everything is searched from `start` on.
    fn long_text(&mut self, start: usize) -> Result<JsonText<'a>, Fault> {
        loop {
            let rest = self.data.get(self.at..).unwrap_or(&[]);
            let found = memchr::memchr2(b'"', b'\\', rest).ok_or(Fault::Cut)?;
            self.at += found + 1;
            if rest[found] == b'"' {
                return Ok(JsonText { raw: &self.data[start..self.at - 1] });
            }
            self.at += 1;
        }
    }

    /// Reads any value.
    #[inline]
    pub(super) fn value(&mut self) -> Result<Value<'a>, Fault> {
        match self.peek().ok_or(Fault::Cut)? {
            b'"' => Ok(Value::Text(self.text()?)),
            b'{' => Ok(Value::Object(self.nested()?)),
            b'[' => Ok(Value::Array(self.nested()?)),
            _ => self.word(),
        }
    }

    /// Reads a number or a word.
    fn word(&mut self) -> Result<Value<'a>, Fault> {
        let rest = &self.data[self.at..];
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        let len = rest.iter().position(|byte| !is_part(*byte)).unwrap_or(rest.len());
        let word = &rest[..len];
        self.at += word.len();
        match word {
            _ if self.at == self.data.len() => Err(Fault::Cut),
            b"true" => Ok(Value::Bool(true)),
            b"false" => Ok(Value::Bool(false)),
            b"null" => Ok(Value::Null),
            b"" => Err(Fault::Syntax),
            [b'0'..=b'9' | b'-' | b'+' | b'.', ..] | b"NaN" | b"Infinity" => Ok(Value::Number(word)),
            _ => Err(Fault::Syntax),
        }
    }

    /// Reads an object or an array up to its end. Only strings and brackets are examined; the members are
    /// checked when they are read.
    fn nested(&mut self) -> Result<&'a [u8], Fault> {
        let start = self.at;
        let mut depth = 0usize;
        while let Some(byte) = self.data.get(self.at) {
            match byte {
                b'"' => {
                    self.text()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        self.at += 1;
                        return Ok(&self.data[start..self.at]);
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
        Err(Fault::Cut)
    }

    /// Reads the next member of an object whose brace has been read: its name and its value. `None` at the
    /// object's end, which is read then.
    #[inline]
    pub(super) fn member(&mut self) -> Result<Option<(JsonText<'a>, Value<'a>)>, Fault> {
        Ok(match self.member_name()? {
            Some(name) => Some((name, self.value()?)),
            None => None,
        })
    }

    /// Reads the name of the next member and its colon.
    #[inline]
    pub(super) fn member_name(&mut self) -> Result<Option<JsonText<'a>>, Fault> {
        let mut next = self.peek();
        if next == Some(b',') {
            self.at += 1;
            next = self.peek();
        }
        match next {
            Some(b'"') => self.at += 1,
            Some(b'}') => {
                self.at += 1;
                return Ok(None);
            }
            Some(_) => return Err(Fault::Syntax),
            None => return Err(Fault::Cut),
        }
        let name = self.text_behind_quote()?;
        self.expect(b':')?;
        Ok(Some(name))
    }
}

/// The place of the first quote or backslash among eight bytes.
#[inline]
fn first_quote_or_backslash(bytes: [u8; 8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let word = u64::from_le_bytes(bytes);
    // The high bit of the first byte that is zero becomes set; of bytes behind it, it may be set without
    // cause.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    let found = zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word ^ (ONES * u64::from(b'\\')));
    (found != 0).then(|| found.trailing_zeros() as usize / 8)
}

/// The members of an object, up to the first fault in it.
pub(crate) fn members(object: &[u8]) -> impl Iterator<Item = (JsonText<'_>, Value<'_>)> {
    let mut scanner = Scanner::new(object, 0);
    let is_object = scanner.skip(b'{');
    std::iter::from_fn(move || if is_object { scanner.member().ok().flatten() } else { None })
}

/// The elements of an array, up to the first fault in it.
pub(crate) fn elements(array: &[u8]) -> impl Iterator<Item = Value<'_>> {
    let mut scanner = Scanner::new(array, 0);
    let is_array = scanner.skip(b'[');
    std::iter::from_fn(move || {
        scanner.skip(b',');
        if !is_array || scanner.peek() == Some(b']') { None } else { scanner.value().ok() }
    })
}

/// The members of an object, and whether the text ends inside of it. An object or an array that is cut is the
/// rest of the text.
pub(crate) fn members_of_cut(object: &[u8]) -> (Vec<(JsonText<'_>, Value<'_>)>, bool) {
    let mut scanner = Scanner::new(object, 0);
    let mut all = Vec::new();
    if !scanner.skip(b'{') {
        return (all, true);
    }
    loop {
        let name = match scanner.member_name() {
            Ok(Some(name)) => name,
            Ok(None) => return (all, false),
            Err(_) => return (all, true),
        };
        let (value, is_cut) = value_or_rest(&mut scanner);
        all.extend(value.map(|value| (name, value)));
        if is_cut {
            return (all, true);
        }
    }
}

/// The elements of an array, as [`members_of_cut`] has the members of an object.
pub(crate) fn elements_of_cut(array: &[u8]) -> (Vec<Value<'_>>, bool) {
    let mut scanner = Scanner::new(array, 0);
    let mut all = Vec::new();
    if !scanner.skip(b'[') {
        return (all, true);
    }
    loop {
        scanner.skip(b',');
        if scanner.peek() == Some(b']') {
            return (all, false);
        }
        let (value, is_cut) = value_or_rest(&mut scanner);
        all.extend(value);
        if is_cut {
            return (all, true);
        }
    }
}

/// The next value, and whether the text ends inside of it.
fn value_or_rest<'a>(scanner: &mut Scanner<'a>) -> (Option<Value<'a>>, bool) {
    let first = scanner.peek();
    let rest = &scanner.data[scanner.at..];
    match (scanner.value(), first) {
        (Ok(value), _) => (Some(value), false),
        (Err(Fault::Cut), Some(b'{')) => (Some(Value::Object(rest)), true),
        (Err(Fault::Cut), Some(b'[')) => (Some(Value::Array(rest)), true),
        (Err(_), _) => (None, true),
    }
}

/// The member `name` of an object.
pub(crate) fn member<'a>(object: &'a [u8], name: &str) -> Option<Value<'a>> {
    members(object).find(|(text, _)| text.raw() == name.as_bytes()).map(|(_, value)| value)
}

fn unescaped(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let (escape, behind) = rest[at + 1..].split_first().map_or((b'\\', &[][..]), |(e, b)| (*e, b));
        rest = behind;
        match escape {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'u' => {
                let mut utf8 = [0; 4];
                out.extend_from_slice(utf16(&mut rest).encode_utf8(&mut utf8).as_bytes());
            }
            other => out.push(other),
        }
    }
    out.extend_from_slice(rest);
    out
}

/// Reads a character from the hexadecimal digits of one UTF-16 unit, or of two units with an escape between
/// them.
fn utf16(rest: &mut &[u8]) -> char {
    let Some(first) = hex4(rest) else { return char::REPLACEMENT_CHARACTER };
    let behind = rest.get(4..).unwrap_or(&[]);
    *rest = behind;
    let mut units = [first, 0];
    let mut len = 1;
    if (0xd800..0xdc00).contains(&first)
        && let Some(second) = behind.strip_prefix(b"\\u").and_then(hex4)
        && (0xdc00..0xe000).contains(&second)
    {
        units[1] = second;
        len = 2;
        *rest = behind.get(6..).unwrap_or(&[]);
    }
    let decoded = char::decode_utf16(units[..len].iter().copied()).next();
    decoded.and_then(Result::ok).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn hex4(text: &[u8]) -> Option<u16> {
    let digits = text.get(..4)?;
    digits.iter().try_fold(0u16, |sum, digit| Some(sum << 4 | (*digit as char).to_digit(16)? as u16))
}

/// The integer of a number, where it is one that an `i64` or a `u64` holds.
pub(crate) fn integer(number: &[u8]) -> Option<i128> {
    let (is_negative, digits) = match number {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 20 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // 19 digits fit: numbers of 128 bits take several times as long.
    let (first, last) = digits.split_at(digits.len().min(19));
    let value = first.iter().fold(0u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    let value = last.iter().fold(i128::from(value), |sum, digit| sum * 10 + i128::from(digit - b'0'));
    Some(if is_negative { -value } else { value })
}

/// The value of a decimal number: digits with an optional point, sign and exponent, and nothing else.
pub(crate) fn float(number: &[u8]) -> Option<f64> {
    let is_decimal = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    if !number.iter().all(is_decimal) || !number.iter().any(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(number).ok()?.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Nanoseconds of a number of microseconds, exactly where it is written without an exponent. What is below
/// one nanosecond is left out.
#[inline]
pub(crate) fn nanoseconds(micros: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match micros {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let mut ns = 0i64;
    let mut len = 0;
    while let Some(digit) = digits.get(len).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        ns = ns.checked_mul(10)?.checked_add(digit.into())?;
        len += 1;
    }
    ns = ns.checked_mul(1000)?;
    match digits.get(len) {
        None if len > 0 => {}
        Some(b'.') => {
            let fraction = &digits[len + 1..];
            if !fraction.iter().all(u8::is_ascii_digit) {
                return float(micros).map(|micros| (micros * 1000.0) as i64);
            }
            if len + fraction.len() == 0 {
                return None;
            }
            let mut scale = 100;
            for digit in fraction.iter().take(3) {
                ns = ns.checked_add(i64::from(digit - b'0') * scale)?;
                scale /= 10;
            }
        }
        _ => return float(micros).map(|micros| (micros * 1000.0) as i64),
    }
    Some(if is_negative { -ns } else { ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        for (text, ns) in [
            ("0", Some(0)),
            ("5.1", Some(5_100)),
            ("3473608.458", Some(3_473_608_458)),
            ("246.", Some(246_000)),
            (".75", Some(750)),
            ("-2.5", Some(-2_500)),
            ("1.2345678", Some(1_234)),
            ("1e3", Some(1_000_000)),
            ("1.5e1", Some(15_000)),
            ("9007199254740993", Some(9_007_199_254_740_993_000)),
            ("99999999999999999999", None),
            ("100a", None),
            ("", None),
            (".", None),
            ("-", None),
            ("NaN", None),
        ] {
            assert_eq!(nanoseconds(text.as_bytes()), ns, "{text}");
        }
    }

    #[test]
    fn numbers_are_told_from_what_only_looks_like_them() {
        for (text, want) in [
            (".75", Some(0.75)),
            ("246.", Some(246.0)),
            ("01.23", Some(1.23)),
            ("+10.5", Some(10.5)),
            ("1.5e", None),
            ("2e+", None),
            (".", None),
            ("+", None),
            ("-", None),
            ("inf", None),
            ("1e999", None),
        ] {
            assert_eq!(float(text.as_bytes()), want, "{text}");
        }
        assert_eq!(integer(b"-5"), Some(-5));
        assert_eq!(integer(b"18446744073709551615"), Some(u64::MAX.into()));
        assert_eq!(integer(b"1.0"), None);
    }

    #[test]
    fn strings_of_each_length_end_at_their_quote() {
        for len in 0..40 {
            for filling in ["a", "!", "#", "[", "]", "\u{a2}", "\u{dc}", "\u{1}"] {
                let text = filling.repeat(len);
                let json = format!("\"{text}\",\"\\\\");
                let mut scanner = Scanner::new(json.as_bytes(), 0);
                assert_eq!(scanner.text().map(JsonText::raw), Ok(text.as_bytes()));
                assert_eq!(scanner.at, text.len() + 2);
                let escaped = format!("\"{text}\\\"b\"");
                let read = Scanner::new(escaped.as_bytes(), 0).text().unwrap();
                assert_eq!(read.bytes().as_ref(), format!("{text}\"b").as_bytes());
                assert_eq!(Scanner::new(&escaped.as_bytes()[..escaped.len() - 1], 0).text(), Err(Fault::Cut));
            }
        }
    }

    #[test]
    fn strings_come_back_without_escapes() {
        let text = |json: &str| {
            let text = Scanner::new(json.as_bytes(), 0).text().unwrap();
            String::from_utf8(text.bytes().into_owned()).unwrap()
        };
        assert_eq!(text(r#""a\"b\\\/\n\u00e9""#), "a\"b\\/\n\u{e9}");
        assert_eq!(text(r#""\ud83d\ude00 \ud83d x \uZZ""#), "\u{1f600} \u{fffd} x \u{fffd}ZZ");
        assert_eq!(Scanner::new(b"\"cut\\", 0).text(), Err(Fault::Cut));
    }

    #[test]
    fn members_and_elements_end_at_the_first_fault() {
        let object = br#"{"a": 1, "b": [1, {"x": "}]"}], "c": null, "d": tru}"#;
        let names: Vec<_> = members(object).map(|(name, _)| name.raw().to_vec()).collect();
        assert_eq!(names, [b"a", b"b", b"c"]);
        assert_eq!(member(object, "b"), Some(Value::Array(br#"[1, {"x": "}]"}]"#)));
        assert_eq!(elements(b"[1, 2, ]").count(), 2);
    }

    #[test]
    fn of_a_cut_text_the_whole_members_and_the_rest_come() {
        let text = br#"{"a": 1, "b": [1, {"c": 2}, {"d": 3"#;
        let (members, is_cut) = members_of_cut(text);
        let names: Vec<&[u8]> = members.iter().map(|(name, _)| name.raw()).collect();
        assert_eq!((names, is_cut), (vec![&b"a"[..], b"b"], true));
        let Value::Array(array) = members[1].1 else { panic!("{members:?}") };
        let (elements, is_cut) = elements_of_cut(array);
        assert_eq!((elements.len(), is_cut), (3, true));
        assert_eq!(elements[2], Value::Object(br#"{"d": 3"#));
        assert!(!elements_of_cut(b"[1, 2]").1);
    }

    #[test]
    fn deep_nesting_takes_no_stack() {
        let deep = [b"[".repeat(1_000_000), b"]".repeat(1_000_000)].concat();
        assert!(Scanner::new(&deep, 0).value().is_ok());
        assert_eq!(Scanner::new(&deep[..1_500_000], 0).value(), Err(Fault::Cut));
    }
}
