//! Other programs at the same trace buffer: a second recorder, a plain reader of its pipes, and a tracer that
//! takes the buffer over.

use std::fs;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use nix::libc;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::recording::{Busy, events, record};
use crate::tracefs_fixture::{Knobs, Recorder, machine, wait_for_tracing, written};
use support::{tracebridge, until};

/// The answer of `info` about a capture, and its exit status.
fn info(capture: &Path) -> (Value, Option<i32>) {
    let out = tracebridge().args(["info", "--json"]).arg(capture).run();
    (out.json(), out.code())
}

#[test]
fn two_recorders_with_different_state_directories_exclude_each_other() {
    let Some(machine) = machine() else { return };
    let first_dir = support::tempdir();
    let second_dir = support::tempdir();
    let first = record(&machine, first_dir.path(), &["sched", "-t", "600"]);
    let first = Recorder::start(first, first_dir.path());
    wait_for_tracing(&machine.root);
    let second = record(&machine, second_dir.path(), &["sched", "-t", "0.1"]).run();
    let said = &second.stderr;
    assert_eq!(second.code(), Some(1), "{second:?}");
    assert!(said.contains(&format!("another recorder (pid {})", first.id())), "{said}");
    record(&machine, second_dir.path(), &["sched", "-t", "0.1", "--force"]).run().exited(0);
    assert_eq!(first.finish().json()["ended_by"], "signal SIGTERM");
}

#[test]
fn what_another_reader_takes_is_counted_and_told_and_the_reader_is_named() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let before = Knobs::read(&machine.root);
    let open = |cpu: fs::DirEntry| {
        let mut options = fs::File::options();
        options.read(true).custom_flags(libc::O_NONBLOCK).open(cpu.path().join("trace_pipe_raw")).ok()
    };
    let cpus = fs::read_dir(machine.root.join("per_cpu")).unwrap().flatten();
    let mut pipes: Vec<fs::File> = cpus.filter_map(open).collect();
    let busy = Busy::start();
    let recorder =
        Recorder::start(record(&machine, dir.path(), &["sched", "irq/*", "-b", "512"]), dir.path());
    wait_for_tracing(&machine.root);
    let mut page = vec![0; 4096];
    let mut pages = 0;
    until("pages for the other reader", || {
        pages +=
            pipes.iter_mut().map(|pipe| pipe.read(&mut page)).filter(|len| matches!(len, Ok(1..))).count();
        pages >= 50
    });
    recorder.signal(Signal::SIGINT);
    let out = recorder.finish();
    drop(busy);
    assert_eq!(out.code(), Some(3), "{out:?}");
    let told = out.json();
    let taken: u64 = told["cpus"].as_array().unwrap().iter().map(|cpu| cpu["taken"].as_u64().unwrap()).sum();
    assert!(taken > 0, "{told}");
    let reader = format!("(pid {}) reads this trace buffer too", std::process::id());
    let notes = told["notes"].to_string();
    assert!(notes.contains(&reader) && notes.contains("--instance"), "{notes}");
    let (report, status) = info(&dir.path().join("x.dat"));
    // The summary counts what the file holds.
    assert_eq!(report["events"].as_u64(), Some(events(&told)), "{report}");
    assert_eq!((report["lost"].as_u64() >= Some(taken), status), (true, Some(3)), "{report}");
    assert_eq!(before.changed(&machine.root), [""; 0]);
}

#[test]
fn a_tracer_that_takes_the_buffer_over_is_noticed_and_keeps_its_settings() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let write = |knob: &str, value: &str| fs::write(machine.root.join(knob), value).unwrap();
    let found_clock = fs::read_to_string(machine.root.join("trace_clock")).unwrap();
    // Another one than the recorder's, which has to change it.
    write("trace_clock", "local");
    let before = Knobs::read(&machine.root);
    let recorder =
        Recorder::start(record(&machine, dir.path(), &["sched", "-b", "512", "-t", "600"]), dir.path());
    wait_for_tracing(&machine.root);
    {
        let _busy = Busy::start();
        std::thread::sleep(Duration::from_millis(1200));
    }
    // What Perfetto's tracebox does to a buffer that is in use. The recorder looks when all of it is done.
    recorder.stop();
    write("tracing_on", "0");
    write("trace", "");
    write("buffer_size_kb", "300");
    write("trace_clock", "global");
    write("tracing_on", "1");
    recorder.signal(Signal::SIGCONT);
    let out = recorder.finish();
    assert_eq!(out.code(), Some(3), "{out:?}");
    let told = out.json();
    assert_eq!(told["ended_by"], "another program", "{told}");
    let changes = told["taken_over"]["changes"].to_string();
    assert!(changes.contains("buffer_size_kb from 51") && changes.contains("trace_clock from"), "{told}");
    let notes = told["notes"].to_string();
    assert!(
        notes.contains("left as the other program has set them: ") && notes.contains("trace_clock"),
        "{told}"
    );
    assert!(told["taken_over"]["seconds"].as_f64() > Some(1.0), "{told}");
    let (report, _) = info(&dir.path().join("x.dat"));
    assert_eq!(report["events"].as_u64(), Some(events(&told)), "{report}");
    // What the other program has set is left to it; all else is as before.
    let kept = |knob: &str| fs::read_to_string(machine.root.join(knob)).unwrap();
    assert!(kept("buffer_size_kb").starts_with('3'), "{}", kept("buffer_size_kb"));
    assert!(kept("trace_clock").contains("[global]"), "{}", kept("trace_clock"));
    let changed = before.changed(&machine.root).join("\n");
    assert!(!changed.contains("sched_switch"), "{changed}");
    before.put_back(&machine.root);
    assert_eq!(before.changed(&machine.root), [""; 0]);
    write("trace_clock", written(&found_clock));
    tracebridge().arg("restore").arg("--state-dir").arg(dir.path()).run().exited(0);
}
