//! The rule by which records open and close calls, which every reader of a method trace follows, and the
//! counts of records that do not fit it.
//!
//! A record that enters a method opens a call on its thread's stack. A record that leaves a method, by a
//! return or by an exception (unroll), has the effect that [`exit_effect`] names. Calls that are still open
//! at the thread's last record end there ([`CallAnomalies::open_at_end`]).

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

/// Counts of the irregularities that are found by following call stacks. [`Counts`](super::Counts) has the
/// counts that need no call stacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct CallAnomalies {
    /// Exits while no call was open: their calls had begun before the trace did.
    pub exits_without_enter: u64,
    /// Exits of a method that has no open call; they are left out.
    pub unmatched_exits: u64,
    /// Calls that ended with a caller because their own exit is not in the trace.
    pub missing_exits: u64,
    /// Calls that were open at their thread's last record, and end there.
    pub open_at_end: u64,
    /// Records with an earlier time than the thread's previous record; they count at that record's time.
    pub time_steps_back: u64,
    /// How often the clock of 32-bit µs wrapped, which happens every 71.6 minutes.
    pub time_wraps: u64,
}

impl CallAnomalies {
    /// Adds the counts of other threads of the same trace.
    pub fn add(&mut self, other: CallAnomalies) {
        self.exits_without_enter += other.exits_without_enter;
        self.unmatched_exits += other.unmatched_exits;
        self.missing_exits += other.missing_exits;
        self.open_at_end += other.open_at_end;
        self.time_steps_back += other.time_steps_back;
        self.time_wraps = self.time_wraps.max(other.time_wraps);
    }

    /// Whether records had to be left out: their other halves are missing from the trace. All other
    /// irregularities are worked out by a rule.
    pub fn are_lossy(&self) -> bool {
        self.unmatched_exits > 0
    }

    /// Whether there are any irregularities.
    pub fn any(&self) -> bool {
        *self != CallAnomalies::default()
    }

    /// Counts the wraps of a thread whose clocks ended at these full times, µs.
    pub fn reached(&mut self, micros: [u64; 2]) {
        self.time_wraps = micros.into_iter().fold(self.time_wraps, |wraps, micros| wraps.max(micros >> 32));
    }

    /// One line for each kind that occurred, in the form of [`crate::formats::ReadReport::irregular`]. Exits
    /// that match no call are losses.
    pub fn lines(&self) -> Vec<String> {
        let counts = [
            (self.exits_without_enter, "calls had begun before the trace did; they count from its start"),
            (self.missing_exits, "calls have no exit of their own; they end with their caller"),
            (self.open_at_end, "calls were open at the end; they end with their thread's last record"),
            (self.time_steps_back, "records step back in time; they are taken at the time before"),
            (self.time_wraps, "times the clock's 32 bits were full (71.6 minutes); times go on behind that"),
        ];
        counts.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect()
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
