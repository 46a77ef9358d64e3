//! The decision: which measures of the candidate are slower than those of the baseline by more than a
//! condition permits, and by more than chance explains.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::condition::{Condition, Limit, Selection, Unit, measure_name};
use crate::formats::Losses;
use crate::measure::{MeasureKind, RunTimes, WHOLE_SHARE};
use crate::statistics::{
    ChangeVerdict, LargestChange, MIN_RUNS, RankTest, Shift, correct, median, runs_needed,
};
use crate::why::Difference;

/// The gate closes wrongly in at most this share of comparisons of unchanged sets, whatever the number of
/// measures.
pub const LEVEL: f64 = 0.005;

/// The runs that are named where some of a side lack something.
const NAMED_RUNS: usize = 3;
/// The most changes of causes that a report of the gate shows.
const GROWN_LINES: usize = 5;

/// Why nothing can be judged.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// One side has no runs.
    #[error("{0}: there are no runs")]
    NoRuns(String),
    /// A run is on both sides.
    #[error("{0}: is a run of the baseline and of the candidate: nothing can have changed in it")]
    OnBothSides(String),
    /// No run has what a condition names.
    #[error("'{condition}': no run has {measure}: {instead}")]
    NothingMeasured {
        /// The condition.
        condition: String,
        /// The measure.
        measure: String,
        /// Its place is taken by this.
        instead: MeasuredInstead,
    },
}

/// The measures of the runs in place of one that none of them has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MeasuredInstead {
    /// The runs have nothing of this kind.
    Nothing(MeasureKind),
    /// The most similar measures of the same kind.
    Similar(Vec<String>),
}

impl fmt::Display for MeasuredInstead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figure = match self {
            MeasuredInstead::Similar(measures) => return write!(f, "there are {}", measures.join(", ")),
            MeasuredInstead::Nothing(figure) => figure,
        };
        f.write_str(match figure {
            MeasureKind::Launch => {
                "none has Android's markers of a launch (record the categories am, wm and view)"
            }
            MeasureKind::Ttid | MeasureKind::Ttfd => {
                "none has a launch with the frames that it needs (record the categories view and gfx)"
            }
            MeasureKind::Frame => "none has frames (record the category gfx and view)",
            MeasureKind::Method => "none has a method trace",
            MeasureKind::Benchmark => {
                "none is an iteration of a benchmark with metrics in ms, us or ns beside it (-benchmarkData.json)"
            }
            MeasureKind::State => "none has scheduling events of a main thread",
            MeasureKind::Stage | MeasureKind::Slice => "none has slices there",
        })
    }
}

fn nothing_measured(selection: &Selection<'_>, condition: &Condition) -> GateError {
    let similar = selection.similar_measures(condition);
    let has_no_name = matches!(condition.figure, MeasureKind::Launch | MeasureKind::Ttid | MeasureKind::Ttfd);
    let instead = if has_no_name || similar.is_empty() {
        MeasuredInstead::Nothing(condition.figure)
    } else {
        MeasuredInstead::Similar(similar)
    };
    let measure = measure_name(condition.figure, &condition.name);
    GateError::NothingMeasured { condition: condition.text.clone(), measure, instead }
}

/// One side of the gate.
#[derive(Debug, Clone, Default)]
pub struct GateSide {
    /// The source of the runs, for people.
    pub title: String,
    /// The runs.
    pub runs: Vec<RunTimes>,
}

/// The decision about a measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MeasureVerdict {
    /// It did not change by more than the condition permits, or by no more than chance explains.
    Passes,
    /// It closes the gate.
    Closes,
    /// So few runs have it that nothing could close the gate, however they are spread over both sides.
    TooRare,
    /// There are too few runs: whatever they show could be chance.
    Undecided {
        /// So many on each side are enough.
        runs_needed: usize,
    },
}

