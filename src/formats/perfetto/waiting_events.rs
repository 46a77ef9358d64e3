//! Orders the events of all bundles by time, with no more of them in memory than overlap.
//!
//! A recorder reads one CPU after the other, again and again, so that a bundle overlaps those that were read
//! shortly before and after it, and no others.

use super::bundle::BundleEvent;

/// Events are sorted when at least so many wait.
const MIN_SORTED: usize = 1 << 14;

/// Events that wait until all those before them are read.
#[derive(Default)]
pub(super) struct WaitingEvents<'a> {
    list: Vec<BundleEvent<'a>>,
    /// How many of them were there when they were sorted last.
    sorted: usize,
}

impl<'a> WaitingEvents<'a> {
    /// The list, to which events may be added.
    pub(super) fn list(&mut self) -> &mut Vec<BundleEvent<'a>> {
        &mut self.list
    }

    /// Whether so many are new that sorting the list is worth its time.
    pub(super) fn are_many(&self) -> bool {
        self.list.len() >= self.sorted * 2 + MIN_SORTED
    }

    /// Takes the events before `until`, ns, out of the list, or all events. They are in the order of time;
    /// events of one time by CPU, and then in the order of the file.
    pub(super) fn take_before(&mut self, until: Option<u64>) -> Vec<BundleEvent<'a>> {
        self.list.sort_by_key(|event| (event.ts, event.cpu, event.bundle));
        let end = until.map_or(self.list.len(), |until| self.list.partition_point(|event| event.ts < until));
        let rest = self.list.split_off(end);
        self.sorted = rest.len();
        std::mem::replace(&mut self.list, rest)
    }
}
