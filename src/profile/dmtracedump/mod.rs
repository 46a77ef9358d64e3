//! What dmtracedump printed, in its layout: the profile as text and HTML, the difference of two, the raw records.

mod diff;
mod dump;
mod html;
mod text;

pub use diff::write_diff;
pub use dump::{Dump, DumpOptions, default_clock, write_records};
pub use html::{write_diff as write_html_diff, write_html};
pub use text::write_text;
