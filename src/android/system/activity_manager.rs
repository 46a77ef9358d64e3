//! Starts an app's activity through Android's own `am`, with the method profiler on if wanted.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long `am` and `cmd` may take to answer. A start of an activity may take as long as its caller allows.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// The interval between two checks whether a program has ended.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long the runtime may take to write the method trace after profiling has stopped.
const METHOD_TRACE_TIMEOUT: Duration = Duration::from_secs(30);
/// The interval between two looks at the size of the method trace.
const SIZE_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// An activity to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// The package of the app.
    pub package: String,
    /// The activity as `package/class`.
    pub component: String,
    bin: PathBuf,
}

/// How the runtime traces methods during a launch.
#[derive(Debug, Clone, Default)]
pub struct Profiler {
    /// The file on the device that the runtime writes.
    pub path: PathBuf,
    /// The interval of samples in µs. `None` traces every call.
    pub sampling_us: Option<u32>,
    /// Whether the runtime writes while it traces, so that the trace does not end with a buffer of 8 MiB.
    pub streaming: bool,
}

/// Why the activity manager could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ActivityError {
    /// A program of Android could not be started.
    #[error("running {}: {source}: starting an app needs Android", program.display())]
    NoProgram {
        /// The path of the program.
        program: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A program of Android did not answer and was killed.
    #[error(
        "`{command}` gave no answer: is the device still booting, or the app's process stopped by a debugger?"
    )]
    NoAnswer {
        /// The name of the program and its first argument.
        command: String,
    },
    /// The package has no activity that can be started.
    #[error(
        "{package} has no activity to start ({answer}): is it installed? Name one as {package}/.ClassName"
    )]
    NoActivity {
        /// The name of the package.
        package: String,
        /// The answer of `cmd package resolve-activity`.
        answer: String,
    },
    /// `am start` did not report success.
    #[error("{component} did not start: {answer}")]
    NotStarted {
        /// The activity.
        component: String,
        /// The answer of `am start`.
        answer: String,
    },
}

impl Activity {
    /// Finds the activity for `PACKAGE/ACTIVITY`, or for `PACKAGE` the one that its launcher icon starts.
    /// `bin` is the directory of Android's programs.
    pub fn find(name: &str, bin: &Path) -> Result<Activity, ActivityError> {
        let bin = bin.to_owned();
        if let Some((package, _)) = name.split_once('/') {
            return Ok(Activity { package: package.to_owned(), component: name.to_owned(), bin });
        }
        let category = ["-c", "android.intent.category.LAUNCHER", name];
        let answer = run(
            &bin,
            "cmd",
            ["package", "resolve-activity", "--brief"].iter().chain(&category),
            answer_deadline(),
        )?;
        match answer.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
            Some(component) if component.contains('/') => {
                Ok(Activity { package: name.to_owned(), component: component.to_owned(), bin })
            }
            _ => {
                Err(ActivityError::NoActivity { package: name.to_owned(), answer: answer.trim().to_owned() })
            }
        }
    }

    /// Stops the app, so that its next start is a cold start.
    pub fn stop(&self) -> Result<(), ActivityError> {
        run(&self.bin, "am", ["force-stop", &self.package], answer_deadline()).map(drop)
    }

    /// Starts the activity and waits until the launch has ended or `give_up` returns true. Returns the answer
    /// of `am` (`TotalTime: 512` …).
    pub fn start(
        &self,
        profiler: Option<&Profiler>,
        give_up: impl Fn() -> bool,
    ) -> Result<String, ActivityError> {
        let mut args = vec!["start".to_owned(), "-S".to_owned(), "-W".to_owned()];
        if let Some(profiler) = profiler {
            args.extend(["--start-profiler".to_owned(), profiler.path.display().to_string()]);
            if let Some(us) = profiler.sampling_us {
                args.extend(["--sampling".to_owned(), us.to_string()]);
            }
            if profiler.streaming {
                args.push("--streaming".to_owned());
            }
        }
        args.extend(["-n".to_owned(), self.component.clone()]);
        let answer = run(&self.bin, "am", &args, give_up)?;
        // The exit status of `am` is 0 even after a failure.
        if answer.contains("Status: ok") {
            return Ok(answer);
        }
        let answer = answer.trim().replace('\n', "; ");
        Err(ActivityError::NotStarted { component: self.component.clone(), answer })
    }

    /// Stops the profiler. The runtime then writes the method trace.
    pub fn stop_profiler(&self) -> Result<(), ActivityError> {
        run(&self.bin, "am", ["profile", "stop", &self.package], answer_deadline()).map(drop)
    }
}

impl Profiler {
    /// Waits until the runtime has written the method trace. Returns its length in bytes, or 0 if there is
    /// none.
    pub fn wait_until_written(&self) -> u64 {
        let end = Instant::now() + METHOD_TRACE_TIMEOUT;
        let mut last = 0;
        while Instant::now() < end {
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

/// Returns a function that becomes true after [`ANSWER_TIMEOUT`].
fn answer_deadline() -> impl Fn() -> bool {
    let end = Instant::now() + ANSWER_TIMEOUT;
    move || Instant::now() > end
}

/// Runs one of Android's programs. Returns what it wrote to standard output and standard error.
fn run<S: AsRef<OsStr>>(
    bin: &Path,
    name: &str,
    args: impl IntoIterator<Item = S>,
    give_up: impl Fn() -> bool,
) -> Result<String, ActivityError> {
    let program = bin.join(name);
    let mut command = Command::new(&program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |source| ActivityError::NoProgram { program: program.clone(), source };
    let mut child = command.spawn().map_err(failed)?;
    // The answer is a few lines, which fit into the pipes.
    while child.try_wait().map_err(failed)?.is_none() {
        if give_up() {
            let _ = child.kill();
            let _ = child.wait();
            let verb = command.get_args().next().unwrap_or_default().to_string_lossy();
            return Err(ActivityError::NoAnswer { command: format!("{name} {verb}") });
        }
        std::thread::sleep(EXIT_POLL_INTERVAL);
    }
    let output = child.wait_with_output().map_err(failed)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}
