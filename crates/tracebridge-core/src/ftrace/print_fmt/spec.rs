//! Parses the conversions of a format string (`%-16.3lx`), and lays out numbers and texts as the kernel's
//! vsnprintf does.

use super::PrintFmtError;
use crate::text::digits;

/// The kind of value that a conversion prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConversionKind {
    Signed,
    Unsigned,
    Hex {
        upper: bool,
    },
    Octal,
    Char,
    Text,
    /// `%p`, with the letters behind it.
    Pointer(String),
}

/// Where a width or a precision comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WidthSource {
    None,
    Fixed(u32),
    /// `*`: the value is the next argument.
    Argument,
}

/// One conversion of a format string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConversionSpec {
    pub(super) conv: ConversionKind,
    pub(super) left: bool,
    pub(super) plus: bool,
    pub(super) space: bool,
    pub(super) alternate: bool,
    pub(super) zero: bool,
    pub(super) width: WidthSource,
    pub(super) precision: WidthSource,
    /// Bits of the argument: 8, 16, 32 or 64.
    pub(super) bits: u8,
}

/// A part of a format string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FormatPiece {
    Text(Vec<u8>),
    Conversion(ConversionSpec),
}

/// The largest width and precision, characters. A format comes from a file and may ask for any width.
const MAX_WIDTH: u32 = 4096;

impl ConversionSpec {
    /// Whether the conversion has no width, no precision and no flags.
    pub(super) fn is_plain(&self) -> bool {
        let counts = self.width == WidthSource::None && self.precision == WidthSource::None;
        counts && !(self.left || self.plus || self.space || self.alternate || self.zero)
    }
}

/// Parses a format string. `long_bits` is the size of the recording kernel's `long`.
pub(super) fn parse(format: &[u8], long_bits: u8) -> Result<Vec<FormatPiece>, PrintFmtError> {
    let mut pieces = Vec::new();
    let mut text = Vec::new();
    let mut rest = format;
    while let Some((&b, after)) = rest.split_first() {
        rest = after;
        if b != b'%' {
            text.push(b);
            continue;
        }
        if let Some(after) = rest.strip_prefix(b"%") {
            text.push(b'%');
            rest = after;
            continue;
        }
        if !text.is_empty() {
            pieces.push(FormatPiece::Text(std::mem::take(&mut text)));
        }
        pieces.push(FormatPiece::Conversion(conversion(&mut rest, long_bits)?));
    }
    if !text.is_empty() {
        pieces.push(FormatPiece::Text(text));
    }
    Ok(pieces)
}

fn conversion(rest: &mut &[u8], long_bits: u8) -> Result<ConversionSpec, PrintFmtError> {
    let mut spec = ConversionSpec {
        conv: ConversionKind::Signed,
        left: false,
        plus: false,
        space: false,
        alternate: false,
        zero: false,
        width: WidthSource::None,
        precision: WidthSource::None,
        bits: 32,
    };
    loop {
        match rest.first() {
            Some(b'-') => spec.left = true,
            Some(b'+') => spec.plus = true,
            Some(b' ') => spec.space = true,
            Some(b'#') => spec.alternate = true,
            Some(b'0') => spec.zero = true,
            _ => break,
        }
        *rest = &rest[1..];
    }
    spec.width = count(rest);
    if let Some(after) = rest.strip_prefix(b".") {
        *rest = after;
        spec.precision = match count(rest) {
            WidthSource::None => WidthSource::Fixed(0),
            given => given,
        };
    }
    for (length, bits) in [
        ("hh", 8),
        ("ll", 64),
        ("h", 16),
        ("l", long_bits),
        ("L", 64),
        ("q", 64),
        ("z", long_bits),
        ("Z", long_bits),
        ("t", long_bits),
        ("j", 64),
    ] {
        if let Some(after) = rest.strip_prefix(length.as_bytes()) {
            spec.bits = bits;
            *rest = after;
            break;
        }
    }
    let Some((&conv, after)) = rest.split_first() else {
        return Err(PrintFmtError::Syntax("a `%` at the end of the format".into()));
    };
    *rest = after;
    spec.conv = match conv {
        b'd' | b'i' => ConversionKind::Signed,
        b'u' => ConversionKind::Unsigned,
        b'x' => ConversionKind::Hex { upper: false },
        b'X' => ConversionKind::Hex { upper: true },
        b'o' => ConversionKind::Octal,
        b'c' => ConversionKind::Char,
        b's' => ConversionKind::Text,
        b'p' => {
            let letters = rest.iter().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(rest.len());
            let extension = String::from_utf8_lossy(&rest[..letters]).into_owned();
            *rest = &rest[letters..];
            spec.bits = long_bits;
            ConversionKind::Pointer(extension)
        }
        other => return Err(PrintFmtError::Syntax(format!("conversion `%{}`", other.escape_ascii()))),
    };
    Ok(spec)
}

fn count(rest: &mut &[u8]) -> WidthSource {
    if let Some(after) = rest.strip_prefix(b"*") {
        *rest = after;
        return WidthSource::Argument;
    }
    let digits = rest.iter().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len());
    let (number, after) = rest.split_at(digits);
    *rest = after;
    match std::str::from_utf8(number).ok().and_then(|n| n.parse::<u64>().ok()) {
        Some(n) => WidthSource::Fixed(n.min(MAX_WIDTH.into()) as u32),
        None if digits > 0 => WidthSource::Fixed(MAX_WIDTH),
        None => WidthSource::None,
    }
}

