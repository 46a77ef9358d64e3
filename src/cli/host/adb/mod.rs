//! `adb`: the commands that work on attached devices from this machine. Each declares its flags, calls a
//! function of the room `desk`, and prints the results. The commands with few flags are here: `pull`, `mark`,
//! `doctor`, `list`, `push` and `clean`.

mod devices;
mod flight;
mod forwarded;
mod launch;
mod live;
mod profile;
mod record;
mod results;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::Exit;
use crate::cli::host::interrupt;
use crate::cli::host::terminal::TERMINAL;
use crate::desk::{self, OtherTracesRequest, PullRequest, Targets};
use results::print;

/// Record on attached Android devices from this machine: pushes, records, pulls, verifies and converts
///
/// Talks to the adb server, which it starts if none runs. One device is used by itself; of several, --serial
/// S[,S…] names some and --all takes all of them, at the same time. ANDROID_SERIAL, ANDROID_ADB_SERVER_PORT
/// and ADB_SERVER_SOCKET mean what they mean to adb.
#[derive(Args)]
#[command(after_help = "\
Root is used where it is there: adbd that runs as root, or `su` (Magisk, KernelSU, a userdebug build). Without it the
recording holds what the device permits the user shell, and says what it left out.

TRACEBRIDGE_ADB_TIMEOUT is the number of seconds after which a silent device counts as stalled (30).

  tracebridge adb devices
  tracebridge adb record sched freq am view -t 10 -o x.pftrace
  tracebridge adb launch com.example.app -o start.pftrace")]
pub struct AdbArgs {
    #[command(subcommand)]
    command: AdbCommand,
}

#[derive(Subcommand)]
enum AdbCommand {
    Devices(devices::DevicesArgs),
    Record(Box<record::RecordArgs>),
    Launch(Box<launch::LaunchArgs>),
    Live(Box<live::LiveArgs>),
    Profile(profile::AppProfileArgs),
    Pull(PullArgs),
    Start(Box<flight::StartArgs>),
    Dump(flight::DumpArgs),
    Stop(flight::StopArgs),
    Mark(MarkArgs),
    Doctor(DoctorArgs),
    List(ListArgs),
    Push(PushArgs),
    Clean(CleanArgs),
}

/// Runs `adb …`.
pub fn run(args: AdbArgs) -> anyhow::Result<Exit> {
    match args.command {
        AdbCommand::Devices(args) => devices::run(&args),
        AdbCommand::Record(args) => record::run(&args),
        AdbCommand::Launch(args) => launch::run(&args),
        AdbCommand::Live(args) => live::run(&args),
        AdbCommand::Profile(args) => profile::run(&args),
        AdbCommand::Pull(args) => pull(&args),
        AdbCommand::Start(args) => flight::start(&args),
        AdbCommand::Dump(args) => flight::dump(&args),
        AdbCommand::Stop(args) => flight::stop(&args),
        AdbCommand::Mark(args) => mark(&args),
        AdbCommand::Doctor(args) => doctor(&args),
        AdbCommand::List(args) => list(&args),
        AdbCommand::Push(args) => push(&args),
        AdbCommand::Clean(args) => clean(&args),
    }
}

/// The devices, how root is asked for on them, and how the results are printed.
#[derive(Debug, Args)]
struct TargetArgs {
    /// These devices, as `adb devices` names them. Default: ANDROID_SERIAL, else the only one
    #[arg(long, short, value_name = "SERIAL", value_delimiter = ',', conflicts_with = "all")]
    serial: Vec<String>,
    /// All devices that are attached, at the same time
    #[arg(long)]
    all: bool,
    /// Have adbd start anew as root first (`adb root`; userdebug and eng builds). It stays root afterwards
    #[arg(long)]
    root: bool,
    /// Print JSON: one object a line, one for each device
    #[arg(long)]
    json: bool,
}

impl TargetArgs {
    /// The devices that the flags select.
    fn targets(&self) -> Targets {
        Targets { serials: self.serial.clone(), all: self.all, become_root: self.root }
    }
}

/// Write atrace markers on a device, into the recording that is on
#[derive(Debug, Args)]
#[command(after_help = "\
The words: begin NAME, end, instant TEXT, counter NAME VALUE, async-begin NAME NUMBER, async-end NAME NUMBER, track-begin
TRACK NAME NUMBER, track-end TRACK NUMBER, track-instant TRACK TEXT.
With - they come from standard input, a line each, up to its end. A marker's time is that of its arrival on the device.

  tracebridge adb mark instant 'test 7 starts'
  tracebridge adb mark --all counter battery_mV 3870
  { echo begin test 7; ./test-7; echo end; } | tracebridge adb mark -")]
pub struct MarkArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// The kind of marker and what it needs, or - for standard input
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "MARKER")]
    marker: Vec<String>,
}

/// Runs `adb mark`.
pub fn mark(args: &MarkArgs) -> anyhow::Result<Exit> {
    print(desk::mark(&args.marker, &args.target.targets(), &TERMINAL), args.target.json)
}

