//! Clocks: readings that carry their clock, snapshots of several clocks taken back to back, and the
//! conversion between clocks that such snapshots allow. And [`Timestamp`], the type of a point in time.
//!
//! All readings are in nanoseconds, except [`Clock::Counter`], which is in ticks of the CPU's counter. A
//! reading of a clock that is chosen at run time is therefore a number; a point in time that is known to be
//! ns is a [`Timestamp`].

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// A point in time, ns on one clock. The struct or the function that has it says which clock that is; without
/// a word it is the clock of the recording, and behind the merge the clock of the timeline.
///
/// A length of time is a number of ns (`u64`), so that it cannot stand where a point is meant: two points
/// make a length, a point and a length make a point, and two points cannot be added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
#[repr(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The begin of the clock.
    pub const MIN: Timestamp = Timestamp(0);
    /// The last moment that can be told. Stands for "without an end" where a limit is asked for.
    pub const MAX: Timestamp = Timestamp(u64::MAX);

    /// The ns from `earlier` to this point; 0 where `earlier` is not earlier.
    #[inline]
    pub const fn since(self, earlier: Timestamp) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The ns from `earlier` to this point; `None` where `earlier` is later.
    #[inline]
    pub const fn checked_since(self, earlier: Timestamp) -> Option<u64> {
        self.0.checked_sub(earlier.0)
    }

    /// The ns between the two points, whichever is earlier.
    #[inline]
    pub const fn abs_diff(self, other: Timestamp) -> u64 {
        self.0.abs_diff(other.0)
    }

    /// The ns from `other` to this point, below 0 where `other` is later, modulo 2^64.
    #[inline]
    pub const fn wrapping_since(self, other: Timestamp) -> i64 {
        self.0.wrapping_sub(other.0).cast_signed()
    }

    /// Whether it is not a whole number of µs, so that a format whose times are in µs cannot hold it.
    #[inline]
    pub const fn is_finer_than_us(self) -> bool {
        !self.0.is_multiple_of(1_000)
    }

    /// The point in the middle between the two; the earlier one of two such points.
    #[inline]
    pub const fn midpoint(self, other: Timestamp) -> Timestamp {
        Timestamp(self.0.midpoint(other.0))
    }

    /// The point `ns` later, or the last one of the clock.
    #[inline]
    pub const fn saturating_add(self, ns: u64) -> Timestamp {
        Timestamp(self.0.saturating_add(ns))
    }

    /// The point `ns` earlier, or the first one of the clock.
    #[inline]
    pub const fn saturating_sub(self, ns: u64) -> Timestamp {
        Timestamp(self.0.saturating_sub(ns))
    }

    /// The point `ns` later; `None` behind the last one of the clock.
    #[inline]
    pub const fn checked_add(self, ns: u64) -> Option<Timestamp> {
        match self.0.checked_add(ns) {
            Some(ns) => Some(Timestamp(ns)),
            None => None,
        }
    }

    /// The point `ns` earlier; `None` before the first one of the clock.
    #[inline]
    pub const fn checked_sub(self, ns: u64) -> Option<Timestamp> {
        match self.0.checked_sub(ns) {
            Some(ns) => Some(Timestamp(ns)),
            None => None,
        }
    }

    /// The point `ns` later, modulo 2^64: damaged data may hold any length.
    #[inline]
    pub const fn wrapping_add(self, ns: u64) -> Timestamp {
        Timestamp(self.0.wrapping_add(ns))
    }

    /// The point `ns` later, or earlier where it is below 0; at most the first or the last one of the clock.
    #[inline]
    pub const fn saturating_add_signed(self, ns: i64) -> Timestamp {
        Timestamp(self.0.saturating_add_signed(ns))
    }

    /// The point `ns` later, or earlier where it is below 0; `None` outside of the clock.
    #[inline]
    pub const fn checked_add_signed(self, ns: i64) -> Option<Timestamp> {
        match self.0.checked_add_signed(ns) {
            Some(ns) => Some(Timestamp(ns)),
            None => None,
        }
    }

    /// The point `ns` later, or earlier where it is below 0, modulo 2^64.
    #[inline]
    pub const fn wrapping_add_signed(self, ns: i64) -> Timestamp {
        Timestamp(self.0.wrapping_add_signed(ns))
    }
}

/// The length between two points, ns. The right one must not be later.
impl Sub for Timestamp {
    type Output = u64;

    #[inline]
    fn sub(self, earlier: Timestamp) -> u64 {
        self.0 - earlier.0
    }
}

impl Sub<u64> for Timestamp {
    type Output = Timestamp;

    #[inline]
    fn sub(self, ns: u64) -> Timestamp {
        Timestamp(self.0 - ns)
    }
}

impl Add<u64> for Timestamp {
    type Output = Timestamp;

    #[inline]
    fn add(self, ns: u64) -> Timestamp {
        Timestamp(self.0 + ns)
    }
}

impl AddAssign<u64> for Timestamp {
    #[inline]
    fn add_assign(&mut self, ns: u64) {
        self.0 += ns;
    }
}

/// Printed as the number of ns.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A clock that gives the times of a recording.
///
/// The names are the kernel's (`clock_gettime(2)` and Documentation/trace/ftrace.rst, "trace_clock").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

    #[test]
    fn points_and_lengths_compute_as_numbers_do() {
        let early = Timestamp(5);
        let late = Timestamp(8);
        assert_eq!((late - early, late.since(early), early.since(late)), (3, 3, 0));
        assert_eq!((late.checked_since(early), early.checked_since(late)), (Some(3), None));
        assert_eq!((early.abs_diff(late), late.abs_diff(early)), (3, 3));
        assert_eq!((late.wrapping_since(early), early.wrapping_since(late)), (3, -3));
        assert_eq!((early + 3, late - 3, early.midpoint(late)), (late, early, Timestamp(6)));
        assert_eq!(
            (late.saturating_sub(9), Timestamp::MAX.saturating_add(1)),
            (Timestamp::MIN, Timestamp::MAX)
        );
        assert_eq!((late.checked_sub(9), Timestamp::MAX.checked_add(1)), (None, None));
        assert_eq!((Timestamp::MAX.wrapping_add(6), late.wrapping_add_signed(-9)), (early, Timestamp::MAX));
        assert_eq!((late.checked_add_signed(-3), late.checked_add_signed(-9)), (Some(early), None));
        assert_eq!(late.saturating_add_signed(-9), Timestamp::MIN);
        assert_eq!(
            [0, 999, 1_000, 1_001].map(|ns| Timestamp(ns).is_finer_than_us()),
            [false, true, false, true]
        );
    }

    #[test]
    fn a_point_is_written_and_read_as_its_number() {
        let point = Timestamp(1_700_000_000_123_456_789);
        assert_eq!(serde_json::to_string(&point).unwrap(), "1700000000123456789");
        assert_eq!(serde_json::from_str::<Timestamp>("1700000000123456789").unwrap(), point);
        assert_eq!((point.to_string(), format!("{:>3}", Timestamp(7))), (point.0.to_string(), "  7".into()));
    }

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