/// A measure that a condition names.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedMeasure {
    /// Its name, `slice.inflate`.
    pub name: String,
    /// The runs of the baseline and of the candidate.
    pub runs: [usize; 2],
    /// The unit of its numbers.
    pub unit: Unit,
    /// The values of the runs of each side, in the same unit.
    pub values: [Vec<i64>; 2],
    /// Their medians: ns, or parts of [`WHOLE_SHARE`](crate::measure::WHOLE_SHARE).
    pub medians: [i64; 2],
    /// By how much the candidate is slower (Hodges-Lehmann), in the same unit.
    pub change: Shift,
    /// The p-value of the change in the condition's direction.
    pub p: Option<f64>,
    /// The same with the correction for the other measures (Holm).
    pub p_adjusted: Option<f64>,
    /// Whether the change is larger than the condition permits, by chance or not.
    pub is_beyond: bool,
    /// The decision.
    pub verdict: MeasureVerdict,
}

impl JudgedMeasure {
    /// The verdict in the words that all comparisons use. A change that the condition permits is limited by
    /// its interval.
    pub(super) fn finding(&self) -> ChangeVerdict {
        let limit = |size: f64| match (self.percent(size), self.unit) {
            (_, Unit::Share) => LargestChange::Points(size * 100.0 / WHOLE_SHARE as f64),
            (Some(percent), _) => LargestChange::Percent(percent),
            (None, _) => LargestChange::Ns(size),
        };
        match self.verdict {
            MeasureVerdict::Undecided { runs_needed } => {
                ChangeVerdict::TooFewRuns { needed: Some(runs_needed) }
            }
            MeasureVerdict::TooRare => ChangeVerdict::TooFewRuns { needed: None },
            verdict => {
                let closes = verdict == MeasureVerdict::Closes;
                ChangeVerdict::tested(closes, self.change.estimate, self.change.interval, limit)
            }
        }
    }

    /// A change as percent of the baseline's median; `None` where that is 0, or counts from a deadline.
    pub fn percent(&self, change: f64) -> Option<f64> {
        let is_part = self.medians[0] > 0 && self.unit != Unit::Overrun;
        is_part.then(|| change * 100.0 / self.medians[0] as f64)
    }
}

/// A condition, and what it names.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedCondition {
    /// The condition.
    pub condition: Condition,
    /// The measures: those that close the gate first, then the undecided ones, then by their change.
    pub measures: Vec<JudgedMeasure>,
}

/// Whether the gate is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GateOutcome {
    /// Every measure was judged, and passes.
    Open,
    /// A measure closes it.
    Closed,
    /// No measure closes it, and not all could be judged.
    Undecided,
}

/// The decision of the gate.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// The sources of the runs of the baseline and of the candidate.
    pub titles: [String; 2],
    /// The account of missing data of both sides.
    pub losses: [Losses; 2],
    /// How many runs each side has.
    pub runs: [usize; 2],
    /// The conditions, in the order of the command line.
    pub conditions: Vec<JudgedCondition>,
    /// The number of measures that were tested together, by which Holm's correction multiplies the smallest
    /// p-value.
    pub tested: usize,
    /// Sentences about runs that lack something.
    pub notes: Vec<String>,
    /// The causes that grew in the launches, where the gate is closed and that is known.
    pub(crate) grown: Option<Difference>,
}

impl Judgement {
    /// The causes that grew most in the launches, in lines; empty where that is not known.
    pub fn grown_lines(&self) -> Vec<String> {
        self.grown.as_ref().map_or(Vec::new(), |grown| grown.lines(GROWN_LINES))
    }

    /// Whether runs lack something, or are left out.
    pub fn is_lossy(&self) -> bool {
        !self.notes.is_empty()
    }

    /// How many measures have such a verdict.
    pub(super) fn count(&self, is: fn(&MeasureVerdict) -> bool) -> usize {
        let measures = self.conditions.iter().flat_map(|condition| &condition.measures);
        measures.filter(|measure| is(&measure.verdict)).count()
    }

