//! Runs `profile` and `dmtracedump` on method traces whose figures are known.

use std::path::Path;

use serde_json::Value;
use tracebridge::formats::art_method::MethodTrace;

use support::art_blocks::{self, Blocks, Writer};
use support::art_writer::{Action, ArtTrace, Method, Record, SingleClockStream};
use support::files::Files;
use support::{Ran, tracebridge};

/// Two threads. `main` calls run → work → work → read, and read is left by an exception. `wörker 张` calls
/// run → read, and never leaves run.
fn sample() -> ArtTrace {
    use Action::{Enter, Exit, Unroll};
    // thread, method, action, cpu µs, wall µs
    let records = vec![
        Record::new(1, 0, Enter, 0, 100),
        Record::new(2, 0, Enter, 0, 150),
        Record::new(1, 1, Enter, 10, 200),
        Record::new(1, 1, Enter, 20, 260),
        Record::new(1, 2, Enter, 25, 300),
        Record::new(1, 2, Unroll, 30, 500),
        Record::new(1, 1, Exit, 45, 520),
        Record::new(1, 1, Exit, 50, 600),
        Record::new(2, 2, Enter, 40, 650),
        Record::new(2, 2, Exit, 60, 750),
        Record::new(1, 0, Exit, 90, 1_100),
    ];
    ArtTrace {
        dalvik: false,
        start_us: 7_000_000,
        elapsed_us: 2_000,
        pid: 77,
        threads: vec![(1, "main".into()), (2, "wörker 张".into())],
        methods: vec![
            Method::new("a.App", "run"),
            Method::new("a.App", "work"),
            Method::new("a.b.Net", "read"),
        ],
        records,
    }
}

fn profile(path: &Path, options: &[&str]) -> Ran {
    tracebridge().arg("profile").arg(path).args(options).run()
}

fn json(path: &Path, options: &[&str]) -> Value {
    profile(path, &[options, &["--json"]].concat()).exited_with_one_of(&[0, 3]).json()
}

/// The figures of one row: calls, recursive calls, wall time exclusive and inclusive, CPU time exclusive and
/// inclusive; times in µs.
fn figures(profile: &Value, name: &str) -> [u64; 6] {
    let row =
        profile["rows"].as_array().unwrap().iter().find(|r| r["name"].as_str().unwrap().starts_with(name));
    let row = row.unwrap_or_else(|| panic!("no row {name}: {profile}"));
    // For a clock that the trace does not have, the JSON has null or no value; this function returns 0.
    let us = |key: &str| row[key].as_u64().unwrap_or(0) / 1_000;
    [
        row["calls"].as_u64().unwrap(),
        row["recursive_calls"].as_u64().unwrap(),
        us("wall_exclusive_ns"),
        us("wall_inclusive_ns"),
        us("cpu_exclusive_ns"),
        us("cpu_inclusive_ns"),
    ]
}

/// Asserts the figures of [`sample`]; times of a clock that the trace does not have are 0.
fn assert_sample(profile: &Value, wall: bool, cpu: bool) {
    let [wall, cpu] = [wall, cpu].map(u64::from);
    let with =
        |[calls, recursive, a, b, c, d]: [u64; 6]| [calls, recursive, a * wall, b * wall, c * cpu, d * cpu];
    assert_eq!(figures(profile, "a.App.run"), with([2, 0, 1_100, 1_600, 90, 150]), "{profile}");
    assert_eq!(figures(profile, "a.App.work"), with([1, 1, 200, 400, 35, 40]));
    assert_eq!(figures(profile, "a.b.Net.read"), with([2, 0, 300, 300, 25, 25]));
    assert_eq!(profile["counts"]["unrolls"], 1);
    assert_eq!(profile["problems"]["open_at_end"], 1);
    assert_eq!(profile["pid"], 77);
}

