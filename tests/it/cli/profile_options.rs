//! Options of `profile` in pairs: each pair is refused by name, or both options change the result.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use support::art_writer::{Action, ArtTrace, Method, Record};
use support::tracebridge;

/// Two threads with the same calls. Sorted by wall time, by CPU time and by calls, methods and classes come
/// in different orders, and every part of the trace has calls. `read_us` is the time of the longest call.
fn trace(read_us: u32) -> ArtTrace {
    let method = |class, name| Method { signature: "(J)V".into(), ..Method::new(class, name) };
    let mut records = Vec::new();
    for thread in [1, 2] {
        let mut cpu_us = 0;
        let mut wall_us = u32::from(thread);
        let mut record = |method, action, [wall, cpu]: [u32; 2]| {
            records.push(Record { thread, method, action, cpu_us, wall_us });
            cpu_us += cpu;
            wall_us += wall;
        };
        record(0, Action::Enter, [3, 3]);
        let calls = [(10, 1, [2, 2]), (1, 3, [read_us, 5]), (1, 2, [200, 80]), (5, 4, [10, 10])];
        for (times, method, took) in calls {
            for _ in 0..times {
                record(method, Action::Enter, took);
                record(method, Action::Exit, [1, 1]);
            }
        }
        record(0, Action::Exit, [0, 0]);
    }
    records.sort_by_key(|record| record.wall_us);
    ArtTrace {
        dalvik: false,
        start_us: 7_000_000,
        elapsed_us: 2_000,
        pid: 77,
        threads: vec![(1, "main".into()), (2, "worker".into())],
        methods: vec![
            method("a.App", "run"),
            method("a.App", "tick"),
            method("a.App", "work"),
            method("a.b.Net", "read"),
            method("a.b.Net", "poll"),
        ],
        records,
    }
}

/// Each option with a value that changes every output that uses it. `--png` and `--svg` need Graphviz, and
/// are the graph of `--dot`; `--strict` and `--max-memory` change no output.
const OPTIONS: [&[&str]; 23] = [
    &["--by", "class"],
    &["--sort", "calls"],
    &["--clock", "cpu"],
    &["--top", "1"],
    &["--calls"],
    &["--signatures"],
    &["--thread", "worker"],
    &["--from", "0.1ms"],
    &["--to", "0.4ms"],
    &["--method", "App"],
    &["--against", "before.trace"],
    &["--mapping", "mapping.txt"],
    &["--threshold", "50"],
    &["--merge-threads"],
    &["--tree"],
    &["--bottom-up"],
    &["--json"],
    &["--csv"],
    &["--folded", "out.folded"],
    &["--flamegraph", "out.svg"],
    &["--dot", "out.dot"],
    &["--speedscope", "out.speedscope.json"],
    &["--firefox", "out.firefox.json"],
];

/// The output and the files of a command, by name; or the reason why it refuses the options.
fn outcome(dir: &Path, options: &[&str]) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let done = tracebridge().current_dir(dir).args(["profile", "app.trace"]).args(options).output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    let mut results = BTreeMap::from([("stdout".to_owned(), done.stdout)]);
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if name.starts_with("out.") {
            results.insert(name, fs::read(entry.path()).unwrap());
            fs::remove_file(entry.path()).unwrap();
        }
    }
    match done.status.code() {
        Some(0 | 3) => Ok(results),
        Some(2) => {
            assert!(
                results.len() == 1 && results["stdout"].is_empty(),
                "{options:?} wrote something: {said}"
            );
            Err(said)
        }
        code => panic!("{options:?}: {code:?}: {said}"),
    }
}

#[test]
fn each_pair_of_options_is_refused_by_name_or_both_change_the_result() {
    let dir = support::tempdir();
    let write = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).unwrap();
    write("app.trace", &trace(300).to_bytes());
    write("before.trace", &trace(200).to_bytes());
    write("mapping.txt", b"com.real.App -> a.App:\n    void start(long) -> run\ncom.real.Net -> a.b.Net:\n    void receive(long) -> read\n");
    let alone: Vec<_> = OPTIONS.iter().map(|option| outcome(dir.path(), option)).collect();
    let mut used = Vec::new();
    let mut refused = Vec::new();
    for (n, option) in OPTIONS.iter().enumerate() {
        for (m, other) in OPTIONS.iter().enumerate().skip(n + 1) {
            // CPU time is what flame graphs and call graphs show anyway.
            let is_cpu_anyway = option[0] == "--clock" && ["--flamegraph", "--dot"].contains(&other[0]);
            let option = if is_cpu_anyway { &["--clock", "wall"][..] } else { option };
            let pair = [option, *other].concat();
            match outcome(dir.path(), &pair) {
                Ok(results) => {
                    for (one, result) in [(option, &alone[n]), (*other, &alone[m])] {
                        let is_same = Some(&results) == result.as_ref().ok();
                        assert!(!is_same, "{pair:?} is {one:?} alone");
                    }
                    used.push((option[0], other[0]));
                }
                Err(said) => {
                    let names = |option: &[&str]| said.contains(option[0]);
                    assert!(names(option) || names(other), "{pair:?}: {said}");
                    // The reason of a single option's refusal holds for the pair too.
                    let single = [&alone[n], &alone[m]].into_iter().any(Result::is_err);
                    assert!(single || names(option) && names(other), "{pair:?}: {said}");
                    refused.push((option[0], other[0]));
                }
            }
        }
    }
    for pair in [
        ("--calls", "--csv"),
        ("--against", "--tree"),
        ("--tree", "--csv"),
        ("--top", "--tree"),
        ("--tree", "--bottom-up"),
        ("--signatures", "--json"),
        ("--threshold", "--json"),
        ("--json", "--folded"),
        ("--against", "--dot"),
        ("--by", "--calls"),
    ] {
        assert!(refused.contains(&pair), "{pair:?} is not refused");
    }
    for pair in [
        ("--tree", "--json"),
        ("--threshold", "--tree"),
        ("--threshold", "--dot"),
        ("--against", "--csv"),
        ("--folded", "--dot"),
        ("--calls", "--json"),
        ("--by", "--sort"),
    ] {
        assert!(used.contains(&pair), "{pair:?} is refused");
    }
    println!("{} pairs used, {} refused", used.len(), refused.len());
}

#[test]
fn options_that_nothing_would_use_are_refused_with_what_they_go_with() {
    let dir = support::tempdir();
    fs::write(dir.path().join("app.trace"), trace(300).to_bytes()).unwrap();
    for (options, said) in [
        (&["--csv", "--calls"][..], "--calls does not go with --csv; it goes with the table and --json"),
        (
            &["--threshold", "5"],
            "--threshold does not go with the table; it goes with --tree, --bottom-up, --dot, --png and --svg",
        ),
        (
            &["--calls", "--by", "class"],
            "--calls does not go with --by: only methods have callers and callees (--by method)",
        ),
        (
            &["--svg", "x.svg", "--png", "x.png", "--top", "3"],
            "--top does not go with --png and --svg; it goes with",
        ),
        (&["--from", "2s", "--to", "1s"], "--from must lie before --to"),
        (&["app.trace", "--diff", "app.trace"], "--against compares one trace with another"),
        (&["app.trace", "--folded", "x"], "an output file holds one trace"),
    ] {
        let refusal = outcome(dir.path(), options).expect_err(said);
        assert!(refusal.contains(said), "{options:?}: {refusal}");
    }
}
