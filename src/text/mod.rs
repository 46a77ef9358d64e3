//! Text in forms that several rooms read or write: shell patterns, CSV fields, HTML and JavaScript.

mod csv;
mod glob;
#[cfg(feature = "host")]
pub(crate) mod markup;

pub(crate) use csv::{csv_field, push_csv_field};
pub(crate) use glob::contains as contains_pattern;
pub use glob::matches as glob_matches;
