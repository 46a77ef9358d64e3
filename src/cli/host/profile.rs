//! `profile`: declares the flags, and calls [`crate::profile::run`].

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use super::against::AgainstArgs;
use super::dmtracedump::ClockArg;
use super::profile_files::FileArgs;
use super::progress_bar::ProgressBar;
use super::{MemoryArgs, Messages};
use crate::cli::exit::UsageError;
use crate::cli::{Exit, units};
use crate::profile::{
    self, PrintForm, ProfileOutput, ProfileRequest, RecordFilter, RowKind, RowRequest, SampleWeight, SortKey,
    TextStyle, TreeDirection,
};

/// Profile method traces: show where the time goes, by method, class, package or thread
///
/// Reads the traces of Debug.startMethodTracing, `am profile`, DDMS and Android Studio: versions 1 to 5,
/// streaming or not, compressed with gzip or not, and damaged ones as far as they go; and those of the
/// always-on tracer, also inside of an ANR's dump, a bug report or a Perfetto trace. NAME.key is read
/// together with NAME.data; NAME alone stands for NAME.trace, or else for NAME.key. Without an output option
/// the command prints a table; a trace with two clocks has wall time and thread-CPU time in it. "excl" is the
/// time in a method without the methods it called, "incl" the time with them; of a recursion only the
/// outermost call counts. On a terminal the table fits the width: columns and then packages give way to the
/// methods' names. A pipe or a file gets everything. Exit status 1 means that nothing matches, 2 that an
/// option would not be used, 3 that the trace is damaged or that records had to be left out. Records that
/// could be interpreted (calls without an end, thread ids used twice) are reported on stderr, and change the
/// exit status only with --strict.
#[derive(Parser)]
#[command(after_help = "Examples:\n  \
    tracebridge profile app.trace --thread main --top 20\n  \
    tracebridge profile app.trace --tree --threshold 5\n  \
    tracebridge profile app.trace -o flame.svg --clock cpu\n  \
    tracebridge profile app.trace -o calls.speedscope.json\n  \
    tracebridge profile after.trace --against before.trace --by class\n  \
    tracebridge profile release.trace --mapping mapping.txt --method 'com.example.*' --calls")]
pub struct ProfileArgs {
    /// Method traces; each one is profiled by itself
    #[arg(required_unless_present = "against", value_name = "TRACE")]
    pub(super) traces: Vec<PathBuf>,

