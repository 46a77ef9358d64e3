//! `tracebridge adb` against a server that the test imitates: the states that no real part has when a test
//! wants them, and everything that can break in the middle.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::sys::signal::Signal;

use support::adb_server::{AdbServer, ClosedPort, Mischief};
use support::scenario::{Era, Scenario};
use support::{Child, Command, Ran, TempDir, has_program, skip, tracebridge, until, write_program};

const MODERN: &str = "shell_v2,cmd,stat_v2,ls_v2";

/// How long the imitated server or device may be silent: longer than any test takes.
const PATIENCE: &str = "200";

/// The same for tests in which it is silent. A machine that is busy with other work takes less for a step.
const SHORT_PATIENCE: &str = "10";

/// A stand-in for the device's binary: it notes its words when signals and files can end it, records until
/// its time is over, a signal comes, or there is a file `end` beside it, and leaves a real capture. (A
/// shell cannot trap a signal that is ignored in the background; Python can.)
const RECORDER: &str = r#"#!/usr/bin/env python3
import json, os, shutil, signal, sys, time
words = sys.argv[1:]
here = os.path.dirname(os.path.abspath(__file__))
if words[0] == "--version":
    sys.exit(print("tracebridge 0.1.0"))
if words[0] == "restore":
    sys.exit(print("nothing to put back"))
end, ended_by = 60000.0, []
for sent in (signal.SIGINT, signal.SIGTERM):
    signal.signal(sent, lambda *_: ended_by.append("signal SIGINT"))
with open(here + "/words.part", "w") as file:
    json.dump(words, file)
os.rename(here + "/words.part", here + "/words.json")
if "refused" in words:
    sys.exit("tracebridge: unknown tracing category \"refused\"")
if "busy" in words:
    sys.exit("tracebridge: a flight recorder is using this trace buffer: end it with `tracebridge stop`")
if words[0] == "doctor":
    sys.exit(print("can record"))
if words == ["mark", "-"]:
    with open(here + "/marks", "w") as file:
        for line in sys.stdin:
            print(line, end="", file=file)
            if line.startswith("x"):
                print("tracebridge: standard input, line: no marker", file=sys.stderr)
    sys.exit(3)
for word in words:
    if word.startswith("--time="):
        end = int(word[7:-2]) / 1000
start = time.time()
while time.time() < start + end and not ended_by and not os.path.exists(here + "/end"):
    time.sleep(0.02)
output = words[words.index("-o") + 1]
is_stream = output == "-"
with open(here + "/source.dat", "rb") as source, open(1 if is_stream else output, "wb", closefd=not is_stream) as file:
    shutil.copyfileobj(source, file)
counts = ["taken", "unsent", "bytes", "overrun", "dropped", "commit_overrun", "gaps", "missed", "left"]
cpus = [{"cpu": 0, "events": 12, **dict.fromkeys(counts, 0)}]
summary = {"streaming": True, "seconds": 1.0, "clock": "boot", "ended_by": (ended_by or ["time"])[0], "cpus": cpus}
print(json.dumps(summary), file=sys.stderr if is_stream else sys.stdout)
"#;

/// A server with devices, the binary for them, and a directory for outputs.
pub struct Desk {
    pub server: AdbServer,
    dir: TempDir,
}

impl Desk {
    /// `None`, with a message, without Python.
    fn with(devices: &[(&str, &str)], features: &'static str) -> Option<Desk> {
        if !has_program("python3") {
            skip("python", "the imitated device's recorder is a Python script");
            return None;
        }
        let desk = Desk { server: AdbServer::start(devices, features), dir: support::tempdir() };
        let binaries = desk.dir.path().join("binaries").join(abi());
        fs::create_dir_all(&binaries).unwrap();
        fs::write(binaries.join("tracebridge"), RECORDER).unwrap();
        // Whoever asks for a capture alone gets it as it is.
        desk.will_record(&vec![7; 200_000]);
        Some(desk)
    }

    /// The devices record this from now on.
    pub fn will_record(&self, capture: &[u8]) {
        for device in fs::read_dir(self.server.dir("")).unwrap() {
            fs::write(device.unwrap().path().join("source.dat"), capture).unwrap();
        }
    }

    pub fn one() -> Option<Desk> {
        Desk::with(&[("S1", "device")], MODERN)
    }

    /// The device S1 has a program of its own.
    pub fn has_program(&self, name: &str, script: &str) {
        let path = self.server.dir("S1").join("bin").join(name);
        write_program(&path, format!("#!/bin/sh\n{script}\n"));
    }

    pub fn adb<S: AsRef<std::ffi::OsStr>>(&self, words: &[S]) -> Command {
        let mut command = tracebridge();
        command
            .arg("adb")
            .args(words)
            .current_dir(self.dir.path())
            .env("ANDROID_ADB_SERVER_PORT", self.server.port().to_string())
            .env("TRACEBRIDGE_DEVICE_BINARIES", self.dir.path().join("binaries"))
            .env("TRACEBRIDGE_ADB_TIMEOUT", PATIENCE);
        command
    }

