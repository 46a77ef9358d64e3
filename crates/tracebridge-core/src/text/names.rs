//! Names: of files, lists of them in files, and patterns for them.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The last part of a path of any system. People send traces and pages to each other, and the directories say
/// who they are.
pub fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().filter(|name| !name.is_empty()).unwrap_or(path)
}

/// The most of a file of names that is read, bytes.
const MAX_NAMES_BYTES: u64 = 1 << 20;

/// Reads a file of names, which are separated by white space.
///
/// # Errors
/// The system's, or that the file is longer than any list of names.
pub fn read_names(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_NAMES_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_NAMES_BYTES {
        let why = "more than 1 MiB, which no list of names has";
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(text)
}

/// Whether `pattern`, for names of methods and slices, occurs in `text`. A `*` in the pattern stands for any
/// text; no other character is special.
pub fn contains_pattern(pattern: &str, text: &str) -> bool {
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
pub fn is_whole_pattern(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    let inside = text.strip_prefix(first).and_then(|text| text.strip_suffix(last));
    inside.is_some_and(|text| contains_pattern(middle, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_left_out() {
        assert_eq!(file_name("/home/me/a.trace"), "a.trace");
        assert_eq!(file_name("C:\\me\\a.trace"), "a.trace");
        assert_eq!(file_name("a.trace"), "a.trace");
        assert_eq!(file_name("-"), "-");
        assert_eq!(file_name("/tmp/"), "/tmp/");
    }

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
            assert_eq!(is_whole_pattern(pattern, text), expected, "{pattern} {text}");
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
            assert_eq!(contains_pattern(pattern, text), expected, "{pattern} {text}");
        }
    }
}
