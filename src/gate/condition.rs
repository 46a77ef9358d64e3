//! The conditions of a gate (`launch.total > +5%`), and the times of runs that they need.

use std::collections::BTreeSet;

use crate::measure::{JANKY, MeasureKind, PERCENTILES, WHOLE_SHARE};
use crate::text::is_whole_pattern;

/// A condition under which the gate closes.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// As the user wrote it.
    pub text: String,
    /// The kind of the measure.
    pub figure: MeasureKind,
    /// The name; a `*` stands for any text. Empty for a launch and its times to display.
    pub name: String,
    /// The type of the launches that count: `cold`, `warm` or `hot`; `None` for all.
    pub launch_type: Option<String>,
    /// Which change closes the gate.
    pub limit: Limit,
}

/// A change that closes the gate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// The candidate is slower by more than this.
    Slower(Size),
    /// The candidate is faster by more than this.
    Faster(Size),
}

/// The size of a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Size {
    /// Percent of the baseline's median.
    Percent(f64),
    /// Nanoseconds.
    Ns(f64),
    /// Percentage points of a share.
    Points(f64),
}

impl Size {
    /// The size in the unit of the measure, whose median in the baseline is `baseline`.
    pub fn in_units(self, baseline: f64) -> f64 {
        match self {
            Size::Percent(percent) => baseline * percent / 100.0,
            Size::Ns(ns) => ns,
            Size::Points(points) => points * WHOLE_SHARE as f64 / 100.0,
        }
    }
}

/// The unit of the numbers of a measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A length of time, ns.
    Time,
    /// A time after a deadline, ns: negative before it. A percentage of it means nothing.
    Overrun,
    /// Parts of [`WHOLE_SHARE`].
    Share,
}

impl Unit {
    /// The unit of the measure with this name.
    pub fn new(figure: MeasureKind, name: &str) -> Unit {
        match figure {
            MeasureKind::Frame if name == JANKY => Unit::Share,
            MeasureKind::Frame if name.starts_with("overrun.") => Unit::Overrun,
            // androidx's frameOverrunMs.
            MeasureKind::Benchmark if name.contains("Overrun") => Unit::Overrun,
            _ => Unit::Time,
        }
    }

    /// Why a change of a measure cannot have this size; `None` if it can.
    fn mismatch(self, size: Size) -> Option<UnitMismatch> {
        match (self, size) {
            (Unit::Overrun, Size::Percent(_)) => Some(UnitMismatch::PartOfOverrun),
            (Unit::Share, Size::Ns(_)) => Some(UnitMismatch::TimeOfShare),
            (Unit::Time | Unit::Overrun, Size::Points(_)) => Some(UnitMismatch::PointsOfTime),
            _ => None,
        }
    }
}

/// Why a change of a measure cannot have a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnitMismatch {
    /// Percent of a time after a deadline.
    #[error("an overrun counts from a deadline, so that a part of it means nothing: give s, ms, us or ns")]
    PartOfOverrun,
    /// Nanoseconds of a share.
    #[error("it is a share: give % of the baseline or pp, percentage points")]
    TimeOfShare,
    /// Percentage points of a time.
    #[error("it is a time: pp is for frame.janky alone")]
    PointsOfTime,
}

/// Why a text is no condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at character {column}: {fault}; a condition is MEASURE > +CHANGE, such as 'launch.total > +5%'")]
pub struct ConditionError {
    /// The place of the fault, counted in characters from 1.
    pub column: usize,
    /// The fault.
    pub fault: ConditionFault,
}

/// A fault of a condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionFault {
    /// Nothing says whether the candidate may be slower or faster.
    #[error("there is no > or <")]
    NoOperator,
    /// This is measured of no run.
    #[error(
        "{0:?} is no measure: it is launch.total, launch.ttid, launch.ttfd, stage.NAME, slice.NAME, method.NAME, \
         state.NAME, frame.cpu.pNN, frame.overrun.pNN, frame.janky or benchmark.NAME"
    )]
    NoMeasure(String),
    /// A change without its sign.
    #[error("{change:?} is no change to be {} by: it begins with {}", .direction.name(), .direction.sign())]
    NoSign {
        /// The change as the user wrote it.
        change: String,
        /// The direction that the operator names.
        direction: Direction,
    },
    /// The number or the unit cannot be read.
    #[error("{0:?} is no size of a change: it is a number with %, s, ms, us, ns or pp")]
    NoSize(String),
    /// The measure cannot change by such a size.
    #[error("{measure}: {mismatch}")]
    WrongUnit {
        /// The measure as the user wrote it.
        measure: String,
        /// Why it cannot.
        mismatch: UnitMismatch,
    },
}

