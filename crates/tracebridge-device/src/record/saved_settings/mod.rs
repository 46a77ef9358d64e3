//! The guard that leaves the kernel as it found it. The guard saves each setting before a recording changes
//! it, in memory and in a file that outlives a SIGKILL, and puts all settings back in reverse order.
//!
//! # Who may be beside the recorder
//! The contents of a file of saved settings are written into the kernel later, mostly by root, and name a
//! process that may be ended. So the file must be the recorder's own work.
//!
//! - **A root recorder, with the shell user and apps beside it.** The file is in a directory of root's own
//!   ([`StateDir`]). In `/run` and `/data/adb` nobody else can touch that directory. In `/data/local/tmp`,
//!   which belongs to the shell user, and in `/tmp` it has the mode 0700. The shell user may rename it in
//!   `/data/local/tmp`, which hides a killed recorder's settings from `restore`, and may have put something
//!   under its name before, in which case root takes another name. The shell user can neither write nor read
//!   it.
//! - **A shell recorder.** The same with a directory of the shell user's own. Apps cannot enter
//!   `/data/local/tmp` for writing. Root may do anything.
//! - **A shared desk.** Each user has a directory in `/run/user/UID`, or in `/tmp`, whose sticky bit keeps
//!   others from renaming it.
//! - **A directory that the caller names** (`--state-dir`) is used itself if only the caller may write to it.
//!   Otherwise the caller's own directory in it is used.
//!
//! A file in that directory is opened without waiting and without following a symbolic link. It must be a
//! regular file of this user with one name that nobody else may write to, of at most 1 MiB; its mode is 0600,
//! so that nobody else can lock it. Its settings must be relative paths below a directory that the kernel
//! says is a tracefs, and its properties those that a recording sets. A file that fails a test is named and
//! left alone. Settings are put back only into the buffer that they were saved of, which its device and inode
//! tell.
//!
//! The lock of the buffer itself ([`BufferLock`]) is held on `tracing_on`. Whoever may open that file can
//! hold it: root, and on a phone the shell user. That keeps recorders out, and the message names the holder's
//! process id. `--force` ends the holder, but only a process that has the locked file open and, where the
//! file of saved settings names it, started when that file says. A holder that has handed the lock to another
//! process and ended cannot be told, and is refused.

mod put_back;
mod restore;
mod settings_file;
mod state_dir;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::Signal;
use serde::Serialize;

use self::put_back::restorable;
use self::settings_file::{SavedKnob, SavedSetting, SettingsOwner, boot_id, json_line, lock, name_of, parse};
use self::state_dir::MAX_FILE_BYTES;
use super::buffer_lock::{self, BufferHolder, BufferLock, LockHolder, start_time};
use super::{RecordError, Signals, Tracefs};
use crate::android::{Properties, SavedProperties, UserspaceRequest, UserspaceTags};
use crate::clock::Snapshots;
use crate::console::complain;
use crate::step_log::print_step;

pub(crate) use put_back::PutBackReport;
pub(crate) use restore::{
    RestoredSettings, SettingsFileReport, SettingsFileState, UnfinishedCapture, list_settings_files,
    restore_all,
};
pub use settings_file::{SettingsText, read_settings_text};
pub(crate) use state_dir::StateDir;

/// The settings of one trace buffer while a recording changes them. Dropping the guard puts every setting
/// back.
///
/// The guard also holds the lock on the file of saved settings, which keeps a second recorder out.
#[derive(Debug)]
pub(crate) struct SettingsGuard {
    tracefs: Tracefs,
    owner: SettingsOwner,
    saved: Vec<SavedSetting>,
    file: LockedFile,
    /// `None` once the settings are put back.
    buffer_lock: Option<BufferLock>,
    /// The values that this guard has given to the saved settings that are files of tracefs.
    own: HashMap<String, String>,
    /// Whether another program has taken the buffer over. Then a setting is put back only if it still has the
    /// guard's own value.
    taken_over: bool,
    /// Whether dropping the guard leaves everything as it is.
    done: bool,
}

/// A file of saved settings that this process has locked.
#[derive(Debug)]
struct LockedFile {
    dir: StateDir,
    name: String,
    file: Flock<File>,
}

impl LockedFile {
    fn failed(&self, source: io::Error) -> RecordError {
        RecordError::SettingsFile { path: self.dir.path_of(&self.name), source }
    }

