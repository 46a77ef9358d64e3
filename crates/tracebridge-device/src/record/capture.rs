//! Where a recording goes: the interface of its outputs, and the capture file while it is written, a
//! trace.dat v6 that is readable at every moment. The other output is a
//! [stream](super::stream_output::StreamOutput).
//!
//! The pages of each CPU go to a region of the file that belongs to that CPU alone. The regions are so far
//! apart that none can reach the next, which leaves holes in the file. The table in the head holds the
//! length of each CPU's data, and it is rewritten before each batch of pages. At the end
//! `fallocate(FALLOC_FL_COLLAPSE_RANGE)` removes the holes without moving data (ext4, f2fs, xfs). Where the
//! file system does not support that (tmpfs, FUSE), the data is copied to close the holes. So no data is
//! copied twice, and a SIGKILL at any moment loses no page that was written.
//!
//! With `--compress` the finished file is converted to a compressed trace.dat v7, which is renamed to the
//! capture's name when it is complete. Both files exist for a while, so the disk needs room for both. The
//! recorder does not compress while it records for two reasons. Compressing takes nine times the CPU time of
//! recording (160 MB/s on one CPU by the size-optimised binary on an x86-64 machine), which would disturb the
//! recorded system. And a v7 file whose writer was killed cannot be read.
//!
//! Pages are written past the page cache (O_DIRECT) where the file system supports it: filling the page cache
//! costs more CPU time than tracing does.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::libc;

use super::RecordError;
use crate::clock::Timestamp;
use crate::ids::Cpu;
use crate::output_file::{Readers, create_beside, dir_of};
use crate::trace_dat::{CpuData, DatHead, HeadParts, RecorderInfo, Settle, Slot, write_v7};

/// Where a recording goes, and the contents that it has beside the events.
#[derive(Debug, Clone)]
pub(crate) struct CaptureTarget {
    /// The capture's path; `-` is a stream of frames on stdout.
    pub(crate) path: PathBuf,
    /// Ends the recording when the capture holds this many bytes of events.
    pub(crate) max_bytes: Option<u64>,
    /// Whether the capture includes `/proc/kallsyms` (several MiB).
    pub(crate) kallsyms: bool,
    /// Whether every user may read the capture, rather than its owner alone.
    pub(crate) readable: bool,
    /// Whether the capture is compressed at the end. A stream is never compressed here: the receiver can do
    /// that.
    pub(crate) compress: bool,
}

impl CaptureTarget {
    /// Whether the recording is a stream on stdout rather than a file.
    pub(crate) fn is_stream(&self) -> bool {
        self.path == Path::new("-")
    }
}

/// Receives a recording: pages of ring buffer as they come, and the parts of the head that change.
pub(crate) trait RecordingOutput {
    /// Writes whole pages of the CPU with this id.
    fn pages(&mut self, cpu: Cpu, pages: &[u8]) -> Result<(), RecordError>;
    /// Says that [`RecordingOutput::round`] will follow the pages of each round. A file does not care.
    fn begin_live(&mut self) {}
    /// Tells that every event before this time of the recording's clock has been handed over. A file has
    /// no place for that.
    fn round(&mut self, _complete: Timestamp) -> Result<(), RecordError> {
        Ok(())
    }
    /// Completes what an earlier call has left undone with [`RecordError::Stalled`]: the reader of a stream
    /// takes nothing. Until this succeeds, nothing else may be written.
    fn resume(&mut self) -> Result<(), RecordError> {
        Ok(())
    }
    /// Ends the output here, because its reader takes nothing. Returns the CPU whose last pages were not
    /// taken.
    fn give_up(&mut self) -> Option<Cpu> {
        None
    }
    /// Overwrites a slot of the head and fills the rest of the slot with `padding`. Returns whether all of
    /// `text` fitted.
    fn patch(&mut self, slot: Slot, text: &[u8], padding: u8) -> Result<bool, RecordError>;
    /// Overwrites the recorder's own part of the head (clock snapshots, losses, processes).
    fn put_extra(&mut self, extra: &RecorderInfo) -> Result<(), RecordError>;
    /// The number of bytes of pages written so far.
    fn data_bytes(&self) -> u64;
    /// Completes the output. Optional work, such as compressing, is abandoned once `cancel` returns true.
    fn finish(
        self: Box<Self>,
        extra: RecorderInfo,
        cancel: &dyn Fn() -> bool,
    ) -> Result<FinishedOutput, RecordError>;
}

