//! Samples of an app, taken by Android's own `simpleperf` while the app starts.
//!
//! `simpleperf record --app` waits until the process of the app is there. Without root it samples debuggable
//! and profileable apps alone, and says so of others. Sources: AOSP system/extras,
//! `simpleperf/cmd_record.cpp` and `simpleperf/doc/android_application_profiling.md`.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Serialize;

use super::properties::system_program;

/// How long `simpleperf` may take to write its file: it unwinds the stacks of all samples then.
const WRITE_TIMEOUT: Duration = Duration::from_secs(120);
/// How long it may take to end where nobody wants its samples any more.
const GIVE_UP_TIMEOUT: Duration = Duration::from_millis(500);
/// The interval between two checks whether it has ended.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The event type: the time that a thread of the app runs, in user space.
const EVENT: &str = "task-clock:u";

/// The samples that are to be taken of an app.
#[derive(Debug, Clone)]
pub struct Sampler {
    /// The program.
    pub program: PathBuf,
    /// The file that the samples are written to.
    pub path: PathBuf,
    /// Samples in a second that a thread runs.
    pub frequency: u32,
    /// Sampling ends then by itself.
    pub time: Duration,
}

/// The file with samples.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampleFile {
    /// Its path.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
}

/// Why there are no samples.
#[derive(Debug, thiserror::Error)]
pub enum SamplerError {
    /// The program could not be started.
    #[error("running {}: {source}", program.display())]
    NoProgram {
        /// Its path.
        program: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// It took no samples.
    #[error("simpleperf took no samples: {0}")]
    Refused(String),
    /// It did not end in time, and was killed.
    #[error("simpleperf did not write its samples within {} s", WRITE_TIMEOUT.as_secs())]
    NoEnd,
}

/// `simpleperf`, as it runs. Where nobody ends it, it is ended without samples.
pub struct RunningSampler<'s> {
    sampler: &'s Sampler,
    child: Child,
}

impl Sampler {
    /// The device's `simpleperf` in this directory of programs, if there is one.
    pub fn program_in(bin: &Path) -> Option<PathBuf> {
        Some(bin.join("simpleperf")).filter(|program| program.is_file())
    }

    /// The arguments of `simpleperf` that sample `package`. Where the kernel lets it, it also samples where a
    /// thread stops running. A frequency holds for the event types that follow it.
    fn arguments(&self, package: &str) -> Vec<String> {
        let frequency = self.frequency.to_string();
        let mut arguments: Vec<String> =
            ["record", "--app", package, "-f", &frequency, "-e", EVENT, "-g"].map(str::to_owned).into();
        if self.traces_off_cpu() {
            arguments.push("--trace-offcpu".to_owned());
        }
        arguments.extend(["--duration".to_owned(), self.time.as_secs().max(1).to_string()]);
        arguments.extend(["-o".to_owned(), self.path.display().to_string()]);
        arguments
    }

    fn traces_off_cpu(&self) -> bool {
        let features = system_program(&self.program).args(["list", "--show-features"]).output();
        features.is_ok_and(|listed| {
            listed.stdout.split(|byte| *byte == b'\n').any(|name| name == b"trace-offcpu")
        })
    }

    /// Starts to sample `package`, whose process need not be there yet.
    pub fn start(&self, package: &str) -> Result<RunningSampler<'_>, SamplerError> {
        let _ = fs::remove_file(&self.path);
        let mut command = system_program(&self.program);
        command.args(self.arguments(package)).stdout(Stdio::null()).stderr(Stdio::piped());
        let no_program = |source| SamplerError::NoProgram { program: self.program.clone(), source };
        Ok(RunningSampler { sampler: self, child: command.spawn().map_err(no_program)? })
    }
}

impl RunningSampler<'_> {
    /// Ends the sampling, and waits until the samples are written.
    pub fn stop(mut self, cancel: impl Fn() -> bool) -> Result<SampleFile, SamplerError> {
        // SIGINT may be ignored here: a shell has it ignored by what it runs in the background.
        let pid = Pid::from_raw(self.child.id().cast_signed());
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            let _ = kill(pid, Signal::SIGTERM);
        }
        let end = Instant::now() + WRITE_TIMEOUT;
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if Instant::now() < end && !cancel() => std::thread::sleep(EXIT_POLL_INTERVAL),
                _ => return Err(SamplerError::NoEnd),
            }
        };
        let path = self.sampler.path.clone();
        let bytes = fs::metadata(&path).map_or(0, |meta| meta.len());
        if status.success() && bytes > 0 {
            return Ok(SampleFile { path, bytes });
        }
        let mut said = String::new();
        if let Some(mut errors) = self.child.stderr.take() {
            let _ = errors.read_to_string(&mut said);
        }
        let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty());
        Err(SamplerError::Refused(last.map_or_else(|| status.to_string(), str::to_owned)))
    }
}

impl Drop for RunningSampler<'_> {
    fn drop(&mut self) {
        let runs = |child: &mut Child| child.try_wait().is_ok_and(|status| status.is_none());
        if !runs(&mut self.child) {
            return;
        }
        // Without root it has started another process as the app, which it ends itself if it can.
        let _ = kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM);
        let end = Instant::now() + GIVE_UP_TIMEOUT;
        while runs(&mut self.child) && Instant::now() < end {
            std::thread::sleep(EXIT_POLL_INTERVAL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.sampler.path);
    }
}
