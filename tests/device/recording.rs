//! Recordings on the device: their captures, and every setting as it was before.

use crate::adb::{self, DIR, Device};
use crate::capture;
use crate::journey::json;
use crate::settings::{assert_same, reset, settings, unusual, usual};

#[test]
fn settings_are_as_before_after_a_recording_and_after_sigint() {
    let Some(device) = Device::attached() else { return };
    let binary = device.program(device.abi(), "tracebridge");
    let capture = format!("{DIR}/settings.dat");
    for prepare in [usual, unusual] {
        let before = prepare(&device);
        device.run(&format!("{binary} record -t 0.5 -b 4096 -o {capture} sched freq idle"));
        assert_same(before, &settings(&device), "after a whole recording");
        for signal in ["INT", "TERM"] {
            let recording = device.record(&binary, &format!("-t 6000 -b 4096 -o {capture} sched freq idle"));
            recording.signal(signal);
            recording.end();
            assert_same(before, &settings(&device), &format!("after SIG{signal}"));
        }
    }
    reset(&device);
    device.run(&format!("rm {capture}"));
}

#[test]
fn the_32_bit_binary_records_on_the_64_bit_kernel() {
    let Some(device) = Device::attached_in_full_run() else { return };
    let abi = match device.abi() {
        "arm64-v8a" => "armeabi-v7a",
        "x86_64" => "x86",
        abi => return support::skip("32-bit", &format!("the device's processes have 32 bits: {abi}")),
    };
    if !adb::built(abi, "reference_app").is_file() {
        return support::skip("32-bit", &format!("not built: scripts/build-android --abi {abi}"));
    }
    let binary = device.program(abi, "tracebridge");
    let dir = adb::scratch();
    let app = device.program(abi, "reference_app");
    let recording = device.record(&binary, &format!("-t 6000 -o {DIR}/bits32.dat sched"));
    device.run(&format!("{app} -o /dev/null --calls 500"));
    recording.signal("INT");
    recording.end();
    let dat = device.fetch(&format!("{DIR}/bits32.dat"), dir.path());
    let events = capture::read(&dat).len() as u64;
    assert!(events > 4000, "only {events} events, and the app alone writes 4000 markers");
    assert_eq!(json(&["info", "--json"], &[&dat])["events"].as_u64(), Some(events));
    if support::has_program("trace-cmd") {
        assert_eq!(capture::trace_cmd_report(&dat).len() as u64, events);
    }
}

#[test]
fn every_way_to_record_leaves_every_setting() {
    let Some(device) = Device::attached_in_full_run() else { return };
    let binary = device.program(device.abi(), "tracebridge");
    let capture = format!("{DIR}/ways.dat");
    unusual(&device);
    // Function filters that another program set.
    device.run(
        "cd /sys/kernel/tracing && echo 'vfs_open' >set_ftrace_filter && echo 'vfs_open' >set_graph_function",
    );
    let before = &settings(&device);
    let ways = [
        (format!("record sched --mode ring -b 256 -t 0.5 -o {capture}"), 0),
        (format!("record sched irq --mode fill -b 64 -t 1 -o {capture}"), 0),
        (format!("record sched --compress -t 0.5 -o {capture}"), 0),
        ("record sched -t 0.5 -o - >/dev/null".to_owned(), 0),
        (format!("record sched --instance ways -t 0.5 -o {capture}"), 0),
        (format!("record 'sched/sched_switch:prev_pid==1' -t 0.5 -o {capture}"), 0),
        (format!("record sched -a com.example.app -t 0.5 -o {capture}"), 0),
        (format!("record -k vfs_read,'vfs_w*' -t 0.5 -o {capture}"), 0),
        (format!("record -k vfs_read --graph -t 0.5 -o {capture}"), 0),
        (format!("record -k no_such_function -t 0.5 -o {capture}"), 1),
        (format!("record -k vfs_read,no_such_function --graph -t 0.5 -o {capture}"), 1),
        ("record sched -t 0.5 -o /no/such/directory/x.dat".to_owned(), 1),
    ];
    for (way, status) in ways {
        let output = device.shell(&format!("{binary} {way}"));
        assert_eq!(output.code(), Some(status), "{way}: {}", output.said());
        assert_same(before, &settings(&device), &way);
    }
    device.run(&format!("{binary} start sched -k vfs_read && {binary} dump -o {capture} && {binary} stop"));
    assert_same(before, &settings(&device), "start, dump, stop");
    device.run(&format!(
        "cd /sys/kernel/tracing && echo >set_ftrace_filter && echo >set_graph_function; rm {capture}"
    ));
    reset(&device);
}

