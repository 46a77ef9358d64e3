//! The command line. Each command is one module that declares its flags with their help, calls one function
//! of the library, and prints what comes back. On Linux the program also has the commands that record, which
//! are those of the crate `tracebridge-device`.
//!
//! Exit codes: 0 complete, 1 failed, 2 usage, 3 complete but lossy or damaged, 4 the gate closed ([`Exit`]).

pub(crate) mod host;

use std::process::ExitCode;

use clap::{FromArgMatches, Parser, Subcommand};
use tracebridge_core::cli::{ABOUT, exit, finish, recording_flags, tips, units};
#[cfg(any(target_os = "linux", target_os = "android"))]
use tracebridge_device::ProgramFlags;

use crate::console::complain;

pub use tracebridge_core::cli::Exit;

#[derive(Parser)]
#[command(name = "tracebridge", version, about = ABOUT, subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[command(flatten)]
    flags: ProgramFlags,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
#[allow(clippy::large_enum_variant)] // one value, made once from the command line
enum Command {
    #[command(flatten)]
    Host(host::LoggedCommand),
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[command(flatten)]
    Local(host::LocalCommand),
}

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Some(exit) = tracebridge_device::dispatch() {
        return exit;
    }
    let args = match host::translate(std::env::args_os()) {
        Ok(args) => args,
        Err(answer) => {
            complain(format_args!("{answer}"));
            return Exit::Usage.into();
        }
    };
    let parsed = host::command_line().try_get_matches_from(args);
    let cli = match parsed.and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches)) {
        Ok(cli) => cli,
        Err(error) => {
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Complete };
            host::print_usage_error(error);
            return exit.into();
        }
    };
    #[cfg(any(target_os = "linux", target_os = "android"))]
    cli.flags.apply();
    finish(match cli.command {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        Command::Local(command) => command.run(),
        Command::Host(command) => command.run(),
    })
}
