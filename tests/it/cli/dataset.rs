//! `dataset`: what its tables hold, and that its traces appear whole, once, and with any name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Stdio;

use support::python::{python_with, query};
use support::scenario::{Era, Scenario};
use support::tables::{assert_same_profile, parts, rows, rows_of};
use support::{run_in, tracebridge, until};

/// Runs a command that must end with this status.
fn run_to(dir: &Path, status: i32, args: &[&str]) -> String {
    run_in(dir, args).exited(status).said()
}

/// A capture and a method trace of the same moments, as `NAME.dat` and `NAME.trace`.
fn write_pair(dir: &Path, name: &str, seed: u64) {
    let made = Scenario::new(seed, Era::ArtMono).make();
    fs::write(dir.join(format!("{name}.dat")), made.dat).unwrap();
    fs::write(dir.join(format!("{name}.trace")), made.trace).unwrap();
}

/// A text with one slice of this length, µs.
fn write_text(path: &Path, name: &str, us: u32) {
    let mark = |us: u32, what: &str| format!(" m-7 ( 7) [000] ...1 1.{us:06}: tracing_mark_write: {what}\n");
    fs::write(path, mark(10, &format!("B|7|{name}")) + &mark(10 + us, "E|7")).unwrap();
}

fn trace_ids(dataset: &Path) -> Vec<String> {
    rows(dataset, "trace").iter().map(|row| row.text("trace_id").unwrap().to_owned()).collect()
}

#[test]
fn the_tables_hold_what_the_text_and_the_profile_of_the_same_files_hold() {
    let dir = support::tempdir();
    let dir = dir.path();
    write_pair(dir, "app", 14);
    run_to(dir, 0, &["dataset", "add", "set", "app.dat", "app.trace", "--tag", "build=7", "--method-calls"]);
    run_to(dir, 0, &["dataset", "check", "set"]);
    let table = |name: &str| rows(&dir.join("set"), name);
    let trace = table("trace");
    assert_eq!(trace.len(), 1);
    assert_eq!(trace[0].text("verdict"), Some("proven"));
    assert_eq!(trace[0].text("day_from"), Some("wall clock"));

    // The text of the recording alone: each line is one event.
    run_to(dir, 0, &["convert", "app.dat", "-o", "app.txt"]);
    let text = fs::read_to_string(dir.join("app.txt")).unwrap();
    let lines = |what: &str| text.lines().filter(|line| line.contains(what)).count();
    let to_thread = |line: &&str| line.contains("sched_switch:") && !line.contains("next_pid=0 ");
    let slices = table("slice");
    let kind = |kind: &str| slices.iter().filter(|row| row.text("kind") == Some(kind)).count();
    assert_eq!(kind("thread"), lines("tracing_mark_write: B|"));
    assert_eq!(table("sched").len(), text.lines().filter(to_thread).count());
    assert!(kind("thread") > 100 && table("sched").len() > 100);
    assert!(slices.iter().all(|row| row.int("ts").unwrap() >= 0));
    let start = trace[0].int("ts_abs").unwrap();
    assert!(slices.iter().all(|row| row.int("ts_abs").unwrap() - start == row.int("ts").unwrap()));

    let profile = run_in(dir, &["profile", "--json", "app.trace"]).json();
    assert_same_profile(&table("method_profile"), &profile);
    let calls = table("method_call");
    let records = profile["counts"]["enters"].as_i64();
    assert_eq!(records.unwrap_or(calls.len() as i64), calls.len() as i64);
    let exclusive: i64 = calls.iter().map(|row| row.int("exclusive_ns").unwrap()).sum();
    let outermost: i64 =
        calls.iter().filter(|row| row.int("depth") == Some(0)).map(|row| row.int("dur").unwrap()).sum();
    assert_eq!(exclusive, outermost, "each ns of a call is in one exclusive time");
    let utids: BTreeSet<i64> = table("thread").iter().map(|row| row.int("utid").unwrap()).collect();
    for name in ["slice", "sched", "thread_state", "method_profile", "method_call"] {
        let unknown = table(name).iter().filter_map(|row| row.int("utid")).any(|utid| !utids.contains(&utid));
        assert!(!unknown, "{name}: a thread has no row");
    }
    let tags: Vec<_> = table("tag").iter().map(|row| row.text("value").map(str::to_owned)).collect();
    assert_eq!(tags, [Some("7".to_owned())]);
}

