//! Reads the packets that relate the clocks of a machine to each other (clock_snapshot.proto). What they mean
//! for the clocks of one packet sequence is in `track_clocks.rs`.

use std::collections::HashMap;

use super::fields::{builtin_clock, clock_snapshot, clock_snapshot_clock};
use super::wire::read::{fields, last_value};
use crate::clock::Snapshot;

/// Reads a `ClockSnapshot`. Returns `None` unless the message has two of the kernel's four clocks at least; a
/// clock that it does not have reads 0.
pub(super) fn read_clock_snapshot(body: &[u8]) -> Option<Snapshot> {
    let clock = |message| {
        let id = last_value(message, clock_snapshot_clock::CLOCK_ID)?.number();
        Some((id, last_value(message, clock_snapshot_clock::TIMESTAMP)?.number()))
    };
    let clocks: HashMap<u64, u64> = fields(body)
        .filter(|(n, _)| *n == clock_snapshot::CLOCKS)
        .filter_map(|(_, message)| clock(message.bytes()))
        .collect();
    let reading = |id| clocks.get(&id).copied().unwrap_or(0);
    let snapshot = Snapshot {
        realtime: reading(builtin_clock::REALTIME),
        monotonic: reading(builtin_clock::MONOTONIC),
        monotonic_raw: reading(builtin_clock::MONOTONIC_RAW),
        boottime: reading(builtin_clock::BOOTTIME),
        counter: clocks.get(&builtin_clock::TSC).copied(),
        ftrace: None,
        took: 0,
    };
    let kernel = [snapshot.realtime, snapshot.monotonic, snapshot.monotonic_raw, snapshot.boottime];
    (kernel.iter().filter(|reading| **reading > 0).count() >= 2).then_some(snapshot)
}

#[cfg(test)]
mod tests {
    use super::super::wire::write::{message, uint};
    use super::*;

    fn clock(snapshot: &mut Vec<u8>, id: u64, reading: u64) {
        message(snapshot, clock_snapshot::CLOCKS, |clock| {
            uint(clock, clock_snapshot_clock::CLOCK_ID, id);
            uint(clock, clock_snapshot_clock::TIMESTAMP, reading);
        });
    }

    #[test]
    fn a_snapshot_has_two_clocks_of_the_kernel_at_least() {
        let mut one = Vec::new();
        clock(&mut one, builtin_clock::BOOTTIME, 70);
        clock(&mut one, 64, 5);
        assert_eq!(read_clock_snapshot(&one), None);
        let mut two = one.clone();
        clock(&mut two, builtin_clock::MONOTONIC, 50);
        clock(&mut two, builtin_clock::TSC, 9);
        let expected = Snapshot { boottime: 70, monotonic: 50, counter: Some(9), ..Snapshot::default() };
        assert_eq!(read_clock_snapshot(&two), Some(expected));
    }
}
