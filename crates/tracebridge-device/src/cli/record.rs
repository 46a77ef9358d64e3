//! `record`: writes the kernel's trace to a capture. The flags, the request and the printing that it shares
//! with the device's other recording commands are here too.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::Args;

use crate::cli::Exit;
use crate::cli::exit::UsageError;
use crate::cli::recording_flags::{
    ContentArgs, EndArgs, ModeArg, RecordSelection, SchedulingArgs, TraceBufferArgs,
};
use crate::console::complain;
use crate::record::CaptureTarget;
use crate::record::interruptible_writer::{InterruptibleWriter, WriteTimeout};
use crate::record::recorder::{self, RecordingMode, RecordingPlan};
use crate::record::request::{BufferNotice, BufferRequest, RecordingRequest};
use crate::record::tracefs_config::FunctionTracing;
use crate::step_log;
use crate::trace_dat::recording_summary::RecordingSummary;

/// The output where none is named.
const DEFAULT_OUTPUT: &str = "trace.dat";

/// How long a reader that takes nothing has for the summary.
const PRINT_TIMEOUT: Duration = Duration::from_millis(300);

/// Record the kernel's trace events and the apps' atrace markers to a trace.dat
///
/// The kernel's settings are saved before the recording and put back after it, whatever ends the recording.
/// After a SIGKILL, `tracebridge restore` puts them back.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 complete, 1 failed, 2 usage, 3 the capture is there but events were lost (the summary says how many).

  tracebridge record -t 10 -b 8192 -a com.example.app sched freq idle am view -o /data/local/tmp/x.dat
  tracebridge record -t 5 'sched/sched_switch:prev_pid==1||next_pid==1' 'irq/*'
  adb exec-out /data/local/tmp/tracebridge record -t 10 -o - sched >x.stream   # no storage; `merge x.stream -o x.dat`")]
pub struct RecordArgs {
    #[command(flatten)]
    selection: RecordSelection,
    /// Where the capture goes; - is a stream on stdout, for `tracebridge merge` on the host
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_OUTPUT)]
    output: PathBuf,
    /// Show the events in the browser while they come. With -o -, send them every 100 ms and show nothing,
    /// for `tracebridge adb live` and `live`
    #[arg(long, conflicts_with_all = ["mode", "max_size"])]
    live: bool,
    #[command(flatten)]
    end: EndArgs,
    #[command(flatten)]
    scheduling: SchedulingArgs,
    #[command(flatten)]
    capture: CaptureArgs,
    #[command(flatten)]
    steps: StepArgs,
}

/// The flags that `record`, `dump` and `stop` share.
#[derive(Debug, Args)]
pub struct CaptureArgs {
    #[command(flatten)]
    pub contents: ContentArgs,
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

/// Whether each step is printed: `record`, `start`, `dump`, `stop`, `wrap` and `launch` share this flag.
#[derive(Debug, Args)]
pub struct StepArgs {
    /// Print each step on stderr: files of tracefs with their old and new values, the lock, the clock, the
    /// buffers, the scheduling, and the time that each phase takes
    #[arg(short, long)]
    verbose: bool,
}

impl StepArgs {
    /// Has the steps that come after this call be printed, if the flag was given.
    pub fn apply(&self) {
        if self.verbose {
            step_log::enable();
        }
    }
}

impl CaptureArgs {
    /// Whether the flag was given.
    pub fn is_compressed(&self) -> bool {
        self.contents.compress
    }

