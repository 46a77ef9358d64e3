//! Patterns for names of methods and slices, in which `*` alone is special. [`contains`] matches anywhere in
//! a name, [`is_whole`] the whole of it.

/// Whether `pattern` occurs in `text`. A `*` in the pattern stands for any text; no other character is
/// special.
pub fn contains(pattern: &str, text: &str) -> bool {
    let mut rest = text;
    pattern.split('*').filter(|part| !part.is_empty()).all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// Whether `pattern` is the whole of `text`. A `*` in the pattern stands for any text; no other character is
/// special.
pub fn is_whole(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    let inside = text.strip_prefix(first).and_then(|text| text.strip_suffix(last));
    inside.is_some_and(|text| contains(middle, text))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_pattern_of_a_whole_text_knows_the_star_alone() {
        for (pattern, text, expected) in [
            ("inflate", "inflate", true),
            ("inflate", "inflate 2", false),
            ("inflate*", "inflate 2", true),
            ("*2", "inflate 2", true),
            ("i*a*e", "inflate", true),
            ("i*e*a*e", "inflate", false),
            ("ab*ba", "aba", false),
            ("*", "", true),
            ("a?[b]", "axb", false),
            ("a?[b]*", "a?[b] c", true),
        ] {
            assert_eq!(super::is_whole(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_pattern_is_found_anywhere_and_only_the_star_is_special() {
        for (pattern, text, expected) in [
            ("onCreate", "android.app.Activity.onCreate", true),
            ("Activity*Create", "android.app.Activity.onCreate", true),
            ("Create*Activity", "android.app.Activity.onCreate", false),
            ("*", "", true),
            ("a?c", "abc", false),
            ("[]", "int[].clone", true),
        ] {
            assert_eq!(super::contains(pattern, text), expected, "{pattern} {text}");
        }
    }
}
