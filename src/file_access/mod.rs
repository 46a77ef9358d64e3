//! Opens the files and directories that a command line, an assistant, an archive or a dataset names.
//!
//! A path is resolved once, to an open file: the file that was checked is the file that is read. The whole
//! process can be confined to some directories ([`confine`]), as it is for an assistant. Then nothing outside
//! of them is opened, listed or looked at, and the answer to a path outside does not depend on what is there.
//!
//! Symbolic links are followed, part by part, as long as they stay below the directories. On Unix each part
//! is opened below the directory before it without following links, so that nobody who changes the
//! directories meanwhile leads out of them. Windows has no such call here: there the path is resolved,
//! checked and opened.

#[cfg(unix)]
#[path = "unix.rs"]
mod system;
#[cfg(not(unix))]
#[path = "windows.rs"]
mod system;

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use system::FileState;

/// Separates the path of an archive from the path of a file in it.
pub const MEMBER_SEPARATOR: &str = "//";

/// The directories to which this process is confined.
static ROOTS: OnceLock<Roots> = OnceLock::new();

/// From now on this process opens files below these directories alone. The first call decides.
pub fn confine(roots: Roots) {
    let _ = ROOTS.set(roots);
}

/// Opens a file or a directory to be read.
///
/// # Errors
/// The system's error, and of a confined process one that says that the path leads out.
pub fn open(path: &Path) -> io::Result<File> {
    match ROOTS.get() {
        Some(roots) => Ok(roots.find(path)?.file),
        None => File::open(path),
    }
}

/// Opens a regular file to be read. A symbolic link at the end of the path is not followed.
///
/// # Errors
/// As [`open`], and one that says that the path is no regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(not_regular());
    }
    let file = match ROOTS.get() {
        Some(roots) => roots.find(path)?.file,
        None => {
            let mut options = File::options();
            system::follow_no_link(options.read(true)).open(path)?
        }
    };
    // It may have been exchanged meanwhile.
    if is_regular(&file) { Ok(file) } else { Err(not_regular()) }
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file, as each table of a dataset is")
}

/// The facts about the file or directory at a path, links followed.
///
/// # Errors
/// As [`open`].
pub fn metadata(path: &Path) -> io::Result<Metadata> {
    match ROOTS.get() {
        Some(roots) => roots.find(path)?.file.metadata(),
        None => fs::metadata(path),
    }
}

/// The absolute path of a file or directory, without symbolic links.
///
/// # Errors
/// As [`open`].
pub fn without_links(path: &Path) -> io::Result<PathBuf> {
    match ROOTS.get() {
        Some(roots) => Ok(roots.find(path)?.path),
        None => path.canonicalize(),
    }
}

/// Whether something is at the path, links followed.
pub fn exists(path: &Path) -> bool {
    metadata(path).is_ok()
}

/// Whether a regular file is at the path, links followed.
pub fn is_file(path: &Path) -> bool {
    metadata(path).is_ok_and(|meta| meta.is_file())
}

/// Whether a directory is at the path, links followed.
pub fn is_dir(path: &Path) -> bool {
    metadata(path).is_ok_and(|meta| meta.is_dir())
}

/// Whether the last part of the path is a symbolic link. The path is that of an entry of [`entries`].
pub fn is_link(entry: &Path) -> bool {
    fs::symlink_metadata(entry).is_ok_and(|meta| meta.is_symlink())
}

/// The paths of the entries of a directory, in no order.
///
/// # Errors
/// As [`open`].
pub fn entries(dir: &Path) -> io::Result<Box<dyn Iterator<Item = io::Result<PathBuf>>>> {
    match ROOTS.get() {
        Some(roots) => roots.entries(dir),
        None => Ok(Box::new(fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path())))),
    }
}

/// The state of the file at a path: it differs when the file has changed or is another one.
///
/// # Errors
/// As [`open`].
pub fn state(path: &Path) -> io::Result<FileState> {
    metadata(path)?.try_into()
}

/// The archive of `ARCHIVE//MEMBER`, opened, and the path of the file in it.
#[derive(Debug)]
pub struct ArchiveMember {
    /// The path of the archive.
    pub archive: PathBuf,
    /// The archive.
    pub file: File,
    /// The path in the archive, which may name an archive in it and a file in that one.
    pub member: String,
}

impl ArchiveMember {
    /// Opens the archive that stands before the first `//` of a path. `None` where a file has the whole path,
    /// or no regular file has the part before the separator.
    pub fn open(path: &Path) -> Option<ArchiveMember> {
        let (archive, member) = divided(path)?;
        if exists(path) {
            return None;
        }
        let file = open(&archive).ok().filter(|file| file.metadata().is_ok_and(|meta| meta.is_file()))?;
        Some(ArchiveMember { archive, file, member })
    }
}

