//! Moves full pages from the kernel's per-CPU ring buffers to an output, without looking into them beyond their headers.
//!
//! By `read`, a page at a time, into a batch that is written past the page cache. What else there is costs more; CPU time
//! a page on an x86-64 machine with Linux 6.18, median of three (20 MB of markers read out of a stopped buffer):
//!
//! | | to nowhere | to ext4 |
//! | --- | --- | --- |
//! | `read`, `write` with O_DIRECT | 0.67 µs | 1.5 µs |
//! | `splice` through a pipe | 0.64 µs | 4.7 µs: into the page cache |
//! | mapped (6.10+), copied, O_DIRECT | 3.6 µs | 4.3 µs |
//!
//! A mapped buffer's `TRACE_MMAP_IOCTL_GET_READER` steps through the events of the page that it gives up one by one, and the
//! page has to be copied all the same before the next is asked for. On an emulated ARM64 device (Linux 6.12) whose
//! files are in memory, mapping is the dearest too (two to five times `read`), and `splice` the cheapest: no O_DIRECT there,
//! and copying is what an emulator does worst.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

use nix::libc;

use super::output::Output;
use super::{Error, Tracefs};
use crate::ftrace::{LostEvents, PageLayout};

/// Bytes gathered before they are handed on: large enough that the file system's work per write does not count.
pub const BATCH: usize = 512 << 10;

/// O_DIRECT wants buffers that start at a multiple of the disk's block.
const ALIGN: usize = 4096;

/// What came out of one CPU's pipe.
#[derive(Debug, Clone, Copy, Default)]
pub struct LaneCount {
    /// The CPU's id.
    pub cpu: u32,
    /// Bytes handed on.
    pub bytes: u64,
    /// Gaps that page headers told of.
    pub gaps: u64,
    /// Events missing in them, as far as the headers told.
    pub missed: u64,
}

/// One CPU's pipe.
#[derive(Debug)]
pub struct Lane {
    /// Its `trace_pipe_raw`, non-blocking. While it is open, its instance cannot be removed.
    pub pipe: File,
    /// What came out of it.
    pub count: LaneCount,
}

/// How far to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upto {
    /// Until a page comes back less than half full: then the rest is better left to gather.
    HalfFullPage,
    /// About this many bytes, or all there is.
    Bytes(u64),
    /// All there is, the last partial page too.
    End,
}

/// All CPUs' pipes, and the buffer that pages pass through.
#[derive(Debug)]
pub struct Drain {
    /// The CPUs, in growing order.
    pub lanes: Vec<Lane>,
    layout: PageLayout,
    buffer: Vec<u8>,
    start: usize,
}

impl Drain {
    /// Opens the pipe of every CPU. A CPU without a buffer (never online since boot) is left out.
    pub fn open(tracefs: &Tracefs, layout: PageLayout) -> Result<Drain, Error> {
        let mut lanes = Vec::new();
        for cpu in tracefs.cpus()? {
            let path = tracefs.path(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
            match File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&path) {
                Ok(pipe) => lanes.push(Lane { pipe, count: LaneCount { cpu, ..LaneCount::default() } }),
                Err(e) if matches!(e.raw_os_error(), Some(libc::ENODEV | libc::ENXIO)) => {}
                Err(e) => return Err(Error::knob(&path, "open", e)),
            }
        }
        let buffer = vec![0u8; BATCH + ALIGN];
        let start = buffer.as_ptr().align_offset(ALIGN).min(ALIGN);
        Ok(Drain { lanes, layout, buffer, start })
    }

    /// Hands on what CPU number `index` of the list has. Returns the bytes moved.
    pub fn lane(&mut self, index: usize, upto: Upto, to: &mut dyn Output) -> Result<u64, Error> {
        let Drain { lanes, layout, buffer, start } = self;
        let Some(lane) = lanes.get_mut(index) else { return Ok(0) };
        let buffer = &mut buffer[*start..*start + BATCH];
        let page_size = layout.size as usize;
        let mut filled = 0;
        let mut moved = 0;
        loop {
            let page = &mut buffer[filled..filled + page_size];
            let used = match lane.read_page(page, layout) {
                Ok(used) => used,
                Err(e) => {
                    return Err(Error::knob(
                        format!("per_cpu/cpu{}/trace_pipe_raw", lane.count.cpu).as_ref(),
                        "read",
                        e,
                    ));
                }
            };
            if used.is_some() {
                filled += page_size;
            }
            let last = match used {
                None => true,
                Some(used) => match upto {
                    Upto::HalfFullPage => used < page_size / 2,
                    Upto::Bytes(most) => moved + filled as u64 >= most,
                    Upto::End => false,
                },
            };
            if filled > 0 && (last || filled + page_size > buffer.len()) {
                to.pages(lane.count.cpu, &buffer[..filled])?;
                lane.count.bytes += filled as u64;
                moved += filled as u64;
                filled = 0;
            }
            if last {
                return Ok(moved);
            }
        }
    }
}

impl Lane {
    /// Reads one page; returns the bytes of events in it, `None` when there is none now.
    fn read_page(&mut self, page: &mut [u8], layout: &PageLayout) -> io::Result<Option<usize>> {
        let len = loop {
            match self.pipe.read(page) {
                Ok(len) => break len,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // Nothing there now; the kernel is short of pages for a moment; the CPU is offline.
                Err(e)
                    if matches!(
                        e.raw_os_error(),
                        Some(libc::EAGAIN | libc::ENOMEM | libc::EBUSY | libc::ENODEV)
                    ) =>
                {
                    return Ok(None);
                }
                Err(e) => return Err(e),
            }
        };
        if len == 0 {
            return Ok(None);
        }
        page[len..].fill(0);
        // The buffer holds a whole page, so its header is never cut.
        let Ok(page) = layout.page(page) else { return Ok(Some(0)) };
        if let Some(lost) = page.lost {
            self.count.gaps += 1;
            self.count.missed += if let LostEvents::Count(count) = lost { count } else { 0 };
        }
        Ok(Some(page.data.len()))
    }
}
