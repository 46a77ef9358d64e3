//! `tracebridge adb` against a server that the test imitates: the states that no real part has when a test
//! wants them, and everything that can break in the middle.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::adb_server::{AdbServer, Mischief};
use crate::scenario::{Era, Scenario};
use crate::support::{has_program, skip, tracebridge};

const MODERN: &str = "shell_v2,cmd,stat_v2,ls_v2";

/// A stand-in for the device's binary: it notes its words, records until its time is over or SIGINT comes,
/// and leaves a real capture. (A shell cannot trap a signal that is ignored in the background; Python can.)
const RECORDER: &str = r#"#!/usr/bin/env python3
import json, os, shutil, signal, sys, time
words = sys.argv[1:]
here = os.path.dirname(os.path.abspath(__file__))
if words[0] == "--version":
    sys.exit(print("tracebridge 0.1.0"))
if words[0] == "restore":
    sys.exit(print("nothing to put back"))
with open(here + "/words.json", "w") as file:
    json.dump(words, file)
if "refused" in words:
    sys.exit("tracebridge: unknown tracing category \"refused\"")
if words[0] == "doctor":
    sys.exit(print("can record"))
if words == ["mark", "-"]:
    with open(here + "/marks", "w") as file:
        for line in sys.stdin:
            print(line, end="", file=file)
            if line.startswith("x"):
                print("tracebridge: standard input, line: no marker", file=sys.stderr)
    sys.exit(3)
end, ended_by = 60.0, []
for sent in (signal.SIGINT, signal.SIGTERM):
    signal.signal(sent, lambda *_: ended_by.append("signal SIGINT"))
for word in words:
    if word.startswith("--time="):
        end = int(word[7:-2]) / 1000
start = time.time()
while time.time() < start + end and not ended_by:
    time.sleep(0.02)
shutil.copy(here + "/source.dat", words[words.index("-o") + 1])
cpus = [{"cpu": 0, "events": 12}]
print(json.dumps({"streaming": True, "seconds": 1.0, "clock": "boot", "ended_by": (ended_by or ["time"])[0], "cpus": cpus}))
"#;

/// A server with devices, the binary for them, and a directory for outputs.
pub struct Desk {
    pub server: AdbServer,
    dir: tempfile::TempDir,
}

impl Desk {
    /// `None`, with a message, without Python.
    fn with(devices: &[(&str, &str)], features: &'static str) -> Option<Desk> {
        if !has_program("python3") {
            skip("python", "the imitated device's recorder is a Python script");
            return None;
        }
        let desk = Desk { server: AdbServer::start(devices, features), dir: tempfile::tempdir().unwrap() };
        let binaries = desk.dir.path().join("binaries").join(abi());
        fs::create_dir_all(&binaries).unwrap();
        fs::write(binaries.join("tracebridge"), RECORDER).unwrap();
        // Whoever asks for a capture alone gets it as it is.
        desk.will_record(&vec![7; 200_000]);
        Some(desk)
    }

    /// The devices record this from now on.
    fn will_record(&self, capture: &[u8]) {
        for device in fs::read_dir(self.server.dir("")).unwrap() {
            fs::write(device.unwrap().path().join("source.dat"), capture).unwrap();
        }
    }

    pub fn one() -> Option<Desk> {
        Desk::with(&[("S1", "device")], MODERN)
    }

    /// The device S1 has a program of its own.
    pub fn has_program(&self, name: &str, script: &str) {
        let bin = self.server.dir("S1").join("bin");
        fs::create_dir_all(&bin).unwrap();
        let path = bin.join(name);
        // A shell writes the script: while this process has a file open for writing, another test may fork,
        // and the kernel would refuse to run it.
        let write = r#"printf '#!/bin/sh\n%s\n' "$1" >"$0" && chmod 755 "$0""#;
        assert!(Command::new("sh").args(["-c", write]).arg(path).arg(script).status().unwrap().success());
    }

