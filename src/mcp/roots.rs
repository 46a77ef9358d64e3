//! The directories that a client may use, and the check of each path that it names.

use std::io;
use std::path::{Path, PathBuf};

/// Why a path is not used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RootError {
    /// It is not there, or cannot be read.
    #[error("{path}: {error}")]
    Missing { path: String, error: io::Error },
    /// It is not below a directory that was named at the start.
    #[error("{path} is outside of the directories that the server may use: start it with --root DIR")]
    Outside { path: String },
    /// It is a device, a pipe or another special file.
    #[error("{path} is no file and no directory")]
    Special { path: String },
    /// An output of this name is there.
    #[error("{path} is there already: outputs do not replace files")]
    Exists { path: String },
    /// An output has no name.
    #[error("{path} is no name of a file")]
    NoName { path: String },
}

/// The directories that a client may use.
#[derive(Debug, Clone)]
pub(super) struct Roots {
    /// Without symbolic links; the first is where relative paths begin.
    directories: Vec<PathBuf>,
}

impl Roots {
    /// Checks that each of `directories` is one.
    pub(super) fn new(directories: &[PathBuf]) -> Result<Roots, RootError> {
        let whole = |path: &PathBuf| match path.canonicalize() {
            Ok(found) if found.is_dir() => Ok(found),
            Ok(_) => Err(RootError::Missing {
                path: path.display().to_string(),
                error: io::ErrorKind::NotADirectory.into(),
            }),
            Err(error) => Err(RootError::Missing { path: path.display().to_string(), error }),
        };
        Ok(Roots { directories: directories.iter().map(whole).collect::<Result<_, _>>()? })
    }

    /// The directory in which commands are started.
    pub(super) fn first(&self) -> &Path {
        self.directories.first().map_or(Path::new("."), PathBuf::as_path)
    }

    /// The path of an input: a file or a directory, or a member of an archive (`archive.zip//member`).
    pub(super) fn input(&self, named: &str) -> Result<PathBuf, RootError> {
        let path = self.first().join(named);
        match path.canonicalize() {
            Ok(found) => self.permitted(named, found),
            Err(error) => {
                let (archive, member) = named
                    .split_once("//")
                    .filter(|(archive, _)| !archive.is_empty())
                    .ok_or(RootError::Missing { path: named.to_owned(), error })?;
                let archive = self.input_file(archive)?;
                let mut joined = archive.into_os_string();
                joined.push("//");
                joined.push(member);
                Ok(joined.into())
            }
        }
    }

    fn input_file(&self, named: &str) -> Result<PathBuf, RootError> {
        let found = self.first().join(named).canonicalize();
        let found = found.map_err(|error| RootError::Missing { path: named.to_owned(), error })?;
        self.permitted(named, found)
    }

    fn permitted(&self, named: &str, found: PathBuf) -> Result<PathBuf, RootError> {
        if !self.directories.iter().any(|directory| found.starts_with(directory)) {
            return Err(RootError::Outside { path: named.to_owned() });
        }
        if !found.is_file() && !found.is_dir() {
            return Err(RootError::Special { path: named.to_owned() });
        }
        Ok(found)
    }

    /// The path of an output that is not there yet, in a directory that is.
    pub(super) fn output(&self, named: &str) -> Result<PathBuf, RootError> {
        let path = self.first().join(named);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(RootError::NoName { path: named.to_owned() });
        };
        let parent =
            parent.canonicalize().map_err(|error| RootError::Missing { path: named.to_owned(), error })?;
        let whole = self.permitted(named, parent)?.join(name);
        // A symbolic link that leads nowhere is there, too.
        match whole.symlink_metadata() {
            Ok(_) => Err(RootError::Exists { path: named.to_owned() }),
            Err(_) => Ok(whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn paths_stay_below_the_roots() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir_all(root.join("in")).unwrap();
        fs::write(root.join("a.dat"), "x").unwrap();
        fs::write(dir.path().join("secret"), "x").unwrap();
        let roots = Roots::new(std::slice::from_ref(&root)).unwrap();
        assert!(roots.input("a.dat").unwrap().ends_with("root/a.dat"));
        assert!(roots.input("in/../a.dat").is_ok());
        assert!(roots.input("a.dat//member").unwrap().to_string_lossy().ends_with("a.dat//member"));
        assert!(matches!(roots.input("../secret"), Err(RootError::Outside { .. })));
        assert!(matches!(roots.input("../secret//x"), Err(RootError::Outside { .. })));
        assert!(matches!(roots.input("/etc/passwd"), Err(RootError::Outside { .. })));
        assert!(matches!(roots.input("none"), Err(RootError::Missing { .. })));
        assert!(roots.output("in/new.html").is_ok());
        assert!(matches!(roots.output("a.dat"), Err(RootError::Exists { .. })));
        assert!(matches!(roots.output("../new.html"), Err(RootError::Outside { .. })));
        assert!(matches!(roots.output(".."), Err(RootError::NoName { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn links_do_not_lead_out() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir(&root).unwrap();
        std::os::unix::fs::symlink("/etc", root.join("etc")).unwrap();
        std::os::unix::fs::symlink("/nowhere/at/all", root.join("gone")).unwrap();
        let roots = Roots::new(std::slice::from_ref(&root)).unwrap();
        assert!(matches!(roots.input("etc/passwd"), Err(RootError::Outside { .. })));
        assert!(matches!(roots.output("etc/new"), Err(RootError::Outside { .. })));
        assert!(matches!(roots.output("gone"), Err(RootError::Exists { .. })));
    }
}
