//! The commands that run on the host: reading, merging, converting and profiling files, and `adb`, which
//! works on attached devices.

mod adb;
mod against;
mod browser;
mod completions;
mod confinement;
mod dataset;
mod dmtracedump;
mod endings;
mod gate;
mod given_flag;
mod help;
mod info;
mod interrupt;
mod live;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod local_record;
mod log_output;
#[cfg(feature = "mcp")]
mod mcp;
mod merge;
mod profile;
mod profile_files;
mod profile_options;
mod progress_bar;
mod report;
#[cfg(all(test, target_os = "linux"))]
mod schema_tests;
mod terminal;
mod usage_error;
mod version;
mod why;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) use local_record::LocalCommand;
use std::collections::HashSet;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};

use super::{Exit, units};
use crate::console::{TerminalWriter, complain};
use crate::file_access;
use crate::formats::unpack_budget::UnpackLimit;
use crate::formats::{TrackEventCounts, is_benchmark_metrics};
pub use dmtracedump::translate;
use progress_bar::ProgressBar;
pub use usage_error::print_usage_error;

/// The commands of the host.
#[derive(Subcommand)]
pub enum HostCommand {
    #[command(alias = "convert")]
    Merge(merge::MergeArgs),
    Report(report::ReportArgs),
    Open(report::OpenArgs),
    Why(why::WhyArgs),
    Live(live::LiveFileArgs),
    Info(info::InfoArgs),
    Profile(Box<profile::ProfileArgs>),
    Dmtracedump(dmtracedump::DmtracedumpArgs),
    Dataset(dataset::DatasetArgs),
    Gate(gate::GateArgs),
    #[cfg(feature = "mcp")]
    Mcp(mcp::McpArgs),
    Adb(adb::AdbArgs),
    Version(version::VersionArgs),
    Completions(completions::CompletionsArgs),
}

impl HostCommand {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<Exit> {
        interrupt::watch();
        let result = match self {
            HostCommand::Merge(args) => merge::merge(args),
            HostCommand::Report(args) => report::report(args),
            HostCommand::Open(args) => report::open(args),
            HostCommand::Why(args) => why::run(args),
            HostCommand::Live(args) => live::run(&args),
            HostCommand::Info(args) => info::run(args),
            HostCommand::Profile(args) => run_profile(*args),
            HostCommand::Dmtracedump(args) => dmtracedump::run(args),
            HostCommand::Dataset(args) => dataset::run(args),
            HostCommand::Gate(args) => gate::run(args),
            #[cfg(feature = "mcp")]
            HostCommand::Mcp(args) => mcp::run(args),
            HostCommand::Adb(args) => adb::run(args),
            HostCommand::Version(args) => version::run(&args),
            HostCommand::Completions(args) => completions::run(&args),
        };
        browser::remove_leading_pages();
        interrupt::settle();
        result
    }
}

/// Runs `profile`, once its options go together.
fn run_profile(mut args: profile::ProfileArgs) -> anyhow::Result<Exit> {
    profile_options::take_output(&mut args)?;
    profile_options::check(&args)?;
    profile_options::check_endings(&args)?;
    profile::run(args)
}

/// A command of the host, with the flag `-v` that all of them and their subcommands have.
pub struct LoggedCommand {
    is_verbose: bool,
    /// The directories to which an assistant's server confines the command.
    below: Vec<PathBuf>,
    command: HostCommand,
}

impl LoggedCommand {
    /// Starts the log, if it is asked for, and runs the command.
    pub fn run(self) -> anyhow::Result<Exit> {
        log_output::start(self.is_verbose);
        confinement::start(&self.below)?;
        self.command.run()
    }
}

