//! The directory of saved settings: where it is, and that nobody else may write to it.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag, openat, renameat};
use nix::libc;
use nix::sys::stat::{Mode, mkdirat};
use nix::sys::statfs::{DEBUGFS_MAGIC, TRACEFS_MAGIC, statfs};
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};

use super::super::RecordError;
use crate::output_file::unpredictable;

/// The most of a file of saved settings that is read or written, bytes. A recording saves some 10 KiB.
pub(super) const MAX_FILE_BYTES: u64 = 1 << 20;

/// Directories in which root's directory of saved settings may be, best first. In the first two nobody else
/// may write; `/data/adb` is there on rooted phones.
const ROOTS_PLACES: [&str; 4] = ["/run", "/data/adb", "/data/local/tmp", "/tmp"];

/// An open directory that belongs to this user, and that nobody else may write to. Its files are reached
/// through the open directory, so that renaming it or a directory above it leads nowhere else.
#[derive(Debug)]
pub(crate) struct StateDir {
    dir: File,
    path: PathBuf,
    /// Whether a directory that a file of saved settings names is one of a tracefs.
    is_tracefs: fn(&Path) -> bool,
}

impl StateDir {
    /// Finds or creates the directory: `named`, or else the directory of this user in the usual places.
    pub(crate) fn create(named: Option<&Path>) -> Result<StateDir, RecordError> {
        if let Some(dir) = named {
            return in_place(dir, true)?.ok_or_else(|| error(dir, io::ErrorKind::NotFound.into()));
        }
        if let Some(found) = StateDir::find(None)? {
            return Ok(found);
        }
        let places = usual_places();
        let created = places.iter().find_map(|place| subdirectory(place, true).ok().flatten());
        created.ok_or_else(|| {
            let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
            error(places.join(", ").as_ref(), io::ErrorKind::PermissionDenied.into())
        })
    }

    /// Finds the directory as [`StateDir::create`] does, and creates nothing.
    pub(crate) fn find(named: Option<&Path>) -> Result<Option<StateDir>, RecordError> {
        match named {
            Some(dir) => in_place(dir, false),
            None => Ok(usual_places().iter().find_map(|place| subdirectory(place, false).ok().flatten())),
        }
    }

    /// The directory that [`StateDir::create`] would use or create.
    pub(crate) fn likely_path(named: Option<&Path>) -> PathBuf {
        if let Ok(Some(found)) = StateDir::find(named) {
            return found.path;
        }
        let may_write = |place: &PathBuf| {
            let flags = nix::unistd::AccessFlags::W_OK | nix::unistd::AccessFlags::X_OK;
            nix::unistd::access(place, flags).is_ok()
        };
        let place = named.map(Path::to_owned).or_else(|| usual_places().into_iter().find(may_write));
        let place = place.unwrap_or_else(|| "/tmp".into());
        std::path::absolute(&place).unwrap_or(place)
    }

    /// The directory `dir`, where a directory of plain files may stand for a tracefs.
    #[cfg(test)]
    pub(crate) fn for_tests(dir: &Path) -> StateDir {
        StateDir { is_tracefs: |_| true, ..StateDir::create(Some(dir)).unwrap() }
    }

    /// The directory's path, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The path of one of its files, for messages.
    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn is_tracefs(&self, dir: &Path) -> bool {
        (self.is_tracefs)(dir)
    }

    /// The names of the files of saved settings in it, sorted.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let is_settings_file = |name: &String| name.starts_with("tracebridge-") && name.ends_with(".saved");
        let names =
            fs::read_dir(&self.path)?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(is_settings_file).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Removes the files that killed recorders have left under the names that [`StateDir::create_part`]
    /// gives. A recorder that runs has locked its file.
    pub(super) fn remove_left_parts(&self) {
        let is_part = |name: &String| name.starts_with("tracebridge-") && name.ends_with(".part");
        let names = fs::read_dir(&self.path).into_iter().flatten().flatten();
        for name in names.filter_map(|entry| entry.file_name().into_string().ok()).filter(is_part) {
            let Ok(file) = self.open(&name, false) else { continue };
            if Flock::lock(file, FlockArg::LockExclusiveNonblock).is_ok() {
                self.remove(&name);
            }
        }
    }

