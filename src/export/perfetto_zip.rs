//! Writes a zip for Perfetto: the recording as one trace, each method trace as an unchanged file, and a
//! manifest.
//!
//! The manifest relates the clocks of the files, so that Perfetto's own reader of method traces places the
//! methods at the right time. Perfetto's docs/reference/perfetto-manifest.md defines the manifest. Perfetto's
//! zip reader (src/trace_processor/util/zip_reader.cc) accepts version 2.0 with ASCII names, and sizes in
//! front of stored data.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value as Json, json};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::NamedOut;
use super::perfetto::PerfettoWriter;
use crate::formats::input::Input;
use crate::formats::{FormatId, Head, Sink, SinkAdapter, art_method, has_format};
use crate::timeline::{
    DataCounts, DataKind, Edge, InputSummary, MergeSummary, MethodId, MethodName, MethodThread,
    TimelineAdapter, TimelineSink,
};

/// The name of the recording in the zip.
const RECORDING: &str = "recording.pftrace";
/// A manifest can name one clock for all method traces. So their clock offsets may differ by this much at
/// most.
const MAX_OFFSET_DIFFERENCE_NS: u64 = 100_000;

/// Checks whether a zip can be made of `inputs`, and returns the reason if not.
pub(super) fn check(inputs: &[Input]) -> Result<(), &'static str> {
    if inputs.iter().any(|input| art_method::is_always_on(input)) {
        return Err(
            "Perfetto does not read the files of ART's always-on tracer: write one file (-o OUT.pftrace)",
        );
    }
    let methods = inputs.iter().filter(|input| has_format(input, FormatId::MethodTrace)).count();
    if methods == 0 || methods == inputs.len() {
        return Err(
            "a zip for Perfetto relates method traces to a recording: give it both, or write one file \
             (-o OUT.pftrace)",
        );
    }
    Ok(())
}

/// Makes the writer, which writes to `out` and includes the method traces among `inputs`.
///
/// # Errors
/// Errors of writing to `out`.
pub(super) fn create(out: NamedOut<File>, inputs: &[Input]) -> io::Result<Box<dyn TimelineSink + '_>> {
    let abandoned = Arc::new(AtomicBool::new(false));
    let file = ZipFile::new(out, Arc::clone(&abandoned));
    let mut zip = SharedZip(Arc::new(Mutex::new(Some(ZipWriter::new(file)))));
    zip.start(RECORDING)?;
    let recording = PerfettoWriter::new(Box::new(zip.clone()));
    Ok(Box::new(PerfettoZip { recording, zip, inputs, methods_of_recordings: 0, abandoned }))
}

struct PerfettoZip<'i> {
    recording: PerfettoWriter<'static>,
    zip: SharedZip,
    inputs: &'i [Input],
    /// Methods that are on tracks of a recording, which the zip does not hold.
    methods_of_recordings: u64,
    /// See [`ZipFile`].
    abandoned: Arc<AtomicBool>,
}

impl Drop for PerfettoZip<'_> {
    fn drop(&mut self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }
}

/// The file of a zip. After an error, or if the zip is not finished, writes are ignored, and the
/// position is the file's end: a dropped `ZipWriter` still writes a directory, prints an error of its own if
/// that fails, and asserts that the last member does not end before it begins, which an error can lead to.
struct ZipFile<W> {
    out: W,
    abandoned: Arc<AtomicBool>,
    position: u64,
    size: u64,
}

impl<W> ZipFile<W> {
    fn new(out: W, abandoned: Arc<AtomicBool>) -> ZipFile<W> {
        ZipFile { out, abandoned, position: 0, size: 0 }
    }

    fn unless_abandoned<T>(
        &mut self,
        otherwise: T,
        act: impl FnOnce(&mut W) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.abandoned.load(Ordering::Relaxed) {
            return Ok(otherwise);
        }
        act(&mut self.out).inspect_err(|_| self.abandoned.store(true, Ordering::Relaxed))
    }
}

impl<W: Write> Write for ZipFile<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.unless_abandoned(bytes.len(), |out| out.write(bytes))?;
        self.position += written as u64;
        self.size = self.size.max(self.position);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_abandoned((), |out| out.flush())
    }
}

impl<W: Seek> Seek for ZipFile<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(to) => to,
            SeekFrom::Current(distance) => self.position.saturating_add_signed(distance),
            SeekFrom::End(distance) => self.size.saturating_add_signed(distance),
        };
        self.position = self.unless_abandoned(self.size, |out| out.seek(SeekFrom::Start(to)))?;
        Ok(self.position)
    }
}

/// The zip, shared with the recording's writer. Bytes go into the member that was started last. `None` once
/// the zip is finished.
#[derive(Clone)]
struct SharedZip(Arc<Mutex<Option<FileWriter>>>);

type FileWriter = ZipWriter<ZipFile<NamedOut<File>>>;

impl SharedZip {
    fn lock(&self) -> MutexGuard<'_, Option<FileWriter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&mut self, name: &str) -> io::Result<()> {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        let mut zip = self.lock();
        zip.as_mut().ok_or(PerfettoZipError::Finished)?.start_file(name, options).map_err(io::Error::other)
    }
}

#[derive(Debug, thiserror::Error)]
enum PerfettoZipError {
    #[error("the zip is finished already")]
    Finished,
    #[error(
        "{0}: this method trace has another clock than the first one, and a manifest can name only one clock for all \
         method traces: write one file instead (-o OUT.pftrace)"
    )]
    ClocksDiffer(String),
}

