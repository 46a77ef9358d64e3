//! Recording as the shell of a locked phone, in every way: nothing jams, no setting stays changed, everything
//! that is permitted is used, and the device's log stays quiet.

use std::collections::BTreeSet;
use std::path::Path;
use support::{Ran, until};

use serde_json::Value;

use crate::adb::{DIR, PROGRAMS, scratch};
use crate::capture;
use crate::fake_android::FakeAndroid;
use crate::journey::json;
use crate::locked::{Denial, LockedPhone, assert_status};
use crate::settings::{assert_same, reset};

/// How many denials one command may leave in the device's log.
const MOST_DENIALS: usize = 10;

/// How many notes a recording may print: one for each cause.
const MOST_NOTES: usize = 6;

/// A recording as the shell of the phone, during which root makes events of all kinds: control groups come
/// and go, and programs run. Returns the recorder's output.
fn record_what_root_does(phone: &LockedPhone, arguments: &str) -> Ran {
    let binary = phone.program("tracebridge");
    let mut recorder = phone.shell.start_signalled(&format!("{binary} record {arguments}"));
    // It may end by itself when its buffer is full.
    until("a recording", || recorder.has_ended() || phone.root.soon(&[("tracing_on", "1")]));
    phone.as_root(&format!(
        "mkdir -p /tmp/groups && {{ grep -q /tmp/groups /proc/mounts || mount -t cgroup2 none /tmp/groups; }}; \
         for i in 1 2 3; do mkdir /tmp/groups/x; rmdir /tmp/groups/x; done; {PROGRAMS}; sleep 0.1"
    ));
    phone.root.shell(&format!("kill -INT $(cat {DIR}/running.pid)"));
    recorder.finish()
}

/// Settings that differ from the kernel's own, as another user of tracing may have left them; as root.
fn unusual(phone: &LockedPhone) {
    phone.as_root(
        "cd /sys/kernel/tracing && echo mono >trace_clock && echo 2000 >buffer_size_kb && echo 0 >options/overwrite \
         && echo 1 >events/irq/softirq_raise/enable && echo 1 >events/task/task_rename/enable && echo 0 >tracing_on",
    );
}

/// Fails if a command's denials are too many, naming the first.
fn assert_quiet(denials: &[Denial], what: &str) {
    let first: Vec<_> = denials.iter().take(12).collect();
    assert!(denials.len() <= MOST_DENIALS, "{what}: {} denials: {first:#?}", denials.len());
}

/// Fails if the recorder left anything that bars the next recording.
fn assert_not_jammed(phone: &LockedPhone, binary: &str, what: &str) {
    let left = phone.as_root(&format!("ls {DIR} {DIR}/tracebridge-*/ | grep saved || true"));
    assert!(left.is_empty(), "{what}: left behind: {left}");
    let restored = phone.shell.shell(&format!("{binary} restore"));
    assert_status(&restored, 0, &format!("restore after {what}"));
    assert!(restored.said().contains("nothing to put back"), "{what}: {}", restored.said());
}

/// The names of the events of a capture.
fn names(dat: &Path) -> BTreeSet<String> {
    capture::read(dat).into_iter().map(|event| event.name).collect()
}

/// The wishes of a recording, and the events that the capture must have.
struct Way {
    arguments: &'static str,
    events: &'static [&'static str],
    /// The text of a note.
    note: Option<&'static str>,
}

