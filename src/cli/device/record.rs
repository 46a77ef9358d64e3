//! `record`: writes the kernel's trace to a capture. The flags that `record` shares with other commands are
//! here too.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, ValueEnum};

use crate::cli::exit::UsageError;
use crate::cli::{Exit, units};
use crate::console::complain;
use crate::record::event_selection::read_names;
use crate::record::interruptible_writer::{InterruptibleWriter, Patience};
use crate::record::recorder::{self, RecordingMode, RecordingPlan};
use crate::record::request::{BufferNotice, BufferRequest, RecordingRequest};
use crate::record::tracefs_config::FunctionTracing;
use crate::record::{CaptureTarget, RecordingSummary};

/// How long a reader that takes nothing has for the summary.
const PRINT_TIME: Duration = Duration::from_millis(300);

/// Record the kernel's trace events and the apps' atrace markers to a trace.dat
///
/// The kernel's settings are saved before the recording and put back after it, whatever ends the recording.
/// After a SIGKILL, `tracebridge restore` puts them back.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 complete, 1 failed, 2 usage, 3 the capture is there but events were lost (the summary says how many).

  tracebridge record -t 10 -b 8192 -a com.example.app sched freq idle am view -o /data/local/tmp/x.dat
  tracebridge record -t 5 'sched/sched_switch:prev_pid==1||next_pid==1' 'irq/*'
  adb exec-out tracebridge record -t 10 -o - sched > x.stream    (no storage on the device; `convert x.stream -o x.dat`)")]
pub struct RecordArgs {
    #[command(flatten)]
    selection: RecordSelection,
    /// Where the capture goes; - is a stream on stdout, for `tracebridge convert` on the host
    #[arg(short, long, value_name = "FILE", default_value = "trace.dat")]
    output: PathBuf,
    /// Stop after this time (500ms, 5, 5s, 2m; a bare number is seconds). Without it: on SIGINT or SIGTERM
    #[arg(short = 't', long, value_name = "TIME", value_parser = units::duration)]
    time: Option<Duration>,
    /// Stop when the capture holds this amount of events (bytes, or with k, m, g)
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    max_size: Option<u64>,
    /// When events are moved out of the kernel's buffer
    #[arg(long, value_enum, default_value_t = ModeArg::Stream)]
    mode: ModeArg,
    #[command(flatten)]
    scheduling: SchedulingArgs,
    #[command(flatten)]
    capture: CaptureArgs,
}

/// The flags that `record`, `dump` and `stop` share.
#[derive(Debug, Args)]
pub struct CaptureArgs {
    /// Include /proc/kallsyms (several MiB), for events that print kernel addresses
    #[arg(long)]
    pub kallsyms: bool,
    /// Compress the capture (trace.dat v7, zstd) once the recording has ended. The disk needs room for both
    /// files for a while. A stream cannot be compressed here: compress it on the host (… | zstd >
    /// x.stream.zst, which `convert` reads)
    #[arg(long)]
    compress: bool,
    #[command(flatten)]
    pub access: AccessArgs,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
}

/// Who may read a capture: `record`, `dump`, `stop`, `wrap` and `launch` share this flag.
#[derive(Debug, Args)]
pub struct AccessArgs {
    /// Let every user read the capture (mode 0644). Without it the capture is for its owner alone (0600): it
    /// shows what other users' programs do
    #[arg(long)]
    pub readable: bool,
}

/// How the recorder is scheduled: `record`, `wrap` and `launch` share this flag.
#[derive(Debug, Args)]
pub struct SchedulingArgs {
    /// Record with this nice value (-20 to 19). Without it the recorder asks for real-time scheduling, so
    /// that a busy device does not keep it from reading, and gives it up if it uses too much of a CPU
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-20..=19))]
    pub nice: Option<i32>,
}

impl CaptureArgs {
    /// Whether the flag was given.
    pub fn is_compressed(&self) -> bool {
        self.compress
    }

