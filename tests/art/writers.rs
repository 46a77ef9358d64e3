//! Each writer's files are read as the program ran, and, where Debian's dmtracedump reads them, as it does.

use std::path::Path;

use support::{Command, has_program, rounds, skip, tempdir, tracebridge};

use crate::runtime::{Kind, WRITERS, runtime};

/// Seeds of the programs for each writer, which differ in what they do, in how often and in how many threads.
fn seeds() -> Vec<u64> {
    (0..rounds(2, 20)).map(|number| 1 + number * 6).collect()
}

#[test]
fn counts_of_calls_are_the_programs_own() {
    let Some(art) = runtime() else { return };
    let dir = tempdir();
    let tracing = WRITERS.into_iter().filter(|writer| writer.kind != Kind::Samples);
    for (writer, seed) in tracing.flat_map(|writer| seeds().into_iter().map(move |seed| (writer, seed))) {
        let trace = dir.path().join("calls.trace");
        let words = art.command(writer, seed, &trace);
        let fibs: u64 =
            Command::new(&words[0]).args(&words[1..]).run().exited(0).stdout.trim().parse().unwrap();
        let profile = tracebridge().args(["profile", "--json", "--top", "0"]).arg(&trace).run();
        let profile = profile.exited_with_one_of(&[0, 3]).json();
        let rows = profile["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"].as_str().unwrap().starts_with("Calls.fib"));
        let calls = |kind: &str| row.unwrap()[kind].as_u64().unwrap();
        assert_eq!(calls("calls") + calls("recursive_calls"), fibs, "{writer:?} {seed}");
    }
}

/// The standard output of a program that reads the trace, whatever its exit status.
fn printed(mut command: Command, options: &[&str], trace: &Path) -> String {
    command.args(options).arg(trace).run().stdout
}

#[test]
fn dmtracedump_prints_what_debians_does() {
    let Some(art) = runtime() else { return };
    if !has_program("dmtracedump") {
        return skip("dmtracedump", "no dmtracedump: scripts/setup installs one");
    }
    let dir = tempdir();
    // The old tool refuses streaming files.
    let files = WRITERS.into_iter().filter(|writer| writer.kind != Kind::Stream);
    for (writer, seed) in files.flat_map(|writer| seeds().into_iter().map(move |seed| (writer, seed))) {
        let trace = dir.path().join("calls.trace");
        let words = art.command(writer, seed, &trace);
        Command::new(&words[0]).args(&words[1..]).run().exited(0);
        // Where a thread takes the id of one that has ended, the old tool makes one of the two, and its
        // sums are below 0.
        let mut profile = tracebridge();
        let profile =
            profile.args(["profile", "--json"]).arg(&trace).run().exited_with_one_of(&[0, 3]).json();
        let are_all_apart = profile["counts"]["reused_threads"] == 0;
        for options in [&["-o"][..], &[]].into_iter().take(1 + usize::from(are_all_apart)) {
            let mut ours = tracebridge();
            ours.arg("dmtracedump");
            let ours = printed(ours, options, &trace);
            let debians = printed(Command::new("dmtracedump"), options, &trace);
            assert!(ours == debians && !ours.is_empty(), "{writer:?} {seed} {options:?}: not equal");
        }
    }
}
