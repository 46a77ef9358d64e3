//! Text in forms that several rooms read or write: shell patterns, CSV fields, dates, files of names, HTML
//! and JavaScript.

mod csv;
mod file_name;
#[cfg(feature = "host")]
pub(crate) mod markup;
mod names_file;
mod star_pattern;
mod utc_date;

pub(crate) use csv::{csv_field, push_csv_field};
pub(crate) use file_name::file_name;
pub(crate) use names_file::read_names;
pub(crate) use star_pattern::contains as contains_pattern;
pub(crate) use star_pattern::is_whole as is_whole_pattern;
pub(crate) use tracebridge_markers::internals::two_digits;
pub(crate) use utc_date::utc_date;
