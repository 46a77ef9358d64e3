//! The times of records: ticks in the trace's two clocks, with the wraps of 32-bit microseconds undone.

/// A time in both clocks of a trace, in ticks since the trace's start: µs in versions 1 to 3, ns or µs in
/// versions 4 and 5 ([`super::Header::tick_ns`]). [`CPU`] and [`WALL`] are the indexes. A clock that the
/// trace does not have is 0.
pub type Ticks = [u64; 2];

/// The index of thread-CPU time in [`Ticks`].
pub const CPU: usize = 0;
/// The index of wall time in [`Ticks`].
pub const WALL: usize = 1;

/// A clock that steps back by more than this, µs (10 s), has wrapped its 32 bits. A smaller step back is an
/// irregularity.
const STEP_BACK_MAX_US: u32 = 10_000_000;

/// Undoes the wraps of 32-bit times. A trace of versions 1 to 3 writes µs in 32 bits, which are full after
/// 71.6 minutes.
#[derive(Debug, Clone)]
pub(crate) struct WrapCorrection {
    threads: Vec<ThreadTimes>,
    /// The full wall time of the previous record in the file, whatever its thread, µs.
    previous_wall_us: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct ThreadTimes {
    seen: bool,
    last: [u32; 2],
    /// The amount to add to a 32-bit time for the wraps so far: a multiple of 2^32 µs for each clock.
    wraps: Ticks,
}

impl WrapCorrection {
    /// A correction for this many threads, none of which has a record yet.
    pub(crate) fn new(threads: usize) -> WrapCorrection {
        WrapCorrection { threads: vec![ThreadTimes::default(); threads], previous_wall_us: 0 }
    }

    /// The full times, µs, of the thread's next record. `times` are their low 32 bits.
    #[inline]
    pub(crate) fn full_times(&mut self, thread: u32, times: [u32; 2]) -> Ticks {
        let Some(state) = self.threads.get_mut(thread as usize) else { return times.map(u64::from) };
        if !state.seen || times[CPU] < state.last[CPU] || times[WALL] < state.last[WALL] {
            state.step_back(times, self.previous_wall_us);
        }
        state.last = times;
        let full = [state.wraps[CPU] + u64::from(times[CPU]), state.wraps[WALL] + u64::from(times[WALL])];
        self.previous_wall_us = full[WALL];
        full
    }
}

impl ThreadTimes {
    /// Handles the thread's first record, and a record with a clock that stepped back, which may be a wrap.
    #[cold]
    fn step_back(&mut self, times: [u32; 2], previous_wall_us: u64) {
        if !std::mem::replace(&mut self.seen, true) {
            self.wraps[WALL] = wraps_nearest(times[WALL], previous_wall_us);
        }
        for clock in [CPU, WALL] {
            if self.last[clock].saturating_sub(times[clock]) > STEP_BACK_MAX_US {
                self.wraps[clock] += 1 << 32;
            }
        }
    }
}

/// The multiple of 2^32 µs that, added to `time_us`, gives the time closest to `near_us`.
fn wraps_nearest(time_us: u32, near_us: u64) -> u64 {
    let ahead = time_us.wrapping_sub(near_us as u32) as i32;
    near_us.checked_add_signed(i64::from(ahead)).map_or(0, |full| full - u64::from(time_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_falls_from_the_top_has_wrapped_and_a_small_step_back_has_not() {
        let mut times = WrapCorrection::new(1);
        assert_eq!(times.full_times(0, [5, u32::MAX - 10]), [5, u64::from(u32::MAX) - 10]);
        assert_eq!(times.full_times(0, [6, 20]), [6, (1 << 32) + 20]);
        assert_eq!(times.full_times(0, [4, 15]), [4, (1 << 32) + 15]);
        assert_eq!(times.full_times(0, [7, 30]), [7, (1 << 32) + 30]);
    }

    #[test]
    fn a_threads_first_record_lies_near_the_record_before_it_in_the_file() {
        let mut times = WrapCorrection::new(3);
        times.full_times(0, [0, u32::MAX - 10]);
        times.full_times(0, [0, 20]);
        assert_eq!(times.full_times(1, [0, 25])[WALL], (1 << 32) + 25, "after the wrap");
        assert_eq!(times.full_times(2, [0, u32::MAX])[WALL], u64::from(u32::MAX), "before the wrap");
    }

    #[test]
    fn an_unknown_thread_keeps_its_32_bits() {
        assert_eq!(WrapCorrection::new(0).full_times(7, [1, 2]), [1, 2]);
    }
}
