//! A method trace comes to lie where it really was: against simulated devices of which everything is known.

use std::collections::HashMap;
use std::io;

use tracebridge::clock::Clock;
use tracebridge::formats::{Event, EventType, Sink};
use tracebridge::timeline::{
    self, Edge, MergeError, MergeOptions, MergeSummary, MethodThread, TimelineSink, Verdict,
};

use crate::scenario::{Era, Made, Random, START, Scenario, sources};

/// Keeps where each thread's edges came to lie.
#[derive(Default)]
struct Kept {
    threads: HashMap<u32, MethodThread>,
    edges: HashMap<u32, Vec<u64>>,
}

impl Sink for Kept {
    fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
        Ok(())
    }
}

impl TimelineSink for Kept {
    fn method_thread(&mut self, thread: &MethodThread) -> io::Result<()> {
        self.threads.insert(thread.index, thread.clone());
        Ok(())
    }
    fn edges(&mut self, thread: u32, edges: &[Edge]) -> io::Result<()> {
        self.edges.entry(thread).or_default().extend(edges.iter().map(|e| e.ts));
        Ok(())
    }
    fn finish(&mut self, _: &MergeSummary) -> io::Result<()> {
        Ok(())
    }
}

fn merged(made: &Made, options: &MergeOptions) -> Result<(MergeSummary, Kept), MergeError> {
    let mut kept = Kept::default();
    let outcome = timeline::merge(&sources(made), &mut kept, options)?;
    Ok((outcome, kept))
}

fn right_clock(era: Era) -> Clock {
    match era {
        Era::Dalvik => Clock::Realtime,
        Era::ArtMono | Era::Art14 => Clock::Monotonic,
        Era::ArtCounter => Clock::Counter,
    }
}

/// Median and 99th percentile of how far edges are from where they really were, ns; and threads left unmatched.
fn errors(made: &Made, kept: &Kept) -> (u64, u64, usize) {
    let mut apart = Vec::new();
    let mut unmatched = 0;
    for (index, thread) in &kept.threads {
        let (tid, truth) = &made.truth[*index as usize];
        match thread.tid {
            Some(found) => assert_eq!(found, *tid, "{} is another thread", thread.name),
            None => unmatched += 1,
        }
        assert_eq!(kept.edges[index].len(), truth.len());
        apart.extend(kept.edges[index].iter().zip(truth).map(|(a, b)| a.abs_diff(*b)));
    }
    apart.sort_unstable();
    // A trace without a record lies right anywhere.
    let at = |share: usize| apart.get(apart.len() * share / 100).copied().unwrap_or(0);
    (at(50), at(99), unmatched)
}

fn check(scenario: &Scenario) {
    let made = scenario.make();
    let (outcome, kept) =
        merged(&made, &MergeOptions::default()).unwrap_or_else(|e| panic!("{e}\n{scenario:?}"));
    let about = &outcome.inputs[1];
    assert_eq!(about.clock, right_clock(scenario.era), "{}\n{scenario:?}", about.explain.join("\n"));
    let (median, p99, unmatched) = errors(&made, &kept);
    let explain = about.explain.join("\n");
    assert!(median <= 20_000 && p99 <= 100_000, "{median} ns, {p99} ns\n{explain}\n{scenario:?}");
    assert_eq!(unmatched, 0, "{:?}\n{scenario:?}", outcome.report.notes);
    if scenario.markers {
        assert_eq!(about.verdict, Verdict::Proven, "{explain}");
    }
}

const ERAS: [Era; 4] = [Era::Dalvik, Era::ArtMono, Era::ArtCounter, Era::Art14];

#[test]
fn each_runtime_s_clock_is_found_and_each_call_lies_where_it_was() {
    for era in ERAS {
        check(&Scenario::new(1, era));
    }
}

#[test]
fn without_markers_the_time_off_the_cpu_tells_clock_and_threads() {
    for era in ERAS {
        check(&Scenario { markers: false, ..Scenario::new(2, era) });
    }
}

#[test]
fn a_suspend_within_the_trace_moves_what_comes_after_it() {
    let suspend = Some((START + 900_000_000, 7_000_000_000));
    for markers in [true, false] {
        let scenario = Scenario { suspend, length: 9_500_000_000, markers, ..Scenario::new(3, Era::ArtMono) };
        check(&scenario);
    }
}

#[test]
fn a_wall_clock_set_forward_or_back_within_the_trace_does_no_harm() {
    for by in [3_000_000_000, -3_000_000_000, 40_000_000, -40_000_000] {
        check(&Scenario { step: Some((START + 700_000_000, by)), ..Scenario::new(4, Era::Dalvik) });
    }
}

#[test]
fn a_frequency_that_the_runtime_measured_badly_is_made_good() {
    for ppm in [-300, 40, 250] {
        for era in [Era::ArtCounter, Era::Art14] {
            check(&Scenario { hz_off_ppm: Some(ppm), ..Scenario::new(5, era) });
        }
    }
}

