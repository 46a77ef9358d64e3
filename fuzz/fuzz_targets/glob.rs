//! A shell pattern (the first line) against a text (the rest), compared with a matcher that tries everything.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::internals::glob_matches;

/// `fnmatch(3)` with `FNM_NOESCAPE`, by its definition: a table over every end of the pattern and of the
/// text.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    // reached[t]: the pattern so far matches the first `t` bytes of the text.
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    let mut p = 0;
    while let Some(&first) = pattern.get(p) {
        let mut next = vec![false; text.len() + 1];
        if first == b'*' {
            let start = reached.iter().position(|is_reached| *is_reached).unwrap_or(next.len());
            next[start..].fill(true);
            p += 1;
        } else {
            let (len, negated, items) = set(&pattern[p..]);
            for (t, byte) in text.iter().enumerate().filter(|(t, _)| reached[*t]) {
                let is_in = items.iter().any(|(low, high)| (low..=high).contains(&byte));
                next[t + 1] = is_in != negated;
            }
            p += len;
        }
        reached = next;
    }
    reached[text.len()]
}

/// The length of the element that `pattern` begins with, and the bytes that it stands for.
fn set(pattern: &[u8]) -> (usize, bool, Vec<(u8, u8)>) {
    let literal = (1, false, vec![(pattern[0], pattern[0])]);
    if pattern[0] == b'?' {
        return (1, false, vec![(0, 255)]);
    }
    if pattern[0] != b'[' {
        return literal;
    }
    let negated = matches!(pattern.get(1), Some(b'!' | b'^'));
    let first = 1 + usize::from(negated);
    let (mut at, mut items) = (first, Vec::new());
    loop {
        match pattern[at.min(pattern.len())..] {
            [] => return literal,
            [b']', ..] if at > first => return (at + 1, negated, items),
            [low, b'-', high, ..] if high != b']' => {
                items.push((low, high));
                at += 3;
            }
            [low, ..] => {
                items.push((low, low));
                at += 1;
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let at = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (pattern, text) = (&data[..at], data.get(at + 1..).unwrap_or_default());
    assert_eq!(glob_matches(pattern, text), matches(pattern, text));
});
