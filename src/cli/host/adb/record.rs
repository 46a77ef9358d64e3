//! `adb record`: records on devices, and leaves an output for each on the host.

use std::path::PathBuf;

use clap::Args;

use super::TargetArgs;
use super::forwarded::{Forwarded, GivenFlag, RecorderArg, device_args, kept, name_args, trace_selection};
use super::results::print_and_open;
use crate::cli::Exit;
use crate::cli::host::interrupt;
use crate::cli::host::terminal::TERMINAL;
use crate::cli::recording_flags::{ContentArgs, EndArgs, RecordSelection, SchedulingArgs};
use crate::desk::{self, RecordingRequest, TraceSelection};

/// Record on devices: pushes the binary if needed, records, pulls, verifies, converts, cleans up
///
/// The recording runs on the device by itself: a lost connection does not end it, and `tracebridge adb pull
/// --resume` fetches what it left. Ctrl-C ends the recording, and what was recorded is pulled; a second
/// Ctrl-C gives up and cleans up on the device.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 complete, 1 failed, 2 usage, 3 the output is there but events were lost, or the output has no place for some
of the data. Of several devices the worst counts, and each has its own line.

  tracebridge adb record sched freq am view -a com.example.app -t 10 -o x.pftrace
  tracebridge adb record sched gfx view -t 10 --video -o x.html      # and x.mp4 beside it
  tracebridge adb record sched irq --all -t 10 -o '{serial}.dat'     # five phones at the same time
  tracebridge adb record sched -t 30 --stream -o x.html              # needs no storage on the device")]
pub struct RecordArgs {
    #[command(flatten)]
    selection: Forwarded<RecordSelection>,
    /// The output: its ending names the format (.pftrace, .html, .json, …); .dat is the capture itself. With
    /// {serial} in its name, each device's serial stands there
    #[arg(short, long, value_name = "FILE", default_value = "trace.dat")]
    output: PathBuf,
    #[command(flatten)]
    end: Forwarded<EndArgs>,
    #[command(flatten)]
    scheduling: Forwarded<SchedulingArgs>,
    #[command(flatten)]
    contents: Forwarded<ContentArgs>,
    /// Send the events here while they are recorded: needs no storage on the device, and ends where the
    /// connection ends
    #[arg(long, conflicts_with = "compress")]
    stream: bool,
    /// Record the screen too, with the device's screenrecord, as an MP4 beside the output: at most 180 s. A
    /// page shows its pictures on the recording's clock
    #[arg(long, conflicts_with = "stream")]
    video: bool,
    /// The recorder on the device
    #[arg(long, value_enum, default_value_t = RecorderArg::Auto, conflicts_with = "stream")]
    via: RecorderArg,
    #[command(flatten)]
    target: TargetArgs,
    /// Show the output in the browser: a page (.html) as it is, anything else in the Perfetto UI, which
    /// fetches it from this program. Of several outputs the first
    #[arg(long)]
    open: bool,
}

/// Runs `adb record`.
pub fn run(args: &RecordArgs) -> anyhow::Result<Exit> {
    let request = args.request()?;
    interrupt::hold_first();
    let results = desk::record(&request, &args.output, &args.target.targets(), &TERMINAL);
    print_and_open(results, args.target.json, args.open)
}

impl RecordArgs {
    /// The flags that are given beside those of the selection.
    fn other_flags(&self) -> impl Iterator<Item = &GivenFlag> {
        self.end.given().chain(self.scheduling.given()).chain(self.contents.given())
    }

    fn request(&self) -> anyhow::Result<RecordingRequest> {
        let names = self.selection.flags.all_names()?;
        let flags = device_args(self.selection.given().chain(self.other_flags()));
        let args = [flags, name_args(&names)].concat();
        let EndArgs { time, max_size, mode } = self.end.flags;
        let selection = TraceSelection {
            duration: time,
            max_bytes: max_size,
            kept: kept(mode),
            ..trace_selection(&self.selection, names, self.other_flags())
        };
        Ok(RecordingRequest {
            recorder: self.via.into(),
            is_stream: self.stream,
            has_video: self.video,
            args,
            selection,
        })
    }
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use clap::{ArgMatches, Command, FromArgMatches, Subcommand};
    use tracebridge_device::DeviceCommand;

    use super::*;
    use crate::cli::host::command_line;

    /// Flags of the device's `record` that the host sets itself, or has itself, or that only somebody at the
    /// device needs.
    const NOT_HANDED_ON: [&str; 5] = ["output", "json", "live", "readable", "verbose"];

