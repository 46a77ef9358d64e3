//! Traces are placed on the kernel's recording without a flag, as exactly as the summary states.

use std::path::{Path, PathBuf};

use serde_json::Value;

use support::{Command, remove_instance_at_end, run_id, skip, tempdir, tracebridge};

use crate::runtime::{Kind, Runtime, WRITERS, Writer, runtime};

/// The farthest that a place may be off for the state of being known exactly, ns.
const EXACT_NS: u64 = 20_000;

/// Mounts tracefs where it is not; `None`, with a message, where there is none.
fn instances() -> Option<PathBuf> {
    let root = Path::new("/sys/kernel/tracing");
    if !root.join("instances").exists() {
        let _ = Command::new("mount").args(["-t", "tracefs", "tracefs"]).arg(root).run();
    }
    let instances = root.join("instances");
    if instances.exists() && nix::unistd::geteuid().is_root() {
        return Some(instances);
    }
    skip("tracefs", "no tracefs to be had: needs root and a kernel with it");
    None
}

/// Records this machine while the runtime runs a program, and returns the recording.
fn recorded(art: &Runtime, writer: Writer, seed: u64, clock: &str, trace: &Path) -> Option<PathBuf> {
    let name = format!("{}-art", run_id());
    let instance = instances()?.join(&name);
    remove_instance_at_end(&instance);
    let recording = trace.with_extension("dat");
    let mut wrap = tracebridge();
    wrap.args(["wrap", "sched", "irq", "--clock", clock, "--instance", &name]);
    wrap.arg("--state-dir").arg(trace.parent().unwrap()).arg("-o").arg(&recording).arg("--");
    wrap.env("ART_TRACE_MARKER", instance.join("trace_marker"));
    wrap.args(art.command(writer, seed, trace)).run().exited(0);
    Some(recording)
}

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
        let Some(recording) = recorded(art, writer, 5 + n as u64, clocks[n % 4], &trace) else { return };
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
        // ART 11 leaves threads that have ended out of its list now and then, which counts as damage.
        let is_known = ["1 added", "in no list"].iter().any(|known| added.said().contains(known));
        assert!(is_known, "{writer:?}: {added:?}");
    }
}
