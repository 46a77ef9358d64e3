//! `adb start`, `dump` and `stop`: the flight recorder of a device.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::finish;
use super::outcome::{self, Outcome};
use super::recorded::record_session;
use super::run_there::{RunThere, run_there};
use super::target::TargetArgs;
use crate::cli::Exit;
use crate::cli::recording_flags::{ContentArgs, RecordSelection, TraceBufferArgs};
use crate::remote::{Device, Job, Recorder};

/// Start a flight recorder on devices: the kernel keeps the latest events, also when nothing is connected
///
/// `adb dump` fetches the events that it holds, `adb stop` ends it and puts the kernel's settings back.
#[derive(Debug, Args)]
pub struct StartArgs {
    #[command(flatten)]
    selection: RecordSelection,
    #[command(flatten)]
    target: TargetArgs,
}

/// Fetch the events that a flight recorder holds, while it goes on
#[derive(Debug, Args)]
pub struct DumpArgs {
    /// The output: its ending names the format; .dat is the capture itself
    #[arg(short, long, value_name = "FILE", default_value = "trace.dat")]
    output: PathBuf,
    #[command(flatten)]
    shared: DumpFlags,
}

/// Stop the flight recorder of devices, and put the kernel's settings back
#[derive(Debug, Args)]
pub struct StopArgs {
    /// Fetch the events that it holds first, into this file; its ending names the format
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    shared: DumpFlags,
}

#[derive(Debug, Args)]
struct DumpFlags {
    #[command(flatten)]
    contents: ContentArgs,
    #[command(flatten)]
    buffer: TraceBufferArgs,
    #[command(flatten)]
    target: TargetArgs,
}

/// Runs `adb start`.
pub fn start(args: &StartArgs) -> anyhow::Result<Exit> {
    let words = [vec!["start".to_owned()], args.selection.words()?].concat();
    let results = args.target.on_each(|device, _| {
        let there = run_there(device, &words)?;
        let text = there.output.text();
        Ok(Outcome { exit: there.exit()?, json: json!({ "text": text.trim() }), text })
    })?;
    outcome::print(results, args.target.json)
}

/// Runs `adb dump`.
pub fn dump(args: &DumpArgs) -> anyhow::Result<Exit> {
    fetch("dump", &args.output, &args.shared)
}

/// Runs `adb stop`.
pub fn stop(args: &StopArgs) -> anyhow::Result<Exit> {
    let shared = &args.shared;
    if let Some(output) = &args.output {
        return fetch("stop", output, shared);
    }
    let words = [vec!["stop".to_owned()], shared.buffer.words()].concat();
    let results = shared.target.on_each(|device, _| {
        let there: RunThere = run_there(device, &words)?;
        Ok(Outcome { exit: there.exit()?, text: "stopped\n".to_owned(), json: json!({}) })
    })?;
    outcome::print(results, shared.target.json)
}

fn fetch(command: &str, output: &Path, shared: &DumpFlags) -> anyhow::Result<Exit> {
    finish::check_output(output)?;
    let words = [vec![command.to_owned()], shared.contents.words(), shared.buffer.words()].concat();
    let results = shared.target.on_each(|mut device: Device, name| {
        device.ensure_binary(None)?;
        let output = name.of(output);
        record_session(&device, &Job::of(Recorder::Own(&words)), &output, name.is_alone())
            .map(|(outcome, _)| outcome)
    })?;
    outcome::print(results, shared.target.json)
}
