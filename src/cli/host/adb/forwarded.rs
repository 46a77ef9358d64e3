//! Flags that a command of the host takes and hands on to the same command on a device: as they were given,
//! and as arguments of the recorder there.

use clap::{ArgMatches, Args, Command, FromArgMatches, Id, ValueEnum};

pub(super) use crate::cli::host::given_flag::GivenFlag;
use crate::cli::host::given_flag::given_flags;
use crate::cli::recording_flags::{ModeArg, RecordSelection};
use crate::desk::{RecorderChoice, TraceSelection};
use crate::formats::perfetto::trace_config::KeptEvents;

/// Flags, with the command line's own words for them.
#[derive(Debug, Clone)]
pub(super) struct Forwarded<T> {
    /// The parsed flags.
    pub(super) flags: T,
    /// The flags of the command line, in the order of their definition.
    given: Vec<GivenFlag>,
}

impl<T> Forwarded<T> {
    /// The flags that stand on the command line, in the order of their definition. Positional arguments are
    /// not among them.
    pub(super) fn given(&self) -> impl Iterator<Item = &GivenFlag> {
        self.given.iter()
    }
}

/// Finds the flags of `T` that the command line has.
fn given_of<T: Args>(matches: &ArgMatches) -> Vec<GivenFlag> {
    given_flags(T::augment_args(Command::new("forwarded")).get_arguments(), matches)
}

impl<T: Args> FromArgMatches for Forwarded<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Forwarded { given: given_of::<T>(matches), flags: T::from_arg_matches(matches)? })
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, clap::Error> {
        // The values are taken out of the matches with the flags.
        let given = given_of::<T>(matches);
        Ok(Forwarded { given, flags: T::from_arg_matches_mut(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Forwarded::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<T: Args> Args for Forwarded<T> {
    fn group_id() -> Option<Id> {
        T::group_id()
    }

    fn augment_args(command: Command) -> Command {
        T::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

// The flags of the host that say what is recorded, as arguments for the recorder on a device.

/// The flag whose value is a file of the host. Its names are handed on in its place.
const FILES: &str = "files";

/// The flags of recordings that every recorder understands.
const PORTABLE_FLAGS: [&str; 6] = ["apps", "buffer", "lenient", "time", "max_size", "mode"];

/// The recorder on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum RecorderArg {
    /// tracebridge's own recorder; where tracefs is closed to it, the device's perfetto or atrace
    Auto,
    /// tracebridge's own recorder
    Tracebridge,
    /// The device's own perfetto (Android 9 and newer)
    Perfetto,
    /// The device's own atrace
    Atrace,
}

impl From<RecorderArg> for RecorderChoice {
    fn from(recorder: RecorderArg) -> RecorderChoice {
        match recorder {
            RecorderArg::Auto => RecorderChoice::Auto,
            RecorderArg::Tracebridge => RecorderChoice::Tracebridge,
            RecorderArg::Perfetto => RecorderChoice::Perfetto,
            RecorderArg::Atrace => RecorderChoice::Atrace,
        }
    }
}

/// The events that a recorder of the device keeps in this mode.
pub(super) fn kept(mode: ModeArg) -> KeptEvents {
    match mode {
        ModeArg::Stream => KeptEvents::All,
        ModeArg::Ring => KeptEvents::Last,
        ModeArg::Fill => KeptEvents::First,
    }
}

/// The arguments for a device of these flags.
pub(super) fn device_args<'f>(given: impl Iterator<Item = &'f GivenFlag>) -> Vec<String> {
    given.filter(|flag| flag.id != FILES).map(ToString::to_string).collect()
}

/// The names as arguments behind all flags, where there are any.
pub(super) fn name_args(names: &[String]) -> Vec<String> {
    if names.is_empty() { Vec::new() } else { [&["--".to_owned()], names].concat() }
}

/// The selection for recorders of the device. `others` are the other flags that are given of the recording.
pub(super) fn trace_selection<'f>(
    selection: &'f Forwarded<RecordSelection>,
    names: Vec<String>,
    others: impl Iterator<Item = &'f GivenFlag>,
) -> TraceSelection {
    let is_portable = |flag: &GivenFlag| flag.id == FILES || PORTABLE_FLAGS.iter().any(|id| flag.id == *id);
    let given = selection.given().chain(others);
    TraceSelection {
        names,
        apps: selection.flags.apps.clone(),
        buffer_kb: selection.flags.buffer,
        tracebridge_flags: given.filter(|flag| !is_portable(flag)).map(|flag| flag.name.clone()).collect(),
        ..TraceSelection::default()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::recording_flags::{ContentArgs, EndArgs, LaunchFlags, RecordSelection, SchedulingArgs};

    #[derive(Debug, Parser)]
    struct RecordCommand {
        #[command(flatten)]
        selection: Forwarded<RecordSelection>,
        #[command(flatten)]
        end: Forwarded<EndArgs>,
        #[command(flatten)]
        contents: Forwarded<ContentArgs>,
        #[command(flatten)]
        scheduling: Forwarded<SchedulingArgs>,
    }

    impl RecordCommand {
        fn given(&self) -> Vec<String> {
            let RecordCommand { selection, end, contents, scheduling } = self;
            let all = selection.given().chain(end.given()).chain(contents.given()).chain(scheduling.given());
            all.map(ToString::to_string).collect()
        }
    }

    #[derive(Debug, Parser)]
    struct LaunchCommand {
        #[command(flatten)]
        launch: Forwarded<LaunchFlags>,
    }

    #[test]
    fn the_arguments_for_a_device_mean_what_the_flags_meant() {
        let names = ["sched", "a/b:c == 'd e'"];
        let line = [
            "x",
            names[0],
            names[1],
            "-a",
            "com.a,*",
            "-k",
            "do_sys*",
            "--graph",
            "-b",
            "99",
            "--clock=mono",
            "--exclude-self",
            "--force",
            "--tracefs=/t",
            "--instance=i",
            "--state-dir=/s",
            "-t",
            "1500ms",
            "--max-size",
            "3m",
            "--mode=ring",
            "--kallsyms",
            "--compress",
            "--nice=-5",
        ];
        let command = RecordCommand::parse_from(line);
        let names = names.map(str::to_owned).to_vec();
        let args = [vec!["x".to_owned()], command.given(), vec!["--".to_owned()], names].concat();
        let parsed = RecordCommand::parse_from(&args);
        assert_eq!(format!("{parsed:?}"), format!("{command:?}"), "{args:?}");
        let launch = LaunchCommand::parse_from([
            "x",
            "--sampling=100",
            "--streaming",
            "--clock-type=dual",
            "--profiler-output-version=2",
            "--warm",
            "--settle=2",
            "-t",
            "1m",
        ]);
        let given = launch.launch.given().map(ToString::to_string).collect();
        let args = [vec!["x".to_owned()], given].concat();
        assert_eq!(format!("{:?}", LaunchCommand::parse_from(&args)), format!("{launch:?}"), "{args:?}");
    }

    #[test]
    fn a_flag_is_handed_on_as_it_was_given_and_no_default_is() {
        let given = |line: &[&str]| RecordCommand::parse_from(line).given();
        assert!(given(&["x", "sched"]).is_empty());
        assert_eq!(
            given(&["x", "-t", "2m", "-a", "a,b", "-a", "c", "-b", "4096"]),
            ["--app=a", "--app=b", "--app=c", "--buffer=4096", "--time=2m"]
        );
    }
}
