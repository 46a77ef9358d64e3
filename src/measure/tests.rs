//! Launches and frames of written-out timelines. Times are µs in the texts, and ns in what is found.

use super::*;
use crate::clock::Timestamp;
use crate::formats::{Order, Sink, ftrace_text};
use crate::ids::{Pid, Tid};
use crate::tracks::{Span, TrackBuilder, TrackObserver};

/// The processes of the timelines.
const SERVER: Pid = Pid(10);
const APP: Pid = Pid(20);
const OTHER: Pid = Pid(30);
const FEED: Pid = Pid(40);

/// The RenderThread of an app.
fn render(pid: Pid) -> Tid {
    Tid(pid.0 + 1)
}

/// A timeline: marker after marker, in order of time.
#[derive(Default)]
struct MarkerTimeline {
    lines: Vec<(u64, String)>,
}

fn name_of(pid: Pid) -> &'static str {
    match pid {
        SERVER => "system_server",
        APP => "com.example",
        OTHER => "com.other",
        FEED => "om.example.feed",
        _ => "worker",
    }
}

impl MarkerTimeline {
    fn marker(&mut self, us: u64, tid: Tid, pid: Pid, text: &str) -> &mut MarkerTimeline {
        let comm = if tid.is_main_of(pid) { name_of(pid) } else { "RenderThread" };
        let s = us / 1_000_000;
        let us_part = us % 1_000_000;
        let line = format!("{comm}-{tid} ({pid}) [000] .... {s}.{us_part:06}: tracing_mark_write: {text}\n");
        self.lines.push((us, line));
        self
    }

    /// A slice of a thread of a process.
    fn on(&mut self, tid: Tid, pid: Pid, us: std::ops::Range<u64>, name: &str) -> &mut MarkerTimeline {
        self.marker(us.start, tid, pid, &format!("B|{pid}|{name}"));
        self.marker(us.end, tid, pid, &format!("E|{pid}"))
    }

    /// A slice of a process's main thread.
    fn main(&mut self, pid: Pid, us: std::ops::Range<u64>, name: &str) -> &mut MarkerTimeline {
        self.on(pid.main_thread(), pid, us, name)
    }

    fn begin(&mut self, us: u64, name: &str) -> &mut MarkerTimeline {
        self.marker(us, SERVER.main_thread(), SERVER, &format!("S|{SERVER}|{name}|0"))
    }

    fn end(&mut self, us: u64, name: &str) -> &mut MarkerTimeline {
        self.marker(us, SERVER.main_thread(), SERVER, &format!("F|{SERVER}|{name}|0"))
    }

    fn instant(&mut self, us: u64, name: &str) -> &mut MarkerTimeline {
        self.marker(us, SERVER.main_thread(), SERVER, &format!("I|{SERVER}|{name}"))
    }

    /// Both parts of a frame: the RenderThread begins when the UI thread ends.
    fn frame(&mut self, pid: Pid, us: [u64; 3], number: &str) -> &mut MarkerTimeline {
        let draw = if number.is_empty() { "DrawFrame" } else { "DrawFrames" };
        self.main(pid, us[0]..us[1], &format!("Choreographer#doFrame{number}"));
        self.on(render(pid), pid, us[1]..us[2], &format!("{draw}{number}"))
    }

    /// The steps of a cold start.
    fn cold(&mut self, pid: Pid, us: u64) -> &mut MarkerTimeline {
        self.main(pid, us..us + 10, "bindApplication");
        self.warm(pid, us + 10)
    }

    /// The steps of a warm start.
    fn warm(&mut self, pid: Pid, us: u64) -> &mut MarkerTimeline {
        self.main(pid, us..us + 10, "activityStart");
        self.main(pid, us + 10..us + 20, "activityResume")
    }

    fn measured(&mut self) -> Measured {
        self.measured_of(None)
    }

