//! How much of each kind of data the events of a recording have.

use super::data_kind::DataKind;
use crate::formats::Event;

/// Counts of the events that were pushed.
#[derive(Clone, Copy, Default)]
pub(super) struct EventCounts {
    pub(super) events: u64,
    /// Events whose times are no whole µs.
    below_microsecond: u64,
    /// Events with a flag.
    with_flags: u64,
    /// Events with a preempt count.
    with_preempt_count: u64,
    wakeups: u64,
    /// Names of processes.
    pub(super) process_names: u64,
}

impl EventCounts {
    #[inline]
    /// Counts one event. `is_wakeup` says that its type is one that wakes a thread.
    pub(super) fn count(&mut self, event: &Event<'_>, is_wakeup: bool) {
        self.events += 1;
        self.below_microsecond += u64::from(!event.ts.is_multiple_of(1000));
        self.with_flags += u64::from(event.flags != 0);
        self.with_preempt_count += u64::from(event.preempt_count != 0);
        self.wakeups += u64::from(is_wakeup);
    }

    /// The counts by kind of data.
    pub(super) fn by_kind(&self) -> [(DataKind, u64); 6] {
        [
            (DataKind::KernelEvents, self.events),
            (DataKind::TimesBelowMicrosecond, self.below_microsecond),
            (DataKind::Flags, self.with_flags),
            (DataKind::PreemptCounts, self.with_preempt_count),
            (DataKind::Wakeups, self.wakeups),
            (DataKind::ProcessNames, self.process_names),
        ]
    }
}
