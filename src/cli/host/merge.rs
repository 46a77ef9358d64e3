//! `merge`, whose other name is `convert`: puts inputs on one clock and writes them in a format that people
//! open.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Parser};
use schemars::JsonSchema;
use serde::Serialize;

use super::progress_bar::ProgressBar;
use super::{MemoryArgs, print_list};
use crate::cli::exit::UsageError;
use crate::cli::{Exit, units};
use crate::clock::Clock;
use crate::console::TerminalWriter;
use crate::dataset::{self, LargeTables, TraceOptions};
use crate::export::convert::{Conversion, ConvertError, ConvertRequest, Converted};
use crate::export::{ConversionLosses, FORMATS, TABLES_ENDING};
use crate::formats;
use crate::output_file::is_stdout;
use crate::text::byte_size;
use crate::timeline::{DataKind, MergeOptions, MergeSummary, Window, WindowRequest};

/// Convert a file, or put recordings, method traces and samples on one clock; writes one file
///
/// Kernel recordings (trace.dat, atrace and ftrace text, systrace HTML), method traces (am profile,
/// Debug.startMethodTracing) and samples (perf, simpleperf) of the same moments go in, in any number; one
/// file comes out. The clock of a method trace is found by what both contain, and so is that of samples whose
/// file does not name it; the summary says which it is, why, and how far what should coincide is apart.
///
/// OUT appears when it is complete; after an error or a signal an older file of its name is as it was.
///
/// Exit status: 0 complete, 1 failed, 2 usage, 3 done, but events were lost, an input is damaged, or the
/// output has no place for some of the data.
#[derive(Parser)]
#[command(after_help = formats_help())]
pub struct MergeArgs {
    /// The files to put together; - is standard input
    #[arg(required = true)]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    place: PlaceArgs,
}

/// The user's decisions about the place of method traces and samples.
#[derive(Args, Default)]
pub(super) struct PlaceArgs {
    /// ns to add to the own times of the method trace or the samples, instead of finding it out (may be
    /// negative)
    #[arg(long, value_name = "NS", allow_hyphen_values = true)]
    offset: Option<i64>,
    /// The clock of the method trace's start or of the samples: realtime, mono, boot or cpu-counter
    #[arg(long, value_name = "CLOCK", value_parser = clock)]
    clock: Option<Clock>,
    /// Say what was tried to find the clock and the threads, and what came of it
    #[arg(long)]
    explain: bool,
}

impl PlaceArgs {
    /// The same for the merge.
    pub(super) fn options(&self) -> MergeOptions {
        MergeOptions { offset_ns: self.offset, clock: self.clock }
    }
}

#[derive(Args)]
struct OutputArgs {
    /// Where to write; its ending names the format, a further .gz packs it; - is standard output
    #[arg(long, short, value_name = "OUT")]
    output: PathBuf,
    /// The format to write, whatever OUT's ending
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// Perfetto to Perfetto: write only events, slices and counters anew, and leave out all other packets
    #[arg(long)]
    only_ftrace: bool,
    /// Pack the output with gzip, whatever OUT's ending
    #[arg(long)]
    gzip: bool,
    /// Add the critical path of each launch and of each late frame as a track: what `why` finds
    #[arg(long)]
    why: bool,
}

/// How the output is written and the summary printed, for every command that writes a timeline.
#[derive(Args)]
pub(super) struct WriteArgs {
    /// R8's or ProGuard's mapping.txt: gives obfuscated names back, of methods and inside markers
    #[arg(long, value_name = "MAPPING.TXT")]
    mapping: Option<PathBuf>,
    /// Begin at this time after the trace's begin (1.5s, 200ms, 350us); what began before begins here
    #[arg(long, value_name = "TIME", value_parser = units::nanoseconds)]
    from: Option<u64>,
    /// End at this time after the trace's begin
    #[arg(long, value_name = "TIME", value_parser = units::nanoseconds)]
    to: Option<u64>,
    /// Put the videos of the screen into the page; without it they stay files, which the page names
    #[arg(long)]
    embed_video: bool,
    #[command(flatten)]
    memory: MemoryArgs,
    /// Write the summary as JSON (docs/schemas/convert.json describes it)
    #[arg(long)]
    pub(super) json: bool,
    /// Exit with 3 also where nothing is missing, but calls had to be completed or the output lacks details
    #[arg(long)]
    strict: bool,
}

