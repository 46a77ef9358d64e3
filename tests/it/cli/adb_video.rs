//! `adb record --video` on an imitated phone whose `screenrecord` is a stand-in: it takes the arguments of
//! the real one (AOSP `frameworks/av/cmds/screenrecord`), begins its file at once, and completes it when its
//! time is over or SIGINT comes. The video that it writes is a real one.

use std::fs;
use std::path::Path;

use nix::sys::signal::Signal;

use super::adb::Desk;
use support::report_page::Page;
use support::scenario::{Era, Scenario};
use support::screen_video::{Tables, frames, video};
use support::until;

/// The stand-in. A shell has started it with SIGINT ignored, which the real one changes as this one does.
const SCREENRECORD: &str = r#"import json, os, signal, sys, time
here = os.path.dirname(os.path.abspath(__file__))
words = sys.argv[1:]
limit = 180
output = words[-1]
options = words[:-1]
while options:
    option = options.pop(0)
    if option != "--time-limit":
        sys.exit("screenrecord: unrecognized option " + option)
    limit = int(options.pop(0))
    if not 1 <= limit <= 180:
        sys.exit("Time limit %ds outside acceptable range [1,180]" % limit)
if os.path.exists(here + "/refuses"):
    sys.exit("ERROR: unable to configure video/avc codec")
ended = []
for sent in (signal.SIGINT, signal.SIGHUP):
    signal.signal(sent, lambda *_: ended.append(sent))
with open(here + "/source.mp4", "rb") as source:
    video = source.read()
with open(output, "wb") as file:
    file.write(video[:28])
    file.flush()
    with open(here + "/begun.part", "w") as begun:
        json.dump({"words": words, "pid": os.getpid()}, begun)
    os.rename(here + "/begun.part", here + "/begun")
    end = time.time() + limit
    while not ended and time.time() < end:
        if os.path.exists(here + "/dies"):
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.02)
    file.write(video[28:])
"#;

/// A phone that has `screenrecord`, and records a capture.
fn phone() -> Option<Desk> {
    let desk = Desk::one()?;
    desk.will_record(&Scenario::new(14, Era::ArtMono).make().dat);
    let stand_in = here(&desk).join("screenrecord.py");
    fs::create_dir_all(here(&desk)).unwrap();
    fs::write(&stand_in, SCREENRECORD).unwrap();
    fs::write(here(&desk).join("source.mp4"), made_video()).unwrap();
    desk.has_program("screenrecord", &format!("exec python3 {} \"$@\"", stand_in.display()));
    Some(desk)
}

fn made_video() -> Vec<u8> {
    video(&frames(1_000_000_000, 5), Tables::Both)
}

/// The directory of the stand-in's own files.
fn here(desk: &Desk) -> std::path::PathBuf {
    desk.server.dir("S1").join("bin")
}

/// The words and the process of the `screenrecord` that has begun last.
fn begun(desk: &Desk) -> serde_json::Value {
    serde_json::from_slice(&fs::read(here(desk).join("begun")).unwrap()).unwrap()
}

/// Fails unless the phone has nothing left of recordings, and no process that makes a video.
#[track_caller]
fn assert_nothing_left(desk: &Desk) {
    let mut left = desk.left_on("S1");
    left.retain(|name| name != "bin");
    assert_eq!(left, [""; 0]);
    let process = format!("/proc/{}", begun(desk)["pid"]);
    let ends = || fs::read(format!("{process}/cmdline")).map_or(true, |words| words.is_empty());
    until("screenrecord has ended", ends);
}

