//! Counts of irregular records: enters and exits that do not form pairs, and times that step back or wrap.

/// Counts of the irregularities that are found by following call stacks. [`super::Counts`] has the counts
/// that need no call stacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
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

    /// One line for each kind that occurred, in the form of [`crate::formats::ReadReport::irregular`].
    pub fn lines(&self) -> Vec<String> {
        let counts = [
            (self.exits_without_enter, "calls had begun before the trace did; they count from its start"),
            (self.unmatched_exits, "exits match no open call and are left out"),
            (self.missing_exits, "calls have no exit of their own; they end with their caller"),
            (self.open_at_end, "calls were open at the end; they end with their thread's last record"),
            (self.time_steps_back, "records step back in time; they are taken at the time before"),
            (self.time_wraps, "times the clock's 32 bits were full (71.6 minutes); times go on behind that"),
        ];
        counts.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect()
    }
}
