//! Samples on the timeline of a recording: where they lie, and what each output holds of them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::report_page::Page;
use support::sample_report::{OFF_CPU, RUNNING, SampleReport};
use support::scenario::{Era, Random, Scenario};
use support::{Ran, tracebridge};

/// How far the samples' clock is behind the recording's, ns.
const OFFSET_NS: u64 = 7_654_321_987;
/// The functions of the samples, the innermost first.
const STACKS: [&[&str]; 2] = [&["app::draw", "app::frame", "main"], &["app::load", "main"]];

/// A recording of two CPUs, on which four threads of process 100 run at irregular times, and samples of them.
struct Sampled {
    dir: tempfile::TempDir,
    /// Times of the samples on the recording's clock, ns.
    times: Vec<u64>,
    /// How many of them are samples of switches.
    off_cpu: usize,
    /// The samples of thread 100 within its slice `work`, by the stack.
    in_work: [u64; 2],
}

impl Sampled {
    /// `stretches` of time on each CPU, and samples in one of `every` of them. They last between `shortest`
    /// and `longest` µs; where both are the same, one thread has each CPU to itself.
    fn new(stretches: u32, every: u32, shortest: u64, longest: u64) -> Sampled {
        let random_threads = shortest < longest;
        let duration_us = |random: &mut Random| {
            if random_threads { random.range(shortest, longest) } else { shortest }
        };
        let mut random = Random(7);
        let mut text = "# tracer: nop\n#\n".to_owned();
        let mut report = SampleReport::default();
        report.traces_off_cpu = true;
        for tid in 100..104 {
            report.thread(100, tid, &format!("thread{tid}"));
        }
        let mut lines = Vec::new();
        let mut taken = Vec::new();
        for cpu in 0..2_u64 {
            let mut us = 50_000_000;
            for number in 0..stretches {
                let tid = 100 + 2 * cpu as u32 + if random_threads { random.range(0, 2) as u32 } else { 0 };
                us += 100 + duration_us(&mut random);
                lines.push((us, cpu, 0, tid));
                let ran = duration_us(&mut random);
                if number % every == 0 {
                    let ns = us * 1_000 + random.range(500, ran * 1_000 - 500);
                    taken.push((ns, tid, RUNNING));
                    if number % (2 * every) == 0 {
                        taken.push(((us + ran) * 1_000, tid, OFF_CPU));
                    }
                }
                us += ran;
                lines.push((us, cpu, tid, 0));
            }
        }
        lines.sort_unstable();
        // Thread 100 is in the slice from its first to its last stretch on a CPU.
        let runs = || lines.iter().filter(|(.., next)| *next == 100).map(|(us, ..)| us + 10);
        let work = (runs().next().unwrap(), runs().next_back().unwrap());
        for (at, (us, cpu, prev, next)) in lines.iter().copied().enumerate() {
            let clock = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
            if at > 0 {
                for (ts, marker) in [(work.0, "B|100|work"), (work.1, "E|100")] {
                    if (lines[at - 1].0..us).contains(&ts) {
                        let ts = clock(ts);
                        writeln!(text, "  t100-100 (  100) [000] ...1 {ts}: tracing_mark_write: {marker}")
                            .unwrap();
                    }
                }
            }
            if next > 0 {
                // A timer has woken it.
                let before = clock(us - 5);
                writeln!(
                    text,
                    "  <idle>-0 (-----) [{cpu:03}] d.h2 {before}: sched_waking: comm=t{next} pid={next} prio=120 \
                     target_cpu={cpu:03}"
                )
                .unwrap();
            }
            let us = clock(us);
            writeln!(
                text,
                "  t{prev}-{prev} (  100) [{cpu:03}] d..2 {us}: sched_switch: prev_comm=t{prev} \
                 prev_pid={prev} prev_prio=120 prev_state=S ==> next_comm=t{next} next_pid={next} next_prio=120"
            )
            .unwrap();
        }
        taken.sort_unstable();
        let mut in_work = [0; 2];
        for (number, (ns, tid, event)) in taken.iter().enumerate() {
            if (*tid, *event) == (100, RUNNING) && (work.0 * 1_000..work.1 * 1_000).contains(ns) {
                in_work[number % 2] += 1;
            }
            report.sample(ns - OFFSET_NS, *tid, *event, STACKS[number % 2]);
        }
        let dir = support::tempdir();
        fs::write(dir.path().join("rec.txt"), text).unwrap();
        fs::write(dir.path().join("samples.trace"), report.bytes()).unwrap();
        let off_cpu = taken.iter().filter(|(.., event)| *event == OFF_CPU).count();
        Sampled { dir, times: taken.into_iter().map(|(ns, ..)| ns).collect(), off_cpu, in_work }
    }

