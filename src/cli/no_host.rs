//! The device build's place of `cli/host`: it has none of the host's commands.

use std::ffi::OsString;

use clap::Subcommand;

use super::Exit;

/// No command.
#[derive(Subcommand)]
pub enum HostCommand {}

impl HostCommand {
    /// Never runs.
    pub fn run(self) -> anyhow::Result<Exit> {
        match self {}
    }
}

/// Prints an error of the command line.
pub fn print_usage_error(error: &clap::Error) {
    let _ = error.print();
}

/// The command line as it is: the device build stands in for no program of the host.
pub fn translate(args: impl Iterator<Item = OsString>) -> Result<Vec<OsString>, &'static str> {
    Ok(args.collect())
}