#[test]
fn every_kind_of_row_has_its_cells() {
    let dir = support::tempdir();
    let dir = dir.path();
    let text = "\
 a-7 (7) [000] d..2 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=main,app next_pid=7 next_prio=110
 a-7 (7) [000] ...1 1.000010: tracing_mark_write: B|7|outer
 a-7 (7) [000] ...1 1.000020: tracing_mark_write: B|7|inner
 a-7 (7) [000] ...1 1.000021: tracing_mark_write: S|7|load|4
 a-7 (7) [000] ...1 1.000022: tracing_mark_write: S|7|endless|5
 a-7 (7) [000] ...1 1.000023: tracing_mark_write: C|7|bytes|9007199254740993
 a-7 (7) [000] d..2 1.000030: sched_switch: prev_comm=main,app prev_pid=7 prev_prio=110 prev_state=S ==> next_comm=worker next_pid=8 next_prio=120
 b-8 (7) [000] d..2 1.000034: sched_waking: comm=main,app pid=7 prio=110 target_cpu=000
 b-8 (7) [000] d..2 1.000040: sched_switch: prev_comm=worker prev_pid=8 prev_prio=120 prev_state=R ==> next_comm=main,app next_pid=7 next_prio=110
 a-7 (7) [000] ...1 1.000050: tracing_mark_write: E|7
 a-7 (7) [000] ...1 1.000055: tracing_mark_write: F|7|load|4
 a-7 (7) [000] ...1 1.000056: tracing_mark_write: I|7|moment
 a-7 (7) [000] ...1 1.000090: tracing_mark_write: E|7
 a-7 (7) [000] ...1 1.000100: tracing_mark_write: B|7|open
";
    fs::write(dir.join("a.txt"), text).unwrap();
    run_to(dir, 0, &["dataset", "add", "set", "a.txt"]);
    let table = |name: &str| rows(&dir.join("set"), name);
    let slices = table("slice");
    let slice = |name: &str| slices.iter().find(|row| row.text("name") == Some(name)).unwrap();
    let times =
        |name: &str| ["ts", "ts_abs", "dur", "exclusive_ns", "cpu_dur"].map(|column| slice(name).int(column));
    let outer = slice("outer");
    let inner = slice("inner");
    assert_eq!(times("outer"), [Some(10_000), Some(1_000_010_000), Some(80_000), Some(50_000), Some(70_000)]);
    assert_eq!(times("inner"), [Some(20_000), Some(1_000_020_000), Some(30_000), Some(30_000), Some(20_000)]);
    assert_eq!((inner.int("parent_id"), inner.int("depth")), (outer.int("slice_id"), Some(1)));
    assert_eq!((outer.int("parent_id"), outer.int("depth"), outer.is("is_open")), (None, Some(0), false));
    let open = slice("open");
    assert!(open.is("is_open") && open.int("dur") == Some(0));
    let load = slice("load");
    let endless = slice("endless");
    assert_eq!((load.int("dur"), load.int("cookie"), load.int("pid")), (Some(34_000), Some(4), Some(7)));
    assert_eq!((load.text("kind"), load.int("utid"), load.is("is_open")), (Some("async"), None, false));
    assert_eq!((endless.int("dur"), endless.is("is_open")), (Some(78_000), true));
    let moment = slice("moment");
    assert_eq!((moment.text("kind"), moment.int("parent_id")), (Some("instant"), outer.int("slice_id")));

    let counters = table("counter");
    assert_eq!(counters[0].int("value_int"), Some(9_007_199_254_740_993));
    assert_eq!(
        (counters[0].double("value"), counters[0].text("scope")),
        (9_007_199_254_740_992.0, Some("process"))
    );
    let sched: Vec<_> =
        table("sched").iter().map(|row| (row.int("utid"), row.int("dur"), row.is("is_open"))).collect();
    assert_eq!(
        sched,
        [(Some(7), Some(30_000), false), (Some(7), Some(60_000), true), (Some(8), Some(10_000), false)]
    );
    let states = table("thread_state");
    let runnable = states.iter().find(|row| row.text("state") == Some("Runnable")).unwrap();
    assert_eq!((runnable.int("dur"), runnable.int("utid")), (Some(6_000), Some(7)));
    let asleep = states.iter().find(|row| row.text("state") == Some("Sleeping")).unwrap();
    assert_eq!((asleep.int("dur"), asleep.int("waker_utid")), (Some(4_000), Some(8)));
    assert_eq!(table("trace")[0].text("day_from"), Some("file"));
}

