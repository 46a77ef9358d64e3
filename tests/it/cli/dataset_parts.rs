//! The parts of a dataset: small ones are combined, other datasets are added, writers take turns.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::Command;

use support::scenario::{Era, Random, Scenario};
use support::tables::{parts, rows, rows_in, rows_of};
use support::{run_in, tracebridge, until, within_limit};

/// Texts `0.txt`, `1.txt` …, each with one slice `slice N` of its own.
fn write_texts(dir: &Path, count: usize) -> Vec<String> {
    let names: Vec<String> = (0..count).map(|n| format!("{n}.txt")).collect();
    for (n, name) in names.iter().enumerate() {
        let mark =
            |us: usize, what: &str| format!(" m-7 ( 7) [000] ...1 1.{us:06}: tracing_mark_write: {what}\n");
        fs::write(dir.join(name), mark(10, &format!("B|7|slice {n}")) + &mark(15 + n, "E|7")).unwrap();
    }
    names
}

/// The names of the slices, sorted: each trace has one.
fn slices(set: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        rows(set, "slice").iter().map(|row| row.text("name").unwrap().to_owned()).collect();
    names.sort();
    names
}

fn expected_slices(count: usize) -> Vec<String> {
    let mut names: Vec<String> = (0..count).map(|n| format!("slice {n}")).collect();
    names.sort();
    names
}

#[test]
fn eight_small_parts_of_a_day_become_one_and_a_full_part_stays() {
    let dir = support::tempdir();
    let dir = dir.path();
    let texts = write_texts(dir, 72);
    let set = dir.join("set");
    let full: Vec<&str> = texts[8..].iter().map(String::as_str).collect();
    run_in(dir, &[&["dataset", "add", "set"], &full[..]].concat()).exited(0);
    assert_eq!(parts(&set).len(), 1, "64 traces are a part");
    let full_part = parts(&set).remove(0);
    for (n, text) in texts[..8].iter().enumerate() {
        run_in(dir, &["dataset", "add", "set", text]).exited(0);
        let expected = if n < 7 { n + 2 } else { 2 };
        assert_eq!(parts(&set).len(), expected, "after {} additions", n + 1);
    }
    assert!(full_part.is_dir());
    assert_eq!(slices(&set), expected_slices(72));
    assert!(run_in(dir, &["dataset", "check", "set"]).exited(0).said().contains("traces: 72, parts: 2,"));
    assert!(
        run_in(dir, &["dataset", "add", "set", "3.txt"])
            .exited(0)
            .said()
            .contains("0 added, 1 already there")
    );
    let hidden: Vec<_> = fs::read_dir(&set).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(hidden.len(), 2, "the lock and the day: {hidden:?}");
}

/// The ids of all traces as a query finds them: it lists the parts and then opens their files. `None` where a
/// part has gone meanwhile, of which a query says that it is to be run again.
fn listed_ids(set: &Path) -> Option<Vec<String>> {
    let open = |part: &PathBuf| fs::File::open(part.join("trace.parquet")).ok();
    let files: Vec<fs::File> = parts(set).iter().map(open).collect::<Option<_>>()?;
    let ids =
        |file| rows_in(file).iter().map(|row| row.text("trace_id").unwrap().to_owned()).collect::<Vec<_>>();
    Some(files.into_iter().flat_map(ids).collect())
}

/// A reader that lists the parts while they are combined finds every trace once.
#[cfg(target_os = "linux")]
#[test]
fn a_reader_finds_each_trace_once_while_parts_are_combined() {
    let dir = support::tempdir();
    let dir = dir.path();
    let texts = write_texts(dir, 40);
    let set = dir.join("set");
    run_in(dir, &["dataset", "add", "set", &texts[0]]).exited(0);
    // The writer waits for the reader, so that the reader looks at least as often as the writer adds.
    let looks = Arc::new(AtomicUsize::new(0));
    let writer = std::thread::spawn({
        let path = dir.to_owned();
        let texts = texts.clone();
        let looks = Arc::clone(&looks);
        move || {
            for (added, text) in texts[1..].iter().enumerate() {
                until("the reader", || looks.load(Ordering::Relaxed) > added);
                run_in(&path, &["dataset", "add", "set", text]).exited(0);
            }
        }
    });
    let mut seen = 1;
    while !writer.is_finished() {
        let Some(ids) = listed_ids(&set) else { continue };
        let unique: BTreeSet<&String> = ids.iter().collect();
        assert_eq!(unique.len(), ids.len(), "a trace is there twice");
        assert!(ids.len() >= seen, "{} traces after {seen}", ids.len());
        seen = ids.len();
        looks.fetch_add(1, Ordering::Relaxed);
    }
    writer.join().unwrap();
    assert_eq!(slices(&set), expected_slices(40));
}

