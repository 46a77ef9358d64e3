//! Finds the launches and frames that Perfetto's trace processor finds in the same files. Its answers lie
//! beside them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Perfetto writes so where it has no value.
const NULL: &str = "[NULL]";

/// Frames of `android_jank_cuj` that began later than they were expected to.
const BEGUN_LATE: [i64; 2] = [140, 150];

/// What is compared of a launch: package, type, begin, duration, TTID and TTFD, ns.
type LaunchAnswer = (String, Option<String>, u64, u64, Option<u64>, Option<u64>);

fn number<T: std::str::FromStr>(value: &Value) -> Option<T> {
    value.as_str().filter(|text| *text != NULL).and_then(|text| text.parse().ok())
}

/// Perfetto's launches.
fn answered_launches(answers: &Value) -> Vec<LaunchAnswer> {
    let displays: BTreeMap<&str, &Value> = answers["display"]
        .as_array()
        .unwrap()
        .iter()
        .map(|display| (display["startup_id"].as_str().unwrap(), display))
        .collect();
    let launch = |launch: &Value| {
        let display = displays[launch["startup_id"].as_str().unwrap()];
        (
            launch["package"].as_str().unwrap().to_owned(),
            launch["startup_type"].as_str().filter(|text| *text != NULL).map(str::to_owned),
            number(&launch["ts"]).unwrap(),
            number(&launch["dur"]).unwrap(),
            number(&display["time_to_initial_display"]),
            number(&display["time_to_full_display"]),
        )
    };
    let mut launches: Vec<_> = answers["launches"].as_array().unwrap().iter().map(launch).collect();
    launches.sort_by_key(|launch| launch.2);
    launches
}

/// What `info --json --frames` says of a file.
fn info(file: &Path) -> Value {
    let done = support::tracebridge().args(["info", "--json", "--frames"]).arg(file).output().unwrap();
    assert!(matches!(done.status.code(), Some(0 | 3)), "{}: {done:?}", file.display());
    serde_json::from_slice(&done.stdout).unwrap()
}

/// Our launches, without those that the recording cuts.
fn found_launches(info: &Value) -> Vec<LaunchAnswer> {
    let whole = info["launches"].as_array().unwrap().iter().filter(|launch| launch["cut"].is_null());
    let launch = |launch: &Value| {
        (
            launch["package"].as_str().unwrap().to_owned(),
            launch["type"].as_str().map(str::to_owned),
            launch["begin_ns"].as_u64().unwrap(),
            launch["duration_ns"].as_u64().unwrap(),
            launch["ttid_ns"].as_u64(),
            launch["ttfd_ns"].as_u64(),
        )
    };
    whole.map(launch).collect()
}

fn files() -> Vec<(PathBuf, Value)> {
    let Some(corpus) = support::corpus() else { return Vec::new() };
    let entries = std::fs::read_dir(corpus.join("launches")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "pftrace"));
    paths.sort();
    assert!(paths.len() >= 10, "{paths:?}");
    let answers = |path: &PathBuf| {
        let text = std::fs::read(format!("{}.answers.json", path.display())).unwrap();
        serde_json::from_slice(&text).unwrap()
    };
    paths.iter().map(|path| (path.clone(), answers(path))).collect()
}

#[test]
fn the_launches_are_those_that_perfetto_finds() {
    for (path, answers) in files() {
        let info = info(&path);
        assert_eq!(found_launches(&info), answered_launches(&answers), "{}", path.display());
        let cut = info["launches"].as_array().unwrap().iter().filter(|launch| !launch["cut"].is_null());
        assert_eq!(cut.count(), 0, "{}", path.display());
    }
}

#[test]
fn frames_have_the_numbers_and_cpu_times_that_perfetto_gives() {
    for (path, answers) in files() {
        let frames = answers["frames"].as_array().unwrap();
        let timed = frames.iter().filter_map(|frame| {
            let cpu: u64 = number(&frame["cpu_time"])?;
            Some((number::<i64>(&frame["frame_id"])?, cpu, number::<u8>(&frame["was_slow_frame"]) == Some(1)))
        });
        // Perfetto adds to the CPU time of these by how much FrameTimeline says that they began late.
        let timed = timed.filter(|(id, ..)| !BEGUN_LATE.contains(id));
        let expected: BTreeMap<i64, (u64, bool)> = timed.map(|(id, cpu, slow)| (id, (cpu, slow))).collect();
        let found = info(&path)["every_frame"].as_array().unwrap().clone();
        let found: BTreeMap<i64, (u64, bool)> = found
            .iter()
            .map(|frame| {
                let of_frame = (frame["cpu_ns"].as_u64().unwrap(), frame["slow"].as_bool().unwrap());
                (frame["id"].as_i64().unwrap(), of_frame)
            })
            .filter(|(id, _)| expected.contains_key(id))
            .collect();
        assert_eq!(found, expected, "{}", path.display());
    }
}

/// Launches and frames without the ids of threads, and with times that a text in µs can hold.
fn essence(info: &Value) -> Value {
    let launch = |launch: &Value| {
        json!([
            launch["package"],
            launch["type"],
            launch["begin_ns"],
            launch["duration_ns"],
            launch["ttid_ns"],
            launch["ttfd_ns"],
            launch["cut"]
        ])
    };
    let launches: Vec<Value> = info["launches"].as_array().unwrap().iter().map(launch).collect();
    let frame =
        |frame: &Value| json!([frame["id"], frame["begin_ns"], frame["duration_ns"], frame["cpu_ns"]]);
    let frames: Vec<Value> = info["every_frame"].as_array().unwrap().iter().map(frame).collect();
    json!([launches, frames])
}

#[test]
fn the_same_launches_and_frames_are_in_a_perfetto_trace_and_a_trace_dat_made_of_a_file() {
    for (path, _) in files() {
        let expected = essence(&info(&path));
        let dir = support::tempdir();
        for name in ["copy.pftrace", "copy.dat"] {
            // The difference of two times in a trace.dat has 59 bits, and this file has one of 31 years.
            if name == "copy.dat" && path.ends_with("android_startup_attribution_slow.pftrace") {
                continue;
            }
            let copy = dir.path().join(name);
            let done =
                support::tracebridge().arg("convert").arg(&path).arg("-o").arg(&copy).output().unwrap();
            assert!(matches!(done.status.code(), Some(0 | 3)), "{name}: {done:?}");
            assert_eq!(essence(&info(&copy)), expected, "{} as {name}", path.display());
        }
    }
}
