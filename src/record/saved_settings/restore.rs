//! Files of saved settings that recorders have left: listing them, and putting the settings of killed
//! recorders back.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::super::buffer_lock::BufferLock;
use super::super::{RecordError, Tracefs};
use super::SettingsGuard;
use super::put_back::count_changed;
use super::settings_file::{boot_id, lock, parse, paths_in};

/// The result of [`restore_all`] for one file of saved settings. Its JSON form is part of the command line's
/// interface.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RestoredSettings {
    /// The file.
    pub(crate) record: PathBuf,
    /// The recorder's process id.
    pub(crate) pid: u32,
    /// The number of settings that were put back; `None` if the recorder still runs or a flight recorder is
    /// on.
    pub(crate) knobs: Option<usize>,
    /// The number of settings that had their old value already.
    pub(crate) unchanged: usize,
    /// One sentence for each setting that could not be put back.
    pub(crate) failures: Vec<String>,
    /// Whether some of these settings stay saved, because a later attempt may succeed.
    pub(crate) retry: bool,
}

/// The state of the recorder that a file of saved settings belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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
}

/// A description of one file of saved settings. Its JSON form is part of the command line's interface.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SettingsFileReport {
    pub(crate) path: PathBuf,
    /// The recorder's process id.
    pub(crate) pid: u32,
    pub(crate) state: SettingsFileState,
    /// The number of saved settings that do not have their saved value now.
    pub(crate) settings: usize,
    /// The capture that the recorder is writing or did not finish.
    pub(crate) capture: Option<UnfinishedCapture>,
}

/// A capture that is not finished.
#[derive(Debug, Clone, Serialize)]
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

/// Describes the files of saved settings in `dir`. Files that this user may not read are left out. Nothing is
/// changed.
pub(crate) fn list_settings_files(dir: &Path) -> Vec<SettingsFileReport> {
    let describe = |path: PathBuf| {
        let (owner, saved) = parse(&path)?;
        let state = match lock(&path).ok()? {
            _ if owner.boot_id != boot_id() => SettingsFileState::EarlierBoot,
            None => SettingsFileState::Running,
            Some(_) if owner.flight.is_some() => SettingsFileState::Flight,
            Some(_) => SettingsFileState::Killed,
        };
        let capture = owner.capture.and_then(UnfinishedCapture::find);
        let tracefs = Tracefs::of_saved_settings(owner.tracefs, owner.instance);
        let settings = count_changed(&tracefs, &saved);
        Some(SettingsFileReport { path, pid: owner.pid, state, settings, capture })
    };
    paths_in(dir).unwrap_or_default().into_iter().filter_map(describe).collect()
}

/// Puts the settings of killed recorders back, for every file of saved settings in `dir`. Running recorders
/// are left alone, and so are flight recorders unless `flight_too` is set. A setting that cannot be put back
/// is no error: the result says so.
pub(crate) fn restore_all(dir: &Path, flight_too: bool) -> Result<Vec<RestoredSettings>, RecordError> {
    let paths = paths_in(dir).map_err(|source| RecordError::SettingsFile { path: dir.to_owned(), source })?;
    let mut out = Vec::new();
    for path in paths {
        let Some((owner, saved)) = parse(&path) else {
            // The recorder was killed before the first line was complete, and so before it changed any
            // setting.
            if lock(&path)?.is_some() {
                let _ = fs::remove_file(&path);
            }
            continue;
        };
        let mut done = RestoredSettings {
            record: path.clone(),
            pid: owner.pid,
            knobs: None,
            unchanged: 0,
            failures: Vec::new(),
            retry: false,
        };
        if owner.flight.is_some() && !flight_too {
            // The settings of a flight recorder are meant to stay.
        } else if let Some(file) = lock(&path)? {
            let tracefs = Tracefs::of_saved_settings(owner.tracefs.clone(), owner.instance.clone());
            let stale = owner.boot_id != boot_id();
            let buffer_lock = match BufferLock::take(&tracefs) {
                // A recorder with another directory for its settings is using the buffer now.
                Err(_) if !stale => {
                    out.push(done);
                    continue;
                }
                Err(_) => BufferLock::none(),
                Ok(buffer_lock) => buffer_lock,
            };
            let mut settings = SettingsGuard::new(tracefs, owner, saved, (file, buffer_lock, path));
            if stale {
                settings.saved.clear();
                settings.owner.remove_instance = false;
            }
            let report = settings.finish();
            done.knobs = Some(report.written);
            done.unchanged = report.unchanged;
            done.failures = report.failures().collect();
            done.retry = !report.refused.is_empty();
        }
        out.push(done);
    }
    Ok(out)
}
