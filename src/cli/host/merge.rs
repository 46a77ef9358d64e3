//! `merge` and `convert`: inputs onto one clock, into a format that people open.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Parser;
use flate2::write::GzEncoder;
use serde_json::json;

use crate::art::Mapping;
use crate::cli::Exit;
use crate::clock::Clock;
use crate::export::{self, Out, OutputFormat, perfetto_zip};
use crate::formats::detect;
use crate::formats::input::Input;
use crate::timeline::{self, MergeOptions, MergeSummary, Renamed, Source};

/// Put recordings and method traces on one clock, and write them as one file
///
/// Kernel recordings (trace.dat, atrace and ftrace text, systrace HTML) and method traces (am profile, Debug.startMethodTracing)
/// of the same moments go in, in any number; one file comes out. The clock of a method trace is found by what both
/// contain; the summary says which it is, why, and how far what should coincide is apart.
///
/// Exit status: 0 complete, 1 failed, 2 usage, 3 done, but events were lost or an input is damaged.
#[derive(Parser)]
pub struct MergeArgs {
    /// The files to put together; - is standard input
    #[arg(required = true)]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    common: Common,
    /// ns to add to the method trace's own times, instead of finding it out (may be negative)
    #[arg(long, value_name = "NS", allow_hyphen_values = true)]
    offset: Option<i64>,
    /// The clock of the method trace's start: realtime, mono, boot or cpu-counter
    #[arg(long, value_name = "CLOCK", value_parser = clock)]
    clock: Option<Clock>,
    /// Say what was tried to find the clock and the threads, and what came of it
    #[arg(long)]
    explain: bool,
}

/// Turn one file into another format
///
/// The same as merge with one input: trace.dat, text, HTML or a method trace becomes what OUT's ending says.
#[derive(Parser)]
pub struct ConvertArgs {
    /// The file to convert; - is standard input
    input: PathBuf,
    #[command(flatten)]
    common: Common,
}

#[derive(Parser)]
struct Common {
    /// Where to write; its ending names the format, a further .gz packs it; - is standard output
    #[arg(long, short, value_name = "OUT")]
    output: PathBuf,
    /// The format to write, whatever OUT's ending
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// R8's or ProGuard's mapping.txt: gives obfuscated names back, of methods and inside markers
    #[arg(long, value_name = "MAPPING.TXT")]
    mapping: Option<PathBuf>,
    /// Pack the output with gzip, whatever OUT's ending
    #[arg(long)]
    gzip: bool,
    /// Write the summary as JSON
    #[arg(long)]
    json: bool,
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

/// Runs `merge`.
pub fn merge(args: MergeArgs) -> anyhow::Result<Exit> {
    let options = MergeOptions { offset_ns: args.offset, clock: args.clock };
    run(&args.inputs, &args.common, &options, args.explain)
}

/// Runs `convert`.
pub fn convert(args: ConvertArgs) -> anyhow::Result<Exit> {
    run(&[args.input], &args.common, &MergeOptions::default(), false)
}

fn run(inputs: &[PathBuf], common: &Common, options: &MergeOptions, explain: bool) -> anyhow::Result<Exit> {
    let target = target(common)?;
    let sources = inputs.iter().map(|path| Source::open(path)).collect::<Result<Vec<_>, _>>()?;
    if let Some(same) = inputs.iter().find(|path| is_same(path, &common.output)) {
        bail!("{}: is an input and the output: name another output", same.display());
    }
    let mapping_file = common.mapping.as_deref().map(Input::open).transpose()?;
    let mapping = match &mapping_file {
        Some(file) => Some(Mapping::parse(file).with_context(|| file.name.clone())?),
        None => None,
    };
    let mut exporter = match target {
        Target::File(format) => export::create(format, open(common)?),
        Target::PerfettoZip => {
            check_zip(common, &sources)?;
            perfetto_zip::create(create(&common.output)?, &sources)?
        }
    };
    let progress = progress(&sources);
    let result = match &mapping {
        Some(mapping) => timeline::merge(&sources, &mut Renamed::new(exporter.as_mut(), mapping), options),
        None => timeline::merge(&sources, exporter.as_mut(), options),
    };
    progress.finish_and_clear();
    drop(exporter);
    let outcome = match result {
        Ok(outcome) => outcome,
        Err(error) => {
            if is_file(&common.output) {
                // Half a file that looks like a whole one helps nobody.
                let _ = fs::remove_file(&common.output);
            }
            return Err(error.into());
        }
    };
    let written = fs::metadata(&common.output).ok().filter(|m| m.is_file()).map(|m| m.len());
    // Where the file itself goes to standard output, the summary goes beside it.
    let mut to: Box<dyn Write> =
        if is_stdout(common) { Box::new(io::stderr()) } else { Box::new(io::stdout()) };
    if common.json {
        let output = json!({ "path": common.output, "format": target.name(), "bytes": written });
        writeln!(
            to,
            "{}",
            json!({ "output": output, "outcome": outcome, "lossy": outcome.report.is_lossy() })
        )?;
    } else {
        summary(&mut to, &outcome, explain)?;
        how_to_open(&mut to, common, target, written)?;
    }
    Ok(if outcome.report.is_lossy() { Exit::Lossy } else { Exit::Complete })
}

/// What is written.
#[derive(Clone, Copy)]
enum Target {
    File(OutputFormat),
    PerfettoZip,
}

impl Target {
    fn name(self) -> &'static str {
        match self {
            Target::File(format) => format.name(),
            Target::PerfettoZip => perfetto_zip::NAME,
        }
    }

