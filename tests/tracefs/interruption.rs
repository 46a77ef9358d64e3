//! Every command ends at SIGTERM, whatever it waits for, with the kernel's settings as before. What it waits
//! for does not come, so that a command that waited on would reach the limit of the test. The tests are named
//! after the attacks of the list that they repeat.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use support::{Child, Command, until, within_limit, write_program};

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::Pid;

use crate::atrace::atrace;
use crate::recording::{Busy, record};
use crate::tracefs_fixture::{
    Knobs, Machine, Recorder, Unread, machine, read_until_tracing, wait_for_lost_events, wait_for_tracing,
};
use crate::wrap::command;
use support::tracebridge;

/// `record` as a stream to its standard output, which the test holds and does not read.
fn stream(machine: &Machine, dir: &Path, args: &[&str]) -> Command {
    let mut command = command(machine, dir, "record");
    command.args(["--json", "-o", "-", "sched", "irq/*", "raw_syscalls/*", "-b", "256"]).args(args);
    command.stderr(Stdio::piped());
    command
}

/// Waits for the end of a recorder whose standard output is left open and unread. Returns its exit status,
/// and what it said on standard error.
fn wait_unread(recorder: &mut Recorder) -> (Option<i32>, String) {
    let said = recorder.collect_stderr().to_end();
    (recorder.wait().unwrap().code(), said)
}

fn parsed(said: &str) -> serde_json::Value {
    serde_json::from_str(said).unwrap_or_else(|e| panic!("{e}: {said}"))
}

/// A program that makes system calls, each of which is two events, until this value is dropped.
fn many_calls() -> Child {
    Command::new("dd").args(["if=/dev/zero", "of=/dev/null", "bs=1"]).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_reader_that_stalls_costs_events_and_nothing_else() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let _calls = many_calls();
    for signal in [Some(Signal::SIGTERM), Some(Signal::SIGINT), None] {
        let args: &[&str] = if signal.is_some() { &[] } else { &["-t", "2"] };
        let mut recorder = Recorder::start(stream(&machine, dir.path(), args), dir.path());
        // The reader takes the head, and then nothing.
        let stdout = read_until_tracing(&machine.root, &mut recorder);
        if let Some(signal) = signal {
            wait_for_lost_events(&machine.root);
            recorder.signal(signal);
        }
        let (status, said) = wait_unread(&mut recorder);
        assert_eq!(before.changed(&machine.root), [""; 0], "{signal:?}");
        assert_eq!(status, Some(3), "{said}");
        let summary = parsed(&said);
        let expected = signal.map_or("time".to_owned(), |signal| format!("signal {signal}"));
        assert_eq!(summary["ended_by"], expected.as_str());
        let cpus = summary["cpus"].as_array().unwrap();
        let sum = |name: &str| cpus.iter().map(|cpu| cpu[name].as_u64().unwrap()).sum::<u64>();
        assert!(sum("overrun") > 0 && sum("left") + sum("unsent") > 0, "{summary}");
        assert_eq!(sum("taken"), 0, "{summary}");
        assert!(summary["error"].as_str().unwrap().contains("lacks its end"), "{summary}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "a record is left");
        drop(stdout);
    }
}

#[test]
fn a_reader_that_never_takes_the_head_does_not_hold_the_recorder() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    for args in [&["-t", "1"][..], &[]] {
        let mut command = stream(&machine, dir.path(), args);
        let unread = Unread::stdout_of(&mut command);
        let mut recorder = Recorder::start_with_output(command, dir.path());
        unread.wait_until_full(&mut recorder);
        if args.is_empty() {
            recorder.signal(Signal::SIGTERM);
        }
        let (status, said) = wait_unread(&mut recorder);
        assert_eq!(status, Some(1), "{said}");
        assert_eq!(before.changed(&machine.root), [""; 0]);
    }
}

