//! Snapshots of the machine's clocks, all converted to one moment, together with the `now ts` of tracefs.

use nix::time::{ClockId, clock_gettime};

use super::Tracefs;
use crate::clock::{Clock, Snapshot, Snapshots, Timestamp};
use crate::counter;

/// Snapshots kept of one recording. When the list is full, every second snapshot is dropped.
const MAX_SNAPSHOTS: usize = 256;

/// The time of a POSIX clock, ns.
pub(super) fn posix_ns(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}

/// The `now ts` of CPU 0's `stats`: the ftrace clock in ns, with the kernel's resolution of 1 µs. `None`
/// under a trace clock that does not count time (the kernel then prints a plain number).
pub(super) fn now_ts(tracefs: &Tracefs) -> Option<Timestamp> {
    let stats = tracefs.read("per_cpu/cpu0/stats").ok()?;
    let text = stats.lines().find_map(|l| l.strip_prefix("now ts:"))?.trim();
    let (seconds, micros) = text.split_once('.')?;
    let ns = seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)? + micros.parse::<u64>().ok()? * 1000;
    Some(Timestamp(ns))
}

/// The time of the trace clock `clock`, at most a microsecond late. `None` under a trace clock that does
/// not count time.
pub(super) fn now(tracefs: &Tracefs, clock: Option<Clock>) -> Option<Timestamp> {
    let posix = match clock {
        Some(Clock::Boottime) => ClockId::CLOCK_BOOTTIME,
        Some(Clock::Monotonic) => ClockId::CLOCK_MONOTONIC,
        Some(Clock::MonotonicRaw) => ClockId::CLOCK_MONOTONIC_RAW,
        _ => return now_ts(tracefs),
    };
    Some(Timestamp(posix_ns(posix)))
}

/// Attempts to read each clock. The shortest attempt is kept: longer ones were preempted or missed the cache.
const READ_ATTEMPTS: usize = 8;

/// A clock's value between two readings of CLOCK_MONOTONIC.
struct BracketedReading {
    value: u64,
    /// The middle of the two readings of CLOCK_MONOTONIC, ns: the moment at which `value` was read.
    monotonic_ns: u64,
    /// The time between the two readings of CLOCK_MONOTONIC, ns.
    took_ns: u64,
}

impl BracketedReading {
    /// Reads a clock several times and returns the shortest attempt.
    fn shortest(read_clock: impl Fn() -> u64) -> BracketedReading {
        let once = || BracketedReading::once(&read_clock);
        (1..READ_ATTEMPTS)
            .fold(once(), |best, _| Some(once()).filter(|b| b.took_ns < best.took_ns).unwrap_or(best))
    }

    fn once(read_clock: impl FnOnce() -> u64) -> BracketedReading {
        let before = posix_ns(ClockId::CLOCK_MONOTONIC);
        let value = read_clock();
        let took_ns = posix_ns(ClockId::CLOCK_MONOTONIC).saturating_sub(before);
        BracketedReading { value, monotonic_ns: before + took_ns / 2, took_ns }
    }

    /// Reads the ftrace clock several times and returns the shortest attempt; `None` under a trace clock that
    /// does not count time. Reading it means opening a file, which takes some ten µs.
    fn of_ftrace(tracefs: &Tracefs) -> Option<BracketedReading> {
        let once = || {
            let mut read = None;
            let bracket = BracketedReading::once(|| {
                read = now_ts(tracefs);
                0
            });
            // The kernel cuts the time to µs: half of one is its mean.
            read.map(|ts| BracketedReading { value: ts.0 + 500, ..bracket })
        };
        (0..READ_ATTEMPTS).filter_map(|_| once()).min_by_key(|reading| reading.took_ns)
    }

    /// The clock's value at another moment of CLOCK_MONOTONIC. The moment is a few µs away, and in that time
    /// two clocks that count ns do not drift apart.
    fn value_at(&self, monotonic_ns: u64) -> u64 {
        self.value.saturating_add(monotonic_ns).saturating_sub(self.monotonic_ns)
    }
}

/// Reads all clocks now, and converts the readings to one moment.
///
/// Each clock is read between two readings of CLOCK_MONOTONIC. If the clocks were simply read one after
/// another, the time between the readings (µs on a slow device) would become an error in every conversion
/// from clock to clock.
pub(crate) fn snapshot(tracefs: &Tracefs) -> Snapshot {
    // The counter's frequency may be unknown, so its value cannot be converted to another moment: the
    // snapshot is as of the moment at which the counter was read.
    let ticks = BracketedReading::shortest(|| counter::ticks().unwrap_or(0));
    let monotonic = ticks.monotonic_ns;
    let mut took = ticks.took_ns;
    let mut clock = |id| {
        let reading = BracketedReading::shortest(|| posix_ns(id));
        took = took.max(reading.took_ns);
        reading.value_at(monotonic)
    };
    let realtime = clock(ClockId::CLOCK_REALTIME);
    let monotonic_raw = clock(ClockId::CLOCK_MONOTONIC_RAW);
    let boottime = clock(ClockId::CLOCK_BOOTTIME);
    let ftrace = BracketedReading::of_ftrace(tracefs).map(|reading| reading.value_at(monotonic));
    Snapshot {
        realtime,
        monotonic,
        monotonic_raw,
        boottime,
        counter: counter::ticks().map(|_| ticks.value),
        ftrace,
        took,
    }
}

/// An empty list of snapshots for a recording under this trace clock.
pub(crate) fn begin(ftrace_clock: Clock) -> Snapshots {
    Snapshots { counter_hz: counter::hz(), ftrace_clock: Some(ftrace_clock), list: Vec::new() }
}

/// Adds a snapshot. A list of [`MAX_SNAPSHOTS`] is halved first.
pub(crate) fn push(snapshots: &mut Snapshots, snapshot: Snapshot) {
    if snapshots.list.len() >= MAX_SNAPSHOTS {
        let mut index = 0;
        snapshots.list.retain(|_| {
            index += 1;
            index % 2 == 1
        });
    }
    snapshots.list.push(snapshot);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_converted_by_the_distance_of_the_two_moments() {
        let reading = BracketedReading { value: 1_000, monotonic_ns: 500, took_ns: 10 };
        assert_eq!(
            (reading.value_at(500), reading.value_at(700), reading.value_at(400)),
            (1_000, 1_200, 900)
        );
    }

    #[test]
    fn a_full_list_of_snapshots_keeps_its_first_and_its_newest() {
        let mut snapshots = begin(Clock::Boottime);
        for n in 0..=MAX_SNAPSHOTS as u64 {
            push(&mut snapshots, Snapshot { monotonic: n, ..Snapshot::default() });
        }
        let times: Vec<u64> = snapshots.list.iter().map(|s| s.monotonic).collect();
        assert_eq!(times.len(), MAX_SNAPSHOTS / 2 + 1);
        assert_eq!((times[0], times[1], times[times.len() - 1]), (0, 2, MAX_SNAPSHOTS as u64));
    }
}
