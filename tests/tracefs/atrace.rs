//! The drop-in atrace on this machine, with the arguments that its callers give it, and its text beside the
//! kernel's own `trace` file and captures of real phones.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use support::{Command, corpus, tracebridge};
use tracebridge::formats::{Event, EventType, Order, Sink, ftrace_text};

use crate::recording::{Busy, run_programs};
use crate::tracefs_fixture::{Knobs, Machine, Recorder, machine, wait_for_tracing};

/// atrace on this machine's tracefs, with its saved settings in `state`.
pub fn atrace(machine: &Machine, state: &Path, args: &[&str]) -> Command {
    atrace_with(machine, state, &[], args)
}

/// As [`atrace`], with further flags before the word `atrace`.
pub fn atrace_with(machine: &Machine, state: &Path, flags: &[&Path], args: &[&str]) -> Command {
    let mut command = tracebridge();
    command.arg("--tracefs").arg(&machine.root).arg("--state-dir").arg(state);
    command.args(flags).arg("atrace").args(args);
    command
}

/// Counts the events of each name that the product's own reader finds in a text.
#[derive(Default)]
struct Counts(std::collections::BTreeMap<String, usize>);

impl Sink for Counts {
    fn event(&mut self, _: &Event<'_>, kind: &EventType) -> std::io::Result<()> {
        *self.0.entry(kind.name.clone()).or_default() += 1;
        Ok(())
    }
}

fn counts(text: &str) -> Counts {
    let mut counts = Counts::default();
    let report = ftrace_text::read(text.as_bytes(), Order::Any, &mut counts).unwrap();
    assert_eq!(report.damage, [], "our own reader finds our own text sound");
    counts
}

#[test]
fn a_trace_has_the_form_that_callers_expect_and_leaves_no_setting_changed() {
    let Some(machine) = machine() else { return };
    let before = Knobs::read(&machine.root);
    let state = support::tempdir();
    let _busy = Busy::start();
    let args = ["-t", "1", "-b", "4096", "sched", "nonsense", "gfx"];
    let done = atrace(&machine, state.path(), &args).run().exited(0);
    let text = &done.stdout;
    let messages = &done.stderr;
    assert!(messages.contains("error: unknown tracing category \"nonsense\""), "{messages}");
    assert!(text.starts_with("capturing trace... done\nTRACE:\n# tracer: nop\n"), "{}", &text[..200]);
    let sync = text.find("trace_event_clock_sync: parent_ts=").expect("clock sync");
    assert!(text[sync..].contains("trace_event_clock_sync: realtime_ts="));
    let counts = counts(text);
    assert!(counts.0["sched_switch"] > 100 && counts.0["print"] >= 2, "{:?}", counts.0);
    assert_eq!(before.changed(&machine.root), Vec::<String>::new());
}

#[test]
fn a_compressed_trace_in_a_file_holds_the_same_text() {
    let Some(machine) = machine() else { return };
    let state = support::tempdir();
    let file = state.path().join("out");
    let _busy = Busy::start();
    let done =
        atrace(&machine, state.path(), &["-zt1", "-o", file.to_str().unwrap(), "sched"]).run().exited(0);
    assert_eq!(done.stdout, "capturing trace... done\n");
    let bytes = fs::read(&file).unwrap();
    let zlib = bytes.strip_prefix(b"TRACE:\n").expect("the plain line comes first");
    let mut text = String::new();
    flate2::read::ZlibDecoder::new(zlib).read_to_string(&mut text).unwrap();
    assert!(text.starts_with("# tracer: nop\n") && counts(&text).0["sched_switch"] > 100);
}

#[test]
fn a_ring_is_started_dumped_and_stopped_by_three_processes() {
    let Some(machine) = machine() else { return };
    let before = Knobs::read(&machine.root);
    let state = support::tempdir();
    let run = |args: &[&str]| atrace(&machine, state.path(), args).run();
    let done = run(&["--async_start", "-b", "256", "sched"]).exited(0);
    assert_eq!(done.stdout, "capturing trace...");
    // A second start changes the settings of the first, as AOSP's atrace does.
    run(&["--async_start", "-b", "512", "sched"]).exited(0);
    // The kernel rounds the size up to whole pages.
    let kb = fs::read_to_string(machine.root.join("buffer_size_kb")).unwrap().trim().parse::<u32>().unwrap();
    assert!((512..600).contains(&kb), "{kb}");
    assert_eq!(fs::read_to_string(machine.root.join("options/overwrite")).unwrap(), "1\n");
    assert!(run(&["--async_dump"]).stdout.starts_with(" done\nTRACE:\n# tracer"));
    let done = run(&["--async_stop"]).exited(0);
    assert!(counts(&done.stdout).0["sched_switch"] > 0);
    assert_eq!(before.changed(&machine.root), Vec::<String>::new());
}

