//! Tests of profiles of both forms.

use std::io;

use super::*;
use crate::formats::samples::{CountOnly, SampleTables};

/// Time, thread, functions from the innermost, and weight.
type ReadSample = (u64, i32, Vec<String>, u64);

/// Collects samples.
#[derive(Default)]
struct GeckoLog(Vec<ReadSample>);

impl SampleSink for GeckoLog {
    fn sample(&mut self, tables: &SampleTables, sample: &Sample) -> io::Result<()> {
        let names = tables.stacks.frames(sample.stack).map(|n| tables.frames[n as usize].name.clone());
        let tid = tables.threads[sample.thread as usize].tid.0;
        self.0.push((sample.time.0, tid, names.collect(), sample.period));
        Ok(())
    }
}

fn read(text: &str) -> (Vec<ReadSample>, SampleReading) {
    assert!(detect(text.as_bytes()), "{text}");
    let mut log = GeckoLog::default();
    let reading = GeckoProfile::new(text.as_bytes()).read(&mut log).unwrap();
    (log.0, reading)
}

/// The tables of a thread in the processed form: stack 0 is `main`, stack 1 an unknown function below it.
const TABLES: &str = r#""stackTable":{"length":2,"frame":[0,1],"prefix":[null,0]},
    "frameTable":{"length":2,"func":[0,1],"address":[-1,4660],"category":[0,1]},
    "funcTable":{"length":2,"name":[0,1],"resource":[-1,0]},"resourceTable":{"length":1,"lib":[0],"name":[1]},
    "stringArray":["main","0x1234"]"#;
const META: &str = r#""meta":{"preprocessedProfileVersion":55,"version":24,"interval":1.0,"startTime":5.5,
    "product":"app","categories":[{"name":"User"},{"name":"Kernel"}]}"#;
const LIBS: &str = r#""libs":[{"name":"libx.so","path":"/system/lib64/libx.so","codeId":"ABCD"}]"#;

