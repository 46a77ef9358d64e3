//! The drop-in atrace, under its own name on the device and with the arguments that systrace, Perfetto and
//! scripts give it.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use support::{Child, until};

use serde_json::Value;

use crate::adb::{self, DIR, Device, RECORDING};
use crate::fake_android::FakeAndroid;
use crate::journey::json;
use crate::settings::{assert_same, reset, settings, unusual, usual};

/// Makes a link named `atrace` to the binary on the device. Returns the link's path.
fn atrace(device: &Device) -> String {
    let binary = device.program(device.abi(), "tracebridge");
    device.run(&format!("ln -sf {binary} {DIR}/atrace"));
    format!("{DIR}/atrace")
}

/// A program on the device that makes scheduler events until this is dropped.
struct Load<'a> {
    device: &'a Device,
    program: String,
    connection: Child,
}

impl Load<'_> {
    fn start(device: &Device) -> Load<'_> {
        let program = device.program(device.abi(), "load_generator");
        let connection = device.start(&format!("exec {program} bounce --pairs 1 --seconds 6000"));
        Load { device, program, connection }
    }
}

impl Drop for Load<'_> {
    fn drop(&mut self) {
        // adbd ends a program that it started when the program's connection closes.
        let _ = self.connection.kill();
        let _ = self.connection.wait();
        if !std::thread::panicking() {
            let name = self.program.rsplit('/').next().unwrap_or_default();
            self.device.wait_until("the load to end", &format!("! pidof {name}"));
        }
    }
}

/// How many events a text holds. An event is a line in the kernel's form: a task, a CPU in brackets, a time.
fn event_lines(text: &str) -> u64 {
    text.lines().filter(|l| !l.starts_with('#') && l.contains("] ") && l.contains(": ")).count() as u64
}

/// Gives a trace to the host's `info` and `convert`. Returns what `info` prints.
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
        let before = prepare(&device);
        let _load = Load::start(&device);
        let plain = device.shell(&format!("{atrace} -t 1 -b 8192 sched freq idle nonsense"));
        assert_eq!(plain.code(), Some(0), "{}", plain.said());
        let said = &plain.stderr;
        assert!(said.contains("error: unknown tracing category \"nonsense\""), "{said}");
        let trace = plain.stdout;
        assert!(trace.starts_with("capturing trace... done\nTRACE:\n# tracer: nop\n"), "{}", &trace[..200]);
        let events = event_lines(&trace);
        assert!(events > 500, "only {events} events");
        assert_eq!(reads_on_the_host(trace.as_bytes())["events"].as_u64(), Some(events));

        let packed = device.shell_bytes(&format!("{atrace} -z -t1 -b 8192 sched"));
        let zlib =
            packed.stdout.strip_prefix(b"capturing trace... done\nTRACE:\n").expect("the lines before");
        let mut trace = String::new();
        flate2::read::ZlibDecoder::new(zlib).read_to_string(&mut trace).expect("a zlib stream");
        assert!(trace.starts_with("# tracer: nop\n"), "{}", &trace[..200]);
        let events = event_lines(&trace);
        assert_eq!(reads_on_the_host(&packed.stdout)["events"].as_u64(), Some(events));
        assert_same(before, &settings(&device), "after atrace");
    }
    reset(&device);
}

#[test]
fn a_file_a_ring_and_a_size_are_as_asked_for() {
    let Some(device) = Device::attached_in_full_run() else { return };
    let atrace = atrace(&device);
    let before = unusual(&device);
    let file = format!("{DIR}/atrace.out");
    let knobs = "cd /sys/kernel/tracing && cat options/overwrite buffer_size_kb trace_clock tracing_on";
    for (ring, overwrite) in [("-c", "1"), ("", "0")] {
        // The knobs are read by the shell that has started atrace, which is quick enough on any device.
        let done = device.shell(&format!(
            "{atrace} {ring} -b 1024 -t 1 -o {file} sched & p=$!; cd /sys/kernel/tracing; \
             while kill -0 $p; do read -r on <tracing_on; read -r switch <events/sched/sched_switch/enable; \
             if [ $on$switch = 11 ]; then {{ {knobs}; }} >{DIR}/atrace.set; break; fi; done; wait $p"
        ));
        let set = device.run(&format!("cat {DIR}/atrace.set; rm {DIR}/atrace.set"));
        let (first, rest) = set.split_once('\n').unwrap();
        assert_eq!(first, overwrite);
        // The kernel rounds the size up to whole pages.
        assert!(rest.starts_with("10") && rest.contains("[boot]") && rest.ends_with("\n1\n"), "{set}");
        assert_eq!((done.stdout.as_str(), done.code()), ("capturing trace... done\n", Some(0)));
        assert!(device.run(&format!("head -n 2 {file}")).starts_with("TRACE:\n# tracer: nop\n"));
    }
    device.run(&format!("rm {file}"));
    assert_same(before, &settings(&device), "after atrace -o");
    reset(&device);
}