/// The parts of a path before and behind its first separator. Slashes at the begin separate nothing.
fn divided(path: &Path) -> Option<(PathBuf, String)> {
    let text = path.to_str()?;
    let begin = text.len() - text.trim_start_matches('/').len();
    let at = begin + text[begin..].find(MEMBER_SEPARATOR)?;
    let member = text[at + MEMBER_SEPARATOR.len()..].to_owned();
    (at > begin && !member.is_empty()).then(|| (text[..at].into(), member))
}

/// A path leads out of the directories that may be used.
#[derive(Debug, thiserror::Error)]
#[error("is outside of the directories that the server may use: start it with --root DIR")]
struct Outside;

fn outside() -> io::Error {
    io::Error::new(io::ErrorKind::CrossesDevices, Outside)
}

fn special() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "is no file and no directory")
}

/// Directories below which files are opened.
#[derive(Debug, Clone)]
pub struct Roots {
    directories: Vec<Root>,
}

#[derive(Debug, Clone)]
struct Root {
    /// The path as given, made absolute.
    given: PathBuf,
    /// The path without symbolic links.
    path: PathBuf,
    directory: system::Directory,
}

/// An open file or directory, and its path without symbolic links.
#[derive(Debug)]
pub struct RootedFile {
    /// The file or directory.
    pub file: File,
    /// Its path.
    pub path: PathBuf,
}

impl Roots {
    /// Opens each of `directories`.
    ///
    /// # Errors
    /// [`PathError`] for a path that is no directory.
    pub fn new(directories: &[PathBuf]) -> Result<Roots, PathError> {
        let root = |given: &PathBuf| {
            let path = given.canonicalize()?;
            Ok(Root { given: std::path::absolute(given)?, directory: system::open_directory(&path)?, path })
        };
        let root = |given: &PathBuf| root(given).map_err(|source| PathError::new(given, source));
        Ok(Roots { directories: directories.iter().map(root).collect::<Result<_, _>>()? })
    }

    /// The directory where relative paths begin.
    pub fn first(&self) -> &Path {
        self.directories.first().map_or(Path::new("."), |root| &root.path)
    }

    /// The paths of all directories, without symbolic links.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.directories.iter().map(|root| root.path.as_path())
    }

    /// Opens a regular file or a directory. A relative path begins at the current directory of the process.
    ///
    /// # Errors
    /// The system's error, and those that say that the path leads out or is a special file.
    pub fn find(&self, path: &Path) -> io::Result<RootedFile> {
        system::find(self, &std::path::absolute(path)?)
    }

    fn entries(&self, dir: &Path) -> io::Result<Box<dyn Iterator<Item = io::Result<PathBuf>>>> {
        let parent = dir.to_owned();
        let names = system::names_in(self.find(dir)?)?;
        Ok(Box::new(names.map(move |name| name.map(|name| parent.join(name)))))
    }

    /// The absolute path of an input that a client has named: a file, a directory, or a file in an archive.
    ///
    /// # Errors
    /// [`PathError`].
    pub fn input(&self, named: &str) -> Result<PathBuf, PathError> {
        let path = self.first().join(named);
        let whole = self.find(&path);
        let archive = || self.find(&divided(&path)?.0).ok().filter(|found| is_regular(&found.file));
        match whole {
            Err(source) if archive().is_none() => Err(PathError::new(named.as_ref(), source)),
            _ => Ok(path),
        }
    }

    /// The path of an output that is not there yet, in a directory that is. Its directory is without links.
    ///
    /// # Errors
    /// [`PathError`].
    pub fn output(&self, named: &str) -> Result<PathBuf, PathError> {
        let wrong = |source| PathError::new(named.as_ref(), source);
        let path = self.first().join(named);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(wrong(io::Error::new(io::ErrorKind::InvalidInput, "is no name of a file")));
        };
        let parent = self.find(parent).map_err(wrong)?.path;
        let output = parent.join(name);
        crate::output_file::check_free(&output).map_err(wrong)?;
        Ok(output)
    }

    /// The directory that holds this absolute path, and the rest of the path, as far as names tell.
    fn root_of<'p>(&self, path: &'p Path) -> io::Result<(&Root, &'p Path)> {
        let rest =
            |root: &Root| path.strip_prefix(&root.path).or_else(|_| path.strip_prefix(&root.given)).ok();
        self.directories.iter().find_map(|root| Some((root, rest(root)?))).ok_or_else(outside)
    }
}

fn is_regular(file: &File) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file())
}

/// A path that a client has named is not used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}")]
pub struct PathError {
    /// The path as named.
    path: String,
    /// The reason.
    source: io::Error,
}

impl PathError {
    fn new(path: &Path, source: io::Error) -> PathError {
        PathError { path: path.display().to_string(), source }
    }
}

#[cfg(test)]
mod tests;
