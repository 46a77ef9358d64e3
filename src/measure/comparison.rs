//! Compares two sets of runs of a program: what became slower or faster, by how much, and whether that is
//! more than the runs of one set differ among themselves.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde::Serialize;

use super::run::{MeasureKind, MeasuredRun};
use crate::clock::Timestamp;
use crate::statistics::{
    ChangeVerdict, LargestChange, MIN_RUNS, RankTest, Shift, correct, median, middle_ranks, runs_needed,
};

/// From this p-value on, which is corrected for the other rows, a change is taken for noise.
const NOISE_FROM_P: f64 = 0.05;
/// The most rows of a table: those that changed most.
const MAX_ROWS: usize = 1_000;
/// The states, methods and slices that are printed: those that took, or changed, most.
pub(crate) const LINES_OF_A_KIND: usize = 5;

/// One of the two sets of runs that are compared.
#[derive(Debug)]
pub(crate) struct RunSet {
    /// The name for people: that of the run which the page shows.
    pub title: String,
    pub runs: Vec<MeasuredRun>,
    /// The number of the run that the page shows.
    pub shown: usize,
    /// The begin of the shown run's timeline on the page.
    pub start: Timestamp,
}

impl RunSet {
    /// The run whose total time is the median: of an even number the shorter one of the two in the middle.
    pub fn typical(runs: &[MeasuredRun]) -> usize {
        let mut order: Vec<usize> = (0..runs.len()).collect();
        order.sort_by_key(|run| (runs[*run].total_ns, *run));
        middle_ranks(order.len()).map_or(0, |[shorter, _]| order[shorter])
    }

    fn head(&self) -> ComparedSet {
        let extent = self.extent_ns();
        ComparedSet {
            title: self.title.clone(),
            runs: self.runs.len(),
            from_ns: extent.map(|(from, _)| from),
            to_ns: extent.map(|(_, to)| to),
        }
    }

    /// The part of the shown run that is measured, ns from the begin of its timeline.
    fn extent_ns(&self) -> Option<(u64, u64)> {
        let (from, to) = self.runs.get(self.shown)?.extent?;
        Some((from.since(self.start), to.since(self.start)))
    }

    fn totals(&self) -> RunValues {
        RunValues { ns: self.runs.iter().map(|run| run.total_ns).collect(), counts: vec![1; self.runs.len()] }
    }

    /// The values of one measure; 0 where a run lacks it.
    fn values(&self, kind: MeasureKind, name: &str) -> RunValues {
        let key = (kind, name.to_owned());
        let measures = self.runs.iter().map(|run| run.measures.get(&key).copied().unwrap_or_default());
        let (ns, counts) = measures.map(|measure| (measure.ns, measure.count)).unzip();
        RunValues { ns, counts }
    }

    /// The begin of the longest one in the run that the page shows, ns from the begin of its timeline.
    fn longest_at_ns(&self, kind: MeasureKind, name: &str) -> Option<u64> {
        let measure = self.runs.get(self.shown)?.measures.get(&(kind, name.to_owned()))?;
        // A metric of a benchmark has a time, and no place.
        (kind != MeasureKind::Benchmark).then(|| measure.longest.1.since(self.start))
    }
}

/// One measure in each run of a set.
struct RunValues {
    ns: Vec<u64>,
    counts: Vec<u64>,
}

impl RunValues {
    fn median_ns(&self) -> Option<u64> {
        let is_found = self.counts.iter().any(|count| *count > 0);
        is_found.then(|| median(self.ns.iter().copied()).unwrap_or_default())
    }

    fn median_count(&self) -> u64 {
        median(self.counts.iter().copied()).unwrap_or_default()
    }
}