/// The formats that are read and written, for `--help`.
fn formats_help() -> String {
    let read: Vec<_> = formats::FORMATS.iter().map(|format| format.id.name()).collect();
    let mut help = format!(
        "Formats that are read, by their contents (gzip or zstd may pack them):\n  {}\n\nFormats that are \
         written, by OUT's ending or --format:\n",
        read.join(", ")
    );
    for format in FORMATS {
        help += &format!(
            "  {:<13} {}\n{:16}opens in {}\n",
            format.name,
            format.endings.join(" "),
            "",
            format.viewers
        );
    }
    help += &format!(
        "  {:<13} {TABLES_ENDING}\n{:16}a directory of tables, which opens in DuckDB, pandas, Spark\n",
        "parquet", ""
    );
    help
}

fn clock(name: &str) -> Result<Clock, String> {
    match name {
        "realtime" => Ok(Clock::Realtime),
        "mono" | "monotonic" => Ok(Clock::Monotonic),
        "boot" | "boottime" => Ok(Clock::Boottime),
        "cpu-counter" | "counter" => Ok(Clock::Counter),
        _ => Err("one of realtime, mono, boot, cpu-counter".into()),
    }
}

/// Runs the command.
pub fn merge(args: MergeArgs) -> anyhow::Result<Exit> {
    let MergeArgs { inputs, output, write, place } = &args;
    if is_tables(output) {
        return write_tables(inputs, output, write, place);
    }
    let request = request(inputs, &output.output, write, place);
    let format = output.format.as_deref();
    let only_ftrace = output.only_ftrace;
    let gzip = output.gzip;
    let critical_paths = output.why;
    write_timeline(ConvertRequest { format, only_ftrace, gzip, critical_paths, ..request }, write, place)
}

/// Whether the output is the directory of tables that a dataset has of each trace.
fn is_tables(output: &OutputArgs) -> bool {
    match &output.format {
        Some(format) => format.trim_start_matches('.') == TABLES_FORMAT,
        None => output.output.extension().is_some_and(|ending| ending.eq_ignore_ascii_case(TABLES_FORMAT)),
    }
}

/// The name of the format of a directory of tables: its ending without the dot.
const TABLES_FORMAT: &str = TABLES_ENDING.split_at(1).1;

/// Writes the tables of a trace as a directory, and prints the summary.
fn write_tables(
    inputs: &[PathBuf],
    output: &OutputArgs,
    write: &WriteArgs,
    place: &PlaceArgs,
) -> anyhow::Result<Exit> {
    if is_stdout(&output.output) || output.gzip || output.only_ftrace || output.why {
        return Err(UsageError::from("tables are a directory of compressed files: name it with -o").into());
    }
    if write.mapping.is_some() || write.from.is_some() || write.to.is_some() {
        return Err(UsageError::from(
            "tables hold a whole trace as it is: leave --mapping, --from and --to out",
        )
        .into());
    }
    if write.embed_video {
        return Err(UsageError::from("--embed-video puts videos into a page, and tables are none").into());
    }
    let options = TraceOptions {
        large: LargeTables { method_calls: true, events: true },
        keep_damaged: true,
        tags: &[],
        unpack_limit: write.memory.limit(),
        options: place.options(),
    };
    let bar = ProgressBar::of(inputs);
    let result = dataset::export(inputs, &output.output, &options);
    drop(bar);
    let exported = result?;
    let summary = &exported.summary;
    let is_lossy = summary.report.is_lossy();
    let is_irregular = !summary.report.irregular.is_empty();
    let path = &output.output;
    let to = &mut TerminalWriter::new(io::stdout().lock());
    let printed = if write.json {
        let value = ConversionJson {
            output: OutputFile::new(path, TABLES_FORMAT, Some(exported.bytes)),
            outcome: summary,
            losses: &ConversionLosses::default(),
            lossy: is_lossy,
            irregular: is_irregular,
        };
        serde_json::to_value(value).map_err(io::Error::from).and_then(|value| writeln!(to, "{value}"))
    } else {
        print_summary(to, summary, place.explain).and_then(|()| {
            writeln!(
                to,
                "written: {} (a directory of tables, {})",
                path.display(),
                byte_size(exported.bytes)
            )?;
            writeln!(to, "open it: DuckDB, pandas, Spark; docs/dataset.md describes the tables")
        })
    };
    unless_unread(printed.and_then(|()| to.flush()))?;
    Ok(if is_lossy || write.strict && is_irregular { Exit::Lossy } else { Exit::Complete })
}