    fn measured_of(&mut self, sdk: Option<u32>) -> Measured {
        self.lines.sort_by_key(|(us, _)| *us);
        let text: String = self.lines.iter().map(|(_, line)| line.as_str()).collect();
        let mut builder = TrackBuilder::of_markers(FinderSink::default());
        struct Versioned<'b>(&'b mut TrackBuilder<FinderSink>, Option<u32>);
        impl crate::formats::SinkAdapter for Versioned<'_> {
            type Next = TrackBuilder<FinderSink>;
            fn next(&mut self) -> &mut Self::Next {
                self.0
            }
            fn head(&mut self, head: &crate::formats::Head) -> std::io::Result<()> {
                let android_sdk = self.1;
                Sink::head(self.0, &crate::formats::Head { android_sdk, ..head.clone() })
            }
        }
        let report =
            ftrace_text::read(text.as_bytes(), Order::Time, &mut Versioned(&mut builder, sdk)).unwrap();
        let summary = crate::timeline::MergeSummary::new(crate::clock::Clock::Boottime, Vec::new(), report);
        crate::timeline::TimelineSink::finish(&mut builder, &summary).unwrap();
        std::mem::take(&mut builder.sink().measured)
    }
}

/// The compared fields of a launch: package, type, begin µs, duration µs, cut.
type Short<'a> = (&'a str, Option<LaunchType>, u64, Option<u64>, Option<Cut>);

fn short(launch: &Launch) -> Short<'_> {
    let us = |ns: u64| ns / 1_000;
    (&launch.package, launch.launch_type, us(launch.begin.0), launch.duration().map(us), launch.cut)
}

fn shorts(measured: &Measured) -> Vec<Short<'_>> {
    measured.launches.iter().map(short).collect()
}

const COLD: Option<LaunchType> = Some(LaunchType::Cold);
const WARM: Option<LaunchType> = Some(LaunchType::Warm);
const HOT: Option<LaunchType> = Some(LaunchType::Hot);

#[test]
fn android_12_numbers_a_launch_and_says_when_it_is_complete() {
    let mut timeline = MarkerTimeline::default();
    timeline.begin(100, "launchingActivity#7").cold(APP, 200).frame(APP, [240, 250, 270], " 900");
    timeline.end(260, "launchingActivity#7").instant(300, "launchingActivity#7:completed-cold:com.example");
    timeline.main(APP, 400..410, "reportFullyDrawn() for {{com.example}}");
    timeline.frame(APP, [405, 430, 450], " 901").frame(APP, [500, 510, 520], " 902");
    let measured = timeline.measured();
    assert_eq!(shorts(&measured), [("com.example", COLD, 100, Some(160), None)]);
    let launch = &measured.launches[0];
    assert_eq!(launch.rule, Rule::Android12);
    assert_eq!((launch.ttid, launch.ttfd), (Some(170_000), Some(350_000)));
    assert_eq!(
        (launch.pid, launch.main_tid, launch.render_tid),
        (Some(APP), Some(APP.main_thread()), Some(render(APP)))
    );
    let stages: Vec<&str> = launch.stages.iter().map(|stage| stage.name.as_str()).collect();
    let expected = ["bindApplication", "activityStart", "activityResume", "Choreographer#doFrame 900"];
    assert_eq!(stages, expected);
}

#[test]
fn the_steps_of_the_main_thread_tell_the_type_where_no_instant_does() {
    let mut timeline = MarkerTimeline::default();
    for (number, from) in [(1, 1_000), (2, 2_000), (3, 3_000), (4, 4_000)] {
        timeline.begin(from, &format!("launchingActivity#{number}"));
        timeline.end(from + 500, &format!("launchingActivity#{number}"));
        timeline.instant(from + 510, &format!("launchingActivity#{number}:completed:com.example"));
    }
    timeline.cold(APP, 1_100).warm(APP, 2_100).main(APP, 3_100..3_110, "activityResume");
    let types: Vec<_> = timeline.measured().launches.iter().map(|launch| launch.launch_type).collect();
    assert_eq!(types, [COLD, WARM, HOT, None]);
}

