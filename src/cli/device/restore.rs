//! `restore`: puts back the kernel's settings that a killed recorder left changed.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::cli::Exit;
use crate::console::say;
use crate::record::{restore_all, state_dir};

/// Put back the kernel's settings after a recorder was killed (SIGKILL, a crash)
///
/// A recorder that still runs is left alone.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// End flight recorders too (`tracebridge start` leaves its settings on purpose).
    #[arg(long)]
    flight: bool,
    /// Print what was done as JSON.
    #[arg(long)]
    json: bool,
    /// Where the saved settings are. Default: the first writable of /data/local/tmp, /run, /tmp
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

/// Restores.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let dir = args.state_dir.clone().unwrap_or_else(state_dir);
    let restored = restore_all(&dir, args.flight)?;
    if args.json {
        say(format_args!("{}\n", serde_json::to_string(&restored)?));
        return Ok(Exit::Complete);
    }
    if restored.is_empty() {
        say(format_args!("nothing to put back in {}\n", dir.display()));
    }
    for r in &restored {
        match r.knobs {
            Some(knobs) => {
                say(format_args!("{}: {knobs} settings of recorder {} put back\n", r.record.display(), r.pid))
            }
            None => say(format_args!(
                "{}: recorder {} or its flight recorder is at work: left alone\n",
                r.record.display(),
                r.pid
            )),
        }
    }
    Ok(Exit::Complete)
}
