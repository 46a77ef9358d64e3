//! The two times of a record in the form that the flat profile calculates with: as two numbers of 64 bits, or
//! as the two halves of one. Records of versions 1 to 3 have 32 bits for each time, so that one addition or
//! subtraction serves both clocks.

use super::selection::ProfileSelection;
use crate::formats::art_method::{MethodTrace, Ticks};

/// Both times of a record, or both of a sum or a difference of times.
pub(in crate::profile) trait TimePair: Copy + Default {
    /// Takes over times in ticks.
    fn from_ticks(at: Ticks) -> Self;
    /// The times in ticks.
    fn ticks(self) -> Ticks;
    /// Whether this time is earlier than `other` in either clock.
    fn is_before(self, other: Self) -> bool;
    /// The sum in both clocks.
    fn plus(self, more: Self) -> Self;
    /// The difference in both clocks. It has no meaning where this time is earlier.
    fn minus(self, earlier: Self) -> Self;
    /// The bits that `mask` has.
    fn masked(self, mask: u64) -> Self;
}

impl TimePair for Ticks {
    #[inline(always)]
    fn from_ticks(at: Ticks) -> Ticks {
        at
    }

    #[inline(always)]
    fn ticks(self) -> Ticks {
        self
    }

    #[inline(always)]
    fn is_before(self, other: Ticks) -> bool {
        self[0] < other[0] || self[1] < other[1]
    }

    #[inline(always)]
    fn plus(self, more: Ticks) -> Ticks {
        [self[0].wrapping_add(more[0]), self[1].wrapping_add(more[1])]
    }

    #[inline(always)]
    fn minus(self, earlier: Ticks) -> Ticks {
        [self[0].wrapping_sub(earlier[0]), self[1].wrapping_sub(earlier[1])]
    }

    #[inline(always)]
    fn masked(self, mask: u64) -> Ticks {
        [self[0] & mask, self[1] & mask]
    }
}

/// Two times below 2^32 ticks in one number: the first in the low half, the second in the high half.
///
/// No half overflows into the other: a time is subtracted from a later one, and what is summed are the times
/// of calls that follow each other within one call.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::profile) struct PackedTicks(u64);

impl PackedTicks {
    /// Whether all times of the selected records are below 2^32 ticks.
    pub(in crate::profile) fn hold(trace: &MethodTrace<'_>, selection: &ProfileSelection) -> bool {
        // The time inside of a window is a sum of steps, which may be longer where the clock was set back.
        trace.has_fixed_records() && !trace.may_wrap() && selection.window.is_none()
    }
}

impl TimePair for PackedTicks {
    #[inline(always)]
    fn from_ticks(at: Ticks) -> PackedTicks {
        PackedTicks(at[0] | at[1] << 32)
    }

    #[inline(always)]
    fn ticks(self) -> Ticks {
        [self.0 & u64::from(u32::MAX), self.0 >> 32]
    }

    #[inline(always)]
    fn is_before(self, other: PackedTicks) -> bool {
        // Where the high halves are equal, the second comparison is that of the low halves again.
        (self.0 as u32) < other.0 as u32 || self.0 < other.0
    }

    #[inline(always)]
    fn plus(self, more: PackedTicks) -> PackedTicks {
        PackedTicks(self.0.wrapping_add(more.0))
    }

    #[inline(always)]
    fn minus(self, earlier: PackedTicks) -> PackedTicks {
        PackedTicks(self.0.wrapping_sub(earlier.0))
    }

    #[inline(always)]
    fn masked(self, mask: u64) -> PackedTicks {
        PackedTicks(self.0 & mask)
    }
}

/// The time from `earlier` to `later` in each clock; 0 in a clock that stepped back.
#[inline(always)]
pub(in crate::profile) fn since(later: Ticks, earlier: Ticks) -> Ticks {
    [later[0].saturating_sub(earlier[0]), later[1].saturating_sub(earlier[1])]
}

/// Adds `more` to `sum`. Sums of a hostile file's times may wrap; they must not end the program.
#[inline(always)]
pub(in crate::profile) fn add(sum: &mut Ticks, more: Ticks) {
    sum[0] = sum[0].wrapping_add(more[0]);
    sum[1] = sum[1].wrapping_add(more[1]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_times_compare_and_add_like_two_numbers() {
        let times = [0, 1, 5, u64::from(u32::MAX) - 1, u64::from(u32::MAX)];
        let pairs = || times.into_iter().flat_map(|a| times.map(|b| [a, b]));
        for (earlier, later) in pairs().flat_map(|a| pairs().map(move |b| (a, b))) {
            let packed = [earlier, later].map(PackedTicks::from_ticks);
            assert_eq!(packed.map(PackedTicks::ticks), [earlier, later]);
            assert_eq!(packed[1].is_before(packed[0]), later.is_before(earlier), "{earlier:?} {later:?}");
            if !later.is_before(earlier) {
                let spent = packed[1].minus(packed[0]);
                assert_eq!(spent.ticks(), later.minus(earlier));
                assert_eq!(packed[0].plus(spent).ticks(), later);
            }
        }
    }
}
