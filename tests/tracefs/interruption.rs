//! Every command ends within a second of SIGTERM, whatever it waits for, with the kernel's settings as
//! before. The tests are named after the attacks of the list that they repeat.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::sys::stat::Mode;

use crate::atrace::atrace;
use crate::recording::{Busy, record};
use crate::support::tracebridge;
use crate::tracefs_fixture::{Knobs, Machine, Recorder, expand, machine, wait_for_tracing};
use crate::wrap::command;

/// How long a command may take after the signal: a second, and what this machine adds when it is busy.
const PATIENCE: Duration = Duration::from_secs(3);

/// `record` as a stream to its standard output, which the test holds and does not read.
fn stream(machine: &Machine, dir: &Path, args: &[&str]) -> Recorder {
    let mut command = command(machine, dir, "record");
    command.args(["--json", "-o", "-", "sched", "irq/*", "raw_syscalls/*", "-b", "256"]).args(args);
    command.stderr(Stdio::piped());
    Recorder::start(command, dir)
}

/// Waits for the end of a recorder whose standard output is left open and unread. Returns its exit status,
/// what it said on standard error, and the time.
fn wait_unread(recorder: &mut Recorder) -> (Option<i32>, String, Duration) {
    let begun = Instant::now();
    let mut said = String::new();
    recorder.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let status = recorder.wait().unwrap();
    (status.code(), said, begun.elapsed())
}