    /// A value for each flag that has one, and the flags that it needs beside it.
    const VALUES: [(&str, &[&str]); 14] = [
        ("names", &["sched", "a/b:c == 'd e'"]),
        ("apps", &["--app=com.a,b*", "--app", "it's"]),
        ("functions", &["-k", "do_sys*,vfs_read"]),
        ("graph", &["--graph", "-k", "vfs_read"]),
        ("buffer", &["-b", "99"]),
        ("clock", &["--clock", "mono"]),
        ("tracefs", &["--tracefs", "/a b"]),
        ("instance", &["--instance=i"]),
        ("state_dir", &["--state-dir", "/s"]),
        ("time", &["-t", "1.5s"]),
        ("max_size", &["--max-size", "3m"]),
        ("mode", &["--mode=ring"]),
        ("nice", &["--nice", "-5"]),
        ("files", &[]),
    ];

    fn raw(matches: &ArgMatches, id: &str) -> Vec<String> {
        let values = matches.get_raw(id).into_iter().flatten();
        values.map(|value| value.to_string_lossy().into_owned()).collect()
    }

    /// The matches of a command of the program with these arguments.
    fn matches(program: &Command, command: &[&str], args: &[String]) -> ArgMatches {
        let words = ["tracebridge"].iter().chain(command).map(|word| (*word).to_owned());
        let words = words.chain(args.iter().cloned());
        let mut found =
            program.clone().try_get_matches_from(words).unwrap_or_else(|e| panic!("{args:?}: {e}"));
        while let Some((_, inner)) = found.remove_subcommand() {
            found = inner;
        }
        found
    }

    #[test]
    fn every_flag_of_the_devices_record_arrives_as_it_was_given() {
        let program = command_line();
        // The program's own `record` has the flags of a live page besides.
        let device = DeviceCommand::augment_subcommands(Command::new("device"));
        let device = device.find_subcommand("record").unwrap();
        let mut handed_on = 0;
        for arg in device.get_arguments() {
            let id = arg.get_id().as_str();
            if NOT_HANDED_ON.contains(&id) {
                continue;
            }
            let given: Vec<String> = match VALUES.iter().find(|(with_value, _)| *with_value == id) {
                Some((_, words)) => words.iter().map(|word| (*word).to_owned()).collect(),
                None if arg.get_action().takes_values() => panic!("{id}: give it a value in VALUES"),
                None => vec![format!("--{}", arg.get_long().unwrap())],
            };
            let on_host = matches(&program, &["adb", "record"], &given);
            let request = RecordArgs::from_arg_matches(&on_host).unwrap().request().unwrap();
            let on_device = matches(&program, &["record"], &request.args);
            assert_eq!(raw(&on_device, id), raw(&on_host, id), "{id}: {given:?} became {:?}", request.args);
            assert_eq!(on_device.value_source(id), on_host.value_source(id), "{id}");
            handed_on += 1;
        }
        assert!(handed_on >= VALUES.len() + 4, "only {handed_on} flags");
    }

    #[test]
    fn the_names_of_a_file_are_handed_on_in_its_place() {
        let program = command_line();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "freq\n  'idle'\tsched/*\n").unwrap();
        let given = ["sched", "-f", file.path().to_str().unwrap()].map(str::to_owned);
        let on_host = matches(&program, &["adb", "record"], &given);
        let request = RecordArgs::from_arg_matches(&on_host).unwrap().request().unwrap();
        assert_eq!(request.args, ["--", "sched", "freq", "'idle'", "sched/*"]);
        assert_eq!(request.selection.names, request.args[1..]);
    }

    #[test]
    fn recorders_of_the_device_get_what_every_recorder_understands() {
        let program = command_line();
        let request = |line: &str| {
            let given: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let on_host = matches(&program, &["adb", "record"], &given);
            RecordArgs::from_arg_matches(&on_host).unwrap().request().unwrap()
        };
        let portable = request("sched -a com.a -b 99 -t 2 --max-size 3m --mode fill").selection;
        assert_eq!((portable.names, portable.apps), (vec!["sched".to_owned()], vec!["com.a".to_owned()]));
        assert_eq!((portable.buffer_kb, portable.max_bytes), (99, Some(3 << 20)));
        assert_eq!(portable.duration, Some(std::time::Duration::from_secs(2)));
        assert!(portable.tracebridge_flags.is_empty(), "{:?}", portable.tracebridge_flags);
        let own =
            request("-k vfs_read --graph --force --tracefs /t --nice 1 --kallsyms --compress --clock boot");
        assert_eq!(
            own.selection.tracebridge_flags,
            [
                "--functions",
                "--graph",
                "--clock",
                "--force",
                "--tracefs",
                "--nice",
                "--kallsyms",
                "--compress"
            ]
        );
        let error = program.try_get_matches_from(["tracebridge", "adb", "record", "-t", "0"]).unwrap_err();
        assert!(error.to_string().contains("a recording takes longer than that"), "{error}");
    }
}
