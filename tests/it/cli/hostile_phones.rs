//! Every command of `adb` against every kind of hostile phone: it ends in time, in little memory, with a
//! message, and leaves the user's files alone.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use support::adb_server::AdbServer;
use support::hostile_phone::Hostility;
use support::processes::finish_with_memory;
use support::{Command, binary, tracebridge};

const MODERN: &str = "shell_v2,cmd,stat_v2,ls_v2";

/// The address space of a command, KiB: most of it is the program itself, and what the allocator sets aside
/// for each thread.
const MEMORY_KIB: u32 = 500 << 10;

/// The most memory that a command uses, KiB. The program without optimisation takes a part of it.
const RESIDENT_KIB: usize = 200 << 10;

/// No command takes longer, whatever the phone does. Most take less than a second.
const DEADLINE: Duration = Duration::from_secs(75);

/// The most that a command prints, bytes.
const MAX_PRINTED: usize = 256 << 10;

/// How many commands are at work at the same time. Most wait.
const AT_ONCE: usize = 32;

/// The commands, and what each may leave here.
const COMMANDS: [(&str, &[&str]); 22] = [
    ("devices", &[]),
    ("devices --json", &[]),
    ("doctor", &[]),
    ("doctor --json", &[]),
    ("list", &[]),
    ("record sched -t 50ms -o rec.pftrace", &["rec.pftrace"]),
    ("record sched -t 50ms --stream -o str.dat", &["str.dat"]),
    ("launch com.example -t 50ms -o start.dat", &["start.dat", "start.trace"]),
    ("profile start com.example", &[]),
    ("profile stop com.example -o methods.trace", &["methods.trace"]),
    ("pull", &[]),
    ("pull --resume", &[]),
    ("pull x.bin", &["x.bin"]),
    ("pull --traces --app com.example --to others", &["others"]),
    ("push", &[]),
    ("start sched", &[]),
    ("dump -o flight.dat", &["flight.dat"]),
    ("stop", &[]),
    ("stop -o end.dat", &["end.dat"]),
    ("mark instant here", &[]),
    ("clean", &[]),
    ("clean --force", &[]),
];

fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let read = |path: &Path| fs::read(path).unwrap_or_default();
    entries.map(|entry| (entry.file_name().into_string().unwrap(), read(&entry.path()))).collect()
}

/// One command against one phone.
#[derive(Clone, Copy)]
struct Encounter {
    kind: Hostility,
    /// The phone tells its facts as it should, and is hostile to what follows.
    tells_facts: bool,
    line: &'static str,
    outputs: &'static [&'static str],
}

impl fmt::Display for Encounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Encounter { kind, line, .. } = self;
        let later = if self.tells_facts { " after its facts" } else { "" };
        write!(f, "{kind:?}{later}: adb {line}")
    }
}

/// Every command against every phone.
fn encounters() -> Vec<Encounter> {
    let phones = Hostility::ALL.iter().map(|kind| (*kind, false));
    let later = Hostility::ALL.iter().filter(|kind| kind.is_of_commands()).map(|kind| (*kind, true));
    let with_each = |(kind, tells_facts)| {
        COMMANDS.iter().map(move |(line, outputs)| Encounter { kind, tells_facts, line, outputs })
    };
    phones.chain(later).flat_map(with_each).collect()
}

/// The figures of a run.
struct Figures {
    seconds: f64,
    resident_kib: usize,
}

/// Runs a command, and returns its figures, and what is wrong with how it went.
fn run(encounter: Encounter) -> (Figures, Option<String>) {
    let dir = support::tempdir();
    let server = AdbServer::start(&[("S1", "device")], MODERN);
    if encounter.tells_facts {
        server.become_hostile_later(encounter.kind);
    } else {
        server.become_hostile(encounter.kind);
    }
    fs::write(server.dir("S1").join("x.bin"), [7; 5_000]).unwrap();
    for name in ["package.json", "trace.dat", "Makefile"] {
        fs::write(dir.path().join(name), name).unwrap();
    }
    let binaries = dir.path().join("binaries").join(super::adb::abi());
    fs::create_dir_all(&binaries).unwrap();
    fs::write(binaries.join("tracebridge"), "#!/bin/sh\necho tracebridge 0.1.0\n").unwrap();
    let before = files(dir.path());
    let limited = format!("ulimit -v {MEMORY_KIB}; exec \"$0\" adb \"$@\"");
    let mut command = Command::new("sh");
    command.current_dir(dir.path()).arg("-c").arg(limited).arg(binary()).args(encounter.line.split(' '));
    command.env("ANDROID_ADB_SERVER_PORT", server.port().to_string());
    command.env("TRACEBRIDGE_DEVICE_BINARIES", dir.path().join("binaries"));
    command.env("TRACEBRIDGE_ADB_TIMEOUT", "2").limit(DEADLINE * 6);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = Instant::now();
    let (ran, resident_kib) = finish_with_memory(command.spawn().unwrap());
    let took = started.elapsed();
    let figures = Figures { seconds: took.as_secs_f64(), resident_kib };
    let mut after = files(dir.path());
    after.retain(|name, _| !encounter.outputs.contains(&name.as_str()));
    let printed = ran.stdout.len() + ran.stderr.len();
    let is_raw = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
    let fault = if !matches!(ran.code(), Some(0 | 1 | 3)) {
        format!("ended with {:?}", ran.status)
    } else if ran.stderr.contains("panicked") {
        "panicked".to_owned()
    } else if took > DEADLINE {
        format!("took {took:?}")
    } else if figures.resident_kib > RESIDENT_KIB {
        format!("took {} KiB", figures.resident_kib)
    } else if printed > MAX_PRINTED || printed == 0 {
        format!("printed {printed} bytes")
    } else if ran.stdout.contains(is_raw) || ran.stderr.contains(is_raw) {
        "printed control characters".to_owned()
    } else if before != after {
        format!("left {:?}", after.keys().collect::<Vec<_>>())
    } else {
        return (figures, None);
    };
    let said: String = ran.said().chars().take(500).collect();
    (figures, Some(format!("{encounter}: {fault}: {said:?}")))
}