/// The request to write `inputs` to `output` in the format that its ending names.
pub(super) fn request<'a>(
    inputs: &'a [PathBuf],
    output: &'a Path,
    write: &'a WriteArgs,
    place: &PlaceArgs,
) -> ConvertRequest<'a> {
    ConvertRequest {
        inputs,
        output,
        format: None,
        mapping: write.mapping.as_deref(),
        only_ftrace: false,
        gzip: false,
        unpack_limit: write.memory.limit(),
        options: place.options(),
        window: WindowRequest { from_ns: write.from, to_ns: write.to },
        critical_paths: false,
        embed_videos: write.embed_video,
        app_packages: &[],
    }
}

/// Writes a timeline, and prints the summary.
pub(super) fn write_timeline(
    request: ConvertRequest<'_>,
    args: &WriteArgs,
    place: &PlaceArgs,
) -> anyhow::Result<Exit> {
    let output = request.output;
    let explain = place.explain;
    let bar = ProgressBar::of(request.inputs);
    let result = Conversion::prepare(request).and_then(Conversion::run);
    drop(bar);
    let converted = result.map_err(conversion_error)?;
    // Where the file itself goes to standard output, the summary goes to standard error.
    if is_stdout(output) {
        // The output is written: that nobody reads the summary does not change the result.
        let _ = print(io::stderr(), output, args, &converted, explain);
    } else {
        unless_unread(print(io::stdout().lock(), output, args, &converted, explain))?;
    }
    let is_lossy = converted.is_lossy() || args.strict && converted.is_irregular();
    Ok(if is_lossy { Exit::Lossy } else { Exit::Complete })
}

/// The error of printing a summary. A reader of the summary that went away is no error.
fn unless_unread(printed: io::Result<()>) -> anyhow::Result<()> {
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("standard output"),
        _ => Ok(()),
    }
}

/// The error of a conversion, as one of the command line where that is what it is.
pub(super) fn conversion_error(error: ConvertError) -> anyhow::Error {
    if error.is_usage() { UsageError::from(error.to_string()).into() } else { error.into() }
}

fn print(
    to: impl Write,
    output: &Path,
    args: &WriteArgs,
    converted: &Converted,
    explain: bool,
) -> io::Result<()> {
    let to = &mut TerminalWriter::new(to);
    if args.json {
        writeln!(to, "{}", serde_json::to_value(ConversionJson::new(output, converted))?)?;
    } else {
        print_summary(to, &converted.summary, explain)?;
        print_output(to, output, converted)?;
    }
    to.flush()
}

/// The summary of a conversion for scripts.
#[derive(Serialize, JsonSchema)]
pub(super) struct ConversionJson<'a> {
    output: OutputFile<'a>,
    /// The timeline.
    outcome: &'a MergeSummary,
    #[serde(flatten)]
    losses: &'a ConversionLosses,
    /// Whether events were lost, an input is damaged, or data was dropped; the exit status is then 3.
    lossy: bool,
    /// Whether something had to be worked out or reduced; the exit status is then 3 with --strict.
    irregular: bool,
}

impl<'a> ConversionJson<'a> {
    fn new(output: &'a Path, converted: &'a Converted) -> ConversionJson<'a> {
        ConversionJson {
            output: OutputFile::new(output, converted.format.name, converted.bytes),
            outcome: &converted.summary,
            losses: &converted.losses,
            lossy: converted.is_lossy(),
            irregular: converted.is_irregular(),
        }
    }
}

/// The file that was written.
#[derive(Serialize, JsonSchema)]
pub(super) struct OutputFile<'a> {
    path: Cow<'a, str>,
    /// The name that --format takes.
    format: &'static str,
    /// Size of the output; null where it is no regular file.
    bytes: Option<u64>,
}

impl<'a> OutputFile<'a> {
    pub fn new(path: &'a Path, format: &'static str, bytes: Option<u64>) -> OutputFile<'a> {
        OutputFile { path: path.to_string_lossy(), format, bytes }
    }
}

fn micros(ns: u64) -> String {
    format!("{:.1} µs", ns as f64 / 1e3)
}

