//! Method traces of every writer that ART has had, and of its always-on tracer, through the real binary and
//! through the merge. The writers of the tests follow the description of the bytes and share nothing with the
//! reader.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tracebridge::clock::Clock;
use tracebridge::formats::art_method::MethodTrace;
use tracebridge::formats::input::Input;
use tracebridge::timeline::{self, MergeOptions, Verdict};

use super::align::AlignedEdges;
use support::art_always_on::{self, Stream, anr_dump, perfetto_packet};
use support::art_blocks::{self, Blocks, Writer};
use support::art_writer::{Action, ArtTrace, Method, Record};
use support::damage::check_damaged_copies;
use support::files::Files;
use support::scenario::{Era, Scenario, SimulatedFiles};
use support::tracebridge;

const THIRD: Writer = Writer::Third { frequency: 24_576_000, real: 24_576_000 };

/// Two threads: `main` calls run → work → read, the other one only run.
fn sample() -> ArtTrace {
    use Action::{Enter, Exit};
    let method = |class: &str, name: &str| Method {
        class: class.into(),
        name: name.into(),
        signature: "()V".into(),
        file: "A.java".into(),
    };
    // thread, method, action, cpu µs, wall µs
    let records = vec![
        Record::new(4_660, 0, Enter, 0, 1_000),
        Record::new(4_660, 1, Enter, 90, 401_000),
        Record::new(4_661, 0, Enter, 0, 500_000),
        Record::new(4_660, 2, Enter, 154, 800_000),
        Record::new(4_660, 2, Exit, 400, 1_200_000),
        Record::new(4_660, 1, Exit, 500, 1_600_000),
        Record::new(4_661, 0, Exit, 64, 1_800_000),
        Record::new(4_660, 0, Exit, 600, 2_000_000),
    ];
    ArtTrace {
        dalvik: false,
        start_us: 7_000_000,
        elapsed_us: 2_100_000,
        pid: 4_660,
        threads: vec![(4_660, "main".into()), (4_661, "worker".into())],
        methods: vec![method("a.App", "run"), method("a.App", "work"), method("a.b.Net", "read")],
        records,
    }
}

/// The exit status, standard output and standard error of a command.
fn run_on(args: &[&str], path: &Path) -> (i32, String, String) {
    let ran = tracebridge().args(&args[..1]).arg(path).args(&args[1..]).run();
    (ran.code().unwrap(), ran.stdout, ran.stderr)
}

fn json(path: &Path, options: &[&str]) -> Value {
    let (code, out, error) = run_on(&[&["profile", "--json"], options].concat(), path);
    assert!(matches!(code, 0 | 3), "{error}");
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"))
}

/// Calls, and exclusive and inclusive time in µs, of the method.
fn figures(profile: &Value, name: &str, clock: &str) -> [u64; 3] {
    let row =
        profile["rows"].as_array().unwrap().iter().find(|r| r["name"].as_str().unwrap().starts_with(name));
    let row = row.unwrap_or_else(|| panic!("no row {name}: {profile}"));
    let us = |key: &str| row[format!("{clock}_{key}_ns")].as_u64().unwrap_or(0) / 1_000;
    [row["calls"].as_u64().unwrap(), us("exclusive"), us("inclusive")]
}

fn assert_wall(profile: &Value) {
    let of = |name| figures(profile, name, "wall");
    assert_eq!(of("a.App.run"), [2, 800_000 + 1_300_000, 1_999_000 + 1_300_000], "{profile}");
    assert_eq!(of("a.App.work"), [1, 799_000, 1_199_000]);
    assert_eq!(of("a.b.Net.read"), [1, 400_000, 400_000]);
}

#[test]
fn cpu_time_alone_of_android_17_has_no_part_of_the_counters_start() {
    let files = Files::new();
    let blocks = Blocks { streaming: false, wall: false, cpu: true, writer: THIRD };
    let bytes = art_blocks::to_bytes(&sample(), blocks);
    let path = files.write("cpu.trace", &bytes);
    let value = json(&path, &[]);
    assert_eq!(figures(&value, "a.App.run", "cpu"), [2, 190 + 64, 600 + 64]);
    assert_eq!(value["damage"].as_array().map(Vec::len), Some(0), "{value}");
    // A file that is cut before its summary does not name its clock, and its times do.
    let summary = bytes.windows(8).position(|bytes| bytes == b"*version").unwrap();
    let path = files.write("cut.trace", &bytes[..summary - 4]);
    let value = json(&path, &[]);
    assert_eq!(
        (&value["clock"], figures(&value, "a.App.run", "cpu")[0]),
        (&"thread-cpu".into(), 2),
        "{value}"
    );
}

