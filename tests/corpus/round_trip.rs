//! Converts files from one format into another and back: number, times and contents of the events stay the
//! same.

use std::path::{Path, PathBuf};

use tracebridge::formats::input::Input;
use tracebridge::formats::{self, OpenedInput, Order};

use crate::texts::{DeliveredEvent, DeliveredTrace};

/// Reads a whole file, events in order of time.
fn read_trace(path: &Path) -> DeliveredTrace {
    let input = Input::from_bytes(&path.display().to_string(), std::fs::read(path).unwrap());
    let mut delivered = DeliveredTrace::default();
    let OpenedInput::Recording(recording) = formats::open(&input).unwrap() else { panic!("no recording") };
    recording.read(Order::Time, &mut delivered).unwrap();
    delivered
}

fn convert(from: &Path, to: &str, dir: &Path) -> PathBuf {
    let out = dir.join(to);
    let done = support::tracebridge().arg("convert").arg(from).arg("-o").arg(&out).run();
    let messages = &done.stderr;
    assert!(matches!(done.code(), Some(0 | 3)), "{}: {messages}", from.display());
    out
}

/// Time (in units of `unit` ns), CPU, thread and contents of each event, without the fields that texts or
/// Perfetto traces do not hold.
fn essence(delivered: &DeliveredTrace, unit: u64) -> Vec<(u64, u32, i32, String)> {
    let say = |e: &DeliveredEvent| {
        let field = |name: &str| e.fields.get(name).cloned().unwrap_or_default();
        let what = match e.name.as_str() {
            "print" => field("buf").trim_end().to_owned(),
            "sched_switch" => format!("{} {} {}", field("prev_pid"), field("next_pid"), field("next_comm")),
            "sched_waking" | "sched_wakeup" => format!("{} {}", field("pid"), field("target_cpu")),
            "cpu_idle" | "cpu_frequency" => format!("{} {}", field("state"), field("cpu_id")),
            _ => String::new(),
        };
        format!("{} {what}", e.name)
    };
    // Of equal times the order is not delivered.
    let mut all: Vec<_> =
        delivered.events.iter().map(|e| ((e.ts + unit / 2) / unit, e.cpu, e.tid, say(e))).collect();
    all.sort();
    all
}

#[track_caller]
fn assert_same(a: &DeliveredTrace, b: &DeliveredTrace, unit: u64, what: &str) {
    let a = essence(a, unit);
    let b = essence(b, unit);
    assert_eq!(a.len(), b.len(), "{what}: number of events");
    if let Some((a, b)) = a.iter().zip(&b).find(|(a, b)| a != b) {
        panic!("{what}: {a:?} became {b:?}");
    }
}

#[test]
fn a_text_becomes_a_trace_dat_and_a_perfetto_trace_with_the_same_events() {
    let Some(corpus) = support::corpus() else { return };
    let dir = support::tempdir();
    for name in [
        "systrace/catapult-project__catapult__battor_systrace.txt",
        "systrace/catapult-project__catapult__compressed_atrace_data.txt",
        "systrace/catapult-project__catapult__android_systrace.html",
        "ftrace-text/ARM-software__lisa__assets_trace.txt",
        "ftrace-text/eclipse-tracecompass-incubator__org.eclipse.tracecompass.incubator__trace-android-sched-irq",
    ] {
        let text = corpus.join(name);
        let source = read_trace(&text);
        assert!(source.events.len() > 100, "{name}");
        let dat = convert(&text, "a.dat", dir.path());
        assert_same(&source, &read_trace(&dat), 1, &format!("{name} to trace.dat"));
        let pftrace = convert(&dat, "a.pftrace", dir.path());
        assert_same(&source, &read_trace(&pftrace), 1, &format!("{name} to trace.dat to Perfetto"));
        let direct = convert(&text, "b.pftrace", dir.path());
        assert_same(&source, &read_trace(&direct), 1, &format!("{name} to Perfetto"));
    }
}

#[test]
fn a_trace_dat_becomes_a_perfetto_trace_with_the_same_events() {
    let Some(corpus) = support::corpus() else { return };
    let dir = support::tempdir();
    for entry in std::fs::read_dir(corpus.join("trace-cmd")).unwrap() {
        let dat = entry.unwrap().path();
        // The big one says nothing more, and takes long.
        if std::fs::metadata(&dat).unwrap().len() > 5_000_000 {
            continue;
        }
        let source = read_trace(&dat);
        let pftrace = convert(&dat, "a.pftrace", dir.path());
        assert_same(&source, &read_trace(&pftrace), 1, &format!("{} to Perfetto", dat.display()));
        let back = convert(&pftrace, "b.dat", dir.path());
        assert_same(&source, &read_trace(&back), 1, &format!("{} to Perfetto to trace.dat", dat.display()));
    }
}

