//! `queries/change-points.sql`: the builds from which on launches are slower or faster.

use std::path::Path;
use support::Command;

use super::gate::write_launch;
use support::launch_noise::{NoiseSource, USUAL, launches};
use support::{skip, tracebridge};

/// The lines that the query prints about a history of builds with these median launches, ns.
fn change_points(python: &str, medians_ns: &[f64], seed: u64) -> Vec<Vec<String>> {
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
        let out = tracebridge().current_dir(dir).args(&args).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/query");
    let query = ["--csv", "lab", "change-points"];
    let out =
        Command::new(script).current_dir(dir).env("TRACEBRIDGE_PYTHON", python).args(query).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    text.lines().skip(1).map(|line| line.trim().split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn a_history_shows_the_builds_with_which_launches_changed_and_no_other() {
    let python = std::env::var("TRACEBRIDGE_PYTHON").unwrap_or_else(|_| "python3".into());
    let has = Command::new(&python).args(["-c", "import duckdb"]).output();
    if !has.is_ok_and(|out| out.status.success()) {
        return skip("python", &format!("{python} has no package duckdb: run scripts/setup"));
    }
    let history = |parts: &[(usize, f64)]| -> Vec<f64> {
        parts.iter().flat_map(|(builds, ns)| vec![*ns; *builds]).collect()
    };
    let found = change_points(&python, &history(&[(12, 400e6), (11, 440e6), (9, 410e6)]), 1);
    let builds: Vec<&str> = found.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(builds, ["13", "24"], "{found:?}");
    let percent = |row: &[String]| row[7].parse::<f64>().unwrap();
    assert!((percent(&found[0]) - 10.0).abs() < 2.5 && (percent(&found[1]) + 6.8).abs() < 2.5, "{found:?}");
    assert_eq!(change_points(&python, &history(&[(24, 400e6)]), 2), Vec::<Vec<String>>::new());
}
