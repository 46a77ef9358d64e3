//! Ends the host's commands when a signal comes, whatever they are waiting for, and leaves nothing half done.

/// From now on, a signal that ends the process first removes unfinished outputs and ends Graphviz. The
/// process then dies of the signal, so that a shell sees 128 + N. The same holds for a mapped input that
/// shrinks.
///
/// Signals are blocked in all threads and awaited by one of their own. So a command that waits for a pipe, a
/// FIFO or a program needs no care to be interruptible. To be called before other threads are started.
#[cfg(unix)]
pub(super) fn watch() {
    use nix::sys::signal::{SigSet, Signal, raise};

    use crate::ignored_signals::is_ignored;

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
        let Ok(signal) = awaited.wait() else { return };
        crate::output_file::abandon_all();
        crate::profile::dmtracedump::dot::end_all();
        let _ = SigSet::from(signal).thread_unblock().and_then(|()| raise(signal));
        // The first process of a container does not die of signals.
        std::process::exit(128 + signal as i32)
    });
    if watcher.is_err() {
        // Without room for a thread, a signal ends the process at once, and a `.part` file may be left.
        let _ = awaited.thread_unblock();
    }
}

/// On other systems the program just ends, and a `.part` file may be left.
#[cfg(not(unix))]
pub(super) fn watch() {}
