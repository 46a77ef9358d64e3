//! Text in forms that several rooms read or write: shell patterns, CSV fields, dates, files of names, HTML
//! and JavaScript.

mod csv;
mod file_name;
mod glob;
#[cfg(feature = "host")]
pub(crate) mod markup;
mod names_file;
mod two_digits;
mod utc_date;

pub(crate) use csv::{csv_field, push_csv_field};
pub(crate) use file_name::file_name;
pub(crate) use glob::contains as contains_pattern;
pub(crate) use glob::is_whole as is_whole_pattern;
pub use glob::matches as glob_matches;
pub(crate) use names_file::read_names;
pub(crate) use two_digits::two_digits;
pub(crate) use utc_date::utc_date;
