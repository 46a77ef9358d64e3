//! Starts other programs: the only place of the product that does. Each begins with an empty signal mask, so
//! that signals reach it, whatever this process blocks.

use std::ffi::OsStr;
use std::process::{Child, Command};

/// The relation of a child to this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildKind {
    /// A program that works for this process, and has nothing to put back: it is killed when this process
    /// ends, however it ends (Linux alone), or when the thread that started it does.
    Worker,
    /// This program, working for this process: it is asked to end (SIGTERM) in the cases in which a worker is
    /// killed, and puts back what it has changed.
    Own,
    /// A program that outlives this process, such as a browser. Ctrl-C in this process's terminal does not
    /// reach it.
    Independent,
    /// A program that runs as if a shell had started it: it ignores the signals that this process was started
    /// to ignore.
    AsFromShell,
}

/// A command of this kind, to be started by the caller.
pub fn command(program: impl AsRef<OsStr>, kind: ChildKind) -> Command {
    let mut command = Command::new(program);
    prepare(&mut command, kind);
    command
}

/// Kills a child, and of a worker also what it has started.
pub fn kill(child: &mut Child) {
    #[cfg(unix)]
    if let Ok(pid) = i32::try_from(child.id()) {
        // Only a child with a process group of its own leads one.
        let _ = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
    }
    let _ = child.kill();
}

#[cfg(unix)]
fn prepare(command: &mut Command, kind: ChildKind) {
    use std::os::unix::process::CommandExt;

    use nix::libc;

    use crate::system_calls::{StartSignals, set_signals};

    let at_our_end = match kind {
        ChildKind::Worker => Some(libc::SIGKILL),
        ChildKind::Own => Some(libc::SIGTERM),
        ChildKind::Independent | ChildKind::AsFromShell => None,
    };
    if matches!(kind, ChildKind::Independent | ChildKind::Worker) {
        command.process_group(0);
    }
    set_signals(command, StartSignals { has_defaults: kind != ChildKind::AsFromShell, at_our_end });
}

#[cfg(not(unix))]
fn prepare(_: &mut Command, _: ChildKind) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Stdio;

    use nix::sys::signal::{SigSet, Signal};

    use super::*;

    /// The masks of blocked and of ignored signals of a new process.
    fn masks(kind: ChildKind) -> (u64, u64) {
        let mut cat = command("cat", kind);
        let status = cat.arg("/proc/self/status").stdout(Stdio::piped()).output().unwrap();
        let text = String::from_utf8(status.stdout).unwrap();
        // The C library keeps 32 and 33 for itself, and gives nobody a way to reset them.
        let reserved: u64 = 0b11 << 31;
        let mask = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap() & !reserved
        };
        (mask("SigBlk:"), mask("SigIgn:"))
    }

    #[test]
    fn a_child_blocks_nothing_that_this_process_blocks() {
        let blocked = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]);
        blocked.thread_block().unwrap();
        for kind in [ChildKind::Worker, ChildKind::Own, ChildKind::Independent] {
            assert_eq!(masks(kind), (0, 0), "{kind:?}");
        }
        assert_eq!(masks(ChildKind::AsFromShell).0, 0);
        blocked.thread_unblock().unwrap();
    }

    #[test]
    fn a_worker_ends_with_the_thread_that_started_it() {
        let start = |kind| {
            let sleep = move || command("sleep", kind).arg("600").spawn().unwrap();
            std::thread::Builder::new().spawn(sleep).unwrap().join().unwrap()
        };
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(start(ChildKind::Worker).wait().unwrap().signal(), Some(9));
        assert_eq!(start(ChildKind::Own).wait().unwrap().signal(), Some(15));
        let mut free = start(ChildKind::Independent);
        assert!(free.try_wait().unwrap().is_none());
        free.kill().unwrap();
        free.wait().unwrap();
    }
}
