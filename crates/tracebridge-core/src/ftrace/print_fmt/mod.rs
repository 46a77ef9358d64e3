//! Prints a record as the kernel would. The `print fmt:` line of the record's event type is compiled to a
//! program once.

mod byte_text;
mod eval;
mod expr;
mod lex;
mod parse;
#[cfg(test)]
mod parse_tests;
mod program;
mod spec;
mod symbolizer;

use thiserror::Error;

pub use program::PrintFmt;
pub use symbolizer::{Loader, Symbolizer};

/// Why a print format cannot be followed. The event's fields can be printed all the same.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PrintFmtError {
    /// The format is not C, or uses parts of C that no print format of the kernel uses.
    #[error("not understood: {0}")]
    Syntax(String),
    /// An argument of the format has more operators, or deeper brackets, than are evaluated.
    #[error("has {0}")]
    TooComplex(String),
    /// The format uses something that only the kernel has.
    #[error("uses {0}")]
    Unsupported(String),
}
