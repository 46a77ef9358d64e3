//! Two borders that only one place crosses: paths that somebody else may have chosen are opened by the room
//! `file_access`, and programs are started by the room `child`. Whoever does it beside them is named here.

use std::path::Path;

use super::code::{code_of, for_each_source, line_number, without_unit_tests, words};
use super::{CRATES, root};

/// Files that open or list paths themselves, and which.
const OPENERS: [(&str, &str); 11] = [
    ("src/file_access", "the room itself"),
    ("src/cli/host/adb/results.rs", "the page that was just written"),
    ("src/cli/host/local_record.rs", "this machine's tracefs"),
    ("src/cli/host/report.rs", "an output that is a device"),
    ("src/cli/host/version.rs", "this program"),
    ("src/dataset/dataset_dir.rs", "a dataset that is written to: no assistant does"),
    ("src/desk/delivery.rs", "its own scratch directory, and the directory of an output"),
    ("src/desk/device/binary.rs", "the recorder for a device, and parts of what was just fetched"),
    ("src/desk/live/request.rs", "the directory of outputs"),
    ("src/desk/output_server.rs", "the output that was just written"),
    ("src/live/kept.rs", "its own scratch directory"),
];

/// Calls that open or list a path, or tell whether it is there.
const OPENING: [&str; 8] = [
    "File::open(",
    "fs::read(",
    "fs::read_to_string(",
    "fs::read_dir(",
    "fs::metadata(",
    ".read_dir()",
    ".exists()",
    ".canonicalize()",
];

/// The file that starts programs.
const STARTER: &str = "crates/tracebridge-core/src/child.rs";

/// The lines of the code below `dir`, unit tests aside, in which `is_hit` finds something.
fn lines_of(dir: &Path, is_hit: &dyn Fn(&str) -> Vec<usize>) -> Vec<String> {
    let mut lines = Vec::new();
    for_each_source(dir, &mut |path, text| {
        let is_test = path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"));
        let code = code_of(text);
        let code = without_unit_tests(&code).split("\nmod tests {").next().unwrap_or_default();
        let path = path.strip_prefix(root()).unwrap().display();
        let hits = is_hit(code).into_iter().filter(|_| !is_test);
        lines.extend(hits.map(|at| format!("{path}:{}", line_number(code, at))));
    });
    lines
}

fn opened(code: &str) -> Vec<usize> {
    let begins_a_name = |at: &usize| !code[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let of_call = |call: &'static str| {
        let is_method = call.starts_with('.');
        let found = code.match_indices(call).map(|(at, _)| at);
        found.filter(move |at| is_method || begins_a_name(at)).collect::<Vec<_>>()
    };
    OPENING.iter().flat_map(|call| of_call(call)).collect()
}

#[test]
fn paths_are_opened_by_the_room_for_it() {
    let lines = lines_of(&root().join("src"), &opened);
    let is_listed = |line: &&String| OPENERS.iter().any(|(file, _)| line.starts_with(file));
    let others: Vec<_> = lines.iter().filter(|line| !is_listed(line)).collect();
    assert!(others.is_empty(), "open these with crate::file_access: {others:#?}");
    for (file, reason) in OPENERS {
        assert!(lines.iter().any(|line| line.starts_with(file)), "{file} opens nothing any more ({reason})");
    }
}

#[test]
fn programs_are_started_by_the_room_for_it() {
    let started = |code: &str| {
        let imports = code.split("use std::process::").skip(1).filter_map(|rest| rest.split(';').next());
        let alias = |import: &str| {
            let name = import
                .split(|c| "{},".contains(c))
                .map(str::trim)
                .find(|name| name.starts_with("Command"))?;
            Some(name.rsplit(' ').next().unwrap_or(name).to_owned())
        };
        let names: Vec<String> = imports.filter_map(alias).chain(["process::Command".to_owned()]).collect();
        names.iter().flat_map(|name| words(code, &format!("{name}::new")).collect::<Vec<_>>()).collect()
    };
    for one in CRATES {
        let lines = lines_of(&root().join(one.dir), &started);
        let others: Vec<_> = lines.iter().filter(|line| !line.starts_with(STARTER)).collect();
        assert!(others.is_empty(), "start these with child::command: {others:#?}");
    }
}
