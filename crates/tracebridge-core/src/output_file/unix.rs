//! Files on Unix: owners, modes, FIFOs, the number of a file, and names that are exchanged or new.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

use crate::system_calls;

/// Has opening fail if the path's last part is a symbolic link.
pub(super) fn follow_no_link(options: &mut OpenOptions) {
    options.custom_flags(nix::libc::O_NOFOLLOW);
}

/// Has a new file be readable and writable by its owner alone.
pub(super) fn keep_private(options: &mut OpenOptions) {
    options.mode(0o600);
}

/// Creates a directory that only this user can read.
pub(super) fn create_private_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(dir)
}

/// Gives `file` the group and the permissions of the file that it will replace.
pub(super) fn keep_permissions(file: &File, replaced: &Metadata) -> io::Result<()> {
    let mode = replaced.mode() & 0o777;
    let group_kept = fchown(file, None, Some(replaced.gid())).is_ok();
    // Another group gets no more rights than all others have.
    let others = (mode & 0o007) << 3;
    file.set_permissions(Permissions::from_mode(if group_kept { mode } else { mode & (0o707 | others) }))
}

/// Fails if `target` is a FIFO of another user, who would receive what is written.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`].
pub fn check_fifo(target: &Path) -> io::Result<()> {
    match fs::symlink_metadata(target) {
        Ok(meta) if meta.file_type().is_fifo() && is_foreign(&meta) => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "is a FIFO of another user, which is not written to",
        )),
        _ => Ok(()),
    }
}

/// Whether a file belongs neither to this user nor to root.
pub(super) fn is_foreign(meta: &Metadata) -> bool {
    meta.uid() != 0 && meta.uid() != nix::unistd::geteuid().as_raw()
}

/// Whether the path itself, not a link at its end, is the file.
pub(super) fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    let named = fs::symlink_metadata(path)?;
    Ok((ours.dev(), ours.ino()) == (named.dev(), named.ino()))
}

/// The identity of a file that a path names, if that is something that a program can destroy or wait for by
/// reading and writing it: a file or a FIFO. `-` is `stream`.
pub(super) fn identity(path: &Path, stream: &impl AsFd) -> Option<(u64, u64)> {
    let stream = || Some(File::from(stream.as_fd().try_clone_to_owned().ok()?));
    let meta = if path == Path::new("-") { stream()?.metadata() } else { fs::metadata(path) }.ok()?;
    (meta.is_file() || meta.file_type().is_fifo()).then_some((meta.dev(), meta.ino()))
}

/// Waits until the names in a directory are on the disk.
pub(super) fn synchronise_dir(dir: &Path) -> io::Result<()> {
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    File::open(dir)?.sync_all()
}

/// Exchanges the names of two directories of one file system at once. Returns `false`, and does nothing,
/// where the kernel or the file system cannot.
///
/// # Errors
/// The system's error.
pub(super) fn exchange(a: &Path, b: &Path) -> io::Result<bool> {
    system_calls::rename(a, b, system_calls::EXCHANGE)
}

/// Gives a file a name that nothing has. Returns `false`, and does nothing, where the kernel or the file
/// system cannot do that at once.
///
/// # Errors
/// The system's error; `AlreadyExists` where something has the name.
pub(super) fn rename_to_new(from: &Path, to: &Path) -> io::Result<bool> {
    system_calls::rename(from, to, system_calls::NO_REPLACE)
}

/// A file that one process has locked; the system unlocks it when the process ends.
pub type LockedFile = nix::fcntl::Flock<File>;

/// Locks a file, which is created where it is missing. Returns `None` where another process has locked it.
///
/// # Errors
/// The system's error.
pub fn try_lock(path: &Path) -> io::Result<Option<LockedFile>> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    match LockedFile::lock(file, nix::fcntl::FlockArg::LockExclusiveNonblock) {
        Ok(file) => Ok(Some(file)),
        Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(None),
        Err((_, error)) => Err(error.into()),
    }
}
