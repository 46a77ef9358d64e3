//! `tracebridge adb` with a real adb server, a real adbd, and a device whose kernel records.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use support::schemas::Documents;
use support::{Child, Command, Ran};

use crate::adb::{self, DIR, Device};
use crate::capture;
use crate::fake_android::FakeAndroid;
use crate::journey::json;
use crate::locked::{LockedPhone, Userdebug};
use crate::settings::{assert_same, reset, settings, unusual};

pub fn command(serial: &str, dir: &Path, words: &[&str]) -> Command {
    let mut command = support::tracebridge();
    command
        .arg("adb")
        .args(words)
        .current_dir(dir)
        .env("ANDROID_SERIAL", serial)
        .env("TRACEBRIDGE_DEVICE_BINARIES", adb::binaries());
    command
}

fn run(device: &Device, dir: &Path, words: &[&str]) -> Ran {
    command(device.serial(), dir, words).run()
}

/// Runs a command that must end with this status.
#[track_caller]
pub fn expect(status: i32, device: &Device, dir: &Path, words: &[&str]) -> Ran {
    let output = run(device, dir, words);
    assert_eq!(output.code(), Some(status), "{words:?}: {}", output.said());
    output
}

/// Starts a recording, and waits until the device records.
fn start(device: &Device, dir: &Path, words: &[&str]) -> Child {
    let words = [&["record", "sched"][..], words].concat();
    let child =
        command(device.serial(), dir, &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    support::until("the device to record", || device.soon(&adb::RECORDING));
    child
}

/// Nothing of a recording is left on the device, and its settings are the kernel's own.
#[track_caller]
fn assert_clean(device: &Device, before: &crate::settings::Settings) {
    assert_eq!(device.run(&format!("ls -d {DIR}/tracebridge.* 2>/dev/null || true")), "");
    assert_same(before, &settings(device), "after the command");
}

#[test]
fn a_recording_becomes_a_file_here_and_leaves_nothing_there() {
    let Some(device) = Device::attached() else { return };
    let dir = adb::scratch();
    let before = unusual(&device);
    let dir = dir.path();
    expect(0, &device, dir, &["push"]);
    for output in ["x.pftrace", "it's $(id) \"ä\n漢\".dat"] {
        let said =
            expect(0, &device, dir, &["record", "sched", "freq", "-t", "500ms", "--json", "-o", output]);
        let said: Value = said.json();
        assert_eq!((&said["output"], &said["verified"]), (&output.into(), &"sha256".into()), "{said}");
        let info = json(&["info", "--json"], &[&dir.join(output)]);
        assert!(info["events"].as_u64() > Some(10), "{info}");
    }
    expect(0, &device, dir, &["record", "sched", "-t", "500ms", "--stream", "-o", "s.dat"]);
    assert!(json(&["info", "--json"], &[&dir.join("s.dat")])["events"].as_u64() > Some(10));
    expect(1, &device, dir, &["record", "nonsense"]);
    let closed = expect(1, &device, dir, &["record", "sched", "--tracefs", "/nowhere", "-o", "none.dat"]);
    assert!(closed.said().contains("/nowhere"), "{}", closed.said());
    assert!(!dir.join("none.dat").exists());
    assert_clean(&device, before);
    reset(&device);
}

#[test]
fn signals_and_a_cut_connection_end_no_recording_badly() {
    let Some(device) = Device::attached() else { return };
    let dir = adb::scratch();
    let before = unusual(&device);
    let dir = dir.path();
    let child = start(&device, dir, &["-o", "one.dat"]);
    device.run_programs();
    child.send(Signal::SIGTERM);
    let output = child.finish();
    assert_eq!(output.code(), Some(0), "{}", output.said());
    assert!(output.said().contains("ended by signal SIGINT"), "{}", output.said());
    assert!(json(&["info", "--json"], &[&dir.join("one.dat")])["events"].as_u64() > Some(1));

    let child = start(&device, dir, &["-o", "two.dat"]);
    child.send(Signal::SIGTERM);
    child.send(Signal::SIGINT);
    let output = child.finish();
    assert_eq!(output.code(), None, "{}", output.said());
    assert!(!dir.join("two.dat").exists());
    assert_same(before, &settings(&device), "after a second signal");

    if device.serial().contains(':') {
        let child = start(&device, dir, &["-t", "2", "-o", "cut.dat"]);
        let said = Command::new("adb").args(["disconnect", device.serial()]).run();
        assert!(said.status.success(), "{}", said.said());
        let output = child.finish();
        assert_eq!(output.code(), Some(0), "{}", output.said());
        assert!(output.said().contains("ended by time"), "{}", output.said());
        assert!(json(&["info", "--json"], &[&dir.join("cut.dat")])["events"].as_u64() > Some(100));
    }
    assert_clean(&device, before);
    reset(&device);
}

#[test]
fn no_space_on_either_side_is_said_and_loses_no_recording() {
    let Some(device) = Device::attached_in_full_run() else { return };
    let dir = adb::scratch();
    let before = unusual(&device);
    let dir = dir.path();
    let remote = format!("{DIR}/tracebridge");
    expect(0, &device, dir, &["push"]);

    // No space for the binary.
    device.run(&format!("mount -t tmpfs -o size=300k tmpfs {DIR}"));
    let output = run(&device, dir, &["push"]);
    let left = device.run(&format!("ls -A {DIR}; umount {DIR}"));
    assert_eq!(output.code(), Some(1), "{}", output.said());
    assert!(output.said().contains("No space left on device"), "{}", output.said());
    assert_eq!(left, "");

    // No space for the capture.
    device.run(&format!("mkdir {remote}.d && mount -t tmpfs -o size=64k tmpfs {remote}.d"));
    let output = run(&device, dir, &["record", "sched", "-t", "1", "-o", "full.dat"]);
    let left = device.run(&format!("ls -A {remote}.d; umount {remote}.d; rmdir {remote}.d"));
    assert!(matches!(output.code(), Some(1 | 3)), "{}", output.said());
    assert!(output.said().contains("No space left on device"), "{}", output.said());
    assert_eq!(left, "");

    // No space here: what was recorded stays there, and goes elsewhere later.
    if let Some(small) = support::files::SmallDisk::mount("16k") {
        let output = run(&device, small.path(), &["record", "sched", "-t", "500ms", "-o", "small.dat"]);
        assert_eq!(output.code(), Some(1), "{}", output.said());
        assert!(output.said().contains("small.dat: No space left"), "{}", output.said());
        assert_eq!(fs::read_dir(small.path()).unwrap().count(), 0);
        expect(0, &device, dir, &["pull", "--resume"]);
        assert!(json(&["info", "--json"], &[&dir.join("small.dat")])["events"].as_u64() > Some(1));
    }
    assert_clean(&device, before);
    reset(&device);
}

#[test]
fn the_flight_recorder_is_dumped_stopped_and_cleaned_away() {
    let Some(device) = Device::attached() else { return };
    let dir = adb::scratch();
    let before = unusual(&device);
    let dir = dir.path();
    let unknown = expect(1, &device, dir, &["start", "sched", "no/such"]);
    assert!(unknown.stderr.contains("does not exist in this kernel (--lenient leaves it out)"), "{unknown}");
    expect(0, &device, dir, &["start", "sched", "no/such", "--lenient"]);
    let twice = expect(1, &device, dir, &["start", "sched"]);
    assert!(twice.stderr.contains("end it with `tracebridge adb stop`"), "{twice}");
    expect(0, &device, dir, &["mark", "instant", "it's $(id)"]);
    let dumped = expect(0, &device, dir, &["dump", "-o", "d.dat"]);
    // A dump takes no time.
    assert!(dumped.stdout.contains(" events on ") && !dumped.stdout.contains(" s on "), "{dumped}");
    expect(0, &device, dir, &["stop", "-o", "s.pftrace"]);
    for file in ["d.dat", "s.pftrace"] {
        assert!(json(&["info", "--json"], &[&dir.join(file)])["events"].as_u64() > Some(10), "{file}");
    }
    expect(0, &device, dir, &["doctor"]);
    expect(0, &device, dir, &["list", "--json"]);
    expect(0, &device, dir, &["start", "sched"]);
    expect(0, &device, dir, &["clean"]);
    assert_eq!(device.run(&format!("ls -d {DIR}/tracebridge {DIR}/tracebridge.d 2>/dev/null || true")), "");
    assert_clean(&device, before);
    reset(&device);
}

#[test]
fn what_adb_prints_as_json_of_a_device_has_the_form_of_the_published_schema() {
    let Some(device) = Device::attached() else { return };
    let Some(mut documents) = Documents::new() else { return };
    let Some(_android) = FakeAndroid::install(&device, &["am", "cmd"], &[]) else { return };
    let app = device.program(device.abi(), "reference_app");
    device.run(&format!("cp {app} {DIR}/reference_app"));
    let dir = adb::scratch();
    let lines = [
        "record sched -t 100ms -o r.dat",
        "record sched -t 100ms --stream -o s.dat",
        "live sched -t 1 --open none",
        "start sched",
        "mark instant x",
        "dump -o d.dat",
        "stop -o s.pftrace",
        "doctor",
        "list",
        "launch com.example.app sched -o one.dat",
        "launch com.example.app sched -n 2 -o two.dat",
    ];
    for line in lines {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words: Vec<&str> = [name, "--json"].into_iter().chain(rest.split_whitespace()).collect();
        documents.add("adb", &mut command(device.serial(), dir.path(), &words));
    }
    assert_eq!(documents.check(), lines.len());
    device.run(&format!("rm {DIR}/reference_app"));
    reset(&device);
}

#[test]
fn a_launch_is_one_file_here() {
    let Some(device) = Device::attached() else { return };
    let Some(_android) = FakeAndroid::install(&device, &["am", "cmd"], &[]) else { return };
    let app = device.program(device.abi(), "reference_app");
    device.run(&format!("cp {app} {DIR}/reference_app"));
    let dir = adb::scratch();
    let before = unusual(&device);
    expect(0, &device, dir.path(), &["launch", "com.example.app", "sched", "freq", "-o", "start.pftrace"]);
    let info = json(&["info", "--json"], &[&dir.path().join("start.pftrace")]);
    assert!(info["events"].as_u64() > Some(100), "{info}");
    assert_clean(&device, before);
    device.run(&format!("rm {DIR}/reference_app"));

    // An `am` that refuses, as Android's own does for a component that it does not know: with status 1.
    let refusal = "Error: Activity class {com.example.app/.Main} does not exist.";
    let am = "/system/bin/am";
    device.run(&format!(
        "printf '%s\\n' '#!/bin/sh' '[ $1 != start ] || {{ echo \"{refusal}\"; exit 1; }}' >{am}; chmod 755 {am}"
    ));
    let failed = expect(1, &device, dir.path(), &["launch", "com.example.app", "sched", "-o", "no.pftrace"]);
    assert!(failed.said().contains("does not exist"), "{}", failed.said());
    // What was recorded of the failed start is whole.
    assert!(json(&["info", "--json"], &[&dir.path().join("no.pftrace")])["events"].as_u64() > Some(0));
    assert_clean(&device, before);
    reset(&device);
}

#[test]
fn a_locked_phone_records_its_share() {
    let Some(phone) = LockedPhone::attached() else { return };
    let dir = adb::scratch();
    let before = phone.knobs();
    let listed = run(&phone.shell, dir.path(), &["devices"]);
    let line = listed.said();
    let line = line.lines().find(|line| line.starts_with(phone.shell.serial())).unwrap();
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!(words[words.len() - 2..], ["no", "part"], "{line}");
    expect(0, &phone.shell, dir.path(), &["record", "sched", "freq", "-t", "500ms", "-o", "x.pftrace"]);
    assert!(json(&["info", "--json"], &[&dir.path().join("x.pftrace")])["events"].as_u64() > Some(10));
    let refused = run(&phone.shell, dir.path(), &["record", "sched", "--root"]);
    assert_eq!(refused.code(), Some(1), "{}", refused.said());
    assert_eq!(phone.knobs(), before);
    assert_eq!(phone.shell.run(&format!("ls -d {DIR}/tracebridge.* 2>/dev/null || true")), "");
}

#[test]
fn su_gives_root_in_each_of_its_dialects() {
    let Some(phone) = LockedPhone::attached() else { return };
    let dir = adb::scratch();
    let before = phone.knobs();
    let userdebug = Userdebug::new(&phone);
    let shell = &phone.shell;
    let root = &phone.root;
    let su = "/system/bin/su";
    let own = "/system/bin/su.own";
    root.run(&format!("mv {su} {own}"));
    // AOSP's refuses `-c`; others refuse a user's number.
    for (dialect, refused) in [("su -c", "x"), ("su root", "-c|0"), ("su 0", "-c")] {
        root.run(&format!(
            "printf '%s\\n' '#!/bin/sh' 'case $1 in {refused}) echo no such user >&2; exit 1;; esac' 'exec {own} \"$@\"' \
             >{su} && chmod 755 {su}; echo secret >{DIR}/root.txt && chmod 600 {DIR}/root.txt"
        ));
        let listed = run(shell, dir.path(), &["devices"]).said();
        let line = listed.lines().find(|line| line.starts_with(shell.serial())).unwrap().to_owned();
        assert!(line.contains(&format!("  {dialect}  ")) && line.ends_with("yes"), "{dialect}: {line}");
    }
    // A file of root alone.
    expect(0, shell, dir.path(), &["pull", "root.txt"]);
    assert_eq!(fs::read_to_string(dir.path().join("root.txt")).unwrap(), "secret\n");
    assert!(!root.shell(&format!("test -e {DIR}/root.txt")).status.success());
    // What root alone may record.
    let record = ["record", "sched", "workqueue/*", "-a", "it's $(id)", "-t", "500ms", "-o", "x.dat"];
    expect(0, shell, dir.path(), &record);
    assert!(json(&["info", "--json"], &[&dir.path().join("x.dat")])["events"].as_u64() > Some(0));
    assert_eq!(shell.run(&format!("ls -d {DIR}/tracebridge.* 2>/dev/null || true")), "");
    assert_eq!(phone.knobs(), before);
    drop(userdebug);
    let listed = run(shell, dir.path(), &["devices"]).said();
    let line = listed.lines().find(|line| line.starts_with(shell.serial())).unwrap();
    assert!(line.contains("  no  ") && line.ends_with("part"), "a user build again: {line}");
}

/// The moments of the cuts, ms after the recording has begun.
const CUTS_MS: [u64; 4] = [0, 150, 700, 1600];

/// A command that writes a file on the device for 2 s at most, and one that would stream for hours.
/// Without the connection adbd ends both as a hangup does, and the second has lost its reader.
const COMMANDS: [&str; 2] = ["-t 2 -o FILE sched", "-t 6000 -o - sched"];

#[test]
fn a_cut_connection_changes_no_setting_and_loses_no_event() {
    let Some(device) = Device::attached() else { return };
    if !device.serial().contains(':') {
        return support::skip("a cut connection", "the device is not connected over the network");
    }
    let binary = device.program(device.abi(), "tracebridge");
    let file = format!("{DIR}/cut.dat");
    let dir = adb::scratch();
    let before = unusual(&device);
    for (command, cut) in COMMANDS.iter().flat_map(|command| CUTS_MS.map(|cut| (command, cut))) {
        let recording = device.record(&binary, &command.replace("FILE", &file));
        sleep(Duration::from_millis(cut));
        let said = Command::new("adb").args(["disconnect", device.serial()]).run();
        assert!(said.status.success(), "adb disconnect: {}", said.said());
        // Without its connection the program of adb ends.
        recording.finish();
        adb::connect(device.serial());
        let what = format!("the end of record {command}, after a cut at {cut} ms");
        device.wait_until(&what, &format!("! kill -0 $(cat {DIR}/running.pid)"));
        assert_same(before, &settings(&device), &format!("{command}: after a cut at {cut} ms"));
        if command.contains("FILE") {
            let dat = device.fetch(&file, dir.path());
            let info = json(&["info", "--json"], &[&dat]);
            assert_eq!(info["events"].as_u64(), Some(capture::read(&dat).len() as u64), "{info}");
            assert!(info["events"].as_u64() > Some(0), "{info}");
        }
    }
    reset(&device);
}

/// A Perfetto trace of this device, recorded by tracebridge itself, where the stand-in finds it.
fn give_trace(device: &Device, dir: &std::path::Path) -> u64 {
    expect(0, device, dir, &["record", "sched", "-t", "300ms", "-o", "own.pftrace"]);
    device.push(&dir.join("own.pftrace"), &format!("{DIR}/properties/trace"));
    device.run("mkdir -p /data/misc/perfetto-traces");
    json(&["info", "--json"], &[&dir.join("own.pftrace")])["events"].as_u64().unwrap()
}

#[test]
fn perfetto_records_what_it_is_told_and_leaves_nothing() {
    let Some(device) = Device::attached() else { return };
    let dir = adb::scratch();
    let dir = dir.path();
    let Some(_android) = FakeAndroid::install(&device, &["perfetto"], &[("tenths", "5")]) else { return };
    let events = give_trace(&device, dir);
    let words = ["record", "--via", "perfetto", "sched", "irq/*", "-a", "com.example", "-t", "5", "-o"];
    for output in ["x.pftrace", "x.dat"] {
        let out = expect(0, &device, dir, &[&words[..], &[output]].concat());
        assert!(out.said().contains("recorded by the device's own perfetto\n"), "{}", out.said());
        let read = json(&["info", "--json"], &[&dir.join(output)]);
        assert_eq!(read["events"].as_u64(), Some(events), "{output}: {read}");
    }
    for part in ["linux.ftrace", "sched/sched_switch", "irq/*", "com.example", "linux.process_stats"] {
        device.run(&format!("grep -q -F '{part}' {DIR}/properties/config"));
    }
    assert_eq!(device.run("ls /data/misc/perfetto-traces"), "");
    // Without -t, up to Ctrl-C.
    device.run(&format!("rm {DIR}/properties/tenths {DIR}/properties/recording"));
    let mut child = command(device.serial(), dir, &["record", "--via=perfetto", "sched", "-o", "c.pftrace"]);
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    device.wait_until("perfetto to record", &format!("test -e {DIR}/properties/recording"));
    child.send(Signal::SIGINT);
    let out = child.finish();
    assert_eq!(out.code(), Some(0), "{}", out.said());
    assert_eq!(json(&["info", "--json"], &[&dir.join("c.pftrace")])["events"].as_u64(), Some(events));
    device.run("rmdir /data/misc/perfetto-traces");
    assert!(fs::read_dir(dir).unwrap().count() == 4, "{dir:?}");
}

#[test]
fn flags_that_perfetto_and_atrace_do_not_know_are_refused() {
    let Some(device) = Device::attached() else { return };
    let dir = adb::scratch();
    for (words, part) in [
        (&["--via", "perfetto", "--compress"][..], "--compress is for tracebridge's own recorder"),
        (&["--via", "perfetto", "sched/sched_switch:prev_pid==1"], "takes no filters"),
        (&["--via", "atrace", "sched/sched_switch"], "atrace records categories alone"),
        (&["--via", "atrace", "--max-size", "3m"], "--max-size"),
    ] {
        let words = [&["record", "sched", "-t", "1"][..], words].concat();
        let out = expect(2, &device, dir.path(), &words);
        assert!(out.said().contains(part), "{}", out.said());
    }
    let out = expect(1, &device, dir.path(), &["record", "sched", "-t", "1", "--via", "perfetto"]);
    assert!(out.said().contains("there is no perfetto on the device"), "{}", out.said());
}
