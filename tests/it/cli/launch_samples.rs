//! `launch --sample` and `adb launch --sample` with a stand-in for the device's simpleperf.

use std::fs;
use std::path::Path;

use support::perf_writer::{MONOTONIC, perf_data};
use support::scenario::{Era, Scenario};
use support::tracebridge;

use super::adb_launch::{FIFTEEN, Phone, TEN, calls, events, install, launch, write_script};

/// A stand-in for `simpleperf`, which no emulated phone here has, by simpleperf/cmd_record.cpp and
/// simpleperf/environment.cpp: it takes the options that the real one has, of which a frequency holds for the
/// event types that follow it and is else 4000; samples switches of `cpu-clock` and `task-clock` alone;
/// refuses an app that is neither debuggable nor profileable, as the real one does without root; samples
/// until SIGTERM, and then writes its file.
const SIMPLEPERF: &str = r#"trap 'stop=1' INT TERM
if [ "$*" = "list --show-features" ]; then
    echo trace-offcpu
    exit
fi
echo "simpleperf $*" >>HERE/calls
[ $1 = record ] || exit 1
shift
rate=4000
while [ $# -gt 0 ]; do
    case $1 in
        --app | --duration) shift ;;
        -f) shift; rate=$1 ;;
        -e) shift; event=${1%:u}; echo "simpleperf samples $1 at $rate" >>HERE/calls ;;
        -o) shift; out=$1 ;;
        -g) ;;
        --trace-offcpu) offcpu=1 ;;
        *) echo "simpleperf E cmd.cpp:1] Unknown option for record command: '$1'" >&2; exit 1 ;;
    esac
    shift
done
case $offcpu,$event in
    ,* | 1,cpu-clock | 1,task-clock) ;;
    *) echo "simpleperf E --trace-offcpu option only works with one of events cpu-clock task-clock" >&2; exit 1 ;;
esac
if [ -e HERE/release ]; then
    echo "simpleperf E environment.cpp:1] Package com.app doesn't exist or isn't debuggable/profileable." >&2
    exit 1
fi
while [ -z "$stop" ]; do sleep 0.02; done
cp HERE/samples "$out""#;

/// Gives a phone `simpleperf`, whose samples are of a thread that the recording does not know.
fn has_simpleperf(here: &Path) {
    let begin = Scenario::new(21, Era::ArtMono).start_us() * 1_000;
    let samples: Vec<(u64, u32, u32)> = (0..100).map(|n| (begin + n * 1_000_000, 1000, 7777)).collect();
    fs::write(here.join("samples"), perf_data(MONOTONIC, &samples)).unwrap();
    write_script(&here.join("bin/simpleperf"), &SIMPLEPERF.replace("HERE", here.to_str().unwrap()));
}

#[test]
fn a_launch_is_sampled_by_the_devices_simpleperf_and_the_samples_are_on_its_timeline() {
    let Some(phone) = Phone::new(&FIFTEEN, "profileable") else { return };
    has_simpleperf(&phone.here);
    phone.launch("--sample=500 sched -o x.pftrace", 0);
    let samples = events(&phone.desk, "x.pftrace").matches("\"ph\":\"P\"").count();
    assert_eq!(samples, 100);
    let simpleperf = phone.calls("simpleperf record");
    let expected =
        "simpleperf record --app com.app -f 500 -e task-clock:u -g --trace-offcpu --duration 60 -o ";
    assert!(simpleperf.len() == 1 && simpleperf[0].starts_with(expected), "{simpleperf:?}");
    assert_eq!(phone.calls("simpleperf samples"), ["simpleperf samples task-clock:u at 500"]);
    let am = phone.calls("am start");
    assert!(am.len() == 1 && !am[0].contains("--start-profiler"), "the methods are not traced: {am:?}");
    assert!(!phone.here.join("tracebridge.d").exists(), "nothing stays on the device");
}

#[test]
fn an_app_that_simpleperf_may_not_sample_is_launched_all_the_same() {
    let here = support::tempdir();
    has_simpleperf(here.path());
    fs::write(here.path().join("release"), "").unwrap();
    let ran = launch(&FIFTEEN, "--sample", here.path()).exited(3);
    assert!(
        ran.stderr.contains("simpleperf took no samples") && ran.stderr.contains("isn't debuggable"),
        "{ran}"
    );
    let json = ran.json();
    assert!(json["app_start"]["sampler_refused"].as_str().unwrap().contains("com.app"), "{json}");
    assert_eq!(json["app_start"]["times"], serde_json::json!(["TotalTime: 300"]), "{json}");
    assert!(!here.path().join("x.perf.data").exists());
}

#[test]
fn a_device_without_simpleperf_samples_with_the_method_profiler() {
    let here = support::tempdir();
    let ran = launch(&TEN, "--sample=500", here.path()).exited(0);
    assert_eq!(ran.json()["app_start"]["method_trace"]["bytes"], 8);
    let start = "am start -S -W --start-profiler TRACE --sampling 2000 -n com.app/.Main";
    assert!(calls(here.path()).iter().any(|call| call == start), "{:?}", calls(here.path()));
    let refused = launch(&TEN, "--sample --streaming", here.path()).exited(2);
    assert!(refused.stderr.contains("cannot be used with"), "{refused}");
}

#[test]
fn simpleperf_ends_when_its_launch_is_given_up() {
    let here = support::tempdir();
    has_simpleperf(here.path());
    install(&TEN, here.path());
    write_script(&here.path().join("bin/am"), "[ $1 != start ] || exec sleep 600");
    let mut command = tracebridge();
    command.arg("--android-root").arg(here.path()).args([
        "launch",
        "--no-record",
        "--sample",
        "-t",
        "300ms",
        "-o",
    ]);
    command.arg(here.path().join("x.dat")).arg("com.app").run().exited(1);
    let script = here.path().join("bin/simpleperf").display().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    assert!(!lines.any(|line| String::from_utf8_lossy(&line).contains(&script)), "it runs on");
}
