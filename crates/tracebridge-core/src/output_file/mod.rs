//! Output files that appear under their name only when they are complete.
//!
//! An output is written to a new file beside its target, under a random name that ends in `.part`. When it is
//! complete it is synchronised with the disk and renamed to the target's name. Until then the target is as it
//! was, whatever fails. This has two reasons:
//! - nobody takes half a file for a whole one, and an older file is lost only to a complete newer one;
//! - another user who may write to the directory cannot choose what is written to. A file that he has
//!   prepared, a symbolic link, a FIFO, or a file of his own, is never opened: the new file is created with
//!   `O_EXCL`, and renaming replaces a symbolic link itself, not the file that it points to.
//!
//! Some targets cannot be replaced like that, and are written to directly: FIFOs and devices, and the names
//! that the system gives to open descriptors (`/dev/stdout`, `/dev/fd/N`, `/proc/self/fd/N`), whatever is
//! behind them. A FIFO is opened only if it belongs to the caller or to root.
//!
//! Of an output that is dropped nothing is left. A process that a signal ends calls [`abandon_all`] first.
//! After SIGKILL or a power failure the `.part` file is left, and the target is as it was. (`O_TMPFILE` could
//! avoid even that file, but `linkat` cannot replace a target, and only some file systems of Linux have it.
//! The directory is not synchronised: after a power failure the older file may be back, whole.)

#[cfg(unix)]
#[path = "unix.rs"]
mod system;
#[cfg(not(unix))]
#[path = "windows.rs"]
mod system;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf, is_separator};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

pub use system::{LockedFile, check_fifo, try_lock};
use system::{identity, is_foreign, keep_permissions};

/// Who may read a new output file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// The file's owner alone.
    Owner,
    /// Whom the target's permissions allow, if it exists; else whom the process's umask allows. The owner and
    /// the group of the target are kept too, where the system permits it.
    AsTarget,
}

/// An output that is being written. Dropping it removes what is written, and leaves the target as it was.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    target: PathBuf,
    /// The file that is written to; `None` if that is the target itself.
    part: Option<PathBuf>,
}

/// How many random names are tried. One suffices unless the random numbers are broken.
const MAX_NAMES: usize = 16;
/// How much of the target's name is part of the temporary file's name, bytes. File systems permit names of
/// 255 bytes.
const MAX_NAME_BYTES: usize = 200;
/// How long [`abandon_all`] waits for a file that is just being created or renamed.
const MAX_WAIT_FOR_FILE_SYSTEM: Duration = Duration::from_millis(500);

/// Whether no output of this process may take the place of a file.
static KEEPS_FILES: AtomicBool = AtomicBool::new(false);

/// From now on no output of this process takes the place of anything that is there, whatever name it makes.
pub fn keep_files() {
    KEEPS_FILES.store(true, Ordering::Relaxed);
}

/// Fails if something is at `target`, also a symbolic link that leads nowhere, and the process keeps what is
/// there ([`keep_files`]).
///
/// # Errors
/// `AlreadyExists`.
pub fn check_replaceable(target: &Path) -> io::Result<()> {
    if KEEPS_FILES.load(Ordering::Relaxed) { check_free(target) } else { Ok(()) }
}

/// Fails if something is at `target`, also a symbolic link that leads nowhere.
///
/// # Errors
/// `AlreadyExists`.
pub fn check_free(target: &Path) -> io::Result<()> {
    if fs::symlink_metadata(target).is_ok() { Err(is_taken()) } else { Ok(()) }
}

fn is_taken() -> io::Error {
    let why = "is there already, and outputs do not replace files here: name another output";
    io::Error::new(io::ErrorKind::AlreadyExists, why)
}

/// Gives a file the name `to`, which nothing may have.
///
/// # Errors
/// `AlreadyExists`, and the system's others; the file then keeps its name.
pub fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    let renamed = match system::rename_to_new(from, to) {
        // A hard link is never made onto another file.
        Ok(false) => fs::hard_link(from, to).and_then(|()| fs::remove_file(from)),
        done => done.map(drop),
    };
    renamed.map_err(|error| if error.kind() == io::ErrorKind::AlreadyExists { is_taken() } else { error })
}

