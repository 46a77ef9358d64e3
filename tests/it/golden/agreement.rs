//! Every output has the same slices: thread or process, name, begin and length.
//!
//! The list of outputs is that of the product, so that a format without a reader here fails. Formats that
//! hold events as they were recorded are read back.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::report_page::Page;
use support::tables;
use tracebridge::export::FORMATS;

/// A slice of a thread, or an asynchronous one of a process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Slice {
    /// The thread's id.
    thread: Option<i64>,
    /// The process's id, if the slice belongs to no thread.
    process: Option<i64>,
    name: String,
    begin_ns: i64,
    length_ns: i64,
}

impl Slice {
    fn new(thread: Option<i64>, process: Option<i64>, name: &str, [begin, end]: [i64; 2]) -> Slice {
        let process = if thread.is_some() { None } else { process };
        Slice { thread, process, name: name.to_owned(), begin_ns: begin, length_ns: end - begin }
    }
}

/// Converts, and returns whether there is an output.
fn convert(from: &Path, to: &Path) -> bool {
    let done = support::tracebridge().arg("convert").arg(from).arg("-o").arg(to).run();
    assert!(
        matches!(done.code(), Some(0 | 1 | 3)),
        "{} to {}: {}",
        from.display(),
        to.display(),
        done.stderr
    );
    done.code() != Some(1)
}

/// The fields of a line of CSV.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => fields.last_mut().unwrap().extend(chars.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            c => fields.last_mut().unwrap().push(c),
        }
    }
    fields
}

/// The records of a CSV file: a quoted field may have line ends.
fn records(text: &str) -> Vec<Vec<String>> {
    let mut records = Vec::new();
    let mut record = String::new();
    for line in text.split_inclusive('\n') {
        record.push_str(line);
        if record.matches('"').count().is_multiple_of(2) {
            records.push(fields(record.trim_end_matches('\n')));
            record.clear();
        }
    }
    records
}

fn of_csv(path: &Path) -> Vec<Slice> {
    let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    let mut slices = Vec::new();
    for record in records(&text).into_iter().skip(1) {
        let number = |at: usize| record[at].parse::<i64>().ok();
        let (Some(begin), Some(length)) = (number(1), number(2)) else { continue };
        if matches!(record[0].as_str(), "slice" | "async") {
            slices.push(Slice::new(number(5), number(4), &record[7], [begin, begin + length]));
        }
    }
    slices
}

fn of_tables(dir: &Path) -> Vec<Slice> {
    let rows = tables::rows_of(&dir.join("slice.parquet"));
    let slices = rows.iter().filter(|row| matches!(row.text("kind"), Some("thread" | "async" | "track")));
    slices
        .map(|row| {
            let begin = row.int("ts").unwrap();
            let end = begin + row.int("dur").unwrap();
            // A thread that has the id of an earlier one has its number above these bits.
            let tid = row.int("utid").map(|utid| utid & 0xffff_ffff);
            Slice::new(tid, row.int("pid"), row.text("name").unwrap(), [begin, end])
        })
        .collect()
}

/// Times in µs with three decimals, as ns.
fn json_ns(value: &Value) -> i64 {
    (value.as_f64().unwrap() * 1000.0).round() as i64
}

/// Thread ids from this one on are those of tracks that are no threads.
const NO_THREADS: i64 = 1 << 23;