#[test]
fn a_ring_outlives_the_connection_that_started_it() {
    let Some(device) = Device::attached_in_full_run() else { return };
    let atrace = atrace(&device);
    let before = unusual(&device);
    let _load = Load::start(&device);
    let start = device.shell(&format!("{atrace} --async_start -b 4096 sched"));
    assert_eq!((start.stdout.as_str(), start.code()), ("capturing trace...", Some(0)));
    let on = "cd /sys/kernel/tracing && cat tracing_on options/overwrite events/sched/sched_switch/enable";
    assert_eq!(device.run(on), "1\n1\n1\n");
    let dump = device.run(&format!("{atrace} --async_dump"));
    assert!(dump.starts_with(" done\nTRACE:\n") && event_lines(&dump) > 20, "{}", &dump[..200]);
    assert_eq!(device.run(on), "1\n1\n1\n", "a dump does not end it");
    let stop = device.shell_bytes(&format!("{atrace} -z --async_stop"));
    assert!(stop.status.success() && stop.stdout.starts_with(b" done\nTRACE:\n\x78"), "{stop:?}");
    assert_same(before, &settings(&device), "after --async_stop");
    reset(&device);
}

#[test]
fn a_stream_is_text_until_a_signal() {
    let Some(device) = Device::attached_in_full_run() else { return };
    let atrace = atrace(&device);
    let before = usual(&device);
    let load = Load::start(&device);
    let mut streaming = device.start_signalled(&format!("{atrace} --stream sched")).wait_for(&RECORDING);
    let printed = streaming.collect_stdout();
    until("a hundred events", || event_lines(&printed.text()) > 100);
    streaming.signal("INT");
    drop(load);
    let output = streaming.finish();
    assert_eq!(output.code(), Some(1), "AOSP's atrace has this status too after a signal");
    let stream = printed.to_end();
    assert!(!stream.contains("capturing trace") && event_lines(&stream) > 100, "{}", output.said());
    let info = reads_on_the_host(stream.as_bytes());
    assert_eq!(info["events"].as_u64(), Some(event_lines(&stream)), "{info}");
    assert_same(before, &settings(&device), "after --stream");
}

#[test]
fn properties_are_set_in_order_and_put_back() {
    let Some(device) = Device::attached_in_full_run() else { return };
    let properties = [
        ("ro.build.version.sdk", "35"),
        ("ro.atrace.core.services", "system_server,surfaceflinger"),
        ("debug.atrace.tags.enableflags", "0x8"),
        ("debug.atrace.app_number", "1"),
        ("debug.atrace.app_0", "com.old"),
    ];
    let programs = &["getprop", "setprop", "service"];
    let Some(android) = FakeAndroid::install(&device, programs, &properties) else { return };
    let atrace = atrace(&device);
    let before = usual(&device);
    device.run(&format!(
        "printf 'gfx am\\nview' >{DIR}/categories && \
         {atrace} -t 0 -a com.a,com.b -f {DIR}/categories core_services sched >/dev/null && rm {DIR}/categories"
    ));
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
    assert_same(before, &settings(&device), "after atrace with properties");
}

