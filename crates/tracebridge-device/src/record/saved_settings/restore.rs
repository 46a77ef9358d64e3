//! Files of saved settings that recorders have left: listing them, and putting the settings of killed
//! recorders back.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::super::buffer_lock::BufferLock;
use super::super::{RecordError, Tracefs, event_cost};
use super::put_back::count_changed;
use super::settings_file::{SettingsOwner, lock, parse};
use super::state_dir::StateDir;
use super::{LockedFile, SettingsGuard};
use crate::markers::TRACEFS_PLACES;

/// The result of [`restore_all`] for one file of saved settings. Its JSON form is part of the command line's
/// interface.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RestoredSettings {
    /// The file.
    pub(crate) record: PathBuf,
    /// The recorder's process id; 0 if it is unknown.
    pub(crate) pid: u32,
    /// The number of settings that were put back; `None` if the file was left alone: the recorder still runs,
    /// a flight recorder is on, or `failures` says why.
    pub(crate) knobs: Option<usize>,
    /// The number of settings that had their old value already.
    pub(crate) unchanged: usize,
    /// One sentence for each setting that could not be put back.
    pub(crate) failures: Vec<String>,
    /// Whether some of these settings stay saved, because a later attempt may succeed.
    pub(crate) retry: bool,
}

impl RestoredSettings {
    /// A file that is left alone.
    fn untouched(record: PathBuf, pid: u32) -> RestoredSettings {
        RestoredSettings { record, pid, knobs: None, unchanged: 0, failures: Vec::new(), retry: false }
    }
}

/// The state of the recorder that a file of saved settings belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum SettingsFileState {
    /// The recorder is running.
    Running,
    /// A flight recorder is on.
    Flight,
    /// The recorder was killed: [`restore_all`] puts its settings back.
    Killed,
    /// The recorder ran before the last boot: there is nothing to put back.
    EarlierBoot,
    /// The file is not one that a recorder of this user wrote; [`SettingsFileReport::reason`] says why.
    Unusable,
}

/// A description of one file of saved settings. Its JSON form is part of the command line's interface.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SettingsFileReport {
    pub(crate) path: PathBuf,
    /// The recorder's process id; 0 if it is unknown.
    pub(crate) pid: u32,
    pub(crate) state: SettingsFileState,
    /// The number of saved settings that do not have their saved value now.
    pub(crate) settings: usize,
    /// The capture that the recorder is writing or did not finish.
    pub(crate) capture: Option<UnfinishedCapture>,
    /// Why the file is not used; `None` if it is.
    pub(crate) reason: Option<String>,
}

/// A capture that is not finished.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct UnfinishedCapture {
    pub(crate) path: PathBuf,
    /// The bytes that the file occupies on the disk. The file's length would count its holes too.
    pub(crate) bytes: u64,
}

impl UnfinishedCapture {
    /// Measures the capture at `path`. `None` if there is no such file.
    fn find(path: PathBuf) -> Option<UnfinishedCapture> {
        let meta = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
        Some(UnfinishedCapture { path, bytes: meta.blocks() * 512 })
    }
}

/// Describes the files of saved settings in this user's directory. Nothing is changed.
pub(crate) fn list_settings_files(state_dir: Option<&Path>) -> Vec<SettingsFileReport> {
    StateDir::find(state_dir).ok().flatten().map_or_else(Vec::new, |dir| list_in(&dir))
}

pub(super) fn list_in(dir: &StateDir) -> Vec<SettingsFileReport> {
    dir.names().unwrap_or_default().iter().filter_map(|name| describe(dir, name)).collect()
}

/// Describes one file of saved settings. `None` if there is nothing in it yet.
fn describe(dir: &StateDir, name: &str) -> Option<SettingsFileReport> {
    let path = dir.path_of(name);
    let (owner, saved) = match parse(dir, name) {
        Ok(parsed) => parsed?,
        Err(error) => {
            return Some(SettingsFileReport {
                path,
                pid: 0,
                state: SettingsFileState::Unusable,
                settings: 0,
                capture: None,
                reason: Some(error.to_string()),
            });
        }
    };
    let state = match lock(dir, name).ok()? {
        _ if owner.is_of_earlier_boot() => SettingsFileState::EarlierBoot,
        None => SettingsFileState::Running,
        Some(_) if owner.flight.is_some() => SettingsFileState::Flight,
        Some(_) => SettingsFileState::Killed,
    };
    let settings = count_changed(&buffer_of(&owner), owner.buffer, &saved);
    let capture = owner.capture.and_then(UnfinishedCapture::find);
    Some(SettingsFileReport { path, pid: owner.pid, state, settings, capture, reason: None })
}

