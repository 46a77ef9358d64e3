//! The guard that leaves the kernel as it found it. The guard saves each setting before a recording changes
//! it, in memory and in a file that outlives a SIGKILL, and puts all settings back in reverse order.

mod put_back;
mod restore;
mod settings_file;

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use serde::Serialize;

use self::put_back::restorable;
use self::settings_file::{SavedKnob, SavedSetting, SettingsOwner, boot_id, json_line, lock, parse, path_of};
use super::buffer_lock::BufferLock;
use super::{RecordError, Tracefs};
use crate::android::system::{Properties, SavedProperties, UserspaceRequest, UserspaceTags};
use crate::clock::Snapshots;
use crate::console::complain;

pub(crate) use put_back::PutBackReport;
pub(crate) use restore::{
    RestoredSettings, SettingsFileReport, SettingsFileState, UnfinishedCapture, list_settings_files,
    restore_all,
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
    /// `None` once the settings are put back.
    buffer_lock: Option<BufferLock>,
    path: PathBuf,
    /// The values that this guard has given to the saved settings that are files of tracefs.
    own: HashMap<String, String>,
    /// Whether another program has taken the buffer over. Then a setting is put back only if it still has the
    /// guard's own value.
    taken_over: bool,
    /// Whether dropping the guard leaves everything as it is.
    done: bool,
}

/// The settings of an earlier recorder that [`SettingsGuard::begin`] has put back.
#[derive(Debug)]
pub(crate) struct LeftoverSettings {
    /// The process that had started the flight recorder that was ended by force; `None` for the settings of a
    /// recorder that was killed.
    pub(crate) flight_recorder: Option<u32>,
    pub(crate) report: PutBackReport,
}

/// What the kernel shows for the `enable` of a group of which some events are on, and for a buffer size that
/// differs between the CPUs. It cannot be written.
const MIXED: &str = "X";

impl SettingsGuard {
    /// Locks this trace buffer and begins an empty file of saved settings in `dir`. Settings that a killed
    /// recorder has left are put back first, because the state before that recorder is the one to return to.
    /// With `force` this holds for the settings of a flight recorder too. What cannot be put back now, but
    /// perhaps at the end of this recording, is taken over.
    pub(crate) fn begin(
        tracefs: &Tracefs,
        dir: &Path,
        force: bool,
    ) -> Result<(SettingsGuard, Option<LeftoverSettings>), RecordError> {
        let path = path_of(dir, tracefs);
        let Some(file) = lock(&path)? else {
            return Err(RecordError::Busy { pid: parse(&path).map_or(0, |(owner, _)| owner.pid) });
        };
        let buffer_lock = BufferLock::take(tracefs).map_err(|pid| RecordError::Busy { pid })?;
        let mut remove_instance = false;
        let mut saved = Vec::new();
        let mut leftover = None;
        if let Some((owner, left)) = parse(&path).filter(|(owner, _)| owner.boot_id == boot_id()) {
            if owner.flight.is_some() && !force {
                return Err(RecordError::FlightRecorder { pid: owner.pid });
            }
            saved = left;
            let flight_recorder = owner.flight.is_some().then_some(owner.pid);
            leftover = Some(LeftoverSettings {
                flight_recorder,
                report: put_back::put_back(tracefs, &mut saved, &HashMap::new()),
            });
            // The killed recorder had created the instance if it was to remove it.
            remove_instance = owner.remove_instance;
        }
        let owner = SettingsOwner {
            pid: std::process::id(),
            boot_id: boot_id(),
            tracefs: tracefs.root().to_owned(),
            instance: tracefs.instance_name().map(str::to_owned),
            remove_instance,
            flight: None,
            capture: None,
        };
        let mut settings = SettingsGuard::new(tracefs.clone(), owner, saved, (file, buffer_lock, path));
        settings.rewrite()?;
        Ok((settings, leftover))
    }

    fn new(
        tracefs: Tracefs,
        owner: SettingsOwner,
        saved: Vec<SavedSetting>,
        (file, buffer_lock, path): (Flock<File>, BufferLock, PathBuf),
    ) -> SettingsGuard {
        let (buffer_lock, own) = (Some(buffer_lock), HashMap::new());
        SettingsGuard { tracefs, owner, saved, file, buffer_lock, path, own, taken_over: false, done: false }
    }

