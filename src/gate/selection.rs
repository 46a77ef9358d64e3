//! Which times of runs are read for a gate.

use std::collections::BTreeSet;

use super::condition::{Condition, measure_name};
use super::error::GateError;
use crate::export::run_times::Figure;

/// The names that are kept to be suggested where a condition names nothing.
const MAX_NAMES: usize = 10_000;
/// How many are suggested.
const SUGGESTED: usize = 5;

/// What is read of the runs of both sides.
#[derive(Debug)]
pub struct Selection<'a> {
    conditions: &'a [Condition],
    figures: BTreeSet<Figure>,
    /// Other names than those of the conditions.
    others: BTreeSet<(Figure, String)>,
}

impl<'a> Selection<'a> {
    /// What these conditions need.
    pub fn of(conditions: &'a [Condition]) -> Selection<'a> {
        let figures = conditions.iter().map(|condition| condition.figure).collect();
        Selection { conditions, figures, others: BTreeSet::new() }
    }

    /// The conditions.
    pub fn conditions(&self) -> &'a [Condition] {
        self.conditions
    }

    /// What is measured.
    pub fn figures(&self) -> &BTreeSet<Figure> {
        &self.figures
    }

    /// Whether a condition names this. Other names are kept for an error.
    pub fn wants(&mut self, figure: Figure, name: &str) -> bool {
        let is_wanted = self.conditions.iter().any(|condition| condition.matches(figure, name));
        if !is_wanted && self.others.len() < MAX_NAMES {
            self.others.insert((figure, name.to_owned()));
        }
        is_wanted
    }

    /// The error for a condition that names nothing: with names that are like its own.
    pub(super) fn nothing_measured(&self, condition: &Condition) -> GateError {
        let figure = condition.figure;
        let wanted = condition.name.replace('*', "");
        let others = self.others.iter().filter(|(of, _)| *of == figure);
        let mut near: Vec<(f64, &str)> =
            others.map(|(_, name)| (strsim::jaro_winkler(&wanted, name), name.as_str())).collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0));
        let near: Vec<String> =
            near.iter().take(SUGGESTED).map(|(_, name)| measure_name(figure, name)).collect();
        let instead = match (figure, near.is_empty()) {
            (Figure::Launch, _) => {
                "none has Android's markers of a launch (record the categories am, wm and view)".to_owned()
            }
            (Figure::Ttid | Figure::Ttfd, _) => {
                "none has a launch with the frames that it needs (record the categories view and gfx)"
                    .to_owned()
            }
            (Figure::Frame, true) => "none has frames (record the category gfx and view)".to_owned(),
            (Figure::Method, true) => "none has a method trace".to_owned(),
            (Figure::State, true) => "none has scheduling events of a main thread".to_owned(),
            (_, true) => "none has slices there".to_owned(),
            (_, false) => format!("there are {}", near.join(", ")),
        };
        let measure = measure_name(figure, &condition.name);
        GateError::NothingMeasured { condition: condition.text.clone(), measure, instead }
    }
}