const fn way(arguments: &'static str, events: &'static [&'static str]) -> Way {
    Way { arguments, events, note: None }
}

const WAYS: &[Way] = &[
    way("sched/sched_switch", &["sched_switch"]),
    way("freq idle", &["cpu_idle"]),
    way("sched freq idle", &["sched_switch", "sched_waking", "cgroup_mkdir", "cpu_idle"]),
    way("'cgroup/*'", &["cgroup_mkdir", "cgroup_rmdir"]),
    way("irq", &["irq_handler_entry", "softirq_entry", "ipi_entry", "ipi_send_cpu"]),
    Way { arguments: "'sched/sched_switch:prev_pid==1'", events: &["sched_switch"], note: Some("filter") },
    way("sched --mode ring -b 256", &["sched_switch", "sched_waking", "cgroup_mkdir"]),
    way("sched irq --mode fill -b 64", &["sched_switch"]),
    way("sched --compress", &["sched_switch", "cgroup_mkdir"]),
];

#[test]
fn every_way_to_record_works_on_a_locked_phone_and_leaves_no_trace_of_itself() {
    let Some(phone) = LockedPhone::attached() else { return };
    let binary = phone.program("tracebridge");
    unusual(&phone);
    let before = phone.settings();
    let knobs = phone.knobs();
    let dir = scratch();
    let mut failures = Vec::new();
    for way in WAYS {
        let what = format!("record {}", way.arguments);
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let arguments = format!("--json -t 6000 -o {DIR}/way.dat {}", way.arguments);
            let (output, denials) = phone.denials(|| record_what_root_does(&phone, &arguments));
            assert_status(&output, 0, &what);
            let summary: Value = output.json();
            let notes: Vec<&str> =
                summary["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            assert!(notes.len() <= MOST_NOTES, "{what}: {notes:#?}");
            assert!(!notes.iter().any(|note| note.contains("os error")), "{what}: {notes:#?}");
            if let Some(part) = way.note {
                assert!(notes.iter().any(|note| note.contains(part)), "{what}: {notes:#?}");
            }
            let dat = phone.shell.fetch(&format!("{DIR}/way.dat"), dir.path());
            let found = if way.arguments.contains("--compress") { None } else { Some(names(&dat)) };
            let missing: Vec<_> =
                way.events.iter().filter(|e| found.as_ref().is_some_and(|f| !f.contains(**e))).collect();
            assert!(missing.is_empty(), "{what}: no {missing:?} in {found:?}; {notes:#?}");
            assert_same(&knobs, &phone.knobs(), &what);
            assert_not_jammed(&phone, &binary, &what);
            assert_quiet(&denials, &what);
        }));
        if checked.is_err() {
            failures.push(what);
            phone.as_root(&format!(
                "rm -f {DIR}/*.saved {DIR}/way.dat; echo 0 >/sys/kernel/tracing/events/enable"
            ));
            unusual(&phone);
        }
    }
    let after = phone.settings();
    reset(&phone.root);
    assert_same(&before, &after, "every way to record");
    assert!(failures.is_empty(), "{} of {} ways failed: {failures:#?}", failures.len(), WAYS.len());
}

#[test]
fn categories_whose_group_or_whose_single_events_are_open_are_switched_on() {
    let Some(phone) = LockedPhone::attached() else { return };
    let binary = phone.program("tracebridge");
    let before = phone.knobs();
    // Nothing on the emulated phone has fences or files on a disk: the kernel's settings show that their
    // events would be recorded.
    for (category, event) in
        [("sync", "dma_fence/dma_fence_init"), ("pagecache", "filemap/mm_filemap_add_to_page_cache")]
    {
        let file = format!("events/{event}/enable");
        let state = [(file.as_str(), "1"), ("tracing_on", "1")];
        let command = format!("{binary} record -t 6000 -o {DIR}/{category}.dat {category}");
        let mut recorder = phone.shell.start_signalled(&command);
        let mut is_on = false;
        until(event, || {
            is_on = phone.root.soon(&state);
            is_on || recorder.has_ended()
        });
        phone.root.shell(&format!("kill -INT $(cat {DIR}/running.pid)"));
        let output = recorder.finish();
        assert_status(&output, 0, category);
        assert!(is_on, "{event} was not on: {}", output.said());
        assert_same(&before, &phone.knobs(), category);
        assert_not_jammed(&phone, &binary, category);
    }
    phone.shell.run(&format!("rm {DIR}/sync.dat {DIR}/pagecache.dat"));
}