#[test]
fn a_slow_reader_and_one_that_goes_away_do_not_hold_the_recorder() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let _calls = many_calls();
    for gone in [false, true] {
        let mut recorder = Recorder::start(stream(&machine, dir.path(), &[]), dir.path());
        let mut stdout = recorder.stdout.take().unwrap();
        let mut stdout = within_limit("the head of a stream, and a part of it", move || {
            let mut piece = vec![0; 2 << 20];
            stdout.read_exact(&mut piece).unwrap();
            stdout
        });
        if gone {
            drop(stdout);
        } else {
            // So slow that it would have to read for minutes.
            std::thread::spawn(move || {
                let mut piece = [0; 512];
                while stdout.read(&mut piece).is_ok_and(|n| n > 0) {
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
            wait_for_lost_events(&machine.root);
            recorder.signal(Signal::SIGTERM);
        }
        let (status, said) = wait_unread(&mut recorder);
        assert_eq!(status, Some(3), "{said}");
        let summary = parsed(&said);
        assert_eq!(summary["ended_by"], if gone { "an error" } else { "signal SIGTERM" }, "{summary}");
        assert_eq!(before.changed(&machine.root), [""; 0]);
    }
}

#[test]
fn an_instance_is_removed_although_the_wrapped_command_goes_on() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let name = machine.instance_name("wrap");
    let instance = machine.instance_dir(&name);
    let mut wrap = command(&machine, dir.path(), "wrap");
    wrap.args(["--instance", &name, "sched", "--max-size", "1k", "-o"]).arg(dir.path().join("x.dat"));
    // The command ends when the test says so.
    wrap.args(["--", "sh", "-c", "until test -e end; do /bin/true; sleep 0.02; done"])
        .current_dir(dir.path());
    let mut child = wrap.spawn().unwrap();
    wait_for_tracing(&instance);
    until("the removal of an instance while the command runs", || !instance.exists());
    assert!(child.try_wait().unwrap().is_none(), "the command runs on");
    fs::write(dir.path().join("end"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(before.changed(&machine.root), [""; 0]);
}

#[test]
fn a_start_that_fails_leaves_no_instance() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let name = machine.instance_name("b3");
    let instance = machine.instance_dir(&name);
    let capture = dir.path().join("none/x.dat");
    let full = support::files::SmallDisk::mount("4k");
    if let Some(full) = &full {
        let _ = fs::write(full.path().join("fill"), [0; 8192]);
        let mut start = tracebridge();
        start.args(["start", "sched", "--instance", &name, "--tracefs"]).arg(&machine.root);
        let out = start.arg("--state-dir").arg(full.path()).run().exited(1);
        assert!(!instance.exists(), "{out:?}");
    }
    for args in [
        &["record", "no-such-category"][..],
        &["record", "sched", "--clock", "none"],
        &["record", "sched", "-o", capture.to_str().unwrap()],
        &["record", "sched", "--state-dir", "/nonexistent"],
        &["start", "no-such-category"],
    ] {
        let mut failing = tracebridge();
        failing.arg(args[0]).arg("--tracefs").arg(&machine.root).args(&args[1..]);
        if !args.contains(&"--state-dir") {
            failing.arg("--state-dir").arg(dir.path());
        }
        let out = failing.args(["--instance", &name]).current_dir(dir.path()).run().exited(1);
        assert!(!instance.exists(), "{args:?}: {out:?}");
    }
    assert_eq!(before.changed(&machine.root), [""; 0]);
}

#[test]
fn atrace_ends_at_sigterm_whatever_its_reader_does() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let _busy = Busy::start();
    let fifo = dir.path().join("fifo");
    nix::unistd::mkfifo(&fifo, Mode::S_IRWXU).unwrap();
    let fifo = fifo.to_str().unwrap();
    for args in [
        &["--stream", "sched"][..],
        &["-t", "1", "-b", "4096", "sched"],
        &["-z", "-t", "1", "-b", "4096", "sched", "irq"],
        &["-t", "0", "-o", fifo, "sched"],
    ] {
        let mut command = atrace(&machine, dir.path(), args);
        command.stderr(Stdio::piped());
        let mut recorder = if args.contains(&fifo) {
            let mut recorder = Recorder::start(command, dir.path());
            // Then it waits for somebody who opens the other end.
            recorder.collect_stdout().line_with("capturing trace... done");
            recorder
        } else {
            let unread = Unread::stdout_of(&mut command);
            let mut recorder = Recorder::start_with_output(command, dir.path());
            unread.wait_until_full(&mut recorder);
            recorder
        };
        assert!(recorder.try_wait().unwrap().is_none(), "{args:?}: it does not wait for its reader");
        recorder.signal(Signal::SIGTERM);
        let (status, said) = wait_unread(&mut recorder);
        assert_eq!(status, Some(1), "{args:?}: {said}");
        assert_eq!(before.changed(&machine.root), [""; 0], "{args:?}");
    }
}

#[test]
fn dump_and_stop_end_at_sigterm_while_their_reader_stalls() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    command(&machine, dir.path(), "start").args(["sched", "irq/*", "-b", "2048"]).run().exited(0);
    for name in ["dump", "stop"] {
        let mut reading = command(&machine, dir.path(), name);
        reading.args(["-o", "-"]).stderr(Stdio::piped());
        let unread = Unread::stdout_of(&mut reading);
        let mut recorder = Recorder::start_with_output(reading, dir.path());
        unread.wait_until_full(&mut recorder);
        recorder.signal(Signal::SIGTERM);
        let (status, said) = wait_unread(&mut recorder);
        assert!(matches!(status, Some(1 | 3)), "{name}: {status:?} {said}");
    }
    assert_eq!(before.changed(&machine.root), [""; 0]);
}

