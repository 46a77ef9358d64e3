//! The file of saved settings: which trace buffer and recorder it belongs to, and the old value of each
//! setting. The file outlives a recorder that is killed. While a recorder runs, it holds a lock on the file.
//!
//! The file has one JSON value per line: first a [`SettingsOwner`], then one [`SavedSetting`] per setting.

use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use super::super::tracefs::{BufferId, is_instance_name};
use super::super::{RecordError, Tracefs};
use super::state_dir::StateDir;
use crate::android::{SavedProperties, atrace_properties};
use crate::clock::Snapshots;

/// The first line of the file: the trace buffer, and the recorder that changed its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SettingsOwner {
    /// The recorder's process id.
    pub(super) pid: u32,
    /// When the recorder started, in clock ticks after the boot. It tells the process from a later one of the
    /// same id.
    #[serde(default)]
    pub(super) started: Option<u64>,
    /// The kernel's id of the boot in which the settings were saved. After another boot there is nothing to
    /// put back.
    pub(super) boot_id: String,
    /// The directory of the trace buffer.
    pub(super) tracefs: PathBuf,
    /// The instance's name, if the trace buffer is an instance.
    pub(super) instance: Option<String>,
    /// The trace buffer itself. An instance that was removed and made again is another buffer.
    #[serde(default)]
    pub(super) buffer: Option<BufferId>,
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

impl SettingsOwner {
    /// Whether the machine has been booted since. Where one of the two ids could not be read the answer is
    /// no, so that nothing is thrown away that may still be put back.
    pub(super) fn is_of_earlier_boot(&self) -> bool {
        differ(&self.boot_id, &boot_id())
    }
}

/// Whether two ids of boots are known, and those of two boots.
fn differ(one: &str, other: &str) -> bool {
    !one.is_empty() && !other.is_empty() && one != other
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

/// The content of a file of saved settings.
pub(super) type SavedSettings = (SettingsOwner, Vec<SavedSetting>);

/// The name of the file for this trace buffer. It tells buffers apart by the kernel's number for each,
/// however they are reached.
pub(super) fn name_of(tracefs: &Tracefs) -> String {
    let buffer = tracefs.buffer_id().map_or_else(
        || tracefs.instance_name().map_or("top".to_owned(), |instance| format!("in-{instance}")),
        |BufferId { device, inode }| format!("{device:x}-{inode:x}"),
    );
    format!("tracebridge-{buffer}.saved")
}

/// The kernel's id of the current boot; empty if it cannot be read.
pub(super) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Opens a file of saved settings, creates it if necessary, and locks it. `Ok(None)`: another process holds
/// the lock.
pub(super) fn lock(dir: &StateDir, name: &str) -> Result<Option<Flock<File>>, RecordError> {
    loop {
        let file = match Flock::lock(dir.open(name, true)?, FlockArg::LockExclusiveNonblock) {
            Ok(file) => file,
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => return Ok(None),
            Err((_, errno)) => {
                return Err(RecordError::SettingsFile { path: dir.path_of(name), source: errno.into() });
            }
        };
        // The file's owner may have removed it between the open and the lock here. Then the locked file has
        // no name, and the lock keeps nobody out.
        if dir.has(name, &file)? {
            return Ok(Some(file));
        }
    }
}

/// Reads a file of saved settings. `None` if it does not exist or has no complete first line. What the file
/// names was checked: it is a setting of a tracefs, or a property that a recording changes.
pub(super) fn parse(dir: &StateDir, name: &str) -> Result<Option<SavedSettings>, RecordError> {
    let Some(bytes) = dir.read(name)? else { return Ok(None) };
    let Some((owner, saved)) = parse_text(&String::from_utf8_lossy(&bytes)) else { return Ok(None) };
    match check(dir, &owner, &saved) {
        Ok(()) => Ok(Some((owner, saved))),
        Err(fault) => Err(dir.unusable(name, fault.to_string())),
    }
}

/// Reads the content of a file of saved settings. `None` if it has no complete first line.
fn parse_text(text: &str) -> Option<SavedSettings> {
    let mut lines = text.lines();
    let owner = serde_json::from_str(lines.next()?).ok()?;
    // A last line that is incomplete was cut by a kill, and its setting was not changed yet.
    Some((owner, lines.map_while(|l| serde_json::from_str(l).ok()).collect()))
}

/// Why nothing is written that a file of saved settings names.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum BadContent {
    #[error("{} is not the directory of a trace buffer", .0.display())]
    NoBuffer(PathBuf),
    #[error("{} is not a tracefs", .0.display())]
    NoTracefs(PathBuf),
    #[error("{0:?} is not a file of tracefs")]
    Knob(String),
    #[error("{0:?} is not a property that a recording changes")]
    Property(String),
}

