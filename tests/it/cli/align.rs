//! Aligns method traces of simulated devices with their kernel recordings, and compares the result with the
//! true times.

use std::collections::HashMap;
use std::io;

use support::scenario::{Era, Random, START, Scenario, SimulatedFiles};
use tracebridge::clock::Clock;
use tracebridge::formats::input::Input;
use tracebridge::formats::{Event, EventType, Sink};
use tracebridge::timeline::{
    self, Edge, MergeError, MergeOptions, MergeSummary, MethodThread, TimelineSink, Verdict,
};

/// The threads of method traces, and the times of their edges in their order, by the thread's number.
#[derive(Default)]
pub struct AlignedEdges {
    pub threads: HashMap<u32, MethodThread>,
    pub edges: HashMap<u32, Vec<u64>>,
}

impl Sink for AlignedEdges {
    fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
        Ok(())
    }
}

impl TimelineSink for AlignedEdges {
    fn method_thread(&mut self, thread: &MethodThread) -> io::Result<()> {
        self.threads.insert(thread.index, thread.clone());
        Ok(())
    }
    fn edges(&mut self, thread: u32, edges: &[Edge]) -> io::Result<()> {
        self.edges.entry(thread).or_default().extend(edges.iter().map(|e| e.ts.0));
        Ok(())
    }
    fn finish(&mut self, _: &MergeSummary) -> io::Result<()> {
        Ok(())
    }
}

/// The two files as inputs of `merge`.
fn inputs(made: &SimulatedFiles) -> [Input; 2] {
    let input = |name: &str, bytes: &Vec<u8>| Input::from_bytes(name, bytes.clone());
    [input("app.dat", &made.dat), input("app.trace", &made.trace)]
}

fn merged(made: &SimulatedFiles, options: &MergeOptions) -> Result<(MergeSummary, AlignedEdges), MergeError> {
    let mut aligned = AlignedEdges::default();
    let outcome = timeline::merge(&inputs(made), &mut aligned, options)?;
    Ok((outcome, aligned))
}

fn right_clock(era: Era) -> Clock {
    match era {
        Era::Dalvik => Clock::Realtime,
        Era::ArtMono | Era::Art14 => Clock::Monotonic,
        Era::ArtCounter => Clock::Counter,
    }
}

/// The median and the 99th percentile of the error of the enters and exits, ns; and the number of threads for
/// which no kernel thread was found.
fn errors(made: &SimulatedFiles, aligned: &AlignedEdges) -> (u64, u64, usize) {
    let mut apart = Vec::new();
    let mut unmatched = 0;
    for (index, thread) in &aligned.threads {
        let (tid, truth) = &made.truth[*index as usize];
        match thread.tid {
            Some(found) => assert_eq!(found.0, *tid, "{} is another thread", thread.name),
            None => unmatched += 1,
        }
        assert_eq!(aligned.edges[index].len(), truth.len());
        apart.extend(aligned.edges[index].iter().zip(truth).map(|(a, b)| a.abs_diff(*b)));
    }
    apart.sort_unstable();
    // A trace without records has no error.
    let at = |share: usize| apart.get(apart.len() * share / 100).copied().unwrap_or(0);
    (at(50), at(99), unmatched)
}

fn check(scenario: &Scenario) {
    let made = scenario.make();
    let (outcome, aligned) =
        merged(&made, &MergeOptions::default()).unwrap_or_else(|e| panic!("{e}\n{scenario:?}"));
    let about = &outcome.inputs[1];
    assert_eq!(
        about.clock,
        right_clock(scenario.era),
        "{}\n{scenario:?}",
        about.explain.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    );
    let (median, p99, unmatched) = errors(&made, &aligned);
    let explain = about.explain.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert!(median <= 20_000 && p99 <= 100_000, "{median} ns, {p99} ns\n{explain}\n{scenario:?}");
    assert_eq!(unmatched, 0, "{:?}\n{scenario:?}", outcome.report.notes);
    if scenario.markers {
        assert_eq!(about.verdict, Verdict::Proven, "{explain}");
    }
}

const ERAS: [Era; 4] = [Era::Dalvik, Era::ArtMono, Era::ArtCounter, Era::Art14];

#[test]
fn the_clock_of_each_runtime_is_found_and_each_call_gets_its_true_time() {
    for era in ERAS {
        check(&Scenario::new(1, era));
    }
}

