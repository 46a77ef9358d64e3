//! Decides whether an open file of a program is a ring, and opens it. A program can put anything into its
//! table of descriptors, so nothing but a memfd of a fixed size is ever opened for writing.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, Flock, FlockArg, SealFlag, fcntl};
use nix::libc;
use nix::sys::statfs::{TMPFS_MAGIC, fstatfs};

use crate::markers::internals::ring::RingMap;
use crate::markers::internals::ring::layout::MEMFD_NAME;

/// The device and the inode of a file: what tells files apart that have no name.
pub(super) type FileId = (u64, u64);

/// A ring that was opened and checked.
#[derive(Debug)]
pub(super) struct CheckedRing {
    pub(super) id: FileId,
    /// The user of the process.
    pub(super) uid: u32,
    pub(super) map: RingMap,
    /// Locked: one recorder at a time reads a ring, and a recorder that was killed leaves no lock behind.
    _lock: Flock<File>,
}

/// Why a file that has the name of a ring is not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoRing {
    /// It is the ring of another process, which this process has inherited.
    Inherited,
    /// It belongs to a process that has ended meanwhile, or that this user may not look into.
    Unreachable,
    /// The reason, for people.
    Refused(String),
}

/// Whether a link in `/proc/PID/fd` leads to a file with the name of a ring.
pub(super) fn has_name(link: &Path) -> bool {
    let name = link.as_os_str().as_encoded_bytes();
    name.strip_prefix(b"/memfd:").is_some_and(|rest| rest.starts_with(MEMFD_NAME.as_bytes()))
}

/// Opens and checks the file behind `link`, a link in `/proc/PID/fd` of the process `pid`.
pub(super) fn open(link: &Path, pid: i32) -> Result<CheckedRing, NoRing> {
    let refused = |what: &str| Err(NoRing::Refused(what.to_owned()));
    // O_PATH opens nothing: neither a FIFO nor a device notices. The file stays the same from here on,
    // whatever the program does with its descriptor.
    let path = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(link).map_err(unreachable)?;
    let meta = path.metadata().map_err(unreachable)?;
    if !meta.is_file() {
        let kind = meta.file_type();
        let what = if kind.is_fifo() { "a FIFO" } else { "no file with bytes" };
        return refused(&format!("it is {what}, and not memory of the program"));
    }
    if fstatfs(&path).map(|stat| stat.filesystem_type()) != Ok(TMPFS_MAGIC) {
        return refused("it is a file, and not memory of the program");
    }
    let own = format!("/proc/self/fd/{}", path.as_fd().as_raw_fd());
    let file = File::open(&own).map_err(unreachable)?;
    // Only memfds have seals to give; for any other file the kernel answers F_SEAL_SEAL or an error.
    let needed = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW;
    let seals = fcntl(&file, FcntlArg::F_GET_SEALS).map(SealFlag::from_bits_retain);
    if !seals.is_ok_and(|seals| seals.contains(needed)) {
        return refused("its size is not sealed: the program could take the memory away while it is read");
    }
    let owner = user_of(pid).ok_or(NoRing::Unreachable)?;
    if meta.uid() != owner && meta.uid() != 0 {
        return refused(&format!(
            "it belongs to user {}, and the program runs as user {owner}: its markers could be anybody's",
            meta.uid()
        ));
    }
    let file = OpenOptions::new().read(true).write(true).open(&own).map_err(unreachable)?;
    let map = RingMap::new(&file).map_err(|error| NoRing::Refused(error.to_string()))?;
    match map.head.check() {
        Err(fault) => return refused(&fault.to_string()),
        Ok(says) if i32::try_from(says) != Ok(pid) => return Err(NoRing::Inherited),
        Ok(_) => {}
    }
    let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| match errno {
        Errno::EWOULDBLOCK => NoRing::Refused("another recorder is reading it".into()),
        errno => NoRing::Refused(format!("it cannot be locked: {errno}")),
    })?;
    Ok(CheckedRing { id: (meta.dev(), meta.ino()), uid: owner, map, _lock: lock })
}

fn unreachable(_: io::Error) -> NoRing {
    NoRing::Unreachable
}

/// The effective user of a process. The owner of `/proc/PID` does not tell it: that is root where the process
/// may not be traced.
fn user_of(pid: i32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::memfd::{MFdFlags, memfd_create};

    use crate::markers::internals::ring::layout::RING_BYTES;

    /// A memfd with the name of a ring, of this size and with these seals.
    fn memfd(len: u64, seals: SealFlag) -> File {
        let file = File::from(memfd_create(MEMFD_NAME, MFdFlags::MFD_ALLOW_SEALING).unwrap());
        file.set_len(len).unwrap();
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).unwrap();
        file
    }

    fn open_own(file: &File) -> Result<CheckedRing, NoRing> {
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        open(link.as_ref(), std::process::id() as i32)
    }

    fn reason(file: &File) -> String {
        match open_own(file) {
            Err(NoRing::Refused(reason)) => reason,
            other => panic!("{other:?}"),
        }
    }

    const SIZE: SealFlag = SealFlag::F_SEAL_SHRINK.union(SealFlag::F_SEAL_GROW);

    #[test]
    fn a_ring_is_opened_once_and_only_under_the_process_that_it_names() {
        let file = memfd(RING_BYTES as u64, SIZE);
        let link = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap();
        assert!(has_name(&link), "{}", link.display());
        let writer = RingMap::new(&file).unwrap();
        writer.head.begin(std::process::id(), true);
        let ring = open_own(&file).unwrap();
        assert_eq!(reason(&file), "another recorder is reading it");
        drop(ring);
        assert!(open_own(&file).is_ok());
        writer.head.begin(1, true);
        assert_eq!(open_own(&file).unwrap_err(), NoRing::Inherited);
    }

    #[test]
    fn what_is_no_ring_is_refused_with_the_reason_and_keeps_its_bytes() {
        let cut = memfd(4096, SIZE);
        assert_eq!(reason(&cut), format!("it has 4096 bytes, and a ring has {RING_BYTES}"));
        let unsealed = memfd(RING_BYTES as u64, SealFlag::F_SEAL_GROW);
        assert!(reason(&unsealed).starts_with("its size is not sealed"));
        let empty = memfd(RING_BYTES as u64, SIZE);
        assert_eq!(reason(&empty), "its first bytes are not those of a ring");
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("memfd:tracebridge-ring");
        fs::write(&path, [0x55; 64]).unwrap();
        assert!(reason(&File::open(&path).unwrap()).starts_with("its size is not sealed"));
        assert_eq!(fs::read(&path).unwrap(), [0x55; 64]);
        let on_disk = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        assert_eq!(reason(&on_disk), "it is a file, and not memory of the program");
        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        // Opening a FIFO to write would wait for a reader, and opening it to read for a writer.
        assert_eq!(
            open(&fifo, std::process::id() as i32).unwrap_err(),
            NoRing::Refused("it is a FIFO, and not memory of the program".into())
        );
        let device = open("/dev/null".as_ref(), std::process::id() as i32).unwrap_err();
        assert_eq!(device, NoRing::Refused("it is no file with bytes, and not memory of the program".into()));
    }
}
