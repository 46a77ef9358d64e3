//! Compares the product's `dmtracedump` with the original program, on every file that the original reads.

use std::path::Path;
use std::process::Command;

use crate::support;

/// Runs a program and returns its standard output; `None` where it failed. Exit status 3 is success on a
/// damaged file.
fn output(command: &mut Command) -> Option<String> {
    let out = command.output().unwrap();
    matches!(out.status.code(), Some(0 | 3)).then(|| String::from_utf8_lossy(&out.stdout).into_owned())
}

fn numbers(text: &str) -> usize {
    text.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty()).count()
}

/// Compares both outputs for one file byte for byte, and returns how many values were compared. `None` where
/// the original program does not read the file.
fn compare(path: &Path, options: &[&str]) -> Option<usize> {
    let theirs = output(Command::new("dmtracedump").args(options).arg(path))?;
    if theirs.is_empty() {
        return None;
    }
    let ours = output(support::tracebridge().arg("dmtracedump").args(options).arg(path));
    let ours = ours.unwrap_or_else(|| panic!("{} {options:?}: failed", path.display()));
    for (n, (a, b)) in theirs.lines().zip(ours.lines()).enumerate() {
        assert_eq!(a, b, "{} {options:?} line {}", path.display(), n + 1);
    }
    assert_eq!(theirs.len(), ours.len(), "{} {options:?}", path.display());
    Some(numbers(&theirs))
}

#[test]
fn dmtracedump_prints_what_the_old_one_prints() {
    let Some(corpus) = support::corpus() else { return };
    if !support::has_program("dmtracedump") {
        return support::skip("dmtracedump", "no dmtracedump on PATH (Debian package dmtracedump)");
    }
    let mut files = 0;
    let mut values = 0;
    for entry in std::fs::read_dir(corpus.join("method-trace")).unwrap() {
        let path = entry.unwrap().path();
        // Its records are no records: the old tool prints empty tables for it, we say what is wrong and exit
        // with 3.
        if path.ends_with("tadfisher__platform_tools_base__header.trace") {
            continue;
        }
        let Some(profile) = compare(&path, &[]) else { continue };
        files += 1;
        values += profile + compare(&path, &["-o"]).unwrap_or(0);
    }
    println!("{files} files: {values} values equal");
    assert!(files >= 8 && values > 100_000, "{files} files, {values} values");
}

#[test]
fn a_streaming_file_and_its_gzip_twin_print_the_same() {
    let Some(corpus) = support::corpus() else { return };
    for name in [
        "firefox-devtools__profiler__art-trace-streaming.trace",
        "firefox-devtools__profiler__art-trace-regular.trace",
    ] {
        let path = corpus.join("method-trace").join(name);
        let plain = output(support::tracebridge().arg("dmtracedump").arg(&path)).unwrap();
        let gzip =
            output(support::tracebridge().arg("dmtracedump").arg(path.with_extension("trace.gz"))).unwrap();
        assert!(plain.len() > 100_000 && plain == gzip, "{name}");
    }
}
