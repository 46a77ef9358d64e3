//! The commands that run on the device: recording, markers, and what the device permits.

mod atrace;
mod doctor;
mod flight;
mod launch;
mod mark;
mod marker_target;
mod record;
mod request_of_flags;
mod restore;
mod wrap;

use clap::Subcommand;

use super::Exit;

pub use atrace::dispatch;

/// The commands of the device.
#[derive(Subcommand)]
pub enum DeviceCommand {
    Mark(mark::MarkArgs),
    Atrace(atrace::AtraceArgs),
    Wrap(wrap::WrapArgs),
    Launch(launch::LaunchArgs),
    Doctor(doctor::DoctorArgs),
    List(doctor::ListArgs),
    Record(record::RecordArgs),
    Start(flight::StartArgs),
    Dump(flight::DumpArgs),
    Stop(flight::StopArgs),
    Restore(restore::RestoreArgs),
}

impl DeviceCommand {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<Exit> {
        match self {
            DeviceCommand::Mark(args) => mark::run(args),
            // `dispatch` has run it before clap saw the arguments.
            DeviceCommand::Atrace(_) => Ok(Exit::Complete),
            DeviceCommand::Wrap(args) => wrap::run(args),
            DeviceCommand::Launch(args) => launch::run(args),
            DeviceCommand::Doctor(args) => doctor::run(args),
            DeviceCommand::List(args) => doctor::list(args),
            DeviceCommand::Record(args) => record::run(&args),
            DeviceCommand::Start(args) => flight::start(&args),
            DeviceCommand::Dump(args) => flight::dump(&args),
            DeviceCommand::Stop(args) => flight::stop(&args),
            DeviceCommand::Restore(args) => restore::run(&args),
        }
    }
}
