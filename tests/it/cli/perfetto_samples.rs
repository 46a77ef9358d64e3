//! Samples of Perfetto traces that Perfetto's own classes write: all kinds of packets, in several sequences
//! whose state is cleared again and again, with what is missing, skipped and lost.

use std::io;
use std::path::Path;

use serde_json::{Value, json};
use support::python::{PERFETTO, python_with};
use support::{Command, project_dir, run_in};
use tracebridge::formats::input::Input;
use tracebridge::formats::open;
use tracebridge::formats::samples::{Sample, SampleReading, SampleSink, SampleTables};

/// Samples in the form of `make_sample_traces.py`.
#[derive(Default)]
struct Lines(Vec<Value>);

impl SampleSink for Lines {
    fn sample(&mut self, tables: &SampleTables, sample: &Sample) -> io::Result<()> {
        let thread = &tables.threads[sample.thread as usize];
        let names = tables.stacks.frames(sample.stack).map(|n| tables.frames[n as usize].name.clone());
        let mut names: Vec<String> = names.collect();
        names.reverse();
        let event = &tables.events[sample.event as usize].name;
        let cpu = sample.cpu.map(|cpu| cpu.0);
        self.0.push(json!([event, sample.time, thread.pid.0, thread.tid.0, cpu, sample.period, names]));
        Ok(())
    }
}

fn read(path: &Path) -> (Vec<Value>, SampleReading) {
    let input = Input::open(path).unwrap();
    let opened = open(&input).unwrap();
    let mut lines = Lines::default();
    let reading = opened.samples().expect("the trace has samples").read(&mut lines).unwrap();
    (lines.0, reading)
}

fn sorted(mut samples: Vec<Value>) -> Vec<String> {
    let mut lines: Vec<String> = samples.drain(..).map(|sample| sample.to_string()).collect();
    lines.sort();
    lines
}

#[test]
fn every_kind_of_sample_is_as_perfettos_own_classes_wrote_it() {
    let Some(python) = python_with(PERFETTO) else { return };
    let dir = support::tempdir();
    let script = project_dir().join("tests/support/make_sample_traces.py");
    for seed in 0..4 {
        let trace = dir.path().join(format!("{seed}.pftrace"));
        let mut make = Command::new(&python);
        let printed = make.arg(&script).arg(&trace).arg(seed.to_string()).run().exited(0).stdout;
        let (samples, counts) = printed.trim_end().rsplit_once('\n').unwrap();
        let want: Vec<Value> = samples.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let counts: Value = serde_json::from_str(counts).unwrap();
        assert!(want.len() > 800, "{}", want.len());
        let (found, reading) = read(&trace);
        assert!(found.is_sorted_by_key(|sample| sample[1].as_u64().unwrap()), "they come in order of time");
        assert_eq!(reading.losses.lost, counts["lost"], "seed {seed}");
        assert_eq!(reading.losses.throttled, counts["throttled"], "seed {seed}");
        assert_eq!(sorted(found), sorted(want), "seed {seed}");

        // Written anew, a sample has its stack, and the weight that Perfetto can state.
        let anew = dir.path().join("anew.pftrace");
        let args = ["convert", "--only-ftrace", trace.to_str().unwrap(), "-o", anew.to_str().unwrap()];
        run_in(dir.path(), &args).exited_with_one_of(&[0, 3]);
        let without_weight = |samples: Vec<Value>| {
            let part = |sample: Value| {
                let mut sample = sample.as_array().unwrap().clone();
                sample.remove(5);
                Value::Array(sample)
            };
            sorted(samples.into_iter().map(part).collect())
        };
        assert_eq!(without_weight(read(&anew).0), without_weight(read(&trace).0), "seed {seed}");
    }
}

#[test]
fn samples_of_a_stack_sample_trace_are_told_and_profiled_by_their_own_counter() {
    let Some(python) = python_with(PERFETTO) else { return };
    let dir = support::tempdir();
    let script = project_dir().join("tests/support/make_sample_traces.py");
    let trace = dir.path().join("x.pftrace");
    let printed = Command::new(&python).arg(script).arg(&trace).arg("7").run().exited(0).stdout;
    let lines = printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut bytes = 0;
    let mut of_real = 0;
    for sample in lines.filter(|line| line[0] == "bytes") {
        let weight = sample[5].as_u64().unwrap();
        bytes += weight;
        let names = sample[6].as_array().unwrap();
        of_real += if names.last().unwrap() == "com.example.Real.run" { weight } else { 0 };
    }
    assert!(of_real > 0);
    let info = run_in(dir.path(), &["info", "--json", "x.pftrace"]).exited_with_one_of(&[0, 3]).json();
    let events = info["samples"]["events"].as_array().unwrap();
    let event = events.iter().find(|event| event["name"] == "bytes").unwrap();
    assert_eq!((&event["period"], &event["is_time"]), (&bytes.into(), &false.into()), "{event}");
    let args = ["profile", "--json", "--event", "bytes", "x.pftrace"];
    let profile = run_in(dir.path(), &args).exited_with_one_of(&[0, 3]).json();
    let mut rows = profile["rows"].as_array().unwrap().iter();
    let row = rows.find(|row| row["name"] == "com.example.Real.run").unwrap();
    assert_eq!(row["weight_exclusive"], of_real, "{row}");
}
