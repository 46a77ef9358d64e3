//! Report pages: what they hold, that the same input gives the same page, names that try to break out of the
//! page, the command `open`, and parts of a trace.

use std::fs;
use std::path::Path;

use serde_json::Value;

use support::art_writer::{Action, ArtTrace, Method, Record};
use support::report_page::Page;
use support::scenario::{Era, Scenario};
use support::{run_line, tracebridge, until, write_program};

#[track_caller]
fn page(dir: &Path, line: &str, name: &str) -> Page {
    run_line(dir, line).exited_with_one_of(&[0, 3]);
    let page = Page::read(&dir.join(name));
    page.check();
    page
}

const TEXT: &str = "\
# tracer: nop
 app-7 (    7) [000] d..2 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=app next_pid=7 next_prio=110
 app-7 (    7) [000] ...1 1.000010: tracing_mark_write: B|7|outer
 app-7 (    7) [000] ...1 1.000020: tracing_mark_write: C|7|bytes|9007199254740993
 app-7 (    7) [000] ...1 1.000021: tracing_mark_write: S|7|load|4
 app-7 (    7) [000] ...1 1.000022: tracing_mark_write: S|7|load|5
 app-7 (    7) [000] ...1 1.000022: tracing_mark_write: I|7|moment
 app-7 (    7) [000] ...1 1.000023: tracing_mark_write: B|7|empty
 app-7 (    7) [000] ...1 1.000023: tracing_mark_write: B|7|in empty
 app-7 (    7) [000] ...1 1.000023: tracing_mark_write: E|7
 app-7 (    7) [000] ...1 1.000023: tracing_mark_write: E|7
 app-7 (    7) [000] d..2 1.000040: sched_waking: comm=worker pid=8 prio=120 target_cpu=001
 worker-8 (    7) [001] d..2 1.000050: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=worker next_pid=8 next_prio=120
 worker-8 (    7) [001] ...1 1.000055: tracing_mark_write: F|7|load|4
 worker-8 (    7) [001] ...1 1.000056: cpu_frequency: state=600000 cpu_id=1
 worker-8 (    7) [001] ...1 1.000057: foo: a=1 b=two
 app-7 (    7) [000] ...1 1.000060: tracing_mark_write: E|7
 worker-8 (    7) [001] d..2 1.000070: sched_switch: prev_comm=worker prev_pid=8 prev_prio=120 prev_state=D ==> next_comm=swapper/1 next_pid=0 next_prio=120
 app-7 (    7) [000] d..2 1.000075: sched_waking: comm=worker pid=8 prio=120 target_cpu=001
 app-7 (    7) [000] d..2 1.000076: sched_blocked_reason: pid=8 iowait=1 caller=0x0
 app-7 (    7) [000] ...1 1.000080: tracing_mark_write: B|7|open
";

/// The slices of the only track of a role: name, start, duration, depth and flags.
fn slices(page: &Page, role: &str) -> Vec<(String, i64, i64, i64, i64)> {
    let tracks = page.tracks();
    let of_role: Vec<_> = tracks.iter().filter(|track| track.is("slices", role)).collect();
    assert_eq!(of_role.len(), 1, "{role}");
    let column = |name: &str, at: usize| of_role[0].columns.get(name).map_or(0, |column| column[at]);
    let slice = |at| {
        let name = page.string(column("name", at)).to_owned();
        (name, column("start", at), column("duration", at), column("depth", at), column("flags", at))
    };
    (0..of_role[0].count()).map(slice).collect()
}

fn row(name: &str, start: i64, duration: i64, depth: i64, flags: i64) -> (String, i64, i64, i64, i64) {
    (name.to_owned(), start, duration, depth, flags)
}