fn print_summary(to: &mut dyn Write, summary: &MergeSummary, explain: bool) -> io::Result<()> {
    for input in &summary.inputs {
        writeln!(to, "{} ({}, {})", input.name, input.format, byte_size(input.size))?;
        writeln!(to, "  clock: {}, {}: {}", input.clock, input.verdict.name(), input.why)?;
        if input.offset_ns != 0 {
            writeln!(to, "  moved by {} ns", input.offset_ns)?;
        }
        if let Some((error_ns, confidence)) = input.error_ns.zip(input.confidence) {
            let error = micros(error_ns);
            let percent = confidence * 100.0;
            writeln!(to, "  right within {error}, with {percent:.0} % confidence")?;
        }
        if let Some(median) = input.residual_median_ns.filter(|_| explain || input.error_ns.is_none()) {
            let p99 =
                input.residual_p99_ns.map(|p| format!(", 99 % within {}", micros(p))).unwrap_or_default();
            writeln!(to, "  residual: {} (median){p99}", micros(median))?;
        }
        if input.duplicates > 0 {
            writeln!(to, "  {} events left out: another input has them too", input.duplicates)?;
        }
        for line in input.explain.iter().filter(|_| explain) {
            writeln!(to, "    {line}")?;
        }
    }
    let report = &summary.report;
    let samples: u64 = summary.contents.get(DataKind::Samples);
    for (cpu, count) in &report.cpus {
        let gaps =
            if count.gaps > 0 { format!(", {} gaps of unknown size", count.gaps) } else { String::new() };
        writeln!(to, "CPU {cpu}: {} events, {} lost{gaps}", count.events, count.lost)?;
    }
    let events = report.events();
    let markers = summary.markers;
    let samples = if samples > 0 { format!("{samples} samples, ") } else { String::new() };
    writeln!(to, "total: {events} events, {markers} markers, {samples}{}", calls_and_threads(summary))?;
    for line in super::track_event_lines(&report.track_events) {
        writeln!(to, "{line}")?;
    }
    if let (Some(first), Some(last)) = (report.first_ts, report.last_ts) {
        if let Some(window) = summary.window.map(Window::in_trace) {
            let [from, to_time] = [window.from_ns, window.to_ns].map(|ns| ns as f64 / 1e9);
            writeln!(to, "part: from {from:.6} s to {to_time:.6} s after the trace's begin")?;
        }
        let seconds = last.since(first) as f64 / 1e9;
        writeln!(to, "time: {seconds:.6} s from the first event to the last, clock {}", summary.clock)?;
    }
    print_list(to, report.losses.iter().map(|loss| loss.to_string()))?;
    print_list(to, report.irregular.iter().map(|line| format!("irregular: {line}")))?;
    print_list(to, report.notes.iter().map(|note| format!("note: {note}")))?;
    let damage = report.damage.iter();
    print_list(to, damage.map(|damage| format!("damage at byte {}: {}", damage.offset, damage.what)))
}

/// How many method calls and threads there are: `93880 calls of 3688 methods, 111 threads`.
fn calls_and_threads(summary: &MergeSummary) -> String {
    let calls = summary.methods;
    if summary.window.is_some() || summary.traced_methods == 0 {
        return format!("{calls} method calls, {} threads", summary.threads);
    }
    // The threads of a method trace have no ids of the kernel where no recording tells them.
    let threads = summary.threads.max(summary.traced_threads);
    format!("{calls} calls of {} methods, {threads} threads", summary.traced_methods)
}

/// Prints what the output has no place for, how large it is, and how to open it.
fn print_output(to: &mut dyn Write, output: &Path, converted: &Converted) -> io::Result<()> {
    let format = converted.format;
    let losses = &converted.losses;
    if !losses.dropped.is_empty() {
        let list = ConversionLosses::list(&losses.dropped);
        writeln!(to, "dropped: {list}: {} has no place for them", format.name)?;
    }
    if !losses.reduced.is_empty() {
        let list = ConversionLosses::list(&losses.reduced);
        writeln!(to, "reduced: {list}: {} lacks these details, or holds them in another form", format.name)?;
    }
    if let Some(bytes) = converted.bytes {
        writeln!(to, "written: {} ({}, {})", output.display(), format.name, byte_size(bytes))?;
        writeln!(to, "open it: {}", format.viewers)?;
    }
    Ok(())
}
