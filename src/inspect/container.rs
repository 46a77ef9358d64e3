//! Searches a directory or a zip archive for traces: bug reports, and the additional output of benchmarks.

use std::fs::{self, File};
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;
use zip::ZipArchive;

use crate::formats::archive::is_zip;
use crate::formats::input::{Input, first_bytes, unpacking_reader};
use crate::formats::{UnreadFile, identify_bytes};

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

impl ContainerReport {
    fn new(path: String, container: &'static str) -> ContainerReport {
        ContainerReport { path, container, files: 0, traces: Vec::new(), notes: Vec::new() }
    }

    /// Adds the file if its first bytes are those of a trace.
    fn add(&mut self, path: String, bytes: u64, content: impl Read) {
        self.files += 1;
        match unpacking_reader(content).and_then(first_bytes) {
            Ok(start) => match format_name(&start) {
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
fn format_name(start: &[u8]) -> Option<(&'static str, Option<&'static str>)> {
    match identify_bytes(start) {
        Ok(format) => Some((format.name(), None)),
        Err(UnreadFile { is_trace: true, what, cure }) => Some((what, Some(cure))),
        Err(_) => None,
    }
}

/// Searches a directory.
///
/// # Errors
/// The directory cannot be read.
pub fn search_directory(root: &Path) -> io::Result<ContainerReport> {
    let mut report = ContainerReport::new(root.display().to_string(), "directory");
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

/// Searches `input` if it is a zip archive. Returns `None` for every other file, and for an archive whose
/// list of members cannot be read.
pub fn search_zip(input: &Input) -> Option<ContainerReport> {
    if !is_zip(input) {
        return None;
    }
    let mut report = ContainerReport::new(input.name.clone(), "zip archive");
    let mut zip = ZipArchive::new(Cursor::new(&input[..])).ok()?;
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
    Some(report)
}
