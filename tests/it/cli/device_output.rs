//! The device's commands print into a closed pipe or onto a full disk without a panic.

use std::fs::File;
use std::process::Stdio;
use support::Command;

use support::tracebridge;

/// Commands that print a report, whether or not this machine has a tracefs.
const REPORTS: [&[&str]; 5] =
    [&["doctor"], &["doctor", "--json"], &["list"], &["list", "--json"], &["restore"]];

fn command(args: &[&str], state_dir: &std::path::Path) -> Command {
    let mut command = tracebridge();
    command.args(args).arg("--state-dir").arg(state_dir);
    command
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let dir = support::tempdir();
    for args in REPORTS {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let out = command(args, dir.path()).stdout(Stdio::from(writer)).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!((out.status.code(), &*said), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn a_full_disk_does_not_cause_a_panic() {
    let dir = support::tempdir();
    for args in REPORTS {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let out = command(args, dir.path()).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.code().is_some_and(|code| code < 2), "{args:?}: {said}");
        assert!(!said.contains("panicked"), "{args:?}: {said}");
    }
}