#[test]
fn another_dataset_is_added_with_its_tags_and_what_it_rejected() {
    let dir = support::tempdir();
    let dir = dir.path();
    let texts = write_texts(dir, 6);
    fs::write(dir.join("bad.dat"), "\0\u{1}no trace").unwrap();
    let of = |range: std::ops::Range<usize>| texts[range].iter().map(String::as_str).collect::<Vec<_>>();
    run_in(dir, &[&["dataset", "add", "one", "--tag", "lab=1"], &of(0..3)[..]].concat()).exited(0);
    run_in(dir, &[&["dataset", "add", "two", "--tag", "lab=2"], &of(2..5)[..]].concat()).exited(0);
    run_in(dir, &["dataset", "add", "two", "bad.dat"]).exited(3);
    let before = parts(&dir.join("one"));
    let said = run_in(dir, &["dataset", "add", "all", "one", "two", "5.txt"]).exited(0).said();
    assert!(said.contains("6 added, 1 already there, 0 rejected"), "{said}");
    let all = dir.join("all");
    assert_eq!(slices(&all), expected_slices(6));
    let tags: Vec<_> = rows(&all, "tag").iter().map(|row| row.text("value").unwrap().to_owned()).collect();
    assert_eq!([tags.iter().filter(|tag| *tag == "1").count(), tags.len()], [3, 5]);
    assert_eq!(rows(&all, "rejected").len(), 1);
    assert!(run_in(dir, &["dataset", "check", "all"]).exited(0).said().contains("traces: 6,"));
    assert!(
        run_in(dir, &["dataset", "add", "all", "one", "two"])
            .exited(0)
            .said()
            .contains("0 added, 6 already there")
    );
    assert_eq!(parts(&dir.join("one")), before);
    // Their files are shared; removing a trace from one dataset changes only this dataset.
    let id = rows(&all, "trace")[0].text("trace_id").unwrap().to_owned();
    run_in(dir, &["dataset", "remove", "all", &id]).exited(0);
    assert_eq!(slices(&dir.join("one")), expected_slices(3));
}

#[test]
fn kernel_events_are_rows_on_request() {
    let dir = support::tempdir();
    let dir = dir.path();
    let text = "\
 a-7 (7) [000] ...1 1.000010: tracing_mark_write: B|7|outer
 a-7 (7) [001] d..2 1.000030: sched_waking: comm=main,app pid=9 prio=110 target_cpu=000
 <idle>-0 (-----) [002] d..2 1.000040: cpu_idle: state=1 cpu_id=2
 a-7 (7) [000] ...1 1.000050: tracing_mark_write: E|7
";
    fs::write(dir.join("a.txt"), text).unwrap();
    run_in(dir, &["dataset", "add", "without", "a.txt"]).exited(0);
    assert_eq!(rows(&dir.join("without"), "event").len(), 0);
    run_in(dir, &["dataset", "add", "set", "--events", "a.txt"]).exited(0);
    let set = dir.join("set");
    let events = rows(&set, "event");
    let shown: Vec<_> = events
        .iter()
        .map(|row| {
            let name = row.text("name").unwrap();
            let args = row.text("args").unwrap();
            format!("{:?} {:?} {:?} {name}: {args}", row.int("utid"), row.int("cpu"), row.int("ts"))
        })
        .collect();
    assert_eq!(
        shown[1],
        "Some(7) Some(1) Some(20000) sched_waking: comm=main,app pid=9 prio=110 target_cpu=000"
    );
    assert_eq!(shown[2], "Some(0) Some(2) Some(30000) cpu_idle: state=1 cpu_id=2");
    assert!(shown[0].contains("B|7|outer") && shown[3].contains("E|7"), "{shown:?}");
    assert!(events.iter().all(|row| row.int("ts_abs").unwrap() - 1_000_010_000 == row.int("ts").unwrap()));
    let trace = &rows(&set, "trace")[0];
    assert_eq!([trace.int("events"), trace.int("raw_events")], [Some(4), Some(4)]);
    let utids: BTreeSet<_> = rows(&set, "thread").iter().map(|row| row.int("utid")).collect();
    assert!(events.iter().all(|row| utids.contains(&row.int("utid"))), "a thread has no row");
    run_in(dir, &["dataset", "check", "set"]).exited(0);
    run_in(dir, &["convert", "a.txt", "-o", "a.parquet"]).exited(0);
    assert_eq!(rows_of(&dir.join("a.parquet/event.parquet")).len(), 4);
}

