//! The commands that record this machine itself, and `record --live`, which has the flags of a live page
//! besides and shows the recording while it runs.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, Subcommand};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tracebridge_device::DeviceCommand;

use super::given_flag::given_flags;
use super::live::{LivePageArgs, print};
use super::terminal::TERMINAL;
use super::{Exit, interrupt};
use crate::child::{self, ChildKind};
use crate::desk::DeskError;
use crate::desk::live::{LiveRequest, LocalRecorder, follow_recorder};
use crate::markers::TRACEFS_PLACES;

/// The command whose recording can be shown.
const RECORD: &str = "record";
/// The flags that the recorder gets from here.
const OWN_FLAGS: [&str; 3] = ["live", "output", "json"];

/// A command that records this machine.
pub enum LocalCommand {
    /// As it is on a device.
    Device(Box<DeviceCommand>),
    /// A recording that is shown while it runs.
    Shown(Box<ShownRecording>),
}

/// A recording that is shown while it runs.
pub struct ShownRecording {
    page: LivePageArgs,
    /// The recorder's flags, and the names behind them.
    args: Vec<String>,
    app: Option<String>,
    /// The directory of the trace buffer, as `mark` takes it.
    tracefs: Option<PathBuf>,
}

impl LocalCommand {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<Exit> {
        match self {
            LocalCommand::Device(command) => command.run(),
            LocalCommand::Shown(recording) => recording.run(),
        }
    }
}

impl ShownRecording {
    fn parse(record: &ArgMatches) -> Result<ShownRecording, clap::Error> {
        let page = LivePageArgs::from_arg_matches(record)?;
        let device = DeviceCommand::augment_subcommands(Command::new("device"));
        let own = device.find_subcommand(RECORD).into_iter().flat_map(Command::get_arguments);
        let given = given_flags(own, record);
        let flags = given.iter().filter(|flag| OWN_FLAGS.iter().all(|own| flag.id != *own));
        let mut args: Vec<String> = flags.map(ToString::to_string).collect();
        let names = record.get_many::<String>("names").into_iter().flatten().cloned();
        args.push("--".to_owned());
        args.extend(names);
        let app = record.get_one::<String>("apps").filter(|app| !app.contains('*')).cloned();
        let tracefs = record.get_one::<PathBuf>("tracefs").cloned();
        let instance = record.get_one::<String>("instance").map(|name| Path::new("instances").join(name));
        let tracefs = match instance {
            Some(instance) => Some(tracefs.unwrap_or_else(mounted_tracefs).join(instance)),
            None => tracefs,
        };
        Ok(ShownRecording { page, args, app, tracefs })
    }

    fn run(self) -> anyhow::Result<Exit> {
        let ShownRecording { page, args, app, tracefs } = self;
        interrupt::watch();
        let request = LiveRequest { args, app, ..page.request() };
        interrupt::hold_first();
        let interrupt = |pid: u32| {
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGINT);
        };
        let mark = |name: &str| mark(tracefs.as_deref(), name);
        let recorder = LocalRecorder { interrupt: &interrupt, mark: &mark };
        print(follow_recorder(&request, &TERMINAL, &recorder, &|address| page.show("this machine", address)))
    }
}

/// The directory of tracefs, if the command line does not say it.
fn mounted_tracefs() -> PathBuf {
    let first = TRACEFS_PLACES.iter().find(|path| Path::new(path).join("trace_marker").exists());
    PathBuf::from(first.unwrap_or(&TRACEFS_PLACES[0]))
}

/// Writes a marker into the trace buffer in this directory, or into this machine's.
fn mark(tracefs: Option<&Path>, name: &str) -> Result<(), DeskError> {
    let failed = |why: String| DeskError::Request(format!("the marker was not written: {why}").into());
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let mut command = child::command(program, ChildKind::Own);
    command.arg("mark");
    if let Some(tracefs) = tracefs {
        command.arg("--tracefs").arg(tracefs);
    }
    let ended = command.args(["instant", "--", name]).stdin(Stdio::null()).output();
    let ended = ended.map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8_lossy(&ended.stderr);
    if ended.status.success() { Ok(()) } else { Err(failed(text.trim().to_owned())) }
}

/// The flags of the page as flags of `record`.
fn with_page_flags(record: Command) -> Command {
    let page = LivePageArgs::augment_args(Command::new("page"));
    let shown = |arg: &Arg| {
        arg.clone().requires("live").conflicts_with("output").help_heading("With --live, and without -o")
    };
    record.args(page.get_arguments().map(shown))
}

impl Subcommand for LocalCommand {
    fn augment_subcommands(command: Command) -> Command {
        DeviceCommand::augment_subcommands(command).mut_subcommand(RECORD, with_page_flags)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        LocalCommand::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        DeviceCommand::has_subcommand(name)
    }
}

impl FromArgMatches for LocalCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<LocalCommand, clap::Error> {
        LocalCommand::from_arg_matches_mut(&mut matches.clone())
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<LocalCommand, clap::Error> {
        let record = matches.subcommand().filter(|(name, _)| *name == RECORD).map(|(_, own)| own.clone());
        let command = DeviceCommand::from_arg_matches_mut(matches)?;
        match record.filter(|_| command.is_shown()) {
            Some(record) => Ok(LocalCommand::Shown(Box::new(ShownRecording::parse(&record)?))),
            None => Ok(LocalCommand::Device(Box::new(command))),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = LocalCommand::from_arg_matches(matches)?;
        Ok(())
    }
}