    pub fn adb<S: AsRef<std::ffi::OsStr>>(&self, words: &[S]) -> Command {
        let mut command = tracebridge();
        command
            .arg("adb")
            .args(words)
            .current_dir(self.dir.path())
            .env("ANDROID_ADB_SERVER_PORT", self.server.port().to_string())
            .env("TRACEBRIDGE_DEVICE_BINARIES", self.dir.path().join("binaries"))
            .env("TRACEBRIDGE_ADB_TIMEOUT", "1")
            .env_remove("ANDROID_SERIAL")
            .env_remove("ADB_SERVER_SOCKET");
        command
    }

    pub fn run(&self, line: &str) -> Output {
        self.adb(&line.split(' ').collect::<Vec<_>>()).output().unwrap()
    }

    fn start(&self, line: &str) -> Child {
        let words: Vec<_> = line.split(' ').collect();
        self.adb(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The names of everything in the output's directory but the binaries.
    fn outputs(&self) -> Vec<String> {
        let mut names = names(self.dir.path());
        names.retain(|name| name != "binaries");
        names
    }

    /// The names of what is on the device beside what the test has put there.
    fn left_on(&self, serial: &str) -> Vec<String> {
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
fn assert_said(output: &Output, status: i32, words: &str) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{out}{err}");
    assert!(err.contains(words) && err.lines().count() == 1, "not \"{words}\": {err}");
}

#[track_caller]
pub fn assert_status(output: &Output, status: i32) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{out}{err}");
}

#[test]
fn without_a_server_adb_is_started_or_missed() {
    let Some(desk) = Desk::one() else { return };
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let start = |path: &Path| {
        let mut command = desk.adb(&["devices"]);
        command.env("ANDROID_ADB_SERVER_PORT", &port).env("PATH", path);
        command.env_remove("ANDROID_HOME").env_remove("ANDROID_SDK_ROOT");
        command
    };
    let empty = desk.path("empty");
    fs::create_dir(&empty).unwrap();
    assert_said(&start(&empty).output().unwrap(), 1, "no adb: install Android's platform-tools");

    // An SDK whose adb notes how it is called, and starts nothing.
    let tools = desk.path("sdk/platform-tools");
    fs::create_dir_all(&tools).unwrap();
    let calls = desk.path("calls");
    fs::write(tools.join("adb"), format!("#!/bin/sh\necho \"$@\" >>{}\n", calls.display())).unwrap();
    fs::set_permissions(tools.join("adb"), fs::Permissions::from_mode(0o755)).unwrap();
    let output = start(&empty).env("ANDROID_HOME", desk.path("sdk")).output().unwrap();
    assert_said(&output, 1, "no adb server answers at 127.0.0.1:");
    assert_eq!(fs::read_to_string(&calls).unwrap(), format!("version\n-P {port} start-server\n"));

    let output = desk.adb(&["devices"]).env("ADB_SERVER_SOCKET", "tcp:x:y").output().unwrap();
    assert_said(&output, 1, "ADB_SERVER_SOCKET=tcp:x:y: it must be");
    let output = desk.adb(&["devices"]).env("ADB_SERVER_SOCKET", "tcp:0.0.0.0:1").output();
    assert_said(&output.unwrap(), 1, "no adb server answers at 0.0.0.0:1");
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
        assert_said(&desk.run("record sched -t 1 -o x.dat"), 1, words);
    }
    assert_eq!(desk.outputs(), [""; 0]);
}

#[test]
fn a_device_that_cannot_be_used_says_why_and_what_helps() {
    let none = Desk::with(&[], MODERN);
    let Some(none) = none else { return };
    assert_said(&none.run("record sched"), 1, "no device: attach one");
    for (state, words) in [
        ("unauthorized", "accept the dialogue"),
        ("offline", "attach it anew"),
        ("recovery", "is in the state \"recovery\""),
        ("no permissions (udev); see [http://x]", "no permission to open the USB device"),
    ] {
        let desk = Desk::with(&[("S1", state)], MODERN).unwrap();
        assert_said(&desk.run("record sched"), 1, words);
        let listed = desk.run("devices");
        assert_status(&listed, 0);
        assert!(String::from_utf8_lossy(&listed.stdout).contains(words), "{listed:?}");
    }
    let two = Desk::with(&[("S1", "device"), ("S2", "device")], MODERN).unwrap();
    assert_said(&two.run("record sched"), 1, "several devices: choose with --serial S[,S…] or --all: S1, S2");
    assert_said(&two.run("record sched --serial S3"), 1, "no device S3 (attached: S1, S2)");
    let output = two.adb(&["record", "sched"]).env("ANDROID_SERIAL", "S4").output().unwrap();
    assert_said(&output, 1, "no device S4");
    // Of a usable device and another one the usable is meant.
    let mixed = Desk::with(&[("S1", "offline"), ("S2", "device")], MODERN).unwrap();
    assert_status(&mixed.run("record sched -t 10ms -o x.dat"), 0);
}

#[test]
fn a_device_that_no_binary_runs_on_is_told() {
    let Some(desk) = Desk::one() else { return };
    desk.has_program("uname", "echo mips64");
    desk.has_program("getprop", "true");
    assert_said(&desk.run("record sched"), 1, "S1: unknown machine \"mips64\": there are binaries for arm64");
    desk.has_program("getprop", "[ $1 != ro.product.cpu.abi ] || echo riscv64");
    assert_said(&desk.run("record sched"), 1, "no tracebridge binary for riscv64: build it with");
    let foreign = desk.path("binaries/riscv64");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("tracebridge"), b"\x7fELF of another machine").unwrap();
    let said = desk.run("record sched");
    assert_said(&said, 1, "the riscv64 binary does not run on this device (mips64)");
    assert_eq!((desk.outputs(), desk.left_on("S1")), (vec![], vec!["bin".to_owned()]));
}