/// The state of an output after [`RecordingOutput::finish`].
#[derive(Debug)]
pub(crate) struct FinishedOutput {
    /// The total length, bytes.
    pub(crate) bytes: u64,
    pub(crate) state: FinalState,
    /// Why the output is not compressed although compression was asked for.
    pub(crate) not_compressed: Option<RecordError>,
}

/// The state of a finished capture on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinalState {
    /// The file has no holes.
    Compact,
    /// The file keeps its holes: the file system can neither collapse them nor hold a copy of the data.
    Sparse,
    /// Somebody deleted the file while it was written.
    Deleted,
    /// The reader of a stream took nothing more, so that its last frames are missing.
    Cut,
}

/// Alignment of regions and holes in the file, bytes: a multiple of every file system's block size and of the
/// alignment that O_DIRECT requires.
const REGION_ALIGN: u64 = 64 * 1024;

/// Bytes copied at a time where holes have to be closed by copying.
const COPY_BYTES: usize = 1 << 20;

/// A capture that is being written.
#[derive(Debug)]
pub(crate) struct CaptureFile {
    path: PathBuf,
    file: File,
    /// The same file opened with O_DIRECT; `None` where the file system does not support that.
    direct: Option<File>,
    /// One region per CPU of the table, and behind them one for the markers of rings.
    regions: Vec<CpuData>,
    /// How many of the regions the table has.
    shown: usize,
    /// The number of CPUs before the table, and that in the option CPUCOUNT. Both are a u32.
    cpu_counts: [Slot; 2],
    /// The bytes of the head behind the table.
    after_table: Vec<u8>,
    page_size: usize,
    /// Bytes from the start of one region to the start of the next.
    spacing: u64,
    /// Offset of the per-CPU table in the file, bytes.
    table_at: u64,
    extra: Slot,
    /// See [`CaptureTarget::readable`].
    readable: bool,
    /// The sections of the head; set if the capture is to be compressed at the end.
    parts: Option<HeadParts>,
}

/// A signal asked for a quick end while the capture was being compressed.
#[derive(Debug, thiserror::Error)]
#[error("another signal came")]
struct CompressionInterrupted;

/// Creates a file beside the capture, under a name that nobody can predict, for its owner alone unless
/// everybody may read it. The umask plays no part: the capture holds what other users' programs do.
fn create_part(path: &Path, readable: bool) -> io::Result<(File, PathBuf)> {
    let (file, part) = create_beside(path, Readers::Owner)?;
    let mode = if readable { 0o644 } else { 0o600 };
    if let Err(error) = file.set_permissions(fs::Permissions::from_mode(mode)) {
        let _ = fs::remove_file(&part);
        return Err(error);
    }
    Ok((file, part))
}

fn align_up(n: u64) -> u64 {
    n.div_ceil(REGION_ALIGN) * REGION_ALIGN
}

/// Free bytes on the file system that holds `path` or, if `path` does not exist, the directory of `path`.
fn free_bytes(path: &Path) -> Option<u64> {
    let statvfs = nix::sys::statvfs::statvfs;
    let stat = statvfs(path).or_else(|_| statvfs(dir_of(path))).ok()?;
    #[allow(clippy::unnecessary_cast)] // 32 bits wide on 32-bit targets
    Some(stat.blocks_available() as u64 * stat.fragment_size() as u64)
}

