//! SIGINT, SIGTERM, SIGHUP and SIGQUIT as a file descriptor to poll. A recording that receives one of these
//! signals ends in order: it finishes the capture and puts the kernel's settings back.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// The signals that end a recording: blocked, and readable from this value instead.
#[derive(Debug)]
pub(crate) struct Signals(SignalFd);

impl Signals {
    /// Blocks the signals for this thread and for the threads that it will start. `std::process` unblocks all
    /// signals in the processes that it starts.
    pub(crate) fn block() -> io::Result<Signals> {
        let mut set = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
            set.add(signal);
        }
        set.thread_block()?;
        Ok(Signals(SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?))
    }

    /// Takes one signal that has arrived, if there is one.
    pub(crate) fn take(&self) -> Option<Signal> {
        let info = self.0.read_signal().ok()??;
        Signal::try_from(info.ssi_signo as i32).ok()
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
