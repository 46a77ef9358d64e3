//! Templates of printed events: literal text with placeholders `{field}` and `{field:format}`.
//!
//! `format` is `x` (hex), `#x` (hex with 0x), `03`/`03x` (zero padded), `p` (pointer, or the name of what it
//! points to), `state` (the task state's letters), `softirq` (the soft interrupt's name), `dev`
//! (`major,minor`), `kdev` (`major:minor`), `list` (hex numbers with commas) or `=1=one;2=two` (names for
//! numbers). Without a format, numbers are printed in decimal and texts as they are. `{}` matches text that
//! no field holds.

use crate::formats::{Event, EventType, Field, FieldType, Value};
use crate::ftrace::{SOFTIRQ_NAMES, task_state};

/// The most fields that an event of the catalog has.
pub(crate) const MAX_FIELDS: usize = 32;

/// How often the matcher may try another end for a placeholder's text before it gives the line up.
const MAX_TRIES: u32 = 1000;

/// One printed form of one event.
#[derive(Debug)]
pub(super) struct Template {
    parts: Vec<TemplatePart>,
}

/// A piece of a template.
#[derive(Debug)]
enum TemplatePart {
    Literal(Box<[u8]>),
    Placeholder {
        /// The position in the event's fields; `None` for text that no field holds.
        field: Option<usize>,
        /// Whether an earlier placeholder has filled the field. This placeholder then repeats the field in
        /// another form.
        again: bool,
        format: ValueFormat,
    },
}

/// How a placeholder prints its field.
#[derive(Debug)]
enum ValueFormat {
    Plain { pad: usize },
    Hex { pad: usize, prefix: bool },
    Pointer,
    State,
    Dev(u8),
    List,
    Names(Vec<(i64, Box<[u8]>)>),
}

impl Template {
    pub(super) fn new(pattern: &str, fields: &[Field]) -> Template {
        let mut parts = Vec::new();
        let mut seen = [false; MAX_FIELDS];
        let mut rest = pattern;
        while let Some((lit, after)) = rest.split_once('{') {
            if !lit.is_empty() {
                parts.push(TemplatePart::Literal(lit.as_bytes().into()));
            }
            let (placeholder, tail) = after.split_once('}').unwrap_or((after, ""));
            rest = tail;
            let (name, format) = placeholder.split_once(':').unwrap_or((placeholder, ""));
            let field = fields.iter().position(|f| f.name == name);
            let again = field.is_some_and(|i| std::mem::replace(&mut seen[i], true));
            parts.push(TemplatePart::Placeholder { field, again, format: ValueFormat::new(format) });
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Literal(rest.as_bytes().into()));
        }
        Template { parts }
    }

    pub(super) fn parse<'a>(
        &self,
        text: &'a [u8],
        fields: &[Field],
        out: &mut [Value<'a>; MAX_FIELDS],
    ) -> bool {
        let mut tries = MAX_TRIES;
        fill(&self.parts, text.trim_ascii_end(), fields, out, &mut tries)
    }

    /// Prints `event`, whose type has at least the template's own `fields`, in any order.
    pub(super) fn render(&self, event: &Event<'_>, kind: &EventType, fields: &[Field], out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                TemplatePart::Literal(lit) => out.extend_from_slice(lit),
                TemplatePart::Placeholder { field: None, .. } => out.push(b'?'),
                TemplatePart::Placeholder { field: Some(_), .. } => {}
            }
            let TemplatePart::Placeholder { field: Some(field), format, .. } = part else { continue };
            let name = &fields[*field].name;
            let same_place = kind.fields.get(*field).is_some_and(|f| f.name == *name);
            let at = if same_place { Some(*field) } else { kind.field(name) };
            match at.and_then(|at| event.value(kind, at)) {
                Some(value) => format.render(value, out),
                None => out.push(b'?'),
            }
        }
    }

    /// The template in the form of `print fmt` in a kernel's `format` file, for writing trace.dat.
    pub(super) fn print_fmt(&self, fields: &[Field]) -> String {
        let mut fmt = String::new();
        let mut args = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Literal(lit) => {
                    for c in String::from_utf8_lossy(lit).chars() {
                        match c {
                            '"' | '\\' => fmt.extend(['\\', c]),
                            '%' => fmt.push_str("%%"),
                            c => fmt.push(c),
                        }
                    }
                }
                TemplatePart::Placeholder { field, format, .. } => match field.and_then(|i| fields.get(i)) {
                    Some(field) => format.print_fmt(field, &mut fmt, &mut args),
                    None => fmt.push('?'),
                },
            }
        }
        format!("\"{fmt}\"{args}")
    }
}

