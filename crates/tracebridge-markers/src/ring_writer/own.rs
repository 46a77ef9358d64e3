//! The ring of this process: made once, found by every thread with two loads, and forgotten by the child of a
//! fork.
#![allow(unsafe_code)] // a mapping that is never unmapped, and calls that nix does not wrap

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::libc;
use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::counter;
use crate::ring::RingMap;
use crate::ring::layout::{MEMFD_NAME, RingMemory};
use crate::ring::mapping::RING_BYTES;

/// The mapped ring; null where the process has none (yet).
static MEMORY: AtomicPtr<RingMemory> = AtomicPtr::new(ptr::null_mut());
/// The number of this process's ring among those of its ancestors: a thread's block belongs to one of them.
static EPOCH: AtomicU32 = AtomicU32::new(1);
/// The ring's descriptor and the number of its inode, for the child of a fork, which closes it.
static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);
static INODE: AtomicU64 = AtomicU64::new(0);
/// Whether a thread is making the ring.
static IS_BEING_MADE: AtomicBool = AtomicBool::new(false);

/// The ring of this process, if it has one.
#[inline(always)]
pub(super) fn memory() -> Option<&'static RingMemory> {
    // SAFETY: the pointer is null, or `make` has leaked the mapping. Only the child of a fork unmaps it, in
    // which no other thread runs and the forking one is inside of fork(2).
    unsafe { MEMORY.load(Ordering::Acquire).as_ref() }
}

/// See [`EPOCH`]. It is never 0.
#[inline(always)]
pub(super) fn epoch() -> u32 {
    EPOCH.load(Ordering::Relaxed)
}

/// Makes the ring of this process, unless another thread has made it or is just making it.
///
/// # Errors
/// Returns the error of the system call that the kernel refused: `memfd_create(2)` is there since Linux 3.17.
pub(super) fn make() -> io::Result<Option<&'static RingMemory>> {
    if IS_BEING_MADE.swap(true, Ordering::AcqRel) {
        return Ok(memory());
    }
    let made = if memory().is_none() { make_now() } else { Ok(()) };
    IS_BEING_MADE.store(false, Ordering::Release);
    made.map(|()| memory())
}

fn make_now() -> io::Result<()> {
    static CHILD_FORGETS: AtomicBool = AtomicBool::new(false);
    let fd = memfd_create(MEMFD_NAME, MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?;
    let fd = above_standard_files(fd)?;
    let file = File::from(fd);
    file.set_len(RING_BYTES as u64)?;
    let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    let map = RingMap::of(&file)?;
    map.head.begin(std::process::id(), counter::IS_READABLE);
    if !CHILD_FORGETS.swap(true, Ordering::Relaxed) {
        // SAFETY: the function makes system calls and stores numbers, which the child of a fork may do.
        unsafe { libc::pthread_atfork(None, None, Some(forget)) };
    }
    INODE.store(file.metadata()?.ino(), Ordering::Relaxed);
    DESCRIPTOR.store(file.as_raw_fd(), Ordering::Relaxed);
    // The descriptor stays open as long as the process: it is what a recorder finds.
    std::mem::forget(file);
    MEMORY.store(map.leak().as_ptr(), Ordering::Release);
    Ok(())
}

/// A program that was started without its standard files must not have the ring in the place of one.
fn above_standard_files(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > libc::STDERR_FILENO {
        return Ok(fd);
    }
    let fd = fcntl(&fd, FcntlArg::F_DUPFD_CLOEXEC(libc::STDERR_FILENO + 1))?;
    // SAFETY: the descriptor is new, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Runs in the child of a fork: the ring is its parent's. The child unmaps it and closes its descriptor, so
/// that the memory lives no longer than the parent, and makes a ring of its own with its next marker.
extern "C" fn forget() {
    let memory = MEMORY.swap(ptr::null_mut(), Ordering::Relaxed);
    EPOCH.store(EPOCH.load(Ordering::Relaxed).wrapping_add(1).max(1), Ordering::Relaxed);
    IS_BEING_MADE.store(false, Ordering::Relaxed);
    let fd = DESCRIPTOR.swap(-1, Ordering::Relaxed);
    if !memory.is_null() {
        // SAFETY: the range is the one that `make` has mapped, and no thread of the child uses it.
        unsafe { libc::munmap(memory.cast(), RING_BYTES) };
    }
    // SAFETY: stat is plain numbers, for which zero is valid.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // The program may have closed the descriptor, and opened another file under its number.
    // SAFETY: the kernel writes `stat`, which lives until the call returns.
    let is_ring = fd >= 0 && unsafe { libc::fstat(fd, &raw mut stat) } == 0;
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion)] // 32 bits wide on 32-bit targets
    if is_ring && stat.st_ino as u64 == INODE.load(Ordering::Relaxed) {
        // SAFETY: nothing else uses this descriptor.
        unsafe { libc::close(fd) };
    }
}

/// The kernel's id of the calling thread.
pub(super) fn thread_id() -> u32 {
    // SAFETY: the call takes no memory.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) };
    u32::try_from(tid).unwrap_or(0)
}

/// The kernel's name of the calling thread, filled up with NULs.
pub(super) fn thread_name() -> [u8; 16] {
    let mut name = [0u8; 16];
    // SAFETY: the kernel writes 16 bytes at most, NUL included.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr(), 0, 0, 0) };
    name
}
