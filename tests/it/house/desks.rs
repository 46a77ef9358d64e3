//! The sources that macOS and Windows compile, as text: a part of a system that is not behind a `cfg` shows
//! here in milliseconds. `scripts/check-desks` has the compiler look, which takes minutes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::code::for_each_source;
use super::imports::Sources;
use super::{CRATES, Crate};

/// Paths that name what only some systems have.
const SYSTEM_PATHS: &[&str] = &["nix::", "libc::", "std::os::", "tracebridge_device::"];

#[test]
fn what_every_desk_compiles_names_no_part_of_one_system() {
    let mut found = Vec::new();
    for src in CRATES.iter().map(Crate::src).filter(|src| !is_crate_of_one_system(src)) {
        let of_one_system = modules_of_one_system(&src);
        assert!(!of_one_system.is_empty(), "{}: some module is for some systems only", src.display());
        let is_of_one_system = |file: &Path| of_one_system.iter().any(|module| file.starts_with(module));
        for (file, imported) in Sources::read_with(&src, without_gated_items).imports() {
            if !is_of_one_system(&file) {
                let targets = imported.iter().filter(|target| is_of_one_system(target));
                found
                    .extend(targets.map(|target| format!("{} imports {}", file.display(), target.display())));
            }
        }
        for_each_source(&src, &mut |file, text| {
            if !is_of_one_system(file) {
                let text = without_gated_items(text);
                let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                let named = lines.filter(|line| SYSTEM_PATHS.iter().any(|path| line.contains(path)));
                found.extend(named.map(|line| format!("{}: {}", file.display(), line.trim())));
            }
        });
    }
    assert!(found.is_empty(), "not on every desk (put a cfg before it): {found:#?}");
}

#[test]
fn the_recorder_is_a_crate_of_one_system() {
    let crates = CRATES.iter().filter(|one| is_crate_of_one_system(&one.src()));
    assert_eq!(crates.map(|one| one.dir).collect::<Vec<_>>(), ["crates/tracebridge-device/src"]);
}

/// Whether the whole crate is empty on some systems.
fn is_crate_of_one_system(src: &Path) -> bool {
    let root = fs::read_to_string(src.join("lib.rs")).unwrap();
    root.lines().any(|line| line.starts_with("#![cfg(") && line.contains("target_os"))
}

/// The files and directories of the modules that are declared behind the name of a system.
fn modules_of_one_system(src: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for_each_source(src, &mut |file, text| {
        let stem = file.file_stem().unwrap();
        let is_root = stem == "mod" || stem == "lib";
        let dir = if is_root { file.parent().unwrap().to_owned() } else { file.with_extension("") };
        for (_, item) in text.lines().zip(text.lines().skip(1)).filter(|(gate, _)| is_gate(gate)) {
            if let Some((_, path)) = item.split_once("#[path = \"") {
                found.insert(dir.join(path.trim_end_matches("\"]")));
            } else if let Some((_, name)) = item.trim_end_matches(';').split_once("mod ") {
                found.insert(dir.join(name));
                found.insert(dir.join(name).with_extension("rs"));
            }
        }
    });
    found
}

/// Whether the line says that the next item is for some systems only, or for tests.
fn is_gate(line: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    line.trim_start().starts_with("#[cfg(")
        && line.split(|c| !is_name(c)).any(|word| ["unix", "windows", "target_os", "test"].contains(&word))
}

/// The text without the items and statements that are for some systems only. It must be as rustfmt writes it:
/// an item ends on a line that is indented as its first.
fn without_gated_items(text: &str) -> String {
    let mut lines = text.lines();
    let mut kept = Vec::new();
    while let Some(line) = lines.next() {
        if !is_gate(line) {
            kept.push(line);
            continue;
        }
        let indent = |line: &str| line.len() - line.trim_start().len();
        let ends = |item: &&str| indent(item) == indent(line) && item.ends_with([';', ',', '}']);
        lines.find(ends);
    }
    kept.join("\n")
}

#[test]
fn a_gated_item_is_left_out_as_a_whole() {
    let text = "\
#[cfg(unix)]
mod unix;
#[cfg(feature = \"host\")]
mod host;
fn f() {
    #[cfg(windows)]
    let a = [
        1,
    ];
    g();
}
#[cfg(any(target_os = \"linux\", test))]
#[inline]
fn h(
    a: u8,
) {
    nix::call(a);
}
fn i() {}";
    let kept = "#[cfg(feature = \"host\")]\nmod host;\nfn f() {\n    g();\n}\nfn i() {}";
    assert_eq!(without_gated_items(text), kept);
}
