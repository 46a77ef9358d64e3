//! The tests start children and make files through `tests/support` alone, so that every wait for a child
//! has a limit, and nothing is left of a run that is killed.

use std::path::Path;

use super::code::for_each_source;
use super::root;

/// The tools of `tests/support`, and for each the paths of the standard library or of a crate that go past
/// it.
const PAST_SUPPORT: &[(&str, &[&str])] = &[
    ("support::Command", &["std::process::Command", "process::Command::new"]),
    (
        "support::Child",
        &["std::process::Child ", "std::process::Child,", "std::process::Child;", "std::process::Child>"],
    ),
    ("support::tempdir", &["tempfile::tempdir", "tempfile::Builder", "TempDir::new()", "temp_dir()"]),
];

/// The names in the braces of `use std::process::{…}`.
fn process_imports(text: &str) -> impl Iterator<Item = &str> {
    let braces = text.split("use std::process::{").skip(1);
    braces.filter_map(|rest| rest.split('}').next()).flat_map(|names| names.split(',')).map(str::trim)
}

#[test]
fn tests_start_children_and_make_files_through_support() {
    let mut found = Vec::new();
    for_each_source(&root().join("tests"), &mut |path, text| {
        if path.starts_with(root().join("tests/support")) || path.ends_with("house/hermetic.rs") {
            return;
        }
        let imported = process_imports(text).filter(|name| ["Command", "Child"].contains(name));
        found.extend(
            imported.map(|name| said(path, &format!("std::process::{name}"), &format!("support::{name}"))),
        );
        for (instead, past) in PAST_SUPPORT {
            let named = past.iter().filter(|past| text.contains(**past));
            found.extend(named.map(|past| said(path, past, instead)));
        }
    });
    assert!(found.is_empty(), "past tests/support: {found:#?}");
}

fn said(path: &Path, past: &str, instead: &str) -> String {
    format!("{}: {past}: use {instead}", path.display())
}

#[test]
fn names_in_braces_are_found() {
    let text = "use std::fs;\nuse std::process::{ExitStatus, Child,\n    Stdio};\n";
    assert_eq!(process_imports(text).collect::<Vec<_>>(), ["ExitStatus", "Child", "Stdio"]);
}