#[test]
fn a_cancelled_launch_is_none_and_neither_is_one_in_the_same_process() {
    let mut timeline = MarkerTimeline::default();
    timeline.begin(100, "launchingActivity#1").end(200, "launchingActivity#1");
    timeline.instant(210, "launchingActivity#1:cancelled");
    timeline.begin(300, "launchingActivity#2").end(400, "launchingActivity#2");
    timeline.instant(410, "launchingActivity#2:completed-same-process:com.example");
    let measured = timeline.measured();
    assert_eq!(measured.launches, []);
    let cancelled: Vec<_> = measured.cancelled.iter().map(|launch| (launch.begin.0, launch.end.0)).collect();
    assert_eq!(cancelled, [(100_000, 200_000), (300_000, 400_000)]);
}

#[test]
fn a_launch_that_the_recording_cuts_is_shown_and_not_measured() {
    let mut timeline = MarkerTimeline::default();
    timeline.instant(50, "first").end(150, "launchingActivity#1");
    timeline.instant(160, "launchingActivity#1:completed-hot:com.example");
    timeline.begin(300, "launchingActivity#2").warm(OTHER, 310).instant(400, "last");
    let measured = timeline.measured();
    let expected =
        [("com.example", HOT, 50, None, Some(Cut::Begin)), ("com.other", WARM, 300, None, Some(Cut::End))];
    assert_eq!(shorts(&measured), expected);
    assert_eq!(measured.launches[0].ttid, None);
}

#[test]
fn two_launches_at_once_are_told_apart_and_marked() {
    let mut timeline = MarkerTimeline::default();
    timeline.begin(100, "launchingActivity#1").begin(150, "launchingActivity#2");
    timeline.cold(APP, 160).warm(OTHER, 170);
    timeline.end(300, "launchingActivity#1").end(350, "launchingActivity#2");
    timeline.instant(360, "launchingActivity#1:completed:com.example");
    timeline.instant(370, "launchingActivity#2:completed:com.other");
    timeline.frame(OTHER, [200, 210, 220], " 5").frame(APP, [230, 240, 250], " 6");
    timeline.begin(500, "launchingActivity#3").end(510, "launchingActivity#3");
    timeline.instant(520, "launchingActivity#3:completed-hot:com.other");
    let measured = timeline.measured();
    let expected = [
        ("com.example", COLD, 100, Some(200), None),
        ("com.other", WARM, 150, Some(200), None),
        ("com.other", HOT, 500, Some(10), None),
    ];
    assert_eq!(shorts(&measured), expected);
    let overlapped: Vec<bool> = measured.launches.iter().map(|launch| launch.is_overlapped).collect();
    assert_eq!(overlapped, [true, true, false]);
    let ttids: Vec<_> = measured.launches.iter().map(|launch| launch.ttid).collect();
    assert_eq!(ttids, [Some(150_000), Some(70_000), None]);
}

#[test]
fn processes_that_start_meanwhile_are_no_launches() {
    for system_server_is_seen in [true, false] {
        let mut timeline = MarkerTimeline::default();
        if system_server_is_seen {
            timeline.begin(90, "launchingActivity#1").end(280, "launchingActivity#1");
            timeline.instant(290, "launchingActivity#1:completed:com.example");
        }
        for service in 0..10 {
            timeline.main(Pid(100 + service), 95..200, "bindApplication");
        }
        timeline.cold(APP, 110).frame(APP, [150, 160, 280], " 3");
        let measured = timeline.measured();
        let begin = if system_server_is_seen { 90 } else { 110 };
        assert_eq!(shorts(&measured), [("com.example", COLD, begin, Some(280 - begin), None)]);
        let rule = if system_server_is_seen { Rule::Android12 } else { Rule::App };
        assert_eq!((measured.launches[0].rule, measured.launches[0].pid), (rule, Some(APP)));
    }
}