impl CaptureFile {
    /// Creates the capture with this head, whose per-CPU table is filled in here. The file appears under its
    /// name once the head is complete; until then an older file of that name stays as it was.
    ///
    /// `max_cpu_bytes` limits the data of each CPU; without it the free space of the file system is the
    /// limit. `cpu_count` is the option CPUCOUNT. The table gets one more entry, number `cpus`, with the
    /// first pages for it: trace-cmd would complain about an entry without pages.
    pub(crate) fn create(
        target: &CaptureTarget,
        mut header: DatHead,
        cpus: usize,
        cpu_count: Slot,
        page_size: usize,
        max_cpu_bytes: Option<u64>,
    ) -> Result<CaptureFile, RecordError> {
        let CaptureTarget { path, readable, .. } = target;
        let failed = |source| output_error(path, source);
        if fs::metadata(path).is_ok_and(|m| !m.is_file()) {
            return Err(RecordError::NotRegularFile(path.to_owned()));
        }
        let (file, part) = create_part(path, *readable).map_err(failed)?;
        // No CPU can write more than the file system has room for, so no region reaches the next.
        let free = free_bytes(&part).unwrap_or(1 << 40);
        let spacing = align_up(max_cpu_bytes.unwrap_or(free).min(free).max(REGION_ALIGN)) + REGION_ALIGN;
        let table_end = header.table_at as usize + cpus * CpuData::ENTRY_LEN;
        let after_table = header.bytes.get(table_end..).unwrap_or_default().to_vec();
        header.bytes.extend([0; CpuData::ENTRY_LEN]);
        let first = align_up(header.bytes.len() as u64);
        let regions: Vec<CpuData> =
            (0..=cpus as u64).map(|n| CpuData { offset: first + n * spacing, size: 0 }).collect();
        let table = header.bytes.get_mut(header.table_at as usize..).unwrap_or_default();
        for (entry, region) in table.chunks_exact_mut(CpuData::ENTRY_LEN).zip(&regions[..cpus]) {
            entry.copy_from_slice(&region.entry());
        }
        let write = file.write_all_at(&header.bytes, 0).and_then(|()| file.set_len(first));
        write.and_then(|()| fs::rename(&part, path)).map_err(|e| {
            let _ = fs::remove_file(&part);
            failed(e)
        })?;
        // The file is opened again through its descriptor: its name may be another file's by now.
        let own = format!("/proc/self/fd/{}", file.as_raw_fd());
        let direct = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(own).ok();
        Ok(CaptureFile {
            path: path.to_owned(),
            file,
            direct,
            regions,
            shown: cpus,
            cpu_counts: [cpu_count, header.cpus],
            after_table,
            page_size,
            spacing,
            table_at: header.table_at,
            extra: header.extra,
            readable: *readable,
            parts: None,
        })
    }

    /// Requests that [`RecordingOutput::finish`] compresses the file. `parts` are the sections of its head.
    pub(crate) fn compress_at_end(&mut self, parts: HeadParts) {
        self.parts = Some(parts);
    }

    /// Adds the entry for the markers of rings to the table. What follows the table moves into the room
    /// behind it first, so that a kill between the writes leaves a table that is sound without the entry.
    fn add_entry(&mut self) -> io::Result<()> {
        let entries = self.regions.iter().flat_map(|region| region.entry());
        let table: Vec<u8> = entries.chain(self.after_table.iter().copied()).collect();
        self.file.write_all_at(&table, self.table_at)?;
        self.shown = self.regions.len();
        let count = (self.shown as u32).to_ne_bytes();
        self.cpu_counts.iter().try_for_each(|slot| self.file.write_all_at(&count, slot.at))
    }

    fn put_entry(&self, cpu: usize) -> io::Result<()> {
        if cpu >= self.shown {
            return Ok(());
        }
        let at = self.table_at + (cpu * CpuData::ENTRY_LEN) as u64;
        self.file.write_all_at(&self.regions[cpu].entry(), at)
    }

