//! An input file that is mapped into memory, and what happens when such a file shrinks.
//!
//! A page of a mapping that the file no longer has, because another program has shortened the file or its
//! disk has failed, cannot be read: the system sends SIGBUS to the thread that reads it. There is no value
//! that the reader could go on with, so the process ends; [`end_on_bus_error`] has it say why, and leave no
//! half output. Reading with `read(2)` instead would report such a file as an error of one input, but copies
//! every byte: readers borrow names, fields and whole packets from the mapping.

#![allow(unsafe_code)] // maps files, releases pages that have been read, and installs the handler of SIGBUS

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The addresses and the path of each file that is mapped.
static MAPPED: Mutex<Vec<(Range<usize>, String)>> = Mutex::new(Vec::new());

fn mapped() -> MutexGuard<'static, Vec<(Range<usize>, String)>> {
    MAPPED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that is mapped into memory.
#[derive(Debug)]
pub(super) struct MappedFile {
    map: memmap2::Mmap,
    file: File,
}

impl MappedFile {
    /// Maps a file, whose path as given is `name`.
    pub(super) fn new(file: File, name: &str) -> io::Result<MappedFile> {
        // SAFETY: the mapping is private and read-only. Should another program shorten the file meanwhile,
        // the system sends SIGBUS (see the head of this file). Nothing is written through the mapping, so no
        // other memory can be harmed.
        let map = unsafe { memmap2::MmapOptions::new().map_copy_read_only(&file) }?;
        #[cfg(unix)]
        let _ = map.advise(memmap2::Advice::Sequential);
        mapped().push((addresses(&map), name.to_owned()));
        Ok(MappedFile { map, file })
    }

    /// Whether the file is shorter than it was when it was mapped. What is missing of its last page is read
    /// as zeros, without a SIGBUS.
    pub(super) fn has_shrunk(&self) -> bool {
        self.file.metadata().is_ok_and(|meta| meta.len() < self.map.len() as u64)
    }

    /// Releases the memory that holds `range`. The system reads the pages from the file again when they are
    /// accessed.
    #[cfg(unix)]
    pub(super) fn release(&self, range: Range<usize>) {
        // Only whole pages inside of the range are released. Linux has page sizes of up to 64 KiB.
        const PAGE: usize = 64 << 10;
        let start = range.start.next_multiple_of(PAGE);
        let end = range.end / PAGE * PAGE;
        if start < end && end <= self.len() {
            // SAFETY: the mapping is read-only and of a file: pages that are dropped are read from the file
            // again, so every reference into them stays valid and sees the same bytes.
            let _ = unsafe {
                self.map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, end - start)
            };
        }
    }

    /// Does nothing: Windows releases the pages of a mapped file by itself when memory is short.
    #[cfg(not(unix))]
    pub(super) fn release(&self, _: Range<usize>) {}
}

impl Deref for MappedFile {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.map
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        let own = addresses(&self.map);
        mapped().retain(|(addresses, _)| *addresses != own);
    }
}

fn addresses(map: &[u8]) -> Range<usize> {
    map.as_ptr_range().start as usize..map.as_ptr_range().end as usize
}

/// From now on, a mapped file that shrinks ends the process with exit status 1. The process first prints one
/// line that names the file, and removes its unfinished outputs.
///
/// Another cause of SIGBUS is left to the handler that was there before.
#[cfg(unix)]
pub(crate) fn end_on_bus_error() {
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
    let action = SigAction::new(SigHandler::SigAction(on_bus_error), SaFlags::SA_SIGINFO, SigSet::empty());
    // SAFETY: `on_bus_error` says why it may do what it does.
    if let Ok(before) = unsafe { sigaction(Signal::SIGBUS, &action) } {
        let _ = HANDLER_BEFORE.set(before);
    }
}

#[cfg(unix)]
static HANDLER_BEFORE: std::sync::OnceLock<nix::sys::signal::SigAction> = std::sync::OnceLock::new();

/// Handles SIGBUS.
///
/// A signal handler must not do what the interrupted code may be in the middle of. This one comes while a
/// thread reads from a mapped file; it makes sure of that first. Such a thread is in no function of the
/// allocator and holds neither of the two locks that are taken here, since their holders read no mapped file.
/// It may hold the locks of standard output and standard error, so these are not used.
#[cfg(unix)]
extern "C" fn on_bus_error(_: nix::libc::c_int, info: *mut nix::libc::siginfo_t, _: *mut nix::libc::c_void) {
    use std::os::fd::AsFd;

    // SAFETY: the system passes a valid `siginfo_t`, whose address field is set if it is the system that
    // sends SIGBUS. Positive codes are the system's own.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    // Another thread that gets here waits for this lock, until the process has ended.
    if code == nix::libc::BUS_ADRERR
        && let Some((_, name)) = mapped().iter().find(|(addresses, _)| addresses.contains(&address))
    {
        let line = format!(
            "tracebridge: {name}: another program shortened this file while it was read, or its disk failed; \
             no output is written\n"
        );
        let _ = nix::unistd::write(io::stderr().as_fd(), line.as_bytes());
        crate::output_file::abandon_all();
        // SAFETY: ends the process at once, without running anything that other threads may be in.
        unsafe { nix::libc::_exit(1) };
    }
    // The instruction is repeated, or the signal was sent by a process: what was there before decides.
    if let Some(before) = HANDLER_BEFORE.get() {
        // SAFETY: it is the action that `sigaction` returned.
        let _ = unsafe { nix::sys::signal::sigaction(nix::sys::signal::Signal::SIGBUS, before) };
    }
    if code <= 0 {
        let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGBUS);
    }
}