#[test]
fn a_process_that_dies_and_comes_again_has_the_frame_of_its_second_life() {
    let mut timeline = MarkerTimeline::default();
    timeline.begin(100, "launchingActivity#1").cold(APP, 110).end(600, "launchingActivity#1");
    // The second process of the app has another id, and the same name.
    let again = Pid(40);
    for (us, text) in [
        (300, "B|40|bindApplication"),
        (310, "E|40"),
        (320, "B|40|activityStart"),
        (330, "E|40"),
        (340, "B|40|activityResume"),
        (350, "E|40"),
        (400, "B|40|Choreographer#doFrame 9"),
        (410, "E|40"),
    ] {
        let line =
            format!("com.example-{again} ({again}) [000] .... 0.{us:06}: tracing_mark_write: {text}\n");
        timeline.lines.push((us, line));
    }
    timeline.on(render(again), again, 410..500, "DrawFrames 9");
    timeline.instant(610, "launchingActivity#1:completed:com.example");
    let measured = timeline.measured();
    assert_eq!(shorts(&measured), [("com.example", COLD, 100, Some(500), None)]);
    let launch = &measured.launches[0];
    assert_eq!((launch.pid, launch.ttid), (Some(again), Some(400_000)));
}

/// The markers that Android 10 and 11 write around a launch.
fn android_10(timeline: &mut MarkerTimeline, from: u64) {
    timeline.main(SERVER, from..from + 1, "MetricsLogger:launchObserverNotifyIntentStarted");
    timeline.begin(from + 8, "launching: com.example").warm(APP, from + 10);
    timeline.end(from + 100, "launching: com.example");
    timeline.main(SERVER, from + 101..from + 102, "MetricsLogger:launchObserverNotifyActivityLaunchFinished");
}

#[test]
fn android_10_begins_a_launch_with_the_intent() {
    let mut timeline = MarkerTimeline::default();
    // An intent that launches nothing.
    timeline.main(SERVER, 50..51, "MetricsLogger:launchObserverNotifyIntentStarted");
    android_10(&mut timeline, 1_000);
    android_10(&mut timeline, 2_000);
    // An intent that launches two, and one whose launch nobody sees end.
    timeline.main(SERVER, 3_000..3_001, "MetricsLogger:launchObserverNotifyIntentStarted");
    timeline.begin(3_010, "launching: com.example").end(3_020, "launching: com.example");
    timeline.begin(3_030, "launching: com.other").end(3_040, "launching: com.other");
    timeline.main(SERVER, 4_000..4_001, "MetricsLogger:launchObserverNotifyIntentStarted");
    timeline.begin(4_010, "launching: com.other").end(4_020, "launching: com.other");
    let measured = timeline.measured();
    let expected =
        [("com.example", WARM, 1_000, Some(100), None), ("com.example", WARM, 2_000, Some(100), None)];
    assert_eq!(shorts(&measured), expected);
    assert_eq!(measured.launches[0].rule, Rule::Android10);
    assert_eq!(measured.cancelled.len(), 1);
}

#[test]
fn a_launch_that_ends_under_another_name_came_to_nothing() {
    for with_intent in [true, false] {
        let mut timeline = MarkerTimeline::default();
        if with_intent {
            timeline.main(SERVER, 100..101, "MetricsLogger:launchObserverNotifyIntentStarted");
        }
        timeline.begin(110, "launching: com.example").end(200, "launching: com.launcher");
        let measured = timeline.measured();
        assert_eq!((measured.launches, measured.cancelled.len()), (vec![], 1));
    }
}

#[test]
fn the_release_of_the_recording_decides_between_rules_whose_markers_are_there() {
    let both = || {
        let mut timeline = MarkerTimeline::default();
        android_10(&mut timeline, 1_000);
        timeline.begin(1_005, "launchingActivity#1").end(1_105, "launchingActivity#1");
        timeline.instant(1_110, "launchingActivity#1:completed:com.example");
        timeline
    };
    let rule = |sdk| both().measured_of(sdk).launches.iter().map(|l| (l.rule, l.begin.0)).collect::<Vec<_>>();
    assert_eq!(rule(None), [(Rule::Android12, 1_005_000)]);
    assert_eq!(rule(Some(34)), [(Rule::Android12, 1_005_000)]);
    assert_eq!(rule(Some(31)), [(Rule::Android10, 1_000_000)]);
    assert_eq!(rule(Some(28)), [(Rule::Android9, 1_008_000)]);
    // The markers of the release are missing: others decide.
    let mut timeline = MarkerTimeline::default();
    android_10(&mut timeline, 1_000);
    assert_eq!(timeline.measured_of(Some(34)).launches[0].rule, Rule::Android10);
}

