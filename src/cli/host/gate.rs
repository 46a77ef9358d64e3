//! `gate`: whether a candidate's runs are slower than a baseline's, for CI.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Parser;

use super::dataset::tag;
use super::endings::check_ending;
use super::merge::conversion_error;
use super::progress_bar::ProgressBar;
use super::{MemoryArgs, all_files};
use crate::cli::Exit;
use crate::cli::exit::UsageError;
use crate::console::say;
use crate::dataset;
use crate::export::explain::grown;
use crate::export::runs::run_times;
use crate::gate::{Condition, GateOutcome, GateSide, Selection, judge};
use crate::measure::MeasureFilter;
use crate::output_file::{OutputFile, Readers, check_distinct};

/// Decide in CI whether runs became slower: exit 4 if they did
///
/// Compares the runs of a candidate with those of a baseline: files (recordings with or without their method
/// traces, as report --against takes them), directories of files, or datasets, of which tags choose the runs.
///
///   tracebridge gate --baseline old/ --candidate new/ --fail-if 'launch.total > +3%'
///   tracebridge gate --baseline lab --baseline-tag build=1233 --candidate lab --candidate-tag build=1234 \
///     --fail-if 'launch.total > +3%' --fail-if 'slice.inflate* > +2ms' --junit gate.xml
///
/// A condition is MEASURE > +CHANGE (slower) or MEASURE < -CHANGE (faster). The measures: launch.total,
/// launch.ttid and launch.ttfd (times to initial and to full display), stage.NAME (an outermost slice of the
/// main thread), slice.NAME and method.NAME (time without what they call, on all threads), state.NAME (of the
/// main thread: running, runnable, sleeping, I/O, uninterruptible sleep); of the app's frames frame.cpu.pNN
/// and frame.overrun.pNN (androidx's frameDurationCpuMs and frameOverrunMs at 50, 90, 95 or 99 %) and
/// frame.janky (the share of late ones). [cold], [warm] or [hot] behind a measure takes launches of that type
/// alone. A * in NAME stands for any text: every name that fits is judged. The change is in %, s, ms, us or
/// ns; of frame.janky in % of the baseline's share or in percentage points (pp), of overruns in s to ns.
///
/// The gate closes if the change is larger than CHANGE, and if runs of two unchanged programs would differ so
/// only once in 200 comparisons (Mann-Whitney test, one-sided, p <= 0.005, with Holm's correction for all
/// measures). Give a CHANGE below the slowdown that must be found: of slowdowns by exactly CHANGE every
/// second one passes. Of slowdowns by 5 %, 'launch.total > +3%' finds nearly all with 20 runs a side, three
/// of four with ten, if launches spread by 2.5 %; five runs are the least. docs/gate.md has the counts.
///
/// Exit status: 0 open, 1 failed, 2 usage, 3 open, but too few runs to decide about a measure, or events were
/// lost, 4 closed.
#[derive(Parser)]
#[command(verbatim_doc_comment)]
pub struct GateArgs {
    /// The runs to compare with: files, directories of files, or datasets
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    baseline: Vec<PathBuf>,
    /// The runs to judge
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    candidate: Vec<PathBuf>,
    /// Of the baseline's datasets, take the traces with this tag; of several tags, those that have all
    #[arg(long, value_name = "KEY=VALUE", value_parser = tag)]
    baseline_tag: Vec<(String, String)>,
    /// The same for the candidate's datasets
    #[arg(long, value_name = "KEY=VALUE", value_parser = tag)]
    candidate_tag: Vec<(String, String)>,
    /// Close the gate on this, such as 'launch.total > +3%'; may be given several times
    #[arg(long, required = true, value_name = "CONDITION", value_parser = Condition::parse)]
    fail_if: Vec<Condition>,
    /// Print JSON (docs/schemas/gate.json describes it)
    #[arg(long)]
    json: bool,
    /// Write the judgement as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write a JUnit report: a test case for each measure
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write a page that opens offline, with each run drawn: to hang on a pull request
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    memory: MemoryArgs,
}

