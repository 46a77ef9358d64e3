//! Whole traces through the reader.

use std::io;

use super::{detect, read};
use crate::clock::Timestamp;
use crate::formats::{
    Order, ProcessInfo, ReadReport, Sink, ThreadInfo, Track, TrackEvent, TrackEventKind, TrackOwner,
};
use crate::ids::Pid;

/// The calls that a reader has made, a line each.
#[derive(Default)]
struct Log {
    tracks: Vec<String>,
    lines: Vec<String>,
    last: Vec<u64>,
}

impl Sink for Log {
    fn event(&mut self, _: &crate::formats::Event<'_>, _: &crate::formats::EventType) -> io::Result<()> {
        Ok(())
    }
    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        let name = String::from_utf8_lossy(thread.name.unwrap_or(b"-"));
        self.lines.push(format!("thread {}/{} {name}", thread.tgid.unwrap_or(Pid(-1)), thread.tid));
        Ok(())
    }
    fn process(&mut self, process: &ProcessInfo<'_>) -> io::Result<()> {
        let name = String::from_utf8_lossy(process.name.unwrap_or(b"-"));
        self.lines.push(format!("process {} {name}", process.pid));
        Ok(())
    }
    fn track(&mut self, track: &Track<'_>) -> io::Result<()> {
        assert_eq!(track.id.0 as usize, self.tracks.len());
        let owner = match track.owner {
            TrackOwner::Thread { tid, tgid } => format!("{}/{tid}", tgid.unwrap_or(Pid(-1))),
            TrackOwner::Process(pid) => format!("{pid}"),
            TrackOwner::Machine => "machine".into(),
        };
        let name = String::from_utf8_lossy(track.name);
        self.tracks.push(format!("{owner}:{name}").trim_end_matches(':').to_owned());
        self.last.push(0);
        Ok(())
    }
    fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
        let last = &mut self.last[event.track.0 as usize];
        assert!(*last <= event.ts.0, "the events of a track come in order of time");
        *last = event.ts.0;
        let what = match event.kind {
            TrackEventKind::Begin { name } => format!("begin {}", String::from_utf8_lossy(name)),
            TrackEventKind::End => "end".into(),
            TrackEventKind::Instant { name } => format!("instant {}", String::from_utf8_lossy(name)),
            TrackEventKind::Counter(value) => format!("{value:?}"),
            TrackEventKind::Frame(_) => "frame".into(),
        };
        let cpu = event.thread_ns.map_or(String::new(), |ns| format!(" cpu {ns}"));
        let flows: String = event.flows.iter().map(|flow| if flow.ends { " in" } else { " flow" }).collect();
        self.lines.push(format!("{} {}: {what}{cpu}{flows}", event.ts, self.tracks[event.track.0 as usize]));
        Ok(())
    }
}

fn log(data: &str) -> (Vec<String>, ReadReport) {
    let mut log = Log::default();
    let report = read(data.as_bytes(), Order::Any, &mut log).unwrap();
    (log.lines, report)
}

#[test]
fn slices_instants_and_names_of_threads() {
    let (lines, report) = log(r#"{"displayTimeUnit":"ms","traceEvents":[
        {"ph":"M","pid":1,"name":"process_name","args":{"name":"app"}},
        {"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"UI \"x\""}},
        {"ph":"X","pid":1,"tid":2,"ts":1,"dur":5,"name":"child"},
        {"ph":"X","pid":1,"tid":2,"ts":1,"dur":10,"name":"parent","tts":"0.5","tdur":4},
        {"ph":"B","pid":1,"tid":3,"ts":2.5,"name":"b"},
        {"ph":"i","pid":1,"tid":3,"ts":3,"name":"here"},
        {"ph":"I","pid":1,"tid":3,"ts":3,"name":"there","s":"p"},
        {"ph":"R","pid":1,"tid":3,"ts":3,"name":"all","s":"g"},
        {"ph":"E","pid":1,"tid":3,"ts":4,"tts":2}]}"#);
    assert_eq!(
        lines,
        [
            "process 1 app",
            "thread 1/2 UI \"x\"",
            "thread 1/3 -",
            "1000 1/2: begin parent cpu 500",
            "1000 1/2: begin child",
            "2500 1/3: begin b",
            "3000 1/3: instant here",
            "3000 1: instant there",
            "3000 machine:Global instants: instant all",
            "4000 1/3: end cpu 2000",
            "6000 1/2: end",
            "11000 1/2: end cpu 4500",
        ]
    );
    assert_eq!(
        report,
        ReadReport {
            track_events: report.track_events,
            ..ReadReport {
                first_ts: Some(Timestamp(1000)),
                last_ts: Some(Timestamp(11_000)),
                ..ReadReport::default()
            }
        }
    );
    assert_eq!((report.track_events.slices, report.track_events.instants), (3, 3));
}