/// The direction of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The candidate takes longer.
    Slower,
    /// The candidate takes less time.
    Faster,
}

impl Direction {
    fn name(self) -> &'static str {
        match self {
            Direction::Slower => "slower",
            Direction::Faster => "faster",
        }
    }

    fn sign(self) -> char {
        match self {
            Direction::Slower => '+',
            Direction::Faster => '-',
        }
    }
}

/// The measures that have a name, by the begin of their text.
const NAMED: [(&str, MeasureKind); 6] = [
    ("stage.", MeasureKind::Stage),
    ("slice.", MeasureKind::Slice),
    ("method.", MeasureKind::Method),
    ("state.", MeasureKind::State),
    ("frame.", MeasureKind::Frame),
    ("benchmark.", MeasureKind::Benchmark),
];
/// The measures of a launch.
const OF_LAUNCH: [(&str, MeasureKind); 3] = [
    ("launch.total", MeasureKind::Launch),
    ("launch.ttid", MeasureKind::Ttid),
    ("launch.ttfd", MeasureKind::Ttfd),
];

impl Condition {
    /// Parses a condition: `launch.total > +5%`, `slice.inflate* > +2ms`, `state.runnable < -10%`.
    ///
    /// # Errors
    /// [`ConditionError`] says at which character the text is wrong.
    pub fn parse(text: &str) -> Result<Condition, ConditionError> {
        let error = |at: usize, fault: ConditionFault| {
            let at = text.get(..at).unwrap_or(text);
            Err(ConditionError { column: at.chars().count() + 1, fault })
        };
        // Names may have these characters (`a.B.<init>`), and changes have none.
        let Some(operator) = text.rfind(['<', '>']) else {
            return error(text.len(), ConditionFault::NoOperator);
        };
        let measure = text[..operator].trim();
        let measure_at = operator - text[..operator].trim_start().len();
        let (measure, launch_type) = split_type(measure);
        let Some((figure, name)) = figure_of(measure) else {
            return error(measure_at, ConditionFault::NoMeasure(measure.to_owned()));
        };
        let change = text[operator + 1..].trim();
        let change_at = text.len() - text[operator + 1..].trim_start().len();
        let direction = if text[operator..].starts_with('>') { Direction::Slower } else { Direction::Faster };
        let Some(size) = change.strip_prefix(direction.sign()) else {
            return error(change_at, ConditionFault::NoSign { change: change.to_owned(), direction });
        };
        let Some(size) = size_of(size.trim_start()) else {
            return error(change_at + 1, ConditionFault::NoSize(size.to_owned()));
        };
        if let Some(mismatch) = Unit::new(figure, name).mismatch(size) {
            return error(change_at + 1, ConditionFault::WrongUnit { measure: measure.to_owned(), mismatch });
        }
        let limit = match direction {
            Direction::Slower => Limit::Slower(size),
            Direction::Faster => Limit::Faster(size),
        };
        let launch_type = launch_type.map(str::to_owned);
        Ok(Condition { text: text.trim().to_owned(), figure, name: name.to_owned(), launch_type, limit })
    }

    /// Whether the measure with this name is meant.
    pub fn matches(&self, figure: MeasureKind, name: &str) -> bool {
        self.figure == figure && is_whole_pattern(&self.name, name)
    }
}

/// The name of a measure: `slice.inflate`.
pub fn measure_name(figure: MeasureKind, name: &str) -> String {
    match NAMED.iter().find(|(_, named)| *named == figure) {
        Some((prefix, _)) => format!("{prefix}{name}"),
        None => {
            let of_launch = OF_LAUNCH.iter().find(|(_, of_launch)| *of_launch == figure);
            of_launch.map_or_else(String::new, |(measure, _)| (*measure).to_owned())
        }
    }
}

