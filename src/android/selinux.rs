//! SELinux labels of files.
#![allow(unsafe_code)] // getxattr(2) has no wrapper among our crates

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::libc;

/// The label of a file (`u:object_r:debugfs_tracing:s0`); `None` without SELinux, or where it may not be seen.
pub fn of(path: &Path) -> Option<String> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let mut label = [0u8; 256];
    // SAFETY: both strings end with NUL and live until the call returns; the kernel writes at most the length
    // given into `label`, which is that long.
    let len = unsafe {
        libc::getxattr(path.as_ptr(), c"security.selinux".as_ptr(), label.as_mut_ptr().cast(), label.len())
    };
    let label = label.get(..usize::try_from(len).ok()?)?;
    Some(String::from_utf8_lossy(label).trim_end_matches('\0').to_owned())
}
