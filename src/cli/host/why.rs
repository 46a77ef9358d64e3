//! `why`: says why a launch, a frame, a slice or a stretch of a thread took as long as it did.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Parser;

use super::MemoryArgs;
use super::against::AgainstArgs;
use super::merge::{PlaceArgs, conversion_error};
use super::progress_bar::ProgressBar;
use crate::cli::{Exit, exit::UsageError, units};
use crate::console::TerminalWriter;
use crate::export::convert::ConvertRequest;
use crate::export::explain::{ExplainError, Explained, explain, explain_runs};
use crate::file_access;
use crate::why::{Question, difference, lines, lines_of_several, thread_lines};

/// Say why a launch, a frame or a slice took as long as it did: causes that add up
///
/// Follows the critical path: what the thread did itself, and for each of its waits what the thread did that
/// ended it, through any number of threads and processes. Every nanosecond belongs to exactly one cause, and
/// what the trace does not tell is a line of its own. Without a question it is about the first launch, else
/// about the late frames, else about the longest slices of a main thread.
///
/// It needs a recording with the category sched; irq, disk, freq, binder_driver and a method trace make the
/// causes finer. docs/why.md has the rule of each cause.
///
/// Exit status: 0 explained, 1 failed or nothing of the kind is in the trace, 2 usage, 3 explained, but
/// events were lost or an input is damaged.
#[derive(Parser)]
pub struct WhyArgs {
    /// The files of one trace: a recording, and its method trace where there is one; - is standard input
    #[arg(required_unless_present = "against")]
    inputs: Vec<PathBuf>,
    /// Explain a launch: by its number, or all of a package [default: the first]
    #[arg(long, value_name = "N|PACKAGE", num_args = 0..=1, default_missing_value = "1", group = "question")]
    launch: Option<String>,
    /// Explain a frame by its number, or all that were late
    #[arg(long, value_name = "N|late", num_args = 0..=1, default_missing_value = "late", group = "question")]
    frame: Option<String>,
    /// Explain the slices of this name, or whose name contains it
    #[arg(long, value_name = "NAME", group = "question")]
    slice: Option<String>,
    /// Explain the calls of this method (package.Class.method, or a part of it)
    #[arg(long, value_name = "NAME", group = "question")]
    method: Option<String>,
    /// Explain a stretch of this thread, by its name or number
    #[arg(long, value_name = "THREAD", group = "question")]
    thread: Option<String>,
    /// With --thread: begin at this time after the trace's begin (1.5s, 200ms)
    #[arg(long, value_name = "TIME", value_parser = units::nanoseconds, requires = "thread")]
    from: Option<u64>,
    /// With --thread: end at this time after the trace's begin
    #[arg(long, value_name = "TIME", value_parser = units::nanoseconds, requires = "thread")]
    to: Option<u64>,
    #[command(flatten)]
    against: AgainstArgs,
    /// The causes that are printed of each span; the rest is one line
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Say also in the time of which threads the causes lie: a line for each, with its causes
    #[arg(long)]
    threads: bool,
    /// Write one JSON object (docs/schemas/why.json describes it)
    #[arg(long)]
    json: bool,
    /// Look for the app's own code in this package alone; can be given several times [default: the package of
    /// the app's name, else all that is neither Android's nor that of a known library]
    #[arg(long, value_name = "PACKAGE")]
    app_package: Vec<String>,
    /// R8's or ProGuard's mapping.txt: gives obfuscated names back
    #[arg(long, value_name = "MAPPING.TXT")]
    mapping: Option<PathBuf>,
    #[command(flatten)]
    memory: MemoryArgs,
    #[command(flatten)]
    place: PlaceArgs,
}

impl WhyArgs {
    fn question(&self) -> Result<Question, UsageError> {
        for (flag, usual, value) in [("--launch", "1", &self.launch), ("--frame", "late", &self.frame)] {
            if let Some(file) = value.as_deref().filter(|value| file_access::is_file(Path::new(value))) {
                return Err(UsageError::from(format!(
                    "{flag} has taken the file {file}: name the files first, or write {flag}={usual}"
                )));
            }
        }
        if let Some(launch) = &self.launch {
            return Ok(Question::of_launch(launch));
        }
        if let Some(frame) = &self.frame {
            return Question::of_frame(frame).ok_or_else(|| {
                UsageError::from(format!("--frame takes a frame's number or the word late, not {frame:?}"))
            });
        }
        if let Some(name) = &self.slice {
            return Ok(Question::Slice(name.clone()));
        }
        if let Some(name) = &self.method {
            return Ok(Question::Method(name.clone()));
        }
        Ok(match &self.thread {
            Some(thread) => Question::Stretch { thread: thread.clone(), from_ns: self.from, to_ns: self.to },
            None => Question::Usual,
        })
    }

    /// The request that reads these inputs.
    fn request<'a>(&'a self, inputs: &'a [PathBuf]) -> ConvertRequest<'a> {
        ConvertRequest {
            mapping: self.mapping.as_deref(),
            app_packages: &self.app_package,
            unpack_limit: self.memory.limit(),
            options: self.place.options(),
            ..ConvertRequest::to_read(inputs)
        }
    }
}

fn explain_error(error: ExplainError) -> anyhow::Error {
    match error {
        ExplainError::Convert(error) => conversion_error(error),
        ExplainError::Nothing { .. } => error.into(),
    }
}

/// Runs `why`.
pub fn run(args: WhyArgs) -> anyhow::Result<Exit> {
    let question = args.question()?;
    let older = args.against.old_files("why", &args.inputs)?;
    let files: Vec<PathBuf> = args.inputs.iter().chain(older).cloned().collect();
    let bar = ProgressBar::of(&files);
    let request = args.request(&args.inputs);
    let result = if older.is_empty() {
        explain(request, &question).map(|new| (new, None))
    } else {
        let again = request.clone();
        explain_runs(request, &args.inputs, &question)
            .and_then(|new| Ok((new, Some(explain_runs(again, older, &question)?))))
    };
    drop(bar);
    let (new, old) = result.map_err(explain_error)?;
    let out = &mut TerminalWriter::new(io::stdout().lock());
    print(out, &args, &new, old.as_ref()).context("standard output")?;
    let is_lossy = new.is_lossy || old.is_some_and(|old| old.is_lossy);
    Ok(if is_lossy { Exit::Lossy } else { Exit::Complete })
}

fn print(out: &mut dyn Write, args: &WhyArgs, new: &Explained, old: Option<&Explained>) -> io::Result<()> {
    let change = old.map(|old| difference(&new.explanations, &old.explanations));
    if args.json {
        writeln!(out, "{}", serde_json::to_value(new.json(change.as_ref()))?)?;
        return out.flush();
    }
    let text = match (&change, new.explanations.as_slice()) {
        (Some(change), _) => change.lines(args.limit),
        (None, [one]) => lines(one, args.limit),
        (None, several) => lines_of_several(several, args.limit),
    };
    let threads = args.threads.then(|| thread_lines(&new.explanations, args.limit));
    for line in text.into_iter().chain(threads.into_iter().flatten()) {
        writeln!(out, "{line}")?;
    }
    for missing in &new.missing {
        writeln!(out, "note: {missing}")?;
    }
    for loss in new.losses.iter().chain(old.iter().flat_map(|old| old.losses.iter())) {
        writeln!(out, "{loss}")?;
    }
    if new.is_lossy {
        writeln!(out, "note: events were lost, or an input is damaged: `tracebridge info` says where")?;
    }
    out.flush()
}
