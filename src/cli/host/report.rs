//! `report` and `open`: write a page that shows a trace offline, and open it in a browser.

use std::ffi::{OsStr, OsString};
use std::path::{self, Path, PathBuf};
use std::{env, fs};

use anyhow::Context;
use clap::Parser;
use schemars::JsonSchema;
use serde::Serialize;

use super::against::AgainstArgs;
use super::browser;
use super::merge::{OutputFile, PlaceArgs, WriteArgs, conversion_error, request, write_timeline};
use super::progress_bar::ProgressBar;
use crate::cli::Exit;
use crate::cli::exit::UsageError;
use crate::console::{complain, say};
use crate::export::OutputFormat;
use crate::export::convert::ConvertRequest;
use crate::export::explain::grown;
use crate::export::runs::compare;
use crate::file_access;
use crate::formats::input::Input;
use crate::formats::{files_of, is_report_page};
use crate::measure::Comparison;
use crate::output_file::{check_distinct, create_private_dir, is_stdout};
use crate::text::byte_size;
use crate::timeline::WindowRequest;
use crate::why::Difference;

/// The name of the format of pages.
const PAGE_FORMAT: &str = "report";
/// The causes that are printed of what grew.
const GROWN_LINES: usize = 5;

/// Write a page that shows recordings and method traces in any browser, offline
///
/// The page is one file with everything in it: it can be mailed, attached to a bug, and opened without a
/// network. Inputs and options are those of merge. OUT appears when it is complete. With --against it shows
/// two sets of runs; with five runs or more on each side, it says what is slower or faster, and how large a
/// change it can rule out.
///
/// Exit status: 0 complete, 1 failed, 2 usage, 3 done, but events were lost, an input is damaged, or the page
/// has no place for some of the data.
#[derive(Parser)]
pub struct ReportArgs {
    /// The files to show together; - is standard input
    #[arg(required_unless_present = "against")]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    against: AgainstArgs,
    /// Where to write [default: the first file's name with .html, in this directory]
    #[arg(long, short, value_name = "OUT.html")]
    output: Option<PathBuf>,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Show recordings and method traces in the browser
///
/// Writes the page of `report` into a new directory that only you can read, and opens it with $BROWSER, or
/// else with the system's own way to open a page. A page that report has written is opened as it is.
///
/// Exit status: that of report; 1 also where no browser could be started.
#[derive(Parser)]
pub struct OpenArgs {
    /// The files to show together; - is standard input
    #[arg(required = true)]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Runs `report`.
pub fn report(args: ReportArgs) -> anyhow::Result<Exit> {
    let old = args.against.old_files("report", &args.inputs)?;
    let output = args.output.unwrap_or_else(|| page_name(&args.inputs).into());
    check_page_name(&[args.inputs.as_slice(), old].concat(), &output)?;
    if !old.is_empty() {
        return write_comparison(&args.inputs, old, &output, &args.write, &args.place);
    }
    write_page(&args.inputs, &output, &args.write, &args.place)
}

/// Refuses an output whose ending is no page's: the file would be taken for something else.
fn check_page_name(inputs: &[PathBuf], output: &Path) -> anyhow::Result<()> {
    let files = files_of(inputs);
    check_distinct(&files.iter().map(PathBuf::as_path).collect::<Vec<_>>(), &[output])?;
    // A device, a FIFO or a directory needs no ending, or has an error of its own.
    let is_named_by_ending = !is_stdout(output) && !fs::metadata(output).is_ok_and(|known| !known.is_file());
    let name = output.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let endings = OutputFormat::of_name(PAGE_FORMAT).map_or(&[][..], |format| format.endings);
    if is_named_by_ending && !endings.iter().any(|ending| name.ends_with(ending)) {
        return Err(UsageError::from(format!(
            "{}: `report` writes a page: name it .html (`tracebridge merge` writes other formats)",
            output.display()
        ))
        .into());
    }
    Ok(())
}

/// Runs `open`.
pub fn open(args: OpenArgs) -> anyhow::Result<Exit> {
    if let [page] = args.inputs.as_slice()
        && file_access::is_file(page)
        && is_report_page(&Input::open(page)?)
    {
        // Not canonical: Windows opens no page by the long form of its path.
        let page = path::absolute(page).with_context(|| page.display().to_string())?;
        browser::open(page.as_os_str())?;
        return Ok(Exit::Complete);
    }
    let dir =
        create_private_dir(&env::temp_dir(), "tracebridge").context(env::temp_dir().display().to_string())?;
    let page = dir.join(page_name(&args.inputs));
    let written = write_page(&args.inputs, &page, &args.write, &args.place);
    if written.is_err() {
        let _ = fs::remove_dir(&dir);
    }
    let exit = written?;
    browser::open(page.as_os_str())?;
    Ok(exit)
}

fn write_page(
    inputs: &[PathBuf],
    output: &Path,
    write: &WriteArgs,
    place: &PlaceArgs,
) -> anyhow::Result<Exit> {
    let request = request(inputs, output, write, place);
    write_timeline(ConvertRequest { format: Some(PAGE_FORMAT), ..request }, write, place)
}

fn write_comparison(
    new: &[PathBuf],
    old: &[PathBuf],
    output: &Path,
    write: &WriteArgs,
    place: &PlaceArgs,
) -> anyhow::Result<Exit> {
    let request = ConvertRequest { format: Some(PAGE_FORMAT), ..request(new, output, write, place) };
    let bar = ProgressBar::of(&[new, old].concat());
    let limit = request.unpack_limit.clone();
    let window = request.window;
    let compared = compare(request, old);
    // What grew is told of whole launches.
    let grown = match &compared {
        Ok(_) if window == WindowRequest::default() => grown(new, old, &limit),
        _ => Ok(None),
    };
    drop(bar);
    let compared = compared.map_err(conversion_error)?;
    let grown = grown.map_err(conversion_error)?;
    let lines = if write.json {
        let value = ComparisonReport {
            output: OutputFile::new(output, "report", compared.bytes),
            comparison: &compared.comparison,
            grown,
            lossy: compared.is_lossy,
        };
        vec![serde_json::to_value(value)?.to_string()]
    } else {
        let written =
            compared.bytes.map(|bytes| format!("written: {} ({})", output.display(), byte_size(bytes)));
        let grown = grown.map_or(Vec::new(), |grown| grown.lines(GROWN_LINES));
        let heading = (!grown.is_empty()).then(|| "what grew in the launches".to_owned());
        let grown = grown.into_iter().map(|line| format!("  {line}"));
        compared.lines().into_iter().chain(heading).chain(grown).chain(written).collect()
    };
    for line in lines {
        // Where the page itself goes to standard output, the summary goes to standard error.
        if is_stdout(output) { complain(format_args!("{line}")) } else { say(format_args!("{line}\n")) }
    }
    Ok(if compared.is_lossy { Exit::Lossy } else { Exit::Complete })
}

/// A report that compares two sets of runs.
#[derive(Serialize, JsonSchema)]
pub(super) struct ComparisonReport<'a> {
    output: OutputFile<'a>,
    comparison: &'a Comparison,
    /// Causes that grew in the launches; null where a side has none, or with --from or --to.
    grown: Option<Difference>,
    /// Whether anything is missing in an input.
    lossy: bool,
}

/// The name of a page: that of the first input, with `.html` in place of its ending.
fn page_name(inputs: &[PathBuf]) -> OsString {
    let stem = inputs.first().filter(|input| input.as_os_str() != "-").and_then(|input| input.file_stem());
    let mut name = stem.unwrap_or(OsStr::new("report")).to_owned();
    name.push(".html");
    name
}
