//! Files below directories on Windows: a path is resolved, checked and opened.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use super::{RootedFile, Roots, outside};

/// Nothing: a directory is named by its path.
pub(super) type Directory = ();

/// The state of a file: its size, and when it was made and last written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState(u64, SystemTime, SystemTime);

impl TryFrom<Metadata> for FileState {
    type Error = io::Error;
    fn try_from(meta: Metadata) -> io::Result<FileState> {
        Ok(FileState(meta.len(), meta.created()?, meta.modified()?))
    }
}

pub(super) fn open_directory(path: &Path) -> io::Result<Directory> {
    if path.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

/// Nothing to do: a link needs an administrator.
pub(super) fn follow_no_link(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Opens the file or directory at an absolute path. A path that leads out by its names is not looked at.
pub(super) fn find(roots: &Roots, path: &Path) -> io::Result<RootedFile> {
    roots.root_of(&without_parents(path))?;
    let path = path.canonicalize()?;
    roots.root_of(&path)?;
    // No file stands for a directory, which the standard library does not open here.
    let file = if path.is_dir() { open_metadata(&path)? } else { File::open(&path)? };
    Ok(RootedFile { file, path })
}

fn open_metadata(directory: &Path) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt;
    /// FILE_FLAG_BACKUP_SEMANTICS, without which CreateFile opens no directory.
    const BACKUP_SEMANTICS: u32 = 0x0200_0000;
    File::options().read(true).custom_flags(BACKUP_SEMANTICS).open(directory)
}

fn without_parents(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir { drop(plain.pop()) } else { plain.push(part) }
    }
    plain
}

/// The names of a directory's entries.
pub(super) fn names_in(directory: RootedFile) -> io::Result<impl Iterator<Item = io::Result<OsString>>> {
    Ok(fs::read_dir(directory.path)?.map(|entry| entry.map(|entry| entry.file_name())))
}
