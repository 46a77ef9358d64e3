//! Every command of `adb` against every kind of hostile phone: it ends in time, in little memory, with a
//! message, and leaves the user's files alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use support::adb_server::AdbServer;
use support::hostile_phone::Hostility;
use support::{Command, binary};

/// The address space of a command, KiB: most of it is the program itself.
const MEMORY_KIB: u32 = 500 << 10;

/// No command takes longer, whatever the phone does. Most take less than a second.
const DEADLINE: Duration = Duration::from_secs(45);

/// The most that a command prints, bytes.
const MAX_PRINTED: usize = 256 << 10;

/// The commands, and what each may leave here.
const COMMANDS: [(&str, &[&str]); 14] = [
    ("devices", &[]),
    ("devices --json", &[]),
    ("doctor", &[]),
    ("list", &[]),
    ("record sched -t 50ms -o rec.pftrace", &["rec.pftrace"]),
    ("record sched -t 50ms --stream -o str.dat", &["str.dat"]),
    ("launch com.example -t 50ms -o start.dat", &["start.dat", "start.trace"]),
    ("pull", &[]),
    ("pull --resume", &[]),
    ("pull x.bin", &["x.bin"]),
    ("push", &[]),
    ("dump -o flight.dat", &["flight.dat"]),
    ("stop", &[]),
    ("clean", &[]),
];

fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let read = |path: &Path| fs::read(path).unwrap_or_default();
    entries.map(|entry| (entry.file_name().into_string().unwrap(), read(&entry.path()))).collect()
}

/// Runs a command, and returns what is wrong with how it went.
fn run(kind: Hostility, line: &str, outputs: &[&str]) -> Option<String> {
    let dir = support::tempdir();
    let server = AdbServer::start(&[("S1", "device")], "shell_v2,cmd,stat_v2,ls_v2");
    server.become_hostile(kind);
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
    command.current_dir(dir.path()).arg("-c").arg(limited).arg(binary()).args(line.split(' '));
    command.env("ANDROID_ADB_SERVER_PORT", server.port().to_string());
    command.env("TRACEBRIDGE_DEVICE_BINARIES", dir.path().join("binaries"));
    command.env("TRACEBRIDGE_ADB_TIMEOUT", "2").limit(DEADLINE * 2);
    let started = Instant::now();
    let ran = command.run();
    let took = started.elapsed();
    let mut after = files(dir.path());
    after.retain(|name, _| !outputs.contains(&name.as_str()));
    let printed = ran.stdout.len() + ran.stderr.len();
    let is_raw = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
    let fault = if !matches!(ran.code(), Some(0 | 1 | 3)) {
        format!("ended with {:?}", ran.status)
    } else if ran.stderr.contains("panicked") {
        "panicked".to_owned()
    } else if took > DEADLINE {
        format!("took {took:?}")
    } else if printed > MAX_PRINTED || printed == 0 {
        format!("printed {printed} bytes")
    } else if ran.stdout.contains(is_raw) || ran.stderr.contains(is_raw) {
        "printed control characters".to_owned()
    } else if before != after {
        format!("left {:?}", after.keys().collect::<Vec<_>>())
    } else {
        return None;
    };
    let said: String = ran.said().chars().take(500).collect();
    Some(format!("{kind:?}: adb {line}: {fault}: {said:?}"))
}

#[test]
#[ignore = "`adb pull` from one of these phones does not end within 90 s: not mended yet"]
fn no_phone_makes_a_command_hang_crash_fill_memory_or_touch_other_files() {
    let runs: Vec<(Hostility, &str, &[&str])> = Hostility::ALL
        .iter()
        .flat_map(|kind| COMMANDS.iter().map(|(line, outputs)| (*kind, *line, *outputs)))
        .collect();
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(2, usize::from).max(4);
    let work = || {
        let mut faults = Vec::new();
        while let Some((kind, line, outputs)) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
            faults.extend(run(*kind, line, outputs));
        }
        faults
    };
    let faults: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(Hostility::ALL.len() >= 30 && runs.len() > 400);
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), runs.len(), faults.join("\n"));
}
