//! The journey that a user makes: push, record while the reference app runs, pull, merge. It is made once,
//! and several tests look at its results.

use std::path::PathBuf;
use std::sync::OnceLock;

use serde_json::Value;

use crate::adb::{self, DIR, Device, Measures};
use crate::capture;

/// The journey's results on the host.
pub struct Journey {
    _dir: tempfile::TempDir,
    /// The kernel capture.
    pub dat: PathBuf,
    /// The merged trace.
    pub pftrace: PathBuf,
    /// The reference app's own report of its calls and threads.
    pub app: Value,
    /// The merge's summary.
    pub merged: Value,
    /// `info` of the capture.
    pub info: Value,
}

/// The journey's results; `None` without a device.
pub fn journey() -> Option<&'static Journey> {
    static JOURNEY: OnceLock<Option<Journey>> = OnceLock::new();
    JOURNEY.get_or_init(|| Device::attached_for(Measures::Time).map(|device| travel(&device))).as_ref()
}

/// Makes the journey once more; `None` without a device.
pub fn another_journey() -> Option<Journey> {
    Device::attached_for(Measures::Time).map(|device| travel(&device))
}

fn travel(device: &Device) -> Journey {
    let dir = adb::scratch();
    let path = |name: &str| dir.path().join(name);
    let abi = device.abi();
    let binary = device.program(abi, "tracebridge");
    let app = device.program(abi, "reference_app");

    let recording =
        device.record(&binary, &format!("-t 6000 -b 16384 -o {DIR}/journey.dat --json sched freq idle"));
    let report = device.run(&format!("{app} -o {DIR}/journey.trace --threads 6 --calls 8000 --pause 20000"));
    recording.signal("INT");
    let recorded = recording.end();
    assert_eq!(recorded.code(), Some(0), "events were lost: {}", recorded.said());

    device.fetch(&format!("{DIR}/journey.dat"), dir.path());
    device.fetch(&format!("{DIR}/journey.trace"), dir.path());
    let pftrace = path("journey.pftrace");
    let merged = json(&["merge", "--json", "-o"], &[&pftrace, &path("journey.dat"), &path("journey.trace")]);
    let info = json(&["info", "--json"], &[&path("journey.dat")]);
    Journey {
        dat: path("journey.dat"),
        pftrace,
        app: serde_json::from_str(&report).expect("the reference app prints JSON"),
        merged,
        info,
        _dir: dir,
    }
}

/// Runs the product on this host. Returns the JSON that it printed.
pub fn json(arguments: &[&str], files: &[&PathBuf]) -> Value {
    let output = support::tracebridge().args(arguments).args(files).run();
    assert_eq!(output.code(), Some(0), "{arguments:?}: {output}");
    output.json()
}

#[test]
fn trace_cmd_reports_the_events_that_info_counts() {
    let Some(journey) = journey() else { return };
    if !support::has_program("trace-cmd") {
        return support::skip("trace-cmd", "trace-cmd is not installed: scripts/setup installs it");
    }
    let ours = capture::read(&journey.dat);
    let theirs = capture::trace_cmd_report(&journey.dat);
    // The app ends after a time, so that a slow machine has fewer calls: each has two markers.
    let threads = journey.app["threads"].as_array().expect("threads");
    let markers: u64 = threads.iter().filter_map(|thread| thread["markers"].as_u64()).sum();
    assert!(markers > 0 && theirs.len() as u64 >= markers, "{} events of {markers} markers", theirs.len());
    assert_eq!(theirs.len(), ours.len(), "events that trace-cmd report prints, and that are read");
    assert_eq!(journey.info["events"].as_u64(), Some(theirs.len() as u64), "{}", journey.info);
    capture::assert_same_events(ours, theirs);
}

#[test]
fn the_binary_needs_nothing_on_the_device_and_doctor_knows_where_it_is() {
    let Some(device) = Device::attached() else { return };
    let abi = device.abi();
    let binary = device.program(abi, "tracebridge");
    assert!(device.run(&format!("{binary} --version")).starts_with("tracebridge "));

    let doctor: Value = serde_json::from_str(&device.run(&format!("{binary} doctor --json"))).expect("JSON");
    assert_eq!(doctor["tracefs"], "/sys/kernel/tracing");
    assert_eq!(doctor["machine"]["abi"], abi);
    assert_eq!(doctor["machine"]["kernel"], device.run("uname -r").trim());
    assert_eq!(doctor["clock"], "boot");
}
