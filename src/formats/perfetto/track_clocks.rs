//! The clocks of packets' timestamps.
//!
//! A packet names the clock of its timestamp, or has the clock that its sequence's defaults name, or
//! BOOTTIME. Clocks 1 to 63 are the machine's. Clocks from 64 on are the writer's own: those below 128 belong
//! to one packet sequence. A `ClockSnapshot` relates such a clock to a clock of the machine, and says whether
//! its timestamps are differences, each to the one before (clock_snapshot.proto).

use std::collections::HashMap;

use super::fields::{builtin_clock, clock_snapshot, clock_snapshot_clock};
use super::wire::read::{WireValue, fields};
use crate::clock::{Clock, Snapshots, Timestamp};

/// The first clock that is a writer's own.
pub(super) const FIRST_CUSTOM_CLOCK: u64 = 64;
/// The first of a writer's own clocks that are the same in all packet sequences.
const FIRST_GLOBAL_CLOCK: u64 = 128;

/// The clock of the machine with this id in the enum `BuiltinClock`; `None` for ids without a clock here.
pub(super) fn machine_clock(id: u64) -> Option<Clock> {
    // The coarse clocks read the same time as the others, with less precision.
    const REALTIME_COARSE: u64 = 2;
    const MONOTONIC_COARSE: u64 = 4;
    match id {
        builtin_clock::REALTIME | REALTIME_COARSE => Some(Clock::Realtime),
        builtin_clock::MONOTONIC | MONOTONIC_COARSE => Some(Clock::Monotonic),
        builtin_clock::MONOTONIC_RAW => Some(Clock::MonotonicRaw),
        builtin_clock::BOOTTIME => Some(Clock::Boottime),
        _ => None,
    }
}

/// A reading of a clock of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MachineTime {
    /// The clock: a value of the enum `BuiltinClock`.
    pub(super) clock: u64,
    pub(super) ns: u64,
}

/// Converts readings of the machine's clocks to the clock of the recording.
pub(super) struct MachineClocks {
    head: Clock,
    /// For each clock that the snapshots relate to the recording's: pairs of readings, sorted.
    pairs: HashMap<Clock, Vec<(u64, u64)>>,
    /// The number of timestamps of each clock that nothing relates to the recording's clock.
    pub(super) unrelated: HashMap<u64, u64>,
}

impl MachineClocks {
    pub(super) fn new(head: Clock, snapshots: &Snapshots) -> MachineClocks {
        let mut pairs = HashMap::new();
        for clock in [Clock::Realtime, Clock::Monotonic, Clock::MonotonicRaw, Clock::Boottime] {
            let reading = |s: &crate::clock::Snapshot, clock| {
                s.get(clock, snapshots.ftrace_clock).filter(|reading| *reading > 0)
            };
            let both = snapshots.list.iter().filter_map(|s| Some((reading(s, clock)?, reading(s, head)?)));
            let mut list: Vec<(u64, u64)> = both.collect();
            list.sort_unstable();
            list.dedup_by_key(|pair| pair.0);
            pairs.insert(clock, list);
        }
        MachineClocks { head, pairs, unrelated: HashMap::new() }
    }

    /// The time in the recording's clock at `time` of a clock of the machine. Between two snapshots
    /// both clocks are taken to run evenly. Where no snapshot relates the clocks, the reading is taken as it
    /// is.
    pub(super) fn convert(&mut self, time: MachineTime) -> Timestamp {
        let ts = time.ns;
        let clock = machine_clock(time.clock);
        if clock == Some(self.head) {
            return Timestamp(ts);
        }
        let pairs = clock.and_then(|clock| self.pairs.get(&clock)).map_or(&[][..], Vec::as_slice);
        let after = pairs.partition_point(|(from, _)| *from <= ts);
        let moved = |(from, to): (u64, u64)| (i128::from(ts) - i128::from(from)) + i128::from(to);
        let before = after.checked_sub(1).and_then(|n| pairs.get(n)).copied();
        let converted = match (before, pairs.get(after).copied()) {
            (Some((x0, y0)), Some((x1, y1))) => {
                let share =
                    i128::from(ts - x0) * (i128::from(y1) - i128::from(y0)) / i128::from(x1 - x0).max(1);
                i128::from(y0) + share
            }
            (Some(pair), None) | (None, Some(pair)) => moved(pair),
            (None, None) => {
                *self.unrelated.entry(time.clock).or_default() += 1;
                return Timestamp(ts);
            }
        };
        Timestamp(u64::try_from(converted.max(0)).unwrap_or(u64::MAX))
    }
}

