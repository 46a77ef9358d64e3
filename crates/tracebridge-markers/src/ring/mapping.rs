//! Maps a ring into memory.
#![allow(unsafe_code)] // mmap(2), and a reference into what it maps

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::ptr::NonNull;

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use super::layout::RingMemory;

/// The size of a ring's file, bytes.
pub const RING_BYTES: usize = size_of::<RingMemory>();

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
    pub fn of(file: &File) -> io::Result<RingMap> {
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

    /// Gives the mapping away: nothing unmaps it any more.
    #[allow(dead_code)] // Only programs with the feature `ring` keep their ring for good.
    pub fn leak(self) -> NonNull<RingMemory> {
        std::mem::ManuallyDrop::new(self).0
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
        // SAFETY: the range was mapped by `of`, and no reference into it outlives this value.
        let _ = unsafe { munmap(self.0.cast(), RING_BYTES) };
    }
}
