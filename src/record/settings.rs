//! The guard that leaves the kernel as it found it: saves each knob before writing it, in memory and in a file that
//! outlives a SIGKILL, and puts all of them back in reverse order.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use serde::{Deserialize, Serialize};

use super::{Error, Tracefs};
use crate::android::{Properties, SavedProperties, UserspaceRequest, UserspaceTags};
use crate::clock::Snapshots;
use crate::console::complain;

/// Which trace buffer a saved-settings record is about, and who made it: its first line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Owner {
    /// The recorder's process id.
    pub pid: u32,
    /// The boot that the settings are of; after another one there is nothing to put back.
    pub boot_id: String,
    /// The directory of the trace buffer.
    pub tracefs: PathBuf,
    /// Its instance's name, where it is one.
    pub instance: Option<String>,
    /// Whether the instance is to be removed with the settings.
    pub remove_instance: bool,
    /// Set where the settings are meant to outlive the process: a flight recorder's clocks when it started.
    pub flight: Option<Snapshots>,
    /// The capture being written, so that it is found after a SIGKILL. Absent in records of older versions.
    #[serde(default)]
    pub capture: Option<PathBuf>,
}

/// A knob and what to write to it to have it as before: every further line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Saved {
    knob: String,
    value: String,
}

/// A further line of the record.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Knob(Saved),
    Properties(SavedProperties),
}

/// The settings of one trace buffer while a recording changes them. Dropping it puts every knob back.
///
/// The same file is the lock that keeps a second recorder out: it stays locked as long as this value lives.
#[derive(Debug)]
pub struct Settings {
    tracefs: Tracefs,
    owner: Owner,
    saved: Vec<Line>,
    file: Flock<File>,
    path: PathBuf,
    done: bool,
}

/// What a leftover record was found to be when a recorder started.
#[derive(Debug)]
pub enum Leftover {
    /// There was none.
    None,
    /// The settings of a recorder that was killed were put back; this many knobs.
    PutBack(usize),
    /// A flight recorder was ended by force. Who had started it.
    Flight(u32),
}

/// The directory for records that must outlive the process: the first writable of the places where Android and
/// Linux keep such things.
pub fn state_dir() -> PathBuf {
    let usable = |dir: &&str| {
        nix::unistd::access(*dir, nix::unistd::AccessFlags::W_OK | nix::unistd::AccessFlags::X_OK).is_ok()
    };
    ["/data/local/tmp", "/run", "/tmp"]
        .into_iter()
        .find(usable)
        .map_or_else(std::env::temp_dir, PathBuf::from)
}

/// Where the record of this trace buffer is kept in `dir`. The top buffer is one, wherever tracefs is mounted.
fn record_path(dir: &Path, tracefs: &Tracefs) -> PathBuf {
    dir.join(format!(
        "tracebridge-{}.saved",
        tracefs.instance_name().map_or("top".into(), |i| format!("in-{i}"))
    ))
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Opens and locks the record at `path`. `Ok(None)`: somebody else has it locked.
fn lock(path: &Path) -> Result<Option<Flock<File>>, Error> {
    let failed = |source| Error::State { path: path.to_owned(), source };
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
        // Its owner may have removed it between our open and our lock: then we hold a nameless file.
        let same = |m: fs::Metadata| file.metadata().is_ok_and(|f| f.ino() == m.ino());
        if fs::metadata(path).is_ok_and(same) {
            return Ok(Some(file));
        }
    }
}

fn parse(path: &Path) -> Option<(Owner, Vec<Line>)> {
    let text = fs::read_to_string(path).ok()?;
    let mut lines = text.lines();
    let owner = serde_json::from_str(lines.next()?).ok()?;
    // A line cut by the kill is one whose knob was not written yet.
    Some((owner, lines.map_while(|l| serde_json::from_str(l).ok()).collect()))
}

fn json_line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    Ok(text)
}