#[test]
fn a_page_holds_slices_states_wakers_counters_and_events_of_a_text() {
    let dir = support::tempdir();
    fs::write(dir.path().join("a.txt"), TEXT).unwrap();
    let page = page(dir.path(), "report a.txt", "a.html");
    let want = [
        row("outer", 10_000, 50_000, 0, 0),
        row("empty", 23_000, 0, 1, 0),
        row("in empty", 23_000, 0, 2, 0),
        row("open", 80_000, 0, 0, 2),
    ];
    assert_eq!(slices(&page, "atrace"), want);
    let want = [row("load", 21_000, 34_000, 0, 0), row("load", 22_000, 58_000, 1, 2)];
    assert_eq!(slices(&page, "async"), want, "slices that overlap lie on lanes of their own");
    let threads = page.index["threads"].as_array().unwrap();
    let thread = |tid: i64| threads.iter().position(|thread| thread["tid"] == tid).unwrap();
    assert_eq!((&threads[thread(7)]["name"], &threads[thread(7)]["main"]), (&"app".into(), &true.into()));
    let tracks = page.tracks();
    let states =
        tracks.iter().find(|t| t.about["role"] == "states" && t.about["thread"] == thread(8)).unwrap();
    let names: Vec<&str> = states.columns["state"].iter().map(|id| page.string(*id)).collect();
    assert_eq!(names, ["Runnable", "Running", "Uninterruptible Sleep (IO)", "Runnable"]);
    assert_eq!(states.columns["cpu"], [0, 2, 0, 0]);
    assert_eq!(states.columns["waker"], [0, 0, thread(7) as i64 + 1, 0]);
    let arrows = tracks.iter().find(|track| track.is("arrows", "wakeup")).unwrap();
    assert_eq!((&arrows.columns["from"], &arrows.columns["to"]), (&vec![40_000, 75_000], &vec![0, 0]));
    for (column, tid) in [("from_track", 7), ("to_track", 8)] {
        let at = arrows.columns[column][0] as usize;
        assert_eq!(
            (&tracks[at].about["role"], &tracks[at].about["thread"]),
            (&"states".into(), &thread(tid).into())
        );
    }
    let counter = tracks.iter().find(|track| track.is("counter", "counter")).unwrap();
    assert_eq!(counter.columns["value"], [9_007_199_254_740_993]);
    let events =
        tracks.iter().find(|t| t.is("instants", "events") && t.about["thread"] == thread(8)).unwrap();
    let text = |column: &str, less: i64| page.string(events.columns[column][0] - less);
    assert_eq!((text("name", 0), text("args", 1)), ("foo", "a=1 b=two"));
    // The page that other programs read, too, is another format.
    assert!(!page.text.contains("<script class=\"trace-data\""));
    for line in
        ["convert a.txt -o a.systrace.html", "convert a.txt --format systrace-html -o a.systrace.html"]
    {
        run_line(dir.path(), line).exited(0);
        run_line(dir.path(), "convert a.systrace.html -o b.txt").exited(0);
    }
    // A page of systrace becomes the report page by its ending, with every command.
    for line in ["convert a.systrace.html -o c.html", "report a.systrace.html -o c.html"] {
        run_line(dir.path(), line).exited(0);
        let page = fs::read_to_string(dir.path().join("c.html")).unwrap();
        assert!(!page.contains("<script class=\"trace-data\""), "{line}");
    }
}

#[test]
fn the_same_input_gives_the_same_page_and_a_page_without_text_says_what_it_is() {
    let dir = support::tempdir();
    let made = Scenario::new(14, Era::ArtMono).make();
    fs::write(dir.path().join("app.dat"), made.dat).unwrap();
    fs::write(dir.path().join("app.trace"), made.trace).unwrap();
    let first = page(dir.path(), "report app.dat app.trace -o one.html", "one.html");
    let second = page(dir.path(), "merge app.dat app.trace -o two.html", "two.html");
    assert!(first.text == second.text);
    assert!(!first.text.contains("class=\"trace-data\""));
    assert!(first.count("calls", "methods") > 100 && first.count("slices", "running") > 100);
    for line in ["info one.html", "convert one.html -o three.dat"] {
        let said = run_line(dir.path(), line).exited(1).said();
        assert!(said.contains("a report page of tracebridge") && said.contains("give the files"), "{said}");
    }
}

#[test]
fn names_cannot_break_out_of_the_page() {
    let dir = support::tempdir();
    let name = b"</script><script>alert(1)</script>\xe2\x80\xa8\xff<!--<script>";
    let line = |marker: &[u8], time: u32| {
        [format!(" a-7 (    7) [000] ...1 1.{time:06}: tracing_mark_write: ").as_bytes(), marker, b"\n"]
            .concat()
    };
    let begin = [b"B|7|", &name[..]].concat();
    fs::write(dir.path().join("a.txt"), [line(&begin, 1), line(b"E|7", 2)].concat()).unwrap();
    let text = page(dir.path(), "report a.txt -o a.html", "a.html");
    let want = String::from_utf8_lossy(name).into_owned();
    assert_eq!(slices(&text, "atrace"), [row(&want, 0, 1_000, 0, 0)]);
    // The template ends one script, and the directory one.
    assert_eq!(text.text.matches("</script").count(), 2);
    assert!(!text.text.contains("alert(1)</script>"));
}