/// Runs `gate`.
pub fn run(args: GateArgs) -> anyhow::Result<Exit> {
    let reports: Vec<&Path> =
        [&args.markdown, &args.junit, &args.html].into_iter().flatten().map(PathBuf::as_path).collect();
    // Before the reports begin, which may be in a directory of runs.
    let [old, new] = [SideInputs::find(&args.baseline)?, SideInputs::find(&args.candidate)?];
    let inputs: Vec<&Path> = old.files.iter().chain(&new.files).map(PathBuf::as_path).collect();
    check_distinct(&inputs, &reports).map_err(|error| UsageError::from(error.to_string()))?;
    for (option, path, what, endings) in [
        ("--markdown", &args.markdown, "the judgement is Markdown", &[".md", ".markdown", ".txt"][..]),
        ("--junit", &args.junit, "a JUnit report is XML", &[".xml"]),
        ("--html", &args.html, "the page is HTML", &[".html", ".htm"]),
    ] {
        path.as_deref().map_or(Ok(()), |path| check_ending(option, path, what, endings))?;
    }
    let create = |path: &Option<PathBuf>| path.as_deref().map(Report::create).transpose();
    let reports = [create(&args.markdown)?, create(&args.junit)?, create(&args.html)?];
    let mut selection = Selection::new(&args.fail_if);
    let bar = ProgressBar::of(&[args.baseline.as_slice(), &args.candidate].concat());
    let baseline = read(&old, &args.baseline_tag, "--baseline-tag", &args.memory, &mut selection)?;
    let candidate = read(&new, &args.candidate_tag, "--candidate-tag", &args.memory, &mut selection)?;
    let mut judgement = judge(&selection, [baseline, candidate])?;
    let of_files = old.datasets.is_empty() && new.datasets.is_empty();
    if judgement.outcome() == GateOutcome::Closed && of_files {
        judgement.grown = grown(&new.files, &old.files, &args.memory.limit()).map_err(conversion_error)?;
    }
    drop(bar);
    let texts = [judgement.to_markdown(), judgement.to_junit(), judgement.to_html()];
    for (report, text) in reports.into_iter().zip(&texts) {
        report.map_or(Ok(()), |report| report.write(text))?;
    }
    if args.json {
        say(format_args!("{}\n", serde_json::to_value(judgement.json())?));
    } else {
        judgement.lines().iter().for_each(|line| say(format_args!("{line}\n")));
    }
    Ok(match judgement.outcome() {
        GateOutcome::Closed => Exit::Closed,
        GateOutcome::Open if !judgement.is_lossy() => Exit::Complete,
        GateOutcome::Open | GateOutcome::Undecided => Exit::Lossy,
    })
}

/// A report that appears under its name when it is complete.
struct Report {
    path: PathBuf,
    output: OutputFile,
}

impl Report {
    fn create(path: &Path) -> anyhow::Result<Report> {
        let output =
            OutputFile::create(path, Readers::AsTarget).with_context(|| path.display().to_string())?;
        Ok(Report { path: path.to_owned(), output })
    }

    fn write(self, text: &str) -> anyhow::Result<()> {
        let mut file = self.output.file();
        let written = file.write_all(text.as_bytes()).and_then(|()| self.output.commit());
        written.with_context(|| self.path.display().to_string())
    }
}

/// One side as it was given, and what it stands for.
struct SideInputs<'a> {
    paths: &'a [PathBuf],
    datasets: Vec<&'a PathBuf>,
    /// The other files, and those of directories.
    files: Vec<PathBuf>,
}

impl<'a> SideInputs<'a> {
    fn find(paths: &'a [PathBuf]) -> anyhow::Result<SideInputs<'a>> {
        let (datasets, others): (Vec<_>, Vec<_>) = paths.iter().partition(|path| dataset::is_dataset(path));
        Ok(SideInputs { paths, datasets, files: all_files(others)? })
    }
}

/// Reads the runs of one side.
fn read(
    side: &SideInputs<'_>,
    tags: &[(String, String)],
    option: &str,
    memory: &MemoryArgs,
    selection: &mut Selection<'_>,
) -> anyhow::Result<GateSide> {
    let SideInputs { paths, datasets, files } = side;
    if datasets.is_empty() && !tags.is_empty() {
        return Err(UsageError::from(format!(
            "{option}: tags choose traces of a dataset, and none is given"
        ))
        .into());
    }
    let figures = selection.figures().clone();
    let wanted = &mut MeasureFilter { kinds: &figures, keep: &mut |kind, name| selection.wants(kind, name) };
    let mut runs = run_times(files, &memory.limit(), wanted).map_err(conversion_error)?;
    for dataset in datasets {
        let found = dataset::run_times(dataset, tags, wanted)?;
        anyhow::ensure!(!found.is_empty(), "{}: {}", dataset.display(), no_traces(tags));
        runs.extend(found);
    }
    runs.sort_by(|a, b| a.identity.cmp(&b.identity));
    runs.dedup_by(|a, b| a.identity == b.identity);
    Ok(GateSide { title: title(paths, tags), runs })
}

fn no_traces(tags: &[(String, String)]) -> String {
    match tags {
        [] => "the dataset has no traces".to_owned(),
        _ => format!("no trace has {}; `tracebridge dataset list` shows the tags", tag_list(tags)),
    }
}

fn tag_list(tags: &[(String, String)]) -> String {
    tags.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
}

/// The inputs of a side, for people.
fn title(paths: &[PathBuf], tags: &[(String, String)]) -> String {
    let first = paths.first().map(|path| path.display().to_string()).unwrap_or_default();
    let more = match paths.len() {
        0 | 1 => String::new(),
        some => format!(" and {} more", some - 1),
    };
    match tags {
        [] => first + &more,
        _ => format!("{first}{more} ({})", tag_list(tags)),
    }
}
