//! Sums over the last seconds of a recording.

use std::collections::VecDeque;

use crate::clock::Timestamp;

/// The length of a part of the window, ns.
pub(super) const STEP_NS: u64 = 500_000_000;
/// The number of parts.
const STEPS: usize = 20;
/// The length of the window, ns.
pub(super) const WINDOW_NS: u64 = STEP_NS * STEPS as u64;

/// A sum over the last [`WINDOW_NS`], in parts.
#[derive(Debug, Default)]
pub(super) struct WindowSum {
    /// The number of the first part, and the sum of each.
    first_part: u64,
    parts: VecDeque<u64>,
}

impl WindowSum {
    /// Adds to the sum at the time `ts`.
    pub fn add(&mut self, ts: Timestamp, value: u64) {
        let number = ts.0 / STEP_NS;
        if self.parts.is_empty() || number >= self.first_part + 2 * STEPS as u64 + self.parts.len() as u64 {
            self.parts.clear();
            self.first_part = number;
        }
        // What came before the window is in none of its parts.
        let Some(at) = number.checked_sub(self.first_part).map(|at| at as usize) else { return };
        if at >= self.parts.len() {
            self.parts.resize(at + 1, 0);
        }
        self.parts[at] = self.parts[at].saturating_add(value);
        while self.parts.len() > STEPS + 1 {
            self.parts.pop_front();
            self.first_part += 1;
        }
    }

    /// Adds the time from `start` to `end` to the parts in which it lies.
    pub fn add_time(&mut self, start: Timestamp, end: Timestamp) {
        let mut from = start.max(end.saturating_sub(WINDOW_NS));
        while from < end {
            let until = Timestamp((from.0 / STEP_NS + 1).saturating_mul(STEP_NS)).min(end);
            self.add(from, until - from);
            from = until;
        }
    }

    /// The sum of the window that ends at the time `now`, to the length of a part.
    pub fn sum(&self, now: Timestamp) -> u64 {
        let end = now.0 / STEP_NS;
        let numbered = self.parts.iter().zip(self.first_part..);
        numbered.filter(|(_, number)| *number < end && number + STEPS as u64 >= end).map(|(sum, _)| sum).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_that_of_the_last_ten_seconds() {
        let mut sum = WindowSum::default();
        for second in 0..100 {
            sum.add(Timestamp(second * 1_000_000_000), 1);
            sum.add(Timestamp(second * 1_000_000_000 + STEP_NS), 1);
        }
        assert_eq!(sum.sum(Timestamp(100_000_000_000)), 20);
        assert_eq!(sum.sum(Timestamp(105_000_000_000)), 10);
        assert_eq!(sum.sum(Timestamp(200_000_000_000)), 0);
        assert!(sum.parts.len() <= STEPS + 1);
        sum.add(Timestamp(u64::MAX), 7);
        assert!(sum.parts.len() <= STEPS + 1);
        sum.add(Timestamp(0), 7);
        assert_eq!(sum.sum(Timestamp(100_000_000_000)), 0);
    }

    #[test]
    fn a_time_is_divided_among_the_parts_in_which_it_lies() {
        let mut sum = WindowSum::default();
        sum.add_time(Timestamp(0), Timestamp(3 * STEP_NS + 7));
        assert_eq!(sum.parts, [STEP_NS, STEP_NS, STEP_NS, 7]);
        sum.add_time(Timestamp(0), Timestamp(u64::MAX));
        assert!(sum.parts.len() <= STEPS + 1);
    }
}
