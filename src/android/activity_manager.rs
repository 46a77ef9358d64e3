//! Starting an app's activity through Android's own `am`, with its method profiler on.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long `am` and `cmd` may take to answer; a start takes as long as its caller has patience.
const ANSWERED_WITHIN: Duration = Duration::from_secs(20);
/// Time between two looks at whether they have.
const ASK_EVERY: Duration = Duration::from_millis(20);
/// How long the runtime may take to write a method trace out once it is stopped.
const WRITTEN_WITHIN: Duration = Duration::from_secs(30);
/// Time between two looks at its size.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// An activity to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// The app's package.
    pub package: String,
    /// `package/class`.
    pub component: String,
    bin: PathBuf,
}

/// How the runtime is to trace methods.
#[derive(Debug, Clone, Default)]
pub struct Profiler {
    /// Where it writes to.
    pub path: PathBuf,
    /// Sample the stacks every so many µs, instead of tracing each call.
    pub sampling_us: Option<u32>,
    /// Write while tracing, so that no buffer of 8 MiB ends it.
    pub streaming: bool,
}

/// Android's activity manager did not do it.
#[derive(Debug, thiserror::Error)]
pub enum ActivityError {
    /// A program of Android's did not run.
    #[error("running {}: {source}: starting an app needs Android", program.display())]
    NoProgram {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A program of Android's hangs; it was ended.
    #[error(
        "`{command}` gave no answer: is the device still booting, or the app's process stopped by a debugger?"
    )]
    NoAnswer {
        /// The program and the first of its arguments.
        command: String,
    },
    /// The package has nothing to start.
    #[error(
        "{package} has no activity to start ({answer}): is it installed? Name one as {package}/.ClassName"
    )]
    NoActivity {
        /// The package.
        package: String,
        /// What `cmd package resolve-activity` said.
        answer: String,
    },
    /// `am start` failed.
    #[error("{component} did not start: {answer}")]
    NotStarted {
        /// The activity.
        component: String,
        /// What `am start` said.
        answer: String,
    },
}

impl Activity {
    /// `PACKAGE/ACTIVITY`, or `PACKAGE` for the activity that its icon starts. `bin` is where Android's programs are.
    pub fn find(name: &str, bin: &Path) -> Result<Activity, ActivityError> {
        let bin = bin.to_owned();
        if let Some((package, _)) = name.split_once('/') {
            return Ok(Activity { package: package.to_owned(), component: name.to_owned(), bin });
        }
        let category = ["-c", "android.intent.category.LAUNCHER", name];
        let answer =
            run(&bin, "cmd", ["package", "resolve-activity", "--brief"].iter().chain(&category), soon())?;
        match answer.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
            Some(component) if component.contains('/') => {
                Ok(Activity { package: name.to_owned(), component: component.to_owned(), bin })
            }
            _ => {
                Err(ActivityError::NoActivity { package: name.to_owned(), answer: answer.trim().to_owned() })
            }
        }
    }

    /// Ends the app, so that its next start is a cold one.
    pub fn stop(&self) -> Result<(), ActivityError> {
        run(&self.bin, "am", ["force-stop", &self.package], soon()).map(drop)
    }

    /// Starts it and waits for its launch to end, unless `give_up` says so before; hands back what `am` says of the
    /// launch (`TotalTime: 512` …).
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
        // Its exit status is 0 in any case.
        if answer.contains("Status: ok") {
            return Ok(answer);
        }
        let answer = answer.trim().replace('\n', "; ");
        Err(ActivityError::NotStarted { component: self.component.clone(), answer })
    }

    /// Stops the profiler: from then on the runtime writes the method trace out.
    pub fn stop_profiler(&self) -> Result<(), ActivityError> {
        run(&self.bin, "am", ["profile", "stop", &self.package], soon()).map(drop)
    }
}

impl Profiler {
    /// Waits until the runtime has written the method trace. Its length, bytes; 0 where there is none.
    pub fn written(&self) -> u64 {
        let end = Instant::now() + WRITTEN_WITHIN;
        let mut last = 0;
        while Instant::now() < end {
            let size = fs::metadata(&self.path).map_or(0, |m| m.len());
            // It is written by the app, after `am` came back: whole when it stands still.
            if size > 0 && size == last {
                break;
            }
            last = size;
            std::thread::sleep(LOOK_EVERY);
        }
        last
    }
}

/// When to give up on a program that answers at once if it answers at all.
fn soon() -> impl Fn() -> bool {
    let end = Instant::now() + ANSWERED_WITHIN;
    move || Instant::now() > end
}

/// Runs one of Android's programs; what it says on both its outputs.
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
    // What it says fits into the pipes: some lines.
    while child.try_wait().map_err(failed)?.is_none() {
        if give_up() {
            let _ = child.kill();
            let _ = child.wait();
            let verb = command.get_args().next().unwrap_or_default().to_string_lossy();
            return Err(ActivityError::NoAnswer { command: format!("{name} {verb}") });
        }
        std::thread::sleep(ASK_EVERY);
    }
    let output = child.wait_with_output().map_err(failed)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}
