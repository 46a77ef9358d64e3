//! The flags that say what is recorded, which the device's commands and `adb` on the host share. The host
//! hands them on to the device as they were given.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::units;
use crate::text::read_names;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
/// When events are moved out of the kernel's buffer.
pub enum ModeArg {
    /// While the buffer fills: the capture has all events, as long as there is room for it
    Stream,
    /// At the end: the capture has the last events that fit into the buffer
    Ring,
    /// At the end, which comes when a CPU's buffer is full: the capture has the first events
    Fill,
}

/// Parses the time after which a recording ends: a time longer than none.
fn recording_time(text: &str) -> Result<Duration, String> {
    let time = units::duration(text)?;
    if time.is_zero() { Err("a recording takes longer than that".to_owned()) } else { Ok(time) }
}

/// When a recording ends, and when events are moved.
#[derive(Debug, Args)]
pub struct EndArgs {
    /// Stop after this time (500ms, 5, 5s, 2m; a bare number is seconds). Without it: on SIGINT or SIGTERM
    #[arg(short = 't', long, value_name = "TIME", value_parser = recording_time)]
    pub time: Option<Duration>,
    /// Stop when the capture holds this amount of events (bytes, or with k, m, g)
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub max_size: Option<u64>,
    /// When events are moved out of the kernel's buffer
    #[arg(long, value_enum, default_value_t = ModeArg::Stream)]
    pub mode: ModeArg,
}

/// The contents of a capture beside events, and its form.
#[derive(Debug, Args)]
pub struct ContentArgs {
    /// Include /proc/kallsyms (several MiB), for events that print kernel addresses
    #[arg(long)]
    pub kallsyms: bool,
    /// Compress the capture (trace.dat v7, zstd) once the recording has ended. The disk needs room for both
    /// files for a while. A stream cannot be compressed here: compress it on the host (… | zstd >
    /// x.stream.zst, which `merge` reads)
    #[arg(long)]
    pub compress: bool,
}

/// How the recorder is scheduled: `record`, `wrap` and `launch` share this flag.
#[derive(Debug, Args)]
pub struct SchedulingArgs {
    /// Record with this nice value (-20 to 19). Without it the recorder asks for real-time scheduling, so
    /// that a busy device does not keep it from reading, and gives it up if it uses too much of a CPU
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-20..=19))]
    pub nice: Option<i32>,
}

/// The selection of what is recorded, and its trace buffer: `record`, `start`, `wrap` and `launch` share
/// these flags.
#[derive(Debug, Args)]
pub struct RecordSelection {
    /// A category (`tracebridge list` shows them), GROUP/EVENT or GROUP/*. An event may be followed by
    /// :FILTER in the kernel's language (sched/sched_switch:prev_pid==1)
    #[arg(value_name = "WHAT")]
    pub names: Vec<String>,
    /// Also record the names in this file, separated by white space
    #[arg(short = 'f', long = "from-file", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Let these apps write their markers: their process names, * matches any; separated by commas
    #[arg(short, long = "app", value_name = "APP", value_delimiter = ',')]
    pub apps: Vec<String>,
    /// Trace these kernel functions; * matches any; separated by commas
    #[arg(short = 'k', long, value_name = "FUNCTION", value_delimiter = ',')]
    pub functions: Vec<String>,
    /// Also trace the functions that those of -k call, and how long each call takes
    #[arg(long, requires = "functions")]
    pub graph: bool,
    /// The size of the kernel's buffer, KiB for each CPU
    #[arg(short, long, value_name = "KIB", default_value_t = 4096, value_parser = clap::value_parser!(u64).range(1..=4_194_304))]
    pub buffer: u64,
    /// The clock of the events' times: one of tracefs' trace_clock. Default: boot, else mono, else global
    #[arg(long, value_name = "CLOCK")]
    pub clock: Option<String>,
    /// Leave the recorder's own threads out of the trace
    #[arg(long)]
    pub exclude_self: bool,
    /// Leave out, with a note, what is named and unknown here: categories and events. Without this flag a
    /// name that this kernel does not know is an error
    #[arg(long)]
    pub lenient: bool,
    /// Take the buffer over from another recorder or flight recorder, which ends its recording
    #[arg(long)]
    pub force: bool,
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
    pub instance: Option<String>,
    /// Where the kernel's saved settings are kept for `restore`. Default: a directory of this user's own in
    /// /run, /data/adb, /data/local/tmp or /tmp
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}

