//! Samples of Linux perf beside a recording of the context switches: where they lie on its timeline, and
//! whether their clock is found without its name.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::scenario::Random;
use support::{Command, has_program, skip, tracebridge};

use crate::ring::{start_recorder, stop};
use crate::tracefs_fixture::machine;

/// How long perf takes samples, seconds.
const SECONDS: u64 = 4;

/// Keeps a CPU busy for a while and sleeps for a while, again and again, until `end`.
fn work_and_sleep(seed: u64, end: Instant) {
    let mut random = Random(seed);
    while Instant::now() < end {
        let busy_until = Instant::now() + Duration::from_micros(random.range(200, 4_000));
        while Instant::now() < busy_until {}
        std::thread::sleep(Duration::from_micros(random.range(200, 6_000)));
    }
}

/// Records samples of the whole machine, in CLOCK_MONOTONIC, while threads work. `None`, with a message,
/// where this machine's perf or its kernel cannot.
fn sample(output: &Path) -> Option<()> {
    if !has_program("perf") {
        skip("perf", "there is no perf: apt-get install linux-perf");
        return None;
    }
    let end = Instant::now() + Duration::from_secs(SECONDS);
    let done = std::thread::scope(|scope| {
        for seed in 1..5 {
            scope.spawn(move || work_and_sleep(seed, end));
        }
        let mut perf = Command::new("perf");
        perf.args(["record", "-k", "mono", "-e", "cpu-clock", "-F", "997", "-g", "-a", "-o"]).arg(output);
        perf.args(["--", "sleep", &SECONDS.to_string()]).run()
    });
    if !done.status.success() {
        skip("perf", &format!("perf record does not work here: {}", done.stderr));
        return None;
    }
    Some(())
}

/// The same file without the name of its clock: no event type asks for a clock, and there is no section of
/// clock readings. Where they lie, torvalds/linux tools/perf/Documentation/perf.data-file-format.txt says.
fn without_clock(file: &[u8]) -> Vec<u8> {
    const CLOCK_DATA: usize = 29;
    const USE_CLOCKID: u64 = 1 << 25;
    let mut bytes = file.to_vec();
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let [attr_size, attrs, attrs_size, data, data_size] =
        [16, 24, 32, 40, 48].map(|at| word(file, at) as usize);
    for attr in (attrs..attrs + attrs_size).step_by(attr_size) {
        let flags = word(&bytes, attr + 40);
        assert_ne!(flags & USE_CLOCKID, 0);
        bytes[attr + 40..attr + 48].copy_from_slice(&(flags & !USE_CLOCKID).to_le_bytes());
    }
    let features = word(&bytes, 72);
    assert_ne!(features & 1 << CLOCK_DATA, 0);
    bytes[72..80].copy_from_slice(&(features & !(1 << CLOCK_DATA)).to_le_bytes());
    let table = data + data_size;
    let before = (features & ((1 << CLOCK_DATA) - 1)).count_ones() as usize;
    let all = features.count_ones() as usize;
    bytes.copy_within(table + 16 * (before + 1)..table + 16 * all, table + 16 * before);
    bytes
}

fn ns(event: &Value) -> u64 {
    (event["ts"].as_f64().unwrap() * 1_000.0).round() as u64
}

/// By thread: the begins and ends of its stretches on a CPU.
type Stretches = BTreeMap<i64, Vec<(u64, u64)>>;

/// The samples of an output as thread and time, ns, and the stretches in which each thread had a CPU.
fn read(json: &Path) -> (Vec<(i64, u64)>, Stretches) {
    let json: Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    let mut samples = Vec::new();
    let mut open: BTreeMap<i64, u64> = BTreeMap::new();
    let mut stretches: BTreeMap<i64, Vec<(u64, u64)>> = BTreeMap::new();
    for event in json["traceEvents"].as_array().unwrap() {
        let track = event["tid"].as_i64().unwrap();
        match (event["ph"].as_str().unwrap(), event["cat"].as_str()) {
            ("P", _) => samples.push((track, ns(event))),
            ("B", Some("sched")) => _ = open.insert(track, ns(event)),
            ("E", Some("sched")) => {
                let from = open.remove(&track).unwrap();
                stretches.entry(event["args"]["tid"].as_i64().unwrap()).or_default().push((from, ns(event)));
            }
            _ => {}
        }
    }
    (samples, stretches)
}

