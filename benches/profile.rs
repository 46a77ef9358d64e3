//! The cost of a profile of a method trace: opening (one pass over the records) and the flat profile, with
//! the call tree beside it, on generated traces of 5 million records in memory, one of each shape.
//!
//! `cargo bench --bench profile [-- RECORDS]`. `scripts/bench-profile` races the whole program against
//! dmtracedump.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tracebridge::formats::art_method::MethodTrace;
use tracebridge::profile::count::flat::FlatProfile;
use tracebridge::profile::count::selection::ProfileSelection;
use tracebridge::profile::count::tree::{CallTree, TreeOptions};

use support::art_generate::{Shape, Size, USUAL};

const ROUNDS: usize = 15;

fn main() {
    // cargo hands on options of its own.
    let records = std::env::args().skip(1).find_map(|a| a.parse().ok()).unwrap_or(USUAL.records);
    Shape::ALL.into_iter().for_each(|(shape, name)| measure(records, shape, name));
}

fn measure(records: u64, shape: Shape, name: &str) {
    let mut bytes = Vec::new();
    support::art_generate::write_shape(&mut bytes, Size { records, ..USUAL }, shape)
        .expect("memory takes it");
    println!("{name}: {records} records, {} bytes; median, best and worst of {ROUNDS} rounds", bytes.len());
    let everything = ProfileSelection::default();
    let mut times: [Vec<Duration>; 3] = Default::default();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let trace = MethodTrace::parse(&bytes).expect("it is well-formed");
        times[0].push(start.elapsed());
        let start = Instant::now();
        let flat = black_box(FlatProfile::from_trace(&trace, &everything));
        times[1].push(start.elapsed());
        assert_eq!(flat.methods.iter().map(|m| m.calls + m.recursive).sum::<u64>(), records / 2);
        let start = Instant::now();
        black_box(CallTree::from_trace(&trace, &everything, TreeOptions::default()));
        times[2].push(start.elapsed());
    }
    for (what, mut times) in ["open", "flat profile", "call tree"].into_iter().zip(times) {
        times.sort();
        let [median, best, worst] = [ROUNDS / 2, 0, ROUNDS - 1].map(|n| times[n].as_secs_f64() * 1e3);
        let each = median * 1e6 / records as f64;
        println!("{what:<13} {median:>7.1} ms  ({best:.1} to {worst:.1})  {each:>5.1} ns a record");
    }
}
