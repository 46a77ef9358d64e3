//! A recording of this machine that is shown while it runs, by the recorder of this program as a child.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::request::{LiveRequest, OUTPUT, check_directory};
use super::result::outcome;
use super::view::{LiveControls, LiveView};
use crate::child::{self, ChildKind};
use crate::desk::device::StreamEnd;
use crate::desk::error::DeskError;
use crate::desk::outcome::DeviceOutcome;
use crate::desk::recording::recorder_error;
use crate::desk::user_interface::UserInterface;

/// Time between two looks whether the recorder has ended, or is to end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long a recorder may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(30);

/// The acts on this machine that a recording of it needs.
pub struct LocalRecorder<'a> {
    /// Tells the process with this id to end in order.
    pub interrupt: &'a (dyn Fn(u32) + Sync),
    /// Writes a marker into the recording.
    pub mark: &'a (dyn Fn(&str) -> Result<(), DeskError> + Sync),
}

impl LiveControls for LocalRecorder<'_> {
    fn can(&self) -> Vec<&'static str> {
        vec!["mark", "save", "stop"]
    }

    fn mark(&self, name: &str) -> Result<(), DeskError> {
        (self.mark)(name)
    }

    fn switch(&self, _: &[String], _: &[String]) -> Result<(), DeskError> {
        let stay = "the categories of a recording stay as they were at its begin: end it, and name others";
        Err(DeskError::Request(stay.into()))
    }
}

/// Shows what the recorder of this program records of this machine, until its end. `show` is given the
/// page's address.
///
/// # Errors
/// [`DeskError`] for a recorder that does not start or fails.
pub fn follow_recorder(
    request: &LiveRequest,
    ui: &dyn UserInterface,
    recorder: &LocalRecorder<'_>,
    show: &dyn Fn(&str),
) -> Result<DeviceOutcome, DeskError> {
    let interrupt = recorder.interrupt;
    check_directory(&request.output_dir)?;
    let program = std::env::current_exe()
        .map_err(|source| DeskError::LocalFile { path: "this program".to_owned(), source })?;
    let local_error = |source| DeskError::LocalFile { path: program.display().to_string(), source };
    let view = LiveView::start(request, Path::new(OUTPUT), "this machine")?;
    let mut command = child::command(&program, ChildKind::Own);
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
    let end = view.run(recorder, |out| {
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
