//! The space that is left on the host's disk: what a device sends does not fill it to the last byte.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::text::byte_size;

/// Of a disk so much stays free, bytes; of small ones [`RESERVED_SHARE`].
const RESERVED_BYTES: u64 = 256 << 20;

/// One part in so many of a disk stays free.
const RESERVED_SHARE: u64 = 20;

/// After so many bytes the disk is asked again: other programs write to it too.
const BYTES_BETWEEN_CHECKS: u64 = 8 << 20;

/// A disk as the system tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Disk {
    /// Bytes that this user may still write.
    free: u64,
    /// Its size, bytes.
    size: u64,
}

impl Disk {
    /// The disk of this directory; `None` where the system does not tell.
    fn of(dir: &Path) -> Option<Disk> {
        #[cfg(unix)]
        {
            let stat = nix::sys::statvfs::statvfs(dir).ok()?;
            // The types of these numbers differ between systems.
            #[allow(clippy::unnecessary_cast)]
            let bytes = |blocks| (blocks as u64).saturating_mul(stat.fragment_size() as u64);
            Some(Disk { free: bytes(stat.blocks_available()), size: bytes(stat.blocks()) })
        }
        #[cfg(not(unix))]
        {
            let _ = dir;
            None
        }
    }

    /// Fails unless so many bytes leave the reserve free.
    fn check(self, bytes: u64) -> Result<(), NoRoom> {
        let reserve = (self.size / RESERVED_SHARE).min(RESERVED_BYTES);
        if bytes.saturating_add(reserve) <= self.free {
            return Ok(());
        }
        Err(NoRoom { bytes, free: self.free, reserve })
    }
}

/// Too little of the disk would stay free.
#[derive(Debug, thiserror::Error)]
#[error(
    "No space left: {}{} free, of which {} stay free",
    if *.bytes > 0 { format!("{} are to come, and ", byte_size(*.bytes)) } else { String::new() },
    byte_size(*.free),
    byte_size(*.reserve)
)]
struct NoRoom {
    bytes: u64,
    free: u64,
    reserve: u64,
}

/// Sees to it that files in a directory do not fill the disk.
#[derive(Debug, Clone)]
pub struct RoomKeeper {
    dir: PathBuf,
}

impl RoomKeeper {
    /// For files in this directory.
    pub fn new(dir: &Path) -> RoomKeeper {
        RoomKeeper { dir: dir.to_owned() }
    }

    /// Fails if so many bytes more do not leave enough free.
    ///
    /// # Errors
    /// One of the kind [`io::ErrorKind::StorageFull`].
    pub fn check(&self, bytes: u64) -> io::Result<()> {
        let Some(disk) = Disk::of(&self.dir) else { return Ok(()) };
        disk.check(bytes).map_err(|full| io::Error::new(io::ErrorKind::StorageFull, full))
    }

    /// A writer that passes bytes on to `out`, a file of the directory, as long as enough stays free.
    pub fn around<W: Write>(self, out: W) -> RoomKeepingWriter<W> {
        RoomKeepingWriter { room: self, out, unchecked: 0 }
    }
}

/// See [`RoomKeeper::around`].
#[derive(Debug)]
pub struct RoomKeepingWriter<W> {
    room: RoomKeeper,
    out: W,
    /// Bytes that were written since the disk was asked.
    unchecked: u64,
}

impl<W: Write> Write for RoomKeepingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.unchecked >= BYTES_BETWEEN_CHECKS {
            self.room.check(0)?;
            self.unchecked = 0;
        }
        let written = self.out.write(bytes)?;
        self.unchecked += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_each_disk_stays_free() {
        let large = Disk { free: 1 << 30, size: 1 << 40 };
        large.check((1 << 30) - RESERVED_BYTES).unwrap();
        let error = large.check(1 << 30).unwrap_err().to_string();
        assert_eq!(
            error,
            "No space left: 1073.7 MB are to come, and 1073.7 MB free, of which 268.4 MB stay free"
        );
        // Of a small disk it is a small part.
        let small = Disk { free: 16 << 10, size: 16 << 10 };
        small.check(15 << 10).unwrap();
        assert!(small.check(16 << 10).is_err() && small.check(u64::MAX).is_err());
        let full = Disk { free: 100, ..large }.check(0).unwrap_err().to_string();
        assert_eq!(full, "No space left: 100 bytes free, of which 268.4 MB stay free");
    }

    #[cfg(unix)]
    #[test]
    fn what_no_disk_has_room_for_is_refused_before_it_comes() {
        let dir = tempfile::tempdir().unwrap();
        let room = RoomKeeper::new(dir.path());
        assert_eq!(room.check(u64::MAX).unwrap_err().kind(), io::ErrorKind::StorageFull);
        let mut written = Vec::new();
        room.around(&mut written).write_all(&[7; 100]).unwrap();
        assert_eq!(written, [7; 100]);
    }
}
