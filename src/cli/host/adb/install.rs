//! `adb push` and `adb clean`: the binary on a device, and everything of tracebridge off it.

use clap::Args;

use super::results::print;
use super::target::TargetArgs;
use super::terminal::TERMINAL;
use crate::cli::Exit;
use crate::desk;

/// Put the tracebridge binary on a device, at /data/local/tmp/tracebridge, unless it is there
///
/// The other commands do that themselves. The binary is compared by its SHA-256, verified after the push, and
/// run once before it gets its name.
#[derive(Debug, Args)]
pub struct PushArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Push the binary for this ABI: arm64-v8a, armeabi-v7a, x86_64, x86 (armeabi-v7a runs on arm64 devices
    /// too). Default: the device's own
    #[arg(long, value_name = "ABI")]
    abi: Option<String>,
}

/// End what tracebridge has left running on a device, put the kernel's settings back, and remove its files
///
/// While recordings are there that nobody has fetched, nothing is done: `tracebridge adb pull --resume`
/// fetches them.
#[derive(Debug, Args)]
pub struct CleanArgs {
    /// Remove recordings, too, that nobody has fetched
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    target: TargetArgs,
}

/// Runs `adb push`.
pub fn push(args: &PushArgs) -> anyhow::Result<Exit> {
    print(desk::push(args.abi.as_deref(), &args.target.targets(), &TERMINAL), args.target.json)
}

/// Runs `adb clean`.
pub fn clean(args: &CleanArgs) -> anyhow::Result<Exit> {
    print(desk::clean(args.force, &args.target.targets(), &TERMINAL), args.target.json)
}
