//! `wrap`: runs a command inside of a slice, with a recording around it.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::mark;
use super::record::{AccessArgs, StepArgs, capture_target, print_notice, recording_request};
use crate::android::tags::Tag;
use crate::child::{self, ChildKind};
use crate::cli::recording_flags::{RecordSelection, SchedulingArgs};
use crate::cli::{Exit, units};
use crate::console::complain;
use crate::markers::{Marker, Tracer};
use crate::record::record_while::{RecordedWork, RecordingEnd, record_while};
use crate::record::recorder::{RecordingMode, RecordingPlan};
use crate::record::{AFTER_SIGNAL_TIMEOUT, CaptureTarget, ReceivedSignal};
use crate::step_log::print_step;
use crate::text::file_name;
use crate::trace_dat::recording_summary::RecordingEndReason;

/// The categories that are recorded if none is named.
const DEFAULT_CATEGORIES: [&str; 3] = ["sched", "freq", "idle"];

/// Run a command inside of a section, with a recording around it
#[derive(Parser)]
#[command(after_help = "\
The exit status is the command's own (128 + N when signal N ended it); 1 when it could not be run at all. The summary of
the recording goes to stderr, lost events included.

  tracebridge wrap sched freq -o build.dat -- make -j4
  tracebridge wrap --no-record --name backup -- ./backup.sh    # the section alone, for a recording that is on already")]
pub struct WrapArgs {
    #[command(flatten)]
    selection: RecordSelection,
    /// Where the capture goes
    #[arg(short, long, value_name = "FILE", default_value = "trace.dat")]
    output: PathBuf,
    /// Stop recording when the capture holds this amount of events (bytes, or with k, m, g); the command goes
    /// on
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    max_size: Option<u64>,
    #[command(flatten)]
    access: AccessArgs,
    #[command(flatten)]
    scheduling: SchedulingArgs,
    /// The section's name. Without it, the command
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Write the section only while this ATRACE tag is on (view, gfx, app, …). Default: `always`, a tag that
    /// is never off
    #[arg(long, value_name = "TAG", value_parser = mark::parse_tag)]
    tag: Option<Tag>,
    /// Write the section only, for a recording that is on already
    #[arg(long)]
    no_record: bool,
    #[command(flatten)]
    steps: StepArgs,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Time between two checks whether the command or the recording has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Runs `wrap`.
pub fn run(args: WrapArgs) -> anyhow::Result<Exit> {
    args.steps.apply();
    if args.no_record {
        let tracer = mark::open_tracer(args.selection.buffer_args.tracefs.as_deref(), args.tag)?;
        return run_in_section(&args, &Mutex::new(Some(tracer)), &RecordingEnd::default());
    }
    let readable = args.access.readable;
    let target =
        CaptureTarget { max_bytes: args.max_size, readable, ..capture_target(&args.selection, &args.output) };
    let nice = args.scheduling.nice;
    let plan = RecordingPlan { target, duration: None, mode: RecordingMode::Stream, nice };
    let request = recording_request(&args.selection, &DEFAULT_CATEGORIES)?;
    // The recording switches tags on, so the tracer is opened once the recording has started. It is closed
    // when the recording ends, even if the command goes on.
    let tracer = Mutex::new(None);
    let close_tracer = || drop(tracer.lock().map(|mut tracer| tracer.take()));
    let RecordedWork { summary, result } = record_while(
        &request,
        &plan,
        RecordingEndReason::CommandEnded,
        &mut print_notice,
        close_tracer,
        |tracefs, end| {
            let opened = mark::open_tracer(Some(tracefs.root()), args.tag)?;
            if let Ok(mut tracer) = tracer.lock() {
                *tracer = Some(opened).filter(|_| !end.has_come());
            }
            run_in_section(&args, &tracer, end)
        },
    )?;
    let Some(exit) = result else {
        return summary.map(|_| Exit::Failed).context("nothing was run, since the recording did not start");
    };
    match summary {
        Ok(summary) => complain(format_args!("{}", summary.text().trim_end())),
        Err(error) => complain(format_args!("tracebridge: the recording: {error}")),
    }
    exit
}

/// Runs the command inside of a slice. The slice is written twice: for the thread that waits here, and as an
/// async slice of the command's process, where viewers show it beside the command's own threads. Markers are
/// written as long as there is a tracer.
fn run_in_section(
    args: &WrapArgs,
    tracer: &Mutex<Option<Tracer>>,
    end: &RecordingEnd,
) -> anyhow::Result<Exit> {
    // The command runs even if a marker cannot be written.
    let mark = |write: &dyn Fn(&Tracer)| {
        if let Some(tracer) = tracer.lock().ok().as_deref().and_then(Option::as_ref) {
            write(tracer);
        }
    };
    let program = &args.command[0];
    let name = args.name.clone().unwrap_or_else(|| file_name(program).to_owned());
    mark(&|tracer| {
        tracer.begin(&name);
    });
    let spawned = child::command(program, ChildKind::AsFromShell)
        .args(&args.command[1..])
        .spawn()
        .with_context(|| program.clone());
    let exit = spawned.and_then(|child| {
        let pid = child.id() as i32;
        print_step(format_args!("started {program} (pid {pid})"));
        let name = name.as_bytes();
        let cookie = i64::from(pid);
        mark(&|tracer| drop(tracer.write(&Marker::AsyncBegin { pid, name, cookie })));
        let exit = wait_for(child, end).with_context(|| program.clone());
        mark(&|tracer| drop(tracer.write(&Marker::AsyncEnd { pid, name, cookie })));
        exit
    });
    mark(&|tracer| {
        tracer.end();
    });
    exit
}

/// Waits until the command ends. A signal that has ended the recording is passed on to the command, unless
/// the terminal has sent it to both. A command that goes on all the same is left running.
fn wait_for(mut child: Child, end: &RecordingEnd) -> io::Result<Exit> {
    let mut given_up = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(exit_of(status));
        }
        if given_up.is_none()
            && let Some(ReceivedSignal { signal, from_terminal: false }) = end.signal()
        {
            let _ = kill(Pid::from_raw(child.id() as i32), signal);
            given_up = Some((Instant::now() + AFTER_SIGNAL_TIMEOUT, signal));
        }
        if let Some((_, signal)) = given_up.filter(|(time, _)| Instant::now() >= *time) {
            complain(format_args!("tracebridge: the command (pid {}) goes on after {signal}", child.id()));
            return Ok(Exit::Child(128 + signal as u8));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The exit status that a shell gives for a command with this status.
fn exit_of(status: ExitStatus) -> Exit {
    let code = status.code().or_else(|| status.signal().map(|n| 128 + n));
    Exit::Child(code.and_then(|c| u8::try_from(c).ok()).unwrap_or(1))
}
