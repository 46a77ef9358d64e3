//! A judgement for scripts.

use serde_json::{Value, json};

use super::condition::Unit;
use super::judge::{JudgedMeasure, Judgement, LEVEL, Outcome, Verdict};
use crate::measure::WHOLE_SHARE;

impl Judgement {
    /// The judgement as docs/schemas/gate.json describes it: times in ns.
    pub fn to_json(&self) -> Value {
        let side = |side: usize| json!({ "title": self.titles[side], "runs": self.runs[side] });
        let conditions: Vec<Value> = self
            .conditions
            .iter()
            .map(|judged| {
                let measures: Vec<Value> = judged.measures.iter().map(measure_json).collect();
                json!({ "condition": judged.condition.text, "measures": measures })
            })
            .collect();
        json!({
            "outcome": match self.outcome() {
                Outcome::Open => "open",
                Outcome::Closed => "closed",
                Outcome::Undecided => "undecided",
            },
            "level": LEVEL,
            "baseline": side(0),
            "candidate": side(1),
            "tested_together": self.tested,
            "conditions": conditions,
            "grown": self.grown,
            "notes": self.notes,
            "lossy": self.is_lossy(),
        })
    }
}

fn measure_json(measure: &JudgedMeasure) -> Value {
    let JudgedMeasure { runs, medians, change, .. } = measure;
    let median = |side: usize| (runs[side] > 0).then(|| medians[side]);
    let is_measured = runs[0].min(runs[1]) > 0;
    let is_share = measure.unit == Unit::Share;
    // Times are whole ns; a share is told as a number from 0 to 1.
    let ns = |value: Option<f64>| value.filter(|_| !is_share);
    let share = |value: Option<f64>| value.filter(|_| is_share).map(|value| value / WHOLE_SHARE as f64);
    let change_of = is_measured.then_some(change.estimate);
    let percent = |ns: f64| measure.percent(ns);
    json!({
        "measure": measure.name,
        "verdict": match measure.verdict {
            Verdict::Passes => "passes",
            Verdict::Closes => "closes",
            Verdict::TooRare => "too rare",
            Verdict::Undecided { .. } => "undecided",
        },
        "runs_needed": match measure.verdict {
            Verdict::Undecided { runs_needed } => Some(runs_needed),
            _ => None,
        },
        "baseline_runs": runs[0],
        "candidate_runs": runs[1],
        "baseline_median_ns": median(0).filter(|_| !is_share),
        "candidate_median_ns": median(1).filter(|_| !is_share),
        "baseline_median_share": share(median(0).map(|value| value as f64)),
        "candidate_median_share": share(median(1).map(|value| value as f64)),
        "change_ns": ns(change_of),
        "change_share": share(change_of),
        "change_percent": is_measured.then(|| percent(change.estimate)).flatten(),
        "interval_ns": change.interval.filter(|_| !is_share),
        "interval_share": change.interval.filter(|_| is_share).map(|ends| ends.map(|end| end / WHOLE_SHARE as f64)),
        "interval_percent": change.interval.and_then(|[low, high]| Some([percent(low)?, percent(high)?])),
        "p": measure.p,
        "p_adjusted": measure.p_adjusted,
        "is_beyond": measure.is_beyond,
    })
}
