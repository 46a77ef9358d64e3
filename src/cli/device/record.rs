//! `record`: the kernel's trace to a capture.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::{Args as ClapArgs, ValueEnum};

use crate::android::UserspaceRequest;
use crate::cli::exit::UsageError;
use crate::cli::{Exit, units};
use crate::console::complain;
use crate::record::recorder::{self, Config, Mode};
use crate::record::setup::{Functions, Setup, WhenFull};
use crate::record::{Leftover, Settings, Signals, Summary, Target, Tracefs, events, state_dir};

/// Record the kernel's trace events and the apps' atrace markers to a trace.dat
///
/// The kernel's settings are saved before and put back after, whatever ends the recording; after a SIGKILL,
/// `tracebridge restore` does it.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Exit status: 0 complete, 1 failed, 2 usage, 3 the capture is there but events were lost (the summary says how many).

  tracebridge record -t 10 -b 8192 -a com.example.app sched freq idle am view -o /data/local/tmp/x.dat
  tracebridge record -t 5 'sched/sched_switch:prev_pid==1||next_pid==1' 'irq/*'
  adb exec-out tracebridge record -t 10 -o - sched > x.stream    (no storage on the device; `convert x.stream -o x.dat`)")]
pub struct Args {
    #[command(flatten)]
    what: What,
    /// Where the capture goes; - is a stream on stdout, for `tracebridge convert` on the host
    #[arg(short, long, value_name = "FILE", default_value = "trace.dat")]
    output: PathBuf,
    /// Stop after this long (500ms, 5, 5s, 2m; a bare number is seconds). Without it: on SIGINT or SIGTERM
    #[arg(short = 't', long, value_name = "TIME", value_parser = units::duration)]
    time: Option<Duration>,
    /// Stop when the capture holds this much of events (bytes, or with k, m, g)
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    max_size: Option<u64>,
    /// When events leave the kernel's buffer
    #[arg(long, value_enum, default_value_t = ModeArg::Stream)]
    mode: ModeArg,
    /// Include /proc/kallsyms (several MiB), for events that print kernel addresses
    #[arg(long)]
    kallsyms: bool,
    #[command(flatten)]
    compress: Compress,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// Whether the capture is compressed: `record`, `dump` and `stop` share it.
#[derive(Debug, ClapArgs)]
pub struct Compress {
    /// Compress the capture (trace.dat v7, zstd) once the recording has ended; for a while there has to be room for it
    /// both ways. Not for a stream: compress that on the host (… | zstd > x.stream.zst, which `convert` reads)
    #[arg(long)]
    compress: bool,
}

impl Compress {
    /// Whether it was asked for.
    pub fn is_asked(&self) -> bool {
        self.compress
    }

