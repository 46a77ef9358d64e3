//! Ends the host's commands when a signal or Ctrl-C comes, whatever they are waiting for, and leaves nothing
//! half done, neither here nor on a device.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the command ends something in order at the first signal.
static HOLDS_FIRST: AtomicBool = AtomicBool::new(false);

/// Whether that signal has come.
static HAS_COME: AtomicBool = AtomicBool::new(false);

/// From now on the first signal does not end the process: [`has_come`] tells the command, which ends what it
/// does in order. The second ends the process.
pub(super) fn hold_first() {
    HOLDS_FIRST.store(true, Ordering::SeqCst);
}

/// Whether a signal has come that the command is to obey.
pub(super) fn has_come() -> bool {
    HAS_COME.load(Ordering::SeqCst)
}

/// Whether the process is about to die of a signal.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// To be called at a command's end: if a signal is ending the process, waits until it has. What is cleaned up
/// elsewhere, on a device, takes a moment, and the process must not end before.
pub(super) fn settle() {
    while IS_ENDING.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// Whether a signal that has come now is left to the command.
fn is_held() -> bool {
    HOLDS_FIRST.load(Ordering::SeqCst) && !HAS_COME.swap(true, Ordering::SeqCst)
}

/// Removes what would be left half done.
fn clean_up() {
    IS_ENDING.store(true, Ordering::SeqCst);
    crate::output_file::abandon_all();
    crate::profile::graphviz::end_all();
    crate::desk::abandon_all();
}

/// From now on, a signal that ends the process first removes unfinished outputs and ends Graphviz. The
/// process then dies of the signal, so that a shell sees 128 + N. The same holds for a mapped input that
/// shrinks.
///
/// Signals are blocked in all threads and awaited by one of their own. So a command that waits for a pipe, a
/// FIFO or a program needs no care to be interruptible. To be called before other threads are started.
#[cfg(unix)]
pub(super) fn watch() {
    use nix::sys::signal::{SigSet, Signal, raise};

    use tracebridge_core::ignored_signals::is_ignored;

    crate::formats::mapped_file::end_on_bus_error();
    let mut awaited = SigSet::empty();
    // All signals that end a process and that another program, a terminal or a limit sends.
    let ending = [
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGTERM,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
        Signal::SIGALRM,
        Signal::SIGXCPU,
    ];
    ending.into_iter().filter(|signal| !is_ignored(*signal as i32)).for_each(|signal| awaited.add(signal));
    let mut blocked = awaited;
    // While SIGXFSZ is blocked, writing more than `ulimit -f` permits is an error like a full disk.
    blocked.add(Signal::SIGXFSZ);
    if blocked.thread_block().is_err() {
        return;
    }
    let watcher = std::thread::Builder::new().spawn(move || {
        let signal = loop {
            match awaited.wait() {
                Ok(_) if is_held() => {}
                Ok(signal) => break signal,
                Err(_) => return,
            }
        };
        clean_up();
        let _ = SigSet::from(signal).thread_unblock().and_then(|()| raise(signal));
        // The first process of a container does not die of signals.
        std::process::exit(128 + signal as i32)
    });
    if watcher.is_err() {
        // Without room for a thread, a signal ends the process at once, and a `.part` file may be left.
        let _ = awaited.thread_unblock();
    }
}

/// From now on, Ctrl-C, Ctrl-Break and a closed console window first remove unfinished outputs and end
/// Graphviz. The process then ends with 130, as after a SIGINT elsewhere.
#[cfg(windows)]
pub(super) fn watch() {
    // Without a handler the process just ends, and a `.part` file may be left.
    let _ = ctrlc::set_handler(|| {
        if !is_held() {
            clean_up();
            std::process::exit(130);
        }
    });
}