#[test]
fn a_trace_is_added_once_whatever_its_name_and_however_it_is_packed() {
    let dir = support::tempdir();
    let dir = dir.path();
    write_pair(dir, "app", 3);
    write_text(&dir.join("one.txt"), "one", 5);
    let add = ["dataset", "add", "set", "app.dat", "app.trace", "one.txt"];
    assert!(run_to(dir, 0, &add).contains("2 added, 0 already there, 0 rejected"));
    let before = (parts(&dir.join("set")), trace_ids(&dir.join("set")));
    assert!(run_to(dir, 0, &add).contains("0 added, 2 already there"));
    fs::copy(dir.join("one.txt"), dir.join("two.txt")).unwrap();
    fs::copy(dir.join("app.dat"), dir.join("x.dat")).unwrap();
    fs::copy(dir.join("app.trace"), dir.join("y.trace")).unwrap();
    let again = ["dataset", "add", "set", "two.txt", "two.txt", "--pair", "y.trace,x.dat"];
    assert!(run_to(dir, 0, &again).contains("0 added, 3 already there"));
    assert_eq!((parts(&dir.join("set")), trace_ids(&dir.join("set"))), before);
    assert_eq!(before.1.len(), 2);
}

#[test]
fn a_known_trace_gets_the_tags_that_it_lacks_and_keeps_the_others() {
    let dir = support::tempdir();
    let dir = dir.path();
    for n in 1..4 {
        write_text(&dir.join(format!("{n}.txt")), "one", n);
    }
    let add = |args: &[&str]| run_to(dir, 0, &[&["dataset", "add", "set"], args].concat());
    add(&["1.txt", "2.txt", "3.txt", "--tag", "build=1"]);
    let said = add(&["1.txt", "2.txt", "--tag", "build=1", "--tag", "device=p8"]);
    assert!(
        said.contains("0 added, 2 already there") && said.contains("tags: added to 2 of those"),
        "{said}"
    );
    let said = add(&["2.txt", "--tag", "build=2", "--tag", "night=7"]);
    assert!(said.contains("keeps its tag build=1") && said.contains("tags: added to 1 of those"), "{said}");
    let said = add(&["1.txt", "--tag", "device=p8"]);
    assert!(!said.contains("tags:"), "{said}");
    let listed = run_in(dir, &["dataset", "list", "--json", "set"]).json();
    let mut tags: Vec<String> =
        listed["traces"].as_array().unwrap().iter().map(|trace| trace["tags"].to_string()).collect();
    tags.sort();
    assert_eq!(
        tags,
        [r#"{"build":"1","device":"p8","night":"7"}"#, r#"{"build":"1","device":"p8"}"#, r#"{"build":"1"}"#,]
    );
    assert!(run_to(dir, 0, &["dataset", "check", "set"]).contains("traces: 3"));
}

#[test]
fn a_trace_is_removed_and_the_others_stay() {
    let dir = support::tempdir();
    let dir = dir.path();
    for n in 0..3 {
        write_text(&dir.join(format!("{n}.txt")), &format!("slice {n}"), 5 + n);
    }
    let add = ["dataset", "add", "set", "0.txt", "1.txt", "2.txt"];
    run_to(dir, 0, &add);
    let set = dir.join("set");
    let slices = || -> BTreeSet<String> {
        rows(&set, "slice").iter().map(|row| row.text("name").unwrap().to_owned()).collect()
    };
    let id_of = |name: &str| {
        let traces = rows(&set, "trace");
        let row = traces.iter().find(|row| row.text("name") == Some(name)).unwrap();
        row.text("trace_id").unwrap().to_owned()
    };
    assert_eq!(parts(&set).len(), 1);
    run_to(dir, 0, &["dataset", "remove", "set", &id_of("1.txt")[..8]]);
    assert_eq!(slices(), ["slice 0", "slice 2"].map(str::to_owned).into());
    assert_eq!(parts(&set).len(), 1);
    assert!(run_to(dir, 1, &["dataset", "remove", "set", "zzzz"]).contains("no trace of the dataset"));
    run_to(dir, 0, &["dataset", "check", "set"]);
    assert!(run_to(dir, 0, &add).contains("1 added, 2 already there"));
    for name in ["0.txt", "1.txt", "2.txt"] {
        run_to(dir, 0, &["dataset", "remove", "set", &id_of(name)]);
    }
    assert_eq!((slices().len(), parts(&set).len()), (0, 0));
    let left: Vec<_> = fs::read_dir(&set).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".tracebridge-lock"]);
}

