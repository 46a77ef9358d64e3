//! `start`, `dump`, `stop`: the flight recorder, which goes on in the kernel after the command has ended.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;

use super::record::{Compress, Kernel, What, tell};
use crate::cli::Exit;
use crate::cli::exit::UsageError;
use crate::console::say;
use crate::record::setup::WhenFull;
use crate::record::{Error, Settings, Target, flight};

/// Start a flight recorder: the kernel keeps the latest events in its buffer, also after this connection ends
///
/// `dump` takes out what it holds, `stop` ends it and puts the kernel's settings back.
#[derive(Debug, ClapArgs)]
pub struct StartArgs {
    #[command(flatten)]
    what: What,
}

/// Take out what the flight recorder holds, while it goes on; the next dump has what came after
#[derive(Debug, ClapArgs)]
pub struct DumpArgs {
    /// Where the capture goes; - is a stream on stdout, for `tracebridge convert` on the host
    #[arg(short, long, value_name = "FILE", default_value = "trace.dat")]
    output: PathBuf,
    #[command(flatten)]
    common: Common,
}

/// Stop the flight recorder and put the kernel's settings back
#[derive(Debug, ClapArgs)]
pub struct StopArgs {
    /// Take out what it holds first, into this capture
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, ClapArgs)]
struct Common {
    /// Include /proc/kallsyms (several MiB), for events that print kernel addresses
    #[arg(long)]
    kallsyms: bool,
    #[command(flatten)]
    compress: Compress,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    kernel: Kernel,
}

impl Common {
    fn settings(&self) -> anyhow::Result<Settings> {
        let (tracefs, _) = match self.kernel.buffer(false) {
            Err(error) if self.kernel.instance.is_some() => anyhow::bail!(
                "{error}; if somebody removed it: `tracebridge restore --flight` puts back what `start` changed elsewhere"
            ),
            buffer => buffer?,
        };
        let settings = Settings::resume(&tracefs, &self.kernel.state_dir())?;
        match settings {
            Some(settings) if settings.flight().is_some() => Ok(settings),
            Some(settings) => {
                settings.let_go();
                Err(Error::NoFlightRecorder.into())
            }
            None => Err(Error::NoFlightRecorder.into()),
        }
    }

    fn target(&self, path: &Path) -> Result<Target, UsageError> {
        let compress = self.compress.of(path)?;
        Ok(Target { path: path.to_owned(), max_bytes: None, kallsyms: self.kallsyms, compress })
    }
}

/// Starts.
pub fn start(args: &StartArgs) -> anyhow::Result<Exit> {
    let (tracefs, made) = args.what.kernel.buffer(true)?;
    let settings = args.what.settings(&tracefs, made)?;
    let (setup, notes) = args.what.setup(&tracefs, WhenFull::Overwrite)?;
    let applied = flight::start(settings, &setup)?;
    say(format_args!("flight recorder on: {} events, clock {}\n", applied.events.len(), applied.clock));
    for note in notes.iter().chain(&applied.notes) {
        say(format_args!("  note: {note}\n"));
    }
    Ok(Exit::Complete)
}

/// Dumps.
pub fn dump(args: &DumpArgs) -> anyhow::Result<Exit> {
    let target = args.common.target(&args.output)?;
    let settings = args.common.settings()?;
    let summary = flight::dump(&settings, &target);
    settings.let_go();
    tell(&summary?, args.common.json)
}

/// Stops.
pub fn stop(args: &StopArgs) -> anyhow::Result<Exit> {
    let target = args.output.as_deref().map(|path| args.common.target(path)).transpose()?;
    if target.is_none() && args.common.compress.is_asked() {
        return Err(UsageError("--compress needs a capture to compress: -o FILE").into());
    }
    let settings = args.common.settings()?;
    match flight::stop(settings, target.as_ref())? {
        Some(summary) => tell(&summary, args.common.json),
        None => Ok(Exit::Complete),
    }
}
