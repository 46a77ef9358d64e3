//! The file of saved settings: which trace buffer and recorder it belongs to, and the old value of each
//! setting. The file outlives a recorder that is killed. While a recorder runs, it holds a lock on the file.
//!
//! The file has one JSON value per line: first a [`SettingsOwner`], then one [`SavedSetting`] per setting.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use super::super::{RecordError, Tracefs};
use crate::android::system::SavedProperties;
use crate::clock::Snapshots;

/// Directories for the file of saved settings, best first: the first is Android's, the others are Linux's.
const STATE_DIRS: [&str; 3] = ["/data/local/tmp", "/run", "/tmp"];

/// The first line of the file: the trace buffer, and the recorder that changed its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SettingsOwner {
    /// The recorder's process id.
    pub(super) pid: u32,
    /// The kernel's id of the boot in which the settings were saved. After another boot there is nothing to
    /// put back.
    pub(super) boot_id: String,
    /// The directory of the trace buffer.
    pub(super) tracefs: PathBuf,
    /// The instance's name, if the trace buffer is an instance.
    pub(super) instance: Option<String>,
    /// Whether the instance is removed when the settings are put back.
    pub(super) remove_instance: bool,
    /// The clocks at the start of a flight recorder, whose settings are meant to outlive the process. `None`
    /// for any other recorder.
    pub(super) flight: Option<Snapshots>,
    /// The capture that is being written, so that it can be found after a SIGKILL. Older versions did not
    /// write it.
    #[serde(default)]
    pub(super) capture: Option<PathBuf>,
}

/// A file of tracefs, and the value to write to it to have the old setting back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SavedKnob {
    /// The path relative to the trace buffer.
    pub(super) knob: String,
    pub(super) value: String,
}

/// A further line of the file: one setting, or all of Android's properties that a recording changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum SavedSetting {
    Knob(SavedKnob),
    Properties(SavedProperties),
}

/// The default directory for files of saved settings: the first of [`STATE_DIRS`] that this user may write
/// to.
pub(crate) fn state_dir() -> PathBuf {
    let is_usable = |dir: &&str| {
        nix::unistd::access(*dir, nix::unistd::AccessFlags::W_OK | nix::unistd::AccessFlags::X_OK).is_ok()
    };
    STATE_DIRS.into_iter().find(is_usable).map_or_else(std::env::temp_dir, PathBuf::from)
}

/// The path of the file in `dir` for this trace buffer. There is one top-level buffer, wherever tracefs is
/// mounted.
pub(super) fn path_of(dir: &Path, tracefs: &Tracefs) -> PathBuf {
    dir.join(format!(
        "tracebridge-{}.saved",
        tracefs.instance_name().map_or("top".into(), |i| format!("in-{i}"))
    ))
}

/// The paths of all files of saved settings in `dir`.
pub(super) fn paths_in(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let is_settings_file = |path: &PathBuf| {
        let name = path.file_name().and_then(|n| n.to_str());
        name.is_some_and(|n| n.starts_with("tracebridge-") && n.ends_with(".saved"))
    };
    Ok(fs::read_dir(dir)?.flatten().map(|entry| entry.path()).filter(is_settings_file).collect())
}

/// The kernel's id of the current boot.
pub(super) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Opens the file at `path`, creates it if necessary, and locks it. `Ok(None)`: another process holds the
/// lock.
pub(super) fn lock(path: &Path) -> Result<Option<Flock<File>>, RecordError> {
    let failed = |source| RecordError::SettingsFile { path: path.to_owned(), source };
    loop {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => file,
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => return Ok(None),
            Err((_, errno)) => return Err(failed(errno.into())),
        };
        // The file's owner may have removed it between the open and the lock here. Then the locked file has
        // no name, and the lock keeps nobody out.
        let is_same = |m: fs::Metadata| file.metadata().is_ok_and(|f| f.ino() == m.ino());
        if fs::metadata(path).is_ok_and(is_same) {
            return Ok(Some(file));
        }
    }
}

/// Reads the file at `path`. `None` if it does not exist, may not be read, or has no complete first line.
pub(super) fn parse(path: &Path) -> Option<(SettingsOwner, Vec<SavedSetting>)> {
    let text = fs::read_to_string(path).ok()?;
    let mut lines = text.lines();
    let owner = serde_json::from_str(lines.next()?).ok()?;
    // A last line that is incomplete was cut by a kill, and its setting was not changed yet.
    Some((owner, lines.map_while(|l| serde_json::from_str(l).ok()).collect()))
}

/// One line of the file, its newline included.
pub(super) fn json_line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> SettingsOwner {
        SettingsOwner {
            pid: 7,
            boot_id: "b".into(),
            tracefs: "/t/instances/x".into(),
            instance: Some("x".into()),
            remove_instance: true,
            flight: Some(Snapshots::default()),
            capture: Some("/d/x.dat".into()),
        }
    }

    #[test]
    fn a_written_file_is_read_up_to_the_line_that_a_kill_has_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tracebridge-in-x.saved");
        let settings = [
            SavedSetting::Knob(SavedKnob { knob: "tracing_on".into(), value: "1".into() }),
            SavedSetting::Properties(SavedProperties { values: vec![("a.b".into(), "c\n".into())] }),
        ];
        let mut text = json_line(&owner()).unwrap();
        settings.iter().for_each(|setting| text.extend(json_line(setting).unwrap()));
        fs::write(&path, &text).unwrap();
        assert_eq!(parse(&path), Some((owner(), settings.to_vec())));
        fs::write(&path, &text[..text.len() - 5]).unwrap();
        assert_eq!(parse(&path), Some((owner(), settings[..1].to_vec())));
        fs::write(&path, &text[..20]).unwrap();
        assert_eq!(parse(&path), None);
        assert_eq!(paths_in(dir.path()).unwrap(), [path]);
    }

    #[test]
    fn a_file_of_an_older_version_names_no_capture() {
        let old =
            r#"{"pid":7,"boot_id":"b","tracefs":"/t","instance":null,"remove_instance":false,"flight":null}"#;
        assert_eq!(serde_json::from_str::<SettingsOwner>(old).unwrap().capture, None);
    }
}
