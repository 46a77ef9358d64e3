//! The guard that leaves the kernel as it found it. The guard saves each setting before a recording changes
//! it, in memory and in a file that outlives a SIGKILL, and puts all settings back in reverse order.

mod restore;
mod settings_file;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use serde::Serialize;

use self::settings_file::{SavedKnob, SavedSetting, SettingsOwner, boot_id, json_line, lock, parse, path_of};
use super::{RecordError, Tracefs};
use crate::android::system::{Properties, SavedProperties, UserspaceRequest, UserspaceTags};
use crate::clock::Snapshots;
use crate::console::complain;

pub(crate) use restore::{
    SettingsFileReport, SettingsFileState, UnfinishedCapture, list_settings_files, restore_all,
};
pub(crate) use settings_file::state_dir;

/// The settings of one trace buffer while a recording changes them. Dropping the guard puts every setting
/// back.
///
/// The guard also holds the lock on the file of saved settings, which keeps a second recorder out.
#[derive(Debug)]
pub(crate) struct SettingsGuard {
    tracefs: Tracefs,
    owner: SettingsOwner,
    saved: Vec<SavedSetting>,
    file: Flock<File>,
    path: PathBuf,
    /// Whether dropping the guard leaves everything as it is.
    done: bool,
}

/// The settings of an earlier recorder that [`SettingsGuard::begin`] has put back.
#[derive(Debug)]
pub(crate) enum LeftoverSettings {
    /// There were none.
    None,
    /// The settings of a recorder that was killed, with their number.
    PutBack(usize),
    /// The settings of a flight recorder that was ended by force, with the id of the process that had started
    /// it.
    Flight(u32),
}

impl SettingsGuard {
    /// Locks this trace buffer and begins an empty file of saved settings in `dir`. Settings that a killed
    /// recorder has left are put back first, because the state before that recorder is the one to return to.
    /// With `force` this holds for the settings of a flight recorder too.
    pub(crate) fn begin(
        tracefs: &Tracefs,
        dir: &Path,
        force: bool,
    ) -> Result<(SettingsGuard, LeftoverSettings), RecordError> {
        let path = path_of(dir, tracefs);
        let Some(file) = lock(&path)? else {
            return Err(RecordError::Busy { pid: parse(&path).map_or(0, |(owner, _)| owner.pid) });
        };
        let mut remove_instance = false;
        let leftover = match parse(&path) {
            Some((owner, saved)) if owner.boot_id == boot_id() => {
                if owner.flight.is_some() && !force {
                    return Err(RecordError::FlightRecorder { pid: owner.pid });
                }
                put_back(tracefs, &saved)?;
                // The killed recorder had created the instance if it was to remove it.
                remove_instance = owner.remove_instance;
                match owner.flight {
                    Some(_) => LeftoverSettings::Flight(owner.pid),
                    None => LeftoverSettings::PutBack(saved.len()),
                }
            }
            _ => LeftoverSettings::None,
        };
        let owner = SettingsOwner {
            pid: std::process::id(),
            boot_id: boot_id(),
            tracefs: tracefs.root().to_owned(),
            instance: tracefs.instance_name().map(str::to_owned),
            remove_instance,
            flight: None,
            capture: None,
        };
        let mut settings =
            SettingsGuard { tracefs: tracefs.clone(), owner, saved: Vec::new(), file, path, done: false };
        settings
            .file
            .set_len(0)
            .map_err(|source| RecordError::SettingsFile { path: settings.path.clone(), source })?;
        settings.append_line(&settings.owner.clone())?;
        Ok((settings, leftover))
    }

