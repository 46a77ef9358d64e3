//! Reads the SELinux labels of files.
#![allow(unsafe_code)] // nix does not wrap getxattr(2)

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::libc;

/// Returns the label of a file, such as `u:object_r:debugfs_tracing:s0`. Returns `None` without SELinux, or
/// if this user may not read the label.
pub fn label_of(path: &Path) -> Option<String> {
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
