//! `-v`: each step of a recording command is a line on standard error, and nothing else changes.

use std::io::Write;
use std::path::Path;

use nix::fcntl::{FcntlArg, fcntl};

use crate::recording::{Busy, record};
use crate::tracefs_fixture::{Knobs, Machine, machine};
use support::{Ran, tracebridge};

/// The steps on standard error, without the times at their beginnings.
fn steps(out: &Ran) -> Vec<String> {
    let step = |line: &str| {
        let rest = line.strip_prefix("tracebridge: ").unwrap_or_else(|| panic!("{line}"));
        let (ms, step) = rest.split_once(" ms: ").unwrap_or_else(|| panic!("{line}"));
        assert!(ms.parse::<f64>().is_ok(), "{line}");
        step.to_owned()
    };
    out.stderr.lines().map(step).collect()
}

fn assert_has(steps: &[String], parts: &[&str]) {
    let has = |step: &String| parts.iter().all(|part| step.contains(part));
    assert!(steps.iter().any(has), "{parts:?} in {steps:#?}");
}

#[test]
fn a_verbose_recording_prints_its_steps_with_old_and_new_values() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let busy = Busy::start();
    let args = ["sched/sched_switch", "-b", "512", "-t", "0.3"];
    let quiet = record(&machine, dir.path(), &args).run();
    let verbose = record(&machine, dir.path(), &[&args[..], &["-v"]].concat()).run();
    drop(busy);
    assert_eq!((quiet.code(), verbose.code()), (Some(0), Some(0)), "{verbose:?}");
    assert_eq!(quiet.stderr, "");
    assert_eq!(before.changed(&machine.root), [""; 0]);
    assert_eq!(verbose.json()["ended_by"], "time", "the summary stays on standard output");
    let steps = steps(&verbose);
    assert_has(&steps, &["locked ", "tracing_on"]);
    assert_has(&steps, &["saves settings in ", ".saved"]);
    assert_has(&steps, &["wrote ", "/events/sched/sched_switch/enable: \"0\" -> \"1\""]);
    assert_has(&steps, &["wrote ", "/events/sched/sched_switch/enable: \"1\" -> \"0\""]);
    assert_has(&steps, &["clock: boot, of those offered: "]);
    assert_has(&steps, &["buffers: 512 KiB for each CPU were asked for"]);
    assert_has(&steps, &["events: ", " are on"]);
    assert_has(&steps, &["reads ", " CPUs into ", "x.dat"]);
    assert_has(&steps, &["scheduling: "]);
    for phase in ["prepare", "arm", "record", "stop", "report"] {
        assert_has(&steps, &[&format!("phase {phase}: took "), " ms"]);
    }
}

fn run(machine: &Machine, dir: &Path, args: &[&str]) -> Vec<String> {
    let mut command = tracebridge();
    command.args(args).arg("-v").arg("--tracefs").arg(&machine.root).arg("--state-dir").arg(dir);
    let out = command.current_dir(dir).run();
    assert_eq!(out.code(), Some(0), "{out:?}");
    steps(&out)
}

#[test]
fn a_verbose_flight_recorder_prints_its_steps() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let started = run(&machine, dir.path(), &["start", "sched/sched_switch", "-b", "256"]);
    assert_has(&started, &["wrote ", "/tracing_on: ", "-> \"1\""]);
    assert_has(&started, &["phase start: took "]);
    let dumped = run(&machine, dir.path(), &["dump", "-o", "x.dat"]);
    assert_has(&dumped, &["phase dump: took "]);
    assert!(!dumped.iter().any(|step| step.starts_with("wrote ")), "{dumped:#?}");
    let stopped = run(&machine, dir.path(), &["stop"]);
    assert_has(&stopped, &["wrote ", "/tracing_on: \"1\" -> \"0\""]);
    assert_has(&stopped, &["phase stop: took "]);
    assert_eq!(before.changed(&machine.root), [""; 0]);
}

#[test]
fn a_reader_of_steps_that_takes_nothing_does_not_hold_the_recording_up() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    // A pipe that is full already, and that nobody reads.
    let (reader, writer) = std::io::pipe().unwrap();
    let size = fcntl(&writer, FcntlArg::F_GETPIPE_SZ).unwrap();
    (&writer).write_all(&vec![b'x'; size as usize]).unwrap();
    let mut command = record(&machine, dir.path(), &["sched/sched_switch", "-t", "0.3", "-v"]);
    let out = command.stderr(writer).run();
    drop(reader);
    assert_eq!(out.code(), Some(0), "{out:?}");
    assert_eq!(before.changed(&machine.root), [""; 0]);
}
