//! The capture on disk while it is written: one trace.dat v6 that reads at every moment.
//!
//! Each CPU's pages go to a region of their own, far enough apart that none can reach the next (the file has holes);
//! the table in the head says how long each is, and is written again before each batch of pages. At the end the holes
//! are taken out by `fallocate(FALLOC_FL_COLLAPSE_RANGE)`, which moves no data (ext4, f2fs, xfs), else the data is
//! copied down (tmpfs, FUSE). So nothing is copied twice, and a SIGKILL at any moment loses no page that was written.
//!
//! With `--compress` that file is turned into a compressed trace.dat v7 at the end, which takes its name when it is
//! complete: compressing costs nine times the CPU time of recording (160 MB/s of one CPU by the size-optimised binary on
//! an x86-64 machine; the recorded system would feel it), and a kill would leave a v7 file that says nothing. So there has to
//! be room for both for a while.
//!
//! Pages go past the page cache (O_DIRECT) where the file system takes that: filling the cache costs more than tracing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::libc;

use super::Error;
use super::output::{Finished, Output};
use crate::trace_dat::{CpuData, DatHead, HeadParts, RecorderInfo, Settle, Slot, write_v7};

/// Regions and holes start at multiples of this, bytes: of any file system's block and of what O_DIRECT asks for.
pub const ALIGN: u64 = 64 * 1024;

/// Bytes moved at a time where holes have to be closed by copying.
const COPY: usize = 1 << 20;

/// A capture being written.
#[derive(Debug)]
pub struct Capture {
    path: PathBuf,
    file: File,
    /// The same file with O_DIRECT; `None` where the file system does not take it.
    direct: Option<File>,
    regions: Vec<CpuData>,
    page_size: usize,
    /// Bytes from one region's start to the next.
    spacing: u64,
    table_at: u64,
    extra: Slot,
    /// What a compressed file is made of, where one is wanted.
    parts: Option<HeadParts>,
}

/// How a finished capture was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// No holes are left.
    Compact,
    /// The holes are left, since the file system would not take them out and has no room to copy.
    Sparse,
    /// The file has no name any more: somebody deleted it.
    Gone,
}

/// What a file is called until it is fit for its name.
fn part_of(path: &Path) -> PathBuf {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    PathBuf::from(part)
}

fn up(n: u64) -> u64 {
    n.div_ceil(ALIGN) * ALIGN
}

/// Free bytes of the file system that holds `path` (its directory, where it does not exist).
pub fn free_bytes(path: &Path) -> Option<u64> {
    let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let stat = nix::sys::statvfs::statvfs(path).or_else(|_| nix::sys::statvfs::statvfs(dir)).ok()?;
    #[allow(clippy::unnecessary_cast)] // 32 bits wide on 32-bit targets
    Some(stat.blocks_available() as u64 * stat.fragment_size() as u64)
}

