//! The relation between the boots of two recordings. BOOTTIME and MONOTONIC count from the boot, so that
//! times of two boots have nothing in common but CLOCK_REALTIME.

use crate::clock::Snapshots;

/// Differences of the wall time at boot up to this one, ns, are corrections of CLOCK_REALTIME in one boot:
/// the NTP daemon slews CLOCK_REALTIME up to 128 ms off.
const MAX_STEP_NS: i128 = 128_000_000;

/// CLOCK_REALTIME is slewed by so much at most: 500 ppm (`adjtimex`), as one part in so many.
const SLEW_PARTS: u64 = 2000;

/// The relation between the boots of two recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootRelation {
    /// One of the recordings has no snapshot with CLOCK_REALTIME and BOOTTIME.
    Unknown,
    /// CLOCK_REALTIME at boot is the same in both recordings.
    Same,
    /// CLOCK_REALTIME at boot differs.
    Other {
        /// The wall time at the recording's boot less that at the other recording's boot, ns.
        shift_ns: i64,
        /// The difference between the snapshots of one recording, ns.
        error_ns: u64,
    },
}

/// The relation of a recording with the snapshots `own` to a recording with the snapshots `reference`.
pub fn relation(own: &Snapshots, reference: &Snapshots) -> BootRelation {
    let (Some(own), Some(reference)) = (BootTime::new(own), BootTime::new(reference)) else {
        return BootRelation::Unknown;
    };
    let distance = (own.first - reference.last).max(reference.first - own.last);
    let slewed = own.boottime.abs_diff(reference.boottime) / SLEW_PARTS;
    if distance <= MAX_STEP_NS + i128::from(slewed) {
        return BootRelation::Same;
    }
    let clamp = |ns: i128| ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    let error = (own.last - own.first) + (reference.last - reference.first);
    BootRelation::Other {
        shift_ns: clamp(own.first - reference.first),
        error_ns: u64::try_from(error).unwrap_or(u64::MAX),
    }
}

/// CLOCK_REALTIME at boot by the snapshots of a recording.
struct BootTime {
    /// The earliest wall time at boot, ns.
    first: i128,
    /// The latest wall time at boot, ns.
    last: i128,
    /// A reading of BOOTTIME, ns.
    boottime: u64,
}

impl BootTime {
    fn new(snapshots: &Snapshots) -> Option<BootTime> {
        let whole = || snapshots.list.iter().filter(|s| s.realtime > 0 && s.boottime > 0);
        let at_boot = || whole().map(|s| i128::from(s.realtime) - i128::from(s.boottime));
        Some(BootTime { first: at_boot().min()?, last: at_boot().max()?, boottime: whole().next()?.boottime })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Snapshot;

    const SECOND: u64 = 1_000_000_000;

    fn snapshots(readings: &[(u64, u64)]) -> Snapshots {
        let list = readings.iter().map(|&(realtime, boottime)| Snapshot {
            realtime,
            boottime,
            ..Snapshot::default()
        });
        Snapshots { list: list.collect(), ..Snapshots::default() }
    }

    #[test]
    fn recordings_of_one_boot_agree_about_the_wall_time_at_boot() {
        let first = snapshots(&[(1_000 * SECOND, 10 * SECOND)]);
        let later = snapshots(&[(8_200 * SECOND + SECOND, 7_210 * SECOND)]);
        assert_eq!(relation(&later, &first), BootRelation::Same);
    }

    #[test]
    fn another_boot_is_related_by_the_wall_time() {
        let first = snapshots(&[(1_000 * SECOND, 500 * SECOND)]);
        let later = snapshots(&[(2_000 * SECOND, 20 * SECOND), (2_001 * SECOND + 7, 21 * SECOND)]);
        let shift_ns = 1_480 * SECOND as i64;
        assert_eq!(relation(&later, &first), BootRelation::Other { shift_ns, error_ns: 7 });
        assert_eq!(relation(&first, &later), BootRelation::Other { shift_ns: -shift_ns, error_ns: 7 });
    }

    #[test]
    fn without_the_wall_time_nothing_is_known() {
        let first = snapshots(&[(1_000 * SECOND, 500 * SECOND)]);
        assert_eq!(relation(&snapshots(&[(0, 500 * SECOND)]), &first), BootRelation::Unknown);
        assert_eq!(relation(&snapshots(&[]), &first), BootRelation::Unknown);
    }
}