/// A comparison as a page holds it (docs/report-format.md).
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct Comparison {
    old: ComparedSet,
    new: ComparedSet,
    total: ComparisonRow,
    stages: Vec<ComparisonRow>,
    states: Vec<ComparisonRow>,
    methods: Vec<ComparisonRow>,
    slices: Vec<ComparisonRow>,
    /// The times that androidx's Macrobenchmark has measured itself: those of the iterations.
    metrics: Vec<ComparisonRow>,
    /// Rows beyond the 1,000 of each kind that changed most.
    rows_left_out: u64,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct ComparedSet {
    title: String,
    runs: usize,
    /// Begin of what is measured of the run that the page shows, ns from the begin of its timeline; null
    /// where nothing is measured.
    from_ns: Option<u64>,
    to_ns: Option<u64>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct ComparisonRow {
    name: String,
    /// stage, state, method, slice, metric, or the words before the total.
    kind: &'static str,
    /// Median of the older runs, ns; null where no run has it.
    old_ns: Option<u64>,
    new_ns: Option<u64>,
    delta_ns: i64,
    /// Median of the counts.
    old_count: u64,
    new_count: u64,
    /// Two-sided p-value of the Mann-Whitney test; null with fewer than five runs on a side.
    p: Option<f64>,
    /// The same, corrected for the other rows of the comparison (Holm, Tarone); that of the total, which
    /// is a question of its own, as it is. Null where it cannot be below 0.05, whatever the times.
    p_adjusted: Option<f64>,
    #[serde(flatten)]
    finding: ChangeVerdict,
    /// The smallest p-value that the numbers of this row can give.
    #[serde(skip)]
    least_p: f64,
    /// The shift of all runs, with its interval.
    #[serde(skip)]
    shift: Option<Shift>,
    /// Where the longest one begins in the run that the page shows, ns from the begin of its timeline.
    old_at_ns: Option<u64>,
    new_at_ns: Option<u64>,
}

/// The part that is measured of all these runs.
fn part_text(old: &RunSet, new: &RunSet) -> &'static str {
    let mut parts = old.runs.iter().chain(&new.runs).map(|run| run.part);
    let first = parts.next().unwrap_or_default();
    if parts.all(|part| part == first) { first.text() } else { "the part that is measured of each run" }
}

impl Comparison {
    pub fn new(old: &RunSet, new: &RunSet) -> Comparison {
        let total = ComparisonRow {
            old_at_ns: old.extent_ns().map(|(from, _)| from),
            new_at_ns: new.extent_ns().map(|(from, _)| from),
            ..row(part_text(old, new), "time of", &old.totals(), &new.totals())
        };
        let mut comparison = Comparison {
            old: old.head(),
            new: new.head(),
            total,
            stages: rows(MeasureKind::Stage, "stage", old, new),
            states: rows(MeasureKind::State, "state", old, new),
            methods: rows(MeasureKind::Method, "method", old, new),
            slices: rows(MeasureKind::Slice, "slice", old, new),
            metrics: rows(MeasureKind::Benchmark, "metric", old, new),
            rows_left_out: 0,
        };
        comparison.correct(RankTest::least_of(old.runs.len(), new.runs.len()));
        let mut left_out = 0;
        for rows in comparison.rows() {
            left_out += rows.len().saturating_sub(MAX_ROWS) as u64;
            rows.truncate(MAX_ROWS);
        }
        comparison.rows_left_out = left_out;
        comparison
    }

    fn rows(&mut self) -> [&mut Vec<ComparisonRow>; 5] {
        [&mut self.stages, &mut self.states, &mut self.methods, &mut self.slices, &mut self.metrics]
    }

    /// Corrects the p-values of all rows for each other: of twenty rows of unchanged programs one would be
    /// told from noise by chance. `least_p` is the smallest p-value, one-sided, that so many runs give: where
    /// even that is too large for so many rows, nothing can be said.
    fn correct(&mut self, least_p: f64) {
        let mut tested: Vec<&mut ComparisonRow> =
            self.rows().into_iter().flatten().filter(|row| row.p.is_some()).collect();
        let tests: Vec<(f64, f64)> = tested.iter().map(|row| (row.p.unwrap_or(1.0), row.least_p)).collect();
        let corrected = correct(&tests, NOISE_FROM_P);
        let has_few_runs = 2.0 * least_p > corrected.single_level;
        for (row, p) in tested.iter_mut().zip(corrected.p_values) {
            // A change that may be chance by itself is none.
            if has_few_runs && row.p.is_some_and(|p| p < NOISE_FROM_P) {
                row.set_too_few(Some(runs_needed(corrected.single_level / 2.0)));
            } else {
                row.judge(p);
            }
        }
    }
}

impl Comparison {
    /// The total, and the rows of each kind that changed most, in lines for people.
    pub fn lines(&self) -> Vec<String> {
        let runs = |side: &ComparedSet| match side.runs {
            1 => format!("{} (1 run)", side.title),
            many => format!("{} ({many} runs)", side.title),
        };
        let mut lines = vec![format!("old: {}", runs(&self.old)), format!("new: {}", runs(&self.new))];
        lines.push(self.total.line(true));
        for rows in [&self.metrics, &self.stages, &self.states, &self.methods, &self.slices] {
            let changed = rows.iter().filter(|row| row.delta_ns != 0).take(LINES_OF_A_KIND);
            // With too few runs for any verdict, once is enough.
            let are_few = self.total.finding == ChangeVerdict::TooFewRuns { needed: Some(MIN_RUNS) };
            lines.extend(changed.map(|row| row.line(!are_few)));
        }
        if self.rows_left_out > 0 {
            let left_out = self.rows_left_out;
            lines.push(format!(
                "{left_out} rows are left out: {MAX_ROWS} of a kind are kept, which changed most"
            ));
        }
        lines
    }
}

/// A p-value is printed with three decimal places, and one that is less than the least of them as that.
const LEAST_PRINTED_P: f64 = 0.001;

impl ComparisonRow {
    fn line(&self, with_verdict: bool) -> String {
        let ms = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| format!("{:.3}", ns as f64 / 1e6));
        let percent = match self.old_ns {
            Some(old) if old > 0 => format!(" ({:+.1} %)", self.delta_ns as f64 * 100.0 / old as f64),
            _ => String::new(),
        };
        let p = match self.p_adjusted {
            Some(p) if p < LEAST_PRINTED_P => format!(" (p < {LEAST_PRINTED_P})"),
            Some(p) => format!(" (p = {p:.3})"),
            None => String::new(),
        };
        let old = ms(self.old_ns);
        let new = ms(self.new_ns);
        let verdict = if with_verdict { format!(", {}{p}", self.finding) } else { String::new() };
        format!("{} {}: {old} -> {new} ms{percent}{verdict}", self.kind, self.name)
    }

    /// Makes the verdict of a test with this p-value.
    fn judge(&mut self, p: f64) {
        let Some(Shift { estimate, interval }) = self.shift else { return };
        let limit = |ns: f64| match self.old_ns {
            Some(old) if old > 0 => LargestChange::Percent(ns * 100.0 / old as f64),
            _ => LargestChange::Ns(ns),
        };
        self.finding = ChangeVerdict::tested(p < NOISE_FROM_P, estimate, interval, limit);
        self.p_adjusted = Some(p);
    }

    fn set_too_few(&mut self, needed: Option<usize>) {
        self.finding = ChangeVerdict::TooFewRuns { needed };
        self.p_adjusted = None;
    }
}

