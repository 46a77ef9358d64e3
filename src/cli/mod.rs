//! The command line: one module a command, each with its flags and their help, and nothing else than the call
//! into the part that does the work.
//!
//! Exit codes: 0 complete, 1 failed, 2 usage, 3 complete but lossy or damaged ([`Exit`]).

#[cfg(feature = "device")]
mod around;
#[cfg(feature = "device")]
mod atrace;
#[cfg(feature = "host")]
mod dmtracedump;
#[cfg(feature = "device")]
mod doctor;
mod exit;
#[cfg(feature = "device")]
mod flight;
#[cfg(feature = "host")]
mod info;
#[cfg(feature = "device")]
mod launch;
#[cfg(feature = "device")]
mod mark;
#[cfg(feature = "host")]
mod merge;
#[cfg(feature = "host")]
mod method_input;
#[cfg(feature = "host")]
mod profile;
#[cfg(feature = "device")]
mod record;
#[cfg(feature = "device")]
mod restore;
#[cfg(feature = "device")]
mod tag;
#[cfg(feature = "device")]
mod units;
#[cfg(feature = "device")]
mod wrap;

use std::process::ExitCode;

use crate::say::complain;
use clap::{Parser, Subcommand};

pub use exit::Exit;

/// Records a device's kernel trace and atrace markers, and puts them on one clock with ART method traces.
#[derive(Parser)]
#[command(name = "tracebridge", version, about, subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[cfg(feature = "device")]
    Mark(mark::Args),
    #[cfg(feature = "device")]
    Atrace(atrace::Args),
    #[cfg(feature = "device")]
    Wrap(wrap::Args),
    #[cfg(feature = "device")]
    Launch(launch::Args),
    #[cfg(feature = "device")]
    Doctor(doctor::Args),
    #[cfg(feature = "device")]
    List(doctor::ListArgs),
    #[cfg(feature = "device")]
    Record(record::Args),
    #[cfg(feature = "device")]
    Start(flight::StartArgs),
    #[cfg(feature = "device")]
    Dump(flight::DumpArgs),
    #[cfg(feature = "device")]
    Stop(flight::StopArgs),
    #[cfg(feature = "device")]
    Restore(restore::Args),
    #[cfg(feature = "host")]
    Merge(merge::MergeArgs),
    #[cfg(feature = "host")]
    Convert(merge::ConvertArgs),
    #[cfg(feature = "host")]
    Info(info::Args),
    #[cfg(feature = "host")]
    Profile(Box<profile::Args>),
    #[cfg(feature = "host")]
    Dmtracedump(dmtracedump::Args),
}

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    #[cfg(feature = "device")]
    if let Some(exit) = atrace::dispatch() {
        return exit;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Complete.into() };
        }
    };
    match run(cli) {
        Ok(exit) => exit.into(),
        Err(error) if exit::is_broken_pipe(&error) => Exit::Complete.into(),
        Err(error) => {
            complain(format_args!("tracebridge: {}", exit::message(&error)));
            if error.is::<exit::UsageError>() { Exit::Usage.into() } else { Exit::Failed.into() }
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<Exit> {
    match cli.command {
        #[cfg(feature = "device")]
        Command::Mark(args) => mark::run(args),
        // Came before clap: see dispatch().
        #[cfg(feature = "device")]
        Command::Atrace(_) => Ok(Exit::Complete),
        #[cfg(feature = "device")]
        Command::Wrap(args) => wrap::run(args),
        #[cfg(feature = "device")]
        Command::Launch(args) => launch::run(args),
        #[cfg(feature = "device")]
        Command::Doctor(args) => doctor::run(args),
        #[cfg(feature = "device")]
        Command::List(args) => doctor::list(args),
        #[cfg(feature = "device")]
        Command::Record(args) => record::run(&args),
        #[cfg(feature = "device")]
        Command::Start(args) => flight::start(&args),
        #[cfg(feature = "device")]
        Command::Dump(args) => flight::dump(&args),
        #[cfg(feature = "device")]
        Command::Stop(args) => flight::stop(&args),
        #[cfg(feature = "device")]
        Command::Restore(args) => restore::run(&args),
        #[cfg(feature = "host")]
        Command::Merge(args) => merge::merge(args),
        #[cfg(feature = "host")]
        Command::Convert(args) => merge::convert(args),
        #[cfg(feature = "host")]
        Command::Info(args) => info::run(args),
        #[cfg(feature = "host")]
        Command::Profile(args) => profile::run(&args),
        #[cfg(feature = "host")]
        Command::Dmtracedump(args) => dmtracedump::run(&args),
    }
}