    /// Ends the recorder that holds the lock of this trace buffer, if there is one: with SIGTERM, and after
    /// ten seconds with SIGKILL. Returns the recorder's process id.
    pub(crate) fn take_over(tracefs: &Tracefs, dir: &Path) -> Result<Option<u32>, RecordError> {
        let path = path_of(dir, tracefs);
        let Some((SettingsOwner { pid, .. }, _)) = parse(&path) else { return Ok(None) };
        let target = nix::unistd::Pid::from_raw(pid as i32);
        for tenth in 0..150 {
            if lock(&path)?.is_some() {
                return Ok((tenth > 0).then_some(pid));
            }
            match tenth {
                // SIGCONT lets a recorder that somebody has stopped receive the SIGTERM and end in order.
                0 => drop(kill(target, Signal::SIGTERM).and_then(|()| kill(target, Signal::SIGCONT))),
                100 => drop(kill(target, Signal::SIGKILL)),
                _ => {}
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err(RecordError::Busy { pid })
    }

    /// Takes over the settings that the start of a flight recorder has left changed. `None` if there is no
    /// file of saved settings.
    pub(crate) fn resume(tracefs: &Tracefs, dir: &Path) -> Result<Option<SettingsGuard>, RecordError> {
        let path = path_of(dir, tracefs);
        if let Err(source) = File::open(&path)
            && source.kind() != io::ErrorKind::NotFound
        {
            return Err(RecordError::SettingsFile { path, source });
        }
        let Some((owner, saved)) = parse(&path) else { return Ok(None) };
        let Some(file) = lock(&path)? else { return Err(RecordError::Busy { pid: owner.pid }) };
        if owner.boot_id != boot_id() {
            let _ = fs::remove_file(&path);
            return Ok(None);
        }
        Ok(Some(SettingsGuard { tracefs: tracefs.clone(), owner, saved, file, path, done: false }))
    }

    fn append_line(&mut self, line: &impl Serialize) -> Result<(), RecordError> {
        let write = json_line(line).and_then(|text| {
            self.file.seek(io::SeekFrom::End(0))?;
            self.file.write_all(&text)
        });
        write.map_err(|source| RecordError::SettingsFile { path: self.path.clone(), source })
    }

    /// The trace buffer whose settings these are.
    pub(crate) fn tracefs(&self) -> &Tracefs {
        &self.tracefs
    }

    /// Writes `value` to a file of the trace buffer, unless the file has that value already. The old value is
    /// saved first. Returns whether anything was written.
    pub(crate) fn set(&mut self, knob: &str, value: &str) -> Result<bool, RecordError> {
        let old = restorable(&self.tracefs.read(knob)?);
        if old == value {
            return Ok(false);
        }
        self.hold(knob)?;
        self.tracefs.write(knob, value)?;
        Ok(true)
    }

    /// Saves the value of a file without writing it, for a file that will be written more than once.
    pub(crate) fn hold(&mut self, knob: &str) -> Result<(), RecordError> {
        let saved = SavedKnob { knob: knob.to_owned(), value: restorable(&self.tracefs.read(knob)?) };
        self.save(SavedSetting::Knob(saved))
    }

    fn save(&mut self, setting: SavedSetting) -> Result<(), RecordError> {
        self.append_line(&setting)?;
        self.saved.push(setting);
        Ok(())
    }

    /// Switches userspace tags on. The old properties are put back together with the other settings.
    pub(crate) fn set_userspace(
        &mut self,
        properties: &Properties,
        request: &UserspaceRequest,
    ) -> Result<(), RecordError> {
        self.save(SavedSetting::Properties(SavedProperties::read(properties, request)?))?;
        // The old properties are saved above, so the guard of the tags has nothing to put back.
        UserspaceTags::enable(properties, request)?.leave_on();
        Ok(())
    }

    /// Requests that the instance is removed when the settings are put back.
    pub(crate) fn remove_instance_at_end(&mut self) -> Result<(), RecordError> {
        self.owner.remove_instance = true;
        self.rewrite()
    }

    /// Stores the path of the capture in the file, so that the capture can be found after a SIGKILL.
    pub(crate) fn set_capture(&mut self, path: &Path) -> Result<(), RecordError> {
        let absolute = std::path::absolute(path);
        self.owner.capture = Some(absolute.unwrap_or_else(|_| path.to_owned()));
        self.rewrite()
    }

    /// Leaves the settings changed for a flight recorder that started at `started`. The file stays for a
    /// later [`SettingsGuard::resume`].
    pub(crate) fn leave_on(mut self, started: Snapshots) -> Result<(), RecordError> {
        self.owner.flight = Some(started);
        self.rewrite()?;
        self.done = true;
        Ok(())
    }

    /// Releases the lock and leaves the settings changed and the file in place.
    pub(crate) fn let_go(mut self) {
        self.done = true;
    }

    /// The clocks at the start of the flight recorder; `None` if these settings are not those of a flight
    /// recorder.
    pub(crate) fn flight(&self) -> Option<&Snapshots> {
        self.owner.flight.as_ref()
    }

    /// Writes the whole file again after its first line has changed. A kill must not lose the file, so the
    /// new file is complete and locked before it replaces the old one.
    fn rewrite(&mut self) -> Result<(), RecordError> {
        let failed = |source| RecordError::SettingsFile { path: self.path.clone(), source };
        let mut text = json_line(&self.owner).map_err(failed)?;
        for saved in &self.saved {
            text.extend(json_line(saved).map_err(failed)?);
        }
        let part = self.path.with_extension("part");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&part)
            .map_err(failed)?;
        file.write_all(&text).map_err(|e| {
            let _ = fs::remove_file(&part);
            failed(e)
        })?;
        let file = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, e)| failed(e.into()))?;
        fs::rename(&part, &self.path).map_err(failed)?;
        self.file = file;
        Ok(())
    }

    /// Puts every setting back and removes the file. Returns the number of settings.
    pub(crate) fn restore(mut self) -> Result<usize, RecordError> {
        self.finish()
    }

    /// Puts every setting back, but keeps the file until the guard is dropped: it still names the unfinished
    /// capture. Returns the number of settings.
    pub(crate) fn put_back(&mut self) -> Result<usize, RecordError> {
        put_back(&self.tracefs, &self.saved)?;
        if self.owner.remove_instance && self.tracefs.exists() {
            fs::remove_dir(self.tracefs.root())
                .map_err(|e| RecordError::knob(self.tracefs.root(), "remove this instance", e))?;
        }
        self.owner.remove_instance = false;
        let knobs = std::mem::take(&mut self.saved).len();
        // On a full disk the old file stays. At worst every setting is then put back a second time.
        let _ = self.rewrite();
        Ok(knobs)
    }

    fn finish(&mut self) -> Result<usize, RecordError> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(0);
        }
        let knobs = self.put_back()?;
        let _ = fs::remove_file(&self.path);
        Ok(knobs)
    }
}

