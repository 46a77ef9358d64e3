//! Prints a record as the kernel would. The `print fmt:` line of the record's event type is compiled to a
//! program once.

mod bprint;
mod byte_text;
mod c_types;
pub mod digits;
mod error;
mod eval;
mod expr;
pub mod inline_bytes;
mod lex;
mod parse;
pub mod piece_writer;
mod pointer;
mod program;
mod render_cache;
mod spec;
mod symbolizer;

pub use error::PrintFmtError;
pub use program::PrintFmt;
pub use symbolizer::{Loader, Symbolizer};