#[test]
fn asynchronous_slices_share_rows_by_name() {
    let (lines, report) = log(r#"[
        {"ph":"b","pid":1,"ts":1,"name":"load","cat":"c","id":"0x1"},
        {"ph":"b","pid":1,"ts":2,"name":"load","cat":"c","id2":{"local":7}},
        {"ph":"n","pid":1,"ts":2,"name":"load","cat":"c","id":"0x1"},
        {"ph":"e","pid":1,"ts":3,"name":"load","cat":"c","id":"0x1"},
        {"ph":"b","pid":1,"ts":4,"name":"load","cat":"c","id":"0x2"},
        {"ph":"e","pid":1,"ts":5,"name":"load","cat":"c","id2":{"local":7}},
        {"ph":"F","pid":1,"ts":5,"name":"load","cat":"c","id":"0x2"},
        {"ph":"e","pid":1,"ts":6,"name":"load","cat":"c","id":"0x9"},
        {"ph":"b","pid":1,"ts":6,"name":"load","cat":"c"}]"#);
    let events: Vec<&str> =
        lines.iter().map(String::as_str).filter(|line| !line.starts_with("thread")).collect();
    assert_eq!(
        events,
        [
            "1000 1:load: begin load",
            "2000 1:load: begin load",
            "2000 1:load: instant load",
            "3000 1:load: end",
            "4000 1:load: begin load",
            "5000 1:load: end",
            "5000 1:load: end",
        ]
    );
    assert_eq!(report.irregular.len(), 1, "an end without a slice: {report:?}");
    assert_eq!(report.lost(), 1, "a slice without an id");
    assert!(report.is_lossy());
}

#[test]
fn counters_have_a_track_for_each_series() {
    let (lines, report) = log(r#"[
        {"ph":"C","pid":1,"ts":1,"name":"mem","args":{"java":5,"native":"2.5","bad":"x","list":[1]}},
        {"ph":"C","pid":1,"ts":2,"name":"fps","args":{"value":60}},
        {"ph":"C","pid":1,"ts":3,"name":"fps","id":3,"args":{"value":61}}]"#);
    let events: Vec<&str> =
        lines.iter().map(String::as_str).filter(|line| !line.starts_with("thread")).collect();
    assert_eq!(
        events,
        [
            "1000 1:mem java: Int(5)",
            "1000 1:mem native: Double(2.5)",
            "2000 1:fps: Int(60)",
            "3000 1:fps id: 3: Int(61)",
        ]
    );
    assert_eq!(report.lost(), 2, "values of counters that are no numbers: {report:?}");
}

#[test]
fn flows_belong_to_the_slice_of_their_time() {
    let (lines, _) = log(r#"[
        {"ph":"X","pid":1,"tid":2,"ts":1,"dur":5,"name":"from"},
        {"ph":"s","pid":1,"tid":2,"ts":1,"name":"f","id":"0x5"},
        {"ph":"t","pid":1,"tid":3,"ts":7,"name":"f","id":"0x5"},
        {"ph":"X","pid":1,"tid":4,"ts":8,"dur":1,"name":"to","bind_id":"0x9","flow_in":true},
        {"ph":"f","pid":1,"tid":4,"ts":8,"name":"f","id":"0x5","bp":"e"}]"#);
    let with_flow: Vec<&str> = lines
        .iter()
        .map(String::as_str)
        .filter(|line| line.ends_with("flow") || line.ends_with(" in"))
        .collect();
    assert_eq!(
        with_flow,
        ["1000 1/2: begin from flow", "7000 1/3: instant f flow", "8000 1/4: begin to in in"]
    );
}

#[test]
fn processes_and_threads_may_have_texts_for_numbers_or_the_same_number() {
    let (lines, _) = log(r#"{"traceEvents":[
        {"pid":"foo","tid":"bar","ts":5.1,"dur":500.1,"name":"name.exec","ph":"XXX","cat":"aaa"},
        {"pid":1,"tid":4294967296,"ts":6,"dur":1,"name":"own","ph":"X"},
        {"pid":1,"tid":9,"ts":7,"dur":1,"name":"a","ph":"X"},
        {"pid":2,"tid":9,"ts":7,"dur":1,"name":"b","ph":"X"},
        {"ph":"M","pid":1,"tid":4294967296,"name":"thread_name","args":{"name":"own track"}}]}"#);
    for line in [
        "process 16777216 foo",
        "thread 16777216/16777217 bar",
        "5100 16777216/16777217: begin name.exec",
        "505200 16777216/16777217: end",
        "6000 1:own track: begin own",
        "7000 1:thread 9: begin a",
        "7000 2:thread 9: begin b",
    ] {
        assert!(lines.iter().any(|seen| seen == line), "{line}: {lines:#?}");
    }
}

