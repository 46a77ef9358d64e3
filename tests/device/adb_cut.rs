//! The connection of adb is cut while something is recorded.

use std::thread::sleep;
use std::time::Duration;
use support::Command;

use crate::adb::{self, DIR, Device};
use crate::capture;
use crate::journey::json;
use crate::settings::{assert_same, reset, settings, unusual};

/// The moments of the cuts, ms after the recording has begun.
const CUTS_MS: [u64; 4] = [0, 150, 700, 1600];

/// A command that writes a file on the device for 2 s at most, and one that would stream for hours.
/// Without the connection adbd ends both as a hangup does, and the second has lost its reader.
const COMMANDS: [&str; 2] = ["-t 2 -o FILE sched", "-t 6000 -o - sched"];

#[test]
fn a_cut_connection_changes_no_setting_and_loses_no_event() {
    let Some(device) = Device::attached() else { return };
    if !device.serial().contains(':') {
        return support::skip("a cut connection", "the device is not connected over the network");
    }
    let binary = device.program(device.abi(), "tracebridge");
    let (file, dir) = (format!("{DIR}/cut.dat"), adb::scratch());
    let before = unusual(&device);
    for (command, cut) in COMMANDS.iter().flat_map(|command| CUTS_MS.map(|cut| (command, cut))) {
        let recording = device.record(&binary, &command.replace("FILE", &file));
        sleep(Duration::from_millis(cut));
        let said = Command::new("adb").args(["disconnect", device.serial()]).output().unwrap();
        assert!(said.status.success(), "adb disconnect: {}", adb::text(&said));
        // Without its connection the program of adb ends.
        recording.finish();
        adb::connect(device.serial());
        let what = format!("the end of record {command}, after a cut at {cut} ms");
        device.wait_until(&what, &format!("! kill -0 $(cat {DIR}/running.pid)"));
        assert_same(before, &settings(&device), &format!("{command}: after a cut at {cut} ms"));
        if command.contains("FILE") {
            let dat = device.fetch(&file, dir.path());
            let info = json(&["info", "--json"], &[&dat]);
            assert_eq!(info["events"].as_u64(), Some(capture::read(&dat).len() as u64), "{info}");
            assert!(info["events"].as_u64() > Some(0), "{info}");
        }
    }
    reset(&device);
}