#[test]
fn only_the_named_functions_are_traced() {
    let Some(device) = Device::attached() else { return };
    let binary = device.program(device.abi(), "tracebridge");
    let dir = adb::scratch();
    let remote = format!("{DIR}/k.dat");
    let dat = dir.path().join("k.dat");
    let text = dir.path().join("k.txt");
    let record = |arguments: &str, tracer: &str| -> Vec<String> {
        let begun = [("current_tracer", tracer), ("tracing_on", "1")];
        let recording = device.record_until(&binary, &format!("{arguments} -t 6000 -o {remote}"), &begun);
        device.run("(cat /proc/version /proc/mounts; echo x >/data/local/tmp/k.x) >/dev/null; sleep 0.5");
        recording.signal("INT");
        recording.end();
        device.pull(&remote, &dat);
        let out = support::tracebridge().arg("convert").arg(&dat).arg("-o").arg(&text).run();
        // On a busy machine the graph of all that a function calls comes faster than it is read.
        assert!(matches!(out.code(), Some(0 | 3)), "{}", out.said());
        let text = std::fs::read_to_string(&text).unwrap();
        // The recorder adds the event of new threads to whatever is recorded.
        let is_event =
            |l: &&str| !l.starts_with('#') && !l.contains(" [LOST") && !l.contains(": task_newtask: ");
        text.lines().filter(is_event).map(str::to_owned).collect()
    };
    let lines = record("-k 'vfs_read,vfs_wr*'", "function");
    let named = |l: &String| l.contains(": vfs_read <-") || l.contains(": vfs_wr");
    assert!(lines.iter().any(|l| l.contains(": vfs_read <-")), "{lines:?}");
    assert!(lines.iter().all(named), "{:?}", lines.iter().find(|l| !named(l)));
    // The graph also has the functions that the named functions call, and events beside them.
    let lines = record("-k vfs_read --graph sched/sched_switch", "function_graph");
    for part in ["funcgraph_entry: --> vfs_read (0)", "(1)", "funcgraph_exit", "sched_switch:"] {
        assert!(lines.iter().any(|l| l.contains(part)), "no {part}: {:?}", lines.first());
    }
    let refused = device.shell(&format!("{binary} record -k vfs_read,vfs_raed -o {remote}"));
    let told = refused.said();
    assert_eq!(refused.code(), Some(1), "{told}");
    assert!(told.contains("vfs_raed") && told.contains("available_filter_functions"), "{told}");
    device.run(&format!("rm -f {remote} {DIR}/k.x"));
}

#[test]
fn a_cpu_that_goes_and_comes_back_in_the_middle_costs_no_event() {
    let Some(device) = Device::attached_in_full_run() else { return };
    let online = "/sys/devices/system/cpu/cpu1/online";
    if !device.shell(&format!("test -w {online}")).status.success() {
        return support::skip("device", "its second CPU cannot be taken offline");
    }
    let binary = device.program(device.abi(), "tracebridge");
    let dir = adb::scratch();
    let remote = format!("{DIR}/hotplug.dat");
    for compress in ["", "--compress"] {
        let before = usual(&device);
        let recording =
            device.record(&binary, &format!("-t 6000 -b 1024 {compress} --json -o {remote} sched irq"));
        device.run(&format!("sleep 0.5; echo 0 >{online}; sleep 0.5; echo 1 >{online}; sleep 0.5"));
        recording.signal("INT");
        let output = recording.end();
        assert_eq!(output.code(), Some(0), "{}", output.said());
        assert_same(before, &settings(&device), "after a CPU went and came back");
        let dat = device.fetch(&remote, dir.path());
        let summary: serde_json::Value = output.json();
        let of_cpu = |n: usize| summary["cpus"][n]["events"].as_u64().unwrap();
        let info = json(&["info", "--json"], &[&dat]);
        assert_eq!(info["events"].as_u64(), Some(of_cpu(0) + of_cpu(1)), "{summary}");
        let lines = capture::read(&dat);
        let first = lines.first().unwrap().ts;
        let last = lines.last().unwrap().ts;
        let of_1: Vec<_> = lines.iter().filter(|l| l.cpu == 1).collect();
        // CPU 1 has events from before it went offline, and from after it came back.
        let third = (last - first) / 3;
        assert!(
            of_1.first().unwrap().ts < first + third && of_1.last().unwrap().ts > last - third,
            "{summary}"
        );
        if support::has_program("trace-cmd") {
            assert_eq!(capture::trace_cmd_report(&dat).len(), lines.len());
        }
    }
}

#[test]
fn trace_cmd_reads_a_compressed_capture_of_the_device_binary() {
    let Some(device) = Device::attached_in_full_run() else { return };
    let binary = device.program(device.abi(), "tracebridge");
    let app = device.program(device.abi(), "reference_app");
    let dir = adb::scratch();
    let remote = format!("{DIR}/compressed.dat");
    let recording = device.record(&binary, &format!("-t 6000 --compress --json -o {remote} sched irq"));
    device.run(&format!("{app} -o /dev/null --calls 500"));
    recording.signal("INT");
    let output = recording.end();
    let dat = device.fetch(&remote, dir.path());
    let info = json(&["info", "--json"], &[&dat]);
    assert_eq!(info["format"], "trace.dat v7 (zstd)", "{}", output.said());
    let ours = capture::read(&dat);
    assert!(ours.len() > 4000, "only {} events, and the app alone writes 4000 markers", ours.len());
    assert_eq!(info["events"].as_u64(), Some(ours.len() as u64));
    if support::has_program("trace-cmd") {
        capture::assert_same_events(ours, capture::trace_cmd_report(&dat));
    }
}