#[test]
fn one_trace_in_every_encoding_gives_the_same_profile() {
    let files = Files::new();
    let trace = sample();
    let mut encodings = vec![
        ("v3".to_owned(), (true, true), trace.to_bytes()),
        ("f3".into(), (true, true), trace.to_streaming_bytes(true)),
    ];
    for (is_wall, has_filler) in [(true, true), (true, false), (false, true), (false, false)] {
        let form = SingleClockStream { is_wall, has_filler, ended: true };
        encodings.push((format!("{form:?}"), (is_wall, !is_wall), trace.to_single_clock_stream(form)));
    }
    for writer in [
        Writer::First { block: 100 },
        Writer::First { block: 3 },
        Writer::Second { nanos: true, split: 100 },
        Writer::Second { nanos: false, split: 100 },
        Writer::Second { nanos: true, split: 3 },
        Writer::Third { frequency: 1_000_000, real: 1_000_000 },
        Writer::Third { frequency: 19_200_000, real: 19_200_000 },
        Writer::Third { frequency: 24_000_000, real: 24_100_000 },
    ] {
        for (streaming, wall, cpu) in [
            (true, true, true),
            (false, true, true),
            (true, true, false),
            (false, true, false),
            (true, false, true),
        ] {
            // The first writer names methods only where it streams.
            if streaming || !matches!(writer, Writer::First { .. }) {
                let blocks = Blocks { streaming, wall, cpu, writer };
                encodings.push((format!("{blocks:?}"), (wall, cpu), art_blocks::to_bytes(&trace, blocks)));
            }
        }
    }
    assert_eq!(encodings.len(), 42);
    for (name, (wall, cpu), bytes) in encodings {
        let path = files.write("t.trace", &bytes);
        let value = json(&path, &[]);
        assert_eq!(value["damage"].as_array().map(Vec::len), Some(0), "{name}: {value}");
        assert_sample(&value, wall, cpu);
        let threads = json(&path, &["--by", "thread"]);
        let clock = if wall { 3 } else { 5 };
        assert_eq!(figures(&threads, "wörker 张")[clock], if wall { 600 } else { 60 }, "{name}");
    }
}

/// Runs `profile` and `info`; returns the exit status and the messages of each.
fn messages(path: &Path) -> [(Option<i32>, String); 2] {
    let profile = profile(path, &[]);
    let info = tracebridge().arg("info").arg(path).run();
    [(profile.code(), profile.stderr), (info.code(), info.stdout)]
}

#[test]
fn anomalies_in_a_trace_are_counted_and_only_missing_records_change_the_exit_status() {
    let files = Files::new();
    let mut plain = sample();
    for record in plain.records.iter_mut().filter(|r| r.action == Action::Unroll) {
        record.action = Action::Exit;
    }
    plain.records.push(Record { thread: 2, method: 0, action: Action::Exit, cpu_us: 60, wall_us: 1_200 });
    for (code, messages) in messages(&files.write("plain.trace", &plain.to_bytes())) {
        assert_eq!(code, Some(0), "{messages}");
        assert!(!messages.contains("calls"), "{messages}");
    }
    let text = |from: &str, to: &str| {
        let bytes = plain.to_bytes();
        let end = bytes.windows(4).position(|w| w == b"SLOW").unwrap();
        let mut text = String::from_utf8(bytes[..end].to_vec()).unwrap().replace(from, to).into_bytes();
        text.extend_from_slice(&bytes[end..]);
        text
    };
    let edited = |edit: &dyn Fn(&mut ArtTrace)| {
        let mut trace = plain.clone();
        edit(&mut trace);
        trace.to_bytes()
    };
    // ART leaves out a thread that ends just before the trace does, and lists its own ones.
    let without_ended_thread = |t: &mut ArtTrace| {
        t.threads[1].0 = 50;
        t.threads.push((51, "HeapTaskDaemon".into()));
    };
    let mut latin1 = plain.to_bytes();
    let at = latin1.windows(2).position(|w| w == "ö".as_bytes()).unwrap();
    latin1[at] = 0xf6;
    let cases = [
        (0, sample().to_bytes(), "1 calls were left by an exception"),
        (0, edited(&|t| t.records.truncate(8)), "2 calls were open at the end"),
        (0, edited(&|t| t.records = t.records.split_off(1)), "1 calls had begun before the trace did"),
        (3, edited(&|t| t.records[7].method = 2), "1 exits match no open call"),
        (0, edited(&|t| t.records[7].method = 0), "1 calls have no exit of their own"),
        (0, edited(&|t| t.records[5].wall_us = 290), "1 records step back in time"),
        (3, edited(&|t| t.threads.truncate(1)), "1 threads in records are in no list"),
        (0, edited(&without_ended_thread), "1 threads are in no list"),
        (3, text("0x8\ta.b.Net", "0x80\ta.b.Net"), "1 methods in records are in no list"),
        (0, edited(&|t| t.threads.push((1, "again".into()))), "1 thread ids are listed more than once"),
        (0, text("\n", "\r\n"), "lines of text end in CR LF"),
        (3, text("overflow=false", "overflow=true"), "the buffer was full"),
        (0, latin1, "1 names are not valid UTF-8"),
    ];
    for (status, bytes, line) in cases {
        for (code, messages) in messages(&files.write("odd.trace", &bytes)) {
            assert_eq!(code, Some(status), "{line}: {messages}");
            assert!(messages.contains(line), "{line}: {messages}");
        }
    }
}