    /// The thing that one row stands for [default: method]
    #[arg(long, value_enum, value_name = "KIND", help_heading = "Rows")]
    pub(super) by: Option<RowArg>,
    /// The figure to sort by, largest first [default: exclusive]
    #[arg(long, value_enum, value_name = "FIGURE", help_heading = "Rows")]
    pub(super) sort: Option<SortArg>,
    /// The clock to sort, draw and cut by [default: wall time where the trace has it;
    /// CPU time for flame graphs and call graphs]
    #[arg(long, value_enum, value_name = "CLOCK", help_heading = "Rows")]
    pub(super) clock: Option<ClockArg>,
    /// Of samples: weigh those of this event type [default: the first with samples of threads that run]
    #[arg(long, value_name = "NAME", help_heading = "Samples")]
    pub(super) event: Option<String>,
    /// Of samples: what each one weighs [default: period]
    #[arg(long, value_enum, value_name = "KIND", help_heading = "Samples")]
    pub(super) weight: Option<WeightArg>,
    /// Say where the method tracer changed the picture: each method's share of the time by the calls of a
    /// method trace against its share of the samples of the same run (TRACE SAMPLES)
    #[arg(long, help_heading = "Samples", conflicts_with_all = ["by", "sort", "clock", "event", "weight", "calls",
        "thread", "from", "to", "method", "tree", "bottom_up", "csv", "output", "folded", "flamegraph", "against",
        "mapping"])]
    pub(super) overhead: bool,
    /// Show this many rows; 0 shows all [default: 40 in a table, all in JSON and CSV]
    #[arg(long, value_name = "N", help_heading = "Rows")]
    pub(super) top: Option<usize>,
    /// Show the callers and callees of each method, with their shares of the method's inclusive time, and
    /// their calls out of all calls of the callee
    #[arg(long, help_heading = "Rows")]
    pub(super) calls: bool,
    /// Print methods with their JVM descriptors, `wait (JI)V`, in place of `wait(long, int)`
    #[arg(long, help_heading = "Rows")]
    pub(super) signatures: bool,

    /// Count only threads whose name contains NAME, or whose id in the trace is NAME; `main` is the main
    /// thread whatever its name: the one whose id is the process's, else the one that is called main, else
    /// the one with the lowest id. Can be given several times
    #[arg(long, value_name = "NAME", help_heading = "Filters")]
    pub(super) thread: Vec<String>,
    /// Count only time after TIME, measured from the trace's start (1.5s, 200ms, 0.75ms)
    #[arg(long, value_name = "TIME", value_parser = units::duration, help_heading = "Filters")]
    pub(super) from: Option<Duration>,
    /// Count only time before TIME, measured from the trace's start (1.5s, 200ms, 0.75ms)
    #[arg(long, value_name = "TIME", value_parser = units::duration, help_heading = "Filters")]
    pub(super) to: Option<Duration>,
    /// Show only rows whose name contains PATTERN; * stands for any text. Methods have their parameters in
    /// their names, as Java types and as JVM descriptors
    #[arg(long, value_name = "PATTERN", help_heading = "Filters")]
    pub(super) method: Option<String>,

    /// Exit with 3 also where irregular records had to be interpreted
    #[arg(long)]
    pub(super) strict: bool,
    #[command(flatten)]
    pub(super) memory: MemoryArgs,
    #[command(flatten)]
    pub(super) against: AgainstArgs,
    /// Restore obfuscated names, inlined methods and lines from the mapping.txt of R8 or ProGuard
    #[arg(long, value_name = "FILE")]
    pub(super) mapping: Option<PathBuf>,
    /// Name native functions of samples by the ELF files and Breakpad's symbols in DIR, matched by build id
    #[arg(long, value_name = "DIR")]
    pub(super) symbols: Vec<PathBuf>,

    /// Print the call tree from the threads down
    #[arg(long, help_heading = "Outputs")]
    pub(super) tree: bool,
    /// Print the methods that take the time, each with its callers
    #[arg(long, help_heading = "Outputs")]
    pub(super) bottom_up: bool,
    /// Leave out what is below this share, percent: in --tree of its thread's time, in --bottom-up and call
    /// graphs of the time of all threads [default: 1 in trees, 5 in graphs]
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent, help_heading = "Outputs")]
    pub(super) threshold: Option<f64>,
    /// Print JSON, one object a trace; times in ns (docs/schemas/profile.json describes it)
    #[arg(long, help_heading = "Outputs")]
    pub(super) json: bool,
    /// Print CSV; times in ns
    #[arg(long, help_heading = "Outputs")]
    pub(super) csv: bool,
    /// Write a file as its ending says: .svg is a flame graph, .folded folded stacks, .dot, .png and .dot.svg
    /// a call graph, .speedscope.json, .firefox.json and .pb.gz files for speedscope.app,
    /// profiler.firefox.com and pprof. It can be given several times. Graphviz draws .png and .dot.svg; a
    /// flame graph with --against colours slower methods red and faster ones blue
    #[arg(short, long, value_name = "FILE", help_heading = "Outputs")]
    pub(super) output: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) files: FileArgs,
    /// Show methods of this package in the app's colour in a flame graph; can be given several times
    /// [default: all that are neither Android's nor those of a known library]
    #[arg(long, value_name = "PREFIX", help_heading = "Outputs")]
    pub(super) app: Vec<String>,
    /// Add up all threads in folded stacks and flame graphs
    #[arg(long, help_heading = "Outputs")]
    pub(super) merge_threads: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum WeightArg {
    /// The event type's own measure: ns of cpu-clock and task-clock, else a number of events
    Period,
    /// 1
    Count,
    /// The time between two samples
    Time,
}

