//! Videos of the screen beside recordings: `info`, and the outputs that hold their frames.

use std::fs;
use std::path::Path;

use serde_json::Value;
use support::screen_video::{Tables, frames, video};
use support::{Ran, run_in};

/// A recording in CLOCK_BOOTTIME (its times are those of the video) with a slice from 10.25 s to 10.85 s.
const RECORDING: &str = "# tracer: nop\n#\n\
    \x20   main-40    (   40) [000] d..2. 10.100000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 \
    prev_state=R ==> next_comm=main next_pid=40 next_prio=120\n\
    \x20   main-40    (   40) [000] ..... 10.250000: tracing_mark_write: B|40|load\n\
    \x20   main-40    (   40) [000] ..... 10.850000: tracing_mark_write: E|40\n\
    \x20   main-40    (   40) [000] d..2. 11.100000: sched_switch: prev_comm=main prev_pid=40 prev_prio=120 \
    prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n";

/// Writes the recording, and a video of ten frames from 10.0 s on, one each 100 ms.
fn write_inputs(dir: &Path) {
    fs::write(dir.join("rec.txt"), RECORDING).unwrap();
    fs::write(dir.join("screen.mp4"), video(&frames(10_000_000_000, 10), Tables::Both)).unwrap();
}

fn merged(dir: &Path, output: &str, more: &[&str]) -> Ran {
    run_in(dir, &[&["merge", "rec.txt", "screen.mp4", "-o", output], more].concat())
}

#[test]
fn info_tells_the_frames_the_length_and_the_clock_of_a_video() {
    let dir = support::tempdir();
    write_inputs(dir.path());
    let said = run_in(dir.path(), &["info", "screen.mp4"]).exited(0).stdout;
    for line in [
        "format: screen video",
        "clock: boot, 9 decimals",
        "frames: 10 with a time, 10 in the video track",
        "length: 1.000 s",
        "first frame: 2023-11-14 22:13:30 UTC",
        "from 10000000000 to 10900000000 ns: 0.900000 s",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let info = run_in(dir.path(), &["info", "--json", "screen.mp4"]).exited(0).json();
    let told = &info["video"];
    assert_eq!(
        (&told["frames"], &told["track_frames"], &told["length_ns"]),
        (&10.into(), &10.into(), &1_000_000_000.into())
    );
}

#[test]
fn a_video_without_times_and_a_cut_one_are_told() {
    let dir = support::tempdir();
    let dir = dir.path();
    let all = frames(10_000_000_000, 10);
    fs::write(dir.join("converted.mp4"), video(&all, Tables::None)).unwrap();
    let said = run_in(dir, &["info", "converted.mp4"]).exited(1).said();
    assert!(
        said.contains("converted.mp4: this MP4 file has no table") && said.contains("screenrecord"),
        "{said}"
    );
    let whole = video(&all, Tables::Both);
    let index = whole.windows(4).rposition(|bytes| bytes == b"moov").unwrap() - 4;
    fs::write(dir.join("cut.mp4"), &whole[..index]).unwrap();
    let said = run_in(dir, &["info", "cut.mp4"]).exited(3).said();
    assert!(said.contains(&format!("damage at byte {index}: the file ends before its index")), "{said}");
    fs::write(dir.join("half.mp4"), &whole[..index / 2]).unwrap();
    let said = run_in(dir, &["info", "half.mp4"]).exited(1).said();
    assert!(said.contains(&format!("the file ends at byte {}", index / 2)), "{said}");
}

#[test]
fn each_frame_is_an_instant_on_the_recordings_clock() {
    let dir = support::tempdir();
    let dir = dir.path();
    write_inputs(dir);
    let said = merged(dir, "x.json", &[]).exited(0).said();
    assert!(said.contains("screen.mp4 (screen video"), "{said}");
    let json: Value = serde_json::from_slice(&fs::read(dir.join("x.json")).unwrap()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let frame = events.iter().find(|event| event["name"] == "frame 3, 0.300 s").unwrap();
    let slice = events.iter().find(|event| event["name"] == "load").unwrap();
    let us = frame["ts"].as_f64().unwrap() - slice["ts"].as_f64().unwrap();
    assert!((us - 50_000.0).abs() < 0.5, "{us}");
    // trace.dat has no place for them, and says so.
    let said = merged(dir, "x.dat", &[]).exited(3).said();
    assert!(said.contains("dropped: 10 track events"), "{said}");
    merged(dir, "x.pftrace", &[]).exited(0);
    merged(dir, "x.csv", &[]).exited(0);
    assert_eq!(fs::read_to_string(dir.join("x.csv")).unwrap().matches("\"frame ").count(), 10);
}

#[test]
fn an_archive_with_one_trace_gives_its_videos_too() {
    let dir = support::tempdir();
    let dir = dir.path();
    fs::create_dir(dir.join("run")).unwrap();
    write_inputs(&dir.join("run"));
    let said = run_in(dir, &["convert", "run", "-o", "x.csv"]).exited(0).said();
    assert!(said.contains("screen.mp4 (screen video"), "{said}");
}

#[test]
fn the_video_of_the_page_tests_is_the_one_that_is_made_here() {
    let path = support::project_dir().join("web/test/screen.mp4");
    let made = video(&frames(10_000_000_000, 10), Tables::Both);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &made).unwrap();
    }
    assert!(fs::read(&path).unwrap() == made, "{}: UPDATE_GOLDEN=1 writes it anew", path.display());
}

