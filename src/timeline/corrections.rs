//! Corrects clock maps where markers or context switches contradict them.

use super::clock_map::ClockMap;
use super::residuals::{MatchedPair, median};

/// Pairs of one kind in a stretch that is corrected by itself.
const PAIRS_PER_CORRECTION: usize = 32;
/// The trace's times are cut to µs, so this much earlier or later than its marker is no contradiction: ns.
const ROUNDING_NS: i64 = 2_000;

/// Moves the maps where the pairs contradict them: an enter comes before its marker, an exit after. Where they do not,
/// the snapshots know better. Also gives the pairs as they are apart afterwards.
pub fn correct(segments: Vec<ClockMap>, pairs: &[MatchedPair]) -> (Vec<ClockMap>, Vec<MatchedPair>) {
    let mut all = Vec::with_capacity(pairs.len());
    let corrected = segments.into_iter().enumerate().map(|(segment, map)| {
        let own: Vec<MatchedPair> = pairs.iter().filter(|p| p.segment == segment).copied().collect();
        let corrections = corrections(&own);
        let new = if corrections.is_empty() { map.clone() } else { map.corrected(&corrections) };
        all.extend(own.iter().map(|p| {
            let moved = (new.map(p.at) as i64).wrapping_sub(map.map(p.at) as i64);
            MatchedPair { apart: p.apart - moved, ..*p }
        }));
        new
    });
    (corrected.collect(), all)
}

/// Readings of the trace's clock, and what to add there: ns. Empty where nothing contradicts the map.
fn corrections(pairs: &[MatchedPair]) -> Vec<(i64, i64)> {
    let mut corrections = Vec::new();
    let mut contradicted = false;
    for stretch in pairs.chunks(2 * PAIRS_PER_CORRECTION) {
        let of = |begin: bool| -> Option<i64> {
            let mut apart: Vec<i64> = stretch.iter().filter(|p| p.begin == begin).map(|p| p.apart).collect();
            if apart.len() < PAIRS_PER_CORRECTION / 4 { None } else { median(&mut apart) }
        };
        let (Some(enter), Some(exit)) = (of(true), of(false)) else { continue };
        contradicted |= enter < -ROUNDING_NS || exit > ROUNDING_NS;
        let middle = stretch[stretch.len() / 2].at as i64;
        corrections.push((middle, enter.midpoint(exit)));
    }
    corrections.dedup_by_key(|(at, _)| *at);
    if contradicted { corrections } else { Vec::new() }
}
