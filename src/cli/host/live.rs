//! `live`: shows a recording in the browser while it grows. The flags that `adb live` shares are here.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::browser;
use super::terminal::TERMINAL;
use crate::cli::Exit;
use crate::cli::exit::{UsageError, message};
use crate::cli::host::interrupt;
use crate::cli::units;
use crate::console::{complain, say};
use crate::desk::live::{LiveRequest, follow_file};
use crate::desk::{Completeness, DeskError, DeviceOutcome};
use crate::live::Trigger;

/// Show a recording in the browser while it grows
///
/// FILE is what `record -o x.dat` writes, or the stream of a recorder (`record -o - --live … > x.stream`),
/// which is shown sooner: a .dat three to four seconds after it happened. The page shows the last seconds;
/// what is kept can be looked at in full, and saved. Ctrl-C, or the end of the recording, ends it. To record
/// this machine and show it: `record --live`; a phone: `adb live`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 complete, 1 failed, 2 usage, 3 events were lost.

  tracebridge record -o x.dat sched irq & sleep 2; tracebridge live x.dat
  tracebridge record -o - --live sched irq >x.stream & tracebridge live x.stream --keep 5m --output-dir found")]
pub struct LiveFileArgs {
    /// The file that grows
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    page: LivePageArgs,
    /// The app whose numbers are shown
    #[arg(short, long, value_name = "APP")]
    app: Option<String>,
}

/// How a live page is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OpenArg {
    /// Not at all: its address is printed
    None,
    /// In the browser
    Browser,
}

/// The flags of a live page.
#[derive(Debug, Clone, Args)]
pub(super) struct LivePageArgs {
    /// Keep the events of this time (30s, 2m) in memory: what can be looked at in full, and saved
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = kept_time)]
    keep: Duration,
    /// The port of the page on this machine. Default: any that is free
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// How the page is opened. Its address is always printed
    #[arg(long, value_enum, default_value_t = OpenArg::Browser)]
    open: OpenArg,
    /// Write a file around each moment at which this happens (may be given several times): 'frame.overrun >
    /// 50ms', 'slice NAME > 100ms', 'launch'
    #[arg(long, value_name = "CONDITION")]
    until: Vec<Trigger>,
    /// Put this time before the moment into the file
    #[arg(long, value_name = "TIME", default_value = "5s", requires = "until", value_parser = units::duration)]
    before: Duration,
    /// Put this time behind the moment into the file
    #[arg(long, value_name = "TIME", default_value = "2s", requires = "until", value_parser = units::duration)]
    after: Duration,
    /// End with the first file of --until
    #[arg(long, requires = "until")]
    stop: bool,
    /// Put the files that are written into this directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    output_dir: PathBuf,
}

/// Parses the time that is kept: between a second and an hour.
fn kept_time(text: &str) -> Result<Duration, String> {
    let time = units::duration(text)?;
    let is_kept = (1..=3600).contains(&time.as_secs());
    if is_kept { Ok(time) } else { Err("1s to 1h can be kept".to_owned()) }
}

impl LivePageArgs {
    /// A request without anything to record.
    pub(super) fn request(&self) -> LiveRequest {
        LiveRequest {
            args: Vec::new(),
            names: Vec::new(),
            duration: None,
            keep: self.keep,
            app: None,
            title: None,
            triggers: self.until.clone(),
            before: self.before.min(self.keep),
            after: self.after,
            stops: self.stop,
            port: self.port,
            output_dir: self.output_dir.clone(),
        }
    }

    /// Tells the address of a page, and opens it.
    pub(super) fn show(&self, title: &str, address: &str) {
        complain(format_args!("{title}: {address}"));
        if self.open == OpenArg::Browser
            && let Err(error) = browser::open_secret(address)
        {
            complain(format_args!("tracebridge: {}", message(&error)));
        }
    }
}

/// Runs `live`.
pub fn run(args: &LiveFileArgs) -> anyhow::Result<Exit> {
    let request = LiveRequest { app: args.app.clone(), ..args.page.request() };
    interrupt::hold_first();
    let name = args.file.display().to_string();
    let outcome = follow_file(&args.file, &request, &TERMINAL, &|address| args.page.show(&name, address));
    print(outcome)
}

/// Prints the outcome of a recording that was shown.
pub(super) fn print(outcome: Result<DeviceOutcome, DeskError>) -> anyhow::Result<Exit> {
    let outcome = outcome.map_err(|error| {
        if error.is_usage() { UsageError::from(error.to_string()).into() } else { anyhow::Error::from(error) }
    })?;
    say(format_args!("{}", outcome.text));
    Ok(match outcome.completeness {
        Completeness::Complete => Exit::Complete,
        Completeness::Lossy => Exit::Lossy,
        Completeness::Failed => Exit::Failed,
    })
}
