//! `adb start`, `dump` and `stop`: the flight recorder of a device.

use std::path::PathBuf;

use clap::Args;

use super::TargetArgs;
use super::forwarded::{Forwarded, device_args, name_args};
use super::results::print;
use crate::cli::Exit;
use crate::cli::host::terminal::TERMINAL;
use crate::cli::recording_flags::{ContentArgs, RecordSelection, TraceBufferArgs};
use crate::desk;

/// Start a flight recorder on devices: the kernel keeps the latest events, also when nothing is connected
///
/// `adb dump` fetches the events that it holds, `adb stop` ends it and puts the kernel's settings back.
#[derive(Debug, Args)]
pub struct StartArgs {
    #[command(flatten)]
    selection: Forwarded<RecordSelection>,
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
    contents: Forwarded<ContentArgs>,
    #[command(flatten)]
    buffer: Forwarded<TraceBufferArgs>,
    #[command(flatten)]
    target: TargetArgs,
}

impl DumpFlags {
    /// The arguments for the device's `dump` or `stop`.
    fn device_args(&self) -> Vec<String> {
        device_args(self.contents.given().chain(self.buffer.given()))
    }
}

/// Runs `adb start`.
pub fn start(args: &StartArgs) -> anyhow::Result<Exit> {
    let names = args.selection.flags.all_names()?;
    let start_args = [device_args(args.selection.given()), name_args(&names)].concat();
    print(desk::start_flight_recorder(&start_args, &args.target.targets(), &TERMINAL), args.target.json)
}

/// Runs `adb dump`.
pub fn dump(args: &DumpArgs) -> anyhow::Result<Exit> {
    let DumpArgs { output, shared } = args;
    let targets = shared.target.targets();
    let results = desk::fetch_flight("dump", &shared.device_args(), output, &targets, &TERMINAL);
    print(results, shared.target.json)
}

/// Runs `adb stop`.
pub fn stop(args: &StopArgs) -> anyhow::Result<Exit> {
    let StopArgs { output, shared } = args;
    let targets = shared.target.targets();
    let results = match output {
        Some(output) => desk::fetch_flight("stop", &shared.device_args(), output, &targets, &TERMINAL),
        None => desk::stop_flight_recorder(&device_args(shared.buffer.given()), &targets, &TERMINAL),
    };
    print(results, shared.target.json)
}
