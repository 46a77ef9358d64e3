//! `launch`: records an app's cold start together with its method trace.

use std::path::PathBuf;

use clap::Parser;
use serde::Serialize;

use super::record::{AccessArgs, StepArgs, capture_target, print_notice, print_on, recording_request};
use crate::android::activity_manager::{MethodTracer, Profiler, TracerOptions};
use crate::android::simpleperf::Sampler;
use crate::android::system_bin;
use crate::cli::Exit;
use crate::cli::exit::UsageError;
use crate::cli::recording_flags::{
    ClockTypeArg, LAUNCH_CATEGORIES, LaunchFlags, RecordSelection, SchedulingArgs,
};
use crate::console::complain;
use crate::record::CaptureTarget;
use crate::record::launch::{LaunchError, LaunchReport, LaunchRequest, launch_unrecorded, record_launch};
use crate::record::recorder::{RecordingMode, RecordingPlan};
use crate::trace_dat::recording_summary::RecordingSummary;

/// Record an app's cold start: stop it, record, start it with its method profiler on, wait for the launch to
/// end
///
/// Writes a capture and a method trace, for `tracebridge merge` on the host.
#[derive(Parser)]
#[command(after_help = "\
The app must be debuggable or profileable (or the device a userdebug build) for its methods to be traced. Otherwise
--no-profile records the start alone. A launch that does not end is given up when -t is over or on a signal. Recording
and profiler are stopped then, and the kernel's settings are put back.

With --sample the device's simpleperf samples the app in place of that, and writes FILE.perf.data; it samples apps that are
debuggable or profileable, as root all.

Exit status: 0 both files are there; 1 the app did not start or its launch did not end (the capture is there); 3 events
were lost, or there is no method trace or there are no samples.

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
    #[command(flatten)]
    flags: LaunchFlags,
    #[command(flatten)]
    access: AccessArgs,
    #[command(flatten)]
    scheduling: SchedulingArgs,
    /// Start the app and trace its methods only, while another program records
    #[arg(long)]
    no_record: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    steps: StepArgs,
}

impl LaunchArgs {
    fn tracer(&self) -> MethodTracer {
        let flags = &self.flags;
        if flags.low_overhead || flags.long_running {
            return MethodTracer::AlwaysOn { long_running: flags.long_running, duration: flags.time };
        }
        MethodTracer::Regular(TracerOptions {
            sampling_us: flags.sampling.or(flags.sample.map(|frequency| 1_000_000 / frequency)),
            streaming: flags.streaming,
            clock: flags.clock_type.map(ClockTypeArg::name),
            output_version: flags.profiler_output_version,
        })
    }
}

/// Runs `launch`.
pub fn run(args: LaunchArgs) -> anyhow::Result<Exit> {
    args.steps.apply();
    if args.output.extension().is_some_and(|ending| ending == "trace") && !args.flags.no_profile {
        return Err(UsageError::from(
            "-o FILE.trace is the method trace's name: choose another ending, such as .dat",
        )
        .into());
    }
    // `am` has the path opened by a process with another working directory.
    let output = std::path::absolute(&args.output)?;
    let sampler = args.flags.sample.and_then(|frequency| {
        let program = Sampler::program_in(&system_bin())?;
        let path = output.with_extension("perf.data");
        Some(Sampler { program, path, frequency, time: args.flags.time })
    });
    // A device without simpleperf samples with the method profiler.
    let is_profiled = if args.flags.sample.is_some() { sampler.is_none() } else { !args.flags.no_profile };
    let profiler =
        is_profiled.then(|| Profiler { path: output.with_extension("trace"), tracer: args.tracer() });
    let request = LaunchRequest {
        app: args.app.clone(),
        profiler,
        sampler,
        is_warm: args.flags.warm,
        settle: args.flags.settle,
    };
    if args.no_record {
        return print(None, launch_unrecorded(&request, args.flags.time), args.json);
    }
    let plan = RecordingPlan {
        target: CaptureTarget {
            readable: args.access.readable,
            ..capture_target(&args.selection, &args.output)
        },
        duration: Some(args.flags.time),
        mode: RecordingMode::Stream,
        nice: args.scheduling.nice,
    };
    let recording = recording_request(&args.selection, &LAUNCH_CATEGORIES)?;
    let recorded = record_launch(&request, recording, &plan, &mut print_notice)?;
    print(Some(&recorded.summary), recorded.launch, args.json)
}

/// The summary that is printed as JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct LaunchSummary<'a> {
    #[serde(flatten)]
    recording: Option<&'a RecordingSummary>,
    /// Null for a launch that failed. With --no-record the fields of a recording are absent.
    app_start: Option<&'a LaunchReport>,
    /// Why Android did not start the app; `None` where it did.
    not_launched: Option<String>,
}

/// Prints the recording and the launch.
fn print(
    recording: Option<&RecordingSummary>,
    launch: Result<LaunchReport, LaunchError>,
    json: bool,
) -> anyhow::Result<Exit> {
    let to_stdout = recording.is_none_or(|summary| !summary.is_on_stdout());
    let text = if json {
        let app_start = launch.as_ref().ok();
        let not_launched = launch.as_ref().err().filter(|error| error.is_refusal()).map(ToString::to_string);
        serde_json::to_string(&LaunchSummary { recording, app_start, not_launched })? + "\n"
    } else {
        recording.map(RecordingSummary::text).unwrap_or_default()
    };
    print_on(to_stdout, &text);
    let report = launch?;
    if !json {
        report.times.iter().for_each(|line| complain(format_args!("{line}")));
    }
    let is_lossy = recording.is_some_and(RecordingSummary::is_lossy);
    if let Some(error) = report.tracer_refused {
        complain(format_args!("tracebridge: {error}"));
        return Ok(Exit::Lossy);
    }
    if let Some(error) = report.sampler_refused {
        complain(format_args!("tracebridge: {error}"));
        return Ok(Exit::Lossy);
    }
    if let Some(samples) = report.samples.filter(|_| !json) {
        complain(format_args!("samples: {} ({} bytes)", samples.path.display(), samples.bytes));
    }
    if let Some(trace) = report.method_trace {
        let path = trace.path.display();
        if trace.bytes == 0 {
            complain(format_args!(
                "tracebridge: no method trace at {path}: is the app debuggable or profileable?"
            ));
            return Ok(Exit::Lossy);
        }
        if !json {
            complain(format_args!("method trace: {path} ({} bytes)", trace.bytes));
        }
    }
    Ok(if is_lossy { Exit::Lossy } else { Exit::Complete })
}