    /// Whether the gate is open.
    pub fn outcome(&self) -> GateOutcome {
        let verdicts = |condition: &JudgedCondition| -> Vec<MeasureVerdict> {
            condition.measures.iter().map(|measure| measure.verdict).collect()
        };
        let is_open = |verdicts: &Vec<MeasureVerdict>| {
            let is_undecided = |verdict: &MeasureVerdict| matches!(verdict, MeasureVerdict::Undecided { .. });
            verdicts.contains(&MeasureVerdict::Passes) && !verdicts.iter().any(is_undecided)
        };
        let all: Vec<Vec<MeasureVerdict>> = self.conditions.iter().map(verdicts).collect();
        if all.iter().any(|verdicts| verdicts.contains(&MeasureVerdict::Closes)) {
            GateOutcome::Closed
        } else if all.iter().all(is_open) {
            GateOutcome::Open
        } else {
            GateOutcome::Undecided
        }
    }
}

/// Judges the candidate by the conditions. `selection` has chosen the times that were read.
///
/// # Errors
/// [`GateError`].
pub fn judge(selection: &Selection<'_>, sides: [GateSide; 2]) -> Result<Judgement, GateError> {
    let mut notes = Vec::new();
    let [baseline, candidate] = &sides;
    for side in &sides {
        if side.runs.is_empty() {
            return Err(GateError::NoRuns(side.title.clone()));
        }
        notes.extend(losses(side));
    }
    let known: BTreeSet<&str> = baseline.runs.iter().map(|run| run.identity.as_str()).collect();
    if let Some(both) = candidate.runs.iter().find(|run| known.contains(run.identity.as_str())) {
        return Err(GateError::OnBothSides(both.name.clone()));
    }
    let extent = commonest_extent(&sides);
    if selection.figures().contains(&MeasureKind::Launch) {
        notes.extend(sides.iter().filter_map(|side| left_out_of_launch_total(side, extent)));
    }
    let mut conditions = Vec::new();
    for condition in selection.conditions() {
        let measures = measures_of(condition, &sides, extent);
        if measures.is_empty() {
            return Err(nothing_measured(selection, condition));
        }
        conditions.push((condition.clone(), measures));
    }
    let tested = decide(&mut conditions);
    let conditions = conditions.into_iter().map(|(condition, measures)| {
        let mut measures: Vec<JudgedMeasure> = measures.into_iter().map(|measure| measure.judged).collect();
        measures.sort_by(|a, b| {
            let place = |measure: &JudgedMeasure| match measure.verdict {
                MeasureVerdict::Closes => 0,
                MeasureVerdict::Undecided { .. } => 1,
                MeasureVerdict::Passes => 2,
                MeasureVerdict::TooRare => 3,
            };
            let change = |measure: &JudgedMeasure| measure.change.estimate.abs();
            let by_place = place(a).cmp(&place(b));
            by_place.then(change(b).total_cmp(&change(a))).then_with(|| a.name.cmp(&b.name))
        });
        JudgedCondition { condition, measures }
    });
    let conditions = conditions.collect();
    let [old, new] = sides;
    let losses = [&old, &new].map(all_losses);
    Ok(Judgement {
        losses,
        runs: [old.runs.len(), new.runs.len()],
        titles: [old.title, new.title],
        conditions,
        tested,
        notes,
        grown: None,
    })
}

/// A measure on its way to a verdict.
struct Tested {
    judged: JudgedMeasure,
    /// The smallest p-value that its numbers can give; above 1 where there are too few of them.
    least: f64,
    /// Whether all runs of both sides have one value: nothing has changed.
    is_constant: bool,
}

