//! Text in forms that several rooms read or write: shell patterns, CSV fields, text inside HTML pages and
//! JavaScript.

mod glob;

mod csv;
mod html;
mod javascript;

pub(crate) use glob::contains as contains_pattern;
pub(crate) use glob::matches as glob_matches;

pub(crate) use csv::{csv_field, push_csv_field};
pub(crate) use html::{escape_html, unescape_script, write_script_text};
pub(crate) use javascript::unescape_javascript;
