//! `tracebridge` without arguments. On a terminal it says in ten lines what it is, and which three commands
//! fit the adb, the phones and the files that it sees. Elsewhere it answers as to any command line that is
//! incomplete.

use std::ffi::OsStr;
use std::fs;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;
use support::adb_server::{AdbServer, ClosedPort, Mischief};
use support::hostile_phone::Hostility;
use support::scenario::{Era, Scenario};
use support::{Command, TempDir, binary, has_program, project_dir, skip, write_program};

/// A directory in which the program runs, and the directory of the programs that it finds on PATH.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Option<Place> {
        if !has_program("python3") {
            skip("python", "python3 is not installed, which makes a terminal");
            return None;
        }
        let place = Place { dir: support::tempdir() };
        fs::create_dir(place.dir.path().join("here")).unwrap();
        fs::create_dir(place.dir.path().join("bin")).unwrap();
        Some(place)
    }

    fn here(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join("here").join(name)
    }

    /// Puts a program named adb on PATH, which notes that it was run. Returns the path of its note.
    fn install_adb(&self) -> PathBuf {
        let note = self.dir.path().join("adb-was-run");
        write_program(
            &self.dir.path().join("bin/adb"),
            format!("#!/bin/sh\n/bin/touch '{}'\n", note.display()),
        );
        note
    }

    /// The program on a terminal, with an adb server at this port.
    fn command(&self, port: &str, args: &[&str]) -> Command {
        let mut command = Command::new("python3");
        command.arg(project_dir().join("tests/support/on_terminal.py")).arg("100");
        // Python needs its own PATH.
        command.arg("/usr/bin/env").arg(format!("PATH={}", self.dir.path().join("bin").display()));
        command.arg(binary()).args(args).current_dir(self.dir.path().join("here"));
        command.env("ANDROID_ADB_SERVER_PORT", port).env_remove("ANDROID_HOME");
        command.env_remove("ANDROID_SDK_ROOT");
        command
    }

    /// Its greeting, which has ten lines and nothing that moves a cursor.
    #[track_caller]
    fn greeting(&self, port: &str) -> String {
        // A limit of a day for a silent server is not the limit of a glance.
        let ran = self.command(port, &[]).env("TRACEBRIDGE_ADB_TIMEOUT", "86400").run().exited(0);
        let text = ran.stdout;
        assert_eq!(text.lines().count(), 10, "{text}");
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
        assert!(text.starts_with(&format!("tracebridge {} records ", env!("CARGO_PKG_VERSION"))), "{text}");
        assert!(text.contains("\nAll commands: tracebridge --help. Nothing is sent anywhere"), "{text}");
        assert_eq!(ran.stderr, "");
        text
    }
}

/// The commands of a greeting.
fn commands(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' ')).collect()
}

#[test]
fn without_adb_the_first_command_installs_it_and_no_server_is_started() {
    let Some(place) = Place::new() else { return };
    let closed = ClosedPort::take();
    let text = place.greeting(closed.port());
    assert!(
        text.contains("It sees no adb here, which reaches phones and no trace in this directory."),
        "{text}"
    );
    let said = commands(&text);
    assert_eq!(said.len(), 3, "{text}");
    assert!(said[0].contains("install ") && said[1] == "tracebridge open FILE", "{text}");

    let note = place.install_adb();
    let text = place.greeting(closed.port());
    assert!(text.contains("adb, whose server does not run"), "{text}");
    assert_eq!(commands(&text)[0], "tracebridge adb devices");
    assert!(!note.exists(), "adb was run");
}

#[test]
fn the_phones_that_the_server_knows_decide_the_commands() {
    let Some(place) = Place::new() else { return };
    let greeting = |devices: &[(&str, &str)]| {
        let server = AdbServer::start(devices, "shell_v2");
        let text = place.greeting(&server.port().to_string());
        assert_eq!(server.commands(), [""; 0], "a device was asked");
        text
    };
    let text = greeting(&[]);
    assert!(text.contains("It sees no phone on adb and no trace"), "{text}");
    assert_eq!(commands(&text)[0], "tracebridge adb devices");
    let text = greeting(&[("S1", "device")]);
    assert!(text.contains("It sees a phone on adb (S1) and no trace"), "{text}");
    assert_eq!(
        commands(&text),
        [
            "tracebridge adb launch com.example.app -o start.html --open",
            "tracebridge adb record sched freq gfx view -t 10 -o x.html --open",
            "tracebridge adb doctor",
        ]
    );
    let text = greeting(&[("S1", "unauthorized")]);
    assert!(text.contains("a phone on adb that is unauthorized (S1)"), "{text}");
    assert_eq!(commands(&text)[0], "tracebridge adb devices");
    let text = greeting(&[("S1", "offline"), ("S2", "device"), ("S3", "device")]);
    assert!(text.contains("3 devices on adb, of which 2 can be used"), "{text}");
    assert!(commands(&text).iter().all(|command| command.contains(" --serial S2")), "{text}");
}