    /// Opens one of its files for reading and writing; `create` makes it if it does not exist. Never waits,
    /// and follows no symbolic link.
    ///
    /// # Errors
    /// The file is no file of this user's saved settings, or the system's error.
    pub(super) fn open(&self, name: &str, create: bool) -> Result<File, RecordError> {
        let failed = |source| RecordError::SettingsFile { path: self.path_of(name), source };
        let flags =
            OFlag::O_RDWR | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOCTTY;
        let flags = if create { flags | OFlag::O_CREAT } else { flags };
        let file = match openat(&self.dir, name, flags, Mode::from_bits_truncate(0o600)) {
            Ok(file) => File::from(file),
            Err(Errno::ELOOP) => return Err(self.unusable(name, "it is a symbolic link")),
            Err(Errno::EISDIR) => return Err(self.unusable(name, "it is a directory")),
            Err(errno) => return Err(failed(errno.into())),
        };
        match reason_to_refuse(&file.metadata().map_err(failed)?) {
            Some(reason) => Err(self.unusable(name, reason)),
            None => Ok(file),
        }
    }

    /// Reads one of its files, at most [`MAX_FILE_BYTES`] of it. `None` if it does not exist.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, RecordError> {
        let mut bytes = Vec::new();
        let read = match self.open(name, false) {
            Ok(file) => file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes),
            Err(RecordError::SettingsFile { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        read.map_err(|source| RecordError::SettingsFile { path: self.path_of(name), source })?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(self.unusable(name, "it is longer than 1 MiB"));
        }
        Ok(Some(bytes))
    }

    /// Whether `name` still is the file `file`.
    ///
    /// # Errors
    /// `name` cannot be opened, for another reason than that it is gone or is no file of saved settings.
    pub(super) fn has(&self, name: &str, file: &File) -> Result<bool, RecordError> {
        let failed = |source| RecordError::SettingsFile { path: self.path_of(name), source };
        let now = match self.open(name, false) {
            Ok(now) => now.metadata().map_err(failed)?,
            Err(RecordError::SettingsFile { source, .. }) if source.kind() != io::ErrorKind::NotFound => {
                return Err(failed(source));
            }
            Err(_) => return Ok(false),
        };
        let then = file.metadata().map_err(failed)?;
        Ok((now.dev(), now.ino()) == (then.dev(), then.ino()))
    }

    /// Creates a file under a name of its own. Returns the name too.
    pub(super) fn create_part(&self, text: &[u8]) -> io::Result<(File, String)> {
        let part = format!("tracebridge-{:016x}.part", unpredictable());
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        let mut file = File::from(openat(&self.dir, part.as_str(), flags, Mode::from_bits_truncate(0o600))?);
        if let Err(error) = file.write_all(text) {
            self.remove(&part);
            return Err(error);
        }
        Ok((file, part))
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.dir, from, &self.dir, to)?)
    }

    /// Removes a file, if it exists.
    pub(super) fn remove(&self, name: &str) {
        let _ = unlinkat(&self.dir, name, UnlinkatFlags::NoRemoveDir);
    }

    pub(super) fn unusable(&self, name: &str, reason: impl Into<String>) -> RecordError {
        RecordError::UnusableSettings { path: self.path_of(name), reason: reason.into() }
    }

    /// A second handle of the directory, for the file `name`.
    pub(super) fn handle(&self, name: &str) -> Result<StateDir, RecordError> {
        let dir = self.dir.try_clone();
        let dir = dir.map_err(|source| RecordError::SettingsFile { path: self.path_of(name), source })?;
        Ok(StateDir { dir, path: self.path.clone(), is_tracefs: self.is_tracefs })
    }
}

fn error(path: &Path, source: io::Error) -> RecordError {
    RecordError::SettingsFile { path: path.to_owned(), source }
}

/// Why a file is not this user's own; `None` if it is.
fn reason_to_refuse(meta: &Metadata) -> Option<String> {
    if !meta.is_file() {
        return Some("it is not a regular file".to_owned());
    }
    if meta.uid() != geteuid().as_raw() {
        return Some(format!("it belongs to the user {}", meta.uid()));
    }
    if meta.nlink() > 1 {
        return Some("it has a second name (a hard link)".to_owned());
    }
    (meta.mode() & 0o022 != 0).then(|| "other users may write to it".to_owned())
}

/// Whether only this user may write to the directory.
fn is_private(meta: &Metadata) -> bool {
    meta.is_dir() && meta.uid() == geteuid().as_raw() && meta.mode() & 0o022 == 0
}

/// The directories in which this user's directory of saved settings may be.
fn usual_places() -> Vec<PathBuf> {
    if geteuid().is_root() {
        return ROOTS_PLACES.map(PathBuf::from).to_vec();
    }
    let own = format!("/run/user/{}", geteuid());
    ["/data/local/tmp", &own, "/tmp"].map(PathBuf::from).to_vec()
}

/// `dir` itself if only this user may write to it, else this user's directory in it.
fn in_place(dir: &Path, create: bool) -> Result<Option<StateDir>, RecordError> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(dir);
    let opened = opened.map_err(|e| error(dir, e))?;
    if is_private(&opened.metadata().map_err(|e| error(dir, e))?) {
        let path = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
        return Ok(Some(StateDir { dir: opened, path, is_tracefs }));
    }
    subdirectory(dir, create).map_err(|e| error(dir, e))
}

