//! Prints how this process may use files: the tests on a device run it as the shell of a locked phone, and
//! compare with the phone's rules and with what `doctor` says. It is a test program and no part of the
//! product.
//!
//! usage: `access_probe [DIRECTORY] <PATHS`: paths below the directory (default: `/sys/kernel/tracing`), one
//! a line
//!
//! For each path a line with four characters, a space and the path: `r` if the file can be opened for reading
//! (if a directory can be listed), `w` if it can be opened for writing, `s` if `stat` works, `f` if
//! `access(F_OK)` finds it, and `-` in the place of what is denied. Only a lack of permission counts: a file
//! that opens with another error was permitted.
#![allow(missing_docs)]

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::OFlag;
use nix::unistd::{AccessFlags, access};

/// Whether an attempt was permitted, and found the file.
fn permitted<T>(attempt: io::Result<T>) -> bool {
    !matches!(attempt, Err(e) if matches!(e.kind(), ErrorKind::PermissionDenied | ErrorKind::NotFound))
}

fn main() -> io::Result<()> {
    std::env::set_current_dir(std::env::args_os().nth(1).unwrap_or_else(|| "/sys/kernel/tracing".into()))?;
    let mut out = io::stdout().lock();
    // A trace_pipe of an empty buffer must not wait.
    let flags = OFlag::O_NONBLOCK.bits();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let path = Path::new(&line);
        let is_directory = line.ends_with('/');
        let read = if is_directory {
            permitted(fs::read_dir(path))
        } else {
            permitted(OpenOptions::new().read(true).custom_flags(flags).open(path))
        };
        // Opening does not change a setting; closing free_buffer empties the buffer.
        let write = !is_directory
            && !line.ends_with("free_buffer")
            && permitted(OpenOptions::new().write(true).custom_flags(flags).open(path));
        let found = access(path, AccessFlags::F_OK).is_ok();
        let characters = [(read, 'r'), (write, 'w'), (permitted(fs::metadata(path)), 's'), (found, 'f')];
        let text: String = characters.iter().map(|&(may, c)| if may { c } else { '-' }).collect();
        writeln!(out, "{text} {line}")?;
    }
    out.flush()
}