/// Matches `parts` with all of `text`. A string ends where the literal behind its placeholder begins. If the
/// rest does not match then, the literal was part of the string, and the next occurrence of the literal is
/// tried.
fn fill<'a>(
    parts: &[TemplatePart],
    text: &'a [u8],
    fields: &[Field],
    out: &mut [Value<'a>; MAX_FIELDS],
    tries: &mut u32,
) -> bool {
    let Some((part, rest)) = parts.split_first() else { return text.is_empty() };
    let (field, again, format) = match part {
        TemplatePart::Literal(lit) => {
            let after = match text.strip_prefix(&**lit) {
                Some(after) => after,
                // The blanks at the end of the line may be missing.
                None if rest.is_empty() && lit.trim_ascii_end() == text => &[],
                None => return false,
            };
            return fill(rest, after, fields, out, tries);
        }
        TemplatePart::Placeholder { field, again, format } => (*field, *again, format),
    };
    let signed = field.and_then(|i| fields.get(i)).map(|f| f.ty);
    let put = |value, out: &mut [Value<'a>; MAX_FIELDS]| {
        if let (Some(i), false) = (field, again) {
            out[i] = value;
        }
    };
    // The end of a number is known without the literal behind it.
    if !again && let Some((value, len)) = format.number(text, signed) {
        let after = &text[len..];
        let closed = match rest.first() {
            Some(TemplatePart::Literal(lit)) => after.starts_with(lit) || after.is_empty(),
            Some(TemplatePart::Placeholder { .. }) => true,
            None => after.is_empty(),
        };
        if closed {
            put(value, out);
            return fill(rest, after, fields, out, tries);
        }
        if !matches!(format, ValueFormat::Pointer) {
            return false;
        }
    }
    if !again && format.only_number(signed) {
        return false;
    }
    let Some(TemplatePart::Literal(end)) = rest.first() else {
        let Some(value) = format.text(text, again) else { return false };
        put(value, out);
        return rest.is_empty();
    };
    let mut from = 0;
    while let Some(at) = find(&text[from..], end).map(|at| from + at) {
        let Some(left) = tries.checked_sub(1) else { return false };
        *tries = left;
        if let Some(value) = format.text(&text[..at], again) {
            put(value, out);
            if fill(rest, &text[at..], fields, out, tries) {
                return true;
            }
        }
        from = at + 1;
    }
    false
}

/// Where the literal `end` begins in `text`. A text nearly always ends at the first occurrence of the
/// literal's first byte, so that preparing a search for the whole literal would take longer than the search.
fn find(text: &[u8], end: &[u8]) -> Option<usize> {
    let (first, _) = end.split_first()?;
    memchr::memchr_iter(*first, text).find(|at| text[*at..].starts_with(end))
}

/// A number at the start of `text` in `radix`, and its length in bytes; a minus sign is allowed in decimal.
fn number_at(text: &[u8], radix: u32) -> Option<(u64, usize)> {
    let minus = radix == 10 && text.first() == Some(&b'-');
    let mut at = usize::from(minus);
    if radix == 16 && text.starts_with(b"0x") {
        at = 2;
    }
    let start = at;
    let mut value = 0u64;
    while let Some(digit) = text.get(at).and_then(|b| char::from(*b).to_digit(radix)) {
        value = value.checked_mul(u64::from(radix))?.checked_add(u64::from(digit))?;
        at += 1;
    }
    (at > start).then_some((if minus { value.wrapping_neg() } else { value }, at))
}

fn typed<'a>(value: u64, ty: Option<FieldType>) -> Value<'a> {
    if ty == Some(FieldType::Int) { Value::Int(value as i64) } else { Value::Uint(value) }
}

fn is_number(ty: Option<FieldType>) -> bool {
    matches!(ty, Some(FieldType::Int | FieldType::Uint))
}