#[test]
fn a_video_is_made_beside_the_recording_and_a_page_shows_it() {
    let Some(desk) = phone() else { return };
    let said = desk.run("record sched -t 300ms --video -o x.html").exited(0).said();
    assert!(said.contains("x.html (report, ") && said.contains("; its video: x.mp4"), "{said}");
    assert!(!said.contains("the video ends after"), "{said}");
    assert_eq!(desk.outputs(), ["x.html", "x.mp4"]);
    assert!(fs::read(desk.path("x.mp4")).unwrap() == made_video());
    let page = Page::read(&desk.path("x.html"));
    let entry = &page.index["videos"][0];
    assert_eq!((&entry["name"], &entry["url"]), (&"x.mp4".into(), &"x.mp4".into()));
    let words = begun(&desk)["words"].clone();
    assert_eq!((&words[0], &words[1]), (&"--time-limit".into(), &"3".into()));
    assert!(words[2].as_str().unwrap().ends_with("/capture.mp4"), "{words}");
    assert_nothing_left(&desk);
    let json = desk.run("record sched -t 300ms --video --json -o y.dat").exited(0).json();
    assert_eq!((&json["output"], &json["video"]), (&"y.dat".into(), &"y.mp4".into()));
    assert!(fs::read(desk.path("y.mp4")).unwrap() == made_video());
    assert_nothing_left(&desk);
}

#[test]
fn a_phone_without_screenrecord_says_so_before_it_records() {
    let Some(desk) = Desk::one() else { return };
    let said = desk.run("record sched -t 50ms --video -o x.dat").exited(1).said();
    assert!(
        said.contains("S1: the device has no screenrecord") && said.contains("leave --video out"),
        "{said}"
    );
    assert_eq!((desk.outputs(), desk.left_on("S1")), (vec![], vec![]));
    assert!(!desk.server.dir("S1").join("words.json").exists(), "nothing was recorded");
}

#[test]
fn a_signal_ends_the_video_too_and_a_second_one_leaves_nothing() {
    for signals in [1, 2] {
        let Some(desk) = phone() else { return };
        let child = desk.start("record sched --video -o x.dat");
        let words = desk.server.dir("S1").join("words.json");
        until("the recorder to begin", || words.exists() && here(&desk).join("begun").exists());
        child.stop();
        for signal in [Signal::SIGTERM, Signal::SIGINT].into_iter().take(signals) {
            child.send(signal);
        }
        child.send(Signal::SIGCONT);
        let output = child.finish();
        match signals {
            1 => {
                let output = output.exited(0);
                assert!(output.said().contains("S1: the video ends after 180 s"), "{output}");
                assert_eq!(desk.outputs(), ["x.dat", "x.mp4"]);
                assert!(fs::read(desk.path("x.mp4")).unwrap() == made_video(), "the video is whole");
                assert_eq!(begun(&desk)["words"][1], "180");
            }
            _ => {
                assert_eq!(output.code(), None, "{output}");
                assert_eq!(desk.outputs(), [""; 0]);
            }
        }
        assert_nothing_left(&desk);
    }
}

/// Runs a recording with a video, after the stand-in was told by this file what it is to do.
fn recorded_where_it(does: &str, output: &str) -> Option<(Desk, String)> {
    let desk = phone()?;
    fs::write(here(&desk).join(does), "").unwrap();
    let said = desk.run(&format!("record sched -t 500ms --video -o {output}")).exited(3).said();
    let mut left = desk.left_on("S1");
    left.retain(|name| name != "bin");
    assert_eq!(left, [""; 0]);
    Some((desk, said))
}

#[test]
fn a_video_that_is_not_made_costs_no_recording() {
    let Some((desk, said)) = recorded_where_it("refuses", "x.html") else { return };
    assert!(said.contains("unable to configure video/avc codec"), "{said}");
    assert!(said.contains("screenrecord made no video"), "{said}");
    assert_eq!(desk.outputs(), ["x.html"]);
}

#[test]
fn a_video_that_was_killed_is_kept_and_told_and_costs_no_recording() {
    for output in ["x.html", "x.dat"] {
        let Some((desk, said)) = recorded_where_it("dies", output) else { return };
        assert!(said.contains("x.mp4: the file of 28 bytes has neither an index"), "{said}");
        assert!(said.contains("the file is kept, and is not on the timeline"), "{said}");
        assert_eq!(desk.outputs(), [Path::new(output).to_str().unwrap(), "x.mp4"]);
    }
}
