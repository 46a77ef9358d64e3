//! Corrects clock maps where markers or context switches contradict them.

use super::clock_map::ClockMap;
use super::residuals::MatchedPair;
use crate::statistics::median;

/// Half the number of pairs in a stretch that gets a correction of its own.
const PAIRS_PER_CORRECTION: usize = 32;
/// An edge may lie on the wrong side of its marker by this much, ns: the trace's times are cut to µs.
const ROUNDING_NS: i64 = 2_000;

/// Corrects the maps that the pairs contradict: an enter comes before its marker, an exit after it. A map
/// that nothing contradicts stays, since the snapshots are more exact. Also returns the pairs with their
/// distances by the new maps.
pub fn correct(segments: Vec<ClockMap>, pairs: &[MatchedPair]) -> (Vec<ClockMap>, Vec<MatchedPair>) {
    let mut all = Vec::with_capacity(pairs.len());
    let mut by_segment: Vec<Vec<MatchedPair>> = vec![Vec::new(); segments.len()];
    for pair in pairs {
        if let Some(own) = by_segment.get_mut(pair.segment) {
            own.push(*pair);
        }
    }
    let corrected = segments.into_iter().zip(by_segment).map(|(map, own)| {
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

/// The corrections of one map: pairs of a reading of the trace's clock, ns, and the ns to add there. Empty
/// where no pair contradicts the map.
fn corrections(pairs: &[MatchedPair]) -> Vec<(i64, i64)> {
    let mut corrections = Vec::new();
    let mut contradicted = false;
    for stretch in pairs.chunks(2 * PAIRS_PER_CORRECTION) {
        let of = |begin: bool| -> Option<i64> {
            let apart: Vec<i64> = stretch.iter().filter(|p| p.begin == begin).map(|p| p.apart).collect();
            if apart.len() < PAIRS_PER_CORRECTION / 4 { None } else { median(apart) }
        };
        let (Some(enter), Some(exit)) = (of(true), of(false)) else { continue };
        contradicted |= enter < -ROUNDING_NS || exit > ROUNDING_NS;
        let middle = stretch[stretch.len() / 2].at as i64;
        corrections.push((middle, enter.midpoint(exit)));
    }
    corrections.dedup_by_key(|(at, _)| *at);
    if contradicted { corrections } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 16 enters, whose markers come `enter` ns later, and 16 exits, whose markers come `exit` ns later.
    fn pairs(enter: i64, exit: i64) -> Vec<MatchedPair> {
        let pair = |n: u64| {
            let begin = n.is_multiple_of(2);
            MatchedPair {
                at: 1_000_000 + n * 10_000,
                segment: 0,
                apart: if begin { enter } else { exit },
                begin,
            }
        };
        (0..32).map(pair).collect()
    }

    #[test]
    fn a_map_that_puts_enters_behind_their_markers_is_moved_to_the_middle() {
        // By this map, markers come 5 µs before the enters and 9 µs before the exits: the map is 7 µs late.
        let (maps, moved) = correct(vec![ClockMap::offset(50_000)], &pairs(-5_000, -9_000));
        assert_eq!(maps[0].offset_at(1_100_000), 43_000);
        assert!(moved.iter().all(|p| p.apart == if p.begin { 2_000 } else { -2_000 }), "{moved:?}");
    }

    #[test]
    fn a_map_that_nothing_contradicts_stays() {
        let (maps, moved) = correct(vec![ClockMap::offset(50_000)], &pairs(3_000, -3_000));
        assert_eq!(maps, [ClockMap::offset(50_000)]);
        assert_eq!(moved[0].apart, 3_000);
    }
}