/// The `.part` files of this process. Whoever creates, renames or removes one holds the lock meanwhile.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all unfinished outputs, for a process that is about to end. Afterwards no output can be created or
/// completed: a thread that tries waits for the process's end.
pub fn abandon_all() {
    let give_up = Instant::now() + MAX_WAIT_FOR_FILE_SYSTEM;
    let mut parts = loop {
        match UNFINISHED.try_lock() {
            Ok(parts) => break parts,
            Err(TryLockError::Poisoned(parts)) => break parts.into_inner(),
            Err(TryLockError::WouldBlock) if Instant::now() > give_up => return,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    for part in parts.drain(..) {
        let _ = fs::remove_file(&part).or_else(|_| fs::remove_dir_all(&part));
    }
    std::mem::forget(parts);
}

impl OutputFile {
    /// Begins an output at `target`.
    ///
    /// # Errors
    /// The system's error if no file can be created in the target's directory, if `target` is a directory, or
    /// if nobody may write to the file that is there.
    pub fn create(target: &Path, readers: Readers) -> io::Result<OutputFile> {
        check_replaceable(target)?;
        let existing = fs::metadata(target).ok();
        if existing.as_ref().is_some_and(Metadata::is_dir) || has_empty_name(target) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if let Some(meta) = &existing
            && let Some(file) = open_directly(target, meta)?
        {
            return Ok(OutputFile { file, target: target.to_owned(), part: None });
        }
        // The file of another user may have been put there to receive what this user writes.
        let existing =
            existing.filter(|meta| meta.is_file() && readers == Readers::AsTarget && !is_foreign(meta));
        if existing.as_ref().is_some_and(|meta| meta.permissions().readonly()) {
            let why = "is write-protected: permit writing to it, or name another output";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        // What only some may read is at no time readable by others.
        let readers = if existing.is_some() { Readers::Owner } else { readers };
        let mut parts = unfinished();
        let (file, part) = create_beside(target, readers)?;
        parts.push(part.clone());
        drop(parts);
        let output = OutputFile { file, target: target.to_owned(), part: Some(part) };
        if let Some(meta) = existing {
            keep_permissions(&output.file, &meta)?;
        }
        Ok(output)
    }

    /// The file to write to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Whether the target itself is written to, because it cannot be replaced.
    pub fn is_direct(&self) -> bool {
        self.part.is_none()
    }

    /// Makes the output appear under its name.
    ///
    /// # Errors
    /// The system's error; the target is then as it was.
    pub fn commit(mut self) -> io::Result<()> {
        let Some(part) = &self.part else { return Ok(()) };
        self.file.sync_all()?;
        let mut parts = unfinished();
        // Whoever may write to the directory may put something else under either name meanwhile.
        if !system::is_named(&self.file, part)? {
            return Err(exchanged());
        }
        if KEEPS_FILES.load(Ordering::Relaxed) {
            rename_to_new(part, &self.target)?;
        } else {
            fs::rename(part, &self.target)?;
        }
        parts.retain(|other| other != part);
        self.part = None;
        if system::is_named(&self.file, &self.target)? { Ok(()) } else { Err(exchanged()) }
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            let mut parts = unfinished();
            let _ = fs::remove_file(part);
            parts.retain(|other| other != part);
        }
    }
}

fn exchanged() -> io::Error {
    let why = "another user of this directory has put something else in the output's place: name an output in a \
               directory to which only you may write";
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// Whether the path names no file: it is empty, or ends in a slash.
fn has_empty_name(target: &Path) -> bool {
    let last = target.as_os_str().as_encoded_bytes().last();
    target.file_name().is_none() || last.is_some_and(|last| is_separator(char::from(*last)))
}

/// Opens a target that cannot be replaced. Returns `None` for a target that can. `meta` is what the target's
/// name leads to.
fn open_directly(target: &Path, meta: &Metadata) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    if is_name_of_descriptor(target) {
        // Where a shell has opened a file to append to it (`>> FILE`), the output is appended too.
        options.append(true);
        return options.open(target).map(Some);
    }
    if meta.is_file() || fs::symlink_metadata(target)?.is_symlink() {
        return Ok(None);
    }
    options.write(true);
    check_fifo(target)?;
    system::follow_no_link(&mut options);
    options.open(target).map(Some)
}

/// Whether only the system gives names in the target's directory: `/dev` and `/proc/…`.
fn is_name_of_descriptor(target: &Path) -> bool {
    fs::canonicalize(dir_of(target)).is_ok_and(|dir| dir == Path::new("/dev") || dir.starts_with("/proc"))
}

/// The directory in which a file of this name is.
pub fn dir_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates a new file in the directory of `target`, under a name that nobody can predict. The file may be
/// read and written by the caller.
///
/// # Errors
/// The system's error.
pub fn create_beside(target: &Path, readers: Readers) -> io::Result<(File, PathBuf)> {
    let name = target.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let mut tries = 0..MAX_NAMES;
    loop {
        let mut part = OsString::from(".");
        part.push(shortened(name));
        part.push(format!(".{:016x}.part", unpredictable()));
        let part = target.with_file_name(part);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        if readers == Readers::Owner {
            system::keep_private(&mut options);
        }
        match options.open(&part) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries.next().is_some() => {}
            opened => return opened.map(|file| (file, part)),
        }
    }
}

/// Creates a new directory in `parent` that only this user can read, under a name that begins with `prefix`
/// and that nobody can predict.
///
/// # Errors
/// The system's error.
pub fn create_private_dir(parent: &Path, prefix: &str) -> io::Result<PathBuf> {
    create_dir(parent, prefix, system::create_private_dir)
}

fn create_dir(parent: &Path, prefix: &str, create: fn(&Path) -> io::Result<()>) -> io::Result<PathBuf> {
    let mut tries = 0..MAX_NAMES;
    loop {
        let dir = parent.join(format!("{prefix}-{:016x}", unpredictable()));
        match create(&dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries.next().is_some() => {}
            created => return created.map(|()| dir),
        }
    }
}

/// A directory for files that are needed for a while, which only this user can read. It is removed with all
/// files in it when this is dropped or a signal ends the process.
#[derive(Debug)]
pub struct ScratchDir(PathBuf);

impl ScratchDir {
    /// Makes a new directory in `parent`, hidden, under a name that nobody can predict.
    ///
    /// # Errors
    /// The system's error.
    pub fn create(parent: &Path) -> io::Result<ScratchDir> {
        let mut parts = unfinished();
        let dir = create_private_dir(parent, ".tracebridge")?;
        parts.push(dir.clone());
        Ok(ScratchDir(dir))
    }

    /// Makes a new directory in `parent` that others may read as the process's umask says, under a name that
    /// begins with `prefix` and that nobody can predict: for [`ScratchDir::publish`].
    ///
    /// # Errors
    /// The system's error.
    pub fn create_shared(parent: &Path, prefix: &str) -> io::Result<ScratchDir> {
        let mut parts = unfinished();
        let dir = create_dir(parent, prefix, |dir| fs::create_dir(dir))?;
        parts.push(dir.clone());
        Ok(ScratchDir(dir))
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Gives the directory the name `target`, which nothing has yet, and keeps it. The files in it are
    /// synchronised with the disk by whoever wrote them.
    ///
    /// # Errors
    /// The system's error; the directory is then removed.
    pub fn publish(self, target: &Path) -> io::Result<()> {
        system::synchronise_dir(&self.0)?;
        let mut parts = unfinished();
        // Renaming a directory onto an empty one would replace it.
        if fs::symlink_metadata(target).is_ok() {
            drop(parts);
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let renamed = fs::rename(&self.0, target);
        if renamed.is_ok() {
            parts.retain(|other| other != &self.0);
        }
        drop(parts);
        renamed?;
        system::synchronise_dir(target.parent().unwrap_or(Path::new(".")))
    }

    /// Gives the directory the name `target`, and removes the directory that had it. Where the system can
    /// exchange two names (Linux), `target` is at each moment one of the two. Elsewhere the older one has
    /// the name with [`REPLACED`] behind it for a moment, and keeps it if the process is killed then: see
    /// [`end_replacement`].
    ///
    /// # Errors
    /// The system's error; `target` is then as it was.
    pub fn publish_over(self, target: &Path) -> io::Result<()> {
        system::synchronise_dir(&self.0)?;
        let parts = unfinished();
        if !system::exchange(&self.0, target)? {
            let mut aside = target.to_owned().into_os_string();
            aside.push(REPLACED);
            fs::rename(target, &aside)?;
            if let Err(error) = fs::rename(&self.0, target) {
                let _ = fs::rename(&aside, target);
                return Err(error);
            }
            fs::rename(&aside, &self.0)?;
        }
        drop(parts);
        // Dropping `self` removes what had the name.
        system::synchronise_dir(target.parent().unwrap_or(Path::new(".")))
    }

    /// Takes the name of the directory `dir` away at once, and makes it one that is removed. `parent` is a
    /// directory of the same file system.
    ///
    /// # Errors
    /// The system's error; `dir` is then as it was.
    pub fn take(dir: &Path, parent: &Path, prefix: &str) -> io::Result<ScratchDir> {
        let scratch = ScratchDir::create_shared(parent, prefix)?;
        let parts = unfinished();
        fs::remove_dir(&scratch.0)?;
        fs::rename(dir, &scratch.0)?;
        drop(parts);
        Ok(scratch)
    }
}

/// The end of the name of a directory that is being replaced.
pub const REPLACED: &str = ".old";

/// Ends the replacement of a directory that a killed process has begun. `aside` is the older directory,
/// which has [`REPLACED`] behind its name: it gets its name back, or is removed where the newer one has the
/// name.
///
/// # Errors
/// The system's error.
pub fn end_replacement(aside: &Path) -> io::Result<()> {
    let target = aside.with_extension("");
    if fs::symlink_metadata(&target).is_ok() { fs::remove_dir_all(aside) } else { fs::rename(aside, &target) }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        let mut parts = unfinished();
        let _ = fs::remove_dir_all(&self.0);
        parts.retain(|other| other != &self.0);
    }
}

/// The name, or as much of its start as a temporary file's name has room for.
fn shortened(name: &OsStr) -> OsString {
    if name.len() <= MAX_NAME_BYTES {
        return name.to_owned();
    }
    let text = name.to_string_lossy();
    let end = (0..=MAX_NAME_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text[..end].into()
}

/// Two files of a command are the same file.
#[derive(Debug, thiserror::Error)]
pub enum SameFile {
    /// Writing the output would destroy an input.
    #[error("{output}: is an input and the output: name another output")]
    InputIsOutput {
        /// The output's path as given.
        output: String,
    },
    /// One output would replace another.
    #[error("{output}: is named for two outputs: give each a name of its own")]
    TwoOutputs {
        /// The path as given for the second of them.
        output: String,
    },
}

/// Checks that no output is an input, by whatever names and links, and that no two outputs have one name. `-`
/// is standard input and standard output.
///
/// # Errors
/// [`SameFile`] for the first output of which that is not true.
pub fn check_distinct(inputs: &[&Path], outputs: &[&Path]) -> Result<(), SameFile> {
    let read: Vec<_> = inputs.iter().filter_map(|input| identity(input, &io::stdin())).collect();
    for (at, output) in outputs.iter().enumerate() {
        let name = || output.display().to_string();
        if identity(output, &io::stdout()).is_some_and(|written| read.contains(&written)) {
            return Err(SameFile::InputIsOutput { output: name() });
        }
        if outputs[..at].iter().any(|other| is_same_target(other, output)) {
            return Err(SameFile::TwoOutputs { output: name() });
        }
    }
    Ok(())
}

/// Whether an output at `path` goes to standard output: by the name `-`, `/dev/stdout` or another.
pub fn is_stdout(path: &Path) -> bool {
    let stdout = Path::new("-");
    path == stdout
        || identity(path, &io::stdout()).is_some_and(|id| Some(id) == identity(stdout, &io::stdout()))
}

/// Whether writing one output would replace the other.
fn is_same_target(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| Some((fs::canonicalize(dir_of(path)).ok()?, path.file_name()?.to_owned()));
    let replaced = |path: &Path| fs::metadata(path).map_or(true, |meta| meta.is_file());
    match (is_stdout(a), is_stdout(b)) {
        (false, false) => replaced(a) && place(a).is_some_and(|a| Some(a) == place(b)),
        (a, b) => a && b,
    }
}

/// A number that nobody can predict, for the name of a file.
pub fn unpredictable() -> u64 {
    RandomState::new().hash_one(std::process::id())
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
    fn an_output_whose_file_is_exchanged_meanwhile_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("x");
        let victim = dir.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        let output = OutputFile::create(&target, Readers::AsTarget).unwrap();
        let part = output.part.clone().unwrap();
        fs::remove_file(&part).unwrap();
        std::os::unix::fs::symlink(&victim, &part).unwrap();
        output.file().write_all(b"secret").unwrap();
        let error = output.commit().unwrap_err();
        assert!(error.to_string().contains("something else"), "{error}");
        assert_eq!(
            (names(dir.path()), fs::read(&victim).unwrap()),
            (vec!["victim".to_owned()], b"mine".to_vec())
        );
    }

    #[test]
    fn a_file_that_is_to_be_kept_is_not_replaced_however_late_it_comes() {
        let dir = tempfile::tempdir().unwrap();
        let [new, taken] = ["new", "taken"].map(|name| dir.path().join(name));
        fs::write(&new, "new").unwrap();
        fs::write(&taken, "mine").unwrap();
        let error = rename_to_new(&new, &taken).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&taken).unwrap(), b"mine");
        rename_to_new(&new, &dir.path().join("free")).unwrap();
        assert!(check_free(&new).is_ok() && check_free(&taken).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_symbolic_link_is_replaced_and_permissions_are_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        let link = dir.path().join("link");
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