#[test]
fn arguments_of_a_marker_are_no_part_of_its_name() {
    let dir = support::tempdir();
    let line = |marker: &str, time: u32| {
        format!(" a-7 (    7) [000] ...1 1.{time:06}: tracing_mark_write: {marker}\n")
    };
    let markers = ["B|7|plain", "B|7|RunTask|file=a.cc;line=1|toplevel", "E|7", "E|7", "B|7|empty|", "E|7"];
    let text: String = (1..).zip(markers).map(|(time, marker)| line(marker, time)).collect();
    fs::write(dir.path().join("a.txt"), text).unwrap();
    let page = page(dir.path(), "report a.txt -o a.html", "a.html");
    let names: Vec<String> = slices(&page, "atrace").into_iter().map(|slice| slice.0).collect();
    assert_eq!(names, ["plain", "RunTask", "empty"]);
    let tracks = page.tracks();
    let args = &tracks.iter().find(|track| track.is("slices", "atrace")).unwrap().columns["args"];
    assert_eq!((args[0], args[2]), (0, 0));
    assert_eq!(page.string(args[1] - 1), "file=a.cc;line=1|toplevel");
}

#[test]
fn calls_that_lie_deeper_than_the_page_can_say_are_counted() {
    let dir = support::tempdir();
    let mut records: Vec<Record> = Vec::new();
    for (action, at) in [(Action::Enter, 0_u32), (Action::Exit, 100_000)] {
        let record = |n| Record { thread: 1, method: 0, action, cpu_us: at + n, wall_us: at + n };
        records.extend((0..70_000).map(record));
    }
    let methods = vec![Method::new("a.B", "deep")];
    let threads = vec![(1, "main".to_owned())];
    let trace =
        ArtTrace { start_us: 1_000, elapsed_us: 170_000, threads, methods, records, ..ArtTrace::default() };
    fs::write(dir.path().join("deep.trace"), trace.to_bytes()).unwrap();
    let out = run_line(dir.path(), "report deep.trace");
    let said = &out.stdout;
    assert!(said.contains("4464 calls lie deeper than 65,536 levels"), "{said}");
    let page = Page::read(&dir.path().join("deep.html"));
    let tracks = page.tracks();
    assert_eq!(tracks[0].about["depth"], 65_536);
    assert_eq!((tracks[0].count(), tracks[0].columns["depth"].iter().max()), (70_000, Some(&65_535)));
    assert!(page.index["summary"]["report"]["notes"].to_string().contains("4464 calls"));
}

#[test]
fn a_part_begins_with_what_was_open_and_running_before_it() {
    let dir = support::tempdir();
    fs::write(dir.path().join("a.txt"), TEXT).unwrap();
    let part = page(dir.path(), "report a.txt -o part.html --from 30us --to 58us", "part.html");
    assert_eq!(slices(&part, "atrace"), [row("outer", 0, 28_000, 0, 2)]);
    let want = [row("load", 0, 25_000, 0, 0), row("load", 0, 28_000, 1, 2)];
    assert_eq!(slices(&part, "async"), want);
    assert_eq!(part.index["start_ns"], "1000030000");
    assert_eq!(part.index["window"], serde_json::json!({ "from_ns": 30_000, "to_ns": 58_000 }));
    assert_eq!((part.index["duration_ns"].as_i64(), part.count("counter", "counter")), (Some(28_000), 1));
    let running: Vec<i64> = part
        .tracks()
        .iter()
        .filter(|t| t.is("slices", "running"))
        .map(|t| t.columns["duration"][0])
        .collect();
    assert_eq!(running, [28_000, 8_000], "app on CPU 0, worker on CPU 1");
    let text = run_line(dir.path(), "convert a.txt -o part.txt --from 30us --to 58us --json");
    let said = text.json();
    assert_eq!(said["outcome"]["window"]["from"], 1_000_030_000_u64);
    let lines = fs::read_to_string(dir.path().join("part.txt")).unwrap();
    assert!(
        lines.contains("1.000030: tracing_mark_write: B|7|outer") && !lines.contains("|moment"),
        "{lines}"
    );
    for (line, status, cure) in
        [("--from 5s", 1, "the trace ends 0.000080 s"), ("--from 3us --to 2us", 2, "not behind")]
    {
        let out = run_line(dir.path(), &format!("convert a.txt -o no.html {line}"));
        assert!(out.status.code() == Some(status) && out.stderr.contains(cure), "{out:?}");
    }
    assert!(!dir.path().join("no.html").exists());
}