#[test]
fn async_stop_ends_a_trace_that_another_atrace_started() {
    let Some(machine) = machine() else { return };
    let state = support::tempdir();
    let write = |knob: &str, value: &str| fs::write(machine.root.join(knob), value).unwrap();
    let size = fs::read_to_string(machine.root.join("buffer_size_kb")).unwrap();
    write("events/sched/sched_switch/enable", "1");
    let done = atrace(&machine, state.path(), &["--async_stop"]).run().exited(0);
    assert!(done.stdout.starts_with(" done\nTRACE:\n"));
    assert_eq!(fs::read_to_string(machine.root.join("events/sched/sched_switch/enable")).unwrap(), "0\n");
    write("tracing_on", "1");
    write("buffer_size_kb", size.trim());
}

#[test]
fn a_stream_shows_events_as_they_happen_until_a_signal() {
    let Some(machine) = machine() else { return };
    let before = Knobs::read(&machine.root);
    let state = support::tempdir();
    let busy = Busy::start();
    let command = atrace(&machine, state.path(), &["--stream", "sched"]);
    let mut recorder = Recorder::start(command, state.path());
    let stdout = recorder.collect_stdout();
    stdout.line_with("sched_switch: prev_comm=");
    drop(busy);
    recorder.signal(Signal::SIGINT);
    stdout.to_end();
    assert_eq!(recorder.wait().unwrap().code(), Some(1), "AOSP's atrace has this status too after a signal");
    assert_eq!(before.changed(&machine.root), Vec::<String>::new());
}

#[test]
fn a_failure_changes_the_exit_status() {
    let Some(machine) = machine() else { return };
    let before = Knobs::read(&machine.root);
    let state = support::tempdir();
    let done = atrace(&machine, state.path(), &["-t", "0", "-o", "/nonexistent/x", "sched"]).run().exited(1);
    assert!(done.stderr.contains("/nonexistent/x"));
    assert_eq!(before.changed(&machine.root), Vec::<String>::new());
    let mut nowhere = tracebridge();
    nowhere.arg("--tracefs").arg(state.path()).args(["atrace", "sched"]);
    let done = nowhere.run();
    assert_eq!(done.code(), Some(255), "AOSP's exit(-1)");
}

#[test]
fn the_binary_acts_as_atrace_if_that_is_its_name() {
    let state = support::tempdir();
    let link = state.path().join("atrace");
    std::os::unix::fs::symlink(support::binary(), &link).unwrap();
    // atrace's own options: nothing of the command line of tracebridge is known under this name.
    for (args, expected) in [(&["--help"][..], 0), (&["record", "--tracefs"], 255)] {
        let mut command = Command::new(&link);
        command.args(args);
        let done = command.run();
        let said = &done.stderr;
        assert_eq!(done.code(), Some(expected), "{said}");
        assert!(said.contains("usage: atrace [options]") || said.contains("No trace folder found"), "{said}");
    }
}