/// A writer's own clock.
#[derive(Clone, Copy)]
struct CustomClock {
    /// A reading of this clock, ns, and the reading of a clock of the machine at the same moment, ns.
    own: u64,
    base: u64,
    /// The clock of `base`.
    base_id: u64,
    /// The last reading, ns, where timestamps are differences.
    last: Option<u64>,
    /// One unit of the timestamps, ns.
    unit: u64,
}

/// The writers' own clocks: by packet sequence (0 for clocks of all sequences) and id.
#[derive(Default)]
pub(super) struct CustomClocks(HashMap<(u64, u64), CustomClock>);

fn key(sequence: u64, id: u64) -> (u64, u64) {
    if id < FIRST_GLOBAL_CLOCK { (sequence, id) } else { (0, id) }
}

impl CustomClocks {
    /// Reads a `ClockSnapshot` of a packet sequence.
    pub(super) fn learn(&mut self, sequence: u64, snapshot: &[u8]) {
        let mut base: Option<(u64, u64)> = None;
        let mut custom: Vec<(u64, u64, bool, u64)> = Vec::new();
        for (_, clock) in fields(snapshot).filter(|(n, _)| *n == clock_snapshot::CLOCKS) {
            let mut id = 0;
            let mut reading = 0u64;
            let mut is_incremental = false;
            let mut unit = 1;
            for (number, value) in fields(clock.bytes()) {
                match number {
                    clock_snapshot_clock::CLOCK_ID => id = value.number(),
                    clock_snapshot_clock::TIMESTAMP => reading = value.number(),
                    clock_snapshot_clock::IS_INCREMENTAL => is_incremental = value.number() != 0,
                    clock_snapshot_clock::UNIT_MULTIPLIER_NS => unit = value.number().max(1),
                    _ => {}
                }
            }
            if id >= FIRST_CUSTOM_CLOCK {
                custom.push((id, reading, is_incremental, unit));
            } else if machine_clock(id).is_some()
                && (base.is_none_or(|(known, _)| known != builtin_clock::BOOTTIME))
                && (base.is_none() || id == builtin_clock::BOOTTIME || id == builtin_clock::MONOTONIC)
            {
                base = Some((id, reading));
            }
        }
        let Some((base_id, base)) = base else { return };
        for (id, reading, is_incremental, unit) in custom {
            let own = reading.saturating_mul(unit);
            let clock = CustomClock { own, base, base_id, last: is_incremental.then_some(own), unit };
            self.0.insert(key(sequence, id), clock);
        }
    }

    /// The time for the timestamp of a packet, which is a reading of a clock of the machine or of the writer.
    pub(super) fn packet_time(&mut self, sequence: u64, id: u64, reading: u64) -> Option<MachineTime> {
        if id < FIRST_CUSTOM_CLOCK {
            Some(MachineTime { clock: id, ns: reading })
        } else {
            self.machine_time(sequence, id, reading)
        }
    }

    /// The time for the timestamp of a packet. `None` if no snapshot has introduced the clock. Must be called
    /// once for each timestamp, in order.
    fn machine_time(&mut self, sequence: u64, id: u64, reading: u64) -> Option<MachineTime> {
        let clock = self.0.get_mut(&key(sequence, id))?;
        let ticks = reading.saturating_mul(clock.unit);
        let own = match &mut clock.last {
            Some(last) => {
                *last = last.wrapping_add(ticks);
                *last
            }
            None => ticks,
        };
        let ns = clock.base.wrapping_add(own.wrapping_sub(clock.own));
        Some(MachineTime { clock: clock.base_id, ns })
    }
}