#[test]
fn a_group_that_is_partly_on_stays_so() {
    let Some(phone) = LockedPhone::attached() else { return };
    let binary = phone.program("tracebridge");
    // What the group's own file switches on it would switch off altogether.
    phone.as_root("echo 1 >/sys/kernel/tracing/events/cgroup/cgroup_attach_task/enable");
    let before = phone.knobs();
    let output = phone.shell.shell(&format!("{binary} record --json -t 1 -o {DIR}/partly.dat sched"));
    let after = phone.knobs();
    reset(&phone.root);
    assert_status(&output, 0, "record");
    assert_same(&before, &after, "a group that is partly on");
    assert!(output.said().contains("cgroup"), "no word of it: {}", output.said());
    assert_not_jammed(&phone, &binary, "a group that is partly on");
    phone.shell.run(&format!("rm {DIR}/partly.dat"));
}

#[test]
fn streams_flight_recorders_wrap_and_atrace_work_on_a_locked_phone() {
    let Some(phone) = LockedPhone::attached() else { return };
    let binary = phone.program("tracebridge");
    unusual(&phone);
    let before = phone.knobs();
    let dir = scratch();
    let atrace = format!("{DIR}/atrace");
    phone.shell.run(&format!("ln -sf {binary} {atrace}"));
    let ways = [
        (format!("{binary} record -t 1 -o - sched freq >{DIR}/x.stream"), "x.stream"),
        (
            format!("{binary} start sched && {{ {PROGRAMS}; }} && {binary} stop -o {DIR}/flight.dat"),
            "flight.dat",
        ),
        (
            format!(
                "{binary} start sched && {{ {PROGRAMS}; }} && {binary} dump -o {DIR}/dump.dat && {binary} stop"
            ),
            "dump.dat",
        ),
        (format!("{binary} wrap -o {DIR}/wrap.dat -- sh -c '{PROGRAMS}'"), "wrap.dat"),
        (format!("{atrace} -t 1 -o {DIR}/atrace.txt sched freq"), "atrace.txt"),
        (
            format!(
                "{atrace} --async_start sched freq && {{ {PROGRAMS}; }} && {atrace} --async_stop -o {DIR}/async.txt"
            ),
            "async.txt",
        ),
    ];
    for (command, file) in ways {
        let (output, denials) = phone.denials(|| phone.shell.shell(&command));
        assert_status(&output, 0, &command);
        let local = phone.shell.fetch(&format!("{DIR}/{file}"), dir.path());
        let info = json(&["info", "--json"], &[&local]);
        assert!(info["events"].as_u64() > Some(10), "{command}: {info}");
        assert_same(&before, &phone.knobs(), &command);
        assert_not_jammed(&phone, &binary, &command);
        // Two or three commands of the product, each with its own allowance.
        let commands = command.matches(&binary).count() + command.matches(&atrace).count();
        assert!(denials.len() <= MOST_DENIALS * commands, "{command}: {} denials", denials.len());
    }
    // Markers are written by everybody.
    let (output, denials) = phone.denials(|| phone.shell.shell(&format!("{binary} mark instant here")));
    assert_status(&output, 0, "mark");
    assert_quiet(&denials, "mark");
    reset(&phone.root);
}

#[test]
fn a_launch_on_a_locked_phone_leaves_a_capture_and_a_method_trace() {
    let Some(phone) = LockedPhone::attached() else { return };
    let properties =
        [("ro.build.version.sdk", "35"), ("ro.build.version.release", "15"), ("ro.build.type", "user")];
    let programs = &["am", "cmd", "getprop", "setprop"];
    let Some(_android) = FakeAndroid::install(&phone.root, programs, &properties) else { return };
    let binary = phone.program("tracebridge");
    let app = phone.program("reference_app");
    phone.shell.run(&format!("cp {app} {DIR}/reference_app"));
    let before = phone.knobs();
    let command = format!("{binary} launch com.example.app sched freq idle -o {DIR}/launch.dat");
    let (output, denials) = phone.denials(|| phone.shell.shell(&command));
    assert_status(&output, 0, "launch");
    let dir = scratch();
    let dat = phone.shell.fetch(&format!("{DIR}/launch.dat"), dir.path());
    let trace = phone.shell.fetch(&format!("{DIR}/launch.trace"), dir.path());
    let merged = json(&["merge", "--json", "-o"], &[&dir.path().join("launch.pftrace"), &dat, &trace]);
    assert!(merged["outcome"]["methods"].as_u64() > Some(0), "{merged}");
    assert_same(&before, &phone.knobs(), "launch");
    assert_not_jammed(&phone, &binary, "launch");
    assert_quiet(&denials, "launch");
}