fn of_chrome_json(path: &Path) -> Vec<Slice> {
    let trace: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let mut slices = Vec::new();
    let mut open: HashMap<(i64, i64), Vec<(String, i64)>> = HashMap::new();
    let mut open_async: BTreeMap<(i64, String), Vec<(String, i64)>> = BTreeMap::new();
    for event in trace["traceEvents"].as_array().unwrap() {
        let number = |key: &str| event[key].as_i64().unwrap();
        let pid = number("pid");
        let tid = number("tid");
        let name = event["name"].as_str().unwrap().to_owned();
        let ts = json_ns(&event["ts"]);
        let is_thread = tid < NO_THREADS;
        assert!(tid < 1 << 32, "Perfetto reads 32 bits of a thread's id: {event}");
        if !matches!(event["cat"].as_str(), Some("atrace" | "track_event")) {
            continue;
        }
        let id = (pid, event["id2"]["local"].as_str().unwrap_or_default().to_owned());
        let process = (pid < NO_THREADS).then_some(pid);
        match event["ph"].as_str().unwrap() {
            "B" => open.entry((pid, tid)).or_default().push((name, ts)),
            "E" => {
                let (begun, begin) = open.get_mut(&(pid, tid)).and_then(Vec::pop).expect("a begin");
                assert_eq!(begun, name, "{event}");
                slices.push(Slice::new(is_thread.then_some(tid), process, &name, [begin, ts]));
            }
            "X" => {
                let span = [ts, ts + json_ns(&event["dur"])];
                slices.push(Slice::new(is_thread.then_some(tid), process, &name, span));
            }
            "b" => open_async.entry(id).or_default().push((name, ts)),
            "e" => {
                let (begun, begin) = open_async.get_mut(&id).and_then(Vec::pop).expect("a begin");
                assert_eq!(begun, name, "{event}");
                slices.push(Slice::new(None, process, &name, [begin, ts]));
            }
            _ => {}
        }
    }
    assert!(open.values().all(Vec::is_empty) && open_async.values().all(Vec::is_empty), "ends are missing");
    slices
}

/// The phase of a marker with a begin and an end.
const INTERVAL: u64 = 1;

fn of_firefox(path: &Path) -> Vec<Slice> {
    let profile: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let categories = profile["meta"]["categories"].as_array().unwrap();
    let ns = |value: &Value| (value.as_f64().unwrap() * 1e6).round() as i64;
    let mut slices = Vec::new();
    for thread in profile["threads"].as_array().unwrap() {
        let strings =
            profile["shared"]["stringArray"].as_array().or(thread["stringArray"].as_array()).unwrap();
        let id = |key: &str| {
            let text = thread[key].as_str().map_or_else(|| thread[key].to_string(), str::to_owned);
            text.split('.').next().unwrap().parse::<i64>().unwrap()
        };
        let markers = &thread["markers"];
        for at in 0..markers["name"].as_array().unwrap().len() {
            let category = markers["category"][at].as_u64().unwrap() as usize;
            if categories[category]["name"] != "atrace" || markers["phase"][at] != INTERVAL {
                continue;
            }
            let name = strings[markers["name"][at].as_u64().unwrap() as usize].as_str().unwrap();
            let span = [ns(&markers["startTime"][at]), ns(&markers["endTime"][at])];
            // Firefox has no tracks of processes: these slices are on the main thread.
            let tid = id("tid");
            slices.push(Slice::new((tid >= 0).then_some(tid), None, name, span));
        }
    }
    slices
}

fn of_report(path: &Path) -> Vec<Slice> {
    let page = Page::read(path);
    let mut slices = Vec::new();
    for track in page.tracks() {
        let role = track.about["role"].as_str().unwrap();
        if track.about["kind"] != "slices" || !matches!(role, "atrace" | "async" | "own") {
            continue;
        }
        let of = |list: &str, member: &str, key: &str| {
            let at = track.about[member].as_u64()?;
            page.index[list][at as usize][key].as_i64()
        };
        for at in 0..track.count() {
            let column = |name: &str| track.columns[name][at];
            let span = [column("start"), column("start") + column("duration")];
            let owner = (of("threads", "thread", "tid"), of("processes", "process", "pid"));
            slices.push(Slice::new(owner.0, owner.1, page.string(column("name")), span));
        }
    }
    slices
}

