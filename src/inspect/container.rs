//! Searches a directory or an archive for traces: bug reports, and the additional output of benchmarks.

use std::io::{self, Read};
use std::path::Path;

use serde::Serialize;

use crate::formats::archive::Members;
use crate::formats::input::{Input, first_bytes, unpacking_reader};
use crate::formats::unpack_budget::{UnpackBudget, UnpackLimit};
use crate::formats::{UnreadFile, identify_bytes};

/// A directory or an archive, and the traces in it.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct ContainerReport {
    /// The path as given.
    pub path: String,
    /// `directory`, `zip archive` or `tar archive`.
    pub container: &'static str,
    /// How many files were searched.
    pub files: usize,
    /// The traces, in the order of their paths.
    pub traces: Vec<FoundTrace>,
    /// Files and directories that could not be read, each with the reason, and limits that ended the search.
    pub notes: Vec<String>,
}

/// A trace that was found.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
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
    #[serde(rename = "cure")]
    pub hint: Option<&'static str>,
}

impl ContainerReport {
    fn new(path: String, container: &'static str) -> ContainerReport {
        ContainerReport { path, container, files: 0, traces: Vec::new(), notes: Vec::new() }
    }

    /// Adds the file if its first bytes are those of a trace.
    fn add(&mut self, path: String, bytes: u64, content: impl Read, budget: &UnpackBudget) {
        self.files += 1;
        match unpacking_reader(content, budget).and_then(first_bytes) {
            Ok(start) => match format_name(&start) {
                Some((format, None)) => {
                    self.traces.push(FoundTrace { path, bytes, format, is_read: true, hint: None });
                }
                Some((format, hint)) => {
                    self.traces.push(FoundTrace { path, bytes, format, is_read: false, hint });
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
        Err(UnreadFile { is_trace: true, what, hint }) => Some((what, Some(hint))),
        Err(_) => None,
    }
}

/// Searches a directory.
///
/// # Errors
/// The directory cannot be read.
pub fn search_directory(root: &Path) -> io::Result<ContainerReport> {
    Ok(search(Members::of_directory(root, &UnpackLimit::default())?))
}

/// Searches `input` if it is an archive. Returns `None` for every other file, and for an archive whose list
/// of members cannot be read.
pub fn search_archive(input: &Input) -> Option<ContainerReport> {
    Members::of_archive(input).ok().flatten().map(search)
}

fn search(mut members: Members<'_>) -> ContainerReport {
    let mut report = ContainerReport::new(members.name().to_owned(), members.kind());
    for number in 0..members.count() {
        // Of each file its first bytes are unpacked, and forgotten.
        let budget = members.budget().afresh();
        let read =
            members.read_entry(number, |path, bytes, content| report.add(path, bytes, content, &budget));
        if let Some(Err(error)) = read {
            report.notes.push(format!("file {number}: {error}"));
        }
    }
    if members.is_cut {
        report.notes.push(format!("the {} is cut or damaged: files may be missing", members.kind()));
    }
    report.notes.extend(members.omissions.iter().map(ToString::to_string));
    report.traces.sort_by(|a, b| a.path.cmp(&b.path));
    report
}
