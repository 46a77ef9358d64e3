//! Starting an app's activity through Android's own `am`, with its method profiler on.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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
        let answer = run(&bin, "cmd", ["package", "resolve-activity", "--brief"].iter().chain(&category))?;
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
        run(&self.bin, "am", ["force-stop", &self.package]).map(drop)
    }

    /// Starts it and waits for its launch to end; hands back what `am` says of the launch (`TotalTime: 512` …).
    pub fn start(&self, profiler: Option<&Profiler>) -> Result<String, ActivityError> {
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
        let answer = run(&self.bin, "am", &args)?;
        // Its exit status is 0 in any case.
        if answer.contains("Status: ok") {
            return Ok(answer);
        }
        let answer = answer.trim().replace('\n', "; ");
        Err(ActivityError::NotStarted { component: self.component.clone(), answer })
    }

    /// Stops the profiler and waits until the runtime has written the method trace. Its length, bytes; 0 where there is
    /// none.
    pub fn stop_profiler(&self, profiler: &Profiler) -> Result<u64, ActivityError> {
        run(&self.bin, "am", ["profile", "stop", &self.package])?;
        let end = Instant::now() + WRITTEN_WITHIN;
        let mut last = 0;
        while Instant::now() < end {
            let size = fs::metadata(&profiler.path).map_or(0, |m| m.len());
            // It is written by the app, after `am` came back: whole when it stands still.
            if size > 0 && size == last {
                return Ok(size);
            }
            last = size;
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(last)
    }
}

fn run<S: AsRef<std::ffi::OsStr>>(
    bin: &Path,
    name: &str,
    args: impl IntoIterator<Item = S>,
) -> Result<String, ActivityError> {
    let program = bin.join(name);
    let output = Command::new(&program).args(args).stdin(Stdio::null()).output();
    let output = output.map_err(|source| ActivityError::NoProgram { program, source })?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}
