//! Clocks: readings that carry their clock, snapshots of several clocks taken back to back, and the
//! conversion between clocks that such snapshots allow.
//!
//! All readings are in nanoseconds, except [`Clock::Counter`], which is in ticks of the CPU's counter.

use serde::{Deserialize, Serialize};

/// A clock that gives the times of a recording.
///
/// The names are the kernel's (`clock_gettime(2)` and Documentation/trace/ftrace.rst, "trace_clock").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// `CLOCK_REALTIME`: ns since 1970; steps when somebody sets it. Dalvik's method traces start in it.
    Realtime,
    /// `CLOCK_MONOTONIC`: ns since boot without suspend; ftrace `mono`. Most of ART's method traces start in
    /// it.
    Monotonic,
    /// `CLOCK_MONOTONIC_RAW`: not slewed by NTP; ftrace `mono_raw`.
    MonotonicRaw,
    /// `CLOCK_BOOTTIME`: ns since boot with suspend; ftrace `boot`. tracebridge and Perfetto record in it.
    Boottime,
    /// `CLOCK_TAI`: international atomic time, ns; ftrace `tai`.
    Tai,
    /// ftrace `local`: the scheduler's clock of each CPU, near-monotonic.
    TraceLocal,
    /// ftrace `global`: the scheduler's clock made monotonic across CPUs.
    TraceGlobal,
    /// ftrace `uptime`: the time since boot by the kernel's jiffies counter.
    TraceUptime,
    /// ftrace `perf`: the clock that the kernel's perf events use.
    TracePerf,
    /// ftrace `counter`: not a time, but a number that grows with each event.
    TraceCounter,
    /// The CPU's free-running counter in ticks: CNTVCT_EL0 on arm64, TSC on x86; ftrace `x86-tsc`.
    Counter,
    /// The recording does not name its clock, or names one that is not in this list.
    Unknown,
}

impl Clock {
    /// The clock behind a name as tracefs' `trace_clock` and trace.dat's TRACECLOCK option give it (without
    /// the brackets around the chosen one).
    pub fn from_trace_clock(name: &str) -> Clock {
        match name {
            "boot" => Clock::Boottime,
            "mono" => Clock::Monotonic,
            "mono_raw" => Clock::MonotonicRaw,
            "tai" => Clock::Tai,
            "local" => Clock::TraceLocal,
            "global" => Clock::TraceGlobal,
            "uptime" => Clock::TraceUptime,
            "perf" => Clock::TracePerf,
            "counter" => Clock::TraceCounter,
            "x86-tsc" | "tsc2nsec" => Clock::Counter,
            _ => Clock::Unknown,
        }
    }

    /// The name that messages print and `--clock` takes; ftrace's own name where ftrace has this clock.
    pub fn name(self) -> &'static str {
        match self {
            Clock::Realtime => "realtime",
            Clock::Monotonic => "mono",
            Clock::MonotonicRaw => "mono_raw",
            Clock::Boottime => "boot",
            Clock::Tai => "tai",
            Clock::TraceLocal => "local",
            Clock::TraceGlobal => "global",
            Clock::TraceUptime => "uptime",
            Clock::TracePerf => "perf",
            Clock::TraceCounter => "counter",
            Clock::Counter => "cpu-counter",
            Clock::Unknown => "unknown",
        }
    }
}

impl std::fmt::Display for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Several clocks read back to back, so that one can be expressed in another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// `CLOCK_REALTIME`, ns.
    pub realtime: u64,
    /// `CLOCK_MONOTONIC`, ns.
    pub monotonic: u64,
    /// `CLOCK_MONOTONIC_RAW`, ns.
    pub monotonic_raw: u64,
    /// `CLOCK_BOOTTIME`, ns.
    pub boottime: u64,
    /// The CPU's counter, ticks; absent where user space may not read it.
    pub counter: Option<u64>,
    /// "now ts" of tracefs' `per_cpu/cpu0/stats` in ns (it is printed in µs), in the ftrace clock.
    pub ftrace: Option<u64>,
    /// The time that the slowest single reading took, ns. Each other clock was read within this time of
    /// [`Snapshot::monotonic`].
    pub took: u64,
}

