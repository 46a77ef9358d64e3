//! Starts an app's activity through Android's own `am`, with the method profiler on if wanted.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::properties::system_program;

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
    /// The name is neither a package nor a package and an activity.
    #[error("{0:?} is no app: PACKAGE or PACKAGE/ACTIVITY, of letters, digits, `_`, `.` and `$`")]
    BadName(String),
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
        if !is_app(name) {
            return Err(ActivityError::BadName(name.to_owned()));
        }
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
            Some(component) if component.contains('/') && is_app(component) => {
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

    /// Stops the profiler. The runtime then writes the method trace. When `hurry` returns true, `am` is left
    /// to do that by itself.
    pub fn stop_profiler(&self, hurry: impl Fn() -> bool) -> Result<(), ActivityError> {
        let mut command = system_program(&self.bin.join("am"));
        command.args(["profile", "stop", &self.package]).stdout(Stdio::null()).stderr(Stdio::null());
        let failed = |source| ActivityError::NoProgram { program: self.bin.join("am"), source };
        let mut am = command.spawn().map_err(failed)?;
        let is_late = answer_deadline();
        while am.try_wait().map_err(failed)?.is_none() && !hurry() {
            if is_late() {
                let _ = am.kill();
                let _ = am.wait();
                return Err(ActivityError::NoAnswer { command: "am profile".to_owned() });
            }
            std::thread::sleep(EXIT_POLL_INTERVAL);
        }
        Ok(())
    }
}

impl Profiler {
    /// Waits until the runtime has written the method trace. Returns its length in bytes, or 0 if there is
    /// none yet when `hurry` returns true.
    pub fn wait_until_written(&self, hurry: impl Fn() -> bool) -> u64 {
        let end = Instant::now() + METHOD_TRACE_TIMEOUT;
        let mut last = 0;
        while Instant::now() < end && !hurry() {
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

/// Whether `name` is a package, or a package and an activity. Nothing else may reach `am`, which would take
/// `-x` for an option.
fn is_app(name: &str) -> bool {
    let is_name = |part: &str| {
        part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.$".contains(&b)) && !part.is_empty()
    };
    let (package, activity) = name.split_once('/').map_or((name, None), |(p, a)| (p, Some(a)));
    is_name(package) && activity.is_none_or(is_name)
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
    let mut command = system_program(&program);
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_app_cannot_be_an_option_or_a_command() {
        for name in ["com.app", "com.app/.Main", "com.app/com.app.Main$Inner", "android"] {
            assert!(is_app(name), "{name}");
        }
        for name in ["-x/y", "a/-x", "", "a/", "/a", "a b", "a;b", "a/b/c", "--user", "a\nb"] {
            assert!(!is_app(name), "{name}");
        }
        let error = Activity::find("-x/y", Path::new("/nonexistent")).unwrap_err().to_string();
        assert!(error.contains("\"-x/y\" is no app"), "{error}");
    }
}
