//! How the benches of single functions measure: CPU time of many calls, and medians of many rounds.

use nix::time::{ClockId, clock_gettime};

/// CPU time of a call, ns: what else the machine does costs time, but no CPU time of this thread.
pub fn ns_per_call(calls: u32, mut call: impl FnMut()) -> f64 {
    let cpu_ns = || {
        let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
        now.tv_sec() as f64 * 1e9 + now.tv_nsec() as f64
    };
    let start = cpu_ns();
    for _ in 0..calls {
        call();
    }
    (cpu_ns() - start) / f64::from(calls)
}

pub fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// The median of each round's ratio to the baseline of that round: what else the machine does hits both.
pub fn median_ratio(times: &[f64], baseline: &[f64]) -> f64 {
    median(times.iter().zip(baseline).map(|(a, b)| a / b).collect())
}
