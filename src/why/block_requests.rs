//! The times in which requests to block devices were open.

use rustc_hash::FxHashSet;

use crate::clock::Timestamp;

/// A request: its device and its first sector.
pub(super) type RequestId = (i64, i64);

/// The most open requests that are told apart.
const MAX_OPEN: usize = 65_536;

/// When requests to block devices were open, by `block_rq_issue` and `block_rq_complete`.
#[derive(Debug, Default)]
pub(super) struct BlockRequests {
    open: FxHashSet<RequestId>,
    /// Since when some request has been open.
    busy_since: Option<Timestamp>,
    /// The times in which some request was open, in order.
    busy: Vec<(Timestamp, Timestamp)>,
    /// Up to here a request was open whose issue was not recorded.
    open_from_begin: Option<Timestamp>,
}

impl BlockRequests {
    pub fn issued(&mut self, ts: Timestamp, request: RequestId) {
        if self.open.len() < MAX_OPEN {
            self.open.insert(request);
        }
        self.busy_since.get_or_insert(ts);
    }

    /// A request ends. One whose issue was not recorded has been open since the begin of the trace.
    pub fn completed(&mut self, ts: Timestamp, request: RequestId) {
        if !self.open.remove(&request) {
            self.open_from_begin = Some(ts);
        }
        if self.open.is_empty()
            && let Some(since) = self.busy_since.take()
        {
            self.busy.push((since, ts));
        }
    }

    /// Whether a request was open at any time from `from` to `to`; `None` where requests were not recorded.
    pub fn tell_of(&self, from: Timestamp, to: Timestamp) -> Option<bool> {
        let first = self.busy.partition_point(|(_, end)| *end < from);
        let was_open = self.busy.get(first).is_some_and(|(start, _)| *start <= to)
            || self.busy_since.is_some_and(|since| since <= to)
            || self.open_from_begin.is_some_and(|end| from <= end);
        let are_recorded =
            !self.busy.is_empty() || self.busy_since.is_some() || self.open_from_begin.is_some();
        are_recorded.then_some(was_open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_open_from_its_issue_to_its_end() {
        let mut requests = BlockRequests::default();
        let open = |requests: &BlockRequests, from, to| requests.tell_of(Timestamp(from), Timestamp(to));
        assert_eq!(open(&requests, 0, 10), None, "nothing was recorded");
        requests.issued(Timestamp(100), (8, 1));
        requests.issued(Timestamp(120), (8, 2));
        requests.completed(Timestamp(150), (8, 2));
        requests.completed(Timestamp(200), (8, 1));
        let told = [(0, 99), (201, 300), (160, 170), (0, 100), (200, 300)];
        let told = told.map(|(from, to)| open(&requests, from, to).unwrap());
        assert_eq!(told, [false, false, true, true, true]);
        requests.issued(Timestamp(400), (8, 3));
        assert_eq!(open(&requests, 300, 399), Some(false));
        assert_eq!(open(&requests, 900, 999), Some(true), "the request stays open");
        requests.completed(Timestamp(1000), (8, 9));
        assert_eq!(open(&requests, 300, 399), Some(true), "the issue of the last request was not recorded");
    }
}