#[test]
fn b1_a_reader_that_stalls_costs_events_and_nothing_else() {
    let Some(machine) = machine() else { return };
    expand(&machine.root);
    let (dir, before) = (tempfile::tempdir().unwrap(), Knobs::read(&machine.root));
    let _busy = Busy::start();
    for signal in [Some(Signal::SIGTERM), Some(Signal::SIGINT), None] {
        let args: &[&str] = if signal.is_some() { &[] } else { &["-t", "2"] };
        let mut recorder = stream(&machine, dir.path(), args);
        // The reader takes the head, and then nothing.
        let mut head = vec![0; 1 << 20];
        let mut stdout = recorder.stdout.take().unwrap();
        let mut taken = 0;
        while !fs::read_to_string(machine.root.join("tracing_on")).unwrap().starts_with('1')
            || taken < 300_000
        {
            taken += stdout.read(&mut head).unwrap();
        }
        let begun = Instant::now();
        if let Some(signal) = signal {
            std::thread::sleep(Duration::from_secs(2));
            recorder.signal(signal);
        }
        let (status, said, time) = wait_unread(&mut recorder);
        assert!(time < PATIENCE && begun.elapsed() < 2 * PATIENCE, "{signal:?}: {time:?}");
        assert_eq!(before.changed(&machine.root), [""; 0], "{signal:?}");
        assert_eq!(status, Some(3), "{said}");
        let summary: serde_json::Value =
            serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said}"));
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
fn b1_a_reader_that_never_takes_the_head_does_not_hold_the_recorder() {
    let Some(machine) = machine() else { return };
    expand(&machine.root);
    let (dir, before) = (tempfile::tempdir().unwrap(), Knobs::read(&machine.root));
    for args in [&["-t", "1"][..], &[]] {
        let begun = Instant::now();
        let mut recorder = stream(&machine, dir.path(), args);
        let _unread = recorder.stdout.take();
        if args.is_empty() {
            std::thread::sleep(Duration::from_secs(2));
            recorder.signal(Signal::SIGTERM);
        }
        let (status, said, _) = wait_unread(&mut recorder);
        assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
        assert_eq!(status, Some(1), "{said}");
        assert_eq!(before.changed(&machine.root), [""; 0]);
    }
}

#[test]
fn b1_a_slow_reader_and_one_that_goes_away_do_not_hold_the_recorder() {
    let Some(machine) = machine() else { return };
    expand(&machine.root);
    let (dir, before) = (tempfile::tempdir().unwrap(), Knobs::read(&machine.root));
    let _busy = Busy::start();
    for gone in [false, true] {
        let mut recorder = stream(&machine, dir.path(), &[]);
        let mut stdout = recorder.stdout.take().unwrap();
        let mut piece = vec![0; 64 << 10];
        for _ in 0..40 {
            let _ = stdout.read(&mut piece).unwrap();
        }
        if gone {
            drop(stdout);
        } else {
            std::thread::spawn(move || {
                let mut piece = [0; 512];
                while stdout.read(&mut piece).is_ok_and(|n| n > 0) {
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
            std::thread::sleep(Duration::from_millis(1500));
            recorder.signal(Signal::SIGTERM);
        }
        let (status, said, time) = wait_unread(&mut recorder);
        assert!(time < PATIENCE, "{time:?}: {said}");
        assert_eq!(status, Some(3), "{said}");
        let summary: serde_json::Value =
            serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said}"));
        assert_eq!(summary["ended_by"], if gone { "an error" } else { "signal SIGTERM" }, "{summary}");
        assert_eq!(before.changed(&machine.root), [""; 0]);
    }
}

#[test]
fn b2_an_instance_is_removed_although_the_wrapped_command_goes_on() {
    let Some(machine) = machine() else { return };
    expand(&machine.root);
    let (dir, before) = (tempfile::tempdir().unwrap(), Knobs::read(&machine.root));
    let instance = machine.root.join("instances/tb-wrap");
    let mut wrap = command(&machine, dir.path(), "wrap");
    wrap.args(["--instance", "tb-wrap", "sched", "--max-size", "1k", "-o"]).arg(dir.path().join("x.dat"));
    wrap.args(["--", "sh", "-c", "for i in 1 2 3 4 5 6; do sleep 0.5; /bin/true; done"]);
    let mut child = wrap.spawn().unwrap();
    wait_for_tracing(&instance);
    let begun = Instant::now();
    while instance.exists() && begun.elapsed() < Duration::from_secs(8) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!instance.exists() && child.try_wait().unwrap().is_none(), "removed while the command runs");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(before.changed(&machine.root), [""; 0]);
}

#[test]
fn b3_a_start_that_fails_leaves_no_instance() {
    let Some(machine) = machine() else { return };
    expand(&machine.root);
    let (dir, before) = (tempfile::tempdir().unwrap(), Knobs::read(&machine.root));
    let instance = machine.root.join("instances/tb-b3");
    let capture = dir.path().join("none/x.dat");
    let full = crate::small_disk::SmallDisk::mount("4k");
    if let Some(full) = &full {
        let _ = fs::write(full.path().join("fill"), [0; 8192]);
        let mut start = tracebridge();
        start.args(["start", "sched", "--instance", "tb-b3", "--tracefs"]).arg(&machine.root);
        let out = start.arg("--state-dir").arg(full.path()).output().unwrap();
        assert_eq!(out.status.code(), Some(1), "{out:?}");
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
        let out = failing.args(["--instance", "tb-b3"]).current_dir(dir.path()).output().unwrap();
        assert_eq!(out.status.code(), Some(1), "{out:?}");
        assert!(!instance.exists(), "{args:?}: {out:?}");
    }
    assert_eq!(before.changed(&machine.root), [""; 0]);
}

#[test]
fn atrace_ends_at_sigterm_whatever_its_reader_does() {
    let Some(machine) = machine() else { return };
    expand(&machine.root);
    let (dir, before) = (tempfile::tempdir().unwrap(), Knobs::read(&machine.root));
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
        let mut recorder = atrace(&machine, dir.path(), args);
        recorder.stderr(Stdio::piped());
        let mut recorder = Recorder::start(recorder, dir.path());
        let _unread = recorder.stdout.take();
        std::thread::sleep(Duration::from_secs(4));
        assert!(recorder.try_wait().unwrap().is_none(), "{args:?}: it does not wait for its reader");
        recorder.signal(Signal::SIGTERM);
        let (status, said, time) = wait_unread(&mut recorder);
        assert!(time < PATIENCE, "{args:?}: {time:?}");
        assert_eq!(status, Some(1), "{args:?}: {said}");
        assert_eq!(before.changed(&machine.root), [""; 0], "{args:?}");
    }
}

#[test]
fn dump_and_stop_end_at_sigterm_while_their_reader_stalls() {
    let Some(machine) = machine() else { return };
    expand(&machine.root);
    let (dir, before) = (tempfile::tempdir().unwrap(), Knobs::read(&machine.root));
    let out = command(&machine, dir.path(), "start").args(["sched", "irq/*", "-b", "2048"]).output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    for name in ["dump", "stop"] {
        let mut reading = command(&machine, dir.path(), name);
        reading.args(["-o", "-"]).stderr(Stdio::piped());
        let mut recorder = Recorder::start(reading, dir.path());
        let _unread = recorder.stdout.take();
        std::thread::sleep(Duration::from_millis(1500));
        recorder.signal(Signal::SIGTERM);
        let (status, said, time) = wait_unread(&mut recorder);
        assert!(time < PATIENCE, "{name}: {time:?}");
        assert!(matches!(status, Some(1 | 3)), "{name}: {status:?} {said}");
    }
    assert_eq!(before.changed(&machine.root), [""; 0]);
}

#[test]
fn wrap_and_launch_end_at_sigterm_although_their_programs_do_not() {
    let Some(machine) = machine() else { return };
    expand(&machine.root);
    let (dir, before) = (tempfile::tempdir().unwrap(), Knobs::read(&machine.root));
    let mut wrap = command(&machine, dir.path(), "wrap");
    wrap.args(["sched", "-o"]).arg(dir.path().join("x.dat"));
    wrap.args(["--", "sh", "-c", "trap '' TERM; echo $$ >pid; exec sleep 8"]).current_dir(dir.path());
    let mut wrap = wrap.spawn().unwrap();
    wait_for_tracing(&machine.root);
    std::thread::sleep(Duration::from_millis(500));
    let begun = Instant::now();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(wrap.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(wrap.wait().unwrap().code(), Some(128 + 15));
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    assert_eq!(before.changed(&machine.root), [""; 0]);
    // A command that heeds the signal gets it.
    let mut wrap = command(&machine, dir.path(), "wrap");
    wrap.args(["sched", "-o"]).arg(dir.path().join("x.dat"));
    wrap.args(["--", "sh", "-c", "trap 'exit 9' TERM; while :; do sleep 0.1; done"]);
    let mut wrap = wrap.spawn().unwrap();
    wait_for_tracing(&machine.root);
    std::thread::sleep(Duration::from_millis(500));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(wrap.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(wrap.wait().unwrap().code(), Some(9));

    // `am profile stop` that hangs: the app's profiler is left to it.
    let android = tempfile::tempdir().unwrap();
    let script = "mkdir bin && printf '#!/bin/sh\\ncase $1 in start) exec sleep 9;; profile) exec sleep 9;; esac\\n' >bin/am && chmod 755 bin/am";
    assert!(Command::new("sh").args(["-c", script]).current_dir(android.path()).status().unwrap().success());
    let mut launch = command(&machine, dir.path(), "launch");
    launch.args(["com.app/.Main", "sched", "-o"]).arg(dir.path().join("y.dat")).arg("--android-root");
    let launch = launch.arg(android.path()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_tracing(&machine.root);
    std::thread::sleep(Duration::from_millis(500));
    let begun = Instant::now();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(launch.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!({ launch }.wait().unwrap().code(), Some(1));
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    assert_eq!(before.changed(&machine.root), [""; 0]);
}

#[test]
fn a_list_of_names_that_never_ends_is_refused() {
    let Some(machine) = machine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let out = atrace(&machine, dir.path(), &["-t", "0", "-f", "/dev/zero"]).output().unwrap();
    assert!(String::from_utf8_lossy(&out.stderr).contains("more than 1 MiB"), "{out:?}");
    let out = record(&machine, dir.path(), &["-f", "/dev/zero"]).output().unwrap();
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    assert!(String::from_utf8_lossy(&out.stderr).contains("more than 1 MiB"), "{out:?}");
}
