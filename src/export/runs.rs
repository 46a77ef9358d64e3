//! Reads the files of runs, and measures each: for the page of a comparison, for launches and for the gate.
//! [`compare`] is `report NEW --against OLD` as one library call: it measures every run of both sets, and
//! writes a page with the typical run of each and the comparison.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::FORMATS;
use super::convert::{Conversion, ConversionOutput, ConvertError, ConvertRequest};
use super::report_page::{PageData, PageTrace, PageVideos, TraceRole, begin_page, end_page};
use crate::clock::Timestamp;
use crate::file_access;
use crate::formats::metrics_of;
use crate::formats::unpack_budget::UnpackLimit;
use crate::measure::{
    Comparison, MeasureFilter, MeasuredRun, PERCENTILES, RunMeter, RunSet, RunTimes, percentiles,
};
use crate::text::file_name;
use crate::timeline::{MergeError, MergeSummary, WindowRequest};
use crate::tracks::TrackBuilder;

/// Reads the inputs of one run, and measures the part of it that is compared: the launch of an app, where
/// one is marked; else the part from the main thread's first slice to the end of its last one; else the
/// whole run. All states and slices are those of this part, and the total is its length, so that they fit
/// together. A window that the user names is measured whole. A launch ends with the first slice whose name
/// contains `until`, where that is given.
///
/// # Errors
/// [`ConvertError`].
pub(super) fn measure(
    request: ConvertRequest<'_>,
    until: Option<&str>,
) -> Result<(MeasuredRun, MergeSummary), ConvertError> {
    let window = request.window;
    let inputs = request.inputs;
    let whole = ConvertRequest { window: WindowRequest::default(), ..request };
    let conversion = Conversion::prepare(whole)?;
    let mapping = conversion.parse_mapping()?;
    let mut builder = TrackBuilder::new(RunMeter::new(until, window));
    let pushed = conversion.push_part(&mut builder, mapping.as_ref());
    conversion.check_whole()?;
    let summary = pushed?;
    let mut meter = std::mem::take(builder.sink());
    if let Some(again) = meter.for_second_reading() {
        let mut builder = TrackBuilder::new(again);
        conversion.push_part(&mut builder, mapping.as_ref())?;
        meter = std::mem::take(builder.sink());
    }
    let mut run = meter.into_run()?;
    run.add_metrics(benchmark_times(inputs).map_err(MergeError::Io)?);
    Ok((run, summary))
}

/// The files of each run, in the order of the first file of each.
pub(crate) fn runs_of(files: &[PathBuf]) -> Vec<Vec<PathBuf>> {
    let mut numbers: BTreeMap<OsString, usize> = BTreeMap::new();
    let mut runs: Vec<Vec<PathBuf>> = Vec::new();
    for file in files {
        let number = *numbers.entry(run_name(file)).or_insert(runs.len());
        match runs.get_mut(number) {
            Some(run) => run.push(file.clone()),
            None => runs.push(vec![file.clone()]),
        }
    }
    runs
}

/// An ending of two parts beside those of the outputs.
const LONG_ENDINGS: [&str; 1] = [".trace.dat"];
/// The endings of packed files.
const PACKED: [&str; 3] = [".gz", ".zst", ".xz"];

/// The path without the ending of the file's name: `a.1.dat` and `a.1.trace` are one run, `a.2.dat` another.
fn run_name(file: &Path) -> OsString {
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
    let unpacked = PACKED.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    let known = FORMATS.iter().flat_map(|format| format.endings).chain(&LONG_ENDINGS);
    let ending = known.filter(|ending| unpacked.ends_with(**ending)).map(|ending| ending.len()).max();
    // A name that begins with a dot is no ending, nor is a number: `run.1` and `run.2` are two runs.
    let is_ending = |dot: &usize| *dot > 0 && unpacked[dot + 1..].contains(|c: char| !c.is_ascii_digit());
    let last = || unpacked.rfind('.').filter(is_ending).map_or(0, |dot| unpacked.len() - dot);
    let length = ending.filter(|length| *length < unpacked.len()).unwrap_or_else(last);
    file.parent().unwrap_or(Path::new("")).join(&unpacked[..unpacked.len() - length]).into_os_string()
}

/// The measures of the runs in these files. Files of one directory whose names differ in their endings
/// alone are one run: a recording and its method trace.
///
/// # Errors
/// [`ConvertError`] where a file cannot be read.
pub fn run_times(
    files: &[PathBuf],
    limit: &UnpackLimit,
    filter: &mut MeasureFilter<'_>,
) -> Result<Vec<RunTimes>, ConvertError> {
    runs_of(files).iter().map(|inputs| times_of_run(inputs, limit, filter)).collect()
}

