//! Finds the offset at which calls and markers of the same name coincide most often, for traces that
//! cannot be placed by clock snapshots.

use super::clock_map::ClockMap;
use super::kernel_evidence::{KernelEvidence, ThreadActivity};
use super::method_evidence::{MethodEvidence, NamedEdge};
use crate::statistics::median;

/// Offsets no further apart than this, ns, count as one. Even the intervals between regular calls vary by
/// more than this.
const BIN_WIDTH_NS: i64 = 20_000;
/// The number of edges whose offsets are counted together: so few that the clocks do not drift apart between
/// the first and the last of them.
const EDGES_PER_BLOCK: usize = 32;
/// Names with more markers than this are not used, since each edge is compared with every marker of its name.
const MAX_MARKERS: usize = 20_000;
/// The share of a block's edges that must agree about an offset.
const MIN_AGREEING_SHARE: f64 = 0.6;
/// The number of edges that agree about the offset must be this many times that of any other offset.
const MIN_RATIO_TO_RUNNER_UP: usize = 2;

/// The map from the trace's clock to the timeline's at which most calls coincide with their markers;
/// `None` where no offset stands out. `may_be` gives the candidate thread ids of each traced thread.
pub fn most_frequent_offset(
    traced: &[MethodEvidence],
    may_be: &[Vec<i32>],
    observed: &KernelEvidence,
) -> Option<ClockMap> {
    let mut points: Vec<(i64, i64, usize)> = Vec::new();
    for (thread, tids) in traced.iter().zip(may_be) {
        for seen in tids.iter().filter_map(|tid| observed.threads.get(tid)) {
            let Some(edges) = rarest(thread, seen) else { continue };
            let blocks = [edges.chunks(EDGES_PER_BLOCK).next(), edges.rchunks(EDGES_PER_BLOCK).next()];
            points.extend(blocks.into_iter().flatten().filter_map(|block| agreed(block, seen)));
        }
    }
    // Offsets that do not lie on one line with the best one are dropped: clocks drift, but they do not jump.
    let best = *points.iter().max_by_key(|p| p.2)?;
    points.retain(|p| p.1.abs_diff(best.1) <= 1_000_000 + p.0.abs_diff(best.0) / 500);
    let first = points.iter().min_by_key(|p| p.0)?;
    let last = points.iter().max_by_key(|p| p.0)?;
    let mut line = vec![(first.0, first.0.wrapping_add(first.1)), (last.0, last.0.wrapping_add(last.1))];
    if last.0.abs_diff(first.0) < 100_000_000 {
        line = vec![(best.0, best.0.wrapping_add(best.1))];
    }
    Some(ClockMap::through(line))
}

/// The enters of the method with the fewest markers (but at least 8): frequent calls coincide with markers by
/// chance.
fn rarest(thread: &MethodEvidence, seen: &ThreadActivity) -> Option<Vec<NamedEdge>> {
    let mut counts = std::collections::HashMap::<u32, usize>::new();
    for mark in seen.marks.iter().filter(|m| m.begin) {
        *counts.entry(mark.name).or_default() += 1;
    }
    let mut names: Vec<(usize, u32)> = counts
        .into_iter()
        .filter(|(_, n)| (8..=MAX_MARKERS).contains(n))
        .map(|(name, n)| (n, name))
        .collect();
    names.sort_unstable();
    names.into_iter().find_map(|(_, name)| {
        let edges: Vec<NamedEdge> =
            thread.edges.iter().filter(|e| e.begin && e.name == name).copied().collect();
        (edges.len() >= 8).then_some(edges)
    })
}

/// The time of the block's middle (ns of the trace's clock), the offset that most of its edges agree about
/// (ns), and how many agree; `None` where no offset stands out.
fn agreed(block: &[NamedEdge], seen: &ThreadActivity) -> Option<(i64, i64, usize)> {
    let name = block.first()?.name;
    let marks: Vec<i64> =
        seen.marks.iter().filter(|m| m.begin && m.name == name).map(|m| m.ts as i64).collect();
    let at = |edge: &NamedEdge| edge.x as i64;
    let mut offsets: Vec<i64> =
        block.iter().flat_map(|edge| marks.iter().map(move |mark| mark.wrapping_sub(at(edge)))).collect();
    offsets.sort_unstable();
    // For each offset, how many offsets lie up to BIN_WIDTH_NS above it.
    let mut best = (0, 0, 0);
    let mut counts = Vec::with_capacity(offsets.len());
    let mut end = 0;
    for from in 0..offsets.len() {
        while offsets.get(end).is_some_and(|o| *o <= offsets[from].saturating_add(BIN_WIDTH_NS)) {
            end += 1;
        }
        counts.push(end - from);
        if end - from > best.0 {
            best = (end - from, from, end);
        }
    }
    let (count, from, end) = best;
    let offset = median(offsets[from..end].iter().copied())?;
    let others = offsets.iter().zip(&counts).filter(|(o, _)| o.abs_diff(offset) > 10 * BIN_WIDTH_NS as u64);
    let second = others.map(|(_, n)| *n).max().unwrap_or(0);
    let enough = count >= 8
        && count as f64 >= MIN_AGREEING_SHARE * block.len() as f64
        && count >= MIN_RATIO_TO_RUNNER_UP * second;
    enough.then(|| (at(&block[block.len() / 2]), offset, count))
}

#[cfg(test)]
mod tests {
    use super::super::kernel_evidence::SliceEdge;
    use super::*;

    /// Irregular times of calls, ns of the trace's clock.
    const CALLS: [u64; 12] = [0, 17, 31, 58, 73, 101, 140, 166, 203, 251, 290, 344];

    fn evidence(mark_offset_ns: impl Fn(usize) -> u64) -> (Vec<MethodEvidence>, KernelEvidence) {
        let edge =
            |(n, ms): (usize, &u64)| NamedEdge { record: n as u64, x: ms * 1_000_000, name: 0, begin: true };
        let edges: Vec<NamedEdge> = CALLS.iter().enumerate().map(edge).collect();
        let mark = |(n, edge): (usize, &NamedEdge)| SliceEdge {
            ts: edge.x + mark_offset_ns(n),
            name: 0,
            begin: true,
        };
        let marks = edges.iter().enumerate().map(mark).collect();
        let mut kernel = KernelEvidence::default();
        kernel.threads.insert(7, ThreadActivity::with_marks(marks));
        (vec![MethodEvidence { edges, ..MethodEvidence::default() }], kernel)
    }

    #[test]
    fn the_offset_that_most_calls_agree_about_is_found() {
        let (threads, kernel) = evidence(|n| 9_000_000_000 + (n as u64 % 3) * 1_000);
        let map = most_frequent_offset(&threads, &[vec![7]], &kernel).unwrap();
        assert!(map.offset_at(100_000_000).abs_diff(9_000_001_000) <= 1_000);
    }

    #[test]
    fn the_offset_is_the_median_of_those_that_agree() {
        // Six calls have one offset and six another one: their middle lies between both.
        let (threads, kernel) = evidence(|n| 9_000_000_000 + (n as u64 % 2) * 1_000);
        let map = most_frequent_offset(&threads, &[vec![7]], &kernel).unwrap();
        assert_eq!(map.offset_at(100_000_000), 9_000_000_500);
    }

    #[test]
    fn markers_without_a_common_offset_give_none() {
        let (threads, kernel) = evidence(|n| 9_000_000_000 + (n * n) as u64 * 777_000);
        assert_eq!(most_frequent_offset(&threads, &[vec![7]], &kernel), None);
    }
}
