//! The queries of `queries/` over launches and frames.

use std::fs;

use support::launch_scenario::{NoiseSource, USUAL, launches};
use support::python::{python_with, query, query_of};
use support::run_in;

use super::gate::{text_of_frames, write_launch};

/// The lines that the query prints about a history of builds with these median launches, ns.
fn change_points(medians_ns: &[f64], seed: u64) -> Vec<Vec<String>> {
    let dir = support::tempdir();
    let dir = dir.path();
    let source = &mut NoiseSource(seed);
    for (build, median) in medians_ns.iter().enumerate() {
        let mut args: Vec<String> = ["dataset", "add", "lab", "--tag"].map(str::to_owned).into();
        // The texts have no wall clock: the number decides about the order, 9 before 10.
        args.push(format!("build={}", build + 1));
        for (run, ns) in launches(source, 5, *median, USUAL).into_iter().enumerate() {
            args.push(format!("{build}-{run}.txt"));
            write_launch(&dir.join(&args[args.len() - 1]), ns / 1_000, "inflate");
        }
        run_in(dir, &args).exited(0);
    }
    let rows = query(dir, &["--csv", "lab", "change-points"]).stdout;
    rows.lines().skip(1).map(|line| line.trim().split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn a_history_shows_the_builds_with_which_launches_changed_and_no_other() {
    if python_with("duckdb").is_none() {
        return;
    }
    let history = |parts: &[(usize, f64)]| -> Vec<f64> {
        parts.iter().flat_map(|(builds, ns)| vec![*ns; *builds]).collect()
    };
    let found = change_points(&history(&[(12, 400e6), (11, 440e6), (9, 410e6)]), 1);
    let builds: Vec<&str> = found.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(builds, ["13", "24"], "{found:?}");
    let percent = |row: &[String]| row[7].parse::<f64>().unwrap();
    assert!((percent(&found[0]) - 10.0).abs() < 2.5 && (percent(&found[1]) + 6.8).abs() < 2.5, "{found:?}");
    assert_eq!(change_points(&history(&[(24, 400e6)]), 2), Vec::<Vec<String>>::new());
}

/// A launch of a type whose first frame is drawn after `ttid_us`, as the app's own markers and those of the
/// system server have it.
fn launch_text(launch_type: &str, ttid_us: u64) -> String {
    let mark = |us: u64, comm: &str, tid: u32, pid: u32, what: &str| {
        let time = format!("{}.{:06}", 1 + us / 1_000_000, us % 1_000_000);
        format!(" {comm}-{tid} ({pid:5}) [000] .... {time}: tracing_mark_write: {what}\n")
    };
    let server = |us, what: &str| mark(us, "system_server", 9, 9, what);
    let app = |us, what: &str| mark(us, "com.example", 7, 7, what);
    [
        server(0, "S|9|launchingActivity#1|0"),
        app(100, "B|7|activityResume"),
        app(200, "E|7"),
        app(200, "B|7|Choreographer#doFrame 1"),
        app(300, "E|7"),
        mark(300, "RenderThread", 8, 7, "B|7|DrawFrames 1"),
        mark(ttid_us, "RenderThread", 8, 7, "E|7"),
        server(ttid_us + 10, "F|9|launchingActivity#1|0"),
        server(ttid_us + 11, &format!("I|9|launchingActivity#1:completed-{launch_type}:com.example")),
    ]
    .concat()
}

#[test]
fn queries_tell_ttid_and_late_frames_of_each_build() {
    if python_with("duckdb").is_none() {
        return;
    }
    let dir = support::tempdir();
    let dir = dir.path();
    for (build, ttid_us, late) in [("1", 400_000, 1), ("2", 500_000, 5)] {
        let files = [
            ("cold", launch_text("cold", ttid_us)),
            ("cold2", launch_text("cold", ttid_us + 20_000)),
            ("cold3", launch_text("cold", ttid_us + 40_000)),
            ("hot", launch_text("hot", ttid_us / 10)),
            ("frames", text_of_frames(late, 1_000, true)),
        ];
        for (name, text) in files {
            let name = format!("{name}-{build}.txt");
            fs::write(dir.join(&name), text).unwrap();
            run_in(dir, &["dataset", "add", "lab", &name, "--tag", &format!("build={build}")]).exited(0);
        }
    }
    let query = |args: &[&str]| -> Vec<String> {
        let rows = query(dir, &[&["--csv", "lab"], args].concat()).stdout;
        rows.lines().skip(1).map(|line| line.trim().to_owned()).collect()
    };
    assert_eq!(
        query(&["ttid-by-build"]),
        [
            "1,com.example,cold,3,3,420.0,436.0,0,",
            "1,com.example,hot,1,1,40.0,40.0,0,",
            "2,com.example,cold,3,3,520.0,536.0,0,",
            "2,com.example,hot,1,1,50.0,50.0,0,",
        ]
    );
    // Nothing is known of these launches but their length.
    assert_eq!(
        query(&["causes-by-build"]),
        ["1,com.example,not_recorded,4,410.01,100.0", "2,com.example,not_recorded,4,510.01,100.0",]
    );
    let janky = query(&["janky-by-build"]);
    let share = |line: &String| line.split(',').skip(2).take(3).collect::<Vec<_>>().join(" ");
    // The frames of launches have no deadline.
    assert_eq!(janky.iter().map(share).collect::<Vec<_>>(), ["24 20 5.0", "24 20 25.0"], "{janky:?}");
    let budget = query(&["frames-over-budget"]);
    assert!(budget[0].starts_with("com.example,,48,40,6,"), "{budget:?}");
    let regression = query(&["--old", "1", "--new", "2", "launch-regression"]);
    let names: Vec<&str> = regression.iter().map(|line| line.split(',').next().unwrap()).collect();
    // A build that is missing or unknown is answered with those that there are.
    for (args, words) in [
        (&["launch-regression"][..], "--old names one by its build; the values of build are: 1, 2"),
        (&["--old", "1", "slice-regression"], "--new names one by its build"),
        (
            &["--old", "1", "--new", "9", "launch-regression"],
            "no trace has build=9; the values of build are: 1, 2",
        ),
        (
            &["--key", "day", "--old", "1", "--new", "2", "methods-changed"],
            "no trace has the tag day (--key)",
        ),
    ] {
        let refused = query_of(dir, &[&["lab"], args].concat()).exited(1);
        assert!(refused.stderr.contains(words) && refused.stdout.is_empty(), "{args:?}: {refused}");
    }
    let unused = query_of(dir, &["lab", "--new", "2", "slowest-slices"]).exited(0);
    assert!(
        unused.stderr.contains("compares no two sets of traces: --old and --new are not used"),
        "{unused}"
    );
    let empty = ["lab", "--old", "1", "--new", "2", "methods-changed"];
    query_of(dir, &empty).exited(0);
    query_of(dir, &[&["--fail-on-empty"], &empty[..]].concat()).exited(1);
    // One hot launch a side is too few.
    assert_eq!(names, ["com.example (cold)"], "{regression:?}");
}

#[test]
fn the_csv_of_a_query_holds_no_formula_that_a_trace_has_brought() {
    if python_with("duckdb").is_none() {
        return;
    }
    let dir = support::tempdir();
    let dir = dir.path();
    write_launch(&dir.join("a.txt"), 1_000, "=HYPERLINK(1)");
    run_in(dir, &["dataset", "add", "lab", "a.txt"]).exited(0);
    let rows = query(dir, &["--csv", "lab", "slowest-slices"]).stdout;
    assert!(rows.lines().any(|row| row.starts_with("'=HYPERLINK(1),")), "{rows}");
    assert!(rows.lines().all(|row| !row.starts_with('=')), "{rows}");
}

/// The kernel keeps 15 characters of `com.example.feed`; the system server's marker names it in full.
#[test]
fn info_and_tables_give_an_app_one_name_in_launches_and_frames() {
    let dir = support::tempdir();
    let dir = dir.path();
    let text = launch_text("cold", 400_000).replace("com.example-7", "om.example.feed-7");
    let text = text.replace("completed-cold:com.example", "completed-cold:com.example.feed");
    fs::write(dir.join("a.txt"), text).unwrap();
    run_in(dir, &["convert", "a.txt", "-o", "a.dat"]).exited_with_one_of(&[0, 3]);
    for file in ["a.txt", "a.dat"] {
        let info = run_in(dir, &["info", "--json", "--frames", file]).json();
        let names = ["launches", "frames", "every_frame"].map(|list| info[list][0]["package"].clone());
        assert_eq!(names, ["com.example.feed"; 3], "{file}");
    }
    run_in(dir, &["dataset", "add", "lab", "a.dat"]).exited(0);
    for table in ["launch", "frame"] {
        let rows = support::tables::rows(&dir.join("lab"), table);
        let names: Vec<_> = rows.iter().map(|row| row.text("app")).collect();
        assert_eq!(names, [Some("com.example.feed")], "{table}");
    }
}
