//! The shell's patterns for names: libcutils matches patterns against a process's command line by
//! `fnmatch(3)` with `FNM_NOESCAPE`.

/// Whether `text` matches `pattern`, in which `*` stands for any number of bytes, `?` for one, `[a-z]` and
/// `[!a-z]` for one of a set. No character escapes another, and `/` is a byte like any other.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let mut p = 0;
    let mut t = 0;
    // Where to try again when the text behind the last `*` does not match: the `*` then takes one byte more.
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            retry = Some((p, t));
            p += 1;
        } else if let Some(after) = match_one(pattern, p, text[t]) {
            p = after;
            t += 1;
        } else if let Some((star, from)) = retry {
            p = star + 1;
            t = from + 1;
            retry = Some((star, t));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

/// The position behind the pattern's element at `p`, if that element matches `byte`.
fn match_one(pattern: &[u8], p: usize, byte: u8) -> Option<usize> {
    match *pattern.get(p)? {
        b'?' => Some(p + 1),
        b'[' => match match_set(&pattern[p + 1..], byte) {
            Some((hit, len)) => hit.then_some(p + 1 + len),
            None => (byte == b'[').then_some(p + 1),
        },
        literal => (literal == byte).then_some(p + 1),
    }
}

/// Whether `byte` is in the set that starts behind `[`, and the set's length with its `]`. `None` where the
/// set never ends.
fn match_set(body: &[u8], byte: u8) -> Option<(bool, usize)> {
    let negated = matches!(body.first(), Some(b'!' | b'^'));
    let first = usize::from(negated);
    let mut hit = false;
    let mut at = first;
    loop {
        let low = *body.get(at)?;
        if low == b']' && at > first {
            return Some((hit != negated, at + 1));
        }
        match (body.get(at + 1), body.get(at + 2)) {
            (Some(b'-'), Some(high)) if *high != b']' => {
                hit |= (low..=*high).contains(&byte);
                at += 3;
            }
            _ => {
                hit |= low == byte;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn patterns_match_as_fnmatch_does() {
        let cases = [
            ("*", "", true),
            ("*", "com.example", true),
            ("com.*", "com.example:remote", true),
            ("com.*:remote", "com.example:remote", true),
            ("*a*b", "xxaxxab", true),
            ("*a*b", "xxaxxabc", false),
            ("com.example", "com.example2", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]", "]", true),
            ("[x", "[x", true),
            (r"\*", r"\foo", true),
            ("/data/*", "/data/local/tmp", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(super::matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }
}
