//! Commands of the product that run on the device and print something: `doctor`, `list`, `mark`, `start`.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::outcome::{self, Outcome};
use super::target::TargetArgs;
use crate::adb::ShellOutput;
use crate::cli::Exit;
use crate::cli::exit::UsageError;
use crate::console::complain;
use crate::remote::{Device, REMOTE_PATH};

/// How long such a command may be silent. `doctor` looks at thousands of files.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// What a command on a device has printed, and its status.
pub(super) struct RunThere {
    pub(super) serial: String,
    pub(super) output: ShellOutput,
}

impl RunThere {
    /// The exit status as that of a command here. What it said on standard error is printed.
    ///
    /// # Errors
    /// The command's own words if it has failed without printing a result.
    pub(super) fn exit(&self) -> anyhow::Result<Exit> {
        let words = self.output.words().replace("tracebridge: ", "");
        match self.output.status {
            0 => Ok(Exit::Complete),
            2 => Err(UsageError(format!("{}: {words}", self.serial).into()).into()),
            3 => Ok(Exit::Lossy),
            _ if self.output.stdout.is_empty() || self.output.status > 3 => {
                anyhow::bail!("{}: {words}", self.serial)
            }
            _ => Ok(Exit::Failed),
        }
    }
}

/// Runs a command of the product on a device, with all the rights that are to be had.
pub(super) fn run_there(mut device: Device, words: &[String]) -> anyhow::Result<RunThere> {
    device.ensure_binary(None)?;
    let words = [&[REMOTE_PATH.to_owned()], words].concat();
    let output = device.run(&words, device.privilege(), PATIENCE)?;
    if output.status == 0 && !output.stderr.is_empty() {
        complain(format_args!("{}: {}", device.serial(), String::from_utf8_lossy(&output.stderr).trim_end()));
    }
    Ok(RunThere { serial: device.serial().to_owned(), output })
}

/// The flags of `adb doctor` and `adb list`.
#[derive(Debug, Args)]
struct ReportFlags {
    #[command(flatten)]
    target: TargetArgs,
}

/// Say what a device permits: tracefs, clocks, files, categories, and why not the rest
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 where something can be recorded, else 1.")]
pub struct DoctorArgs {
    #[command(flatten)]
    flags: ReportFlags,
}

/// List the categories that a device supports and, for the rest, why not
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 where some category works, else 1.")]
pub struct ListArgs {
    #[command(flatten)]
    flags: ReportFlags,
}

/// Runs `adb doctor`.
pub fn doctor(args: &DoctorArgs) -> anyhow::Result<Exit> {
    report("doctor", &args.flags)
}

/// Runs `adb list`.
pub fn list(args: &ListArgs) -> anyhow::Result<Exit> {
    report("list", &args.flags)
}

fn report(command: &str, flags: &ReportFlags) -> anyhow::Result<Exit> {
    let words: Vec<String> =
        [command, "--json"].into_iter().take(1 + usize::from(flags.target.json)).map(str::to_owned).collect();
    let results = flags.target.on_each(|device, _| {
        let there = run_there(device, &words)?;
        let (exit, text) = (there.exit()?, there.output.text());
        let json = match serde_json::from_str(&text) {
            Ok(object @ Value::Object(_)) => object,
            Ok(other) => json!({ command: other }),
            Err(_) => json!({ "text": text }),
        };
        Ok(Outcome { exit, text, json })
    })?;
    outcome::print(results, flags.target.json)
}
