//! `adb mark`: markers into the recording that is on, one from the command line or a stream of them.

use clap::Args;

use super::results::print;
use super::target::TargetArgs;
use super::terminal::TERMINAL;
use crate::cli::Exit;
use crate::desk;

/// Write atrace markers on a device, into the recording that is on
#[derive(Debug, Args)]
#[command(after_help = "\
The words are those of `tracebridge mark` (see its --help): begin NAME, end, instant TEXT, counter NAME VALUE, …
With - they come from standard input, a line each, up to its end. A marker's time is that of its arrival on the device.

  tracebridge adb mark instant 'test 7 starts'
  tracebridge adb mark --all counter battery_mV 3870
  { echo begin test 7; ./test-7; echo end; } | tracebridge adb mark -")]
pub struct MarkArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// The marker, as words of `tracebridge mark`
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "MARKER")]
    marker: Vec<String>,
}

/// Runs `adb mark`.
pub fn run(args: &MarkArgs) -> anyhow::Result<Exit> {
    print(desk::mark(&args.marker, &args.target.targets(), &TERMINAL), args.target.json)
}
