//! A launch on the device whose app runs on a real Android runtime (`scripts/art`), which a zygote forks.

use std::path::Path;

use serde_json::Value;
use support::skip;

use crate::adb::{self, DIR, Device};
use crate::journey::json;

#[test]
fn a_launch_on_a_real_runtime_is_recorded_and_merged() {
    let Some(device) = Device::attached() else { return };
    let Some(art) = std::env::var_os("TRACEBRIDGE_DEVICE_ART") else {
        return skip(
            "device-art",
            "TRACEBRIDGE_DEVICE_ART names no runtime: scripts/art --abi arm64-v8a makes one",
        );
    };
    device.run(&format!("rm -rf {DIR}/art"));
    device.push(Path::new(&art), &format!("{DIR}/art"));
    let launch = device.program(device.abi(), "reference_launch");
    let binary = device.program(device.abi(), "tracebridge");
    let recording = device.record(&binary, &format!("-t 6000 -b 16384 -o {DIR}/art.dat sched"));
    let said = device
        .run(&format!("chmod 755 {DIR}/art/art; {launch} --art {DIR}/art --frames 30 -o {DIR}/art.trace"));
    recording.signal("INT");
    recording.end();
    device.run(&format!("rm -r {DIR}/art"));

    let dir = adb::scratch();
    let dat = device.fetch(&format!("{DIR}/art.dat"), dir.path());
    let trace = device.fetch(&format!("{DIR}/art.trace"), dir.path());
    let said: Value = serde_json::from_str(&said).expect("the reference launch prints JSON");
    let info = json(&["info", "--json"], &[&dat]);
    assert_eq!(info["launches"][0]["package"], "com.example.feed", "{info:#}");
    assert_eq!(info["launches"][0]["pid"], said["app"]["pid"], "{info:#}");
    let merged = support::tracebridge()
        .args(["merge", "--json", "-o"])
        .args([&dir.path().join("art.pftrace"), &dat, &trace])
        .run()
        // A thread that has ended can be missing in the trace's list of threads.
        .exited_with_one_of(&[0, 3])
        .json();
    let calls = merged["outcome"]["methods"].as_u64().unwrap_or(0);
    assert!(calls > 10_000, "{calls} calls: {merged:#}");
}
