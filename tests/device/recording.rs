//! What a recording leaves behind on the device: its capture, and every setting as it was.

use std::collections::BTreeMap;

use crate::adb::{self, DIR, Device};
use crate::capture;
use crate::journey::json;

/// Every readable file under tracefs that is a setting: not the trace itself, not what the kernel counts, and not
/// `free_buffer`, which empties the buffer when it is closed.
const SETTINGS: &str = "cd /sys/kernel/tracing && find . -type f ! -name trace ! -name 'trace_pipe*' \
    ! -name 'snapshot*' ! -name 'trace_marker*' ! -name free_buffer ! -name stats ! -name saved_cmdlines \
    ! -name saved_tgids ! -name 'available_*' ! -name format ! -name id ! -name printk_formats ! -name README \
    ! -name touched_functions ! -name enabled_functions | sort | xargs grep -H '' 2>/dev/null";

fn settings(device: &Device) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for line in device.shell(SETTINGS).stdout.split(|b| *b == b'\n') {
        let line = String::from_utf8_lossy(line);
        let Some((file, value)) = line.split_once(':') else { continue };
        found.entry(file.to_owned()).or_default().push_str(value);
    }
    assert!(found.len() > 1000, "only {} settings found", found.len());
    found
}

fn assert_same(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>, what: &str) {
    let changed: Vec<_> = before
        .iter()
        .filter(|(file, value)| after.get(*file) != Some(value))
        .map(|(file, value)| format!("{file}: {value:?} -> {:?}", after.get(file)))
        .collect();
    let new: Vec<_> = after.keys().filter(|file| !before.contains_key(*file)).collect();
    assert!(changed.is_empty() && new.is_empty(), "{what}: changed: {changed:#?} new: {new:#?}");
}

/// Settings that differ from the kernel's own, so that restoring them is something else than resetting them.
fn unusual(device: &Device) {
    device.run(
        "cd /sys/kernel/tracing && echo mono >trace_clock && echo 2000 >buffer_size_kb && echo 0 >options/overwrite \
         && echo 1 >events/sched/sched_process_fork/enable && echo 1 >events/irq/softirq_raise/enable \
         && echo 0 >tracing_on",
    );
}

fn usual(device: &Device) {
    device.run(
        "cd /sys/kernel/tracing && echo 0 >events/enable && echo boot >trace_clock && echo 1408 >buffer_size_kb \
         && echo 1 >options/overwrite && echo 1 >tracing_on",
    );
}

#[test]
fn settings_are_as_before_after_a_recording_and_after_sigint() {
    let Some(device) = Device::attached() else { return };
    let binary = device.program(device.abi(), "tracebridge");
    let capture = format!("{DIR}/settings.dat");
    for prepare in [usual, unusual] {
        prepare(&device);
        let before = settings(&device);
        device.run(&format!("{binary} record -t 1 -b 4096 -o {capture} sched freq idle"));
        assert_same(&before, &settings(&device), "after a whole recording");
        for signal in ["INT", "TERM"] {
            let recording = device.record(&binary, &format!("-t 60 -b 4096 -o {capture} sched freq idle"));
            recording.signal(signal);
            recording.end();
            assert_same(&before, &settings(&device), &format!("after SIG{signal}"));
        }
    }
    usual(&device);
    device.run(&format!("rm {capture}"));
}

#[test]
fn the_32_bit_binary_records_on_the_64_bit_kernel() {
    let Some(device) = Device::attached() else { return };
    if device.abi() != "arm64-v8a" {
        return crate::support::skip("armeabi-v7a", "the device is not arm64");
    }
    let binary = device.program("armeabi-v7a", "tracebridge");
    let dir = adb::scratch();
    let dat = dir.path().join("v7a.dat");
    let app = device.program("armeabi-v7a", "reference_app");
    let recording = device.record(&binary, &format!("-t 60 -o {DIR}/v7a.dat sched"));
    device.run(&format!("{app} -o /dev/null --calls 500"));
    recording.signal("INT");
    recording.end();
    device.pull(&format!("{DIR}/v7a.dat"), &dat);
    device.run(&format!("rm {DIR}/v7a.dat"));
    let events = capture::read(&dat).len() as u64;
    assert!(events > 4000, "only {events} events, and the app alone writes 4000 markers");
    assert_eq!(json(&["info", "--json"], &[&dat])["events"].as_u64(), Some(events));
    if crate::support::has_program("trace-cmd") {
        assert_eq!(capture::trace_cmd_report(&dat).len() as u64, events);
    }
}