/// The types of launches that a condition may name behind its measure: `launch.ttid[cold]`.
const TYPES: [&str; 3] = ["cold", "warm", "hot"];

/// A measure, and the type of launches behind it.
fn split_type(measure: &str) -> (&str, Option<&'static str>) {
    let named = TYPES.iter().find_map(|launch_type| {
        let rest = measure.strip_suffix(']')?.strip_suffix(launch_type)?.strip_suffix('[')?;
        Some((rest.trim_end(), Some(*launch_type)))
    });
    named.unwrap_or((measure, None))
}

fn figure_of(measure: &str) -> Option<(MeasureKind, &str)> {
    if let Some((_, figure)) = OF_LAUNCH.iter().find(|(name, _)| *name == measure) {
        return Some((*figure, ""));
    }
    let named = |(prefix, figure): &(&str, MeasureKind)| Some((*figure, measure.strip_prefix(*prefix)?));
    let known = |(figure, name): &(MeasureKind, &str)| *figure != MeasureKind::Frame || is_of_frames(name);
    NAMED.iter().find_map(named).filter(|(_, name)| !name.is_empty()).filter(known)
}

/// Whether frames have a figure of this name: those of the percentiles that androidx gives, and patterns.
fn is_of_frames(name: &str) -> bool {
    let mut figures = vec![JANKY.to_owned()];
    for kind in ["cpu", "overrun"] {
        figures.extend(PERCENTILES.iter().map(|percent| format!("{kind}.p{percent}")));
    }
    figures.iter().any(|figure| is_whole_pattern(name, figure))
}

fn size_of(text: &str) -> Option<Size> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(unit_at);
    let number: f64 = number.parse().ok().filter(|number: &f64| number.is_finite())?;
    let unit_ns = match unit.trim_start() {
        "%" => return Some(Size::Percent(number)),
        "pp" => return Some(Size::Points(number)),
        "s" => 1e9,
        "ms" => 1e6,
        "us" | "µs" => 1e3,
        "ns" => 1.0,
        _ => return None,
    };
    Some(Size::Ns(number * unit_ns))
}

/// The most names that are kept to be suggested where a condition names nothing.
const MAX_NAMES: usize = 10_000;
/// How many names are suggested.
const SUGGESTED: usize = 5;

/// The times that are read of the runs of both sides.
#[derive(Debug)]
pub struct Selection<'a> {
    conditions: &'a [Condition],
    figures: BTreeSet<MeasureKind>,
    /// Other names than those of the conditions.
    others: BTreeSet<(MeasureKind, String)>,
}

impl<'a> Selection<'a> {
    /// The times that these conditions need.
    pub fn new(conditions: &'a [Condition]) -> Selection<'a> {
        let figures = conditions.iter().map(|condition| condition.figure).collect();
        Selection { conditions, figures, others: BTreeSet::new() }
    }

    /// The conditions.
    pub fn conditions(&self) -> &'a [Condition] {
        self.conditions
    }

    /// The figures of the conditions.
    pub fn figures(&self) -> &BTreeSet<MeasureKind> {
        &self.figures
    }

    /// Whether a condition names this. Other names are kept for an error.
    pub fn wants(&mut self, figure: MeasureKind, name: &str) -> bool {
        let is_wanted = self.conditions.iter().any(|condition| condition.matches(figure, name));
        if !is_wanted && self.others.len() < MAX_NAMES {
            self.others.insert((figure, name.to_owned()));
        }
        is_wanted
    }