#[test]
fn android_17_calibrates_its_counter_at_both_ends_and_the_drift_is_said() {
    let files = Files::new();
    let blocks = |real| Blocks {
        streaming: true,
        wall: true,
        cpu: false,
        writer: Writer::Third { frequency: 24_000_000, real },
    };
    let exact = files.write("exact.trace", &art_blocks::to_bytes(&sample(), blocks(24_000_000)));
    let (code, _, said) = run_on(&["profile"], &exact);
    assert!(code == 0 && !said.contains("the counter"), "{said}");
    let drift = files.write("drift.trace", &art_blocks::to_bytes(&sample(), blocks(24_000_240)));
    let (code, _, said) = run_on(&["profile"], &drift);
    assert_eq!(code, 0);
    assert!(
        said.contains("the counter ran fast against CLOCK_MONOTONIC (21.0 µs in 2.100 s, 10.0 ppm)"),
        "{said}"
    );
    let us = |path: &Path| figures(&json(path, &[]), "a.b.Net.read", "wall")[1];
    assert!(us(&drift).abs_diff(us(&exact)) <= 1, "{} {}", us(&drift), us(&exact));
    // A clock that stood still for half of the trace is no drift.
    let far = files.write("far.trace", &art_blocks::to_bytes(&sample(), blocks(48_000_000)));
    let (_, _, said) = run_on(&["profile"], &far);
    assert!(
        said.contains("moved apart while tracing") && said.contains("follow the counter's frequency"),
        "{said}"
    );
    assert_eq!(us(&far), 800_000);
}

#[test]
fn low_overhead_and_the_thread_that_shuts_down_are_no_damage() {
    let files = Files::new();
    let mut trace = sample();
    // Methods that were on the stack have no enter, small methods no exit; a thread is not declared.
    trace.records.remove(0);
    trace.records.retain(|r| !(r.method == 2 && r.action == Action::Exit));
    trace.threads.truncate(1);
    let blocks = Blocks { streaming: false, wall: true, cpu: false, writer: THIRD };
    let path = files.write("low.trace", &art_blocks::with_keys(&trace, blocks, "is_precise_trace=false\n"));
    for command in ["profile", "info"] {
        let (code, out, error) = run_on(&[command], &path);
        let said = out + &error;
        assert_eq!(code, 0, "{said}");
        assert!(
            said.contains("is_precise_trace=false") && said.contains("1 threads are in no list"),
            "{said}"
        );
    }
}

#[test]
fn the_first_writers_files_have_no_names_where_it_did_not_stream() {
    let files = Files::new();
    let blocks = Blocks { streaming: false, wall: true, cpu: true, writer: Writer::First { block: 3 } };
    let path = files.write("first.trace", &art_blocks::to_bytes(&sample(), blocks));
    let (code, out, error) = run_on(&["profile"], &path);
    assert_eq!(code, 3, "{error}");
    assert!(
        error.contains("3 methods in records are in no list: their names are not in the file"),
        "{error}"
    );
    assert!(out.contains("(unknown 0x4)"), "{out}");
    assert_eq!(figures(&json(&path, &[]), "(unknown 0x8)", "wall"), [1, 400_000, 400_000]);
}

#[test]
fn blocks_of_more_records_than_16_bits_count_are_read_whole() {
    let mut trace = sample();
    let many = 70_001;
    trace.records = (0..2 * many)
        .map(|n| Record {
            thread: 4_660 + (n / many) as u16,
            method: n / 2 % 3,
            action: if n % 2 == 0 { Action::Enter } else { Action::Exit },
            cpu_us: n * 3,
            wall_us: n * 40,
        })
        .collect();
    let block = many as usize;
    for writer in [Writer::First { block }, Writer::Second { nanos: true, split: block }, THIRD] {
        let blocks = Blocks { streaming: true, wall: true, cpu: true, writer };
        let bytes = art_blocks::to_bytes(&trace, blocks);
        let read = MethodTrace::parse(&bytes).unwrap();
        assert_eq!(read.counts().records, u64::from(2 * many), "{writer:?}");
        assert_eq!(read.report().damage, [], "{writer:?}");
        let last = read.records().last().unwrap();
        let wall_ns = u64::from(2 * many - 1) * 40_000;
        assert!(last.wall.unwrap().abs_diff(wall_ns) < 100, "{writer:?}: {last:?}");
        assert!(read.header().streaming, "{writer:?}");
    }
}