/// Say what a device permits: tracefs, clocks, files, categories, and why not the rest
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 where something can be recorded, else 1.")]
pub struct DoctorArgs {
    #[command(flatten)]
    target: TargetArgs,
}

/// List the categories that a device supports and, for the rest, why not
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 where some category works, else 1.")]
pub struct ListArgs {
    #[command(flatten)]
    target: TargetArgs,
}

/// Runs `adb doctor`.
pub fn doctor(args: &DoctorArgs) -> anyhow::Result<Exit> {
    report("doctor", &args.target)
}

/// Runs `adb list`.
pub fn list(args: &ListArgs) -> anyhow::Result<Exit> {
    report("list", &args.target)
}

fn report(command: &str, target: &TargetArgs) -> anyhow::Result<Exit> {
    print(desk::report(command, target.json, &target.targets(), &TERMINAL), target.json)
}

/// Put the tracebridge binary on a device, at /data/local/tmp/tracebridge, unless it is there
///
/// The other commands do that themselves. The binary is compared by its SHA-256, verified after the push, and
/// run once before it gets its name.
#[derive(Debug, Args)]
pub struct PushArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Push the binary for this ABI: arm64-v8a, armeabi-v7a, x86_64, x86 (armeabi-v7a runs on arm64 devices
    /// too). Default: the device's own
    #[arg(long, value_name = "ABI")]
    abi: Option<String>,
}

/// End what tracebridge has left running on a device, put the kernel's settings back, and remove its files
///
/// While recordings are there that nobody has fetched, nothing is done: `tracebridge adb pull --resume`
/// fetches them.
#[derive(Debug, Args)]
pub struct CleanArgs {
    /// Remove recordings, too, that nobody has fetched
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    target: TargetArgs,
}

/// Runs `adb push`.
pub fn push(args: &PushArgs) -> anyhow::Result<Exit> {
    print(desk::push(args.abi.as_deref(), &args.target.targets(), &TERMINAL), args.target.json)
}

/// Runs `adb clean`.
pub fn clean(args: &CleanArgs) -> anyhow::Result<Exit> {
    print(desk::clean(args.force, &args.target.targets(), &TERMINAL), args.target.json)
}

/// Pull files from a device, or fetch what recordings or other programs have left there
///
/// A pulled file is compared with the device's by its length and its SHA-256, and removed on the device only
/// after that. Without FILE, lists the recordings that are on the device; --resume fetches and converts them
/// as `adb record` would have, those that are still running when they have ended. It replaces no file: where
/// one has the name of a recording, the recording gets a number (`trace-2.dat`).
///
/// --traces copies the traces that other programs have left: Perfetto, the app System Tracing and benchmarks
/// of androidx, and of the apps named with --app those of ProfilingManager and of androidx.tracing. They stay
/// on the device.
#[derive(Debug, Args)]
#[command(after_help = "  tracebridge adb pull /data/local/tmp/x.dat --to out
  tracebridge adb pull                  # which recordings are on the device?
  tracebridge adb pull --resume         # after a lost connection
  tracebridge adb pull --traces --app com.example.app --to traces")]
pub struct PullArgs {
    /// A path on the device; a name without a slash is in /data/local/tmp
    #[arg(value_name = "FILE", conflicts_with = "resume")]
    files: Vec<String>,
    /// Put the files into this directory, which is made if it is missing
    #[arg(long, value_name = "DIR", default_value = ".")]
    to: PathBuf,
    /// Do not remove the files on the device
    #[arg(long)]
    keep: bool,
    /// Fetch what recordings have left on the device, under the names that they were to have
    #[arg(long)]
    resume: bool,
    /// With --resume, replace files here that have the names of recordings
    #[arg(long, requires = "resume")]
    force: bool,
    /// Fetch the traces that other programs have left on the device
    #[arg(long, conflicts_with_all = ["files", "resume", "keep"])]
    traces: bool,
    /// With --traces, also those of this app (may be given several times)
    #[arg(long = "app", value_name = "PACKAGE", requires = "traces")]
    apps: Vec<String>,
    #[command(flatten)]
    target: TargetArgs,
}

/// Runs `adb pull`.
pub fn pull(args: &PullArgs) -> anyhow::Result<Exit> {
    let targets = args.target.targets();
    let request = PullRequest { directory: args.to.clone(), keep: args.keep, replace: args.force };
    let results = if args.traces {
        let request = OtherTracesRequest { directory: args.to.clone(), apps: args.apps.clone() };
        desk::fetch_other_traces(&request, &targets, &TERMINAL)
    } else if args.resume {
        interrupt::hold_first();
        desk::resume(&request, &targets, &TERMINAL)
    } else if args.files.is_empty() {
        desk::list_recordings(&targets, &TERMINAL)
    } else {
        desk::pull(&request, &args.files, &targets, &TERMINAL)
    };
    print(results, args.target.json)
}
