//! `adb doctor` and `adb list`: what a device permits, and which categories it supports.

use clap::Args;

use super::results::print;
use super::target::TargetArgs;
use super::terminal::TERMINAL;
use crate::cli::Exit;
use crate::desk;

/// Say what a device permits: tracefs, clocks, files, categories, and why not the rest
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 where something can be recorded, else 1.")]
pub struct DoctorArgs {
    #[command(flatten)]
    target: TargetArgs,
}

/// List the categories that a device supports and, for the rest, why not
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 where some category works, else 1.")]
pub struct ListArgs {
    #[command(flatten)]
    target: TargetArgs,
}

/// Runs `adb doctor`.
pub fn doctor(args: &DoctorArgs) -> anyhow::Result<Exit> {
    report("doctor", &args.target)
}

/// Runs `adb list`.
pub fn list(args: &ListArgs) -> anyhow::Result<Exit> {
    report("list", &args.target)
}

fn report(command: &str, target: &TargetArgs) -> anyhow::Result<Exit> {
    print(desk::report(command, target.json, &target.targets(), &TERMINAL), target.json)
}