    /// Whether `output` is to be compressed.
    pub fn compress_for(&self, output: &Path) -> Result<bool, UsageError> {
        if self.compress && output == Path::new("-") {
            return Err(UsageError::from(
                "--compress is for a capture in a file: compress a stream where it arrives (… -o - | zstd > \
                 x.stream.zst; `tracebridge convert` and `info` read that)",
            ));
        }
        Ok(self.compress)
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ModeArg {
    /// While the buffer fills: the capture has all events, as long as there is room for it
    Stream,
    /// At the end: the capture has the last events that fit into the buffer
    Ring,
    /// At the end, which comes when a CPU's buffer is full: the capture has the first events
    Fill,
}

impl From<ModeArg> for RecordingMode {
    fn from(mode: ModeArg) -> RecordingMode {
        match mode {
            ModeArg::Stream => RecordingMode::Stream,
            ModeArg::Ring => RecordingMode::Ring,
            ModeArg::Fill => RecordingMode::Fill,
        }
    }
}

/// What to record and in which trace buffer: `record`, `start`, `wrap` and `launch` share these flags.
#[derive(Debug, Args)]
pub struct RecordSelection {
    /// A category (`tracebridge list` shows them), GROUP/EVENT or GROUP/*. An event may be followed by
    /// :FILTER in the kernel's language (sched/sched_switch:prev_pid==1)
    #[arg(value_name = "WHAT")]
    names: Vec<String>,
    /// Also record the names in this file, separated by white space
    #[arg(short = 'f', long = "from-file", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Let these apps write their markers: their process names, * matches any; separated by commas
    #[arg(short, long = "app", value_name = "APP", value_delimiter = ',')]
    apps: Vec<String>,
    /// Trace these kernel functions; * matches any; separated by commas
    #[arg(short = 'k', long, value_name = "FUNCTION", value_delimiter = ',')]
    functions: Vec<String>,
    /// Also trace the functions that those of -k call, and how long each call takes
    #[arg(long, requires = "functions")]
    graph: bool,
    /// The size of the kernel's buffer, KiB for each CPU
    #[arg(short, long, value_name = "KIB", default_value_t = 4096, value_parser = clap::value_parser!(u64).range(1..=4_194_304))]
    buffer: u64,
    /// The clock of the events' times: one of tracefs' trace_clock. Default: boot, else mono, else global
    #[arg(long, value_name = "CLOCK")]
    clock: Option<String>,
    /// Leave the recorder's own threads out of the trace
    #[arg(long)]
    exclude_self: bool,
    /// Take the buffer over from another recorder or flight recorder, which ends its recording
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    pub buffer_args: TraceBufferArgs,
}

/// The trace buffer, and the directory of its saved settings.
#[derive(Debug, Args)]
pub struct TraceBufferArgs {
    /// The directory of tracefs. Default: /sys/kernel/tracing, else /sys/kernel/debug/tracing
    #[arg(long, value_name = "DIR")]
    pub tracefs: Option<PathBuf>,
    /// Use an instance of this name instead of the top-level buffer. The instance is created, and removed at
    /// the end
    #[arg(long, value_name = "NAME")]
    instance: Option<String>,
    /// Where the kernel's saved settings are kept for `restore`. Default: a directory of this user's own in
    /// /run, /data/adb, /data/local/tmp or /tmp
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

impl TraceBufferArgs {
    /// The trace buffer that these flags name.
    pub fn request(&self, force: bool) -> BufferRequest {
        BufferRequest {
            tracefs: self.tracefs.clone(),
            instance: self.instance.clone(),
            state_dir: self.state_dir.clone(),
            force,
        }
    }
}

impl RecordSelection {
    /// The recording that these flags ask for. `default_names` are recorded if the flags name nothing.
    pub fn request(&self, default_names: &[&str]) -> anyhow::Result<RecordingRequest> {
        let mut names = self.names.clone();
        for file in &self.files {
            let text = read_names(file).with_context(|| file.display().to_string())?;
            names.extend(text.split_whitespace().map(str::to_owned));
        }
        if self.names.is_empty() && self.files.is_empty() && self.functions.is_empty() {
            names = default_names.iter().map(|n| (*n).to_owned()).collect();
        }
        let functions = (!self.functions.is_empty())
            .then(|| FunctionTracing { names: self.functions.clone(), graph: self.graph });
        Ok(RecordingRequest {
            buffer: self.buffer_args.request(self.force),
            names,
            apps: self.apps.clone(),
            functions,
            clock: self.clock.clone(),
            buffer_kb: self.buffer,
            exclude_self: self.exclude_self,
        })
    }

    /// A capture at `path`, uncompressed, that includes kernel symbols if kernel functions are traced.
    pub fn target(&self, path: &Path) -> CaptureTarget {
        CaptureTarget {
            path: path.to_owned(),
            max_bytes: None,
            kallsyms: !self.functions.is_empty(),
            readable: false,
            compress: false,
        }
    }
}

/// Runs `record`.
pub fn run(args: &RecordArgs) -> anyhow::Result<Exit> {
    let compress = args.capture.compress_for(&args.output)?;
    let target = args.selection.target(&args.output);
    let kallsyms = args.capture.kallsyms || target.kallsyms;
    let readable = args.capture.access.readable;
    let target = CaptureTarget { max_bytes: args.max_size, kallsyms, readable, compress, ..target };
    let nice = args.scheduling.nice;
    let plan = RecordingPlan { target, duration: args.time, mode: args.mode.into(), nice };
    let summary = recorder::record(&args.selection.request(&[])?, &plan, &mut print_notice)?;
    print_summary(&summary, args.capture.json)
}

/// Prints on stderr what happened to an earlier user of the trace buffer.
pub fn print_notice(notice: BufferNotice) {
    complain(format_args!("tracebridge: {notice}"));
}

/// Prints the summary: on stdout, or on stderr if stdout is the capture.
pub fn print_summary(summary: &RecordingSummary, json: bool) -> anyhow::Result<Exit> {
    let text = if json { serde_json::to_string(summary)? + "\n" } else { summary.text() };
    // A reader who has gone away (`record … | head`) or takes nothing does not change the result.
    let patience = Rc::new(Patience::until(Instant::now() + PRINT_TIME));
    let out = match summary.output == Path::new("-") {
        true => InterruptibleWriter::new(&io::stderr(), patience),
        false => InterruptibleWriter::new(&io::stdout(), patience),
    };
    let _ = out.and_then(|mut out| out.write_all(text.as_bytes()));
    Ok(if summary.is_lossy() { Exit::Lossy } else { Exit::Complete })
}
