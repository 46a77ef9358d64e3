//! Launches on the device whose app runs on a real Android runtime (`scripts/art`), which a zygote forks.

use std::path::{Path, PathBuf};

use serde_json::Value;
use support::simpleperf::{peer, simpleperf};
use support::skip;

use crate::adb::{self, DIR, Device};
use crate::fake_android::FakeAndroid;
use crate::journey::json;
use crate::peers::assert_samples_as_reported;

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

/// Asserts that `merge` puts the calls of the runtime's trace beside the recording, where they belong: the
/// clocks of a device that was never suspended agree.
fn assert_merged(dat: &PathBuf, trace: &PathBuf) {
    let merged = json(&["merge", "--json", "-o"], &[&dat.with_extension("pftrace"), dat, trace]);
    let calls = merged["outcome"]["methods"].as_u64().unwrap_or(0);
    // A slower device makes fewer of them in the same time.
    assert!(calls > 1_000, "{calls} calls: {merged:#}");
    let input = &merged["outcome"]["inputs"][1];
    let error_ns = input["error_ns"].as_i64().unwrap_or_else(|| panic!("{input:#}"));
    assert!(input["offset_ns"].as_i64().unwrap().abs() <= error_ns, "{input:#}");
    assert!(input["clock"] == "monotonic" && input["verdict"] != "assumed", "{input:#}");
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
    let launched = support::tracebridge()
        .env("TRACEBRIDGE_DEVICE_BINARIES", adb::binaries())
        .args(["adb", "launch", "--serial", device.serial(), "-t", "60", "-o"])
        .arg(&dat)
        .args(["com.example.feed", "sched"])
        .run();
    let launched = launched.exited_with_one_of(&[0, 3]);
    // The main thread computes for most of a start whose code is interpreted.
    let why = launched.said().contains("a cold launch") && launched.said().contains("ran its own code");
    assert!(why, "{}", launched.said());
    assert_merged(&dat, &dat.with_extension("trace"));
}

/// The real simpleperf as the device's own; removed on drop.
struct DevicesSimpleperf<'a>(&'a Device);

impl Drop for DevicesSimpleperf<'_> {
    fn drop(&mut self) {
        self.0.shell("rm -f /system/bin/simpleperf");
    }
}

#[test]
fn the_real_simpleperf_samples_a_launch_on_a_real_runtime() {
    let Some(device) = Device::attached() else { return };
    let Some(_android) = FakeAndroid::install(&device, &["am", "cmd"], &[]) else { return };
    let Some(host) = simpleperf() else { return };
    let Some(_runtime) = Runtime::push(&device) else { return };
    let _simpleperf = DevicesSimpleperf(&device);
    device.push(&peer(&["simpleperf"]).unwrap().join("android/arm64/simpleperf"), "/system/bin/simpleperf");
    let launch = device.program(device.abi(), "reference_launch");
    device.run(&format!("chmod 755 /system/bin/simpleperf && cp {launch} {DIR}/reference_launch"));
    let dir = adb::scratch();
    let dat = dir.path().join("start.dat");
    support::tracebridge()
        .env("TRACEBRIDGE_DEVICE_BINARIES", adb::binaries())
        .args(["adb", "launch", "--sample", "--serial", device.serial(), "-t", "90", "-o"])
        .arg(&dat)
        .args(["com.example.feed", "sched"])
        .run()
        .exited_with_one_of(&[0, 3]);
    let samples = dat.with_extension("perf.data");
    assert_samples_as_reported(&host, &samples, "the launch");
    let mut merge = support::tracebridge();
    merge.args(["merge", "--json", "-o"]).args([&dat.with_extension("pftrace"), &dat, &samples]);
    // simpleperf loses samples where the device is slow.
    let merged = merge.run().exited_with_one_of(&[0, 3]).json();
    assert!(merged["outcome"]["contents"]["samples"].as_u64() > Some(0), "{merged:#}");
}