/// This user's directory in `place`, to which others may write. What another user has put there under the
/// name is left alone, and another name is taken.
fn subdirectory(place: &Path, create: bool) -> io::Result<Option<StateDir>> {
    let outer = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(place)?;
    let own = format!("tracebridge-{}", geteuid());
    let open = |name: &str| {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let dir = File::from(openat(outer.as_fd(), name, flags, Mode::empty()).ok()?);
        let path = std::path::absolute(place.join(name)).ok()?;
        is_private(&dir.metadata().ok()?).then_some(StateDir { dir, path, is_tracefs })
    };
    if let Some(found) = open(&own) {
        return Ok(Some(found));
    }
    let others = fs::read_dir(place)?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut others: Vec<String> = others.filter(|name| name.starts_with(&format!("{own}."))).collect();
    others.sort_unstable();
    if let Some(found) = others.iter().find_map(|name| open(name)) {
        return Ok(Some(found));
    }
    if !create {
        return Ok(None);
    }
    for name in [own.clone(), format!("{own}.{:016x}", unpredictable())] {
        match mkdirat(outer.as_fd(), name.as_str(), Mode::S_IRWXU) {
            Ok(()) => {}
            Err(Errno::EEXIST) => continue,
            Err(errno) => return Err(errno.into()),
        }
        if let Some(created) = open(&name) {
            // A umask may have taken permissions from the owner.
            created.dir.set_permissions(fs::Permissions::from_mode(0o700))?;
            return Ok(Some(created));
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Whether `dir` is in a tracefs, or in the debugfs that holds the trace files of Linux before 4.1.
fn is_tracefs(dir: &Path) -> bool {
    statfs(dir).is_ok_and(|stat| [TRACEFS_MAGIC, DEBUGFS_MAGIC].contains(&stat.filesystem_type()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn shared() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        dir
    }

    #[test]
    fn part_files_of_killed_recorders_are_removed_and_those_of_running_ones_stay() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::for_tests(dir.path());
        let (file, running) = state.create_part(b"x").unwrap();
        let _lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).unwrap();
        let (_, killed) = state.create_part(b"x").unwrap();
        fs::write(dir.path().join("other.part"), "").unwrap();
        state.remove_left_parts();
        let is_left = |name: &str| dir.path().join(name).exists();
        assert!(is_left(&running) && !is_left(&killed) && is_left("other.part"));
    }

    #[test]
    fn in_a_shared_directory_a_private_one_is_made_whatever_stands_under_its_name() {
        let dir = shared();
        let own = dir.path().join(format!("tracebridge-{}", geteuid()));
        assert!(StateDir::find(Some(dir.path())).unwrap().is_none());
        // A symbolic link, and a directory that others may write to, as another user may have planted them.
        symlink("/etc", &own).unwrap();
        let other = StateDir::create(Some(dir.path())).unwrap();
        assert_ne!(other.path(), own);
        assert_eq!(fs::metadata(other.path()).unwrap().mode() & 0o7777, 0o700);
        assert_eq!(StateDir::find(Some(dir.path())).unwrap().unwrap().path(), other.path());
        fs::remove_file(&own).unwrap();
        assert_eq!(StateDir::create(Some(dir.path())).unwrap().path(), other.path(), "found again");
        fs::remove_dir(other.path()).unwrap();
        fs::create_dir(&own).unwrap();
        fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).unwrap();
        assert_ne!(StateDir::create(Some(dir.path())).unwrap().path(), own);
    }

    #[test]
    fn a_file_that_is_not_ones_own_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::create(Some(dir.path())).unwrap();
        assert_eq!(state.path(), dir.path());
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "x").unwrap();
        symlink("file", at("link")).unwrap();
        fs::hard_link(at("file"), at("second")).unwrap();
        fs::create_dir(at("dir")).unwrap();
        nix::unistd::mkfifo(&at("fifo"), Mode::S_IRWXU).unwrap();
        fs::write(at("open"), "x").unwrap();
        fs::set_permissions(at("open"), fs::Permissions::from_mode(0o620)).unwrap();
        File::create(at("long")).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
        for (name, reason) in [
            ("link", "a symbolic link"),
            ("second", "a hard link"),
            ("dir", "a directory"),
            ("fifo", "not a regular file"),
            ("open", "other users may write"),
            ("long", "longer than 1 MiB"),
        ] {
            let error = state.read(name).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains(&at(name).display().to_string()), "{error}");
        }
        assert_eq!(state.read("none").unwrap(), None);
    }
}