impl From<WeightArg> for SampleWeight {
    fn from(arg: WeightArg) -> SampleWeight {
        match arg {
            WeightArg::Period => SampleWeight::Period,
            WeightArg::Count => SampleWeight::Count,
            WeightArg::Time => SampleWeight::Time,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum RowArg {
    /// One method; overloads have rows of their own
    Method,
    /// All methods of a class
    Class,
    /// All methods of a package
    Package,
    /// One thread
    Thread,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SortArg {
    /// Exclusive time
    #[value(alias = "excl")]
    Exclusive,
    /// Inclusive time
    #[value(alias = "incl")]
    Inclusive,
    /// Number of calls
    Calls,
}

fn parse_percent(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|p| (0.0..=100.0).contains(p)).ok_or_else(|| "percent, 0 to 100".to_owned())
}

/// Runs the command.
pub fn run(args: ProfileArgs) -> anyhow::Result<Exit> {
    let earlier = args.against.one_old_file("profile", &args.traces)?.cloned();
    let bar = ProgressBar::of(&args.traces);
    let mut results = super::results(&bar);
    let mut messages = Messages::default();
    let mut message = |file: &str, text: &str| bar.beside_message(|| messages.say(file, text));
    let mut output = ProfileOutput { results: results.as_mut(), message: &mut message };
    let strict = args.strict;
    let make = if args.overhead { profile::overhead } else { profile::run };
    let report = match make(&args.into_request(earlier), &mut output) {
        Err(error) if error.is_usage() => return Err(UsageError::from(error.to_string()).into()),
        report => report?,
    };
    Ok(match report {
        report if report.lossy || strict && report.irregular => Exit::Lossy,
        // A message has said why.
        report if !report.has_results => Exit::Failed,
        _ => Exit::Complete,
    })
}

impl ProfileArgs {
    fn into_request(self, earlier: Option<PathBuf>) -> ProfileRequest {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let has_window = self.from.is_some() || self.to.is_some();
        let window_ns = has_window.then(|| self.from.map_or(0, ns)..self.to.map_or(u64::MAX, ns));
        ProfileRequest {
            traces: self.traces,
            earlier,
            mapping: self.mapping,
            symbols: self.symbols,
            unpack_limit: self.memory.limit(),
            clock: self.clock.map(ClockArg::index),
            event: self.event,
            weight: self.weight.map(SampleWeight::from),
            filter: RecordFilter { threads: self.thread, window_ns },
            rows: RowRequest {
                kind: self.by.map(RowKind::from).unwrap_or_default(),
                sort: self.sort.map(SortKey::from).unwrap_or_default(),
                limit: self.top,
                name_pattern: self.method,
                relations: self.calls,
            },
            tree: match (self.tree, self.bottom_up) {
                (true, _) => Some(TreeDirection::TopDown),
                (false, true) => Some(TreeDirection::BottomUp),
                (false, false) => None,
            },
            descriptors: self.signatures,
            threshold_percent: self.threshold,
            form: match (self.json, self.csv) {
                (true, _) => PrintForm::Json,
                (false, true) => PrintForm::Csv,
                (false, false) => PrintForm::Text,
            },
            style: terminal_style(),
            files: self.files.into_request(self.app, self.merge_threads),
        }
    }
}

impl From<RowArg> for RowKind {
    fn from(arg: RowArg) -> RowKind {
        match arg {
            RowArg::Method => RowKind::Method,
            RowArg::Class => RowKind::Class,
            RowArg::Package => RowKind::Package,
            RowArg::Thread => RowKind::Thread,
        }
    }
}

impl From<SortArg> for SortKey {
    fn from(arg: SortArg) -> SortKey {
        match arg {
            SortArg::Exclusive => SortKey::Exclusive,
            SortArg::Inclusive => SortKey::Inclusive,
            SortArg::Calls => SortKey::Calls,
        }
    }
}

/// The look of text on this terminal.
fn terminal_style() -> TextStyle {
    let width = console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
    TextStyle { width, colour: std::io::stdout().is_terminal() && console::colors_enabled() }
}