#[test]
fn a_recording_becomes_a_file_and_leaves_nothing_on_the_device() {
    for features in [MODERN, "cmd"] {
        let Some(desk) = Desk::with(&[("S1", "device")], features) else { return };
        assert_status(&desk.run("record sched -t 50ms -o x.dat"), 0);
        let output = desk.run("record sched -t 50ms --json -o y.dat");
        assert_status(&output, 0);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
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
    assert_status(&desk.run("record sched -t 50ms -o x.pftrace"), 0);
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
        assert_status(&desk.adb(&words).output().unwrap(), 0);
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
        assert_said(&desk.run(record), 1, words);
        assert_eq!((desk.outputs(), desk.left_on("S1")), (vec![], vec![]));
    }
    for (mischief, words) in [
        (Mischief::CutPull, "the connection is lost"),
        (Mischief::StallPull, "nothing happened for 1 s"),
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
        assert_said(&desk.run(record), 1, words);
        assert_eq!((desk.outputs(), desk.left_on("S1")), (vec![], vec!["tracebridge.d".to_owned()]));
        let listed = desk.run("pull");
        assert!(String::from_utf8_lossy(&listed.stdout).contains("ended  x.dat"), "{listed:?}");
        assert_status(&desk.run("pull --resume"), 0);
        assert_eq!((desk.outputs(), desk.left_on("S1")), (vec!["x.dat".to_owned()], vec![]));
        fs::remove_file(desk.path("x.dat")).unwrap();
    }
    // What was recorded is no capture: it is kept here, under a name that no file has.
    fs::write(desk.path("x.dat"), "mine").unwrap();
    let output = desk.run("record sched -t 50ms -o x.pftrace");
    assert_status(&output, 1);
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("kept what was recorded: ./x-1.dat"),
        "{output:?}"
    );
    assert_eq!(
        (desk.outputs(), desk.left_on("S1")),
        (vec!["x-1.dat".to_owned(), "x.dat".to_owned()], vec!["tracebridge.d".to_owned()])
    );
    assert_status(&desk.run("clean"), 0);
    assert_eq!(desk.left_on("S1"), [""; 0]);
    fs::remove_file(desk.path("x-1.dat")).unwrap();
    fs::remove_file(desk.path("x.dat")).unwrap();
    assert_said(&desk.run("record refused"), 1, "S1: unknown tracing category");
    assert_eq!((desk.outputs(), desk.left_on("S1")), (vec![], vec![]));
}