/// The clock of a method trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClockTypeArg {
    /// Wall time alone
    Wall,
    /// CPU time of the thread alone
    ThreadCpu,
    /// Both
    Dual,
}

impl ClockTypeArg {
    /// The name that `am` knows.
    pub fn name(self) -> &'static str {
        match self {
            ClockTypeArg::Wall => "wall",
            ClockTypeArg::ThreadCpu => "thread-cpu",
            ClockTypeArg::Dual => "dual",
        }
    }
}

/// The categories that the launch of an app records if nothing is named. Categories that the device does not
/// have are left out.
pub const LAUNCH_CATEGORIES: [&str; 15] = [
    "sched",
    "freq",
    "idle",
    "irq",
    "disk",
    "memreclaim",
    "am",
    "wm",
    "view",
    "gfx",
    "input",
    "dalvik",
    "res",
    "ss",
    "binder_driver",
];

/// How the launch of an app is recorded.
#[derive(Debug, Clone, Args)]
pub struct LaunchFlags {
    /// Record the start alone, without the method profiler
    #[arg(long)]
    pub no_profile: bool,
    /// Sample the app's stacks at this interval in microseconds, instead of tracing each call
    #[arg(long, value_name = "US", conflicts_with = "no_profile", value_parser = clap::value_parser!(u32).range(1..))]
    pub sampling: Option<u32>,
    /// In place of tracing methods, sample the app this many times in a second that a thread runs: with the
    /// device's simpleperf, also where threads wait; without it by the method profiler
    #[arg(long, value_name = "FREQ", num_args = 0..=1, require_equals = true, default_missing_value = "1000",
        conflicts_with_all = ["sampling", "streaming", "clock_type", "profiler_output_version", "low_overhead", "long_running"],
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub sample: Option<u32>,
    /// Let the runtime write while it traces, so that its buffer of 8 MiB is no limit (Android 8 and newer)
    #[arg(long, conflicts_with = "no_profile")]
    pub streaming: bool,
    /// The clock of the method trace (newer releases of Android; without it the runtime chooses)
    #[arg(long, value_enum, value_name = "CLOCK", conflicts_with = "no_profile")]
    pub clock_type: Option<ClockTypeArg>,
    /// The format of the method trace: 2 costs the app less (newer releases of Android; without it the
    /// runtime chooses)
    #[arg(long, value_name = "VERSION", conflicts_with = "no_profile", value_parser = clap::value_parser!(u8).range(1..=2))]
    pub profiler_output_version: Option<u8>,
    /// Use the always-on tracer: the last calls of each thread, without times, at almost no cost (builds of
    /// Android that have it)
    #[arg(long, conflicts_with_all = ["no_profile", "sampling", "streaming", "clock_type", "profiler_output_version"])]
    pub low_overhead: bool,
    /// Use the always-on tracer: only methods that run for some 0.3 s or more, with times, at almost no cost
    /// (builds of Android that have it)
    #[arg(long, conflicts_with_all = ["no_profile", "sampling", "streaming", "clock_type", "profiler_output_version", "low_overhead"])]
    pub long_running: bool,
    /// Record a warm start: the app is started and left for the home screen first, so that its process is
    /// there and only its activity is made anew
    #[arg(long)]
    pub warm: bool,
    /// Go on for this time after the launch has ended (500ms, 2, 2s)
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::duration)]
    pub settle: Duration,
    /// Stop recording at this time at the latest, counted from its start (30, 1m)
    #[arg(short = 't', long, value_name = "TIME", default_value = "60s", value_parser = recording_time)]
    pub time: Duration,
}

impl RecordSelection {
    /// The names of what is to be recorded: those of the command line and of the files.
    ///
    /// # Errors
    /// The system's, for a file that cannot be read, with the file's name.
    pub fn all_names(&self) -> io::Result<Vec<String>> {
        let mut names = self.names.clone();
        for file in &self.files {
            let text = read_names(file)
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))?;
            names.extend(text.split_whitespace().map(str::to_owned));
        }
        Ok(names)
    }
}