/// How many switches the kernel left out, as `trace-cmd report` has them: where a thread leaves a CPU that
/// another one was given; and how many there are. Linux 6.18 in a virtual machine was seen to record no
/// switch from the idle task on one CPU, and to count none as lost.
pub fn missing_switches(dat: &Path) -> (usize, usize) {
    let report = Command::new("trace-cmd").arg("report").arg(dat).run().stdout;
    let mut running: BTreeMap<String, String> = BTreeMap::new();
    let mut missing = 0;
    let mut all = 0;
    for line in report.lines() {
        let Some((head, switch)) = line.split_once(" sched_switch:") else { continue };
        let Some((left, came)) = switch.split_once(" ==> ") else { continue };
        // A thread is `comm:tid [priority]`.
        let tid = |text: &str| {
            let (text, _) = text.rsplit_once(" [")?;
            Some(text.rsplit_once(':')?.1.to_owned())
        };
        let cpu =
            head.rsplit_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(cpu, _)| cpu.to_owned());
        let (Some(cpu), Some(left), Some(came)) = (cpu, tid(left), tid(came)) else { continue };
        all += 1;
        missing += usize::from(running.insert(cpu, came).is_some_and(|before| before != left));
    }
    assert!(all > 100, "{all} switches in {}", dat.display());
    (missing, all)
}

#[test]
fn samples_lie_where_their_threads_ran_and_their_clock_is_found_without_its_name() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let [perf_data, unnamed] = ["perf.data", "unnamed.data"].map(|name| dir.path().join(name));
    let recorder = start_recorder(&machine, dir.path(), &["-b", "16384"]);
    let sampled = sample(&perf_data);
    stop(recorder);
    if sampled.is_none() {
        return;
    }
    let (missing, switches) = missing_switches(&dir.path().join("x.dat"));
    if missing * 100 > switches {
        skip(
            "switches",
            &format!("this kernel left {missing} of {switches} switches out: stretches cannot be told"),
        );
        return;
    }
    fs::write(&unnamed, without_clock(&fs::read(&perf_data).unwrap())).unwrap();
    let merge = |samples: &Path, output: &str| {
        let output = dir.path().join(output);
        let mut merge = tracebridge();
        merge.arg("merge").arg(dir.path().join("x.dat")).arg(samples).arg("--json").arg("-o").arg(&output);
        let done = merge.run().exited_with_one_of(&[0, 3]).json();
        (done["outcome"]["inputs"][1].clone(), read(&output))
    };
    let (named, (samples, stretches)) = merge(&perf_data, "named.json");
    assert_eq!((&named["clock"], &named["verdict"]), (&"monotonic".into(), &"proven".into()), "{named}");

    // The idle task is no thread of the recording.
    let threads = samples.iter().filter(|(tid, _)| *tid > 0);
    let inside = threads.clone().filter(|(tid, at)| {
        stretches.get(tid).is_some_and(|all| all.iter().any(|(from, to)| (from..=to).contains(&at)))
    });
    let inside = inside.count();
    let all = threads.count();
    assert!(all > 1_000, "{all} samples");
    assert!(inside * 100 >= all * 99, "{inside} of {all} samples lie where their thread ran");

    let (found, (moved, _)) = merge(&unnamed, "unnamed.json");
    assert_eq!((&found["clock"], &found["verdict"]), (&"trace_perf".into(), &"proven".into()), "{found}");
    assert_eq!(moved.len(), samples.len());
    let sorted = |mut samples: Vec<(i64, u64)>| {
        samples.sort_unstable();
        samples
    };
    let apart =
        sorted(samples).into_iter().zip(sorted(moved)).map(|(named, found)| named.1.abs_diff(found.1));
    let apart = apart.max().unwrap();
    assert!(apart <= 20_000, "{apart} ns apart: {found}");
    eprintln!("{inside} of {all} samples inside; without its name the clock is found within {apart} ns");
}