fn thread(tid: u32, samples: &str, tables: &str) -> String {
    format!(r#"{{"name":"t{tid}","pid":"7.1","tid":"{tid}","samples":{{{samples}}}{tables}}}"#)
}

#[test]
fn samples_of_all_threads_come_by_time_with_weights_and_differences() {
    let tables = format!(",{TABLES}");
    let first = thread(
        8,
        r#""length":3,"stack":[1,null,0],"timeDeltas":[1,2,0.5],"weight":null,"weightType":"samples""#,
        &tables,
    );
    let second = thread(9, r#""length":1,"stack":[1],"time":[2.0000004],"weight":[3]"#, &tables);
    let (samples, reading) = read(&format!("{{{META},{LIBS},\"threads\":[{first},{second}]}}"));
    let unknown = || vec!["libx.so+0x1234".to_owned(), "main".to_owned()];
    let expected = [
        (1_000_000, 8, unknown(), 1),
        (2_000_000, 9, unknown(), 3),
        (3_000_000, 8, Vec::new(), 1),
        (3_500_000, 8, vec!["main".to_owned()], 1),
    ];
    assert_eq!(samples, expected);
    let tables = &reading.tables;
    assert_eq!((tables.threads[0].pid, tables.threads[0].name.as_str()), (Pid(7), "t8"));
    assert_eq!(tables.events.iter().map(|event| event.rate).collect::<Vec<_>>(), [SampleRate::Hz(1_000)]);
    let module = &tables.modules[tables.frames[1].module as usize];
    assert_eq!((module.path.as_str(), module.build_id.as_str()), ("/system/lib64/libx.so", "abcd"));
    assert!(reading.report.damage.is_empty(), "{:?}", reading.report);
}

#[test]
fn tables_that_threads_share_are_found_and_times_are_weights() {
    let samples = r#""stack":[1,0],"time":[0,1],"weight":[0.25,1.5],"weightType":"tracing-ms""#;
    let text = format!("{{{META},{LIBS},\"shared\":{{{TABLES}}},\"threads\":[{}]}}", thread(8, samples, ""));
    let (samples, reading) = read(&text);
    assert_eq!(samples.iter().map(|sample| sample.3).collect::<Vec<_>>(), [250_000, 1_500_000]);
    assert_eq!(samples[0].2, ["libx.so+0x1234", "main"]);
    assert!(reading.tables.events[0].is_time);
}

/// A profile as Firefox writes it, with another process inside.
const RAW: &str = r#"{"meta":{"version":24,"interval":2,"startTime":100,"stackwalk":1},"libs":[],
    "threads":[{"name":"GeckoMain","tid":3,"pid":2,
        "samples":{"schema":{"stack":0,"time":1},"data":[[1,5.0],[0,6.0]]},
        "stackTable":{"schema":{"prefix":0,"frame":1},"data":[[null,0],[0,1]]},
        "frameTable":{"schema":{"location":0,"category":4},"data":[[0],[1,null,null,null,0]]},
        "stringTable":["main","a.B.run (in /data/app/base.odex)"]}],
    "processes":[{"meta":{"version":24,"startTime":101},"threads":[{"name":"child","tid":5,"pid":4,
        "samples":{"schema":{"stack":0,"time":1},"data":[[0,4.5]]},
        "stackTable":{"schema":{"prefix":0,"frame":1},"data":[[null,0]]},
        "frameTable":{"schema":{"location":0},"data":[[0]]},"stringTable":["child_main"]}]}]}"#;

#[test]
fn a_profile_as_firefox_writes_it_has_rows_and_processes() {
    let (samples, reading) = read(RAW);
    let text = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let expected = [
        (5_000_000, 3, text(&["a.B.run", "main"]), 1),
        (5_500_000, 5, text(&["child_main"]), 1),
        (6_000_000, 3, text(&["main"]), 1),
    ];
    assert_eq!(samples, expected);
    assert_eq!(reading.tables.frames[1].kind, crate::formats::samples::FrameKind::Java);
}

#[test]
fn stacks_that_name_what_is_missing_are_damage() {
    let tables = r#","stackTable":{"frame":[0,7],"prefix":[1,0]},"frameTable":{"func":[0]},
        "funcTable":{"name":[0]},"stringArray":["main"]"#;
    let text = format!(
        "{{{META},\"threads\":[{}]}}",
        thread(8, r#""stack":[0,1,9,4294967299],"time":[1,2,3,4]"#, tables)
    );
    let (samples, reading) = read(&text);
    let names: Vec<&[String]> = samples.iter().map(|sample| sample.2.as_slice()).collect();
    assert_eq!(names, [&["main".to_owned()][..], &["main".to_owned()], &[], &[]]);
    let damage: Vec<&str> = reading.report.damage.iter().map(|damage| damage.what.as_str()).collect();
    assert_eq!(damage.len(), 2, "{damage:?}");
}

#[test]
fn a_profile_cut_anywhere_is_read_as_far_as_it_goes_and_says_so() {
    let tables = format!(",{TABLES}");
    let samples = r#""stack":[1,0,1],"time":[1,2,3]"#;
    let processed = format!("{{{META},{LIBS},\"threads\":[{}]}}", thread(8, samples, &tables));
    for text in [RAW, &processed] {
        let whole = GeckoProfile::new(text.as_bytes()).read(&mut CountOnly).unwrap();
        assert!(whole.report.damage.is_empty());
        for cut in (1..text.len()).step_by(text.len().div_ceil(200)) {
            let reading = GeckoProfile::new(&text.as_bytes()[..cut]).read(&mut CountOnly).unwrap();
            assert!(!reading.report.damage.is_empty(), "cut at {cut}");
        }
    }
}

#[test]
fn other_json_is_no_profile() {
    for text in ["{\"meta\":{\"version\":1}}", "{\"traceEvents\":[]}", "[]", "{", "{\"meta\":3}", "hello"] {
        assert!(!detect(text.as_bytes()), "{text}");
    }
}
