//! The unsafe code of the crate, behind safe functions; only the functions for C (`c`) have more. It is
//! memory that other processes share, values that the threads of a process and the children of a fork share
//! without a lock, and calls and instructions that have no safe wrapper.
#![allow(unsafe_code)] // See above.

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use nix::libc;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use crate::ring::{RING_BYTES, RingMemory};

/// The value of the CPU's counter: CNTVCT_EL0.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub fn counter() -> u64 {
    let ticks: u64;
    // SAFETY: reading CNTVCT_EL0 has no side effect. Linux enables the read for user space on every arm64,
    // because the vDSO's clock_gettime uses it. Where an erratum forbids the read, the kernel traps and
    // emulates it.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

/// The frequency of [`counter`] in ticks per second: CNTFRQ_EL0.
#[cfg(target_arch = "aarch64")]
pub fn counter_hz() -> u64 {
    let hz: u64;
    // SAFETY: reading CNTFRQ_EL0 has no side effect, and user space may read it wherever it may read
    // CNTVCT_EL0.
    unsafe { std::arch::asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack)) };
    hz
}

/// The value of the CPU's counter: the TSC.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn counter() -> u64 {
    // SAFETY: RDTSC has no side effect. Linux permits it unless a process has forbidden it to itself
    // (PR_SET_TSC).
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// The value of the CPU's counter: the TSC.
#[cfg(target_arch = "x86")]
#[inline(always)]
pub fn counter() -> u64 {
    // SAFETY: as on x86_64.
    unsafe { std::arch::x86::_rdtsc() }
}

/// The kernel's name of the calling thread, filled up with NULs. `nix` wraps `prctl(2)` for Linux alone, not
/// for Android.
#[allow(dead_code)] // Only programs with the feature `ring` ask.
pub fn thread_name() -> [u8; 16] {
    let mut name = [0u8; 16];
    // SAFETY: the kernel writes 16 bytes at most, NUL included.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr(), 0, 0, 0) };
    name
}

/// Has `handler` run in each child of a fork, before fork(2) returns there. Of the functions of the C library
/// it may call those that a signal handler may call.
pub fn call_in_fork_children(handler: extern "C" fn()) {
    // SAFETY: the function is there as long as the process.
    unsafe { libc::pthread_atfork(None, None, Some(handler)) };
}

/// The file under a descriptor that is none of the three standard ones: a program may have been started
/// without some of these, and what it prints must not come into the file.
pub fn above_standard_files(file: File) -> io::Result<File> {
    let is_above = |file: &File| file.as_raw_fd() > libc::STDERR_FILENO;
    if is_above(&file) {
        return Ok(file);
    }
    // The standard library duplicates descriptors to numbers from 3 on, for the same reason.
    let clone = file.try_clone()?;
    if is_above(&clone) { Ok(clone) } else { Err(io::ErrorKind::Unsupported.into()) }
}

/// A value that is made when it is first needed, and never dropped.
///
/// `OnceLock` does not serve: a thread that comes second waits for the first one, and in the child of a fork
/// the first one does not exist.
pub struct MadeOnce<T>(AtomicPtr<T>);

impl<T: Sync> MadeOnce<T> {
    pub const fn new() -> MadeOnce<T> {
        MadeOnce(AtomicPtr::new(ptr::null_mut()))
    }

    #[inline]
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: the pointer is null or comes from `set`, which leaked the value.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Stores `value`, unless another thread was faster; then `value` is dropped. Returns what is stored.
    pub fn set(&self, value: T) -> &'static T {
        let new = Box::into_raw(Box::new(value));
        match self.0.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: the value was leaked just now, and nothing frees it any more.
            Ok(_) => unsafe { &*new },
            Err(other) => {
                // SAFETY: `new` comes from `Box::into_raw` and was given to nobody.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: a pointer that is not null comes from another thread's `set`.
                unsafe { &*other }
            }
        }
    }
}

/// A number in a file that another process changes: the serial number of a property, in memory that init
/// shares with every process.
#[derive(Debug)]
pub struct SharedNumber {
    map: NonNull<std::ffi::c_void>,
    len: usize,
    /// The number, in the mapping.
    number: NonNull<AtomicU32>,
}

