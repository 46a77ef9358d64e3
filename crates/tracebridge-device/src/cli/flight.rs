//! `start`, `dump` and `stop`: the flight recorder, which goes on in the kernel after the command has ended.

use std::path::{Path, PathBuf};

use clap::Args;

use super::record::{CaptureArgs, StepArgs, buffer_request, print_notice, print_summary, recording_request};
use crate::cli::Exit;
use crate::cli::exit::UsageError;
use crate::cli::recording_flags::{RecordSelection, TraceBufferArgs};
use crate::console::say;
use crate::record::{CaptureTarget, flight_recorder};

/// Start a flight recorder: the kernel keeps the latest events in its buffer, also after this connection ends
///
/// `dump` takes the events out of the buffer, `stop` ends the flight recorder and puts the kernel's settings
/// back.
#[derive(Debug, Args)]
pub struct StartArgs {
    #[command(flatten)]
    selection: RecordSelection,
    #[command(flatten)]
    steps: StepArgs,
}

/// Take out the events that the flight recorder holds, while it goes on; the next dump has the events after
/// these
#[derive(Debug, Args)]
pub struct DumpArgs {
    /// Where the capture goes; - is a stream on stdout, for `tracebridge merge` on the host
    #[arg(short, long, value_name = "FILE", default_value = "trace.dat")]
    output: PathBuf,
    #[command(flatten)]
    capture: DumpCaptureArgs,
}

/// Stop the flight recorder and put the kernel's settings back
#[derive(Debug, Args)]
pub struct StopArgs {
    /// Take out the events that the flight recorder holds first, into this capture
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    capture: DumpCaptureArgs,
}

/// The flags that `dump` and `stop` share.
#[derive(Debug, Args)]
struct DumpCaptureArgs {
    #[command(flatten)]
    flags: CaptureArgs,
    #[command(flatten)]
    buffer: TraceBufferArgs,
    #[command(flatten)]
    steps: StepArgs,
}

impl DumpCaptureArgs {
    fn target(&self, path: &Path) -> Result<CaptureTarget, UsageError> {
        let compress = self.flags.compress_for(path)?;
        Ok(CaptureTarget {
            path: path.to_owned(),
            max_bytes: None,
            kallsyms: self.flags.contents.kallsyms,
            readable: self.flags.access.readable,
            compress,
        })
    }
}

/// Runs `start`.
pub fn start(args: &StartArgs) -> anyhow::Result<Exit> {
    args.steps.apply();
    let applied = flight_recorder::start(&recording_request(&args.selection, &[])?, &mut print_notice)?;
    say(format_args!("flight recorder on: {} events, clock {}\n", applied.events.len(), applied.clock));
    for note in &applied.notes {
        say(format_args!("  note: {note}\n"));
    }
    Ok(Exit::Complete)
}

/// Runs `dump`.
pub fn dump(args: &DumpArgs) -> anyhow::Result<Exit> {
    args.capture.steps.apply();
    let target = args.capture.target(&args.output)?;
    let summary = flight_recorder::dump(&buffer_request(&args.capture.buffer, false), &target)?;
    print_summary(&summary, args.capture.flags.json)
}

/// Runs `stop`.
pub fn stop(args: &StopArgs) -> anyhow::Result<Exit> {
    args.capture.steps.apply();
    let target = args.output.as_deref().map(|path| args.capture.target(path)).transpose()?;
    if target.is_none() && args.capture.flags.is_compressed() {
        return Err(UsageError::from("--compress needs a capture to compress: -o FILE").into());
    }
    match flight_recorder::stop(
        &buffer_request(&args.capture.buffer, false),
        target.as_ref(),
        &mut print_notice,
    )? {
        Some(summary) => print_summary(&summary, args.capture.flags.json),
        None => Ok(Exit::Complete),
    }
}
