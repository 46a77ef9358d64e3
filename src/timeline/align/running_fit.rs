//! How many records of a method trace lie where their thread had a CPU. A thread that writes a record runs;
//! so at the right place of a trace all of its records lie within times on a CPU.

use super::clock_map::ClockMap;
use super::identity::Evidence;
use super::kernel_evidence::ThreadActivity;
use super::method_evidence::MethodEvidence;
use super::sample_offset::InsideCount;
use crate::clock::Timestamp;

/// A record may lie this far beside a time on a CPU, ns: its time is cut to µs, and clocks are related by
/// readings that take a few µs.
const TOLERANCE_NS: u64 = 20_000;
/// The least number of records that prove or disprove a place. How much a few of them prove,
/// [`InsideCount::miss_rate`] decides.
pub const MIN_RECORDS: u64 = 8;
/// The least share of records that lie where their threads had a CPU, for a place to fit.
const MIN_SHARE_INSIDE: f64 = 0.9;
/// Below this share of records inside a place is contradicted.
const CONTRADICTED_SHARE: f64 = 0.5;
/// The records fit a place if at least so many times fewer of them miss it than miss other places.
pub const MIN_RATIO: f64 = 3.0;

/// The records of a method trace at a place, compared with its threads' times on a CPU.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunningFit {
    /// The records at this place.
    pub here: InsideCount,
    /// The records at the place that fits best of those that are certainly wrong.
    pub elsewhere: InsideCount,
    /// The records are samples, whose times ART's sampler took. Their threads did not run then.
    pub are_samples: bool,
}

impl RunningFit {
    /// How many times more records miss the next place than this one.
    pub fn ratio(&self) -> f64 {
        self.elsewhere.miss_rate() / self.here.miss_rate()
    }

    /// Whether there are enough records to judge the place.
    pub fn is_compared(&self) -> bool {
        self.here.compared >= MIN_RECORDS
    }

    fn share(&self) -> f64 {
        self.here.inside as f64 / self.here.compared.max(1) as f64
    }

    /// Whether the records lie where their threads ran. They may do so at other places too.
    pub fn agrees(&self) -> bool {
        self.is_compared() && self.share() >= MIN_SHARE_INSIDE
    }

    /// Whether the records fit here and nowhere else.
    pub fn proves(&self) -> bool {
        self.agrees() && self.ratio() >= MIN_RATIO
    }

    /// Whether the few records that can be compared lie where their threads ran.
    pub fn contradicts_nothing(&self) -> bool {
        self.here.compared > 0 && self.share() >= MIN_SHARE_INSIDE
    }

    /// Whether the records lie where their threads did not run.
    pub fn contradicts(&self) -> bool {
        self.is_compared() && self.share() < CONTRADICTED_SHARE
    }
}

/// A place of a method trace on the timeline.
pub struct PlaceOfRecords<'p> {
    /// From the trace's clock to the timeline's.
    pub segments: &'p [ClockMap],
    /// For each thread, the number of the record from which on the second map applies, and so on.
    pub changes: &'p [&'p [u64]],
    /// ns by which the place is moved.
    pub moved: i64,
}

impl PlaceOfRecords<'_> {
    fn count(
        &self,
        thread: &MethodEvidence,
        changes: &[u64],
        activity: &ThreadActivity,
        window: &std::ops::RangeInclusive<Timestamp>,
    ) -> InsideCount {
        let mut count = InsideCount::default();
        for at in &thread.running {
            let segment = changes.partition_point(|first| *first <= at.record);
            let map = self.segments.get(segment).or(self.segments.last());
            let y = map.map_or(at.x, |map| map.map(at.x)).saturating_add_signed(self.moved);
            if window.contains(&y)
                && let Some(distance) = activity.distance_from_cpu(y)
            {
                count.compared += 1;
                count.inside += u64::from(distance <= TOLERANCE_NS);
            }
        }
        count
    }
}

/// Counts the records of `threads` (those of `evidence`, or a sample of them) at a place. Where ART's
/// sampler ran at the times of the records, and the threads themselves did not, the trace holds samples,
/// whose times the sampler took. Also returns whether that is so.
pub fn count(
    evidence: &Evidence<'_, '_>,
    threads: &[MethodEvidence],
    place: &PlaceOfRecords<'_>,
) -> (InsideCount, bool) {
    let window = evidence.kernel.first..=evidence.kernel.last;
    let changes = |thread: usize| place.changes.get(thread).copied().unwrap_or_default();
    let mut own = InsideCount::default();
    for (n, (thread, tids)) in threads.iter().zip(&evidence.candidate_tids).enumerate() {
        let activities = tids.iter().filter_map(|tid| evidence.kernel.threads.get(tid));
        let counts = activities.map(|activity| place.count(thread, changes(n), activity, &window));
        if let Some(best) = counts.max_by_key(|count| (count.inside, count.compared)) {
            own.add(best);
        }
    }
    let Some(sampler) = evidence.kernel.sampler(evidence.trace.header().pid) else { return (own, false) };
    let mut sampled = InsideCount::default();
    for (n, thread) in threads.iter().enumerate() {
        sampled.add(place.count(thread, changes(n), sampler, &window));
    }
    // Without the sampler's switches nothing is known of samples.
    let are_own = own.inside as f64 >= own.compared as f64 * MIN_SHARE_INSIDE;
    if sampled.miss_rate() < own.miss_rate() || !are_own { (sampled, true) } else { (own, false) }
}
