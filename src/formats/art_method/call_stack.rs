//! The rule by which records open and close calls, which every reader of a method trace follows.
//!
//! A record that enters a method opens a call on its thread's stack. A record that leaves a method, by a
//! return or by an exception (unroll), has the effect that [`exit_effect`] names. Calls that are still open
//! at the thread's last record end there ([`CallAnomalies::open_at_end`]).

use super::CallAnomalies;

/// The effect of a record that leaves a method on its thread's open calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitEffect {
    /// The record ends the call at this depth (0 is the outermost call) and every call inside of it. Calls
    /// inside have lost their own exit records.
    EndsCalls {
        /// Index of the outermost call that ends.
        depth: usize,
    },
    /// No call is open: the method was entered before the trace began.
    BeganBeforeTrace,
    /// Calls are open, but none of them is of this method: the record is left out.
    Unmatched,
}

/// Returns the effect of a record that leaves `method` on the calls in `open` (outermost first), and counts
/// irregularities in `anomalies`.
#[inline]
pub(crate) fn exit_effect<C>(
    open: &[C],
    method: u32,
    method_of: impl Fn(&C) -> u32,
    anomalies: &mut CallAnomalies,
) -> ExitEffect {
    match open.iter().rposition(|call| method_of(call) == method) {
        Some(depth) => {
            anomalies.missing_exits += (open.len() - depth - 1) as u64;
            ExitEffect::EndsCalls { depth }
        }
        None if open.is_empty() => {
            anomalies.exits_without_enter += 1;
            ExitEffect::BeganBeforeTrace
        }
        None => {
            anomalies.unmatched_exits += 1;
            ExitEffect::Unmatched
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(open: &[u32], method: u32) -> (ExitEffect, CallAnomalies) {
        let mut anomalies = CallAnomalies::default();
        (exit_effect(open, method, |call| *call, &mut anomalies), anomalies)
    }

    #[test]
    fn an_exit_ends_the_innermost_call_of_its_method() {
        assert_eq!(effect(&[1, 2, 1], 1), (ExitEffect::EndsCalls { depth: 2 }, CallAnomalies::default()));
    }

    #[test]
    fn calls_inside_of_the_ended_one_have_lost_their_exits() {
        let anomalies = CallAnomalies { missing_exits: 2, ..CallAnomalies::default() };
        assert_eq!(effect(&[1, 2, 3], 1), (ExitEffect::EndsCalls { depth: 0 }, anomalies));
    }

    #[test]
    fn an_exit_without_an_open_call_ends_a_call_from_before_the_trace() {
        let anomalies = CallAnomalies { exits_without_enter: 1, ..CallAnomalies::default() };
        assert_eq!(effect(&[], 1), (ExitEffect::BeganBeforeTrace, anomalies));
    }

    #[test]
    fn an_exit_of_a_method_that_is_not_open_is_left_out() {
        let anomalies = CallAnomalies { unmatched_exits: 1, ..CallAnomalies::default() };
        assert_eq!(effect(&[2], 1), (ExitEffect::Unmatched, anomalies));
    }
}
