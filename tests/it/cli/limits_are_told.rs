//! Readers leave out parts of which there are too many, and every command that reads the file tells it.

use std::fs;
use std::path::Path;

use super::many_events::{bytes, number};
use support::run_in;

/// Writes a Perfetto trace of these packets.
fn write_trace(path: &Path, packets: &[Vec<u8>]) {
    let mut trace = Vec::new();
    packets.iter().for_each(|packet| bytes(&mut trace, 1, packet));
    fs::write(path, trace).unwrap();
}

/// A message that `fill` fills.
fn message(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    fill(&mut out);
    out
}

/// A packet with a bundle of CPU 0 that holds `fields`.
fn bundle(fields: &[u8]) -> Vec<u8> {
    let bundle = message(|bundle| {
        number(bundle, 1, 0);
        bundle.extend_from_slice(fields);
    });
    message(|packet| bytes(packet, 1, &bundle))
}

/// Two switches, of which the second one is to the thread whose name is the last of so many.
fn switches(names: u64) -> Vec<u8> {
    let sched = message(|sched| {
        for name in 0..names {
            bytes(sched, 5, format!("t{name}").as_bytes());
        }
        bytes(sched, 1, &[100, 100]);
        bytes(sched, 2, &[1, 1]);
        bytes(sched, 3, &[10, 11]);
        bytes(sched, 4, &[120, 120]);
        let index = names - 1;
        bytes(sched, 6, &[0, index as u8 | 0x80, (index >> 7) as u8 | 0x80, (index >> 14) as u8]);
    });
    message(|bundle| bytes(bundle, 4, &sched))
}

#[test]
fn names_that_a_bundle_has_too_many_of_are_told_by_every_command() {
    let dir = support::tempdir();
    let dir = dir.path();
    let most = 65_536;
    write_trace(&dir.join("most.pftrace"), &[bundle(&switches(most))]);
    write_trace(&dir.join("more.pftrace"), &[bundle(&switches(most + 3))]);
    let commands: [&[&str]; 6] = [
        &["info"],
        &["convert", "-o", "x.txt"],
        &["convert", "-o", "x.json"],
        // Whole packets are copied.
        &["convert", "-o", "copy.pftrace"],
        &["merge", "-o", "merged.pftrace"],
        &["dataset", "add", "set"],
    ];
    for command in commands {
        let of = |file| [command, &[file]].concat();
        let said = run_in(dir, &of("most.pftrace")).exited(0).said();
        assert!(!said.contains("names of threads"), "{command:?}: {said}");
        let said = run_in(dir, &of("more.pftrace")).exited(3).said();
        assert!(said.contains("3 names of threads are left out"), "{command:?}: {said}");
        if command.contains(&"x.txt") {
            let text = fs::read_to_string(dir.join("x.txt")).unwrap();
            assert!(
                text.contains("next_comm=t0 next_pid=10") && text.contains("next_comm= next_pid=11"),
                "{text}"
            );
        }
    }
}