#[test]
fn a_key_file_is_read_together_with_its_data_file() {
    let files = Files::new();
    let bytes = sample().to_bytes();
    let at = bytes.windows(4).position(|w| w == b"SLOW").unwrap();
    let key = files.write("x.key", &bytes[..at]);
    files.write("x.data", &bytes[at..]);
    let other = files.write("other.data", &bytes[at..]);
    assert_sample(&json(&key, &[]), true, true);
    assert_sample(&json(&key, &[other.to_str().unwrap()]), true, true);
}

#[test]
fn calls_within_one_class_or_package_count_as_recursive() {
    let files = Files::new();
    let path = files.write("t.trace", &sample().to_bytes());
    let class = json(&path, &["--by", "class"]);
    assert_eq!(figures(&class, "a.App"), [2, 2, 1_300, 1_600, 125, 150]);
    let package = json(&path, &["--by", "package"]);
    assert_eq!(figures(&package, "a.b"), [2, 0, 300, 300, 25, 25]);
}

#[test]
fn filters_leave_out_threads_and_times() {
    let files = Files::new();
    let path = files.write("t.trace", &sample().to_bytes());
    let main = json(&path, &["--thread", "main"]);
    assert_eq!(figures(&main, "a.App.run"), [1, 0, 600, 1_000, 50, 90]);
    // From 250 to 400 µs: run and the outer work begin before the window, the inner work and read within it.
    let window = json(&path, &["--thread", "main", "--from", "0.25ms", "--to", "0.4ms"]);
    assert_eq!(&figures(&window, "a.App.run")[..4], [1, 0, 0, 150]);
    assert_eq!(&figures(&window, "a.App.work")[..4], [1, 1, 50, 150]);
    assert_eq!(&figures(&window, "a.b.Net.read")[..4], [1, 0, 100, 100]);
    let late = json(&path, &["--thread", "main", "--from", "0.7ms"]);
    assert_eq!(late["rows"].as_array().unwrap().len(), 1, "{late}");
    let named = json(&path, &["--method", "b.*read"]);
    assert_eq!(named["rows"].as_array().unwrap().len(), 1);
}

