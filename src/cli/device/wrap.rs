//! `wrap`: a command inside of a section, and a recording around it.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use anyhow::Context;
use clap::Parser;

use super::marker_target;
use super::record::{What, target};
use super::record_while::{Over, record_around};
use crate::android::tags::Tag;
use crate::cli::{Exit, units};
use crate::console::complain;
use crate::markers::Tracer;
use crate::record::Signals;
use crate::record::recorder::{Config, Mode};
use crate::record::setup::WhenFull;

/// What is recorded where nothing is named.
const DEFAULT: [&str; 3] = ["sched", "freq", "idle"];

/// Run a command inside of a section, with a recording around it
#[derive(Parser)]
#[command(after_help = "\
The exit status is the command's own (128 + N when signal N ended it); 1 when it could not be run at all. What is to be
said of the recording goes to stderr, lost events included.

  tracebridge wrap sched freq -o build.dat -- make -j4
  tracebridge wrap --no-record --name backup -- ./backup.sh    (the section alone, for a recording that is on already)")]
pub struct Args {
    #[command(flatten)]
    what: What,
    /// Where the capture goes
    #[arg(short, long, value_name = "FILE", default_value = "trace.dat")]
    output: PathBuf,
    /// Stop recording when the capture holds this much of events (bytes, or with k, m, g); the command goes on
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    max_size: Option<u64>,
    /// The section's name. Without it, the command
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Write the section only while this ATRACE tag is on (view, gfx, app, …). Without it `always`, which always is
    #[arg(long, value_name = "TAG", value_parser = marker_target::parse_tag)]
    tag: Option<Tag>,
    /// Write the section only: somebody else records
    #[arg(long)]
    no_record: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs the command.
pub fn run(mut args: Args) -> anyhow::Result<Exit> {
    if args.no_record {
        let tracer = marker_target::open_tracer(args.what.kernel.tracefs.as_deref(), args.tag)?;
        return Ok(passed_on(in_section(&args, &tracer)?));
    }
    args.what.or(&DEFAULT);
    let (tracefs, made) = args.what.kernel.buffer(true)?;
    let signals = Signals::block()?;
    let settings = args.what.settings(&tracefs, made)?;
    let (setup, notes) = args.what.setup(&tracefs, WhenFull::Overwrite)?;
    let config = Config {
        setup,
        target: target(&args.output, args.max_size, &args.what),
        duration: None,
        mode: Mode::Stream,
    };
    // Tags are switched on by the recording: looked at once it has started.
    let work = |_: &Over| in_section(&args, &marker_target::open_tracer(Some(tracefs.root()), args.tag)?);
    let (summary, status) = record_around(&config, settings, &signals, "the command ended", work);
    let Some(status) = status else {
        return summary.map(|_| Exit::Failed).context("nothing was run, since the recording did not start");
    };
    match summary {
        Ok(mut summary) => {
            summary.notes.splice(0..0, notes);
            eprint!("{}", summary.text());
        }
        Err(error) => complain(format_args!("tracebridge: the recording: {error}")),
    }
    Ok(passed_on(status?))
}

/// The section is the waiting thread's, and, so that it shows below the command too, one of the command's process.
fn in_section(args: &Args, tracer: &Tracer) -> anyhow::Result<ExitStatus> {
    let program = &args.command[0];
    let file = Path::new(program).file_name().map(|f| f.to_string_lossy().into_owned());
    let name = args.name.clone().or(file).unwrap_or_else(|| program.clone());
    let _section = tracer.section(&name);
    let mut child =
        Command::new(program).args(&args.command[1..]).spawn().with_context(|| program.clone())?;
    let pid = child.id() as i32;
    let of_child = |begins| {
        use crate::markers::Marker;
        let (name, cookie) = (name.as_bytes(), i64::from(pid));
        let marker = if begins {
            Marker::AsyncBegin { pid, name, cookie }
        } else {
            Marker::AsyncEnd { pid, name, cookie }
        };
        // A marker that cannot be written is no reason not to run the command.
        let _ = tracer.write(&marker);
    };
    of_child(true);
    let status = child.wait().with_context(|| program.clone())?;
    of_child(false);
    Ok(status)
}

/// As a shell tells it.
fn passed_on(status: ExitStatus) -> Exit {
    let code = status.code().or_else(|| status.signal().map(|n| 128 + n));
    Exit::Child(code.and_then(|c| u8::try_from(c).ok()).unwrap_or(1))
}
