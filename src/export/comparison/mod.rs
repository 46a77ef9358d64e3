//! Compares two sets of runs of a program: what became slower or faster, by how much, and whether that is
//! more than the runs of one set differ among themselves.

mod launch_span;
mod run;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde::Serialize;

pub(super) use self::launch_span::LaunchSpan;
#[cfg(test)]
pub(super) use self::run::Measure;
pub(super) use self::run::{Kind, Run, RunMeter, state_name};
use crate::statistics::{RankTest, median, middle_ranks};

/// From this p-value on, a change is taken for noise.
const NOISE_FROM_P: f64 = 0.05;
/// The most rows of a table: those that changed most.
const MAX_ROWS: usize = 1_000;
/// The states, methods and slices that are printed: those that took, or changed, most.
pub(super) const LINES_OF_A_KIND: usize = 5;

/// One side of a comparison.
#[derive(Debug)]
pub(super) struct RunSet {
    /// The name for people: that of the run which the page shows.
    pub title: String,
    pub runs: Vec<Run>,
    /// The number of the run that the page shows.
    pub shown: usize,
    /// The begin of the shown run's timeline on the page, ns.
    pub start: u64,
}

impl RunSet {
    /// The run whose total time is the median: of an even number the shorter one of the two in the middle.
    pub fn typical(runs: &[Run]) -> usize {
        let mut order: Vec<usize> = (0..runs.len()).collect();
        order.sort_by_key(|run| (runs[*run].total_ns, *run));
        middle_ranks(order.len()).map_or(0, |[shorter, _]| order[shorter])
    }

    fn head(&self) -> Side {
        Side { title: self.title.clone(), runs: self.runs.len() }
    }

    /// Time and count of something in each run; 0 where a run lacks it.
    fn values(&self, kind: Kind, name: &str) -> (Vec<u64>, Vec<u64>) {
        let key = (kind, name.to_owned());
        let measure = |run: &Run| run.measures.get(&key).copied().unwrap_or_default();
        self.runs.iter().map(|run| (measure(run).ns, measure(run).count)).unzip()
    }

    /// Where the longest one begins in the run that the page shows, ns from the begin of its timeline.
    fn longest(&self, kind: Kind, name: &str) -> Option<u64> {
        let measure = self.runs.get(self.shown)?.measures.get(&(kind, name.to_owned()))?;
        Some(measure.longest.1.saturating_sub(self.start))
    }
}

/// A comparison as a page holds it (docs/report-format.md).
#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    old: Side,
    new: Side,
    total: Row,
    stages: Vec<Row>,
    states: Vec<Row>,
    methods: Vec<Row>,
    slices: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Side {
    title: String,
    runs: usize,
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    kind: &'static str,
    /// Medians of the runs, ns; `None` where no run has it.
    old_ns: Option<u64>,
    new_ns: Option<u64>,
    delta_ns: i64,
    /// Medians of the counts.
    old_count: u64,
    new_count: u64,
    p: Option<f64>,
    noise: Option<bool>,
    old_at_ns: Option<u64>,
    new_at_ns: Option<u64>,
}

impl Comparison {
    pub fn of(old: &RunSet, new: &RunSet) -> Comparison {
        let totals = |set: &RunSet| set.runs.iter().map(|run| run.total_ns).collect::<Vec<_>>();
        let ones = |set: &RunSet| vec![1; set.runs.len()];
        let mut total = row("the whole run", "time of", (totals(old), ones(old)), (totals(new), ones(new)));
        (total.old_at_ns, total.new_at_ns) = (Some(0), Some(0));
        let rows = |kind| rows(kind, old, new);
        Comparison {
            old: old.head(),
            new: new.head(),
            total,
            stages: rows(Kind::Stage),
            states: rows(Kind::State),
            methods: rows(Kind::Method),
            slices: rows(Kind::Slice),
        }
    }
}

impl Comparison {
    /// The total, and the rows of each kind that changed most, in lines for people.
    pub fn lines(&self) -> Vec<String> {
        let runs = |side: &Side| match side.runs {
            1 => format!("{} (1 run)", side.title),
            many => format!("{} ({many} runs)", side.title),
        };
        let mut lines = vec![format!("old: {}", runs(&self.old)), format!("new: {}", runs(&self.new))];
        lines.push(self.total.line());
        for rows in [&self.stages, &self.states, &self.methods, &self.slices] {
            lines.extend(rows.iter().filter(|row| row.delta_ns != 0).take(LINES_OF_A_KIND).map(Row::line));
        }
        lines
    }
}