impl Settings {
    /// Takes the lock of this trace buffer and begins an empty record in `dir`. Settings left by a killed recorder
    /// are put back first, since its "before" is the one to return to; with `force` a flight recorder's too.
    pub fn begin(tracefs: &Tracefs, dir: &Path, force: bool) -> Result<(Settings, Leftover), Error> {
        let path = record_path(dir, tracefs);
        let Some(file) = lock(&path)? else {
            return Err(Error::Busy { pid: parse(&path).map_or(0, |(owner, _)| owner.pid) });
        };
        let mut remove_instance = false;
        let leftover = match parse(&path) {
            Some((owner, saved)) if owner.boot_id == boot_id() => {
                if owner.flight.is_some() && !force {
                    return Err(Error::FlightRecorder { pid: owner.pid });
                }
                put_back(tracefs, &saved)?;
                // Before that recorder there was no such instance.
                remove_instance = owner.remove_instance;
                match owner.flight {
                    Some(_) => Leftover::Flight(owner.pid),
                    None => Leftover::PutBack(saved.len()),
                }
            }
            _ => Leftover::None,
        };
        let owner = Owner {
            pid: std::process::id(),
            boot_id: boot_id(),
            tracefs: tracefs.root().to_owned(),
            instance: tracefs.instance_name().map(str::to_owned),
            remove_instance,
            flight: None,
            capture: None,
        };
        let mut settings =
            Settings { tracefs: tracefs.clone(), owner, saved: Vec::new(), file, path, done: false };
        settings.file.set_len(0).map_err(|source| Error::State { path: settings.path.clone(), source })?;
        settings.note(&settings.owner.clone())?;
        Ok((settings, leftover))
    }