// SAFETY: only this value uses the mapping; it never writes to it, and reads it through an atomic only.
unsafe impl Send for SharedNumber {}
// SAFETY: as for Send; several threads may read an atomic.
unsafe impl Sync for SharedNumber {}

impl SharedNumber {
    /// Maps the number at offset `at` of an area of Android's properties. `None` if the area has no such
    /// number.
    pub fn map(file: &Path, at: usize) -> Option<SharedNumber> {
        let file = File::open(file).ok()?;
        let len = usize::try_from(file.metadata().ok()?.len()).ok()?;
        if !at.is_multiple_of(align_of::<AtomicU32>()) || at.checked_add(size_of::<AtomicU32>())? > len {
            return None;
        }
        // SAFETY: the mapping is new, at an address that the kernel chooses, and nothing else uses it. The
        // file of an area never shrinks while the system runs.
        let map = unsafe {
            mmap(None, NonZeroUsize::new(len)?, ProtFlags::PROT_READ, MapFlags::MAP_SHARED, &file, 0).ok()?
        };
        // SAFETY: `at` is inside the mapping.
        let number = unsafe { map.byte_add(at) }.cast();
        Some(SharedNumber { map, len, number })
    }

    #[inline]
    pub fn load(&self) -> u32 {
        // SAFETY: `map` has checked that the number is aligned and inside the mapping, which lives as long as
        // `self`. init changes the number atomically.
        unsafe { self.number.as_ref() }.load(Ordering::Acquire)
    }
}

impl Drop for SharedNumber {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map`, and no reference to it is left.
        let _ = unsafe { munmap(self.map, self.len) };
    }
}

/// A mapped ring. Another process may change every byte of it at any time.
#[derive(Debug)]
pub struct RingMap(NonNull<RingMemory>);

// SAFETY: the memory holds nothing but atomics, which any thread may use, and the mapping belongs to the
// process.
unsafe impl Send for RingMap {}
// SAFETY: as above.
unsafe impl Sync for RingMap {}

impl RingMap {
    /// Maps a file. The caller has checked that the file is a memfd whose size is sealed: one that shrinks
    /// would end this process with SIGBUS.
    ///
    /// # Errors
    /// Returns `InvalidData` for a file that is shorter than a ring, and the error of `mmap(2)`.
    pub fn new(file: &File) -> io::Result<RingMap> {
        let len = file.metadata()?.len();
        if len < RING_BYTES as u64 {
            let what = format!("it has {len} bytes, and a ring has {RING_BYTES}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let bytes = NonZeroUsize::new(RING_BYTES).ok_or(io::ErrorKind::InvalidInput)?;
        let prot = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: the kernel chooses an address that nothing else uses.
        let base = unsafe { mmap(None, bytes, prot, MapFlags::MAP_SHARED, file, 0) }?;
        Ok(RingMap(base.cast()))
    }
}

impl Deref for RingMap {
    type Target = RingMemory;

    #[inline]
    fn deref(&self) -> &RingMemory {
        // SAFETY: the mapping is as long as the type, begins at a page, and lives as long as this value. The
        // type consists of atomics, for which every bit pattern is valid and which may change at any time.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for RingMap {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new`, and no reference into it outlives this value.
        let _ = unsafe { munmap(self.0.cast(), RING_BYTES) };
    }
}

/// The ring of this process, if it has one.
#[allow(dead_code)] // Only programs with the feature `ring` have one.
pub static OWN_RING: OwnRing = OwnRing {
    memory: AtomicPtr::new(ptr::null_mut()),
    epoch: AtomicU32::new(1),
    descriptor: AtomicI32::new(-1),
    inode: AtomicU64::new(0),
    is_being_made: AtomicBool::new(false),
};