#[test]
fn no_phone_makes_a_command_hang_crash_fill_memory_or_touch_other_files() {
    let runs = encounters();
    let next = AtomicUsize::new(0);
    let faults = Mutex::new(Vec::new());
    let longest = Mutex::new((0.0, String::new()));
    let largest = Mutex::new((0, String::new()));
    let work = || {
        while let Some(encounter) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (figures, fault) = run(*encounter);
            faults.lock().unwrap().extend(fault);
            let mut longest = longest.lock().unwrap();
            if figures.seconds > longest.0 {
                *longest = (figures.seconds, encounter.to_string());
            }
            let mut largest = largest.lock().unwrap();
            if figures.resident_kib > largest.0 {
                *largest = (figures.resident_kib, encounter.to_string());
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(work);
        }
    });
    let faults = faults.into_inner().unwrap();
    // With --nocapture: the figures.
    println!("{} runs, longest {:?} s, largest {:?} KiB", runs.len(), longest.lock(), largest.lock());
    assert!(Hostility::ALL.len() >= 30 && runs.len() > 1000);
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), runs.len(), faults.join("\n"));
}

#[test]
fn a_slow_phone_hides_no_other() {
    let server = AdbServer::start(&[("S1", "device"), ("S2", "device"), ("S3", "offline")], MODERN);
    server.make_hostile("S1", Hostility::CommandsAreSilent);
    let mut command = tracebridge();
    command.args(["adb", "devices"]).env("ANDROID_ADB_SERVER_PORT", server.port().to_string());
    command.env("TRACEBRIDGE_ADB_TIMEOUT", "30").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stdout = child.collect_stdout();
    let first = stdout.line_with("SERIAL");
    assert!(first.ends_with("TRACING"), "{first}");
    stdout.line_with("S2 ");
    stdout.line_with("S3 ");
    assert!(child.try_wait().unwrap().is_none(), "the slow phone is waited for");
    stdout.line_with("S1 ");
    child.finish().exited(0);
}

#[test]
fn what_no_disk_has_room_for_and_what_comes_byte_by_byte_is_given_up_by_name() {
    for (kind, words) in [
        (Hostility::EndlessHugeFiles, "x.bin: No space left: "),
        (Hostility::HugeFiles, "x.bin: No space left: "),
        (Hostility::EndlessFiles, "the device sends more than the 5000 bytes that the file had"),
        (Hostility::FilesTrickle, "x.bin from S1: only "),
        (Hostility::EmptyPiecesTrickle, "x.bin from S1: only 0 bytes came within 10 s"),
        (Hostility::EmptyPieces, "pieces of a file without a byte, one after the other"),
    ] {
        let dir = support::tempdir();
        let server = AdbServer::start(&[("S1", "device")], MODERN);
        server.become_hostile(kind);
        fs::write(server.dir("S1").join("x.bin"), [7; 5_000]).unwrap();
        let mut command = tracebridge();
        command.args(["adb", "pull", "x.bin"]).current_dir(dir.path());
        command.env("ANDROID_ADB_SERVER_PORT", server.port().to_string());
        // Longer than the phone may be kept waiting for a processor by the other tests.
        command.env("TRACEBRIDGE_ADB_TIMEOUT", "10");
        let said = command.run().exited(1).stderr;
        assert!(said.contains(words), "{kind:?}: {said}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{kind:?}: {said}");
        assert!(server.dir("S1").join("x.bin").exists(), "{kind:?}: {said}");
    }
}
