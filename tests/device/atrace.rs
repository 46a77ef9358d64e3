//! The drop-in atrace under its own name on the device, as systrace, Perfetto and scripts call it.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Output};
use std::time::Duration;

use serde_json::Value;

use crate::adb::{self, DIR, Device, text};
use crate::journey::json;
use crate::settings::{assert_same, settings, unusual, usual};
use crate::stand_in::StandIns;

/// The binary under the name `atrace`, by a link.
fn atrace(device: &Device) -> String {
    let binary = device.program(device.abi(), "tracebridge");
    device.run(&format!("ln -sf {binary} {DIR}/atrace"));
    format!("{DIR}/atrace")
}

/// Something to see in a trace of `sched`, for as long as this lives.
struct Load(Child);

impl Load {
    fn start(device: &Device) -> Load {
        let program = device.program(device.abi(), "load_generator");
        Load(device.start(&format!("exec {program} bounce --pairs 1 --seconds 60")))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // adbd ends what it started when its connection goes.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The events of a text, by the kernel's own form: a task, a CPU in brackets, a time.
fn event_lines(text: &str) -> u64 {
    text.lines().filter(|l| !l.starts_with('#') && l.contains("] ") && l.contains(": ")).count() as u64
}

/// Has the host's side read it: as many events as the text has lines.
fn reads_on_the_host(trace: &[u8]) -> Value {
    let dir = adb::scratch();
    let path = |name: &str| dir.path().join(name);
    let file: PathBuf = path("trace.txt");
    fs::write(&file, trace).unwrap();
    let info = json(&["info", "--json"], &[&file]);
    let converted = json(&["convert", "--json", "-o"], &[&path("trace.pftrace"), &file]);
    assert!(converted.is_object() && fs::metadata(path("trace.pftrace")).unwrap().len() > 1000);
    info
}

#[test]
fn text_and_zlib_say_the_same_to_the_host_and_leave_no_setting_changed() {
    let Some(device) = Device::attached() else { return };
    let atrace = atrace(&device);
    for prepare in [usual, unusual] {
        prepare(&device);
        let before = settings(&device);
        let _load = Load::start(&device);
        let plain = device.shell(&format!("{atrace} -t 2 -b 8192 sched freq idle nonsense"));
        assert_eq!(plain.status.code(), Some(0), "{}", text(&plain));
        let said = String::from_utf8_lossy(&plain.stderr);
        assert!(said.contains("error: unknown tracing category \"nonsense\""), "{said}");
        let trace = stdout(&plain);
        assert!(trace.starts_with("capturing trace... done\nTRACE:\n# tracer: nop\n"), "{}", &trace[..200]);
        let events = event_lines(&trace);
        assert!(events > 500, "only {events} events");
        assert_eq!(reads_on_the_host(trace.as_bytes())["events"].as_u64(), Some(events));

        let packed = device.shell(&format!("{atrace} -z -t1 -b 8192 sched"));
        let zlib =
            packed.stdout.strip_prefix(b"capturing trace... done\nTRACE:\n").expect("the lines before");
        let mut trace = String::new();
        flate2::read::ZlibDecoder::new(zlib).read_to_string(&mut trace).expect("a zlib stream");
        assert!(trace.starts_with("# tracer: nop\n"), "{}", &trace[..200]);
        let events = event_lines(&trace);
        assert_eq!(reads_on_the_host(&packed.stdout)["events"].as_u64(), Some(events));
        assert_same(&before, &settings(&device), "after atrace");
    }
    usual(&device);
}

#[test]
fn a_file_a_ring_and_a_size_are_as_asked_for() {
    let Some(device) = Device::attached() else { return };
    let atrace = atrace(&device);
    unusual(&device);
    let before = settings(&device);
    let file = format!("{DIR}/atrace.out");
    let knobs = "cd /sys/kernel/tracing && cat options/overwrite buffer_size_kb trace_clock tracing_on";
    for (ring, overwrite) in [("-c", "1"), ("", "0")] {
        let running = device.start(&format!("exec {atrace} {ring} -b 1024 -t 3 -o {file} sched"));
        std::thread::sleep(Duration::from_millis(1500));
        let set = device.run(knobs);
        let done = running.wait_with_output().unwrap();
        let (first, rest) = set.split_once('\n').unwrap();
        assert_eq!(first, overwrite);
        // The kernel rounds the size up to whole pages.
        assert!(rest.starts_with("10") && rest.contains("[boot]") && rest.ends_with("\n1\n"), "{set}");
        assert_eq!((stdout(&done).as_str(), done.status.code()), ("capturing trace... done\n", Some(0)));
        assert!(device.run(&format!("head -n 2 {file}")).starts_with("TRACE:\n# tracer: nop\n"));
    }
    device.run(&format!("rm {file}"));
    assert_same(&before, &settings(&device), "after atrace -o");
    usual(&device);
}

#[test]
fn a_ring_outlives_the_connection_that_started_it() {
    let Some(device) = Device::attached() else { return };
    let atrace = atrace(&device);
    unusual(&device);
    let before = settings(&device);
    let _load = Load::start(&device);
    let start = device.shell(&format!("{atrace} --async_start -b 4096 sched"));
    assert_eq!((stdout(&start).as_str(), start.status.code()), ("capturing trace...", Some(0)));
    let on = "cd /sys/kernel/tracing && cat tracing_on options/overwrite events/sched/sched_switch/enable";
    assert_eq!(device.run(on), "1\n1\n1\n");
    std::thread::sleep(Duration::from_millis(500));
    let dump = device.run(&format!("{atrace} --async_dump"));
    assert!(dump.starts_with(" done\nTRACE:\n") && event_lines(&dump) > 20, "{}", &dump[..200]);
    assert_eq!(device.run(on), "1\n1\n1\n", "a dump does not end it");
    let stop = device.shell(&format!("{atrace} -z --async_stop"));
    assert!(stop.status.success() && stop.stdout.starts_with(b" done\nTRACE:\n\x78"), "{}", text(&stop));
    assert_same(&before, &settings(&device), "after --async_stop");
    usual(&device);
}

#[test]
fn a_stream_is_text_until_a_signal() {
    let Some(device) = Device::attached() else { return };
    let atrace = atrace(&device);
    usual(&device);
    let before = settings(&device);
    let load = Load::start(&device);
    let pid = format!("{DIR}/atrace.pid");
    let streaming = device.start(&format!("echo $$ >{pid}; exec {atrace} --stream sched"));
    let begun =
        "cd /sys/kernel/tracing && grep -q 1 tracing_on && grep -q 1 events/sched/sched_switch/enable";
    let waited = (0..100).find(|_| device.shell(begun).status.success());
    assert!(waited.is_some(), "it does not begin");
    std::thread::sleep(Duration::from_secs(3));
    device.run(&format!("kill -INT $(cat {pid}); rm {pid}"));
    drop(load);
    let output = streaming.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "ended by a signal: as with AOSP's");
    let stream = stdout(&output);
    assert!(!stream.contains("capturing trace") && event_lines(&stream) > 100, "{}", text(&output));
    let info = reads_on_the_host(&output.stdout);
    assert_eq!(info["events"].as_u64(), Some(event_lines(&stream)), "{info}");
    assert_same(&before, &settings(&device), "after --stream");
}

#[test]
fn properties_are_set_in_order_and_put_back() {
    let Some(device) = Device::attached() else { return };
    let Some(android) = StandIns::install(&device, &["getprop", "setprop", "service"]) else { return };
    let atrace = atrace(&device);
    usual(&device);
    let before = settings(&device);
    android.set("ro.build.version.sdk", "35");
    android.set("ro.atrace.core.services", "system_server,surfaceflinger");
    android.set("debug.atrace.tags.enableflags", "0x8");
    android.set("debug.atrace.app_number", "1");
    android.set("debug.atrace.app_0", "com.old");
    device.run(&format!("printf 'gfx am\\nview' >{DIR}/categories"));
    device.run(&format!("{atrace} -t 0 -a com.a,com.b -f {DIR}/categories core_services sched >/dev/null"));
    device.run(&format!("rm {DIR}/categories"));
    let on = [
        "user_initiated=1",
        "app_0=com.a",
        "app_1=com.b",
        "app_2=system_server",
        "app_3=surfaceflinger",
        "app_number=4",
        "tags.enableflags=0x4a",
    ];
    let off = [
        "app_number=",
        "tags.enableflags=0x8",
        "app_0=com.old",
        "app_1=",
        "app_2=",
        "app_3=",
        "app_number=1",
        "prefer_sdk=",
        "user_initiated=",
    ];
    assert_eq!(android.log(), [&on[..], &off].concat());
    assert_eq!(android.calls(), [""; 0], "newer processes see a change of the properties by themselves");

    // As Perfetto calls it: the tags alone.
    assert!(device.shell(&format!("{atrace} --async_start --only_userspace -a '*' wm")).status.success());
    assert_eq!(android.log(), ["app_0=*", "app_number=1", "tags.enableflags=0x20"]);
    assert!(device.shell(&format!("{atrace} --async_stop --only_userspace")).status.success());
    assert_eq!(android.log(), ["app_number=", "tags.enableflags=0", "app_0="]);
    assert_eq!(device.shell(&format!("{atrace} --only_userspace wm")).status.code(), Some(1));

    assert!(device.shell(&format!("{atrace} --prefer_sdk gfx view")).status.success());
    assert_eq!(android.log(), ["prefer_sdk=0xa"]);
    // Tags that are recorded must be written as markers.
    device.run(&format!("{atrace} -t 0 view >/dev/null"));
    assert!(android.log().contains(&"prefer_sdk=0x2".to_owned()));
    assert_same(&before, &settings(&device), "after atrace with properties");
}

#[test]
fn services_of_android_10_are_told_of_new_tags_and_of_their_end() {
    let Some(device) = Device::attached() else { return };
    let Some(android) = StandIns::install(&device, &["getprop", "setprop", "service"]) else { return };
    let atrace = atrace(&device);
    android.set("ro.build.version.sdk", "29");
    device.run(&format!("{atrace} -t 0 gfx >/dev/null"));
    // `_SPR`.
    assert_eq!(
        android.calls(),
        [
            "call SurfaceFlinger 1599295570",
            "call SurfaceFlinger 1599295570",
            "call phone 1599295570",
            "call phone 1599295570"
        ]
    );
}

#[test]
fn kernel_functions_are_traced_and_unknown_ones_refused() {
    let Some(device) = Device::attached() else { return };
    if device.run("cat /sys/kernel/tracing/available_tracers").contains("function_graph") {
        let atrace = atrace(&device);
        unusual(&device);
        let before = settings(&device);
        let traced = device.run(&format!("{atrace} -t 1 -k schedule,vfs_re* sched"));
        assert!(traced.contains("# tracer: function_graph"), "{}", &traced[..200]);
        assert!(traced.contains("|  schedule() {") && traced.contains("vfs_read"), "{}", &traced[..2000]);
        assert_same(&before, &settings(&device), "after -k");

        let refused = device.shell(&format!("{atrace} -t 1 -k schedule,no_such_function sched"));
        assert_eq!(refused.status.code(), Some(1));
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(
            said.contains("error: \"no_such_function\" is not a valid kernel function to trace."),
            "{said}"
        );
        assert!(!stdout(&refused).contains("TRACE:"));
        assert_same(&before, &settings(&device), "after a -k that was refused");
        usual(&device);
    } else {
        crate::support::skip("functions", "this kernel traces no functions");
    }
}

#[test]
fn failures_and_misuse_are_told_by_the_exit_status() {
    let Some(device) = Device::attached() else { return };
    let atrace = atrace(&device);
    usual(&device);
    let before = settings(&device);
    let cases = [
        ("--list_categories --nonsense", 0, " - CPU Scheduling\n"),
        ("--help", 0, "usage: "),
        ("--nonsense", 255, "usage: "),
        ("-x", 255, "unknown option -- x"),
        ("-t 0 -o /no/such/file sched", 1, "/no/such/file"),
        ("-t 0 mmc", 0, "error: category \"mmc\" is not supported on this device."),
        ("-t 0 shed", 0, "did you mean \"sched\"?"),
    ];
    for (arguments, status, said) in cases {
        let output = device.shell(&format!("{atrace} {arguments}"));
        assert_eq!(output.status.code(), Some(status), "{arguments}: {}", text(&output));
        assert!(text(&output).contains(said), "{arguments}: {}", text(&output));
    }
    assert_same(&before, &settings(&device), "after failures");
}

#[test]
fn the_vendors_file_adds_categories_and_a_file_of_names_reaches_the_tags() {
    const VENDOR: &str = "/vendor/etc/atrace/atrace_categories.txt";
    let Some(device) = Device::attached() else { return };
    let Some(android) = StandIns::install(&device, &["getprop", "setprop"]) else { return };
    let atrace = atrace(&device);
    let binary = device.program(device.abi(), "tracebridge");
    usual(&device);
    let before = settings(&device);
    // A category of its own, one with events that this kernel lacks, and more for one of AOSP's.
    let file = "sensors\\n  timer/timer_start\\n\\tno/such\\ngone\\n no/such\\nview\\n irq/softirq_entry\\n";
    device.run(&format!("mkdir -p /vendor/etc/atrace && printf '{file}' >{VENDOR}"));
    let list = device.run(&format!("{atrace} --list_categories"));
    assert!(
        list.ends_with("     sensors - (VENDOR)\n        gone - (VENDOR)\n        view - (VENDOR)\n"),
        "{list}"
    );
    let list = device.run(&format!("{binary} list"));
    for line in [
        "  ok  sensors        (VENDOR): timer/timer_start\n                     not in this kernel: no/such\n",
        "  no  gone           (VENDOR) (not in this kernel: no/such)\n",
        "  ok  view           View System: tag view irq/softirq_entry\n",
    ] {
        assert!(list.contains(line), "{line}\nis not in\n{list}");
    }
    device.run(&format!("printf 'sensors view' >{DIR}/names"));
    let recorded = device.run(&format!("{binary} record -t 1 --json -f {DIR}/names -o {DIR}/vendor.dat"));
    let log = android.log();
    assert!(log.contains(&"tags.enableflags=0x8".to_owned()), "{log:?}");
    let dir = adb::scratch();
    let dat = dir.path().join("vendor.dat");
    device.pull(&format!("{DIR}/vendor.dat"), &dat);
    let events = crate::capture::read(&dat);
    let count = |name: &str| events.iter().filter(|e| e.name == name).count();
    assert!(count("timer_start") > 5 && count("softirq_entry") > 5, "{recorded}");
    device.run(&format!("printf ' timer/timer_start\\n' >{VENDOR}"));
    let malformed = device.shell(&format!("{atrace} -t 0 sched"));
    assert_eq!(malformed.status.code(), Some(1));
    assert!(text(&malformed).contains("Malformed vendor categories file"), "{}", text(&malformed));
    device.run(&format!("rm -r /vendor/etc/atrace {DIR}/names {DIR}/vendor.dat"));
    assert_same(&before, &settings(&device), "after vendor categories");
}