impl ValueFormat {
    fn new(text: &str) -> ValueFormat {
        if let Some(names) = text.strip_prefix('=') {
            let name =
                |n: &str| n.split_once('=').and_then(|(v, n)| Some((v.parse().ok()?, n.as_bytes().into())));
            return ValueFormat::Names(names.split(';').filter_map(name).collect());
        }
        match text {
            "p" => ValueFormat::Pointer,
            "state" => ValueFormat::State,
            "softirq" => {
                ValueFormat::Names((0..).zip(SOFTIRQ_NAMES.map(|name| name.as_bytes().into())).collect())
            }
            "dev" => ValueFormat::Dev(b','),
            "kdev" => ValueFormat::Dev(b':'),
            "list" => ValueFormat::List,
            "#x" => ValueFormat::Hex { pad: 0, prefix: true },
            other => {
                let digits = other.trim_end_matches('x');
                let pad = digits.parse().unwrap_or(0);
                if digits.len() < other.len() {
                    ValueFormat::Hex { pad, prefix: false }
                } else {
                    ValueFormat::Plain { pad }
                }
            }
        }
    }

    /// The value at the start of `text` and its length in bytes, for formats whose characters show where the
    /// value ends.
    fn number<'a>(&self, text: &'a [u8], ty: Option<FieldType>) -> Option<(Value<'a>, usize)> {
        match self {
            ValueFormat::Plain { .. } if is_number(ty) => {
                number_at(text, 10).map(|(value, len)| (typed(value, ty), len))
            }
            ValueFormat::Hex { .. } | ValueFormat::Pointer => {
                number_at(text, 16).map(|(value, len)| (typed(value, ty), len))
            }
            ValueFormat::Dev(separator) => {
                let (major, len) = number_at(text, 10)?;
                let minor_text = text.get(len..)?.strip_prefix(&[*separator])?;
                let (minor, minor_len) = number_at(minor_text, 10)?;
                Some((typed(major << 20 | (minor & 0xf_ffff), ty), len + 1 + minor_len))
            }
            ValueFormat::State => {
                let len = text.iter().position(|b| *b == b' ').unwrap_or(text.len());
                Some((typed(state_bits(&text[..len])?, ty), len))
            }
            ValueFormat::Names(names) => {
                let (value, name) =
                    names.iter().filter(|(_, n)| text.starts_with(n)).max_by_key(|(_, n)| n.len())?;
                Some((typed(*value as u64, ty), name.len()))
            }
            ValueFormat::Plain { .. } | ValueFormat::List => None,
        }
    }

    /// Whether the placeholder accepts only values that [`Self::number`] returns.
    fn only_number(&self, ty: Option<FieldType>) -> bool {
        match self {
            ValueFormat::Plain { .. } => is_number(ty),
            ValueFormat::Pointer | ValueFormat::List => false,
            _ => true,
        }
    }

    /// All of `text` as a string value; `None` where a pointer is missing.
    fn text<'a>(&self, text: &'a [u8], again: bool) -> Option<Value<'a>> {
        (again || !matches!(self, ValueFormat::Pointer) || !text.is_empty()).then_some(Value::Str(text))
    }

    fn render(&self, value: Value<'_>, out: &mut Vec<u8>) {
        use std::io::Write;
        let bits = match value {
            Value::Int(v) => v as u64,
            Value::Uint(v) => v,
            Value::Str(s) => return out.extend_from_slice(s),
            Value::Bytes(bytes) => {
                let words =
                    bytes.chunks_exact(8).map(|w| w.iter().rev().fold(0u64, |v, b| v << 8 | u64::from(*b)));
                for (i, word) in words.enumerate() {
                    let _ = write!(out, "{}{word:x}", if i > 0 { ", " } else { "" });
                }
                return;
            }
        };
        let _ = match self {
            ValueFormat::Plain { pad } => match value {
                Value::Int(v) => write!(out, "{v:0pad$}"),
                _ => write!(out, "{bits:0pad$}"),
            },
            ValueFormat::Hex { pad, prefix } => {
                write!(out, "{}{bits:0pad$x}", if *prefix { "0x" } else { "" })
            }
            ValueFormat::Pointer => write!(out, "{bits:016x}"),
            ValueFormat::Dev(separator) => {
                write!(out, "{}{}{}", bits >> 20, char::from(*separator), bits & 0xf_ffff)
            }
            ValueFormat::State => return task_state::encode(bits, out),
            ValueFormat::Names(names) => match names.iter().find(|(v, _)| *v as u64 == bits) {
                Some((_, name)) => return out.extend_from_slice(name),
                None => write!(out, "{bits:#x}"),
            },
            ValueFormat::List => write!(out, "{bits:x}"),
        };
    }

    fn print_fmt(&self, field: &Field, fmt: &mut String, args: &mut String) {
        let name = &field.name;
        let rec = format!("REC->{name}");
        let wide = if field.size == 8 { "l" } else { "" };
        match (self, field.ty) {
            (ValueFormat::List, _) | (_, FieldType::Bytes { .. }) => {
                let one = |i| format!(", {rec}[{i}]");
                fmt.push_str("%lx, %lx, %lx, %lx, %lx, %lx");
                args.extend((0..6).map(one));
                return;
            }
            (_, FieldType::DataLocStr) => {
                fmt.push_str("%s");
                args.push_str(&format!(", __get_str({name})"));
                return;
            }
            (_, FieldType::FixedStr) => fmt.push_str("%s"),
            (ValueFormat::Plain { pad: 0 }, FieldType::Int) => fmt.push_str(&format!("%{wide}d")),
            (ValueFormat::Plain { pad: 0 }, _) => fmt.push_str(&format!("%{wide}u")),
            (ValueFormat::Plain { pad }, _) => fmt.push_str(&format!("%0{pad}{wide}d")),
            (ValueFormat::Hex { pad: 0, prefix }, _) => {
                fmt.push_str(&format!("{}%{wide}x", if *prefix { "0x" } else { "" }));
            }
            (ValueFormat::Hex { pad, .. }, _) => fmt.push_str(&format!("%0{pad}{wide}x")),
            (ValueFormat::Pointer, _) => fmt.push_str("%p"),
            (ValueFormat::Dev(separator), _) => {
                fmt.push_str(&format!("%d{}%d", char::from(*separator)));
                args.push_str(&format!(
                    ", ((unsigned int) (({rec}) >> 20)), ((unsigned int) (({rec}) & ((1U << 20) - 1)))"
                ));
                return;
            }
            (ValueFormat::State, _) => {
                fmt.push_str("%s%s");
                args.push_str(&format!(", {}", task_state::print_fmt_arguments(&rec)));
                return;
            }
            (ValueFormat::Names(names), _) => {
                fmt.push_str("%s");
                let pairs: Vec<String> = names
                    .iter()
                    .map(|(v, n)| format!("{{ {v}, \"{}\" }}", String::from_utf8_lossy(n)))
                    .collect();
                args.push_str(&format!(", __print_symbolic({rec}, {})", pairs.join(", ")));
                return;
            }
        }
        args.push_str(", ");
        args.push_str(&rec);
    }
}

