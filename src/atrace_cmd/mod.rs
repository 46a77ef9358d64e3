//! The drop-in `atrace`: AOSP's command line, output and order of doings, on top of the recorder's seams.

mod getopt;
mod options;

pub use options::{Options, Parsed, help, parse};
