//! One question has one answer: the gate on files, the gate on a dataset and `report --against` measure the
//! same thread, the same part and the same times.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use support::launch_scenario::Launch;
use support::run_in;

const KINDS: [(&str, &str); 4] =
    [("stage", "stages"), ("state", "states"), ("slice", "slices"), ("method", "methods")];

/// The times of a run by measure: ns of the old run and of the new one.
type Times = BTreeMap<String, [i64; 2]>;

/// The times that the gate compares. Kinds of which the runs have nothing are left out.
fn gate_times(dir: &Path, sides: &[&str]) -> Times {
    let mut times = Times::new();
    for kind in ["launch.total", "stage.*", "state.*", "slice.*", "method.*", "benchmark.*"] {
        let condition = format!("{kind} > +20%");
        let ran = run_in(dir, &[&["gate", "--json"], sides, &["--fail-if", &condition]].concat());
        let Some(3 | 0 | 4) = ran.status.code() else { continue };
        for measure in ran.json()["conditions"][0]["measures"].as_array().unwrap() {
            let ns =
                ["baseline_median_ns", "candidate_median_ns"].map(|side| measure[side].as_i64().unwrap());
            times.insert(measure["measure"].as_str().unwrap().to_owned(), ns);
        }
    }
    times
}

/// The traces in a directory.
fn files(dir: &Path, side: &str) -> Vec<String> {
    let entries = fs::read_dir(dir.join(side)).unwrap();
    let files = entries.map(|entry| entry.unwrap().path().display().to_string());
    files.filter(|path| !path.ends_with("benchmarkData.json")).collect()
}

/// The times that `report --against` compares.
fn report_times(dir: &Path, old: &str, new: &str) -> Times {
    let mut args: Vec<String> = vec!["report".into()];
    args.extend(files(dir, new));
    files(dir, old).into_iter().for_each(|file| args.extend(["--against".into(), file]));
    args.extend(["-o", "page.html", "--json"].map(str::to_owned));
    let report = run_in(dir, &args).json();
    let comparison = &report["comparison"];
    let ns = |row: &Value| ["old_ns", "new_ns"].map(|side| row[side].as_i64().unwrap_or(0));
    let mut times = Times::new();
    if comparison["total"]["name"] == "the launch" {
        times.insert("launch.total".to_owned(), ns(&comparison["total"]));
    }
    for (kind, rows) in KINDS.into_iter().chain([("benchmark", "metrics")]) {
        for row in comparison[rows].as_array().unwrap() {
            times.insert(format!("{kind}.{}", row["name"].as_str().unwrap()), ns(row));
        }
    }
    times
}

/// The times of the runs in the directories `old` and `new`, which are the same wherever they are compared.
fn agreed_times(dir: &Path) -> Times {
    for side in ["old", "new"] {
        let mut args =
            ["dataset", "add", "lab", "--tag", &format!("build={side}")].map(str::to_owned).to_vec();
        args.extend(files(dir, side));
        run_in(dir, &args).exited(0);
    }
    let of_files = gate_times(dir, &["--baseline", "old", "--candidate", "new"]);
    let tags = ["--baseline-tag", "build=old", "--candidate-tag", "build=new"];
    let of_tables = gate_times(dir, &[&["--baseline", "lab", "--candidate", "lab"], &tags[..]].concat());
    assert_eq!(of_files, of_tables, "gate on files, gate on a dataset");
    assert_eq!(of_files, report_times(dir, "old", "new"), "gate on files, report --against");
    of_files
}

fn write_pair(dir: &Path, file: &str, texts: [String; 2]) {
    for (side, text) in ["old", "new"].into_iter().zip(texts) {
        fs::create_dir_all(dir.join(side)).unwrap();
        fs::write(dir.join(side).join(file), text).unwrap();
    }
}

