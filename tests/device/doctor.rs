//! `doctor` reports a recorder that was killed on the device.

use serde_json::Value;

use crate::adb::{self, DIR, Device};
use crate::settings::{assert_same, reset, settings, unusual};

#[test]
fn a_killed_recorders_settings_and_capture_are_noticed_until_restore() {
    let Some(device) = Device::attached_in_full_run() else { return };
    let binary = device.program(device.abi(), "tracebridge");
    let before = unusual(&device);
    // A killed capture still has room for all that it might have become, which is the whole free disk: on a
    // small file system adb pulls few zeros.
    device.run(&format!("mkdir -p {DIR}/small && mount -t tmpfs -o size=16m tmpfs {DIR}/small"));
    let capture = format!("{DIR}/small/killed.dat");
    let arguments = format!("-t 6000 -b 1024 -o {capture} sched");
    let recording = device.record(&binary, &arguments);
    // The capture's head is there, and pages follow it as soon as there are enough events.
    let blocks = device.run(&format!("stat -c %b {capture}"));
    device.wait_until(
        "pages in a capture",
        &format!("cat /proc/version >/dev/null; [ $(stat -c %b {capture}) -gt {} ]", blocks.trim()),
    );
    recording.signal("KILL");
    let doctor = || -> (String, Value) {
        let both = device.run(&format!("{binary} doctor && echo ---- && {binary} doctor --json"));
        let (text, json) = both.split_once("----\n").expect("the separator");
        (text.to_owned(), serde_json::from_str(json).expect("JSON"))
    };
    let (told, report) = doctor();
    assert!(
        told.contains("was killed and left ") && told.contains("`tracebridge restore` puts them"),
        "{told}"
    );
    assert!(told.contains(&format!("capture  {DIR}/small/killed.dat (")), "{told}");
    let record = &report["records"][0];
    assert_eq!(
        (&record["state"], &record["capture"]["path"]),
        (&"killed".into(), &format!("{DIR}/small/killed.dat").into())
    );
    device.run(&format!("{binary} restore"));
    assert_same(before, &settings(&device), "after restore");
    let (told, report) = doctor();
    assert!(!told.contains("killed"), "{told}");
    assert_eq!(report["records"], Value::Array(Vec::new()));
    let dir = adb::scratch();
    let dat = device.fetch(&format!("{DIR}/small/killed.dat"), dir.path());
    device.run(&format!("umount {DIR}/small && rmdir {DIR}/small"));
    reset(&device);
    let output = support::tracebridge().args(["info", "--json"]).arg(&dat).run();
    assert!(matches!(output.code(), Some(0 | 3)), "{}", output.said());
    let info: Value = output.json();
    assert!(info["events"].as_u64() > Some(20), "{info}");
}
