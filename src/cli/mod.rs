//! The command line. Each command is one module that declares its flags with their help, calls one function
//! of the library, and prints what comes back.
//!
//! Exit codes: 0 complete, 1 failed, 2 usage, 3 complete but lossy or damaged, 4 the gate closed ([`Exit`]).

#[cfg(any(target_os = "linux", target_os = "android"))]
mod device;
#[cfg_attr(not(feature = "host"), path = "no_host.rs")]
pub(crate) mod host;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::console::complain;

pub use tracebridge_core::cli::Exit;
use tracebridge_core::cli::{exit, finish, recording_flags, units};

/// Records a device's kernel trace and atrace markers, and puts them on one clock with ART method traces.
#[derive(Parser)]
#[command(name = "tracebridge", version, about, subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    /// Run the programs of the Android at this place instead of /system: stand-ins for tests
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[arg(long, global = true, hide = true, value_name = "DIR")]
    android_root: Option<std::path::PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
#[allow(clippy::large_enum_variant)] // one value, made once from the command line
enum Command {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[command(flatten)]
    Device(device::DeviceCommand),
    #[command(flatten)]
    Host(host::HostCommand),
}

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Some(exit) = device::dispatch() {
        return exit;
    }
    let args = match host::translate(std::env::args_os()) {
        Ok(args) => args,
        Err(answer) => {
            complain(format_args!("{answer}"));
            return Exit::Usage.into();
        }
    };
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            host::print_usage_error(&error);
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Complete.into() };
        }
    };
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Some(root) = cli.android_root {
        crate::android::system::use_android_root(root);
    }
    finish(match cli.command {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        Command::Device(command) => command.run(),
        Command::Host(command) => command.run(),
    })
}