/// An app whose activity takes `activity_us` to start, beside a process of another user's that sleeps in one
/// long slice. The markers of Android 12 name the launch 100 µs behind its end.
fn beside_a_sleeper(activity_us: u64, has_launch: bool) -> String {
    let line = |us: u64, comm: &str, tid: u32, cpu: u32, what: &str| {
        format!("  {comm}-{tid} ({tid:5}) [{cpu:03}] .... {}.{:06}: {what}\n", us / 1_000_000, us % 1_000_000)
    };
    let mark =
        |us, comm, tid, cpu, what: &str| line(us, comm, tid, cpu, &format!("tracing_mark_write: {what}"));
    let switch = |us, cpu, prev: (&str, u32, &str), next: (&str, u32)| {
        let from = format!("prev_comm={} prev_pid={} prev_prio=120 prev_state={}", prev.0, prev.1, prev.2);
        line(
            us,
            prev.0,
            prev.1,
            cpu,
            &format!("sched_switch: {from} ==> next_comm={} next_pid={} next_prio=120", next.0, next.1),
        )
    };
    let idle = ("swapper", 0, "R");
    let started = 1_310_000 + activity_us;
    let server =
        |us, what: &str| if has_launch { mark(us, "system_server", 500, 2, what) } else { String::new() };
    // Without the names of the app's own markers of a launch nothing marks one.
    let app = |name: &'static str| if has_launch { name } else { "work" };
    [
        switch(400_000, 0, idle, ("com.a", 200)),
        switch(400_000, 1, idle, ("other", 300)),
        mark(500_000, "other", 300, 1, "B|300|otherwork"),
        switch(900_000, 1, ("other", 300, "S"), ("swapper", 0)),
        server(1_000_000, "S|500|launchingActivity#1|0"),
        mark(1_100_000, "com.a", 200, 0, &format!("B|200|{}", app("bindApplication"))),
        mark(1_300_000, "com.a", 200, 0, "E|200"),
        mark(1_310_000, "com.a", 200, 0, &format!("B|200|{}", app("activityStart"))),
        mark(started, "com.a", 200, 0, "E|200"),
        mark(started + 10_000, "com.a", 200, 0, &format!("B|200|{}", app("activityResume"))),
        mark(started + 30_000, "com.a", 200, 0, "E|200"),
        mark(started + 50_000, "com.a", 200, 0, &format!("B|200|{}", app("Choreographer#doFrame 1"))),
        mark(started + 100_000, "com.a", 200, 0, "E|200"),
        server(started + 200_000, "F|500|launchingActivity#1|0"),
        server(started + 200_100, "I|500|launchingActivity#1:completed-cold:com.a"),
        mark(started + 600_000, "com.a", 200, 0, "B|200|after"),
        mark(started + 800_000, "com.a", 200, 0, "E|200"),
        switch(started + 900_000, 1, idle, ("other", 300)),
        switch(started + 950_000, 0, ("com.a", 200, "S"), ("swapper", 0)),
        mark(started + 960_000, "other", 300, 1, "E|300"),
        switch(started + 980_000, 1, ("other", 300, "S"), ("swapper", 0)),
    ]
    .concat()
}

#[test]
fn the_main_thread_of_a_launch_is_the_launched_app_s_also_beside_a_busy_process() {
    let dir = support::tempdir();
    write_pair(dir.path(), "run.txt", [90_000, 290_000].map(|us| beside_a_sleeper(us, true)));
    let times = agreed_times(dir.path());
    assert_eq!(times["launch.total"], [600_000_000, 800_000_000]);
    assert_eq!(times["state.running"], [600_000_000, 800_000_000]);
    assert_eq!(times["stage.activityStart"], [90_000_000, 290_000_000]);
    assert!(!times.contains_key("stage.otherwork") && !times.contains_key("state.sleeping"), "{times:?}");
}

