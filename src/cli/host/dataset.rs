//! `dataset`: many traces as one set of Parquet tables, for DuckDB, Spark and other query engines.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use schemars::JsonSchema;
use serde::Serialize;

use super::progress_bar::ProgressBar;
use super::{MemoryArgs, print_list};
use crate::cli::Exit;
use crate::cli::exit::UsageError;
use crate::console::{TerminalWriter, complain};
use crate::dataset::{self, AddRequest, AddedEvent, KeptTag, LargeTables, ListedTrace, TraceOptions};
use crate::formats::with_iterations;
use crate::statistics::RankTest;
use crate::text::byte_size;
use crate::timeline::MergeOptions;

/// Collect many traces in one dataset, which any query engine reads
///
/// A dataset is a directory of Parquet files with the tables trace, thread, slice, sched, thread_state,
/// counter, method_profile, launch and others; docs/dataset.md describes each column. DuckDB, Spark and
/// pandas read it.
#[derive(Parser)]
pub struct DatasetArgs {
    #[command(subcommand)]
    command: DatasetCommand,
}

#[derive(Subcommand)]
enum DatasetCommand {
    Add(AddArgs),
    List(DatasetListArgs),
    Remove(RemoveArgs),
    Check(CheckArgs),
    /// Print the p-value of each line of standard input: [[OLD, …], [NEW, …]], for scripts/query
    #[command(hide = true)]
    PValues,
}

/// Add traces to a dataset
///
/// Takes what merge and profile read. A method trace NAME.trace and the one other file NAME.… beside it are
/// one trace: launch writes such pairs. A trace that the dataset has, by its contents, gets the tags that it
/// lacks. Traces appear whole: those of one part together, up to 64. After a kill, the same command again
/// adds what is missing. Where a day has many small parts, they are combined.
///
/// The directory of another dataset among the files stands for its traces, which keep their tags.
///
/// A file that is damaged or no trace is reported, and named in the table rejected; the others are added.
///
/// Exit status: 0 complete, 1 failed, 2 usage, 3 done, but some files were rejected, or added traces
/// miss events.
#[derive(Parser)]
struct AddArgs {
    /// The dataset's directory; it is made where it is missing
    dataset: PathBuf,
    /// The files, and other datasets
    #[arg(required_unless_present = "pair")]
    inputs: Vec<PathBuf>,
    /// A key and a value for the table tag, such as build=1234; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = tag)]
    tag: Vec<(String, String)>,
    /// Two files that are one trace, whatever their names; may be given several times
    #[arg(long, value_name = "A,B", value_parser = pair)]
    pair: Vec<[PathBuf; 2]>,
    /// Add each call of a method to the table method_call: large
    #[arg(long)]
    method_calls: bool,
    /// Add each kernel event as it was recorded to the table event: large
    #[arg(long)]
    events: bool,
    /// Take what can be read of damaged files
    #[arg(long)]
    keep_damaged: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

/// List the traces of a dataset
#[derive(Parser)]
struct DatasetListArgs {
    #[command(flatten)]
    place: DatasetPlaceArgs,
    /// Write the list as JSON (docs/schemas/dataset.json describes it)
    #[arg(long)]
    json: bool,
}

/// Remove a trace from a dataset
///
/// The other traces stay readable meanwhile. A rejected input is forgotten by its rejected_id.
#[derive(Parser)]
struct RemoveArgs {
    #[command(flatten)]
    place: DatasetPlaceArgs,
    /// The trace's id, or its first digits
    id: String,
}

/// Read a whole dataset, and report what is wrong with it
///
/// Exit status: 0 whole, 1 something is wrong.
#[derive(Parser)]
struct CheckArgs {
    #[command(flatten)]
    place: DatasetPlaceArgs,
}

#[derive(Args)]
struct DatasetPlaceArgs {
    /// The dataset's directory
    dataset: PathBuf,
}

pub(super) fn tag(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a tag is KEY=VALUE, such as build=1234".into()),
    }
}

fn pair(text: &str) -> Result<[PathBuf; 2], String> {
    match text.split(',').collect::<Vec<_>>()[..] {
        [a, b] if !a.is_empty() && !b.is_empty() => Ok([a.into(), b.into()]),
        _ => Err("a pair is two files with one comma between them: app.dat,app.trace".into()),
    }
}

/// Runs `dataset`.
pub fn run(args: DatasetArgs) -> anyhow::Result<Exit> {
    match args.command {
        DatasetCommand::Add(args) => add(&args),
        DatasetCommand::List(args) => list(&args),
        DatasetCommand::Remove(args) => remove(&args),
        DatasetCommand::Check(args) => check(&args),
        DatasetCommand::PValues => p_values(),
    }
}

/// Prints a number, or `null` with too few measurements, for each line of standard input.
fn p_values() -> anyhow::Result<Exit> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lines() {
        let [old, new]: [Vec<u64>; 2] = serde_json::from_str(&line?).context("standard input")?;
        writeln!(out, "{}", serde_json::to_string(&RankTest::p_value(&old, &new))?)?;
    }
    Ok(Exit::Complete)
}

