//! Parses times and sizes as people write them on a command line.

use std::time::Duration;

/// Parses a time such as `5`, `5s`, `500ms`, `2m` or `1h`. A number without a unit is in seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let seconds = match unit {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("a time is a number with ms, s, m or h: 500ms, 5, 5s, 2m".into()),
    };
    let number: f64 = number.parse().map_err(|_| format!("{number:?} is not a number"))?;
    Duration::try_from_secs_f64(number * seconds).map_err(|e| e.to_string())
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
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(bytes("20MB"), Ok(20 << 20));
        assert_eq!(bytes("2g"), Ok(2 << 30));
    }

    #[test]
    fn text_that_is_not_a_time_or_size_is_refused() {
        assert!(duration("5 days").is_err() && duration("").is_err() && duration("-1").is_err());
        assert!(bytes("1.5k").is_err() && bytes("20t").is_err() && bytes("99999999999g").is_err());
    }
}
