//! What does not fit together in a trace's records, counted by whatever follows its calls.

/// Counts of what a stack of calls met; see [`super::Counts`] for what shows without one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct CallAnomalies {
    /// Exits on an empty stack: calls that had begun before the trace did.
    pub exits_without_enter: u64,
    /// Exits of a method that is not on the stack at all; left out.
    pub unmatched_exits: u64,
    /// Calls closed because a caller of theirs ended: their own exit is not in the trace.
    pub missing_exits: u64,
    /// Calls still open at the thread's last event; closed there.
    pub open_at_end: u64,
    /// Records whose time lies before the thread's previous one; taken at that one's time.
    pub time_steps_back: u64,
    /// How often a clock of 32-bit µs began anew, after 71.6 minutes each time.
    pub time_wraps: u64,
}

impl CallAnomalies {
    /// Adds another part's, which counted other threads of the same trace.
    pub fn add(&mut self, other: CallAnomalies) {
        self.exits_without_enter += other.exits_without_enter;
        self.unmatched_exits += other.unmatched_exits;
        self.missing_exits += other.missing_exits;
        self.open_at_end += other.open_at_end;
        self.time_steps_back += other.time_steps_back;
        self.time_wraps = self.time_wraps.max(other.time_wraps);
    }

    /// Notes that a thread's clocks reached these times (µs), with their wraps undone.
    pub fn reached(&mut self, micros: [u64; 2]) {
        self.time_wraps = micros.into_iter().fold(self.time_wraps, |wraps, micros| wraps.max(micros >> 32));
    }

    /// A line for each kind that occurred, for [`crate::formats::ReadReport::irregular`].
    pub fn lines(&self) -> Vec<String> {
        let said = [
            (self.exits_without_enter, "calls had begun before the trace did; they count from its start"),
            (self.unmatched_exits, "exits match no open call and are left out"),
            (self.missing_exits, "calls have no exit of their own; they end with their caller"),
            (self.open_at_end, "calls were open at the end; they end with their thread's last record"),
            (self.time_steps_back, "records step back in time; they are taken at the time before"),
            (self.time_wraps, "times the clock's 32 bits were full (71.6 minutes); times go on behind that"),
        ];
        said.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect()
    }
}
