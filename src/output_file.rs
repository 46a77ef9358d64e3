//! Output files that appear under their name only when they are complete.
//!
//! An output is written to a new file beside its target, under a random name that ends in `.part`. When it is
//! complete it is synchronised with the disk and renamed to the target's name. Until then the target is as it
//! was, whatever fails. This has two reasons:
//! - nobody takes half a file for a whole one, and an older file is lost only to a complete newer one;
//! - another user who may write to the directory cannot choose what is written to. A file that he has prepared
//!   under any name, a symbolic link, a FIFO, or a file of his own, is never opened: the new file is created
//!   with `O_EXCL`, and renaming replaces a symbolic link itself, not the file that it points to.
//!
//! A target that exists and is no regular file (a FIFO, `/dev/stdout`, `/dev/null`) cannot be replaced like
//! that; it is written to directly.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

/// Who may read a new output file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// The file's owner alone.
    Owner,
    /// Whom the target's permissions allow, if it exists; else whom the process's umask allows.
    AsTarget,
}

/// An output that is being written. Dropping it removes what is written, and leaves the target as it was.
#[derive(Debug)]
pub(crate) struct OutputFile {
    file: File,
    target: PathBuf,
    /// The file that is written to; `None` if that is the target itself.
    part: Option<PathBuf>,
}

/// How many random names are tried. One suffices unless the random numbers are broken.
const MAX_NAMES: usize = 16;

impl OutputFile {
    /// Begins an output at `target`.
    ///
    /// # Errors
    /// The system's error if no file can be created in the target's directory, or if `target` is a directory.
    pub(crate) fn create(target: &Path, readers: Readers) -> io::Result<OutputFile> {
        let existing = fs::metadata(target).ok();
        if let Some(meta) = &existing
            && !meta.is_file()
        {
            let file = OpenOptions::new().write(true).open(target)?;
            return Ok(OutputFile { file, target: target.to_owned(), part: None });
        }
        let (file, part) = create_beside(target, readers)?;
        let output = OutputFile { file, target: target.to_owned(), part: Some(part) };
        if let (Some(meta), Readers::AsTarget) = (existing, readers) {
            output.file.set_permissions(meta.permissions())?;
        }
        Ok(output)
    }

    /// The file to write to.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Makes the output appear under its name.
    ///
    /// # Errors
    /// The system's error; the target is then as it was.
    pub(crate) fn commit(mut self) -> io::Result<()> {
        let Some(part) = &self.part else { return Ok(()) };
        self.file.sync_all()?;
        fs::rename(part, &self.target)?;
        self.part = None;
        Ok(())
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            let _ = fs::remove_file(part);
        }
    }
}

/// Creates a new file in the directory of `target`, under a name that nobody can predict. The file may be read
/// and written by the caller.
///
/// # Errors
/// The system's error.
pub(crate) fn create_beside(target: &Path, readers: Readers) -> io::Result<(File, PathBuf)> {
    let name = target.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let mut tries = 0..MAX_NAMES;
    loop {
        let mut part = std::ffi::OsString::from(".");
        part.push(name);
        part.push(format!(".{:016x}.part", RandomState::new().hash_one(std::process::id())));
        let part = target.with_file_name(part);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(
            &mut options,
            if readers == Readers::Owner { 0o600 } else { 0o666 },
        );
        match options.open(&part) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries.next().is_some() => {}
            opened => return opened.map(|file| (file, part)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn an_output_replaces_its_target_only_when_it_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("x");
        fs::write(&target, "old").unwrap();
        let output = OutputFile::create(&target, Readers::AsTarget).unwrap();
        output.file().write_all(b"half").unwrap();
        assert_eq!(names(dir.path()).len(), 2);
        drop(output);
        assert_eq!((names(dir.path()), fs::read(&target).unwrap()), (vec!["x".to_owned()], b"old".to_vec()));
        let output = OutputFile::create(&target, Readers::AsTarget).unwrap();
        output.file().write_all(b"whole").unwrap();
        output.commit().unwrap();
        assert_eq!(
            (names(dir.path()), fs::read(&target).unwrap()),
            (vec!["x".to_owned()], b"whole".to_vec())
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_symbolic_link_is_replaced_and_permissions_are_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (victim, link) = (dir.path().join("victim"), dir.path().join("link"));
        fs::write(&victim, "untouched").unwrap();
        fs::set_permissions(&victim, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&victim, &link).unwrap();
        OutputFile::create(&link, Readers::AsTarget).unwrap().commit().unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"untouched");
        let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&link), 0o640);
        OutputFile::create(&link, Readers::Owner).unwrap().commit().unwrap();
        assert_eq!(mode(&link), 0o600);
    }
}
