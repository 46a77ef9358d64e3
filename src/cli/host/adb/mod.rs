//! `adb`: the commands that work on attached devices from this machine. Each command is one file; what they
//! share is here, in [`target`] (which devices) and [`outcome`] (what is printed and returned).

mod clean;
mod devices;
mod finish;
mod flight;
mod launch;
mod launch_series;
mod mark;
mod open_output;
mod other_version;
mod outcome;
mod profile;
mod pull;
mod push;
mod record;
mod recorded;
mod run_there;
mod target;
mod via;

use clap::{Args, Subcommand};

use crate::cli::Exit;

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
    Profile(profile::ProfileArgs),
    Pull(pull::PullArgs),
    Start(Box<flight::StartArgs>),
    Dump(flight::DumpArgs),
    Stop(flight::StopArgs),
    Mark(mark::MarkArgs),
    Doctor(run_there::DoctorArgs),
    List(run_there::ListArgs),
    Push(push::PushArgs),
    Clean(clean::CleanArgs),
}

/// Runs `adb …`.
pub fn run(args: AdbArgs) -> anyhow::Result<Exit> {
    match args.command {
        AdbCommand::Devices(args) => devices::run(&args),
        AdbCommand::Record(args) => record::run(&args),
        AdbCommand::Launch(args) => launch::run(&args),
        AdbCommand::Profile(args) => profile::run(&args),
        AdbCommand::Pull(args) => pull::run(&args),
        AdbCommand::Start(args) => flight::start(&args),
        AdbCommand::Dump(args) => flight::dump(&args),
        AdbCommand::Stop(args) => flight::stop(&args),
        AdbCommand::Mark(args) => mark::run(&args),
        AdbCommand::Doctor(args) => run_there::doctor(&args),
        AdbCommand::List(args) => run_there::list(&args),
        AdbCommand::Push(args) => push::run(&args),
        AdbCommand::Clean(args) => clean::run(&args),
    }
}
