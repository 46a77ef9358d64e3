//! Compares the frames of SurfaceFlinger that are read, and those in outputs, with what Perfetto's trace
//! processor answers about the same trace, and polled counters with what Perfetto's classes decode.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::python::{PERFETTO, python_with};
use support::report_page::Page;
use tracebridge::formats::{
    CounterValue, Event, EventType, Order, Sink, Track, TrackEvent, TrackEventKind, TrackOwner, perfetto,
};

const TRACE: &str = "launches/android_jank_cuj.pftrace";

/// A frame's begin and length in ns, and its other values by the names of Perfetto's table.
type FrameRow = (u64, u64, BTreeMap<String, String>);

/// The frames of a trace.
#[derive(Default)]
struct FrameRows {
    actual: Vec<FrameRow>,
    expected: Vec<(u64, u64, i64)>,
}

impl Sink for FrameRows {
    fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
        Ok(())
    }

    fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
        let TrackEventKind::Frame(frame) = event.kind else { return Ok(()) };
        let dur = frame.end.unwrap() - event.ts;
        let Some(actual) = frame.actual else {
            self.expected.push((event.ts.0, dur, frame.token()));
            return Ok(());
        };
        let null = || "[NULL]".to_owned();
        let layer = |_| String::from_utf8(frame.layer().to_vec()).unwrap();
        let values = [
            ("name", frame.token().to_string()),
            ("display_frame_token", frame.display_token.to_string()),
            ("surface_frame_token", frame.surface.map_or_else(null, |surface| surface.token.to_string())),
            ("layer_name", frame.surface.map_or_else(null, layer)),
            ("present_type", actual.present.text().to_owned()),
            ("on_time_finish", u8::from(actual.on_time_finish).to_string()),
            ("gpu_composition", u8::from(actual.gpu_composition).to_string()),
            ("jank_type", actual.jank.text()),
            ("prediction_type", actual.prediction.text().to_owned()),
        ];
        let values = values.map(|(name, value)| (name.to_owned(), value));
        self.actual.push((event.ts.0, dur, BTreeMap::from(values)));
        Ok(())
    }
}

fn frames_of(path: &Path) -> FrameRows {
    let mut rows = FrameRows::default();
    let report = perfetto::read(&std::fs::read(path).unwrap(), Order::Time, &mut rows).unwrap();
    assert_eq!(report.track_events.frames as usize, rows.actual.len() + rows.expected.len());
    rows
}

/// The rows of Perfetto's table of actual frames, sorted.
fn answers(corpus: &Path) -> Vec<FrameRow> {
    let text = std::fs::read_to_string(corpus.join(format!("{TRACE}.answers.json"))).unwrap();
    let answers: Value = serde_json::from_str(&text).unwrap();
    let row = |row: &Value| {
        let mut values: BTreeMap<String, String> = serde_json::from_value(row.clone()).unwrap();
        let mut number = |name: &str| values.remove(name).unwrap().parse().unwrap();
        (number("ts"), number("dur"), values)
    };
    let mut rows: Vec<FrameRow> = answers["frame_timeline"].as_array().unwrap().iter().map(row).collect();
    rows.sort();
    rows
}

/// The trace, or `None` where the corpus is not there.
fn trace() -> Option<(PathBuf, PathBuf)> {
    let corpus = support::corpus()?;
    let trace = corpus.join(TRACE);
    Some((corpus, trace))
}

/// Converts the trace, and returns the output and the summary.
fn convert(trace: &Path, args: &[&str], out: &Path) -> Value {
    let mut command = support::tracebridge();
    command.args(["convert", "--json"]).args(args).arg(trace).arg("-o").arg(out);
    command.run().exited_with_one_of(&[0, 3]).json()
}

#[test]
fn each_frame_is_the_one_that_perfettos_trace_processor_finds() {
    let Some((corpus, trace)) = trace() else { return };
    let mut frames = frames_of(&trace);
    frames.actual.sort();
    let want = answers(&corpus);
    assert_eq!(want.len(), 24);
    for (found, want) in frames.actual.iter().zip(&want) {
        assert_eq!(found, want);
    }
    assert_eq!(frames.actual.len(), want.len());
    // Each begin of an expected frame in the file: 7 of the display, 15 of the app.
    assert_eq!(frames.expected.len(), 22);
    assert!(frames.expected.contains(&(600_000_000, 20_000_000, 140)));
    assert!(frames.expected.contains(&(1_016_000_000, 20_000_000, 120)));
}

