//! The layer for `tracing-subscriber`: spans of a real program, read back from the merged trace.

use std::collections::BTreeMap;
use std::path::Path;

use crate::tracefs_fixture::machine;
use crate::wrap::command;
use support::tracebridge;

/// Thread id and text of each marker of a trace, in order of time.
fn markers(trace: &Path) -> Vec<(u32, String)> {
    let out = tracebridge().args(["convert", "--format", "systrace", "-o", "-"]).arg(trace).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let marker = |line: &str| {
        let (head, marker) = line.split_once(": tracing_mark_write: ")?;
        let tid = head.split_once(" (")?.0.rsplit_once('-')?.1.trim().parse().ok()?;
        Some((tid, marker.trim().to_owned()))
    };
    text.lines().filter_map(marker).collect()
}

#[test]
fn spans_come_out_balanced_in_the_merged_trace() {
    let program = support::example("tracing_spans");
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let (capture, trace) = (dir.path().join("x.dat"), dir.path().join("x.pftrace"));
    let mut wrap = command(&machine, dir.path(), "wrap");
    wrap.env("TRACEBRIDGE_TRACEFS", &machine.root).env("TRACEBRIDGE_TAGS", "app");
    let out = wrap.arg("-o").arg(&capture).args(["sched", "--"]).arg(program).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let out = tracebridge().arg("merge").arg(&capture).arg("-o").arg(&trace).output().unwrap();
    assert!(out.status.success(), "{out:?}");

    let all = markers(&trace);
    // `wrap` writes markers of its own, around the program.
    let pid =
        all.iter().find_map(|(_, text)| Some(text.strip_suffix("|done")?.strip_prefix("I|")?.to_owned()));
    let pid = pid.unwrap_or_else(|| panic!("no end in {all:?}"));
    let own: Vec<(u32, Vec<&str>)> = all
        .iter()
        .map(|(tid, text)| (*tid, text.split('|').collect::<Vec<_>>()))
        .filter(|(_, f)| f[1] == pid)
        .collect();
    let (mut stacks, mut asyncs, mut slices) = (
        BTreeMap::<u32, Vec<&str>>::new(),
        BTreeMap::<(&str, &str), i32>::new(),
        BTreeMap::<&str, u32>::new(),
    );
    let mut counters = Vec::new();
    for (tid, fields) in &own {
        match fields[..] {
            ["B", _, name] => {
                stacks.entry(*tid).or_default().push(name);
                *slices.entry(name).or_default() += 1;
            }
            ["E", _] => assert!(stacks.entry(*tid).or_default().pop().is_some(), "{own:?}"),
            ["S", _, name, cookie] => *asyncs.entry((name, cookie)).or_default() += 1,
            ["F", _, name, cookie] => {
                let open = asyncs.entry((name, cookie)).or_default();
                *open -= 1;
                assert_eq!(*open, 0, "{name} ends without a begin: {own:?}");
            }
            ["C", _, name, value] => counters.push((name, value)),
            ["I", _, _] => {}
            _ => panic!("{fields:?}"),
        }
    }
    assert!(stacks.values().all(Vec::is_empty), "open slices: {stacks:?}");
    assert!(asyncs.values().all(|open| *open == 0), "open async slices: {asyncs:?}");
    for (name, count) in [("nested(depth=3)", 1), ("nested(depth=0)", 1), ("panics", 1)] {
        assert_eq!(slices.get(name), Some(&count), "{slices:?}");
    }
    // Polls, and the drop of the future inside of its span.
    for name in ["fetch(id=0)", "fetch(id=1)", "fetch(id=9)", "connect"] {
        assert!(slices.get(name).is_some_and(|count| *count >= 3), "{name}: {slices:?}");
    }
    for name in ["fetch(id=0)", "fetch(id=1)", "fetch(id=9)"] {
        assert!(asyncs.keys().any(|(async_name, _)| *async_name == name), "{name}: {asyncs:?}");
    }
    assert_eq!(counters, [("bytes", "0"), ("bytes", "100")]);
}