impl Capture {
    /// Makes the file, with this head (its table is filled in here). The name appears once the head is in it: before
    /// that moment a file of that name stays as it was.
    ///
    /// `most` is the most bytes one CPU's data may take; without it, the free space of the file system.
    pub fn create(
        path: &Path,
        mut header: DatHead,
        cpus: usize,
        page_size: usize,
        most: Option<u64>,
    ) -> Result<Capture, Error> {
        let failed = |source| output_error(path, source);
        let regular = fs::metadata(path).map_or(true, |m| m.is_file());
        if !regular {
            let what = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
            return Err(Error::output(path, what));
        }
        let part = part_of(path);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&part)
            .map_err(failed)?;
        // Room that the file system does not have cannot be filled: no region reaches the next.
        let free = free_bytes(&part).unwrap_or(1 << 40);
        let spacing = up(most.unwrap_or(free).min(free).max(ALIGN)) + ALIGN;
        let first = up(header.bytes.len() as u64);
        let regions: Vec<CpuData> =
            (0..cpus as u64).map(|n| CpuData { offset: first + n * spacing, size: 0 }).collect();
        let table = header.bytes.get_mut(header.table_at as usize..).unwrap_or_default();
        for (entry, region) in table.chunks_exact_mut(CpuData::ENTRY_LEN).zip(&regions) {
            entry.copy_from_slice(&region.entry());
        }
        let write = file.write_all_at(&header.bytes, 0).and_then(|()| file.set_len(first));
        write.and_then(|()| fs::rename(&part, path)).map_err(|e| {
            let _ = fs::remove_file(&part);
            failed(e)
        })?;
        let direct = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(path).ok();
        Ok(Capture {
            path: path.to_owned(),
            file,
            direct,
            regions,
            page_size,
            spacing,
            table_at: header.table_at,
            extra: header.extra,
            parts: None,
        })
    }

    /// Has the file compressed at the end, out of these parts of its head.
    pub fn compress_at_end(&mut self, parts: HeadParts) {
        self.parts = Some(parts);
    }

    fn put_entry(&self, cpu: usize) -> io::Result<()> {
        let at = self.table_at + (cpu * CpuData::ENTRY_LEN) as u64;
        self.file.write_all_at(&self.regions[cpu].entry(), at)
    }

    /// Appends whole pages to the data of a CPU, which is its number in the table. On a full file system what fitted
    /// is kept.
    fn append(&mut self, cpu: usize, pages: &[u8]) -> Result<(), Error> {
        let Some(region) = self.regions.get(cpu).copied() else {
            let what = format!("pages of CPU {cpu}, which the head does not know");
            return Err(Error::Format { path: self.path.clone(), what });
        };
        if region.size + pages.len() as u64 > self.spacing - ALIGN {
            return Err(output_error(&self.path, io::Error::from(io::ErrorKind::StorageFull)));
        }
        // The table first: a kill between the two leaves zero pages at the end, which hold no events; the other
        // way round it would leave pages that nobody knows of.
        self.regions[cpu].size += pages.len() as u64;
        let mut written = 0;
        let result = self
            .put_entry(cpu)
            .and_then(|()| self.write_pages(pages, region.offset + region.size, &mut written));
        result.map_err(|e| {
            self.regions[cpu].size = region.size + (written - written % self.page_size) as u64;
            let _ = self.put_entry(cpu);
            output_error(&self.path, e)
        })
    }

    fn write_pages(&mut self, pages: &[u8], at: u64, written: &mut usize) -> io::Result<()> {
        while *written < pages.len() {
            let file = self.direct.as_ref().unwrap_or(&self.file);
            match file.write_at(&pages[*written..], at + *written as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => *written += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // Alignment not to its liking, or O_DIRECT only accepted by open: the cache then.
                Err(e) if e.raw_os_error() == Some(libc::EINVAL) && self.direct.is_some() => {
                    self.direct = None
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn is_deleted(&self) -> bool {
        self.file.metadata().is_ok_and(|m| m.nlink() == 0)
    }

    /// Writes the compressed file and gives it this one's name. Returns its length, bytes.
    fn pack(&mut self, parts: &HeadParts, hurry: &dyn Fn() -> bool) -> io::Result<u64> {
        let mut head = vec![0; self.regions.first().map_or(0, |r| r.offset) as usize];
        let len = self.file.read_at(&mut head, 0)?;
        head.truncate(len);
        let sizes: Vec<u64> = self.regions.iter().map(|r| r.size).collect();
        let mut read = |cpu: usize, from: u64, pages: &mut [u8]| {
            if hurry() {
                return Err(io::Error::other("another signal came"));
            }
            let offset = self.regions.get(cpu).map_or(0, |r| r.offset);
            self.file.read_exact_at(pages, offset + from)
        };
        let part = part_of(&self.path);
        let write = File::create(&part)
            .and_then(|file| write_v7(BufWriter::new(file), &head, parts, &sizes, &mut read))
            .and_then(|len| fs::rename(&part, &self.path).map(|()| len));
        if write.is_err() {
            let _ = fs::remove_file(&part);
        }
        write
    }

    /// Takes the holes out of the file and marks it complete.
    fn close(mut self, mut extra: RecorderInfo) -> Result<(u64, Settled), Error> {
        extra.complete = true;
        let path = self.path.clone();
        let failed = |e| output_error(&path, e);
        let end = |r: &CpuData| r.offset + up(r.size);
        let last = self.regions.iter().rposition(|r| r.size > 0);
        let len = last.map_or(self.regions.first().map_or(0, |r| r.offset), |n| {
            self.regions[n].offset + self.regions[n].size
        });
        // The regions behind the last page are nothing but table entries.
        for region in self.regions.iter_mut().skip(last.map_or(0, |n| n + 1)) {
            region.offset = len;
        }
        (0..self.regions.len()).try_for_each(|n| self.put_entry(n)).map_err(failed)?;
        self.file.set_len(len).map_err(failed)?;
        let holes: Vec<(u64, u64)> = self.regions[..last.map_or(0, |n| n + 1)]
            .windows(2)
            .map(|pair| (end(&pair[0]), pair[1].offset - end(&pair[0])))
            .filter(|(_, len)| *len > 0)
            .rev()
            .collect();
        let offsets = self.regions.iter().map(|r| r.offset).collect();
        extra.settle = Some(Settle { file_len: len, holes, offsets });
        self.put_extra(&extra)?;
        let settle = extra.settle.take().unwrap_or_default();
        let settled = match self.collapse(&settle) {
            Ok(()) => Settled::Compact,
            Err(Errno::EOPNOTSUPP | Errno::EINVAL | Errno::ENOSYS | Errno::EPERM) => {
                // Nothing was moved yet (the first one would have failed): the plan is void.
                self.put_extra(&extra)?;
                self.copy_down().map_err(failed)?
            }
            Err(errno) => return Err(failed(errno.into())),
        };
        self.put_extra(&extra)?;
        let meta = self.file.metadata().map_err(failed)?;
        let settled = if meta.nlink() == 0 { Settled::Gone } else { settled };
        Ok((meta.len(), settled))
    }

    fn collapse(&mut self, settle: &Settle) -> Result<(), Errno> {
        let mut len = settle.file_len;
        for (at, hole) in &settle.holes {
            fallocate(&self.file, FallocateFlags::FALLOC_FL_COLLAPSE_RANGE, *at as i64, *hole as i64)?;
            len -= hole;
        }
        for (n, region) in self.regions.iter_mut().enumerate() {
            region.offset = settle.offset(n, len).unwrap_or(region.offset);
        }
        (0..self.regions.len())
            .try_for_each(|n| self.put_entry(n))
            .map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(libc::EIO)))
    }

    /// Copies each CPU's data down behind the one before it, tells the table, then gives the old place's blocks back.
    fn copy_down(&mut self) -> io::Result<Settled> {
        let mut buffer = vec![0; COPY];
        let mut to = self.regions.first().map_or(0, |r| r.offset);
        for n in 0..self.regions.len() {
            let from = self.regions[n];
            if from.offset > to && from.size > 0 {
                // Source and target never overlap: the regions lie further apart than any is long.
                let mut done = 0;
                while done < from.size {
                    let len = (from.size - done).min(COPY as u64) as usize;
                    self.file.read_exact_at(&mut buffer[..len], from.offset + done)?;
                    match self.file.write_all_at(&buffer[..len], to + done) {
                        Err(e) if e.kind() == io::ErrorKind::StorageFull => return Ok(Settled::Sparse),
                        other => other?,
                    }
                    done += len as u64;
                }
                self.regions[n].offset = to;
                self.put_entry(n)?;
                let punch = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
                let _ = fallocate(&self.file, punch, from.offset as i64, from.size as i64);
            } else if from.size == 0 {
                self.regions[n].offset = to;
                self.put_entry(n)?;
            }
            to += up(self.regions[n].size);
        }
        let end = self.regions.iter().map(|r| r.offset + r.size).max().unwrap_or(to);
        self.file.set_len(end)?;
        Ok(Settled::Compact)
    }
}

impl Output for Capture {
    fn pages(&mut self, cpu: u32, pages: &[u8]) -> Result<(), Error> {
        self.append(cpu as usize, pages)
    }

    fn patch(&mut self, slot: Slot, text: &[u8], padding: u8) -> Result<bool, Error> {
        let (bytes, fits) = slot.fit(text, padding);
        self.file.write_all_at(&bytes, slot.at).map_err(|e| output_error(&self.path, e))?;
        Ok(fits)
    }

    fn put_extra(&mut self, extra: &RecorderInfo) -> Result<(), Error> {
        let text = extra.to_json(self.extra.len);
        self.patch(self.extra, &text, b' ').map(drop)
    }

    fn data_bytes(&self) -> u64 {
        self.regions.iter().map(|r| r.size).sum()
    }

    fn finish(mut self: Box<Self>, extra: RecorderInfo, hurry: &dyn Fn() -> bool) -> Result<Finished, Error> {
        let mut raw = None;
        if let Some(parts) = self.parts.take()
            && !self.is_deleted()
        {
            // It is whole now, holes or not: a kill from here on leaves a good file.
            self.put_extra(&RecorderInfo { complete: true, ..extra.clone() })?;
            match self.pack(&parts, hurry) {
                Ok(bytes) => return Ok(Finished { bytes, settled: Settled::Compact, raw }),
                Err(error) => raw = Some(output_error(&self.path, error).to_string()),
            }
        }
        let (bytes, settled) = self.close(extra)?;
        Ok(Finished { bytes, settled, raw })
    }
}

fn output_error(path: &Path, source: io::Error) -> Error {
    let note = match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            format!(": {} bytes free there", free_bytes(path).unwrap_or(0))
        }
        _ => String::new(),
    };
    Error::Output { path: path.to_owned(), source, note }
}