/// The measures that a condition names, without their verdicts.
fn measures_of(condition: &Condition, sides: &[GateSide; 2], extent: Option<&[String; 2]>) -> Vec<Tested> {
    let keys = sides.iter().flat_map(|side| &side.runs).flat_map(|run| run.times.keys());
    let names: BTreeSet<&str> = keys
        .filter(|(figure, name)| condition.matches(*figure, name))
        .map(|(_, name)| name.as_str())
        .collect();
    let measure = |name: &str| {
        let [old, new] = sides.each_ref().map(|side| values(side, condition, name, extent));
        // Ranks and differences stay what they are when all values are raised by the same.
        let lowest = old.iter().chain(&new).copied().min().unwrap_or(0).min(0);
        let raised = [&old, &new].map(|values| values.iter().map(|value| value.abs_diff(lowest)).collect());
        let [raised_old, raised_new]: [Vec<u64>; 2] = raised;
        let test = RankTest::compare(&raised_old, &raised_new);
        let (p, least) = match condition.limit {
            Limit::Slower(_) => (test.map(|test| test.greater), test.map(|test| test.least_greater)),
            Limit::Faster(_) => (test.map(|test| test.less), test.map(|test| test.least_less)),
        };
        let medians = [&old, &new].map(|times| median(times.iter().copied()).unwrap_or_default());
        let change =
            Shift::between(&raised_old, &raised_new).unwrap_or(Shift { estimate: 0.0, interval: None });
        let is_beyond = match condition.limit {
            Limit::Slower(size) => change.estimate > size.in_units(medians[0] as f64),
            Limit::Faster(size) => change.estimate < -size.in_units(medians[0] as f64),
        };
        let judged = JudgedMeasure {
            name: match &condition.launch_type {
                Some(launch_type) => format!("{}[{launch_type}]", measure_name(condition.figure, name)),
                None => measure_name(condition.figure, name),
            },
            runs: [old.len(), new.len()],
            unit: Unit::new(condition.figure, name),
            values: [old.clone(), new.clone()],
            medians,
            change,
            p,
            p_adjusted: None,
            is_beyond,
            verdict: MeasureVerdict::Passes,
        };
        let mut all = old.iter().chain(&new);
        let is_constant = all.next().is_some_and(|first| all.all(|value| value == first));
        Tested { judged, least: least.unwrap_or(f64::INFINITY), is_constant }
    };
    names.into_iter().map(measure).collect()
}

/// The times of the measure `name` of a condition in the runs that can have it: 0 where a run does not.
fn values(side: &GateSide, condition: &Condition, name: &str, extent: Option<&[String; 2]>) -> Vec<i64> {
    let key = (condition.figure, name.to_owned());
    let launch_type = condition.launch_type.as_deref();
    let is_of_type = |run: &&RunTimes| launch_type.is_none() || run.launch_type.as_deref() == launch_type;
    let has_it = |run: &&RunTimes| match key.0 {
        MeasureKind::Launch => run.launch_extent.is_some() && run.launch_extent.as_ref() == extent,
        MeasureKind::Ttid | MeasureKind::Ttfd | MeasureKind::Frame | MeasureKind::Benchmark => {
            run.times.contains_key(&key)
        }
        figure => run.measured.contains(&figure),
    };
    side.runs
        .iter()
        .filter(is_of_type)
        .filter(has_it)
        .map(|run| run.times.get(&key).copied().unwrap_or(0))
        .collect()
}

/// Makes the verdicts. Returns how many measures were tested together.
fn decide(conditions: &mut [(Condition, Vec<Tested>)]) -> usize {
    let mut all: Vec<&mut Tested> = conditions.iter_mut().flat_map(|(_, measures)| measures).collect();
    let tests: Vec<(f64, f64)> =
        all.iter().map(|measure| (measure.judged.p.unwrap_or(1.0), measure.least)).collect();
    let corrected = correct(&tests, LEVEL);
    // Those that more runs would have tested.
    let few = |measure: &Tested| {
        let [old, new] = measure.judged.runs;
        old.min(new) < MIN_RUNS || RankTest::least_of(old, new) > corrected.single_level
    };
    let count = corrected.are_tested.iter().filter(|is_tested| **is_tested).count();
    let others = all.iter().zip(&corrected.are_tested).filter(|(_, is_tested)| !**is_tested);
    let wanting = others.filter(|(measure, _)| few(measure)).count();
    let runs_needed = runs_needed(LEVEL / (count + wanting).max(1) as f64);
    let results = corrected.are_tested.iter().zip(&corrected.p_values);
    for (measure, (is_tested, p)) in all.iter_mut().zip(results) {
        if *is_tested {
            measure.judged.p_adjusted = Some(*p);
            if measure.judged.is_beyond && *p <= LEVEL {
                measure.judged.verdict = MeasureVerdict::Closes;
            }
        } else if few(measure) {
            measure.judged.verdict = MeasureVerdict::Undecided { runs_needed };
        } else if !measure.is_constant {
            measure.judged.verdict = MeasureVerdict::TooRare;
        }
    }
    count
}

