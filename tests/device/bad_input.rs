//! Files that are empty, cut short or random: an error that says where, or a partial result that says what is missing.

use std::fs;
use std::path::Path;

use crate::adb::{self, DIR, Device};
use crate::art_writer::{Action, ArtTrace, Method, Record};
use crate::support;

/// Places to cut each file at.
const CUTS: usize = 200;

fn method_trace() -> Vec<u8> {
    let method = |name: &str| Method {
        class: "com.example.Work".into(),
        name: name.into(),
        signature: "()V".into(),
        file: "Work.java".into(),
    };
    let calls = 300u32;
    let record = |n: u32, action| Record {
        thread: 1 + (n % 2) as u16,
        method: n / 2 % 2,
        action,
        cpu_us: n * 5,
        wall_us: n * 10,
    };
    ArtTrace {
        start_us: 5_000_000,
        elapsed_us: 10_000,
        pid: 4242,
        threads: vec![(1, "main".into()), (2, "RenderThread".into())],
        methods: vec![method("run"), method("draw")],
        records: (0..calls).flat_map(|n| [record(n, Action::Enter), record(n, Action::Exit)]).collect(),
        ..ArtTrace::default()
    }
    .to_bytes()
}

/// Gives `bytes`, damaged in every way, to `info` and `merge` as a file of this name.
fn endure(name: &str, bytes: &[u8]) {
    let dir = adb::scratch();
    let file = dir.path().join(name);
    let mut damaged: Vec<(String, Vec<u8>)> = vec![("empty".into(), Vec::new())];
    for n in 1..=CUTS {
        let at = bytes.len() * n / (CUTS + 1);
        damaged.push((format!("cut at byte {at} of {}", bytes.len()), bytes[..at].to_vec()));
    }
    // xorshift64: the same bytes every time.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    damaged.push(("random".into(), (0..65536).map(|_| random() as u8).collect()));
    for keep in [3, 16, 64, 1024] {
        let tail = (0..20_000).map(|_| random() as u8);
        damaged.push((
            format!("random after byte {keep}"),
            bytes.iter().take(keep).copied().chain(tail).collect(),
        ));
    }
    for (how, content) in damaged {
        fs::write(&file, &content).expect("a temporary file");
        for command in [&["info"][..], &["merge", "-o", "/dev/null", "--format", "perfetto"]] {
            check(command, &file, &how);
        }
    }
}

fn check(command: &[&str], file: &Path, how: &str) {
    let output = support::tracebridge().args(command).arg(file).output().expect("tracebridge runs");
    let said = adb::text(&output);
    let what = format!("{command:?} of a file {how}: {}: {said}", output.status);
    assert!(matches!(output.status.code(), Some(1 | 3)), "{what}");
    assert!(!said.contains("panicked"), "{what}");
    let place = ["offset", "byte", "empty", "unknown kind", "missing", "cut"];
    assert!(place.iter().any(|word| said.contains(word)), "neither where nor what is missing: {what}");
    if output.status.code() == Some(1) {
        assert!(said.contains(&*file.to_string_lossy()), "names no file: {what}");
    }
}

#[test]
fn a_damaged_method_trace_is_told_or_read_in_part() {
    endure("app.trace", &method_trace());
}

#[test]
fn a_damaged_capture_is_told_or_read_in_part() {
    let bytes = {
        let Some(device) = Device::attached() else { return };
        let binary = device.program(device.abi(), "tracebridge");
        device.run(&format!("{binary} record -t 1 -o {DIR}/short.dat sched"));
        let dir = adb::scratch();
        device.pull(&format!("{DIR}/short.dat"), &dir.path().join("short.dat"));
        device.run(&format!("rm {DIR}/short.dat"));
        fs::read(dir.path().join("short.dat")).expect("just pulled")
    };
    endure("short.dat", &bytes);
}
