//! The lock of a trace buffer. It keeps two recorders of tracebridge from reading one buffer, each of which
//! would get a part of the pages. The lock belongs to the buffer itself (to its file `tracing_on`), so that
//! recorders find it whatever directories they keep their saved settings in.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

use nix::fcntl::{Flock, FlockArg};

use super::{RecordError, Tracefs};
use crate::step_log::print_step;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