/// The begin and end that most launches have.
fn commonest_extent(sides: &[GateSide; 2]) -> Option<&[String; 2]> {
    let mut counts: BTreeMap<&[String; 2], usize> = BTreeMap::new();
    for extent in sides.iter().flat_map(|side| &side.runs).filter_map(|run| run.launch_extent.as_ref()) {
        *counts.entry(extent).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(extent, _)| extent)
}

fn names<'a>(runs: impl Iterator<Item = &'a RunTimes>) -> Option<String> {
    let names: Vec<&str> = runs.map(|run| run.name.as_str()).collect();
    let more = names.len().checked_sub(NAMED_RUNS).filter(|more| *more > 0);
    let named = names[..names.len().min(NAMED_RUNS)].join(", ");
    match (names.len(), more) {
        (0, _) => None,
        (_, None) => Some(named),
        (_, Some(more)) => Some(format!("{named} and {more} more")),
    }
}

/// The losses of all runs of a side: one line for each kind.
fn all_losses(side: &GateSide) -> Losses {
    let mut all = Losses::default();
    side.runs.iter().for_each(|run| all.extend(run.losses.by_kind()));
    all
}

fn losses(side: &GateSide) -> Option<String> {
    let lossy = names(side.runs.iter().filter(|run| run.is_lossy))?;
    let account: Vec<String> = all_losses(side).iter().map(|loss| format!("; {loss}")).collect();
    let title = &side.title;
    Some(format!("{title}: events are missing, or an input is damaged: {lossy}{}", account.concat()))
}