/// The value of field `number` of a message as a number.
pub(super) fn number(message: &[u8], field: u32) -> Option<u64> {
    super::wire::read::last_value(message, field).map(WireValue::number)
}

#[cfg(test)]
mod tests {
    use super::super::wire::write::{message, uint};
    use super::*;
    use crate::clock::Snapshot;

    fn snapshots(pairs: &[(u64, u64)]) -> Snapshots {
        let snapshot = |(monotonic, boottime): &(u64, u64)| Snapshot {
            monotonic: *monotonic,
            boottime: *boottime,
            ..Snapshot::default()
        };
        Snapshots { list: pairs.iter().map(snapshot).collect(), ..Snapshots::default() }
    }

    #[test]
    fn a_clock_of_the_machine_runs_evenly_between_two_snapshots_and_on_behind_them() {
        let mut clocks = MachineClocks::new(Clock::Boottime, &snapshots(&[(100, 1_000), (200, 1_300)]));
        let at = |clocks: &mut MachineClocks, ns| {
            clocks.convert(MachineTime { clock: builtin_clock::MONOTONIC, ns }).0
        };
        assert_eq!([90, 100, 150, 200, 210].map(|ts| at(&mut clocks, ts)), [990, 1_000, 1_150, 1_300, 1_310]);
        let own = MachineTime { clock: builtin_clock::BOOTTIME, ns: 7 };
        assert_eq!(clocks.convert(own), Timestamp(7), "the recording's own clock");
        assert!(clocks.unrelated.is_empty());
    }

    #[test]
    fn a_clock_that_no_snapshot_relates_is_taken_as_it_is_and_counted() {
        let mut clocks = MachineClocks::new(Clock::Boottime, &snapshots(&[(100, 1_000)]));
        for ns in [5, 6] {
            assert_eq!(clocks.convert(MachineTime { clock: builtin_clock::REALTIME, ns }), Timestamp(ns));
        }
        assert_eq!(clocks.unrelated.get(&builtin_clock::REALTIME), Some(&2));
    }

    /// A `ClockSnapshot` of BOOTTIME and of the clock `id`, whose unit is a microsecond.
    fn snapshot(boottime: u64, id: u64, reading: u64, is_incremental: bool) -> Vec<u8> {
        let mut out = Vec::new();
        message(&mut out, clock_snapshot::CLOCKS, |clock| {
            uint(clock, clock_snapshot_clock::CLOCK_ID, builtin_clock::BOOTTIME);
            uint(clock, clock_snapshot_clock::TIMESTAMP, boottime);
        });
        message(&mut out, clock_snapshot::CLOCKS, |clock| {
            uint(clock, clock_snapshot_clock::CLOCK_ID, id);
            uint(clock, clock_snapshot_clock::TIMESTAMP, reading);
            uint(clock, clock_snapshot_clock::IS_INCREMENTAL, is_incremental.into());
            uint(clock, clock_snapshot_clock::UNIT_MULTIPLIER_NS, 1_000);
        });
        out
    }

    fn boottime(ns: u64) -> Option<MachineTime> {
        Some(MachineTime { clock: builtin_clock::BOOTTIME, ns })
    }

    #[test]
    fn a_clock_of_differences_adds_them_up() {
        let mut clocks = CustomClocks::default();
        clocks.learn(1, &snapshot(50_000, 64, 7, true));
        assert_eq!(clocks.machine_time(1, 64, 3), boottime(53_000));
        assert_eq!(clocks.machine_time(1, 64, 2), boottime(55_000));
        assert_eq!(clocks.machine_time(2, 64, 2), None, "the clock is another sequence's");
    }

    #[test]
    fn clocks_from_128_on_belong_to_all_sequences() {
        let mut clocks = CustomClocks::default();
        clocks.learn(1, &snapshot(50_000, 128, 7, false));
        assert_eq!(clocks.machine_time(2, 128, 9), boottime(52_000));
        assert_eq!(clocks.machine_time(3, 128, 8), boottime(51_000));
    }
}