/// The bits of `prev_state`, which kernels print as letters (`R+`, `S`, `D|K`) or as a number.
fn state_bits(text: &[u8]) -> Option<u64> {
    match number_at(text, 10) {
        Some((value, len)) => (len == text.len()).then_some(value),
        None => task_state::decode(text),
    }
}

/// Prints `name=value` pairs, for events that the catalog does not have.
pub(super) fn render_pairs(event: &Event<'_>, kind: &EventType, out: &mut Vec<u8>) {
    use std::io::Write;
    let mut first = true;
    for (i, field) in kind.fields.iter().enumerate() {
        let Some(value) = event.value(kind, i) else { continue };
        if !std::mem::take(&mut first) {
            out.push(b' ');
        }
        // The text of an event that could not be taken apart is one field of this name, which is not printed.
        if !(kind.fields.len() == 1 && field.name == super::super::TEXT_FIELD) {
            out.extend_from_slice(field.name.as_bytes());
            out.push(b'=');
        }
        let _ = match value {
            Value::Int(v) => write!(out, "{v}"),
            Value::Uint(v) => write!(out, "{v}"),
            Value::Str(s) => out.write_all(s),
            Value::Bytes(bytes) => bytes.iter().try_for_each(|b| write!(out, "{b:02x}")),
        };
    }
}