    /// Ends the recorder that holds the lock of this trace buffer, if one does: asks it to end in order, and after ten
    /// seconds makes it. Returns its process id.
    pub fn take_over(tracefs: &Tracefs, dir: &Path) -> Result<Option<u32>, Error> {
        let path = record_path(dir, tracefs);
        let Some((Owner { pid, .. }, _)) = parse(&path) else { return Ok(None) };
        let target = nix::unistd::Pid::from_raw(pid as i32);
        for tenth in 0..150 {
            if lock(&path)?.is_some() {
                return Ok((tenth > 0).then_some(pid));
            }
            match tenth {
                // One that somebody has stopped ends in order too, once it goes on.
                0 => drop(kill(target, Signal::SIGTERM).and_then(|()| kill(target, Signal::SIGCONT))),
                100 => drop(kill(target, Signal::SIGKILL)),
                _ => {}
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err(Error::Busy { pid })
    }

    /// Takes up the record that a flight recorder's `start` left, to put its settings back. `None` where there is none.
    pub fn resume(tracefs: &Tracefs, dir: &Path) -> Result<Option<Settings>, Error> {
        let path = record_path(dir, tracefs);
        if let Err(source) = File::open(&path)
            && source.kind() != io::ErrorKind::NotFound
        {
            return Err(Error::State { path, source });
        }
        let Some((owner, saved)) = parse(&path) else { return Ok(None) };
        let Some(file) = lock(&path)? else { return Err(Error::Busy { pid: owner.pid }) };
        if owner.boot_id != boot_id() {
            let _ = fs::remove_file(&path);
            return Ok(None);
        }
        Ok(Some(Settings { tracefs: tracefs.clone(), owner, saved, file, path, done: false }))
    }

    fn note(&mut self, line: &impl Serialize) -> Result<(), Error> {
        let write = json_line(line).and_then(|text| {
            self.file.seek(io::SeekFrom::End(0))?;
            self.file.write_all(&text)
        });
        write.map_err(|source| Error::State { path: self.path.clone(), source })
    }

    /// The trace buffer whose settings these are.
    pub fn tracefs(&self) -> &Tracefs {
        &self.tracefs
    }

    /// Sets a knob, if it is not already so; its old value is saved first. Returns whether anything was written.
    pub fn set(&mut self, knob: &str, value: &str) -> Result<bool, Error> {
        let old = restorable(&self.tracefs.read(knob)?);
        if old == value {
            return Ok(false);
        }
        self.hold(knob)?;
        self.tracefs.write(knob, value)?;
        Ok(true)
    }

    /// Saves a knob's value without writing it, for one that will be written more than once.
    pub fn hold(&mut self, knob: &str) -> Result<(), Error> {
        let saved = Saved { knob: knob.to_owned(), value: restorable(&self.tracefs.read(knob)?) };
        self.add(Line::Knob(saved))
    }

    fn add(&mut self, line: Line) -> Result<(), Error> {
        self.note(&line)?;
        self.saved.push(line);
        Ok(())
    }

    /// Switches userspace tags on, where this system has properties; they go back with the knobs.
    pub fn set_userspace(
        &mut self,
        properties: &Properties,
        request: &UserspaceRequest,
    ) -> Result<(), Error> {
        self.add(Line::Properties(SavedProperties::read(properties, request)?))?;
        // What they were is in the record now: that is what puts them back.
        UserspaceTags::enable(properties, request)?.leave_on();
        Ok(())
    }

    /// Has the instance removed once the settings are put back.
    pub fn remove_instance_at_end(&mut self) -> Result<(), Error> {
        self.owner.remove_instance = true;
        self.rewrite()
    }

    /// Notes where the capture goes, for whoever looks after a SIGKILL.
    pub fn set_capture(&mut self, path: &Path) -> Result<(), Error> {
        let absolute = std::path::absolute(path);
        self.owner.capture = Some(absolute.unwrap_or_else(|_| path.to_owned()));
        self.rewrite()
    }

    /// Leaves the settings as they are, and the record for a later [`Settings::resume`]: a flight recorder starts.
    pub fn leave_on(mut self, started: Snapshots) -> Result<(), Error> {
        self.owner.flight = Some(started);
        self.rewrite()?;
        self.done = true;
        Ok(())
    }

    /// Lets go of a flight recorder without ending it.
    pub fn let_go(mut self) {
        self.done = true;
    }

    /// A flight recorder's clocks when it started.
    pub fn flight(&self) -> Option<&Snapshots> {
        self.owner.flight.as_ref()
    }

    /// Writes the record again, since its first line changed. A kill in between must not lose it: the new one is
    /// complete before it takes the old one's name, and locked.
    fn rewrite(&mut self) -> Result<(), Error> {
        let failed = |source| Error::State { path: self.path.clone(), source };
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

    /// Puts everything back, now, and tells what could not be.
    pub fn restore(mut self) -> Result<usize, Error> {
        self.finish()
    }

    /// The same, but keeps the record until the guard is dropped: it still says whose the unfinished capture is.
    pub fn put_back(&mut self) -> Result<usize, Error> {
        put_back(&self.tracefs, &self.saved)?;
        if self.owner.remove_instance && self.tracefs.is_there() {
            fs::remove_dir(self.tracefs.root())
                .map_err(|e| Error::knob(self.tracefs.root(), "remove this instance", e))?;
        }
        self.owner.remove_instance = false;
        let knobs = std::mem::take(&mut self.saved).len();
        // On a disk that the capture has filled the old record stays: at worst all is put back once more.
        let _ = self.rewrite();
        Ok(knobs)
    }

    fn finish(&mut self) -> Result<usize, Error> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(0);
        }
        let knobs = self.put_back()?;
        let _ = fs::remove_file(&self.path);
        Ok(knobs)
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        if let Err(error) = self.finish() {
            complain(format_args!("tracebridge: settings not put back: {error}; try `tracebridge restore`"));
        }
    }
}

/// Writes the saved values in reverse order; goes on after a failure, and tells the first. An instance that somebody
/// has removed took its own knobs along.
fn put_back(tracefs: &Tracefs, saved: &[Line]) -> Result<(), Error> {
    let gone = tracefs.instance_name().is_some() && !tracefs.is_there();
    let one = |line: &Line| match (line, Properties::here()) {
        (Line::Knob(saved), _) if gone && !saved.knob.starts_with("../..") => Ok(()),
        (Line::Knob(saved), _) => tracefs.write(&saved.knob, &saved.value),
        (Line::Properties(saved), Some(properties)) => Ok(saved.restore(&properties)?),
        (Line::Properties(_), None) => Ok(()),
    };
    let failures: Vec<Error> = saved.iter().rev().filter_map(|line| one(line).err()).collect();
    failures.into_iter().next().map_or(Ok(()), Err)
}

/// What to write to a knob so that it is again what it showed.
///
/// - `local [boot] mono`: the one in brackets.
/// - `7 (expanded: 1408)`: the buffer before its first use, KiB. That state cannot be had again; 1408 is what
///   everybody would have seen after the next use.
/// - an event's `filter` that says `none`: `0` clears it.
fn restorable(shown: &str) -> String {
    if let Some(expanded) = shown.split_once("(expanded: ").and_then(|(_, n)| n.strip_suffix(')')) {
        return expanded.to_owned();
    }
    if let Some(chosen) = shown.split_whitespace().find_map(|w| w.strip_prefix('[')?.strip_suffix(']')) {
        return chosen.to_owned();
    }
    // `#### all functions enabled ####` and the like: an empty list.
    if shown.starts_with('#') {
        return String::new();
    }
    // An event's enable says `1*` when a trigger uses it too.
    if shown == "none" { "0".to_owned() } else { shown.trim_end_matches('*').to_owned() }
}

/// What putting one record back came to.
#[derive(Debug, Clone, Serialize)]
pub struct Restored {
    /// The record's file.
    pub record: PathBuf,
    /// The recorder's process id.
    pub pid: u32,
    /// How many knobs were put back; `None` where the recorder still runs, or a flight recorder is on.
    pub knobs: Option<usize>,
}

fn record_paths(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let is_record = |path: &PathBuf| {
        let name = path.file_name().and_then(|n| n.to_str());
        name.is_some_and(|n| n.starts_with("tracebridge-") && n.ends_with(".saved"))
    };
    Ok(fs::read_dir(dir)?.flatten().map(|entry| entry.path()).filter(is_record).collect())
}

/// Whose a saved-settings record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordState {
    /// A recorder that is at work.
    Running,
    /// A flight recorder's, which is on.
    Flight,
    /// A recorder's that was killed: [`restore_all`] puts its settings back.
    Killed,
    /// One of an earlier boot, which means nothing any more.
    EarlierBoot,
}

