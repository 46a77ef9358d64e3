//! The commands that run on the host: reading, merging, converting and profiling files.

mod dmtracedump;
mod info;
mod merge;
mod profile;

use clap::Subcommand;

use super::Exit;

/// The commands of the host.
#[derive(Subcommand)]
pub enum HostCommand {
    Merge(merge::MergeArgs),
    Convert(merge::ConvertArgs),
    Info(info::InfoArgs),
    Profile(Box<profile::ProfileArgs>),
    Dmtracedump(dmtracedump::DmtracedumpArgs),
}

impl HostCommand {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<Exit> {
        match self {
            HostCommand::Merge(args) => merge::merge(args),
            HostCommand::Convert(args) => merge::convert(args),
            HostCommand::Info(args) => info::run(args),
            HostCommand::Profile(args) => profile::run(*args),
            HostCommand::Dmtracedump(args) => dmtracedump::run(args),
        }
    }
}

/// A number of bytes for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
