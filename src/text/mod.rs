//! Text in forms that several rooms read or write: shell patterns, CSV fields, text inside HTML pages and
//! JavaScript.

mod glob;

#[cfg(feature = "host")]
mod csv;
#[cfg(feature = "host")]
mod html;
#[cfg(feature = "host")]
mod javascript;

#[cfg(feature = "host")]
pub(crate) use glob::contains as contains_pattern;
pub(crate) use glob::matches as glob_matches;

#[cfg(feature = "host")]
pub(crate) use csv::{csv_field, push_csv_field};
#[cfg(feature = "host")]
pub(crate) use html::{escape_html, unescape_script, write_script_text};
#[cfg(feature = "host")]
pub(crate) use javascript::unescape_javascript;
