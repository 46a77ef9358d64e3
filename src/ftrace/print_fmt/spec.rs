//! A conversion of a format string (`%-16.3lx`), and how it lays out numbers and texts: the kernel's vsnprintf.

use super::PrintFmtError;
use super::number;

/// What a `%…` wants printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Conv {
    Signed,
    Unsigned,
    Hex {
        upper: bool,
    },
    Octal,
    Char,
    Text,
    /// `%p` and the letters behind it.
    Pointer(String),
}

/// A width or precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    None,
    Fixed(u32),
    /// `*`: the next argument.
    Argument,
}

/// One conversion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) conv: Conv,
    pub(super) left: bool,
    pub(super) plus: bool,
    pub(super) space: bool,
    pub(super) alternate: bool,
    pub(super) zero: bool,
    pub(super) width: Count,
    pub(super) precision: Count,
    /// Bits of the argument: 8, 16, 32, 64.
    pub(super) bits: u8,
}

/// A piece of a format string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(Vec<u8>),
    Conv(Spec),
}

/// No width or precision is taken beyond this: a format is input too.
const MAX_COUNT: u32 = 4096;

impl Spec {
    /// Whether it has neither width, precision nor flags.
    pub(super) fn is_plain(&self) -> bool {
        let counts = self.width == Count::None && self.precision == Count::None;
        counts && !(self.left || self.plus || self.space || self.alternate || self.zero)
    }
}

/// Takes a format string apart. `long_bits` is the size of the recording kernel's long.
pub(super) fn parse(format: &[u8], long_bits: u8) -> Result<Vec<Piece>, PrintFmtError> {
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
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        pieces.push(Piece::Conv(conversion(&mut rest, long_bits)?));
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

fn conversion(rest: &mut &[u8], long_bits: u8) -> Result<Spec, PrintFmtError> {
    let mut spec = Spec {
        conv: Conv::Signed,
        left: false,
        plus: false,
        space: false,
        alternate: false,
        zero: false,
        width: Count::None,
        precision: Count::None,
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
            Count::None => Count::Fixed(0),
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
        b'd' | b'i' => Conv::Signed,
        b'u' => Conv::Unsigned,
        b'x' => Conv::Hex { upper: false },
        b'X' => Conv::Hex { upper: true },
        b'o' => Conv::Octal,
        b'c' => Conv::Char,
        b's' => Conv::Text,
        b'p' => {
            let letters = rest.iter().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(rest.len());
            let extension = String::from_utf8_lossy(&rest[..letters]).into_owned();
            *rest = &rest[letters..];
            spec.bits = long_bits;
            Conv::Pointer(extension)
        }
        other => return Err(PrintFmtError::Syntax(format!("conversion `%{}`", other.escape_ascii()))),
    };
    Ok(spec)
}

fn count(rest: &mut &[u8]) -> Count {
    if let Some(after) = rest.strip_prefix(b"*") {
        *rest = after;
        return Count::Argument;
    }
    let digits = rest.iter().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len());
    let (number, after) = rest.split_at(digits);
    *rest = after;
    match std::str::from_utf8(number).ok().and_then(|n| n.parse::<u64>().ok()) {
        Some(n) => Count::Fixed(n.min(MAX_COUNT.into()) as u32),
        None if digits > 0 => Count::Fixed(MAX_COUNT),
        None => Count::None,
    }
}

/// A conversion with its widths known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) width: usize,
    pub(super) precision: Option<usize>,
    pub(super) left: bool,
}

impl Layout {
    /// From the values of `*` arguments, as C takes them: a negative width is `-`, a negative precision none.
    pub(super) fn new(spec: &Spec, width: Option<i64>, precision: Option<i64>) -> Layout {
        let limit = |n: u64| n.min(MAX_COUNT.into()) as usize;
        let fixed = |count: Count, given: Option<i64>| match count {
            Count::None => None,
            Count::Fixed(n) => Some(i64::from(n)),
            Count::Argument => given,
        };
        let width = fixed(spec.width, width).unwrap_or(0);
        Layout {
            width: limit(width.unsigned_abs()),
            precision: fixed(spec.precision, precision).and_then(|p| u64::try_from(p).ok()).map(limit),
            left: spec.left || width < 0,
        }
    }
}

/// Pads what was written to `out` from `start` on to the width.
pub(super) fn pad(out: &mut Vec<u8>, start: usize, layout: &Layout) {
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

/// Writes an integer.
pub(super) fn integer(out: &mut Vec<u8>, spec: &Spec, layout: &Layout, value: i64) {
    let unused = 64 - u32::from(spec.bits.clamp(8, 64));
    let (negative, magnitude) = match spec.conv {
        Conv::Signed => {
            let v = value << unused >> unused;
            (v < 0, v.unsigned_abs())
        }
        _ => (false, (value as u64) << unused >> unused),
    };
    let mut buffer = [0; 24];
    let at = match spec.conv {
        Conv::Hex { upper } => number::power_of_two(magnitude, 4, upper, &mut buffer),
        Conv::Octal => number::power_of_two(magnitude, 3, false, &mut buffer),
        _ => number::decimal(magnitude, &mut buffer),
    };
    let digits = &buffer[at..];
    let prefix: &[u8] = match (&spec.conv, negative) {
        (Conv::Hex { upper: false }, _) if spec.alternate => b"0x",
        (Conv::Hex { upper: true }, _) if spec.alternate => b"0X",
        (Conv::Octal, _) if spec.alternate => b"0",
        (Conv::Signed, true) => b"-",
        (Conv::Signed, _) if spec.plus => b"+",
        (Conv::Signed, _) if spec.space => b" ",
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

/// Cuts what was written from `start` on to the precision, and pads it.
pub(super) fn finish_text(out: &mut Vec<u8>, start: usize, layout: &Layout) {
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
        let [Piece::Conv(spec)] = pieces.as_slice() else { panic!("{pieces:?}") };
        let mut out = Vec::new();
        integer(&mut out, spec, &Layout::new(spec, None, None), value);
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
    fn a_huge_width_is_bounded() {
        assert_eq!(print("%99999999999999999999d", 1).len(), MAX_COUNT as usize);
        assert!(parse(b"%", 64).is_err());
        assert!(parse(b"%k", 64).is_err());
    }
}
