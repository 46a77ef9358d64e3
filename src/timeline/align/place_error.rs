//! The error of a method trace's place: how far the trace may lie beside it.

use super::residuals::MatchedPair;

/// Pairs that bound the offset together: so many follow each other in so short a time that clocks do not
/// drift apart between them.
const PAIRS_PER_STRETCH: usize = 64;
/// The least number of enters, and of exits, that bound an offset.
const MIN_PAIRS: usize = 4;
/// One pair in so many may be of a call and a marker that do not belong together.
const PAIRS_PER_OUTLIER: usize = 50;
/// The times of a trace are cut to µs, ns.
const ROUNDING_NS: u64 = 1_000;
/// A runtime's scaled counter drifts from the kernel's clocks by less than this, parts per million, where
/// nothing shows how far. A counter's stated frequency is exact; the kernel's clocks follow NTP.
const MAX_DRIFT_PPM: u64 = 50;

/// The facts from which the error of a place follows.
pub struct PlaceFacts<'p> {
    /// The error of the relation between the trace's clock and the timeline's, ns: that of readings taken
    /// back to back. `None` where only contents led to the place.
    pub relation_ns: Option<u64>,
    /// All times of the trace are readings of the clock that the relation is of.
    pub is_exact: bool,
    /// Contents have moved the place.
    pub is_corrected: bool,
    /// Pairs in order of time, with their distances at the place.
    pub pairs: &'p [MatchedPair],
    /// The length of the trace, ns.
    pub length_ns: u64,
}

impl PlaceFacts<'_> {
    /// The trace lies at most this far beside its place, ns; `None` where nothing bounds it.
    pub fn error_ns(&self) -> Option<u64> {
        if self.is_exact && !self.is_corrected && self.relation_ns.is_some() {
            return self.relation_ns;
        }
        // A clock that does not drift has one offset, which all pairs bound together.
        let together = if self.is_exact { self.pairs.len().max(1) } else { PAIRS_PER_STRETCH };
        let bounds = self.pairs.chunks(together).filter_map(bound);
        let by_contents = bounds.max().map(|ns| ns + ROUNDING_NS);
        let by_relation = self.relation_ns.filter(|_| !self.is_corrected);
        by_contents.or(by_relation.map(|ns| ns + self.length_ns / 1_000_000 * MAX_DRIFT_PPM))
    }
}

/// How far a place may be off, ns, by pairs: an enter comes before its marker, and an exit after it.
fn bound(pairs: &[MatchedPair]) -> Option<u64> {
    let sorted = |begin: bool| {
        let mut apart: Vec<i64> = pairs.iter().filter(|p| p.begin == begin).map(|p| p.apart).collect();
        apart.sort_unstable();
        (apart.len() >= MIN_PAIRS).then_some(apart)
    };
    let outliers = |pairs: &[i64]| pairs.len() / PAIRS_PER_OUTLIER;
    let (enters, exits) = sorted(true).zip(sorted(false))?;
    let most = enters[outliers(&enters)];
    let least = exits[exits.len() - 1 - outliers(&exits)];
    Some(most.unsigned_abs().max(least.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;

    fn pair(apart: i64, begin: bool) -> MatchedPair {
        MatchedPair { at: Timestamp(0), segment: 0, apart, begin }
    }

    #[test]
    fn the_error_is_that_of_the_clocks_where_the_trace_has_their_readings() {
        let pairs: Vec<_> = (0..20).flat_map(|n| [pair(4_000 + n, true), pair(-7_000 - n, false)]).collect();
        let facts = PlaceFacts {
            relation_ns: Some(3_000),
            is_exact: true,
            is_corrected: false,
            pairs: &pairs,
            length_ns: 2_000_000_000,
        };
        assert_eq!(facts.error_ns(), Some(3_000));
        assert_eq!(
            PlaceFacts { is_exact: false, ..facts }.error_ns(),
            Some(8_000),
            "the closest exit bounds it"
        );
        let facts = PlaceFacts { is_exact: false, pairs: &[], ..facts };
        assert_eq!(facts.error_ns(), Some(103_000), "50 µs a second");
        assert_eq!(PlaceFacts { relation_ns: None, ..facts }.error_ns(), None);
    }
}
