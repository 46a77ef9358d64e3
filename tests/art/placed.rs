//! Traces are placed on the kernel's recording without a flag, as exactly as the summary states.

use serde_json::Value;

use support::{Command, tempdir, tracebridge};

use crate::recorded::recorded;
use crate::runtime::{Kind, WRITERS, runtime};

/// The farthest that a place may be off for the state of being known exactly, ns.
const EXACT_NS: u64 = 20_000;

/// CLOCK_BOOTTIME less CLOCK_MONOTONIC, ns: how long this machine has been suspended.
fn suspended_ns() -> i64 {
    use nix::time::{ClockId, clock_gettime};
    let ns = |id| clock_gettime(id).map(|t| t.tv_sec() * 1_000_000_000 + t.tv_nsec()).unwrap();
    let apart = ns(ClockId::CLOCK_BOOTTIME) - ns(ClockId::CLOCK_MONOTONIC);
    if apart < 1_000_000 { 0 } else { apart }
}

#[test]
fn traces_of_each_writer_are_placed_as_exactly_as_is_stated() {
    let Some(art) = runtime() else { return };
    let dir = tempdir();
    let trace = dir.path().join("calls.trace");
    let clocks = ["boot", "mono", "global", "boot"];
    let placed = WRITERS.into_iter().filter(|writer| writer.clock != "threadcpu");
    for (n, writer) in placed.enumerate() {
        let recording = trace.with_extension("dat");
        let command = art.command(writer, 5 + n as u64, &trace);
        let Some(_) = recorded("placed", clocks[n % 4], &command, &recording) else { return };
        let out = dir.path().join("out.json");
        let merged = tracebridge().args(["merge", "--json", "-o"]).arg(out).arg(&recording).arg(&trace).run();
        let merged = merged.exited_with_one_of(&[0, 3]).json();
        let input = &merged["outcome"]["inputs"][1];
        if writer.kind == Kind::Samples && input["verdict"] == "assumed" {
            // The sampler's switches are missing on kernels that leave out those of an idle CPU.
            continue;
        }
        let truth = if merged["outcome"]["clock"] == "monotonic" { 0 } else { suspended_ns() };
        let error_ns = input["error_ns"].as_u64().unwrap_or_else(|| panic!("{writer:?}: {input:#}"));
        let apart = input["offset_ns"].as_i64().unwrap().abs_diff(truth);
        assert!(apart <= error_ns && error_ns <= EXACT_NS, "{writer:?}, {apart} ns off: {input:#}");
        // Some kernels do not record the switches of an idle CPU: a short run then proves nothing.
        assert!(input["verdict"] != "assumed" && input["clock"] == "monotonic", "{input:#}");
        assert!(threads_are_matched(&merged), "{writer:?}: {merged:#}");
    }
}

/// Whether no thread of the program is left without its kernel thread.
fn threads_are_matched(merged: &Value) -> bool {
    let notes = merged["outcome"]["report"]["notes"].as_array().unwrap();
    !notes
        .iter()
        .any(|note| ["thread worker-", "thread main"].iter().any(|t| note.as_str().unwrap().contains(t)))
}

#[test]
fn the_page_and_the_dataset_take_traces_of_each_writer() {
    let Some(art) = runtime() else { return };
    let dir = tempdir();
    for (n, writer) in WRITERS.into_iter().enumerate() {
        let trace = dir.path().join(format!("calls-{n}.trace"));
        let words = art.command(writer, 3, &trace);
        Command::new(&words[0]).args(&words[1..]).run().exited(0);
        let page = dir.path().join("page.html");
        tracebridge().args(["report", "-o"]).arg(&page).arg(&trace).run().exited_with_one_of(&[0, 3]);
        let mut add = tracebridge();
        add.args(["dataset", "add"]).arg(dir.path().join("set")).arg(&trace);
        let added = add.run().exited_with_one_of(&[0, 3]);
        assert!(added.said().contains("1 added"), "{writer:?}: {added:?}");
    }
}
