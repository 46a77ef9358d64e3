//! `adb`: the commands that work on attached devices from this machine. Each declares its flags, calls a
//! function of the room `desk`, and prints the results.

mod devices;
mod flight;
mod forwarded;
mod install;
mod launch;
mod mark;
mod profile;
mod pull;
mod record;
mod recorder_args;
mod report;
mod results;
mod target;
mod terminal;

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
    Profile(profile::AppProfileArgs),
    Pull(pull::PullArgs),
    Start(Box<flight::StartArgs>),
    Dump(flight::DumpArgs),
    Stop(flight::StopArgs),
    Mark(mark::MarkArgs),
    Doctor(report::DoctorArgs),
    List(report::ListArgs),
    Push(install::PushArgs),
    Clean(install::CleanArgs),
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
        AdbCommand::Doctor(args) => report::doctor(&args),
        AdbCommand::List(args) => report::list(&args),
        AdbCommand::Push(args) => install::push(&args),
        AdbCommand::Clean(args) => install::clean(&args),
    }
}