#[test]
fn categories_from_a_file_set_the_tags_and_every_property_is_put_back() {
    let Some(machine) = machine() else { return };
    let state = support::tempdir();
    // Stand-ins for Android's programs, with one file per property and a log of the properties that were set.
    let script = r#"mkdir bin && printf '#!/bin/sh\ncat "%s/$1" 2>/dev/null; echo\n' "$PWD" >bin/getprop &&
        printf '#!/bin/sh\nprintf %%s "$2" >"%s/$1"; echo "$1=$2" >>"%s/log"\n' "$PWD" "$PWD" >bin/setprop &&
        chmod 755 bin/* && printf 'gfx view\nam\n' >categories"#;
    assert!(Command::new("sh").args(["-c", script]).current_dir(state.path()).status().unwrap().success());
    let file = state.path().join("categories");
    let flags = ["--android-root".as_ref(), state.path()];
    let args = ["-t", "0", "-f", file.to_str().unwrap(), "-a", "com.a,com.b"];
    atrace_with(&machine, state.path(), &flags, &args).run().exited(0);
    let log = fs::read_to_string(state.path().join("log")).unwrap().replace("debug.atrace.", "");
    assert!(
        log.starts_with("user_initiated=1\napp_0=com.a\napp_1=com.b\napp_number=2\ntags.enableflags=0x4a\n"),
        "{log}"
    );
    assert!(
        log.ends_with("app_number=\ntags.enableflags=\napp_0=\napp_1=\nprefer_sdk=\nuser_initiated=\n"),
        "{log}"
    );
}

#[test]
fn a_signal_ends_the_wait_and_the_trace_early_unless_it_is_ignored() {
    let Some(machine) = machine() else { return };
    let before = Knobs::read(&machine.root);
    let state = support::tempdir();
    let interrupted = |args: &[&str], wait: &dyn Fn(&Recorder)| {
        let started = Instant::now();
        let recorder = Recorder::start(atrace(&machine, state.path(), args), state.path());
        wait(&recorder);
        recorder.signal(Signal::SIGINT);
        let out = recorder.finish();
        assert_eq!(before.changed(&machine.root), [""; 0], "{args:?}");
        (out.code(), out.stdout.clone(), started.elapsed())
    };
    let until_it_records = |_: &Recorder| wait_for_tracing(&machine.root);
    let (status, text, _) = interrupted(&["-t", "6000", "sched"], &until_it_records);
    assert_eq!((status, text.as_str()), (Some(1), "capturing trace...\ntrace aborted.\n"));
    let (status, text, time) = interrupted(&["-n", "-t", "1", "sched"], &until_it_records);
    assert!(status == Some(0) && text.starts_with("capturing trace... done\nTRACE:\n"), "{text:.100}");
    assert!(time >= Duration::from_secs(1));
    // The signal comes while atrace waits before the trace begins.
    let until_it_waits = |recorder: &Recorder| recorder.wait_until_it_heeds_signals();
    let (status, text, _) = interrupted(&["-s", "6000", "-t", "1", "sched"], &until_it_waits);
    assert_eq!((status, text.as_str()), (Some(1), "\ntrace aborted.\n"));
    let started = Instant::now();
    atrace(&machine, state.path(), &["-s", "1", "-t", "0", "sched"]).run().exited(0);
    assert!(started.elapsed() >= Duration::from_secs(1));
}

#[test]
fn events_and_groups_are_accepted_as_categories_too() {
    let Some(machine) = machine() else { return };
    let state = support::tempdir();
    let _busy = Busy::start();
    let text = atrace(&machine, state.path(), &["-t", "1", "sched/sched_switch", "task/*"]).run().stdout;
    let counts = counts(&text).0;
    assert!(counts["sched_switch"] > 50 && counts["task_newtask"] > 10, "{counts:?}");
    assert!(!counts.contains_key("sched_waking"), "{counts:?}");
}

#[test]
fn the_settings_are_put_back_when_the_reader_has_closed_the_pipe() {
    let Some(machine) = machine() else { return };
    let before = Knobs::read(&machine.root);
    let state = support::tempdir();
    let busy = Busy::start();
    for args in [&["-t", "1", "sched"][..], &["-z", "-t", "1", "sched"], &["--stream", "sched"]] {
        let mut command = atrace(&machine, state.path(), args);
        command.stderr(Stdio::piped());
        let mut recorder = Recorder::start(command, state.path());
        drop(recorder.stdout.take());
        let out = recorder.finish();
        assert_eq!(out.code(), Some(1), "{args:?}: {out:?}");
        assert!(!out.stderr.contains("panicked"), "{args:?}: {out:?}");
        assert_eq!(before.changed(&machine.root), [""; 0], "{args:?}");
    }
    drop(busy);
    assert!(fs::read_dir(state.path()).unwrap().next().is_none(), "no saved settings are left");
}

/// Collects the events that the product's own reader finds in a text, one line per event.
#[derive(Default)]
struct Events(Vec<String>);

impl Sink for Events {
    fn event(&mut self, e: &Event<'_>, kind: &EventType) -> std::io::Result<()> {
        let Event { ts, cpu, tid, flags, preempt_count, comm, tgid, payload, .. } = e;
        let comm = comm.map(String::from_utf8_lossy);
        self.0.push(format!(
            "{ts} {cpu} {tid} {tgid:?} {comm:?} {flags} {preempt_count} {} {payload:?}",
            kind.name
        ));
        Ok(())
    }
}

fn events_of_text(text: &str) -> Vec<String> {
    let mut events = Events::default();
    let report = ftrace_text::read(text.as_bytes(), Order::Any, &mut events).unwrap();
    assert_eq!(report.damage, [], "our own reader finds it sound");
    events.0
}

#[test]
fn our_text_and_the_trace_file_hold_the_same_events() {
    let Some(machine) = machine() else { return };
    let state = support::tempdir();
    let file = state.path().join("out");
    let start = ["--async_start", "-b", "4096", "sched", "irq", "workq"];
    assert!(atrace(&machine, state.path(), &start).stdout(Stdio::null()).status().unwrap().success());
    run_programs(100);
    // Neither the buffer nor the names that the kernel remembers change from here on, so that both texts hold
    // the same. `trace` is read before the dump, because the dump empties the buffer.
    fs::write(machine.root.join("tracing_on"), "0").unwrap();
    fs::write(machine.root.join("events/enable"), "0").unwrap();
    let by_hand = fs::read_to_string(machine.root.join("trace")).unwrap();
    let done = atrace(&machine, state.path(), &["--async_dump", "-o", file.to_str().unwrap()]).run();
    assert!(done.status.success(), "{done:?}");
    let ours = fs::read_to_string(&file).unwrap();
    let stop = atrace(&machine, state.path(), &["--async_stop"]).stdout(Stdio::null()).status().unwrap();
    assert!(stop.success());
    assert_eq!(ours.strip_prefix("TRACE:\n").unwrap(), by_hand);
    let ours = events_of_text(&ours);
    let by_hand = events_of_text(&by_hand);
    assert!(ours.len() > 500, "{} events", ours.len());
    assert_eq!(ours, by_hand);
}

/// Whether a line has atrace's columns: task and pid, process, CPU, four flags (five since Linux 5.12),
/// seconds with µs.
fn has_the_columns(line: &str) -> Option<()> {
    let digits = |text: &str| (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then_some(());
    let (task, rest) = line.split_once(" (")?;
    digits(task.trim_end().rsplit_once('-')?.1)?;
    let (process, rest) = rest.split_once(") [")?;
    // An unknown process is five dashes, or seven where the kernel's column is wider.
    digits(process.trim()).or((process.len() >= 5 && process.bytes().all(|b| b == b'-')).then_some(()))?;
    let (cpu, rest) = rest.split_once("] ")?;
    digits(cpu).filter(|()| cpu.len() == 3)?;
    let (flags, rest) = rest.split_once(' ')?;
    let (seconds, micros) = rest.trim_start().split_once(": ")?.0.split_once('.')?;
    digits(seconds).and(digits(micros))?;
    ((4..=5).contains(&flags.len()) && micros.len() == 6).then_some(())
}

/// The lines of a text that are neither comments nor empty.
fn event_lines(text: &str) -> Vec<&str> {
    text.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty()).collect()
}

/// Texts of the corpus with a column for the process, which AOSP's atrace recorded on phones.
const PHONES: [&str; 6] = [
    "catapult-project__catapult__compressed_atrace_data.txt",
    "catapult-project__catapult__decompressed_atrace_data.txt",
    "catapult-project__catapult__atrace_missing_tgids",
    "eclipse-tracecompass-incubator__org.eclipse.tracecompass.incubator__atrace-test",
    "google__perfetto__cpu_frequency_limits.systrace",
    "google__perfetto__sched_blocked_systrace.systrace",
];

#[test]
fn event_lines_of_real_phones_have_the_expected_columns() {
    let Some(corpus) = corpus() else { return };
    for phone in PHONES {
        let bytes = fs::read(corpus.join("systrace").join(phone)).unwrap();
        let start = bytes.windows(7).position(|w| w == b"TRACE:\n").map_or(0, |at| at + 7);
        let mut text = String::new();
        if bytes[start..].starts_with(b"\x78") {
            flate2::read::ZlibDecoder::new(&bytes[start..]).read_to_string(&mut text).unwrap();
        } else {
            text = String::from_utf8_lossy(&bytes[start..]).into_owned();
        }
        let lines = event_lines(&text);
        let wrong: Vec<_> = lines.iter().filter(|l| has_the_columns(l).is_none()).collect();
        assert!(lines.len() > 5 && wrong.is_empty(), "{phone}: {} lines, of these: {wrong:#?}", lines.len());
    }
}

#[test]
fn our_event_lines_have_the_expected_columns() {
    let Some(machine) = machine() else { return };
    let state = support::tempdir();
    let _busy = Busy::start();
    let text = atrace(&machine, state.path(), &["-t", "1", "sched", "irq", "freq", "workq"]).run().stdout;
    let text = text.strip_prefix("capturing trace... done\nTRACE:\n").expect("the lines before");
    let lines = event_lines(text);
    let wrong: Vec<_> = lines.iter().filter(|l| has_the_columns(l).is_none()).collect();
    assert!(lines.len() > 500 && wrong.is_empty(), "{} lines, of these: {wrong:#?}", lines.len());
}
