//! Recordings on this machine: the modes of `record`, the ways in which a recording ends, and the flight
//! recorder.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use support::{Child, Command, until};

use nix::sys::signal::Signal;

use crate::tracefs_fixture::{
    Knobs, Machine, Recorder, machine, read_until_tracing, wait_for_lost_events, wait_for_tracing,
};
use support::files::SmallDisk;
use support::report_page::Page;
use support::{has_program, skip, tracebridge};

/// `record` on this machine's tracefs, with the state directory and the capture `x.dat` in `dir`.
pub fn record(machine: &Machine, dir: &Path, args: &[&str]) -> Command {
    let mut command = tracebridge();
    command.args(["record", "--json", "--tracefs"]).arg(&machine.root).arg("--state-dir").arg(dir);
    command.arg("-o").arg(dir.join("x.dat")).args(args);
    command
}

/// A process that causes scheduler events until this value is dropped.
pub struct Busy(#[expect(dead_code, reason = "it is held until it is dropped")] Child);

impl Busy {
    pub fn start() -> Busy {
        let script = "while :; do /bin/true; done";
        Busy(Command::new("sh").args(["-c", script]).stdout(Stdio::null()).spawn().unwrap())
    }
}

/// Runs a program so many times: each time is several events of the scheduler.
pub fn run_programs(count: u32) {
    let script = "n=0; while [ $n -lt $0 ]; do /bin/true; n=$((n + 1)); done";
    Command::new("sh").args(["-c", script, &count.to_string()]).run().exited(0);
}

/// Waits until a capture that is being written holds pages behind its head.
pub fn wait_for_pages(recorder: &mut Recorder, capture: &Path) {
    /// The disk's blocks that a head with all formats does not need.
    const BLOCKS_OF_512_BYTES: u64 = 4096;
    until("pages in a capture", || {
        assert!(recorder.try_wait().unwrap().is_none(), "the recorder ended by itself");
        fs::metadata(capture).map_or(0, |meta| meta.blocks()) >= BLOCKS_OF_512_BYTES
    });
}

/// The number of events in the summary, all CPUs together.
pub fn events(summary: &serde_json::Value) -> u64 {
    summary["cpus"].as_array().unwrap().iter().map(|c| c["events"].as_u64().unwrap()).sum()
}

/// The number of events that `trace-cmd report` prints of a capture; `None` without trace-cmd.
pub fn reported(capture: &Path) -> Option<u64> {
    if !has_program("trace-cmd") {
        skip("trace-cmd", "not installed");
        return None;
    }
    let out = Command::new("trace-cmd").arg("report").arg(capture).run().exited(0);
    assert_eq!(out.stderr, "", "trace-cmd complains about the file");
    let text = &out.stdout;
    let is_event = |l: &&str| !l.starts_with("cpus=") && !l.contains("EVENTS DROPPED");
    Some(text.lines().filter(is_event).count() as u64)
}

#[test]
fn a_recording_reads_in_trace_cmd_and_leaves_every_knob_as_it_was() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let busy = Busy::start();
    let out = record(&machine, dir.path(), &["sched", "irq/*", "-t", "1"]).run();
    drop(busy);
    assert_eq!(out.code(), Some(0), "{out:?}");
    assert_eq!(before.changed(&machine.root), [""; 0]);
    let left = fs::read_dir(dir.path()).unwrap().flatten().map(|entry| entry.file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["x.dat"]);
    let summary = out.json();
    assert_eq!((summary["clock"].as_str(), summary["ended_by"].as_str()), (Some("boot"), Some("time")));
    assert!(events(&summary) > 1000, "{summary}");
    if let Some(lines) = reported(&dir.path().join("x.dat")) {
        assert_eq!(lines, events(&summary));
    }
}

