//! `perf record` with options that change what a perf.data file holds and how: each sample is the one that
//! `perf script` prints.

use std::io;
use std::path::Path;

use support::{Command, has_program, skip};
use tracebridge::formats::input::Input;
use tracebridge::formats::open;
use tracebridge::formats::samples::{Sample, SampleReading, SampleSink, SampleTables};

/// A program of several processes, which computes, starts others, and waits.
const WORKLOAD: &str = "for n in 1 2 3; do\n\
    (i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; cat /proc/self/maps >/dev/null; sleep 0.01) &\n\
    done; wait";

/// One sample: process and thread, time in ns, period, event type, and the depth of its stack.
type Line = (String, u64, u64, String, usize);

#[derive(Default)]
struct Lines(Vec<Line>);

impl SampleSink for Lines {
    fn sample(&mut self, tables: &SampleTables, sample: &Sample) -> io::Result<()> {
        let thread = &tables.threads[sample.thread as usize];
        let event = tables.events[sample.event as usize].name.clone();
        let ids = format!("{}/{}", thread.pid, thread.tid);
        let depth = tables.stacks.frames(sample.stack).count();
        self.0.push((ids, sample.time.0, sample.period, event, depth));
        Ok(())
    }
}

fn read(path: &Path) -> (Vec<Line>, SampleReading) {
    let input = Input::open(path).unwrap();
    let opened = open(&input).unwrap();
    let mut lines = Lines::default();
    let reading = opened.samples().unwrap().read(&mut lines).unwrap();
    (lines.0, reading)
}

/// The samples as `perf script` prints them.
fn printed(path: &Path, has_stacks: bool) -> Vec<Line> {
    let fields = if has_stacks { "pid,tid,time,period,event,ip" } else { "pid,tid,time,period,event" };
    let text = Command::new("perf").args(["script", "--ns", "-F", fields, "-i"]).arg(path).run().exited(0);
    let mut lines: Vec<Line> = Vec::new();
    for line in text.stdout.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if !words[0].contains('/') {
            lines.last_mut().expect("a stack behind its sample").4 += 1;
            continue;
        }
        let time = words[1].trim_end_matches(':').replace('.', "").parse().unwrap();
        let event = words[3].trim_end_matches(':').to_owned();
        lines.push((words[0].to_owned(), time, words[2].parse().unwrap(), event, 0));
    }
    lines
}

#[test]
fn every_sample_is_perfs_whatever_perf_record_was_told() {
    if !has_program("perf") {
        return skip("perf", "there is no perf: apt-get install linux-perf");
    }
    let dir = support::tempdir();
    let mut compared = 0;
    for options in [
        "-e cpu-clock",
        "-e cpu-clock -a",
        "-e cpu-clock -g",
        "-e cpu-clock,task-clock,context-switches,page-faults -g",
        "-e {cpu-clock,context-switches,page-faults}:S -c 100000 -g",
        "-e {cpu-clock,page-faults} -g",
        "-e cpu-clock -g -z",
        "-e cpu-clock -c 250000",
        "-e cpu-clock -i",
        "-e cpu-clock --namespaces --all-cgroups --switch-events",
        "-e cpu-clock -k boottime --sample-identifier",
        "-e cpu-clock -I --user-regs=ip,sp -d -s",
        "-e cpu-clock --buildid-mmap --tail-synthesize",
        "-e cpu-clock --overwrite",
        "-e cpu-clock -D 10",
        "-e sched:sched_switch,cpu-clock -R -g",
        "-e page-faults -c 1 -d --phys-data --code-page-size --data-page-size",
    ] {
        let path = dir.path().join("perf.data");
        let mut perf = Command::new("perf");
        perf.args(["record", "-q", "-o"]).arg(&path).args(options.split(' '));
        let done = perf.args(["--", "sh", "-c", WORKLOAD]).run();
        if !done.status.success() {
            // A kernel or a perf without this option.
            eprintln!("NOT COMPARED: {options}: {}", done.stderr);
            continue;
        }
        let has_stacks = options.split(' ').any(|option| option == "-g");
        let mut want = printed(&path, has_stacks);
        let (mut found, reading) = read(&path);
        // perf drops a call chain with an impossible address; here it leaves the function that ran.
        let drops = reading.report.notes.iter().any(|note| note.contains("none can have"));
        want.sort();
        found.sort();
        assert_eq!(found.len(), want.len(), "{options}");
        for (found, want) in found.iter().zip(&want) {
            let is_dropped = drops && want.4 == 0 && found.4 == 1;
            let depth = if has_stacks && !is_dropped { found.4 } else { want.4 };
            assert_eq!(
                (&found.0, found.1, found.2, &found.3),
                (&want.0, want.1, want.2, &want.3),
                "{options}"
            );
            assert_eq!(depth, want.4, "{options}: {found:?}");
        }
        assert!(reading.report.damage.is_empty(), "{options}: {:?}", reading.report.damage);
        compared += want.len();
    }
    assert!(compared > 1_000, "{compared}");
}

#[test]
fn lost_samples_are_counted_once() {
    if !has_program("perf") {
        return skip("perf", "there is no perf: apt-get install linux-perf");
    }
    let dir = support::tempdir();
    let path = dir.path().join("perf.data");
    // The smallest buffer and the highest rate that the kernel lets.
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-m", "1", "-F", "max", "-g", "-e", "cpu-clock", "-o"]).arg(&path);
    let done = perf.args(["--", "sh", "-c", WORKLOAD]).run();
    if !done.status.success() {
        return skip("perf", &format!("perf record does not work here: {}", done.stderr));
    }
    let report = Command::new("perf").args(["report", "--stdio", "-i"]).arg(&path).run().exited(0).stdout;
    let line = report.lines().find_map(|line| line.strip_prefix("# Total Lost Samples:"));
    let lost: u64 = line.expect("perf 4.2 and later say it").trim().parse().unwrap();
    let (_, reading) = read(&path);
    let records =
        Command::new("perf").args(["script", "--show-lost-events", "-i"]).arg(&path).run().exited(0);
    let records = records.stdout.lines().filter(|line| line.contains("PERF_RECORD_LOST lost "));
    let records = records.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum::<u64>();
    assert_eq!(reading.losses.lost, lost.max(records), "{lost} samples and {records} records");
}
