//! A judgement in words and figures for people: what the text, Markdown and JUnit outputs share.

use super::condition::{Limit, Size, Unit};
use super::judge::{JudgedCondition, JudgedMeasure, Judgement, Outcome, Verdict};
use crate::measure::WHOLE_SHARE;

/// The rows of a condition that people read, beside those that close the gate. JSON and JUnit have all.
const ROWS: usize = 12;
/// The rows that close the gate.
const CLOSING_ROWS: usize = 50;

/// The titles of the columns.
pub(super) const TITLES: [&str; 8] =
    ["measure", "baseline", "candidate", "change", "95 % interval", "p", "runs", "verdict"];

/// The cells of a measure.
pub(super) fn cells(condition: &JudgedCondition, measure: &JudgedMeasure) -> [String; 8] {
    let JudgedMeasure { runs: [old_runs, new_runs], medians: [old, new], change, .. } = measure;
    let interval = change.interval.map(|ends| ends.map(|ns| size(condition, measure, ns)).join(" to "));
    [
        measure.name.clone(),
        if *old_runs > 0 { value(measure.unit, *old as f64) } else { "-".into() },
        if *new_runs > 0 { value(measure.unit, *new as f64) } else { "-".into() },
        if old_runs.min(new_runs) > &0 { size(condition, measure, change.estimate) } else { "-".into() },
        interval.unwrap_or_else(|| "-".into()),
        measure.p_adjusted.or(measure.p).map_or("-".into(), p_value),
        format!("{old_runs}, {new_runs}"),
        verdict(measure),
    ]
}

/// A change in the unit of the condition: of percent where the baseline takes any time.
fn size(condition: &JudgedCondition, measure: &JudgedMeasure, change: f64) -> String {
    let (Limit::Slower(size) | Limit::Faster(size)) = condition.condition.limit;
    match (size, measure.percent(change)) {
        (Size::Percent(_), Some(percent)) => format!("{percent:+.1} %"),
        _ if measure.unit == Unit::Share => format!("{:+.2} pp", points(change)),
        _ => format!("{:+.3} ms", change / 1e6),
    }
}

/// A measured value.
fn value(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Share => format!("{:.2} %", points(value)),
        Unit::Time | Unit::Overrun => format!("{:.3} ms", value / 1e6),
    }
}

/// A share in percent.
fn points(share: f64) -> f64 {
    share * 100.0 / WHOLE_SHARE as f64
}

fn p_value(p: f64) -> String {
    if p < 0.0001 { "<0.0001".to_owned() } else { format!("{p:.4}") }
}

/// The verdict in words.
pub(super) fn verdict(measure: &JudgedMeasure) -> String {
    match measure.verdict {
        Verdict::Passes if measure.is_beyond => "passes: the change may be noise".to_owned(),
        Verdict::Passes => "passes".to_owned(),
        Verdict::Closes => "closes".to_owned(),
        Verdict::TooRare => "not judged: too few of the runs have it".to_owned(),
        Verdict::Undecided { runs_needed } => format!("undecided: {runs_needed} runs a side are needed"),
    }
}

/// The measures of a condition that people read, and how many others there are.
pub(super) fn shown(condition: &JudgedCondition) -> (&[JudgedMeasure], usize) {
    let closing = condition.measures.iter().filter(|measure| measure.verdict == Verdict::Closes).count();
    let rows = ROWS.max(closing.min(CLOSING_ROWS)).min(condition.measures.len());
    (&condition.measures[..rows], condition.measures.len() - rows)
}

/// The outcome in one sentence.
pub(super) fn outcome(judgement: &Judgement) -> String {
    let closing = judgement.count(|verdict| *verdict == Verdict::Closes);
    let undecided = judgement.count(|verdict| matches!(verdict, Verdict::Undecided { .. }));
    let all = judgement.count(|_| true);
    let of = |some: usize| match all {
        1 => "the measure".to_owned(),
        all => format!("{some} of {all} measures"),
    };
    match judgement.outcome() {
        Outcome::Open => format!(
            "The gate is open: {} passed.",
            if all == 1 { of(1) } else { of(judgement.count(|verdict| *verdict == Verdict::Passes)) }
        ),
        Outcome::Closed => format!("The gate is closed by {}.", of(closing)),
        Outcome::Undecided if undecided > 0 => {
            format!("The gate cannot decide: there are too few runs for {}.", of(undecided))
        }
        Outcome::Undecided => {
            "The gate cannot decide: too few of the runs have what a condition names.".to_owned()
        }
    }
}

/// What the two sides are: `baseline: lab (build=1233), 20 runs`.
pub(super) fn sides(judgement: &Judgement) -> [String; 2] {
    let line = |side: usize, name: &str| {
        let (title, runs) = (&judgement.titles[side], judgement.runs[side]);
        format!("{name}: {title}, {runs} run{}", if runs == 1 { "" } else { "s" })
    };
    [line(0, "baseline"), line(1, "candidate")]
}
