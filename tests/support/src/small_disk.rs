//! A file system that is soon full.

use crate::Command;
use std::path::Path;

use crate::skip;

/// A file system in memory, unmounted on drop.
pub struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// Mounts one of this size, as in `size=64k`. Without root the test is skipped, with a message: `None`.
    pub fn mount(size: &str) -> Option<SmallDisk> {
        let dir = crate::tempdir();
        let options = format!("size={size},mode=0700");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "small"]).arg(dir.path()).output();
        if !mounted.is_ok_and(|mounted| mounted.status.success()) {
            skip("root", "mounting a small tmpfs is not permitted");
            return None;
        }
        crate::unmount_at_end(dir.path());
        Some(SmallDisk(dir))
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}
