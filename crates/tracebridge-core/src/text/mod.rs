//! Text in forms that several rooms read or write: names and patterns of names, CSV fields, dates, sizes, and
//! numbers and short pieces that are put together fast.

mod byte_size;
mod csv;
pub mod digits;
mod names;
pub mod pieces;
pub(crate) mod render_cache;

pub use byte_size::byte_size;
pub use csv::{csv_field, push_csv_field};
pub use names::{contains_pattern, file_name, is_whole_pattern, read_names};
pub use tracebridge_markers::internals::two_digits;

/// The bytes before the first NUL, or all bytes.
#[inline]
pub fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.iter().position(|b| *b == 0).map_or(bytes, |n| &bytes[..n])
}

/// Seconds of a day.
const DAY_S: u64 = 86_400;

/// The day of a time in UTC: `2026-11-22`. `seconds` count from 1970.
pub fn utc_date(seconds: u64) -> String {
    // Days since 0000-03-01, by eras of 400 years (Howard Hinnant, chrono-compatible date algorithms).
    let days = seconds / DAY_S + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_on_its_day() {
        assert_eq!([0, 86_399, 86_400].map(utc_date), ["1970-01-01", "1970-01-01", "1970-01-02"]);
        assert_eq!(utc_date(951_782_400), "2000-02-29");
        assert_eq!(utc_date(1_795_305_600 - 1), "2026-11-21");
        assert_eq!(utc_date(1_795_305_600), "2026-11-22");
    }
}