impl Row {
    fn line(&self) -> String {
        let ms = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| format!("{:.3}", ns as f64 / 1e6));
        let percent = match self.old_ns {
            Some(old) if old > 0 => format!(" ({:+.1} %)", self.delta_ns as f64 * 100.0 / old as f64),
            _ => String::new(),
        };
        let sure = match (self.p, self.noise) {
            (Some(p), Some(true)) => format!(", within the noise of the runs (p = {p:.2})"),
            (Some(p), _) => format!(", more than noise (p = {p:.3})"),
            (None, _) => String::new(),
        };
        let (old, new) = (ms(self.old_ns), ms(self.new_ns));
        format!("{} {}: {old} -> {new} ms{percent}{sure}", self.kind, self.name)
    }
}

/// The rows of one kind, those that changed most first.
fn rows(kind: Kind, old: &RunSet, new: &RunSet) -> Vec<Row> {
    let measures = old.runs.iter().chain(&new.runs).flat_map(|run| run.measures.keys());
    let names: BTreeSet<&str> =
        measures.filter(|(of, _)| *of == kind).map(|(_, name)| name.as_str()).collect();
    let label = match kind {
        Kind::Stage => "stage",
        Kind::State => "state",
        Kind::Method => "method",
        Kind::Slice => "slice",
    };
    let mut rows: Vec<Row> = names
        .into_iter()
        .map(|name| Row {
            old_at_ns: old.longest(kind, name),
            new_at_ns: new.longest(kind, name),
            ..row(name, label, old.values(kind, name), new.values(kind, name))
        })
        .collect();
    rows.sort_by(|a, b| {
        let key = |row: &Row| Reverse(row.delta_ns.unsigned_abs());
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
    rows.truncate(MAX_ROWS);
    rows
}

/// The row of what took these times, and came so often, in each run.
fn row(name: &str, kind: &'static str, old: (Vec<u64>, Vec<u64>), new: (Vec<u64>, Vec<u64>)) -> Row {
    let p = RankTest::of(&old.0, &new.0).map(|test| test.two_sided());
    let median_of = |values: &[u64]| median(values.iter().copied()).unwrap_or_default();
    let found = |(times, counts): &(Vec<u64>, Vec<u64>)| {
        counts.iter().any(|count| *count > 0).then(|| median_of(times))
    };
    let old_ns = found(&old);
    let new_ns = found(&new);
    Row {
        name: name.to_owned(),
        kind,
        old_ns,
        new_ns,
        delta_ns: new_ns.unwrap_or(0).wrapping_sub(old_ns.unwrap_or(0)) as i64,
        old_count: median_of(&old.1),
        new_count: median_of(&new.1),
        p,
        noise: p.map(|p| p >= NOISE_FROM_P),
        old_at_ns: None,
        new_at_ns: None,
    }
}

#[cfg(test)]
mod tests {
    use super::run::Measure;
    use super::*;

    fn run(total_ns: u64, measures: &[(Kind, &str, u64)]) -> Run {
        let measure = |ns: u64| Measure { ns, count: 1, longest: (ns, 1_000 + ns) };
        let measures = measures.iter().map(|(kind, name, ns)| ((*kind, (*name).to_owned()), measure(*ns)));
        Run { total_ns, measures: measures.collect(), ..Run::default() }
    }

    fn set(title: &str, runs: Vec<Run>) -> RunSet {
        let shown = RunSet::typical(&runs);
        RunSet { title: title.to_owned(), runs, shown, start: 1_000 }
    }

    #[test]
    fn what_changed_most_comes_first_with_its_medians_and_where_it_is() {
        let old = set("old", vec![run(100, &[(Kind::Method, "a", 10), (Kind::Method, "gone", 7)])]);
        let new = set("new", vec![run(150, &[(Kind::Method, "a", 13), (Kind::Method, "b", 40)])]);
        let comparison = Comparison::of(&old, &new);
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
    fn a_change_is_told_from_noise_by_the_runs_of_each_set() {
        let runs = |times: [u64; 5], noise: [u64; 5]| {
            let run = |(time, other): (u64, u64)| {
                run(time + other, &[(Kind::Slice, "work", time), (Kind::Slice, "wait", other)])
            };
            times.into_iter().zip(noise).map(run).collect::<Vec<_>>()
        };
        let old = set("old", runs([10, 11, 12, 13, 14], [50, 90, 70, 60, 80]));
        let new = set("new", runs([20, 21, 22, 23, 24], [85, 55, 65, 75, 95]));
        let comparison = Comparison::of(&old, &new);
        let slice = |name| comparison.slices.iter().find(|row| row.name == name).unwrap();
        assert_eq!((slice("work").delta_ns, slice("work").noise), (10, Some(false)));
        assert_eq!(slice("wait").noise, Some(true));
        assert_eq!(comparison.total.noise, Some(true));
    }

    #[test]
    fn the_typical_run_is_the_one_in_the_middle() {
        let runs = [300, 100, 200, 400].map(|total| run(total, &[]));
        assert_eq!(RunSet::typical(&runs), 2);
    }
}
