//! The commands that run on the device: recording, markers, and what the device permits. Each command is one
//! module that declares its flags with their help, calls one function of the library, and prints what comes
//! back.

mod atrace;
mod doctor;
mod flight;
mod launch;
mod mark;
mod record;
mod restore;
mod wrap;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use tracebridge_core::cli::{ABOUT, Exit, exit, finish, recording_flags, units};

use crate::android::use_android_root;

pub use atrace::dispatch;

/// The command line of the program for the phone.
#[derive(Parser)]
#[command(name = "tracebridge", version, about = ABOUT, subcommand_required = true, arg_required_else_help = true)]
struct CommandLine {
    #[command(flatten)]
    flags: ProgramFlags,
    #[command(subcommand)]
    command: DeviceCommand,
}

/// The flags that stand before every command, also those of the host's program.
#[derive(Args)]
pub struct ProgramFlags {
    /// Run the programs of the Android at this place instead of /system: stand-ins for tests
    #[arg(long, global = true, hide = true, value_name = "DIR")]
    android_root: Option<PathBuf>,
}

impl ProgramFlags {
    /// Has the commands that run after this call obey the flags.
    pub fn apply(self) {
        if let Some(root) = self.android_root {
            use_android_root(root);
        }
    }
}

/// Runs the program for the phone with the process's arguments.
pub fn main() -> ExitCode {
    if let Some(exit) = dispatch() {
        return exit;
    }
    match CommandLine::try_parse() {
        Ok(CommandLine { flags, command }) => {
            flags.apply();
            finish(command.run())
        }
        Err(error) => {
            let _ = error.print();
            if error.use_stderr() { Exit::Usage.into() } else { Exit::Complete.into() }
        }
    }
}

/// The commands of the device.
#[derive(Subcommand)]
#[allow(missing_docs)] // A doc comment would take the place of the command's own help.
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