#[test]
fn damaged_foreign_and_empty_files_are_rejected_with_their_reasons_and_the_rest_is_added() {
    let dir = support::tempdir();
    let dir = dir.path();
    let made = Scenario::new(5, Era::ArtMono).make();
    let mut args = vec!["dataset".to_owned(), "add".into(), "set".into()];
    let mut put = |name: String, bytes: &[u8]| {
        fs::write(dir.join(&name), bytes).unwrap();
        args.push(name);
    };
    for n in 0..3 {
        put(format!("cut{n}.dat"), &made.dat[..made.dat.len() / 2 + 7 * n]);
        put(format!("foreign{n}"), format!("\0\u{1}no trace {n}").as_bytes());
        put(format!("empty{n}.trace"), b"");
    }
    put("good.dat".into(), &made.dat);
    args.push("missing.dat".into());
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let said = run_to(dir, 3, &args);
    assert!(said.contains("1 added, 0 already there, 10 rejected"), "{said}");
    let set = dir.join("set");
    let check = || {
        assert_eq!(
            rows(&set, "trace").iter().map(|row| row.text("name").unwrap().to_owned()).collect::<Vec<_>>(),
            ["good.dat"]
        );
        let rejected = rows(&set, "rejected");
        let reasons: BTreeMap<_, _> =
            rejected.iter().map(|row| (row.text("path").unwrap(), row.text("reason").unwrap())).collect();
        assert_eq!((rejected.len(), reasons.len()), (10, 10));
        assert!(reasons["cut0.dat"].contains("is damaged at byte"), "{reasons:?}");
        assert!(reasons["empty1.trace"].contains("is empty"), "{reasons:?}");
        assert!(
            reasons["foreign2"].contains("is binary data") || reasons["foreign2"].contains("not read"),
            "{reasons:?}"
        );
        assert!(
            reasons.iter().all(|(path, reason)| reason.contains(path) && said.contains(reason)),
            "{reasons:?}"
        );
    };
    check();
    // The same again rejects the same, and names it once.
    run_to(dir, 3, &args);
    check();
    run_to(dir, 0, &["dataset", "check", "set"]);
    let kept = run_to(dir, 0, &["dataset", "add", "--keep-damaged", "kept", "cut0.dat"]);
    assert!(kept.contains("1 added"), "{kept}");
    let trace = &rows(&dir.join("kept"), "trace")[0];
    assert!(trace.int("damaged_places") > Some(0) && trace.text("damage").is_some());
}