    /// Whether `output` is to be compressed.
    pub fn compress_for(&self, output: &Path) -> Result<bool, UsageError> {
        if self.contents.compress && output == Path::new("-") {
            return Err(UsageError::from(
                "--compress is for a capture in a file: compress a stream where it arrives (… -o - | zstd > \
                 x.stream.zst; `tracebridge merge` and `info` read that)",
            ));
        }
        Ok(self.contents.compress)
    }
}

impl RecordArgs {
    /// Whether the recording is to be shown here while it runs, which only the host's program can do.
    pub fn is_shown(&self) -> bool {
        self.live && self.output == Path::new(DEFAULT_OUTPUT)
    }
}

/// Runs `record`.
pub fn run(args: &RecordArgs) -> anyhow::Result<Exit> {
    args.steps.apply();
    let compress = args.capture.compress_for(&args.output)?;
    if args.live && args.output != Path::new("-") {
        return Err(UsageError::from(
            "--live is for a stream that is shown while it comes: give -o -, or have `tracebridge adb live` show it",
        )
        .into());
    }
    let target = capture_target(&args.selection, &args.output);
    let kallsyms = args.capture.contents.kallsyms || target.kallsyms;
    let readable = args.capture.access.readable;
    let target = CaptureTarget { max_bytes: args.end.max_size, kallsyms, readable, compress, ..target };
    let nice = args.scheduling.nice;
    let mode = if args.live { RecordingMode::Live } else { args.end.mode.into() };
    let plan = RecordingPlan { target, duration: args.end.time, mode, nice };
    let summary = recorder::record(&recording_request(&args.selection, &[])?, &plan, &mut print_notice)?;
    print_summary(&summary, args.capture.json)
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

/// The trace buffer that the flags name.
pub fn buffer_request(flags: &TraceBufferArgs, force: bool) -> BufferRequest {
    BufferRequest {
        tracefs: flags.tracefs.clone(),
        instance: flags.instance.clone(),
        state_dir: flags.state_dir.clone(),
        force,
    }
}

/// The recording that the flags ask for. `default_names` are recorded if the flags name nothing.
pub fn recording_request(
    flags: &RecordSelection,
    default_names: &[&str],
) -> anyhow::Result<RecordingRequest> {
    let mut names = flags.all_names()?;
    if flags.names.is_empty() && flags.files.is_empty() && flags.functions.is_empty() {
        names = default_names.iter().map(|n| (*n).to_owned()).collect();
    }
    let functions = (!flags.functions.is_empty())
        .then(|| FunctionTracing { names: flags.functions.clone(), graph: flags.graph });
    Ok(RecordingRequest {
        buffer: buffer_request(&flags.buffer_args, flags.force),
        names,
        apps: flags.apps.clone(),
        functions,
        clock: flags.clock.clone(),
        buffer_kb: flags.buffer,
        exclude_self: flags.exclude_self,
        is_lenient: flags.lenient,
    })
}

/// A capture at `path`, uncompressed, that includes kernel symbols if kernel functions are traced.
pub fn capture_target(flags: &RecordSelection, path: &Path) -> CaptureTarget {
    CaptureTarget {
        path: path.to_owned(),
        max_bytes: None,
        kallsyms: !flags.functions.is_empty(),
        readable: false,
        compress: false,
    }
}

/// Prints a message about an earlier user of the trace buffer on stderr.
pub fn print_notice(notice: BufferNotice) {
    complain(format_args!("tracebridge: {notice}"));
}

/// Prints the summary: on stdout, or on stderr if stdout is the capture.
pub fn print_summary(summary: &RecordingSummary, json: bool) -> anyhow::Result<Exit> {
    let text = if json { serde_json::to_string(summary)? + "\n" } else { summary.text() };
    print_on(!summary.is_on_stdout(), &text);
    Ok(if summary.is_lossy() { Exit::Lossy } else { Exit::Complete })
}

/// Prints a text on stdout or stderr. A reader who has gone away (`record … | head`) or takes nothing does
/// not change the result.
pub fn print_on(stdout: bool, text: &str) {
    let timeout = Rc::new(WriteTimeout::until(Instant::now() + PRINT_TIMEOUT));
    let out = if stdout {
        InterruptibleWriter::new(&io::stdout(), timeout)
    } else {
        InterruptibleWriter::new(&io::stderr(), timeout)
    };
    let _ = out.and_then(|mut out| out.write_all(text.as_bytes()));
}