impl Subcommand for LoggedCommand {
    fn augment_subcommands(command: Command) -> Command {
        let own = HostCommand::augment_subcommands(Command::new("host"));
        let names: Vec<String> = own.get_subcommands().map(|own| own.get_name().to_owned()).collect();
        let commands = HostCommand::augment_subcommands(command).mut_subcommand("adb", help::with_host_hints);
        names.into_iter().fold(commands, |command, name| {
            command.mut_subcommand(name, |own| {
                own.arg(log_output::verbose_flag()).arg(confinement::below_flag())
            })
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        LoggedCommand::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        HostCommand::has_subcommand(name)
    }
}

impl FromArgMatches for LoggedCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<LoggedCommand, clap::Error> {
        LoggedCommand::from_arg_matches_mut(&mut matches.clone())
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<LoggedCommand, clap::Error> {
        let own = matches.subcommand().map(|(_, own)| own);
        let is_verbose = own.is_some_and(|own| own.get_flag(log_output::VERBOSE));
        let below = own.map(confinement::directories).unwrap_or_default();
        Ok(LoggedCommand { is_verbose, below, command: HostCommand::from_arg_matches_mut(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = LoggedCommand::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The definition of the command line, for manual pages and shell completions.
pub fn command_line() -> Command {
    help::in_groups(<super::Cli as clap::CommandFactory>::command())
}

/// The same as it is on Windows and macOS, which have no tracefs: without the commands that record there.
pub fn host_command_line() -> Command {
    let whole = <super::Cli as clap::CommandFactory>::command();
    let empty = Command::new("tracebridge")
        .version(env!("CARGO_PKG_VERSION"))
        .about(whole.get_about().cloned().unwrap_or_default())
        .subcommand_required(true)
        .arg_required_else_help(true);
    help::in_groups(LoggedCommand::augment_subcommands(empty))
}

/// The limit on memory that every command with input files has.
#[derive(Args)]
struct MemoryArgs {
    /// Refuse files, or the rest of them, that together unpack to more than this, and a page or a profile for
    /// Firefox that must keep more in memory: 512M, 8G [default: 64 times each file's size, and 256M for all;
    /// 16 times the files' size, 256M to 1536M]
    #[arg(long, value_name = "BYTES", value_parser = units::bytes)]
    max_memory: Option<u64>,
}

impl MemoryArgs {
    fn is_given(&self) -> bool {
        self.max_memory.is_some()
    }

    fn limit(&self) -> UnpackLimit {
        UnpackLimit::new(self.max_memory)
    }
}

/// A file, or all files of a directory by their names, but the metrics of a benchmark.
fn files_in(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !file_access::is_dir(path) {
        return Ok(vec![path.to_owned()]);
    }
    let entries = file_access::entries(path).with_context(|| path.display().to_string())?;
    let found: Result<Vec<PathBuf>, _> = entries.collect();
    let mut files = found.with_context(|| path.display().to_string())?;
    // What begins with a dot is the system's, or an output that is not complete.
    let is_hidden =
        |file: &Path| file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    files.retain(|file| file_access::is_file(file) && !is_hidden(file) && !is_benchmark_metrics(file));
    files.sort();
    anyhow::ensure!(!files.is_empty(), "{}: no files", path.display());
    Ok(files)
}

/// The files in all of `paths`, as [`files_in`] finds them.
fn all_files<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> anyhow::Result<Vec<PathBuf>> {
    Ok(paths.into_iter().map(|path| files_in(path)).collect::<anyhow::Result<Vec<_>>>()?.concat())
}

/// Standard output for results. A terminal does not get the control characters of names; a file or a pipe
/// gets the names as they are.
fn results(bar: &ProgressBar) -> Box<dyn Write> {
    let out = io::stdout().lock();
    if out.is_terminal() {
        Box::new(BufWriter::new(TerminalWriter::new(bar.beside(out))))
    } else {
        Box::new(BufWriter::new(out))
    }
}

/// The most lines of a list that people read. The JSON of a summary has whole lists.
const MAX_LIST_LINES: usize = 12;

/// Prints the first lines of a list, and how many more it has.
fn print_list(out: &mut dyn Write, mut lines: impl ExactSizeIterator<Item = String>) -> io::Result<()> {
    lines.by_ref().take(MAX_LIST_LINES).try_for_each(|line| writeln!(out, "{line}"))?;
    match lines.len() {
        0 => Ok(()),
        more => writeln!(out, "  … and {more} more (--json has all)"),
    }
}

/// The lines about events of tracks, which `info` and `merge` print alike.
fn track_event_lines(tracks: &TrackEventCounts) -> Vec<String> {
    let mut lines = Vec::new();
    if tracks.total() > 0 {
        let TrackEventCounts { slices, instants, counter_values, .. } = tracks;
        lines.push(format!(
            "track events: {slices} slices, {instants} instants, {counter_values} counter values"
        ));
    }
    if tracks.frames > 0 {
        lines.push(format!("frames of FrameTimeline, expected and actual: {}", tracks.frames));
    }
    lines
}

/// Prints messages about files on standard error.
#[derive(Default)]
struct Messages {
    /// The file that the message before was about.
    file: Option<String>,
    said: HashSet<(String, String)>,
}

impl Messages {
    /// Prints a message about a file, unless it has been printed before.
    fn say(&mut self, file: &str, text: &str) {
        if let Some(line) = self.line(file, text) {
            complain(format_args!("{line}"));
        }
    }

    fn line(&mut self, file: &str, text: &str) -> Option<String> {
        if !self.said.insert((file.to_owned(), text.to_owned())) {
            return None;
        }
        if self.file.as_deref() == Some(file) {
            return Some(format!("  {text}"));
        }
        self.file = Some(file.to_owned());
        Some(format!("tracebridge: {file}: {text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_files_of_a_directory_are_no_inputs() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.dat", "a.dat", ".DS_Store", ".a.dat.0123.part"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(files_in(dir.path()).unwrap(), ["a.dat", "b.dat"].map(|name| dir.path().join(name)));
    }

    #[test]
    fn every_command_of_the_host_and_its_subcommands_have_the_flag() {
        let line = LoggedCommand::augment_subcommands(Command::new("tracebridge"));
        let verbose = |words: &[&str]| {
            let matches = line.clone().try_get_matches_from(words).unwrap();
            LoggedCommand::from_arg_matches(&matches).unwrap().is_verbose
        };
        assert!(verbose(&["tracebridge", "convert", "-v", "a.dat", "-o", "b.html"]));
        assert!(verbose(&["tracebridge", "adb", "record", "sched", "--verbose"]));
        assert!(verbose(&["tracebridge", "adb", "-v", "profile", "start", "com.a"]));
        assert!(!verbose(&["tracebridge", "adb", "record", "sched"]));
    }

    #[test]
    fn a_message_is_printed_once_and_names_a_file_that_is_new() {
        let mut messages = Messages::default();
        let mut line = |file, text| messages.line(file, text);
        assert_eq!(line("a", "one"), Some("tracebridge: a: one".into()));
        assert_eq!(line("a", "two"), Some("  two".into()));
        assert_eq!(line("a", "one"), None);
        assert_eq!(line("b", "one"), Some("tracebridge: b: one".into()));
        assert_eq!(line("a", "three"), Some("tracebridge: a: three".into()));
    }
}
