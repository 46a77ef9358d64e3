//! Prints a record as the kernel would. The `print fmt:` line of the record's event type is compiled to a
//! program once.

mod bprint;
mod byte_text;
mod error;
mod eval;
mod expr;
mod lex;
mod parse;
#[cfg(test)]
mod parse_tests;
mod pointer;
mod program;
mod spec;
mod symbolizer;

pub use error::PrintFmtError;
pub use program::PrintFmt;
pub use symbolizer::{Loader, Symbolizer};