    /// Whether to compress `output`.
    pub fn of(&self, output: &Path) -> Result<bool, UsageError> {
        if self.compress && output == Path::new("-") {
            return Err(UsageError(
                "--compress is for a capture in a file: compress a stream where it arrives (… -o - | zstd > \
                 x.stream.zst; `tracebridge convert` and `info` read that)",
            ));
        }
        Ok(self.compress)
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ModeArg {
    /// While it fills: everything, as long as there is room for the capture
    Stream,
    /// At the end: the last events that fit into the buffer
    Ring,
    /// At the end, which is when a CPU's buffer is full: the first events
    Fill,
}

/// What to record, and of which trace buffer: `record` and `start` share it.
#[derive(Debug, ClapArgs)]
pub struct What {
    /// A category (`tracebridge list` shows them), GROUP/EVENT or GROUP/*; events may have a :FILTER in the kernel's
    /// language (sched/sched_switch:prev_pid==1)
    #[arg(value_name = "WHAT")]
    names: Vec<String>,
    /// Also what this file names, separated by white space
    #[arg(short = 'f', long = "from-file", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Let these apps write their markers: their process names, * matches any; separated by commas
    #[arg(short, long = "app", value_name = "APP", value_delimiter = ',')]
    apps: Vec<String>,
    /// Trace these kernel functions; * matches any; separated by commas
    #[arg(short = 'k', long, value_name = "FUNCTION", value_delimiter = ',')]
    functions: Vec<String>,
    /// With what the functions of -k call, and how long each takes
    #[arg(long, requires = "functions")]
    graph: bool,
    /// The kernel's buffer, KiB for each CPU
    #[arg(short, long, value_name = "KIB", default_value_t = 4096, value_parser = clap::value_parser!(u64).range(1..=4_194_304))]
    buffer: u64,
    /// What stamps the events: one of tracefs' trace_clock. Default: boot, else mono, else global
    #[arg(long, value_name = "CLOCK")]
    clock: Option<String>,
    /// Leave the recorder's own threads out of the trace
    #[arg(long)]
    exclude_self: bool,
    /// Take the buffer over from a recorder or flight recorder that has it, ending its recording
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    pub kernel: Kernel,
}

/// Which trace buffer, and where its saved settings are kept.
#[derive(Debug, ClapArgs)]
pub struct Kernel {
    /// The directory of tracefs. Default: /sys/kernel/tracing, else /sys/kernel/debug/tracing
    #[arg(long, value_name = "DIR")]
    pub tracefs: Option<PathBuf>,
    /// Use a buffer of this name beside the top one; it is made, and removed at the end
    #[arg(long, value_name = "NAME")]
    pub instance: Option<String>,
    /// Where the kernel's saved settings are kept for `restore`. Default: the first writable of /data/local/tmp, /run, /tmp
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}

impl Kernel {
    /// The directory of saved settings asked for.
    pub fn state_dir(&self) -> PathBuf {
        self.state_dir.clone().unwrap_or_else(state_dir)
    }

    /// The trace buffer asked for; an instance is made, with `make`, and the second value tells whether it was.
    pub fn buffer(&self, make: bool) -> anyhow::Result<(Tracefs, bool)> {
        let top = Tracefs::find(self.tracefs.as_deref())?;
        Ok(match &self.instance {
            Some(name) => top.instance(name, make)?,
            None => (top, false),
        })
    }
}

impl What {
    /// Takes these where nothing is named.
    pub fn or(&mut self, names: &[&str]) {
        if self.names.is_empty() && self.files.is_empty() && self.functions.is_empty() {
            self.names = names.iter().map(|n| (*n).to_owned()).collect();
        }
    }

    /// Lets this app write its markers too.
    pub fn also_app(&mut self, app: &str) {
        if !self.apps.iter().any(|a| a == app) {
            self.apps.push(app.to_owned());
        }
    }

    /// What the kernel is to be set to. A note for each thing that this device does not have.
    pub fn setup(&self, tracefs: &Tracefs, when_full: WhenFull) -> anyhow::Result<(Setup, Vec<String>)> {
        let mut names = self.names.clone();
        for file in &self.files {
            let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
            names.extend(text.split_whitespace().map(str::to_owned));
        }
        let choice = events::choose(tracefs, &names)?;
        let asked = choice.tags != 0 || !self.apps.is_empty() || choice.core_services;
        if choice.events.is_empty() && !asked && self.functions.is_empty() {
            anyhow::bail!(
                "nothing to record: name a category (`tracebridge list`), GROUP/EVENT, -a APP or -k FUNCTION"
            );
        }
        let userspace = asked.then(|| UserspaceRequest {
            tags: choice.tags,
            apps: self.apps.clone(),
            core_services: choice.core_services,
            user_initiated: tracefs.instance_name().is_none(),
        });
        let functions = Some(&self.functions).filter(|f| !f.is_empty());
        let setup = Setup {
            events: choice.events,
            userspace,
            functions: functions.map(|names| Functions { names: names.clone(), graph: self.graph }),
            clock: self.clock.clone(),
            buffer_kb: self.buffer,
            when_full,
            exclude_self: self.exclude_self,
        };
        Ok((setup, choice.notes))
    }

    /// Whether function names will be needed to read the trace.
    pub fn has_functions(&self) -> bool {
        !self.functions.is_empty()
    }

    /// The guard of the trace buffer's settings, after anything a killed recorder left is put back.
    pub fn settings(&self, tracefs: &Tracefs, mut made: bool) -> anyhow::Result<Settings> {
        let dir = self.kernel.state_dir();
        if self.force
            && let Some(pid) = Settings::take_over(tracefs, &dir)?
        {
            complain(format_args!(
                "tracebridge: took the trace buffer over from recorder {pid}, whose recording ended"
            ));
            // It has removed its instance.
            made |= self.kernel.buffer(true)?.1;
        }
        let (mut settings, leftover) = Settings::begin(tracefs, &dir, self.force)?;
        match leftover {
            Leftover::None => {}
            Leftover::PutBack(knobs) => {
                complain(format_args!(
                    "tracebridge: put back {knobs} settings that an earlier recorder had left"
                ));
            }
            Leftover::Flight(pid) => {
                complain(format_args!(
                    "tracebridge: ended the flight recorder that pid {pid} had started; what it held is lost"
                ));
            }
        }
        if made {
            settings.remove_instance_at_end()?;
        }
        Ok(settings)
    }
}

/// Records.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let compress = args.compress.of(&args.output)?;
    let (tracefs, made) = args.what.kernel.buffer(true)?;
    // Before anything is changed: a signal from here on ends the recording in order.
    let signals = Signals::block()?;
    let settings = args.what.settings(&tracefs, made)?;
    let (mode, when_full) = match args.mode {
        ModeArg::Stream => (Mode::Stream, WhenFull::Overwrite),
        ModeArg::Ring => (Mode::Ring, WhenFull::Overwrite),
        ModeArg::Fill => (Mode::Fill, WhenFull::Stop),
    };
    let (setup, notes) = args.what.setup(&tracefs, when_full)?;
    let target = Target {
        path: args.output.clone(),
        max_bytes: args.max_size,
        kallsyms: args.kallsyms || args.what.has_functions(),
        compress,
    };
    let config = Config { setup, target, duration: args.time, mode };
    let mut summary = recorder::record(&config, settings, &signals)?;
    summary.notes.splice(0..0, notes);
    tell(&summary, args.json)
}

/// Where the capture goes, and what goes with it.
pub fn target(path: &Path, max_bytes: Option<u64>, what: &What) -> Target {
    Target { path: path.to_owned(), max_bytes, kallsyms: what.has_functions(), compress: false }
}

/// Prints the summary; to stderr where stdout is the capture.
pub fn tell(summary: &Summary, json: bool) -> anyhow::Result<Exit> {
    let text = if json { serde_json::to_string(summary)? + "\n" } else { summary.text() };
    // Who does not listen any more (`record … | head`) changes nothing about how it went.
    let _ = match summary.output == Path::new("-") {
        true => io::stderr().write_all(text.as_bytes()),
        false => io::stdout().write_all(text.as_bytes()),
    };
    Ok(if summary.is_lossy() { Exit::Lossy } else { Exit::Complete })
}
