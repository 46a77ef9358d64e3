//! Starts an app's activity through Android's own `am`, with the method profiler on if wanted: the arguments
//! of `am start` and `am profile`, and the wait for the method trace.
//!
//! Sources: AOSP frameworks/base, `ActivityManagerShellCommand.java` and `ProfilerInfo.java`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use std::{fs, io};

use super::properties::{Properties, system_program};
use crate::android::methods_refused;

/// How long `am` and `cmd` may take to answer. A start of an activity may take as long as its caller allows.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// The interval between two checks whether a program has ended.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The interval between two attempts to start the always-on tracer in a process that may not be there yet.
const TRACER_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// An activity to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// The package of the app.
    pub package: String,
    /// The activity as `package/class`; the package alone where `am` finds the activity itself.
    pub component: String,
    bin: PathBuf,
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
    /// `am` does not know an option.
    #[error(
        "{component} did not start: {release} does not know the option {option} of its `am`: leave it out"
    )]
    UnknownOption {
        /// The activity.
        component: String,
        /// The release of Android (`Android 15`).
        release: String,
        /// The option.
        option: String,
    },
    /// `am` traces no methods of this app.
    #[error("{}", methods_refused(package))]
    NotProfileable {
        /// The name of the package.
        package: String,
    },
    /// The always-on tracer did not start.
    #[error(
        "the always-on tracer did not start in {package}: {answer}. Few builds of Android have it \
         (dalvik.vm.allow_profile_code={allowed})"
    )]
    NoAlwaysOnTracer {
        /// The process.
        package: String,
        /// The answer of `am profile lowoverhead`.
        answer: String,
        /// The property that permits the tracer; empty where it is not set.
        allowed: String,
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
        );
        let answer = match answer {
            // Android 6 and older have no `cmd`; `am` starts what the icon of a package starts.
            Err(ActivityError::NoProgram { .. }) => {
                return Ok(Activity { package: name.to_owned(), component: name.to_owned(), bin });
            }
            answer => answer?,
        };
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

    /// Starts the app and leaves it for the home screen, so that its next start is a warm start: its process
    /// is there.
    pub fn warm_up(&self, give_up: impl Fn() -> bool) -> Result<(), ActivityError> {
        let args = [vec!["start".to_owned(), "-W".to_owned()], self.named()].concat();
        self.answer(&args, give_up)?;
        run(&self.bin, "input", ["keyevent", "HOME"], answer_deadline()).map(drop)
    }

    /// Starts the activity and waits until the launch has ended or `give_up` returns true. A warm start keeps
    /// the app's process, and makes its activity anew. Returns the answer of `am` (`TotalTime: 512` …).
    pub fn start(
        &self,
        is_warm: bool,
        profiler: Option<&Profiler>,
        give_up: impl Fn() -> bool,
    ) -> Result<String, ActivityError> {
        let how = if is_warm { ["-W", "--activity-clear-task"] } else { ["-S", "-W"] };
        let mut args: Vec<String> = ["start"].iter().chain(&how).map(|&word| word.to_owned()).collect();
        args.extend(profiler.map(Profiler::start_arguments).unwrap_or_default());
        args.extend(self.named());
        self.answer(&args, give_up)
    }

    /// The words that name the activity to `am start`.
    fn named(&self) -> Vec<String> {
        let is_class = self.component.contains('/');
        is_class.then(|| "-n".to_owned()).into_iter().chain([self.component.clone()]).collect()
    }

    /// The answer of a start that has succeeded.
    fn answer(&self, args: &[String], give_up: impl Fn() -> bool) -> Result<String, ActivityError> {
        let answer = run(&self.bin, "am", args, give_up)?;
        // The exit status of `am` is 0 even after a failure.
        if answer.contains("Status: ok") {
            return Ok(answer);
        }
        // ActivityTaskManagerService says so before it starts anything.
        if answer.contains("not debuggable") {
            return Err(ActivityError::NotProfileable { package: self.package.clone() });
        }
        let component = self.component.clone();
        if let Some((_, option)) = answer.split_once("Unknown option: ") {
            let option = option.split_whitespace().next().unwrap_or_default().to_owned();
            let release = match Properties::at(&self.bin).get("ro.build.version.release") {
                Ok(release) if !release.is_empty() => format!("Android {release}"),
                _ => "this release of Android".to_owned(),
            };
            return Err(ActivityError::UnknownOption { component, release, option });
        }
        Err(ActivityError::NotStarted { component, answer: answer.trim().replace('\n', "; ") })
    }

    /// Starts the always-on tracer in the app's process as soon as that is there, and for the last time when
    /// `is_started` returns true. Does nothing for the method tracer.
    pub fn start_always_on(
        &self,
        profiler: &Profiler,
        is_started: impl Fn() -> bool,
    ) -> Result<(), ActivityError> {
        let Some(args) = profiler.always_on_arguments(&self.package) else { return Ok(()) };
        loop {
            let is_last = is_started();
            let answer = run(&self.bin, "am", &args, answer_deadline())?;
            // The exit status of `am` is 0 even after a failure; after a success it says nothing of these.
            let failed = ["rror", "FAILED", "xception", "nknown"].iter().any(|word| answer.contains(word));
            if !failed {
                return Ok(());
            }
            if is_last {
                let answer = answer.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
                return Err(ActivityError::NoAlwaysOnTracer {
                    package: self.package.clone(),
                    answer: answer.to_owned(),
                    allowed: Properties::at(&self.bin)
                        .get("dalvik.vm.allow_profile_code")
                        .unwrap_or_default(),
                });
            }
            std::thread::sleep(TRACER_RETRY_INTERVAL);
        }
    }

    /// Stops the profiler. The runtime then writes the method trace. When `cancel` returns true, `am` is left
    /// to do that by itself.
    pub fn stop_profiler(&self, profiler: &Profiler, cancel: impl Fn() -> bool) -> Result<(), ActivityError> {
        let mut command = system_program(&self.bin.join("am"));
        command.args(profiler.stop_arguments(&self.package)).stdout(Stdio::null()).stderr(Stdio::null());
        let failed = |source| ActivityError::NoProgram { program: self.bin.join("am"), source };
        let mut am = command.spawn().map_err(failed)?;
        let is_late = answer_deadline();
        while am.try_wait().map_err(failed)?.is_none() && !cancel() {
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
