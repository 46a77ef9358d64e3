//! The output of AOSP's dmtracedump in its own layout: the profile as text and HTML, the difference of two
//! traces, the raw records, the call graph.

mod diff;
mod diff_html;
pub(crate) mod dot;
mod dump;
mod html;
mod page;
mod run;
mod text;

pub use run::{DumpRequest, run};