/// The first writer reads a FIFO, and has the lock until somebody writes to the FIFO.
#[cfg(unix)]
#[test]
fn a_second_writer_waits_until_the_first_one_has_ended() {
    let dir = support::tempdir();
    let dir = dir.path();
    let texts = write_texts(dir, 2);
    assert!(Command::new("mkfifo").arg(dir.join("fifo.txt")).status().unwrap().success());
    let add = |file: &str| {
        let mut command = tracebridge();
        command.current_dir(dir).args(["dataset", "add", "set", file]);
        command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
    };
    let first = add("fifo.txt");
    // Opening a FIFO to write waits until somebody reads it: then the first writer has the lock.
    let path = dir.join("fifo.txt");
    let open = move || fs::OpenOptions::new().write(true).open(path).unwrap();
    let fifo = within_limit("the first writer to read the FIFO", open);
    let mut second = add(&texts[1]);
    let said = second.collect_stderr();
    said.line_with("another process writes to the dataset");
    assert!(second.try_wait().unwrap().is_none());
    assert_eq!(parts(&dir.join("set")).len(), 0);
    std::io::copy(&mut fs::File::open(dir.join(&texts[0])).unwrap(), &mut &fifo).unwrap();
    drop(fifo);
    first.finish().exited(0);
    second.finish().exited(0);
    assert_eq!(slices(&dir.join("set")), expected_slices(2));
}

#[test]
fn ten_damaged_ten_foreign_and_ten_empty_files_are_rejected_and_the_rest_is_there() {
    let dir = support::tempdir();
    let dir = dir.path();
    let whole = Scenario { length: 60_000_000, ..Scenario::new(8, Era::ArtMono) }.make();
    let mut random = Random(0xbad);
    let mut names = write_texts(dir, 10);
    for n in 0..10 {
        let end = random.range(whole.dat.len() as u64 / 4, whole.dat.len() as u64) as usize;
        let mut foreign: Vec<u8> = (0..500).map(|_| random.range(0, 256) as u8).collect();
        foreign[0] = 0;
        for (name, bytes) in [("cut", &whole.dat[..end]), ("foreign", &foreign), ("empty", b"")] {
            let name = format!("{name}{n}.dat");
            fs::write(dir.join(&name), bytes).unwrap();
            names.push(name);
        }
    }
    let mut add = tracebridge();
    let said = add.current_dir(dir).args(["dataset", "add", "set"]).args(&names).run().exited(3).said();
    assert!(said.contains("10 added, 0 already there, 30 rejected"), "{said}");
    let set = dir.join("set");
    assert_eq!(slices(&set), expected_slices(10));
    let rejected = rows(&set, "rejected");
    let paths: BTreeSet<&str> = rejected.iter().map(|row| row.text("path").unwrap()).collect();
    assert_eq!([rejected.len(), paths.len()], [30, 30]);
    assert!(rejected.iter().all(|row| row.text("reason").unwrap().len() > 10));
    run_in(dir, &["dataset", "check", "set"]).exited(0);
}
