//! How the runtime traces the methods of an app that `am` starts: the arguments of `am start` and `am
//! profile`, and the wait for the method trace.
//!
//! Sources: AOSP frameworks/base, `ActivityManagerShellCommand.java` and `ProfilerInfo.java`.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long the runtime may take to write the method trace after profiling has stopped.
const METHOD_TRACE_TIMEOUT: Duration = Duration::from_secs(30);
/// The interval between two looks at the size of the method trace.
const SIZE_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// How the runtime traces methods during a launch.
#[derive(Debug, Clone)]
pub struct Profiler {
    /// The file on the device that the method trace is written to.
    pub path: PathBuf,
    /// The part of the runtime that traces.
    pub tracer: MethodTracer,
}

/// The part of the runtime that traces methods.
#[derive(Debug, Clone)]
pub enum MethodTracer {
    /// The method tracer, which `am start` switches on.
    Regular(TracerOptions),
    /// The always-on tracer, which is switched on in the process that is there.
    AlwaysOn {
        /// Only methods that run long, with times; otherwise the last calls of all methods, without.
        long_running: bool,
        /// How long it runs at most.
        duration: Duration,
    },
}

/// The method tracer's options.
#[derive(Debug, Clone, Default)]
pub struct TracerOptions {
    /// The interval of samples in µs. `None` traces every call.
    pub sampling_us: Option<u32>,
    /// Whether the runtime writes while it traces, so that the trace does not end with a buffer of 8 MiB.
    pub streaming: bool,
    /// `wall`, `thread-cpu` or `dual`. `None` is the runtime's own choice.
    pub clock: Option<&'static str>,
    /// The version of the format: 1 (versions 1 to 3 of the file) or 2 (4 and 5). `None` is the runtime's own
    /// choice.
    pub output_version: Option<u8>,
}

impl Profiler {
    /// The arguments of `am start` that switch the tracer on.
    pub fn start_arguments(&self) -> Vec<String> {
        let MethodTracer::Regular(options) = &self.tracer else { return Vec::new() };
        let mut arguments = vec!["--start-profiler".to_owned(), self.path.display().to_string()];
        if let Some(us) = options.sampling_us {
            arguments.extend(["--sampling".to_owned(), us.to_string()]);
        }
        if options.streaming {
            arguments.push("--streaming".to_owned());
        }
        if let Some(clock) = options.clock {
            arguments.extend(["--clock-type".to_owned(), clock.to_owned()]);
        }
        if let Some(version) = options.output_version {
            arguments.extend(["--profiler-output-version".to_owned(), version.to_string()]);
        }
        arguments
    }

    /// The arguments of `am` that switch the always-on tracer on in the process `package`; `None` for the
    /// method tracer.
    pub fn always_on_arguments(&self, package: &str) -> Option<Vec<String>> {
        let MethodTracer::AlwaysOn { long_running, duration } = &self.tracer else { return None };
        let mut arguments: Vec<String> = ["profile", "lowoverhead", "start"].map(str::to_owned).into();
        if *long_running {
            arguments.push("--longrunning".to_owned());
            arguments.extend(["--duration".to_owned(), duration.as_millis().to_string()]);
        }
        arguments.push(package.to_owned());
        Some(arguments)
    }

    /// The arguments of `am` that end the trace of `package`. The runtime then writes it.
    pub fn stop_arguments(&self, package: &str) -> Vec<String> {
        let path = self.path.display().to_string();
        match self.tracer {
            MethodTracer::Regular(_) => ["profile", "stop", package].map(str::to_owned).into(),
            MethodTracer::AlwaysOn { .. } => {
                ["profile", "lowoverhead", "stop", package, &path].map(str::to_owned).into()
            }
        }
    }

    /// Waits until the runtime has written the method trace. Returns its length in bytes, or 0 if there is
    /// none yet when `cancel` returns true.
    pub fn wait_until_written(&self, cancel: impl Fn() -> bool) -> u64 {
        let end = Instant::now() + METHOD_TRACE_TIMEOUT;
        let mut last = 0;
        while Instant::now() < end && !cancel() {
            let size = fs::metadata(&self.path).map_or(0, |m| m.len());
            // The app writes the file after `am` has returned. A size that no longer changes means that it is
            // whole.
            if size > 0 && size == last {
                break;
            }
            last = size;
            std::thread::sleep(SIZE_POLL_INTERVAL);
        }
        last
    }
}
