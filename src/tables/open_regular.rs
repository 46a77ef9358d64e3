//! Opens the file of a table, and nothing else: a FIFO would make the caller wait for ever.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

/// Opens a regular file to be read. Symbolic links are not followed: a table is a file of its dataset.
///
/// # Errors
/// The system's error, and one that says that the path is no regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // The file may become a link or a FIFO after it was looked at.
        options.custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK);
    }
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(not_regular());
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file, as each table of a dataset is")
}
