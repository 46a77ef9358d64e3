//! `launch`: an app's cold start, its method trace, and a recording around both.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;

use super::record::{What, target, tell};
use super::record_while::{Over, record_around};
use crate::android::activity_manager::{Activity, ActivityError, Profiler};
use crate::android::system_bin;
use crate::cli::{Exit, units};
use crate::console::complain;
use crate::record::Signals;
use crate::record::recorder::{Config, Mode};
use crate::record::setup::WhenFull;

/// What is recorded where nothing is named: what there is of it on the device.
const DEFAULT: [&str; 12] =
    ["sched", "freq", "idle", "am", "wm", "view", "gfx", "input", "dalvik", "res", "ss", "binder_driver"];

/// Record an app's cold start: stop it, record, start it with its method profiler on, wait for the launch to end
///
/// Leaves a capture and a method trace, for `tracebridge merge` on the host.
#[derive(Parser)]
#[command(after_help = "\
The app must be debuggable or profileable (or the device a userdebug build) for its methods to be traced; without that,
--no-profile records the start alone. A launch that does not end is given up when -t is over or on a signal; recording
and profiler are stopped then, and the settings are as before.

Exit status: 0 both files are there; 1 the app did not start or did not end starting (what was recorded is there); 3 events were
lost, or there is no method trace.

  tracebridge launch com.example.app -o /data/local/tmp/start.dat
  adb pull /data/local/tmp/start.dat; adb pull /data/local/tmp/start.trace
  tracebridge merge start.dat start.trace -o start.pftrace")]
pub struct Args {
    /// The app, and which of its activities; without that, the one that its icon starts
    #[arg(value_name = "PACKAGE[/ACTIVITY]")]
    app: String,
    #[command(flatten)]
    what: What,
    /// Where the capture goes; the method trace goes beside it, as FILE.trace instead of FILE.dat
    #[arg(short, long, value_name = "FILE", default_value = "/data/local/tmp/launch.dat")]
    output: PathBuf,
    /// Record the start alone, without the method profiler
    #[arg(long)]
    no_profile: bool,
    /// Sample the app's stacks every so many microseconds, instead of tracing each call
    #[arg(long, value_name = "US", conflicts_with = "no_profile", value_parser = clap::value_parser!(u32).range(1..))]
    sampling: Option<u32>,
    /// Have the runtime write while it traces, so that its buffer of 8 MiB is no limit (Android 8 and newer)
    #[arg(long, conflicts_with = "no_profile")]
    streaming: bool,
    /// Go on for this long after the launch has ended (500ms, 2, 2s)
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::duration)]
    settle: Duration,
    /// Stop recording at this time at the latest, counted from its start (30, 1m)
    #[arg(short = 't', long, value_name = "TIME", default_value = "60s", value_parser = units::duration)]
    time: Duration,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// Records the start.
pub fn run(mut args: Args) -> anyhow::Result<Exit> {
    let activity = Activity::find(&args.app, &system_bin())?;
    args.what.or(&DEFAULT);
    args.what.also_app(&activity.package);
    let profiler = (!args.no_profile).then(|| Profiler {
        path: args.output.with_extension("trace"),
        sampling_us: args.sampling,
        streaming: args.streaming,
    });
    if let Some(profiler) = &profiler {
        // An old one would be taken for the new one while that is not written yet.
        let _ = std::fs::remove_file(&profiler.path);
    }
    activity.stop()?;
    let (tracefs, made) = args.what.kernel.buffer(true)?;
    let signals = Signals::block()?;
    let settings = args.what.settings(&tracefs, made)?;
    let (setup, notes) = args.what.setup(&tracefs, WhenFull::Overwrite)?;
    let target = target(&args.output, None, &args.what);
    let config = Config { setup, target, duration: Some(args.time), mode: Mode::Stream };
    let work = |over: &Over| {
        let launched = activity.start(profiler.as_ref(), || over.is());
        let settled = Instant::now() + args.settle;
        while launched.is_ok() && !over.is() && Instant::now() < settled {
            std::thread::sleep(Duration::from_millis(10));
        }
        let written = match (&launched, &profiler) {
            (Ok(_), Some(profiler)) => Some(activity.stop_profiler().map(|()| profiler.wait_until_written())),
            // Given up on: the app may be there all the same, being traced.
            (Err(ActivityError::NoAnswer { .. }), Some(_)) => Some(activity.stop_profiler().map(|()| 0)),
            _ => None,
        };
        (launched, written)
    };
    let (summary, done) = record_around(&config, settings, &signals, "the launch ended", work);
    let mut summary = summary?;
    summary.notes.splice(0..0, notes);
    let exit = tell(&summary, args.json)?;
    let (launched, written) = done.context("the recording did not start")?;
    let launched = launched.map_err(|error| match error {
        ActivityError::NoAnswer { .. } => {
            let component = &activity.component;
            anyhow::anyhow!("the recording ended ({}) before the launch of {component} did", summary.ended_by)
        }
        other => other.into(),
    })?;
    let written = written.transpose()?;
    for line in launched.lines().map(str::trim).filter(|l| l.contains("Time:") || l.contains("State:")) {
        complain(format_args!("{line}"));
    }
    match (&profiler, written) {
        (Some(profiler), Some(bytes)) if bytes > 0 => {
            complain(format_args!("method trace: {} ({bytes} bytes)", profiler.path.display()));
            Ok(exit)
        }
        (Some(profiler), _) => {
            let path = profiler.path.display();
            complain(format_args!(
                "tracebridge: no method trace at {path}: is the app debuggable or profileable?"
            ));
            Ok(Exit::Lossy)
        }
        (None, _) => Ok(exit),
    }
}
