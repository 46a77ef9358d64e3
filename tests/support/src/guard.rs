//! Removes the leavings of a test run when it ends, in whatever way it ends: the processes that it started,
//! the files and mounts that it made, and the settings of a recorder that it did not wait for. A shell does
//! it, which waits for the end of a pipe that only this process can write to; a SIGKILL closes that pipe,
//! too.

use std::fs;
use std::io::{self, PipeReader, Write, pipe};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use tempfile::TempDir;

/// The variable in the environment of every child of a test run.
pub const RUN_VARIABLE: &str = "TRACEBRIDGE_TEST_RUN";

/// The script of the shell; its head names the lines that it reads.
const SCRIPT: &str = include_str!("guard.sh");

struct Run {
    id: String,
    dir: PathBuf,
    guard: Option<Guard>,
}

/// The shell that tidies up.
struct Guard {
    lines: Mutex<ChildStdin>,
    /// A pipe that ends when the shell does.
    #[cfg_attr(not(unix), expect(dead_code, reason = "only Unix has locks that the shell must outlive"))]
    end: PipeReader,
}

fn run() -> &'static Run {
    static RUN: OnceLock<Run> = OnceLock::new();
    RUN.get_or_init(|| {
        // Not removed by a destructor: statics have none that runs. The guard removes it.
        let parent = parent_of_runs(&std::env::temp_dir());
        let dir = tempfile::Builder::new().prefix("tracebridge-test-").tempdir_in(parent);
        let dir = dir.expect("a directory for files").keep();
        // Tests that give up root keep files there, too.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).expect("the owner may do that");
        }
        let dir = fs::canonicalize(&dir).expect("the directory exists");
        let id = dir.file_name().expect("a directory has a name").to_string_lossy().into_owned();
        let guard = start_guard(&id, &dir);
        Run { id, dir, guard }
    })
}

/// Where the directories of runs are: the system's directory for temporary files, unless a shell would take
/// its name apart. Scripts of imitated devices name files without quotes, as those of Android do.
fn parent_of_runs(temp_dir: &Path) -> PathBuf {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,@".contains(c);
    if temp_dir.to_str().is_some_and(|dir| dir.chars().all(is_plain)) || !cfg!(unix) {
        temp_dir.to_owned()
    } else {
        PathBuf::from("/tmp")
    }
}

/// Starts the shell. `None` where there is no `/proc` to find processes in.
fn start_guard(id: &str, dir: &Path) -> Option<Guard> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let (end, at_end) = pipe().expect("a pipe");
    let mut guard = Command::new("sh");
    guard.args(["-c", SCRIPT, "guard"]).arg(format!("{RUN_VARIABLE}={id}")).arg(dir);
    guard.current_dir("/").stdin(Stdio::piped()).stdout(at_end).stderr(Stdio::null());
    let lines = start_outside(&mut guard).expect("sh runs").stdin.take().expect("a pipe was asked for");
    Some(Guard { lines: Mutex::new(lines), end })
}

/// Starts a program that outlives this one, outside the process group of the tests.
fn start_outside(command: &mut Command) -> io::Result<Child> {
    // Of a test program that another one runs: the other one's guard leaves this program to its work.
    command.env_remove(RUN_VARIABLE);
    crate::command::start(command)
}

fn tell(line: &str) {
    if let Some(guard) = &run().guard {
        let mut lines = guard.lines.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(lines, "{line}").expect("the guard runs as long as the test");
    }
}

/// The name of this run of a test program: it is in the environment of every child, and in the run's
/// directory.
pub fn run_id() -> &'static str {
    &run().id
}

/// The directory of this run's temporary files. The guard removes it.
pub fn run_dir() -> &'static Path {
    &run().dir
}

/// A new directory for files, which goes with the value.
///
/// # Panics
/// If it cannot be made.
#[track_caller]
pub fn tempdir() -> TempDir {
    TempDir::new_in(run_dir()).expect("a directory for the files of a test")
}

/// Has the guard unmount what is mounted at `dir`, if it still is at the end of the run.
pub fn unmount_at_end(dir: &Path) {
    tell(&format!("umount\t{}", dir.display()));
}