/// Names the runs that are left out of `launch.total`: their launch begins or ends with another marker, or
/// they have none.
fn left_out_of_launch_total(side: &GateSide, extent: Option<&[String; 2]>) -> Option<String> {
    let extent = extent?;
    let others = names(side.runs.iter().filter(|run| run.launch_extent.as_ref() != Some(extent)))?;
    let [begin, end] = extent;
    Some(format!(
        "{}: left out of launch.total, because no launch from {begin} to {end} is in: {others}",
        side.title
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENT: [&str; 2] = ["launching: a", "Choreographer#doFrame"];

    /// A run with a launch of this length.
    fn run(name: &str, launch_ns: i64) -> RunTimes {
        RunTimes {
            name: name.to_owned(),
            identity: name.to_owned(),
            launch_extent: Some(EXTENT.map(str::to_owned)),
            measured: BTreeSet::from([MeasureKind::Launch]),
            times: BTreeMap::from([((MeasureKind::Launch, String::new()), launch_ns)]),
            ..RunTimes::default()
        }
    }

    /// Runs whose launches take `first_ns`, and each 1 ms more than the one before it.
    fn side(title: &str, count: i64, first_ns: i64) -> GateSide {
        let run = |n| run(&format!("{title} {n}"), first_ns + n * 1_000_000);
        GateSide { title: title.to_owned(), runs: (0..count).map(run).collect() }
    }

    fn with_slice(mut run: RunTimes, name: &str, ns: Option<i64>) -> RunTimes {
        run.measured.insert(MeasureKind::Slice);
        if let Some(ns) = ns {
            run.times.insert((MeasureKind::Slice, name.to_owned()), ns);
        }
        run
    }

    fn judged(conditions: &[&str], sides: [GateSide; 2]) -> Result<Judgement, GateError> {
        let conditions: Vec<Condition> =
            conditions.iter().map(|text| Condition::parse(text).expect("a condition")).collect();
        judge(&Selection::new(&conditions), sides)
    }

    fn only_measure(judgement: &Judgement) -> &JudgedMeasure {
        let [condition] = &judgement.conditions[..] else { panic!("{judgement:?}") };
        let [measure] = &condition.measures[..] else { panic!("{judgement:?}") };
        measure
    }

    const MS: i64 = 1_000_000;

    #[test]
    fn slower_runs_close_the_gate_if_they_are_slower_than_the_condition_permits() {
        let sides = || [side("old", 10, 400 * MS), side("new", 10, 450 * MS)];
        let judgement = judged(&["launch.total > +5%"], sides()).unwrap();
        let measure = only_measure(&judgement);
        assert_eq!((judgement.outcome(), measure.verdict), (GateOutcome::Closed, MeasureVerdict::Closes));
        assert_eq!((measure.name.as_str(), measure.runs), ("launch.total", [10, 10]));
        assert!((measure.change.estimate - 50e6).abs() < 1.0, "{measure:?}");
        let percent = measure.percent(measure.change.estimate).unwrap();
        assert!((percent - 12.36).abs() < 0.01, "{percent}");
        // All of them are slower, and by no more than this.
        let judgement = judged(&["launch.total > +15%"], sides()).unwrap();
        let measure = only_measure(&judgement);
        assert_eq!((judgement.outcome(), measure.is_beyond), (GateOutcome::Open, false));
        assert!(measure.p_adjusted.unwrap() < LEVEL, "{measure:?}");
    }

    #[test]
    fn a_change_that_chance_explains_passes() {
        let judgement =
            judged(&["launch.total > +0%"], [side("old", 10, 400 * MS), side("new", 10, 401 * MS)]);
        let judgement = judgement.unwrap();
        let measure = only_measure(&judgement);
        assert_eq!((judgement.outcome(), measure.verdict), (GateOutcome::Open, MeasureVerdict::Passes));
        assert!(measure.is_beyond && measure.p.unwrap() > LEVEL, "{measure:?}");
    }

    #[test]
    fn a_condition_for_faster_runs_closes_on_faster_runs_alone() {
        let faster = judged(&["launch.total < -5%"], [side("old", 10, 450 * MS), side("new", 10, 400 * MS)]);
        assert_eq!(faster.unwrap().outcome(), GateOutcome::Closed);
        let slower = judged(&["launch.total < -5%"], [side("old", 10, 400 * MS), side("new", 10, 450 * MS)]);
        assert_eq!(slower.unwrap().outcome(), GateOutcome::Open);
    }

    #[test]
    fn too_few_runs_are_undecided_with_the_number_that_is_enough() {
        for (runs, verdict) in
            [(4, MeasureVerdict::Undecided { runs_needed: 5 }), (5, MeasureVerdict::Closes)]
        {
            let sides = [side("old", runs, 400 * MS), side("new", runs, 600 * MS)];
            let judgement = judged(&["launch.total > +5%"], sides).unwrap();
            assert_eq!(only_measure(&judgement).verdict, verdict);
        }
        // Two measures share the level, so that each needs more runs.
        assert_eq!([LEVEL, LEVEL / 2.0].map(runs_needed), [5, 6]);
    }

    #[test]
    fn a_name_that_few_runs_have_is_too_rare_and_one_that_never_changes_passes() {
        let side = |title: &str, lock_ns: i64| {
            let mut side = side(title, 8, 400 * MS);
            for (n, run) in side.runs.iter_mut().enumerate() {
                let lock = (n == 0).then_some(lock_ns);
                *run = with_slice(with_slice(run.clone(), "lock", lock), "constant", Some(7));
            }
            side
        };
        let judgement = judged(&["slice.* > +5%"], [side("old", 100), side("new", 900)]).unwrap();
        let measures = &judgement.conditions[0].measures;
        let verdicts: Vec<(&str, MeasureVerdict)> =
            measures.iter().map(|measure| (measure.name.as_str(), measure.verdict)).collect();
        assert_eq!(
            verdicts,
            [("slice.constant", MeasureVerdict::Passes), ("slice.lock", MeasureVerdict::TooRare)]
        );
        assert_eq!((judgement.tested, judgement.outcome()), (0, GateOutcome::Open));
        assert_eq!(measures[1].runs, [8, 8], "a run without the slice took no time for it");
    }

    #[test]
    fn measures_that_close_the_gate_come_first() {
        let side = |title: &str, slow_ns: i64| {
            let mut side = side(title, 10, 400 * MS);
            for (run, n) in side.runs.iter_mut().zip(0..) {
                let run_with = with_slice(run.clone(), "alike", Some(50 * MS + n));
                *run = with_slice(run_with, "slow", Some(slow_ns + n));
            }
            side
        };
        let judgement = judged(&["slice.* > +5%"], [side("old", MS), side("new", 2 * MS)]).unwrap();
        let names: Vec<&str> =
            judgement.conditions[0].measures.iter().map(|measure| measure.name.as_str()).collect();
        assert_eq!(names, ["slice.slow", "slice.alike"]);
        assert_eq!(judgement.count(|verdict| *verdict == MeasureVerdict::Closes), 1);
        // Holm: the smallest of two p-values counts twice.
        let slow = &judgement.conditions[0].measures[0];
        assert_eq!(slow.p_adjusted, slow.p.map(|p| 2.0 * p));
    }

    #[test]
    fn launches_of_another_kind_are_left_out_and_named() {
        let mut new = side("new", 6, 400 * MS);
        new.runs[0].launch_extent = Some(["a warm start", "a frame"].map(str::to_owned));
        new.runs[1].launch_extent = None;
        let judgement = judged(&["launch.total > +5%"], [side("old", 6, 400 * MS), new]).unwrap();
        assert_eq!(only_measure(&judgement).runs, [6, 4]);
        let [note] = &judgement.notes[..] else { panic!("{:?}", judgement.notes) };
        assert!(
            note.starts_with("new: left out of launch.total") && note.ends_with(": new 0, new 1"),
            "{note}"
        );
        assert!(judgement.is_lossy());
    }

    #[test]
    fn a_condition_for_one_type_of_launches_takes_no_others() {
        let side = |title: &str| {
            let mut side = side(title, 12, 400 * MS);
            for run in &mut side.runs[..6] {
                run.launch_type = Some("cold".to_owned());
            }
            side
        };
        let judgement = judged(&["launch.total[cold] > +5%"], [side("old"), side("new")]).unwrap();
        let measure = only_measure(&judgement);
        assert_eq!((measure.name.as_str(), measure.runs), ("launch.total[cold]", [6, 6]));
    }

    #[test]
    fn losses_are_noted_with_the_first_names() {
        let mut old = side("old", 6, 400 * MS);
        old.runs.iter_mut().take(5).for_each(|run| run.is_lossy = true);
        let judgement = judged(&["launch.total > +5%"], [old, side("new", 6, 400 * MS)]).unwrap();
        let expected = "old: events are missing, or an input is damaged: old 0, old 1, old 2 and 2 more";
        assert_eq!(judgement.notes, [expected]);
    }

    #[test]
    fn sides_without_runs_or_with_a_run_of_both_are_refused() {
        let error = judged(&["launch.total > +5%"], [side("old", 5, MS), side("new", 0, MS)]).unwrap_err();
        assert_eq!(error.to_string(), "new: there are no runs");
        let mut new = side("new", 5, MS);
        new.runs[4].identity = "old 0".to_owned();
        let error = judged(&["launch.total > +5%"], [side("old", 5, MS), new]).unwrap_err();
        assert!(matches!(error, GateError::OnBothSides(name) if name == "new 4"));
        let error = judged(&["method.* > +5%"], [side("old", 5, MS), side("new", 5, MS)]).unwrap_err();
        assert_eq!(error.to_string(), "'method.* > +5%': no run has method.*: none has a method trace");
    }
}