impl Drop for SettingsGuard {
    fn drop(&mut self) {
        if let Err(error) = self.finish() {
            complain(format_args!("tracebridge: settings not put back: {error}; try `tracebridge restore`"));
        }
    }
}

/// Writes the saved values in reverse order. Goes on after a failure and returns the first one. If somebody
/// has removed the instance, only settings of the top-level buffer are left to put back.
fn put_back(tracefs: &Tracefs, saved: &[SavedSetting]) -> Result<(), RecordError> {
    let is_gone = tracefs.instance_name().is_some() && !tracefs.exists();
    let put_one_back = |setting: &SavedSetting| match (setting, Properties::here()) {
        (SavedSetting::Knob(saved), _) if is_gone && !saved.knob.starts_with("../..") => Ok(()),
        (SavedSetting::Knob(saved), _) => tracefs.write(&saved.knob, &saved.value),
        (SavedSetting::Properties(saved), Some(properties)) => Ok(saved.restore(&properties)?),
        (SavedSetting::Properties(_), None) => Ok(()),
    };
    let failures: Vec<RecordError> = saved.iter().rev().filter_map(|s| put_one_back(s).err()).collect();
    failures.into_iter().next().map_or(Ok(()), Err)
}

/// The value to write to a file of tracefs so that it shows `shown` again.
///
/// - `local [boot] mono`: the choice in brackets.
/// - `7 (expanded: 1408)`: the size of a buffer before its first use, KiB. That state cannot be restored.
///   1408 is the size after the first use.
/// - `none`, in the `filter` of an event: `0` clears the filter.
/// - `#### all functions enabled ####`: nothing, which empties a list.
/// - `1*`, in the `enable` of an event: `1`. The asterisk means that a trigger uses the event too.
fn restorable(shown: &str) -> String {
    if let Some(expanded) = shown.split_once("(expanded: ").and_then(|(_, n)| n.strip_suffix(')')) {
        return expanded.to_owned();
    }
    if let Some(chosen) = shown.split_whitespace().find_map(|w| w.strip_prefix('[')?.strip_suffix(']')) {
        return chosen.to_owned();
    }
    if shown.starts_with('#') {
        return String::new();
    }
    if shown == "none" { "0".to_owned() } else { shown.trim_end_matches('*').to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake() -> (tempfile::TempDir, Tracefs) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("tracing_on"), "1\n").unwrap();
        fs::write(dir.path().join("buffer_size_kb"), "7\n").unwrap();
        let tracefs = Tracefs::find(Some(dir.path())).unwrap();
        (dir, tracefs)
    }

    #[test]
    fn dropping_the_guard_puts_every_knob_back() {
        let (dir, tracefs) = fake();
        let (mut settings, _) = SettingsGuard::begin(&tracefs, dir.path(), false).unwrap();
        assert!(settings.set("tracing_on", "0").unwrap());
        assert!(!settings.set("buffer_size_kb", "7").unwrap());
        assert_eq!(tracefs.read("tracing_on").unwrap(), "0");
        drop(settings);
        assert_eq!(tracefs.read("tracing_on").unwrap(), "1");
        assert!(!dir.path().join("tracebridge-top.saved").exists());
    }

    #[test]
    fn the_settings_of_a_killed_recorder_are_put_back_from_its_file() {
        let (dir, tracefs) = fake();
        let (mut settings, _) = SettingsGuard::begin(&tracefs, dir.path(), false).unwrap();
        settings.set("tracing_on", "0").unwrap();
        settings.let_go(); // as after a SIGKILL: no destructor ran, the lock is released, the file is there
        assert_eq!(list_settings_files(dir.path())[0].state, SettingsFileState::Killed);
        let restored = restore_all(dir.path(), false).unwrap();
        assert_eq!(restored[0].knobs, Some(1));
        assert_eq!(tracefs.read("tracing_on").unwrap(), "1");
        assert!(restore_all(dir.path(), false).unwrap().is_empty());
    }

    #[test]
    fn a_recorder_killed_while_it_finishes_its_capture_is_noticed() {
        let (dir, tracefs) = fake();
        let capture = dir.path().join("x.dat");
        fs::write(&capture, "pages").unwrap();
        let (mut settings, _) = SettingsGuard::begin(&tracefs, dir.path(), false).unwrap();
        settings.set("tracing_on", "0").unwrap();
        settings.set_capture(&capture).unwrap();
        assert_eq!(settings.put_back().unwrap(), 1);
        assert_eq!(tracefs.read("tracing_on").unwrap(), "1");
        settings.let_go();
        let found = &list_settings_files(dir.path())[0];
        assert_eq!((found.state, found.settings), (SettingsFileState::Killed, 0));
        assert_eq!(found.capture.as_ref().map(|c| c.path.as_path()), Some(capture.as_path()));
        assert_eq!(restore_all(dir.path(), false).unwrap()[0].knobs, Some(0));
        assert!(list_settings_files(dir.path()).is_empty());
    }

    #[test]
    fn a_second_recorder_gets_the_pid_of_the_first() {
        let (dir, tracefs) = fake();
        let _first = SettingsGuard::begin(&tracefs, dir.path(), false).unwrap();
        let error = SettingsGuard::begin(&tracefs, dir.path(), false).unwrap_err();
        assert!(matches!(error, RecordError::Busy { pid } if pid == std::process::id()), "{error}");
    }

    #[test]
    fn the_value_to_write_differs_from_the_value_shown() {
        assert_eq!(restorable("[local] global boot"), "local");
        assert_eq!(restorable("7 (expanded: 1408)"), "1408");
        assert_eq!(restorable("none"), "0");
        assert_eq!(restorable("prev_pid==1"), "prev_pid==1");
        assert_eq!(restorable("1*"), "1");
        assert_eq!(restorable("#### all functions enabled ####"), "");
    }
}
