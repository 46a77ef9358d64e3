//! Reads the files of runs, and measures each: for the page of a comparison, for launches and for the gate.
//! [`compare`] is `report NEW --against OLD` as one library call: it measures every run of both sets, and
//! writes a page with the typical run of each and the comparison.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::FORMATS;
use super::convert::{Conversion, ConversionOutput, ConvertError, ConvertRequest};
use super::report_page::{PageData, PageTrace, PageVideos, TraceRole, begin_page, end_page};
use crate::clock::Timestamp;
use crate::formats::metrics_of;
use crate::formats::unpack_budget::UnpackLimit;
use crate::measure::{
    Comparison, Measure, MeasureFilter, MeasureKind, MeasuredPart, MeasuredRun, PERCENTILES, RunMeter,
    RunSet, RunTimes, percentiles,
};
use crate::text::file_name;
use crate::timeline::{MergeError, MergeSummary, WindowRequest};
use crate::tracks::TrackBuilder;

/// Reads the inputs of one run, and measures it. For `until` see [`RunMeter::until`].
///
/// # Errors
/// [`ConvertError`].
fn measure(
    request: ConvertRequest<'_>,
    until: Option<&str>,
) -> Result<(MeasuredRun, MergeSummary), ConvertError> {
    let conversion = Conversion::prepare(request)?;
    let mut meter = TrackBuilder::new(RunMeter::until(until));
    let pushed = conversion.push_part(&mut meter, conversion.parse_mapping()?.as_ref());
    conversion.check_whole()?;
    let summary = pushed?;
    Ok((std::mem::take(meter.sink()).into_run(), summary))
}

/// Reads the inputs of one run, and measures the part of it that is compared: the launch of an app, where
/// one is marked; else the part from the main thread's first slice to the end of its last one; else the
/// whole run. All states and slices are those of this part, and the total is its length, so that they fit
/// together. A window that the user names is measured whole.
///
/// # Errors
/// [`ConvertError`].
pub(super) fn measure_part(
    request: ConvertRequest<'_>,
    until: Option<&str>,
) -> Result<(MeasuredRun, MergeSummary), ConvertError> {
    let (mut run, summary) = measure_timeline_part(request, until)?;
    add_benchmark_times(&mut run, request.inputs)?;
    Ok((run, summary))
}

/// [`measure_part`] without what a benchmark has measured itself.
fn measure_timeline_part(
    request: ConvertRequest<'_>,
    until: Option<&str>,
) -> Result<(MeasuredRun, MergeSummary), ConvertError> {
    let (mut whole, summary) = measure(request, until)?;
    let range = summary.report.first_ts.zip(summary.report.last_ts);
    if request.window != WindowRequest::default() {
        whole.part = MeasuredPart::Period;
        whole.extent = range;
        whole.total_ns = range.map_or(0, |(first, last)| last.since(first));
        return Ok((whole, summary));
    }
    let launch = whole.launch.as_ref().map(|span| (MeasuredPart::Launch, (span.from, span.to)));
    let part = launch.or(whole.stages.map(|span| (MeasuredPart::MainThread, span)));
    let Some(((part, (from, to)), (first, _))) = part.filter(|(_, (from, to))| from < to).zip(range) else {
        return Ok((whole, summary));
    };
    let (measured, _) = measure(ConvertRequest { window: window(from..to, first), ..request }, until)?;
    let run = MeasuredRun {
        part,
        total_ns: to - from,
        extent: Some((from, to)),
        launch: whole.launch,
        stages: whole.stages,
        ..measured
    };
    Ok((run, summary))
}

/// The part of the timeline from `part.start` to `part.end`, where its first event is at `first`.
fn window(part: Range<Timestamp>, first: Timestamp) -> WindowRequest {
    let since_first = |ts: Timestamp| Some(ts.since(first));
    WindowRequest { from_ns: since_first(part.start), to_ns: since_first(part.end) }
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
    limit: UnpackLimit,
    filter: &mut MeasureFilter<'_>,
) -> Result<Vec<RunTimes>, ConvertError> {
    runs_of(files).iter().map(|inputs| times_of_run(inputs, limit, filter)).collect()
}

