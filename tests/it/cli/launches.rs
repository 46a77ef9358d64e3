//! `adb launch --compare`: launches that were recorded before, without a device.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use support::python::{python_with, query};
use support::{run_in, tracebridge};

/// Writes a launch of 80 + `inflate_us` µs: its slice `inflate` takes `inflate_us`, and its first frame ends
/// 10 µs later; then comes a frame that is none of the launch.
pub fn write_launch(path: &Path, inflate_us: u32) {
    let mark = |us: u32, what: &str| {
        format!(" com.example-7 ( 7) [000] ...1 1.{us:06}: tracing_mark_write: {what}\n")
    };
    let end = 120 + inflate_us;
    let marks = [
        (50, "S|9|launching: com.example|1"),
        (100, "B|7|bindApplication"),
        (110, "E|7"),
        (120, "B|7|inflate"),
        (end, "E|7"),
        (end, "B|7|activityResume"),
        (end, "E|7"),
        (end, "B|7|Choreographer#doFrame 1"),
        (end + 10, "E|7"),
        (end + 10, "F|9|launching: com.example|1"),
        (end + 5_000, "B|7|Choreographer#doFrame 2"),
        (end + 9_000, "E|7"),
    ];
    fs::write(path, marks.map(|(us, what)| mark(us, what)).concat()).unwrap();
}

