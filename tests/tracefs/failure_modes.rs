//! Failures around a recorder: damage, faults, full disks, other processes that compete for the CPUs. The
//! recorder always ends with a clear message, a readable file, and every kernel setting as before.

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Stdio;

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::sys::signal::Signal;
use support::damage::check_damaged_copies;
use support::{Child, Command, Ran, inject_faults, tracebridge};

use crate::locked_down::{SHELL, for_everybody};
use crate::recording::{Busy, events, record};
use crate::tracefs_fixture::{Knobs, Machine, Recorder, machine, wait_for_tracing};

/// Runs a command of the product on this machine's tracefs, with its saved settings in `dir`.
fn run(machine: &Machine, dir: &Path, args: &[&str]) -> Ran {
    let mut command = tracebridge();
    command.args(args).arg("--tracefs").arg(&machine.root).arg("--state-dir").arg(dir);
    command.run()
}

#[test]
fn a_recorder_stopped_by_sigstop_is_taken_over_and_ends_in_order() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let _busy = Busy::start();
    let first = record(&machine, dir.path(), &["sched", "-b", "512", "-t", "600"]);
    let first = Recorder::start(first, dir.path());
    wait_for_tracing(&machine.root);
    first.signal(Signal::SIGSTOP);
    let other = dir.path().join("y.dat");
    let second = run(
        &machine,
        dir.path(),
        &["record", "sched", "--force", "-t", "0.1", "-o", other.to_str().unwrap()],
    );
    assert_eq!(second.code(), Some(0), "{second:?}");
    assert!(second.stderr.contains(&format!("from recorder {}", first.id())), "{second:?}");
    let first = first.finish();
    assert_eq!(first.json()["ended_by"], "signal SIGTERM", "{first:?}");
    assert_eq!(before.changed(&machine.root), [""; 0]);
    for capture in [dir.path().join("x.dat"), other] {
        let info = tracebridge().arg("info").arg(&capture).run();
        assert!(matches!(info.code(), Some(0 | 3)), "{info:?}");
    }
}

#[test]
fn a_message_reports_that_a_flight_recorder_was_ended_by_force() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    assert_eq!(run(&machine, dir.path(), &["start", "sched"]).status.code(), Some(0));
    let out = record(&machine, dir.path(), &["sched", "--force", "-t", "0.2"]).run();
    assert_eq!(out.code(), Some(0), "{out:?}");
    assert!(out.stderr.contains("ended the flight recorder"), "{out:?}");
    assert_eq!(before.changed(&machine.root), [""; 0]);
}

#[test]
fn the_next_recorder_removes_the_instance_of_a_killed_recorder_when_it_ends() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let name = machine.instance_name("killed");
    let instance = machine.instance_dir(&name);
    let args = ["sched", "--instance", &name, "-b", "512", "-t", "600"];
    for force in [false, true] {
        let mut first = Recorder::start(record(&machine, dir.path(), &args), dir.path());
        wait_for_tracing(&instance);
        let mut second = vec!["sched", "--instance", &name, "-t", "0.1"];
        if force {
            second.push("--force");
        } else {
            first.kill().unwrap();
            first.wait().unwrap();
        }
        let second = record(&machine, dir.path(), &second).run();
        let _ = first.wait();
        assert_eq!(second.code(), Some(0), "{second:?}");
        let told = if force { "took the trace buffer over" } else { "put back" };
        assert!(second.stderr.contains(told), "{second:?}");
        assert!(!instance.exists(), "force: {force}");
        assert_eq!(before.changed(&machine.root), [""; 0]);
    }
}

#[test]
fn a_flight_recorder_whose_instance_was_removed_is_reported_and_can_be_restored() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let name = machine.instance_name("flight");
    let started = run(&machine, dir.path(), &["start", "sched", "--instance", &name]);
    assert_eq!(started.code(), Some(0), "{started:?}");
    fs::remove_dir(machine.instance_dir(&name)).unwrap();
    let stop = run(&machine, dir.path(), &["stop", "--instance", &name]);
    assert_eq!(stop.code(), Some(1));
    assert!(
        stop.stderr.contains(&format!("instances/{name}")) && stop.stderr.contains("restore --flight"),
        "{stop:?}"
    );
    tracebridge().args(["restore", "--flight", "--state-dir"]).arg(dir.path()).run().exited(0);
    assert_eq!(before.changed(&machine.root), [""; 0]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "a record is left");
}