/// The times that a benchmark has measured itself of the run in these files, ns: of a metric with a value for
/// each frame the percentiles.
fn benchmark_times(inputs: &[PathBuf]) -> Result<Vec<(String, i64)>, ConvertError> {
    let mut times = Vec::new();
    for trace in inputs {
        let Some(metrics) = metrics_of(trace).map_err(MergeError::Io)? else { continue };
        times.extend(metrics.times);
        for (name, samples) in metrics.samples.into_iter().filter(|(_, samples)| !samples.is_empty()) {
            for (percent, ns) in PERCENTILES.into_iter().zip(percentiles(samples)) {
                times.push((format!("{name}.p{percent}"), ns.round() as i64));
            }
        }
    }
    Ok(times)
}

/// Adds the times that a benchmark has measured itself to the measures of a run. A time before its deadline,
/// which is negative, is none that a comparison has.
fn add_benchmark_times(run: &mut MeasuredRun, inputs: &[PathBuf]) -> Result<(), ConvertError> {
    for (name, ns) in benchmark_times(inputs)? {
        if let Ok(ns) = u64::try_from(ns) {
            run.measures.insert(
                (MeasureKind::Benchmark, name),
                Measure { ns, count: 1, longest: (ns, Timestamp::MIN) },
            );
        }
    }
    Ok(())
}

fn times_of_run(
    inputs: &[PathBuf],
    limit: UnpackLimit,
    filter: &mut MeasureFilter<'_>,
) -> Result<RunTimes, ConvertError> {
    let request = ConvertRequest { unpack_limit: limit, ..ConvertRequest::to_read(inputs) };
    let (whole, summary) = measure(request, None)?;
    let paths = inputs.iter().map(|path| path.display().to_string());
    let same = |path: &PathBuf| std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
    let mut identities: Vec<String> =
        inputs.iter().map(|path| same(path).to_string_lossy().into_owned()).collect();
    identities.sort_unstable();
    let mut run = RunTimes {
        name: paths.map(|path| file_name(&path).to_owned()).collect::<Vec<_>>().join(" + "),
        identity: identities.join("\n"),
        is_lossy: summary.report.is_lossy(),
        ..RunTimes::default()
    };
    let launch = whole.launch.clone().filter(|span| span.from < span.to);
    run.add_frames(&whole.frames, filter);
    if filter.kinds.contains(&MeasureKind::Benchmark) {
        run.add_metrics(&benchmark_times(inputs)?, filter);
    }
    let mut part = None;
    if let Some(span) = launch {
        run.launch_extent = Some([span.begins_with, span.ends_with].map(str::to_owned));
        run.launch_type = span.launch_type.map(|launch_type| launch_type.name().to_owned());
        run.add(MeasureKind::Launch, "", span.to - span.from, filter);
        for (kind, ns) in [(MeasureKind::Ttid, span.ttid), (MeasureKind::Ttfd, span.ttfd)] {
            if let Some(ns) = ns {
                run.add(kind, "", ns, filter);
            }
        }
        let is_of_launch =
            |kind| matches!(kind, MeasureKind::Stage | MeasureKind::State | MeasureKind::Slice);
        if filter.kinds.iter().copied().any(is_of_launch)
            && let Some(first) = summary.report.first_ts
        {
            let window = window(span.from..span.to, first);
            part = Some(measure(ConvertRequest { window, ..request }, None)?.0);
        }
    }
    let of_launch = part.as_ref().unwrap_or(&whole);
    for (run_of_kind, is_method) in [(of_launch, false), (&whole, true)] {
        for ((kind, name), measure) in &run_of_kind.measures {
            if (*kind == MeasureKind::Method) == is_method {
                run.add(*kind, name, measure.ns, filter);
            }
        }
    }
    Ok(run)
}

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
        let conversion = Conversion::prepare(ConvertRequest { inputs: &files[set.shown], ..request })?;
        let mut trace = PageTrace::new(request.unpack_limit.into());
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
