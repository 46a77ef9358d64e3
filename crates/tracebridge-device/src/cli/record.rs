//! `record`: writes the kernel's trace to a capture. What the device's other commands share with it is here
//! too.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::Args;

use super::request_of_flags::{capture_target, recording_request};
use crate::cli::Exit;
use crate::cli::exit::UsageError;
use crate::cli::recording_flags::{ContentArgs, EndArgs, RecordSelection, SchedulingArgs};
use crate::console::complain;
use crate::record::CaptureTarget;
use crate::record::interruptible_writer::{InterruptibleWriter, Patience};
use crate::record::recorder::{self, RecordingPlan};
use crate::record::request::BufferNotice;
use crate::trace_dat::recording_summary::RecordingSummary;

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
    #[command(flatten)]
    end: EndArgs,
    #[command(flatten)]
    scheduling: SchedulingArgs,
    #[command(flatten)]
    capture: CaptureArgs,
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
                 x.stream.zst; `tracebridge convert` and `info` read that)",
            ));
        }
        Ok(self.contents.compress)
    }
}

/// Runs `record`.
pub fn run(args: &RecordArgs) -> anyhow::Result<Exit> {
    let compress = args.capture.compress_for(&args.output)?;
    let target = capture_target(&args.selection, &args.output);
    let kallsyms = args.capture.contents.kallsyms || target.kallsyms;
    let readable = args.capture.access.readable;
    let target = CaptureTarget { max_bytes: args.end.max_size, kallsyms, readable, compress, ..target };
    let nice = args.scheduling.nice;
    let plan = RecordingPlan { target, duration: args.end.time, mode: args.end.mode.into(), nice };
    let summary = recorder::record(&recording_request(&args.selection, &[])?, &plan, &mut print_notice)?;
    print_summary(&summary, args.capture.json)
}

/// Prints on stderr what happened to an earlier user of the trace buffer.
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
    let patience = Rc::new(Patience::until(Instant::now() + PRINT_TIME));
    let out = match stdout {
        false => InterruptibleWriter::new(&io::stderr(), patience),
        true => InterruptibleWriter::new(&io::stdout(), patience),
    };
    let _ = out.and_then(|mut out| out.write_all(text.as_bytes()));
}