#[test]
fn frames_that_are_written_anew_for_perfetto_are_the_same_frames() {
    let Some((_, trace)) = trace() else { return };
    let dir = support::tempdir();
    let copy = dir.path().join("copy.pftrace");
    let anew = dir.path().join("anew.pftrace");
    convert(&trace, &[], &copy);
    assert!(std::fs::read(&copy).unwrap() == std::fs::read(&trace).unwrap(), "the packets stay as they are");
    let summary = convert(&trace, &["--only-ftrace"], &anew);
    assert_eq!(summary.pointer("/outcome/report/track_events/frames"), Some(&Value::from(46)));
    let mut before = frames_of(&trace);
    let mut after = frames_of(&anew);
    for frames in [&mut before, &mut after] {
        frames.actual.sort();
        frames.expected.sort_unstable();
    }
    assert_eq!(before.actual, after.actual);
    assert_eq!(before.expected, after.expected);
}

#[test]
fn tables_and_viewers_have_each_frame_with_its_times() {
    let Some((corpus, trace)) = trace() else { return };
    let dir = support::tempdir();
    let csv = dir.path().join("a.csv");
    let json = dir.path().join("a.json");
    convert(&trace, &[], &csv);
    convert(&trace, &[], &json);
    let csv = std::fs::read_to_string(csv).unwrap();
    let json: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let edges = |phase: &str| {
        let of_phase = move |event: &&Value| event["cat"] == "frame_timeline" && event["ph"] == phase;
        events.iter().filter(of_phase).collect::<Vec<_>>()
    };
    let begins = edges("b");
    let ends = edges("e");
    assert_eq!((begins.len(), ends.len()), (46, 46));
    for (ts, dur, values) in answers(&corpus) {
        let line = format!("frame,{ts},{dur},,");
        let jank = &values["jank_type"];
        let row = csv.lines().find(|row| {
            row.starts_with(&line)
                && row.contains(&format!(",Actual Timeline,{},", values["name"]))
                && row.contains(&format!("jank: {jank};"))
        });
        assert!(row.is_some(), "{line} {values:?}");
        let begin = begins.iter().find(|begin| {
            begin["ts"] == ts as f64 / 1e3
                && begin["args"]["jank_type"] == **jank
                && begin["args"]["display_frame_token"].as_i64() == values["display_frame_token"].parse().ok()
                && ends.iter().any(|end| end["id2"] == begin["id2"] && end["ts"] == (ts + dur) as f64 / 1e3)
        });
        assert!(begin.is_some(), "{ts} {dur} {values:?}");
    }
    assert_eq!(csv.lines().filter(|row| row.starts_with("frame,")).count(), 46);
    assert_eq!(csv.lines().filter(|row| row.contains(",Expected Timeline,")).count(), 22);
}

#[test]
fn a_profile_for_firefox_has_a_marker_for_each_frame_and_tells_late_ones_apart() {
    let Some((corpus, trace)) = trace() else { return };
    let dir = support::tempdir();
    let out = dir.path().join("a.firefox.json");
    convert(&trace, &[], &out);
    let profile: Value = serde_json::from_slice(&std::fs::read(out).unwrap()).unwrap();
    let mut found: BTreeMap<(String, String), usize> = BTreeMap::new();
    for thread in profile["threads"].as_array().unwrap() {
        let column = |name: &str| thread["markers"][name].as_array().unwrap();
        for (name, category) in column("name").iter().zip(column("category")) {
            let name = thread["stringArray"][name.as_u64().unwrap() as usize].as_str().unwrap();
            let category = &profile["meta"]["categories"][category.as_u64().unwrap() as usize]["name"];
            if name.ends_with(" Timeline") {
                let key = (name.to_owned(), category.as_str().unwrap().to_owned());
                *found.entry(key).or_default() += 1;
            }
        }
    }
    let late = answers(&corpus).iter().filter(|(.., values)| values["jank_type"] != "None").count();
    let want = [
        ("Actual Timeline", "Frame", 24 - late),
        ("Actual Timeline", "Late frame", late),
        ("Expected Timeline", "Frame", 22),
    ];
    let want = want.map(|(name, category, count)| ((name.to_owned(), category.to_owned()), count));
    assert_eq!(found, BTreeMap::from(want));
}