#[test]
fn a_page_names_the_video_or_holds_it() {
    let dir = support::tempdir();
    let dir = dir.path();
    write_inputs(dir);
    merged(dir, "x.html", &[]).exited(0);
    let page = fs::read_to_string(dir.join("x.html")).unwrap();
    assert!(page.contains("img-src data: blob:; media-src 'self'; base-uri"), "the policy of a page");
    let beside = support::report_page::Page::read(&dir.join("x.html"));
    let entry = &beside.index["videos"][0];
    assert_eq!((&entry["name"], &entry["url"]), (&"screen.mp4".into(), &"screen.mp4".into()));
    let track = &beside.index["tracks"][entry["track"].as_u64().unwrap() as usize];
    assert_eq!((&track["name"], &track["count"]), (&"screen video".into(), &10.into()));
    merged(dir, "y.html", &["--embed-video"]).exited(0);
    let inside = support::report_page::Page::read(&dir.join("y.html"));
    let entry = &inside.index["videos"][0];
    assert!(entry["url"].is_null());
    let held = inside.block(entry["blocks"][0].as_u64().unwrap() as usize);
    assert!(held == fs::read(dir.join("screen.mp4")).unwrap());
    // A page without a video is as it was.
    run_in(dir, &["convert", "rec.txt", "-o", "z.html"]).exited(0);
    assert!(!fs::read_to_string(dir.join("z.html")).unwrap().contains("media-src"));
    let said = merged(dir, "x.json", &["--embed-video"]).exited(2).said();
    assert!(said.contains("--embed-video puts videos into a page"), "{said}");
    fs::write(dir.join("screen.mp4.gz"), support::files::gzip(&fs::read(dir.join("screen.mp4")).unwrap()))
        .unwrap();
    let said = run_in(dir, &["report", "rec.txt", "screen.mp4.gz", "-o", "p.html"]).exited(0).said();
    assert!(said.contains("the page does not show its pictures"), "{said}");
}

#[test]
fn why_names_the_frames_at_the_begin_and_the_end() {
    let dir = support::tempdir();
    let dir = dir.path();
    write_inputs(dir);
    let said = run_in(dir, &["why", "rec.txt", "screen.mp4", "--slice", "load"]).exited(0).stdout;
    assert!(said.contains("\nscreen.mp4: frames 2 to 8, 0.200 s to 0.800 s\n"), "{said}");
    let json = run_in(dir, &["why", "--json", "rec.txt", "screen.mp4", "--slice", "load"]).exited(0).json();
    let shown = &json["spans"][0]["video"][0];
    assert_eq!((&shown["first_frame"], &shown["last_frame"]), (&2.into(), &8.into()));
    let without = run_in(dir, &["why", "--json", "rec.txt", "--slice", "load"]).exited(0).json();
    assert!(without["spans"][0].get("video").is_none());
}