/// A period that cuts off the marker that names the launch does not change which thread is measured.
#[test]
fn the_main_thread_of_a_period_is_the_launched_app_s() {
    let dir = support::tempdir();
    let dir = dir.path();
    write_pair(dir, "run.txt", [90_000, 290_000].map(|us| beside_a_sleeper(us, true)));
    let period = ["--from", "0.7", "--to", "1", "--json", "-o", "page.html"];
    let args = [&["report", "new/run.txt", "--against", "old/run.txt"], &period[..]].concat();
    let comparison = run_in(dir, &args).json()["comparison"].clone();
    assert_eq!(comparison["states"][0]["name"], "running");
    assert_eq!(comparison["total"]["new_ns"], 300_000_000);
    let stages: Vec<&str> =
        comparison["stages"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(stages, ["activityStart", "bindApplication"]);
}

#[test]
fn runs_without_a_launch_are_measured_from_the_main_thread_s_first_slice_to_its_last() {
    let dir = support::tempdir();
    write_pair(dir.path(), "run.txt", [90_000, 290_000].map(|us| beside_a_sleeper(us, false)));
    let times = agreed_times(dir.path());
    // Nothing but the length of its slices says whose main thread it is.
    assert_eq!(times["stage.otherwork"], [1_860_000_000, 2_060_000_000]);
    assert_eq!(times["state.running"][0], 400_000_000 + 60_000_000);
}

#[test]
fn launches_with_a_method_trace_agree() {
    let dir = support::tempdir();
    let dir = dir.path();
    for (side, slow_percent) in [("old", 0), ("new", 30)] {
        let made = Launch { seed: 7, day: 0, slow_percent, pace_percent: 100 }.make();
        fs::create_dir(dir.join(side)).unwrap();
        fs::write(dir.join(side).join("run.dat"), made.dat).unwrap();
        fs::write(dir.join(side).join("run.trace"), made.trace).unwrap();
    }
    let times = agreed_times(dir);
    for kind in ["launch.total", "method.com.example.app.Feed.bind", "stage.inflate", "state.running"] {
        assert!(times.contains_key(kind), "{kind}: {times:?}");
    }
}

/// The verdict of the gate on `launch.total` and the one of `report --against`, each with its p-value.
fn verdicts(dir: &Path) -> [(String, Value); 2] {
    let gate =
        ["gate", "--json", "--baseline", "old", "--candidate", "new", "--fail-if", "launch.total > +3%"];
    let judged = run_in(dir, &gate).json()["conditions"][0]["measures"][0].clone();
    let mut args: Vec<String> = vec!["report".into()];
    args.extend(files(dir, "new"));
    files(dir, "old").into_iter().for_each(|file| args.extend(["--against".into(), file]));
    args.extend(["-o", "page.html", "--json"].map(str::to_owned));
    let total = run_in(dir, &args).json()["comparison"]["total"].clone();
    [judged, total].map(|row| (row["verdict_text"].as_str().unwrap().to_owned(), row["p"].clone()))
}

#[test]
fn the_gate_and_the_comparison_have_one_verdict_in_the_same_words() {
    let sides = |runs: u64, candidate_us: u64| {
        let dir = support::tempdir();
        for run in 0..runs {
            // A run of one side lies between two of the other one where both take as long.
            let texts = [90_000 + 2_000 * run, candidate_us + 2_000 * run];
            write_pair(dir.path(), &format!("{run}.txt"), texts.map(|us| beside_a_sleeper(us, true)));
        }
        verdicts(dir.path())
    };
    for few in [1, 3, 4] {
        let too_few = ("too few runs to tell (at least 5 a side)".to_owned(), Value::Null);
        assert_eq!(sides(few, 290_000), [too_few.clone(), too_few], "{few} runs a side");
    }
    for (candidate_us, word) in [(290_000, "slower"), (91_000, "no change larger than 1.2 %")] {
        for (text, p) in sides(5, candidate_us) {
            assert_eq!(text, word);
            assert!(p.is_number(), "{text}: {p}");
        }
    }
}