#[test]
fn without_markers_clock_and_threads_are_found_by_the_times_off_the_cpu() {
    for era in ERAS {
        check(&Scenario { markers: false, ..Scenario::new(2, era) });
    }
}

#[test]
fn calls_after_a_suspend_within_the_trace_get_their_true_time() {
    let suspend = Some((START + 900_000_000, 7_000_000_000));
    for markers in [true, false] {
        let scenario = Scenario { suspend, length: 9_500_000_000, markers, ..Scenario::new(3, Era::ArtMono) };
        check(&scenario);
    }
}

#[test]
fn setting_the_wall_clock_within_the_trace_does_not_move_calls() {
    for &by in &[-3_000_000_000, 40_000_000, 3_000_000_000, -40_000_000][..support::rounds(2, 4)] {
        check(&Scenario { step: Some((START + 700_000_000, by)), ..Scenario::new(4, Era::Dalvik) });
    }
}

#[test]
fn a_counter_frequency_that_the_runtime_measured_wrongly_is_corrected() {
    for &ppm in &[-300, 250, 40][..support::rounds(1, 3)] {
        for era in [Era::ArtCounter, Era::Art14] {
            check(&Scenario { hz_off_ppm: Some(ppm), ..Scenario::new(5, era) });
        }
    }
}

#[test]
fn the_wrong_clock_is_never_chosen_in_any_of_many_cases() {
    let mut refused = 0;
    let cases = support::rounds(40, 200);
    for seed in 1..=cases {
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
            Ok((outcome, aligned)) => {
                let about = &outcome.inputs[1];
                // Two clocks may show the same time. Either choice is right then if the times are right.
                let (median, p99, _) = errors(&made, &aligned);
                let right = about.clock == right_clock(era) || median <= 20_000;
                let exact = median <= 20_000 && p99 <= 100_000;
                let why = &about.why;
                let explain = about.explain.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
                assert!(right && exact, "{median} {p99} {why}\n{explain}\n{scenario:?}");
            }
            Err(MergeError::Align(error)) => {
                refused += 1;
                assert!(!scenario.markers, "{error}\n{scenario:?}");
            }
            Err(error) => panic!("{error}\n{scenario:?}"),
        }
    }
    assert!(refused * 5 <= cases, "{refused} of {cases} cases were not decided");
}

#[test]
fn drift_is_corrected_without_markers_by_the_times_off_the_cpu() {
    for &(seed, ppm) in &[(22, -180), (23, 60), (21, 180), (24, -25)][..support::rounds(2, 4)] {
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

/// Asserts that the alignment is right, refused, or reported as assumed. Returns the message.
fn is_doubted(scenario: &Scenario) -> String {
    let made = scenario.make();
    match merged(&made, &MergeOptions::default()) {
        Err(MergeError::Align(error)) => error.to_string(),
        Err(error) => panic!("{error}\n{scenario:?}"),
        Ok((outcome, aligned)) => {
            let (median, ..) = errors(&made, &aligned);
            let about = &outcome.inputs[1];
            let explain = about.explain.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            let right = median <= 20_000;
            assert!(
                right || about.verdict == Verdict::Assumed,
                "{median} ns, yet {:?}: {}\n{explain}",
                about.verdict,
                about.why
            );
            about.why.to_string()
        }
    }
}

#[test]
fn markers_that_would_fit_anywhere_prove_nothing() {
    // The snapshots lack the true clock. By another clock the trace also begins within the recording, and a
    // marker is near any time.
    let all = [(34, 16_666_667), (35, 1_000_000), (31, 20_000), (32, 50_000), (33, 100_000)];
    for &(seed, period) in &all[..support::rounds(2, 5)] {
        let hidden = Scenario {
            counter_hidden: true,
            counter_ahead: 0,
            suspended: 312_345_678,
            period: Some(period),
            threads: 2,
            ..Scenario::new(seed, Era::ArtCounter)
        };
        is_doubted(&hidden);
        // With the true clock in the snapshots the alignment is right or doubted too.
        is_doubted(&Scenario { counter_hidden: false, ..hidden });
    }
}

#[test]
fn a_clock_that_cannot_be_tried_is_not_replaced_by_another_with_confidence() {
    for seed in 41..=support::rounds(45, 60) {
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
fn a_trace_of_a_few_calls_is_aligned_rightly_or_reported_as_doubtful() {
    for seed in 61..=support::rounds(70, 100) {
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
