//! The lock of a trace buffer. It keeps two recorders of tracebridge from reading one buffer, each of which
//! would get a part of the pages. The lock belongs to the buffer itself (to its file `tracing_on`), so that
//! recorders find it whatever directories they keep their saved settings in.
//!
//! [`LockHolder`] is the recorder that holds a lock: which process it is, and ending it. Only a process that
//! is known for certain receives a signal: process ids are used again, and others may have written them.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};

use super::{RecordError, Tracefs};
use crate::step_log::print_step;
use crate::system::PidFd;

/// The lock of one trace buffer, which is free again when the value is dropped. While it is held, its
/// instance cannot be removed.
#[derive(Debug)]
pub(super) struct BufferLock {
    /// `None` where this user may not lock the file. Then only the file of saved settings keeps others out.
    _file: Option<Flock<File>>,
}

impl BufferLock {
    /// The lock of a buffer that nobody needs to be kept out of.
    pub(super) fn none() -> BufferLock {
        BufferLock { _file: None }
    }

    /// Locks the buffer. `Err` holds the process that has locked it.
    pub(super) fn take(tracefs: &Tracefs) -> Result<BufferLock, BufferHolder> {
        let Ok(file) = File::open(tracefs.path("tracing_on")) else { return Ok(BufferLock::none()) };
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => {
                print_step(format_args!("locked {}", tracefs.path("tracing_on").display()));
                Ok(BufferLock { _file: Some(file) })
            }
            Err((file, nix::errno::Errno::EWOULDBLOCK)) => {
                Err(BufferHolder { pid: holder(&file).unwrap_or(0), file })
            }
            Err(_) => Ok(BufferLock::none()),
        }
    }
}

/// The process that holds a lock.
#[derive(Debug)]
pub(super) struct BufferHolder {
    /// Its id; 0 if it is unknown.
    pub(super) pid: u32,
    /// The locked file.
    pub(super) file: File,
}

impl BufferHolder {
    pub(super) fn busy(self) -> RecordError {
        RecordError::Busy { pid: self.pid }
    }
}

/// The process that has locked `file`, by the lines of `/proc/locks`: `1: FLOCK ADVISORY WRITE 812 00:0b:25 0
/// EOF`, with device and inode in the sixth word.
pub(super) fn holder(file: &File) -> Option<u32> {
    let inode = file.metadata().ok()?.ino().to_string();
    let device = file.metadata().ok()?.dev();
    let device = format!("{:02x}:{:02x}", nix::sys::stat::major(device), nix::sys::stat::minor(device));
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let kind = words.nth(1)?;
        let pid = words.nth(2)?;
        let place = words.next()?;
        let is_ours = kind == "FLOCK" && place.rsplit_once(':') == Some((device.as_str(), inode.as_str()));
        is_ours.then(|| pid.parse().ok()).flatten()
    })
}

/// A process that has a locked file open.
#[derive(Debug)]
pub(crate) struct LockHolder {
    pid: u32,
    started: u64,
    /// `None` where the kernel has no such descriptors (Linux before 5.3).
    pidfd: Option<PidFd>,
}

impl LockHolder {
    /// The process `pid`, if it has `locked` open and this user may end it. `started` is when the process
    /// must have started, if that is known.
    pub(crate) fn identify(pid: u32, locked: &File, started: Option<u64>) -> Option<LockHolder> {
        // No recorder is init or this process. Numbers that are no process ids stand for groups of processes.
        if pid < 2 || i32::try_from(pid).is_err() || pid == std::process::id() {
            return None;
        }
        // The descriptor comes first: what is checked after it is true of the process that it stands for, or
        // that process has ended and receives no signal.
        let pidfd = PidFd::open(pid).ok();
        let is_ours = geteuid().is_root()
            || fs::metadata(format!("/proc/{pid}")).is_ok_and(|meta| meta.uid() == geteuid().as_raw());
        let runs_since = start_time(pid)?;
        let is_it = is_ours && started.is_none_or(|started| started == runs_since) && has_open(pid, locked);
        is_it.then_some(LockHolder { pid, started: runs_since, pidfd })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends the process a signal, if it still runs.
    pub(crate) fn signal(&self, signal: Signal) {
        match &self.pidfd {
            Some(pidfd) => drop(pidfd.signal(signal)),
            None if start_time(self.pid) == Some(self.started) => {
                let _ = kill(Pid::from_raw(self.pid as i32), signal);
            }
            None => {}
        }
    }
}

/// When a process started, in clock ticks after the boot: field 22 of `/proc/PID/stat`.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses, which may hold blanks and parentheses.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    String::from_utf8_lossy(stat.get(end + 1..)?).split_whitespace().nth(19)?.parse().ok()
}

fn has_open(pid: u32, file: &File) -> bool {
    let Ok(wanted) = file.metadata() else { return false };
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let is_it = |meta: fs::Metadata| (meta.dev(), meta.ino()) == (wanted.dev(), wanted.ino());
    descriptors.flatten().any(|descriptor| fs::metadata(descriptor.path()).is_ok_and(is_it))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn the_buffer_is_locked_once_and_the_holder_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("tracing_on"), "1\n").unwrap();
        let tracefs = Tracefs::find(Some(dir.path())).unwrap();
        let first = BufferLock::take(&tracefs).unwrap();
        assert_eq!(BufferLock::take(&tracefs).unwrap_err().pid, std::process::id());
        drop(first);
        assert!(BufferLock::take(&tracefs).is_ok());
    }

    #[test]
    fn a_process_is_identified_only_if_it_has_the_file_open_and_started_then() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("locked");
        fs::write(&path, "").unwrap();
        let file = File::open(&path).unwrap();
        let spawn = |input: Stdio| Command::new("sleep").arg("60").stdin(input).spawn().unwrap();
        let mut holder = spawn(File::open(&path).unwrap().into());
        let mut stranger = spawn(Stdio::null());
        let started = start_time(holder.id()).unwrap();
        assert!(LockHolder::identify(stranger.id(), &file, None).is_none());
        assert!(LockHolder::identify(holder.id(), &file, Some(started + 1)).is_none());
        for pid in [0, 1, std::process::id(), u32::MAX, i32::MAX as u32 + 1, i32::MAX as u32] {
            assert!(LockHolder::identify(pid, &file, None).is_none(), "{pid}");
        }
        let found = LockHolder::identify(holder.id(), &file, Some(started)).unwrap();
        assert_eq!(found.pid(), holder.id());
        found.signal(Signal::SIGTERM);
        assert!(!holder.wait().unwrap().success());
        found.signal(Signal::SIGKILL);
        assert!(stranger.try_wait().unwrap().is_none());
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
}
