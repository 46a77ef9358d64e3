//! Searches a directory or a zip archive for traces: bug reports, and the additional output of benchmarks.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;
use zip::ZipArchive;

use crate::formats::input::{DETECTION_BYTES, Packing};
use crate::formats::{self, UnreadFile};

/// The most files that are searched in one container.
const MAX_FILES: usize = 100_000;
/// The most directories inside each other that are searched.
const MAX_DEPTH: usize = 32;

/// A directory or an archive, and the traces in it.
#[derive(Debug, Clone, Serialize)]
pub struct ContainerReport {
    /// The path as given.
    pub path: String,
    /// `directory` or `zip archive`.
    pub container: &'static str,
    /// How many files were searched.
    pub files: usize,
    /// The traces, in the order of their paths.
    pub traces: Vec<FoundTrace>,
    /// Files and directories that could not be read, each with the reason, and limits that ended the search.
    pub notes: Vec<String>,
}

/// A trace that was found.
#[derive(Debug, Clone, Serialize)]
pub struct FoundTrace {
    /// The path inside the container.
    pub path: String,
    /// Size, bytes; for a member of an archive the size of the unpacked member.
    pub bytes: u64,
    /// The format's name: `Perfetto trace`.
    pub format: &'static str,
    /// Whether tracebridge reads the format.
    pub is_read: bool,
    /// For a format that is not read, the program that opens it.
    pub cure: Option<&'static str>,
}

/// Searches `path` if it is a directory or a zip archive. Returns `None` for every other file.
///
/// # Errors
/// The directory or the archive's list of members cannot be read.
pub fn search(path: &Path) -> io::Result<Option<ContainerReport>> {
    if path.as_os_str() == "-" {
        return Ok(None);
    }
    if path.is_dir() {
        return search_directory(path).map(Some);
    }
    // What is read from a pipe would be missing later.
    if !path.is_file() {
        return Ok(None);
    }
    let mut magic = [0; 4];
    let mut file = File::open(path)?;
    match file.read_exact(&mut magic) {
        Ok(()) if formats::is_zip(&magic) => search_zip(path, File::open(path)?).map(Some),
        _ => Ok(None),
    }
}

impl ContainerReport {
    fn new(path: &Path, container: &'static str) -> ContainerReport {
        ContainerReport {
            path: path.display().to_string(),
            container,
            files: 0,
            traces: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds the file if its first bytes are those of a trace.
    fn add(&mut self, path: String, bytes: u64, content: impl Read) {
        self.files += 1;
        match first_bytes(content) {
            Ok(start) => match identify(&start) {
                Some((format, None)) => {
                    self.traces.push(FoundTrace { path, bytes, format, is_read: true, cure: None });
                }
                Some((format, cure)) => {
                    self.traces.push(FoundTrace { path, bytes, format, is_read: false, cure });
                }
                None => {}
            },
            Err(error) => self.notes.push(format!("{path}: {error}")),
        }
    }
}

/// The name of the format of a file that begins with `start`, and the program that opens it where tracebridge
/// does not. `None` for a file that is no trace.
fn identify(start: &[u8]) -> Option<(&'static str, Option<&'static str>)> {
    match formats::identify(start) {
        Ok(format) => Some((format.name, None)),
        Err(UnreadFile { is_trace: true, what, cure }) => Some((what, Some(cure))),
        Err(_) => None,
    }
}

/// The bytes that decide a file's format, decompressed if the file is compressed with gzip or zstd.
fn first_bytes(content: impl Read) -> io::Result<Vec<u8>> {
    let limit = DETECTION_BYTES as u64;
    let mut start = Vec::new();
    content.take(limit).read_to_end(&mut start)?;
    let mut unpacked = Vec::new();
    let Some(packing) = Packing::of(&start) else { return Ok(start) };
    // The data is cut here, so that an error at its end means nothing.
    let _ = packing.decoder(&start).and_then(|decoder| decoder.take(limit).read_to_end(&mut unpacked));
    Ok(unpacked)
}

fn search_directory(root: &Path) -> io::Result<ContainerReport> {
    let mut report = ContainerReport::new(root, "directory");
    let mut waiting = vec![(root.to_owned(), 0)];
    while let Some((dir, depth)) = waiting.pop() {
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if depth == 0 => return Err(error),
            Err(error) => {
                report.notes.push(format!("{}: {error}", dir.display()));
                continue;
            }
        };
        for entry in entries.flatten() {
            // Links are not followed, because they may lead around in a circle.
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && depth < MAX_DEPTH {
                waiting.push((entry.path(), depth + 1));
            } else if kind.is_dir() {
                report.notes.push(format!("{}: too deep, not searched", entry.path().display()));
            } else if kind.is_file() {
                if report.files == MAX_FILES {
                    report.notes.push(format!("only the first {MAX_FILES} files were searched"));
                    waiting.clear();
                    break;
                }
                add_file(&mut report, root, &entry.path());
            }
        }
    }
    report.traces.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(report)
}

fn add_file(report: &mut ContainerReport, root: &Path, path: &Path) {
    let name: PathBuf = path.strip_prefix(root).unwrap_or(path).to_owned();
    match File::open(path) {
        Ok(file) => {
            let bytes = file.metadata().map_or(0, |meta| meta.len());
            report.add(name.display().to_string(), bytes, file);
        }
        Err(error) => {
            report.files += 1;
            report.notes.push(format!("{}: {error}", name.display()));
        }
    }
}

fn search_zip(path: &Path, file: File) -> io::Result<ContainerReport> {
    let mut report = ContainerReport::new(path, "zip archive");
    let mut zip = ZipArchive::new(io::BufReader::new(file)).map_err(io::Error::other)?;
    for index in 0..zip.len().min(MAX_FILES) {
        match zip.by_index(index) {
            Ok(member) if member.is_file() => {
                let name = String::from_utf8_lossy(member.name_raw()).into_owned();
                report.add(name, member.size(), member);
            }
            Ok(_) => {}
            Err(error) => report.notes.push(format!("member {index}: {error}")),
        }
    }
    if zip.len() > MAX_FILES {
        report.notes.push(format!("only the first {MAX_FILES} members were searched"));
    }
    report.traces.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(report)
}