#[cfg(unix)]
#[test]
fn names_with_quotes_line_feeds_and_bytes_that_are_no_text_survive() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let dir = support::tempdir();
    let dir = dir.path();
    let name = OsStr::from_bytes(b"it's \"a\"\nb\xff.txt");
    let slice = "x \"y\" 'z' \u{1f600}";
    write_text(&dir.join(name), slice, 5);
    let tag = "k'ey\"=va'lue\nof two lines = \u{e9}";
    tracebridge()
        .current_dir(dir)
        .args(["dataset", "add", "s'e\"t"])
        .arg(name)
        .args(["--tag", tag])
        .run()
        .exited(0);
    let set = dir.join("s'e\"t");
    let source = &rows(&set, "source")[0];
    assert_eq!(source.bytes("path_bytes"), Some(name.as_bytes()));
    assert_eq!(source.text("path"), Some("it's \"a\"\nb\u{fffd}.txt"));
    assert_eq!(rows(&set, "slice")[0].text("name"), Some(slice));
    let tag = &rows(&set, "tag")[0];
    assert_eq!((tag.text("key"), tag.text("value")), (Some("k'ey\""), Some("va'lue\nof two lines = \u{e9}")));
    run_to(dir, 0, &["dataset", "check", "s'e\"t"]);
    let listed = run_in(dir, &["dataset", "list", "--json", "s'e\"t"]).json();
    assert_eq!(listed["traces"][0]["tags"]["k'ey\""], "va'lue\nof two lines = \u{e9}");
}

/// The bytes of all files below a directory. A file that goes meanwhile counts or not.
#[cfg(unix)]
fn bytes_below(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().map_while(Result::ok);
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => bytes_below(&entry.path()),
        meta => meta.map_or(0, |meta| meta.len()),
    });
    bytes.sum()
}

