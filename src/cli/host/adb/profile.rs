//! `adb profile`: the method trace of an app that runs.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde_json::json;

use super::finish;
use super::outcome::{self, Outcome};
use super::target::{OutputName, TargetArgs};
use crate::cli::Exit;
use crate::cli::exit::UsageError;
use crate::remote::{COMMAND_TIME, Device, quoted};

/// The directory of the method traces on the device.
const DIR: &str = "/data/local/tmp";

/// How long the app may take to write its method trace.
const WRITE_TIME: Duration = Duration::from_secs(20);

/// Between two looks at the file's length. A length that does not change means that the file is whole.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Trace the methods of an app that runs
///
/// The app must be debuggable or profileable, or the device a userdebug build.
#[derive(Debug, Args)]
#[command(after_help = "\
  tracebridge adb profile start com.example.app --sampling 1000
  tracebridge adb profile stop com.example.app -o methods.trace")]
pub struct ProfileArgs {
    #[command(subcommand)]
    command: ProfileCommand,
}

#[derive(Debug, Subcommand)]
enum ProfileCommand {
    /// Start the app's method profiler
    Start(StartArgs),
    /// Stop it, and fetch the method trace
    Stop(StopArgs),
}

#[derive(Debug, Args)]
struct StartArgs {
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
struct StopArgs {
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
pub fn run(args: &ProfileArgs) -> anyhow::Result<Exit> {
    match &args.command {
        ProfileCommand::Start(args) => {
            check(&args.app)?;
            let results = args.target.on_each(|device, _| start(args, &device))?;
            outcome::print(results, args.target.json)
        }
        ProfileCommand::Stop(args) => {
            check(&args.app)?;
            if !finish::is_method_trace(&args.output) {
                finish::check_output(&args.output)?;
            }
            let results = args.target.on_each(|device, name| stop(args, &device, name))?;
            outcome::print(results, args.target.json)
        }
    }
}

/// Nothing but a process's name may reach `am`, which would take `-x` for an option.
fn check(app: &str) -> Result<(), UsageError> {
    let is_name = app.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.$:".contains(&b)) && !app.is_empty();
    match is_name {
        true => Ok(()),
        false => Err(UsageError(format!("\"{app}\" is no process of an app").into())),
    }
}

fn file(app: &str) -> String {
    format!("{DIR}/tracebridge-{}.trace", app.replace(':', "-"))
}

fn start(args: &StartArgs, device: &Device) -> anyhow::Result<Outcome> {
    let file = file(&args.app);
    am(device, &format!("rm -f {}", quoted(&file)))?;
    let mut words = vec!["am", "profile", "start"];
    let sampling = args.sampling.map(|us| us.to_string());
    if let Some(us) = &sampling {
        words.extend(["--sampling", us]);
    }
    if args.streaming {
        words.push("--streaming");
    }
    words.extend([args.app.as_str(), file.as_str()]);
    am(device, &crate::remote::command_line(&words))?;
    let text =
        format!("the methods of {} are traced; `tracebridge adb profile stop {0}` ends that\n", args.app);
    Ok(Outcome { exit: Exit::Complete, text, json: json!({}) })
}

fn stop(args: &StopArgs, device: &Device, name: &OutputName) -> anyhow::Result<Outcome> {
    let file = file(&args.app);
    am(device, &format!("am profile stop {}", quoted(&args.app)))?;
    let give_up = Instant::now() + WRITE_TIME;
    let mut last = 0;
    loop {
        let length = device.transport().sync()?.stat(&file)?.map_or(0, |stat| stat.size);
        if length > 0 && length == last {
            break;
        }
        if Instant::now() > give_up {
            anyhow::bail!(
                "{}: {file}: no method trace after {} s: does {} run, and is it debuggable or profileable?",
                device.serial(),
                WRITE_TIME.as_secs(),
                args.app
            );
        }
        last = length;
        std::thread::sleep(LOOK_INTERVAL);
    }
    let output = name.of(&args.output);
    let delivered = finish::deliver(device, std::slice::from_ref(&file), &output, name.is_alone())?;
    am(device, &format!("rm -f {}", quoted(&file)))?;
    let exit = if delivered.is_lossy { Exit::Lossy } else { Exit::Complete };
    Ok(Outcome { exit, text: format!("{}\n", delivered.text()), json: delivered.json() })
}

/// Runs a command whose words mean a failure when they begin with `Error`: the exit status of `am` is 0 even
/// then.
fn am(device: &Device, script: &str) -> anyhow::Result<()> {
    let output = device.run_script(script, device.privilege(), COMMAND_TIME)?;
    let words = output.words();
    let has_failed = output.status != 0 || words.contains("Error:") || words.contains("Exception");
    match has_failed {
        true if words.is_empty() => anyhow::bail!("{}: am: status {}", device.serial(), output.status),
        true => anyhow::bail!("{}: am: {words}", device.serial()),
        false => Ok(()),
    }
}