#[test]
fn a_trace_dat_becomes_text_and_a_page_and_comes_back_with_the_same_events() {
    let Some(corpus) = support::corpus() else { return };
    let dir = support::tempdir();
    for name in ["ARM-software__lisa__sched_load_trace.dat", "ARM-software__trappy__trace_idle.dat"] {
        let source = read_trace(&corpus.join("trace-cmd").join(name));
        let text = convert(&corpus.join("trace-cmd").join(name), "a.txt", dir.path());
        // A text has microseconds.
        assert_same(&source, &read_trace(&text), 1000, &format!("{name} to text"));
        let dat = convert(&text, "b.dat", dir.path());
        assert_same(&source, &read_trace(&dat), 1000, &format!("{name} to text to trace.dat"));
        let pftrace = convert(&dat, "c.pftrace", dir.path());
        assert_same(
            &source,
            &read_trace(&pftrace),
            1000,
            &format!("{name} to text to trace.dat to Perfetto"),
        );
        let page = convert(&pftrace, "d.systrace.html", dir.path());
        assert_same(&source, &read_trace(&page), 1000, &format!("{name} on to a page"));
    }
}

#[test]
fn trace_cmd_reports_what_was_put_into_a_trace_dat() {
    let Some(corpus) = support::corpus() else { return };
    if !support::has_program("trace-cmd") {
        return support::skip("trace-cmd", "no trace-cmd on PATH");
    }
    let dir = support::tempdir();
    let text = corpus.join("systrace/catapult-project__catapult__battor_systrace.txt");
    let dat = convert(&text, "a.dat", dir.path());
    let done = support::Command::new("trace-cmd").arg("report").arg(&dat).run();
    let report = &done.stdout;
    assert!(!report.contains("FAILED TO PARSE"));
    let lines = report.lines().filter(|l| l.contains(": ") && l.contains('[')).count();
    // Two more for the gaps.
    assert!((88_819..=88_821).contains(&lines), "{lines}");
    assert!(report.contains("print:                tracing_mark_write: C|175|VSYNC-app|1"));
}

/// The lines of a text without the names of threads, of which a trace.dat has one for each thread, and
/// without the differences between kernels that print the same value: the state of a thread that left a CPU
/// (`x`, `D|K`), leading zeros, and the names of two fields. The lines are sorted, because events of one time
/// on different CPUs may change places.
fn comparable_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| {
            let line = line.find(" [0").map_or(line, |at| &line[at..]).trim_end();
            let words = line
                .split(' ')
                .filter(|word| !word.starts_with("prev_state=") && !matches!(*word, "x" | "X"));
            let words = words.map(|word| match word.split_once('=') {
                Some((key, value)) => {
                    let value = value.trim_start_matches('0');
                    format!("{}={value}", key.trim_end_matches("_freq"))
                }
                None => word.to_owned(),
            });
            words.collect::<Vec<_>>().join(" ")
        })
        .collect();
    lines.sort();
    lines
}

#[test]
fn a_text_comes_back_from_a_trace_dat_with_the_same_lines_up_to_the_values_that_are_reported_as_dropped() {
    let Some(corpus) = support::corpus() else { return };
    let dir = support::tempdir();
    let mut texts = 0;
    for folder in ["ftrace-text", "systrace"] {
        for entry in std::fs::read_dir(corpus.join(folder)).unwrap() {
            let source = entry.unwrap().path();
            // The largest ones say nothing more, and take long.
            if std::fs::metadata(&source).unwrap().len() > 1_000_000 {
                continue;
            }
            let name = source.display().to_string();
            // Lists of threads and of control groups: an output would hold no event, and is refused.
            if name.ends_with("_dump") {
                continue;
            }
            let text = convert(&source, "a.txt", dir.path());
            let (dat, dropped) = convert_and_count(&text, "a.dat", dir.path());
            let back = convert(&dat, "b.txt", dir.path());
            let again = convert(&convert(&back, "b.dat", dir.path()), "c.txt", dir.path());
            let [before, after, last] =
                [&text, &back, &again].map(|path| std::fs::read_to_string(path).unwrap());
            assert!(after == last, "{name}: what came back once stays the same byte for byte");
            let before = comparable_lines(&before);
            let after = comparable_lines(&after);
            assert_eq!(before.len(), after.len(), "{name}");
            let missing = before.iter().filter(|line| after.binary_search(line).is_err());
            let missing: Vec<&String> = missing.collect();
            assert!(missing.len() as u64 <= dropped, "{name}: {dropped} dropped, but {missing:#?}");
            texts += 1;
        }
    }
    assert!(texts > 25, "{texts}");
}

/// [`convert`], and the number of values that the summary reports as dropped.
fn convert_and_count(from: &Path, to: &str, dir: &Path) -> (PathBuf, u64) {
    let out = dir.join(to);
    let done = support::tracebridge().args(["convert", "--json"]).arg(from).arg("-o").arg(&out).run();
    let said: serde_json::Value = done.json();
    (out, said["dropped"]["field_values"].as_u64().unwrap_or(0))
}