#[test]
fn android_9_has_a_slice_of_cold_and_warm_launches_and_the_resume_of_a_hot_one() {
    let mut timeline = MarkerTimeline::default();
    timeline.begin(100, "launching: com.example").cold(APP, 110).end(200, "launching: com.example");
    timeline.frame(APP, [150, 160, 170], "");
    timeline.main(APP, 1_000..1_010, "activityResume").frame(APP, [1_020, 1_030, 1_050], "");
    let measured = timeline.measured();
    let expected = [("com.example", COLD, 100, Some(100), None), ("com.example", HOT, 1_000, Some(50), None)];
    assert_eq!(shorts(&measured), expected);
    let ttids: Vec<_> = measured.launches.iter().map(|launch| (launch.rule, launch.ttid)).collect();
    assert_eq!(ttids, [(Rule::Android9, Some(70_000)), (Rule::Android9, Some(50_000))]);
}

#[test]
fn frames_without_numbers_are_joined_by_their_order() {
    let mut timeline = MarkerTimeline::default();
    // The second frame is drawn twice; the third is not drawn; the drawing before the first has no frame.
    timeline.on(render(APP), APP, 10..20, "DrawFrame").frame(APP, [100, 110, 130], "");
    timeline.frame(APP, [200, 210, 220], "").on(render(APP), APP, 225..240, "DrawFrame");
    timeline.main(APP, 300..310, "Choreographer#doFrame");
    let frames = timeline.measured().frames;
    let found: Vec<_> =
        frames.iter().map(|f| (f.begin.0, f.duration(), f.work.unwrap().cpu_ns, f.duration_cpu())).collect();
    let expected = [(100_000, 30_000, 30_000, Some(30_000)), (200_000, 40_000, 35_000, Some(20_000))];
    assert_eq!(found, expected);
    assert!(frames.iter().all(|frame| frame.id.is_none()));
    assert!(frames.iter().all(|frame| frame.overrun().is_none() && frame.package == "com.example"));
}

#[test]
fn frames_with_numbers_are_joined_across_processes_and_in_any_order() {
    let mut timeline = MarkerTimeline::default();
    timeline.main(APP, 100..110, "Choreographer#doFrame 1").main(OTHER, 100..105, "Choreographer#doFrame 1");
    timeline.main(APP, 120..130, "Choreographer#doFrame 2");
    // The RenderThread is late: it draws the first frame when the second has begun.
    timeline.on(render(APP), APP, 125..140, "DrawFrames 1").on(render(APP), APP, 141..150, "DrawFrames 2");
    timeline.on(render(OTHER), OTHER, 106..109, "DrawFrames 1");
    let frames = timeline.measured().frames;
    let found: Vec<_> = frames.iter().map(|f| (f.pid, f.id, f.begin.0, f.end.0)).collect();
    let expected = [
        (APP, Some(1), 100_000, 140_000),
        (OTHER, Some(1), 100_000, 109_000),
        (APP, Some(2), 120_000, 150_000),
    ];
    assert_eq!(found, expected);
    let summaries = summarize(&frames);
    let counts: Vec<_> = summaries.iter().map(|s| (s.package.as_str(), s.count, s.with_deadline)).collect();
    assert_eq!(counts, [("com.example", 2, 0), ("com.other", 1, 0)]);
}