    /// Appends whole pages to the data of a CPU. `cpu` is the CPU's index in the table. On a full file system
    /// the pages that still fitted are kept.
    fn append(&mut self, cpu: usize, pages: &[u8]) -> Result<(), RecordError> {
        let Some(region) = self.regions.get(cpu).copied() else {
            let what = format!("pages of CPU {cpu}, which the head has no entry for");
            return Err(RecordError::Format { path: self.path.clone(), what });
        };
        if region.size + pages.len() as u64 > self.spacing - REGION_ALIGN {
            return Err(output_error(&self.path, io::Error::from(io::ErrorKind::StorageFull)));
        }
        if cpu >= self.shown {
            self.add_entry().map_err(|error| output_error(&self.path, error))?;
        }
        // The table is written first. A kill between the two writes then leaves zero pages at the end, which
        // hold no events; in the opposite order it would leave pages that the table does not cover.
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
                // The file system requires a larger alignment, or only its open accepts O_DIRECT: use the
                // page cache.
                Err(e) if e.raw_os_error() == Some(libc::EINVAL) && self.direct.is_some() => {
                    self.direct = None;
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn is_deleted(&self) -> bool {
        self.file.metadata().is_ok_and(|m| m.nlink() == 0)
    }

    /// Writes the compressed file and renames it to the capture's name. Returns its length, bytes.
    fn compress(&mut self, parts: &HeadParts, cancel: &dyn Fn() -> bool) -> io::Result<u64> {
        let mut head = vec![0; self.regions.first().map_or(0, |r| r.offset) as usize];
        let len = self.file.read_at(&mut head, 0)?;
        head.truncate(len);
        let sizes: Vec<u64> = self.regions[..self.shown].iter().map(|r| r.size).collect();
        let mut read = |cpu: usize, from: u64, pages: &mut [u8]| {
            if cancel() {
                return Err(io::Error::other(CompressionInterrupted));
            }
            let offset = self.regions.get(cpu).map_or(0, |r| r.offset);
            self.file.read_exact_at(pages, offset + from)
        };
        let (file, part) = create_part(&self.path, self.readable)?;
        let write = write_v7(BufWriter::new(file), &head, parts, &sizes, &mut read)
            .and_then(|len| fs::rename(&part, &self.path).map(|()| len));
        if write.is_err() {
            let _ = fs::remove_file(&part);
        }
        write
    }

    /// Removes the holes from the file and marks the capture complete. Returns the file's length, bytes.
    fn close(mut self, mut extra: RecorderInfo) -> Result<(u64, FinalState), RecordError> {
        extra.complete = true;
        let path = self.path.clone();
        let failed = |e| output_error(&path, e);
        let end = |r: &CpuData| r.offset + align_up(r.size);
        let last = self.regions.iter().rposition(|r| r.size > 0);
        let len = last.map_or(self.regions.first().map_or(0, |r| r.offset), |n| {
            self.regions[n].offset + self.regions[n].size
        });
        // Regions behind the last page hold no data: only their table entries are left to set.
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
        let state = match self.collapse(&settle) {
            Ok(()) => FinalState::Compact,
            Err(Errno::EOPNOTSUPP | Errno::EINVAL | Errno::ENOSYS | Errno::EPERM) => {
                // The first call would have failed, so no data has moved: withdraw the plan from the head.
                self.put_extra(&extra)?;
                self.copy_down().map_err(failed)?
            }
            Err(errno) => return Err(failed(errno.into())),
        };
        self.put_extra(&extra)?;
        let meta = self.file.metadata().map_err(failed)?;
        let state = if meta.nlink() == 0 { FinalState::Deleted } else { state };
        Ok((meta.len(), state))
    }

    /// Removes each hole with `fallocate(FALLOC_FL_COLLAPSE_RANGE)` and sets the regions' new offsets.
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

    /// Closes the holes by copying: moves each CPU's data to the end of the data before it, updates the
    /// table, then frees the blocks that the data has left.
    fn copy_down(&mut self) -> io::Result<FinalState> {
        let mut buffer = vec![0; COPY_BYTES];
        let mut to = self.regions.first().map_or(0, |r| r.offset);
        for n in 0..self.regions.len() {
            let from = self.regions[n];
            if from.offset > to && from.size > 0 {
                // Source and target never overlap: the regions lie further apart than any of them is long.
                let mut done = 0;
                while done < from.size {
                    let len = (from.size - done).min(COPY_BYTES as u64) as usize;
                    self.file.read_exact_at(&mut buffer[..len], from.offset + done)?;
                    match self.file.write_all_at(&buffer[..len], to + done) {
                        Err(e) if e.kind() == io::ErrorKind::StorageFull => return Ok(FinalState::Sparse),
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
            to += align_up(self.regions[n].size);
        }
        let end = self.regions.iter().map(|r| r.offset + r.size).max().unwrap_or(to);
        self.file.set_len(end)?;
        Ok(FinalState::Compact)
    }
}

impl RecordingOutput for CaptureFile {
    fn pages(&mut self, cpu: Cpu, pages: &[u8]) -> Result<(), RecordError> {
        self.append(cpu.index(), pages)
    }

    fn patch(&mut self, slot: Slot, text: &[u8], padding: u8) -> Result<bool, RecordError> {
        let (bytes, fits) = slot.fit(text, padding);
        self.file.write_all_at(&bytes, slot.at).map_err(|e| output_error(&self.path, e))?;
        Ok(fits)
    }

    fn put_extra(&mut self, extra: &RecorderInfo) -> Result<(), RecordError> {
        let text = extra.to_json(self.extra.len);
        self.patch(self.extra, &text, b' ').map(drop)
    }

    fn data_bytes(&self) -> u64 {
        self.regions.iter().map(|r| r.size).sum()
    }

    fn finish(
        mut self: Box<Self>,
        extra: RecorderInfo,
        cancel: &dyn Fn() -> bool,
    ) -> Result<FinishedOutput, RecordError> {
        let mut not_compressed = None;
        if let Some(parts) = self.parts.take()
            && !self.is_deleted()
        {
            // The file is complete now, with or without holes: a kill from here on leaves a good capture.
            self.put_extra(&RecorderInfo { complete: true, ..extra.clone() })?;
            match self.compress(&parts, cancel) {
                Ok(bytes) => {
                    return Ok(FinishedOutput { bytes, state: FinalState::Compact, not_compressed });
                }
                Err(error) => not_compressed = Some(output_error(&self.path, error)),
            }
        }
        let (bytes, state) = self.close(extra)?;
        Ok(FinishedOutput { bytes, state, not_compressed })
    }
}

/// A failure to write the capture, with the free space if the file system is full.
fn output_error(path: &Path, source: io::Error) -> RecordError {
    let note = match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            format!(": {} bytes free there", free_bytes(path).unwrap_or(0))
        }
        _ => String::new(),
    };
    RecordError::Output { path: path.to_owned(), source, note }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace_dat::{Metadata, option};

    const PAGE: usize = 4096;

    /// A capture of two CPUs in its own directory, and its path. Without a limit it has holes as large as the
    /// disk, and cannot be read whole.
    fn capture(dir: &Path, max_cpu_bytes: Option<u64>) -> (CaptureFile, PathBuf) {
        let path = dir.join("x.dat");
        let target = CaptureTarget {
            path: path.clone(),
            max_bytes: None,
            kallsyms: false,
            readable: false,
            compress: false,
        };
        let metadata = Metadata {
            long_size: 8,
            page_size: PAGE as u32,
            options: vec![(option::CPUCOUNT, 2u32.to_ne_bytes().to_vec())],
            extra: vec![b' '; 4096],
            ..Metadata::default()
        };
        let head = metadata.v6(&[CpuData::default(); 2]);
        let cpu_count = head.options[0];
        (CaptureFile::create(&target, head, 2, cpu_count, PAGE, max_cpu_bytes).unwrap(), path)
    }

    /// The pages of a CPU that the table of the file leads to.
    fn pages_in(file: &[u8], capture: &CaptureFile, cpu: usize) -> Vec<u8> {
        let entry = &file[capture.table_at as usize + cpu * CpuData::ENTRY_LEN..];
        let number = |at: usize| u64::from_ne_bytes(entry[at..at + 8].try_into().unwrap()) as usize;
        file[number(0)..number(0) + number(8)].to_vec()
    }

    fn page(byte: u8) -> Vec<u8> {
        vec![byte; PAGE]
    }

    #[test]
    fn the_file_holds_all_pages_after_each_batch_and_no_holes_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let (mut capture, path) = capture(dir.path(), Some(1));
        capture.pages(Cpu(1), &page(1)).unwrap();
        capture.pages(Cpu(0), &[page(2), page(3)].concat()).unwrap();
        capture.pages(Cpu(1), &page(4)).unwrap();
        let file = fs::read(&path).unwrap();
        assert_eq!(pages_in(&file, &capture, 0), [page(2), page(3)].concat());
        assert_eq!(pages_in(&file, &capture, 1), [page(1), page(4)].concat());
        assert_eq!(capture.data_bytes(), 4 * PAGE as u64);
        let table_at = capture.table_at as usize;
        let finished = Box::new(capture).finish(RecorderInfo::default(), &|| false).unwrap();
        assert_eq!(
            (finished.state, finished.bytes),
            (FinalState::Compact, fs::metadata(&path).unwrap().len())
        );
        let file = fs::read(&path).unwrap();
        // Each CPU begins at an aligned place behind the CPU before it.
        let offset = |cpu: usize| {
            let at = table_at + cpu * CpuData::ENTRY_LEN;
            u64::from_ne_bytes(file[at..at + 8].try_into().unwrap())
        };
        assert_eq!(offset(1), offset(0) + REGION_ALIGN);
        assert_eq!(file.len() as u64, offset(1) + 2 * PAGE as u64);
        assert_eq!(&file[offset(1) as usize..][..PAGE], page(1));
    }

    #[test]
    fn the_entry_for_rings_comes_with_their_first_page_and_moves_what_follows_the_table() {
        let dir = tempfile::tempdir().unwrap();
        let (mut capture, path) = capture(dir.path(), Some(1));
        capture.pages(Cpu(0), &page(1)).unwrap();
        let counts = |capture: &CaptureFile| {
            let file = fs::read(&path).unwrap();
            let count = |slot: Slot| u32::from_ne_bytes(file[slot.at as usize..][..4].try_into().unwrap());
            capture.cpu_counts.map(count)
        };
        assert_eq!((counts(&capture), capture.shown), ([2, 2], 2));
        let after_table = capture.after_table.clone();
        assert!(!after_table.is_empty(), "the clock's name");
        capture.pages(Cpu(2), &page(7)).unwrap();
        assert_eq!((counts(&capture), capture.shown), ([3, 3], 3));
        let file = fs::read(&path).unwrap();
        assert_eq!(pages_in(&file, &capture, 2), page(7));
        let behind = capture.table_at as usize + 3 * CpuData::ENTRY_LEN;
        assert_eq!(&file[behind..][..after_table.len()], after_table);
    }

    #[test]
    fn pages_that_have_no_room_or_no_entry_are_refused_and_the_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        // The room of a CPU is rounded up to the alignment of regions.
        let (mut capture, path) = capture(dir.path(), Some(1));
        let room = vec![5; REGION_ALIGN as usize];
        capture.pages(Cpu(0), &room).unwrap();
        let full = capture.pages(Cpu(0), &page(6)).unwrap_err();
        assert!(
            matches!(&full, RecordError::Output { source, note, .. }
            if source.kind() == io::ErrorKind::StorageFull && note.contains("bytes free there")),
            "{full}"
        );
        let unknown = capture.pages(Cpu(3), &page(6)).unwrap_err();
        assert!(unknown.to_string().contains("CPU 3"), "{unknown}");
        assert_eq!(pages_in(&fs::read(&path).unwrap(), &capture, 0), room);
    }

    #[test]
    fn a_capture_that_was_deleted_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let (mut capture, path) = capture(dir.path(), None);
        capture.pages(Cpu(0), &page(1)).unwrap();
        fs::remove_file(&path).unwrap();
        let finished = Box::new(capture).finish(RecorderInfo::default(), &|| false).unwrap();
        assert_eq!(finished.state, FinalState::Deleted);
        assert!(!path.exists());
    }