#[test]
fn a_part_of_a_method_trace_begins_and_ends_with_the_calls_that_are_open() {
    let dir = support::tempdir();
    let made = Scenario::new(14, Era::ArtMono).make();
    fs::write(dir.path().join("app.trace"), made.trace).unwrap();
    let whole = page(dir.path(), "report app.trace -o whole.html", "whole.html");
    let part = page(dir.path(), "report app.trace -o part.html --from 10ms --to 20ms", "part.html");
    let from = 10_000_000;
    let to = 20_000_000;
    let calls = |page: &Page| -> Vec<(Value, i64, i64, i64)> {
        let mut all = Vec::new();
        for track in page.tracks() {
            let column = |name: &str| track.columns[name].clone();
            let thread = &page.index["threads"][track.about["thread"].as_u64().unwrap() as usize]["name"];
            for at in 0..track.count() {
                let start = column("start")[at];
                let depth = column("depth")[at];
                all.push((thread.clone(), start, start + column("duration")[at], depth));
            }
        }
        all
    };
    let mut want: Vec<_> = calls(&whole).into_iter().filter(|call| call.1 <= to && call.2 >= from).collect();
    want.iter_mut().for_each(|call| (call.1, call.2) = (call.1.max(from) - from, call.2.min(to) - from));
    let mut got = calls(&part);
    // A call that ends with the part's begin is no longer open then.
    want.retain(|call| call.2 > 0);
    got.retain(|call| call.2 > 0);
    let order = |a: &(Value, i64, i64, i64), b: &(Value, i64, i64, i64)| {
        (a.0.as_str(), a.1, a.3, a.2).cmp(&(b.0.as_str(), b.1, b.3, b.2))
    };
    want.sort_by(order);
    got.sort_by(order);
    assert!(want.len() > 10, "{}", want.len());
    assert_eq!(got, want);
}

#[cfg(unix)]
#[test]
fn open_writes_a_page_that_only_the_user_reads_and_gives_it_to_the_browser() {
    use std::os::unix::fs::PermissionsExt;
    let dir = support::tempdir();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("a.txt"), TEXT).unwrap();
    let script = "#!/bin/sh\nprintf '%s\\n' \"$@\" > opened.part\n/bin/mv opened.part opened\n";
    write_program(&at("browser"), script);
    // The program does not wait for the browser's end.
    let opened = || {
        until("the browser", || at("opened").exists());
        let opened = fs::read_to_string(at("opened")).unwrap();
        fs::remove_file(at("opened")).unwrap();
        opened
    };
    let open = |file: &str, browser: &str| {
        let mut command = tracebridge();
        command
            .current_dir(dir.path())
            .args(["open", file])
            .env("BROWSER", browser)
            .env("TMPDIR", dir.path());
        command.env("PATH", "/nonexistent").run()
    };
    let out = open("a.txt", "./browser --new %s");
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let words = opened();
    let path = Path::new(words.trim().strip_prefix("--new\n").unwrap());
    assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    Page::read(path).check();
    assert!(out.stdout.contains(&path.display().to_string()));
    fs::copy(path, at("page.html")).unwrap();
    open("page.html", "./browser").exited(0);
    assert!(opened().trim().ends_with("/page.html"), "opened as it is");
    let out = open("a.txt", "./no-such-browser");
    let said = &out.stderr;
    assert!(out.code() == Some(1) && said.contains("no browser") && said.contains("a.html"), "{out:?}");
}

#[test]
fn the_stages_of_a_launch_are_in_the_index() {
    let dir = support::tempdir();
    let mark = |us: u32, what: &str| format!(" m-7 ( 7) [000] ...1 1.{us:06}: tracing_mark_write: {what}\n");
    let stages =
        [(10, "B|7|bindApplication"), (20, "B|7|inner"), (30, "E|7"), (40, "E|7"), (40, "B|7|activityStart")];
    let behind =
        [(50, "E|7"), (60, "B|7|Choreographer#doFrame 1"), (70, "E|7"), (80, "B|7|later"), (90, "E|7")];
    let text: String = stages.iter().chain(&behind).map(|(us, what)| mark(*us, what)).collect();
    fs::write(dir.path().join("a.txt"), text).unwrap();
    let page = page(dir.path(), "report a.txt", "a.html");
    let stages = page.index["launches"][0]["stages"].as_array().unwrap();
    let told: Vec<_> = stages
        .iter()
        .map(|stage| (stage["name"].as_str().unwrap(), stage["start_ns"].as_u64(), stage["end_ns"].as_u64()))
        .collect();
    let ns = |from, to| (Some(from), Some(to));
    let bind = ns(0, 30_000);
    let start = ns(30_000, 40_000);
    let frame = ns(50_000, 60_000);
    assert_eq!(
        told,
        [
            ("bindApplication", bind.0, bind.1),
            ("activityStart", start.0, start.1),
            ("Choreographer#doFrame 1", frame.0, frame.1)
        ]
    );
}

