//! `adb launch`: the cold start of an app on one timeline.

use std::path::PathBuf;

use clap::Args;

use super::finish;
use super::launch_series::{self, LaunchSeries};
use super::outcome::{self, Outcome};
use super::target::{OutputName, TargetArgs};
use super::via::ViaArg;
use crate::cli::Exit;
use crate::cli::host::interrupt;
use crate::cli::recording_flags::{LaunchFlags, RecordSelection, SchedulingArgs};
use crate::remote::Device;

/// Record an app's cold start: kernel trace, markers and method trace on one timeline, in one file here
///
/// Stops the app, records, starts it with its method profiler on, waits for the launch to end, pulls both
/// files and merges them. Traces that the app itself has written with androidx.tracing are fetched and merged
/// too.
#[derive(Debug, Args)]
#[command(after_help = "\
The app must be debuggable or profileable (or the device a userdebug build) for its methods to be traced. Where it is
not, the start alone is recorded, and the exit status is 3; with --no-profile it is 0. With an output that ends in .dat, the capture is this file, and the method trace
is beside it with the ending .trace.

Exit status: 0 complete; 1 the app did not start or its launch did not end; 3 events were lost, or there is no method
trace.

With -n or --against, each launch has an output of its own (start-1.pftrace, start-b-1.pftrace), and the medians, the
spread and the outliers are printed; with three launches or more on each side, a change is told from noise.

  tracebridge adb launch com.example.app -o start.pftrace
  tracebridge adb launch com.example.app -n 10 --against com.example.app.beta
  tracebridge adb launch --compare monday/ today/
  tracebridge adb launch com.example.app/.MainActivity sched freq --sampling 1000 -o start.html")]
pub struct LaunchArgs {
    /// The app and its activity; without an activity, the one that the app's icon starts
    #[arg(
        value_name = "PACKAGE[/ACTIVITY]",
        required_unless_present = "compare",
        default_value = "",
        hide_default_value = true
    )]
    app: String,
    /// Launch the app this many times, and say the median, the spread and the outliers
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Launch another app in turn with the first one, and say what is slower or faster in it, and whether
    /// that is more than noise: a package, or the .apk file of another version of the app, which is put in
    /// its place for its launches
    #[arg(long, value_name = "PACKAGE[/ACTIVITY]|FILE.apk")]
    against: Option<String>,
    /// Record nothing: compare launches that were recorded before (files, or directories with them)
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"], conflicts_with_all = ["app", "against", "runs"])]
    compare: Vec<PathBuf>,
    /// Measure up to the end of the first slice whose name contains MARKER, in place of the first frame: for
    /// apps that mark when their content is there. The recording must reach so far: see --settle
    #[arg(long, value_name = "MARKER")]
    until: Option<String>,
    /// Have the kernel drop its caches of files before each launch, so that the app is read from storage
    /// (needs root)
    #[arg(long)]
    drop_caches: bool,
    #[command(flatten)]
    selection: RecordSelection,
    /// The output: its ending names the format. With {serial} in its name, each device's serial stands there
    #[arg(short, long, value_name = "FILE", default_value = "launch.pftrace")]
    output: PathBuf,
    #[command(flatten)]
    flags: LaunchFlags,
    #[command(flatten)]
    scheduling: SchedulingArgs,
    /// What records on the device beside the method trace
    #[arg(long, value_enum, default_value_t = ViaArg::Auto)]
    via: ViaArg,
    #[command(flatten)]
    target: TargetArgs,
    /// Show the output in the browser: a page (.html) as it is, anything else in the Perfetto UI, which
    /// fetches it from this program. Of several outputs the first
    #[arg(long)]
    open: bool,
}

/// Runs `adb launch`.
pub fn run(args: &LaunchArgs) -> anyhow::Result<Exit> {
    if let [old, new] = &args.compare[..] {
        return launch_series::compare_recorded(old, new, args.target.json);
    }
    finish::check_output(&args.output)?;
    interrupt::hold_first();
    // Mistakes in the flags show before a device is asked.
    args.series().words(&args.app, &args.flags)?;
    let results = args.target.on_each(|device, name| launch_on(args, device, name))?;
    outcome::print_and_open(results, args.target.json, args.open)
}

impl LaunchArgs {
    /// The launches that the flags ask for.
    fn series(&self) -> LaunchSeries<'_> {
        LaunchSeries {
            app: &self.app,
            against: self.against.as_deref(),
            runs: self.runs,
            until: self.until.as_deref(),
            drop_caches: self.drop_caches,
            via: self.via,
            flags: &self.flags,
            selection: &self.selection,
            scheduling: &self.scheduling,
        }
    }
}

fn launch_on(args: &LaunchArgs, mut device: Device, name: &OutputName) -> anyhow::Result<Outcome> {
    device.ensure_binary(None)?;
    let output = name.of(&args.output);
    launch_series::run(&args.series(), &device, &output, name.is_alone())
}
