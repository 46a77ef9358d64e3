//! Lengths of time for people.

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
pub fn padded_duration(ns: u64) -> String {
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

/// The same without a blank at its end: `4.45 s`.
pub fn duration(ns: u64) -> String {
    padded_duration(ns).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Characters of the widest text.
    const WIDEST: usize = 7;

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
            assert_eq!(padded_duration(ns), printed, "{ns}");
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
            let text = padded_duration(ns);
            assert!(text.chars().count() <= WIDEST, "{ns}: {text}");
            assert!(value(&text) >= last, "{ns}: {text} after {last}");
            assert!((value(&text) / ns as f64 - 1.0).abs() < 0.0051, "{ns}: {text}");
            ns = next;
            last = value(&text);
        }
    }

    #[test]
    fn short_times_keep_their_digits() {
        assert_eq!([14_999, 15_000, 700_000].map(duration), ["15.0 µs", "15.0 µs", "700 µs"]);
        assert_eq!(duration(4_329_000_000), "4.33 s");
    }
}
