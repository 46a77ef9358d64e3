//! Prints messages in a way that cannot end the program.
//!
//! `print!` and `eprintln!` panic when the reader of a pipe has gone away (`tracebridge start … | head`) or
//! the disk is full. A panic in the middle of a recording would leave the kernel's settings changed, so every
//! command prints through this module or through a writer whose errors it handles.

use std::fmt::Arguments;
use std::io::{self, Write};

/// Prints `text` on standard output and flushes. Errors are ignored.
pub fn say(text: Arguments<'_>) {
    let mut out = io::stdout();
    let _ = out.write_fmt(text).and_then(|()| out.flush());
}

/// Prints `text` and a line feed on standard error. Errors are ignored.
pub fn complain(text: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{text}");
}
