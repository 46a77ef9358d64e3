//! `restore`: puts back the kernel's settings that a killed recorder has left changed.

use std::path::PathBuf;

use clap::Args;

use crate::cli::Exit;
use crate::console::say;
use crate::record::saved_settings::{restore_all, state_dir};

/// Put back the kernel's settings after a recorder was killed (SIGKILL, a crash)
///
/// Recorders that are still running are left alone.
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
        return Ok(Exit::Complete);
    }
    if restored.is_empty() {
        say(format_args!("nothing to put back in {}\n", dir.display()));
    }
    for file in &restored {
        let (path, pid) = (file.record.display(), file.pid);
        match file.knobs {
            Some(settings) => say(format_args!("{path}: {settings} settings of recorder {pid} put back\n")),
            None => {
                say(format_args!("{path}: recorder {pid} or its flight recorder is running: left alone\n"));
            }
        }
    }
    Ok(Exit::Complete)
}
