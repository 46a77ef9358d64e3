//! Every environment variable of the program stands in one table of docs/commands.md, and the table names
//! none that nobody reads.

use std::collections::BTreeSet;
use std::fs;

use super::code::for_each_source;
use super::root;

/// The begin of the name of each variable.
const PREFIX: &str = "TRACEBRIDGE_";

#[test]
fn every_environment_variable_is_documented() {
    let mut read = names(&fs::read_to_string(root().join("build.rs")).unwrap());
    for dir in ["src", "crates"] {
        for_each_source(&root().join(dir), &mut |_, text| read.extend(names(text)));
    }
    let page = fs::read_to_string(root().join("docs/commands.md")).unwrap();
    let documented = names(section(&page, "Environment variables"));
    let hidden: Vec<&String> = read.difference(&documented).collect();
    assert!(hidden.is_empty(), "docs/commands.md#environment-variables lacks {hidden:?}");
    let unknown: Vec<&String> = documented.difference(&read).collect();
    assert!(unknown.is_empty(), "docs/commands.md#environment-variables has what nobody reads: {unknown:?}");
    assert!(read.len() > 5, "only {read:?} are found");
}

/// The text of a page below this heading, up to the next one.
fn section<'t>(page: &'t str, heading: &str) -> &'t str {
    let behind = page.split(&format!("\n## {heading}\n")).nth(1).unwrap_or_default();
    behind.split("\n## ").next().unwrap_or_default()
}

/// The names with the prefix in a text. `@NAME@` is a mark in the report page, and no variable.
fn names(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices(PREFIX) {
        let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let end = text[at..].find(|c| !is_name(c)).map_or(text.len(), |length| at + length);
        let before = text[..at].chars().next_back();
        if end > at + PREFIX.len() && before != Some('@') && !before.is_some_and(is_name) {
            found.insert(text[at..end].to_owned());
        }
    }
    found
}

#[test]
fn names_are_found_in_code_and_in_tables_and_marks_are_not() {
    let text = "\"TRACEBRIDGE_ONE\" @TRACEBRIDGE_DATA@ `TRACEBRIDGE_TWO=1`, MY_TRACEBRIDGE_X, TRACEBRIDGE_ TRACEBRIDGE_3";
    let expected = ["TRACEBRIDGE_3", "TRACEBRIDGE_ONE", "TRACEBRIDGE_TWO"];
    assert_eq!(names(text), expected.map(str::to_owned).into());
    assert_eq!(section("# A\n\n## B\nb\n## C\nc\n", "B"), "b");
    assert_eq!(section("# A\n", "B"), "");
}
