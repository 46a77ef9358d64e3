//! The commands that run on the host: reading, merging, converting and profiling files.

mod dmtracedump;
mod info;
mod merge;
mod method_input;
mod profile;

use clap::Subcommand;

use super::Exit;

/// The commands of the host.
#[derive(Subcommand)]
pub enum HostCommand {
    Merge(merge::MergeArgs),
    Convert(merge::ConvertArgs),
    Info(info::Args),
    Profile(Box<profile::Args>),
    Dmtracedump(dmtracedump::Args),
}

impl HostCommand {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<Exit> {
        match self {
            HostCommand::Merge(args) => merge::merge(args),
            HostCommand::Convert(args) => merge::convert(args),
            HostCommand::Info(args) => info::run(args),
            HostCommand::Profile(args) => profile::run(&args),
            HostCommand::Dmtracedump(args) => dmtracedump::run(&args),
        }
    }
}
