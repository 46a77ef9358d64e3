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

/// The width of the widest time that [`duration`] prints.
pub(super) const DURATION_WIDTH: usize = 7;
/// The width of the widest share that [`share`] prints, of a part that is no larger than its whole.
pub(super) const SHARE_WIDTH: usize = 6;

/// The units of times with their length in ns, and the first time that needs the next unit: the first that
/// would be printed with more than three digits, or four of seconds and hours.
const UNITS: [(u64, &str, u64); 6] = [
    (1, "ns", 1_000),
    (1_000, "µs", 999_500),
    (1_000_000, "ms", 999_500_000),
    (1_000_000_000, "s ", 9_999_500_000_000),
    (3_600_000_000_000, "h ", 35_998_200_000_000_000),
    (31_557_600_000_000_000, "y ", u64::MAX),
];

/// A time in ns with three digits and its unit: `4.45 s `, `972 ms`. All units have two characters, so that
/// times that end in one column have their numbers in one.
pub(super) fn duration(ns: u64) -> String {
    let longest = UNITS[UNITS.len() - 1];
    let (unit_ns, unit, _) = UNITS.into_iter().find(|(.., limit)| ns < *limit).unwrap_or(longest);
    let in_parts = |parts: u128| (u128::from(ns) * parts + u128::from(unit_ns / 2)) / u128::from(unit_ns);
    if unit_ns == 1 {
        return format!("{ns} {unit}");
    }
    let hundredths = in_parts(100);
    if hundredths < 1_000 {
        return format!("{}.{:02} {unit}", hundredths / 100, hundredths % 100);
    }
    let tenths = in_parts(10);
    if tenths < 1_000 {
        return format!("{}.{} {unit}", tenths / 10, tenths % 10);
    }
    format!("{} {unit}", in_parts(1))
}

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
    fn a_time_has_three_digits_and_a_unit_of_two_characters() {
        for (ns, printed) in [
            (0, "0 ns"),
            (850, "850 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (12_345, "12.3 µs"),
            (9_996, "10.0 µs"),
            (99_960, "100 µs"),
            (972_570_000, "973 ms"),
            (999_499_999, "999 ms"),
            (999_500_000, "1.00 s "),
            (39_241_450_000, "39.2 s "),
            (4_450_141_000, "4.45 s "),
            (1_234_000_000_000, "1234 s "),
            (9_998_000_000_000, "9998 s "),
            (9_999_500_000_000, "2.78 h "),
            (u64::MAX, "585 y "),
        ] {
            assert_eq!(duration(ns), printed, "{ns}");
        }
    }

    #[test]
    fn no_time_is_wider_than_its_column_and_longer_times_never_print_smaller_numbers() {
        let value = |text: &str| {
            let (number, unit) = text.split_at(text.find(' ').unwrap());
            let unit_ns = UNITS.iter().find(|(_, name, _)| *name == &unit[1..]).unwrap().0;
            number.parse::<f64>().unwrap() * unit_ns as f64
        };
        let mut ns = 1u64;
        let mut last = 0.0;
        while let Some(next) = ns.checked_add(ns / 97 + 1) {
            let text = duration(ns);
            assert!(text.chars().count() <= DURATION_WIDTH, "{ns}: {text}");
            assert!(value(&text) >= last, "{ns}: {text} after {last}");
            assert!((value(&text) / ns as f64 - 1.0).abs() < 0.0051, "{ns}: {text}");
            ns = next;
            last = value(&text);
        }
    }

    #[test]
    fn numbers_have_separators() {
        assert_eq!(
            [0, 999, 1_000, 13_295, 1_234_567].map(count),
            ["0", "999", "1,000", "13,295", "1,234,567"]
        );
    }
}
