//! The times of markers in rings: programs stamp them with the CPU's counter, the recording has a clock of
//! its own. Each round of the drain reads both at once, and a marker's time lies between two such readings.

use std::collections::VecDeque;

use nix::time::ClockId;

use crate::clock::{Clock, Timestamp};
use crate::counter;
use crate::markers::internals::ring::Stamp;
use crate::record::Tracefs;
use crate::record::clocks::{now_ts, posix_ns};

/// Readings that are kept: more than a marker waits for a thread that was interrupted while it wrote one.
const MAX_READINGS: usize = 4096;
/// Attempts to read both clocks; the shortest one counts.
const ATTEMPTS: usize = 5;

/// Converts the times of markers.
#[derive(Debug)]
pub(super) struct RingTimes {
    pub(super) stamp: Stamp,
    source: TraceTime,
    /// Readings of the stamp's clock, in its own unit, and of the recording's, oldest first.
    readings: VecDeque<(u64, Timestamp)>,
    /// The last reading of `CLOCK_BOOTTIME`, ns, and of the stamp's clock.
    boottime: (u64, u64),
}

/// Converts `CLOCK_BOOTTIME`, ns, to the clock of the stamps, for programs that cannot read the CPU's
/// counter: on the line through two readings of both.
#[derive(Debug, Clone, Copy)]
pub(super) struct BoottimeLine([(u64, u64); 2]);

impl BoottimeLine {
    pub(super) fn stamp(self, ns: u64) -> u64 {
        let BoottimeLine([(ns0, stamp0), (ns1, stamp1)]) = self;
        let between = i128::from(ns1.saturating_sub(ns0)).max(1);
        let ticks = i128::from(stamp1.saturating_sub(stamp0));
        // A hostile program may claim any time.
        let since = (i128::from(ns) - i128::from(ns0)).saturating_mul(ticks) / between;
        u64::try_from(i128::from(stamp0) + since).unwrap_or(0)
    }
}

/// Reads the clock of the stamps.
pub(super) fn now(stamp: Stamp) -> u64 {
    match stamp {
        Stamp::Counter => counter::ticks().unwrap_or(0),
        Stamp::Boottime => posix_ns(ClockId::CLOCK_BOOTTIME),
    }
}

/// How the recording's clock is read.
#[derive(Debug, Clone, Copy)]
enum TraceTime {
    Posix(ClockId),
    /// The recording's clock is the CPU's counter itself.
    Counter,
    /// A clock that only the kernel reads, as its distance from `CLOCK_MONOTONIC_RAW`, ns.
    Distance(i64),
}

impl TraceTime {
    /// `None` for a clock that does not count time.
    fn from_clock(clock: Clock, tracefs: &Tracefs) -> Option<TraceTime> {
        Some(match clock {
            Clock::Boottime => TraceTime::Posix(ClockId::CLOCK_BOOTTIME),
            Clock::Monotonic => TraceTime::Posix(ClockId::CLOCK_MONOTONIC),
            Clock::MonotonicRaw => TraceTime::Posix(ClockId::CLOCK_MONOTONIC_RAW),
            Clock::Counter => counter::ticks().map(|_| TraceTime::Counter)?,
            Clock::TraceCounter | Clock::Unknown | Clock::Realtime => return None,
            _ => TraceTime::Distance(distance(tracefs)?),
        })
    }

    fn now(self) -> Timestamp {
        Timestamp(match self {
            TraceTime::Posix(id) => posix_ns(id),
            TraceTime::Counter => counter::ticks().unwrap_or(0),
            TraceTime::Distance(ns) => posix_ns(ClockId::CLOCK_MONOTONIC_RAW).wrapping_add_signed(ns),
        })
    }
}

/// The distance of the trace clock from `CLOCK_MONOTONIC_RAW`, by tracefs's `now ts`, which is in whole µs.
fn distance(tracefs: &Tracefs) -> Option<i64> {
    let once = || {
        let before = posix_ns(ClockId::CLOCK_MONOTONIC_RAW);
        let now = now_ts(tracefs)?;
        let took = posix_ns(ClockId::CLOCK_MONOTONIC_RAW) - before;
        // The kernel cuts the time to µs: on average half a one.
        Some((took, (now.0 + 500).wrapping_sub(before + took / 2).cast_signed()))
    };
    (0..ATTEMPTS).filter_map(|_| once()).min_by_key(|(took, _)| *took).map(|(_, distance)| distance)
}

