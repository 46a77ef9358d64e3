//! Reads the machine's clocks, all as of one moment, beside tracefs' own "now ts".
#![allow(unsafe_code)] // The CPU's counter: one instruction each, and no safe wrapper in the standard library.

use nix::time::{ClockId, clock_gettime};

use super::Tracefs;
use crate::clock::{Clock, Snapshot, Snapshots};

/// Snapshots kept of one recording; beyond that, every second one between the first and the last is dropped.
const MOST: usize = 256;

/// The CPU's free-running counter, ticks.
#[cfg(target_arch = "aarch64")]
fn counter() -> Option<u64> {
    let ticks: u64;
    // SAFETY: CNTVCT_EL0 only reads the virtual counter. Linux enables it for user space on every arm64 (it is what
    // the vDSO's clock_gettime reads; where an erratum forbids it, the kernel traps and emulates the read).
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    Some(ticks)
}

/// Ticks a second of [`counter`].
#[cfg(target_arch = "aarch64")]
fn counter_hz() -> Option<u64> {
    let hz: u64;
    // SAFETY: CNTFRQ_EL0 only tells a frequency; readable from user space wherever CNTVCT_EL0 is.
    unsafe { std::arch::asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack)) };
    Some(hz).filter(|hz| *hz > 0)
}

#[cfg(target_arch = "x86_64")]
fn counter() -> Option<u64> {
    // SAFETY: RDTSC changes nothing; Linux leaves it allowed unless a process asked to be forbidden (PR_SET_TSC).
    Some(unsafe { std::arch::x86_64::_rdtsc() })
}

#[cfg(target_arch = "x86")]
fn counter() -> Option<u64> {
    // SAFETY: as on x86_64.
    Some(unsafe { std::arch::x86::_rdtsc() })
}

// 32-bit arm: the counter's instruction traps on kernels that do not offer it, and ART does not use it there.
#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64", target_arch = "x86")))]
fn counter() -> Option<u64> {
    None
}

/// Unknown: x86 tells no TSC frequency to user space that could be trusted; two snapshots give it.
#[cfg(not(target_arch = "aarch64"))]
fn counter_hz() -> Option<u64> {
    None
}

fn read(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}

/// `now ts` of a CPU's stats, ns in the ftrace clock (the kernel prints µs; a plain number under a clock that is no time).
fn now_ts(tracefs: &Tracefs) -> Option<u64> {
    let stats = tracefs.read("per_cpu/cpu0/stats").ok()?;
    let text = stats.lines().find_map(|l| l.strip_prefix("now ts:"))?.trim();
    let (seconds, micros) = text.split_once('.')?;
    Some(seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)? + micros.parse::<u64>().ok()? * 1000)
}

/// Tries for each clock; the shortest is kept, since the others were preempted or cold.
const TRIES: usize = 8;

/// A reading, and the moment of CLOCK_MONOTONIC that it is of: the middle of the two that enclose it.
struct Beside {
    value: u64,
    at: u64,
    took: u64,
}

impl Beside {
    fn monotonic(read_it: impl Fn() -> u64) -> Beside {
        let once = || {
            let before = read(ClockId::CLOCK_MONOTONIC);
            let value = read_it();
            let took = read(ClockId::CLOCK_MONOTONIC).saturating_sub(before);
            Beside { value, at: before + took / 2, took }
        };
        (1..TRIES).fold(once(), |best, _| Some(once()).filter(|b| b.took < best.took).unwrap_or(best))
    }

    /// The reading as it would have been at `monotonic`, a few µs away: no clock drifts from another in that time.
    fn when(&self, monotonic: u64) -> u64 {
        self.value.saturating_add(monotonic).saturating_sub(self.at)
    }
}

/// One snapshot, now.
///
/// Each clock is read between two readings of CLOCK_MONOTONIC. Reading them all in a row would put the time that the
/// readings themselves take (µs on a slow device) into what is converted with them.
pub fn snapshot(tracefs: &Tracefs) -> Snapshot {
    // Ticks cannot be moved to another moment without their frequency: the snapshot is of the counter's.
    let ticks = Beside::monotonic(|| counter().unwrap_or(0));
    let monotonic = ticks.at;
    let mut took = ticks.took;
    let mut clock = |id| {
        let beside = Beside::monotonic(|| read(id));
        took = took.max(beside.took);
        beside.when(monotonic)
    };
    let realtime = clock(ClockId::CLOCK_REALTIME);
    let monotonic_raw = clock(ClockId::CLOCK_MONOTONIC_RAW);
    let boottime = clock(ClockId::CLOCK_BOOTTIME);
    // Read last: it costs a file's open and is only good to a microsecond.
    let ftrace = now_ts(tracefs).map(|ts| {
        let late = read(ClockId::CLOCK_MONOTONIC).saturating_sub(monotonic);
        ts.saturating_sub(late)
    });
    Snapshot {
        realtime,
        monotonic,
        monotonic_raw,
        boottime,
        counter: counter().map(|_| ticks.value),
        ftrace,
        took,
    }
}

/// An empty list that knows what its snapshots are in.
pub fn begin(ftrace_clock: Clock) -> Snapshots {
    Snapshots { counter_hz: counter_hz(), ftrace_clock: Some(ftrace_clock), list: Vec::new() }
}

/// Adds a snapshot, thinning the list out when it gets long.
pub fn push(snapshots: &mut Snapshots, snapshot: Snapshot) {
    if snapshots.list.len() >= MOST {
        let mut index = 0;
        snapshots.list.retain(|_| {
            index += 1;
            index % 2 == 1
        });
    }
    snapshots.list.push(snapshot);
}
