//! What every test program shares: the real binary, the corpus, and skipping out loud.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The binary under test.
pub fn tracebridge() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tracebridge"))
}

/// The corpus of real files, beside the project or where `TRACEBRIDGE_CORPUS` says. `None`, and said, without it.
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

/// Says that a test did not run, and why. With `TRACEBRIDGE_REQUIRE` naming `what` (a list with commas), that is a
/// failure: so that a run which was to test everything cannot pass without.
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