impl RingTimes {
    /// Begins with a first reading. `None` where markers cannot get a time in `clock`.
    pub(super) fn begin(clock: Clock, tracefs: &Tracefs) -> Option<RingTimes> {
        let stamp = if counter::is_one_clock() { Stamp::Counter } else { Stamp::Boottime };
        let source = TraceTime::from_clock(clock, tracefs)?;
        let mut times = RingTimes { stamp, source, readings: VecDeque::new(), boottime: (0, 0) };
        times.boottime = times.read_boottime();
        times.read();
        Some(times)
    }

    fn now(&self) -> u64 {
        now(self.stamp)
    }

    fn read_boottime(&self) -> (u64, u64) {
        let once = || {
            let before = self.now();
            let ns = posix_ns(ClockId::CLOCK_BOOTTIME);
            let took = self.now().saturating_sub(before);
            (took, (ns, before + took / 2))
        };
        (1..ATTEMPTS).map(|_| once()).fold(once(), |a, b| if b.0 < a.0 { b } else { a }).1
    }

    /// Reads `CLOCK_BOOTTIME`. `None` where it is the clock of the stamps itself.
    pub(super) fn boottime(&mut self) -> Option<BoottimeLine> {
        let now = self.read_boottime();
        let before = std::mem::replace(&mut self.boottime, now);
        (self.stamp != Stamp::Boottime).then_some(BoottimeLine([before, now]))
    }

    /// Reads both clocks. Returns the reading of the stamp's clock.
    pub(super) fn read(&mut self) -> u64 {
        let once = || {
            let before = self.now();
            let time = self.source.now();
            let took = self.now().saturating_sub(before);
            (took, (before + took / 2, time))
        };
        let first = once();
        let (_, reading) = (1..ATTEMPTS).map(|_| once()).fold(first, |a, b| if b.0 < a.0 { b } else { a });
        let (stamp, time) = reading;
        self.add(stamp, time);
        stamp
    }

    fn add(&mut self, stamp: u64, time: Timestamp) {
        // A clock that was set back, or stood still, gives no line to convert by.
        if self.readings.back().is_some_and(|last| stamp <= last.0 || time < last.1) {
            return;
        }
        if self.readings.len() >= MAX_READINGS {
            self.readings.pop_front();
        }
        self.readings.push_back((stamp, time));
    }

    /// The time in the recording's clock of a reading of the stamp's clock: on the line through the
    /// readings around it, or through the nearest two.
    pub(super) fn convert(&self, stamp: u64) -> Timestamp {
        let readings = &self.readings;
        let after = readings.partition_point(|(reading, _)| *reading <= stamp);
        let first = after.saturating_sub(1).min(readings.len().saturating_sub(2));
        match (readings.get(first), readings.get(first + 1)) {
            (Some((s0, t0)), Some((s1, t1))) => {
                let share =
                    (i128::from(stamp) - i128::from(*s0)) * i128::from(*t1 - *t0) / i128::from(s1 - s0);
                Timestamp(u64::try_from(i128::from(t0.0) + share).unwrap_or(0))
            }
            (Some((_, time)), None) => *time,
            _ => Timestamp::MIN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boottime_becomes_a_stamp_before_between_and_behind_the_readings() {
        let line = BoottimeLine([(1_000, 70_000), (2_000, 73_000)]);
        assert_eq!(
            [900, 1_000, 1_500, 2_000, 2_100].map(|ns| line.stamp(ns)),
            [69_700, 70_000, 71_500, 73_000, 73_300]
        );
        // Two readings of one moment make no line, and a claim of a hostile program no overflow.
        assert_eq!(BoottimeLine([(1_000, 70_000); 2]).stamp(1_500), 70_000);
        assert_eq!([0, u64::MAX].map(|ns| BoottimeLine([(1_000, 10), (2_000, u64::MAX)]).stamp(ns)), [0, 0]);
    }

    #[test]
    fn a_time_lies_on_the_line_between_the_readings_around_it() {
        let mut times = RingTimes {
            stamp: Stamp::Counter,
            source: TraceTime::Counter,
            readings: VecDeque::from([(1_000, Timestamp(50_000))]),
            boottime: (0, 0),
        };
        assert_eq!(times.convert(5), Timestamp(50_000));
        times.add(2_000, Timestamp(60_000));
        times.add(4_000, Timestamp(90_000));
        // Neither a reading of the same moment nor an older one makes a line.
        times.add(4_000, Timestamp(95_000));
        times.add(3_000, Timestamp(99_000));
        let of = |stamps: &[u64]| stamps.iter().map(|s| times.convert(*s).0).collect::<Vec<_>>();
        assert_eq!(of(&[1_000, 1_500, 2_000, 3_000, 4_000]), [50_000, 55_000, 60_000, 75_000, 90_000]);
        assert_eq!(of(&[0, 900, 4_010]), [40_000, 49_000, 90_150]);
    }
}