    pub fn run(&self, line: &str) -> Ran {
        self.adb(&line.split(' ').collect::<Vec<_>>()).run()
    }

    /// Runs a command in which the server or the device will be silent.
    fn run_into_silence(&self, line: &str) -> Ran {
        let mut command = self.adb(&line.split(' ').collect::<Vec<_>>());
        command.env("TRACEBRIDGE_ADB_TIMEOUT", SHORT_PATIENCE).run()
    }

    pub fn start(&self, line: &str) -> Child {
        let words: Vec<_> = line.split(' ').collect();
        self.adb(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The names of everything in the output's directory but the binaries.
    pub fn outputs(&self) -> Vec<String> {
        let mut names = names(self.dir.path());
        names.retain(|name| name != "binaries");
        names
    }

    /// The names of what is on the device beside what the test has put there.
    pub fn left_on(&self, serial: &str) -> Vec<String> {
        let mut names = names(&self.server.dir(serial));
        names.retain(|name| !["source.dat", "words.json", "tracebridge"].contains(&name.as_str()));
        names
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub fn abi() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "arm64-v8a",
        arch => arch,
    }
}

/// Fails unless the command ended with this status and said this on one line of standard error.
#[track_caller]
fn assert_said(ran: Ran, status: i32, words: &str) {
    let err = ran.exited(status).stderr;
    assert!(err.contains(words) && err.lines().count() == 1, "not \"{words}\": {err}");
}

#[test]
fn without_a_server_adb_is_started_or_missed() {
    let Some(desk) = Desk::one() else { return };
    let closed = ClosedPort::take();
    let port = closed.port();
    let start = |path: &Path| {
        let mut command = desk.adb(&["devices"]);
        command.env("ANDROID_ADB_SERVER_PORT", port).env("PATH", path);
        command.env_remove("ANDROID_HOME").env_remove("ANDROID_SDK_ROOT");
        command
    };
    let empty = desk.path("empty");
    fs::create_dir(&empty).unwrap();
    assert_said(start(&empty).run(), 1, "no adb: install Android's platform-tools");

    // An SDK whose adb notes how it is called, and starts nothing.
    let calls = desk.path("calls");
    let script = format!("#!/bin/sh\necho \"$@\" >>'{}'\n", calls.display());
    write_program(&desk.path("sdk/platform-tools/adb"), script);
    let ran = start(&empty).env("ANDROID_HOME", desk.path("sdk")).run();
    assert_said(ran, 1, "no adb server answers at 127.0.0.1:");
    assert_eq!(fs::read_to_string(&calls).unwrap(), format!("version\n-P {port} start-server\n"));

    let ran = desk.adb(&["devices"]).env("ADB_SERVER_SOCKET", "tcp:x:y").run();
    assert_said(ran, 1, "ADB_SERVER_SOCKET=tcp:x:y: it must be");
    let elsewhere = format!("0.0.0.0:{port}");
    let ran = desk.adb(&["devices"]).env("ADB_SERVER_SOCKET", format!("tcp:{elsewhere}")).run();
    assert_said(ran, 1, &format!("no adb server answers at {elsewhere}"));
}

#[test]
fn what_is_no_adb_server_is_found_out() {
    let Some(desk) = Desk::one() else { return };
    for (answer, words) in [
        (&b"HTTP/1.1 400 Bad Request\r\n"[..], "the answer begins with HTTP: not adb's protocol"),
        (b"OKAYzzzz", "the length zzzz is no number"),
        (b"OKAYffff", "the connection is lost"),
        (b"OKAY0004abXY", "the version is \"abXY\""),
        (b"OK", "the connection is lost"),
        (b"", "the connection is lost"),
        (b"FAIL0003no\x1b", "adb says: no\\u001b"),
    ] {
        desk.server.will(Mischief::Says(answer));
        assert_said(desk.run("record sched -t 1 -o x.dat"), 1, words);
    }
    assert_eq!(desk.outputs(), [""; 0]);
}

#[test]
fn a_device_that_cannot_be_used_says_why_and_what_helps() {
    let none = Desk::with(&[], MODERN);
    let Some(none) = none else { return };
    assert_said(none.run("record sched"), 1, "no device: attach one");
    for (state, words) in [
        ("unauthorized", "accept the dialogue"),
        ("offline", "attach it anew"),
        ("recovery", "is in the state \"recovery\""),
        ("no permissions (udev); see [http://x]", "no permission to open the USB device"),
    ] {
        let desk = Desk::with(&[("S1", state)], MODERN).unwrap();
        assert_said(desk.run("record sched"), 1, words);
        let listed = desk.run("devices").exited(0);
        assert!(listed.stdout.contains(words), "{listed}");
    }
    let two = Desk::with(&[("S1", "device"), ("S2", "device")], MODERN).unwrap();
    assert_said(two.run("record sched"), 1, "several devices: choose with --serial S[,S…] or --all: S1, S2");
    assert_said(two.run("record sched --serial S3"), 1, "no device S3 (attached: S1, S2)");
    let output = two.adb(&["record", "sched"]).env("ANDROID_SERIAL", "S4").run();
    assert_said(output, 1, "no device S4");
    // Of a usable device and another one the usable is meant.
    let mixed = Desk::with(&[("S1", "offline"), ("S2", "device")], MODERN).unwrap();
    mixed.run("record sched -t 10ms -o x.dat").exited(0);
}

#[test]
fn a_device_that_no_binary_runs_on_is_told() {
    let Some(desk) = Desk::one() else { return };
    desk.has_program("uname", "echo mips64");
    desk.has_program("getprop", "true");
    assert_said(desk.run("record sched"), 1, "S1: unknown machine \"mips64\": there are binaries for arm64");
    desk.has_program("getprop", "[ $1 != ro.product.cpu.abi ] || echo riscv64");
    assert_said(desk.run("record sched"), 1, "no tracebridge binary for riscv64: build it with");
    let foreign = desk.path("binaries/riscv64");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("tracebridge"), b"\x7fELF of another machine").unwrap();
    let said = desk.run("record sched");
    assert_said(said, 1, "the riscv64 binary does not run on this device (mips64)");
    assert_eq!((desk.outputs(), desk.left_on("S1")), (vec![], vec!["bin".to_owned()]));
}

#[test]
fn no_binary_of_the_current_directory_gets_onto_a_device() {
    let Some(desk) = Desk::one() else { return };
    // Where somebody else's archive was unpacked, and in the directories around it.
    let planted = "#!/bin/sh\necho planted\n";
    for place in ["out/android", "inside/out/android"] {
        let dir = desk.path(place).join(abi());
        fs::create_dir_all(&dir).unwrap();
        write_program(&dir.join("tracebridge"), planted);
    }
    for place in ["", "inside"] {
        let mut command = desk.adb(&["push"]);
        let ran = command.current_dir(desk.path(place)).env_remove("TRACEBRIDGE_DEVICE_BINARIES").run();
        let on_device = fs::read_to_string(desk.server.dir("S1").join("tracebridge")).unwrap_or_default();
        assert!(on_device != planted && !ran.said().contains("planted"), "{place}: {ran}");
    }
    // Named, the same file is pushed: it would have run there.
    let named = desk.adb(&["push"]).env("TRACEBRIDGE_DEVICE_BINARIES", desk.path("out/android")).run();
    named.exited(0);
    assert_eq!(fs::read_to_string(desk.server.dir("S1").join("tracebridge")).unwrap(), planted);
}

#[test]
fn a_recording_becomes_a_file_and_leaves_nothing_on_the_device() {
    for features in [MODERN, "cmd"] {
        let Some(desk) = Desk::with(&[("S1", "device")], features) else { return };
        desk.run("record sched -t 50ms -o x.dat").exited(0);
        let json = desk.run("record sched -t 50ms --json -o y.dat").exited(0).json();
        assert_eq!((&json["serial"], &json["output"]), (&"S1".into(), &"y.dat".into()), "{json}");
        assert_eq!((&json["verified"], &json["ended_by"]), (&"sha256".into(), &"time".into()), "{json}");
        assert_eq!(
            fs::read(desk.path("x.dat")).unwrap(),
            fs::read(desk.server.dir("S1").join("source.dat")).unwrap()
        );
        assert_eq!(desk.outputs(), ["x.dat", "y.dat"]);
        assert_eq!(desk.left_on("S1"), [""; 0], "{features}");
        let pushes = desk.server.commands().iter().filter(|command| command.contains("--version")).count();
        assert_eq!(pushes, 1, "the binary is pushed once");
    }
    let Some(desk) = Desk::one() else { return };
    desk.will_record(&Scenario::new(14, Era::ArtMono).make().dat);
    desk.run("record sched -t 50ms -o x.pftrace").exited(0);
    assert_eq!((desk.outputs(), desk.left_on("S1")), (vec!["x.pftrace".to_owned()], vec![]));
}

#[test]
fn every_word_arrives_on_the_device_as_it_is() {
    let Some(desk) = Desk::one() else { return };
    let names = [
        "it's",
        "a b",
        "$(touch x)",
        "`id`",
        "a\nb",
        "ärger 漢字",
        "sched/x:a == \"b\" && c",
        "*",
        "\\n",
        "--json",
    ];
    for output in ["it's $(id).dat", "a\nb ä.dat"] {
        let words = [&["record", "-t", "1ms", "-a", "com.'a$(x)", "-o", output, "--"][..], &names].concat();
        desk.adb(&words).run().exited(0);
        assert!(desk.path(output).is_file());
    }
    let words = fs::read_to_string(desk.server.dir("S1").join("words.json")).unwrap();
    let words: Vec<String> = serde_json::from_str(&words).unwrap();
    let at = words.iter().position(|word| word == "--").unwrap();
    assert_eq!(words[at + 1..], names, "{words:?}");
    assert!(words.contains(&"--app=com.'a$(x)".to_owned()), "{words:?}");
}

#[test]
fn what_breaks_in_the_middle_leaves_no_half_file_and_no_orphan() {
    let Some(desk) = Desk::one() else { return };
    let record = "record sched -t 50ms -o x.dat";
    for (mischief, words) in [
        (Mischief::CutPush, "the connection is lost"),
        (
            Mischief::FailPush("couldn't create file: No space left on device"),
            "adb says: couldn't create file: No space",
        ),
    ] {
        desk.server.will(mischief);
        assert_said(desk.run(record), 1, words);
        assert_eq!((desk.outputs(), desk.left_on("S1")), (vec![], vec![]));
    }
    for (mischief, words) in [
        (Mischief::CutPull, "the connection is lost"),
        (Mischief::FlipPull, "another SHA-256 than the device's file; the device's copy is kept"),
        (
            Mischief::PullSays(b"DATA\xff\xff\xff\xff"),
            "DATA of 4294967295 bytes in the middle of a file: not adb's protocol",
        ),
        (Mischief::PullSays(b"FAIL\xff\xff\xff\xff"), "the connection is lost"),
        (Mischief::PullSays(b"FAIL\x0b\0\0\0read failed"), "adb says: read failed"),
        (Mischief::PullSays(b"DONE\0\0\0\0"), "1000 bytes arrived, and the file had"),
        (Mischief::PullSays(b"\x07garbage"), "not adb's protocol"),
    ] {
        desk.server.will(mischief);
        assert_said(desk.run(record), 1, words);
        check_that_it_can_be_fetched(&desk);
    }
    // What was recorded is no capture: it is kept here, under a name that no file has.
    fs::write(desk.path("x.dat"), "mine").unwrap();
    let output = desk.run("record sched -t 50ms -o x.pftrace").exited(1);
    assert!(output.stderr.contains("kept what was recorded: ./x-1.dat"), "{output}");
    assert_eq!(
        (desk.outputs(), desk.left_on("S1")),
        (vec!["x-1.dat".to_owned(), "x.dat".to_owned()], vec!["tracebridge.d".to_owned()])
    );
    let refused = desk.run("clean");
    assert_said(refused, 1, "(x.pftrace). Fetch with `tracebridge adb pull --resume`, or remove with");
    assert_eq!(desk.left_on("S1"), ["tracebridge.d"]);
    let cleaned = desk.run("clean --force").exited(0);
    assert!(cleaned.stdout.contains("1 recording removed\nremoved: "), "{cleaned}");
    assert_eq!(desk.left_on("S1"), [""; 0]);
    fs::remove_file(desk.path("x-1.dat")).unwrap();
    fs::remove_file(desk.path("x.dat")).unwrap();
    assert_said(desk.run("record refused"), 1, "S1: unknown tracing category");
    assert_eq!((desk.outputs(), desk.left_on("S1")), (vec![], vec![]));
}

/// Checks that a recording `x.dat` is whole on the device and nothing is here, and fetches it.
fn check_that_it_can_be_fetched(desk: &Desk) {
    assert_eq!((desk.outputs(), desk.left_on("S1")), (vec![], vec!["tracebridge.d".to_owned()]));
    let listed = desk.run("pull");
    assert!(listed.stdout.contains("ended  x.dat"), "{listed}");
    desk.run("pull --resume").exited(0);
    assert_eq!((desk.outputs(), desk.left_on("S1")), (vec!["x.dat".to_owned()], vec![]));
    fs::remove_file(desk.path("x.dat")).unwrap();
}

/// The files that a recording leaves on a device whose connection is lost: `output` is the name that it is to
/// have here.
fn leave_recording(desk: &Desk, id: u32, output: &str, status: Option<&str>, capture: &[u8]) {
    let dir = desk.server.dir("S1").join(format!("tracebridge.d/{id:016x}"));
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("output"), output).unwrap();
    fs::write(dir.join("capture.dat"), capture).unwrap();
    // No process has this id.
    fs::write(dir.join("pid"), "4194305").unwrap();
    if let Some(status) = status {
        fs::write(dir.join("status"), status).unwrap();
    }
}