    /// Measures of the runs with names that are like that of a condition, the most similar one first.
    pub(super) fn similar_measures(&self, condition: &Condition) -> Vec<String> {
        let wanted = condition.name.replace('*', "");
        let others = self.others.iter().filter(|(figure, _)| *figure == condition.figure);
        let mut near: Vec<(f64, &str)> =
            others.map(|(_, name)| (strsim::jaro_winkler(&wanted, name), name.as_str())).collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0));
        near.iter().take(SUGGESTED).map(|(_, name)| measure_name(condition.figure, name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_name_a_measure_and_a_change() {
        let parsed = |text: &str| {
            let condition = Condition::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            (condition.figure, condition.name, condition.limit)
        };
        let slower = |percent| Limit::Slower(Size::Percent(percent));
        assert_eq!(parsed("launch.total > +5%"), (MeasureKind::Launch, String::new(), slower(5.0)));
        let cold = Condition::parse("launch.ttid[cold] > +5%").unwrap();
        assert_eq!((cold.figure, cold.launch_type.as_deref()), (MeasureKind::Ttid, Some("cold")));
        assert_eq!(Condition::parse("launch.total > +5%").unwrap().launch_type, None);
        assert!(Condition::parse("launch.total[tepid] > +5%").is_err());
        assert_eq!(parsed("launch.ttid > +5%"), (MeasureKind::Ttid, String::new(), slower(5.0)));
        assert_eq!(parsed("launch.ttfd > +5%"), (MeasureKind::Ttfd, String::new(), slower(5.0)));
        assert_eq!(measure_name(MeasureKind::Ttid, ""), "launch.ttid");
        assert_eq!(parsed("launch.total>+2.5 %"), (MeasureKind::Launch, String::new(), slower(2.5)));
        assert_eq!(
            parsed(" slice.draw frame* > +2ms "),
            (MeasureKind::Slice, "draw frame*".into(), Limit::Slower(Size::Ns(2e6)))
        );
        assert_eq!(
            parsed("method.a.B.<init> < -350µs"),
            (MeasureKind::Method, "a.B.<init>".into(), Limit::Faster(Size::Ns(350e3)))
        );
        assert_eq!(
            parsed("stage.launch.total > + 0%"),
            (MeasureKind::Stage, "launch.total".into(), slower(0.0))
        );
        assert_eq!(parsed("state.I/O > +1s").2, Limit::Slower(Size::Ns(1e9)));
        let overrun = (MeasureKind::Frame, "overrun.p99".into(), Limit::Slower(Size::Ns(4e6)));
        assert_eq!(parsed("frame.overrun.p99 > +4ms"), overrun);
        let janky = (MeasureKind::Frame, "janky".into(), Limit::Slower(Size::Points(2.5)));
        assert_eq!(parsed("frame.janky > +2.5pp"), janky);
        assert_eq!(parsed("frame.janky > +50%").2, slower(50.0));
    }

    #[test]
    fn what_is_no_condition_is_told_with_its_place() {
        for (text, column, what) in [
            ("", 1, "there is no > or <"),
            ("launch.total", 13, "there is no > or <"),
            ("launch.totl > +5%", 1, "is no measure"),
            ("slice. > +5%", 1, "is no measure"),
            ("  é > +5%", 3, "is no measure"),
            ("launch.total > 5%", 16, "begins with +"),
            ("launch.total > 500ms", 16, "begins with +"),
            ("launch.total < +5%", 16, "begins with -"),
            ("launch.total > ", 16, "begins with +"),
            ("slice.é > +5 apples", 12, "\"5 apples\" is no size"),
            ("launch.total > +%", 17, "\"%\" is no size"),
            ("launch.total > +1.2.3%", 17, "is no size"),
            ("launch.total > +5", 17, "is no size"),
            ("launch.total > +1e3%", 17, "is no size"),
            ("launch.total > +1pp", 17, "pp is for frame.janky alone"),
            ("frame.janky > +1ms", 16, "it is a share"),
            ("frame.overrun.p95 > +5%", 22, "counts from a deadline"),
            ("frame.jank > +5%", 1, "is no measure"),
            ("frame.cpu.p42 > +5%", 1, "is no measure"),
        ] {
            let error = Condition::parse(text).unwrap_err();
            assert!(error.column == column && error.fault.to_string().contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn a_star_stands_for_any_text_in_a_name() {
        let condition = Condition::parse("slice.[draw]* > +5%").unwrap();
        assert!(condition.matches(MeasureKind::Slice, "[draw] 7"));
        assert!(
            !condition.matches(MeasureKind::Slice, "draw 7")
                && !condition.matches(MeasureKind::Stage, "[draw]")
        );
        assert_eq!(measure_name(MeasureKind::Slice, "a b"), "slice.a b");
        assert_eq!(measure_name(MeasureKind::Launch, ""), "launch.total");
    }
}
