//! Recordings of this machine that are shown while they run: a stream in a file that grows, and the recorder
//! of this program as a child.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::Builder;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::request::{LiveRequest, OUTPUT, check_directory};
use super::result::outcome;
use super::view::{LiveControls, LiveView};

use crate::desk::device::StreamEnd;
use crate::desk::error::DeskError;
use crate::desk::outcome::DeviceOutcome;
use crate::desk::recording::recorder_error;
use crate::desk::user_interface::UserInterface;
use crate::trace_dat::recorder_stream;

/// Time between two looks whether a file has grown.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Bytes of a file that are read at once.
const PART_BYTES: usize = 256 << 10;
/// How long a recorder may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// A recording that nothing can be done to.
struct OnlyShown;

impl LiveControls for OnlyShown {
    fn categories(&self) -> Vec<Value> {
        Vec::new()
    }

    fn can(&self) -> Vec<&'static str> {
        vec!["save", "stop"]
    }

    fn mark(&self, _: &str) -> Result<(), DeskError> {
        Err(DeskError::Request("a recording in a file gets no markers from here".into()))
    }

    fn switch(&self, _: &[String], _: &[String]) -> Result<(), DeskError> {
        Err(DeskError::Request("the categories of a recording in a file are what they are".into()))
    }
}

/// Shows the stream of a recorder in a file, as far as it is there and as it grows, until the stream ends.
/// `show` is given the page's address.
///
/// # Errors
/// [`DeskError`] for a file that cannot be read, or is no stream of a recorder.
pub fn follow_file(
    path: &Path,
    request: &LiveRequest,
    ui: &dyn UserInterface,
    show: &dyn Fn(&str),
) -> Result<DeviceOutcome, DeskError> {
    check_directory(&request.output_dir)?;
    let local_error = |source| DeskError::LocalFile { path: path.display().to_string(), source };
    let mut file = File::open(path).map_err(local_error)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let view = LiveView::start(request, Path::new(OUTPUT), &name)?;
    show(&view.address());
    let read = view.run(&OnlyShown, |out| {
        let mut part = vec![0; PART_BYTES];
        let mut first = Vec::new();
        loop {
            if ui.wants_end() || view.wants_end() {
                return Ok(());
            }
            match file.read(&mut part)? {
                0 if view.has_ended() => return Ok(()),
                0 => std::thread::sleep(POLL_INTERVAL),
                length if first.len() < recorder_stream::MAGIC.len() => {
                    first.extend_from_slice(&part[..length]);
                    let known = first.len().min(recorder_stream::MAGIC.len());
                    if first[..known] != recorder_stream::MAGIC[..known] {
                        return Err(io::Error::new(io::ErrorKind::InvalidData, NOT_A_STREAM));
                    }
                    if first.len() >= recorder_stream::MAGIC.len() {
                        out.write_all(&first)?;
                    }
                }
                length => out.write_all(&part[..length])?,
            }
        }
    });
    let written = view.written();
    view.finish("the recording has ended");
    read.map_err(local_error)?;
    Ok(outcome(&StreamEnd { status: Some(0), log: String::new(), lost: None }, 0, &written))
}

const NOT_A_STREAM: &str = "not the stream of a recorder: `tracebridge record -o - --live … > x.stream` writes one that \
                            can be followed";

/// Shows what the recorder of this program records of this machine, until its end. `interrupt` tells the
/// process with this id to end in order; `show` is given the page's address.
///
/// # Errors
/// [`DeskError`] for a recorder that does not start or fails.
pub fn follow_recorder(
    request: &LiveRequest,
    ui: &dyn UserInterface,
    interrupt: &(dyn Fn(u32) + Sync),
    show: &dyn Fn(&str),
) -> Result<DeviceOutcome, DeskError> {
    check_directory(&request.output_dir)?;
    let program = std::env::current_exe()
        .map_err(|source| DeskError::LocalFile { path: "this program".to_owned(), source })?;
    let local_error = |source| DeskError::LocalFile { path: program.display().to_string(), source };
    let view = LiveView::start(request, Path::new(OUTPUT), "this machine")?;
    let mut command = Command::new(&program);
    command.args(["record", "-o", "-", "--live", "--json"]).args(&request.args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(local_error)?;
    let pid = child.id();
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let (Some(mut stdout), Some(mut stderr)) = (stdout, stderr) else {
        return Err(local_error(io::ErrorKind::BrokenPipe.into()));
    };
    show(&view.address());
    let end = view.run(&OnlyShown, |out| {
        std::thread::scope(|scope| {
            let reading = Builder::new().spawn_scoped(scope, move || {
                let mut log = Vec::new();
                let _ = stderr.read_to_end(&mut log);
                String::from_utf8_lossy(&log).into_owned()
            });
            let log = reading.inspect_err(|_| interrupt(pid))?;
            let end = || end_child(&mut child, &|| ui.wants_end() || view.wants_end(), &|| interrupt(pid));
            let watch = Builder::new().spawn_scoped(scope, end).inspect_err(|_| interrupt(pid))?;
            let copied = io::copy(&mut stdout, out).map(drop);
            drop(stdout);
            let status = watch.join().ok().flatten();
            copied.map(|()| (status, log.join().unwrap_or_default()))
        })
    });
    let written = view.written();
    view.finish("the recording has ended");
    let (status, log) = end.map_err(local_error)?;
    match status {
        Some(0 | 3) => Ok(outcome(&StreamEnd { status, log, lost: None }, 0, &written)),
        _ => Err(recorder_error("this machine", status, &log)),
    }
}

/// Waits for the end of a child, which is told to end when `wants_end`. Returns its exit status.
fn end_child(child: &mut Child, wants_end: &dyn Fn() -> bool, interrupt: &dyn Fn()) -> Option<u8> {
    let mut told: Option<Instant> = None;
    loop {
        match child.try_wait() {
            Ok(None) => {}
            Ok(Some(status)) => return status.code().and_then(|code| u8::try_from(code).ok()),
            Err(_) => return None,
        }
        match told {
            None if wants_end() => {
                interrupt();
                told = Some(Instant::now());
            }
            Some(at) if at.elapsed() > END_TIMEOUT => {
                let _ = child.kill();
            }
            _ => {}
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