#[test]
fn a_server_that_is_none_lies_or_is_silent_costs_a_moment() {
    let Some(place) = Place::new() else { return };
    let server = AdbServer::start(&[("S1", "device")], "shell_v2");
    let port = server.port().to_string();
    for answer in [&b"HTTP/1.1 400 Bad Request\r\n"[..], b"OKAYzzzz", b"OK", b"", b"FAIL0003no\x1b"] {
        server.will(Mischief::Says(answer));
        let text = place.greeting(&port);
        assert!(text.contains("adb, which does not tell its devices"), "{text}");
        assert_eq!(commands(&text)[0], "tracebridge adb devices");
    }
    for kind in
        [Hostility::ListIsNoText, Hostility::ListIsCut, Hostility::ListIsLong, Hostility::ListHasLongNames]
    {
        server.become_hostile(kind);
        let text = place.greeting(&port);
        assert!(text.len() < 2_000, "{kind:?}: {text}");
    }
    // It accepts, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = place.greeting(&silent.local_addr().unwrap().port().to_string());
    assert!(text.contains("adb, which does not tell its devices"), "{text}");
}

#[test]
fn files_that_can_be_read_are_named_and_those_that_wait_or_hide_are_not() {
    let Some(place) = Place::new() else { return };
    let closed = ClosedPort::take();
    let made = Scenario::new(14, Era::ArtMono).make();
    fs::write(place.here("start.dat"), &made.dat).unwrap();
    fs::write(place.here("start.trace"), &made.trace).unwrap();
    fs::write(place.here("notes.txt"), "no trace\n").unwrap();
    fs::write(place.here(".hidden.dat"), &made.dat).unwrap();
    nix::unistd::mkfifo(&place.here("waits.dat"), Mode::S_IRWXU).unwrap();
    let text = place.greeting(closed.port());
    assert!(text.contains(" and 2 traces in this directory: start."), "{text}");
    assert_eq!(
        commands(&text)[..2],
        ["tracebridge open start.dat start.trace", "tracebridge why start.dat start.trace"]
    );
    // The commands are ones that the program takes.
    place.command(closed.port(), &["info", "start.dat", "start.trace"]).run().exited(0);
}

#[test]
fn a_hostile_name_stays_a_name() {
    let Some(place) = Place::new() else { return };
    let closed = ClosedPort::take();
    let dat = Scenario::new(14, Era::ArtMono).make().dat;
    for (name, word) in [
        ("a b.dat", "'a b.dat'"),
        ("$(touch x).dat", "'$(touch x).dat'"),
        ("-o.dat", "./-o.dat"),
        ("a\nb.dat", "FILE"),
        ("\x1b[2J\x07.dat", "FILE"),
        ("\u{202e}tad.x", "FILE"),
        (&"n".repeat(250), "FILE"),
    ] {
        fs::write(place.here(name), &dat).unwrap();
        let text = place.greeting(closed.port());
        assert_eq!(commands(&text)[0], format!("tracebridge open {word}"), "{text}");
        fs::remove_file(place.here(name)).unwrap();
    }
    // No command line could hold a name that is not UTF-8.
    fs::write(place.here(OsStr::from_bytes(b"\xff\xfe.dat")), &dat).unwrap();
    assert_eq!(commands(&place.greeting(closed.port()))[1], "tracebridge open FILE");
}

#[test]
fn elsewhere_and_with_arguments_the_answer_is_that_to_a_command_line() {
    let Some(place) = Place::new() else { return };
    let ran = support::tracebridge().current_dir(place.here("")).run().exited(2);
    assert!(ran.stderr.contains("Usage: tracebridge") && ran.stdout.is_empty(), "{ran}");
    let ran = place.command("1", &["--nonsense"]).run().exited(2);
    assert!(ran.stderr.contains("--nonsense") && ran.stdout.is_empty(), "{ran}");
    place.command("1", &["--help"]).run().exited(0);
}
