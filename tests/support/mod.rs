//! Functions that every test program uses: they run the real binary, find the corpus, and report skipped
//! tests.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The binary under test.
pub fn tracebridge() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tracebridge"))
}

/// The directory with the corpus of real files: `TRACEBRIDGE_CORPUS`, or else beside the project. Where it is
/// missing, this function reports a skipped test and returns `None`.
pub fn corpus() -> Option<PathBuf> {
    let dir = std::env::var_os("TRACEBRIDGE_CORPUS")
        .map(PathBuf::from)
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"));
    if dir.join("INDEX.tsv").is_file() {
        return Some(dir);
    }
    skip("corpus", &format!("no corpus at {}: set TRACEBRIDGE_CORPUS", dir.display()));
    None
}

/// Reports on standard error that a test is skipped for lack of `what`. Panics where the list
/// `TRACEBRIDGE_REQUIRE` (names separated by commas) holds `what`, so that a run that must test everything
/// fails.
pub fn skip(what: &str, why: &str) {
    let required = std::env::var("TRACEBRIDGE_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|r| r == what), "required, but: {why}");
    // Straight to the terminal: the test harness swallows what a passing test prints.
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "SKIPPED ({what}): {why}");
}

/// Whether a program is on PATH.
pub fn has_program(name: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|p| std::env::split_paths(&p).any(|d| d.join(name).is_file()))
}

/// Runs `scripts/faults`, which injects `count` faults into commands of this kind at random moments, and
/// fails unless everything held. What failed can be seen again with the seed that the message has.
pub fn inject_faults(jobs: &str, count: u32) {
    if !has_program("python3") || !has_program("cc") {
        return skip("python", "scripts/faults needs python3 and cc");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/faults");
    let mut command = Command::new(script);
    command.args(["--jobs", jobs, "--count", &count.to_string()]);
    command.args(["--binary", env!("CARGO_BIN_EXE_tracebridge")]);
    let out = command.output().unwrap();
    let (table, said) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    if said.contains("SKIPPED (tracefs)") {
        return skip("tracefs", "no tracefs to be had: needs root and a kernel with it");
    }
    assert!(out.status.success(), "{table}\n{said}");
    assert!(said.contains(&format!("{count} faults in ")) && said.contains(" 0 failures"), "{said}");
}
