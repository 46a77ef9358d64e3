//! `adb launch`: the start of an app on one timeline.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Command};

use super::TargetArgs;
use super::forwarded::{Forwarded, GivenFlag, RecorderArg, device_args, trace_selection};
use super::results::print_and_open;
use crate::cli::Exit;
use crate::cli::host::merge::conversion_error;
use crate::cli::host::terminal::TERMINAL;
use crate::cli::host::{files_in, interrupt};
use crate::cli::recording_flags::{LAUNCH_CATEGORIES, LaunchFlags, RecordSelection, SchedulingArgs};
use crate::console::say;
use crate::desk::{self, LaunchSeriesRequest, RecordedLaunches, TraceSelection};

/// A recorder of the device ends by itself so long after the time for a launch.
const RECORDER_MARGIN: Duration = Duration::from_secs(10);

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

Ctrl-C ends a series of launches: those that were made are kept and told with the status that they have, 1 if there are
none. What was recorded of the launch that it cuts off is kept, and does not count.

With -n, each launch has an output of its own (start-1.pftrace, start-2.pftrace …); with --against, those of the first
app are start-a-1.pftrace …, those of the other one start-b-1.pftrace …. The medians, the spread and the outliers are
printed; with five launches or more on each side, also what is slower or faster, and how large a change can
be ruled out.

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
    /// Launch another app in turn with the first one, and say what is slower or faster in it:
    /// a package, or the .apk file of another version of the app, which is put in
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
    selection: Forwarded<RecordSelection>,
    /// The output: its ending names the format. With {serial} in its name, each device's serial stands there
    #[arg(short, long, value_name = "FILE", default_value = "launch.pftrace")]
    output: PathBuf,
    #[command(flatten)]
    launch: Forwarded<LaunchFlags>,
    #[command(flatten)]
    scheduling: Forwarded<SchedulingArgs>,
    /// Record the screen too, with the device's screenrecord, as an MP4 beside each output
    #[arg(long, conflicts_with = "compare")]
    video: bool,
    /// The recorder on the device, beside the method trace
    #[arg(long, value_enum, default_value_t = RecorderArg::Auto)]
    via: RecorderArg,
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
        return compare(&recorded(old)?, &recorded(new)?, args.target.json);
    }
    // Mistakes in the flags show before a device is asked.
    let request = args.request()?;
    interrupt::hold_first();
    let results = desk::launch(&request, &args.output, &args.target.targets(), &TERMINAL);
    print_and_open(results, args.target.json, args.open)
}

impl LaunchArgs {
    fn request(&self) -> anyhow::Result<LaunchSeriesRequest> {
        let names = self.selection.flags.all_names()?;
        let others = || self.scheduling.given().chain(self.selection.given());
        let mut recorded_names = names.clone();
        if names.is_empty() {
            recorded_names.extend(LAUNCH_CATEGORIES.map(str::to_owned));
        }
        let selection = TraceSelection {
            // The launch ends it; this is for a launch that does not.
            duration: Some(self.launch.flags.time + RECORDER_MARGIN),
            ..trace_selection(&self.selection, recorded_names, self.scheduling.given())
        };
        Ok(LaunchSeriesRequest {
            app: self.app.clone(),
            against: self.against.clone(),
            runs: self.runs,
            until: self.until.clone(),
            drop_caches: self.drop_caches,
            has_video: self.video,
            recorder: self.via.into(),
            traces_methods: !self.launch.flags.no_profile && self.launch.flags.sample.is_none(),
            flags: device_args(self.launch.given().chain(others())),
            flags_without_methods: [
                vec!["--no-profile".to_owned()],
                device_args(flags_without_methods(&self.launch).chain(others())),
            ]
            .concat(),
            names,
            selection,
        })
    }
}

/// The given flags that go with `--no-profile`.
fn flags_without_methods(launch: &Forwarded<LaunchFlags>) -> impl Iterator<Item = &GivenFlag> {
    const NO_PROFILE: &str = "no_profile";
    let command = LaunchFlags::augment_args(Command::new("launch"));
    let is_of_methods = move |flag: &GivenFlag| {
        let arg = command.get_arguments().find(|arg| *arg.get_id() == flag.id);
        arg.is_some_and(|arg| {
            command.get_arg_conflicts_with(arg).iter().any(|other| other.get_id() == NO_PROFILE)
        })
    };
    launch.given().filter(move |flag| flag.id != NO_PROFILE && !is_of_methods(flag))
}

/// The launches in a file, or in all files of a directory.
fn recorded(path: &Path) -> anyhow::Result<RecordedLaunches> {
    Ok(RecordedLaunches { title: path.display().to_string(), files: files_in(path)? })
}

/// Compares launches that were recorded before.
fn compare(old: &RecordedLaunches, new: &RecordedLaunches, as_json: bool) -> anyhow::Result<Exit> {
    let compared = desk::compare_recorded(old, new).map_err(conversion_error)?;
    if as_json {
        say(format_args!("{}\n", compared.to_json()?));
    } else {
        say(format_args!("{}\n", compared.lines().join("\n")));
    }
    Ok(Exit::Complete)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct TestCommand {
        #[command(flatten)]
        args: LaunchArgs,
    }

    fn request(line: &str) -> LaunchSeriesRequest {
        let words = std::iter::once("launch").chain(line.split(' '));
        TestCommand::parse_from(words).args.request().unwrap()
    }

    #[test]
    fn without_methods_the_flags_of_the_profiler_are_left_out_and_no_other() {
        let all = request(
            "com.a sched --sampling 100 --streaming --clock-type dual --profiler-output-version 2 --warm \
             --settle 2 -t 1m -b 99 --nice -5",
        );
        let rest = "--warm --settle=2 --time=1m --nice=-5 --buffer=99";
        assert_eq!(
            all.flags.join(" "),
            format!("--sampling=100 --streaming --clock-type=dual --profiler-output-version=2 {rest}")
        );
        assert_eq!(all.flags_without_methods.join(" "), format!("--no-profile {rest}"));
        for flag in ["--low-overhead", "--long-running"] {
            let request = request(&format!("com.a {flag}"));
            assert_eq!(
                (request.flags, request.flags_without_methods),
                (vec![flag.to_owned()], vec!["--no-profile".to_owned()])
            );
        }
        let none = request("com.a --no-profile --warm");
        assert!(!none.traces_methods);
        assert_eq!(none.flags_without_methods, ["--no-profile", "--warm"]);
    }

    #[test]
    fn recorders_of_the_device_get_the_categories_of_launches_where_nothing_is_named() {
        let named = request("com.a sched -t 5");
        assert_eq!(
            (named.names, named.selection.names),
            (vec!["sched".to_owned()], vec!["sched".to_owned()])
        );
        assert_eq!(named.selection.duration, Some(Duration::from_secs(15)));
        let default = request("com.a --exclude-self --settle 3");
        assert!(default.names.is_empty());
        assert_eq!(default.selection.names, LAUNCH_CATEGORIES);
        assert_eq!(default.selection.tracebridge_flags, ["--exclude-self"]);
    }
}
