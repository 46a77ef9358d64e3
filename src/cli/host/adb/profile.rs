//! `adb profile`: the method trace of an app that runs.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::TargetArgs;
use super::results::print;
use crate::cli::Exit;
use crate::cli::host::terminal::TERMINAL;
use crate::desk::{self, ProfilerRequest};

/// Trace the methods of an app that runs
///
/// The app must be debuggable or profileable, or the device a userdebug build.
#[derive(Debug, Args)]
#[command(after_help = "  tracebridge adb profile start com.example.app --sampling 1000
  tracebridge adb profile stop com.example.app -o methods.trace")]
pub struct AppProfileArgs {
    #[command(subcommand)]
    command: ProfileCommand,
}

#[derive(Debug, Subcommand)]
enum ProfileCommand {
    /// Start the app's method profiler
    Start(ProfilerStartArgs),
    /// Stop it, and fetch the method trace
    Stop(ProfilerStopArgs),
}

#[derive(Debug, Args)]
struct ProfilerStartArgs {
    /// The app's process: its package's name, and what `android:process` adds (com.example.app:remote)
    #[arg(value_name = "PROCESS")]
    app: String,
    /// Sample the app's stacks at this interval in microseconds, instead of tracing each call
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u32).range(1..))]
    sampling: Option<u32>,
    /// Let the runtime write while it traces, so that its buffer of 8 MiB is no limit (Android 8 and newer)
    #[arg(long)]
    streaming: bool,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Debug, Args)]
struct ProfilerStopArgs {
    /// The app's process, as it was started
    #[arg(value_name = "PROCESS")]
    app: String,
    /// The output: .trace is the method trace itself, another ending names a format to convert to
    #[arg(short, long, value_name = "FILE", default_value = "methods.trace")]
    output: PathBuf,
    #[command(flatten)]
    target: TargetArgs,
}

/// Runs `adb profile`.
pub fn run(args: &AppProfileArgs) -> anyhow::Result<Exit> {
    match &args.command {
        ProfileCommand::Start(args) => {
            let request = ProfilerRequest {
                app: args.app.clone(),
                sampling_us: args.sampling,
                streaming: args.streaming,
            };
            print(desk::start_profiler(&request, &args.target.targets(), &TERMINAL), args.target.json)
        }
        ProfileCommand::Stop(args) => {
            let results = desk::stop_profiler(&args.app, &args.output, &args.target.targets(), &TERMINAL);
            print(results, args.target.json)
        }
    }
}