/// The writer is killed when it has written some of its bytes. No trace is there in part or twice, and a
/// last run completes the dataset.
#[cfg(unix)]
#[test]
fn after_kills_at_any_moment_a_last_run_has_every_trace_once_and_no_half_file_was_visible() {
    const KILLS: u64 = 10;
    let dir = support::tempdir();
    let dir = dir.path();
    let mut args: Vec<String> = ["dataset", "add", "set"].map(str::to_owned).into();
    for n in 0..150 {
        let name = format!("{n}.txt");
        write_text(&dir.join(&name), &format!("slice {n}"), 5 + n);
        args.push(name);
    }
    let set = dir.join("set");
    let other: Vec<&str> = args.iter().map(|arg| if arg == "set" { "other" } else { arg }).collect();
    run_to(dir, 0, &other);
    let whole = bytes_below(&dir.join("other"));
    let mut killed = 0;
    for n in 0..KILLS {
        let before = bytes_below(&set);
        let mut child = tracebridge().current_dir(dir).args(&args).stdout(Stdio::null()).spawn().unwrap();
        until("the writer to write", || {
            bytes_below(&set) >= before + whole * n / KILLS || child.try_wait().unwrap().is_some()
        });
        // SIGKILL.
        child.kill().unwrap();
        killed += usize::from(!child.wait().unwrap().success());
        let mut seen = BTreeSet::new();
        for part in parts(&set) {
            let ids: Vec<String> = rows_of(&part.join("trace.parquet"))
                .iter()
                .map(|row| row.text("trace_id").unwrap().into())
                .collect();
            let slices = rows_of(&part.join("slice.parquet"));
            assert_eq!(slices.len(), ids.len(), "a part is whole as soon as it is there");
            assert!(ids.iter().all(|id| seen.insert(id.clone())), "a trace is there twice");
        }
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    run_to(dir, 0, &args);
    let ids = trace_ids(&set);
    assert_eq!((ids.len(), ids.iter().collect::<BTreeSet<_>>().len()), (150, 150));
    assert!(run_to(dir, 0, &["dataset", "check", "set"]).contains("traces: 150,"));
    let hidden = fs::read_dir(&set).unwrap().map(|entry| entry.unwrap().file_name());
    let hidden: Vec<_> = hidden.filter(|name| name.to_string_lossy().starts_with(".tmp")).collect();
    assert!(hidden.is_empty(), "{hidden:?} after {killed} kills");
}

#[test]
fn convert_writes_the_tables_of_one_trace_as_a_directory_and_replaces_nothing_else() {
    let dir = support::tempdir();
    let dir = dir.path();
    write_text(&dir.join("a.txt"), "first", 5);
    write_text(&dir.join("b.txt"), "second", 5);
    let names = || {
        let rows = rows_of(&dir.join("x.parquet/slice.parquet"));
        rows.iter().map(|row| row.text("name").unwrap().to_owned()).collect::<Vec<_>>()
    };
    run_to(dir, 0, &["convert", "a.txt", "-o", "x.parquet"]);
    assert_eq!(names(), ["first"]);
    run_to(dir, 0, &["convert", "--json", "b.txt", "-o", "x.parquet"]);
    assert_eq!(names(), ["second"]);
    fs::write(dir.join("x.parquet/mine.txt"), "mine").unwrap();
    let said = run_to(dir, 1, &["convert", "a.txt", "-o", "x.parquet"]);
    assert!(said.contains("no directory of tables"), "{said}");
    fs::write(dir.join("y.parquet"), "mine").unwrap();
    run_to(dir, 1, &["convert", "a.txt", "-o", "y.parquet"]);
    assert_eq!(fs::read(dir.join("y.parquet")).unwrap(), b"mine");
    run_to(dir, 2, &["convert", "a.txt", "-o", "-", "--format", "parquet"]);
    run_to(dir, 2, &["convert", "a.txt", "--from", "1ms", "-o", "x.parquet"]);
}

#[test]
fn a_directory_that_is_no_dataset_is_left_alone_and_damage_of_a_dataset_is_found() {
    let dir = support::tempdir();
    let dir = dir.path();
    write_text(&dir.join("a.txt"), "a", 5);
    assert!(run_to(dir, 1, &["dataset", "add", ".", "a.txt"]).contains("is not empty, and no dataset"));
    assert!(run_to(dir, 1, &["dataset", "list", "missing"]).contains("there is no dataset"));
    run_to(dir, 2, &["dataset", "add", "set", "a.txt", "--tag", "no value"]);
    run_to(dir, 2, &["dataset", "add", "set", "a.txt", "--tag", "a=1", "--tag", "a=2"]);
    run_to(dir, 0, &["dataset", "add", "set", "a.txt"]);
    let part = parts(&dir.join("set")).remove(0);
    let whole = fs::read(part.join("slice.parquet")).unwrap();
    for cut in [0, 5, whole.len() / 2, whole.len() - 1] {
        fs::write(part.join("slice.parquet"), &whole[..cut]).unwrap();
        let said = run_to(dir, 1, &["dataset", "check", "set"]);
        assert!(said.contains("slice.parquet"), "{said}");
    }
    fs::copy(part.join("sched.parquet"), part.join("slice.parquet")).unwrap();
    assert!(
        run_to(dir, 1, &["dataset", "check", "set"]).contains("columns are not those of the table slice")
    );
    fs::write(part.join("slice.parquet"), &whole).unwrap();
    run_to(dir, 0, &["dataset", "check", "set"]);
    fs::create_dir_all(dir.join("set/day=2000-01-01")).unwrap();
    let copy = dir.join("set/day=2000-01-01/part=1");
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(&part).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    assert!(run_to(dir, 1, &["dataset", "check", "set"]).contains("is there twice"));
}

#[test]
fn the_queries_find_a_planted_regression_in_duckdb() {
    if python_with("duckdb").is_none() {
        return;
    }
    let dir = support::tempdir();
    let dir = dir.path();
    for (build, slower) in [("old", 0), ("it's new", 100)] {
        let mut args: Vec<String> = ["dataset", "add", "s'e*t"].map(str::to_owned).into();
        for n in 0..10 {
            let name = format!("{build}{n}.txt");
            super::launches::write_launch(&dir.join(&name), 100 + slower + n);
            args.push(name);
        }
        args.extend(["--tag".to_owned(), format!("build={build}")]);
        run_to(dir, 0, &args.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let query = |args: &[&str]| query(dir, args).stdout;
    let names = query(&["s'e*t"]);
    let names: Vec<&str> = names.lines().map(|line| line.split(' ').next().unwrap()).collect();
    let both = ["--old", "old", "--new", "it's new", "--csv", "s'e*t"];
    for name in &names {
        assert!(query(&[&both[..], &[*name]].concat()).contains(','), "{name}");
    }
    assert!(names.len() >= 6, "{names:?}");
    let regression = query(&[&both[..], &["slice-regression"]].concat());
    let lines: Vec<Vec<&str>> = regression.lines().map(|line| line.trim().split(',').collect()).collect();
    // 104.5 µs before and 204.5 µs after; the smallest p-value that ten of ten give.
    assert_eq!(&lines[1][..3], ["inflate", "10", "10"], "{regression}");
    let number = |line: &[&str], column: usize| line[column].parse::<f64>().unwrap();
    assert!((number(&lines[1], 5) - 0.1).abs() < 1e-9 && number(&lines[1], 7) < 0.001, "{regression}");
    assert_eq!(lines.len(), 2, "nothing else changed: {regression}");
    let launches = query(&[&both[..], &["startup-by-tag"]].concat());
    assert!(launches.contains("it's new,10,0.2845"), "{launches}");
}

#[test]
fn the_tables_hold_every_launch_and_frame_and_a_dataset_of_before_is_still_read() {
    let dir = support::tempdir();
    let dir = dir.path();
    let mark = |us: u32, tid: u32, comm: &str, what: &str| {
        let tgid = if tid == 8 { 7 } else { tid };
        format!(" {comm}-{tid} ({tgid:5}) [000] ...1 1.{us:06}: tracing_mark_write: {what}\n")
    };
    let server = |us, what: &str| mark(us, 9, "system_server", what);
    let app = |us, what: &str| mark(us, 7, "com.example", what);
    let render = |us, what: &str| mark(us, 8, "RenderThread", what);
    let launch = |at: u32, number: u32, launch_type: &str| {
        [
            server(at, &format!("S|9|launchingActivity#{number}|0")),
            app(at + 10, "B|7|activityResume"),
            app(at + 20, "E|7"),
            app(at + 20, &format!("B|7|Choreographer#doFrame {number}")),
            app(at + 30, "E|7"),
            render(at + 30, &format!("B|7|DrawFrames {number}")),
            render(at + 50, "E|7"),
            server(at + 60, &format!("F|9|launchingActivity#{number}|0")),
            server(at + 61, &format!("I|9|launchingActivity#{number}:completed-{launch_type}:com.example")),
        ]
        .concat()
    };
    fs::write(dir.join("a.txt"), [launch(100, 1, "cold"), launch(500, 2, "hot")].concat()).unwrap();
    run_to(dir, 0, &["dataset", "add", "set", "a.txt", "--tag", "build=1"]);
    let part = parts(&dir.join("set")).remove(0);
    let launches: Vec<_> = rows_of(&part.join("launch.parquet"))
        .iter()
        .map(|row| {
            (
                row.text("app").unwrap().to_owned(),
                row.text("type").unwrap().to_owned(),
                row.int("dur"),
                row.int("ttid_ns"),
            )
        })
        .collect();
    let of =
        |launch_type: &str| ("com.example".to_owned(), launch_type.to_owned(), Some(60_000), Some(50_000));
    assert_eq!(launches, [of("cold"), of("hot")]);
    let frames: Vec<_> = rows_of(&part.join("frame.parquet"))
        .iter()
        .map(|row| (row.int("id"), row.int("dur"), row.int("cpu_ns")))
        .collect();
    assert_eq!(frames, [(Some(1), Some(30_000), Some(30_000)), (Some(2), Some(30_000), Some(30_000))]);
    // Earlier versions wrote no frames.
    fs::remove_file(part.join("frame.parquet")).unwrap();
    run_to(dir, 0, &["dataset", "check", "set"]);
    run_to(dir, 0, &["dataset", "list", "set"]);
    run_to(dir, 0, &["dataset", "add", "other", "set"]);
    run_to(dir, 0, &["dataset", "check", "other"]);
}