#[test]
fn times_of_32_bits_go_on_behind_71_minutes_and_a_long_trace_in_ns_is_not_cut() {
    let files = Files::new();
    let mut trace = sample();
    // `read` is entered shortly before 2³² µs and left shortly behind.
    let base_us = 4_294_000_000u64;
    trace.elapsed_us = base_us + 2_100_000;
    trace.threads.truncate(1);
    trace.records.retain(|r| r.thread == 4_660);
    trace.records.iter_mut().for_each(|r| r.wall_us = r.wall_us.wrapping_add(base_us as u32));
    for writer in [Writer::First { block: 3 }, Writer::Second { nanos: false, split: 3 }] {
        let blocks = Blocks { streaming: true, wall: true, cpu: false, writer };
        let path = files.write("long.trace", &art_blocks::to_bytes(&trace, blocks));
        let value = json(&path, &[]);
        assert_eq!(figures(&value, "a.App.run", "wall"), [1, 800_000, 1_999_000], "{writer:?}");
        assert_eq!(value["problems"]["time_wraps"], 1, "{value}");
    }
    // 40 minutes in ns, merged: no time is taken for one before the start.
    let mut trace = sample();
    trace.records.iter_mut().filter(|r| r.wall_us >= 1_200_000).for_each(|r| r.wall_us += 2_400_000_000);
    trace.elapsed_us = 2_500_000_000;
    let blocks =
        Blocks { streaming: true, wall: true, cpu: false, writer: Writer::Second { nanos: true, split: 9 } };
    let path = files.write("forty.trace", &art_blocks::to_bytes(&trace, blocks));
    let csv = files.0.path().join("out.csv");
    let (code, _, error) = run_on(&["convert", "-o", csv.to_str().unwrap()], &path);
    assert_eq!(code, 0, "{error}");
    let text = std::fs::read_to_string(csv).unwrap();
    let read = text.lines().find(|line| line.contains("Net.read")).unwrap();
    assert!(read.contains("2400400000000"), "{read}");
}

/// Writes the sample as one of the files in which long-running methods come.
fn long_running_files(files: &Files) -> Vec<(PathBuf, &'static str)> {
    let trace = sample();
    let stream = |stream| art_always_on::to_bytes(&trace, stream);
    let dump = anr_dump(4_660, &stream(Stream::Anr));
    let report = format!("========\n== dumpstate: 2026-11-22\n{dump}");
    let zip = support::files::zip(&[
        ("FS/data/anr/anr_2026-11-22-15-00-00-000", dump.as_bytes()),
        ("bugreport-x.txt", report.as_bytes()),
    ]);
    vec![
        (files.write("ns.trace", &stream(Stream::Nanos)), "CPU's counter"),
        (files.write("calibrated.trace", &stream(Stream::Calibrated)), "2^23 ticks"),
        (files.write("anr.trace", &stream(Stream::Anr)), "2^23 ticks"),
        (files.write("anr.txt", dump.as_bytes()), "2^23 ticks"),
        (files.write("bugreport.zip", &zip), "2^23 ticks"),
        (
            files.write("packet.pftrace", &perfetto_packet(129, 4_660, &stream(Stream::Perfetto))),
            "2^23 ticks",
        ),
    ]
}

#[test]
fn long_running_methods_are_found_in_files_dumps_bug_reports_and_packets() {
    let files = Files::new();
    for (path, note) in long_running_files(&files) {
        let value = json(&path, &[]);
        assert_wall(&value);
        assert_eq!(value["format"], "always-on method trace, long-running methods");
        let (code, out, error) = run_on(&["profile", "--tree"], &path);
        assert_eq!(code, 0, "{path:?}: {error}");
        assert!(out.contains("thread 4660") && error.contains(note), "{path:?}: {out}{error}");
        let (code, out, error) = run_on(&["info"], &path);
        assert_eq!(code, 0, "{path:?}: {error}");
        assert!(out.contains("records: 8 (4 enters, 4 exits, 0 unrolls)"), "{path:?}: {out}");
        let (code, out, error) = run_on(&["dmtracedump"], &path);
        assert!(code == 0 && out.contains("a.b.Net.read"), "{path:?}: {error}");
        let csv = files.0.path().join("out.csv");
        let (code, _, error) = run_on(&["merge", "-o", csv.to_str().unwrap()], &path);
        assert_eq!(code, 0, "{path:?}: {error}");
        let text = std::fs::read_to_string(csv).unwrap();
        assert_eq!(text.matches("a.b.Net.read").count(), 1, "{path:?}: {text}");
    }
}

