//! System calls that `nix` does not wrap, each behind a safe function: signals to a process that cannot be
//! mistaken for another, the scheduling of the calling thread, and the SELinux labels of files. It is the
//! only file of the crate with unsafe code.
// nix does not wrap pidfd_open(2), pidfd_send_signal(2), sched_setscheduler(2), setpriority(2), getxattr(2)
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::libc;
use nix::sys::signal::Signal;

/// A descriptor of a process (Linux 5.3): it never stands for a later process of the same id.
#[derive(Debug)]
pub(crate) struct PidFd(OwnedFd);

impl PidFd {
    pub(crate) fn open(pid: u32) -> io::Result<PidFd> {
        let pid = libc::pid_t::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the call takes two numbers, and no memory.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the kernel has just made this descriptor, and nothing else owns it.
        Ok(PidFd(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Sends the process a signal. Fails if the process has ended.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        let none: *const libc::siginfo_t = std::ptr::null();
        // SAFETY: without a siginfo_t the call reads no memory.
        let done = unsafe {
            libc::syscall(libc::SYS_pidfd_send_signal, self.0.as_raw_fd(), signal as libc::c_int, none, 0)
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Schedules the calling thread round robin at this real-time priority, or as an ordinary thread for `None`.
/// Processes and threads that it starts are ordinary ones.
pub(crate) fn set_real_time(priority: Option<i32>) -> io::Result<()> {
    let policy = if priority.is_some() { libc::SCHED_RR } else { libc::SCHED_OTHER };
    // SAFETY: sched_param holds numbers only (musl's has reserved ones), for which zero is valid.
    let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
    param.sched_priority = priority.unwrap_or(0);
    // SAFETY: the kernel reads `param`, which lives until the call returns. The C library's wrapper is not
    // called, because musl's does nothing but fail.
    let done = unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, 0, policy | libc::SCHED_RESET_ON_FORK, &raw const param)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets the nice value of the calling thread.
pub(crate) fn set_nice(nice: i32) -> io::Result<()> {
    // SAFETY: the call takes three numbers, and no memory.
    let done = unsafe { libc::syscall(libc::SYS_setpriority, libc::PRIO_PROCESS, 0, nice) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the SELinux label of a file, such as `u:object_r:debugfs_tracing:s0`. Returns `None` without
/// SELinux, or if this user may not read the label.
pub(crate) fn selinux_label(path: &Path) -> Option<String> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let mut label = [0u8; 256];
    // SAFETY: both strings end with NUL and live until the call returns. The kernel writes at most
    // `label.len()` bytes into `label`.
    let len = unsafe {
        libc::getxattr(path.as_ptr(), c"security.selinux".as_ptr(), label.as_mut_ptr().cast(), label.len())
    };
    let label = label.get(..usize::try_from(len).ok()?)?;
    Some(String::from_utf8_lossy(label).trim_end_matches('\0').to_owned())
}