/// How the text of a conversion is cut and padded.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextLayout {
    pub(super) width: usize,
    pub(super) precision: Option<usize>,
    pub(super) left: bool,
}

impl TextLayout {
    /// Combines a conversion with the values of its `*` arguments. As in C, a negative width means `-`, and a
    /// negative precision means none.
    pub(super) fn new(spec: &ConversionSpec, width: Option<i64>, precision: Option<i64>) -> TextLayout {
        let limit = |n: u64| n.min(MAX_WIDTH.into()) as usize;
        let fixed = |count: WidthSource, given: Option<i64>| match count {
            WidthSource::None => None,
            WidthSource::Fixed(n) => Some(i64::from(n)),
            WidthSource::Argument => given,
        };
        let width = fixed(spec.width, width).unwrap_or(0);
        TextLayout {
            width: limit(width.unsigned_abs()),
            precision: fixed(spec.precision, precision).and_then(|p| u64::try_from(p).ok()).map(limit),
            left: spec.left || width < 0,
        }
    }
}

/// Pads the text in `out` from `start` on to the width.
pub(super) fn pad(out: &mut Vec<u8>, start: usize, layout: &TextLayout) {
    let missing = layout.width.saturating_sub(out.len() - start);
    if missing == 0 {
        return;
    }
    let end = out.len();
    out.resize(end + missing, b' ');
    if !layout.left {
        out.copy_within(start..end, start + missing);
        out[start..start + missing].fill(b' ');
    }
}

/// Appends an integer.
pub(super) fn integer(out: &mut Vec<u8>, spec: &ConversionSpec, layout: &TextLayout, value: i64) {
    let unused = 64 - u32::from(spec.bits.clamp(8, 64));
    let (negative, magnitude) = match spec.conv {
        ConversionKind::Signed => {
            let v = value << unused >> unused;
            (v < 0, v.unsigned_abs())
        }
        _ => (false, (value as u64) << unused >> unused),
    };
    let mut buffer = [0; 24];
    let at = match spec.conv {
        ConversionKind::Hex { upper } => digits::power_of_two(magnitude, 4, upper, &mut buffer),
        ConversionKind::Octal => digits::power_of_two(magnitude, 3, false, &mut buffer),
        _ => digits::decimal(magnitude, &mut buffer),
    };
    let digits = &buffer[at..];
    let prefix: &[u8] = match (&spec.conv, negative) {
        (ConversionKind::Hex { upper: false }, _) if spec.alternate => b"0x",
        (ConversionKind::Hex { upper: true }, _) if spec.alternate => b"0X",
        (ConversionKind::Octal, _) if spec.alternate => b"0",
        (ConversionKind::Signed, true) => b"-",
        (ConversionKind::Signed, _) if spec.plus => b"+",
        (ConversionKind::Signed, _) if spec.space => b" ",
        _ => b"",
    };
    let filled = spec.zero && !layout.left && layout.precision.is_none();
    let least =
        if filled { layout.width.saturating_sub(prefix.len()) } else { layout.precision.unwrap_or(0) };
    let start = out.len();
    out.extend_from_slice(prefix);
    out.resize(out.len() + least.saturating_sub(digits.len()), b'0');
    out.extend_from_slice(digits);
    pad(out, start, layout);
}

/// Cuts the text in `out` from `start` on to the precision, and pads it to the width.
pub(super) fn finish_text(out: &mut Vec<u8>, start: usize, layout: &TextLayout) {
    if let Some(precision) = layout.precision {
        out.truncate(start + precision.min(out.len() - start));
    }
    pad(out, start, layout);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(format: &str, value: i64) -> String {
        let pieces = parse(format.as_bytes(), 64).unwrap();
        let [FormatPiece::Conversion(spec)] = pieces.as_slice() else { panic!("{pieces:?}") };
        let mut out = Vec::new();
        integer(&mut out, spec, &TextLayout::new(spec, None, None), value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers_print_as_in_c() {
        for (format, value, want) in [
            ("%d", -1, "-1"),
            ("%u", -1, "4294967295"),
            ("%llu", -1, "18446744073709551615"),
            ("%hhd", 255, "-1"),
            ("%5d", 42, "   42"),
            ("%-5d", 42, "42   "),
            ("%05d", -42, "-0042"),
            ("%+d", 42, "+42"),
            ("%#x", 255, "0xff"),
            ("%#06x", 255, "0x00ff"),
            ("%08lX", 0xbeef, "0000BEEF"),
            ("%.3d", 7, "007"),
            ("%6.3d", 7, "   007"),
            ("%o", 8, "10"),
        ] {
            assert_eq!(print(format, value), want, "{format}");
        }
    }

    #[test]
    fn a_huge_width_is_limited() {
        assert_eq!(print("%99999999999999999999d", 1).len(), MAX_WIDTH as usize);
        assert!(parse(b"%", 64).is_err());
        assert!(parse(b"%k", 64).is_err());
    }
}