/// A ring that is made once, found by every thread with two loads, and forgotten by the child of a fork.
#[allow(dead_code)] // See [`OWN_RING`].
pub struct OwnRing {
    /// The mapped ring; null where the process has none (yet).
    memory: AtomicPtr<RingMemory>,
    /// See [`OwnRing::epoch`].
    epoch: AtomicU32,
    /// The ring's descriptor and the number of its inode, for the child of a fork, which closes it.
    descriptor: AtomicI32,
    inode: AtomicU64,
    /// Whether a thread is making the ring.
    is_being_made: AtomicBool,
}

#[allow(dead_code)] // See [`OWN_RING`].
impl OwnRing {
    /// The memory of the ring.
    #[inline(always)]
    pub fn memory(&self) -> Option<&'static RingMemory> {
        // SAFETY: the pointer is null, or `keep` has leaked the mapping. Only the child of a fork unmaps it,
        // in which no other thread runs and the forking one is inside of fork(2).
        unsafe { self.memory.load(Ordering::Acquire).as_ref() }
    }

    /// The number of this process's ring among those of its ancestors: a thread's block belongs to one of
    /// them. It is never 0.
    #[inline(always)]
    pub fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Keeps the ring that `make` returns with its file, unless another thread has made one or is just making
    /// it.
    ///
    /// # Errors
    /// Returns the error of `make`.
    pub fn get_or_make(
        &self,
        make: impl FnOnce() -> io::Result<(File, RingMap)>,
    ) -> io::Result<Option<&'static RingMemory>> {
        if self.is_being_made.swap(true, Ordering::AcqRel) {
            return Ok(self.memory());
        }
        let made = if self.memory().is_none() {
            make().and_then(|(file, map)| self.keep(file, map))
        } else {
            Ok(())
        };
        self.is_being_made.store(false, Ordering::Release);
        made.map(|()| self.memory())
    }

    /// The descriptor stays open as long as the process: it is what a recorder finds. Nothing unmaps the
    /// memory.
    fn keep(&self, file: File, map: RingMap) -> io::Result<()> {
        static CHILD_FORGETS: AtomicBool = AtomicBool::new(false);
        extern "C" fn forget() {
            // SAFETY: `pthread_atfork` has this function run in the child of a fork alone.
            unsafe { OWN_RING.forget() };
        }
        if !CHILD_FORGETS.swap(true, Ordering::Relaxed) {
            call_in_fork_children(forget);
        }
        self.inode.store(file.metadata()?.ino(), Ordering::Relaxed);
        self.descriptor.store(file.as_raw_fd(), Ordering::Relaxed);
        std::mem::forget(file);
        let map = std::mem::ManuallyDrop::new(map);
        self.memory.store(map.0.as_ptr(), Ordering::Release);
        Ok(())
    }

    /// Gives the ring up in the child of a fork: it is its parent's. The child unmaps it and closes its
    /// descriptor, so that the memory lives no longer than the parent, and makes a ring of its own with its
    /// next marker.
    ///
    /// # Safety
    /// The process is the child of a fork, in which no other thread runs and nothing refers into the ring.
    unsafe fn forget(&self) {
        let memory = self.memory.swap(ptr::null_mut(), Ordering::Relaxed);
        self.epoch.store(self.epoch().wrapping_add(1).max(1), Ordering::Relaxed);
        self.is_being_made.store(false, Ordering::Relaxed);
        let fd = self.descriptor.swap(-1, Ordering::Relaxed);
        if let Some(memory) = NonNull::new(memory) {
            // SAFETY: the range is the one that `keep` has leaked, and nothing refers into it.
            let _ = unsafe { munmap(memory.cast(), RING_BYTES) };
        }
        // SAFETY: stat is plain numbers, for which zero is valid.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // The program may have closed the descriptor, and opened another file under its number.
        // SAFETY: the kernel writes `stat`, which lives until the call returns.
        let is_open = fd >= 0 && unsafe { libc::fstat(fd, &raw mut stat) } == 0;
        #[allow(clippy::unnecessary_cast, clippy::useless_conversion)] // 32 bits wide on 32-bit targets
        if is_open && stat.st_ino as u64 == self.inode.load(Ordering::Relaxed) {
            // SAFETY: nothing else uses this descriptor.
            unsafe { libc::close(fd) };
        }
    }
}