    fn viewers(self) -> &'static str {
        match self {
            Target::File(format) => format.viewers(),
            Target::PerfettoZip => OutputFormat::Perfetto.viewers(),
        }
    }
}

fn target(common: &Common) -> anyhow::Result<Target> {
    let names = || {
        let formats = OutputFormat::ALL.iter().map(|(_, n, ends)| format!("{n} ({})", ends.join(" ")));
        let zip = format!("{} ({})", perfetto_zip::NAME, perfetto_zip::ENDING);
        formats.chain([zip]).collect::<Vec<_>>().join(", ")
    };
    match &common.format {
        Some(name) if name == perfetto_zip::NAME => Ok(Target::PerfettoZip),
        Some(name) => {
            let format = OutputFormat::of_name(name)
                .with_context(|| format!("--format {name}: not one of {}", names()))?;
            Ok(Target::File(format))
        }
        None if common.output.to_string_lossy().ends_with(perfetto_zip::ENDING) => Ok(Target::PerfettoZip),
        None => OutputFormat::of_path(&common.output).map(Target::File).with_context(|| {
            let out = common.output.display();
            format!("{out}: its ending names no format; use --format, or one of: {}", names())
        }),
    }
}

/// What a zip for Perfetto cannot be made of.
fn check_zip(common: &Common, sources: &[Source]) -> anyhow::Result<()> {
    if is_stdout(common) || common.gzip {
        bail!("a zip is written to a file, and packed no further: name one with -o");
    }
    if common.mapping.is_some() {
        bail!("the method traces go into a zip as they are: --mapping needs one file (-o OUT.pftrace)");
    }
    let methods = sources.iter().filter(|s| s.format == detect::InputFormat::ArtMethod).count();
    if methods == 0 || methods == sources.len() {
        bail!(
            "a zip for Perfetto relates method traces to a recording: give it both, or write one file (-o OUT.pftrace)"
        );
    }
    Ok(())
}

fn is_stdout(common: &Common) -> bool {
    common.output.as_os_str() == "-"
}

fn is_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|m| m.is_file())
}

fn is_same(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b && a.is_file())
}

fn open(common: &Common) -> anyhow::Result<Out> {
    let out: Out = if is_stdout(common) {
        if io::stdout().is_terminal() {
            bail!("standard output is a terminal: redirect it, or name a file with -o");
        }
        Box::new(io::stdout())
    } else {
        Box::new(create(&common.output)?)
    };
    let packed = common.gzip || common.output.extension().is_some_and(|e| e == "gz");
    Ok(if packed { Box::new(GzipOut(GzEncoder::new(out, flate2::Compression::fast()))) } else { out })
}

fn create(path: &Path) -> anyhow::Result<File> {
    File::create(path).with_context(|| format!("{}", path.display()))
}

/// gzip whose end is written by `flush`, which exporters call once, at the end.
struct GzipOut(GzEncoder<Out>);

impl Write for GzipOut {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.try_finish()?;
        self.0.get_mut().flush()
    }
}

fn progress(sources: &[Source]) -> indicatif::ProgressBar {
    let bytes: u64 = sources.iter().map(|s| s.input.size).sum();
    let bar = if io::stderr().is_terminal() && bytes > 32 << 20 {
        indicatif::ProgressBar::new_spinner()
    } else {
        indicatif::ProgressBar::hidden()
    };
    bar.set_message(format!("{} input files, {}", sources.len(), size(bytes)));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Bytes for people.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

fn micros(ns: u64) -> String {
    format!("{:.1} µs", ns as f64 / 1e3)
}

fn summary(to: &mut dyn Write, outcome: &MergeSummary, explain: bool) -> io::Result<()> {
    for input in &outcome.inputs {
        writeln!(to, "{} ({}, {})", input.name, input.format, size(input.size))?;
        writeln!(to, "  clock: {}, {}: {}", input.clock, input.verdict.name(), input.why)?;
        if input.offset_ns != 0 {
            writeln!(to, "  moved by {} ns", input.offset_ns)?;
        }
        if let Some(median) = input.residual_median_ns {
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
    let report = &outcome.report;
    for (cpu, count) in &report.cpus {
        let gaps =
            if count.gaps > 0 { format!(", {} gaps of unknown size", count.gaps) } else { String::new() };
        writeln!(to, "CPU {cpu}: {} events, {} lost{gaps}", count.events, count.lost)?;
    }
    let (markers, methods, threads) = (outcome.markers, outcome.methods, outcome.threads);
    writeln!(
        to,
        "total: {} events, {markers} markers, {methods} methods, {threads} threads",
        report.events()
    )?;
    if let (Some(first), Some(last)) = (report.first_ts, report.last_ts) {
        writeln!(to, "time: {:.6} s, clock {}", last.saturating_sub(first) as f64 / 1e9, outcome.clock)?;
    }
    for line in &report.irregular {
        writeln!(to, "irregular: {line}")?;
    }
    for note in &report.notes {
        writeln!(to, "note: {note}")?;
    }
    for damage in &report.damage {
        writeln!(to, "damage at byte {}: {}", damage.offset, damage.what)?;
    }
    Ok(())
}

fn how_to_open(to: &mut dyn Write, common: &Common, target: Target, written: Option<u64>) -> io::Result<()> {
    if let Some(bytes) = written {
        writeln!(to, "written: {} ({}, {})", common.output.display(), target.name(), size(bytes))?;
        writeln!(to, "open it: {}", target.viewers())?;
    }
    Ok(())
}
