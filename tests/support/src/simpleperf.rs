//! The real simpleperf of Android's NDK, and the text that it prints of its own recordings.

use std::path::PathBuf;

use crate::{Command, Ran, project_dir, skip};

/// The directory of a program of others, which `scripts/peers` fetches: its arguments are `words`. Where it
/// cannot be had, this function reports a skipped test and returns `None`.
pub fn peer(words: &[&str]) -> Option<PathBuf> {
    let fetched = Command::new(project_dir().join("scripts/peers")).args(words).run();
    if !fetched.status.success() {
        skip(words[0], &fetched.stderr);
        return None;
    }
    Some(PathBuf::from(fetched.stdout.trim_end()))
}

/// simpleperf for this machine.
pub fn simpleperf() -> Option<PathBuf> {
    if std::env::consts::ARCH != "x86_64" {
        skip("simpleperf", "the NDK has it for Linux on x86_64 alone");
        return None;
    }
    Some(peer(&["simpleperf"])?.join("linux/x86_64/simpleperf"))
}

/// A sample as simpleperf prints it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PrintedSample {
    pub event: String,
    /// Time, ns.
    pub time: u64,
    pub tid: i32,
    /// The period; that of a thread that stopped running is the time until it ran again, ns.
    pub period: u64,
    /// Function and file, innermost first.
    pub stack: Vec<(String, String)>,
}

/// simpleperf writes an unknown function as `file[+address]`, behind a star where the file has symbols.
pub fn as_simpleperf_writes(name: &str) -> String {
    match name.rsplit_once("+0x") {
        Some((file, address)) if address.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            format!("{file}[+{address}]")
        }
        _ => name.to_owned(),
    }
}

/// The samples that `simpleperf report-sample --show-callchain` prints, in the order of time.
pub fn printed_samples(printed: &Ran) -> Vec<PrintedSample> {
    let mut samples: Vec<PrintedSample> = Vec::new();
    let traces_off_cpu = printed.stdout.contains("trace_offcpu: true");
    // By thread: the sample with which it stopped running.
    let mut stopped = std::collections::HashMap::<i32, usize>::new();
    let mut blocks = blocks(&printed.stdout);
    // Of a recording of the whole machine, simpleperf prints some messages behind later ones.
    let time =
        |block: &Vec<&str>| block.iter().find_map(|line| line.strip_prefix("  time: ")?.parse::<u64>().ok());
    blocks.sort_by_key(time);
    for block in blocks {
        let is_sample = block[0] == "sample:";
        let value =
            |name: &str| block.iter().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
        let number = |name: &str| value(name).expect(name).parse::<i64>().expect(name) as u64;
        if !is_sample && (block[0] != "context_switch:" || value("switch_on") != Some("true")) {
            continue;
        }
        let time = number("time");
        let tid = number("thread_id") as i32;
        if let Some(stopped) = stopped.remove(&tid) {
            samples[stopped].period = time - samples[stopped].time;
        }
        if !is_sample {
            continue;
        }
        let of = |name: &str| -> Vec<String> {
            let values = block.iter().filter_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
            values.map(|value| value.trim_start_matches('*').to_owned()).collect()
        };
        let event = value("event_type").expect("an event type").to_owned();
        let mut period = number("event_count");
        if traces_off_cpu && event == "sched:sched_switch" {
            stopped.insert(tid, samples.len());
            period = 0;
        }
        let stack = of("symbol").into_iter().zip(of("file")).collect();
        samples.push(PrintedSample { event, time, tid, period, stack });
    }
    samples
}

/// The lines of each message: its name at the margin, and its fields.
fn blocks(text: &str) -> Vec<Vec<&str>> {
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match blocks.last_mut() {
            Some(block) if line.starts_with(' ') => block.push(line),
            _ => blocks.push(vec![line]),
        }
    }
    blocks
}
