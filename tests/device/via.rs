//! `adb record --via`: recorders that the device has. Their stand-ins refuse calls that the real ones do not
//! know.

use std::fs;
use std::process::Stdio;

use nix::sys::signal::Signal;

use crate::adb::{self, DIR, Device};
use crate::desk::{command, expect};
use crate::fake_android::FakeAndroid;
use crate::journey::json;

/// A Perfetto trace of this device, recorded by tracebridge itself, where the stand-in finds it.
fn give_trace(device: &Device, dir: &std::path::Path) -> u64 {
    expect(0, device, dir, &["record", "sched", "-t", "300ms", "-o", "own.pftrace"]);
    device.push(&dir.join("own.pftrace"), &format!("{DIR}/properties/trace"));
    device.run("mkdir -p /data/misc/perfetto-traces");
    json(&["info", "--json"], &[&dir.join("own.pftrace")])["events"].as_u64().unwrap()
}

#[test]
fn perfetto_records_what_it_is_told_and_leaves_nothing() {
    let Some(device) = Device::attached() else { return };
    let dir = adb::scratch();
    let dir = dir.path();
    let Some(_android) = FakeAndroid::install(&device, &["perfetto"], &[("tenths", "5")]) else { return };
    let events = give_trace(&device, dir);
    let words = ["record", "--via", "perfetto", "sched", "irq/*", "-a", "com.example", "-t", "5", "-o"];
    for output in ["x.pftrace", "x.dat"] {
        let out = expect(0, &device, dir, &[&words[..], &[output]].concat());
        assert!(adb::text(&out).contains("recorded by the device's own perfetto\n"), "{}", adb::text(&out));
        let read = json(&["info", "--json"], &[&dir.join(output)]);
        assert_eq!(read["events"].as_u64(), Some(events), "{output}: {read}");
    }
    for part in ["linux.ftrace", "sched/sched_switch", "irq/*", "com.example", "linux.process_stats"] {
        device.run(&format!("grep -q -F '{part}' {DIR}/properties/config"));
    }
    assert_eq!(device.run("ls /data/misc/perfetto-traces"), "");
    // Without -t, up to Ctrl-C.
    device.run(&format!("rm {DIR}/properties/tenths {DIR}/properties/recording"));
    let mut child = command(device.serial(), dir, &["record", "--via=perfetto", "sched", "-o", "c.pftrace"]);
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    device.wait_until("perfetto to record", &format!("test -e {DIR}/properties/recording"));
    child.send(Signal::SIGINT);
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", adb::text(&out));
    assert_eq!(json(&["info", "--json"], &[&dir.join("c.pftrace")])["events"].as_u64(), Some(events));
    device.run("rmdir /data/misc/perfetto-traces");
    assert!(fs::read_dir(dir).unwrap().count() == 4, "{dir:?}");
}

#[test]
fn flags_that_perfetto_and_atrace_do_not_know_are_refused() {
    let Some(device) = Device::attached() else { return };
    let dir = adb::scratch();
    for (words, part) in [
        (&["--via", "perfetto", "--compress"][..], "--compress is for tracebridge's own recorder"),
        (&["--via", "perfetto", "sched/sched_switch:prev_pid==1"], "takes no filters"),
        (&["--via", "atrace", "sched/sched_switch"], "atrace records categories alone"),
        (&["--via", "atrace", "--max-size", "3m"], "--max-size"),
    ] {
        let words = [&["record", "sched", "-t", "1"][..], words].concat();
        let out = expect(2, &device, dir.path(), &words);
        assert!(adb::text(&out).contains(part), "{}", adb::text(&out));
    }
    let out = expect(1, &device, dir.path(), &["record", "sched", "-t", "1", "--via", "perfetto"]);
    assert!(adb::text(&out).contains("there is no perfetto on the device"), "{}", adb::text(&out));
}