/// A saved-settings record as it lies there.
#[derive(Debug, Clone, Serialize)]
pub struct RecordFound {
    /// Its file.
    pub path: PathBuf,
    /// The recorder's process id.
    pub pid: u32,
    /// Whose it is.
    pub state: RecordState,
    /// Settings in it.
    pub settings: usize,
    /// The capture that its recorder is writing, or did not finish.
    pub capture: Option<CaptureFound>,
}

/// A capture that is not finished.
#[derive(Debug, Clone, Serialize)]
pub struct CaptureFound {
    /// Its file.
    pub path: PathBuf,
    /// What it takes on the disk, bytes; its length counts holes too.
    pub bytes: u64,
}

impl CaptureFound {
    /// The file at `path`, if it is there.
    fn look(path: PathBuf) -> Option<CaptureFound> {
        let meta = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
        Some(CaptureFound { path, bytes: meta.blocks() * 512 })
    }
}

/// The saved-settings records in `dir`. Nothing is changed by looking; what may not be looked at is left out.
pub fn records(dir: &Path) -> Vec<RecordFound> {
    let look = |path: PathBuf| {
        let (owner, saved) = parse(&path)?;
        let state = match lock(&path).ok()? {
            _ if owner.boot_id != boot_id() => RecordState::EarlierBoot,
            None => RecordState::Running,
            Some(_) if owner.flight.is_some() => RecordState::Flight,
            Some(_) => RecordState::Killed,
        };
        let capture = owner.capture.and_then(CaptureFound::look);
        Some(RecordFound { path, pid: owner.pid, state, settings: saved.len(), capture })
    };
    record_paths(dir).unwrap_or_default().into_iter().filter_map(look).collect()
}

