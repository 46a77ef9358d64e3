//! Spark beside DuckDB: the same rows of every query, and traces that a cluster adds to a dataset.

use std::fs;
use std::path::PathBuf;

use support::python::{has_modules, python};
use support::scenario::{Era, Scenario};
use support::{Command, has_program, skip, tracebridge};

fn project() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A Python with Spark and DuckDB, where there is one, and Java.
fn python_with_spark() -> Option<String> {
    if support::skip_unless_full_run() {
        return None;
    }
    let python = python();
    if has_modules("duckdb, pyspark") && has_program("java") {
        return Some(python);
    }
    let hint = "run scripts/setup --spark, and set TRACEBRIDGE_PYTHON";
    skip("spark", &format!("{python} has no package pyspark or duckdb, or there is no java: {hint}"));
    None
}

/// A launch of 170 + `us` µs, in which the main thread waits 20 µs for a CPU, with a frame over the budget.
fn launch_text(us: u32) -> String {
    let line = |us: u32, tid: u32, what: &str| format!(" m-{tid} ( 7) [000] d..2 1.{us:06}: {what}\n");
    let mark = |at: u32, what: &str| line(at, 7, &format!("tracing_mark_write: {what}"));
    let switch = |at: u32, from: u32, state: &str, to: u32| {
        let prev = format!("prev_comm=t{from} prev_pid={from}");
        let next = format!("next_comm=t{to} next_pid={to}");
        line(
            at,
            from,
            &format!("sched_switch: {prev} prev_prio=120 prev_state={state} ==> {next} next_prio=120"),
        )
    };
    let end = 200 + us;
    [
        mark(50, "S|9|launching: m|1"),
        switch(60, 8, "S", 7),
        mark(100, "B|7|bindApplication"),
        mark(110, "E|7"),
        mark(110, "B|7|inflate"),
        switch(120, 7, "R", 8),
        switch(140, 8, "S", 7),
        mark(end, "E|7"),
        mark(end, "B|7|activityResume"),
        mark(end, "E|7"),
        mark(end, "B|7|Choreographer#doFrame 1"),
        mark(end + 20, "E|7"),
        mark(end + 20, "F|9|launching: m|1"),
        mark(end + 100, "B|7|Choreographer#doFrame 2"),
        mark(end + 20_100, "E|7"),
    ]
    .concat()
}

#[test]
fn duckdb_and_spark_give_the_same_rows_for_every_query() {
    let Some(python) = python_with_spark() else { return };
    let dir = support::tempdir();
    let dir = dir.path();
    // A history of builds, which becomes slower in the middle.
    for n in 0..10 {
        let name = format!("h{n}.txt");
        let slower = if n < 6 { 0 } else { 100 };
        fs::write(dir.join(&name), launch_text(slower + n)).unwrap();
        let mut add = tracebridge();
        add.current_dir(dir).args(["dataset", "add", "s'e{t}[*]?", &name, "--tag", &format!("build=h{n}")]);
        add.run().exited(0);
    }
    for (build, slower) in [("old", 120), ("it's\\ new", 220)] {
        let mut add = tracebridge();
        add.current_dir(dir).args(["dataset", "add", "s'e{t}[*]?", "--keep-damaged"]);
        for n in 0..6 {
            let name = format!("{build}{n}").replace(['\'', '\\', ' '], "_");
            fs::write(dir.join(format!("{name}.txt")), launch_text(slower + n)).unwrap();
            let seed = u64::from(slower + n);
            let made = Scenario { length: 60_000_000, ..Scenario::new(seed + 1, Era::ArtMono) }.make();
            fs::write(dir.join(format!("m{name}.dat")), &made.dat[..made.dat.len() - 100]).unwrap();
            fs::write(dir.join(format!("m{name}.trace")), made.trace).unwrap();
            add.args([format!("{name}.txt"), format!("m{name}.dat"), format!("m{name}.trace")]);
        }
        add.args(["--tag", &format!("build={build}")]).run().exited(0);
    }
    let mut queries: Vec<PathBuf> = fs::read_dir(project().join("queries"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "sql"))
        .collect();
    queries.sort();
    let mut compare = Command::new(python);
    compare.current_dir(dir).arg("-B").arg(project().join("tests/support/compare_engines.py"));
    compare.arg(project().join("scripts")).args(["s'e{t}[*]?", "build", "old", "it's\\ new"]).args(&queries);
    let counts = compare.run().exited(0).stdout;
    assert_eq!(counts.lines().count(), queries.len(), "{counts}");
    let empty: Vec<&str> = counts.lines().filter(|line| line.ends_with(" 0")).collect();
    assert!(empty.is_empty(), "a query without rows compares nothing: {empty:?}");
}

#[test]
fn a_cluster_adds_every_trace_once_though_a_worker_is_killed() {
    let Some(python) = python_with_spark() else { return };
    let dir = support::tempdir();
    let dir = dir.path();
    let mut inputs = Vec::new();
    for n in 0..200 {
        let text = dir.join(format!("{n}.txt"));
        fs::write(&text, launch_text(n)).unwrap();
        inputs.push(text);
    }
    // One more is there in two files.
    let made = Scenario { length: 60_000_000, ..Scenario::new(1, Era::ArtMono) }.make();
    for (ending, bytes) in [("dat", made.dat), ("trace", made.trace)] {
        let path = dir.join(format!("pair.{ending}"));
        fs::write(&path, bytes).unwrap();
        inputs.push(path);
    }
    let expected = dir.join("expected");
    tracebridge().args(["dataset", "add"]).arg(&expected).args(&inputs).run().exited(0);
    let script = |name: &str| project().join(name);
    let mut cluster = Command::new(python);
    cluster.arg(script("tests/support/spark_cluster.py")).arg(script("scripts/spark-ingest"));
    let found = cluster.arg(support::binary()).arg(&expected).args(&inputs).run().exited(0).stdout;
    assert!(found.contains("traces: 201,"), "{found}");
}