#[test]
fn all_methods_have_a_call_tree_and_counts_but_no_times() {
    let files = Files::new();
    for stream in [Stream::AllMethods, Stream::FirstVersion] {
        let path = files.write("all.trace", &art_always_on::to_bytes(&sample(), stream));
        let value = json(&path, &[]);
        assert_eq!((&value["clock"], &value["damage"]), (&"none".into(), &Value::Array(vec![])), "{value}");
        let row = &value["rows"][0];
        assert_eq!((&row["calls"], row["name"].as_str()), (&2.into(), Some("a.App.run ()V")), "{value}");
        assert!(row.get("wall_exclusive_ns").is_none(), "{row}");
        let (code, out, error) = run_on(&["profile"], &path);
        assert_eq!(code, 0, "{error}");
        let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["calls", "incl", "share", "calls", "recursive", "method"], "{out}");
        assert_eq!(rows[2], ["4", "100.0%", "2", "0", "a.App.run()"], "{out}");
        let (code, out, error) = run_on(&["profile", "--tree", "--threshold", "0"], &path);
        assert!(code == 0 && error.contains("no times"), "{error}");
        let of_main = out.find("main").unwrap();
        assert!(out[of_main..].contains("      a.b.Net.read"), "{out}");
        assert!(!out.contains(" ns") && !out.contains(" s "), "{out}");
        let (code, out, _) = run_on(&["profile", "--folded", "-"], &path);
        assert!(code == 0 && out.contains("main;a.App.run;a.App.work;a.b.Net.read 1"), "{out}");
        // A call that is open at the end counts as much as another one.
        let mut open = sample();
        open.records.truncate(4);
        let open = files.write("open.trace", &art_always_on::to_bytes(&open, stream));
        let (_, out, _) = run_on(&["profile", "--folded", "-"], &open);
        assert!(out.contains("main;a.App.run;a.App.work;a.b.Net.read 1"), "{out}");
        for file in ["--flamegraph", "--dot", "--speedscope"] {
            let target = files.0.path().join("picture");
            let (code, _, error) = run_on(&["profile", file, target.to_str().unwrap()], &path);
            assert_eq!(code, 0, "{file}: {error}");
            let text = std::fs::read_to_string(target).unwrap();
            assert!(!text.contains(" µs") && !text.contains(" ns"), "{file}: {text}");
        }
        let other = files.write("timed.trace", &sample().to_bytes());
        let target = files.0.path().join("x.csv");
        let other = other.to_str().unwrap();
        for args in [
            &["dmtracedump"][..],
            &["profile", "--from", "1ms"],
            &["profile", "--clock", "wall"],
            &["profile", "--firefox", "-"],
            &["profile", "--diff", other],
            &["merge", "-o", target.to_str().unwrap()],
        ] {
            let (code, _, error) = run_on(args, &path);
            assert_eq!(code, 1, "{args:?}: {error}");
            assert!(error.contains("no times") && error.contains("all.trace"), "{args:?}: {error}");
        }
        let (code, out, _) = run_on(&["dmtracedump", "-o"], &path);
        assert!(code == 0 && out.contains("a.b.Net.read"), "{out}");
    }
}

#[test]
fn a_full_ring_is_said_to_be_out_of_order() {
    let files = Files::new();
    let mut trace = sample();
    trace.records = (0..2_047)
        .map(|n| Record {
            thread: 4_660,
            method: n / 2 % 3,
            action: if n % 2 == 0 { Action::Enter } else { Action::Exit },
            cpu_us: 0,
            wall_us: 0,
        })
        .collect();
    let path = files.write("ring.trace", &art_always_on::to_bytes(&trace, Stream::AllMethods));
    let (code, _, error) = run_on(&["profile"], &path);
    assert!(code == 0 && error.contains("1 threads have filled their rings"), "{error}");
}