#[test]
fn wrap_ends_at_sigterm_although_its_command_does_not() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let begun = dir.path().join("begun");
    let wrap = |script: &str| {
        let _ = fs::remove_file(&begun);
        let mut wrap = command(&machine, dir.path(), "wrap");
        wrap.args(["sched", "-o"]).arg(dir.path().join("x.dat"));
        wrap.args(["--", "sh", "-c", script]).current_dir(dir.path());
        let wrap = Recorder::start(wrap, dir.path());
        until("the wrapped command", || begun.exists());
        wrap.signal(Signal::SIGTERM);
        wrap
    };
    // The command holds the pipe of the test open, so nobody may wait for its end.
    let mut ignoring = wrap("trap '' TERM; echo $$ >pid; touch begun; exec sleep 6000");
    assert_eq!(ignoring.wait().unwrap().code(), Some(128 + 15));
    assert_eq!(before.changed(&machine.root), [""; 0]);
    let pid: i32 = fs::read_to_string(dir.path().join("pid")).unwrap().trim().parse().unwrap();
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    // A command that heeds the signal gets it.
    let mut heeding = wrap("trap 'exit 9' TERM; touch begun; while :; do sleep 0.1; done");
    assert_eq!(heeding.wait().unwrap().code(), Some(9));
    assert_eq!(before.changed(&machine.root), [""; 0]);
}

#[test]
fn launch_ends_at_sigterm_although_am_does_not() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    // Also `am profile stop` hangs: the app's profiler is left to it.
    let android = support::tempdir();
    let am = "#!/bin/sh\ncase $1 in start) touch \"${0%/*}/begun\"; exec sleep 6000;; profile) exec sleep 6000;; esac\n";
    write_program(&android.path().join("bin/am"), am);
    let mut launch = command(&machine, dir.path(), "launch");
    launch.args(["com.app/.Main", "sched", "-o"]).arg(dir.path().join("y.dat")).arg("--android-root");
    launch.arg(android.path()).stderr(Stdio::null());
    let mut launch = Recorder::start(launch, dir.path());
    wait_for_tracing(&machine.root);
    until("the call of am start", || android.path().join("bin/begun").exists());
    launch.signal(Signal::SIGTERM);
    assert_eq!(launch.wait().unwrap().code(), Some(1));
    assert_eq!(before.changed(&machine.root), [""; 0]);
}

#[test]
fn a_list_of_names_that_never_ends_is_refused() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let out = atrace(&machine, dir.path(), &["-t", "0", "-f", "/dev/zero"]).run();
    assert!(out.stderr.contains("more than 1 MiB"), "{out:?}");
    let out = record(&machine, dir.path(), &["-f", "/dev/zero"]).run().exited(1);
    assert!(out.stderr.contains("more than 1 MiB"), "{out:?}");
}