/// The rows of one kind, which `label` names, those that changed most first.
fn rows(kind: MeasureKind, label: &'static str, old: &RunSet, new: &RunSet) -> Vec<ComparisonRow> {
    let measures = old.runs.iter().chain(&new.runs).flat_map(|run| run.measures.keys());
    let names: BTreeSet<&str> =
        measures.filter(|(of, _)| *of == kind).map(|(_, name)| name.as_str()).collect();
    let mut rows: Vec<ComparisonRow> = names
        .into_iter()
        .map(|name| ComparisonRow {
            old_at_ns: old.longest_at_ns(kind, name),
            new_at_ns: new.longest_at_ns(kind, name),
            ..row(name, label, &old.values(kind, name), &new.values(kind, name))
        })
        .collect();
    rows.sort_by(|a, b| {
        let key = |row: &ComparisonRow| Reverse(row.delta_ns.unsigned_abs());
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
    rows
}

/// The row of one measure in the runs of both sets.
fn row(name: &str, kind: &'static str, old: &RunValues, new: &RunValues) -> ComparisonRow {
    let test = RankTest::compare(&old.ns, &new.ns);
    let old_ns = old.median_ns();
    let new_ns = new.median_ns();
    let mut row = ComparisonRow {
        name: name.to_owned(),
        kind,
        old_ns,
        new_ns,
        delta_ns: new_ns.unwrap_or(0).wrapping_sub(old_ns.unwrap_or(0)) as i64,
        old_count: old.median_count(),
        new_count: new.median_count(),
        p: test.map(|test| test.two_sided()),
        p_adjusted: None,
        finding: ChangeVerdict::TooFewRuns { needed: Some(MIN_RUNS) },
        least_p: test.map_or(f64::INFINITY, |test| test.least_two_sided()),
        shift: Shift::between(&old.ns, &new.ns),
        old_at_ns: None,
        new_at_ns: None,
    };
    let mut all = old.ns.iter().chain(&new.ns);
    let is_constant = all.next().is_some_and(|first| all.all(|ns| ns == first));
    match row.p {
        // So few runs have it that chance explains any difference.
        Some(_) if row.least_p >= NOISE_FROM_P && !is_constant => row.set_too_few(None),
        Some(p) => row.judge(p),
        None => {}
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::run::{Measure, MeasuredPart};

    fn run(total_ns: u64, measures: &[(MeasureKind, &str, u64)]) -> MeasuredRun {
        let measure = |ns: u64| Measure { ns, count: 1, longest: (ns, Timestamp(1_000 + ns)) };
        let measures = measures.iter().map(|(kind, name, ns)| ((*kind, (*name).to_owned()), measure(*ns)));
        MeasuredRun { total_ns, measures: measures.collect(), ..MeasuredRun::default() }
    }

    fn set(title: &str, runs: Vec<MeasuredRun>) -> RunSet {
        let shown = RunSet::typical(&runs);
        RunSet { title: title.to_owned(), runs, shown, start: Timestamp(1_000) }
    }

    #[test]
    fn what_changed_most_comes_first_with_its_medians_and_where_it_is() {
        let old =
            set("old", vec![run(100, &[(MeasureKind::Method, "a", 10), (MeasureKind::Method, "gone", 7)])]);
        let new =
            set("new", vec![run(150, &[(MeasureKind::Method, "a", 13), (MeasureKind::Method, "b", 40)])]);
        let comparison = Comparison::new(&old, &new);
        let told: Vec<_> = comparison
            .methods
            .iter()
            .map(|r| (r.name.as_str(), r.old_ns, r.new_ns, r.delta_ns, r.old_at_ns, r.new_at_ns))
            .collect();
        assert_eq!(
            told,
            [
                ("b", None, Some(40), 40, None, Some(40)),
                ("gone", Some(7), None, -7, Some(7), None),
                ("a", Some(10), Some(13), 3, Some(10), Some(13)),
            ]
        );
        assert_eq!((comparison.total.delta_ns, comparison.total.p), (50, None));
    }

    #[test]
    fn the_total_is_named_for_the_part_that_is_measured() {
        let name = |old: MeasuredPart, new: MeasuredPart| {
            let of_part = |part| set("set", vec![MeasuredRun { part, ..run(100, &[]) }]);
            Comparison::new(&of_part(old), &of_part(new)).total.name
        };
        assert_eq!(name(MeasuredPart::Launch, MeasuredPart::Launch), "the launch");
        assert_eq!(name(MeasuredPart::Period, MeasuredPart::Period), "the period");
        assert_eq!(
            name(MeasuredPart::Launch, MeasuredPart::MainThread),
            "the part that is measured of each run"
        );
    }

    #[test]
    fn a_change_is_told_from_noise_by_the_runs_of_each_set() {
        let runs = |times: [u64; 5], noise: [u64; 5]| {
            let run = |(time, other): (u64, u64)| {
                run(time + other, &[(MeasureKind::Slice, "work", time), (MeasureKind::Slice, "wait", other)])
            };
            times.into_iter().zip(noise).map(run).collect::<Vec<_>>()
        };
        let old = set("old", runs([10, 11, 12, 13, 14], [50, 90, 70, 60, 80]));
        let new = set("new", runs([20, 21, 22, 23, 24], [85, 55, 65, 75, 95]));
        let comparison = Comparison::new(&old, &new);
        let slice = |name| comparison.slices.iter().find(|row| row.name == name).unwrap();
        assert_eq!((slice("work").delta_ns, slice("work").finding), (10, ChangeVerdict::Slower));
        assert_eq!(slice("wait").finding.to_string(), "no change larger than 50.0 %");
        assert!(matches!(comparison.total.finding, ChangeVerdict::NoChange(_)));
    }

    #[test]
    fn of_many_unchanged_rows_none_is_told_from_noise_by_chance() {
        // Forty slices that differ at random, of which some are below 0.05 alone, and one that is planted.
        let mut random = 12345_u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % 1_000
        };
        let names: Vec<String> = (0..40).map(|n| format!("slice {n:02}")).collect();
        let mut runs = |planted: u64| -> Vec<MeasuredRun> {
            let one = |n: u64| {
                let slices: Vec<_> =
                    names.iter().map(|name| (MeasureKind::Slice, name.as_str(), 1_000 + next())).collect();
                run(50_000, &[slices, vec![(MeasureKind::Slice, "planted", planted + n)]].concat())
            };
            (0..10).map(one).collect()
        };
        let old_runs = runs(100);
        let new_runs = runs(200);
        let comparison = Comparison::new(&set("old", old_runs), &set("new", new_runs));
        let told: Vec<&str> = comparison
            .slices
            .iter()
            .filter(|row| row.finding == ChangeVerdict::Slower)
            .map(|row| &*row.name)
            .collect();
        assert_eq!(told, ["planted"]);
        let line = comparison.slices.iter().find(|row| row.name == "planted").unwrap().line(true);
        assert!(line.ends_with(", slower (p < 0.001)"), "{line}");
    }

    #[test]
    fn with_few_runs_and_many_rows_nothing_is_said() {
        let runs = |from: u64| -> Vec<MeasuredRun> {
            let slices = |n: u64| -> Vec<(MeasureKind, &'static str, u64)> {
                ["a", "b", "c", "d", "e", "f", "g"].map(|name| (MeasureKind::Slice, name, from + n)).to_vec()
            };
            (0..5).map(|n| run(1_000 + from, &slices(n))).collect()
        };
        let comparison = Comparison::new(&set("old", runs(10)), &set("new", runs(20)));
        let too_few = |row: &ComparisonRow| {
            matches!(row.finding, ChangeVerdict::TooFewRuns { .. }) && row.p_adjusted.is_none()
        };
        assert!(comparison.slices.iter().all(too_few));
        let line = &comparison.lines()[3];
        assert!(line.ends_with(", too few runs to tell (at least 6 a side)"), "{line}");
        // The total is a question of its own.
        assert_eq!(comparison.total.finding, ChangeVerdict::Slower);
    }

    #[test]
    fn the_typical_run_is_the_one_in_the_middle() {
        let runs = [300, 100, 200, 400].map(|total| run(total, &[]));
        assert_eq!(RunSet::typical(&runs), 2);
    }
}