/// Checks what a file of saved settings would have written. Of an earlier boot nothing is written.
fn check(dir: &StateDir, owner: &SettingsOwner, saved: &[SavedSetting]) -> Result<(), BadContent> {
    if owner.is_of_earlier_boot() {
        return Ok(());
    }
    let root = &owner.tracefs;
    let is_plain = root.is_absolute() && !root.components().any(|part| part == Component::ParentDir);
    let is_instance = owner
        .instance
        .as_deref()
        .is_none_or(|name| is_instance_name(name) && root.ends_with(Path::new("instances").join(name)));
    if !is_plain || !is_instance || (owner.remove_instance && owner.instance.is_none()) {
        return Err(BadContent::NoBuffer(root.clone()));
    }
    let tracefs = Tracefs::of_saved_settings(root.clone(), owner.instance.clone());
    let found = if tracefs.exists() { tracefs.root() } else { tracefs.top() };
    if found.exists() && !dir.is_tracefs(found) {
        return Err(BadContent::NoTracefs(found.to_owned()));
    }
    for setting in saved {
        match setting {
            SavedSetting::Knob(SavedKnob { knob, .. }) if !is_knob(knob, owner.instance.is_some()) => {
                return Err(BadContent::Knob(knob.clone()));
            }
            SavedSetting::Properties(properties) => {
                let foreign =
                    properties.values.iter().find(|(name, _)| !atrace_properties::is_set_by_recordings(name));
                if let Some((name, _)) = foreign {
                    return Err(BadContent::Property(name.clone()));
                }
            }
            SavedSetting::Knob(_) => {}
        }
    }
    Ok(())
}

