//! Launches on the device whose app runs on a real Android runtime (`scripts/art`), which a zygote forks.

use std::path::{Path, PathBuf};

use serde_json::Value;
use support::skip;

use crate::adb::{self, DIR, Device};
use crate::fake_android::FakeAndroid;
use crate::journey::json;

/// The runtime on the device; removed on drop.
struct Runtime<'a>(&'a Device);

impl<'a> Runtime<'a> {
    /// Pushes the runtime. Skips the test if none was made.
    fn push(device: &'a Device) -> Option<Runtime<'a>> {
        let Some(art) = std::env::var_os("TRACEBRIDGE_DEVICE_ART") else {
            skip(
                "device-art",
                "TRACEBRIDGE_DEVICE_ART names no runtime: scripts/art --abi arm64-v8a makes one",
            );
            return None;
        };
        device.run(&format!("rm -rf {DIR}/art"));
        device.push(Path::new(&art), &format!("{DIR}/art"));
        device.run(&format!("chmod 755 {DIR}/art/art"));
        Some(Runtime(device))
    }
}

impl Drop for Runtime<'_> {
    fn drop(&mut self) {
        self.0.shell(&format!("rm -rf {DIR}/art {DIR}/reference_launch"));
    }
}

/// Asserts that `merge` puts the calls of the runtime's trace beside the recording.
fn assert_merged(dat: &PathBuf, trace: &PathBuf) {
    let merged = support::tracebridge()
        // ART 11 writes in this clock.
        .args(["merge", "--json", "--clock", "mono", "-o"])
        .args([&dat.with_extension("pftrace"), dat, trace])
        .run()
        // A thread that has ended can be missing in the trace's list of threads.
        .exited_with_one_of(&[0, 3])
        .json();
    let calls = merged["outcome"]["methods"].as_u64().unwrap_or(0);
    // A slower device makes fewer of them in the same time.
    assert!(calls > 1_000, "{calls} calls: {merged:#}");
}

#[test]
fn a_launch_on_a_real_runtime_is_recorded_and_merged() {
    let Some(device) = Device::attached() else { return };
    let Some(_runtime) = Runtime::push(&device) else { return };
    let launch = device.program(device.abi(), "reference_launch");
    let binary = device.program(device.abi(), "tracebridge");
    let recording = device.record(&binary, &format!("-t 6000 -b 16384 -o {DIR}/art.dat sched"));
    let said = device.run(&format!("{launch} --art {DIR}/art --frames 30 -o {DIR}/art.trace"));
    recording.signal("INT");
    recording.end();
    let dir = adb::scratch();
    let dat = device.fetch(&format!("{DIR}/art.dat"), dir.path());
    let trace = device.fetch(&format!("{DIR}/art.trace"), dir.path());
    let said: Value = serde_json::from_str(&said).expect("the reference launch prints JSON");
    let info = json(&["info", "--json"], &[&dat]);
    assert_eq!(info["launches"][0]["package"], "com.example.feed", "{info:#}");
    assert_eq!(info["launches"][0]["pid"], said["app"]["pid"], "{info:#}");
    assert_merged(&dat, &trace);
}

#[test]
fn am_starts_an_app_on_a_real_runtime_for_adb_launch() {
    let Some(device) = Device::attached() else { return };
    let Some(_android) = FakeAndroid::install(&device, &["am", "cmd"], &[]) else { return };
    let Some(_runtime) = Runtime::push(&device) else { return };
    let launch = device.program(device.abi(), "reference_launch");
    device.run(&format!("cp {launch} {DIR}/reference_launch"));
    let dir = adb::scratch();
    let dat = dir.path().join("start.dat");
    // What it says of both files together is left to the tests of `merge`.
    support::tracebridge()
        .env("TRACEBRIDGE_DEVICE_BINARIES", adb::binaries())
        .args(["adb", "launch", "--serial", device.serial(), "-t", "40", "-o"])
        .arg(&dat)
        .args(["com.example.feed", "sched"])
        .run();
    assert_merged(&dat, &dat.with_extension("trace"));
}