#[test]
fn slices_that_overlap_lie_on_tracks_of_their_own() {
    let (lines, report) = log(r#"[
        {"ph":"X","pid":1,"tid":2,"ts":0,"dur":10,"name":"a"},
        {"ph":"X","pid":1,"tid":2,"ts":5,"dur":10,"name":"b"}]"#);
    assert_eq!(
        lines[1..],
        [
            "0 1/2: begin a",
            "5000 1/2:overlapping slices: begin b",
            "10000 1/2: end",
            "15000 1/2:overlapping slices: end",
        ]
    );
    assert!(report.irregular[0].starts_with("1 slices overlap"), "{report:?}");
}

#[test]
fn what_is_not_read_is_counted() {
    let (_, report) = log(r#"{"traceEvents":[
        {"ph":"P","pid":1,"ts":1,"name":"s","sf":1},{"ph":"N","pid":1,"ts":1,"id":1},{"ph":"v","ts":1},
        {"ph":"c","ts":1}, {"ph":"X","ts":"x","dur":1}],
        "stackFrames":{"1":{"name":"f"},"2":{"name":"g"}},"systemTraceEvents":"x","samples":[{}]}"#);
    let unread: Vec<(&str, u64)> =
        report.unread.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(
        unread,
        [
            ("events of objects (N, O, D)", 1),
            ("events of other phases", 1),
            ("memory dumps (v, V)", 1),
            ("samples (P)", 2),
            ("stack frames", 2),
            ("stacks of events", 1),
            ("systemTraceEvents (text of the kernel's events)", 1),
        ]
    );
    assert_eq!(report.lost(), 1, "the slice without a time");
}

#[test]
fn more_events_than_a_run_holds_are_put_in_order() {
    // Children are written before the slice around them, as at their ends; and the second half comes first.
    let event = |at: u64, dur: u64| {
        format!("{{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":{at},\"dur\":{dur},\"name\":\"n\"}}")
    };
    let mut events = Vec::new();
    let count = 300_000u64;
    for number in (count / 2..count).chain(0..count / 2) {
        events.extend([event(10 * number + 1, 2), event(10 * number + 4, 3), event(10 * number, 9)]);
    }
    let (lines, report) = log(&format!("[{}]", events.join(",\n")));
    assert_eq!((lines.len() as u64, report.track_events.slices), (1 + 6 * count, 3 * count));
    assert!(report.irregular.is_empty(), "{:?}", report.irregular);
}

#[test]
fn every_list_of_a_file_is_read_in_order_of_time() {
    let event =
        |at: u64| format!("{{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":{at},\"dur\":2,\"name\":\"n\"}}");
    let [a, b, c] = [10, 20, 30].map(event);
    for text in [
        format!("{{\"traceEvents\":[{a}],\"x\":1,\"traceEvents\":[{b},{c}]}}"),
        format!("{{\"traceEvents\":[{c}],\"traceEvents\":[{b},{a}]}}"),
        format!("{{\"traceEvents\":[{a}]}}\n{{\"traceEvents\":[{b}]}}\n{{\"traceEvents\":[{c}]}}\n"),
        format!("[{a}] [{b},{c}]"),
        format!("[{{}},{a},{b},{c}]"),
    ] {
        let (_, report) = log(&text);
        assert_eq!((report.track_events.slices, report.damage.len()), (3, 0), "{text}");
        assert_eq!(
            (report.first_ts, report.last_ts),
            (Some(Timestamp(10_000)), Some(Timestamp(32_000))),
            "{text}"
        );
    }
}

#[test]
fn files_are_told_from_other_json() {
    let yes = |text: &str| assert!(detect(text.as_bytes()), "{text}");
    let no = |text: &str| assert!(!detect(text.as_bytes()), "{text}");
    yes("{\"traceEvents\":[]}");
    yes("\n      {\n \"displayTimeUnit\": \"ms\",");
    yes("\u{feff}[\n{\"name\":\"a\",\"ph\":\"X\"");
    yes("  [ { \"pid\": 1, \"args\": {\"ph\": 1}, \"ph\": \"i\"} ");
    yes(&format!("{{\"metadata\": \"{}\", \"traceEvents\": [", "x".repeat(100_000)));
    no("{\"meta\":{\"version\":24}}");
    no("[{\"name\":\"a\"}]");
    no("[1,2]");
    no("[]");
    no("{\"perfetto_manifest\":{\"files\":[]}}");
    no("{");
    no("# tracer: nop\n");
}

#[test]
fn a_cut_at_any_byte_is_told() {
    let text = r#"{"traceEvents":[
{"ph":"B","pid":1,"tid":2,"ts":1.5,"name":"a","args":{"x":[1,"y\n"]}},
{"ph":"C","pid":1,"ts":2,"name":"c","args":{"value":-1e3}},
{"ph":"E","pid":1,"tid":2,"ts":3}
],"displayTimeUnit":"ns"}"#;
    assert!(!log(text).1.is_lossy());
    for cut in 1..text.len() {
        assert!(log(&text[..cut]).1.is_lossy(), "cut at {cut}");
    }
}