#[test]
fn an_instance_that_another_process_has_open_is_left_with_a_note_and_restore_removes_it() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let name = machine.instance_name("open");
    let instance = machine.instance_dir(&name);
    let args = ["sched", "--instance", &name, "-t", "600"];
    let recorder = Recorder::start(record(&machine, dir.path(), &args), dir.path());
    wait_for_tracing(&instance);
    let held = fs::File::open(instance.join("per_cpu/cpu0/trace_pipe_raw")).unwrap();
    recorder.signal(Signal::SIGINT);
    let out = recorder.finish();
    let notes = out.json()["notes"].to_string();
    assert!(notes.contains(&name) && notes.contains("tracebridge restore"), "{out:?}");
    assert!(instance.exists());
    drop(held);
    tracebridge().arg("restore").arg("--state-dir").arg(dir.path()).run().exited(0);
    assert!(!instance.exists());
    assert_eq!(before.changed(&machine.root), [""; 0]);
}

#[test]
#[allow(unsafe_code)]
fn a_buffer_that_another_tracer_has_mapped_is_refused_and_an_instance_can_record() {
    let Some(machine) = machine() else { return };
    let pipe = fs::File::open(machine.root.join("per_cpu/cpu0/trace_pipe_raw")).unwrap();
    let page = 4096.try_into().unwrap();
    // SAFETY: nothing accesses the mapping, and it is unmapped below.
    let map = unsafe { mmap(None, page, ProtFlags::PROT_READ, MapFlags::MAP_SHARED, pipe.as_fd(), 0) };
    let Ok(map) = map else {
        return support::skip("ring-buffer-map", "this kernel's ring buffer cannot be mapped (Linux 6.10)");
    };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let refused = record(&machine, dir.path(), &["sched", "-b", "3000", "-t", "1"]).run();
    let name = machine.instance_name("beside");
    let beside = ["sched", "-b", "3000", "-t", "0.1", "--instance", &name];
    let beside = record(&machine, dir.path(), &beside).run();
    // SAFETY: `map` was mapped above with this length, and nothing uses it.
    unsafe { munmap(map, 4096) }.unwrap();
    assert_eq!(refused.code(), Some(1), "{refused:?}");
    assert!(
        refused.stderr.contains("buffer_size_kb") && refused.stderr.contains("--instance"),
        "{refused:?}"
    );
    assert_eq!(beside.code(), Some(0), "{beside:?}");
    assert_eq!(before.changed(&machine.root), [""; 0]);
}

#[test]
fn a_user_without_permission_gets_an_error_that_names_the_remedy() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let program = for_everybody(dir.path());
    let as_shell = |args: &[&str]| {
        let mut command = Command::new(&program);
        command.args(args).arg("--state-dir").arg(dir.path()).uid(SHELL).gid(SHELL).current_dir(dir.path());
        command.run()
    };
    let root = machine.root.to_str().unwrap();
    for command in ["record", "start", "dump", "stop"] {
        let mut args = vec![command, "--tracefs", root];
        args.extend(matches!(command, "record" | "start").then_some("sched"));
        let out = as_shell(&args);
        let told = &out.stderr;
        assert_eq!(out.code(), Some(1), "{out:?}");
        assert!(
            told.contains(root) && told.contains("refused by owner and mode (root:"),
            "{command}: {told}"
        );
        assert!(told.contains("doctor"), "{command}: {told}");
    }
    // Only root may put back the settings that root's flight recorder has changed: in a directory that
    // everybody may write to, each user has saved settings of its own.
    assert_eq!(run(&machine, dir.path(), &["start", "sched"]).status.code(), Some(0));
    let restore = as_shell(&["restore", "--flight"]);
    let stopped = run(&machine, dir.path(), &["stop"]);
    assert_eq!(restore.code(), Some(0), "{restore:?}");
    let told = &restore.stdout;
    assert!(told.contains("nothing to put back"), "{told}");
    assert_eq!(stopped.code(), Some(0), "{stopped:?}");
}

#[test]
fn a_full_disk_names_the_path_and_the_free_bytes_also_when_compressing() {
    let Some(machine) = machine() else { return };
    let Some(disk) = support::files::SmallDisk::mount("2m") else { return };
    let _busy = Busy::start();
    // The saved settings are on the full disk too, as on a phone.
    let dir = disk.path();
    let before = Knobs::read(&machine.root);
    let capture = disk.path().join("x.dat");
    let out = run(
        &machine,
        dir,
        &[
            "record",
            "sched",
            "irq/*",
            "raw_syscalls/*",
            "-t",
            "60",
            "-b",
            "128",
            "--compress",
            "--json",
            "-o",
            capture.to_str().unwrap(),
        ],
    );
    assert_eq!(out.code(), Some(3), "{out:?}");
    assert_eq!(before.changed(&machine.root), [""; 0]);
    assert_eq!(fs::read_dir(dir).unwrap().count(), 1, "only the capture is left");
    let error = out.json()["error"].to_string();
    assert!(error.contains(capture.to_str().unwrap()) && error.contains("bytes free"), "{error}");
    assert!(events(&out.json()) > 1000);
    let info = tracebridge().args(["info", "--json"]).arg(&capture).run();
    let info: serde_json::Value = info.json();
    assert!(info["events"].as_u64() > Some(1000), "{info}");
}