/// Puts back what killed recorders left, for every record in `dir`. A running recorder is left alone, and so is a
/// flight recorder unless `flight_too`.
pub fn restore_all(dir: &Path, flight_too: bool) -> Result<Vec<Restored>, Error> {
    let paths = record_paths(dir).map_err(|source| Error::State { path: dir.to_owned(), source })?;
    let mut out = Vec::new();
    for path in paths {
        let Some((owner, saved)) = parse(&path) else {
            // Killed before its first line was complete: nothing was written to any knob yet.
            if lock(&path)?.is_some() {
                let _ = fs::remove_file(&path);
            }
            continue;
        };
        let mut done = Restored { record: path.clone(), pid: owner.pid, knobs: None };
        if owner.flight.is_some() && !flight_too {
            // Meant to stay.
        } else if let Some(file) = lock(&path)? {
            let tracefs = Tracefs::of_record(owner.tracefs.clone(), owner.instance.clone());
            let stale = owner.boot_id != boot_id();
            let mut settings = Settings { tracefs, owner, saved, file, path, done: false };
            if stale {
                settings.saved.clear();
                settings.owner.remove_instance = false;
            }
            done.knobs = Some(settings.finish()?);
        }
        out.push(done);
    }
    Ok(out)
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
        let (mut settings, _) = Settings::begin(&tracefs, dir.path(), false).unwrap();
        assert!(settings.set("tracing_on", "0").unwrap());
        assert!(!settings.set("buffer_size_kb", "7").unwrap());
        assert_eq!(tracefs.read("tracing_on").unwrap(), "0");
        drop(settings);
        assert_eq!(tracefs.read("tracing_on").unwrap(), "1");
        assert!(!dir.path().join("tracebridge-top.saved").exists());
    }

    #[test]
    fn a_killed_recorders_settings_are_put_back_from_its_record() {
        let (dir, tracefs) = fake();
        let (mut settings, _) = Settings::begin(&tracefs, dir.path(), false).unwrap();
        settings.set("tracing_on", "0").unwrap();
        settings.let_go(); // what SIGKILL amounts to: no destructor, the lock gone, the record there
        assert_eq!(records(dir.path())[0].state, RecordState::Killed);
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
        let (mut settings, _) = Settings::begin(&tracefs, dir.path(), false).unwrap();
        settings.set("tracing_on", "0").unwrap();
        settings.set_capture(&capture).unwrap();
        assert_eq!(settings.put_back().unwrap(), 1);
        assert_eq!(tracefs.read("tracing_on").unwrap(), "1");
        settings.let_go();
        let found = &records(dir.path())[0];
        assert_eq!((found.state, found.settings), (RecordState::Killed, 0));
        assert_eq!(found.capture.as_ref().map(|c| c.path.as_path()), Some(capture.as_path()));
        assert_eq!(restore_all(dir.path(), false).unwrap()[0].knobs, Some(0));
        assert!(records(dir.path()).is_empty());
    }

    #[test]
    fn a_second_recorder_is_told_who_has_the_buffer() {
        let (dir, tracefs) = fake();
        let _first = Settings::begin(&tracefs, dir.path(), false).unwrap();
        let error = Settings::begin(&tracefs, dir.path(), false).unwrap_err();
        assert!(matches!(error, Error::Busy { pid } if pid == std::process::id()), "{error}");
    }

    #[test]
    fn what_a_knob_shows_is_not_always_what_it_takes() {
        assert_eq!(restorable("[local] global boot"), "local");
        assert_eq!(restorable("7 (expanded: 1408)"), "1408");
        assert_eq!(restorable("none"), "0");
        assert_eq!(restorable("prev_pid==1"), "prev_pid==1");
        assert_eq!(restorable("1*"), "1");
        assert_eq!(restorable("#### all functions enabled ####"), "");
    }
}
