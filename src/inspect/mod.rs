//! Reports the format, clocks, counts, losses and damage of a file. `tracebridge info` prints these reports.

pub mod container;
mod method_trace;
mod recording;
mod samples;

use crate::formats::input::Input;
use crate::formats::unpack_budget::UnpackLimit;
use crate::formats::{self, Damage, InputFiles, OpenError, OpenedInput};

use container::ContainerReport;
pub use method_trace::{MethodTraceReport, ThreadReport};
pub use recording::RecordingReport;
pub use samples::SamplesReport;

/// The report of an input, by the kind of its contents.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(untagged)]
pub enum Contents {
    /// A file with kernel events.
    Recording(Box<RecordingReport>),
    /// A method trace.
    MethodTrace(Box<MethodTraceReport>),
    /// A file with samples.
    Samples(Box<SamplesReport>),
}

/// The report of one input.
#[derive(Debug, Clone, serde::Serialize)]
pub struct InputReport {
    /// The path as given.
    pub path: String,
    /// Size on disk, bytes.
    pub bytes: u64,
    /// The encoding that was undone: `gzip`, `zstd` or `tracebridge's stream`.
    pub packed: Option<&'static str>,
    /// The report of the file's contents.
    #[serde(flatten)]
    pub contents: Contents,
    /// Damage that was found while the file was decompressed.
    #[serde(skip)]
    pub unpacking_damage: Vec<Damage>,
}

/// The reason why an input cannot be inspected.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The input cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The input brings more event types than memory should hold.
    #[error("{0}")]
    Read(#[from] std::io::Error),
}

impl InputReport {
    /// Whether irregular records had to be interpreted. Nothing is missing because of them.
    pub fn is_irregular(&self) -> bool {
        match &self.contents {
            Contents::Recording(recording) => !recording.report.irregular.is_empty(),
            Contents::MethodTrace(trace) => !trace.report.irregular.is_empty(),
            Contents::Samples(samples) => !samples.report.irregular.is_empty(),
        }
    }

    /// Whether anything is missing or damaged.
    pub fn is_lossy(&self) -> bool {
        !self.unpacking_damage.is_empty()
            || match &self.contents {
                Contents::Recording(recording) => recording.report.is_lossy(),
                Contents::Samples(samples) => samples.report.is_lossy(),
                Contents::MethodTrace(trace) => {
                    trace.report.is_lossy() || trace.overflow || trace.problems.are_lossy()
                }
            }
    }
}

/// The reports of the files of one input.
#[derive(Debug, Default)]
pub struct InspectedFiles {
    /// The files of an archive.
    pub archive: Option<ContainerReport>,
    /// The report of each trace.
    pub reports: Vec<InputReport>,
    /// Why there are no more reports.
    pub error: Option<InspectError>,
}

/// Inspects the input in `files`; of an archive or of a text with dumps of threads, the traces inside.
pub fn inspect_files(files: &InputFiles, limit: UnpackLimit) -> InspectedFiles {
    let mut inspected = InspectedFiles::default();
    if let Err(error) = inspected.add(files, limit) {
        inspected.error = Some(error);
    }
    inspected
}

impl InspectedFiles {
    fn add(&mut self, files: &InputFiles, limit: UnpackLimit) -> Result<(), InspectError> {
        for input in files.open_unexpanded(limit)? {
            self.archive = container::search_archive(&input);
            for input in formats::expand(input)?.inputs {
                self.reports.extend(inspect_all(&input)?);
            }
        }
        Ok(())
    }
}

/// Inspects `input`, and the method traces that a recording holds beside its events.
///
/// # Errors
/// [`InspectError`].
pub fn inspect_all(input: &Input) -> Result<Vec<InputReport>, InspectError> {
    let opened = formats::open(input)?;
    let contained = opened.contained_inputs(&input.name);
    let mut reports = vec![inspect_opened(input, opened)?];
    for input in &contained {
        reports.push(inspect(input)?);
    }
    Ok(reports)
}

/// Reads all of `input` and counts its events or records.
///
/// # Errors
/// [`InspectError`].
pub fn inspect(input: &Input) -> Result<InputReport, InspectError> {
    inspect_opened(input, formats::open(input)?)
}

fn inspect_opened(input: &Input, opened: OpenedInput<'_>) -> Result<InputReport, InspectError> {
    let contents = match opened {
        OpenedInput::Recording(recording) => {
            Contents::Recording(Box::new(recording::inspect(recording.as_ref())?))
        }
        OpenedInput::MethodTrace(trace) => Contents::MethodTrace(Box::new(method_trace::inspect(&trace))),
        OpenedInput::Samples(recording) => Contents::Samples(Box::new(samples::inspect(recording.as_ref())?)),
    };
    Ok(InputReport {
        path: input.name.clone(),
        bytes: input.size,
        packed: input.packed,
        contents,
        unpacking_damage: input.damage.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_counted() {
        let text = "# tracer: nop\n#\n  a-7 (    5) [001] ...1 1.5: tracing_mark_write: B|5|x\n  a-7 (    5) [001] ...1 1.6: tracing_mark_write: E|5\n";
        let input = Input::from_bytes("t.txt", text.as_bytes().to_vec());
        let report = inspect(&input).unwrap();
        assert!(!report.is_lossy());
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["path"], "t.txt");
        assert_eq!(json["bytes"], text.len());
        assert_eq!(json["events"], 2);
        assert_eq!(json["kinds"], serde_json::json!({ "ftrace:print": 2 }));
        assert_eq!(json["report"]["first_ts"], 1_500_000_000);
    }
}
