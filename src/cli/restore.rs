//! `restore`: puts back the kernel's settings that a killed recorder left changed.

use clap::Args as ClapArgs;

use super::Exit;
use super::record::Kernel;
use crate::record::restore_all;

/// Put back the kernel's settings after a recorder was killed (SIGKILL, a crash).
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
    #[command(flatten)]
    kernel: Kernel,
}

/// Restores.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let restored = restore_all(&args.kernel.state_dir(), args.flight)?;
    if args.json {
        println!("{}", serde_json::to_string(&restored)?);
        return Ok(Exit::Complete);
    }
    if restored.is_empty() {
        println!("nothing to put back in {}", args.kernel.state_dir().display());
    }
    for r in &restored {
        match r.knobs {
            Some(knobs) => {
                println!("{}: {knobs} settings of recorder {} put back", r.record.display(), r.pid)
            }
            None => println!("{}: recorder {} is still at work: left alone", r.record.display(), r.pid),
        }
    }
    Ok(Exit::Complete)
}