#[test]
fn without_frame_timeline_the_period_of_vsync_is_the_deadline_at_120_hz_and_then_at_60() {
    let mut timeline = MarkerTimeline::default();
    let flinger = Pid(50);
    let vsync = |timeline: &mut MarkerTimeline, us: u64| {
        timeline.marker(us, flinger.main_thread(), flinger, &format!("C|{flinger}|VSYNC-app|{}", us % 2));
    };
    for tick in 0..5 {
        vsync(&mut timeline, tick * 8_000);
    }
    // 10 ms are too long at 120 Hz, 7 ms are not.
    timeline.frame(APP, [32_001, 36_000, 42_000], " 1");
    vsync(&mut timeline, 48_000);
    timeline.frame(APP, [48_001, 50_000, 55_000], " 2");
    for tick in 4..8 {
        vsync(&mut timeline, tick * 16_000);
    }
    // 10 ms are short enough at 60 Hz.
    timeline.frame(APP, [112_001, 116_000, 122_000], " 3");
    let frames = timeline.measured().frames;
    let found: Vec<_> =
        frames.iter().map(|f| (f.expected_end.map(|end| end.0), f.overrun(), f.is_janky())).collect();
    let expected = [
        (Some(40_000_000), Some(2_000_000), true),
        (Some(56_000_000), Some(-1_000_000), false),
        (Some(128_000_000), Some(-6_000_000), false),
    ];
    assert_eq!(found, expected);
    assert!(frames.iter().all(|frame| frame.deadline == Some(Deadline::Vsync)));
    let summary = &summarize(&frames)[0];
    assert_eq!((summary.count, summary.janky, summary.with_deadline), (3, 1, 3));
    assert_eq!(summary.overrun_ns.unwrap().p50, -1_000_000.0);
}

#[test]
fn without_the_system_server_a_warm_and_a_hot_launch_begin_with_the_activity() {
    let mut timeline = MarkerTimeline::default();
    timeline.cold(APP, 100).frame(APP, [150, 160, 170], " 1").frame(APP, [180, 190, 195], " 2");
    timeline.warm(APP, 1_000).frame(APP, [1_050, 1_060, 1_070], " 3");
    timeline.main(APP, 2_000..2_010, "activityResume").frame(APP, [2_050, 2_060, 2_070], " 4");
    let measured = timeline.measured();
    let expected = [
        ("com.example", COLD, 100, Some(70), None),
        ("com.example", WARM, 1_000, Some(70), None),
        ("com.example", HOT, 2_000, Some(70), None),
    ];
    assert_eq!(shorts(&measured), expected);
}

#[test]
fn what_is_kept_does_not_grow_with_other_markers() {
    let mut finder = Finder::default();
    let at = crate::tracks::Task { tid: APP.main_thread(), tgid: Some(APP) };
    finder.begin(at, Timestamp(0), b"bindApplication");
    for number in 0..100_000u64 {
        let name = format!("inflate {number}");
        let span = crate::tracks::Span { start: Timestamp(number), end: Timestamp(number + 1), open: false };
        for name in [name.as_bytes(), b"inflate", b"measure"] {
            finder.begin(at, Timestamp(number), name);
            finder.end(at, span, name);
        }
    }
    let kept = finder.kept();
    assert!(kept <= 500, "{kept}");
}

#[test]
fn launches_and_frames_of_an_app_have_one_name_where_the_kernel_cut_it() {
    // The comm of the process is the last 15 characters of the package, which the system server names.
    let mut timeline = MarkerTimeline::default();
    timeline.begin(100, "launchingActivity#1").end(200, "launchingActivity#1");
    timeline.instant(210, "launchingActivity#1:completed-cold:com.example.feed");
    timeline.cold(FEED, 110).frame(FEED, [150, 160, 170], " 7").frame(FEED, [250, 260, 270], " 8");
    let measured = timeline.measured();
    assert_eq!(name_of(FEED).len(), 15);
    let launches: Vec<&str> = measured.launches.iter().map(|launch| launch.package.as_str()).collect();
    let frames: Vec<&str> = measured.frames.iter().map(|frame| frame.package.as_str()).collect();
    assert_eq!((launches, frames), (vec!["com.example.feed"], vec!["com.example.feed"; 2]));
}