#[test]
fn a_capture_names_the_device_that_recorded_it() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    // A stand-in for Android's `getprop`: one file per property.
    let script = r#"mkdir bin && printf '#!/bin/sh\ncat "%s/$1" 2>/dev/null; echo\n' "$PWD" >bin/getprop &&
        chmod 755 bin/* && echo 'Pixel 8' >ro.product.model && echo 15 >ro.build.version.release"#;
    assert!(Command::new("sh").args(["-c", script]).current_dir(dir.path()).status().unwrap().success());
    let android = ["--android-root".as_ref(), dir.path().as_os_str()];
    let mut command = record(&machine, dir.path(), &["-t", "0.2", "sched/sched_switch"]);
    assert!(command.args(android).status().unwrap().success());
    let said = tracebridge().args(["info", "--json"]).arg(dir.path().join("x.dat")).run();
    let said: serde_json::Value = said.json();
    assert_eq!(said["device"], "Pixel 8, Android 15", "{said}");
    let page = dir.path().join("x.html");
    let mut convert = tracebridge();
    convert.arg("convert").arg(dir.path().join("x.dat")).arg("-o").arg(&page).stderr(Stdio::null());
    assert!(convert.status().unwrap().success());
    assert_eq!(Page::read(&page).index["device"], "Pixel 8, Android 15");
}

#[test]
fn signals_end_a_recording_in_order() {
    let Some(machine) = machine() else { return };
    let before = Knobs::read(&machine.root);
    let _busy = Busy::start();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let dir = support::tempdir();
        let recorder = Recorder::start(record(&machine, dir.path(), &["sched"]), dir.path());
        wait_for_tracing(&machine.root);
        recorder.signal(signal);
        let out = recorder.finish();
        assert_eq!(out.code(), Some(0), "{out:?}");
        let summary = out.json();
        assert_eq!(summary["ended_by"].as_str(), Some(format!("signal {signal}").as_str()));
        assert_eq!(before.changed(&machine.root), [""; 0], "after {signal}");
        if let Some(lines) = reported(&dir.path().join("x.dat")) {
            assert_eq!(lines, events(&summary));
        }
    }
}

#[test]
fn after_a_sigkill_the_capture_reads_and_restore_puts_every_knob_back() {
    let Some(machine) = machine() else { return };
    let before = Knobs::read(&machine.root);
    let _busy = Busy::start();
    let dir = support::tempdir();
    let mut recorder = Recorder::start(record(&machine, dir.path(), &["sched", "-b", "512"]), dir.path());
    wait_for_tracing(&machine.root);
    wait_for_pages(&mut recorder, &dir.path().join("x.dat"));
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    assert!(!before.changed(&machine.root).is_empty(), "nothing to restore");
    tracebridge().arg("restore").arg("--state-dir").arg(dir.path()).run().exited(0);
    assert_eq!(before.changed(&machine.root), [""; 0]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only the capture is left");
    if let Some(lines) = reported(&dir.path().join("x.dat")) {
        assert!(lines > 100, "{lines} events");
    }
}

#[test]
fn a_second_recorder_is_refused_with_the_pid_of_the_first() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let mut first = Recorder::start(record(&machine, dir.path(), &["sched", "-t", "600"]), dir.path());
    wait_for_tracing(&machine.root);
    let second = record(&machine, dir.path(), &["sched", "-t", "1"]).run();
    first.signal(Signal::SIGINT);
    assert_eq!(first.wait().unwrap().code(), Some(0));
    assert_eq!(second.code(), Some(1));
    let said = &second.stderr;
    assert!(said.contains(&format!("pid {}", first.id())) && said.contains("--force"), "{said}");
}

/// Records with these arguments until the recorder ends or `enough` has returned, compares the knobs, and
/// reads the capture. Returns the summary and the number of events that `trace-cmd report` prints.
fn journey(
    machine: &Machine,
    args: &[&str],
    enough: impl FnOnce(&mut Recorder),
) -> (serde_json::Value, Option<u64>) {
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let mut recorder = Recorder::start(record(machine, dir.path(), args), dir.path());
    enough(&mut recorder);
    if recorder.try_wait().unwrap().is_none() {
        recorder.signal(Signal::SIGINT);
    }
    let out = recorder.finish();
    assert_eq!(out.code(), Some(0), "{out:?}");
    assert_eq!(before.changed(&machine.root), [""; 0]);
    // The recorder ended with status 0, so `info` must find the capture complete too.
    let capture = dir.path().join("x.dat");
    let info = tracebridge().arg("info").arg(&capture).run();
    assert_eq!(info.code(), Some(0), "{}", info.stdout);
    (out.json(), reported(&capture))
}

#[test]
fn a_ring_keeps_the_last_events_and_overwriting_is_no_loss() {
    let Some(machine) = machine() else { return };
    let _busy = Busy::start();
    let (summary, lines) = journey(&machine, &["sched", "irq/*", "--mode", "ring", "-b", "64"], |_| {
        wait_for_tracing(&machine.root);
        wait_for_lost_events(&machine.root);
    });
    assert!(summary["cpus"].as_array().unwrap().iter().any(|c| c["overrun"].as_u64() > Some(0)), "{summary}");
    assert!(summary["bytes"].as_u64().unwrap() < 2_000_000, "{summary}");
    if let Some(lines) = lines {
        assert_eq!(lines, events(&summary));
    }
}

fn wait_for_the_end(recorder: &mut Recorder) {
    recorder.wait().unwrap();
}

#[test]
fn stop_when_full_ends_by_itself_with_the_first_events() {
    let Some(machine) = machine() else { return };
    let _busy = Busy::start();
    let (summary, lines) =
        journey(&machine, &["sched", "irq/*", "--mode", "fill", "-b", "64", "-t", "600"], wait_for_the_end);
    assert_eq!(summary["ended_by"], "full");
    if let Some(lines) = lines {
        assert_eq!(lines, events(&summary));
    }
}

#[test]
fn a_recording_ends_at_its_maximum_size() {
    let Some(machine) = machine() else { return };
    let _busy = Busy::start();
    let (summary, _) = journey(
        &machine,
        &["sched", "irq/*", "-b", "1024", "--max-size", "200k", "-t", "600"],
        wait_for_the_end,
    );
    assert_eq!(summary["ended_by"], "size");
}

#[test]
fn an_instance_is_created_and_removed() {
    let Some(machine) = machine() else { return };
    let name = machine.instance_name("journey");
    let instance = machine.instance_dir(&name);
    let (summary, lines) = journey(&machine, &["sched", "--instance", &name], |_| {
        wait_for_tracing(&instance);
        run_programs(100);
    });
    assert!(events(&summary) > 100, "{summary}");
    assert!(!instance.exists());
    if let Some(lines) = lines {
        assert_eq!(lines, events(&summary));
    }
}

#[test]
fn a_filter_is_accepted_and_the_recorder_can_be_excluded() {
    let Some(machine) = machine() else { return };
    let args = ["sched/sched_switch:prev_comm==\"sh\"", "--exclude-self"];
    let (summary, _) = journey(&machine, &args, |_| {
        wait_for_tracing(&machine.root);
        run_programs(50);
    });
    assert!(events(&summary) > 10, "{summary}");
}

#[test]
fn a_flight_recorder_goes_on_after_its_command_and_ends_with_every_knob_back() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let run = |command: &str, args: &[&str]| {
        let out = tracebridge()
            .arg(command)
            .args([
                "--tracefs".as_ref(),
                machine.root.as_os_str(),
                "--state-dir".as_ref(),
                dir.path().as_os_str(),
            ])
            .args(args)
            .run();
        (out.code(), out)
    };
    assert_eq!(run("dump", &[]).0, Some(1), "nothing to dump yet");
    assert_eq!(run("start", &["sched", "-b", "256"]).0, Some(0));
    run_programs(100);
    let (code, refused) = run("record", &["sched", "-t", "1"]);
    assert_eq!(code, Some(1));
    assert!(refused.stderr.contains("flight recorder"), "{refused:?}");
    let one = dir.path().join("1.dat");
    let two = dir.path().join("2.dat");
    for (command, capture) in [("dump", &one), ("stop", &two)] {
        let (code, out) = run(command, &["--json", "-o", capture.to_str().unwrap()]);
        assert_eq!(code, Some(0), "{out:?}");
        assert!(events(&out.json()) > 100, "{out:?}");
        if let Some(lines) = reported(capture) {
            assert!(lines > 100);
        }
        // Nothing is measured in a buffer that records.
        let text =
            tracebridge().args(["convert", "--format", "systrace", "-o", "-"]).arg(capture).run().stdout;
        let own = text.lines().filter(|line| line.contains("prev_comm=tracebridge")).count();
        assert!(own < 1000, "{command} left {own} switches of its own");
        if command == "dump" {
            run_programs(100);
        }
    }
    assert_eq!(before.changed(&machine.root), [""; 0]);
    assert_eq!(run("stop", &[]).0, Some(1), "stopped twice");
}

#[test]
fn force_takes_over_and_the_first_recorder_ends_in_order() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let first = Recorder::start(record(&machine, dir.path(), &["sched", "-t", "600"]), dir.path());
    wait_for_tracing(&machine.root);
    let second = tracebridge()
        .args(["record", "sched", "--force", "-t", "0.2", "--tracefs"])
        .arg(&machine.root)
        .arg("--state-dir")
        .arg(dir.path())
        .arg("-o")
        .arg(dir.path().join("y.dat"))
        .run()
        .exited(0);
    let said = &second.stderr;
    assert!(said.contains(&format!("from recorder {}", first.id())), "{said}");
    let first = first.finish();
    assert_eq!(first.json()["ended_by"], "signal SIGTERM");
    assert_eq!(before.changed(&machine.root), [""; 0]);
}

#[test]
fn a_stream_on_a_pipe_becomes_the_same_capture() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let busy = Busy::start();
    let out = tracebridge()
        .args(["record", "sched", "--json", "-t", "0.5", "-o", "-", "--tracefs"])
        .args([machine.root.as_os_str(), "--state-dir".as_ref(), dir.path().as_os_str()])
        .output()
        .unwrap();
    drop(busy);
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(before.changed(&machine.root), [""; 0]);
    let summary: serde_json::Value = serde_json::from_slice(&out.stderr).unwrap();
    let stream = dir.path().join("x.stream");
    let capture = dir.path().join("x.dat");
    fs::write(&stream, &out.stdout).unwrap();
    let info = |path: &Path| {
        let out = tracebridge().args(["info", "--json"]).arg(path).run();
        (out.code(), out.json())
    };
    let (code, told) = info(&stream);
    assert_eq!((code, told["events"].as_u64()), (Some(0), Some(events(&summary))), "{told}");
    tracebridge().arg("convert").arg(&stream).arg("-o").arg(&capture).run().exited(0);
    if let Some(lines) = reported(&capture) {
        assert_eq!(lines, events(&summary));
    }
    // A stream that is cut is read up to the cut, and `info` says that the rest is missing.
    fs::write(&stream, &out.stdout[..out.stdout.len() - 50_000]).unwrap();
    assert_eq!(info(&stream).0, Some(3));
}

#[test]
fn a_stream_whose_reader_closes_the_pipe_ends_and_puts_every_knob_back() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let _busy = Busy::start();
    let mut command = tracebridge();
    command
        .args(["record", "sched", "-t", "600", "-b", "64", "-o", "-", "--tracefs"])
        .args([machine.root.as_os_str(), "--state-dir".as_ref(), dir.path().as_os_str()])
        .stderr(Stdio::null());
    let mut recorder = Recorder::start(command, dir.path());
    drop(read_until_tracing(&machine.root, &mut recorder));
    assert_ne!(recorder.wait().unwrap().code(), None);
    assert_eq!(before.changed(&machine.root), [""; 0]);
}

#[test]
fn a_full_file_system_ends_a_recording_and_keeps_the_pages_that_fitted() {
    let Some(machine) = machine() else { return };
    let Some(disk) = SmallDisk::mount("2m") else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let busy = Busy::start();
    let capture = disk.path().join("x.dat");
    let out = tracebridge()
        .args(["record", "sched", "irq/*", "raw_syscalls/*", "-t", "600", "-b", "128", "--json", "--tracefs"])
        .args([machine.root.as_os_str(), "--state-dir".as_ref(), dir.path().as_os_str()])
        .arg("-o")
        .arg(&capture)
        .run();
    drop(busy);
    assert_eq!(out.code(), Some(3), "{out:?}");
    assert_eq!(before.changed(&machine.root), [""; 0]);
    let error = out.json()["error"].as_str().unwrap().to_owned();
    assert!(error.contains(&capture.display().to_string()) && error.contains("bytes free"), "{error}");
    let info = tracebridge().args(["info", "--json"]).arg(&capture).run();
    let info: serde_json::Value = info.json();
    assert!(info["events"].as_u64() > Some(5_000), "{info}");
    if let Some(lines) = reported(&capture) {
        assert_eq!(Some(lines), info["events"].as_u64());
    }
}

#[test]
fn a_missing_or_removed_output_directory_is_an_error() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let there = dir.path().join("there");
    let record = |time: &str| {
        let mut command = tracebridge();
        command.args(["record", "sched", "-t", time, "--tracefs"]);
        command.args([machine.root.as_os_str(), "--state-dir".as_ref(), dir.path().as_os_str()]);
        command.arg("-o").arg(there.join("x.dat")).stderr(Stdio::piped());
        command
    };
    let out = record("1").run().exited(1);
    assert!(out.stderr.contains(there.to_str().unwrap()), "{out:?}");
    fs::create_dir(&there).unwrap();
    let recorder = Recorder::start(record("600"), dir.path());
    wait_for_tracing(&machine.root);
    fs::remove_dir_all(&there).unwrap();
    recorder.signal(Signal::SIGINT);
    let out = recorder.finish();
    assert_eq!(out.code(), Some(3), "{out:?}");
    assert_eq!(before.changed(&machine.root), [""; 0]);
}

/// A number from 0 to below `most`, which differs from run to run.
fn random(most: u64) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish() % most
}

#[test]
fn a_recording_killed_at_any_moment_opens_and_restore_puts_its_settings_back() {
    let Some(machine) = machine() else { return };
    let before = Knobs::read(&machine.root);
    let times: u32 = std::env::var("TRACEBRIDGE_KILLS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(support::rounds(8, 40));
    let _busy = Busy::start();
    let dir = support::tempdir();
    let capture = dir.path().join("x.dat");
    let cpus = fs::read_dir(machine.root.join("per_cpu")).unwrap().count();
    let mut opened = 0;
    let mut packed = 0;
    for n in 0..times {
        let _ = fs::remove_file(&capture);
        // Half of the kills come at the end of the recording, when the recorder completes the file.
        let is_at_the_end = n % 2 == 1;
        let time = if is_at_the_end { "0.1" } else { "600" };
        let args = ["sched", "irq/*", "raw_syscalls/*", "-b", "64", "-t", time];
        let mut command = record(&machine, dir.path(), &args);
        if n % 4 > 1 {
            command.arg("--compress");
        }
        command.stderr(Stdio::null());
        let mut recorder = Recorder::start(command, dir.path());
        if is_at_the_end {
            // Which may be over when this looks.
            until("the capture", || capture.exists() || recorder.try_wait().unwrap().is_some());
        }
        // Whatever the recorder does at that moment, the kill must leave things in order.
        let wait_ms = if is_at_the_end { 60 + random(80) } else { random(600) };
        std::thread::sleep(Duration::from_millis(wait_ms));
        let _ = recorder.kill();
        let ended = recorder.wait().unwrap().code() == Some(0);
        tracebridge().arg("restore").arg("--state-dir").arg(dir.path()).run().exited(0);
        if n % 20 == 19 || n + 1 == times {
            assert_eq!(before.changed(&machine.root), [""; 0], "kill {n}");
        }
        // A recorder that was killed before the capture's head was complete leaves no file of that name.
        if !capture.exists() {
            continue;
        }
        let info = tracebridge().args(["info", "--json"]).arg(&capture).run();
        let told: serde_json::Value = serde_json::from_str(&info.stdout).unwrap_or_default();
        assert!(matches!(info.code(), Some(0 | 3)), "kill {n} after {wait_ms} ms: {info:?}");
        assert!(!ended || told["events"].as_u64() > Some(0), "kill {n}: {told}");
        if told["format"] == "trace.dat v6" {
            assert_eq!(pages_outside(&capture, cpus), 0, "kill {n} after {wait_ms} ms lost pages written");
        } else {
            assert_eq!(
                told["report"]["damage"],
                serde_json::json!([]),
                "kill {n}: it had its name too early"
            );
            packed += 1;
        }
        opened += 1;
    }
    assert!(opened > times / 3, "{opened} of {times} left a capture, {packed} of them compressed");
}

/// The number of pages behind the capture's head that are not empty and that belong to no CPU's data.
fn pages_outside(capture: &Path, cpus: usize) -> usize {
    use std::os::unix::fs::FileExt;
    let file = fs::File::open(capture).unwrap();
    let mut head = vec![0; 2 << 20];
    let len = file.read_at(&mut head, 0).unwrap();
    let head = &head[..len];
    let find = |what: &[u8]| head.windows(what.len()).rposition(|w| w == what);
    if find(b"\"settle\":{").is_some() {
        return 0; // Killed while the holes were removed: the offsets in the table are not valid then.
    }
    let table = find(b"flyrecord\0").expect("a table of CPUs") + 10;
    let number = |at: usize| u64::from_ne_bytes(head[at..at + 8].try_into().unwrap());
    let data: Vec<(u64, u64)> =
        (0..cpus).map(|n| table + 16 * n).map(|at| (number(at), number(at) + number(at + 8))).collect();
    let mut outside = 0;
    let mut at = data.iter().map(|d| d.0).min().unwrap();
    // SEEK_DATA skips the holes of the file, which may be as long as the disk.
    while let Ok(start) = nix::unistd::lseek(&file, at as i64, nix::unistd::Whence::SeekData) {
        let mut page = [0; 4096];
        at = start as u64 / 4096 * 4096;
        while file.read_at(&mut page, at).unwrap() > 0 && page != [0; 4096] {
            outside += usize::from(!data.iter().any(|(from, to)| (*from..*to).contains(&at)));
            at += 4096;
        }
        at += 4096;
    }
    outside
}

/// Has `trace` open while `act` begins: the kernel then refuses another size of the buffer.
fn while_trace_is_read<T>(machine: &Machine, act: impl FnOnce() -> T) -> T {
    let reader = fs::File::open(machine.root.join("trace")).unwrap();
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .spawn_scoped(scope, move || {
                std::thread::sleep(Duration::from_millis(300));
                drop(reader);
            })
            .unwrap();
        act()
    })
}

#[test]
fn who_reads_the_trace_for_a_moment_keeps_no_recorder_from_beginning_and_from_putting_back() {
    let Some(machine) = machine() else { return };
    let before = Knobs::read(&machine.root);
    let dir = support::tempdir();
    let recorder = while_trace_is_read(&machine, || {
        let recorder = Recorder::start(record(&machine, dir.path(), &["sched", "-b", "2048"]), dir.path());
        wait_for_tracing(&machine.root);
        recorder
    });
    run_programs(20);
    let summary = while_trace_is_read(&machine, || {
        recorder.signal(Signal::SIGINT);
        recorder.finish()
    });
    assert!(events(&summary.exited(0).json()) > 0);
    assert_eq!(before.changed(&machine.root), Vec::<String>::new());
}
