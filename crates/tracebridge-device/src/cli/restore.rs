//! `restore`: puts back the kernel's settings that a killed recorder has left changed.

use std::path::PathBuf;

use clap::Args;

use crate::cli::Exit;
use crate::console::say;
use crate::record::saved_settings::{RestoredSettings, StateDir, restore_all};

/// Put back the kernel's settings after a recorder was killed (SIGKILL, a crash)
///
/// Recorders that are still running are left alone. What cannot be put back is named; where a later attempt
/// may succeed, because another tracer is using the buffer now, it stays saved. Each user has saved settings
/// of its own: what root has left, root puts back.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 where nothing is left to put back; 3 where something was left alone (a recorder that is running, a flight
recorder without --flight, a file that is not a recorder's) or stays saved for another attempt.")]
pub struct RestoreArgs {
    /// End flight recorders too (`tracebridge start` leaves their settings changed on purpose).
    #[arg(long)]
    flight: bool,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    /// Where the saved settings are. Default: this user's directory in /run, /data/adb, /data/local/tmp or
    /// /tmp
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

/// Runs `restore`.
pub fn run(args: &RestoreArgs) -> anyhow::Result<Exit> {
    let restored = restore_all(args.state_dir.as_deref(), args.flight)?;
    if args.json {
        say(format_args!("{}\n", serde_json::to_string(&restored)?));
        return Ok(exit(&restored));
    }
    if restored.is_empty() {
        let dir = StateDir::likely_path(args.state_dir.as_deref());
        say(format_args!("nothing to put back in {}\n", dir.display()));
    }
    for file in &restored {
        let path = file.record.display();
        let pid = file.pid;
        match file.knobs {
            Some(settings) => {
                say(format_args!("{path}: {settings} settings of recorder {pid} put back"));
                if file.unchanged > 0 {
                    say(format_args!(", {} had their old value", file.unchanged));
                }
                say(format_args!("\n"));
                file.failures.iter().for_each(|failure| say(format_args!("  not put back: {failure}\n")));
            }
            None if !file.failures.is_empty() => {
                file.failures.iter().for_each(|failure| say(format_args!("{failure}: left alone\n")));
            }
            None => {
                say(format_args!("{path}: recorder {pid} or its flight recorder is running: left alone\n"));
            }
        }
    }
    Ok(exit(&restored))
}

fn exit(restored: &[RestoredSettings]) -> Exit {
    if restored.iter().any(|file| file.retry || file.knobs.is_none()) { Exit::Lossy } else { Exit::Complete }
}