#[test]
fn the_wrong_clock_is_never_chosen_in_two_hundred_cases() {
    let mut refused = 0;
    for seed in 1..=200 {
        let mut random = Random(seed * 7_919);
        let era = ERAS[random.range(0, 4) as usize];
        let scenario = Scenario {
            suspended: random.range(0, 2) * random.range(0, 4_000_000_000_000),
            markers: random.chance(60),
            counter_ahead: random.range(0, 20_000_000_000) * random.range(0, 2),
            threads: random.range(1, 7) as u32,
            length: random.range(200_000_000, 900_000_000),
            hz_off_ppm: random.chance(25).then(|| random.range(0, 400) as i64 - 200),
            ..Scenario::new(seed, era)
        };
        let made = scenario.make();
        match merged(&made, &MergeOptions::default()) {
            Ok((outcome, kept)) => {
                let about = &outcome.inputs[1];
                // Clocks that read the same are the same: then it is the time that counts.
                let (median, p99, _) = errors(&made, &kept);
                let right = about.clock == right_clock(era) || median <= 20_000;
                let exact = median <= 20_000 && p99 <= 100_000;
                let (why, explain) = (&about.why, about.explain.join("\n"));
                assert!(right && exact, "{median} {p99} {why}\n{explain}\n{scenario:?}");
            }
            Err(MergeError::Align(error)) => {
                refused += 1;
                assert!(!scenario.markers, "{error}\n{scenario:?}");
            }
            Err(error) => panic!("{error}\n{scenario:?}"),
        }
    }
    assert!(refused <= 40, "{refused} of 200 cases were not decided");
}

#[test]
fn clocks_that_drift_are_followed_by_the_time_off_the_cpu_alone() {
    for (seed, ppm) in [(21, 180), (22, -180), (23, 60), (24, -25)] {
        let length = 3_000_000_000;
        check(&Scenario {
            markers: false,
            hz_off_ppm: Some(ppm),
            length,
            snapshot_every: 10_000_000_000,
            ..Scenario::new(seed, Era::Art14)
        });
    }
}

/// What is said of a place that the evidence cannot tell from others: refused, or no more than assumed.
fn is_doubted(scenario: &Scenario) -> String {
    let made = scenario.make();
    match merged(&made, &MergeOptions::default()) {
        Err(MergeError::Align(error)) => error.to_string(),
        Err(error) => panic!("{error}\n{scenario:?}"),
        Ok((outcome, kept)) => {
            let (median, ..) = errors(&made, &kept);
            let about = &outcome.inputs[1];
            let explain = about.explain.join("\n");
            let right = median <= 20_000;
            assert!(
                right || about.verdict == Verdict::Assumed,
                "{median} ns, yet {:?}: {}\n{explain}",
                about.verdict,
                about.why
            );
            about.why.clone()
        }
    }
}

#[test]
fn markers_that_would_fit_anywhere_prove_nothing() {
    // The true clock cannot be tried, another one begins within the recording, and a marker is always near.
    for (seed, period) in [(31, 20_000), (32, 50_000), (33, 100_000), (34, 16_666_667), (35, 1_000_000)] {
        let hidden = Scenario {
            counter_hidden: true,
            counter_ahead: 0,
            suspended: 312_345_678,
            period: Some(period),
            threads: 2,
            ..Scenario::new(seed, Era::ArtCounter)
        };
        is_doubted(&hidden);
        // With the true clock among those tried it is found all the same, or nothing is claimed.
        is_doubted(&Scenario { counter_hidden: false, ..hidden });
    }
}

#[test]
fn a_clock_that_cannot_be_tried_is_not_replaced_by_another_with_confidence() {
    for seed in 41..=60 {
        let mut random = Random(seed * 104_729);
        is_doubted(&Scenario {
            counter_hidden: true,
            counter_ahead: 0,
            suspended: random.range(1_000_000, 900_000_000),
            markers: random.chance(50),
            threads: random.range(1, 4) as u32,
            length: random.range(20_000_000, 900_000_000),
            ..Scenario::new(seed, Era::ArtCounter)
        });
    }
}

#[test]
fn a_trace_of_a_few_calls_is_right_or_doubted() {
    for seed in 61..=100 {
        let mut random = Random(seed * 15_485_863);
        let era = ERAS[random.range(0, 4) as usize];
        is_doubted(&Scenario {
            threads: random.range(1, 3) as u32,
            length: random.range(4_000_000, 20_000_000),
            suspended: random.range(0, 2) * random.range(0, 400_000_000),
            counter_ahead: random.range(0, 2) * random.range(0, 400_000_000),
            markers: random.chance(60),
            counter_hidden: random.chance(30),
            ..Scenario::new(seed, era)
        });
    }
}
