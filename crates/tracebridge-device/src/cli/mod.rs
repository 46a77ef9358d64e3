//! The commands that run on the device: recording, markers, and what the device permits. Each command is one
//! module that declares its flags with their help, calls one function of the library, and prints what comes
//! back.

mod doctor;
mod flight;
mod launch;
mod mark;
mod record;
mod restore;
mod wrap;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
#[cfg(feature = "schema")]
use schemars::{Schema, SchemaGenerator};
use tracebridge_core::cli::tips::without_escapes;
use tracebridge_core::cli::{ABOUT, Exit, exit, finish, recording_flags, units};

use crate::android::use_android_root;
use crate::atrace_command::{self, AtraceDirs};
#[cfg(feature = "schema")]
use crate::doctor::{CategoryReport, DoctorReport};
#[cfg(feature = "schema")]
use crate::record::saved_settings::RestoredSettings;
#[cfg(feature = "schema")]
use crate::trace_dat::recording_summary::RecordingSummary;

/// A document that `--json` prints: the name of its schema, and how the schema is made.
#[cfg(feature = "schema")]
pub type JsonDocument = (&'static str, fn(SchemaGenerator) -> Schema);

/// The documents that `--json` prints.
#[cfg(feature = "schema")]
pub fn json_documents() -> [JsonDocument; 5] {
    [
        ("record", SchemaGenerator::into_root_schema_for::<RecordingSummary>),
        ("launch", SchemaGenerator::into_root_schema_for::<launch::LaunchSummary<'static>>),
        ("doctor", SchemaGenerator::into_root_schema_for::<DoctorReport>),
        ("list", SchemaGenerator::into_root_schema_for::<Vec<CategoryReport>>),
        ("restore", SchemaGenerator::into_root_schema_for::<Vec<RestoredSettings>>),
    ]
}

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
            let error = without_escapes(error);
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
    Atrace(AtraceArgs),
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
    /// Whether this is a recording that is to be shown here while it runs (`record --live`).
    pub fn is_shown(&self) -> bool {
        matches!(self, DeviceCommand::Record(args) if args.is_shown())
    }

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

/// Record as AOSP's atrace does: same options, same output (also under the name atrace, by link or copy)
///
/// `tracebridge atrace --help` shows atrace's own options. Push the binary under the name atrace (`adb push
/// tracebridge /data/local/tmp/atrace`) for tools that call that.
#[derive(Parser)]
#[command(disable_help_flag = true)]
pub struct AtraceArgs {
    /// atrace's options and categories
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _args: Vec<OsString>,
}

/// Runs atrace if the program was called as `atrace` or with the subcommand `atrace`. Returns `None`
/// otherwise.
///
/// The flags `--tracefs`, `--state-dir` and `--android-root` stand before the word `atrace`, because atrace's
/// own command line must stay as it is.
pub fn dispatch() -> Option<ExitCode> {
    let mut args = env::args_os();
    let program = args.next()?;
    let mut dirs = AtraceDirs::default();
    let is_atrace = Path::new(&program).file_name().is_some_and(|name| name == "atrace");
    loop {
        if is_atrace {
            break;
        }
        match args.next()?.to_str()? {
            "atrace" => break,
            "--tracefs" => dirs.tracefs = Some(args.next()?.into()),
            "--state-dir" => dirs.state_dir = Some(args.next()?.into()),
            "--android-root" => use_android_root(args.next()?.into()),
            _ => return None,
        }
    }
    Some(ExitCode::from(atrace_command::run("atrace", &dirs, args)))
}
