//! `--compress`: `trace-cmd report` and the product's own reader read compressed captures, and a capture
//! stays whole where the disk has no room to compress it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::sys::signal::Signal;

use crate::capture;
use crate::recording::{Busy, events, record, reported, run_programs};
use crate::tracefs_fixture::{Knobs, Recorder, machine, wait_for_lost_events, wait_for_tracing};
use support::files::SmallDisk;
use support::{has_program, skip, tracebridge};

fn info(capture: &Path) -> serde_json::Value {
    let out = tracebridge().args(["info", "--json"]).arg(capture).run();
    // The status is 3 where a ring has overwritten events, which `info` counts.
    assert!(matches!(out.code(), Some(0 | 3)), "{out:?}");
    out.json()
}

#[test]
fn trace_cmd_reads_a_compressed_capture_too() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let recorder =
        Recorder::start(record(&machine, dir.path(), &["sched", "irq/*", "--compress"]), dir.path());
    wait_for_tracing(&machine.root);
    run_programs(500);
    recorder.signal(Signal::SIGINT);
    let out = recorder.finish();
    assert_eq!(out.code(), Some(0), "{out:?}");
    assert_eq!(before.changed(&machine.root), [""; 0]);
    let capture = dir.path().join("x.dat");
    let summary = out.json();
    let told = info(&capture);
    assert_eq!((&told["format"], &told["clock"]), (&"trace.dat v7 (zstd)".into(), &"boottime".into()));
    assert_eq!((told["events"].as_u64(), told["lost"].as_u64()), (Some(events(&summary)), Some(0)));
    assert_eq!(told["bytes"], summary["bytes"]);
    // A compressed capture has clock snapshots, as an uncompressed one has.
    assert!(told["snapshots"].as_u64() >= Some(2), "{told}");
    let pages: u64 = summary["cpus"].as_array().unwrap().iter().map(|c| c["bytes"].as_u64().unwrap()).sum();
    // The file has the formats of the events too, which weigh most where few events came.
    assert!(summary["bytes"].as_u64().unwrap() < pages, "{pages} bytes of pages: {summary}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only the capture is left");
    if reported(&capture).is_some() {
        let ours = capture::read(&capture);
        assert_eq!(ours.len() as u64, events(&summary));
        capture::assert_same_events(ours, capture::trace_cmd_report(&capture));
    }
    tracebridge().arg("convert").arg(&capture).arg("-o").arg(dir.path().join("y.pftrace")).run().exited(0);
}

#[test]
fn a_compressed_capture_counts_lost_events_too() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    // A stopped recorder does not read, so that its small buffer overruns.
    let args = ["sched", "irq/*", "raw_syscalls/*", "-b", "32", "--compress"];
    let recorder = Recorder::start(record(&machine, dir.path(), &args), dir.path());
    wait_for_tracing(&machine.root);
    recorder.stop();
    let busy = Busy::start();
    wait_for_lost_events(&machine.root);
    drop(busy);
    recorder.signal(Signal::SIGCONT);
    recorder.signal(Signal::SIGINT);
    let out = recorder.finish();
    assert_eq!(out.code(), Some(3), "{out:?}");
    let lost: u64 =
        out.json()["cpus"].as_array().unwrap().iter().map(|c| c["overrun"].as_u64().unwrap()).sum();
    assert!(lost > 0, "{out:?}");
    let told = tracebridge().args(["info", "--json"]).arg(dir.path().join("x.dat")).run();
    assert_eq!(told.code(), Some(3), "{told:?}");
    let told: serde_json::Value = told.json();
    assert_eq!(told["lost"].as_u64(), Some(lost), "{told}");
}

#[test]
fn an_empty_capture_can_be_compressed() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    // The recorder adds the event of new threads, unless it is asked for.
    let nothing = ["sched/sched_switch:prev_pid==-7", "task/task_newtask:pid==-7"];
    let args = [&nothing[..], &["--mode", "ring", "--compress", "-t", "0.2"]].concat();
    let out = record(&machine, dir.path(), &args).run();
    assert_eq!(out.code(), Some(0), "{out:?}");
    let capture = dir.path().join("x.dat");
    assert_eq!((info(&capture)["events"].as_u64(), events(&out.json())), (Some(0), 0));
    if has_program("trace-cmd") {
        assert_eq!(reported(&capture), Some(0));
    } else {
        skip("trace-cmd", "not installed");
    }
}

#[test]
fn without_room_to_compress_the_capture_stays_whole_with_a_note() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let _busy = Busy::start();
    let ring = ["sched", "irq/*", "raw_syscalls/*", "--mode", "ring", "-b", "256", "-t", "1.5"];
    // What lies on the disk, not the length: the room that is kept for names is a hole in the file. The
    // second recording may be larger or smaller than the one before it: processes come and go, and a loaded
    // machine fills less of the ring. Then the next disk is larger, or smaller.
    let mut spare_kib = 48;
    for _ in 0..10 {
        let out = record(&machine, dir.path(), &ring).run();
        assert_eq!(out.code(), Some(0), "{out:?}");
        let raw = fs::metadata(dir.path().join("x.dat")).unwrap().blocks() * 512;
        let Some(disk) = SmallDisk::mount(&format!("{}k", raw / 1024 + spare_kib)) else { return };
        let capture = disk.path().join("x.dat");
        let out = record(&machine, disk.path(), &ring).arg("--compress").run();
        if out.code() == Some(3) && out.json()["ended_by"] == "an error" {
            spare_kib += 64;
            continue;
        }
        assert_eq!(out.code(), Some(0), "{out:?}");
        assert_eq!(fs::read_dir(disk.path()).unwrap().count(), 1, "only the capture is left");
        let told = info(&capture);
        let notes = out.json()["notes"].to_string();
        assert_eq!(told["events"].as_u64(), Some(events(&out.json())));
        if told["format"] == "trace.dat v6" {
            assert!(notes.contains("not compressed, but whole") && notes.contains("bytes free"), "{notes}");
            return;
        }
        assert_eq!(out.json()["notes"].as_array().map(Vec::len), Some(0), "{notes}");
        spare_kib = (spare_kib - 40).max(8);
    }
    panic!("there was room to compress each of the captures, or for none of them");
}

#[test]
fn a_flight_recorders_dumps_can_be_compressed() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let run = |command: &str, args: &[&str]| {
        let mut tracebridge = tracebridge();
        tracebridge.arg(command).arg("--tracefs").arg(&machine.root).arg("--state-dir").arg(dir.path());
        tracebridge.args(args).run()
    };
    assert_eq!(run("start", &["sched", "-b", "256"]).status.code(), Some(0));
    for command in ["dump", "stop"] {
        run_programs(50);
        let capture = dir.path().join(format!("{command}.dat"));
        let out = run(command, &["--json", "--compress", "-o", capture.to_str().unwrap()]);
        assert_eq!(out.code(), Some(0), "{out:?}");
        let told = info(&capture);
        assert_eq!(told["format"], "trace.dat v7 (zstd)");
        assert_eq!(told["events"].as_u64(), Some(events(&out.json())));
    }
    assert_eq!(before.changed(&machine.root), [""; 0]);
}

#[test]
fn compressing_a_stream_is_refused_with_a_hint_at_zstd() {
    let out = tracebridge().args(["record", "sched", "--compress", "-o", "-"]).run().exited(2);
    assert!(out.stderr.contains("| zstd >"), "{out:?}");
}