    /// Appends a line, and returns the file's length before it.
    fn append(&mut self, line: &impl Serialize) -> Result<u64, RecordError> {
        let append = json_line(line).and_then(|text| {
            let end = self.file.seek(io::SeekFrom::End(0))?;
            if end + text.len() as u64 > MAX_FILE_BYTES {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            self.file.write_all(&text).map(|()| end)
        });
        append.map_err(|source| self.failed(source))
    }

    /// Replaces the content. A kill must not lose the file, so the new file is complete and locked before it
    /// replaces the old one.
    fn replace(&mut self, text: &[u8]) -> Result<(), RecordError> {
        let (file, part) = self.dir.create_part(text).map_err(|e| self.failed(e))?;
        let replaced = Flock::lock(file, FlockArg::LockExclusiveNonblock)
            .map_err(|(_, errno)| errno.into())
            .and_then(|file| self.dir.rename(&part, &self.name).map(|()| file));
        match replaced {
            Ok(file) => {
                self.file = file;
                Ok(())
            }
            Err(error) => {
                self.dir.remove(&part);
                Err(self.failed(error))
            }
        }
    }
}

/// The settings of an earlier recorder that [`SettingsGuard::begin`] has put back.
#[derive(Debug)]
pub(crate) struct LeftoverSettings {
    /// The process that had started the flight recorder that was ended by force; `None` for the settings of a
    /// recorder that was killed.
    pub(crate) flight_recorder: Option<u32>,
    pub(crate) report: PutBackReport,
}

/// The kernel's text for the `enable` of a group of which some events are on, and for a buffer size that
/// differs between the CPUs. It cannot be written.
const MIXED: &str = "X";

impl SettingsGuard {
    /// Locks this trace buffer and begins an empty file of saved settings in `dir`. Settings that a killed
    /// recorder has left are put back first, because the state before that recorder is the one to return to.
    /// With `force` this holds for the settings of a flight recorder too. What cannot be put back now, but
    /// perhaps at the end of this recording, is taken over.
    pub(crate) fn begin(
        tracefs: &Tracefs,
        dir: StateDir,
        force: bool,
    ) -> Result<(SettingsGuard, Option<LeftoverSettings>), RecordError> {
        let name = name_of(tracefs);
        let Some(file) = lock(&dir, &name)? else {
            return Err(RecordError::Busy { pid: parse(&dir, &name)?.map_or(0, |(owner, _)| owner.pid) });
        };
        let buffer_lock = BufferLock::take(tracefs).map_err(BufferHolder::busy)?;
        let mut remove_instance = false;
        let mut saved = Vec::new();
        let mut leftover = None;
        if let Some((owner, left)) = parse(&dir, &name)?.filter(|(owner, _)| !owner.is_of_earlier_boot()) {
            if owner.flight.is_some() && !force {
                return Err(RecordError::FlightRecorder { pid: owner.pid });
            }
            saved = left;
            let earlier = Tracefs::of_saved_settings(owner.tracefs, owner.instance);
            let flight_recorder = owner.flight.is_some().then_some(owner.pid);
            leftover = Some(LeftoverSettings {
                flight_recorder,
                report: put_back::put_back(&earlier, owner.buffer, &mut saved, &HashMap::new()),
            });
            if earlier.instance_name() != tracefs.instance_name() {
                // The paths of these settings have no meaning for a buffer that is reached by another way.
                saved.clear();
            }
            // The killed recorder had created the instance if it was to remove it.
            remove_instance = owner.remove_instance && tracefs.instance_name().is_some();
        }
        let pid = std::process::id();
        let root = tracefs.root();
        let owner = SettingsOwner {
            pid,
            started: start_time(pid),
            boot_id: boot_id(),
            tracefs: std::path::absolute(root).unwrap_or_else(|_| root.to_owned()),
            instance: tracefs.instance_name().map(str::to_owned),
            buffer: tracefs.buffer_id(),
            remove_instance,
            flight: None,
            capture: None,
        };
        let file = LockedFile { dir, name, file };
        print_step(format_args!("saves settings in {}", file.dir.path_of(&file.name).display()));
        let mut settings = SettingsGuard::new(tracefs.clone(), owner, saved, file, buffer_lock);
        settings.rewrite()?;
        Ok((settings, leftover))
    }

    fn new(
        tracefs: Tracefs,
        owner: SettingsOwner,
        saved: Vec<SavedSetting>,
        file: LockedFile,
        buffer_lock: BufferLock,
    ) -> SettingsGuard {
        SettingsGuard {
            tracefs,
            owner,
            saved,
            file,
            buffer_lock: Some(buffer_lock),
            own: HashMap::new(),
            taken_over: false,
            done: false,
        }
    }

