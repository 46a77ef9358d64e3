//! Looks for programs that have a ring: among all processes when a recording starts, and later among the new
//! ones at once and among the others in turns, because a program may make its ring at any time.
//!
//! An open file of a program is opened here only if it is a ring. A program can put anything into its table
//! of descriptors, so nothing but a memfd of a fixed size is ever opened for writing.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, Flock, FlockArg, SealFlag, fcntl};
use nix::libc;
use nix::sys::statfs::{TMPFS_MAGIC, fstatfs};

use crate::ids::Pid;
use crate::markers::internals::ring::{MEMFD_NAME, RingMap};

/// A process of less than this age is looked at each time: it may be about to write its first marker.
const YOUNG: Duration = Duration::from_secs(2);
/// The longest time between two scans, and the time between two turns of the older processes.
const TURN_INTERVAL: Duration = Duration::from_secs(1);
/// Older processes that are looked at in a turn: some have a thousand descriptors.
const PROCESSES_PER_TURN: usize = 16;

/// The most links of one process that are looked at: it can have its ring open under several numbers.
const MAX_LINKS_OF_PROCESS: usize = 8;

/// The processes that were seen.
#[derive(Debug)]
pub(super) struct RingSearch {
    first_seen: HashMap<Pid, Instant>,
    /// Older processes up to this one have had their turn.
    turn: Pid,
    /// Ends with the id of the newest thread on the machine, so that nothing is looked at while none begins.
    loadavg: Option<File>,
    newest: Vec<u8>,
    next_turn: Instant,
}

impl RingSearch {
    pub(super) fn new() -> RingSearch {
        RingSearch {
            first_seen: HashMap::new(),
            turn: Pid(0),
            loadavg: File::open("/proc/loadavg").ok(),
            newest: Vec::new(),
            next_turn: Instant::now(),
        }
    }

    /// Whether there is something to look at.
    pub(super) fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let mut text = [0; 128];
        let len = self.loadavg.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        let newest = text[..len].rsplit(|byte| *byte == b' ').next().unwrap_or_default();
        let is_new = newest != self.newest;
        self.newest = newest.to_vec();
        is_new || now >= self.next_turn || self.has_young(now)
    }

    fn has_young(&self, now: Instant) -> bool {
        self.first_seen.values().any(|seen| now.duration_since(*seen) < YOUNG)
    }

    /// The links in `/proc/PID/fd` that have the name of a ring, with their process. `skip` are the processes
    /// whose rings are open. The first scan is of all processes.
    pub(super) fn scan(&mut self, skip: &HashSet<Pid>) -> Vec<(Pid, PathBuf)> {
        let now = Instant::now();
        let is_turn = now >= self.next_turn;
        if is_turn {
            self.next_turn = now + TURN_INTERVAL;
        }
        let is_first = self.first_seen.is_empty();
        let own = Pid(std::process::id() as i32);
        let mut pids: Vec<Pid> = processes().filter(|pid| *pid != own && !skip.contains(pid)).collect();
        pids.sort_unstable();
        let running: HashSet<Pid> = pids.iter().copied().collect();
        self.first_seen.retain(|pid, _| running.contains(pid));
        let mut found = Vec::new();
        let mut older = Vec::new();
        for pid in pids {
            // What runs when the recording starts is no younger than that.
            let seen = *self.first_seen.entry(pid).or_insert(if is_first { now - YOUNG } else { now });
            if is_first || now.duration_since(seen) < YOUNG {
                found.extend(rings_of(pid));
            } else {
                older.push(pid);
            }
        }
        let next = older.partition_point(|pid| *pid <= self.turn);
        older.rotate_left(next);
        for pid in older.into_iter().take(if is_turn { PROCESSES_PER_TURN } else { 0 }) {
            self.turn = pid;
            found.extend(rings_of(pid));
        }
        found
    }

    /// Forgets a process, so that the next scan takes it for a new one: it runs another program now.
    pub(super) fn forget(&mut self, pid: Pid) {
        self.first_seen.remove(&pid);
    }
}

/// The processes of the machine: the entries of /proc whose names are numbers.
fn processes() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()))
}

/// The rings in the table of descriptors of one process. It is empty for a process of another user.
fn rings_of(pid: Pid) -> impl Iterator<Item = (Pid, PathBuf)> {
    let dir = format!("/proc/{pid}/fd");
    let links = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let rings = links.filter(|link| fs::read_link(link).is_ok_and(|to| has_name(&to)));
    rings.take(MAX_LINKS_OF_PROCESS).map(move |link| (pid, link))
}

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
pub(super) fn open(link: &Path, pid: Pid) -> Result<CheckedRing, NoRing> {
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
        Ok(says) if i32::try_from(says).map(Pid) != Ok(pid) => return Err(NoRing::Inherited),
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
fn user_of(pid: Pid) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Pid;
    use crate::markers::internals::ring::RING_BYTES;
    use nix::sys::memfd::{MFdFlags, memfd_create};

    #[test]
    fn a_new_process_is_due_and_its_ring_found_under_its_id() {
        let mut search = RingSearch::new();
        assert!(search.is_due());
        search.scan(&HashSet::new());
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        assert!(search.is_due(), "a process has begun");
        search.scan(&HashSet::new());
        assert!(search.first_seen.contains_key(&Pid(child.id() as i32)));
        assert!(!search.first_seen.contains_key(&Pid(std::process::id() as i32)));
        drop(child.stdin.take());
        child.wait().unwrap();
        search.scan(&HashSet::new());
        assert!(!search.first_seen.contains_key(&Pid(child.id() as i32)));
    }

    /// A memfd with the name of a ring, of this size and with these seals.
    fn memfd(len: u64, seals: SealFlag) -> File {
        let file = File::from(memfd_create(MEMFD_NAME, MFdFlags::MFD_ALLOW_SEALING).unwrap());
        file.set_len(len).unwrap();
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).unwrap();
        file
    }

    fn open_own(file: &File) -> Result<CheckedRing, NoRing> {
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        open(link.as_ref(), Pid(std::process::id() as i32))
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
            open(&fifo, Pid(std::process::id() as i32)).unwrap_err(),
            NoRing::Refused("it is a FIFO, and not memory of the program".into())
        );
        let device = open("/dev/null".as_ref(), Pid(std::process::id() as i32)).unwrap_err();
        assert_eq!(device, NoRing::Refused("it is no file with bytes, and not memory of the program".into()));
    }
}