#[test]
fn services_of_android_10_are_told_of_new_tags_and_of_their_end() {
    let Some(device) = Device::attached_in_full_run() else { return };
    let programs = &["getprop", "setprop", "service"];
    let Some(android) = FakeAndroid::install(&device, programs, &[("ro.build.version.sdk", "29")]) else {
        return;
    };
    let atrace = atrace(&device);
    device.run(&format!("{atrace} -t 0 gfx >/dev/null"));
    // The transaction `_SPR` (SYSPROPS_TRANSACTION) of Android's binder.
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
    let Some(device) = Device::attached_in_full_run() else { return };
    if device.run("cat /sys/kernel/tracing/available_tracers").contains("function_graph") {
        let atrace = atrace(&device);
        let before = unusual(&device);
        let traced = device.run(&format!("{atrace} -t 1 -k schedule,vfs_re* sched"));
        assert!(traced.contains("# tracer: function_graph"), "{}", &traced[..200]);
        assert!(traced.contains("|  schedule() {") && traced.contains("vfs_read"), "{}", &traced[..2000]);
        assert_same(before, &settings(&device), "after -k");

        let refused = device.shell(&format!("{atrace} -t 1 -k schedule,no_such_function sched"));
        assert_eq!(refused.code(), Some(1));
        let said = &refused.stderr;
        assert!(
            said.contains("error: \"no_such_function\" is not a valid kernel function to trace."),
            "{said}"
        );
        assert!(!refused.stdout.contains("TRACE:"));
        assert_same(before, &settings(&device), "after a -k that was refused");
        reset(&device);
    } else {
        support::skip("functions", "this kernel traces no functions");
    }
}

#[test]
fn failures_and_misuse_are_told_by_the_exit_status() {
    let Some(device) = Device::attached_in_full_run() else { return };
    let atrace = atrace(&device);
    let before = usual(&device);
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
        assert_eq!(output.code(), Some(status), "{arguments}: {}", output.said());
        assert!(output.said().contains(said), "{arguments}: {}", output.said());
    }
    assert_same(before, &settings(&device), "after failures");
}

/// The file of a vendor's own categories.
const VENDOR: &str = "/vendor/etc/atrace/atrace_categories.txt";

/// A vendor's file of categories on the device, removed on drop.
struct VendorFile<'a>(&'a Device);

impl Drop for VendorFile<'_> {
    fn drop(&mut self) {
        self.0.shell(&format!("rm -r /vendor/etc/atrace {DIR}/names"));
    }
}

#[test]
fn the_vendors_file_adds_categories_and_a_file_of_names_reaches_the_tags() {
    let Some(device) = Device::attached() else { return };
    let Some(android) = FakeAndroid::install(&device, &["getprop", "setprop"], &[]) else { return };
    let atrace = atrace(&device);
    let binary = device.program(device.abi(), "tracebridge");
    let before = usual(&device);
    let vendor_file = VendorFile(&device);
    // A new category, a category whose event this kernel lacks, and another event for one of AOSP's
    // categories.
    let file = "sensors\\n  timer/timer_start\\n\\tno/such\\ngone\\n no/such\\nview\\n irq/softirq_entry\\n";
    let list = device.run(&format!(
        "mkdir -p /vendor/etc/atrace && printf '{file}' >{VENDOR} && {atrace} --list_categories"
    ));
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
    let recording = device.record_until(
        &binary,
        &format!("-t 6000 --json -f {DIR}/names -o {DIR}/vendor.dat"),
        &[("events/timer/timer_start/enable", "1"), ("tracing_on", "1")],
    );
    // An idle device has few timers. Each line that goes over the network during the recording starts one.
    device.run("i=0; while [ $i -lt 20 ]; do echo $i; sleep 0.02; i=$((i+1)); done");
    recording.signal("INT");
    let recorded = recording.end().said();
    let log = android.log();
    assert!(log.contains(&"tags.enableflags=0x8".to_owned()), "{log:?}");
    let dir = adb::scratch();
    let dat = device.fetch(&format!("{DIR}/vendor.dat"), dir.path());
    let events = crate::capture::read(&dat);
    let count = |name: &str| events.iter().filter(|e| e.name == name).count();
    assert!(count("timer_start") > 5 && count("softirq_entry") > 5, "{recorded}");
    device.run(&format!("printf ' timer/timer_start\\n' >{VENDOR}"));
    let malformed = device.shell(&format!("{atrace} -t 0 sched"));
    assert_eq!(malformed.code(), Some(1));
    assert!(malformed.said().contains("Malformed vendor categories file"), "{}", malformed.said());
    drop(vendor_file);
    assert_same(before, &settings(&device), "after vendor categories");
}
