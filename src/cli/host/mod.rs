//! The commands that run on the host: reading, merging, converting and profiling files.

mod dmtracedump;
mod info;
mod interrupt;
mod merge;
mod profile;
mod profile_options;
mod report;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, Subcommand};

use super::{Exit, units};
use crate::console::{TerminalWriter, complain};
use crate::formats::input::Input;
use crate::formats::unpack_budget::UnpackLimit;
use crate::formats::{self, art_method};

/// The commands of the host.
#[derive(Subcommand)]
pub enum HostCommand {
    Merge(merge::MergeArgs),
    Convert(merge::ConvertArgs),
    Report(report::ReportArgs),
    Open(report::OpenArgs),
    Info(info::InfoArgs),
    Profile(Box<profile::ProfileArgs>),
    Dmtracedump(dmtracedump::DmtracedumpArgs),
}

impl HostCommand {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<Exit> {
        interrupt::watch();
        match self {
            HostCommand::Merge(args) => merge::merge(args),
            HostCommand::Convert(args) => merge::convert(args),
            HostCommand::Report(args) => report::report(args),
            HostCommand::Open(args) => report::open(args),
            HostCommand::Info(args) => info::run(args),
            HostCommand::Profile(args) => match profile_options::check(&args) {
                Ok(()) => profile::run(*args),
                Err(why) => refuse(&why),
            },
            HostCommand::Dmtracedump(args) => dmtracedump::run(args),
        }
    }
}

/// Says why a command line is refused that clap accepts.
fn refuse(why: &str) -> anyhow::Result<Exit> {
    complain(format_args!("tracebridge: {why}"));
    Ok(Exit::Usage)
}

/// The definition of the command line, for manual pages and shell completions.
pub fn command_line() -> clap::Command {
    <super::Cli as clap::CommandFactory>::command()
}

/// Says what one probably wants where a file stands in a command's place (`tracebridge app.trace`).
pub fn suggest_for_file(error: &clap::Error) {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return };
    let path = Path::new(word);
    // What is read from a pipe would be missing later.
    let Some(input) = path.is_file().then(|| Input::open(path).ok()).flatten() else { return };
    let commands = match formats::identify(&input) {
        Ok(_) if art_method::detect(&input) => {
            ["open FILE", "info FILE", "profile FILE", "convert FILE -o OUT.pftrace"].as_slice()
        }
        Ok(_) => {
            &["open FILE", "info FILE", "convert FILE -o OUT.pftrace", "merge FILE APP.trace -o OUT.pftrace"]
        }
        Err(_) => &["info FILE"],
    };
    complain(format_args!("\n{word} is a file, and no command comes before it. Perhaps:"));
    for command in commands {
        complain(format_args!("  tracebridge {}", command.replace("FILE", word)));
    }
}

/// The limit on memory that every command with input files has.
#[derive(Args)]
struct MemoryArgs {
    /// Refuse a file, or the rest of it, that unpacks to more than this: 512M, 8G [default: 64 times the
    /// file's size, and at least 256M]
    #[arg(long, value_name = "BYTES", value_parser = units::bytes)]
    max_memory: Option<u64>,
}

impl MemoryArgs {
    fn is_given(&self) -> bool {
        self.max_memory.is_some()
    }

    fn limit(&self) -> UnpackLimit {
        UnpackLimit(self.max_memory)
    }
}

/// Standard output for results. A terminal does not get the control characters of names; a file or a pipe
/// gets the names as they are.
fn results() -> Box<dyn Write> {
    let out = io::stdout().lock();
    match out.is_terminal() {
        true => Box::new(BufWriter::new(TerminalWriter::new(out))),
        false => Box::new(BufWriter::new(out)),
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
