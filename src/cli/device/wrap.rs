//! `wrap`: runs a command inside of a slice, with a recording around it.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use anyhow::Context;
use clap::Parser;

use super::marker_target;
use super::record::{RecordSelection, print_notice};
use crate::android::tags::Tag;
use crate::cli::{Exit, units};
use crate::console::complain;
use crate::markers::{Marker, Tracer};
use crate::record::CaptureTarget;
use crate::record::record_while::{RecordedWork, record_while};
use crate::record::recorder::{RecordingMode, RecordingPlan};

/// The categories that are recorded if none is named.
const DEFAULT_CATEGORIES: [&str; 3] = ["sched", "freq", "idle"];

/// Run a command inside of a section, with a recording around it
#[derive(Parser)]
#[command(after_help = "\
The exit status is the command's own (128 + N when signal N ended it); 1 when it could not be run at all. The summary of
the recording goes to stderr, lost events included.

  tracebridge wrap sched freq -o build.dat -- make -j4
  tracebridge wrap --no-record --name backup -- ./backup.sh    (the section alone, for a recording that is on already)")]
pub struct WrapArgs {
    #[command(flatten)]
    selection: RecordSelection,
    /// Where the capture goes
    #[arg(short, long, value_name = "FILE", default_value = "trace.dat")]
    output: PathBuf,
    /// Stop recording when the capture holds this amount of events (bytes, or with k, m, g); the command goes
    /// on
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    max_size: Option<u64>,
    /// The section's name. Without it, the command
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Write the section only while this ATRACE tag is on (view, gfx, app, …). Default: `always`, a tag that
    /// is never off
    #[arg(long, value_name = "TAG", value_parser = marker_target::parse_tag)]
    tag: Option<Tag>,
    /// Write the section only, for a recording that is on already
    #[arg(long)]
    no_record: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs `wrap`.
pub fn run(args: WrapArgs) -> anyhow::Result<Exit> {
    if args.no_record {
        let tracer = marker_target::open_tracer(args.selection.buffer_args.tracefs.as_deref(), args.tag)?;
        return Ok(exit_of(run_in_section(&args, &tracer)?));
    }
    let target = CaptureTarget { max_bytes: args.max_size, ..args.selection.target(&args.output) };
    let plan = RecordingPlan { target, duration: None, mode: RecordingMode::Stream };
    let request = args.selection.request(&DEFAULT_CATEGORIES)?;
    // The recording switches tags on, so the tracer is opened once the recording has started.
    let RecordedWork { summary, result } =
        record_while(&request, &plan, "the command ended", &mut print_notice, |tracefs, _| {
            run_in_section(&args, &marker_target::open_tracer(Some(tracefs.root()), args.tag)?)
        })?;
    let Some(status) = result else {
        return summary.map(|_| Exit::Failed).context("nothing was run, since the recording did not start");
    };
    match summary {
        Ok(summary) => complain(format_args!("{}", summary.text().trim_end())),
        Err(error) => complain(format_args!("tracebridge: the recording: {error}")),
    }
    Ok(exit_of(status?))
}

/// Runs the command inside of a slice. The slice is written twice: for the thread that waits here, and as an
/// async slice of the command's process, where viewers show it beside the command's own threads.
fn run_in_section(args: &WrapArgs, tracer: &Tracer) -> anyhow::Result<ExitStatus> {
    let program = &args.command[0];
    let file = Path::new(program).file_name().map(|f| f.to_string_lossy().into_owned());
    let name = args.name.clone().or(file).unwrap_or_else(|| program.clone());
    let _section = tracer.section(&name);
    let mut child =
        Command::new(program).args(&args.command[1..]).spawn().with_context(|| program.clone())?;
    let pid = child.id() as i32;
    let (name, cookie) = (name.as_bytes(), i64::from(pid));
    // The command runs even if a marker cannot be written.
    let _ = tracer.write(&Marker::AsyncBegin { pid, name, cookie });
    let status = child.wait().with_context(|| program.clone())?;
    let _ = tracer.write(&Marker::AsyncEnd { pid, name, cookie });
    Ok(status)
}

/// The exit status that a shell gives for a command with this status.
fn exit_of(status: ExitStatus) -> Exit {
    let code = status.code().or_else(|| status.signal().map(|n| 128 + n));
    Exit::Child(code.and_then(|c| u8::try_from(c).ok()).unwrap_or(1))
}
