//! A zip for Perfetto: the recording as one trace, each method trace as the file it is, and a manifest that
//! says how their clocks lie to each other, so that Perfetto's own reader of method traces puts them in the
//! right place.
//!
//! The manifest is defined by Perfetto's docs/reference/perfetto-manifest.md. Perfetto's reader of zips
//! (src/trace_processor/util/zip_reader.cc) takes version 2.0 with names in ASCII, and sizes before stored
//! data.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value as Json, json};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::perfetto::PerfettoWriter;
use crate::formats::input::Input;
use crate::formats::{Head, Order, Sink, SinkAdapter, art_method};
use crate::timeline::{
    Edge, InputSummary, MergeSummary, MethodId, MethodName, MethodThread, TimelineAdapter, TimelineSink,
};

/// The recording's name in the zip.
const RECORDING: &str = "recording.pftrace";
/// Method traces whose offsets differ by more cannot share the one clock that a manifest can name for them:
/// ns.
const SAME_OFFSET: u64 = 100_000;

/// Says why no zip can be made of `inputs`, if that is so.
pub(super) fn check(inputs: &[Input]) -> Result<(), &'static str> {
    let methods = inputs.iter().filter(|input| art_method::detect(input)).count();
    if methods == 0 || methods == inputs.len() {
        return Err(
            "a zip for Perfetto relates method traces to a recording: give it both, or write one file \
             (-o OUT.pftrace)",
        );
    }
    Ok(())
}

/// The writer onto `out`, with the method traces among `inputs`.
///
/// # Errors
/// Those of `out`.
pub(super) fn create(out: File, inputs: &[Input]) -> io::Result<Box<dyn TimelineSink + '_>> {
    let mut zip = Zip(Arc::new(Mutex::new(Some(ZipWriter::new(out)))));
    zip.start(RECORDING)?;
    Ok(Box::new(PerfettoZip { recording: PerfettoWriter::new(Box::new(zip.clone())), zip, inputs }))
}

struct PerfettoZip<'i> {
    recording: PerfettoWriter,
    zip: Zip,
    inputs: &'i [Input],
}

/// The zip, which the recording's writer has too; what is written goes into the file that was started last.
/// `None` after the end.
#[derive(Clone)]
struct Zip(Arc<Mutex<Option<ZipWriter<File>>>>);

impl Zip {
    fn lock(&self) -> MutexGuard<'_, Option<ZipWriter<File>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&mut self, name: &str) -> io::Result<()> {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        let mut zip = self.lock();
        zip.as_mut().ok_or_else(ended)?.start_file(name, options).map_err(io::Error::other)
    }
}

fn ended() -> io::Error {
    io::Error::other("the zip is written already")
}

impl Write for Zip {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().as_mut().ok_or_else(ended)?.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SinkAdapter for PerfettoZip<'_> {
    type Next = PerfettoWriter;

    fn next(&mut self) -> &mut PerfettoWriter {
        &mut self.recording
    }

    fn head(&mut self, head: &Head) -> io::Result<()> {
        let mut head = head.clone();
        // The manifest alone says where MONOTONIC lies, in which Perfetto takes every method trace to be: a
        // Dalvik trace is in REALTIME really.
        for snapshot in &mut head.snapshots.list {
            (snapshot.monotonic, snapshot.monotonic_raw) = (0, 0);
        }
        self.recording.head(&head)
    }
}

/// The recording holds no methods: each method trace goes into the zip as the file it is.
impl TimelineAdapter for PerfettoZip<'_> {
    fn order(&self) -> Order {
        self.recording.order()
    }

    fn notes(&self) -> Vec<String> {
        self.recording.notes()
    }

    fn method(&mut self, _: MethodId, _: &MethodName<'_>) -> io::Result<()> {
        Ok(())
    }

    fn method_thread(&mut self, _: &MethodThread) -> io::Result<()> {
        Ok(())
    }

    fn edges(&mut self, _: u32, _: &[Edge]) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, outcome: &MergeSummary) -> io::Result<()> {
        self.recording.finish(outcome)?;
        let mut methods: Vec<(String, &InputSummary)> = Vec::new();
        for (input, about) in self.inputs.iter().zip(&outcome.inputs) {
            if !art_method::detect(input) {
                continue;
            }
            let name = member_name(&about.name, methods.len());
            self.zip.start(&name)?;
            self.zip.write_all(input)?;
            methods.push((name, about));
        }
        self.zip.start("perfetto_manifest.json")?;
        serde_json::to_writer_pretty(&mut self.zip, &manifest(&methods)?)?;
        let zip = self.zip.lock().take().ok_or_else(ended)?;
        zip.finish().map_err(io::Error::other)?.flush()
    }
}

/// Number `index` of the method traces as a name that every reader of zips takes.
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
    for (path, about) in methods {
        let first = methods.first().map_or(0, |(_, about)| about.offset_ns);
        if about.offset_ns.abs_diff(first) > SAME_OFFSET {
            return Err(io::Error::other(format!(
                "{}: its clock is another than that of the method trace before it, and a manifest can name only one for \
                 both: write one file instead (-o OUT.pftrace)",
                about.name
            )));
        }
        // Read in Perfetto's docs: where this file's clock shows T, the recording's shows T + offset_ns.
        files.push(json!({
            "path": path,
            "clocks": {
                "clock": "MONOTONIC",
                "sync_to": { "file": RECORDING, "clock": "BOOTTIME" },
                "offset_ns": first,
            },
        }));
        let found = format!("{}, {}: {}", about.clock.name(), about.verdict.name(), about.why);
        attributes.insert(format!("tracebridge.{path}"), found.into());
    }
    Ok(json!({ "perfetto_manifest": {
        "version": 1,
        "trace_time": { "clock": "BOOTTIME" },
        "files": files,
        "attributes": attributes,
    }}))
}
