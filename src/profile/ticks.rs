//! Arithmetic on times in both clocks.

use crate::formats::art_method::Ticks;

/// The time from `earlier` to `later` in each clock; 0 in a clock that stepped back.
#[inline(always)]
pub(super) fn since(later: Ticks, earlier: Ticks) -> Ticks {
    [later[0].saturating_sub(earlier[0]), later[1].saturating_sub(earlier[1])]
}

/// Adds `more` to `sum`. Sums of a hostile file's times may wrap; they must not end the program.
#[inline(always)]
pub(super) fn add(sum: &mut Ticks, more: Ticks) {
    sum[0] = sum[0].wrapping_add(more[0]);
    sum[1] = sum[1].wrapping_add(more[1]);
}
