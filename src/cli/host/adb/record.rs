//! `adb record`: records on devices, and leaves what people open here.

use std::path::{Path, PathBuf};

use clap::Args;

use super::finish::{self};
use super::outcome::{self, Outcome};
use super::recorded::{announce, failure, outcome_of};
use super::target::{OutputName, TargetArgs};
use super::via::{self, Request, ViaArg};
use crate::cli::Exit;
use crate::cli::host::interrupt;
use crate::cli::recording_flags::{ContentArgs, EndArgs, RecordSelection, SchedulingArgs};
use crate::remote::{Device, REMOTE_PATH};

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
  tracebridge adb record sched irq --all -t 10 -o '{serial}.dat'     (five phones at the same time)
  tracebridge adb record sched -t 30 --stream -o x.html              (needs no storage on the device)")]
pub struct RecordArgs {
    #[command(flatten)]
    selection: RecordSelection,
    /// The output: its ending names the format (.pftrace, .html, .json, …); .dat is the capture itself. With
    /// {serial} in its name, each device's serial stands there
    #[arg(short, long, value_name = "FILE", default_value = "trace.dat")]
    output: PathBuf,
    #[command(flatten)]
    end: EndArgs,
    #[command(flatten)]
    scheduling: SchedulingArgs,
    #[command(flatten)]
    contents: ContentArgs,
    /// Send the events here while they are recorded: needs no storage on the device, and ends where the
    /// connection ends
    #[arg(long, conflicts_with = "compress")]
    stream: bool,
    /// What records on the device
    #[arg(long, value_enum, default_value_t = ViaArg::Auto, conflicts_with = "stream")]
    via: ViaArg,
    #[command(flatten)]
    target: TargetArgs,
    /// Show the output in the browser: a page (.html) as it is, anything else in the Perfetto UI, which
    /// fetches it from this program. Of several outputs the first
    #[arg(long)]
    open: bool,
}

/// Runs `adb record`.
pub fn run(args: &RecordArgs) -> anyhow::Result<Exit> {
    finish::check_output(&args.output)?;
    interrupt::hold_first();
    let words = [
        vec!["record".to_owned()],
        args.end.words(),
        args.scheduling.words(),
        args.contents.words(),
        args.selection.words()?,
    ]
    .concat();
    let results = args.target.on_each(|device, name| record_on(args, &words, device, name))?;
    outcome::print_and_open(results, args.target.json, args.open)
}

fn record_on(
    args: &RecordArgs,
    words: &[String],
    mut device: Device,
    name: &OutputName,
) -> anyhow::Result<Outcome> {
    // A stream comes from tracebridge's own recorder.
    let via = if args.stream { ViaArg::Tracebridge } else { args.via.on(&device)? };
    if via == ViaArg::Tracebridge {
        device.ensure_binary(None)?;
    }
    let output = name.of(&args.output);
    let shows_bar = name.is_alone();
    match args.stream {
        true => stream_from(words, &device, &output, shows_bar),
        false => {
            let RecordArgs { selection, end, scheduling, contents, .. } = args;
            let is_auto = args.via == ViaArg::Auto;
            let names = selection.all_names()?;
            let request =
                Request { via, is_auto, words, selection, names, launched: None, end, scheduling, contents };
            via::record(&request, &device, &output, shows_bar).map(|(outcome, _)| outcome)
        }
    }
}

/// Records without a file on the device.
fn stream_from(words: &[String], device: &Device, output: &Path, shows_bar: bool) -> anyhow::Result<Outcome> {
    announce(device);
    let record = [REMOTE_PATH, "record", "-o", "-", "--json"].map(str::to_owned);
    let command = [&record, words.get(1..).unwrap_or_default()].concat();
    let mut log = String::new();
    let mut lost = None;
    let mut status = None;
    let delivered = finish::deliver_stream(output, shows_bar, &mut |file| {
        let end = device.stream(&command, device.privilege(), file, &interrupt::has_come)?;
        log = end.log;
        lost = end.lost;
        status = end.status;
        match status {
            Some(0 | 3) | None => Ok(()),
            status => Err(failure(device, status, &log)),
        }
    })?;
    // The summary goes to standard error, where the events take standard output.
    let (summary, said): (Vec<&str>, Vec<&str>) = log.lines().partition(|line| line.starts_with('{'));
    let mut said = said.join("\n");
    if let Some(lost) = &lost {
        said += &format!("{lost}: the output holds what came until then");
    }
    let is_lossy = lost.is_some() || status == Some(3);
    let recorder = if is_lossy { Exit::Lossy } else { Exit::Complete };
    Ok(outcome_of(recorder, &summary.concat(), said, &delivered))
}
