//! Statistics of repeated measurements: medians, the Mann-Whitney test, the shift between two sets, and the
//! correction for many tests at once. All compare ranks, so that a single slow run counts no more than any
//! other, and assume nothing about how measurements spread.

mod many_tests;
mod median;
mod rank_test;
mod shift;

pub(crate) use many_tests::{holm, tested_together};
pub(crate) use median::{median, middle_ranks};
pub(crate) use rank_test::RankTest;
pub use shift::Shift;