/// Merges `trace` with the recording, and checks clock, threads and times against the truth.
fn check_merge(made: &SimulatedFiles, trace: Vec<u8>, clock: Clock, what: &str) {
    let inputs = [Input::from_bytes("app.dat", made.dat.clone()), Input::from_bytes("app.trace", trace)];
    let mut aligned = AlignedEdges::default();
    let outcome = timeline::merge(&inputs, &mut aligned, &MergeOptions::default())
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let about = &outcome.inputs[1];
    let explain = about.explain.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert_eq!((about.clock, about.verdict), (clock, Verdict::Proven), "{what}: {}\n{explain}", about.why);
    let mut apart = Vec::new();
    for (index, thread) in &aligned.threads {
        let (tid, truth) = &made.truth[*index as usize];
        assert_eq!(
            (thread.tid.map(|tid| tid.0), aligned.edges[index].len()),
            (Some(*tid), truth.len()),
            "{what}"
        );
        apart.extend(aligned.edges[index].iter().zip(truth).map(|(a, b)| a.abs_diff(*b)));
    }
    apart.sort_unstable();
    let median = apart[apart.len() / 2];
    let p99 = apart[apart.len() * 99 / 100];
    assert!(median <= 20_000 && p99 <= 100_000, "{what}: {median} ns, {p99} ns\n{explain}");
}

#[test]
fn traces_of_every_writer_are_put_at_their_true_times_on_recordings_in_both_clocks() {
    for records_mono in [false, true] {
        let short = |seed, era| {
            Scenario { records_mono, threads: 3, length: 500_000_000, ..Scenario::new(seed, era) }.make()
        };
        let made = short(31, Era::ArtMono);
        for (cpu, writer) in [
            (true, Writer::First { block: 500 }),
            (false, Writer::Second { nanos: false, split: 500 }),
            (true, Writer::Second { nanos: true, split: 500 }),
            (true, THIRD),
            (false, Writer::Third { frequency: 24_576_000, real: 24_577_000 }),
        ] {
            let blocks = Blocks { streaming: true, wall: true, cpu, writer };
            let bytes = art_blocks::to_bytes(&made.art, blocks);
            check_merge(&made, bytes, Clock::Monotonic, &format!("{blocks:?}, {records_mono}"));
        }
        for stream in [Stream::Calibrated, Stream::Anr, Stream::Perfetto] {
            let bytes = art_always_on::to_bytes(&made.art, stream);
            check_merge(&made, bytes, Clock::Monotonic, &format!("{stream:?}, {records_mono}"));
        }
        // Nothing in the file relates these to another clock: the recording's snapshots of the counter do.
        let mut made = short(32, Era::ArtCounter);
        for (thread, (tid, _)) in made.art.threads.iter_mut().zip(&made.truth) {
            for record in made.art.records.iter_mut().filter(|r| r.thread == thread.0) {
                record.thread = *tid as u16;
            }
            thread.0 = *tid as u16;
        }
        for stream in [Stream::Nanos, Stream::Ticks { frequency: 19_200_000 }] {
            let bytes = art_always_on::to_bytes(&made.art, stream);
            check_merge(&made, bytes, Clock::Counter, &format!("{stream:?}, {records_mono}"));
        }
    }
}

#[test]
fn a_packet_beside_kernel_events_is_merged_with_them() {
    let files = Files::new();
    let made = Scenario::new(33, Era::ArtMono).make();
    let dat = files.write("app.dat", &made.dat);
    let pftrace = files.0.path().join("app.pftrace");
    let (code, _, error) = run_on(&["convert", "-o", pftrace.to_str().unwrap()], &dat);
    assert_eq!(code, 0, "{error}");
    let mut bytes = std::fs::read(&pftrace).unwrap();
    bytes.extend(perfetto_packet(123, 21_000, &art_always_on::to_bytes(&made.art, Stream::Perfetto)));
    let both = files.write("both.pftrace", &bytes);
    let csv = files.0.path().join("out.csv");
    let (code, out, error) = run_on(&["convert", "--json", "-o", csv.to_str().unwrap()], &both);
    assert!(matches!(code, 0 | 3), "{error}");
    let summary: Value = serde_json::from_str(&out).unwrap();
    let inputs = summary["outcome"]["inputs"].as_array().unwrap();
    assert_eq!(inputs.len(), 2, "{summary}");
    assert!(
        inputs[1]["name"].as_str().unwrap().ends_with("both.pftrace (pid 21000, com.example.app)"),
        "{summary}"
    );
    assert_eq!(inputs[1]["verdict"], "proven", "{summary}");
    let anr = files.write("anr.trace", &art_always_on::to_bytes(&made.art, Stream::Anr));
    let zip = files.0.path().join("out.zip");
    let (code, _, error) = run_on(&["merge", anr.to_str().unwrap(), "-o", zip.to_str().unwrap()], &dat);
    assert!(
        code != 0 && error.contains("Perfetto does not read the files of ART's always-on tracer"),
        "{error}"
    );
    let (_, out, _) = run_on(&["info"], &both);
    assert!(out.contains("events:") && out.contains("always-on method trace"), "{out}");
}

