//! Files below directories on Unix: each part of a path is opened below the directory before it.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};

use super::{RootedFile, Roots, outside, special};

/// The most symbolic links of one path that are followed, as many as Linux follows.
const MAX_LINKS: usize = 40;

/// A directory below which files are opened.
pub(super) type Directory = Arc<OwnedFd>;

/// The state of a file: its device, number and size, and the times of its last change, seconds and ns. The
/// second of the times (`ctime`) is the kernel's own: no program sets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState([u64; 3], [i64; 4]);

impl TryFrom<Metadata> for FileState {
    type Error = io::Error;
    fn try_from(meta: Metadata) -> io::Result<FileState> {
        let times = [meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()];
        Ok(FileState([meta.dev(), meta.ino(), meta.len()], times))
    }
}

pub(super) fn open_directory(path: &Path) -> io::Result<Directory> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    Ok(Arc::new(nix::fcntl::open(path, flags, Mode::empty())?))
}

/// Has opening fail at a symbolic link, and return at once for a FIFO.
pub(super) fn follow_no_link(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK)
}

/// Opens the file or directory at an absolute path, which may lead through symbolic links and `..` as long as
/// it stays below a root.
pub(super) fn find(roots: &Roots, path: &Path) -> io::Result<RootedFile> {
    let (mut root, rest) = roots.root_of(path)?;
    let mut left: VecDeque<OsString> = parts(rest).collect();
    // The directories on the way, the file last.
    let mut way: Vec<(OsString, OwnedFd)> = Vec::new();
    let mut links = 0;
    while let Some(part) = left.pop_front() {
        let mut leave_for = None;
        let here = way.last().map_or(root.directory.as_fd(), |(_, directory)| directory.as_fd());
        if part == ".." {
            if way.pop().is_none() {
                leave_for = Some(root.path.parent().ok_or_else(outside)?.to_owned());
            }
        } else if kind(&fstatat(here, &*part, AtFlags::AT_SYMLINK_NOFOLLOW)?) == SFlag::S_IFLNK {
            links += 1;
            if links > MAX_LINKS {
                return Err(Errno::ELOOP.into());
            }
            let target = PathBuf::from(readlinkat(here, &*part)?);
            if target.is_absolute() {
                leave_for = Some(target);
            } else {
                parts(&target).rev().for_each(|part| left.push_front(part));
            }
        } else {
            let opened = open_part(here, &part, !left.is_empty())?;
            way.push((part, opened));
        }
        if let Some(mut absolute) = leave_for {
            absolute.extend(left);
            let (other, rest) = roots.root_of(&absolute)?;
            root = other;
            left = parts(rest).collect();
            way.clear();
        }
    }
    let path = way.iter().fold(root.path.clone(), |path, (part, _)| path.join(part));
    let file = match way.pop() {
        Some((_, file)) => file,
        None => open_part(root.directory.as_fd(), OsStr::new("."), true)?,
    };
    Ok(RootedFile { file: file.into(), path })
}

/// Opens a regular file or a directory in a directory. A link is not followed.
fn open_part(directory: impl AsFd, part: &OsStr, is_directory: bool) -> io::Result<OwnedFd> {
    let is_readable = |stat: &FileStat| matches!(kind(stat), SFlag::S_IFREG | SFlag::S_IFDIR);
    // A device or a FIFO may do something when it is opened.
    if !is_readable(&fstatat(&directory, part, AtFlags::AT_SYMLINK_NOFOLLOW)?) {
        return Err(special());
    }
    let mut flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    flags.set(OFlag::O_DIRECTORY, is_directory);
    let opened = openat(directory, part, flags, Mode::empty())?;
    // It may have been exchanged meanwhile.
    if is_readable(&fstat(&opened)?) { Ok(opened) } else { Err(special()) }
}

fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT
}

/// The names in a path, and `..`.
fn parts(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    })
}

/// The names of a directory's entries.
pub(super) fn names_in(directory: RootedFile) -> io::Result<impl Iterator<Item = io::Result<OsString>>> {
    let directory = Dir::from_fd(OwnedFd::from(directory.file))?;
    let name = |entry: nix::Result<nix::dir::Entry>| {
        let name = entry?.file_name().to_bytes().to_vec();
        Ok(OsString::from_vec(name))
    };
    let is_entry = |name: &io::Result<OsString>| !matches!(name, Ok(name) if name == "." || name == "..");
    Ok(directory.into_iter().map(name).filter(is_entry))
}
