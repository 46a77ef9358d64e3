//! scripts/launch, with stand-ins for Android's `am` and `cmd` where the device has no Android framework.

use std::path::Path;
use std::process::Command;

use crate::adb::{self, Device};
use crate::fake_android::FakeAndroid;
use crate::journey::json;

#[test]
fn a_launch_leaves_a_capture_and_a_method_trace_that_merge() {
    let Some(device) = Device::attached() else { return };
    let Some(_android) = FakeAndroid::install(&device, &["am", "cmd"], &[]) else { return };
    let script = |name: &str| {
        let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(name));
        command.env("TRACEBRIDGE_HOST_BINARY", env!("CARGO_BIN_EXE_tracebridge"));
        command
    };
    let output = script("push")
        .args(["--serial", device.serial(), "--with-reference-app"])
        .output()
        .expect("scripts/push runs");
    assert!(output.status.success(), "{}", adb::text(&output));

    let dir = adb::scratch();
    let base = dir.path().join("start");
    let output = script("launch")
        .args(["--serial", device.serial(), "-o"])
        .arg(&base)
        .args(["com.example.app", "sched", "freq", "idle"])
        .output()
        .expect("scripts/launch runs");
    assert!(output.status.success(), "{}: {}", output.status, adb::text(&output));

    let (dat, trace) = (base.with_extension("dat"), base.with_extension("trace"));
    let merged = json(&["merge", "--json", "-o"], &[&dir.path().join("start.pftrace"), &dat, &trace]);
    let outcome = &merged["outcome"];
    assert_eq!(
        outcome["methods"].as_u64().map(|methods| methods * 2),
        outcome["markers"].as_u64(),
        "{outcome}"
    );
}
