//! Counters: each receives the records of a [`selection`], and holds the times of methods, of paths of calls,
//! or the calls in the order of time.

pub mod call_stacks;
pub mod flat;
pub(in crate::profile) mod sample_tree;
pub mod selection;
pub(crate) mod thread_methods;
pub mod tree;

use crate::formats::art_method::Ticks;

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