/// An output, how its slices are read, and by how much its times may differ, ns.
type Reader = (&'static str, fn(&Path) -> Vec<Slice>, i64);

/// The tables first, which are no format of the list.
const READERS: &[Reader] = &[
    ("parquet", of_tables, 0),
    // Ends and begins of one time are written 1 ns apart.
    ("chrome-json", of_chrome_json, 999),
    // Times are milliseconds as doubles.
    ("firefox", of_firefox, 1),
    ("report", of_report, 0),
    ("perfetto", read_back, 0),
    ("perfetto-zip", read_back, 0),
    ("trace-dat", read_back, 0),
    // Times are µs.
    ("systrace", read_back, 999),
    ("systrace-html", read_back, 999),
];

fn read_back(path: &Path) -> Vec<Slice> {
    let csv = PathBuf::from(format!("{}.csv", path.display()));
    if convert(path, &csv) { of_csv(&csv) } else { Vec::new() }
}

/// The slices in the order of a comparison, with times since the first one.
fn ordered(mut slices: Vec<Slice>, has_process_tracks: bool) -> Vec<Slice> {
    let first = slices.iter().map(|slice| slice.begin_ns).min().unwrap_or(0);
    for slice in &mut slices {
        slice.begin_ns -= first;
        if !has_process_tracks {
            slice.thread = slice.thread.or(slice.process.take());
        }
    }
    slices.sort();
    slices
}

/// Checks that all outputs have the slices of the CSV, and returns them. If `has_track_events`, formats
/// without track events are not compared.
fn check(dir: &Path, input: &Path, has_track_events: bool) -> Vec<Slice> {
    let csv = dir.join("all.csv");
    if !convert(input, &csv) {
        return Vec::new();
    }
    let all = of_csv(&csv);
    let formats = FORMATS.iter().filter(|format| format.name != "csv");
    let endings = formats.map(|format| (format.name, format.endings[0]));
    for (format, ending) in endings.chain([("parquet", ".parquet")]) {
        let reader = READERS.iter().find(|(name, ..)| *name == format);
        let (_, read, tolerance) = reader.unwrap_or_else(|| panic!("the output {format} is not compared"));
        if has_track_events && matches!(format, "trace-dat" | "systrace" | "systrace-html") {
            continue;
        }
        let output = dir.join(format!("all{ending}"));
        if !convert(input, &output) {
            continue;
        }
        let has_process_tracks = format != "firefox";
        let want = ordered(all.clone(), has_process_tracks);
        let have = ordered(read(&output), has_process_tracks);
        let near = |a: i64, b: i64| (a - b).abs() <= *tolerance;
        let is_same = |(a, b): (&Slice, &Slice)| {
            (a.thread, a.process, &a.name) == (b.thread, b.process, &b.name)
                && near(a.begin_ns, b.begin_ns)
                && near(a.length_ns, b.length_ns)
        };
        let differs = want.iter().zip(&have).find(|pair| !is_same(*pair));
        assert_eq!(differs, None, "{}: CSV and {format}", input.display());
        assert_eq!(want.len(), have.len(), "{}: the number of slices in CSV and {format}", input.display());
    }
    all
}

/// The slices of a text of ftrace in all outputs: thread or process, name, begin and length in µs.
fn of_text(lines: &[&str]) -> Vec<(i64, String, i64, i64)> {
    let dir = support::tempdir();
    let input = dir.path().join("in.txt");
    fs::write(&input, lines.join("\n") + "\n").unwrap();
    in_us(check(dir.path(), &input, false))
}

/// The slices of a Chrome JSON trace in all outputs, as `of_text` has them.
fn of_json(events: &str) -> Vec<(i64, String, i64, i64)> {
    let dir = support::tempdir();
    let input = dir.path().join("in.json");
    fs::write(&input, format!("[{events}]")).unwrap();
    in_us(check(dir.path(), &input, true))
}

fn in_us(slices: Vec<Slice>) -> Vec<(i64, String, i64, i64)> {
    let slices = ordered(slices, true).into_iter();
    let mut slices: Vec<_> = slices
        .map(|it| (it.thread.or(it.process).unwrap(), it.name, it.begin_ns / 1000, it.length_ns / 1000))
        .collect();
    slices.sort_by_key(|(.., begin, length)| (*begin, -length));
    slices
}

/// A line of a marker that process 100 writes at `us`.
fn marker(us: u64, text: &str) -> String {
    format!("app-100 ( 100) [000] ...1 1.{us:06}: tracing_mark_write: {text}")
}

fn of_markers(markers: &[(u64, &str)]) -> Vec<(i64, String, i64, i64)> {
    let lines: Vec<String> = markers.iter().map(|(us, text)| marker(*us, text)).collect();
    of_text(&lines.iter().map(String::as_str).collect::<Vec<_>>())
}

fn slice(owner: i64, name: &str, begin_us: i64, length_us: i64) -> (i64, String, i64, i64) {
    (owner, name.to_owned(), begin_us, length_us)
}

/// The largest file of the corpus whose outputs are compared, bytes.
const LARGEST: u64 = 60 << 10;

#[test]
fn all_outputs_of_files_of_every_format_have_the_same_slices() {
    let mut files: Vec<PathBuf> =
        ["split.dat", "v6.dat"].map(|name| super::golden(&format!("dat/{name}"))).into();
    for dir in ["ftrace-text", "systrace", "launches", "perfetto", "chrome-json", "trace-dat"] {
        let Some(corpus) = support::corpus() else { break };
        let Ok(entries) = fs::read_dir(corpus.join(dir)) else { continue };
        let small = entries.map(|entry| entry.unwrap()).filter(|entry| {
            let about = entry.metadata().unwrap();
            about.is_file() && about.len() <= LARGEST
        });
        let mut small: Vec<PathBuf> = small.map(|entry| entry.path()).collect();
        small.sort();
        files.extend(small.into_iter().take(4));
    }
    for file in files {
        let dir = support::tempdir();
        let has_track_events = !has_markers_alone(&file);
        check(dir.path(), &file, has_track_events);
    }
}

/// Whether a file has no tracks of programs, which texts and trace.dat do not hold.
fn has_markers_alone(file: &Path) -> bool {
    let info = support::tracebridge().args(["info", "--json"]).arg(file).run();
    let counts =
        if info.code() == Some(1) { Value::Null } else { info.json()["report"]["track_events"].clone() };
    ["slices", "instants"].iter().all(|kind| counts[kind].as_u64().unwrap_or(0) == 0)
}

#[test]
fn an_asynchronous_slice_that_begins_twice_ends_once() {
    let markers = [
        (0, "S|100|load|0"),
        (10, "S|100|load|0"),
        (15, "S|100|load|10"),
        (20, "S|100|load|0"),
        (30, "F|100|load|0"),
        (30, "S|100|load|0"),
        (40, "F|100|load|0"),
        (45, "F|100|load|0"),
        (60, "F|100|load|10"),
    ];
    let want = [slice(100, "load", 0, 30), slice(100, "load", 15, 45), slice(100, "load", 30, 10)];
    assert_eq!(of_markers(&markers), want);
}

#[test]
fn asynchronous_slices_without_an_end_last_as_long_as_the_trace() {
    let markers = [
        (0, "S|100|open|2"),
        (10, "G|100|tr|step|1"),
        (20, "G|100|tr|inner|1"),
        (30, "F|100|never begun|1"),
        (40, "H|100|tr|1"),
        (50, "S|200|open|2"),
        (60, "F|200|open|2"),
        (70, "I|100|last"),
    ];
    let want = [
        slice(100, "open", 0, 70),
        slice(100, "step", 10, 60),
        slice(100, "inner", 20, 20),
        slice(200, "open", 50, 10),
    ];
    assert_eq!(of_markers(&markers), want);
}

#[test]
fn a_slice_on_a_named_track_has_the_name_of_its_begin() {
    let markers = [
        (0, "G|100|tr|outer|1"),
        (5, "S|100|tr|1"),
        (10, "G|100|tr|inner|1"),
        (20, "H|100|tr|1"),
        (25, "F|100|tr|1"),
        (30, "H|100|tr|another name|1"),
        (40, "G|100|tr|other|2"),
        (50, "H|100|tr|2"),
        (60, "H|100|tr|2"),
    ];
    let want = [
        slice(100, "outer", 0, 30),
        slice(100, "tr", 5, 20),
        slice(100, "inner", 10, 10),
        slice(100, "other", 40, 10),
    ];
    assert_eq!(of_markers(&markers), want);
}

/// A `B`, an `E` or an `X` of thread 1 at `us`; an `X` has a length.
fn json_event(phase: &str, us: u64, name: &str, length: Option<u64>) -> String {
    let length = length.map_or_else(String::new, |us| format!(",\"dur\":{us}"));
    format!("{{\"name\":\"{name}\",\"ph\":\"{phase}\",\"ts\":{us},\"pid\":1,\"tid\":1{length}}}")
}

fn json_events(events: &[(&str, u64, &str, Option<u64>)]) -> String {
    events
        .iter()
        .map(|(phase, us, name, length)| json_event(phase, *us, name, *length))
        .collect::<Vec<_>>()
        .join(",")
}

#[test]
fn a_slice_without_length_holds_nothing() {
    let zero = ("X", 1000, "zero", Some(0));
    let long = [("B", 1000, "long", None), ("X", 1010, "inner", Some(20)), ("E", 1100, "", None)];
    let want = [slice(1, "long", 0, 100), slice(1, "zero", 0, 0), slice(1, "inner", 10, 20)];
    assert_eq!(of_json(&json_events(&[&[zero][..], &long].concat())), want, "the whole slice first");
    assert_eq!(of_json(&json_events(&[&long[..], &[zero]].concat())), want, "the whole slice last");
    let two = [zero, ("X", 1000, "zero", Some(0)), ("X", 1000, "whole", Some(5))];
    let want = [slice(1, "whole", 0, 5), slice(1, "zero", 0, 0), slice(1, "zero", 0, 0)];
    assert_eq!(of_json(&json_events(&two)), want);
}

#[test]
fn of_slices_that_begin_at_one_time_the_one_that_ends_last_is_the_parent() {
    let begins = [("B", 902, "outer", None), ("X", 902, "whole", Some(64)), ("B", 902, "inner", None)];
    let ends = [
        ("E", 910, "inner", None),
        ("X", 972, "later", Some(65)),
        ("E", 1056, "outer", None),
        ("B", 1056, "next", None),
        ("X", 1056, "in next", Some(4)),
        ("E", 1066, "", None),
    ];
    let want = [
        slice(1, "outer", 0, 154),
        slice(1, "whole", 0, 64),
        slice(1, "inner", 0, 8),
        slice(1, "later", 70, 65),
        slice(1, "next", 154, 10),
        slice(1, "in next", 154, 4),
    ];
    assert_eq!(of_json(&json_events(&[&begins[..], &ends].concat())), want);
    let [outer, whole, inner] = begins;
    let reordered = [whole, outer, inner];
    assert_eq!(of_json(&json_events(&[&reordered[..], &ends].concat())), want, "the whole slice first");
    // An end without a name ends the innermost slice.
    let nameless: Vec<_> = ends
        .iter()
        .map(|(phase, us, name, length)| (*phase, *us, if *phase == "E" { "" } else { *name }, *length))
        .collect();
    assert_eq!(of_json(&json_events(&[&reordered[..], &nameless].concat())), want, "ends without names");
    let open = [("X", 5, "whole", Some(3)), ("B", 5, "open", None), ("i", 20, "last", None)];
    assert_eq!(of_json(&json_events(&open)), [slice(1, "open", 0, 15), slice(1, "whole", 0, 3)]);
}

#[test]
fn threads_of_one_number_in_two_processes_have_their_names() {
    let dir = support::tempdir();
    let input = dir.path().join("in.json");
    let event = |ph: &str, pid: u32, tid: u32, more: &str| {
        format!("{{\"ph\":\"{ph}\",\"pid\":{pid},\"tid\":{tid},{more}}}")
    };
    let mut events = Vec::new();
    for pid in [10, 20] {
        for (tid, name) in [(1, "worker"), (2, "io")] {
            events.push(event(
                "M",
                pid,
                tid,
                &format!("\"name\":\"thread_name\",\"args\":{{\"name\":\"{name}\"}}"),
            ));
            events.push(event("X", pid, tid, &format!("\"name\":\"{name} {pid}\",\"ts\":{tid},\"dur\":100")));
        }
    }
    fs::write(&input, format!("[{}]", events.join(","))).unwrap();
    for output in ["all.csv", "all.json"] {
        assert!(convert(&input, &dir.path().join(output)));
    }
    assert_eq!(of_chrome_json(&dir.path().join("all.json")).len(), 4);
    let csv = records(&fs::read_to_string(dir.path().join("all.csv")).unwrap());
    for name in ["worker", "io"] {
        let slices: Vec<_> = csv.iter().filter(|row| row[7].starts_with(name)).collect();
        assert!(slices.len() == 2 && slices.iter().all(|row| row[9] == name), "{csv:?}");
    }
}

#[test]
fn a_thread_id_that_is_used_again_is_another_thread() {
    let switch = |us: u64, from: (&str, u32), state: &str, to: (&str, u32)| {
        let (prev, prev_pid) = from;
        let (next, next_pid) = to;
        format!(
            "{prev}-{prev_pid} (-----) [000] d..2 1.{us:06}: sched_switch: prev_comm={prev} prev_pid={prev_pid} \
             prev_prio=120 prev_state={state} ==> next_comm={next} next_pid={next_pid} next_prio=120"
        )
    };
    let of = |us: u64, task: &str, text: &str| format!("{task} [000] ...1 1.{us:06}: {text}");
    let first = [
        switch(0, ("swapper/0", 0), "R", ("old", 70)),
        of(10, "old-70 ( 60)", "tracing_mark_write: B|60|unended"),
        of(20, "old-70 ( 60)", "tracing_mark_write: B|60|inner"),
    ];
    let exit = of(30, "old-70 ( 60)", "sched_process_exit: comm=old pid=70 prio=120");
    let left = switch(40, ("old", 70), "X", ("swapper/0", 0));
    let free = of(50, "sh-5 ( 5)", "sched_process_free: comm=old pid=70 prio=120");
    let born = of(60, "sh-80 ( 80)", "task_newtask: pid=70 comm=sh clone_flags=1200000 oom_score_adj=0");
    let second = [
        switch(70, ("swapper/0", 0), "R", ("new", 70)),
        of(80, "new-70 (-----)", "tracing_mark_write: B|70|fresh"),
        of(90, "new-70 (-----)", "tracing_mark_write: E|70"),
    ];
    let ends = |end: i64| {
        vec![slice(70, "unended", 0, end), slice(70, "inner", 10, end - 10), slice(70, "fresh", 70, 10)]
    };
    for (lines, end, what) in [
        (vec![&exit, &left, &free, &born], 20, "all events"),
        (vec![&exit, &left, &born], 20, "not freed"),
        (vec![&left, &free], 40, "neither exit nor begin"),
        (vec![&born], 50, "the begin alone"),
        (vec![&left], 60, "the last switch alone"),
    ] {
        let lines: Vec<&str> = first.iter().chain(lines).chain(&second).map(String::as_str).collect();
        assert_eq!(of_text(&lines), ends(end), "{what}");
    }
    let dir = support::tempdir();
    let input = dir.path().join("in.txt");
    let lines = first.iter().chain([&exit, &left, &free, &born]).chain(&second).map(String::as_str);
    fs::write(&input, lines.collect::<Vec<_>>().join("\n")).unwrap();
    assert_eq!(check(dir.path(), &input, false).len(), 3);
    let csv = records(&fs::read_to_string(dir.path().join("all.csv")).unwrap());
    let of_slice = |name: &str| {
        let row = csv.iter().find(|row| row[0] == "slice" && row[7] == name).unwrap();
        (row[4].clone(), row[9].clone())
    };
    assert_eq!(of_slice("unended"), ("60".into(), "old".into()));
    assert_eq!(of_slice("fresh"), ("70".into(), "new".into()));
    assert!(csv.iter().all(|row| row[0] != "state" || row[7] != "Dead"), "{csv:?}");
    let json = fs::read_to_string(dir.path().join("all.json")).unwrap();
    for pid in [60, 70] {
        let begin = format!("\"ph\":\"M\",\"pid\":{pid},\"tid\":70,");
        assert!(json.contains(&begin), "{json}");
    }
}

#[test]
fn the_line_that_systrace_adds_without_a_time_is_no_event() {
    let lines = [marker(0, "B|100|draw"), marker(10, "E|100")];
    let added = "dummy-0 [000] ...1 0.0: tracing_mark_write: trace_event_clock_sync: parent_ts=0.0";
    let [first, last] = &lines;
    for lines in [[added, first, last], [first, last, added]] {
        assert_eq!(of_text(&lines), [slice(100, "draw", 0, 10)]);
        let dir = support::tempdir();
        let input = dir.path().join("in.txt");
        fs::write(&input, lines.join("\n")).unwrap();
        let info = support::tracebridge().args(["info", "--json"]).arg(&input).run().exited(0).json();
        assert_eq!(info["report"]["first_ts"].as_u64(), Some(1_000_000_000), "{info}");
    }
}