fn wait_message() {
    complain(format_args!("tracebridge: another process writes to the dataset: waiting until it has ended"));
}

fn add(args: &AddArgs) -> anyhow::Result<Exit> {
    let mut keys: Vec<&str> = args.tag.iter().map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    if let Some([twice, ..]) = keys.windows(2).find(|keys| keys[0] == keys[1]) {
        return Err(UsageError::from(format!("--tag {twice}: this key is given twice")).into());
    }
    let (datasets, files): (Vec<PathBuf>, Vec<PathBuf>) =
        args.inputs.iter().cloned().partition(|input| dataset::is_dataset(input));
    let files = with_iterations(&files);
    let traces = dataset::pairs_of(&files, &args.pair);
    let options = TraceOptions {
        large: LargeTables { method_calls: args.method_calls, events: args.events },
        keep_damaged: args.keep_damaged,
        tags: &args.tag,
        unpack_limit: args.memory.limit(),
        options: MergeOptions::default(),
    };
    let bar = ProgressBar::of(&files);
    let mut report = |event: AddedEvent<'_>| match event {
        AddedEvent::Waits => wait_message(),
        AddedEvent::Rejected(reason) => complain(format_args!("tracebridge: {reason}")),
        AddedEvent::Lost(files, loss) => complain(format_args!("tracebridge: {files}: {loss}")),
        AddedEvent::KeepsTag(KeptTag { id, key, value }) => complain(format_args!(
            "tracebridge: the trace {id} keeps its tag {key}={value}: `tracebridge dataset remove` and add it again to change it"
        )),
    };
    let request = AddRequest { dataset: &args.dataset, traces: &traces, datasets: &datasets, options };
    let added = dataset::add(&request, &mut report);
    drop(bar);
    let added = added?;
    let to = &mut TerminalWriter::new(io::stdout().lock());
    let new = added.added;
    let known = added.known;
    let rejected = added.rejected;
    writeln!(
        to,
        "{}: traces: {new} added, {known} already there, {rejected} rejected",
        args.dataset.display()
    )
    .and_then(|()| match added.tagged {
        0 => Ok(()),
        tagged => writeln!(to, "tags: added to {tagged} of those already there"),
    })
    .and_then(|()| writeln!(to, "written: {}, parts: {}", byte_size(added.bytes), added.parts))
    .context("standard output")?;
    Ok(if rejected > 0 || added.lossy > 0 { Exit::Lossy } else { Exit::Complete })
}

fn list(args: &DatasetListArgs) -> anyhow::Result<Exit> {
    let traces = dataset::list(&args.place.dataset)?;
    let to = &mut TerminalWriter::new(io::stdout().lock());
    let printed = if args.json {
        let list = DatasetList { traces: &traces };
        serde_json::to_value(list).map_err(io::Error::from).and_then(|list| writeln!(to, "{list}"))
    } else {
        traces.iter().try_for_each(|trace| writeln!(to, "{}", line(trace)))
    };
    printed.and_then(|()| to.flush()).context("standard output")?;
    Ok(Exit::Complete)
}

/// The list of a dataset's traces for scripts.
#[derive(Serialize, JsonSchema)]
pub(super) struct DatasetList<'a> {
    traces: &'a [ListedTrace],
}

/// A trace in one line for people: the id that `remove` takes, the day, the length, the name and the tags.
fn line(trace: &ListedTrace) -> String {
    let ListedTrace { trace_id, day, name, dur_ns, lost_events, tags, .. } = trace;
    let mut line = format!("{trace_id}  {day}  {:>8.3} s  {name}", *dur_ns as f64 / 1e9);
    for (key, value) in tags {
        line += &format!("  {key}={value}");
    }
    if *lost_events > 0 {
        line += &format!("  {lost_events} events lost");
    }
    line
}

fn remove(args: &RemoveArgs) -> anyhow::Result<Exit> {
    let removed = dataset::remove(&args.place.dataset, &args.id, &mut wait_message)?;
    for what in &removed.damaged {
        complain(format_args!("tracebridge: {what}: what could be read of this table is kept"));
    }
    writeln!(TerminalWriter::new(io::stdout().lock()), "removed: {}", removed.name)
        .context("standard output")?;
    Ok(if removed.damaged.is_empty() { Exit::Complete } else { Exit::Lossy })
}

fn check(args: &CheckArgs) -> anyhow::Result<Exit> {
    let report = dataset::check(&args.place.dataset)?;
    let to = &mut TerminalWriter::new(io::stdout().lock());
    let traces = report.traces;
    let parts = report.parts;
    let rows = report.rows;
    let mut print = || -> io::Result<()> {
        writeln!(to, "{}: traces: {traces}, parts: {parts}, rows: {rows}", args.place.dataset.display())?;
        for dir in &report.unfinished {
            writeln!(to, "unfinished: {}: a writer is at work, or was killed", dir.display())?;
        }
        print_list(to, report.faults.iter().map(|fault| format!("fault: {fault}")))?;
        to.flush()
    };
    print().context("standard output")?;
    Ok(if report.faults.is_empty() { Exit::Complete } else { Exit::Failed })
}
