//! The boot trace: the service of android/boot/tracebridge.rc, started as Android's init would start it,
//! outside any adb session.

use std::fs;
use std::path::Path;

use crate::adb::{self, DIR, Device, RECORDING};
use crate::journey::json;
use crate::settings::{assert_same, settings, usual};

/// The service's command line in the rc file, with this binary and this file of names in place of the paths
/// on `/system`.
fn service(binary: &str, names: &str) -> String {
    let boot = Path::new(env!("CARGO_MANIFEST_DIR")).join("android/boot");
    let rc = fs::read_to_string(boot.join("tracebridge.rc")).unwrap();
    let line = rc.lines().find_map(|l| l.strip_prefix("service tracebridge_boot ")).expect("the service");
    assert!(line.starts_with("/system/bin/tracebridge ") && line.ends_with(" /system/etc/tracebridge.boot"));
    line.replace("/system/bin/tracebridge", binary).replace("/system/etc/tracebridge.boot", names)
}

#[test]
fn the_service_of_the_rc_file_records_from_init_until_it_is_fetched() {
    let Some(device) = Device::attached() else { return };
    let binary = device.program(device.abi(), "tracebridge");
    let before = usual(&device);
    let names = format!("{DIR}/tracebridge.boot");
    device.push(&Path::new(env!("CARGO_MANIFEST_DIR")).join("android/boot/tracebridge.boot"), &names);
    let line = service(&binary, &names);
    let (program, arguments) = line.split_once(' ').unwrap();
    // Detached, in a session of its own, and without input or output: this is how init starts a service.
    device.run(&format!("start-stop-daemon -S -b -x {program} -- {arguments}"));
    support::until("the service to record", || device.soon(&RECORDING));
    assert_eq!(device.run("ls /dev/tracebridge-*.saved | wc -l").trim(), "1");
    device.run_programs();
    device.run(&format!("{binary} stop --state-dir /dev -o {DIR}/boot.dat"));
    assert_same(before, &settings(&device), "after the boot trace");
    let dir = adb::scratch();
    let dat = device.fetch(&format!("{DIR}/boot.dat"), dir.path());
    device.run(&format!("rm {names}"));
    assert!(json(&["info", "--json"], &[&dat])["events"].as_u64() > Some(20));
}