#[test]
fn the_page_has_a_row_of_expected_and_one_of_actual_frames_with_late_ones_marked() {
    let Some((corpus, trace)) = trace() else { return };
    let dir = support::tempdir();
    let out = dir.path().join("a.html");
    convert(&trace, &[], &out);
    let page = Page::read(&out);
    let start: i64 = page.index["start_ns"].as_str().unwrap().parse().unwrap();
    let tracks = page.tracks();
    let rows = |role: &str| tracks.iter().filter(|track| track.is("slices", role)).collect::<Vec<_>>();
    let expected = rows("expected_frames");
    let actual = rows("actual_frames");
    // Of the app and of SurfaceFlinger.
    assert_eq!((expected.len(), actual.len()), (2, 2));
    assert_eq!(expected.iter().map(|track| track.count()).sum::<usize>(), 22);
    let mut found: Vec<(i64, i64, bool, String)> = Vec::new();
    for track in &actual {
        assert_eq!(track.about["name"], "Actual Timeline");
        let columns = &track.columns;
        let frame = |item: usize| {
            let is_late = columns["flags"][item] == 4;
            let name = page.string(columns["name"][item]).to_owned();
            (start + columns["start"][item], columns["duration"][item], is_late, name)
        };
        found.extend((0..track.count()).map(frame));
    }
    found.sort();
    let row = |(ts, dur, values): FrameRow| {
        let is_late = values["jank_type"] != "None";
        let token = &values["name"];
        let jank = &values["jank_type"];
        let name = if is_late { format!("{token} {jank}") } else { token.clone() };
        (ts as i64, dur as i64, is_late, name)
    };
    let mut want: Vec<_> = answers(&corpus).into_iter().map(row).collect();
    want.sort();
    assert_eq!(found, want);
    // Each frame that overlaps another one of its row lies on another level.
    for track in expected.iter().chain(&actual) {
        let columns = &track.columns;
        let span = |item: usize| {
            let start = columns["start"][item];
            (columns["depth"][item], start, start + columns["duration"][item])
        };
        for (a, b) in (0..track.count()).flat_map(|b| (0..b).map(move |a| (a, b))) {
            let a = span(a);
            let b = span(b);
            assert!(a.0 != b.0 || a.2 <= b.1, "{a:?} {b:?}");
        }
    }
    assert_eq!(page.index["summary"]["report"]["unread"], serde_json::json!({}), "nothing is left out");
}

/// The polled counters of a trace by Perfetto's published classes: memory of processes and of the system, in
/// bytes.
const BY_PERFETTOS_CLASSES: &str = r#"
import sys
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as p
trace = p.Trace()
trace.ParseFromString(open(sys.argv[1], 'rb').read())
for packet in trace.packet:
    for process in packet.process_stats.processes:
        for field, name in (('vm_rss_kb', 'mem.rss'), ('vm_size_kb', 'mem.virt'), ('rss_anon_kb', 'mem.rss.anon')):
            if process.HasField(field):
                print(packet.timestamp, process.pid, name, getattr(process, field) * 1024)
    for value in packet.sys_stats.meminfo:
        if value.key == p.MeminfoCounters.MEMINFO_MEM_FREE:
            print(packet.timestamp, 0, 'MemFree', value.value * 1024)
"#;

/// The polled counters of a trace in the words of the program above.
#[derive(Default)]
struct PolledCounters {
    tracks: Vec<(i32, String)>,
    lines: Vec<String>,
}

impl Sink for PolledCounters {
    fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
        Ok(())
    }

    fn track(&mut self, track: &Track<'_>) -> io::Result<()> {
        let pid = match track.owner {
            TrackOwner::Process(pid) => pid.0,
            _ => 0,
        };
        self.tracks.push((pid, String::from_utf8_lossy(track.name).into_owned()));
        Ok(())
    }

    fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
        let TrackEventKind::Counter(CounterValue::Int(value)) = event.kind else { return Ok(()) };
        let (pid, name) = &self.tracks[event.track.0 as usize];
        if ["mem.rss", "mem.virt", "mem.rss.anon", "MemFree"].contains(&name.as_str()) {
            self.lines.push(format!("{} {pid} {name} {value}", event.ts));
        }
        Ok(())
    }
}

#[test]
fn polled_counters_have_the_values_that_perfettos_own_classes_decode() {
    let Some(corpus) = support::corpus() else { return };
    let Some(python) = python_with(PERFETTO) else { return };
    let dir = corpus.join("perfetto");
    let mut compared = 0;
    for name in ["androidBasicMemory.pftrace", "perfetto_android12_cpuschedstack.pftrace"] {
        let trace = dir.join(format!("microsoft__Microsoft-Performance-Tools-Linux-Android__{name}"));
        let mut command = support::Command::new(&python);
        let decoded = command.arg("-c").arg(BY_PERFETTOS_CLASSES).arg(&trace).run().exited(0).stdout;
        let mut found = PolledCounters::default();
        let report = perfetto::read(&std::fs::read(&trace).unwrap(), Order::Time, &mut found).unwrap();
        assert!(report.unread.keys().all(|kind| kind != "sys_stats" && kind != "process_stats"), "{name}");
        let mut want: Vec<&str> = decoded.lines().collect();
        want.sort_unstable();
        found.lines.sort_unstable();
        assert_eq!(found.lines, want, "{name}");
        compared += want.len();
    }
    assert!(compared > 1000, "{compared} values");
}