#[test]
fn every_exporter_writes_traces_of_every_writer() {
    let files = Files::new();
    let trace = sample();
    let blocks = |writer| Blocks { streaming: true, wall: true, cpu: true, writer };
    let mut all = vec![("anr", art_always_on::to_bytes(&trace, Stream::Anr))];
    for (name, writer) in [
        ("first", Writer::First { block: 3 }),
        ("second", Writer::Second { nanos: false, split: 3 }),
        ("third", THIRD),
    ] {
        all.push((name, art_blocks::to_bytes(&trace, blocks(writer))));
    }
    for (name, bytes) in all {
        let path = files.write(&format!("{name}.trace"), &bytes);
        let (code, out, error) = run_on(&["dmtracedump"], &path);
        assert!(code == 0 && out.contains("a.b.Net.read"), "{name}: {error}");
        for ending in ["pftrace", "json", "txt", "systrace.html", "html", "csv", "firefox.json"] {
            let out = files.0.path().join(format!("{name}.{ending}"));
            let (code, _, error) = run_on(&["convert", "-o", out.to_str().unwrap()], &path);
            assert_eq!(code, 0, "{name} {ending}: {error}");
            let written = std::fs::read(&out).unwrap();
            // A report page packs its contents.
            assert!(
                ending == "html" || ending == "systrace.html" || memmem(&written, b"read"),
                "{name} {ending}"
            );
        }
    }
}

fn memmem(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|window| window == what)
}

#[test]
fn damaged_traces_of_android_17_are_refused_or_read_in_part() {
    let blocks = Blocks { streaming: true, wall: true, cpu: true, writer: THIRD };
    check_damaged_copies("third.trace", &art_blocks::to_bytes(&sample(), blocks));
}

/// The files of all writers, each with a name.
fn all_files() -> Vec<(String, Vec<u8>)> {
    let trace = sample();
    let mut all = Vec::new();
    for writer in [
        Writer::First { block: 3 },
        Writer::Second { nanos: false, split: 3 },
        Writer::Second { nanos: true, split: 3 },
        THIRD,
    ] {
        for (wall, cpu) in [(true, true), (true, false), (false, true)] {
            let blocks = Blocks { streaming: true, wall, cpu, writer };
            all.push((format!("{blocks:?}"), art_blocks::to_bytes(&trace, blocks)));
        }
    }
    for stream in [
        Stream::Ticks { frequency: 24_576_000 },
        Stream::Nanos,
        Stream::Calibrated,
        Stream::Anr,
        Stream::Perfetto,
        Stream::AllMethods,
        Stream::FirstVersion,
    ] {
        all.push((format!("{stream:?}"), art_always_on::to_bytes(&trace, stream)));
    }
    all
}

#[test]
fn a_file_of_any_writer_that_is_cut_anywhere_is_refused_or_says_what_is_missing() {
    for (name, bytes) in all_files() {
        let whole = MethodTrace::parse(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((whole.report().damage.len(), whole.counts().records), (0, 8), "{name}");
        let step = bytes.len().div_ceil(200);
        // The last byte of the text may be missing.
        for cut in (1..bytes.len() - 1).step_by(step) {
            let Ok(trace) = MethodTrace::parse(&bytes[..cut]) else { continue };
            let counts = trace.counts();
            assert_eq!(
                trace.records().count() as u64,
                counts.records - counts.bad_actions,
                "{name} cut at {cut}"
            );
            let report = trace.report();
            // Of a stream with nothing but its calibration nothing can be missing.
            let is_empty = trace.counts().records == 0;
            assert!(!report.damage.is_empty() || is_empty, "{name} cut at {cut}: {report:?}");
        }
        // Any byte may be wrong.
        for at in (0..bytes.len()).step_by(5) {
            let mut other = bytes.clone();
            other[at] = !other[at];
            if let Ok(trace) = MethodTrace::parse(&other) {
                assert!(trace.records().count() as u64 <= trace.counts().records, "{name} at {at}");
            }
        }
    }
}