#[test]
fn a_recording_goes_on_while_its_connection_is_lost() {
    let Some(desk) = Desk::one() else { return };
    desk.server.will(Mischief::CutShell("trap '' HUP", Duration::from_millis(300)));
    let output = desk.run("record sched -t 1500ms -o x.dat");
    assert_status(&output, 0);
    assert!(String::from_utf8_lossy(&output.stdout).contains("ended by time"), "{output:?}");
    assert_eq!((desk.outputs(), desk.left_on("S1")), (vec!["x.dat".to_owned()], vec![]));
}

#[test]
fn a_recording_whose_device_stays_away_is_fetched_later() {
    let Some(desk) = Desk::one() else { return };
    desk.server.will(Mischief::LoseDevice("trap '' HUP", Duration::from_millis(300)));
    let output = desk.run("record sched -t 4s -o x.dat");
    let words = "S1: the connection is lost, and the device did not come back within 1 s: the recording goes on on the \
                 device. Fetch it with: tracebridge adb pull --resume --serial S1";
    assert_said(&output, 1, words);
    desk.server.set_state("S1", "device");
    let listed = desk.run("pull");
    assert!(String::from_utf8_lossy(&listed.stdout).contains("running  x.dat"), "{listed:?}");
    assert_status(&desk.run("pull --resume"), 0);
    assert_eq!((desk.outputs(), desk.left_on("S1")), (vec!["x.dat".to_owned()], vec![]));
}

#[test]
fn a_file_is_removed_on_the_device_only_after_it_is_here() {
    let Some(desk) = Desk::one() else { return };
    let name = "it's $(id) ä.dat";
    let there = desk.server.dir("S1").join(name);
    fs::copy(desk.server.dir("S1").join("source.dat"), &there).unwrap();
    desk.server.will(Mischief::CutPull);
    assert_status(&desk.adb(&["pull", name]).output().unwrap(), 1);
    assert!(there.is_file());
    assert_status(&desk.adb(&["pull", "--keep", "--to", "out", name]).output().unwrap(), 0);
    assert!(there.is_file() && desk.path("out").join(name).is_file());
    assert_status(&desk.adb(&["pull", name]).output().unwrap(), 0);
    assert!(!there.exists() && desk.path(name).is_file());
    let output = desk.adb(&["pull", name]).output().unwrap();
    assert_said(&output, 1, "No such file");
}

#[test]
fn several_devices_have_an_output_each_and_one_failure_ends_no_other() {
    let Some(desk) = Desk::with(&[("S1", "device"), ("S2", "offline"), ("S3", "device")], MODERN) else {
        return;
    };
    let output = desk.run("record sched -t 50ms --all -o x.dat");
    assert_said(&output, 1, "S2: offline");
    assert_eq!(desk.outputs(), ["x-S1.dat", "x-S3.dat"]);
    let output = desk.run("record sched -t 50ms --serial S1,S3 -o {serial}.dat --json");
    assert_status(&output, 0);
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 2, "{output:?}");
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
    let listed = desk.run("devices");
    assert_status(&listed, 0);
    let text = String::from_utf8(listed.stdout).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>(),
        ["SERIAL", "MODEL", "ANDROID", "ABI", "ROOT", "TRACING"]
    );
    assert!(lines[1].starts_with("S1") && lines[1].contains("15       arm64-v8a  su -c  no"), "{text}");
    assert!(lines[1].contains("Pixel \\u001b[2J 3"), "{text:?}");
    assert!(lines[2].starts_with("S2      unauthorized: unlock the device"), "{text}");
    let listed = desk.run("devices --json");
    let first: serde_json::Value =
        serde_json::from_slice(listed.stdout.split(|b| *b == b'\n').next().unwrap()).unwrap();
    assert_eq!(
        (&first["abi"], &first["su"], &first["release"]),
        (&"arm64-v8a".into(), &"-c".into(), &"15".into())
    );
}

