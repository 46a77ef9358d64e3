//! Counts the false alarms of `tracebridge gate`, and the slowdowns that it misses, on generated launches:
//! `cargo run --release --example gate_false_alarms -- [SEEDS]`
//!
//! For each seed, number of runs, spread and condition: 200 pairs of unchanged sets, and 200 pairs of which
//! the candidate is 5 % slower. docs/gate.md has the table that this prints.

use std::collections::{BTreeMap, BTreeSet};

use tracebridge::formats::Losses;
use tracebridge::internals::gate::{
    Condition, GateOutcome, GateSide, MeasureKind, RunTimes, Selection, judge,
};

use support::launch_scenario::{NoiseSource, Spread, USUAL, launches};

const PAIRS: usize = 200;
const MEDIAN_NS: f64 = 400e6;

fn side(title: &str, times: Vec<u64>) -> GateSide {
    let extent = Some(["request", "first frame"].map(str::to_owned));
    let run = |(number, ns): (usize, u64)| RunTimes {
        name: format!("{title} {number}"),
        identity: format!("{title} {number}"),
        launch_extent: extent.clone(),
        launch_type: None,
        measured: BTreeSet::from([MeasureKind::Launch]),
        times: BTreeMap::from([((MeasureKind::Launch, String::new()), ns as i64)]),
        losses: Losses::default(),
        is_lossy: false,
    };
    GateSide { title: title.to_owned(), runs: times.into_iter().enumerate().map(run).collect() }
}

/// How many of the pairs close the gate.
fn closed(
    source: &mut NoiseSource,
    conditions: &[Condition],
    runs: usize,
    spread: Spread,
    factor: f64,
) -> usize {
    let mut closes = || {
        let old = launches(source, runs, MEDIAN_NS, spread);
        let new = launches(source, runs, MEDIAN_NS * factor, spread);
        let judged = judge(&Selection::new(conditions), [side("old", old), side("new", new)]);
        judged.expect("both sides have launches").outcome() == GateOutcome::Closed
    };
    (0..PAIRS).filter(|_| closes()).count()
}

fn main() {
    let seeds: u64 = std::env::args().nth(1).map_or(10, |seeds| seeds.parse().expect("a number of seeds"));
    println!("of {PAIRS} pairs for each of {seeds} seeds: the mean, and the worst seed");
    println!("| runs a side | spread | condition | unchanged, closed | 5 % slower, closed |");
    println!("| ---: | ---: | --- | ---: | ---: |");
    for deviation in [0.02, 0.025, 0.03] {
        for runs in [5, 10, 15, 20, 30] {
            for percent in ["0", "2.5", "3", "5"] {
                let condition = format!("launch.total > +{percent}%");
                let conditions = [Condition::parse(&condition).expect("a condition")];
                let spread = Spread { deviation, ..USUAL };
                let count = |factor: f64| -> Vec<usize> {
                    (1..=seeds)
                        .map(|seed| closed(&mut NoiseSource(seed), &conditions, runs, spread, factor))
                        .collect()
                };
                let unchanged = count(1.0);
                let slower = count(1.05);
                let mean = |counts: &[usize]| counts.iter().sum::<usize>() as f64 / counts.len() as f64;
                println!(
                    "| {runs} | {:.1} % | `> +{percent}%` | {:.1} (at most {}) | {:.1} (at least {}) |",
                    deviation * 100.0,
                    mean(&unchanged),
                    unchanged.iter().max().unwrap_or(&0),
                    mean(&slower),
                    slower.iter().min().unwrap_or(&0)
                );
            }
        }
    }
}
