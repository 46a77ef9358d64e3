//! A shell pattern (the first line) against a text (the rest), compared with a matcher that follows all ways
//! through the pattern at once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::internals::glob_matches;

/// The longest text that is compared, bytes.
const MAX_TEXT_BYTES: usize = 127;

/// `fnmatch(3)` with `FNM_NOESCAPE`, by its definition. The text has at most [`MAX_TEXT_BYTES`].
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    // Bit n: the pattern so far matches the first n bytes of the text.
    let mut reached = 1u128;
    let mut p = 0;
    while p < pattern.len() && reached != 0 {
        let (len, bytes) = element(&pattern[p..]);
        reached = match bytes {
            // From the first position on: all bits from the lowest set one up.
            None => reached | reached.wrapping_neg(),
            Some(bytes) => {
                let is_in = |byte: &u8| bytes[usize::from(byte >> 6)] >> (byte & 63) & 1;
                let hits = text.iter().rev().fold(0, |bits, byte| bits << 1 | u128::from(is_in(byte)));
                (reached & hits) << 1
            }
        };
        p += len;
    }
    reached >> text.len() & 1 == 1
}

/// The length of the element that `pattern` begins with, and the set of bytes that it stands for; `None` for
/// any number of any bytes.
fn element(pattern: &[u8]) -> (usize, Option<[u64; 4]>) {
    let mut set = [0u64; 4];
    match pattern[0] {
        b'*' => return (1, None),
        b'?' => return (1, Some([u64::MAX; 4])),
        b'[' => {}
        literal => {
            set[usize::from(literal >> 6)] |= 1 << (literal & 63);
            return (1, Some(set));
        }
    }
    let is_negated = matches!(pattern.get(1), Some(b'!' | b'^'));
    let first = 1 + usize::from(is_negated);
    let mut at = first;
    loop {
        match pattern[at.min(pattern.len())..] {
            // A set without an end is the bracket itself.
            [] => {
                set = [0; 4];
                set[1] |= 1 << (b'[' & 63);
                return (1, Some(set));
            }
            [b']', ..] if at > first => {
                return (at + 1, Some(if is_negated { set.map(|word| !word) } else { set }));
            }
            [low, b'-', high, ..] if high != b']' => {
                (low..=high).for_each(|b| set[usize::from(b >> 6)] |= 1 << (b & 63));
                at += 3;
            }
            [low, ..] => {
                set[usize::from(low >> 6)] |= 1 << (low & 63);
                at += 1;
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let at = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let pattern = &data[..at];
    let text = data.get(at + 1..).unwrap_or_default();
    let text = &text[..text.len().min(MAX_TEXT_BYTES)];
    assert_eq!(glob_matches(pattern, text), matches(pattern, text));
});