#[test]
fn outputs_that_cannot_hold_frames_say_so() {
    let Some((_, trace)) = trace() else { return };
    let dir = support::tempdir();
    for name in ["a.dat", "a.systrace"] {
        let summary = convert(&trace, &[], &dir.path().join(name));
        assert_eq!(summary["dropped"]["frames"], 46, "{name}: {summary}");
    }
    for name in ["a.html", "a.csv", "a.json", "a.json.gz"] {
        let summary = convert(&trace, &[], &dir.path().join(name));
        assert_eq!(summary["dropped"].get("frames"), None, "{name}: {summary}");
    }
}

#[test]
fn a_page_has_the_frames_and_their_numbers_that_info_prints() {
    let Some((_, trace)) = trace() else { return };
    let dir = support::tempdir();
    let out = dir.path().join("a.html");
    convert(&trace, &[], &out);
    let page = Page::read(&out);
    page.check();
    let mut command = support::tracebridge();
    let info = command.args(["info", "--json", "--frames"]).arg(&trace).run().json();
    assert_eq!(page.index["frames"], info["frames"]);
    let start: i64 = page.index["start_ns"].as_str().unwrap().parse().unwrap();
    let mut found: Vec<[i64; 4]> = Vec::new();
    for track in page.tracks().iter().filter(|track| track.is("slices", "frames")) {
        let column = |name: &str, item: usize| track.columns[name][item];
        found.extend((0..track.count()).map(|item| {
            [
                start + column("start", item),
                column("duration", item),
                column("cpu", item),
                column("overrun", item),
            ]
        }));
    }
    found.sort_unstable();
    // Where no deadline is known, the page has 0 and a flag.
    let number = |frame: &Value, field: &str| frame[field].as_i64().unwrap_or(0);
    let fields = ["begin_ns", "duration_ns", "duration_cpu_ns", "overrun_ns"];
    let frames = info["every_frame"].as_array().unwrap().iter();
    let mut expected: Vec<[i64; 4]> = frames.map(|frame| fields.map(|field| number(frame, field))).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

/// An app may record FrameTimeline without the markers of its threads' work.
#[test]
fn frames_that_only_frame_timeline_has_are_late_in_every_answer() {
    let Some(corpus) = support::corpus() else { return };
    let name =
        "microsoft__Microsoft-Performance-Tools-Linux-Android__perfetto_android12_cpuschedstack.pftrace";
    let trace = corpus.join("perfetto").join(name);
    let mut command = support::tracebridge();
    let info = command.args(["info", "--json", "--frames"]).arg(&trace).run().json();
    let count = |field: &str| -> u64 {
        info["frames"].as_array().unwrap().iter().map(|of_app| of_app[field].as_u64().unwrap()).sum()
    };
    assert_eq!((count("count"), count("janky"), count("slow")), (78, 43, 0));
    assert!(info["frames"].as_array().unwrap().iter().all(|of_app| of_app["duration_cpu_ns"].is_null()));
    assert_eq!(info["timeline_frames"], serde_json::json!({ "actual": 177, "late": 168 }));
    let why = support::tracebridge().args(["why", "--frame", "late", "--json"]).arg(&trace).run().json();
    assert_eq!(why["spans"].as_array().unwrap().len(), 43);
    let dir = support::tempdir();
    let out = dir.path().join("a.html");
    convert(&trace, &[], &out);
    let page = Page::read(&out);
    assert_eq!(page.index["frames"], info["frames"]);
    let tracks = page.tracks();
    let flags = |role: &'static str| {
        let of_role = tracks.iter().filter(move |track| track.is("slices", role));
        of_role.flat_map(|track| track.columns["flags"].iter().copied())
    };
    const LATE: i64 = 4;
    const NO_WORK: i64 = 32;
    assert_eq!(flags("frames").filter(|flags| flags & LATE != 0).count(), 43);
    assert_eq!(flags("frames").filter(|flags| flags & NO_WORK != 0).count(), 78);
    assert_eq!(flags("actual_frames").filter(|flags| flags & LATE != 0).count(), 168);
}
