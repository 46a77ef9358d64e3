//! The boot trace: the service of android/boot/tracebridge.rc, run as init would, without an adb session around it.

use std::fs;
use std::path::Path;

use crate::adb::{self, DIR, Device};
use crate::journey::json;
use crate::settings::{assert_same, settings, usual};

/// The service's command line in the rc file, with these in place of the paths on an Android's `/system`.
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
    usual(&device);
    let before = settings(&device);
    let names = format!("{DIR}/tracebridge.boot");
    device.push(&Path::new(env!("CARGO_MANIFEST_DIR")).join("android/boot/tracebridge.boot"), &names);
    let line = service(&binary, &names);
    let (program, arguments) = line.split_once(' ').unwrap();
    // Detached, of no session, with no input or output: as init starts a service.
    device.run(&format!("start-stop-daemon -S -b -x {program} -- {arguments}"));
    let on = "cat /sys/kernel/tracing/tracing_on /sys/kernel/tracing/events/sched/sched_switch/enable; ls /dev/*.saved";
    let mut state = String::new();
    for _ in 0..50 {
        state = String::from_utf8_lossy(&device.shell(on).stdout).into_owned();
        if state == "1\n1\n/dev/tracebridge-top.saved\n" {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    assert_eq!(state, "1\n1\n/dev/tracebridge-top.saved\n");
    std::thread::sleep(std::time::Duration::from_secs(1));
    device.run(&format!("{binary} stop --state-dir /dev -o {DIR}/boot.dat"));
    assert_same(&before, &settings(&device), "after the boot trace");
    let dir = adb::scratch();
    let dat = dir.path().join("boot.dat");
    device.pull(&format!("{DIR}/boot.dat"), &dat);
    device.run(&format!("rm {DIR}/boot.dat {names}"));
    assert!(json(&["info", "--json"], &[&dat])["events"].as_u64() > Some(20));
}
