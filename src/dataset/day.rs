//! Days of the calendar, in UTC.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::text::utc_date;

/// The day of a time, ns since 1970: `2026-11-22`.
pub(super) fn of_realtime(ns: u64) -> String {
    utc_date(ns / 1_000_000_000)
}

/// The day on which a file was last written; today where the system does not tell.
pub(super) fn of_file(path: &Path) -> String {
    let written =
        std::fs::metadata(path).and_then(|meta| meta.modified()).unwrap_or_else(|_| SystemTime::now());
    utc_date(written.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}
