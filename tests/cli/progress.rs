//! The bar that shows how far a command is.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

use crate::art_writer::{ArtTrace, Method};
use crate::support::{has_program, skip, tracebridge};

/// 100 MB of records of 14 bytes: even `info` takes longer than a bar waits.
const RECORDS: u32 = 100_000_000 / 14;

/// A method trace in which two threads call one method after the other.
fn write_large_trace(path: &Path) {
    let head = ArtTrace {
        elapsed_us: 100_000_000,
        threads: vec![(1, "main".into()), (2, "worker".into())],
        methods: ["run", "load", "draw"].map(|name| Method::new("com.example.Work", name)).to_vec(),
        ..ArtTrace::default()
    };
    let mut out = BufWriter::new(File::create(path).unwrap());
    out.write_all(&head.to_bytes()).unwrap();
    for n in 0..RECORDS {
        let (call, exit) = (n / 4, n / 2 % 2);
        let thread = 1 + n as u16 % 2;
        out.write_all(&thread.to_le_bytes()).unwrap();
        out.write_all(&(call % 3 * 4 + exit).to_le_bytes()).unwrap();
        out.write_all(&(n / 8).to_le_bytes()).unwrap();
        out.write_all(&(n / 4).to_le_bytes()).unwrap();
    }
    out.flush().unwrap();
}

#[test]
fn a_terminal_shows_how_far_a_long_command_is() {
    if !has_program("script") {
        return skip("terminal", "the program script, which gives a command a terminal, is not installed");
    }
    let dir = tempfile::tempdir().unwrap();
    write_large_trace(&dir.path().join("large.trace"));
    let commands: [&[&str]; 5] = [
        &["profile", "large.trace"],
        &["info", "large.trace"],
        &["convert", "large.trace", "--format", "perfetto", "-o", "/dev/null"],
        &["merge", "large.trace", "--format", "perfetto", "-o", "/dev/null"],
        &["dmtracedump", "large.trace"],
    ];
    for args in commands {
        let quiet = tracebridge().current_dir(dir.path()).args(args).output().unwrap();
        let said = String::from_utf8_lossy(&quiet.stderr);
        assert!(
            quiet.status.success() && !said.contains('\r') && !said.contains(" left"),
            "{args:?}: {said}"
        );
        let line =
            format!("stty cols 110 rows 30; exec {} {}", env!("CARGO_BIN_EXE_tracebridge"), args.join(" "));
        let mut terminal = Command::new("script");
        terminal.current_dir(dir.path()).args(["-qec", &line, "/dev/null"]);
        let shown = terminal.env("TERM", "xterm").env_remove("NO_COLOR").output().unwrap();
        let shown = String::from_utf8_lossy(&shown.stdout);
        let bar = shown.split(['\r', '\n']).find(|line| line.contains(" % "));
        let bar = bar.unwrap_or_else(|| panic!("{args:?} shows no bar: {shown}"));
        assert!(bar.contains("large.trace: ") && bar.contains("B/s, ") && bar.contains(" left"), "{bar}");
        let percents = shown.split(['\r', '\n']).filter_map(|line| {
            let before = line.split_once(" % ")?.0;
            before.rsplit_once(' ')?.1.parse::<u32>().ok()
        });
        let percents: Vec<u32> = percents.collect();
        assert!(percents.iter().all(|percent| *percent <= 100), "{args:?}: {percents:?}");
        assert!(percents.iter().any(|percent| (1..100).contains(percent)), "{args:?}: {percents:?}");
    }
}
