//! System calls of Unix that `nix` does not wrap, each behind a safe function: names that are given without
//! replacing another file, names that are exchanged, and the signals of a process that is being started. It
//! is the only file of the crate with unsafe code.
// nix wraps renameat2(2) for glibc alone, and the released binary is linked with musl; pre_exec is unsafe
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::libc;

/// `RENAME_NOREPLACE` of the kernel's include/uapi/linux/fs.h.
pub(crate) const NO_REPLACE: u32 = 1;
/// `RENAME_EXCHANGE` of the same file.
pub(crate) const EXCHANGE: u32 = 2;

/// Renames a file or directory within one file system: renameat2(2), Linux 3.15. Returns `false`, and does
/// nothing, where the kernel or the file system cannot.
///
/// # Errors
/// The system's error.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn rename(from: &Path, to: &Path, flags: u32) -> io::Result<bool> {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    use nix::errno::Errno;

    let from = CString::new(from.as_os_str().as_bytes())?;
    let to = CString::new(to.as_os_str().as_bytes())?;
    let cwd = libc::AT_FDCWD;
    // SAFETY: the kernel reads two paths that end with a NUL and live until the call returns, and numbers.
    let done = unsafe { libc::syscall(libc::SYS_renameat2, cwd, from.as_ptr(), cwd, to.as_ptr(), flags) };
    if done == 0 {
        return Ok(true);
    }
    match Errno::last() {
        Errno::EINVAL | Errno::ENOSYS => Ok(false),
        error => Err(error.into()),
    }
}

/// Renames nothing: only Linux can. Returns `false`.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn rename(_: &Path, _: &Path, _: u32) -> io::Result<bool> {
    Ok(false)
}

/// The signals that a new process has the kernel send it, and those that it ignores.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartSignals {
    /// Every signal has its usual effect, also where this process was started to ignore it.
    pub(crate) has_defaults: bool,
    /// The signal that the process gets when the thread that starts it ends, on Linux.
    pub(crate) at_our_end: Option<libc::c_int>,
}

/// The highest number of a signal on Linux. Elsewhere there are fewer.
const MAX_SIGNAL: libc::c_int = 64;

/// Has a program that is started begin with an empty signal mask, and with `signals`. A blocked signal would
/// stay blocked in it, and the host's commands block those that end them.
pub(crate) fn set_signals(command: &mut Command, signals: StartSignals) {
    let parent = std::process::id();
    let in_child = move || {
        if signals.has_defaults {
            for signal in 1..=MAX_SIGNAL {
                // SAFETY: signal(2) may be called between fork and exec, and takes two numbers.
                unsafe { libc::signal(signal, libc::SIG_DFL) };
            }
        }
        end_with_parent(signals.at_our_end, parent)?;
        // SAFETY: a set of signals is numbers, for which zero is valid.
        let mut none: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: both may be called between fork and exec, and `none` lives until they return.
        let done = unsafe {
            libc::sigemptyset(&raw mut none);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut())
        };
        if done == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(done)) }
    };
    // SAFETY: the closure calls nothing but system calls that are safe between fork and exec: it takes no
    // lock and no memory.
    unsafe { command.pre_exec(in_child) };
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn end_with_parent(signal: Option<libc::c_int>, parent: u32) -> io::Result<()> {
    let Some(signal) = signal else { return Ok(()) };
    // SAFETY: with this option prctl(2) takes a number, and no memory.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // The parent may have ended before the call.
    // SAFETY: getppid(2) takes nothing.
    let is_there = u32::try_from(unsafe { libc::getppid() }) == Ok(parent);
    if is_there { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn end_with_parent(_: Option<libc::c_int>, _: u32) -> io::Result<()> {
    Ok(())
}
