//! The code that the recorder on a device and tracebridge on a host share: the kernel's bytes, the bytes of
//! trace.dat, atrace's categories, clocks, text, output files, and the parts of their command lines.
//!
//! The crate is part of the program `tracebridge`, and its interface changes with every version. A program
//! that uses the readers depends on `tracebridge`, and an app that writes markers on `tracebridge-markers`.

#![allow(missing_docs)] // No interface of the product: clear names go without.

pub mod android;
pub mod categories;
pub mod child;
pub mod cli;
pub mod clock;
pub mod console;
pub mod depth;
pub mod ftrace;
pub mod ids;
pub mod ignored_signals;
pub mod output_file;
#[cfg(unix)]
mod system_calls;
pub mod text;
pub mod trace_dat;
