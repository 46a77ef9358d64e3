//! The tools that the test programs share: they run the real binary, find the corpus, report skipped tests,
//! and make files and devices.

#[cfg(unix)]
pub mod adb_server;
pub mod art_always_on;
pub mod art_blocks;
pub mod art_generate;
pub mod art_writer;
mod command;
pub mod damage;
pub mod dat_writer;
pub mod files;
pub mod foreign_dat;
pub mod growing_dat;
mod guard;
pub mod hostile_phone;
pub mod kernel_pages;
pub mod launch_scenario;
pub mod pages;
pub mod perf_writer;
mod printed;
pub mod processes;
pub mod python;
pub mod recorder_streams;
pub mod report_page;
pub mod sample_report;
pub mod scenario;
pub mod schemas;
pub mod screen_video;
pub mod simpleperf;
pub mod tables;
mod wait;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use command::{Child, Command, Ran};
pub use files::{write_executable, write_program};
#[cfg(unix)]
pub use guard::hold_until_tidied;
pub use guard::{
    put_back_at_end, remove_instance_at_end, restore_at_end, run_dir, run_id, tempdir, unmount_at_end,
};
pub use printed::Printed;
pub use tempfile::TempDir;
pub use wait::{WAIT_LIMIT, holds_within, until, within_limit};

/// The directory of the project.
pub fn project_dir() -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    dir.ancestors().nth(2).expect("this crate is two directories below").to_owned()
}

/// The path of the binary under test: `TRACEBRIDGE_BIN`, or else the one that cargo has built beside this
/// test program.
pub fn binary() -> PathBuf {
    if let Some(binary) = std::env::var_os("TRACEBRIDGE_BIN") {
        return std::path::absolute(binary).expect("TRACEBRIDGE_BIN is a path");
    }
    let program = std::env::current_exe().expect("the path of this test program");
    // target/PROFILE/deps/PROGRAM
    let profile_dir = program.parent().and_then(Path::parent).expect("cargo's directories");
    let binary = profile_dir.join("tracebridge").with_extension(std::env::consts::EXE_EXTENSION);
    assert!(binary.is_file(), "{} is missing: cargo test builds it", binary.display());
    binary
}

/// The path of an example of any crate of the workspace, built for this machine. Cargo looks whether it is
/// up to date.
///
/// # Panics
/// If the example cannot be built.
pub fn example(name: &str) -> PathBuf {
    let binary = binary();
    let target = binary.parent().and_then(Path::parent).expect("cargo's directories");
    let mut build = Command::new(env!("CARGO"));
    // All crates, so that everything has the features that it has for the tests, and is built once.
    build.args(["build", "--quiet", "--locked", "--workspace", "--example", name, "--target-dir"]);
    build.arg(target).current_dir(project_dir()).run().exited(0);
    target.join("debug/examples").join(name)
}

/// Runs the binary under test.
pub fn tracebridge() -> Command {
    Command::new(binary())
}

/// The commands that a text of help lists: each of its lists begins with a title such as "Commands for
/// files:".
pub fn listed_commands(help: &str) -> Vec<&str> {
    let lists = help.split("\n\n").filter(|list| list.starts_with("Commands") && list.contains(":\n"));
    let lines = lists.flat_map(|list| list.lines().skip(1));
    lines.filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next()).collect()
}

/// Runs the binary under test in this directory, to its end.
#[track_caller]
pub fn run_in<S: AsRef<OsStr>>(dir: &Path, args: &[S]) -> Ran {
    tracebridge().current_dir(dir).args(args).run()
}

/// The same with a line of words that have one blank between them.
#[track_caller]
pub fn run_line(dir: &Path, line: &str) -> Ran {
    run_in(dir, &line.split(' ').collect::<Vec<_>>())
}

/// The directory with the corpus of real files: `TRACEBRIDGE_CORPUS`, or else beside the project. Where it is
/// missing, this function reports a skipped test and returns `None`.
pub fn corpus() -> Option<PathBuf> {
    let dir = std::env::var_os("TRACEBRIDGE_CORPUS")
        .map_or_else(|| project_dir().join("../shared/corpus"), PathBuf::from);
    // Some tests run the binary in another directory.
    let dir = std::path::absolute(dir).expect("TRACEBRIDGE_CORPUS is a path");
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
    let _ = writeln!(std::io::stderr(), "SKIPPED ({what}): {why}");
}

/// A full run takes the tests that need much time and rarely find a fault: `scripts/test --all` sets
/// `TRACEBRIDGE_ALL`.
pub fn is_full_run() -> bool {
    std::env::var_os("TRACEBRIDGE_ALL").is_some()
}

/// How often a loop over cases goes round: `usually`, or `in_full_run` times in a full run.
pub fn rounds<T>(usually: T, in_full_run: T) -> T {
    if is_full_run() { in_full_run } else { usually }
}

/// Reports the test of this thread as skipped and returns true, unless the run is a full one.
pub fn skip_unless_full_run() -> bool {
    if !is_full_run() {
        let thread = std::thread::current();
        skip("--all", &format!("{}: TRACEBRIDGE_ALL is not set", thread.name().unwrap_or("a test")));
    }
    !is_full_run()
}

/// Whether a program is on PATH.
pub fn has_program(name: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|p| std::env::split_paths(&p).any(|d| d.join(name).is_file()))
}

/// Longest wait for all faults of a test.
const FAULTS_LIMIT: Duration = Duration::from_secs(3600);

/// Runs `scripts/faults`, which injects `count` faults into commands of this kind, or seven times as many in
/// a full run, and fails unless everything held. The seed is a fixed one: a run of the suite is to judge a
/// change, and not to search for faults of another one. `scripts/faults` itself takes another seed in each
/// run.
pub fn inject_faults(jobs: &str, count: u32) {
    let count = rounds(count, 7 * count);
    if !has_program("python3") || !has_program("cc") {
        return skip("python", "scripts/faults needs python3 and cc");
    }
    let script = project_dir().join("scripts/faults");
    let mut command = Command::new(script);
    command.args(["--jobs", jobs, "--count", &count.to_string(), "--seed", "11"]);
    // It waits for other tests that use the machine's tracefs, and then for many commands.
    command.limit(FAULTS_LIMIT);
    command.arg("--binary").arg(binary());
    let out = command.run();
    let table = &out.stdout;
    let said = &out.stderr;
    if said.contains("SKIPPED (tracefs)") {
        return skip("tracefs", "no tracefs to be had: needs root and a kernel with it");
    }
    assert!(out.status.success(), "{table}\n{said}");
    assert!(said.contains(&format!("{count} faults in ")) && said.contains(" 0 failures"), "{said}");
}
