//! The cost of following a recording: from the bytes of its stream to batches, for each event.
//!
//! `cargo bench --bench live`. It runs in turns with the reading of the whole recording by the same reader,
//! whose events nobody takes. Where there is a corpus, its recordings of real kernels are followed too.

use std::hint::black_box;
use std::io;
use std::time::Duration;

use support::launch_scenario::Launch;
use support::recorder_streams::DatParts;
use support::scenario::Random;
use tracebridge::formats::trace_dat::TraceDat;
use tracebridge::formats::{Event, EventType, Order, Sink};
use tracebridge::internals::live::{Live, LiveOptions};

mod cpu_time;

use cpu_time::{median, median_ratio, ns_per_call};

const ROUNDS: usize = 15;
/// The rate at which the share of a CPU is told, events a second.
const RATE: f64 = 100_000.0;

struct Count(u64);

impl Sink for Count {
    fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
        self.0 += 1;
        Ok(())
    }
}

fn main() {
    let launch = Launch { seed: 3, day: 0, slow_percent: 0, pace_percent: 100 }.make().dat;
    follow("a simulated launch", &launch);
    let Some(corpus) = support::corpus() else { return };
    let files = std::fs::read_dir(corpus.join("trace-cmd")).unwrap().map(|entry| entry.unwrap().path());
    for path in files.filter(|path| !path.to_string_lossy().contains("v7")) {
        follow(&path.file_name().unwrap().to_string_lossy(), &std::fs::read(&path).unwrap());
    }
}

fn count(dat: &[u8]) -> u64 {
    let mut count = Count(0);
    TraceDat::open(dat).unwrap().read(Order::Time, &mut count).unwrap();
    count.0
}

/// Measures a recording, in rounds of 50 ms and batches of 100 ms of its own time.
fn follow(name: &str, dat: &[u8]) {
    let pieces = DatParts::of(dat).stream(&mut Random(1));
    let events = count(dat) as f64;
    let followed = || {
        let mut live = Live::new(LiveOptions {
            keep: Duration::from_secs(60),
            app: Some("com.example.app".into()),
            triggers: vec!["slice none > 1s".parse().unwrap()],
            title: String::new(),
        });
        let mut bytes = 0;
        for pieces in pieces.chunks(2) {
            pieces.iter().for_each(|piece| live.feed(piece).unwrap());
            bytes += live.batch(false).len();
        }
        bytes + live.batch(true).len()
    };
    let mut read = Vec::new();
    let mut live = Vec::new();
    for _ in 0..ROUNDS {
        read.push(
            ns_per_call(1, || {
                black_box(count(dat));
            }) / events,
        );
        live.push(
            ns_per_call(1, || {
                black_box(followed());
            }) / events,
        );
    }
    let ratio = median_ratio(&live, &read);
    let ns = median(live);
    let percent = ns * RATE / 1e9 * 100.0;
    println!(
        "{name:<48} {events:>8} events {ns:>7.0} CPU-ns each, {ratio:>5.1} x reading; {percent:.1} % of a CPU at \
         {RATE} events/s"
    );
}