#[test]
fn what_only_root_may_do_is_refused_without_a_change() {
    let Some(phone) = LockedPhone::attached() else { return };
    let binary = phone.program("tracebridge");
    let before = phone.knobs();
    for (arguments, told) in [
        ("", "name a category"),
        ("workq", "workq"),
        ("--instance mine sched", "instance"),
        ("-k vfs_read sched", "tracer"),
        ("-k vfs_read --graph", "tracer"),
    ] {
        let command = format!("{binary} record -t 1 -o {DIR}/refused.dat {arguments}");
        let (output, denials) = phone.denials(|| phone.shell.shell(&command));
        assert_status(&output, 1, &command);
        let said = output.said();
        assert!(said.contains(told), "{command}: {said}");
        assert!(said.matches("Permission denied").count() < 2, "{command}: {said}");
        assert_same(&before, &phone.knobs(), &command);
        assert_not_jammed(&phone, &binary, &command);
        assert_quiet(&denials, &command);
    }
}

#[test]
fn fifty_killed_recorders_are_cleared_by_restore() {
    let Some(phone) = LockedPhone::attached_in_full_run() else { return };
    let binary = phone.program("tracebridge");
    unusual(&phone);
    let before = phone.settings();
    // Every other recorder is killed while it records, the rest a little later each time: while they save
    // settings, switch events on, begin.
    let printed = phone.shell.run(&format!(
        "i=0; failed=0; records=0; while [ $i -lt 50 ]; do \
         {binary} record -t 6000 -b 1024 -o {DIR}/killed.dat sched freq idle >/dev/null 2>&1 & p=$!; \
         if [ $((i % 2)) = 0 ]; then sleep 0.$(printf %02d $i); else \
         n=0; until grep -q 1 /sys/kernel/tracing/tracing_on || [ $n -gt 9000 ]; do sleep 0.02; n=$((n + 1)); done; fi; \
         kill -9 $p; wait $p 2>/dev/null; \
         if ls {DIR}/tracebridge-2000/*.saved >/dev/null 2>&1; then records=$((records + 1)); fi; \
         {binary} restore >{DIR}/restored 2>&1 || {{ failed=$((failed + 1)); tail -n 1 {DIR}/restored; }}; \
         if ls {DIR}/tracebridge-2000/*.saved >/dev/null 2>&1; then failed=$((failed + 1)); fi; \
         i=$((i + 1)); done; rm -f {DIR}/killed.dat {DIR}/restored; echo $failed failed of $records"
    ));
    let (failed, records) = printed.lines().last().unwrap().split_once(" failed of ").expect("the counts");
    assert_eq!(failed, "0", "{printed}");
    assert!(records.parse::<u32>().unwrap() >= 25, "too few recorders had begun: {printed}");
    assert_same(&before, &phone.settings(), "after 50 recorders that were killed");
    assert_not_jammed(&phone, &binary, "the killed recorders");
    reset(&phone.root);
}

