//! `restore`: puts back the kernel's settings that a killed recorder has left changed.

use std::path::PathBuf;

use clap::Args;

use crate::cli::Exit;
use crate::console::say;
use crate::record::saved_settings::{RestoredSettings, restore_all, state_dir};

/// Put back the kernel's settings after a recorder was killed (SIGKILL, a crash)
///
/// Recorders that are still running are left alone. What cannot be put back is named; where a later attempt
/// may succeed, because another tracer is using the buffer now, it stays saved and the exit status is 1.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// End flight recorders too (`tracebridge start` leaves their settings changed on purpose).
    #[arg(long)]
    flight: bool,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    /// Where the saved settings are. Default: the first writable of /data/local/tmp, /run, /tmp
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

/// Runs `restore`.
pub fn run(args: &RestoreArgs) -> anyhow::Result<Exit> {
    let dir = args.state_dir.clone().unwrap_or_else(state_dir);
    let restored = restore_all(&dir, args.flight)?;
    if args.json {
        say(format_args!("{}\n", serde_json::to_string(&restored)?));
        return Ok(exit(&restored));
    }
    if restored.is_empty() {
        say(format_args!("nothing to put back in {}\n", dir.display()));
    }
    for file in &restored {
        let (path, pid) = (file.record.display(), file.pid);
        match file.knobs {
            Some(settings) => {
                say(format_args!("{path}: {settings} settings of recorder {pid} put back"));
                if file.unchanged > 0 {
                    say(format_args!(", {} had their old value", file.unchanged));
                }
                say(format_args!("\n"));
                file.failures.iter().for_each(|failure| say(format_args!("  not put back: {failure}\n")));
            }
            None => {
                say(format_args!("{path}: recorder {pid} or its flight recorder is running: left alone\n"));
            }
        }
    }
    Ok(exit(&restored))
}

fn exit(restored: &[RestoredSettings]) -> Exit {
    if restored.iter().any(|file| file.retry) { Exit::Failed } else { Exit::Complete }
}