impl From<PerfettoZipError> for io::Error {
    fn from(error: PerfettoZipError) -> io::Error {
        io::Error::other(error)
    }
}

impl Write for SharedZip {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().as_mut().ok_or(PerfettoZipError::Finished)?.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SinkAdapter for PerfettoZip<'_> {
    type Next = PerfettoWriter<'static>;

    fn next(&mut self) -> &mut PerfettoWriter<'static> {
        &mut self.recording
    }

    fn head(&mut self, head: &Head) -> io::Result<()> {
        let mut head = head.clone();
        // Perfetto assumes that the clock of every method trace is MONOTONIC, though a Dalvik trace has
        // REALTIME. So the manifest alone may relate MONOTONIC to the recording's clock.
        for snapshot in &mut head.snapshots.list {
            snapshot.monotonic = 0;
            snapshot.monotonic_raw = 0;
        }
        self.recording.head(&head)
    }
}

/// Methods are not converted: their files are copied into the zip.
impl TimelineAdapter for PerfettoZip<'_> {
    fn method(&mut self, _: MethodId, _: &MethodName<'_>) -> io::Result<()> {
        Ok(())
    }

    fn method_thread(&mut self, _: &MethodThread) -> io::Result<()> {
        Ok(())
    }

    fn edges(&mut self, _: u32, _: &[Edge]) -> io::Result<()> {
        Ok(())
    }

    fn not_written(&mut self) -> DataCounts {
        let mut counts = self.recording.not_written();
        counts.add(DataKind::Methods, self.methods_of_recordings);
        counts
    }

    fn finish(&mut self, summary: &MergeSummary) -> io::Result<()> {
        self.recording.finish(summary)?;
        let mut methods: Vec<(String, &InputSummary)> = Vec::new();
        for (input, part) in self.inputs.iter().zip(&summary.inputs) {
            if !has_format(input, FormatId::MethodTrace) {
                self.methods_of_recordings += part.method_edges / 2;
                continue;
            }
            let name = member_name(&input.name, methods.len());
            self.zip.start(&name)?;
            self.zip.write_all(input)?;
            methods.push((name, part));
        }
        self.zip.start("perfetto_manifest.json")?;
        serde_json::to_writer_pretty(&mut self.zip, &manifest(&methods)?)?;
        let zip = self.zip.lock().take().ok_or(PerfettoZipError::Finished)?;
        zip.finish().map_err(io::Error::other)?.flush()
    }
}

/// The name of method trace number `index` in the zip: ASCII letters, digits, `.`, `_` and `-` only.
fn member_name(path: &str, index: usize) -> String {
    let file = path.rsplit('/').next().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let file: String = file.trim_end_matches(".gz").trim_end_matches(".zst").chars().map(plain).collect();
    match file.trim_matches(['-', '.']) {
        "" => format!("{index}-methods.trace"),
        file => format!("{index}-{file}"),
    }
}

/// `perfetto_manifest.json`.
fn manifest(methods: &[(String, &InputSummary)]) -> io::Result<Json> {
    let mut files = vec![json!({ "path": RECORDING })];
    let mut attributes = serde_json::Map::new();
    for (path, input) in methods {
        let first = methods.first().map_or(0, |(_, first)| first.offset_ns);
        if input.offset_ns.abs_diff(first) > MAX_OFFSET_DIFFERENCE_NS {
            return Err(PerfettoZipError::ClocksDiffer(input.name.clone()).into());
        }
        // Where this file's clock reads T, the recording's clock reads T + offset_ns (Perfetto's
        // documentation).
        files.push(json!({
            "path": path,
            "clocks": {
                "clock": "MONOTONIC",
                "sync_to": { "file": RECORDING, "clock": "BOOTTIME" },
                "offset_ns": first,
            },
        }));
        let found = format!("{}, {}: {}", input.clock.name(), input.verdict.name(), input.why);
        attributes.insert(format!("tracebridge.{path}"), found.into());
    }
    Ok(json!({ "perfetto_manifest": {
        "version": 1,
        "trace_time": { "clock": "BOOTTIME" },
        "files": files,
        "attributes": attributes,
    }}))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// A full disk: the writes after `left` fail.
    struct Full {
        left: usize,
        out: Cursor<Vec<u8>>,
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.left = self.left.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
            self.out.write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for Full {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.out.seek(to)
        }
    }

    fn write_members(zip: &mut ZipWriter<ZipFile<Full>>) -> io::Result<()> {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        for name in ["a", "b", "c"] {
            zip.start_file(name, options)?;
            zip.write_all(name.as_bytes())?;
        }
        Ok(())
    }

    #[test]
    fn a_full_disk_is_an_error_at_any_write() {
        let mut failed = 0;
        for left in 0..1000 {
            let full = Full { left, out: Cursor::new(Vec::new()) };
            let abandoned = Arc::<AtomicBool>::default();
            let mut zip = ZipWriter::new(ZipFile::new(full, Arc::clone(&abandoned)));
            let written = write_members(&mut zip);
            abandoned.store(true, Ordering::Relaxed);
            match written {
                Err(_) => failed += 1,
                Ok(()) => break,
            }
        }
        assert!((4..1000).contains(&failed), "{failed} writes");
    }
}