#[test]
fn what_root_left_on_is_told_and_is_no_damage() {
    let Some(phone) = LockedPhone::attached() else { return };
    let binary = phone.program("tracebridge");
    let dir = scratch();
    let record = || -> (String, Value) {
        let output =
            phone.shell.shell(&format!("{binary} record --json -t 1 -o {DIR}/left.dat sched/sched_switch"));
        assert_status(&output, 0, "record");
        let dat = phone.shell.fetch(&format!("{DIR}/left.dat"), dir.path());
        let info = support::tracebridge().args(["info", "--json"]).arg(&dat).run();
        let summary: Value = output.json();
        (summary["notes"].to_string(), info.json())
    };
    // An event whose format this user may not read.
    phone.as_root("echo 1 >/sys/kernel/tracing/events/sched/sched_stat_runtime/enable");
    let before = phone.knobs();
    let (notes, info) = record();
    assert!(info["report"]["damage"].as_array().is_none_or(Vec::is_empty), "{info}");
    assert!(notes.contains("event") || info.to_string().contains("may not be read"), "{notes} {info}");
    assert_same(&before, &phone.knobs(), "with an event that root left on");
    phone.as_root("echo 0 >/sys/kernel/tracing/events/sched/sched_stat_runtime/enable");

    phone.as_root(
        "cd /sys/kernel/tracing && echo vfs_open >set_ftrace_filter && echo function >current_tracer",
    );
    let (notes, info) = record();
    phone.as_root("cd /sys/kernel/tracing && echo nop >current_tracer; echo >set_ftrace_filter");
    assert!(notes.contains("tracer") && notes.contains("function"), "{notes}");
    assert!(info["report"]["damage"].as_array().is_none_or(Vec::is_empty), "{info}");
}

#[test]
fn buffers_of_unequal_sizes_do_not_jam_and_keep_their_sizes() {
    let Some(phone) = LockedPhone::attached_in_full_run() else { return };
    let binary = phone.program("tracebridge");
    phone.as_root("echo 704 >/sys/kernel/tracing/per_cpu/cpu1/buffer_size_kb");
    let before = phone.knobs();
    let output = phone.shell.shell(&format!("{binary} record --json -t 1 -o {DIR}/unequal.dat sched"));
    assert_status(&output, 0, "record");
    let after = phone.knobs();
    reset(&phone.root);
    phone.shell.run(&format!("rm {DIR}/unequal.dat"));
    assert_same(&before, &after, &format!("with unequal buffers: {}", output.said()));
    assert_not_jammed(&phone, &binary, "record with unequal buffers");
}

#[test]
fn names_of_threads_that_ended_are_in_the_capture() {
    let Some(phone) = LockedPhone::attached_in_full_run() else { return };
    let binary = phone.program("tracebridge");
    let recording = phone.shell.record(&binary, &format!("-t 6000 -o {DIR}/names.dat sched"));
    phone.shell.run("i=0; while [ $i -lt 30 ]; do cat /proc/version >/dev/null; i=$((i + 1)); done");
    recording.signal("INT");
    recording.end();
    let dir = scratch();
    let events = capture::read(&phone.shell.fetch(&format!("{DIR}/names.dat"), dir.path()));
    let unnamed = events.iter().filter(|event| event.comm == "<...>").count();
    assert!(
        unnamed * 50 < events.len(),
        "{unnamed} of {} events are of threads without a name",
        events.len()
    );
}

#[test]
fn a_buffer_percent_that_is_denied_costs_no_wakeups() {
    let Some(phone) = LockedPhone::attached_in_full_run() else { return };
    let binary = phone.program("tracebridge");
    let dir = scratch();
    // How often the recorder itself went to sleep.
    let sleeps = || {
        let output = phone.shell.shell(&format!("{binary} record -t 3 -o {DIR}/idle.dat sched"));
        assert_status(&output, 0, "record");
        let events = capture::read(&phone.shell.fetch(&format!("{DIR}/idle.dat"), dir.path()));
        let is_own =
            |event: &&capture::Line| event.name == "sched_switch" && event.comm.starts_with("tracebridge");
        (events.iter().filter(is_own).count(), events.len())
    };
    let (allowed, _) = sleeps();
    // As before Android 15, where the policy refuses it.
    phone.as_root(
        "chmod 0600 /sys/kernel/tracing/buffer_percent && chown 0:0 /sys/kernel/tracing/buffer_percent",
    );
    let (denied, events) = sleeps();
    phone.as_root(
        "chown 0:3012 /sys/kernel/tracing/buffer_percent && chmod 0666 /sys/kernel/tracing/buffer_percent",
    );
    eprintln!(
        "the recorder slept {allowed} times, and {denied} times where it may not wait for half a buffer; {events} events"
    );
    assert!(denied <= 2 * allowed + 60, "{denied} wakeups instead of {allowed}");
}
