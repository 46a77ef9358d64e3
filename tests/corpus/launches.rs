//! Finds the launches and frames that Perfetto's trace processor finds in the same files. Its answers lie
//! beside them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::tables::{Row, rows};

/// Perfetto writes so where it has no value.
const NULL: &str = "[NULL]";

/// The compared facts of a launch: package, type, begin, duration, TTID and TTFD, ns.
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

/// The answer of `info --json --frames` about a file.
fn info(file: &Path) -> Value {
    let done = support::tracebridge().args(["info", "--json", "--frames"]).arg(file).run();
    assert!(matches!(done.code(), Some(0 | 3)), "{}: {done:?}", file.display());
    done.json()
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

pub fn files() -> Vec<(PathBuf, Value)> {
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

/// The compared facts of a frame: number, process, begin, duration, overrun and CPU time in ns, janky, slow,
/// big jank and huge jank.
type FrameAnswer = (i64, String, u64, u64, i64, Option<u64>, [bool; 4]);

/// Perfetto's frames.
fn answered_frames(answers: &Value) -> Vec<FrameAnswer> {
    let is = |value: &Value| number::<u8>(value) == Some(1);
    let frame = |frame: &Value| {
        (
            number(&frame["frame_id"]).unwrap(),
            frame["process_name"].as_str().unwrap().to_owned(),
            number(&frame["ts"]).unwrap(),
            number(&frame["dur"]).unwrap(),
            number(&frame["overrun"]).unwrap(),
            number(&frame["cpu_time"]),
            ["was_jank", "was_slow_frame", "was_big_jank", "was_huge_jank"].map(|name| is(&frame[name])),
        )
    };
    answers["frames"].as_array().unwrap().iter().map(frame).collect()
}

/// Our frames of the same numbers.
fn found_frames(file: &Path, expected: &[FrameAnswer]) -> Vec<FrameAnswer> {
    let info = info(file);
    let is_expected = |frame: &&Value| expected.iter().any(|one| frame["id"].as_i64() == Some(one.0));
    let cpu_limits_ns = [50_000_000, 200_000_000];
    let frame = |frame: &Value| {
        let cpu = frame["cpu_ns"].as_u64();
        let [big, huge] = cpu_limits_ns.map(|limit| cpu > Some(limit));
        (
            frame["id"].as_i64().unwrap(),
            frame["package"].as_str().unwrap().to_owned(),
            frame["begin_ns"].as_u64().unwrap(),
            frame["duration_ns"].as_u64().unwrap(),
            frame["overrun_ns"].as_i64().unwrap_or(i64::MIN),
            cpu,
            [frame["janky"] == true, frame["slow"] == true, big, huge],
        )
    };
    info["every_frame"].as_array().unwrap().iter().filter(is_expected).map(frame).collect()
}

#[test]
fn frames_are_those_that_perfetto_finds() {
    for (path, answers) in files() {
        let expected = answered_frames(&answers);
        assert_eq!(found_frames(&path, &expected), expected, "{}", path.display());
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
    let frame = |frame: &Value| json!([frame["id"], frame["package"], frame["duration_cpu_ns"]]);
    let frames: Vec<Value> = info["every_frame"].as_array().unwrap().iter().map(frame).collect();
    json!([launches, frames])
}

/// The facts that FrameTimeline has of each frame; a trace.dat does not hold them.
fn timeline_of_frames(info: &Value) -> Vec<Value> {
    let fields = ["begin_ns", "duration_ns", "overrun_ns", "jank_type", "layer", "cpu_ns"];
    let frames = info["every_frame"].as_array().unwrap().iter();
    frames.map(|frame| fields.iter().map(|field| frame[field].clone()).collect()).collect()
}

#[test]
fn the_same_launches_and_frames_are_in_a_perfetto_trace_and_a_trace_dat_made_of_a_file() {
    for (path, _) in files() {
        let expected = essence(&info(&path));
        let dir = support::tempdir();
        for name in ["copy.pftrace", "copy.dat"] {
            let copy = dir.path().join(name);
            let done = support::tracebridge().arg("convert").arg(&path).arg("-o").arg(&copy).run();
            assert!(matches!(done.code(), Some(0 | 3)), "{name}: {done:?}");
            let copied = info(&copy);
            assert_eq!(essence(&copied), expected, "{} as {name}", path.display());
            if name == "copy.pftrace" {
                assert_eq!(timeline_of_frames(&copied), timeline_of_frames(&info(&path)));
            }
        }
    }
}

#[test]
fn tables_hold_each_launch_and_frame_as_info_prints_them() {
    let mut compared = (0, 0);
    for (path, _) in files() {
        let info = info(&path);
        let dir = support::tempdir();
        let lab = dir.path().join("lab");
        let done = support::tracebridge().args(["dataset", "add"]).arg(&lab).arg(&path).run();
        assert!(matches!(done.code(), Some(0 | 3)), "{}: {done:?}", path.display());
        // The table has launches that are measured.
        let is_whole = |launch: &&Value| launch["cut"].is_null();
        let launches = info["launches"].as_array().unwrap().iter().filter(is_whole);
        let fields = ["package", "type", "rule", "begin_ns", "duration_ns", "ttid_ns", "ttfd_ns", "pid"];
        let expected: Vec<Value> =
            launches.map(|launch| fields.iter().map(|field| launch[field].clone()).collect()).collect();
        let row = |row: &Row| {
            let [app, kind, rule] = ["app", "type", "rule"].map(|column| row.text(column));
            let [ts, dur, ttid, ttfd, pid] =
                ["ts_abs", "dur", "ttid_ns", "ttfd_ns", "pid"].map(|column| row.int(column));
            json!([app, kind, rule, ts, dur, ttid, ttfd, pid])
        };
        let found: Vec<Value> = rows(&lab, "launch").iter().map(row).collect();
        assert_eq!(found, expected, "{}", path.display());
        let fields = [
            "id",
            "package",
            "layer",
            "begin_ns",
            "duration_ns",
            "cpu_ns",
            "duration_cpu_ns",
            "overrun_ns",
            "jank_type",
        ];
        let frames = info["every_frame"].as_array().unwrap().iter();
        let expected: Vec<Value> =
            frames.map(|frame| fields.iter().map(|field| frame[field].clone()).collect()).collect();
        let row = |row: &Row| {
            let [app, layer, jank] = ["app", "layer", "jank_type"].map(|column| row.text(column));
            let [id, ts, dur, cpu, duration_cpu, overrun] =
                ["id", "ts_abs", "dur", "cpu_ns", "duration_cpu_ns", "overrun_ns"]
                    .map(|column| row.int(column));
            json!([id, app, layer, ts, dur, cpu, duration_cpu, overrun, jank])
        };
        let mut found: Vec<Value> = rows(&lab, "frame").iter().map(row).collect();
        // Where Perfetto has no CPU time, the table has that of the threads.
        for (found, expected) in found.iter_mut().zip(&expected) {
            if expected[5].is_null() {
                found[5] = Value::Null;
            }
        }
        assert_eq!(found, expected, "{}", path.display());
        compared = (compared.0 + fields_of(&info, "launches"), compared.1 + found.len());
    }
    assert!(support::corpus().is_none() || (compared.0 >= 20 && compared.1 >= 15), "{compared:?}");
}

fn fields_of(info: &Value, list: &str) -> usize {
    info[list].as_array().unwrap().len()
}

/// Whether a time of a launch or a frame is no whole µs.
fn has_finer_times(info: &Value) -> bool {
    let fields = ["begin_ns", "duration_ns", "ttid_ns", "ttfd_ns", "duration_cpu_ns", "cpu_ns"];
    let lists = ["launches", "every_frame"].map(|list| info[list].as_array().unwrap());
    let times = lists.into_iter().flatten().flat_map(|row| fields.map(|field| row[field].as_u64()));
    times.flatten().any(|ns| ns % 1_000 != 0)
}

/// A text has times in µs, no names of processes and no FrameTimeline.
#[test]
fn the_same_launches_and_frames_are_in_a_text_or_the_conversion_says_what_it_lacks() {
    let mut same = 0;
    for (path, _) in files() {
        let info_of_file = info(&path);
        let dir = support::tempdir();
        let copy = dir.path().join("copy.systrace");
        let mut command = support::tracebridge();
        command.args(["convert", "--json"]).arg(&path).arg("-o").arg(&copy);
        let summary = command.run().exited_with_one_of(&[0, 3]).json();
        if has_finer_times(&info_of_file) {
            assert!(
                summary["reduced"]["times_below_microsecond"].as_u64() > Some(0),
                "{}: {summary}",
                path.display()
            );
            continue;
        }
        let timed = info_of_file["every_frame"].as_array().unwrap().iter();
        if timed.clone().any(|frame| !frame["jank_type"].is_null()) {
            assert!(summary["dropped"]["frames"].as_u64() > Some(0), "{}: {summary}", path.display());
        }
        assert_eq!(essence(&info(&copy)), essence(&info_of_file), "{}", path.display());
        same += fields_of(&info_of_file, "launches") + timed.count();
    }
    assert!(support::corpus().is_none() || same >= 15, "{same}");
}
