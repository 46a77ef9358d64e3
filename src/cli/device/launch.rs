//! `launch`: records an app's cold start together with its method trace.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use super::record::{AccessArgs, RecordSelection, SchedulingArgs, print_notice, print_summary};
use crate::android::system::activity_manager::Profiler;
use crate::cli::exit::UsageError;
use crate::cli::{Exit, units};
use crate::console::complain;
use crate::record::CaptureTarget;
use crate::record::launch::{LaunchRequest, record_launch};
use crate::record::recorder::{RecordingMode, RecordingPlan};

/// The categories that are recorded if none is named. Those that the device does not have are left out.
const DEFAULT_CATEGORIES: [&str; 12] =
    ["sched", "freq", "idle", "am", "wm", "view", "gfx", "input", "dalvik", "res", "ss", "binder_driver"];

/// Record an app's cold start: stop it, record, start it with its method profiler on, wait for the launch to
/// end
///
/// Writes a capture and a method trace, for `tracebridge merge` on the host.
#[derive(Parser)]
#[command(after_help = "\
The app must be debuggable or profileable (or the device a userdebug build) for its methods to be traced. Otherwise
--no-profile records the start alone. A launch that does not end is given up when -t is over or on a signal. Recording
and profiler are stopped then, and the kernel's settings are put back.

Exit status: 0 both files are there; 1 the app did not start or its launch did not end (the capture is there); 3 events
were lost, or there is no method trace.

  tracebridge launch com.example.app -o /data/local/tmp/start.dat
  adb pull /data/local/tmp/start.dat; adb pull /data/local/tmp/start.trace
  tracebridge merge start.dat start.trace -o start.pftrace")]
pub struct LaunchArgs {
    /// The app and its activity; without an activity, the one that the app's icon starts
    #[arg(value_name = "PACKAGE[/ACTIVITY]")]
    app: String,
    #[command(flatten)]
    selection: RecordSelection,
    /// Where the capture goes; the method trace goes beside it, as FILE.trace instead of FILE.dat
    #[arg(short, long, value_name = "FILE", default_value = "/data/local/tmp/launch.dat")]
    output: PathBuf,
    /// Record the start alone, without the method profiler
    #[arg(long)]
    no_profile: bool,
    /// Sample the app's stacks at this interval in microseconds, instead of tracing each call
    #[arg(long, value_name = "US", conflicts_with = "no_profile", value_parser = clap::value_parser!(u32).range(1..))]
    sampling: Option<u32>,
    /// Let the runtime write while it traces, so that its buffer of 8 MiB is no limit (Android 8 and newer)
    #[arg(long, conflicts_with = "no_profile")]
    streaming: bool,
    /// Go on for this time after the launch has ended (500ms, 2, 2s)
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::duration)]
    settle: Duration,
    /// Stop recording at this time at the latest, counted from its start (30, 1m)
    #[arg(short = 't', long, value_name = "TIME", default_value = "60s", value_parser = units::duration)]
    time: Duration,
    #[command(flatten)]
    access: AccessArgs,
    #[command(flatten)]
    scheduling: SchedulingArgs,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// Runs `launch`.
pub fn run(args: LaunchArgs) -> anyhow::Result<Exit> {
    if args.output.extension().is_some_and(|ending| ending == "trace") && !args.no_profile {
        return Err(UsageError::from(
            "-o FILE.trace is the method trace's name: choose another ending, such as .dat",
        )
        .into());
    }
    // `am` has the path opened by a process with another working directory.
    let output = std::path::absolute(&args.output)?;
    let profiler = (!args.no_profile).then(|| Profiler {
        path: output.with_extension("trace"),
        sampling_us: args.sampling,
        streaming: args.streaming,
    });
    let request = LaunchRequest {
        recording: args.selection.request(&DEFAULT_CATEGORIES)?,
        plan: RecordingPlan {
            target: CaptureTarget { readable: args.access.readable, ..args.selection.target(&args.output) },
            duration: Some(args.time),
            mode: RecordingMode::Stream,
            nice: args.scheduling.nice,
        },
        app: args.app,
        profiler,
        settle: args.settle,
    };
    let recorded = record_launch(&request, &mut print_notice)?;
    let exit = print_summary(&recorded.summary, args.json)?;
    let report = recorded.launch?;
    report.times.iter().for_each(|line| complain(format_args!("{line}")));
    let Some(trace) = report.method_trace else { return Ok(exit) };
    let path = trace.path.display();
    if trace.bytes > 0 {
        complain(format_args!("method trace: {path} ({} bytes)", trace.bytes));
        return Ok(exit);
    }
    complain(format_args!("tracebridge: no method trace at {path}: is the app debuggable or profileable?"));
    Ok(Exit::Lossy)
}