#[test]
fn folded_stacks_of_a_thread_add_up_to_its_time() {
    let files = Files::new();
    let path = files.write("t.trace", &sample().to_bytes());
    for (clock, main, worker) in [("wall", 1_000, 600), ("cpu", 90, 60)] {
        let out = profile(&path, &["--folded", "-", "--clock", clock]);
        let text = out.stdout;
        let sum = |root: &str| -> u64 {
            let lines = text.lines().filter(|l| l.split(';').next().unwrap().starts_with(root));
            lines.map(|l| l.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
        };
        assert_eq!((sum("main"), sum("wörker 张")), (main, worker), "{text}");
        assert!(text.contains("main;a.App.run;a.App.work;a.App.work;a.b.Net.read"), "{text}");
    }
}

#[test]
fn callers_and_callees_share_a_methods_time() {
    let files = Files::new();
    let path = files.write("t.trace", &sample().to_bytes());
    let value = json(&path, &["--calls", "--method", "Net.read"]);
    assert_eq!(
        (&value["rows"][0]["calls"], &value["rows"][0]["callees"]),
        (&2.into(), &Value::Array(vec![]))
    );
    let callers = value["rows"][0]["called_by"].as_array().unwrap();
    let names: Vec<_> =
        callers.iter().map(|c| (c["name"].as_str().unwrap(), c["calls"].as_u64().unwrap())).collect();
    assert_eq!(names, [("a.App.work", 1), ("a.App.run", 1)]);
    assert!((callers[0]["share_percent"].as_f64().unwrap() - 66.67).abs() < 0.01);
    let value = json(&path, &["--calls", "--method", "App.run"]);
    assert_eq!(value["rows"][0]["calls"], 2, "the number of calls stays beside the list of callees: {value}");
    let callees = value["rows"][0]["callees"].as_array().unwrap();
    let names: Vec<_> = callees.iter().map(|callee| callee["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a.App.work", "a.b.Net.read"]);
}

#[test]
fn two_traces_are_compared_by_method_names_although_their_ids_differ() {
    let files = Files::new();
    let before = files.write("before.trace", &sample().to_bytes());
    let mut later = sample();
    later.methods.swap(0, 2);
    for record in &mut later.records {
        record.method = [2, 1, 0][record.method as usize];
    }
    later.methods[0].name = "write".into();
    let path = files.write("after.trace", &later.to_bytes());
    let value = json(&path, &["--diff", before.to_str().unwrap()]);
    let changes: Vec<_> = value["rows"].as_array().unwrap().iter().collect();
    let of = |name: &str| {
        changes.iter().find(|r| r["name"].as_str().unwrap().starts_with(name)).unwrap()["change"].clone()
    };
    assert_eq!(
        (of("a.b.Net.read"), of("a.b.Net.write"), of("a.App.run")),
        ("gone".into(), "new".into(), "same".into())
    );
    let svg = files.0.path().join("d.svg");
    let out = profile(&path, &["--diff", before.to_str().unwrap(), "--flamegraph", svg.to_str().unwrap()]);
    // A call is open at the sample's end, and one was left by an exception: nothing is missing.
    assert_eq!(out.status.code(), Some(0));
    assert!(std::fs::read_to_string(svg).unwrap().contains("a.b.Net.write"));
}

#[test]
fn a_mapping_file_restores_original_names() {
    let files = Files::new();
    let path = files.write("t.trace", &sample().to_bytes());
    let mapping = "com.real.Application -> a.App:\n    1:1:void start():10:10 -> run\n    void toil() -> work\n\
                   com.real.net.Socket -> a.b.Net:\n    void receive() -> read\n";
    let mapping = files.write("mapping.txt", mapping.as_bytes());
    let value = json(&path, &["--mapping", mapping.to_str().unwrap()]);
    assert_eq!(figures(&value, "com.real.net.Socket.receive")[0], 2);
    assert_eq!(figures(&value, "com.real.Application.toil")[0], 1);
    assert_eq!(figures(&value, "com.real.Application.start")[0], 2);
    let none = files.write("none.txt", b"hello\n");
    let out = profile(&path, &["--mapping", none.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(1));
    assert!(out.stderr.contains("no mapping file"));
}

#[test]
fn viewer_files_open_and_close_every_call_in_time_order() {
    let files = Files::new();
    let path = files.write("t.trace", &sample().to_bytes());
    let at = |name: &str| files.0.path().join(name).to_str().unwrap().to_owned();
    let speedscope = at("s.json");
    let firefox = at("f.json");
    let out = profile(&path, &["--speedscope", &speedscope, "--firefox", &firefox]);
    assert_eq!(out.status.code(), Some(0), "a call is open at the sample's end: nothing is missing");
    let value: Value = serde_json::from_slice(&std::fs::read(speedscope).unwrap()).unwrap();
    for lane in value["profiles"].as_array().unwrap() {
        let mut open = Vec::new();
        let mut last = 0.0;
        for event in lane["events"].as_array().unwrap() {
            assert!(event["at"].as_f64().unwrap() >= last);
            last = event["at"].as_f64().unwrap();
            match event["type"].as_str().unwrap() {
                "O" => open.push(event["frame"].clone()),
                _ => assert_eq!(open.pop().as_ref(), Some(&event["frame"])),
            }
        }
        assert!(open.is_empty());
    }
    let value: Value = serde_json::from_slice(&std::fs::read(firefox).unwrap()).unwrap();
    let weights: f64 =
        value["threads"][0]["samples"]["weight"].as_array().unwrap().iter().filter_map(Value::as_f64).sum();
    assert!((weights - 1.0).abs() < 1e-9, "main ran for 1 ms: {weights}");
}

#[test]
fn damage_is_counted_and_reported_with_exit_status_3() {
    let files = Files::new();
    let mut trace = sample();
    // An exit of read replaces the exit of main's outer work. No call of read is open at that time.
    trace.records.remove(7);
    trace.records.insert(7, Record { thread: 1, method: 2, action: Action::Exit, cpu_us: 50, wall_us: 600 });
    let path = files.write("t.trace", &trace.to_bytes());
    let out = profile(&path, &["--json"]);
    assert_eq!(out.status.code(), Some(3));
    let value = out.json();
    assert_eq!(
        (&value["problems"]["unmatched_exits"], &value["problems"]["missing_exits"]),
        (&1.into(), &1.into())
    );
    assert!(out.stderr.contains("1 exits match no open call"));

    let killed = files.write("killed.trace", &sample().to_streaming_bytes(false));
    let out = profile(&killed, &[]);
    assert_eq!(out.status.code(), Some(3));
    assert!(out.stderr.contains("no summary at the end"));
}

#[test]
fn a_cut_stream_of_one_clock_keeps_all_records_before_the_cut_with_and_without_filler() {
    for has_filler in [true, false] {
        let bytes =
            sample().to_single_clock_stream(SingleClockStream { is_wall: true, has_filler, ended: false });
        let whole = MethodTrace::parse(&bytes).unwrap();
        let records: Vec<_> = whole.records().collect();
        assert_eq!(records.len(), sample().records.len(), "filler: {has_filler}");
        // The first record and its declarations decide the size of a record.
        let first_end = bytes.len() - bytes.len() / 2;
        for cut in first_end..bytes.len() {
            let part = MethodTrace::parse(&bytes[..cut]).unwrap();
            let read: Vec<_> = part.records().collect();
            assert!(records.starts_with(&read) && !read.is_empty(), "filler: {has_filler}, cut at {cut}");
        }
    }
}

/// ART cut the ids in records to 16 bits before May 2023; the list of threads had the whole ids.
#[test]
fn records_of_cut_thread_ids_belong_to_the_listed_thread_with_the_same_16_bits() {
    let with_ids = |bytes: Vec<u8>, listed: &str| {
        let at = bytes.windows(9).position(|text| text == b"*methods\n").unwrap();
        let threads = bytes.windows(9).position(|text| text == b"*threads\n").unwrap() + 9;
        [&bytes[..threads], listed.as_bytes(), &bytes[at..]].concat()
    };
    let mut trace = sample();
    for record in &mut trace.records {
        record.thread += 4_463;
    }
    let read = |listed: &str| {
        let bytes = with_ids(trace.to_bytes(), listed);
        let trace = MethodTrace::parse(&bytes).unwrap();
        let threads = trace.threads().iter().filter(|thread| thread.records > 0);
        let threads: Vec<_> = threads.map(|thread| (thread.id, thread.name.to_string())).collect();
        (threads, trace.report().irregular.len())
    };
    let (threads, irregular) = read("70000\tmain\n70001\tworker\n");
    assert_eq!(threads, [(70_000, "main".to_owned()), (70_001, "worker".to_owned())]);
    let (ambiguous, messages) = read("70000\tmain\n70001\tworker\n135536\tother\n");
    assert_eq!(ambiguous, [(70_001, "worker".to_owned()), (4_464, String::new())]);
    assert!(messages > irregular, "the ambiguous id is reported");

    trace.threads = vec![(4_464, "main".into()), (4_465, "worker".into())];
    let stream = trace.to_streaming_bytes(true);
    let head = stream.windows(9).position(|text| text == b"*version\n").unwrap();
    let summary = with_ids(stream[head..].to_vec(), "70000\tmain\n70001\tworker\n");
    let mut stream = stream[..head].to_vec();
    let length = stream.len() - 4;
    stream[length..].copy_from_slice(&(summary.len() as u32).to_le_bytes());
    stream.extend(summary);
    let trace = MethodTrace::parse(&stream).unwrap();
    let ids: Vec<_> = trace.threads().iter().map(|thread| (thread.id, thread.records > 0)).collect();
    assert_eq!(ids, [(70_000, true), (70_001, true)]);
}

#[test]
fn messages_that_cannot_be_printed_do_not_end_the_profile() {
    let files = Files::new();
    let path = files.write("killed.trace", &sample().to_streaming_bytes(false));
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for command in ["profile", "dmtracedump"] {
        let out = tracebridge().arg(command).arg(&path).stderr(full()).run();
        assert_eq!(out.status.code(), Some(3), "{command}");
        assert!(!out.stdout.is_empty(), "{command}");
        let out = tracebridge().arg(command).arg(&path).stdout(full()).run();
        assert_eq!(out.status.code(), Some(1), "{command}");
        assert!(out.stderr.contains("No space left"), "{command}");
    }
}

#[test]
fn a_file_re_encoded_as_utf_8_text_is_recognised() {
    let files = Files::new();
    let mut trace = sample();
    for record in &mut trace.records {
        record.wall_us += 0xf0f0;
    }
    let text = String::from_utf8_lossy(&trace.to_bytes()).into_owned();
    let path = files.write("t.trace", text.as_bytes());
    let out = profile(&path, &[]);
    assert_eq!(out.status.code(), Some(1));
    let messages = &out.stderr;
    assert!(
        messages.contains("re-encoded as UTF-8")
            && messages.contains("offset")
            && messages.contains("t.trace"),
        "{messages}"
    );
}

#[test]
fn times_continue_when_32_bits_wrap_around() {
    let files = Files::new();
    let mut trace = sample();
    trace.elapsed_us = (1 << 32) + 10_000;
    for record in &mut trace.records {
        // The wrap falls between 300 and 500 µs.
        record.wall_us = record.wall_us.wrapping_sub(400);
    }
    let path = files.write("t.trace", &trace.to_bytes());
    let value = json(&path, &[]);
    assert_eq!(&figures(&value, "a.App.run")[..4], [2, 0, 1_100, 1_600]);
    for (code, messages) in messages(&path) {
        assert_eq!(code, Some(0));
        assert!(messages.contains("1 times the clock's 32 bits were full"), "{messages}");
    }
}

#[test]
fn a_filter_that_matches_nothing_says_so() {
    let files = Files::new();
    let path = files.write("t.trace", &sample().to_bytes());
    for (filter, said) in [
        (&["--method", "no.such"][..], "no method matches no.such; 3 do not match"),
        (&["--from", "5s"], "nothing lies behind --from 5 s: the trace ends at 0.00"),
        (&["--to", "0.05ms"], "no call lies between 0 ns and 50.0 µs; the trace ends at 1.10 ms"),
        (&["--thread", "nobody"], "no thread is called nobody"),
        (&["--bottom-up", "--threshold", "90"], "--threshold 90: no method has this share of the time"),
        (&["--tree", "--to", "0.05ms"], "no call lies between 0 ns and 50.0 µs"),
    ] {
        let out = profile(&path, filter);
        let messages = &out.stderr;
        assert_eq!(messages.matches(said).count(), 1, "{messages}");
        assert_eq!(out.status.code(), Some(1), "{filter:?}");
    }
    // A pattern may have the parameters as the table shows them.
    let shown = profile(&path, &["--method", "Net.read()"]).stdout;
    assert!(shown.contains("a.b.Net.read()") && !shown.contains("a.App"), "{shown}");
    let out = profile(&path, &["--thread", "main", "--thread", "nobody"]);
    let messages = &out.stderr;
    assert!(out.status.success() && messages.contains("no thread is called nobody\n"), "{messages}");
    let out = profile(&path, &["--method", "App"]);
    assert!(!out.stderr.contains("match"), "{out:?}");
}

#[test]
fn several_traces_print_one_json_object_a_line() {
    let files = Files::new();
    let path = files.write("t.trace", &sample().to_bytes());
    let other = files.write("u.trace", &sample().to_bytes());
    let out = profile(&path, &[other.to_str().unwrap(), "--json"]);
    let lines: Vec<Value> = out.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = lines.iter().map(|l| l["file"].as_str().unwrap()).collect();
    assert_eq!(names, [path.to_str().unwrap(), other.to_str().unwrap()]);
}

#[test]
fn threads_that_share_an_id_are_separated_by_their_call_stacks_without_a_cpu_clock() {
    let files = Files::new();
    let mut trace = sample();
    trace.methods[0] =
        Method { class: "java.lang.Thread".into(), name: "run".into(), ..trace.methods[0].clone() };
    trace.threads.push((1, "second".into()));
    for (action, wall_us) in [(Action::Enter, 2_000), (Action::Exit, 2_100)] {
        trace.records.push(Record { thread: 1, method: 0, action, cpu_us: 100, wall_us });
    }
    let value = json(&files.write("t.trace", &trace.to_bytes()), &["--by", "thread"]);
    assert_eq!(value["counts"]["reused_threads"], 1, "{value}");
    assert_eq!(figures(&value, "second")[..4], [1, 0, 100, 100]);
    assert_eq!(figures(&value, "main")[3], 1_000);
}

#[test]
fn a_thread_that_reuses_the_id_of_an_ended_thread_is_a_separate_thread() {
    let files = Files::new();
    let mut trace = sample();
    trace.threads.push((1, "second".into()));
    let again: Vec<_> = [(Action::Enter, 0, 2_000), (Action::Exit, 30, 2_100)]
        .map(|(action, cpu_us, wall_us)| Record { thread: 1, method: 0, action, cpu_us, wall_us })
        .into();
    // The first thread has used more CPU time than a new thread's CPU clock may show.
    for record in trace.records.iter_mut().filter(|r| r.thread == 1 && r.cpu_us > 0) {
        record.cpu_us += 5_000;
    }
    trace.records.extend(again);
    let path = files.write("t.trace", &trace.to_bytes());
    let value = json(&path, &["--by", "thread"]);
    assert_eq!(value["counts"]["reused_threads"], 1, "{value}");
    assert_eq!(figures(&value, "second"), [1, 0, 100, 100, 30, 30]);
    assert_eq!(figures(&value, "main")[3], 1_000);
}

#[test]
fn dmtracedump_prints_text_and_names_the_command_for_pages_pictures_and_comparisons() {
    let files = Files::new();
    let path = files.write("t.trace", &sample().to_bytes());
    let dump = |options: &[&str]| tracebridge().arg("dmtracedump").args(options).arg(&path).run();
    let text = |options: &[&str]| dump(options).stdout;
    assert!(text(&[]).contains("Total cycles: 150\n"));
    assert!(text(&["--clock", "wall"]).contains("Total cycles: 1600\n"));
    assert!(
        text(&["-o"]).contains(" 1 unr        30 ......a.b.Net.read ()V\tNet.java\n"),
        "{}",
        text(&["-o"])
    );
    for (option, command) in
        [("-h", "open TRACE"), ("-dx", "profile TRACE --against"), ("-gx", "-o FILE.png")]
    {
        let refused = dump(&[option]).exited(2);
        assert!(refused.stderr.contains(command), "{refused}");
    }
    assert_eq!(dump(&["-x"]).status.code(), Some(2));
}