/// The trace buffer that a file of saved settings belongs to. The top-level buffer may be mounted at another
/// place by now.
fn buffer_of(owner: &SettingsOwner) -> Tracefs {
    let tracefs = Tracefs::of_saved_settings(owner.tracefs.clone(), owner.instance.clone());
    if tracefs.exists() || owner.instance.is_some() {
        return tracefs;
    }
    let elsewhere = TRACEFS_PLACES.iter().filter_map(|place| Tracefs::find(Some(place.as_ref())).ok());
    elsewhere.into_iter().find(|mounted| mounted.buffer_id() == owner.buffer).unwrap_or(tracefs)
}

/// Whether the buffer was the top-level buffer of a tracefs that is not mounted now. Its settings can still
/// be put back.
fn is_unmounted(tracefs: &Tracefs) -> bool {
    let is_instance = tracefs.root().parent().is_some_and(|dir| dir.ends_with("instances"));
    tracefs.instance_name().is_none() && !is_instance && tracefs.buffer_id().is_none()
}

/// Puts the settings of killed recorders back, for every file of saved settings in this user's directory.
/// Running recorders are left alone, and so are flight recorders unless `flight_too` is set. A file or a
/// setting that cannot be put back is no error: the result says so.
pub(crate) fn restore_all(
    state_dir: Option<&Path>,
    flight_too: bool,
) -> Result<Vec<RestoredSettings>, RecordError> {
    match StateDir::find(state_dir)? {
        Some(dir) => restore_in(&dir, flight_too),
        None => Ok(Vec::new()),
    }
}

pub(super) fn restore_in(dir: &StateDir, flight_too: bool) -> Result<Vec<RestoredSettings>, RecordError> {
    dir.remove_left_parts();
    let names = dir.names();
    let names = names.map_err(|source| RecordError::SettingsFile { path: dir.path().to_owned(), source })?;
    let restored = names.iter().filter_map(|name| match restore(dir, name, flight_too) {
        Ok(restored) => restored,
        Err(error) => Some(RestoredSettings {
            failures: vec![error.to_string()],
            ..RestoredSettings::untouched(dir.path_of(name), 0)
        }),
    });
    Ok(restored.collect())
}

/// Puts the settings of one file back. `None` if there was nothing in it.
fn restore(dir: &StateDir, name: &str, flight_too: bool) -> Result<Option<RestoredSettings>, RecordError> {
    let Some((owner, saved)) = parse(dir, name)? else {
        // The recorder was killed before the first line was complete, and so before it changed any setting.
        if lock(dir, name)?.is_some() {
            dir.remove(name);
        }
        return Ok(None);
    };
    let mut done = RestoredSettings::untouched(dir.path_of(name), owner.pid);
    let stale = owner.is_of_earlier_boot();
    if owner.flight.is_some() && !flight_too && !stale {
        // The settings of a flight recorder are meant to stay.
        return Ok(Some(done));
    }
    let Some(file) = lock(dir, name)? else { return Ok(Some(done)) };
    let tracefs = buffer_of(&owner);
    if !stale && is_unmounted(&tracefs) {
        let place = tracefs.root().display();
        done.failures.push(format!("no tracefs is mounted at {place} now: mount it and try again"));
        done.retry = true;
        return Ok(Some(done));
    }
    let buffer_lock = match BufferLock::take(&tracefs) {
        Ok(buffer_lock) => buffer_lock,
        Err(_) if stale => BufferLock::none(),
        // A recorder with another directory for its settings is using the buffer now.
        Err(_) => return Ok(Some(done)),
    };
    event_cost::remove_left_over(&tracefs);
    let file = LockedFile { dir: dir.handle(name)?, name: name.to_owned(), file };
    let mut settings = SettingsGuard::new(tracefs, owner, saved, file, buffer_lock);
    if stale {
        settings.saved.clear();
        settings.owner.remove_instance = false;
    }
    let report = settings.finish();
    done.knobs = Some(report.written);
    done.unchanged = report.unchanged;
    done.failures = report.failures().collect();
    done.retry = !report.refused.is_empty();
    Ok(Some(done))
}
