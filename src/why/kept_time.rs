//! The parts of a timeline of which all is kept, where the spans that are asked about are known beforehand.

use crate::clock::Timestamp;
use crate::ids::Tid;

/// So much more is kept around a span, ns: what came shortly before it tells for what a thread waits then.
const MARGIN_NS: u64 = 100_000_000;

/// The parts of a timeline of which all is kept; of the rest only the last state of each thread and CPU is
/// known at any moment. Times are those of the timeline.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeptTime {
    /// In order, without overlaps; `None` is all time.
    parts: Option<Vec<(Timestamp, Timestamp)>>,
    /// The threads whose time is asked about, and how the last wait of each one ended has to be known.
    threads: Vec<Tid>,
}

impl KeptTime {
    /// The time of these spans (begin and end), and a margin around it. `threads` are those whose time they
    /// may be.
    pub fn of_spans(spans: impl Iterator<Item = (Timestamp, Timestamp)>, mut threads: Vec<Tid>) -> KeptTime {
        let around = |(begin, end): (Timestamp, Timestamp)| {
            (begin.saturating_sub(MARGIN_NS), end.saturating_add(MARGIN_NS))
        };
        threads.sort_unstable();
        threads.dedup();
        KeptTime { parts: Some(joined(spans.map(around).collect())), threads }
    }

    /// Whether all that concerns the time of this thread from `begin` to `end` is kept.
    pub fn holds(&self, begin: Timestamp, end: Timestamp, tid: Tid) -> bool {
        let Some(parts) = &self.parts else { return true };
        let before = parts.partition_point(|(from, _)| *from <= begin);
        let is_within = before.checked_sub(1).is_some_and(|at| parts[at].1 >= end);
        is_within && self.threads.binary_search(&tid).is_ok()
    }

    /// Whether some of the time from `start` to `end` is kept.
    #[inline]
    pub fn overlaps(&self, start: Timestamp, end: Timestamp) -> bool {
        let Some(parts) = &self.parts else { return true };
        let at = parts.partition_point(|(_, to)| *to < start);
        parts.get(at).is_some_and(|(from, _)| *from <= end)
    }

    /// The threads whose time is asked about.
    pub fn threads(&self) -> &[Tid] {
        &self.threads
    }
}

/// The same time in order, without overlaps: spans that touch each other are one.
pub(super) fn joined(mut spans: Vec<(Timestamp, Timestamp)>) -> Vec<(Timestamp, Timestamp)> {
    spans.sort_unstable();
    let mut parts: Vec<(Timestamp, Timestamp)> = Vec::new();
    for (from, to) in spans {
        match parts.last_mut() {
            Some((_, end)) if *end >= from => *end = (*end).max(to),
            _ => parts.push((from, to)),
        }
    }
    parts
}

/// Whether the moment that a pass has come to is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    Kept,
    /// Not kept; a part that is kept comes later.
    Before,
    /// All parts are over.
    After,
}

/// Where a pass over a timeline is, beside the parts that are kept.
#[derive(Debug)]
pub(super) struct Position {
    pub moment: Moment,
    /// The number of the part that the pass is in, or comes to next.
    part: usize,
    /// When that changes next.
    next: Timestamp,
}

impl Default for Position {
    fn default() -> Position {
        Position::new(&KeptTime::default())
    }
}

impl Position {
    /// The begin of the timeline.
    pub fn new(kept: &KeptTime) -> Position {
        match &kept.parts {
            None => Position { moment: Moment::Kept, part: 0, next: Timestamp::MAX },
            Some(parts) => match parts.first() {
                Some((from, _)) => Position { moment: Moment::Before, part: 0, next: *from },
                None => Position { moment: Moment::After, part: 0, next: Timestamp::MAX },
            },
        }
    }

    /// Goes to `ts`. Returns whether the pass has come to another part, or left one.
    #[inline]
    pub fn advance(&mut self, ts: Timestamp, kept: &KeptTime) -> bool {
        ts >= self.next && self.change(ts, kept)
    }

    #[cold]
    fn change(&mut self, ts: Timestamp, kept: &KeptTime) -> bool {
        let parts = kept.parts.as_deref().unwrap_or_default();
        self.part += parts[self.part..].partition_point(|(_, to)| *to < ts);
        (self.moment, self.next) = match parts.get(self.part) {
            Some((from, _)) if ts < *from => (Moment::Before, *from),
            Some((_, to)) => (Moment::Kept, to.saturating_add(1)),
            None => (Moment::After, Timestamp::MAX),
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn spans<const N: usize>(of: [(u64, u64); N]) -> [(Timestamp, Timestamp); N] {
        of.map(|(begin, end)| (Timestamp(begin), Timestamp(end)))
    }

    #[test]
    fn parts_that_touch_are_one_and_a_pass_knows_where_it_is() {
        let asked = [(5 * SECOND, 6 * SECOND), (SECOND, 2 * SECOND), (2 * SECOND, 2 * SECOND)];
        let kept = KeptTime::of_spans(spans(asked).into_iter(), [9, 7, 8, 7].map(Tid).into());
        let margin = MARGIN_NS;
        let parts = [(SECOND - margin, 2 * SECOND + margin), (5 * SECOND - margin, 6 * SECOND + margin)];
        let parts = spans(parts);
        let holds = |begin, end, tid| kept.holds(Timestamp(begin), Timestamp(end), Tid(tid));
        let overlaps = |start, end| kept.overlaps(Timestamp(start), Timestamp(end));
        assert_eq!((kept.parts.as_deref(), kept.threads()), (Some(&parts[..]), &[7, 8, 9].map(Tid)[..]));
        assert!(asked.iter().all(|(begin, end)| holds(*begin, *end, 8)));
        assert!(!holds(3 * SECOND, 4 * SECOND, 7), "another time");
        assert!(!holds(SECOND, 3 * SECOND, 7), "a longer time");
        assert!(!holds(SECOND, 2 * SECOND, 1), "another thread");
        assert!(overlaps(0, SECOND) && overlaps(2 * SECOND, 4 * SECOND));
        assert!(!overlaps(3 * SECOND, 4 * SECOND) && !overlaps(7 * SECOND, 8 * SECOND));
        let mut position = Position::new(&kept);
        let mut moments = Vec::new();
        for ts in [0, SECOND / 2, SECOND, 2 * SECOND + margin, 3 * SECOND, 5 * SECOND, 9 * SECOND] {
            moments.push((position.advance(Timestamp(ts), &kept), position.moment));
        }
        use Moment::{After, Before, Kept};
        assert_eq!(
            moments,
            [
                (false, Before),
                (false, Before),
                (true, Kept),
                (false, Kept),
                (true, Before),
                (true, Kept),
                (true, After)
            ]
        );
    }

    #[test]
    fn without_spans_beforehand_all_is_kept() {
        let all = KeptTime::default();
        assert!(all.holds(Timestamp(1), Timestamp(2), Tid(3)) && all.overlaps(Timestamp(1), Timestamp(2)));
        let mut position = Position::new(&all);
        assert!(!position.advance(Timestamp(u64::MAX - 1), &all));
        assert_eq!(position.moment, Moment::Kept);
        let mut nothing = Position::new(&KeptTime::of_spans([].into_iter(), Vec::new()));
        assert!(!nothing.advance(Timestamp(5), &all));
        assert_eq!(nothing.moment, Moment::After);
    }
}
