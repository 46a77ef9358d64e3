//! `adb pull`: files from a device, and recordings that are still on it.

use std::path::PathBuf;

use clap::Args;

use super::results::print;
use super::target::TargetArgs;
use super::terminal::TERMINAL;
use crate::cli::Exit;
use crate::cli::host::interrupt;
use crate::desk::{self, PullRequest};

/// Pull files from a device, or fetch what recordings have left there
///
/// A pulled file is compared with the device's by its length and its SHA-256, and removed on the device only
/// after that. Without FILE, lists the recordings that are on the device; --resume fetches and converts them
/// as `adb record` would have, those that are still running when they have ended. It replaces no file: where
/// one has the name of a recording, the recording gets a number (`trace-2.dat`).
#[derive(Debug, Args)]
#[command(after_help = "\
  tracebridge adb pull /data/local/tmp/x.dat --to out
  tracebridge adb pull                  (which recordings are on the device?)
  tracebridge adb pull --resume         (after a lost connection)")]
pub struct PullArgs {
    /// A path on the device; a name without a slash is in /data/local/tmp
    #[arg(value_name = "FILE", conflicts_with = "resume")]
    files: Vec<String>,
    /// Put the files into this directory, which is made if it is missing
    #[arg(long, value_name = "DIR", default_value = ".")]
    to: PathBuf,
    /// Do not remove the files on the device
    #[arg(long)]
    keep: bool,
    /// Fetch what recordings have left on the device, under the names that they were to have
    #[arg(long)]
    resume: bool,
    /// With --resume, replace files here that have the names of recordings
    #[arg(long, requires = "resume")]
    force: bool,
    #[command(flatten)]
    target: TargetArgs,
}

/// Runs `adb pull`.
pub fn run(args: &PullArgs) -> anyhow::Result<Exit> {
    let targets = args.target.targets();
    let request = PullRequest { directory: args.to.clone(), keep: args.keep, replace: args.force };
    let results = if args.resume {
        interrupt::hold_first();
        desk::resume(&request, &targets, &TERMINAL)
    } else if args.files.is_empty() {
        desk::list_recordings(&targets, &TERMINAL)
    } else {
        desk::pull(&request, &args.files, &targets, &TERMINAL)
    };
    print(results, args.target.json)
}
