//! Saying things to people, so that nothing depends on whether they listen: `print!` and `eprintln!` end the program where
//! nobody does any more (`start … | head`), and an end in the middle would leave the kernel's settings changed.

use std::fmt::Arguments;
use std::io::{self, Write};

/// Says it on stdout, as it is.
pub fn say(text: Arguments<'_>) {
    let mut out = io::stdout();
    let _ = out.write_fmt(text).and_then(|()| out.flush());
}

/// Says it on stderr, as a line.
pub fn complain(text: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{text}");
}