    #[test]
    fn holes_are_closed_by_copying_where_they_cannot_be_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (mut capture, path) = capture(dir.path(), Some(1 << 20));
        capture.pages(Cpu(1), &[page(1), page(2)].concat()).unwrap();
        capture.pages(Cpu(2), &page(3)).unwrap();
        assert_eq!(capture.copy_down().unwrap(), FinalState::Compact);
        let file = fs::read(&path).unwrap();
        assert_eq!(pages_in(&file, &capture, 0), b"");
        assert_eq!(pages_in(&file, &capture, 1), [page(1), page(2)].concat());
        assert_eq!(pages_in(&file, &capture, 2), page(3));
        let first = capture.regions[0].offset;
        assert_eq!(file.len() as u64, first + REGION_ALIGN + PAGE as u64);
    }

    #[test]
    fn a_capture_replaces_a_file_and_no_device_and_is_its_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("x.dat"), "older").unwrap();
        let (_capture, path) = capture(dir.path(), None);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_ne!(fs::read(&path).unwrap(), b"older");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no part is left");
        let target = CaptureTarget {
            path: dir.path().to_owned(),
            max_bytes: None,
            kallsyms: false,
            readable: true,
            compress: false,
        };
        let head = Metadata { long_size: 8, page_size: PAGE as u32, ..Metadata::default() }.v6(&[]);
        let refused = CaptureFile::create(&target, head, 0, Slot::default(), PAGE, None).unwrap_err();
        assert!(matches!(refused, RecordError::NotRegularFile(_)), "{refused}");
    }
}