    /// Ends the recorder that holds the lock of this trace buffer, if there is one: with SIGTERM, and after
    /// ten seconds with SIGKILL. Returns the recorder's process id.
    pub(crate) fn take_over(tracefs: &Tracefs, dir: &StateDir) -> Result<Option<u32>, RecordError> {
        let name = name_of(tracefs);
        // The file that another process has locked now, with its process id, and the time of its start.
        let locked = || -> Result<Option<(BufferHolder, Option<u64>)>, RecordError> {
            if dir.read(&name)?.is_some() && lock(dir, &name)?.is_none() {
                let file = dir.open(&name, false)?;
                let pid = buffer_lock::holder(&file);
                let owner = parse(dir, &name)?.map(|(owner, _)| owner);
                let owner = owner.filter(|owner| pid.is_none_or(|pid| pid == owner.pid));
                let (recorded, started) = owner.map_or((0, None), |owner| (owner.pid, owner.started));
                return Ok(Some((BufferHolder { pid: pid.unwrap_or(recorded), file }, started)));
            }
            Ok(BufferLock::take(tracefs).err().map(|holder| (holder, None)))
        };
        let Some((BufferHolder { pid, file }, started)) = locked()? else { return Ok(None) };
        let signals = Signals::block().map_err(RecordError::Signals)?;
        let holder = LockHolder::identify(pid, &file, started).ok_or(RecordError::Busy { pid })?;
        drop(file);
        holder.signal(Signal::SIGTERM);
        // SIGCONT lets a recorder that somebody has stopped receive the SIGTERM and end in order.
        holder.signal(Signal::SIGCONT);
        for tenth in 0..150 {
            if signals.arrive_within(Duration::from_millis(100)) {
                break;
            }
            if locked()?.is_none() {
                return Ok(Some(holder.pid()));
            }
            if tenth == 100 {
                holder.signal(Signal::SIGKILL);
            }
        }
        Err(RecordError::Busy { pid })
    }

