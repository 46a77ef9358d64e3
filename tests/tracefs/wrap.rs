//! `wrap`: runs a command and records while it runs.

use std::path::Path;
use support::Command;

use crate::tracefs_fixture::{Knobs, Machine, machine};
use support::tracebridge;

/// The markers of a capture, as text.
pub fn markers(capture: &Path) -> Vec<String> {
    let out = tracebridge().args(["convert", "--format", "systrace", "-o", "-"]).arg(capture).run().exited(0);
    let text = &out.stdout;
    let marker = |line: &str| Some(line.split_once("tracing_mark_write: ")?.1.trim().to_owned());
    text.lines().filter_map(marker).collect()
}

/// A command of the product on this machine's tracefs, with its saved settings in `dir`.
pub fn command(machine: &Machine, dir: &Path, name: &str) -> Command {
    let mut command = tracebridge();
    command.arg(name).arg("--tracefs").arg(&machine.root).arg("--state-dir").arg(dir);
    command
}

#[test]
fn a_command_is_recorded_within_a_slice_and_its_exit_status_is_passed_on() {
    let Some(machine) = machine() else { return };
    let before = Knobs::read(&machine.root);
    let dir = support::tempdir();
    let capture = dir.path().join("x.dat");
    let mut wrap = command(&machine, dir.path(), "wrap");
    let out =
        wrap.arg("-o").arg(&capture).args(["sched", "--", "sh", "-c", "echo out; exit 7"]).run().exited(7);
    assert_eq!(out.stdout, "out\n");
    assert!(out.stderr.contains("the command ended"), "{out:?}");
    let markers = markers(&capture);
    let kinds: Vec<&str> = markers.iter().filter_map(|m| m.get(..1)).collect();
    assert_eq!(kinds, ["B", "S", "F", "E"], "{markers:?}");
    assert!(markers[0].ends_with("|sh"));
    assert_eq!(before.changed(&machine.root), Vec::<String>::new());
}

#[test]
fn a_command_ended_by_a_signal_gives_the_exit_status_that_a_shell_gives() {
    let Some(machine) = machine() else { return };
    let mut wrap = tracebridge();
    wrap.args(["wrap", "--no-record", "--tracefs"]).arg(&machine.root);
    assert_eq!(wrap.args(["--", "sh", "-c", "kill -9 $$"]).status().unwrap().code(), Some(137));
    let mut missing = tracebridge();
    missing.args(["wrap", "--no-record", "--tracefs"]).arg(&machine.root);
    missing.args(["--", "/no/such"]).run().exited(1);
}
