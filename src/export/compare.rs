//! `report NEW --diff OLD` as one library call: measures every run of both sets, and writes a page with the
//! typical run of each and the comparison.

use std::path::PathBuf;

use super::convert::{Conversion, ConversionOutput, ConvertError, ConvertRequest};
use super::report_page::{PageData, PageTrace, TraceRole, begin_page, end_page};
use super::runs::{measure_part, runs_of};
use crate::measure::{Comparison, RunSet};
use crate::text::file_name;
use crate::timeline::MergeError;

/// The result of a comparison.
pub struct Compared {
    comparison: Comparison,
    /// Size of the page, bytes; `None` where the output is no regular file.
    pub bytes: Option<u64>,
    /// Whether anything is missing in an input.
    pub is_lossy: bool,
}

impl Compared {
    /// The comparison as the page holds it (docs/report-format.md).
    pub fn to_json(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::to_value(&self.comparison)
    }

    /// The changes, in lines for people.
    pub fn lines(&self) -> Vec<String> {
        self.comparison.lines()
    }
}

/// Compares two sets of runs, and writes the page. `request.inputs` are the files of the new set. Files of
/// one directory whose names differ in their endings alone are one run: `launch` names a recording and its
/// method trace so.
///
/// # Errors
/// [`ConvertError`]; no output is left behind.
pub fn compare(request: ConvertRequest<'_>, old: &[PathBuf]) -> Result<Compared, ConvertError> {
    let output = ConversionOutput::create(request.output, request.gzip)?;
    let groups = [runs_of(request.inputs), runs_of(old)];
    let mut is_lossy = false;
    let mut sets = Vec::new();
    for files in &groups {
        let mut runs = Vec::new();
        for files in files {
            let (run, summary) = measure_part(ConvertRequest { inputs: files, ..request }, None)?;
            is_lossy |= summary.report.is_lossy() || summary.problems.are_lossy();
            runs.push(run);
        }
        let shown = RunSet::typical(&runs);
        sets.push(RunSet { title: title(&files[shown]), runs, shown, start: 0 });
    }
    let mut out = output.stream()?;
    begin_page(&mut *out).map_err(MergeError::Io)?;
    let mut page = PageData::new(out);
    for ((files, set), role) in groups.iter().zip(&mut sets).zip([TraceRole::New, TraceRole::Old]) {
        let conversion = Conversion::prepare(ConvertRequest { inputs: &files[set.shown], ..request })?;
        let mut trace = PageTrace::new();
        let pushed = conversion.push_part(&mut trace, conversion.parse_mapping()?.as_ref());
        conversion.check_whole()?;
        let summary = pushed?;
        page.add(role, &mut trace, &summary).map_err(MergeError::Io)?;
        set.start = trace.start();
    }
    let comparison = Comparison::new(&sets[1], &sets[0]);
    let mut out = page.finish(Some(&comparison)).map_err(MergeError::Io)?;
    end_page(&mut out).map_err(MergeError::Io)?;
    drop(out);
    Ok(Compared { comparison, bytes: output.commit()?, is_lossy })
}

fn title(files: &[PathBuf]) -> String {
    files.iter().map(|file| file_name(&file.to_string_lossy()).to_owned()).collect::<Vec<_>>().join(" + ")
}