/// The times that a benchmark has measured itself of the run in these files, ns: of a metric with a value for
/// each frame the percentiles.
pub(crate) fn benchmark_times(inputs: &[PathBuf]) -> io::Result<Vec<(String, i64)>> {
    let mut times = Vec::new();
    for trace in inputs {
        let Some(metrics) = metrics_of(trace)? else { continue };
        times.extend(metrics.times);
        for (name, samples) in metrics.samples {
            for (percent, ns) in PERCENTILES.into_iter().zip(percentiles(samples).into_iter().flatten()) {
                times.push((format!("{name}.p{percent}"), ns.round() as i64));
            }
        }
    }
    Ok(times)
}

fn times_of_run(
    inputs: &[PathBuf],
    limit: &UnpackLimit,
    filter: &mut MeasureFilter<'_>,
) -> Result<RunTimes, ConvertError> {
    let request = ConvertRequest { unpack_limit: limit.clone(), ..ConvertRequest::to_read(inputs) };
    let (measured, summary) = measure(request, None)?;
    let paths = inputs.iter().map(|path| path.display().to_string());
    let same = |path: &PathBuf| file_access::without_links(path).unwrap_or_else(|_| path.clone());
    let mut identities: Vec<String> =
        inputs.iter().map(|path| same(path).to_string_lossy().into_owned()).collect();
    identities.sort_unstable();
    let mut run = RunTimes {
        name: paths.map(|path| file_name(&path).to_owned()).collect::<Vec<_>>().join(" + "),
        identity: identities.join("\n"),
        losses: summary.report.account(),
        is_lossy: summary.report.is_lossy(),
        ..RunTimes::default()
    };
    run.take(&measured, filter);
    Ok(run)
}

/// The result of a comparison.
pub struct Compared {
    /// The comparison as the page holds it (docs/report-format.md).
    pub(crate) comparison: Comparison,
    /// Size of the page, bytes; `None` where the output is no regular file.
    pub bytes: Option<u64>,
    /// Whether anything is missing in an input.
    pub is_lossy: bool,
}

impl Compared {
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
            let (run, summary) = measure(ConvertRequest { inputs: files, ..request.clone() }, None)?;
            is_lossy |= summary.report.is_lossy();
            runs.push(run);
        }
        let shown = RunSet::typical(&runs);
        sets.push(RunSet { title: title(&files[shown]), runs, shown, start: Timestamp::MIN });
    }
    let mut out = output.stream()?;
    // The pages of comparisons show no videos: a set has as many as it has runs.
    let videos = PageVideos::default();
    begin_page(&mut *out, &videos).map_err(MergeError::Io)?;
    let mut page = PageData::new(out);
    for ((files, set), role) in groups.iter().zip(&mut sets).zip([TraceRole::New, TraceRole::Old]) {
        let conversion =
            Conversion::prepare(ConvertRequest { inputs: &files[set.shown], ..request.clone() })?;
        let mut trace = PageTrace::new(conversion.held_limit());
        let pushed = conversion.push_part(&mut trace, conversion.parse_mapping()?.as_ref());
        conversion.check_whole()?;
        let summary = pushed?;
        page.add(role, &mut trace, &summary, &videos).map_err(MergeError::Io)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_base_name_are_one_run() {
        let files = [
            "a/run1.dat",
            "a/run2.pftrace",
            "b/run1.dat",
            "a/run1.trace",
            "a/.x.y",
            "a.1.dat",
            "a.2.dat.gz",
            "a.1.trace",
            "a.2.trace",
            "a.2.firefox.json",
            "2026.11.24",
            "2026.11.25",
        ]
        .map(PathBuf::from);
        let runs = runs_of(&files);
        let names: Vec<Vec<&str>> =
            runs.iter().map(|run| run.iter().map(|file| file.to_str().unwrap()).collect()).collect();
        assert_eq!(
            names,
            [
                vec!["a/run1.dat", "a/run1.trace"],
                vec!["a/run2.pftrace"],
                vec!["b/run1.dat"],
                vec!["a/.x.y"],
                vec!["a.1.dat", "a.1.trace"],
                vec!["a.2.dat.gz", "a.2.trace", "a.2.firefox.json"],
                vec!["2026.11.24"],
                vec!["2026.11.25"],
            ]
        );
    }
}