/// A recording that every output can be made of.
pub fn golden_capture() -> Vec<u8> {
    fs::read(format!("{}/tests/golden/dat/v6.dat", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn recordings_of_one_name_and_files_of_that_name_are_all_kept() {
    let Some(desk) = Desk::one() else { return };
    let capture = golden_capture();
    leave_recording(&desk, 1, "trace.dat", Some("0"), &capture);
    leave_recording(&desk, 2, "trace.dat", Some("3"), b"another recording");
    leave_recording(&desk, 3, "package.json", Some("0"), &capture);
    fs::write(desk.path("trace.dat"), "mine").unwrap();
    fs::write(desk.path("package.json"), "mine").unwrap();
    let output = desk.run("pull --resume").exited(3);
    assert!(output.stdout.contains("./trace.dat is another file: it was left alone"), "{output}");
    let outputs = ["package-2.json", "package.json", "trace-2.dat", "trace-3.dat", "trace.dat"];
    assert_eq!((desk.outputs(), desk.left_on("S1")), (outputs.map(str::to_owned).to_vec(), vec![]));
    for mine in ["trace.dat", "package.json"] {
        assert_eq!(fs::read_to_string(desk.path(mine)).unwrap(), "mine");
    }
    assert!(fs::read(desk.path("trace-2.dat")).unwrap() == capture);
    assert_eq!(fs::read_to_string(desk.path("trace-3.dat")).unwrap(), "another recording");
    // Only where it is asked for, a file is replaced.
    leave_recording(&desk, 4, "trace.dat", Some("0"), &capture);
    desk.run("pull --resume --force").exited(0);
    assert!(fs::read(desk.path("trace.dat")).unwrap() == capture);
}

#[test]
fn a_recording_that_cannot_be_fetched_keeps_no_other_from_being_fetched() {
    let Some(desk) = Desk::one() else { return };
    let capture = golden_capture();
    leave_recording(&desk, 1, "broken.pftrace", Some("0"), b"no capture");
    leave_recording(&desk, 2, "killed.dat", None, &capture);
    leave_recording(&desk, 3, "good.dat", Some("0"), &capture);
    let output = desk.run("pull --resume").exited(1);
    assert!(output.stdout.contains("0000000000000001 (broken.pftrace) is still on the device: "), "{output}");
    assert!(output.stdout.contains("the recorder was killed: this is what it had written"), "{output}");
    // What cannot be converted is kept here as it is, too.
    assert_eq!(desk.outputs(), ["broken.dat", "good.dat", "killed.dat"]);
    let left = desk.run("pull");
    assert!(left.stdout.contains("0000000000000001  ended  broken.pftrace\n"), "{left}");
    assert!(!left.stdout.contains("good.dat") && !left.stdout.contains("killed.dat"), "{left}");
}

#[test]
fn a_stream_that_ends_before_its_first_event_leaves_no_file_and_is_told() {
    let Some(desk) = Desk::one() else { return };
    let head = [&b"TBSTRM1\nH"[..], &[0; 4], &400_000u32.to_le_bytes(), &[0; 100_000]].concat();
    for len in [0, 5, 8, 12, 17, head.len()] {
        desk.will_record(&head[..len]);
        let ran = desk.run("record sched -t 50ms --stream -o x.dat");
        assert_said(
            ran,
            1,
            "S1: the stream ended: no event had come, and a stream leaves nothing on the device",
        );
        assert_eq!((desk.outputs(), desk.left_on("S1")), (vec![], vec![]), "{len} bytes");
    }
    // What is no stream at its beginning, or damaged behind it, is another error.
    desk.will_record(b"TBSTRM1\nno frame begins here");
    let ran = desk.run("record sched -t 50ms --stream -o x.dat").exited(1);
    assert!(ran.stderr.contains("kept what was recorded: ./x.stream"), "{ran}");
}

#[test]
fn a_device_that_sends_without_end_is_given_up() {
    let Some(desk) = Desk::one() else { return };
    let record = "record sched -t 50ms -o x.dat";
    desk.server.will(Mischief::EndlessPull);
    assert_said(desk.run(record), 1, "the device sends more than the 200000 bytes that the file had");
    check_that_it_can_be_fetched(&desk);
    for (length, words) in [(65536, "the command prints more than 16 MiB"), (0, "packets without a byte")] {
        desk.server.will(Mischief::EndlessShell("uname", length));
        let devices = desk.run("devices").exited(0);
        assert!(devices.stdout.contains(words), "{devices}");
        desk.server.will(Mischief::EndlessShell("trap '' HUP", length));
        assert_said(desk.run(record), 1, words);
        assert_eq!(desk.outputs(), [""; 0]);
    }
}

#[test]
fn without_a_browser_a_recording_is_complete_and_its_page_is_named() {
    let Some(desk) = Desk::one() else { return };
    desk.will_record(&golden_capture());
    let words: Vec<_> = "record sched -t 50ms -o x.html --open".split(' ').collect();
    let ran = desk.adb(&words).env("BROWSER", "false").env("DISPLAY", "").run().exited(0);
    let page = desk.path("x.html");
    assert!(page.is_file());
    let cure = format!("no browser could be started: open {} in one", page.canonicalize().unwrap().display());
    assert!(ran.stderr.contains(&cure), "{ran}");
    assert!(!ran.stderr.contains("xdg-open"), "{ran}");
}

#[test]
fn a_device_that_keeps_no_connection_is_given_up_after_some() {
    let Some(desk) = Desk::one() else { return };
    leave_recording(&desk, 1, "x.dat", Some("0"), &golden_capture());
    let wait = "while [ ! -e status ]";
    desk.server.will(Mischief::CutEachShell(wait));
    let output = desk.run("pull --resume").exited(1);
    assert!(output.stdout.contains("closed the connection 8 times as soon as it was there"), "{output}");
    let commands = desk.server.commands();
    assert_eq!(commands.iter().filter(|command| command.contains(wait)).count(), 9, "{commands:?}");
}

#[test]
fn a_text_of_a_device_is_cut_where_it_is_too_long() {
    let Some(desk) = Desk::one() else { return };
    desk.has_program("getprop", "head -c 100000 /dev/zero | tr '\\0' x");
    let devices = desk.run("devices").exited(0);
    let model = "x".repeat(200);
    assert!(devices.stdout.contains(&format!("S1      {model}  {model}  ")), "{devices}");
    assert!(devices.stdout.len() < 3000, "{devices}");
}

#[test]
fn devices_whose_serials_no_file_name_can_tell_apart_have_an_output_each() {
    let Some(desk) = Desk::with(&[("a:b", "device"), ("a@b", "device")], MODERN) else { return };
    desk.run("record sched -t 50ms --all -o x.dat").exited(0);
    assert_eq!(desk.outputs(), ["x-a_b-2.dat", "x-a_b.dat"]);
}

#[test]
fn a_device_that_falls_silent_in_the_middle_of_a_file_is_given_up_and_keeps_the_file() {
    let Some(desk) = Desk::one() else { return };
    desk.server.will(Mischief::StallPull);
    let words = format!("nothing happened for {SHORT_PATIENCE} s");
    assert_said(desk.run_into_silence("record sched -t 50ms -o x.dat"), 1, &words);
    check_that_it_can_be_fetched(&desk);
}

#[test]
fn a_recording_goes_on_while_its_connection_is_lost() {
    let Some(desk) = Desk::one() else { return };
    desk.server.will(Mischief::CutShell("trap '' HUP", "words.json"));
    let output = desk.run("record sched -t 1500ms -o x.dat").exited(0);
    assert!(output.stdout.contains("ended by time"), "{output}");
    assert_eq!((desk.outputs(), desk.left_on("S1")), (vec!["x.dat".to_owned()], vec![]));
}

#[test]
fn a_recording_whose_device_stays_away_is_fetched_later() {
    let Some(desk) = Desk::one() else { return };
    desk.server.will(Mischief::LoseDevice("trap '' HUP", "words.json"));
    let output = desk.run_into_silence("record sched -o x.dat");
    let words = format!(
        "S1: the connection is lost, and the device did not come back within {SHORT_PATIENCE} s: the recording \
         goes on on the device. Fetch it with: tracebridge adb pull --resume --serial S1"
    );
    assert_said(output, 1, &words);
    desk.server.set_state("S1", "device");
    let listed = desk.run("pull");
    assert!(listed.stdout.contains("running  x.dat"), "{listed}");
    // The recorder's time is over.
    let end = desk.server.dir("S1").join("end");
    fs::write(&end, "").unwrap();
    desk.run("pull --resume").exited(0);
    fs::remove_file(end).unwrap();
    assert_eq!((desk.outputs(), desk.left_on("S1")), (vec!["x.dat".to_owned()], vec![]));
}

#[test]
fn a_file_is_removed_on_the_device_only_after_it_is_here() {
    let Some(desk) = Desk::one() else { return };
    let name = "it's $(id) ä.dat";
    let there = desk.server.dir("S1").join(name);
    fs::copy(desk.server.dir("S1").join("source.dat"), &there).unwrap();
    desk.server.will(Mischief::CutPull);
    desk.adb(&["pull", name]).run().exited(1);
    assert!(there.is_file());
    desk.adb(&["pull", "--keep", "--to", "out", name]).run().exited(0);
    assert!(there.is_file() && desk.path("out").join(name).is_file());
    desk.adb(&["pull", name]).run().exited(0);
    assert!(!there.exists() && desk.path(name).is_file());
    let output = desk.adb(&["pull", name]).run();
    assert_said(output, 1, "No such file");
}

#[test]
fn several_devices_have_an_output_each_and_one_failure_ends_no_other() {
    let Some(desk) = Desk::with(&[("S1", "device"), ("S2", "offline"), ("S3", "device")], MODERN) else {
        return;
    };
    let output = desk.run("record sched -t 50ms --all -o x.dat");
    assert_said(output, 1, "S2: offline");
    assert_eq!(desk.outputs(), ["x-S1.dat", "x-S3.dat"]);
    let output = desk.run("record sched -t 50ms --serial S1,S3 -o {serial}.dat --json").exited(0);
    assert_eq!(output.stdout.lines().count(), 2, "{output}");
    assert_eq!(desk.outputs(), ["S1.dat", "S3.dat", "x-S1.dat", "x-S3.dat"]);
}

#[test]
fn the_table_of_devices_has_what_each_is() {
    let Some(desk) = Desk::with(&[("S1", "device"), ("S2", "unauthorized")], MODERN) else { return };
    desk.has_program(
        "getprop",
        "case $1 in ro.product.model) echo Pixel \\\\033[2J 3;; ro.build.version.release) echo 15;; \
         ro.product.cpu.abi) echo arm64-v8a;; ro.build.type) echo user;; esac",
    );
    // A phone with Magisk: adb's user is not root, and a command becomes so with `su -c`.
    desk.has_program("id", "echo 'uid=2000(shell) gid=2000(shell)'");
    desk.has_program("su", "[ \"$1\" = -c ] && echo 'uid=0(root)'");
    let text = desk.run("devices").exited(0).stdout;
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>(),
        ["SERIAL", "MODEL", "ANDROID", "ABI", "ROOT", "TRACING"]
    );
    assert!(lines[1].starts_with("S1") && lines[1].contains("15       arm64-v8a  su -c  no"), "{text}");
    assert!(lines[1].contains("Pixel [2J 3"), "{text:?}");
    assert!(lines[2].starts_with("S2      unauthorized: unlock the device"), "{text}");
    let listed = desk.run("devices --json");
    let first: serde_json::Value = serde_json::from_str(listed.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["abi"], &first["su"], &first["release"]),
        (&"arm64-v8a".into(), &"-c".into(), &"15".into())
    );
}

#[test]
fn no_device_is_an_empty_list_and_a_failure_of_what_needs_one() {
    let Some(desk) = Desk::with(&[], MODERN) else { return };
    assert!(desk.run("devices").exited(0).stdout.contains("no device is attached"));
    let listed = desk.run("devices --json").exited(0);
    assert_eq!((listed.stdout.as_str(), listed.stderr.as_str()), ("", ""));
    for line in ["doctor", "push", "record sched -t 10ms -o x.dat", "pull"] {
        let said = desk.run(line).exited(1).said();
        assert!(said.contains("no device"), "{line}: {said}");
    }
    assert_eq!(desk.outputs(), Vec::<String>::new());
}

#[test]
fn what_was_pushed_is_removed_and_that_is_said() {
    let Some(desk) = Desk::one() else { return };
    desk.run("push").exited(0);
    let cleaned = desk.run("clean").exited(0);
    let binary = desk.server.dir("S1").join("tracebridge");
    assert_eq!(cleaned.stdout, format!("removed: {}\n", binary.display()), "{cleaned}");
    assert!(!binary.exists());
    assert_eq!(desk.run("clean").exited(0).stdout, "nothing to remove\n");
}

#[test]
fn one_device_is_taken_once_and_a_recorder_that_runs_is_ended_by_the_hosts_command() {
    let Some(desk) = Desk::one() else { return };
    let twice = desk.run("record sched -t 50ms -s S1,S1 -o x.dat").exited(0);
    assert_eq!(
        (twice.stdout.lines().count() > 0, desk.outputs()),
        (true, vec!["x.dat".to_owned()]),
        "{twice}"
    );
    assert_said(desk.run("start busy"), 1, "end it with `tracebridge adb stop`");
}

#[test]
fn a_running_app_is_profiled_and_its_method_trace_fetched() {
    let Some(desk) = Desk::one() else { return };
    let calls = desk.path("calls");
    // As Android's own, it exits with 0 whatever happens.
    desk.has_program(
        "am",
        &format!(
            "echo \"$@\" >>'{0}'; case $2 in start) for file; do :; done; echo $file >'{0}.file';; stop) \
             [ $3 = dead.app ] && echo 'Error: no such process' || echo method trace >\"$(cat '{0}.file')\";; esac",
            calls.display()
        ),
    );
    desk.run("profile start com.app:remote --sampling 500 --streaming").exited(0);
    desk.run("profile stop com.app:remote -o m.trace").exited(0);
    let file = desk.server.dir("S1").join("tracebridge-com.app-remote.trace");
    assert_eq!(
        fs::read_to_string(&calls).unwrap(),
        format!(
            "profile start --sampling 500 --streaming com.app:remote {}\nprofile stop com.app:remote\n",
            file.display()
        )
    );
    assert_eq!(fs::read_to_string(desk.path("m.trace")).unwrap(), "method trace\n");
    assert!(!file.exists());
    assert_said(desk.run("profile stop dead.app"), 1, "am: Error: no such process");
}

#[test]
fn a_mistake_is_told_before_anything_is_recorded() {
    let Some(desk) = Desk::one() else { return };
    for (line, status, words) in [
        ("record sched -o x.xyz", 2, "its ending names no format: name it by one of: .pftrace"),
        ("dump -o binaries", 2, "binaries: is a directory: name a file in it"),
        ("record sched -o missing/x.dat", 1, "missing"),
        ("record sched -o -", 2, "name a file"),
        ("record sched -t 0", 2, "a recording takes longer than that"),
        ("launch com.app -o x", 2, "its ending names no format"),
        ("profile start -x", 2, "-x"),
        ("profile start a;b", 2, "is no process of an app"),
        ("pull x/..", 2, "names no file"),
        ("record sched --serial a --all", 2, "cannot be used with"),
    ] {
        let output = desk.run(line).exited(status);
        assert!(output.stderr.contains(words), "{line}: {output}");
    }
    assert_eq!(desk.left_on("S1"), [""; 0]);
}

#[test]
fn the_first_signal_ends_the_recording_and_the_second_everything() {
    for signals in [1, 2] {
        let Some(desk) = Desk::one() else { return };
        let child = desk.start("record sched -o x.dat");
        let words = desk.server.dir("S1").join("words.json");
        until("the recorder to begin", || words.exists());
        // The command stands still meanwhile, so that both come before it has ended the recording. Two of one
        // kind may become one.
        child.stop();
        for signal in [Signal::SIGTERM, Signal::SIGINT].into_iter().take(signals) {
            child.send(signal);
        }
        child.send(Signal::SIGCONT);
        let output = child.finish();
        match signals {
            1 => {
                let output = output.exited(0);
                assert!(output.stdout.contains("ended by signal SIGINT"), "{output}");
                assert_eq!(desk.outputs(), ["x.dat"]);
            }
            _ => {
                assert_eq!(output.code(), None, "{output}");
                assert_eq!(desk.outputs(), [""; 0]);
            }
        }
        assert_eq!(desk.left_on("S1"), [""; 0], "after {signals} signals");
    }
}

#[test]
fn a_stream_of_markers_reaches_the_device_whole() {
    let Some(desk) = Desk::one() else { return };
    let mut child = desk
        .adb(&["mark", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let marks = (0..20_000).map(|number| format!("instant mark {number}\n")).collect::<String>() + "x\n";
    child.feed(marks.as_str());
    assert_said(child.finish(), 3, "S1: tracebridge: standard input, line: no marker");
    assert_eq!(fs::read_to_string(desk.server.dir("S1").join("marks")).unwrap(), marks);
    let old = Desk::with(&[("S1", "device")], "cmd").unwrap();
    assert_said(old.run("mark -"), 1, "mark -: a command has standard input on Android 7 and newer alone");
    let two = Desk::with(&[("S1", "device"), ("S2", "device")], MODERN).unwrap();
    two.run("mark --all -").exited(2);
}

#[test]
fn the_log_has_what_was_asked_of_the_device_and_what_it_answered() {
    let Some(desk) = Desk::one() else { return };
    desk.will_record(&golden_capture());
    // A device's text may try to move the cursor, and may be long.
    let model = "printf 'x\\033[2J'; head -c 5000 /dev/zero | tr '\\0' y";
    desk.has_program("getprop", &format!("[ $1 != ro.product.model ] || {{ {model}; }}"));
    let quiet = desk.run("record sched -t 50ms -o x.pftrace").exited(0);
    assert_eq!(quiet.stderr, "");
    for line in ["record sched -t 50ms -o x.pftrace -v", "--verbose record sched -t 50ms -o x.pftrace"] {
        let logged = desk.run(line).exited(0);
        assert_eq!(logged.stdout, quiet.stdout, "the result stays on standard output");
        let log = logged.stderr;
        for step in [
            "DEBUG adb::connection: adb: asking the adb server: request host:version\n",
            "DEBUG adb::connection: adb: asking S1 for its features: answer shell_v2,cmd,stat_v2,ls_v2\n",
            "request shell,v2,raw:echo \"machine=$(uname -m",
            "status 0, standard output \"machine=",
            "x\\x1b[2Jyyy",
            "DEBUG desk::device::pull: ",
            " bytes, read as trace.dat\n",
            "DEBUG export::convert: x.pftrace: written\n",
        ] {
            assert!(log.contains(step), "no {step:?}: {log}");
        }
        assert!(!log.contains('\x1b') && log.lines().all(|line| line.chars().count() < 1200), "{log}");
    }
    // Parts are chosen by the environment, which also switches the log on.
    let words: Vec<&str> = "record sched -t 50ms -o x.pftrace".split(' ').collect();
    let parts = desk.adb(&words).env("TRACEBRIDGE_LOG", "tracebridge::export=debug").run().exited(0);
    assert!(parts.stderr.contains("x.pftrace: written\n") && !parts.stderr.contains("adb:"), "{parts}");
}

#[test]
fn a_phone_that_is_named_twice_is_recorded_once() {
    let Some(desk) = Desk::with(&[("S1", "device"), ("S2", "device")], MODERN) else { return };
    let ran = desk.run("record sched -t 50ms -s S1,S1 -s S1 -o x.dat --json").exited(0);
    assert_eq!(ran.stdout.lines().count(), 1, "{ran}");
    assert_eq!(desk.outputs(), ["x.dat"]);
}

#[test]
fn a_pushed_binary_is_removed_and_that_is_said() {
    let Some(desk) = Desk::one() else { return };
    desk.run("push").exited(0);
    let cleaned = desk.run("clean").exited(0);
    assert!(
        cleaned.stdout.starts_with("removed: ") && cleaned.stdout.ends_with("/tracebridge\n"),
        "{cleaned}"
    );
    assert_eq!(desk.left_on("S1"), [""; 0]);
    assert!(!desk.server.dir("S1").join("tracebridge").exists());
    assert_eq!(desk.run("clean").exited(0).stdout, "nothing to remove\n");
}

#[test]
fn a_message_of_the_device_names_commands_of_the_host() {
    let Some(desk) = Desk::one() else { return };
    let said = desk.run("record busy");
    assert_said(
        said,
        1,
        "S1: a flight recorder is using this trace buffer: end it with `tracebridge adb stop`",
    );
}
