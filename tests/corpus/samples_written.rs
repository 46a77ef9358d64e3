//! Samples of real files that are written as Perfetto's packets, and decoded with Perfetto's own classes.

use std::fs;
use std::io;
use std::path::Path;

use support::python::{PERFETTO, python_with};
use support::{Command, corpus, project_dir, tracebridge};
use tracebridge::formats::input::Input;
use tracebridge::formats::open;
use tracebridge::formats::samples::{Sample, SampleSink, SampleTables};

/// A sample: event type, time, process, thread, CPU, the names of the functions, the outermost first, and the
/// time that a thread which stopped running did not run.
type WrittenSample = (String, u64, i32, i32, u32, Vec<String>, Option<u64>);

#[derive(Default)]
struct Expected(Vec<WrittenSample>);

impl SampleSink for Expected {
    fn sample(&mut self, tables: &SampleTables, sample: &Sample) -> io::Result<()> {
        let thread = &tables.threads[sample.thread as usize];
        let names =
            tables.stacks.frames(sample.stack).map(|frame| tables.frames[frame as usize].name.clone());
        let mut names: Vec<String> = names.collect();
        names.reverse();
        let event = &tables.events[sample.event as usize];
        let cpu = sample.cpu.map_or(0, |cpu| cpu.0);
        let off_cpu = event.is_off_cpu.then_some(sample.period);
        self.0.push((event.name.clone(), sample.time.0, thread.pid.0, thread.tid.0, cpu, names, off_cpu));
        Ok(())
    }
}

/// The samples as tracebridge reads them, in order.
fn read(path: &Path) -> Vec<WrittenSample> {
    let input = Input::open(path).unwrap();
    let opened = open(&input).unwrap();
    let mut expected = Expected::default();
    opened.samples().unwrap().read(&mut expected).unwrap();
    expected.0.sort();
    expected.0
}

/// The samples of a Perfetto trace as Perfetto's classes decode them, in order.
fn decoded(python: &str, path: &Path) -> Vec<WrittenSample> {
    let script = project_dir().join("tests/support/print_samples.py");
    let printed = Command::new(python).arg(script).arg(path).run().exited(0).stdout;
    let mut samples: Vec<WrittenSample> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    samples.sort();
    samples
}

#[test]
fn perfettos_own_classes_decode_every_sample_of_every_file_that_is_converted() {
    let Some(corpus) = corpus() else { return };
    let Some(python) = python_with(PERFETTO) else { return };
    let dir = support::tempdir();
    let output = dir.path().join("out.pftrace");
    let mut files = 0;
    let mut off_cpu = 0;
    for entry in fs::read_dir(corpus.join("simpleperf")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_str().unwrap().to_owned();
        if [".gz", ".txt"].iter().any(|ending| name.ends_with(ending)) {
            continue;
        }
        files += 1;
        let done = tracebridge().arg("convert").arg(&path).arg("-o").arg(&output).run();
        done.exited_with_one_of(&[0, 3]);
        let expected = read(&path);
        assert!(!expected.is_empty(), "{name}");
        let found = decoded(&python, &output);
        assert_eq!(found.len(), expected.len(), "{name}");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{name}");
        }
        // Read again, they are the same but for the CPU, which Perfetto's samples always have.
        assert_eq!(read(&output), expected, "{name}");
        off_cpu += expected.iter().filter(|sample| sample.6.is_some_and(|ns| ns > 0)).count();
    }
    assert!(files >= 10, "{files}");
    assert!(off_cpu > 100, "{off_cpu} samples of threads that stopped running");
}

#[test]
fn the_samples_of_a_perfetto_trace_stay_in_a_perfetto_trace_and_go_into_other_formats() {
    let Some(corpus) = corpus() else { return };
    let name =
        "microsoft__Microsoft-Performance-Tools-Linux-Android__perfetto_android12_cpuschedstack.pftrace";
    let path = corpus.join("perfetto").join(name);
    let expected = read(&path);
    let dir = support::tempdir();
    let [copy, anew, json] = ["copy.pftrace", "anew.pftrace", "out.json"].map(|name| dir.path().join(name));
    let mut convert = tracebridge();
    convert.arg("convert").arg(&path).arg("-o").arg(&copy).run().exited_with_one_of(&[0, 3]);
    assert_eq!(read(&copy), expected);
    let mut convert = tracebridge();
    convert.arg("convert").arg(&path).arg("-o").arg(&json).run().exited_with_one_of(&[0, 3]);
    let json: serde_json::Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    assert_eq!(events.iter().filter(|event| event["ph"] == "P").count(), expected.len());
    // Written anew, which --only-ftrace asks for.
    let mut convert = tracebridge();
    convert
        .arg("convert")
        .arg("--only-ftrace")
        .arg(&path)
        .arg("-o")
        .arg(&anew)
        .run()
        .exited_with_one_of(&[0, 3]);
    let found = read(&anew);
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
}