    /// Takes over the settings that the start of a flight recorder has left changed. `None` if there is no
    /// file of saved settings.
    pub(crate) fn resume(
        tracefs: &Tracefs,
        dir: Option<StateDir>,
    ) -> Result<Option<SettingsGuard>, RecordError> {
        let (Some(dir), name) = (dir, name_of(tracefs)) else { return Ok(None) };
        let Some((owner, saved)) = parse(&dir, &name)? else { return Ok(None) };
        let Some(file) = lock(&dir, &name)? else { return Err(RecordError::Busy { pid: owner.pid }) };
        if owner.is_of_earlier_boot() {
            dir.remove(&name);
            return Ok(None);
        }
        let buffer_lock = BufferLock::take(tracefs).map_err(BufferHolder::busy)?;
        let file = LockedFile { dir, name, file };
        let tracefs = Tracefs::of_saved_settings(owner.tracefs.clone(), owner.instance.clone());
        Ok(Some(SettingsGuard::new(tracefs, owner, saved, file, buffer_lock)))
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
        // The value before this guard's first write is the one to put back.
        let end = if self.own.contains_key(knob) { None } else { Some(self.save_value(knob)?) };
        if let Err(error) = self.tracefs.write(knob, value) {
            if let Some(end) = end {
                self.forget_unchanged(end);
            }
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
            && put_back::count_changed(&self.tracefs, None, std::slice::from_ref(last)) == 0
            && self.file.file.set_len(end).is_ok()
        {
            self.saved.pop();
        }
    }

    /// Saves the value of a file without writing it, for a file that will be written more than once. Returns
    /// the length of the file of saved settings before that.
    pub(crate) fn save_value(&mut self, knob: &str) -> Result<u64, RecordError> {
        let saved = SavedKnob { knob: knob.to_owned(), value: restorable(&self.tracefs.read(knob)?) };
        self.save(SavedSetting::Knob(saved))
    }

    fn save(&mut self, setting: SavedSetting) -> Result<u64, RecordError> {
        let end = self.file.append(&setting)?;
        self.saved.push(setting);
        Ok(end)
    }

    /// Switches userspace tags. The properties as they were before the first call are put back together with
    /// the other settings.
    pub(crate) fn set_userspace(
        &mut self,
        properties: &Properties,
        request: &UserspaceRequest,
    ) -> Result<(), RecordError> {
        let read = SavedProperties::read(properties, request)?;
        let has =
            |saved: &SavedSetting| matches!(saved, SavedSetting::Properties(saved) if saved.covers(&read));
        if !self.saved.iter().any(has) {
            self.save(SavedSetting::Properties(read))?;
        }
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
    pub(crate) fn leave(mut self) {
        self.done = true;
    }

    /// The clocks at the start of the flight recorder; `None` if these settings are not those of a flight
    /// recorder.
    pub(crate) fn flight(&self) -> Option<&Snapshots> {
        self.owner.flight.as_ref()
    }

    /// Writes the whole file again after its first line has changed.
    fn rewrite(&mut self) -> Result<(), RecordError> {
        let mut text = json_line(&self.owner).map_err(|e| self.file.failed(e))?;
        for saved in &self.saved {
            text.extend(json_line(saved).map_err(|e| self.file.failed(e))?);
        }
        self.file.replace(&text)
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
        let mut report = put_back::put_back(&self.tracefs, self.owner.buffer, &mut self.saved, &own);
        print_step(format_args!(
            "put {} settings back; {} had their old value",
            report.written, report.unchanged
        ));
        // An instance can be removed only while none of its files is open.
        self.buffer_lock = None;
        if self.owner.remove_instance {
            match put_back::remove_instance(&self.tracefs, self.owner.buffer) {
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
            self.file.dir.remove(&self.file.name);
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
    use std::fs;

    use super::restore::{list_in, restore_in};
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
        let (mut settings, _) =
            SettingsGuard::begin(&tracefs, StateDir::for_tests(dir.path()), false).unwrap();
        assert!(settings.set("tracing_on", "0").unwrap());
        assert!(!settings.set("buffer_size_kb", "7").unwrap());
        assert_eq!(tracefs.read("tracing_on").unwrap(), "0");
        drop(settings);
        assert_eq!(tracefs.read("tracing_on").unwrap(), "1");
        assert!(StateDir::for_tests(dir.path()).names().unwrap().is_empty());
    }

    #[test]
    fn the_settings_of_a_killed_recorder_are_put_back_from_its_file() {
        let (dir, tracefs) = fake();
        let (mut settings, _) =
            SettingsGuard::begin(&tracefs, StateDir::for_tests(dir.path()), false).unwrap();
        settings.set("tracing_on", "0").unwrap();
        settings.leave(); // as after a SIGKILL: no destructor ran, the lock is released, the file is there
        assert_eq!(list_in(&StateDir::for_tests(dir.path()))[0].state, SettingsFileState::Killed);
        let restored = restore_in(&StateDir::for_tests(dir.path()), false).unwrap();
        assert_eq!(restored[0].knobs, Some(1));
        assert_eq!(tracefs.read("tracing_on").unwrap(), "1");
        assert!(restore_in(&StateDir::for_tests(dir.path()), false).unwrap().is_empty());
    }

    #[test]
    fn a_recorder_killed_while_it_finishes_its_capture_is_noticed() {
        let (dir, tracefs) = fake();
        let capture = dir.path().join("x.dat");
        fs::write(&capture, "pages").unwrap();
        let (mut settings, _) =
            SettingsGuard::begin(&tracefs, StateDir::for_tests(dir.path()), false).unwrap();
        settings.set("tracing_on", "0").unwrap();
        settings.set_capture(&capture).unwrap();
        assert_eq!(settings.put_back().written, 1);
        assert_eq!(tracefs.read("tracing_on").unwrap(), "1");
        settings.leave();
        let found = &list_in(&StateDir::for_tests(dir.path()))[0];
        assert_eq!((found.state, found.settings), (SettingsFileState::Killed, 0));
        assert_eq!(found.capture.as_ref().map(|c| c.path.as_path()), Some(capture.as_path()));
        assert_eq!(restore_in(&StateDir::for_tests(dir.path()), false).unwrap()[0].knobs, Some(0));
        assert!(list_in(&StateDir::for_tests(dir.path())).is_empty());
    }

    #[test]
    fn a_second_recorder_gets_the_pid_of_the_first() {
        let (dir, tracefs) = fake();
        let _first = SettingsGuard::begin(&tracefs, StateDir::for_tests(dir.path()), false).unwrap();
        let error = SettingsGuard::begin(&tracefs, StateDir::for_tests(dir.path()), false).unwrap_err();
        assert!(matches!(error, RecordError::Busy { pid } if pid == std::process::id()), "{error}");
    }
}