#[test]
fn a_launched_process_has_its_package_where_the_kernel_keeps_but_the_end_of_its_name() {
    let dir = support::tempdir();
    let target = "androidx.benchmark.integration.macrobenchmark.target";
    let mark = |comm: &str, pid: u32, us: u64, what: &str| {
        format!(" {comm}-{pid} ( {pid}) [000] ...1 1.{us:06}: tracing_mark_write: {what}\n")
    };
    let text = [
        mark("system_server", 50, 50, &format!("S|50|launching: {target}|1")),
        mark("enchmark.target", 7, 100, "B|7|bindApplication"),
        mark("enchmark.target", 7, 110, "E|7"),
        mark("enchmark.target", 7, 112, "B|7|activityResume"),
        mark("enchmark.target", 7, 115, "E|7"),
        mark("enchmark.target", 7, 120, "B|7|Choreographer#doFrame 1"),
        mark("enchmark.target", 7, 130, "E|7"),
        mark("obenchmark.test", 9, 140, "B|9|test"),
        mark("obenchmark.test", 9, 150, "E|9"),
        mark("system_server", 50, 160, &format!("F|50|launching: {target}|1")),
    ];
    fs::write(dir.path().join("t.txt"), text.concat()).unwrap();
    let page = page(dir.path(), "report t.txt -o t.html", "t.html");
    let processes = page.index["processes"].as_array().unwrap();
    let mut names: Vec<_> = processes.iter().map(|one| (one["pid"].as_u64(), one["name"].as_str())).collect();
    names.sort_unstable();
    let expected = [(7, target), (9, "obenchmark.test"), (50, "system_server")];
    assert_eq!(names, expected.map(|(pid, name)| (Some(pid), Some(name))));
}

/// A recording of a main thread with one stage of this length, µs, and a slice in it.
fn timed_run(dir: &Path, name: &str, work_us: u64) {
    let mark = |us: u64, what: &str| format!(" m-7 ( 7) [000] ...1 1.{us:06}: tracing_mark_write: {what}\n");
    let text =
        [mark(10, "B|7|stage"), mark(20, "B|7|work"), mark(20 + work_us, "E|7"), mark(30 + work_us, "E|7")];
    fs::write(dir.join(name), text.concat()).unwrap();
}

#[test]
fn a_comparison_of_two_sets_holds_both_typical_runs_and_what_changed() {
    let dir = support::tempdir();
    for run in 0..5 {
        timed_run(dir.path(), &format!("old{run}.txt"), 100 + run);
        timed_run(dir.path(), &format!("new{run}.txt"), 150 + run);
    }
    let line = "report new0.txt new1.txt new2.txt new3.txt new4.txt --diff old0.txt old1.txt old2.txt old3.txt old4.txt -o d.html --json";
    let out = run_line(dir.path(), line);
    assert_eq!(out.code(), Some(0), "{out}");
    let said = out.json();
    let comparison = &said["comparison"];
    assert_eq!((&comparison["old"]["runs"], &comparison["new"]["runs"]), (&5.into(), &5.into()));
    let total = &comparison["total"];
    assert_eq!((total["old_ns"].as_u64(), total["delta_ns"].as_i64()), (Some(122_000), Some(50_000)));
    assert_eq!(total["verdict"], "slower", "{total}");
    // What is measured of the typical run: its one stage.
    let extent = |side: &str| [&comparison[side]["from_ns"], &comparison[side]["to_ns"]].map(Value::as_u64);
    assert_eq!((extent("old"), extent("new")), ([Some(0), Some(122_000)], [Some(0), Some(172_000)]));
    let slice =
        |name: &str| comparison["slices"].as_array().unwrap().iter().find(|r| r["name"] == name).unwrap();
    assert_eq!(
        (slice("work")["delta_ns"].as_i64(), slice("stage")["delta_ns"].as_i64()),
        (Some(50_000), Some(0))
    );
    assert_eq!(slice("work")["new_at_ns"], 10_000);
    let [new, old] = Page::read_two(&dir.path().join("d.html"), comparison);
    assert_eq!((new["title"].as_str(), old["title"].as_str()), (Some("new2.txt"), Some("old2.txt")));
}