/// Has the guard remove the directory of a trace instance, if it is still there at the end of the run.
pub fn remove_instance_at_end(dir: &Path) {
    tell(&format!("rmdir\t{}", dir.display()));
}

/// Has the guard put back these settings of the kernel, or none of them. The file has three lines for each:
/// its path, the first line of what it shows, and what has to be written for it to show that.
pub fn put_back_at_end(settings: Option<&Path>) {
    tell(&format!("settings\t{}", settings.unwrap_or(Path::new("")).display()));
}

/// Keeps a file open until the guard has tidied up: nobody else gets a lock of the file before.
///
/// # Panics
/// If the system permits no further process.
#[cfg(unix)]
#[expect(clippy::zombie_processes, reason = "the program outlives this one")]
pub fn hold_until_tidied(file: std::os::fd::OwnedFd) {
    if let Some(guard) = &run().guard {
        let end = guard.end.try_clone().expect("a descriptor");
        // It waits for the end of its input, and writes nothing into the file.
        start_outside(Command::new("cat").stdin(end).stdout(file).stderr(Stdio::null())).expect("cat runs");
    }
}

/// Has the guard put back the kernel's settings that a killed recorder has saved in `state`.
pub fn restore_at_end(program: &Path, state: &Path) {
    tell(&format!("restore\t{}\t{}", program.display(), state.display()));
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::processes::runs;
    use crate::wait::until;

    /// Starts a run of this test program that only does [`leaves_everything_behind`], and waits for its line.
    fn start_run() -> (crate::Child, Vec<u32>, PathBuf) {
        let mut run = crate::Command::new(std::env::current_exe().unwrap());
        run.args(["--exact", "guard::tests::leaves_everything_behind", "--ignored", "--nocapture"]);
        let mut run = run.stdout(Stdio::piped()).spawn().unwrap();
        let line = run.collect_stdout().line_with("LEFT BEHIND");
        let words = line.split_once("LEFT BEHIND ").unwrap().1;
        let (pids, dir) = words.split_once(" in ").unwrap();
        let pids: Vec<u32> = pids.split(' ').map(|pid| pid.parse().unwrap()).collect();
        (run, pids, PathBuf::from(dir))
    }

    #[test]
    #[ignore = "started by the test of a killed run: it does not end by itself"]
    fn leaves_everything_behind() {
        let dir = tempdir();
        fs::write(dir.path().join("large"), vec![1; 2 << 20]).unwrap();
        let mut forks = crate::Command::new("sh");
        let forks = forks.args(["-c", "while :; do /bin/true; done"]).spawn().unwrap();
        let script = "setsid sh -c 'echo $$; exec sleep 1000' & wait";
        let mut elsewhere = crate::Command::new("sh");
        let mut elsewhere = elsewhere.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let in_a_session_of_its_own = elsewhere.collect_stdout().line_with("");
        println!(
            "LEFT BEHIND {} {} {in_a_session_of_its_own} in {}",
            forks.id(),
            elsewhere.id(),
            run_dir().display()
        );
        let _ = elsewhere.wait();
    }

    #[test]
    fn of_a_killed_run_no_process_and_no_file_is_left() {
        let (mut run, pids, dir) = start_run();
        assert!(dir.is_dir() && pids.iter().all(|pid| runs(*pid)), "{pids:?}");
        run.kill().unwrap();
        run.wait().unwrap();
        for pid in pids {
            until(&format!("the end of process {pid} of a killed run"), || !runs(pid));
        }
        until(&format!("the removal of {}", dir.display()), || !dir.exists());
    }

    #[test]
    fn a_directory_whose_name_a_shell_takes_apart_holds_no_run() {
        assert_eq!(parent_of_runs(Path::new("/var/tmp/build-7")), Path::new("/var/tmp/build-7"));
        for odd in ["/var/tmp/x y", "/var/tmp/*", "/var/tmp/it's"] {
            assert_eq!(parent_of_runs(Path::new(odd)), Path::new("/tmp"));
        }
    }
}
