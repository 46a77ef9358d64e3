//! Writes the recordings of many launches of one app, each a capture of some 20,000 events and a method
//! trace of 20,000 records, for `scripts/bench-dataset` and for pictures:
//! `cargo run --release --example generate_launches --
//! DIR LAUNCHES DAYS [SLOW_FROM [SLOW_PERCENT [PACE_PERCENT [SEED]]]]`
//!
//! The launches are spread over DAYS days: `DIR/DAY-NUMBER.dat` and `.trace`. From the day SLOW_FROM (from 0)
//! on, the method com.example.app.Feed.bind takes SLOW_PERCENT longer (default: 25); PACE_PERCENT is how long
//! everything takes (default: 100). Prints the median of the time that a slow launch takes longer, ns. The
//! same numbers give the same files.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, thread};

use support::launch_scenario::Launch;

const USAGE: &str =
    "usage: generate_launches DIR LAUNCHES DAYS [SLOW_FROM [SLOW_PERCENT [PACE_PERCENT [SEED]]]]";

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().filter(|dir| !dir.starts_with('-')).expect(USAGE);
    let numbers: Vec<u64> = args.map(|arg| arg.parse().expect(USAGE)).collect();
    let number = |at: usize, default: u64| numbers.get(at).copied().unwrap_or(default);
    let launches = number(0, 0);
    let days = number(1, 0);
    assert!(launches > 0 && days > 0, "{USAGE}");
    let slow_from = number(2, days);
    let slow_percent = number(3, 25);
    let pace_percent = number(4, 100);
    let seed = number(5, 1);
    fs::create_dir_all(&dir)?;
    let next = AtomicU64::new(0);
    let work = || -> std::io::Result<Vec<u64>> {
        let mut planted = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= launches {
                return Ok(planted);
            }
            let day = number * days / launches;
            let slow_percent = if day >= slow_from { slow_percent } else { 0 };
            let launch = Launch { seed: seed * 1_000_000 + number, day, slow_percent, pace_percent };
            let files = launch.make();
            let path = Path::new(&dir).join(format!("{day:02}-{number:04}"));
            fs::write(path.with_extension("dat"), files.dat)?;
            fs::write(path.with_extension("trace"), files.trace)?;
            planted.extend((slow_percent > 0).then_some(files.planted_ns));
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let mut planted = thread::scope(|scope| {
        let started: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        started.into_iter().map(|worker| worker.join().unwrap()).collect::<std::io::Result<Vec<_>>>()
    })?
    .concat();
    planted.sort_unstable();
    println!("{}", planted.get(planted.len() / 2).copied().unwrap_or(0));
    Ok(())
}
