//! The code of a source text: comments and literals are blanked, so that a search finds neither in them.

use std::fs;
use std::ops::Range;
use std::path::Path;

use super::root;

/// Directories with Rust sources of this repository.
pub const RUST_DIRECTORIES: [&str; 7] =
    ["src", "crates", "tests", "benches", "examples", "tools", "fuzz/fuzz_targets"];

/// Visits every Rust file of the repository, with its path below the repository and its text.
pub fn for_each_rust_file(visit: &mut dyn FnMut(&Path, &str)) {
    for directory in RUST_DIRECTORIES {
        for_each_source(&root().join(directory), &mut |path, text| {
            visit(path.strip_prefix(root()).unwrap(), text);
        });
    }
}

/// Visits every Rust file below a directory, with its text.
pub fn for_each_source(dir: &Path, visit: &mut dyn FnMut(&Path, &str)) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            for_each_source(&path, visit);
        } else if path.extension().is_some_and(|e| e == "rs") {
            visit(&path, &fs::read_to_string(&path).unwrap());
        }
    }
}

/// The text with spaces in place of comments, and of what stands in quotation marks. Every byte keeps its
/// place, and every line its number.
pub fn code_of(text: &str) -> String {
    let mut code = text.as_bytes().to_vec();
    let mut at = 0;
    while let Some(blank) = next_blank(text.as_bytes(), at) {
        at = blank.end;
        for byte in &mut code[blank] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    String::from_utf8(code).expect("whole characters are blanked")
}

/// The code without the unit tests at the end of a file.
pub fn without_unit_tests(code: &str) -> &str {
    code.split("#[cfg(test)]\nmod tests").next().unwrap_or_default()
}

/// The next comment, or the inside of the next literal, at or behind `from`.
fn next_blank(text: &[u8], from: usize) -> Option<Range<usize>> {
    let mut at = from;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(b"//") {
            let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            return Some(at..at + end);
        }
        if rest.starts_with(b"/*") {
            return Some(at..at + end_of_block_comment(rest));
        }
        if let Some(hashes) = raw_string(text, at) {
            let end = [&b"\""[..], &vec![b'#'; hashes]].concat();
            let inside = at + 2 + hashes;
            let length = find(&text[inside..], &end).unwrap_or(text.len() - inside);
            // The closing mark is blanked too, so that it begins no other literal.
            return Some(inside..(inside + length + end.len()).min(text.len()));
        }
        if rest[0] == b'"' {
            return Some(at + 1..end_of_quoted(text, at + 1, b'"'));
        }
        if rest[0] == b'\'' && is_character(rest) {
            return Some(at + 1..end_of_quoted(text, at + 1, b'\''));
        }
        at += 1;
    }
    None
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// Comments of this kind may contain each other.
fn end_of_block_comment(text: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at + 1 < text.len() {
        if &text[at..at + 2] == b"/*" {
            depth += 1;
            at += 2;
        } else if &text[at..at + 2] == b"*/" {
            depth -= 1;
            at += 2;
        } else {
            at += 1;
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The number of `#` of a raw string that begins here.
fn raw_string(text: &[u8], at: usize) -> Option<usize> {
    let before = at.checked_sub(1).map_or(b' ', |before| text[before]);
    let is_inside_a_name = before != b'b' && (before.is_ascii_alphanumeric() || before == b'_');
    if text[at] != b'r' || is_inside_a_name {
        return None;
    }
    let hashes = text[at + 1..].iter().take_while(|byte| **byte == b'#').count();
    (text.get(at + 1 + hashes) == Some(&b'"')).then_some(hashes)
}

/// The place behind the closing mark.
fn end_of_quoted(text: &[u8], from: usize, mark: u8) -> usize {
    let mut at = from;
    while at < text.len() && text[at] != mark {
        at += if text[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(text.len())
}

/// Whether a mark begins a character, and not the name of a lifetime.
fn is_character(rest: &[u8]) -> bool {
    let Some(first) = rest.get(1) else { return false };
    if *first == b'\\' {
        return true;
    }
    // A character of several bytes, or the closing mark behind one byte.
    !first.is_ascii() || rest.get(2) == Some(&b'\'')
}

/// The place of the bracket that closes the one at `open`.
pub fn closing_bracket(code: &str, open: usize) -> usize {
    let mut depth = 0;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    code.len().saturating_sub(1)
}

/// The place of the `>` that closes the `<` at `open`; those of `->` and `=>` close nothing.
pub fn closing_angle(code: &str, open: usize) -> usize {
    let bytes = code.as_bytes();
    let mut depth = 0;
    for at in open..bytes.len() {
        let is_arrow = at > 0 && matches!(bytes[at - 1], b'-' | b'=');
        match bytes[at] {
            b'<' => depth += 1,
            b'>' if !is_arrow => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    bytes.len().saturating_sub(1)
}

/// The parts of a list that commas divide, those inside of brackets aside.
pub fn list_items(list: &str) -> Vec<&str> {
    let bytes = list.as_bytes();
    let mut items = Vec::new();
    let mut depth = 0;
    let mut start = 0;
    for at in 0..bytes.len() {
        let is_arrow = at > 0 && matches!(bytes[at - 1], b'-' | b'=');
        match bytes[at] {
            b'(' | b'[' | b'{' | b'<' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b'>' if !is_arrow => depth -= 1,
            b',' if depth == 0 => {
                items.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(list[start..].trim());
    items.retain(|item| !item.is_empty());
    items
}

/// The places where a word stands alone.
pub fn words<'c>(code: &'c str, word: &'c str) -> impl Iterator<Item = usize> + 'c {
    let is_name = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let bytes = code.as_bytes();
    code.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        !is_name(before) && !is_name(bytes.get(at + word.len()))
    })
}

/// The number of the line that holds this place, from 1 on.
pub fn line_number(text: &str, at: usize) -> usize {
    text[..at].bytes().filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_names_stay() {
        let text = r####"let a = "x // \" y"; // z
let b: &'static str = r#"a "b" c"#; let c = b'\''; let d = 'é';
/* one /* two */ three */ fn f<'a>(x: &'a str) {} let e = br"\"; for_r"q";"####;
        let expected = r####"let a = "          ;     
let b: &'static str = r#"         ; let c = b'   ; let d = '   ;
                          fn f<'a>(x: &'a str) {} let e = br"  ; for_r"  ;"####;
        assert_eq!(code_of(text), expected);
    }

    #[test]
    fn lists_are_divided_outside_of_brackets_alone() {
        assert_eq!(
            list_items("a: (u8, u8), b: Map<K, V>, f: fn(u8) -> Vec<u8>, "),
            ["a: (u8, u8)", "b: Map<K, V>", "f: fn(u8) -> Vec<u8>"]
        );
    }

    #[test]
    fn words_are_not_parts_of_names() {
        assert_eq!(words("let outlet let_ let", "let").collect::<Vec<_>>(), [0, 16]);
    }
}