#[test]
fn a_launch_and_a_frame_on_tracks_of_their_own_are_found() {
    use crate::formats::{Track, TrackEvent, TrackEventKind, TrackId, TrackKind, TrackOwner};

    let mut builder = TrackBuilder::of_markers(FinderSink::default());
    let owners = [
        TrackOwner::Process(SERVER),
        TrackOwner::Thread { tid: APP.main_thread(), tgid: Some(APP) },
        TrackOwner::Thread { tid: render(APP), tgid: Some(APP) },
    ];
    let names: [&[u8]; 3] = [b"system_server", b"com.example", b"RenderThread"];
    for (number, owner) in owners.into_iter().enumerate() {
        let id = TrackId(number as u32);
        let track = Track { id, name: b"", owner_name: names[number], owner, kind: TrackKind::Slices };
        builder.track(&track).unwrap();
    }
    let mut event = |ts: u64, track: u32, kind: TrackEventKind<'_>| {
        let event = TrackEvent {
            ts: Timestamp(ts),
            track: TrackId(track),
            kind,
            thread_ns: None,
            flows: &[],
            args: &[],
        };
        builder.track_event(&event).unwrap();
    };
    event(100, 0, TrackEventKind::Begin { name: b"launchingActivity#1" });
    event(110, 1, TrackEventKind::Begin { name: b"activityResume" });
    event(120, 1, TrackEventKind::End);
    event(130, 1, TrackEventKind::Begin { name: b"Choreographer#doFrame 9" });
    event(140, 1, TrackEventKind::End);
    event(140, 2, TrackEventKind::Begin { name: b"DrawFrames 9" });
    event(160, 2, TrackEventKind::End);
    event(150, 0, TrackEventKind::End);
    event(170, 0, TrackEventKind::Instant { name: b"launchingActivity#1:completed:com.example" });
    let report = crate::formats::ReadReport::default();
    let summary = crate::timeline::MergeSummary::new(crate::clock::Clock::Boottime, Vec::new(), report);
    crate::timeline::TimelineSink::finish(&mut builder, &summary).unwrap();
    let measured = std::mem::take(&mut builder.sink().measured);
    let [launch] = &measured.launches[..] else { panic!("{:?}", measured.launches) };
    assert_eq!((launch.package.as_str(), launch.launch_type, launch.cut), ("com.example", HOT, None));
    assert_eq!((launch.begin, launch.duration(), launch.ttid), (Timestamp(100), Some(50), Some(60)));
    assert_eq!((launch.pid, launch.render_tid), (Some(APP), Some(render(APP))));
    let [frame] = &measured.frames[..] else { panic!("{:?}", measured.frames) };
    assert_eq!((frame.id, frame.begin, frame.end), (Some(9), Timestamp(130), Timestamp(160)));
}

/// A frame of FrameTimeline of an app's layer; with `jank` the actual one.
fn timeline_frame(finder: &mut Finder, pid: Pid, token: i64, us: [u64; 2], jank: Option<u32>) {
    let span = Span { start: Timestamp(us[0] * 1_000), end: Timestamp(us[1] * 1_000), open: false };
    let actual = jank.map(|jank| crate::formats::ActualFrame {
        jank: crate::formats::JankTypes(jank),
        present: crate::formats::PresentType::default(),
        on_time_finish: false,
        gpu_composition: false,
        prediction: crate::formats::PredictionType::default(),
    });
    let surface = Some(crate::formats::SurfaceFrame { token, layer: b"layer" });
    let frame = crate::formats::TimelineFrame { end: Some(span.end), pid, display_token: 1, surface, actual };
    TrackObserver::frame(finder, span, &frame);
}

#[test]
fn a_process_without_markers_of_frames_has_those_of_frame_timeline() {
    let mut finder = Finder::default();
    for (token, end, jank) in [(7, 16, 1), (8, 40, 64)] {
        timeline_frame(&mut finder, APP, token, [10 * token as u64, 10 * token as u64 + 20], None);
        timeline_frame(&mut finder, APP, token, [10 * token as u64, 10 * token as u64 + end], Some(jank));
    }
    let extent = rules::TimelineExtent { begin: Timestamp(0), end: Timestamp(1_000_000) };
    let measured = finder.finish_within(&crate::tracks::Tasks::default(), extent);
    let found: Vec<_> =
        measured.frames.iter().map(|f| (f.id, f.overrun(), f.duration_cpu(), f.is_slow())).collect();
    assert_eq!(found, [(Some(7), Some(-4_000), None, false), (Some(8), Some(20_000), None, false)]);
    assert_eq!(late_frames(&measured.frames).len(), 1);
    assert_eq!(measured.timeline_frames, TimelineCounts { actual: 2, late: 1 });
    let summary = &summarize(&measured.frames)[0];
    assert_eq!((summary.count, summary.janky, summary.duration_cpu_ns), (2, 1, None));
}
