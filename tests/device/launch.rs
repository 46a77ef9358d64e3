//! `tracebridge adb launch`, with stand-ins for Android's `am` and `cmd` where the device has no Android
//! framework.

use std::path::Path;

use support::Command;

use crate::adb::{self, Device};
use crate::fake_android::FakeAndroid;
use crate::journey::json;

#[test]
fn a_launch_leaves_a_capture_and_a_method_trace_that_merge() {
    let Some(device) = Device::attached() else { return };
    let Some(_android) = FakeAndroid::install(&device, &["am", "cmd"], &[]) else { return };
    let output = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/push"))
        .env("TRACEBRIDGE_HOST_BINARY", support::binary())
        .args(["--serial", device.serial()])
        .run();
    assert!(output.status.success(), "{}", output.said());
    // What the stand-in for `am` starts.
    let app = device.program(device.abi(), "reference_app");
    device.run(&format!("cp {app} {}/reference_app", adb::DIR));

    let dir = adb::scratch();
    let base = dir.path().join("start");
    let output = support::tracebridge()
        .env("TRACEBRIDGE_DEVICE_BINARIES", adb::binaries())
        .args(["adb", "launch", "--serial", device.serial(), "-o"])
        .arg(base.with_extension("dat"))
        .args(["com.example.app", "sched", "freq", "idle"])
        .run();
    assert!(output.status.success(), "{}: {}", output.status, output.said());

    let dat = base.with_extension("dat");
    let trace = base.with_extension("trace");
    let merged = json(&["merge", "--json", "-o"], &[&dir.path().join("start.pftrace"), &dat, &trace]);
    let outcome = &merged["outcome"];
    assert_eq!(
        outcome["methods"].as_u64().map(|methods| methods * 2),
        outcome["markers"].as_u64(),
        "{outcome}"
    );
}