    /// Stretches of 50 µs to 3 ms.
    fn irregular(stretches: u32, every: u32) -> Sampled {
        Sampled::new(stretches, every, 50, 3_000)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn merge(&self, output: &str, more: &[&str]) -> Ran {
        let mut merge = tracebridge();
        merge.arg("merge").args([self.file("rec.txt"), self.file("samples.trace")]);
        merge.arg("-o").arg(self.file(output)).args(more).run()
    }

    fn json(&self, output: &str) -> Value {
        serde_json::from_slice(&fs::read(self.file(output)).unwrap()).unwrap()
    }
}

#[test]
fn samples_without_a_clock_are_placed_by_the_context_switches() {
    let sampled = Sampled::irregular(2_000, 3);
    let done = sampled.merge("out.json", &["--json"]).exited(0).json();
    let input = &done["outcome"]["inputs"][1];
    assert_eq!(input["verdict"], "proven", "{input}");
    assert_eq!(input["samples"], sampled.times.len());
    let apart = input["offset_ns"].as_i64().unwrap() - OFFSET_NS as i64;
    assert!(apart.abs() < 20_000, "{apart} ns: {input}");
    let why = input["why"].as_str().unwrap();
    assert!(
        why.contains("samples lie where their thread had the CPU") && why.contains("sure within"),
        "{why}"
    );
    assert_eq!(done["outcome"]["contents"]["samples"], sampled.times.len());
}

#[test]
fn where_the_evidence_is_thin_no_place_is_guessed() {
    let few = Sampled::irregular(20, 3);
    let said = few.merge("out.json", &[]).exited(1).stderr;
    assert!(said.contains("samples.trace") && said.contains("--offset"), "{said}");
    assert!(!few.file("out.json").exists());
    let placed = few.merge("out.json", &["--offset", &OFFSET_NS.to_string(), "--json"]).exited(0).json();
    assert_eq!(placed["outcome"]["inputs"][1]["offset_ns"], OFFSET_NS);

    // Threads that run as regularly as a clock fit at each of its ticks.
    let regular = Sampled::new(2_000, 3, 4_000, 4_000);
    let said = regular.merge("out.json", &[]).exited(1).stderr;
    assert!(said.contains("but elsewhere") && said.contains("--offset"), "{said}");
}

#[test]
fn chrome_s_json_has_each_sample_with_its_stack() {
    let sampled = Sampled::irregular(500, 2);
    sampled.merge("out.json", &["--offset", &OFFSET_NS.to_string()]).exited(0);
    let json = sampled.json("out.json");
    let events = json["traceEvents"].as_array().unwrap();
    let samples: Vec<&Value> = events.iter().filter(|event| event["ph"] == "P").collect();
    assert_eq!(samples.len(), sampled.times.len());
    let mut times: Vec<u64> =
        samples.iter().map(|sample| (sample["ts"].as_f64().unwrap() * 1_000.0).round() as u64).collect();
    times.sort_unstable();
    assert_eq!(times, sampled.times);
    let off_cpu = samples.iter().filter(|sample| sample["name"] == "sched:sched_switch");
    assert_eq!(off_cpu.count(), sampled.off_cpu);
    let frames = &json["stackFrames"];
    for sample in samples {
        let mut at = sample["sf"].as_str();
        let mut names = Vec::new();
        while let Some(id) = at {
            assert_eq!(frames[id]["category"], "libapp.so");
            names.push(frames[id]["name"].as_str().unwrap());
            at = frames[id]["parent"].as_str();
        }
        assert!(STACKS.iter().any(|stack| **stack == names), "{names:?}");
        assert_eq!(sample["pid"], 100);
    }
}

#[test]
fn a_profile_for_firefox_has_samples_of_running_threads_and_markers_of_waiting_ones() {
    let sampled = Sampled::irregular(500, 2);
    sampled.merge("out.firefox.json", &["--offset", &OFFSET_NS.to_string()]).exited(0);
    let profile = sampled.json("out.firefox.json");
    let threads = profile["threads"].as_array().unwrap();
    let length = |table: &Value| table["length"].as_u64().unwrap() as usize;
    let samples: usize = threads.iter().map(|thread| length(&thread["samples"])).sum();
    assert_eq!(samples, sampled.times.len() - sampled.off_cpu);
    let text = fs::read_to_string(sampled.file("out.firefox.json")).unwrap();
    for name in ["app::draw", "app::load", "\"off CPU\"", "\"cpu-clock\""] {
        assert!(text.contains(name), "{name}");
    }
}

#[test]
fn a_perfetto_trace_gives_the_samples_back() {
    let sampled = Sampled::irregular(500, 2);
    sampled.merge("out.pftrace", &["--offset", &OFFSET_NS.to_string()]).exited(0);
    let again = |path: &Path| {
        let info = tracebridge().args(["info", "--json"]).arg(path).run().exited(0).json();
        info["samples"].clone()
    };
    let counts = again(&sampled.file("out.pftrace"));
    assert_eq!(counts["count"], sampled.times.len(), "{counts:#}");
    // Once more, beside another output: the samples of a Perfetto trace go where those of other files go.
    let mut convert = tracebridge();
    convert.arg("convert").arg(sampled.file("out.pftrace")).arg("-o").arg(sampled.file("again.json"));
    convert.run().exited(0);
    let events = sampled.json("again.json");
    let samples = events["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "P");
    assert_eq!(samples.count(), sampled.times.len());
}

#[test]
fn what_an_output_has_no_place_for_is_counted() {
    let sampled = Sampled::irregular(200, 2);
    for output in ["out.csv", "out.txt", "out.dat"] {
        let done = sampled.merge(output, &["--offset", &OFFSET_NS.to_string(), "--json"]).exited(3).json();
        assert_eq!(done["dropped"]["samples"], sampled.times.len(), "{output}");
    }
    // Nothing else is in the file: the output would be empty.
    let mut convert = tracebridge();
    convert.arg("convert").arg(sampled.file("samples.trace")).arg("-o").arg(sampled.file("only.dat"));
    let said = convert.run().exited(1).stderr;
    assert!(said.contains("no place for") && said.contains("samples"), "{said}");
}

#[test]
fn a_part_of_a_timeline_has_the_samples_of_this_part() {
    let sampled = Sampled::irregular(500, 2);
    let offset = OFFSET_NS.to_string();
    let whole = sampled.merge("out.json", &["--offset", &offset, "--json"]).exited(0).json();
    let first = whole["outcome"]["report"]["first_ts"].as_u64().unwrap();
    let inside = |ts: &&u64| (first + 300_000_000..=first + 700_000_000).contains(*ts);
    let expected = sampled.times.iter().filter(inside).count();
    assert!(expected > 50 && expected < sampled.times.len());
    let part = ["--offset", &offset, "--from", "300ms", "--to", "700ms", "--json"];
    let done = sampled.merge("part.json", &part).exited(0).json();
    assert_eq!(done["outcome"]["contents"]["samples"], expected);
}

#[test]
fn why_names_the_code_that_ran_and_the_code_that_waited_by_samples() {
    let sampled = Sampled::irregular(500, 2);
    let why = |more: &[&str]| {
        let mut why = tracebridge();
        why.arg("why").args([sampled.file("rec.txt"), sampled.file("samples.trace")]);
        why.args(["--offset", &OFFSET_NS.to_string(), "--slice", "work"]).args(more).run().exited(0)
    };
    let json = why(&["--json"]).json();
    let causes = json["spans"][0]["causes"].as_array().unwrap();
    let last = |cause: &Value| cause["path"].as_array().unwrap().last().unwrap()["cause"].clone();
    let is_own = |cause: &&Value| cause["path"].as_array().unwrap().len() == 1 && last(cause) == "running";
    let counts = ["app::draw", "app::load"].map(|name| {
        let of_name = causes.iter().filter(is_own).filter(|cause| cause["subject"] == name);
        of_name.map(|cause| cause["samples"].as_u64().unwrap()).sum::<u64>()
    });
    assert_eq!(counts, sampled.in_work, "{json:#}");
    let waited = causes.iter().filter(|cause| !is_own(cause) && cause["samples"].is_null());
    let named =
        waited.filter(|cause| cause["subject"].as_str().is_some_and(|name| name.starts_with("app::")));
    assert!(named.count() > 0, "a wait has the function in which it began: {json:#}");

    let printed = why(&[]).stdout;
    let (most, name) = sampled.in_work.iter().zip(["app::draw", "app::load"]).max().unwrap();
    let line = printed.lines().find(|line| line.contains(&format!("ran its own code in {name}")));
    assert!(line.is_some_and(|line| line.ends_with(&format!(" ({most} samples)"))), "{printed}");
}

#[test]
fn a_dataset_has_a_row_for_each_sample_and_a_query_compares_builds() {
    let sampled = Sampled::irregular(2_000, 3);
    let dir = sampled.dir.path();
    for build in ["1", "2"] {
        let trace = dir.join(build);
        fs::create_dir(&trace).unwrap();
        let text =
            fs::read_to_string(sampled.file("rec.txt")).unwrap().replace("prev_prio=120", "prev_prio=119");
        let text = if build == "1" { text } else { text.replace("prev_prio=119", "prev_prio=118") };
        fs::write(trace.join("rec.txt"), text).unwrap();
        fs::copy(sampled.file("samples.trace"), trace.join("rec.perf.data")).unwrap();
        let files = [trace.join("rec.txt"), trace.join("rec.perf.data")];
        let mut add = tracebridge();
        add.args(["dataset", "add"])
            .arg(dir.join("lab"))
            .args(files)
            .args(["--tag", &format!("build={build}")]);
        add.run().exited(0);
    }
    if !support::python::has_modules("duckdb") {
        return support::skip("python", "no duckdb: run scripts/setup");
    }
    let rows = support::python::query(dir, &["--csv", "lab", "top-functions-by-build"]).stdout;
    let rows: Vec<Vec<&str>> = rows.lines().skip(1).map(|row| row.split(',').collect()).collect();
    let running = sampled.times.len() - sampled.off_cpu;
    for build in ["1", "2"] {
        let of_build = rows.iter().filter(|row| row[0] == build);
        let samples: usize = of_build.clone().map(|row| row[3].parse::<usize>().unwrap()).sum();
        assert_eq!(samples, running, "{rows:?}");
        assert!(of_build.clone().all(|row| row[1] == "cpu-clock" && row[2].starts_with("app::")), "{rows:?}");
    }
}

#[test]
fn the_shares_of_a_method_by_calls_and_by_samples_stand_beside_each_other() {
    let dir = support::tempdir();
    let [trace, samples] = ["app.trace", "app.perf.data"].map(|name| dir.path().join(name));
    fs::write(&trace, Scenario::new(3, Era::ArtMono).make().trace).unwrap();
    let profile = tracebridge().args(["profile", "--json", "--sort", "exclusive"]).arg(&trace).run().json();
    let rows = profile["rows"].as_array().unwrap();
    let name = |row: &Value| row["name"].as_str().unwrap().split(' ').next().unwrap().to_owned();
    let time = |row: &Value| row["cpu_exclusive_ns"].as_u64().or(row["wall_exclusive_ns"].as_u64()).unwrap();
    let all: u64 = rows.iter().map(time).sum();
    let first = name(&rows[0]);
    let second = name(&rows[1]);
    assert_ne!(first, second);
    let mut report = SampleReport::default();
    report.thread(7, 7, "main");
    for number in 0..100_u64 {
        let method = if number < 90 { &second } else { &first };
        // Native code that a method has called is the method's.
        report.sample(1 + number * 1_000_000, 7, RUNNING, &["memcpy", method, "com.example.Other.caller"]);
    }
    report.sample(200_000_000, 7, RUNNING, &["start_thread"]);
    fs::write(&samples, report.bytes()).unwrap();
    let overhead = |more: &[&str]| {
        tracebridge().args(["profile", "--overhead"]).args([&trace, &samples]).args(more).run()
    };
    let json = overhead(&["--json"]).exited_with_one_of(&[0, 3]).json();
    assert_eq!((&json["sampled"], &json["outside"]), (&100.into(), &1.into()), "{json:#}");
    for (method, row, samples) in [(&first, &rows[0], 10), (&second, &rows[1], 90)] {
        let found = json["rows"].as_array().unwrap().iter().find(|row| row["method"] == **method).unwrap();
        assert_eq!((&found["samples"], &found["exclusive_ns"]), (&samples.into(), &time(row).into()));
        let share = time(row) as f64 / all as f64;
        assert!((found["share_by_calls"].as_f64().unwrap() - share).abs() < 1e-9, "{found}");
        assert!((found["share_by_samples"].as_f64().unwrap() - f64::from(samples) / 100.0).abs() < 1e-9);
    }
    let text = overhead(&[]).stdout;
    assert!(text.contains("100 samples in methods, 1 outside of all") && text.contains("90.0 %"), "{text}");
    let one = tracebridge().args(["profile", "--overhead"]).arg(&trace).run().exited(2);
    assert!(one.stderr.contains("a method trace with samples of the same run"), "{one}");
}

#[test]
fn a_page_draws_the_stacks_of_samples_on_their_threads() {
    let sampled = Sampled::irregular(500, 2);
    sampled.merge("out.html", &["--offset", &OFFSET_NS.to_string()]).exited(0);
    let page = Page::read(&sampled.file("out.html"));
    let tracks = page.index["tracks"].as_array().unwrap();
    let strips: Vec<&Value> = tracks.iter().filter(|track| track["role"] == "samples").collect();
    let of_kind = |kind: &str| strips.iter().filter(|track| track["kind"] == kind).count();
    // Each of the four threads has one of what it ran, and one of what it waited in.
    assert_eq!((of_kind("calls"), of_kind("slices")), (4, 4), "{strips:#?}");
    assert!(strips.iter().all(|track| track["name"].as_str().unwrap().starts_with("Samples")));
    for name in ["app::draw", "app::frame", "app::load", "main"] {
        assert!(page.strings.iter().any(|text| text == name), "{name}");
    }
}
