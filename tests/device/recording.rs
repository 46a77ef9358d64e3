//! What a recording leaves behind on the device: its capture, and every setting as it was.

use crate::adb::{self, DIR, Device};
use crate::capture;
use crate::journey::json;
use crate::settings::{assert_same, settings, unusual, usual};

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
