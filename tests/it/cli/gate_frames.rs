//! `gate` on frames: overruns and the share of late frames, in files and in datasets.

use std::fs;
use std::path::Path;

use serde_json::Value;
use support::run_in;

const FRAMES: u64 = 20;
const PERIOD_US: u64 = 16_667;
const FIRST_US: u64 = 1_000_000;

/// A run of [`FRAMES`] frames at 60 Hz, of which `late` are late by `overrun_us`, and all others are
/// drawn 3 ms before their deadline. Without `vsync` nothing tells the deadlines.
pub fn run_text(late: u64, overrun_us: u64, vsync: bool) -> String {
    let mut text = String::new();
    let mut mark = |us: u64, tid: u32, pid: u32, what: &str| {
        let comm = ["com.example", "RenderThread", "surfaceflinger"][(tid % 3) as usize];
        let time = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
        text += &format!(" {comm}-{tid} ({pid:5}) [000] .... {time}: tracing_mark_write: {what}\n");
    };
    // Three VSYNCs without frames tell the period.
    for n in 0..FRAMES + 3 {
        let tick = FIRST_US + n * PERIOD_US;
        if vsync {
            mark(tick, 8, 8, &format!("C|8|VSYNC-app|{}", n % 2));
        }
        if n < 3 {
            continue;
        }
        // A late frame ends behind the next VSYNC, so that the one behind it would wait.
        let is_late = (n - 3) % 4 == 0 && (n - 3) / 4 < late;
        let end = if is_late { tick + PERIOD_US + overrun_us } else { tick + PERIOD_US - 3_000 };
        let drawn_from = tick + 7_000;
        mark(tick + 1_000, 6, 6, &format!("B|6|Choreographer#doFrame {n}"));
        mark(drawn_from, 6, 6, "E|6");
        mark(drawn_from, 7, 6, &format!("B|6|DrawFrames {n}"));
        mark(end, 7, 6, "E|6");
    }
    // The RenderThread of a late frame ends behind the next VSYNC.
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_by_key(|line| line.split_once(": ").unwrap().0.rsplit(' ').next().unwrap().to_owned());
    lines.join("\n") + "\n"
}

/// Writes six runs, which differ a little.
fn write_side(dir: &Path, late: u64, overrun_us: u64, vsync: bool) {
    fs::create_dir_all(dir).unwrap();
    for run in 0..6 {
        fs::write(dir.join(format!("{run}.txt")), run_text(late, overrun_us + 37 * run, vsync)).unwrap();
    }
}

/// The measures of the conditions, in their order.
fn measures(judgement: &Value) -> Vec<Value> {
    let conditions = judgement["conditions"].as_array().unwrap();
    conditions.iter().map(|condition| condition["measures"][0].clone()).collect()
}

const CONDITIONS: [&str; 4] = ["--fail-if", "frame.janky > +10pp", "--fail-if", "frame.overrun.p90 > +2ms"];

#[test]
fn a_larger_share_of_late_frames_and_later_ones_close_the_gate() {
    let dir = support::tempdir();
    let dir = dir.path();
    write_side(&dir.join("old"), 1, 1_000, true);
    write_side(&dir.join("new"), 5, 6_000, true);
    let gate = |args: &[&str]| {
        run_in(dir, &[&["gate", "--baseline", "old", "--candidate", "new"], args, &CONDITIONS].concat())
    };
    let judgement = gate(&["--json"]).exited(4).json();
    let [janky, overrun] = measures(&judgement).try_into().unwrap();
    assert_eq!(janky["measure"], "frame.janky");
    assert_eq!(janky["verdict"], "closes");
    assert_eq!((&janky["baseline_median_share"], &janky["change_share"]), (&0.05.into(), &0.2.into()));
    assert_eq!((&janky["baseline_median_ns"], &janky["change_ns"]), (&Value::Null, &Value::Null));
    assert_eq!(overrun["verdict"], "closes");
    // The baseline is early at 90 %, and the candidate late: a quarter of its frames are.
    assert_eq!(overrun["baseline_median_ns"], -3_000_000);
    let late = overrun["candidate_median_ns"].as_i64().unwrap();
    assert!((6_000_000..6_200_000).contains(&late), "{overrun}");
    assert_eq!(overrun["change_percent"], Value::Null);
    let text = gate(&[]).exited(4).said();
    for part in ["5.00 %", "25.00 %", "+20.00 pp", "-3.000 ms"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // The same of a dataset of the same files.
    for side in ["old", "new"] {
        let mut args = vec!["dataset".to_owned(), "add".into(), "lab".into(), "--tag".into()];
        args.push(format!("build={side}"));
        args.extend((0..6).map(|run| format!("{side}/{run}.txt")));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        run_in(dir, &args).exited(0);
    }
    let lab = ["gate", "--json", "--baseline", "lab", "--candidate", "lab", "--baseline-tag", "build=old"];
    let tables = run_in(dir, &[&lab[..], &["--candidate-tag", "build=new"], &CONDITIONS].concat());
    assert_eq!(tables.exited(4).json()["conditions"], judgement["conditions"]);
}

#[test]
fn unchanged_frames_pass_and_frames_without_deadlines_have_no_overrun() {
    let dir = support::tempdir();
    let dir = dir.path();
    write_side(&dir.join("old"), 2, 1_000, true);
    write_side(&dir.join("same"), 2, 1_001, true);
    write_side(&dir.join("blind"), 2, 1_000, false);
    run_in(dir, &[&["gate", "--baseline", "old", "--candidate", "same"], &CONDITIONS[..]].concat()).exited(0);
    let of = |condition: &str| {
        run_in(dir, &["gate", "--baseline", "blind", "--candidate", "blind", "--fail-if", condition])
    };
    write_side(&dir.join("blind too"), 2, 1_002, false);
    let blind = ["gate", "--baseline", "blind", "--candidate", "blind too", "--fail-if"];
    let said = run_in(dir, &[&blind[..], &["frame.janky > +1pp"]].concat()).exited(1).said();
    assert!(said.contains("frame.cpu.p50"), "{said}");
    run_in(dir, &[&blind[..], &["frame.cpu.p99 > +50%"]].concat()).exited(0);
    of("frame.janky > +1ms").exited(2);
    of("frame.overrun.p99 > +5%").exited(2);
}
