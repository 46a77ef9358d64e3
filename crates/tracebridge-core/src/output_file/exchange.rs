//! The exchange of two names, which `nix` wraps for glibc alone.
#![allow(unsafe_code)] // nix wraps renameat2(2) for glibc alone, and the released binary is linked with musl

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use nix::libc;

/// `RENAME_EXCHANGE` of the kernel's include/uapi/linux/fs.h.
const RENAME_EXCHANGE: libc::c_uint = 2;

/// Exchanges the names of two directories of one file system at once: renameat2(2), Linux 3.15. Returns
/// `false`, and does nothing, where the kernel or the file system cannot.
///
/// # Errors
/// The system's error.
pub(super) fn exchange(a: &Path, b: &Path) -> io::Result<bool> {
    let (a, b) = (CString::new(a.as_os_str().as_bytes())?, CString::new(b.as_os_str().as_bytes())?);
    let here = libc::AT_FDCWD;
    // SAFETY: the kernel reads two paths that end with a NUL and live until the call returns, and numbers.
    let done =
        unsafe { libc::syscall(libc::SYS_renameat2, here, a.as_ptr(), here, b.as_ptr(), RENAME_EXCHANGE) };
    match done {
        0 => Ok(true),
        _ => match Errno::last() {
            Errno::EINVAL | Errno::ENOSYS => Ok(false),
            error => Err(error.into()),
        },
    }
}