/// The snapshots of one recording, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshots {
    /// Ticks a second of [`Snapshot::counter`], where known.
    pub counter_hz: Option<u64>,
    /// The clock of [`Snapshot::ftrace`]; `None` where it is not known.
    pub ftrace_clock: Option<Clock>,
    /// One entry for each moment at which the clocks were read.
    pub list: Vec<Snapshot>,
}

impl Snapshot {
    /// The snapshot's reading of `clock`; `None` where the snapshot does not hold this clock.
    /// `ftrace_clock` is the clock of [`Snapshot::ftrace`].
    pub fn get(&self, clock: Clock, ftrace_clock: Option<Clock>) -> Option<u64> {
        match clock {
            Clock::Realtime => Some(self.realtime),
            Clock::Monotonic => Some(self.monotonic),
            Clock::MonotonicRaw => Some(self.monotonic_raw),
            Clock::Boottime => Some(self.boottime),
            Clock::Counter => self.counter,
            other if Some(other) == ftrace_clock => self.ftrace,
            _ => None,
        }
    }
}

impl Snapshots {
    /// Expresses `t`, a reading of `from` (ns; ticks for [`Clock::Counter`]), in `to`.
    ///
    /// Between two snapshots the clocks are taken to drift evenly (linear interpolation); before the first
    /// and after the last they run at the same rate (the counter at `counter_hz`). `None` where the snapshots
    /// do not hold both clocks or the result leaves the clock's range.
    pub fn convert(&self, t: u64, from: Clock, to: Clock) -> Option<u64> {
        if from == to {
            return Some(t);
        }
        let mut before: Option<(u64, u64)> = None;
        let mut after: Option<(u64, u64)> = None;
        for s in &self.list {
            let (Some(f), Some(o)) = (s.get(from, self.ftrace_clock), s.get(to, self.ftrace_clock)) else {
                continue;
            };
            if f <= t {
                before = Some((f, o));
            } else if after.is_none() {
                after = Some((f, o));
            }
        }
        let out = match (before, after) {
            (Some((f0, o0)), Some((f1, o1))) if f1 > f0 => {
                let share = i128::from(t - f0) * (i128::from(o1) - i128::from(o0)) / i128::from(f1 - f0);
                i128::from(o0) + share
            }
            (Some((f, o)), _) | (None, Some((f, o))) => {
                let delta = i128::from(t) - i128::from(f);
                i128::from(o) + self.rescale(delta, from, to)?
            }
            (None, None) => return None,
        };
        u64::try_from(out).ok()
    }

    fn rescale(&self, delta: i128, from: Clock, to: Clock) -> Option<i128> {
        let hz = || self.counter_hz.filter(|hz| *hz > 0).map(i128::from);
        match (from == Clock::Counter, to == Clock::Counter) {
            (true, false) => Some(delta * 1_000_000_000 / hz()?),
            (false, true) => Some(delta * hz()? / 1_000_000_000),
            _ => Some(delta),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_with_suspend() -> Snapshots {
        let a = Snapshot { monotonic: 1_000, boottime: 5_000, counter: Some(100), ..Snapshot::default() };
        let b = Snapshot { monotonic: 2_000, boottime: 7_000, counter: Some(200), ..Snapshot::default() };
        Snapshots { counter_hz: Some(100_000_000), ftrace_clock: None, list: vec![a, b] }
    }

    #[test]
    fn outside_the_snapshots_clocks_run_at_one_rate() {
        let s = two_with_suspend();
        assert_eq!(s.convert(900, Clock::Monotonic, Clock::Boottime), Some(4_900));
        assert_eq!(s.convert(2_500, Clock::Monotonic, Clock::Boottime), Some(7_500));
    }

    #[test]
    fn between_two_snapshots_drift_is_even() {
        assert_eq!(two_with_suspend().convert(1_500, Clock::Monotonic, Clock::Boottime), Some(6_000));
    }

    #[test]
    fn counter_ticks_become_nanoseconds_by_their_frequency() {
        let s = two_with_suspend();
        assert_eq!(s.convert(300, Clock::Counter, Clock::Boottime), Some(8_000));
        assert_eq!(s.convert(8_000, Clock::Boottime, Clock::Counter), Some(300));
    }

    #[test]
    fn a_clock_that_no_snapshot_holds_cannot_be_converted() {
        assert_eq!(two_with_suspend().convert(1, Clock::Tai, Clock::Boottime), None);
        assert_eq!(Snapshots::default().convert(1, Clock::Realtime, Clock::Boottime), None);
    }
}
