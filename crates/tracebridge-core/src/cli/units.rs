//! Parses times and sizes as people write them on a command line.

use std::time::Duration;

/// Parses a time such as `5`, `5s`, `500ms`, `2m` or `1h`. A number without a unit is in seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let unit_ns = match unit {
        "" | "s" => SECOND,
        "ms" => SECOND / 1_000,
        "m" => 60 * SECOND,
        "h" => 3600 * SECOND,
        _ => return Err("a time is a number with ms, s, m or h: 500ms, 5, 5s, 2m".into()),
    };
    decimal(number, unit_ns).map(Duration::from_nanos)
}

/// Parses a place in a trace such as `1.5s`, `200ms`, `350us` or `80ns`, in ns. A number without a unit is in
/// seconds.
pub fn nanoseconds(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let unit_ns = match unit {
        "" | "s" => SECOND,
        "ms" => SECOND / 1_000,
        "us" | "µs" => 1_000,
        "ns" => 1,
        "m" => 60 * SECOND,
        _ => return Err("a time is a number with s, ms, us, ns or m: 1.5s, 200ms, 350us".into()),
    };
    decimal(number, unit_ns)
}

/// A second in ns.
const SECOND: u64 = 1_000_000_000;

/// The time of a decimal number of units, ns. The standard library's parser of floating point would be an
/// eightieth of the device's binary.
fn decimal(number: &str, unit_ns: u64) -> Result<u64, String> {
    let wrong = || format!("{number:?} is not a number");
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return Err(wrong());
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| wrong())? };
    // Digits behind the nanosecond are left out.
    let mut ns = whole.checked_mul(unit_ns).ok_or("the time is too long")?;
    let mut place = unit_ns;
    for digit in fraction.bytes() {
        place /= 10;
        ns = ns.checked_add(place * u64::from(digit - b'0')).ok_or("the time is too long")?;
    }
    Ok(ns)
}

/// Parses a size in bytes such as `4096`, `64k`, `20m` or `2g`. The units are powers of 1024.
pub fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let factor: u64 = match unit.to_ascii_lowercase().trim_end_matches('b') {
        "" => 1,
        "k" | "ki" => 1 << 10,
        "m" | "mi" => 1 << 20,
        "g" | "gi" => 1 << 30,
        _ => return Err("a size is a number of bytes with k, m or g: 64k, 20m, 2g".into()),
    };
    let number: u64 = number.parse().map_err(|_| format!("{number:?} is not a whole number"))?;
    number.checked_mul(factor).ok_or_else(|| "the size is too large".into())
}

fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_number_is_seconds_or_bytes() {
        assert_eq!(duration("5"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(nanoseconds("1.5s"), Ok(1_500_000_000));
        assert_eq!((nanoseconds("200ms"), nanoseconds("350us")), (Ok(200_000_000), Ok(350_000)));
        assert_eq!((nanoseconds("0.000000001"), nanoseconds("1.0000000019")), (Ok(1), Ok(1_000_000_001)));
        assert_eq!(
            (nanoseconds("8ns"), nanoseconds(".5us"), nanoseconds("2m")),
            (Ok(8), Ok(500), Ok(120_000_000_000))
        );
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(bytes("20MB"), Ok(20 << 20));
        assert_eq!(bytes("2g"), Ok(2 << 30));
    }

    #[test]
    fn text_that_is_not_a_time_or_size_is_refused() {
        assert!(duration("5 days").is_err() && duration("").is_err() && duration("-1").is_err());
        assert!(["", ".", "1.2.3s", "-1s", "5h", "s"].iter().all(|text| nanoseconds(text).is_err()));
        assert!(bytes("1.5k").is_err() && bytes("20t").is_err() && bytes("99999999999g").is_err());
    }
}