#[test]
fn a_damaged_recording_is_refused_or_read_in_part() {
    let bytes = {
        let Some(machine) = machine() else { return };
        let dir = support::tempdir();
        record(&machine, dir.path(), &["sched", "-t", "0.5"]).run().exited(0);
        fs::read(dir.path().join("x.dat")).unwrap()
    };
    check_damaged_copies("short.dat", &bytes);
}

/// Programs that are ended when the value is dropped.
struct Load(Vec<Child>);

impl Load {
    fn start(&mut self, program: &str, args: &[&str]) {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.0.push(command.spawn().unwrap());
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn a_recorder_beside_six_busy_loops_loses_nothing() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let mut load = Load(Vec::new());
    (0..6).for_each(|_| load.start("sh", &["-c", "while :; do :; done"]));
    // Each byte is two system calls, and each of them two events.
    (0..2).for_each(|_| load.start("dd", &["if=/dev/zero", "of=/dev/null", "bs=1"]));
    let run = |args: &[&str]| {
        let out = record(&machine, dir.path(), &[&["sched", "raw_syscalls/*", "-b", "20480"], args].concat());
        let out = { out }.run();
        let told = out.json();
        (out.code(), told)
    };
    let (status, told) = run(&["-t", "2"]);
    assert_eq!(told["scheduling"], "real-time 1", "{told}");
    assert_eq!(status, Some(0), "{told}");
    let (_, told) = run(&["-t", "0.1", "--nice", "-5"]);
    assert_eq!(told["scheduling"], "nice -5", "{told}");
    let (_, told) = run(&["-t", "0.1", "--nice", "0"]);
    assert_eq!(told["scheduling"], "nice 0", "{told}");
    drop(load);
    assert_eq!(before.changed(&machine.root), [""; 0]);
}

/// The faults of one run, some ten seconds; docs/faults.md says how to inject more.
const FAULTS: u32 = 9;

/// The script takes the machine's tracefs for some recordings at a time, so this test must not hold it.
#[test]
fn recording_commands_put_the_settings_back_after_faults_at_random_moments() {
    inject_faults("recording", FAULTS);
}

#[test]
fn a_capture_whose_recorder_was_killed_says_that_it_is_not_finished() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let mut recorder =
        Recorder::start(record(&machine, dir.path(), &["sched", "--mode", "ring", "-t", "600"]), dir.path());
    wait_for_tracing(&machine.root);
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    tracebridge().arg("restore").arg("--state-dir").arg(dir.path()).run().exited(0);
    let info = tracebridge().arg("info").arg(dir.path().join("x.dat")).run().exited(3);
    assert!(info.stdout.contains("the recorder was killed"), "{info:?}");
}

#[test]
fn a_stream_whose_reader_has_gone_before_its_head_is_a_failure() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let mut command = tracebridge();
    command.args(["record", "sched", "-t", "0.1", "-o", "-", "--tracefs"]).arg(&machine.root);
    command.arg("--state-dir").arg(dir.path());
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let out = command.stdout(writer).run().exited(1);
    assert!(out.stderr.contains("the reader of the stream has gone away"), "{out:?}");
    assert_eq!(before.changed(&machine.root), [""; 0]);
}

/// With six descriptors the recorder could open, but not look again at its file of saved settings, and tried
/// for ever.
#[test]
fn a_recorder_with_few_file_descriptors_ends_and_changes_no_setting() {
    let Some(machine) = machine() else { return };
    let before = Knobs::read(&machine.root);
    // With fewer descriptors the dynamic linker does not start a program.
    for limit in 6..14 {
        let dir = support::tempdir();
        let output = Command::new("sh")
            .args(["-c", &format!("ulimit -n {limit}; exec \"$@\""), "sh"])
            .arg(support::binary())
            .args(["record", "sched", "-t", "0.1", "--tracefs"])
            .arg(&machine.root)
            .arg("--state-dir")
            .arg(dir.path())
            .arg("-o")
            .arg(dir.path().join("x.dat"))
            .run();
        let said = &output.stderr;
        assert!(matches!(output.code(), Some(0 | 1 | 3)), "{limit}: {}: {said}", output.status);
        assert_eq!(before.changed(&machine.root), Vec::<String>::new(), "{limit}: {said}");
    }
}