#[test]
fn recorded_launches_are_compared_from_the_request_to_the_first_frame() {
    let dir = support::tempdir();
    for (set, times) in [("old", [100, 101, 102, 103, 104]), ("new", [200, 201, 202, 203, 204])] {
        fs::create_dir(dir.path().join(set)).unwrap();
        for (run, us) in times.into_iter().enumerate() {
            write_launch(&dir.path().join(set).join(format!("start-{run}.txt")), us);
        }
    }
    let compare = |more: &[&str]| {
        let mut command = tracebridge();
        command.current_dir(dir.path()).args(["adb", "launch", "--compare", "old", "new"]).args(more);
        command.run()
    };
    let value = compare(&["--json"]).json();
    let total = &value["total"];
    // The medians: 50 to 120 + 102 + 10 µs, and 100 µs more.
    assert_eq!((&total["old_ns"], &total["new_ns"]), (&182_000.into(), &282_000.into()), "{value}");
    assert_eq!((&total["verdict"], &value["new"]["runs"]), (&"slower".into(), &5.into()));
    let slices = value["slices"].as_array().unwrap();
    let inflate = slices.iter().find(|row| row["name"] == "inflate").unwrap();
    assert_eq!((&inflate["delta_ns"], &inflate["verdict"]), (&100_000.into(), &"slower".into()));
    let frames = slices.iter().filter(|row| row["name"].as_str().unwrap().starts_with("Choreographer"));
    assert_eq!(frames.count(), 1, "the second frame is behind the launch: {slices:?}");
    let said = compare(&[]).stdout;
    assert!(said.contains("time of the launch: 0.182 -> 0.282 ms (+54.9 %), slower (p = 0.008)"), "{said}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let dir = support::tempdir();
    fs::create_dir(dir.path().join("empty")).unwrap();
    write_launch(&dir.path().join("a.txt"), 10);
    for (words, status, part) in [
        ("--compare empty a.txt", 1, "empty: no files"),
        ("--compare absent a.txt", 1, "absent"),
        ("--compare a.txt", 2, "2 values"),
        ("", 2, "PACKAGE"),
    ] {
        let mut command = tracebridge();
        command.current_dir(dir.path()).args(["adb", "launch"]).args(words.split_whitespace());
        let out = command.run();
        let said = &out.stderr;
        assert!(out.code() == Some(status) && said.contains(part), "{words}: {out:?}");
    }
}

/// Medians of both sides, ns, and the two-sided p-value, by kind and name.
type Numbers = BTreeMap<String, (u64, u64, f64)>;

/// The numbers of a comparison as `report --diff` and `adb launch --compare` print it.
fn compared(value: &Value) -> Numbers {
    let row = |kind: &str, row: &Value| {
        let ns = |side: &str| row[side].as_u64().unwrap_or_else(|| panic!("{row}"));
        let name = format!("{kind}.{}", row["name"].as_str().unwrap());
        (name, (ns("old_ns"), ns("new_ns"), row["p"].as_f64().unwrap()))
    };
    let (_, total) = row("launch", &value["total"]);
    let mut numbers = Numbers::from([("launch.total".to_owned(), total)]);
    for (kind, rows) in [("stage", "stages"), ("state", "states"), ("slice", "slices")] {
        numbers.extend(value[rows].as_array().unwrap().iter().map(|value| row(kind, value)));
    }
    numbers
}

/// The numbers of `gate --json`, which tests one side.
fn gated(value: &Value) -> Numbers {
    let conditions = value["conditions"].as_array().unwrap().iter();
    let measures = conditions.flat_map(|condition| condition["measures"].as_array().unwrap());
    let measure = |measure: &Value| {
        let name = measure["measure"].as_str().unwrap().to_owned();
        let ns = |side: &str| measure[side].as_u64().unwrap();
        let p = (2.0 * measure["p"].as_f64().unwrap()).min(1.0);
        (name, (ns("baseline_median_ns"), ns("candidate_median_ns"), p))
    };
    measures.map(measure).collect()
}

/// The rows of a query over the dataset `set`, by the column `name`.
fn queried(dir: &Path, name: &str) -> Numbers {
    let said = query(dir, &["--key", "side", "--old", "old", "--new", "new", "--csv", "set", name]).stdout;
    let mut lines = said.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let at = |column: &str| head.iter().position(|name| *name == column).unwrap();
    let row = |cells: Vec<&str>| {
        let number = |column: &str| cells[at(column)].parse::<f64>().unwrap();
        let ns = |column: &str| (number(column) * 1e6).round() as u64;
        (cells[at("name")].to_owned(), (ns("old_median_ms"), ns("new_median_ms"), number("p_value")))
    };
    lines.map(row).collect()
}

#[test]
fn one_set_of_files_has_the_same_numbers_in_all_four_ways() {
    let dir = support::tempdir();
    let dir = dir.path();
    for (side, times) in
        [("old", [1_000, 1_021, 1_010, 1_045, 1_030]), ("new", [1_100, 1_011, 1_122, 1_139, 1_141])]
    {
        fs::create_dir(dir.join(side)).unwrap();
        for (run, us) in times.into_iter().enumerate() {
            super::gate::write_launch(&dir.join(side).join(format!("{run}.txt")), us, "inflate");
        }
    }
    let files = |side: &str| (0..5).map(|run| format!("{side}/{run}.txt")).collect::<Vec<_>>();
    let report = [&["report".to_owned()][..], &files("new"), &["--diff".to_owned()], &files("old")].concat();
    let report = [&report[..], &["-o", "d.html", "--json"].map(str::to_owned)].concat();
    let report = compared(&run_in(dir, &report).json()["comparison"]);
    let launch = compared(&run_in(dir, &["adb", "launch", "--compare", "old", "new", "--json"]).json());
    assert_eq!(report, launch);
    let gate = "gate --json --baseline old --candidate new --fail-if launch.total>+90% --fail-if stage.*>+90% \
                --fail-if state.*>+90% --fail-if slice.*>+90%";
    let gate = gated(&run_in(dir, &gate.split_whitespace().collect::<Vec<_>>()).json());
    assert_eq!(report.keys().collect::<Vec<_>>(), gate.keys().collect::<Vec<_>>());
    for (name, (old, new, p)) in &report {
        let other = gate[name];
        assert_eq!((*old, *new), (other.0, other.1), "{name}");
        // The gate asks whether the new runs are slower.
        assert!((p - other.2).abs() < 1e-9 || new <= old, "{name}: {p} {other:?}");
    }
    // The states of the main thread are those of the launch: they fit into it.
    let states: u64 =
        report.iter().filter(|(name, _)| name.starts_with("state.")).map(|(_, row)| row.0).sum();
    assert!(report.len() > 8 && states <= report["launch.total"].0 + 2_000, "{report:?}");

    for side in ["old", "new"] {
        let tag = format!("side={side}");
        let args = [&["dataset", "add", "set"].map(str::to_owned)[..], &files(side)].concat();
        run_in(dir, &[&args[..], &["--tag".to_owned(), tag]].concat()).exited(0);
    }
    if python_with("duckdb").is_none() {
        return;
    }
    let near = |a: (u64, u64, f64), b: (u64, u64, f64), what: &str| {
        // Tables are printed with three decimal places.
        let is_near = a.0.abs_diff(b.0) <= 500 && a.1.abs_diff(b.1) <= 500;
        assert!(is_near && (a.2 - b.2).abs() < 0.000_6, "{what}: {a:?} {b:?}");
    };
    let launches = queried(dir, "launch-regression");
    assert_eq!(launches.len(), 1, "{launches:?}");
    near(*launches.values().next().unwrap(), report["launch.total"], "launch");
    // The table has the slices behind the launch too: here only `inflate` has one.
    let slices = queried(dir, "slice-regression");
    for (name, row) in slices.iter().filter(|(name, _)| *name != "inflate") {
        near(*row, report[&format!("slice.{name}")], name);
    }
    assert!(slices.contains_key("Choreographer#doFrame 1"), "{slices:?}");
}

#[test]
fn a_launch_is_completed_by_a_begin_and_an_end_at_one_time() {
    let dir = support::tempdir();
    let of = |end: &str| {
        let line = |time: &str, marker: &str| {
            format!("  system_server-1200 ( 1200) [000] ..... {time}: tracing_mark_write: {marker}\n")
        };
        let text = [
            "# tracer: nop\n#\n".to_owned(),
            line("10.040000", "S|1200|launchingActivity#1|1"),
            line("11.105000", "F|1200|launchingActivity#1|1"),
            line("11.105000", "B|1200|launchingActivity#1:completed-cold:com.example.app"),
            line(end, "E|1200"),
        ];
        fs::write(dir.path().join("a.txt"), text.concat()).unwrap();
        run_in(dir.path(), &["info", "--json", "a.txt"]).exited(0).json()["launches"].clone()
    };
    let launches = of("11.105000");
    assert_eq!(launches[0]["package"], "com.example.app", "{launches}");
    let longer = of("11.106000");
    assert!(longer.as_array().unwrap().is_empty(), "a slice with a length completes no launch: {longer}");
}
