//! Files on Windows, which lacks some of what Unix has, or does it by itself. A file's owner and who may read
//! it come from its directory, FIFOs are not in directories, and the standard library tells no number of a
//! file.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Nothing to do: a link needs an administrator.
pub(super) fn follow_no_link(_: &mut OpenOptions) {}

/// Nothing to do: the directory decides who may read a new file.
pub(super) fn keep_private(_: &mut OpenOptions) {}

/// Creates a directory; its parent, the user's own temporary directory, decides who may read it.
pub(super) fn create_private_dir(dir: &Path) -> io::Result<()> {
    fs::create_dir(dir)
}

/// Nothing to do: a file that is replaced is not write-protected, and Windows has no other permission here.
pub(super) fn keep_permissions(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Succeeds: no path names a FIFO.
pub fn check_fifo(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Whether a file belongs to another user: not asked here.
pub(super) fn is_foreign(_: &Metadata) -> bool {
    false
}

/// Nothing to ask: no number of a file is told, and a file that is open here cannot be exchanged.
pub(super) fn is_named(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// The absolute path without links, in the letters that the directory has, if there is a file. `-` has none,
/// because Windows does not tell which file a redirected stream is.
pub(super) fn identity<S>(path: &Path, _: &S) -> Option<PathBuf> {
    fs::canonicalize(path).ok().filter(|found| path != Path::new("-") && found.is_file())
}

/// Nothing to do: Windows opens no directory as a file.
pub(super) fn synchronise_dir(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Does nothing: Windows exchanges no names.
pub(super) fn exchange(_: &Path, _: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Does nothing: the caller makes a hard link, which replaces nothing.
pub(super) fn rename_to_new(_: &Path, _: &Path) -> io::Result<bool> {
    Ok(false)
}

/// A file that one process has opened for itself alone.
pub type LockedFile = File;

/// Locks a file, which is created where it is missing. Returns `None` where another process has locked it.
///
/// # Errors
/// The system's error.
pub fn try_lock(path: &Path) -> io::Result<Option<LockedFile>> {
    use std::os::windows::fs::OpenOptionsExt;
    /// ERROR_SHARING_VIOLATION of Windows.
    const SHARING_VIOLATION: i32 = 32;
    match OpenOptions::new().create(true).truncate(false).write(true).share_mode(0).open(path) {
        Err(error) if error.raw_os_error() == Some(SHARING_VIOLATION) => Ok(None),
        opened => opened.map(Some),
    }
}
