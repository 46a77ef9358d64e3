//! Figures as people read them: times with units, numbers with separators, shares.

use crate::formats::art_method::{CPU, WALL};

/// The two figures that each row has with its callees and without them, by the indexes of
/// [`Ticks`](crate::formats::art_method::Ticks): their names, and whether they are times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FigureColumns {
    /// For people; `None` for a figure that the profile does not have.
    names: [Option<&'static str>; 2],
    /// In JSON and CSV.
    fields: [&'static str; 2],
    is_time: [bool; 2],
    /// Whether rows are of samples.
    pub is_sampled: bool,
}

impl FigureColumns {
    /// The figures of a method trace that has these clocks.
    pub(super) fn of_calls(has_cpu: bool, has_wall: bool) -> FigureColumns {
        let mut names = [None; 2];
        names[CPU] = has_cpu.then_some("cpu");
        names[WALL] = has_wall.then_some("wall");
        let mut fields = ["cpu"; 2];
        fields[WALL] = "wall";
        FigureColumns { names, fields, is_time: [true; 2], is_sampled: false }
    }

    /// The figures of samples: their weight under the name `name`, and the time in which threads did not run.
    pub(super) fn of_samples(name: &'static str, is_time: bool, has_off_cpu: bool) -> FigureColumns {
        let mut columns = FigureColumns::of_calls(has_off_cpu, true);
        columns.names[WALL] = Some(name);
        columns.names[CPU] = has_off_cpu.then_some("off-CPU");
        columns.fields[WALL] = "weight";
        columns.fields[CPU] = "off_cpu";
        columns.is_time[WALL] = is_time;
        FigureColumns { is_sampled: true, ..columns }
    }

    /// Whether the profile has the figure.
    pub(super) fn has(&self, clock: usize) -> bool {
        self.names[clock].is_some()
    }

    /// The figures with their names, in the order of the fields in JSON and CSV.
    pub(super) fn named(&self) -> impl Iterator<Item = (usize, &'static str)> + Clone + use<> {
        let names = self.names;
        [WALL, CPU].into_iter().filter_map(move |clock| Some((clock, names[clock]?)))
    }

    /// The figures that both profiles have.
    pub(super) fn common(&self, other: &FigureColumns) -> FigureColumns {
        let names = [0, 1].map(|clock| self.names[clock].filter(|_| other.has(clock)));
        FigureColumns { names, ..*self }
    }

    /// The field of a figure in JSON and CSV: `wall_exclusive_ns`.
    pub(super) fn field(&self, clock: usize, kind: &str) -> String {
        let unit = if self.fields[clock] == "weight" { "" } else { "_ns" };
        format!("{}_{kind}{unit}", self.fields[clock])
    }

    /// A figure for people.
    pub(super) fn show(&self, clock: usize, value: u64) -> String {
        if self.is_time[clock] { duration(value) } else { count(value) }
    }

    /// The width of a column with values up to `largest`.
    pub(super) fn width(&self, clock: usize, largest: u64) -> usize {
        if self.is_time[clock] { DURATION_WIDTH } else { count(largest).len() }
    }

    /// Whether the figure is a time.
    pub(super) fn is_time(&self, clock: usize) -> bool {
        self.is_time[clock]
    }

    /// The things that the number beside the figures counts.
    pub(super) fn count_name(&self) -> &'static str {
        if self.is_sampled { "samples" } else { "calls" }
    }
}

pub(super) use crate::text::padded_duration as duration;

/// The width of the widest time that [`duration`] prints.
pub(super) const DURATION_WIDTH: usize = 7;
/// The width of the widest share that [`share`] prints, of a part that is no larger than its whole.
pub(super) const SHARE_WIDTH: usize = 6;

/// A number with a comma between each three digits.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A share in percent; 0 where the whole is 0.
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// A share for people: `74.6%`.
pub(super) fn share(percent: f64) -> String {
    format!("{percent:.1}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_separators() {
        assert_eq!(
            [0, 999, 1_000, 13_295, 1_234_567].map(count),
            ["0", "999", "1,000", "13,295", "1,234,567"]
        );
    }
}