    /// Ends the recorder that holds the lock of this trace buffer, if there is one: with SIGTERM, and after
    /// ten seconds with SIGKILL. Returns the recorder's process id.
    pub(crate) fn take_over(tracefs: &Tracefs, dir: &Path) -> Result<Option<u32>, RecordError> {
        let path = path_of(dir, tracefs);
        // The recorder that holds the lock now; 0 if it is unknown.
        let holder = || -> Result<Option<u32>, RecordError> {
            if path.exists() && lock(&path)?.is_none() {
                return Ok(Some(parse(&path).map_or(0, |(owner, _)| owner.pid)));
            }
            Ok(BufferLock::take(tracefs).err())
        };
        let Some(pid) = holder()? else { return Ok(None) };
        let target = nix::unistd::Pid::from_raw(pid as i32);
        for tenth in 0..150 {
            if pid == 0 {
                break;
            }
            match tenth {
                // SIGCONT lets a recorder that somebody has stopped receive the SIGTERM and end in order.
                0 => drop(kill(target, Signal::SIGTERM).and_then(|()| kill(target, Signal::SIGCONT))),
                100 => drop(kill(target, Signal::SIGKILL)),
                _ => {}
            }
            std::thread::sleep(Duration::from_millis(100));
            if holder()?.is_none() {
                return Ok(Some(pid));
            }
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
        let buffer_lock = BufferLock::take(tracefs).map_err(|pid| RecordError::Busy { pid })?;
        Ok(Some(SettingsGuard::new(tracefs.clone(), owner, saved, (file, buffer_lock, path))))
    }

    /// Appends a line to the file, and returns the file's length before it.
    fn append_line(&mut self, line: &impl Serialize) -> Result<u64, RecordError> {
        let write = json_line(line).and_then(|text| {
            let end = self.file.seek(io::SeekFrom::End(0))?;
            self.file.write_all(&text).map(|()| end)
        });
        write.map_err(|source| RecordError::SettingsFile { path: self.path.clone(), source })
    }

    /// The trace buffer whose settings these are.
    pub(crate) fn tracefs(&self) -> &Tracefs {
        &self.tracefs
    }

    /// Writes `value` to a file of the trace buffer, unless the file has that value already. The old value is
    /// saved first. Returns whether anything was written. After an error the file has its old value, and
    /// nothing is saved.
    pub(crate) fn set(&mut self, knob: &str, value: &str) -> Result<bool, RecordError> {
        let shown = self.tracefs.read(knob)?;
        if restorable(&shown) == value {
            return Ok(false);
        }
        if shown == MIXED {
            return Err(RecordError::Mixed { path: self.tracefs.path(knob) });
        }
        self.tracefs.check_writable(knob)?;
        let end = self.hold(knob)?;
        if let Err(error) = self.tracefs.write(knob, value) {
            self.forget_unchanged(end);
            return Err(error);
        }
        // The kernel rounds sizes.
        let shown = if knob.contains("size") { self.tracefs.read(knob).ok() } else { None };
        self.own.insert(knob.to_owned(), shown.as_deref().map_or_else(|| value.to_owned(), restorable));
        Ok(true)
    }

    /// Notes that the setting `knob`, which is saved already, has `value` by this guard's doing.
    pub(crate) fn set_own(&mut self, knob: &str, value: &str) {
        self.own.insert(knob.to_owned(), value.to_owned());
    }

    /// Notes that another program has taken the buffer over: what it has changed is not put back.
    pub(crate) fn give_up_foreign(&mut self) {
        self.taken_over = true;
    }

    /// Forgets the setting that was saved last, at `end` of the file, if it has its old value.
    fn forget_unchanged(&mut self, end: u64) {
        if let Some(last) = self.saved.last()
            && put_back::count_changed(&self.tracefs, std::slice::from_ref(last)) == 0
            && self.file.set_len(end).is_ok()
        {
            self.saved.pop();
        }
    }

    /// Saves the value of a file without writing it, for a file that will be written more than once. Returns
    /// the length of the file of saved settings before that.
    pub(crate) fn hold(&mut self, knob: &str) -> Result<u64, RecordError> {
        let saved = SavedKnob { knob: knob.to_owned(), value: restorable(&self.tracefs.read(knob)?) };
        self.save(SavedSetting::Knob(saved))
    }

    fn save(&mut self, setting: SavedSetting) -> Result<u64, RecordError> {
        let end = self.append_line(&setting)?;
        self.saved.push(setting);
        Ok(end)
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

    /// Puts every setting back and removes the file. The file stays if a setting could not be put back but
    /// may be later.
    pub(crate) fn restore(mut self) -> PutBackReport {
        self.finish()
    }

    /// Puts every setting back, but keeps the file until the guard is dropped: it still names the unfinished
    /// capture.
    pub(crate) fn put_back(&mut self) -> PutBackReport {
        let own = if self.taken_over { std::mem::take(&mut self.own) } else { HashMap::new() };
        let mut report = put_back::put_back(&self.tracefs, &mut self.saved, &own);
        // An instance can be removed only while none of its files is open.
        self.buffer_lock = None;
        if self.owner.remove_instance {
            match put_back::remove_instance(&self.tracefs) {
                Ok(()) => self.owner.remove_instance = false,
                Err(error) => report.refused.push(error),
            }
        }
        // On a full disk the old file stays. At worst every setting is then put back a second time.
        let _ = self.rewrite();
        report
    }

    fn finish(&mut self) -> PutBackReport {
        if std::mem::replace(&mut self.done, true) {
            return PutBackReport::default();
        }
        let report = self.put_back();
        if report.refused.is_empty() {
            let _ = fs::remove_file(&self.path);
        }
        report
    }
}

impl Drop for SettingsGuard {
    fn drop(&mut self) {
        for failure in self.finish().failures() {
            complain(format_args!("tracebridge: a setting is not put back: {failure}"));
        }
    }
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
        assert_eq!(settings.put_back().written, 1);
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
}