/// Whether `knob` is a path within a trace buffer or, from an instance, `../../` and a path within the
/// top-level buffer.
fn is_knob(knob: &str, in_instance: bool) -> bool {
    let path = knob.strip_prefix("../../").filter(|_| in_instance).unwrap_or(knob);
    path.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

/// The parts of a file of saved settings that a fuzz target checks.
pub struct SettingsText {
    /// The content, written again.
    pub written: Vec<u8>,
    /// The paths, relative to the buffer, that may be written to if it is an instance.
    pub knobs: Vec<String>,
}

/// Reads `text` as the content of a file of saved settings. `None` if it has no complete first line.
pub fn read_settings_text(text: &str) -> Option<SettingsText> {
    let (owner, saved) = parse_text(text)?;
    let mut read = SettingsText { written: json_line(&owner).ok()?, knobs: Vec::new() };
    for setting in saved {
        read.written.extend(json_line(&setting).ok()?);
        if let SavedSetting::Knob(SavedKnob { knob, .. }) = setting
            && is_knob(&knob, true)
        {
            read.knobs.push(knob);
        }
    }
    Some(read)
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
            started: Some(9),
            boot_id: boot_id(),
            tracefs: "/t/instances/x".into(),
            instance: Some("x".into()),
            buffer: Some(BufferId { device: 1, inode: 2 }),
            remove_instance: true,
            flight: Some(Snapshots::default()),
            capture: Some("/d/x.dat".into()),
        }
    }

    fn knob(knob: &str) -> SavedSetting {
        SavedSetting::Knob(SavedKnob { knob: knob.into(), value: "1".into() })
    }

    fn properties(name: &str) -> SavedSetting {
        SavedSetting::Properties(SavedProperties { values: vec![(name.into(), "c\n".into())] })
    }

    #[test]
    fn settings_are_of_an_earlier_boot_only_if_both_ids_are_known() {
        assert!(differ("a", "b"));
        assert!(!differ("a", "a") && !differ("a", "") && !differ("", "b"));
    }

    #[test]
    fn a_written_file_is_read_up_to_the_line_that_a_kill_has_cut() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::for_tests(dir.path());
        let name = "tracebridge-in-x.saved";
        let settings = [knob("tracing_on"), properties("debug.atrace.app_0")];
        let mut text = json_line(&owner()).unwrap();
        settings.iter().for_each(|setting| text.extend(json_line(setting).unwrap()));
        let write = |text: &[u8]| fs::write(dir.path().join(name), text).unwrap();
        write(&text);
        assert_eq!(parse(&state, name).unwrap(), Some((owner(), settings.to_vec())));
        write(&text[..text.len() - 5]);
        assert_eq!(parse(&state, name).unwrap(), Some((owner(), settings[..1].to_vec())));
        write(&text[..20]);
        assert_eq!(parse(&state, name).unwrap(), None);
        assert_eq!(state.names().unwrap(), [name]);
    }

    #[test]
    fn a_file_of_an_older_version_names_no_capture() {
        let old =
            r#"{"pid":7,"boot_id":"b","tracefs":"/t","instance":null,"remove_instance":false,"flight":null}"#;
        assert_eq!(serde_json::from_str::<SettingsOwner>(old).unwrap().capture, None);
    }

    #[test]
    fn only_settings_of_a_tracefs_and_properties_of_atrace_are_taken_from_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::for_tests(dir.path());
        let verdict = |owner: SettingsOwner, setting: SavedSetting| check(&state, &owner, &[setting]);
        let top = SettingsOwner { tracefs: "/t".into(), instance: None, remove_instance: false, ..owner() };
        assert_eq!(verdict(owner(), knob("../../options/record-tgid")), Ok(()));
        assert_eq!(verdict(top.clone(), knob("events/sched/enable")), Ok(()));
        let bad = ["/proc/sys/kernel/core_pattern", "../../x", "../x", "a/../b", "a//b", "./a", "", "a/"];
        for bad in bad {
            assert!(verdict(top.clone(), knob(bad)).is_err(), "{bad}");
        }
        for bad in ["../../../x", "../../", "../../a/../../b", "..", "../.."] {
            assert!(verdict(owner(), knob(bad)).is_err(), "{bad}");
        }
        for bad in ["persist.sys.usb.config", "debug.atrace", "debug.other", "ro.atrace.core.services"] {
            assert!(verdict(top.clone(), properties(bad)).is_err(), "{bad}");
        }
        let bad_owners = [
            SettingsOwner { remove_instance: true, ..top.clone() },
            SettingsOwner { tracefs: "t".into(), ..top.clone() },
            SettingsOwner { tracefs: "/t/../etc".into(), ..top.clone() },
            SettingsOwner { instance: Some("..".into()), tracefs: "/t/instances/..".into(), ..owner() },
            SettingsOwner { tracefs: "/home/x".into(), ..owner() },
        ];
        for bad in bad_owners {
            assert!(verdict(bad.clone(), knob("tracing_on")).is_err(), "{bad:?}");
        }
        // A directory that exists and is no tracefs.
        let real = StateDir::create(Some(dir.path())).unwrap();
        let foreign = SettingsOwner { tracefs: dir.path().to_owned(), ..top };
        assert!(check(&real, &foreign, &[knob("x")]).unwrap_err().to_string().contains("is not a tracefs"));
    }
}
