//! Text inside HTML pages and JavaScript strings: each encoder beside its decoder.

mod html;
mod javascript;

pub(crate) use html::{escape_attribute, escape_html, unescape_script, write_script_text};
pub(crate) use javascript::unescape_javascript;