#[test]
fn a_running_app_is_profiled_and_its_method_trace_fetched() {
    let Some(desk) = Desk::one() else { return };
    let calls = desk.path("calls");
    // As Android's own, it exits with 0 whatever happens.
    desk.has_program(
        "am",
        &format!(
            "echo \"$@\" >>{0}; case $2 in start) for file; do :; done; echo $file >{0}.file;; \
             stop) [ $3 = dead.app ] && echo 'Error: no such process' || echo method trace >$(cat {0}.file);; esac",
            calls.display()
        ),
    );
    assert_status(&desk.run("profile start com.app:remote --sampling 500 --streaming"), 0);
    assert_status(&desk.run("profile stop com.app:remote -o m.trace"), 0);
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
    assert_said(&desk.run("profile stop dead.app"), 1, "am: Error: no such process");
}

#[test]
fn a_mistake_is_told_before_anything_is_recorded() {
    let Some(desk) = Desk::one() else { return };
    for (line, status, words) in [
        ("record sched -o x.xyz", 2, "its ending names no format"),
        ("record sched -o missing/x.dat", 1, "missing"),
        ("record sched -o -", 2, "name a file"),
        ("launch com.app -o x", 2, "its ending names no format"),
        ("profile start -x", 2, "-x"),
        ("profile start a;b", 2, "is no process of an app"),
        ("pull x/..", 2, "names no file"),
        ("record sched --serial a --all", 2, "cannot be used with"),
    ] {
        let output = desk.run(line);
        assert_status(&output, status);
        assert!(String::from_utf8_lossy(&output.stderr).contains(words), "{line}: {output:?}");
    }
    assert_eq!(desk.left_on("S1"), [""; 0]);
}

#[test]
fn the_first_signal_ends_the_recording_and_the_second_everything() {
    for signals in [1, 2] {
        let Some(desk) = Desk::one() else { return };
        let child = desk.start("record sched -o x.dat");
        let words = desk.server.dir("S1").join("words.json");
        let give_up = Instant::now() + Duration::from_secs(20);
        while fs::metadata(&words).map_or(0, |meta| meta.len()) == 0 {
            assert!(Instant::now() < give_up, "not begun");
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(200));
        // Two of one kind may become one.
        for signal in ["-TERM", "-INT"].into_iter().take(signals) {
            let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
            assert!(sent.success());
            std::thread::sleep(Duration::from_millis(5));
        }
        let output = child.wait_with_output().unwrap();
        match signals {
            1 => {
                assert_status(&output, 0);
                assert!(
                    String::from_utf8_lossy(&output.stdout).contains("ended by signal SIGINT"),
                    "{output:?}"
                );
                assert_eq!(desk.outputs(), ["x.dat"]);
            }
            _ => {
                assert_eq!(output.status.code(), None, "{output:?}");
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
    child.stdin.take().unwrap().write_all(marks.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_said(&output, 3, "S1: tracebridge: standard input, line: no marker");
    assert_eq!(fs::read_to_string(desk.server.dir("S1").join("marks")).unwrap(), marks);
    let old = Desk::with(&[("S1", "device")], "cmd").unwrap();
    assert_said(&old.run("mark -"), 1, "mark -: a command has standard input on Android 7 and newer alone");
    let two = Desk::with(&[("S1", "device"), ("S2", "device")], MODERN).unwrap();
    assert_status(&two.run("mark --all -"), 2);
}
