//! `adb launch --compare`: launches that were recorded before, without a device.

use std::fs;
use std::path::Path;

use serde_json::Value;

use support::tracebridge;

/// A launch whose slice `inflate` takes `inflate_us`, and whose first frame ends 10 µs later; then a frame
/// that is none of the launch.
fn write_launch(path: &Path, inflate_us: u32) {
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
        command.output().unwrap()
    };
    let out = compare(&["--json"]);
    let value: Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{out:?}"));
    let total = &value["total"];
    // The medians: 50 to 120 + 102 + 10 µs, and 100 µs more.
    assert_eq!((&total["old_ns"], &total["new_ns"]), (&182_000.into(), &282_000.into()), "{value}");
    assert_eq!((&total["noise"], &value["new"]["runs"]), (&false.into(), &5.into()));
    let slices = value["slices"].as_array().unwrap();
    let inflate = slices.iter().find(|row| row["name"] == "inflate").unwrap();
    assert_eq!((&inflate["delta_ns"], &inflate["noise"]), (&100_000.into(), &false.into()));
    let frames = slices.iter().filter(|row| row["name"].as_str().unwrap().starts_with("Choreographer"));
    assert_eq!(frames.count(), 1, "the second frame is behind the launch: {slices:?}");
    let said = String::from_utf8(compare(&[]).stdout).unwrap();
    assert!(said.contains("time of the whole run: 0.182 -> 0.282 ms (+54.9 %), more than noise"), "{said}");
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
        let out = command.output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.code() == Some(status) && said.contains(part), "{words}: {out:?}");
    }
}
