//! Text in forms that several rooms read or write: patterns of names, CSV fields, dates, sizes, files of
//! names.

mod byte_size;
mod csv;
mod file_name;
mod names_file;
mod star_pattern;
mod utc_date;

pub use byte_size::byte_size;
pub use csv::{csv_field, push_csv_field};
pub use file_name::file_name;
pub use names_file::read_names;
pub use star_pattern::contains as contains_pattern;
pub use star_pattern::is_whole as is_whole_pattern;
pub use tracebridge_markers::internals::two_digits;
pub use utc_date::utc_date;
